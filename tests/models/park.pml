/* park.pml - base/park.h: a sleeper and two wakers over an asymmetric fence. No wake-up is lost: nobody sleeps for
 * ever while something is published (Spin calls that an invalid end state).
 *
 * Not shown: that what was published is read whole (a release store of the counter, an acquire load by the sleeper:
 * message passing, kept by stlr/ldar and by x86 as it is). The sleeper's word and name need no order between them: the
 * waker looks at the name first, and at a stale word of 0 only when the heavy fence is still to come, behind which the
 * sleeper looks again.
 *
 * Mutations  NO_HEAVY           the sleeper passes no fence
 *            NO_SECOND_LOOK     and does not look again
 *            NAME_LATE          it names itself behind the fence
 *            BEGIN_LATE         it sets its word after the second look
 *            WAKE_THEN_CLEAR    the waker wakes before it clears the word
 *            SYMM NO_LIGHT      plain fences, and the waker's is missing
 */
#define THREADS 3
#define WORDS 4
#define DEPTH 3
#define EACH 2

#define WORD 0                  /* of the parker */
#define NAME 1
#define PUBLISHED(t) (1 + (t))  /* how much waker t = 1, 2 has published */

#include "memory.pml"

inline look(ret)
{
	load(0, PUBLISHED(1), ret);
	load(0, PUBLISHED(2), more);
	ret = ret + more
}

proctype sleeper()
{
	byte seen, now, more, word;

	do
	:: seen == 2 * EACH -> break
	:: else ->
		look(now);
		if
		:: now != seen -> seen = now
		:: else ->
#ifndef BEGIN_LATE
			store(0, WORD, 1);
#endif
#ifndef NAME_LATE
			store(0, NAME, 1);
#endif
			heavy(0);
#ifdef NAME_LATE
			store(0, NAME, 1);
#endif
#ifdef NO_SECOND_LOOK
			now = seen;
#else
			look(now);
#endif
#ifdef BEGIN_LATE
			store(0, WORD, 1);
#endif
			do
			:: now != seen -> break
			:: else ->
				load(0, WORD, word);
				if
				:: word != 1 -> break
				:: else -> futex_wait(0, WORD, 1)
				fi
			od;
			store(0, WORD, 0);
			store(0, NAME, 0);
			now = 0; more = 0; word = 0
		fi
	od
}

proctype waker(byte me)
{
	byte i, name, word;

	do
	:: i == EACH -> break
	:: else ->
		i++;
		store_release(me, PUBLISHED(me), i);
		LIGHT(me);
		load(me, NAME, name);
		if
		:: name == 0
		:: else ->
			load(me, WORD, word);
			if
			:: word != 1
			:: else ->
#ifdef WAKE_THEN_CLEAR
				futex_wake(me, WORD);
				exchange(me, WORD, 0, word);
#else
				exchange(me, WORD, 0, word);
				if
				:: word == 1 -> futex_wake(me, WORD)
				:: else
				fi
#endif
			fi
		fi;
		name = 0; word = 0
	od
}

init
{
	atomic {
		MEMORY;
		run sleeper();
		run waker(1);
		run waker(2)
	}
}
