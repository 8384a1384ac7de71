/* bench_raw.c - the raw limits by themselves: what the machine allows, with no library in between.
 * usage: bench_raw [NAME...]     without a name: all of them
 *
 *   line       half a round trip of one cache line between two cores
 *   ring       two copies through shared memory: lat over sizes, and the rate of 8 B
 *   one-copy   one copy between threads: lat over sizes
 *   futex      half a turn of two threads that sleep until it is theirs
 *   futex-500  the same with 500 pairs on two cores, over the whole run
 *   memcpy     MB/s inside one core
 */
#include "raw_ring.h"
#include "turns.h"

#define LARGEST (1u << 20)

static const size_t sizes[] = { 1, 8, 64, 1024, 4096, 16384, 65536, LARGEST };

static void line_give(struct turn *t, int side, uint32_t i)
{
	atomic_store_explicit(side == 0 ? &t->word0 : &t->word1, i, memory_order_release); /* T1 */
}

static void line_take(struct turn *t, int side, uint32_t i)
{
	_Atomic uint32_t *w = side == 0 ? &t->word1 : &t->word0;

	while (atomic_load_explicit(w, memory_order_acquire) != i) /* T1 */
		cpu_relax();
}

static void raw_line(void)
{
	static const struct turn_way line = { .give = line_give, .take = line_take };

	sample("raw/line", "lat", 8, turns_ns(&line, 1, 200000, 500));
}

static void ring_side(int side, void *arg)
{
	struct ring_link k = ring_link(arg, side);
	void *mem = page_memory(LARGEST);

	for (size_t i = 0; i < COUNT(sizes); i++)
		lat_sample(&k.l, side, mem, sizes[i], "raw/ring");
	rate_sample(&k.l, side, mem, "raw/ring");
	free(mem);
}

static void raw_ring(void)
{
	struct ring *two = ring_pair_new();

	pair_run(ring_side, two);
	ring_pair_free(two);
}

static void box_side(int side, void *arg)
{
	struct box_link k = box_link(arg, side);
	void *mem = page_memory(LARGEST);

	for (size_t i = 0; i < COUNT(sizes); i++)
		lat_sample(&k.l, side, mem, sizes[i], "raw/one-copy");
	free(mem);
}

static void raw_one_copy(void)
{
	struct box *two = shared_memory(2 * sizeof(*two));

	pair_run(box_side, two);
	munmap(two, 2 * sizeof(*two));
}

static const struct turn_way futex_way = { .give = futex_give, .take = futex_take };

static void raw_futex(void)
{
	sleeper_priority(true);
	sample("raw/futex", "lat", 8, turns_ns(&futex_way, 1, 5000, 10));
	sleeper_priority(false);
}

static void raw_futex_500(void)
{
	sleeper_priority(true);
	sample("raw/futex-500", "lat", 8, turns_ns(&futex_way, 500, 50, 10));
	sleeper_priority(false);
}

static void raw_memcpy(void)
{
	static const size_t at[] = { 4096, 65536, LARGEST, 64u << 20 };
	char *from = shared_memory(64u << 20), *to = shared_memory(64u << 20);

	for (size_t i = 0; i < COUNT(at); i++) {
		size_t times = LARGEST / at[i] + 1;
		double ns[11];

		for (size_t k = 0; k < COUNT(ns); k++) {
			uint64_t start = clock_ns();

			for (size_t j = 0; j < times; j++) {
				memcpy(to, from, at[i]);
				__asm__ volatile("" ::: "memory");
			}
			ns[k] = (double)(clock_ns() - start) / (double)times;
		}
		sample("raw/memcpy", "bw", at[i], (double)at[i] * 1e3 / median(ns, COUNT(ns)));
	}
	munmap(from, 64u << 20);
	munmap(to, 64u << 20);
}

static const struct {
	const char *name;
	void (*run)(void);
} all[] = {
	{ "line", raw_line },	{ "ring", raw_ring },		{ "one-copy", raw_one_copy },
	{ "futex", raw_futex }, { "futex-500", raw_futex_500 }, { "memcpy", raw_memcpy },
};

int main(int argc, char **argv)
{
	bench_start();
	for (int r = 0; r < repeats(); r++)
		for (size_t i = 0; i < COUNT(all); i++) {
			bool wanted = argc < 2;

			for (int a = 1; a < argc; a++)
				wanted |= !strcmp(argv[a], all[i].name);
			if (wanted)
				all[i].run();
		}
	return 0;
}
