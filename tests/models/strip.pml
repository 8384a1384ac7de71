/* strip.pml - mem/strip.c and home.c: a holder returns four buffers of a maker's by a strip of two lines, one to a line here, and by the list when the strip is
 * full. Each comes home once, after its holder's last store into it, and is then given to somebody else; nobody takes that one home.
 *
 * KILL: the holder dies at any step; what it had stored still becomes visible, then its death is told. The maker empties strip and list and
 * takes back what is still away to the dead. All are home in the end.
 *
 * The list is a channel: one CAS with release, shown by its wait for the earlier stores. Locks are not shown: one thread of each process is at it. Whether
 * the strip may be written at all (open) is a word that is stored once, before anything of this.
 *
 * Not shown, as it needs loads or load-to-store reordering:
 *   W3  turn acquire: the briefs' loads do not come before that of turn (MP+rel+acq).
 *   W4  the maker's loads of a line before its store of taken, and the holder's load of that before its stores into the line (LB+rel+ctrl).
 *
 * Mutations  TURN_FIRST            a line's turn is stored before what it says
 *            WEAK RELAXED_TURN     by a relaxed store
 *            NO_FULL               a full strip is written
 *            TAKEN_FIRST           a line is given back before it was read
 *            KILL NO_TAKE_BACK     what the dead had is not taken back
 *            KILL SCAN_FIRST ANY_HOLDER  it is, before the strip was emptied, and a line counts whoever has the buffer by then
 */
#define THREADS 2
#define LINES 2
#define BUFFERS 4
#define TURN(n) ((n) % LINES)
#define SAYS(n) (LINES + (n) % LINES)
#define TAKEN 4
#define BYTES 5                         /* what was last stored into any of the buffers: their holder goes through them in order */
#define WORDS 6
#define DEPTH 4
#define MARK(n) ((n) + 1)

#include "memory.pml"

chan list = [BUFFERS] of { byte };
byte away[BUFFERS + 1];                 /* private: 0 home; 1 away to the holder; 2 to somebody else, after it was home */
byte home;
bit over, dead, told;

inline write_line(n, b)
{
#ifdef TURN_FIRST
	store_release(0, TURN(n), MARK(n));
	store(0, SAYS(n), b)
#else
	store(0, SAYS(n), b);
#ifdef RELAXED_TURN
	store(0, TURN(n), MARK(n))
#else
	store_release(0, TURN(n), MARK(n))
#endif
#endif
}

proctype holder()
{
	byte b = 1, written, seen;

	{
	do
	:: b > BUFFERS -> break
	:: else ->
		store(0, BYTES, b);
		if
		:: written - seen == LINES -> load(0, TAKEN, seen)
		:: else
		fi;
		if
#ifndef NO_FULL
		:: written - seen == LINES -> atomic { empty(buf[0]) -> list!b }
#endif
		:: else -> write_line(written, b); written++
		fi;
		b++
	od;
	over = 1
	} unless { dead }
}

#ifdef KILL
proctype death()
{
	dead = 1;
	empty(buf[0]);
	told = 1
}
#endif

/* It is home, and goes to somebody else. */
inline comes(b, x)
{
	load(1, BYTES, x);
	assert(x >= b);
	d_step { assert(away[b] == 1); away[b] = 2; home++ }
}

#ifdef ANY_HOLDER
#define IS_ITS(b) (away[b])
#else
#define IS_ITS(b) (away[b] == 1)
#endif

inline take_lines(read, b, x)
{
	do
	:: load(1, TURN(read), x);
		if
		:: x != MARK(read) -> break
		:: else
		fi;
#ifdef TAKEN_FIRST
		store_release(1, TAKEN, read + 1);
#endif
		load(1, SAYS(read), b);
		if
		:: IS_ITS(b) -> comes(b, x)
		:: else
		fi;
		read++;
#ifndef TAKEN_FIRST
		store_release(1, TAKEN, read)
#endif
	od
}

inline take_list(b, x)
{
	do
	:: atomic { list?b } ->
		if
		:: IS_ITS(b) -> comes(b, x)
		:: else
		fi
	:: empty(list) -> break
	od
}

inline take_back(b)
{
#ifndef NO_TAKE_BACK
	b = 1;
	do
	:: b > BUFFERS -> break
	:: else ->
		if
		:: away[b] == 1 -> d_step { away[b] = 2; home++ }
		:: else
		fi;
		b++
	od
#else
	skip
#endif
}

proctype maker()
{
	byte read, b, x;
	bit last;

	do
	:: last = (told || (over && empty(buf[0])));
#ifdef SCAN_FIRST
		if
		:: told -> take_back(b)
		:: else
		fi;
#endif
		take_lines(read, b, x);
		take_list(b, x);
		if
		:: last -> break
		:: else
		fi
	od;
	if
	:: told -> take_back(b)
	:: else
	fi;
	assert(home == BUFFERS)
}

init {
	atomic {
		away[1] = 1; away[2] = 1; away[3] = 1; away[4] = 1;
		MEMORY;
		run holder();
		run maker();
#ifdef KILL
		run death();
#endif
	}
}
