/* stress_share.c - threads of several processes throw buffers and views at one another across processes; none is
 * lost, none is had by two, also when one of the processes is killed in the middle.
 *
 * Each carries a stamp at both ends and in the middle, written by its holder: a second holder would break it. At the
 * end everything has come home and the whole limit is to be had again.
 */
#include "throw.h"
#include "mem/strip.h"
#include "unit/kin.h"

enum { THREADS = 3, MOST_LETTERS = 200 };

#define LIMIT ((size_t)8 << 20)

static uint32_t processes;
static uint64_t rounds;
static size_t least;                    /* bytes of a buffer: from 1 KiB on they go home by strip */
static pthread_mutex_t post_lock[KIN_MOST + 1], take_lock[KIN_MOST + 1];
static bool gone[KIN_MOST + 1];         /* under post_lock: nothing more is sent there */
static bool doomed;                     /* process 2 is to be killed */

/* Letters wait in the box: a thread that sends must not wait for one that does. */
static bool box_full(uint32_t to)
{
	struct kin_box *box = &kin->box[kin_me][to];

	return atomic_load(&box->tail) - atomic_load(&box->head) >= MOST_LETTERS;
}

/* False: it was not sent, and is the caller's. */
static bool send_to(uint32_t to, struct weft_buf *b, bool keep)
{
	bool sent = false;

	pthread_mutex_lock(&post_lock[to]);
	if (!gone[to] && !box_full(to)) {
		sent = kin_send(b, to, keep) == 0;
		CHECK(sent || keep);
	}
	pthread_mutex_unlock(&post_lock[to]);
	return sent;
}

static uint32_t someone(uint64_t *seed)
{
	uint32_t p = 1 + (uint32_t)(test_random(seed) % (processes - 1));

	return p >= kin_me ? p + 1 : p;
}

/* One letter from @from, if there is one. */
static bool take_from(uint32_t from, uint64_t *seed)
{
	struct kin_letter letter;
	struct weft_buf *b;
	uint64_t r = test_random(seed);
	bool there;

	pthread_mutex_lock(&take_lock[from]);
	there = kin_next(from, &letter);
	pthread_mutex_unlock(&take_lock[from]);
	if (!there)
		return false;
	if (r % 32 == 0) {
		wf_buf_refuse(from, &letter.flight);
		return true;
	}
	MUST_OK(wf_buf_land(from, &letter.flight, letter.len, &b));
	stamp_check(b);
	if (wf_buf_is_shared(b) || r % 4) {
		CHECK_OK(weft_buf_put(b));
	} else {
		stamp(b, r);
		if (!send_to(someone(seed), b, false))
			CHECK_OK(weft_buf_put(b));
	}
	if (r % 64 == 1)
		wf_share_flush();
	return true;
}

static void send_new(uint64_t *seed)
{
	uint64_t r = test_random(seed);
	struct weft_buf *b;
	bool keep = r % 8 == 0;
	int got = weft_buf_get(least + (r >> 8) % ((size_t)64 << r % 13), WEFT_RAIL_ANY, &b);

	if (got == -EAGAIN) {
		wf_share_flush();
		wf_share_collect();
		sched_yield();
		return;
	}
	MUST_OK(got);
	stamp(b, r);
	if (!send_to(someone(seed), b, keep) || keep) {
		weft_buf_state(b);
		CHECK_OK(weft_buf_put(b));
	}
}

static void *trade(void *arg)
{
	uint64_t seed = test_seed + kin_me * 100 + (uintptr_t)arg;

	for (uint64_t i = 0; i < rounds; i++) {
		send_new(&seed);
		take_from(someone(&seed), &seed);
		if (i % 64 == 0)
			sched_yield();
	}
	wf_share_flush();
	return NULL;
}

/* What an agent's notices lead to: all that was published is taken, nothing more sent; and when everybody is so far, it
 * is settled. */
static void death_of(uint32_t process, uint64_t *seed)
{
	pthread_mutex_lock(&post_lock[process]);
	gone[process] = true;
	pthread_mutex_unlock(&post_lock[process]);
	while (take_from(process, seed))
		;
	wf_share_dead(process);
	atomic_fetch_add(&kin->count[1], 1);
	while (atomic_load(&kin->count[1]) < processes - 1)
		if (!take_from(someone(seed), seed))
			sched_yield();
	wf_share_settled(process);
}

static void *death_watch(void *arg)
{
	uint64_t seed = test_seed + kin_me;

	(void)arg;
	while (!(atomic_load(&kin->dead) & 1 << 2))
		sched_yield();
	death_of(2, &seed);
	wf_share_flush();
	return NULL;
}

static void *executioner(void *arg)
{
	uint64_t seed = test_seed;

	(void)arg;
	usleep((useconds_t)(test_random(&seed) % 30000));
	kill(getpid(), SIGKILL);
	return NULL;
}

static void market(void)
{
	uint32_t others = doomed ? processes - 1 : processes;
	uint64_t seed = test_seed + kin_me;
	pthread_t t[THREADS], watch;
	bool watched = doomed && kin_me != 2;

	wf_pool_fini();
	MUST_OK(wf_pool_init(LIMIT));
	for (uint32_t p = 0; p <= KIN_MOST; p++) {
		MUST_OK(pthread_mutex_init(&post_lock[p], NULL));
		MUST_OK(pthread_mutex_init(&take_lock[p], NULL));
	}
	if (doomed)
		MUST_OK(pthread_create(&watch, NULL, watched ? death_watch : executioner, NULL));
	for (uintptr_t i = 0; i < THREADS; i++)
		MUST_OK(pthread_create(&t[i], NULL, trade, (void *)i));
	for (int i = 0; i < THREADS; i++)
		MUST_OK(pthread_join(t[i], NULL));
	if (doomed)
		MUST_OK(pthread_join(watch, NULL));
	/* Nobody begins anything new; what is under way may still be sent on. */
	atomic_fetch_add(&kin->count[0], 1);
	while (atomic_load(&kin->count[0]) < others || kin_away()) {
		if (!take_from(someone(&seed), &seed))
			sched_yield();
		wf_share_flush();
		wf_share_collect();
	}
	CHECK_EQ(kin_away(), 0);
	check_whole(LIMIT);
	/* The others may wait for what is in our hands: until all have all. */
	atomic_fetch_add(&kin->count[2], 1);
	while (atomic_load(&kin->count[2]) < others) {
		take_from(someone(&seed), &seed);
		wf_share_flush();
		sched_yield();
	}
	CHECK_EQ(kin_here(), 0);
	CHECK(wf_strips() > 0 || doomed);
}

TEST(buffers_thrown_between_processes_are_neither_lost_nor_had_twice)
{
	processes = 2;
	doomed = false;
	rounds = test_scaled(20000);
	least = 32;
	kin_run(processes, market);
	processes = 3;
	rounds = test_scaled(10000);
	kin_run(processes, market);
	least = 1024;
	kin_run(processes, market);
}

TEST(nor_when_one_process_is_killed_in_the_middle)
{
	uint64_t seed = test_seed;

	processes = 3;
	doomed = true;
	rounds = test_scaled(5000);
	for (uint64_t i = test_scaled(10); i > 0; i--) {
		least = i % 2 ? 1024 : 32;
		kin_run_dying(processes, market, 1 << 2);
		test_seed = test_random(&seed);
	}
}

TEST_MAIN
