/* test_steps.c - the lock-free parts, and the library over them, under a scheduler that decides by a seed who goes
 * on at every step point (steps.h): everything arrives, in order, and nobody sleeps for ever.
 *
 * TEST_SEED repeats a run; the first traces of each test are told, and a hash over all of them.
 */
#include "steps.h"

#include <weft/weft.h>

#include "base/lease.h"
#include "base/lock.h"
#include "base/park.h"
#include "port/door.h"
#include "port/ring.h"
#include "port/self.h"

static struct {
	struct wf_ring ring;
	struct wf_cell cells[WF_CELLS_SMALL];
} m;

enum { RING_SENDERS = 2, RING_EACH = 14 };      /* together more than the cells: full, and a second lap */
static uint32_t full_times, read_count, next_of[STEPS_THREADS];
static bool publishes_early;                    /* as it must not be */

static void ring_begin(void)
{
	memset(&m, 0, sizeof(m));
	memset(next_of, 0, sizeof(next_of));
	wf_ring_use(&m.ring, m.cells, WF_CELLS_SMALL);
	atomic_store(&m.ring.tail, (uint64_t)7 << 32);
	full_times = read_count = 0;
}

/* Up to @most at once: how many. */
static uint32_t ring_send_row(int me, uint32_t number, uint32_t most)
{
	struct wf_claim_row row;

	for (;;) {
		enum wf_claim claim = wf_ring_claim_row(&m.ring, 7, 0, most, &row);

		if (claim == WF_CLAIMED)
			break;
		MUST_EQ(claim, WF_CLAIM_FULL);
		full_times++;
		wf_relax();
	}
	MUST(row.n && row.n <= most);
	for (uint32_t i = 0; i < row.n; i++) {
		struct wf_cell *c = &row.cells[(row.pos + i) & row.mask];

		wf_step("fill");
		c->src = (uint64_t)me;
		c->tag = number + i;
		wf_ring_publish(c, row.pos + i);
	}
	return row.n;
}

static void ring_send(int me, uint32_t number)
{
	struct wf_cell *c;
	uint32_t pos;

	for (;;) {
		enum wf_claim claim = wf_ring_claim(&m.ring, 7, 0, &pos, &c);

		if (claim == WF_CLAIMED)
			break;
		MUST_EQ(claim, WF_CLAIM_FULL);
		full_times++;
		wf_relax();
	}
	if (publishes_early)
		wf_ring_publish(c, pos);
	wf_step("fill");
	c->src = (uint64_t)me;
	c->tag = number;
	if (!publishes_early)
		wf_ring_publish(c, pos);
}

static void ring_read_one(void)
{
	struct wf_cell *c = wf_ring_next(&m.ring.reader);

	if (!c) {
		wf_relax();
		return;
	}
	read_count++;
	MUST(c->src == 1 || c->src == 2 || publishes_early);
	if (!publishes_early)
		MUST_EQ(c->tag, next_of[c->src]);
	else if (c->tag != next_of[c->src % STEPS_THREADS] || !c->src)
		full_times = UINT32_MAX;
	next_of[c->src % STEPS_THREADS]++;
	wf_step("read");
	wf_ring_advance(&m.ring.reader);
}

static void ring_body(int me)
{
	if (me == 0) {
		while (read_count < RING_SENDERS * RING_EACH)
			ring_read_one();
		return;
	}
	for (uint32_t i = 0; i < RING_EACH; i++)
		ring_send(me, i);
}

static void ring_end(void)
{
	CHECK(wf_ring_drained(&m.ring));
	CHECK(wf_ring_next(&m.ring.reader) == NULL);
	CHECK_EQ(next_of[1], RING_EACH);
	CHECK_EQ(next_of[2], RING_EACH);
}

TEST(a_ring_delivers_everything_in_each_senders_order_whoever_goes_on)
{
	steps_many(test_scaled(1000), 1 + RING_SENDERS, ring_begin, ring_body, ring_end);
}

/* One sends rows, of 5 at most and as many as there is room for; the other sends one by one. */
static void ring_row_body(int me)
{
	if (me != 1) {
		ring_body(me);
		return;
	}
	for (uint32_t i = 0; i < RING_EACH;)
		i += ring_send_row(me, i, RING_EACH - i < 5 ? RING_EACH - i : 5);
}

TEST(rows_of_cells_are_delivered_in_order_too)
{
	steps_many(test_scaled(1000), 1 + RING_SENDERS, ring_begin, ring_row_body, ring_end);
}

TEST(the_same_seed_takes_the_same_steps)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		uint64_t hash;
		uint32_t count;

		ring_begin();
		steps_must_end(seed, 3, ring_body);
		hash = steps.hash;
		count = steps.steps;
		ring_begin();
		steps_must_end(seed, 3, ring_body);
		CHECK_EQ(steps.hash, hash);
		CHECK_EQ(steps.steps, count);
	}
}

TEST(the_scheduler_finds_a_sender_that_publishes_before_it_fills)
{
	uint64_t of = test_seed, found = 0;

	publishes_early = true;
	for (int i = 0; i < 50; i++) {
		ring_begin();
		steps_must_end(test_random(&of), 3, ring_body);
		found += full_times == UINT32_MAX;
	}
	publishes_early = false;
	CHECK(found > 0);
	printf("# found by %llu of 50 seeds\n", (unsigned long long)found);
}

/* A box one thread sleeps at until two others have published. */
enum { PARK_EACH = 4 };
static struct {
	struct wf_parker parker;
	_Atomic(struct wf_parker *) sleeper;
	_Atomic uint32_t published;
} box;
static bool looks_again;

static void box_begin(void)
{
	memset(&box, 0, sizeof(box));
}

static void nothing(void *arg)
{
	(void)arg;
}

static void box_sleep(uint32_t seen)
{
	wf_park_begin(&box.parker);
	atomic_store_explicit(&box.sleeper, &box.parker, memory_order_relaxed);
	wf_fence_heavy();
	wf_step("look again");
	if (looks_again && atomic_load_explicit(&box.published, memory_order_relaxed) != seen)
		wf_park_end(&box.parker);
	else
		wf_park(&box.parker, WEFT_FOREVER, nothing, NULL);
	atomic_store_explicit(&box.sleeper, NULL, memory_order_relaxed);
}

static void box_body(int me)
{
	uint32_t seen = 0;

	while (me == 0 && seen < 2 * PARK_EACH && !steps.free) {
		uint32_t now = atomic_load_explicit(&box.published, memory_order_acquire);

		wf_step("look");
		if (now == seen)
			box_sleep(seen);
		seen = now;
	}
	for (int i = 0; me != 0 && i < PARK_EACH; i++) {
		struct wf_parker *sleeper;

		wf_step("publish");
		atomic_fetch_add_explicit(&box.published, 1, memory_order_release);
		wf_fence_light();
		wf_step("look for sleeper");
		sleeper = atomic_load_explicit(&box.sleeper, memory_order_relaxed);
		if (sleeper)
			wf_wake(sleeper);
	}
}

TEST(who_looks_again_before_it_sleeps_misses_no_wake_up)
{
	looks_again = true;
	wf_fence_init(true);
	steps_many(test_scaled(2000), 3, box_begin, box_body, NULL);
}

TEST(the_scheduler_finds_a_sleeper_that_does_not_look_again)
{
	uint64_t of = test_seed, stuck = 0;

	looks_again = false;
	for (int i = 0; i < 200; i++) {
		box_begin();
		stuck += steps_run(test_random(&of), 3, box_body) == STEPS_STUCK;
		atomic_store(&box.parker.word, 0);      /* lets it return */
		steps_join();
	}
	looks_again = true;
	CHECK(stuck > 0);
	printf("# stuck by %llu of 200 seeds\n", (unsigned long long)stuck);
}

/* What a lock covers: one inside, and a sum that only holds if it was so. */
enum { LOCK_EACH = 8 };
static struct wf_lock lock;
static struct wf_door door;
static int inside;
static uint32_t sum;

static void work(void)
{
	uint32_t before = sum;

	MUST_EQ(inside++, 0);
	wf_step("inside");
	sum = before + 1;
	wf_step("inside still");
	MUST_EQ(--inside, 0);
}

static void lock_begin(void)
{
	memset(&lock, 0, sizeof(lock));
	sum = 0;
}

static void lock_body(int me)
{
	for (int i = 0; i < LOCK_EACH; i++) {
		if (me == 2 && i % 2) {
			while (!wf_trylock(&lock))
				wf_relax();
		} else {
			wf_lock(&lock);
		}
		work();
		wf_unlock(&lock);
	}
}

static void lock_end(void)
{
	CHECK_EQ(sum, 3 * LOCK_EACH);
	CHECK_EQ(atomic_load(&lock.held), 0);
	CHECK_EQ(atomic_load(&lock.wanted), 0);
}

TEST(one_at_a_time_holds_a_lock_and_everybody_gets_it)
{
	wf_fence_init(true);
	steps_many(test_scaled(1000), 3, lock_begin, lock_body, lock_end);
}

static int door_rounds;
static uint64_t door_visits;            /* it has had before */

static void door_begin(void)
{
	memset(&door, 0, sizeof(door));
	wf_door_reset(&door, true);
	atomic_store(&door.word, door_visits * WF_DOOR_VISIT);
	sum = 0;
}

/* After how many visits a door is plain. */
static uint64_t visits_to_plain(void)
{
	uint64_t n = 0;

	door_visits = 0;
	for (door_begin(); !(atomic_load(&door.word) & WF_DOOR_PLAIN); n++) {
		wf_door_enter_other(&door);
		wf_door_leave_other(&door);
	}
	return n;
}

static void door_body(int me)
{
	for (int i = 0; i < door_rounds; i++) {
		if (me == 0)
			wf_door_enter_owner(&door);
		else
			wf_door_enter_other(&door);
		work();
		if (me == 0)
			wf_door_leave_owner(&door);
		else
			wf_door_leave_other(&door);
	}
}

static void door_end(void)
{
	CHECK_EQ(sum, 3 * door_rounds);
}

TEST(owner_and_visitors_are_never_inside_a_door_together_and_all_get_in)
{
	door_rounds = 6;
	door_visits = 0;
	steps_many(test_scaled(1000), 3, door_begin, door_body, door_end);
}

TEST(a_door_that_is_visited_much_becomes_a_plain_lock)
{
	door_visits = visits_to_plain() - 20;
	door_rounds = 20;
	steps_many(test_scaled(300), 3, door_begin, door_body, door_end);
	CHECK(atomic_load(&door.word) & WF_DOOR_PLAIN);
}

/* Each lends what the lock covers to itself, sometimes, and comes back by the lease as long as that lasts. */
static struct wf_lease lease;
static _Atomic uint32_t lessee[STEPS_THREADS];
static uint32_t by_lease, taken_back;

static void lease_begin(void)
{
	memset(&lock, 0, sizeof(lock));
	memset(&lease, 0, sizeof(lease));
	sum = 0;
}

static void lease_body(int me)
{
	for (int i = 0; i < LOCK_EACH; i++) {
		if (wf_lease_name(&lease) == (uint64_t)me + 1 && wf_lease_enter(&lease, (uint64_t)me + 1, &lessee[me])) {
			work();
			by_lease++;
			wf_lease_leave(&lessee[me]);
			continue;
		}
		wf_lock(&lock);
		if (wf_lease_name(&lease))
			taken_back += !wf_lease_take_back(&lease, &lessee[me]);
		work();
		if (i % 4 != 2)
			wf_lease_lend(&lease, (uint64_t)me + 1, &lessee[me]);
		wf_unlock(&lock);
	}
}

TEST(one_at_a_time_is_inside_by_the_lock_or_by_the_lease)
{
	wf_fence_init(true);
	steps_many(test_scaled(1000), 3, lease_begin, lease_body, lock_end);
	CHECK(by_lease > 0 && taken_back > 0);
	printf("# %u times by the lease, which was taken back from another %u times\n", by_lease, taken_back);
}

/* The whole library: threads join, talk by the public calls, and leave. */
static _Atomic(weft_id) ids[STEPS_THREADS];

static void talk_begin(void)
{
	memset(ids, 0, sizeof(ids));
}

static weft_id id_of(int who)
{
	weft_id id;

	while (!(id = atomic_load(&ids[who])))
		wf_step("wait for id");
	return id;
}

static void library_run(uint64_t count, const char *spin_ns, int threads, void (*body)(int me))
{
	MUST_OK(weft_init(NULL));
	MUST_OK(weft_knob_set("spin_ns", spin_ns));
	steps_many(test_scaled(count), threads, talk_begin, body, NULL);
	CHECK_OK(weft_fini(WEFT_FOREVER));
}

enum { PINGS = 5 };

static void ping_body(int me)
{
	atomic_store(&ids[me], weft_self());
	for (uint64_t i = 0; i < PINGS; i++) {
		uint64_t word = i, got = UINT64_MAX;

		if (me == 0)
			MUST_OK(weft_send(NULL, id_of(1), i, &word, sizeof(word), WEFT_FOREVER));
		MUST_OK(weft_recv(NULL, id_of(1 - me), i, &got, sizeof(got), WEFT_FOREVER, NULL));
		MUST_EQ(got, i);
		if (me == 1)
			MUST_OK(weft_send(NULL, id_of(0), i, &word, sizeof(word), WEFT_FOREVER));
	}
	MUST_OK(weft_thread_leave());
}

TEST(two_threads_that_sleep_at_once_talk_to_and_fro)
{
	library_run(1000, "0", 2, ping_body);
}

TEST(two_threads_that_linger_talk_to_and_fro)
{
	library_run(500, "500", 2, ping_body);
}

enum { FLOOD_EACH = 24 };
static uint32_t spilled_times, grown_times;

static bool posts;              /* without waiting: what does not fit spills */

static void flood_posted(int me, weft_id to)
{
	uint64_t words[FLOOD_EACH][2];
	struct weft_req *reqs[FLOOD_EACH] = { NULL };

	for (uint64_t i = 0; i < FLOOD_EACH; i++) {
		struct weft_op op = { .size = sizeof(op), .peer = to, .tag = i % 2, .data = words[i], .len = sizeof(words[i]) };
		int r;

		words[i][0] = (uint64_t)me;
		words[i][1] = i;
		r = weft_send_post(NULL, &op, &reqs[i]);
		MUST(r == 0 || r == WEFT_DONE);
		spilled_times += r == 0;
	}
	for (int i = 0; i < FLOOD_EACH; i++)
		if (reqs[i])
			MUST_OK(weft_req_wait(&reqs[i], WEFT_FOREVER, NULL));
}

static void flood(int me, weft_id to)
{
	if (posts)
		flood_posted(me, to);
	for (uint64_t i = 0; !posts && i < FLOOD_EACH; i++) {
		uint64_t word[2] = { (uint64_t)me, i };

		MUST_OK(weft_send(NULL, to, i % 2, word, sizeof(word), WEFT_FOREVER));
	}
}

/* Two send more than the mailbox holds: it fills, spills, gets bigger, and is read in each one's order. */
static void flood_body(int me)
{
	uint64_t next[STEPS_THREADS] = { 0 };

	atomic_store(&ids[me], weft_self());
	if (me != 0)
		flood(me, id_of(0));
	for (uint64_t i = 0; me == 0 && i < 2 * FLOOD_EACH; i++) {
		uint64_t word[2] = { 0, 0 };

		MUST_OK(weft_recv(NULL, WEFT_ANY, WEFT_ANY_TAG, word, sizeof(word), WEFT_FOREVER, NULL));
		MUST(word[0] == 1 || word[0] == 2);
		MUST_EQ(word[1], next[word[0]]);
		next[word[0]]++;
		grown_times += wf_tail_mask(atomic_load(&wf_self.port->ring.tail)) == WF_CELLS_BIG - 1;
	}
	/* Who leaves takes back what was not received: leave together. */
	atomic_store(&ids[me], 0);
	while (atomic_load(&ids[0]))
		wf_step("wait for the end");
	MUST_OK(weft_thread_leave());
}

TEST(a_flooded_mailbox_loses_nothing_and_keeps_each_senders_order)
{
	posts = false;
	grown_times = 0;
	library_run(200, "0", 3, flood_body);
	CHECK(grown_times > 0 || test_scale() < 1);
	printf("# the reader saw the big ring %u times\n", grown_times);
}

TEST(what_spilled_follows_what_was_in_the_mailbox)
{
	posts = true;
	spilled_times = 0;
	library_run(200, "0", 3, flood_body);
	CHECK(spilled_times > 0 || test_scale() < 1);
	printf("# %u sends did not fit\n", spilled_times);
}

/* One opens a port, reads a little, closes it and opens the next; two send to whichever they last heard of. */
enum { LIVES = 3, LOOKS = 4, TRIES = 8 };

static void lives(void)
{
	for (int life = 0; life < LIVES; life++) {
		struct weft_port *port;
		struct weft_port_info info = { .size = sizeof(info) };
		uint64_t last[STEPS_THREADS] = { 0 };

		MUST_OK(weft_port_open(NULL, &port));
		MUST_OK(weft_port_stat(port, &info));
		atomic_store(&ids[0], info.id);
		for (int i = 0; i < LOOKS; i++) {
			uint64_t word[3] = { 0, 0, 0 };
			int r = weft_recv(port, WEFT_ANY, WEFT_ANY_TAG, word, sizeof(word), WEFT_NOW, NULL);

			wf_step("looked");
			if (r == -EAGAIN)
				continue;
			MUST_EQ(r, 0);
			MUST_EQ(word[0], info.id);
			MUST(word[1] == 1 || word[1] == 2);
			MUST(word[2] > last[word[1]]);
			last[word[1]] = word[2];
		}
		MUST_OK(weft_port_close(port, WEFT_NOW));
	}
}

static void lives_body(int me)
{
	if (me == 0)
		lives();
	for (uint64_t i = 1; me != 0 && i <= TRIES; i++) {
		uint64_t word[3] = { id_of(0), (uint64_t)me, i };
		struct weft_op op = { .size = sizeof(op), .peer = word[0], .tag = 1, .data = word, .len = sizeof(word),
				      .flags = i % 2 ? WEFT_SYNC : 0 };
		struct weft_req *req = NULL;
		int r = weft_send_post(NULL, &op, &req);

		if (r == 0)
			r = weft_req_wait(&req, WEFT_FOREVER, NULL);
		MUST(r == 0 || r == WEFT_DONE || r == -ESRCH || r == -ECONNRESET);
	}
	MUST_OK(weft_thread_leave());
}

TEST(a_port_that_closes_and_opens_anew_gets_only_its_own)
{
	library_run(500, "0", 3, lives_body);
}

TEST_MAIN
