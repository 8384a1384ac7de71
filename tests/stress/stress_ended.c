/* stress_ended.c - a port ends while others begin to wait for it, in every way there is: each of them is told, whoever else waits.
 *
 * Who is told of an end is kept in one word of the one that ends (port.watcher), which those who wait write while it ends.
 */
#include "../integ/crew.h"

#include <sched.h>

#include "base/cpu.h"

enum { WATCHERS = 4, WAYS = 5 };

static _Atomic(weft_id) doomed;
static _Atomic uint64_t round_now;
static _Atomic int done;
static _Atomic bool over;
static struct weft_port *common;

static void dawdle(uint64_t *random)
{
	for (uint64_t n = test_random(random) % 400; n > 0; n--)
		wf_relax();
}

static void told(int r)
{
	CHECK(r == -ECONNRESET || r == -ESRCH);
}

static void wait_posted(struct weft_port *at, weft_id id)
{
	struct weft_req *req = NULL;
	uint64_t v;
	int r = recv_post(at, 0, id, 1, &v, sizeof(v), &req);

	told(r ? r : weft_req_wait(&req, SOON, NULL));
}

static void wait_as_member(weft_id id)
{
	struct weft_port_info info = { .size = sizeof(info) };
	struct weft_port *port = NULL;

	MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED, .members = &id, .count = 1), &port));
	do {
		sched_yield();
		MUST_OK(weft_port_stat(port, &info));
	} while (info.dead == 0);
	CHECK_EQ(info.dead, 1);
	CHECK_OK(weft_port_close(port, SOON));
}

static void *watcher_main(void *arg)
{
	uint64_t random = test_seed + (uintptr_t)arg, v;

	for (uint64_t r = 1;; r++) {
		weft_id id;

		while (atomic_load(&round_now) < r)
			sched_yield();
		if (atomic_load(&over))
			return NULL;
		id = atomic_load(&doomed);
		dawdle(&random);
		switch (test_random(&random) % WAYS) {
		case 0:
			told(weft_recv(NULL, id, 1, &v, sizeof(v), SOON, NULL));
			break;
		case 1:
			wait_posted(NULL, id);
			break;
		case 2:
			wait_posted(common, id);
			break;
		case 3:
			told(weft_probe(NULL, WEFT(op, .peer = id, .tag = 1), SOON, NULL, NULL));
			break;
		default:
			wait_as_member(id);
		}
		atomic_fetch_add(&done, 1);
	}
}

/* @watchers at a time: one alone is told by its number. */
static void ends_are_told(int watchers)
{
	uint64_t rounds = test_scaled(4000), random = test_seed;
	pthread_t t[WATCHERS];

	job_begin(0);
	common = port_new(0);
	atomic_store(&round_now, 0);
	atomic_store(&over, false);
	for (uintptr_t i = 0; i < (uintptr_t)watchers; i++)
		t[i] = thread_start(watcher_main, (void *)(i + 1));
	for (uint64_t r = 1; r <= rounds; r++) {
		struct weft_port *port = port_new(0);

		atomic_store(&done, 0);
		atomic_store(&doomed, port_id(port));
		atomic_store(&round_now, r);
		if (test_random(&random) % 4 == 0)
			sched_yield();
		dawdle(&random);
		CHECK_OK(weft_port_close(port, SOON));
		while (atomic_load(&done) < watchers)
			sched_yield();
	}
	atomic_store(&over, true);
	atomic_store(&round_now, rounds + 1);
	for (int i = 0; i < watchers; i++)
		thread_join(t[i]);
	CHECK_OK(weft_port_close(common, SOON));
	job_end();
}

TEST(an_end_is_told_to_the_one_who_waits_for_it)
{
	ends_are_told(1);
}

TEST(an_end_is_told_to_all_who_wait_for_it)
{
	ends_are_told(WATCHERS);
}

TEST_MAIN
