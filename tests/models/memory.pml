/* memory.pml - memory as several CPUs see it: each thread's stores wait in a buffer of its own before others see them.
 *
 * A model defines THREADS (2 or 3), WORDS and DEPTH (of a buffer), includes this file and runs memory(t) per thread.
 * FIFO buffers are x86 (TSO). With WEAK stores to different words leave the buffer in any order, and only a release
 * store waits for the earlier ones; a read-modify-write then does not empty the buffer. Loads are not reordered with
 * loads: where that matters a model says so and tries both orders itself.
 *
 * The asymmetric fence: light is nothing, heavy waits until every thread has passed a moment with an empty
 * buffer, which is what membarrier(2) makes of all that run. With SYMM both are full fences of their own thread.
 */
byte mem[WORDS];
byte pending[THREADS * WORDS];          /* how many stores to a word wait in a thread's buffer */
byte view[THREADS * WORDS];             /* the last of them: a thread sees its own stores at once */
byte asleep[THREADS];                   /* on the word of this number - 1; 0: awake */
chan buf[THREADS] = [DEPTH] of { byte, byte };

#define AT(t, a) ((t) * WORDS + (a))

#ifdef WEAK
#define READY(t, a) (pending[AT(t, a)] == 0)
#define DRAINED(t) empty(buf[t])
#else
#define READY(t, a) empty(buf[t])
#define DRAINED(t) true
#endif

inline store(t, a, v)
{
	atomic { nfull(buf[t]) -> buf[t]!a, v; view[AT(t, a)] = v; pending[AT(t, a)]++ }
}

inline store_release(t, a, v)
{
	atomic { nfull(buf[t]) && DRAINED(t) -> buf[t]!a, v; view[AT(t, a)] = v; pending[AT(t, a)]++ }
}

inline load(t, a, ret)
{
	d_step {
		if
		:: pending[AT(t, a)] -> ret = view[AT(t, a)]
		:: else -> ret = mem[a]
		fi
	}
}

/* The old value, and @v instead; add: @v more. */
inline exchange(t, a, v, ret)
{
	atomic { READY(t, a) -> ret = mem[a]; mem[a] = v }
}

inline add(t, a, v)
{
	atomic { READY(t, a) -> mem[a] = mem[a] + v }
}

#define FENCE(t) empty(buf[t])

#ifdef NO_LIGHT
#define LIGHT(t) skip
#else
#ifdef SYMM
#define LIGHT(t) FENCE(t)
#else
#define LIGHT(t) skip
#endif
#endif

inline heavy(t)
{
#ifndef NO_HEAVY
	FENCE(t);
#ifndef SYMM
	empty(buf[0]);
	empty(buf[1]);
#if THREADS > 2
	empty(buf[2]);
#endif
#endif
#else
	skip
#endif
}

/* The kernel looks at the word behind a fence, and sleeping is one step with the look. */
inline futex_wait(t, a, v)
{
	atomic {
		FENCE(t);
		if
		:: mem[a] == v -> asleep[t] = (a) + 1
		:: else
		fi
	}
	asleep[t] == 0
}

inline futex_wake(t, a)
{
	atomic {
		FENCE(t);
		if
		:: asleep[0] == (a) + 1 -> asleep[0] = 0
		:: asleep[1] == (a) + 1 -> asleep[1] = 0
#if THREADS > 2
		:: asleep[2] == (a) + 1 -> asleep[2] = 0
#endif
		:: else
		fi
	}
}

/* One store leaves the buffer: to word n, the oldest of those. */
#define LEAVES(n) :: atomic { pending[AT(t, n)] -> buf[t]??n, v; mem[n] = v; pending[AT(t, n)]--; v = 0 }

proctype memory(byte t)
{
	byte v;
#ifndef WEAK
	byte a;
#endif

end:	do
#ifdef WEAK
	LEAVES(0)
#if WORDS > 1
	LEAVES(1)
#endif
#if WORDS > 2
	LEAVES(2)
#endif
#if WORDS > 3
	LEAVES(3)
#endif
#if WORDS > 4
	LEAVES(4)
#endif
#if WORDS > 5
	LEAVES(5)
#endif
#if WORDS > 6
	LEAVES(6)
#endif
#if WORDS > 7
	LEAVES(7)
#endif
#if WORDS > 8
	LEAVES(8)
#endif
#if WORDS > 9
	LEAVES(9)
#endif
#if WORDS > 10
	LEAVES(10)
#endif
#if WORDS > 11
	LEAVES(11)
#endif
#if WORDS > 12
	LEAVES(12)
#endif
#if WORDS > 13
	LEAVES(13)
#endif
#if WORDS > 14
	LEAVES(14)
#endif
#if WORDS > 15
	LEAVES(15)
#endif
#if WORDS > 16
	LEAVES(16)
#endif
#if WORDS > 17
	LEAVES(17)
#endif
#if WORDS > 18
	LEAVES(18)
#endif
#if WORDS > 19
	LEAVES(19)
#endif
#else
	:: atomic { buf[t]?a, v; mem[a] = v; pending[AT(t, a)]--; a = 0; v = 0 }
#endif
	od
}

#if THREADS > 2
#define MEMORY run memory(0); run memory(1); run memory(2)
#else
#define MEMORY run memory(0); run memory(1)
#endif
#define ALL_FLUSHED (empty(buf[0]) && empty(buf[1]) && empty(buf[THREADS - 1]))
