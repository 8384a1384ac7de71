/* test_behind.c - the last words of a thread that stand in the mailbox behind a cell whose sender is preempted between claiming and publishing it.
 *
 * That sender is played: a thread that claims as weft_send does, and publishes when the one that sent behind it has ended.
 */
#include "crew.h"

#include "port/deliver.h"
#include "port/table.h"

static weft_id receiver;
static _Atomic bool claimed, may_talk;
static _Atomic(weft_id) talker;

static void *lags(void *arg)
{
	struct wf_ring *ring = &wf_port_by_id(receiver)->ring;
	struct wf_cell *c;
	weft_id behind;
	uint32_t pos;

	(void)arg;
	MUST(weft_self() != 0);
	MUST_EQ(wf_ring_claim(ring, WF_TAIL_INCARNATION(atomic_load(&ring->tail)), 0, &pos, &c), WF_CLAIMED);
	atomic_store(&claimed, true);
	EVENTUALLY((behind = atomic_load(&talker)) != 0 && !wf_id_lives(behind));
	crew_nap();
	c->kind = WF_INLINE;
	c->flags = 0;
	c->len = 8;
	c->index = WEFT_NOBODY;
	c->src = weft_self();
	c->tag = 2;
	memset(c->body, 0, 8);
	wf_ring_publish(c, pos);
	return NULL;
}

static void *talks(void *arg)
{
	uint64_t v = 77;

	(void)arg;
	atomic_store(&talker, weft_self());
	EVENTUALLY(atomic_load(&may_talk));
	CHECK_OK(weft_send(NULL, receiver, 1, &v, 8, SOON));
	return NULL;
}

/* One that has claimed, and one that will send behind it and end. */
static void begin(pthread_t thread[2])
{
	job_begin(0);
	receiver = weft_self();
	atomic_store(&claimed, false);
	atomic_store(&may_talk, false);
	atomic_store(&talker, 0);
	thread[0] = thread_start(lags, NULL);
	EVENTUALLY(atomic_load(&claimed));
	thread[1] = thread_start(talks, NULL);
	EVENTUALLY(atomic_load(&talker));
}

static void hear_the_end(void)
{
	atomic_store(&may_talk, true);
	EVENTUALLY(!wf_id_lives(atomic_load(&talker)));
}

static void end(pthread_t thread[2])
{
	thread_join(thread[0]);
	thread_join(thread[1]);
	CHECK_NEXT(NULL, WEFT_ANY, 2, 0);
	CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
	job_end();
}

TEST(a_receive_that_waits_for_it_gets_them)
{
	pthread_t thread[2];

	begin(thread);
	atomic_store(&may_talk, true);
	CHECK_NEXT(NULL, talker, 1, 77);
	end(thread);
}

TEST(a_receive_that_was_posted_for_it_gets_them)
{
	struct weft_req *req = NULL;
	pthread_t thread[2];
	uint64_t v = 0;

	begin(thread);
	MUST_OK(weft_recv_post(NULL, WEFT(op, .peer = talker, .tag = 1, .data = &v, .len = 8), &req, NULL));
	hear_the_end();
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	CHECK_EQ(v, 77);
	end(thread);
}

TEST(a_receive_that_comes_when_it_has_ended_gets_them)
{
	pthread_t thread[2];

	begin(thread);
	hear_the_end();
	CHECK_NEXT(NULL, talker, 1, 77);
	end(thread);
}

TEST(a_probe_finds_them_whether_it_waits_or_not)
{
	for (int waits = 0; waits < 2; waits++) {
		struct weft_status st = { 0 };
		pthread_t thread[2];

		begin(thread);
		hear_the_end();
		CHECK_OK(weft_probe(NULL, WEFT(op, .peer = talker, .tag = 1), waits ? SOON : WEFT_NOW, NULL, &st));
		CHECK_EQ(st.from, talker);
		CHECK_NEXT(NULL, talker, 1, 77);
		end(thread);
	}
}

TEST_MAIN
