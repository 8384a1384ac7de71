/* ring.pml - port/ring.h and its users: two senders and a reader over a mailbox of two cells, with laps, a full ring,
 * the list of what spilled, and by GROW a change to four cells, by CLOSE another incarnation. Nothing is lost,
 * nothing comes twice, each sender's messages come in its order, and only to the incarnation they were meant for.
 *
 * The tail is one word: its fields are read and changed together. The spill lock is taken in one step (lock.pml shows
 * it) and its release waits for the thread's earlier stores. Waking the reader is park.pml's: here it waits for
 * what is in memory.
 *
 * The reader finds "spilled" set and every position read before it takes the spill lock; it must look at the tail again
 * under the lock. For one thing the flag may be one that an earlier incarnation left (CLOSE MANY): then the ring may
 * fill and spill anew meanwhile. For another, with WEAK its two loads come in either order, as nothing orders them
 * on aarch64.
 *
 * Not shown, as it needs loads or load-to-store reordering:
 *   R1  seq acquire: the body's load may not come before the load of seq. Message passing: "store body; store-release
 *       seq" / "load-acquire seq; load body" cannot end with the new seq and the old body (MP+rel+acq; MP on x86).
 *   R2  the reader's loads of a cell before its head store, and a sender's load of head before its stores into the
 *       cell: "load cell; store-release head" / "load head; (dependent) store cell" cannot end with the load having
 *       seen that store: LB+rel+ctrl is forbidden, a store is never done before a branch it depends on is.
 *   R3  cells[] is loaded at an address that depends on the tail's BIG bit: MP+rel+addr.
 *
 * Mutations  SEQ_BEFORE_BODY  NO_LAP  NO_FULL_CHECK  HEAD_BEFORE_READ  NO_SPILL_FLAG  POP_UNDRAINED
 *            WEAK RELAXED_SEQ   WEAK NO_RECHECK
 *            GROW NO_FROZEN     GROW NO_FREEZE_DRAIN   GROW WEAK RELAXED_THAW
 *            CLOSE NO_INCARNATION   CLOSE NO_CLOSED    CLOSE MANY NO_RECHECK
 */
#define THREADS 3
#ifdef GROW
#define CHANGES
#endif
#ifdef CLOSE
#define CHANGES
#endif
#ifdef MANY
#undef CHANGES
#endif
#ifdef GROW
#define CELLS 6                         /* 2 small, then 4 big */
#else
#define CELLS 2
#endif
#define SEQ(k) (k)
#define BODY(k) (CELLS + (k))
#define HEAD (2 * CELLS)
#define SEEN (2 * CELLS + 1)
#define SPILLED (2 * CELLS + 2)         /* the flag beside the tail's */
#ifdef GROW
#define WORDS 15
#else
#define WORDS 7
#endif
#define DEPTH 4
#ifdef CHANGES                          /* GROW and CLOSE have more states: fewer messages, unless MANY */
#define COUNT(me) ((me) == 1 -> 3 : 1)
#define TOTAL 4
#else
#define COUNT(me) 3
#define TOTAL 6
#endif

#include "memory.pml"

#define F_CLOSED 1
#define F_SPILLED 2
#define F_FROZEN 4

byte tail_pos, tail_flags, tail_who = 1;
bit tail_big;

byte told = 1;                          /* the incarnation senders hear of */
bit spill_lock;
chan spill = [TOTAL] of { byte };
byte next[3];                           /* by sender: the number to come */
byte delivered, refused, dropped, finished;

#define MESSAGE(who, me, n) ((who) * 32 + (me) * 8 + (n))
#define CELL(big, pos) ((big) -> 2 + ((pos) & 3) : ((pos) & 1))
#define MASK(big) ((big) -> 3 : 1)
#define FULL(pos, head, big) ((pos) < (head) || (pos) - (head) > MASK(big))
#ifdef NO_LAP
#define STAMP(big, pos) (1 + CELL(big, pos))
#else
#define STAMP(big, pos) ((pos) + 1)
#endif
#ifdef RELAXED_SEQ
#define store_seq(t, a, v) store(t, a, v)
#else
#define store_seq(t, a, v) store_release(t, a, v)
#endif

inline lock_spill(t)
{
	atomic { READY(t, SPILLED) && spill_lock == 0 -> spill_lock = 1 }
}

inline unlock_spill(t)
{
	atomic { FENCE(t) -> spill_lock = 0 }
}

inline look_at_tail()
{
	d_step { pos = tail_pos; flags = tail_flags; big = tail_big; who = tail_who }
}

#ifdef NO_INCARNATION
#define OTHER false
#else
#define OTHER (who != meant)
#endif

/* state: 0 try to claim, 1 claimed, 2 to spill, 3 over, 4 refused */
inline claim()
{
	look_at_tail();
	if
	:: OTHER || (flags & F_CLOSED) -> state = 4
	:: !(OTHER || (flags & F_CLOSED)) && (flags & F_FROZEN) -> !(tail_flags & F_FROZEN)
	:: !(OTHER || (flags & (F_CLOSED | F_FROZEN))) && (flags & F_SPILLED) -> state = 2
	:: else ->
#ifndef NO_FULL_CHECK
		load(me, SEEN, h);
		if
		:: FULL(pos, h, big) ->
			load(me, HEAD, h);
			store_release(me, SEEN, h);
			if
			:: FULL(pos, h, big) -> state = 2
			:: else
			fi
		:: else
		fi;
#endif
		if
		:: state == 0 ->
			atomic {
				READY(me, SPILLED);
				if
				:: tail_pos == pos && tail_flags == flags && tail_big == big && tail_who == who ->
					tail_pos = pos + 1;
					state = 1
				:: else
				fi
			}
		:: else
		fi
	fi
}

inline put_into_list()
{
	lock_spill(me);
	look_at_tail();
	load(me, HEAD, h);
	if
	:: OTHER || (flags & F_CLOSED) -> state = 4
	:: !(OTHER || (flags & F_CLOSED)) &&
	   ((flags & F_FROZEN) || (!(flags & F_SPILLED) && !FULL(pos, h, big))) -> state = 0
	:: else ->
		spill!MESSAGE(meant, me, n);
#ifndef NO_SPILL_FLAG
		atomic { READY(me, SPILLED) -> tail_flags = tail_flags | F_SPILLED };
#endif
		store(me, SPILLED, 1);
		state = 3
	fi;
	unlock_spill(me)
}

proctype sender(byte me)
{
	byte n, pos, flags, who, meant, h, state;
	bit big;

	do
	:: n == COUNT(me) -> break
	:: else ->
		state = 0;
		meant = told;
		do
		:: state == 0 -> claim()
		:: state == 1 ->
#ifdef SEQ_BEFORE_BODY
			store_seq(me, SEQ(CELL(big, pos)), STAMP(big, pos));
			store(me, BODY(CELL(big, pos)), MESSAGE(meant, me, n));
#else
			store(me, BODY(CELL(big, pos)), MESSAGE(meant, me, n));
			store_seq(me, SEQ(CELL(big, pos)), STAMP(big, pos));
#endif
			break
		:: state == 2 -> put_into_list()
		:: state == 3 -> break
		:: state == 4 -> refused++; break
		od;
		n++;
		d_step { pos = 0; flags = 0; who = 0; meant = 0; h = 0; state = 0; big = 0 }
	od;
	finished++
}

inline deliver(b)
{
	d_step {
		assert((b) / 32 == whose);
		assert(((b) / 8) % 4 == 1 || ((b) / 8) % 4 == 2);
#ifdef CLOSE
		assert((b) % 8 >= next[((b) / 8) % 4]);
#else
		assert((b) % 8 == next[((b) / 8) % 4]);
#endif
		next[((b) / 8) % 4] = (b) % 8 + 1;
		delivered++
	}
}

inline read_cell()
{
#ifdef HEAD_BEFORE_READ
	store_release(0, HEAD, pos + 1);
#endif
	load(0, BODY(CELL(mine, pos)), v);
	deliver(v);
	pos++;
	if
	:: pos % 2 == 0 -> store_release(0, HEAD, pos)
	:: else
	fi;
	v = 0
}

/* Every position given out is read; what is claimed will be published. */
inline read_all()
{
	do
	:: tail_pos == pos -> break
	:: else ->
		mem[SEQ(CELL(mine, pos))] == STAMP(mine, pos);
		read_cell()
	od
}

#ifdef NO_RECHECK
#define STILL_UP true
#else
#define STILL_UP (tail_pos == pos)
#endif

inline take_spilled()
{
	lock_spill(0);
	if
	:: !STILL_UP
	:: STILL_UP && empty(spill) ->
		store(0, SPILLED, 0);
		atomic { FENCE(0) -> tail_flags = tail_flags & (255 - F_SPILLED) }
	:: STILL_UP && nempty(spill) ->
		spill?v;
		deliver(v);
		v = 0
	fi;
	unlock_spill(0)
}

#ifdef POP_UNDRAINED
#define READ_UP true
#else
#define READ_UP (tail_pos == pos)
#endif

inline look_for_spilled()
{
	if
	:: load(0, SPILLED, v); up = READ_UP
#ifdef WEAK
	:: up = READ_UP; load(0, SPILLED, v)
#endif
	fi;
	if
	:: v && up -> v = 0; up = 0; take_spilled()
	:: else -> v = 0; up = 0
	fi
}

inline grow()
{
#ifndef NO_FROZEN
	atomic { READY(0, SPILLED) -> tail_flags = tail_flags | F_FROZEN };
#endif
#ifndef NO_FREEZE_DRAIN
	read_all();
#endif
	store(0, SEQ(2), pos);
	store(0, SEQ(3), pos);
	store(0, SEQ(4), pos);
	store(0, SEQ(5), pos);
	mine = 1;
#ifdef RELAXED_THAW
	store(0, HEAD, pos);
#else
	store_release(0, HEAD, pos);
#endif
	atomic {
#ifdef RELAXED_THAW
		true;
#else
		FENCE(0);
#endif
		tail_flags = tail_flags & (255 - F_FROZEN);
		tail_big = 1
	}
}

inline close_and_open()
{
#ifndef NO_CLOSED
	atomic { FENCE(0) -> tail_flags = tail_flags | F_CLOSED };
#endif
	lock_spill(0);
	do
	:: spill?v -> dropped++
	:: empty(spill) -> break
	od;
	v = 0;
	unlock_spill(0);
	read_all();
	store(0, SEQ(0), pos);
	store(0, SEQ(1), pos);
	store(0, HEAD, pos);
	store(0, SEEN, pos);
	whose++;
	atomic { FENCE(0) -> tail_pos = pos; tail_flags = 0; tail_who = whose };
	told = whose
}

#define HERE (mem[SEQ(CELL(mine, pos))] == STAMP(mine, pos))
#define LISTED (mem[SPILLED] && READ_UP)
#ifdef WEAK
#define POLL READ_UP                    /* it may see the tail so, and the flag only later */
#else
#define POLL false
#endif
#define OVER (finished == 2 && ALL_FLUSHED && empty(buf[1]))

proctype reader()
{
	byte pos, v, whose = 1;
	bit up, mine, changed;

	do
	:: HERE || LISTED || POLL ->
		load(0, SEQ(CELL(mine, pos)), v);
		if
		:: v == STAMP(mine, pos) -> v = 0; read_cell()
		:: else -> v = 0; look_for_spilled()
		fi
#ifdef GROW
	:: !changed -> changed = 1; grow()
#endif
#ifdef CLOSE
	:: !changed -> changed = 1; close_and_open()
#endif
	:: OVER && !HERE && !LISTED -> break
	od;
	assert(delivered + refused + dropped == TOTAL);
	assert(tail_pos == pos && empty(spill))
}

init
{
	atomic {
		MEMORY;
		run reader();
		run sender(1);
		run sender(2)
	}
}
