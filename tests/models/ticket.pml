/* ticket.pml - port/ticket.h, push.c, far.c, fetch.c: an announced message between a sender and a receiver of two processes.
 *
 * As it is: match against cancel. Two messages, one behind the other, use the same ticket (its serial moves on). The
 * sender may cancel each; the receiver reads the announcements late or early, takes a message, or refuses it, or takes
 * it and lets it go again. One of cancel and match wins; the sender's end says what the receiver did; a stale
 * announcement harms nobody; no answer goes unheard.
 *
 * OWN: the message stays where it is. Its sender's program writes there before it sends and again as soon as it has
 * its end; the receiver reads there once it has taken it, or cannot and asks for a pipe, which the sender tells of.
 *
 * PIPE: four chunks of data (SHORT: two) through a pipe of two, which had an earlier message in it. Both sleep when
 * there is nothing to do. The data come whole and in order.
 *
 * OFFER: a backlog of two messages out of which the first is offered when the receiver seeks; memory is plain there, as
 * everything is done under locks or comes through rings. Messages are received in order, and a declined one is received
 * later all the same.
 *
 * KILL: sender or receiver dies at any step; what it had stored still becomes visible, then its death is told. The other
 * one ends. Of a message whose chunks had all been written (its send may have ended) nothing is lost.
 *
 * Not shown: chunks beyond what is wanted (-EMSGSIZE). Sleeps have no bound here; those of the code do.
 *
 * Mutations  NO_SERIAL             the ticket's serial does not move on
 *            CANCEL_STORE          cancel is a look and a store
 *            TAKE_STORE            so is a match
 *            ANSWER_STORE          refusing is a store without a look
 *            NO_HEAVY              a sleeper passes no fence
 *            NO_WAKE               the receiver does not wake the sender
 *            UNCLAIM_SILENT        nor when it lets go of what it had taken
 *            KILL NO_NEWS          the sender does not look whether the receiver has died
 *            OWN READ_EARLY     what lies there is read before the message was taken
 *            OWN READ_LATE      or after its sender was told that it is done
 *            OWN WEAK RELAXED_OPEN  a message is announced by relaxed stores
 *            OWN ASK_SILENT     a sender is not woken when it is asked for a pipe
 *            PIPE NO_HEAVY         as above
 *            PIPE SYMM NO_LIGHT    plain fences, and the waker's is missing
 *            PIPE READ_EARLY       a chunk is given back before it was read
 *            PIPE NO_FULL          a full pipe is filled
 *            PIPE NO_BASE          each message numbers its chunks anew
 *            PIPE WEAK RELAXED_SEQ a chunk is published by a relaxed store
 *            PIPE KILL NO_LAST     the receiver does not look for a chunk behind the news of death
 *            PIPE KILL SHORT NO_PIPE  it does, but does not look whether the pipe has been told meanwhile
 *            OFFER PASS            what is behind an offer is flushed
 *            OFFER SKIP            seeking finds what is behind an offer
 *            OFFER NO_FLUSH        nobody flushes when an offer was answered
 */
#if defined(PIPE)

#define THREADS 2
#define CHUNKS 2
#define SEQ(n) ((n) % CHUNKS)
#define DATA(n) (2 + (n) % CHUNKS)
#define READ 4
#define READY_ 5                /* ticket.ready: the pipe's place */
#define WRITER 6                /* names */
#define READER 7
#define PARK(t) (8 + (t))
#define WORDS 10
#define DEPTH 3
#ifdef SHORT
#define LEN 2                   /* chunks of the message: all of it fits */
#else
#define LEN 4
#endif
#define BASE 2                  /* number of its first */
#ifdef NO_BASE
#define NUMBER(n) ((n) - BASE + 1)
#else
#define NUMBER(n) ((n) + 1)
#endif

#elif !defined(OFFER)

#define THREADS 2
#define TICKET 0                /* serial * 8 + state */
#define CELL(k) (k)             /* the announcement of message k = 1, 2 */
#define WRITER 3
#define PARK(t) 4               /* only the sender sleeps */
#ifdef OWN
#define BYTES 5                 /* the message itself, in the sender's memory */
#define PIPE_ 6                 /* of message k: told of */
#define WORDS 7
#else
#define WORDS 5
#endif
#define DEPTH 4

#define OPEN 1
#define TAKEN 2
#define DONE 3
#define CANCELLED 4
#define REFUSED 5
#define DIED 6                  /* the receiver has */
#define PIPED 7
#ifdef NO_SERIAL
#define IS(k, state) (8 + (state))
#else
#define IS(k, state) ((k) * 8 + (state))
#endif

#endif

#ifndef OFFER
#include "memory.pml"

bit dead[2], told[2];           /* 0: the sender, 1: the receiver */

inline wake(t, name, who, x)
{
	LIGHT(t);
	load(t, name, x);
	if
	:: !x
	:: else ->
		FENCE(t);
		load(t, PARK(who), x);
		if
		:: x != 1
		:: else ->
			exchange(t, PARK(who), 0, x);
			if
			:: x == 1 -> futex_wake(t, PARK(who))
			:: else
			fi
		fi
	fi;
	x = 0
}

inline name_myself(t, name)
{
	store(t, PARK(t), 1);
	store(t, name, 1);
	heavy(t)
}

inline park(t, x)
{
	load(t, PARK(t), x);
	if
	:: x == 1 -> futex_wait(t, PARK(t), 1)
	:: else
	fi;
	x = 0
}

inline wake_up(t, name)
{
	store(t, PARK(t), 0);
	store(t, name, 0)
}

/* One of the two is killed; the other's listener is told, and wakes who sleeps. */
proctype death()
{
	byte who;

	if
	:: who = 0
	:: who = 1
	fi;
	dead[who] = 1;
	empty(buf[who]);
	atomic { told[who] = 1; asleep[1 - who] = 0; mem[PARK(1 - who)] = 0 }
}
#endif

#if defined(PIPE)

bit all_there;                  /* every chunk was published: the send may have ended */

#ifdef RELAXED_SEQ
#define publish(t, a, v) store(t, a, v)
#else
#define publish(t, a, v) store_release(t, a, v)
#endif

proctype sender()
{
	byte n = BASE, read = BASE, x;

	{
		store_release(0, READY_, 1);
		wake(0, READER, 1, x);
		do
		:: n == BASE + LEN -> break
		:: told[1] -> break
		:: else ->
#ifndef NO_FULL
			if
			:: n - read < CHUNKS
			:: else -> load(0, READ, read)
			fi;
#else
			read = n;
#endif
			if
			:: n - read < CHUNKS ->
				store(0, DATA(n), n);
				atomic { publish(0, SEQ(n), NUMBER(n)); all_there = n == BASE + LEN - 1 }
				n++;
				wake(0, READER, 1, x)
			:: else ->
				name_myself(0, WRITER);
				load(0, READ, read);
				if
				:: n - read < CHUNKS || told[1]
				:: else -> park(0, x)
				fi;
				wake_up(0, WRITER)
			fi
		od
	} unless { atomic { dead[0] -> n = 0; read = 0; x = 0 } }
}

/* @got: chunk @n was taken. */
inline take(n, ready, x, got)
{
	got = 0;
	if
	:: ready
	:: else -> load(1, READY_, ready)
	fi;
	if
	:: !ready
	:: else ->
		load(1, SEQ(n), x);
		if
		:: x != NUMBER(n)
		:: else ->
#ifdef READ_EARLY
			store_release(1, READ, n + 1);
			wake(1, WRITER, 0, x);
#endif
			load(1, DATA(n), x);
			assert(x == n);
#ifndef READ_EARLY
			store_release(1, READ, n + 1);
			wake(1, WRITER, 0, x);
#endif
			n++;
			got = 1
		fi
	fi;
	x = 0
}

proctype receiver()
{
	byte n = BASE, x;
	bit ready, got, gone;

	{
		do
		:: n == BASE + LEN -> break
		:: else ->
			take(n, ready, x, got);
			if
			:: got
			:: !got && told[0] ->
				/* What it wrote before it died is all there: once more. */
#ifndef NO_LAST
#ifdef NO_PIPE
				if
				:: ready -> take(n, ready, x, got)
				:: else
				fi;
#else
				take(n, ready, x, got);
#endif
#endif
				if
				:: got
				:: else -> gone = 1; break
				fi
			:: else ->
				name_myself(1, READER);
				take(n, ready, x, got);
				if
				:: got || told[0]
				:: else -> park(1, x)
				fi;
				wake_up(1, READER)
			fi
		od;
		assert(!gone || !all_there)
	} unless { atomic { dead[1] -> n = 0; x = 0; ready = 0; got = 0; gone = 0 } }
}

init
{
	atomic {
		mem[SEQ(0)] = NUMBER(BASE - 2); /* of the message before */
		mem[SEQ(1)] = NUMBER(BASE - 1);
#ifdef NO_BASE
		mem[SEQ(0)] = 1;
		mem[SEQ(1)] = 2;
#endif
		mem[READ] = BASE;
		MEMORY;
		run sender();
		run receiver();
#ifdef KILL
		run death()
#endif
	}
}

#elif !defined(OFFER)

#ifdef RELAXED_OPEN
#define announce(t, a, v) store(t, a, v)
#else
#define announce(t, a, v) store_release(t, a, v)
#endif

byte ended[3];                  /* of message k: how, as its sender learnt */
byte did[3];                    /* what the receiver did with it, last */
bit out[2], late;               /* late: was to be cancelled, and somebody had taken it */
bit asked, piped;               /* a pipe is wanted; and was told of */

/* From one state of message @k to another, if it is in that. */
inline change(t, k, from, to, ok)
{
	atomic {
		READY(t, TICKET);
		if
		:: mem[TICKET] == IS(k, from) -> mem[TICKET] = IS(k, to); ok = 1;
			if
			:: t == 1 -> did[k] = to
			:: else
			fi
		:: else -> ok = 0
		fi
	}
}

inline cancel(k, x, ok)
{
#ifdef CANCEL_STORE
	load(0, TICKET, x);
	ok = x == IS(k, OPEN);
	if
	:: ok -> store(0, TICKET, IS(k, CANCELLED))
	:: else
	fi
#else
	change(0, k, OPEN, CANCELLED, ok)
#endif
}

/* What the ticket says; @end: of the message, 0: not yet. */
inline look(k, x, end)
{
	load(0, TICKET, x);
	if
	:: x == IS(k, DONE) -> end = DONE
	:: x == IS(k, REFUSED) -> end = REFUSED
#ifndef NO_NEWS
	:: x != IS(k, DONE) && x != IS(k, REFUSED) && told[1] -> end = DIED
#endif
	:: else -> end = 0
	fi;
	asked = x == IS(k, PIPED) && !piped;
	x = 0
}

/* What the program does with its memory: @v is in it from now on. */
inline write(v)
{
#ifdef OWN
	store(0, BYTES, v)
#else
	skip
#endif
}

inline tell_of_pipe(k)
{
#ifdef OWN
	store_release(0, PIPE_, k);
#endif
	piped = 1
}

proctype sender()
{
	byte k = 1, x, end;
	bit ok;

	{
		do
		:: k == 3 -> break
		:: else ->
			write(k);
			store(0, WRITER, 0);
			announce(0, TICKET, IS(k, OPEN));
			announce(0, CELL(k), 1);
			end = 0;
			do
			:: end -> break
			:: !end && !late ->     /* a deadline, or the user */
				cancel(k, x, ok);
				if
				:: ok -> end = CANCELLED
				:: else -> late = 1
				fi
			:: !end ->
				look(k, x, end);
				if
				:: end
				:: !end && asked -> tell_of_pipe(k)
				:: else ->
					name_myself(0, WRITER);
					look(k, x, end);
					if
					:: !end && late -> cancel(k, x, ok);
						if
						:: ok -> end = CANCELLED
						:: else
						fi
					:: else
					fi;
					if
					:: end || asked
					:: else -> park(0, x)
					fi;
					wake_up(0, WRITER)
				fi
			od;
			ended[k] = end;
			write(0);
			store(0, TICKET, IS(k, CANCELLED));
			k++; ok = 0; late = 0; asked = 0; piped = 0
		od
	} unless { atomic { dead[0] -> k = 0; x = 0; end = 0; ok = 0; late = 0; asked = 0; piped = 0 } };
	out[0] = 1
}

inline take(k, x, ok)
{
#ifdef TAKE_STORE
	load(1, TICKET, x);
	ok = x == IS(k, OPEN);
	if
	:: ok -> atomic { store(1, TICKET, IS(k, TAKEN)); did[k] = TAKEN }
	:: else
	fi;
	x = 0
#else
	change(1, k, OPEN, TAKEN, ok)
#endif
}

inline answer(k, state, x, ok)
{
#ifdef ANSWER_STORE
	atomic { store_release(1, TICKET, IS(k, state)); did[k] = state; ok = 1 }
#else
	change(1, k, TAKEN, state, ok);
	if
	:: ok
	:: else -> change(1, k, OPEN, state, ok)
	fi;
#endif
	if
	:: !ok
	:: else ->
#ifndef NO_WAKE
		wake(1, WRITER, 0, x)
#else
		skip
#endif
	fi
}

#ifdef OWN
inline read(k, x)
{
	load(1, BYTES, x);
	assert(x == k);
	x = 0
}

/* It cannot be mapped. */
inline through_pipe(k, x, ok)
{
	change(1, k, TAKEN, PIPED, ok);
#ifndef ASK_SILENT
	wake(1, WRITER, 0, x);
#endif
	do
	:: load(1, PIPE_, x);
		if
		:: x == k -> change(1, k, PIPED, DONE, ok); break
		:: x != k && told[0] -> change(1, k, PIPED, REFUSED, ok); break
		:: else -> mem[PIPE_] == k || told[0]
		fi
	od;
	wake(1, WRITER, 0, x)
}
#endif

/* Message @k was taken: its bytes, and its end. */
inline fetch(k, x, ok)
{
#ifdef OWN
	if
	::
#if !defined(READ_EARLY) && !defined(READ_LATE)
		read(k, x);
#endif
		answer(k, DONE, x, ok);
#ifdef READ_LATE
		read(k, x)
#endif
	:: through_pipe(k, x, ok)
	fi
#else
	answer(k, DONE, x, ok)
#endif
}

proctype receiver()
{
	byte k = 1, x;
	bit ok, once, leave;

	{
		do
		:: k == 3 -> break
		:: else ->
			do
			:: load(1, CELL(k), x);
				if
				:: x -> break
				:: !x && told[0] -> break
				:: else -> mem[CELL(k)] || told[0]
				fi
			od;
			if
			:: !x                   /* it died before it announced that */
			:: x -> answer(k, REFUSED, x, ok)
			:: x ->
again:
#ifdef READ_EARLY
				read(k, x);
#endif
				take(k, x, ok);
				if
				:: !ok
				:: ok -> fetch(k, x, ok)
				/* Too short a receive: it stays where it was; its sender, who may want it back, is told. */
				:: atomic { ok && (late || !once) -> leave = late }
					atomic { store_release(1, TICKET, IS(k, OPEN)); did[k] = OPEN }
#ifndef UNCLAIM_SILENT
					wake(1, WRITER, 0, x);
#endif
					if
					:: !once -> once = 1; goto again
					:: leave        /* nobody else comes for it */
					fi
				fi
			fi;
			k++; x = 0; ok = 0; once = 0; leave = 0
		od
	} unless { atomic { dead[1] -> k = 0; x = 0; ok = 0; once = 0; leave = 0 } };
	out[1] = 1
}

init
{
	byte k = 1;

	atomic {
		MEMORY;
		run sender();
		run receiver();
#ifdef KILL
		run death()
#endif
	}
	/* Both have ended, one way or the other. */
	out[0] && out[1];
	do
	:: k == 3 -> break
	:: else ->
		assert(ended[k] != CANCELLED || (did[k] != TAKEN && did[k] != PIPED && did[k] != DONE && did[k] != REFUSED));
		assert(ended[k] != DONE || did[k] == DONE);
		assert(ended[k] != REFUSED || did[k] == REFUSED);
		assert(dead[0] || did[k] != DONE || ended[k] == DONE || ended[k] == DIED);
		k++
	od
}

#else /* OFFER */

mtype = { NONE, OPEN, TAKEN, DECLINED, CANCELLED, SEEK, ROOM };

mtype ticket[2] = NONE;         /* of message 0 and 1; the serial tells one use from the next */
byte serial[2];
bit waits[2] = 1;               /* in the backlog */
bit offered[2], over[2];        /* over: received or cancelled */
chan ring = [4] of { byte, byte, bit };         /* message, serial, an offer */
chan arrivals = [2] of { byte, byte };
chan frames = [3] of { mtype };                 /* to the sender */
bit clogged = 1;
byte wants, posted;

#define FIRST (waits[0] -> 0 : 1)

#if defined(PASS) || defined(SKIP)
#define NEXT ((offered[0] && waits[0] && waits[1]) -> 1 : FIRST)
#endif
#ifdef PASS
#define TO_FLUSH NEXT
#else
#define TO_FLUSH FIRST
#endif
#ifdef SKIP
#define TO_OFFER NEXT
#else
#define TO_OFFER FIRST
#endif

inline announce(m, offer)
{
	serial[m]++;
	ticket[m] = OPEN;
	assert(len(ring) < 4);
	ring!m, serial[m], offer
}

/* As much of the backlog as may go. What is on offer keeps what is behind it. */
inline flush(m)
{
	do
	:: clogged || !(waits[0] || waits[1]) || offered[TO_FLUSH] -> break
	:: else ->
		m = TO_FLUSH;
		waits[m] = 0;
		announce(m, 0)
	od;
	m = 0
}

inline seek(m)
{
	if
	:: !(waits[0] || waits[1]) || offered[TO_OFFER]
	:: else ->
		m = TO_OFFER;
		offered[m] = 1;
		announce(m, 1)
	fi;
	m = 0
}

inline flush_behind(m)
{
#ifndef NO_FLUSH
	flush(m)
#else
	skip
#endif
}

#define ANSWERED(n) (offered[n] && (ticket[n] == TAKEN || ticket[n] == DECLINED))

/* Taken: it leaves the backlog. Or it is back where it was. */
inline answered(n, m)
{
	offered[n] = 0;
	if
	:: ticket[n] == TAKEN -> waits[n] = 0
	:: else -> ticket[n] = NONE
	fi;
	flush_behind(m)
}

proctype sender()
{
	byte m;
	bit cancelled;

end:	do
	:: atomic { frames?SEEK -> seek(m) }
	:: atomic { frames?ROOM -> flush(m) }
	:: atomic { ANSWERED(0) -> answered(0, m) }
	:: atomic { ANSWERED(1) -> answered(1, m) }
	:: atomic {             /* the user cancels the first */
			!cancelled -> cancelled = 1;
			if
			:: ticket[0] == TAKEN || ticket[0] == DECLINED
			:: else ->
				waits[0] = 0; offered[0] = 0; over[0] = 1;
				ticket[0] = CANCELLED;
				flush_behind(m)
			fi
		}
	od
}

inline take(m, s, ok)
{
	ok = ticket[m] == OPEN && serial[m] == s;
	if
	:: ok ->
		ticket[m] = TAKEN;
		assert(m == 0 || over[0]);
		assert(!over[m]);
		over[m] = 1
	:: else
	fi
}

proctype receiver()
{
	byte m, s;
	bit offer, ok, withdrawn;

	do
	:: over[0] && over[1] -> break
	:: atomic {             /* a receive */
			posted < 2 -> posted++;
			ok = 0;
			do
			:: !ok && len(arrivals) -> arrivals?m, s; take(m, s, ok)
			:: else -> break
			od;
			if
			:: ok
			:: else ->
				wants++;
				if
				:: clogged && len(frames) < 3 -> frames!SEEK
				:: else
				fi
			fi;
			m = 0; s = 0; ok = 0
		}
	:: atomic { wants && !withdrawn -> withdrawn = 1; wants--; posted-- }     /* a receive is cancelled, another posted */
	:: atomic { clogged && wants && len(frames) == 0 -> frames!SEEK }       /* now and then */
	:: atomic { clogged && len(frames) < 3 -> clogged = 0; frames!ROOM }
	:: atomic {
			ring?m, s, offer ->
			if
			:: wants -> take(m, s, ok); wants = wants - ok
			:: !wants && offer ->
				if
				:: ticket[m] == OPEN && serial[m] == s -> ticket[m] = DECLINED
				:: else
				fi
			:: else -> arrivals!m, s
			fi;
			m = 0; s = 0; offer = 0; ok = 0
		}
	od
}

init
{
	atomic {
		run sender();
		run receiver()
	}
}
#endif
