/* door.pml - port/door.h: the owner goes in and out by plain stores and loads, two visitors by a heavy fence; after
 * some visits the door is a plain lock. One at a time inside, what was done inside is seen by the next, and nobody
 * sleeps for ever.
 *
 * The lock among the visitors (door.others) is taken in one step here: lock.pml shows it. Its release waits for the
 * thread's earlier stores, as a release store does.
 * Not shown: that loads inside are not done early (the loads of in and word are acquire where they find a change,
 * and where they find none there is nothing new to load).
 *
 * Mutations  NO_HEAVY           the visitor passes no fence
 *            NO_RETREAT         the owner that finds itself wanted stays
 *            NO_LEAVE_LOOK      the owner does not look when it leaves
 *            NO_OWNER_FENCE     nothing between the owner's "I wait" and its look
 *            NO_LAST            the owner does not compare the word at all
 *            WEAK NO_D1         the owner's store on leaving is relaxed
 *            WEAK NO_D2         the visitor's store on leaving is relaxed
 *            SYMM NO_LIGHT      plain fences, and the owner's is missing
 */
#define THREADS 3
#define WORDS 4
#define DEPTH 4
#define OWNER_ROUNDS 3
#define VISITS 2                /* of each of two visitors */
#ifndef TO_PLAIN
#define TO_PLAIN 3
#endif

#define IN 0
#define WORD 1                  /* visits * 4 | plain * 2 | wanted */
#define WAITS 2                 /* the owner */
#define DATA 3                  /* plain, inside */
#define WANTED 1
#define PLAIN 2
#define VISIT 4

#include "memory.pml"

byte others;                    /* the visitors' lock; 0: free */
byte inside, finished;

#define lock_others(t) atomic { READY(t, DATA) && others == 0 -> others = 1 }
#define unlock_others(t) atomic { FENCE(t) -> others = 0 }

#ifdef NO_D1
#define leave_store(t, a, v) store(t, a, v)
#else
#define leave_store(t, a, v) store_release(t, a, v)
#endif
#ifdef NO_D2
#define visit_store(t, a, v) store(t, a, v)
#else
#define visit_store(t, a, v) store_release(t, a, v)
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

/* The word has changed. */
inline owner_slow()
{
	do
	:: load(0, WORD, w);
		if
		:: w & PLAIN ->
			store_release(0, IN, 0);
			lock_others(0);
			locked = 1;
			break
		:: !(w & PLAIN) && !(w & WANTED) ->
			last = w;
			break
		:: else ->
#ifdef NO_RETREAT
			last = w;
			break;
#endif
			leave_store(0, IN, 0);
			futex_wake(0, IN);
			do
			:: load(0, WORD, w);
				if
				:: !(w & WANTED) -> break
				:: else ->
					store(0, WAITS, 1);
#ifndef NO_OWNER_FENCE
					FENCE(0);
#endif
					load(0, WORD, w);
					if
					:: w & WANTED -> futex_wait(0, WAITS, 1)
					:: else
					fi
				fi
			od;
			store(0, WAITS, 0);
			store(0, IN, 1);
			LIGHT(0)
		fi
	od
}

proctype owner()
{
	byte i, w, last, d;
	bit locked;

	do
	:: i == OWNER_ROUNDS -> break
	:: else ->
		store(0, IN, 1);
		LIGHT(0);
		load(0, WORD, w);
		if
#ifdef NO_LAST
		:: true
#else
		:: w == last
		:: else -> owner_slow()
#endif
		fi;
		work(0);
		leave_store(0, IN, 0);
		LIGHT(0);
#ifdef NO_LEAVE_LOOK
		w = last;
#else
		load(0, WORD, w);
#endif
		if
		:: w == last && !locked
		:: else ->
			if
			:: locked -> locked = 0; unlock_others(0)
			:: else -> futex_wake(0, IN)
			fi
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
		lock_others(me);
		load(me, WORD, w);
		if
		:: w & PLAIN
		:: else ->
			add(me, WORD, WANTED);
			heavy(me);
			do
			:: load(me, IN, w);
				if
				:: w == 0 -> break
				:: else -> futex_wait(me, IN, 1)
				fi
			od
		fi;
		work(me);
		load(me, WORD, w);
		if
		:: w & PLAIN
		:: else ->
			w = w + VISIT - WANTED;
			if
			:: w / VISIT >= TO_PLAIN -> w = w | PLAIN
			:: else
			fi;
			visit_store(me, WORD, w);
			FENCE(me);
			exchange(me, WAITS, 0, w);
			if
			:: w -> futex_wake(me, WAITS)
			:: else
			fi
		fi;
		unlock_others(me);
		i++; w = 0
	od;
	finished++
}

init
{
	atomic {
		MEMORY;
		run owner();
		run visitor(1);
		run visitor(2)
	}
	finished == 3 && ALL_FLUSHED;
	assert(mem[DATA] == OWNER_ROUNDS + 2 * VISITS)
}
