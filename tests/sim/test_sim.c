/* test_sim.c - random programs over a network that fails, one per seed: see sim.h. SIM_SEED plays that one and tells of it.
 *
 * What happened in a seed's run has a hash, which is the same on every machine. Those of the first ten thousand are kept in tests/sim/hashes, fifty seeds to a line, and compared:
 * a change that was to change nothing shows if it did. SIM_KEEP=1 with TEST_SCALE=10 writes them anew, after a change that was meant.
 */
#include "sim.h"

#include "test.h"

static struct sim_conf conf_of(uint64_t seed)
{
	uint64_t x = seed;
	uint64_t d = test_random(&x);

	return (struct sim_conf){
		.seed = seed,
		.procs = 2 + (uint32_t)(d % 7 == 0) + (uint32_t)(d % 11 == 0),
		.rails = d >> 8 & 1 ? 1 : 2,
		.mails = 150 + 150 * (uint32_t)(d >> 24 & 1),
		.deadline = d >> 25 & 1 ? WEFT_S : 5 * WEFT_S,
		.span = d >> 26 & 3 ? 150 * WEFT_MS : 3 * WEFT_S,
		.retain = d >> 28 & 1 ? WF_RETAIN_LEAST : 0,
		.bursts = d >> 24 & 1,
		.invites = d >> 29 & 1,
		.answers = d >> 32 & 1,
		.dull = d >> 33 & 1,
		.window = d >> 10 & 1 ? 64 << 10 : 256 << 10,
		.cap = d >> 11 & 1 ? 4 : 32,
		.eager = d >> 12 & 1 ? 64 << 10 : 16 << 10,
		.eager_most = d >> 30 & 1 ? 256 << 10 : 0,
		.moments = d >> 31 & 1 ? 20 : 0,                /* few lanes here carry much in less */
		.chunk = d >> 34 & 1 ? 40 << 10 : 0,            /* many to a message */
		.faults = (d >> 13 & 7) != 0,
		.pauses = d >> 16 & 1,
		.deaths = (d >> 17 & 3) == 0,
		.cuts_off = (d >> 19 & 3) == 0,
		.closes = (d >> 21 & 3) == 0,
		.cancels = d >> 23 & 1,
		.quiet = true,
	};
}

enum { BLOCK = 50 };

/* The file of hashes, to compare with or to write; NULL: neither. */
static FILE *kept_open(bool keep)
{
	const char *path = getenv("SIM_HASHES");

	return path ? fopen(path, keep ? "w" : "r") : NULL;
}

/* Seeds up to @last have the hash @all, together. */
static void kept_check(FILE *kept, bool keep, uint64_t last, uint64_t all)
{
	unsigned long long seed, hash;

	if (!kept)
		return;
	if (keep)
		fprintf(kept, "%llu %016llx\n", (unsigned long long)last, (unsigned long long)all);
	else if (fscanf(kept, "%llu %llx", &seed, &hash) == 2 && (seed != last || hash != all))
		CHECK(!"what happens in a run is what it was");
}

TEST(random_programs_get_every_message_once_in_order_and_whole_and_every_operation_ends)
{
	long only = test_env("SIM_SEED", 0);
	uint64_t from = (uint64_t)test_env("SIM_FROM", 1), count = test_scaled(1000), hash, all = 0;
	bool keep = test_env("SIM_KEEP", 0);
	FILE *kept = only || from != 1 ? NULL : kept_open(keep);
	char why[256];

	for (uint64_t seed = only ? (uint64_t)only : from; seed < from + count || only; seed++) {
		struct sim_conf conf = conf_of(seed);

		conf.quiet = !only;
		alarm(120);
		if (!sim_play(&conf, &hash, why)) {
			printf("# seed %llu: %s\n", (unsigned long long)seed, why);
			CHECK(!"the seed holds");
			if (atomic_load(&test_failures) >= 5)
				break;
		}
		all = (all ^ hash) * UINT64_C(0x100000001b3);
		if (only)
			break;
		if (seed % BLOCK == 0)
			kept_check(kept, keep, seed, all);
	}
	if (kept)
		fclose(kept);
	if (!only)
		CHECK(like_sent[0] > count && like_sent[1] > count / 10 && like_got[0] > count && like_got[1] > count / 10);    /* what is like the last goes that way here, too */
	printf("# like the last: %llu and %llu sent, %llu and %llu got\n", (unsigned long long)like_sent[0], (unsigned long long)like_sent[1], (unsigned long long)like_got[0], (unsigned long long)like_got[1]);
	printf("# %llu seeds, hash of all %016llx\n", (unsigned long long)count, (unsigned long long)all);
}

TEST(a_seed_played_twice_gives_the_same_trace)
{
	char why[256];

	for (uint64_t seed = 1; seed <= test_scaled(20); seed++) {
		struct sim_conf conf = conf_of(seed);
		uint64_t first, second;

		sim_play(&conf, &first, why);
		sim_play(&conf, &second, why);
		CHECK(first == second);
	}
}

TEST_MAIN
