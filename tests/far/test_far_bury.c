/* test_far_bury.c - the memory of processes that are gone is given back: of the dead when nobody has a buffer of theirs any more, and everything
 * when a process leaves its job.
 */
#include "pair.h"

enum { SMALL = 3000, BIG = (32 << 20) + 1 };    /* that has a segment of its own */

/* Of a big one the beginning. */
static size_t some(size_t len)
{
	return len < SMALL ? len : SMALL;
}

static struct weft_buf *filled(size_t len, uint64_t seed)
{
	struct weft_buf *buf = NULL;

	MUST_OK(weft_buf_get(len, 0, &buf));
	pattern_put(buf->data, some(len), seed);
	return buf;
}

static void give(weft_id to, uint64_t tag, struct weft_buf *buf)
{
	MUST_OK(weft_buf_send(NULL, to, tag, buf, SOON));
}

static struct weft_buf *take(weft_id from, uint64_t tag)
{
	struct weft_buf *buf = NULL;

	MUST_OK(weft_buf_recv(NULL, from, tag, SOON, &buf, NULL));
	return buf;
}

static void put(struct weft_buf *buf, uint64_t seed)
{
	CHECK(pattern_ok(buf->data, some(buf->len), seed));
	CHECK_OK(weft_buf_put(buf));
}

/* Ranks 0 and 1. */
static void survivors_meet(void)
{
	static uint64_t times;

	far_tell((int)far_rank, ++times);
	EVENTUALLY(far_told((int)(1 - far_rank)) >= times);
}

/* Messages of every kind, both ways. */
static void talk(weft_id peer)
{
	unsigned char *mem = memory(1 << 20), *got = memory(1 << 20);
	struct weft_req *req = NULL;

	for (size_t len = 8; len <= 1 << 20; len *= 8) {
		MUST(send_post(NULL, 0, peer, 1, mem, len, &req) >= 0);
		MUST_OK(weft_recv(NULL, peer, 1, got, len, SOON, NULL));
		CHECK_OK(weft_req_wait(&req, SOON, NULL));
	}
	give(peer, 2, filled(SMALL, far_rank));
	give(peer, 3, filled(BIG, far_rank));
	put(take(peer, 2), 1 - far_rank);
	put(take(peer, 3), 1 - far_rank);
	free(mem);
	free(got);
}

FAR(whoever_has_left_keeps_no_descriptor_and_no_memory_of_the_job, 2)
{
	int before = proc_descriptors() - 1;    /* the door is closed by joining */

	far_join(0);
	talk(far_id(1 - far_rank));
	CHECK(proc_mappings() > 0);
	far_leave();
	CHECK_EQ(proc_mappings(), 0);
	CHECK_EQ(proc_descriptors(), before);
	CHECK_EQ(weft_init(NULL), -EACCES);     /* a place is taken once */
	CHECK_EQ(proc_mappings(), 0);
	CHECK_EQ(proc_descriptors(), before);
}

FAR(a_buffer_held_beyond_the_end_of_the_job_stays_as_it_is, 2)
{
	int before = proc_descriptors() - 1;
	struct weft_buf *mine, *theirs;

	far_join(0);
	mine = filled(SMALL, 7);
	give(far_id(1 - far_rank), 1, filled(SMALL, far_rank));
	theirs = take(far_id(1 - far_rank), 1);
	far_leave();
	far_meet();                             /* the other has left, too */
	CHECK(proc_mappings() > 0);
	CHECK_EQ(proc_descriptors(), before);
	CHECK(pattern_ok(mine->data, SMALL, 7));
	CHECK(pattern_ok(theirs->data, SMALL, 1 - far_rank));
	pattern_put(mine->data, SMALL, 8);
	CHECK(pattern_ok(mine->data, SMALL, 8));
	CHECK_OK(weft_buf_put(mine));
	CHECK_OK(weft_buf_put(theirs));
}

static void nap_long(void)
{
	for (int i = 0; i < 8000; i++)
		crew_nap();
}

/* 0 and 1 live on; each of the others gives both of them a buffer, the first of them a big one too, and is killed. */
FAR(the_memory_of_the_dead_goes_with_the_last_of_their_buffers, 12)
{
	enum { FIRST = 2, LAST = 11 };
	struct weft_buf *small[LAST + 1], *big = NULL;
	char text[2000] = "";
	int before;

	far_join(0);
	if (far_rank >= FIRST) {
		far_may_die();
		far_await(0, far_rank);
		far_await(1, far_rank);
		for (uint32_t i = 0; i < 2; i++) {
			give(far_id(i), 1, filled(SMALL, far_rank));
			if (far_rank == FIRST)
				give(far_id(i), 2, filled(BIG, far_rank));
			MUST_OK(weft_send(NULL, far_id(i), 3, text, sizeof(text), SOON));       /* that is not received before its death */
		}
		far_step(1);
		for (;;)
			pause();
	}
	talk(far_id(1 - far_rank));
	before = proc_mappings();
	survivors_meet();
	for (uint32_t i = FIRST; i <= LAST; i++) {
		struct weft_req *ends = NULL;

		far_step(i);
		small[i] = take(far_id(i), 1);
		if (i == FIRST)
			big = take(far_id(i), 2);
		MUST_OK(recv_post(NULL, 0, far_id(i), 9, text, 8, &ends));
		far_await(i, 1);
		survivors_meet();
		if (far_rank == 0)
			CHECK_OK(kill(far_pid(i), SIGKILL));
		CHECK_EQ(weft_req_wait(&ends, SOON, NULL), -ECONNRESET);
		CHECK_OK(weft_recv(NULL, far_id(i), 3, text, sizeof(text), WEFT_NOW, NULL));
	}
	CHECK(proc_mappings() > before);
	nap_long();                             /* time for what must not happen: they are in hands */
	for (uint32_t i = FIRST; i <= LAST; i++)
		CHECK(pattern_ok(small[i]->data, SMALL, i));
	CHECK(pattern_ok(big->data, SMALL, FIRST));
	survivors_meet();
	/* 0 puts its own: what 1 has keeps the memory at 0, too, and may still come from there. */
	if (far_rank == 0) {
		put(big, FIRST);
		for (uint32_t i = FIRST; i <= LAST; i++)
			put(small[i], i);
		nap_long();
		CHECK(proc_mappings() > before);
		far_step(100);
		for (uint32_t i = FIRST; i <= LAST; i++)
			put(take(far_id(1), 300 + i), i);
		put(take(far_id(1), 300), FIRST);
	} else {
		far_await(0, 100);
		for (uint32_t i = FIRST; i <= LAST; i++)
			give(far_id(0), 300 + i, small[i]);
		give(far_id(0), 300, big);
	}
	EVENTUALLY(proc_mappings() <= before);
	survivors_meet();
	talk(far_id(1 - far_rank));             /* nothing else was given back */
	CHECK_OK(weft_fini(SOON));
	CHECK_EQ(proc_mappings(), 0);
}

FAR_MAIN
