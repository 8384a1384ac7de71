/* measure.h - how everything in bench/ is measured.
 *
 * A link is one side of a way to carry messages. Two threads, or two processes (proc.h), pinned to
 * different cores, run the same steps over it; side 0 holds the clock, side 1 answers:
 *   lat   half a round trip in ns; each side sends back the memory it received into, so the
 *         bytes really cross between the cores both ways
 *   rate  8 B messages in thousands per second: windows of 64, then an answer of 8 B
 * A figure is the median of up to 400 batches of about 150 us: a shared or virtual machine takes
 * a core away for milliseconds at a time, which spoils the few batches it hits and not the median.
 * Raw limits and weft take turns inside one program, BENCH_REPEATS times; bench/run repeats the
 * program in rounds. The programs print samples only, one per line: `SERIES METRIC SIZE VALUE`,
 * and `skip NAME REASON` for what this machine cannot measure; bench/report makes the rest of it.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 64
#define WINDOW 64
#define BATCH_NS 150000u
#define BATCHES 400u
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct link {
	void (*send)(struct link *l, void *mem, size_t n);
	void (*recv)(struct link *l, void *mem, size_t n);
	/* Optional: a window of messages of n bytes; received ones lie behind one another in mem. */
	void (*send_window)(struct link *l, void *mem, size_t n);
	void (*recv_window)(struct link *l, void *mem, size_t n);
	struct link *plan; /* carries the plan of a measurement; NULL: this link itself */
	unsigned window; /* messages in one; 0: WINDOW */
	struct carried {
		uint64_t in, out;
	} carried; /* bytes, by the steps below: counted behind them, or the counting would be measured, too */
};

__attribute__((format(printf, 1, 2), noreturn)) static inline void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static inline uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Between two looks at a word that another core will write. On aarch64 `yield` does nothing on
 * many cores; isb holds the pipeline back and leaves the line alone for a moment. */
static inline void cpu_relax(void)
{
#if defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#elif defined(__x86_64__)
	__builtin_ia32_pause();
#else
	__asm__ volatile("" ::: "memory");
#endif
}

static inline long env_number(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text && *text ? atol(text) : otherwise;
}

static inline int repeats(void)
{
	return (int)env_number("BENCH_REPEATS", 2);
}

static inline void sample(const char *series, const char *metric, size_t size, double value)
{
	printf("%s %s %zu %.2f\n", series, metric, size, value);
	fflush(stdout);
}

/* The cores this process was given when it started, whatever their numbers; asked for before
 * any thread pins itself. */
static inline const cpu_set_t *cpus_allowed(void)
{
	static cpu_set_t set;
	static bool known;

	if (!known && sched_getaffinity(0, sizeof(set), &set))
		die("sched_getaffinity: %s", strerror(errno));
	known = true;
	return &set;
}

static inline int cpu_count(void)
{
	return CPU_COUNT(cpus_allowed());
}

/* Pin the calling thread to the i-th of those cores, counted round. */
static inline void cpu_pin(int i)
{
	cpu_set_t one;
	int cpu = 0;

	for (int left = i % cpu_count();; cpu++)
		if (CPU_ISSET(cpu, cpus_allowed()) && left-- == 0)
			break;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		die("sched_setaffinity to %d: %s", cpu, strerror(errno));
}

/* Linux shares cores out between sessions before it looks at nice values, and a launcher may
 * have given this program a session of its own: ask again for what bench/ahead asked for. */
static inline void bench_start(void)
{
	const char *want = getenv("BENCH_NICE");
	FILE *f = want && *want ? fopen("/proc/self/autogroup", "w") : NULL;

	if (f) {
		fputs(want, f);
		fclose(f);
	}
	cpus_allowed();
}

/* What sleeps while it waits gets real-time priority where that is granted, or each of its wake-ups
 * queues behind whatever else runs here. Calling thread and the threads it starts. */
static inline bool sleeper_priority(bool on)
{
	struct sched_param p = { .sched_priority = on ? 1 : 0 };

	return sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &p) == 0;
}

static inline void *shared_memory(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		die("mmap of %zu bytes: %s", n, strerror(errno));
	return p;
}

static inline void *page_memory(size_t n)
{
	void *p = aligned_alloc(4096, (n + 4095) & ~(size_t)4095);

	if (!p)
		die("no memory for %zu bytes", n);
	memset(p, 1, n);
	return p;
}

static inline int double_order(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static inline double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), double_order);
	return v[n / 2];
}

/* ---- steps over a link ---- */

static inline void pingpong_steps(struct link *l, int side, void *mem, size_t n, uint64_t steps)
{
	for (uint64_t i = 0; i < steps; i++) {
		if (side == 0)
			l->send(l, mem, n);
		l->recv(l, mem, n);
		if (side == 1)
			l->send(l, mem, n);
	}
	l->carried.in += steps * n;
	l->carried.out += steps * n;
}

static inline void window_send(struct link *l, void *mem, size_t n)
{
	if (l->send_window)
		l->send_window(l, mem, n);
	else
		for (int i = 0; i < WINDOW; i++)
			l->send(l, mem, n);
}

static inline void window_recv(struct link *l, void *mem, size_t n)
{
	if (l->recv_window)
		l->recv_window(l, mem, n);
	else
		for (int i = 0; i < WINDOW; i++)
			l->recv(l, mem, n);
}

static inline void window_steps(struct link *l, int side, void *mem, size_t n, uint64_t steps)
{
	uint64_t answer = 0, windows = steps * (l->window ? l->window : WINDOW) * n, answers = steps * sizeof(answer);

	for (; steps; steps--) {
		if (side == 0) {
			window_send(l, mem, n);
			l->recv(l, &answer, sizeof(answer));
		} else {
			window_recv(l, mem, n);
			l->send(l, &answer, sizeof(answer));
		}
	}
	l->carried.in += side == 0 ? answers : windows;
	l->carried.out += side == 0 ? windows : answers;
}

static inline uint64_t steps_ns(struct link *l, int side, void *mem, size_t n, bool window, uint64_t steps)
{
	uint64_t start = clock_ns();

	if (window)
		window_steps(l, side, mem, n, steps);
	else
		pingpong_steps(l, side, mem, n, steps);
	return clock_ns() - start;
}

/* ns per step. Both sides call it alike; side 0 plans the batches from a few steps of warming up
 * and tells side 1. BENCH_MS: how long, about. */
static inline double measure(struct link *l, int side, void *mem, size_t n, bool window)
{
	uint64_t budget = (uint64_t)env_number("BENCH_MS", 40) * 1000000u;
	uint64_t warm = window || n > 1u << 20 ? 1 : 4, fastest = UINT64_MAX, steps = 0, batches = 0;
	struct link *plan = l->plan ? l->plan : l;
	double ns[BATCHES];

	for (int i = 0; i < 8; i++) {
		uint64_t t = steps_ns(l, side, mem, n, window, warm) / warm + 1;

		fastest = t < fastest ? t : fastest;
	}
	if (side == 0) {
		steps = BATCH_NS / fastest + 1;
		batches = budget / (steps * fastest) + 11;
		batches = batches > BATCHES ? BATCHES : batches;
		plan->send(plan, &steps, sizeof(steps));
		plan->send(plan, &batches, sizeof(batches));
	} else {
		plan->recv(plan, &steps, sizeof(steps));
		plan->recv(plan, &batches, sizeof(batches));
	}
	for (uint64_t i = 0; i < batches; i++)
		ns[i] = (double)steps_ns(l, side, mem, n, window, steps) / (double)steps;
	return median(ns, batches);
}

/* Half a round trip of n bytes, in ns. */
static inline double measure_lat(struct link *l, int side, void *mem, size_t n)
{
	return measure(l, side, mem, n, false) / 2;
}

/* 8 B messages, in thousands per second. */
static inline double measure_rate(struct link *l, int side, void *mem)
{
	return WINDOW * 1e6 / measure(l, side, mem, 8, true);
}

/* ns per step of something that one thread does by itself, by the same method. */
static inline double measure_alone(void (*step)(void *arg), void *arg)
{
	uint64_t budget = (uint64_t)env_number("BENCH_MS", 40) * 1000000u;
	uint64_t start, fastest = UINT64_MAX, steps, batches;
	double ns[BATCHES];

	for (int i = 0; i < 32; i++) {
		start = clock_ns();
		for (int k = 0; k < 8; k++)
			step(arg);
		start = (clock_ns() - start) / 8 + 1;
		fastest = start < fastest ? start : fastest;
	}
	steps = BATCH_NS / fastest + 1;
	batches = budget / (steps * fastest) + 11;
	batches = batches > BATCHES ? BATCHES : batches;
	for (uint64_t i = 0; i < batches; i++) {
		start = clock_ns();
		for (uint64_t k = 0; k < steps; k++)
			step(arg);
		ns[i] = (double)(clock_ns() - start) / (double)steps;
	}
	return median(ns, batches);
}

/* A link that carries the wrong bytes has no speed: they go there and back once, checked on both
 * sides, before it is measured. */
static inline void link_check(struct link *l, int side, unsigned char *mem, size_t n)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++)
		mem[i] = side == 0 ? (unsigned char)(i * 7 + n) : 0;
	pingpong_steps(l, side, mem, n, 1);
	for (size_t i = 0; i < n; i++)
		wrong += mem[i] != (unsigned char)(i * 7 + n);
	if (wrong)
		die("side %d: %zu of %zu bytes arrived wrong", side, wrong, n);
}

/* Checked, measured, told: what most programs do with a link. Both sides call it alike. */
static inline void lat_sample(struct link *l, int side, void *mem, size_t n, const char *series)
{
	double v;

	link_check(l, side, mem, n);
	v = measure_lat(l, side, mem, n);
	if (side == 0)
		sample(series, "lat", n, v);
}

static inline void rate_sample(struct link *l, int side, void *mem, const char *series)
{
	double v = measure_rate(l, side, mem);

	if (side == 0)
		sample(series, "rate", 8, v);
}

/* The sizes a program is to measure: those of its command line, or all. */
struct sizes {
	size_t n[32], count, largest;
};

static inline struct sizes sizes_of(int argc, char **argv)
{
	static const size_t all[] = { 1,     8,	    64,	    256,      1024,	4096,
				      16384, 65536, 262144, 1u << 20, 4u << 20, 16u << 20 };
	struct sizes s = { .count = 0 };

	for (int i = 1; i < argc && s.count < COUNT(s.n); i++)
		s.n[s.count++] = strtoul(argv[i], NULL, 0);
	for (size_t i = 0; argc < 2 && i < COUNT(all); i++)
		s.n[s.count++] = all[i];
	for (size_t i = 0; i < s.count; i++) {
		if (!s.n[i])
			die("usage: %s [SIZE...]", argv[0]);
		s.largest = s.n[i] > s.largest ? s.n[i] : s.largest;
	}
	return s;
}

/* ---- two threads on two cores ---- */

struct pair_side {
	void (*run)(int side, void *arg);
	void *arg;
	int side, cpu;
};

static inline void *pair_main(void *arg)
{
	struct pair_side *s = arg;

	cpu_pin(s->cpu);
	s->run(s->side, s->arg);
	return NULL;
}

static inline pthread_t thread_start(void *(*fn)(void *), void *arg)
{
	pthread_t t;
	int r = pthread_create(&t, NULL, fn, arg);

	if (r)
		die("pthread_create: %s", strerror(r));
	return t;
}

/* Runs both sides of run(), each in a thread of its own, and returns when both have ended. */
static inline void pair_run(void (*run)(int side, void *arg), void *arg)
{
	struct pair_side s[2] = { { run, arg, 0, 0 }, { run, arg, 1, 1 } };
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		t[i] = thread_start(pair_main, &s[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
}

#endif
