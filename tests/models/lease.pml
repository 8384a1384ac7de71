/* lease.pml - base/lease.h: what a lock covers is lent to one thread, which goes in and out by plain stores and loads; who takes the lock takes it back. One at a time inside, what was done
 * inside is seen by the next, and nobody waits for ever.
 *
 * Two threads that lend to themselves, and a third that only takes the lock. The lock is taken in one step here: lock.pml shows it. Its release waits for the thread's earlier stores, as
 * a release store does. Which word is the lessee's inside is told under the lock, as the name is.
 * Not shown: that loads inside are not done early (the lessee's load of name: if it is his nobody has stored since he had the lock; the other's load of inside is acquire).
 *
 * Mutations  NO_HEAVY          who takes back passes no fence
 *            NO_WAIT           and does not wait for who is inside
 *            NO_LOOK           the lessee does not look again once it has said that it is inside
 *            NO_OVER           who has the lock does not take back at all
 *            WEAK NO_V1        the lessee's store on leaving is relaxed
 *            SYMM NO_LIGHT     plain fences, and the lessee's is missing
 */
#define THREADS 3
#define WORDS 4
#define DEPTH 4
#define ROUNDS 3                /* of each of the two that lend */
#define VISITS 2                /* of the third */

#define IN 0                    /* and 1: of the two */
#define NAME 2                  /* 0: nobody's */
#define DATA 3                  /* plain, inside */

#include "memory.pml"

byte taken;                     /* the lock; 0: free */
byte lent;                      /* under it: whose inside is to be looked at, + 1 */
byte inside, finished;

#define lock(t) atomic { READY(t, DATA) && taken == 0 -> taken = 1 }
#define unlock(t) atomic { FENCE(t) -> taken = 0 }

#ifdef NO_V1
#define leave_store(t, a, v) store(t, a, v)
#else
#define leave_store(t, a, v) store_release(t, a, v)
#endif

inline work(t)
{
	inside++;
	assert(inside == 1);
	load(t, DATA, d);
	store(t, DATA, d + 1);
	inside--;
	d = 0
}

/* [lock] */
inline take_back(t)
{
	load(t, NAME, w);
	if
#ifdef NO_OVER
	:: true
#else
	:: w == 0
	:: w != 0 ->
		store(t, NAME, 0);
		if
		:: lent == t + 1
		:: lent != t + 1 ->
			heavy(t);
#ifndef NO_WAIT
			do
			:: load(t, IN + lent - 1, w);
				if
				:: w == 0 -> break
				:: else
				fi
			od
#endif
		fi
#endif
	fi;
	w = 0
}

proctype lender(byte me)
{
	byte i, w, d;
	bit in;

	do
	:: i == ROUNDS -> break
	:: else ->
		in = 0;
		load(me, NAME, w);
		if
		:: w == me + 1 ->
			store(me, IN + me, 1);
			LIGHT(me);
#ifndef NO_LOOK
			load(me, NAME, w);
#endif
			if
			:: w == me + 1 ->
				work(me);
				leave_store(me, IN + me, 0);
				in = 1
			:: else -> store(me, IN + me, 0)
			fi
		:: else
		fi;
		if
		:: in
		:: else ->
			lock(me);
			take_back(me);
			work(me);
			if
			:: store(me, NAME, me + 1); lent = me + 1
			:: skip
			fi;
			unlock(me)
		fi;
		i++; w = 0
	od;
	finished++
}

proctype visitor(byte me)
{
	byte i, w, d;

	do
	:: i == VISITS -> break
	:: else ->
		lock(me);
		take_back(me);
		work(me);
		unlock(me);
		i++
	od;
	finished++
}

init
{
	atomic {
		MEMORY;
		run lender(0);
		run lender(1);
		run visitor(2)
	}
	finished == 3 && ALL_FLUSHED;
	assert(mem[DATA] == 2 * ROUNDS + VISITS)
}
