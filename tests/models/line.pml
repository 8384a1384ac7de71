/* line.pml - wire/line_out.c: two senders and who polls write to one lane that is full now and then; each only if nobody else is at it, and leaves a mark if somebody is. What waits is
 * written as soon as the lane takes it: nobody leaves it to one who is just going.
 *
 * Not shown: the order of memory; lock, mark and unlock are seq_cst or have a full fence between them.
 *
 * Mutations  NO_MARK            who finds another writing leaves no mark
 *            LOOK_FIRST         who writes looks at the mark before it unlocks
 *            FULL_DEAF          who found the lane full does not look at it
 *            IDLE_DEAF          nor does who only asked whether the lane was idle
 */
#define EACH 2
#define TIMES 2                 /* that the lane is full */

bit trunk, writing;             /* locks */
bit wanted;                     /* the mark */
bit choked, blocked;            /* the lane takes no more; it was found so, and who polls is to hear when it is not */
bit flies;                      /* a record that is filled and not written */
bit stirs;                      /* the remote has said that there is something to write, and was not asked in vain since */
byte queued;                    /* messages in the stream, not in a record yet */

inline lock(l)
{
	atomic { !l -> l = 1 }
}

/* What a record is sent by: false: the lane is full. */
inline give(ok)
{
	if
	:: atomic { choked -> ok = 0 }; blocked = 1
	:: atomic { !choked -> ok = 1; flies = 0 }
	fi
}

/* wf_line_write. */
inline write_line()
{
	go = 1;
	do
	:: go ->
#ifndef NO_MARK
		wanted = 1;
#endif
		if
		:: atomic { writing -> go = 0 }
		:: atomic { !writing -> writing = 1 };
			wanted = 0;
			ok = 1;
			do
			:: flies && ok -> give(ok)
			:: !flies && ok ->
				lock(trunk);
				if
				:: queued -> queued = 0; flies = 1; trunk = 0
				:: else -> stirs = 0; trunk = 0; break
				fi
			:: !ok -> break
			od;
			leave_line(ok)
		fi
	:: !go -> break
	od
}

/* The lane is left; go: it is to be written to again. */
inline leave_line(took)
{
#ifdef LOOK_FIRST
	go = wanted;
	writing = 0
#else
	writing = 0;
	go = wanted
#endif
#ifdef FULL_DEAF
	;
	if
	:: !took -> go = 0
	:: else
	fi
#endif
}

/* wf_depart_brisk: by a record of its own if the lane is idle, else by the stream. */
proctype sender()
{
	bit go, ok, due;
	byte i;

	for (i : 1 .. EACH) {
		due = 0;
		go = 0;
		lock(trunk);
		if
		:: atomic { writing -> skip }
		:: atomic { !writing -> writing = 1 };
			if
			:: !flies && !queued && !stirs ->
				flies = 1;
				trunk = 0;
				give(ok);
				leave_line(ok);
				if
				:: go -> write_line()
				:: else
				fi;
				goto sent
			:: else ->
				writing = 0;
#ifndef IDLE_DEAF
				due = wanted
#endif
			fi
		fi;
		queued++;
		if
		:: !stirs -> stirs = 1; due = 1
		:: else
		fi;
		trunk = 0;
		if
		:: due -> write_line()
		:: else
		fi;
sent:
		skip
	}
}

proctype poller()
{
	bit go, ok;

end:
	do
	:: atomic { blocked && !choked -> blocked = 0 };
		write_line()
	od
}

proctype network()
{
	byte i;

	for (i : 1 .. TIMES) {
		choked = 1;
		choked = 0
	}
}

init
{
	atomic {
		run sender();
		run sender();
		run poller();
		run network()
	}
	timeout;
	assert(!queued && !flies && !writing && !trunk)
}
