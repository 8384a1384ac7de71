/* lock.pml - base/lock.h: three threads take a lock whose release is a plain store. One at a time, what was finished under
 * it is seen by the next, and nobody sleeps for ever.
 *
 * Not shown: that loads under the lock are not finished before it is taken (the exchange is acquire: ldaxr/swpa, locked on
 * x86), and that the release keeps earlier loads before it (stlr).
 *
 * Mutations  NO_HEAVY           who wants the lock passes no fence
 *            NO_WANTED          who wants it does not say so
 *            LOOK_FIRST         the release looks at wanted before it stores
 *            WEAK NO_RELEASE    the release store is relaxed
 *            SYMM NO_LIGHT      plain fences, and the releaser's is missing
 */
#define THREADS 3
#define WORDS 3
#define DEPTH 3
#ifndef EACH
#define EACH 2
#endif

#define HELD 0
#define WANTED 1
#define DATA 2                  /* plain, under the lock */

#include "memory.pml"

byte inside, finished;

inline unlock(t)
{
#ifdef LOOK_FIRST
	load(t, WANTED, r);
#endif
#ifdef NO_RELEASE
	store(t, HELD, 0);
#else
	store_release(t, HELD, 0);
#endif
	LIGHT(t);
#ifndef LOOK_FIRST
	load(t, WANTED, r);
#endif
	if
	:: r -> futex_wake(t, HELD)
	:: else
	fi
}

inline lock(t)
{
	exchange(t, HELD, 1, r);
	if
	:: r == 0
	:: else ->
#ifndef NO_WANTED
		add(t, WANTED, 1);
#endif
		heavy(t);
		do
		:: exchange(t, HELD, 1, r);
			if
			:: r == 0 -> break
			:: else -> futex_wait(t, HELD, 1)
			fi
		od;
#ifndef NO_WANTED
		add(t, WANTED, -1)
#endif
	fi
}

proctype taker(byte me)
{
	byte i, r, d;

	do
	:: i == EACH -> break
	:: else ->
		lock(me);
		inside++;
		assert(inside == 1);
		load(me, DATA, d);
		store(me, DATA, d + 1);
		inside--;
		unlock(me);
		i++; d = 0; r = 0
	od;
	finished++
}

init
{
	atomic {
		MEMORY;
		run taker(0);
		run taker(1);
		run taker(2)
	}
	finished == 3 && ALL_FLUSHED;
	assert(mem[DATA] == 3 * EACH);
	assert(mem[HELD] == 0 && mem[WANTED] == 0)
}
