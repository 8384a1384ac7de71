/* holder.pml - mem/share.h, home.c: one buffer in the hands of several processes, two of which may die at any step. Its
 * maker gets it back exactly once per life: never twice, never while a living process has it, and always in the end.
 *
 * As it is: thread 0 is the maker M, 1 is P, 2 is Q. M gives the buffer to P, who puts it or gives it to Q, who puts it
 * or gives it back to M. The word says nothing while P has it straight from M. A killed process's stores still become
 * visible, then its death is told to each of the others; each acts on it (takes what the dead one had published for
 * it, ends its own way there) and says so; when all have, it is settled. M takes back what the dead HELD, or had from M
 * by no word, when it is told, what was FLYING from or to them when it is settled. Who gives claims a cell first, then
 * changes the word, then publishes: a claim that finds the way shut changed nothing.
 *
 * MAKER: inside the maker. Thread 0 gives the buffer to Q (thread 2), step by step or straight (straight.h), thread 1 is the listener, which collects and
 * scans. The buffer was last held by P, who is dead, and may have pushed it before he died; or it has landed here, and
 * thread 0 has it.
 *
 * Not shown: the links of a longer return list and those on slips (one CAS and one exchange of its head); what liars write.
 *
 * Mutations  KILL FLYING_EARLY     what flies is taken back when the death is told
 *            KILL NO_TAKE_BACK     what the dead held is not taken back
 *            KILL NO_SETTLED       nor what flew
 *            KILL ACT_UNREAD       a process says it has acted before it has taken what the dead one published
 *            KILL ACT_FLYING       it says so while a cell that it claimed for the dead one is not published
 *            KILL FLY_FIRST        the word says FLYING before a cell was claimed, and is set back when that fails
 *            HELD_LATE             the giver changes the word behind the publication
 *            KILL NO_CLEAR         what comes home keeps its word
 *            MAKER WEAK NO_W1      AWAY is stored without order behind the word, whose clearing has no fence behind it
 *            MAKER NO_COLLECT      a scan does not empty the return list first
 *            MAKER KILL FLY_FIRST  as above, by the maker itself
 */
#define THREADS 3
#define HOLDER 0                /* the shared word */
#define HEAD 1                  /* of the return list: 1: the buffer */
#define NOBODY 0
#define HELD_P 1
#define HELD_Q 2
#define FLYING_PQ 3
#define FLYING_QM 4
#define DEPTH 3

#ifndef MAKER
#define MP 2                    /* mailboxes: the life of the buffer that was published there */
#define PQ 3
#define QM 4
#define WORDS 5
#define LIVES 2

#include "memory.pml"

mtype = { FREE, AWAY, HOME };

mtype handle = FREE;            /* the maker's, private */
byte life;
bit has_p, has_q;               /* who has it by right */
bit dead[3], told[3], settled[3], acted_m[3];   /* of P = 1, Q = 2 */
bit acted_p, acted_q;           /* P on Q's death, Q on P's */
bit flies;                      /* a thread of P has claimed a cell for Q and not published it */
bit shut;                       /* P's way to Q */
bit over;

/* Back in the maker's hands. */
inline came()
{
	atomic {
		if
		:: handle == AWAY ->
			assert(!(has_p && !dead[1]) && !(has_q && !dead[2]));
			handle = HOME
		:: else
		fi
	}
	if
	:: handle == HOME ->
#ifndef NO_CLEAR
		store(0, HOLDER, NOBODY);
#endif
		handle = FREE
	:: else
	fi
}

inline collect(x)
{
	exchange(0, HEAD, 0, x);
	if
	:: x -> came()
	:: else
	fi;
	x = 0
}

#ifdef NO_TAKE_BACK
#define HELD_BY_DEAD(x) false
#else
#define HELD_BY_DEAD(x) (((x == HELD_P || x == NOBODY) && told[1]) || (x == HELD_Q && told[2]))
#endif
#ifdef NO_SETTLED
#define FLYING_OF_DEAD(x, news) false
#else
#define FLYING_OF_DEAD(x, news) ((x == FLYING_PQ && news[1]) || ((x == FLYING_PQ || x == FLYING_QM) && news[2]))
#endif
#ifdef FLYING_EARLY
#define NEWS told
#else
#define NEWS settled
#endif

inline scan(x)
{
	collect(x);
	load(0, HOLDER, x);
	if
	:: handle == AWAY && (HELD_BY_DEAD(x) || FLYING_OF_DEAD(x, NEWS)) -> came()
	:: else
	fi;
	x = 0
}

/* What Q published for M. */
inline read_qm(x, seen)
{
	load(0, QM, x);
	if
	:: x == seen
	:: else ->
		seen = x;
		load(0, HOLDER, x);
		if
		:: x == FLYING_QM && handle == AWAY -> came()   /* received, and put at once */
		:: else
		fi
	fi;
	x = 0
}

proctype maker()
{
	byte x, seen;
	bit was[3];             /* settled, and scanned for that */

	do
	:: handle == FREE && life < LIVES && !told[1] ->
		atomic { life++; handle = AWAY }
		store_release(0, MP, life)
	:: handle == FREE && (life == LIVES || told[1]) -> break
	:: mem[HEAD] -> collect(x)
	:: mem[QM] != seen -> read_qm(x, seen)
	:: told[1] && !acted_m[1] -> scan(x); acted_m[1] = 1
	:: told[2] && !acted_m[2] -> read_qm(x, seen); scan(x); acted_m[2] = 1
	:: settled[1] && !was[1] -> was[1] = 1; scan(x)
	:: settled[2] && !was[2] -> was[2] = 1; scan(x)
	od;
	over = 1
}

inline put(t, x, has)
{
	has = 0;
	do
	:: load(t, HEAD, x);
		atomic {
			READY(t, HEAD) && DRAINED(t);   /* a release CAS */
			if
			:: mem[HEAD] == x -> assert(x == 0); mem[HEAD] = 1; break
			:: else
			fi
		}
	od;
	x = 0
}

proctype p()
{
	byte x, seen;

	{
end:		do
		:: over -> break
		:: mem[MP] != seen ->
			load(1, MP, seen);
			atomic { assert(handle == AWAY); has_p = 1 }
			if
			:: put(1, x, has_p)
#ifdef FLY_FIRST
			:: true ->
				flies = 1;
				store(1, HOLDER, FLYING_PQ);
				has_p = 0;
				if
				:: shut ->      /* not published: as before */
					atomic { assert(handle == AWAY); has_p = 1 }
					store(1, HOLDER, HELD_P);
					flies = 0;
					put(1, x, has_p)
				:: else -> store_release(1, PQ, seen); flies = 0
				fi
#else
			:: atomic { !shut -> flies = 1 }
#ifndef HELD_LATE
				store(1, HOLDER, FLYING_PQ);
				has_p = 0;
#endif
				store_release(1, PQ, seen);
#ifdef HELD_LATE
				store(1, HOLDER, FLYING_PQ);
				has_p = 0;
#endif
				flies = 0
#endif
			fi;
			x = 0
		od
	} unless { atomic { dead[1] -> x = 0; seen = 0; has_p = 0; flies = 0 } }
}

/* P's listener. */
proctype p_listener()
{
	{
end:		do
		:: over -> break
		:: told[2] && !acted_p ->
			shut = 1;
#ifndef ACT_FLYING
			!flies;
#endif
			atomic { FENCE(1) -> acted_p = 1 }
		od
	} unless { dead[1] }
}

inline read_pq(x, seen)
{
	load(2, PQ, x);
	if
	:: x == seen
	:: else ->
		seen = x;
		load(2, HOLDER, x);
		if
		:: x != FLYING_PQ
		:: else ->
			atomic { assert(handle == AWAY); has_q = 1 }
			store(2, HOLDER, HELD_Q);
			if
			:: put(2, x, has_q)
			:: true ->
				store(2, HOLDER, FLYING_QM);
				has_q = 0;
				store_release(2, QM, seen)
			fi
		fi
	fi;
	x = 0
}

proctype q()
{
	byte x, seen;

	{
end:		do
		:: over -> break
#ifdef ACT_UNREAD
		:: mem[PQ] != seen -> read_pq(x, seen)
		:: told[1] && !acted_q -> atomic { FENCE(2) -> acted_q = 1 }
#else
		:: mem[PQ] != seen && !acted_q -> read_pq(x, seen)
		:: told[1] && !acted_q -> read_pq(x, seen); atomic { FENCE(2) -> acted_q = 1 }
#endif
		od
	} unless { atomic { dead[2] -> x = 0; seen = 0; has_q = 0 } }
}

#ifdef KILL
/* Of one of the two: killed, told, and settled when everybody alive has acted. */
proctype death(byte who)
{
end:	if
	:: dead[who] = 1
	:: over -> goto done
	fi;
	atomic { empty(buf[who]) -> told[who] = 1 }
	atomic { over || (acted_m[who] && (who == 1 -> (acted_q || dead[2]) : (acted_p || dead[1]))) -> settled[who] = 1 }
done:	skip
}
#endif

init
{
	atomic {
		MEMORY;
		run maker();
		run p();
		run p_listener();
		run q();
#ifdef KILL
		run death(1);
		run death(2)
#endif
	}
	over && ALL_FLUSHED;
	assert(handle == FREE)
}

#else /* MAKER */

#define HANDLE 2                /* the maker's word, seen by both its threads */
#define MQ 3
#define WORDS 4
#define FREE 1
#define AWAY 2                  /* given to Q */
#define SENDING 3
#define GONE 4                  /* away from before: the word says where */

#include "memory.pml"

bit pool;                       /* it is there, for whoever takes it */
bit has_m, has_q;               /* who has it by right */
bit dead, told, acted, settled; /* Q */
bit flies, shut, gave, over;

inline came(t, ok)
{
	atomic {
		READY(t, HANDLE);
		ok = mem[HANDLE] == AWAY || mem[HANDLE] == GONE;
		if
		:: ok -> mem[HANDLE] = FREE; assert(!has_m && !(has_q && !dead))
		:: else
		fi
	}
	if
	:: ok -> store(t, HOLDER, NOBODY); FENCE(t); assert(!pool); pool = 1     /* under its lock */
	:: else
	fi;
	ok = 0
}

inline collect(x)
{
	exchange(1, HEAD, 0, x);
	if
	:: x -> came(1, ok)
	:: else
	fi;
	x = 0
}

inline scan(x)
{
#ifndef NO_COLLECT
	collect(x);
#endif
	load(1, HANDLE, x);
	if
	:: x == AWAY || x == GONE ->
		to_q = x == AWAY;
		load(1, HOLDER, x);
		if
		:: x == HELD_P || (x == NOBODY && to_q && told) -> came(1, ok)
		:: else
		fi;
		to_q = 0
	:: else
	fi;
	x = 0
}

proctype giver()
{
	bit claimed, straight;

	if
	:: atomic { pool -> pool = 0; has_m = 1 }
	:: has_m -> store(0, HOLDER, NOBODY);           /* it has just landed */
#ifndef NO_W1
		FENCE(0)                                /* wf_entry_clear */
#endif
	fi;
#ifndef FLY_FIRST
	if
	:: straight = 1
	:: true
	fi;
#endif
	if
	:: straight
	:: else -> store(0, HANDLE, SENDING)
	fi;
#ifdef FLY_FIRST
	flies = 1;
#else
	atomic { claimed = !shut; flies = claimed }
	if
	:: !claimed
	:: else ->
#endif
		has_m = 0;
		if
		:: straight -> atomic { READY(0, HANDLE) -> mem[HANDLE] = AWAY }        /* a swap without order */
		:: else ->
#ifdef NO_W1
			store(0, HANDLE, AWAY)
#else
			store_release(0, HANDLE, AWAY)
#endif
		fi;
#ifdef FLY_FIRST
	claimed = !shut;
	if
	:: claimed
	:: else ->              /* as before */
		has_m = 1;
		store(0, HANDLE, SENDING);
		flies = 0
	fi;
	if
	:: !claimed
	:: else ->
#endif
		store_release(0, MQ, 1);
		flies = 0
	fi;
	if
	:: claimed
	:: else ->              /* his send has failed: he puts it */
		store(0, HANDLE, FREE);
		FENCE(0);
		atomic { has_m = 0; assert(!pool); pool = 1 }
	fi;
	gave = 1
}

proctype listener()
{
	byte x;
	bit ok, was, to_q;
	byte scans;

	do
	:: gave && pool -> break
	:: mem[HEAD] -> collect(x)
	:: scans < 2 -> scans++; scan(x)                /* P's death; and when memory is short */
	:: told && !acted ->
		shut = 1;
		scan(x);
		!flies;
		FENCE(0);
		acted = 1
	:: settled && !was -> was = 1; scan(x)
	od;
	over = 1
}

proctype q()
{
	byte x;

	{
end:		do
		:: over -> break
		:: mem[MQ] ->
			atomic { assert(mem[HANDLE] == AWAY); has_q = 1 }
			has_q = 0;
			atomic { READY(2, HEAD) && DRAINED(2); assert(mem[HEAD] == 0); mem[HEAD] = 1 }
			break
		od
	} unless { atomic { dead -> x = 0; has_q = 0 } }
}

#ifdef KILL
proctype death()
{
end:	if
	:: dead = 1
	:: over -> goto done
	fi;
	atomic { empty(buf[2]) -> told = 1 }
	atomic { over || acted -> settled = 1 }
done:	skip
}
#endif

init
{
	atomic {
		mem[HOLDER] = HELD_P;
		if
		:: mem[HANDLE] = GONE; mem[HEAD] = 1
		:: mem[HANDLE] = GONE
		:: mem[HANDLE] = SENDING; has_m = 1
		fi;
		MEMORY;
		run giver();
		run listener();
		run q();
#ifdef KILL
		run death()
#endif
	}
	over
}
#endif
