/* way.pml - port/way.h: the ring from one process to a port of another.
 *
 * As it is: who may write the tail (S1). Thread 0 is the way's user, who claims by plain stores while it is solo, gives
 * that up itself when it queues (wf_way_queue_locked) and takes it again; thread 1 comes along as a second user; thread
 * 2 is the listener, which shuts the way and gives its memory back when everything below the last position was read. No
 * position is given twice, none after SHUT was read back, none is lost, and nobody writes to a cell that was given back.
 *
 * WAKE: the cells. Threads 1 and 2 are of the sending process: claim (in one step here), fill, publish, look for a
 * sleeper; a full ring makes them ask for room. Thread 0 reads, and sleeps. KILL: the sending process dies at any step;
 * what it had stored still becomes visible, then its death is told. The reader reads up to the first cell that was not
 * published, never beyond it, and ends there. SYMM is a peer that is `strong`.
 *
 * Not shown: the place in the arena (it follows from the same CAS); flags other than SHUT and BACKLOG; that the user's
 * giving up of solo must not overtake its last store of the tail (a cell is published between the two, and a release
 * store of memory.pml holds up what follows).
 *
 * Mutations  NO_FIRST_FENCE        who takes solo away passes no fence before it looks at in
 *            WEAK NO_SECOND_FENCE  nor behind that
 *            NO_SECOND_LOOK        the user does not look at solo again once it is in
 *            NO_WAIT               who takes solo away does not wait for in
 *            SHUT_SOLO             the listener sets SHUT without taking solo away
 *            SOLO_AGAIN            the user becomes solo although another has found the way
 *            NO_READ_OUT           the memory is given back once the way is shut
 *            WAKE NO_HEAVY         the reader passes no fence before it sleeps
 *            WAKE NO_ROOM_FENCE    nor does a writer that asks for room
 *            WAKE NO_SECOND_CHECK  a writer that asked for room does not look at the head again
 *            WAKE SYMM NO_LIGHT    plain fences, and the writer's is missing
 *            WAKE WEAK RELAXED_SEQ the cell is published by a relaxed store
 *            WAKE KILL DEAF        the reader waits for a cell that a dead writer had claimed
 *            WAKE KILL TOLD_LATE   it looks at the cell first, then whether the writer is dead
 *            WAKE KILL TOLD_EARLY  the death is told before the dead one's stores are visible
 *            WAKE KILL WORD_FIRST  at a death only a sleeper whose word says so is woken
 */
#define THREADS 3

#ifndef WAKE
#define TAIL 0                  /* position | SHUT | BACKLOG */
#define IN 1
#define SOLO 2
#define WAYS_LOCK 3
#define USER_LOCK 4
#define SEQ(p) (5 + (p))
#define CLAIMS 3                /* two by the user, one by the other */
#define WORDS (5 + CLAIMS)
#define DEPTH 4
#define SHUT 64
#define BACKLOG 32
#define FLAGS (SHUT | BACKLOG)

#include "memory.pml"

bit shared, freed;              /* way.user is SHARED; the memory is given back */
byte shut_at = 255;             /* as read back behind SHUT */
byte given[CLAIMS + 1], finished;

#define lock(t, a) atomic { READY(t, a) && mem[a] == 0 -> mem[a] = 1 }
#define unlock(t, a) store_release(t, a, 0)
#define or_tail(t, v) atomic { READY(t, TAIL) -> mem[TAIL] = mem[TAIL] | (v) }
#define and_not_tail(t, v) atomic { READY(t, TAIL) -> mem[TAIL] = mem[TAIL] & (255 - (v)) }

inline share(t, x)
{
	load(t, SOLO, x);
	if
	:: !x
	:: else ->
		store(t, SOLO, 0);
#ifndef NO_FIRST_FENCE
		heavy(t);
#endif
#ifndef NO_WAIT
		do
		:: load(t, IN, x);
			if
			:: !x -> break
			:: else
			fi
		od;
#endif
#ifndef NO_SECOND_FENCE
		heavy(t)
#else
		skip
#endif
	fi;
	x = 0
}

inline fill(t, p)
{
	d_step {
		given[p]++;
		assert(given[p] == 1);
		assert(p < shut_at)
	}
	assert(!freed);
	store_release(t, SEQ(p), 1)
}

/* @ok: claimed. Otherwise the way is stopped. */
inline claim_shared(t, x, ok)
{
	load(t, TAIL, x);
	do
	:: x & FLAGS -> ok = 0; break
	:: else ->
		atomic {
			READY(t, TAIL);
			if
			:: mem[TAIL] == x -> mem[TAIL] = x + 1; ok = 1
			:: else -> x = mem[TAIL]; ok = 0
			fi
		}
		if
		:: ok -> break
		:: else
		fi
	od
}

inline claim_user(x, ok)
{
	bit solo;

	ok = 0;
	load(0, SOLO, solo);
	if
	:: !solo
	:: else ->
		store(0, IN, 1);
		LIGHT(0);
#ifndef NO_SECOND_LOOK
		load(0, SOLO, solo);
#endif
		if
		:: !solo
		:: else ->
			load(0, TAIL, x);
			if
			:: x & FLAGS
			:: else -> store(0, TAIL, x + 1); ok = 1
			fi
		fi;
		store(0, IN, 0)
	fi;
	if
	:: ok || (solo && x & FLAGS)
	:: else -> claim_shared(0, x, ok)
	fi;
	solo = 0
}

inline become_solo(x)
{
	lock(0, USER_LOCK);
	lock(0, WAYS_LOCK);
	load(0, TAIL, x);
	if
#ifdef SOLO_AGAIN
	:: !(x & FLAGS) -> store(0, SOLO, 1)
#else
	:: !shared && !(x & FLAGS) -> store(0, SOLO, 1)
#endif
	:: else
	fi;
	unlock(0, WAYS_LOCK);
	unlock(0, USER_LOCK)
}

/* Something was queued, and written again: whoever flushes writes the tail. */
inline queue()
{
	lock(0, USER_LOCK);
	store(0, SOLO, 0);
	or_tail(0, BACKLOG);
	and_not_tail(0, BACKLOG);
	unlock(0, USER_LOCK)
}

proctype user()
{
	byte i, x;
	bit ok;

	become_solo(x);
	do
	:: i == 2 -> break
	:: else ->
		claim_user(x, ok);
		if
		:: ok -> fill(0, x)
		:: else -> break
		fi;
		i++;
		if
		:: i == 1 -> queue(); become_solo(x)
		:: true
		fi
	od;
	x = 0; ok = 0;
	finished++
}

proctype other()
{
	byte x;
	bit ok;

	lock(1, WAYS_LOCK);
	shared = 1;
	share(1, x);
	unlock(1, WAYS_LOCK);
	do
	:: claim_shared(1, x, ok);
		if
		:: ok -> fill(1, x); break
		:: !ok && x & SHUT -> break
		:: else                 /* behind a backlog: it is the user's to write */
		fi
	od;
	x = 0; ok = 0;
	finished++
}

proctype listener()
{
	byte x, p;

	lock(2, WAYS_LOCK);
#ifndef SHUT_SOLO
	share(2, x);
	store(2, SOLO, 0);
#endif
	or_tail(2, SHUT);
	unlock(2, WAYS_LOCK);
	load(2, TAIL, x);
	shut_at = x & 31;
	/* The reader reads that far, and says so. */
#ifndef NO_READ_OUT
	do
	:: p == shut_at -> break
	:: else -> mem[SEQ(p)] -> p++
	od;
#endif
	freed = 1;
	x = 0; p = 0;
	finished++
}

init
{
	byte p;

	atomic {
		MEMORY;
		run user();
		run other();
		run listener()
	}
	finished == 3 && ALL_FLUSHED;
	assert((mem[TAIL] & 31) == shut_at);
	do
	:: p == shut_at -> break
	:: else -> assert(given[p] == 1); p++
	od
}

#else /* WAKE */

#define WORD 0                  /* of the reader's parker */
#define NAME 1
#define HEAD 2
#define STARVED 3
#define CELLS 1
#define SEQ(p) 4
#define BODY(p) 5
#define WORDS 6
#define DEPTH 3
#ifndef EACH
#define EACH 1
#endif
#define TOTAL (EACH + 1)

#include "memory.pml"

byte tail, rooms;               /* private to the sending process; frames that told of room */
bit published[TOTAL + 1];
bit dead, told;

#ifdef RELAXED_SEQ
#define publish(t, a, v) store(t, a, v)
#else
#define publish(t, a, v) store_release(t, a, v)
#endif

inline ask_for_room(t, h, now, r)
{
	r = rooms;
	store(t, STARVED, 1);
#ifndef NO_ROOM_FENCE
	heavy(t);
#endif
#ifdef NO_SECOND_CHECK
	now = h;
#else
	load(t, HEAD, now);
#endif
	if
	:: now != h
	:: else -> r != rooms   /* the frame, and who reads it flushes for all */
	fi;
	r = 0; now = 0
}

proctype writer(byte me; byte n)
{
	byte p, h, x, r;
	bit ok;

	{
		do
		:: n == 0 -> break
		:: else ->
			load(me, HEAD, h);
			atomic {
				ok = tail - h < CELLS;
				if
				:: ok -> p = tail; tail++
				:: else
				fi
			}
			if
			:: !ok -> ask_for_room(me, h, x, r)
			:: else ->
				store(me, BODY(p), p + 1);
				atomic { publish(me, SEQ(p), p + 1); published[p] = 1 }
				LIGHT(me);
				load(me, NAME, x);
				if
				:: !x
				:: else ->
					FENCE(me);
					load(me, WORD, x);
					if
					:: x != 1
					:: else ->
						exchange(me, WORD, 0, x);
						if
						:: x == 1 -> futex_wake(me, WORD)
						:: else
						fi
					fi
				fi;
				n--
			fi;
			p = 0; h = 0; x = 0; ok = 0
		od
	} unless { atomic { dead -> n = 0; p = 0; h = 0; x = 0; r = 0; ok = 0 } }
}

proctype reader()
{
	byte pos, s, x;
	bit end;

	do
	:: pos == TOTAL -> break
	:: else ->
#ifdef TOLD_LATE
		load(0, SEQ(pos), s);
		end = told;
#else
		end = told;
		load(0, SEQ(pos), s);
#endif
		if
		:: s == pos + 1 ->
			load(0, BODY(pos), x);
			assert(x == pos + 1);
			pos++;
			store_release(0, HEAD, pos);
			LIGHT(0);
			load(0, STARVED, x);
			if
			:: x ->
				exchange(0, STARVED, 0, x);
				if
				:: x -> rooms++
				:: else
				fi
			:: else
			fi
#ifndef DEAF
		:: s != pos + 1 && end -> break
#endif
		:: else ->
			store(0, WORD, 1);
			store(0, NAME, 1);
			heavy(0);
			load(0, SEQ(pos), s);
			do
#ifndef DEAF
			:: told -> break
#endif
			:: s == pos + 1 -> break
			:: else ->
				load(0, WORD, x);
				if
				:: x != 1 -> break
				:: else -> futex_wait(0, WORD, 1)
				fi
			od;
			store(0, WORD, 0);
			store(0, NAME, 0)
		fi;
		s = 0; x = 0; end = 0
	od;
	assert(pos == TOTAL || !published[pos])
}

#ifdef KILL
/* The sending process is killed; its death is told to the reader's listener. Who sleeps is woken whatever his word says:
 * a waker may have died between clearing it and the call. (A bounded sleep does the same, late.) */
proctype death()
{
	dead = 1;
#ifndef TOLD_EARLY
	empty(buf[1]) && empty(buf[2]);
#endif
	told = 1;
	atomic {
		if
#ifdef WORD_FIRST
		:: mem[WORD] != 1
#endif
		:: else -> mem[WORD] = 0; asleep[0] = 0
		fi
	}
}
#endif

init
{
	atomic {
		MEMORY;
		run reader();
		run writer(1, EACH);
		run writer(2, 1);
#ifdef KILL
		run death()
#endif
	}
}
#endif
