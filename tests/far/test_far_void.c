/* test_far_void.c - a buffer that cannot take off behind its claim: its cell is void, and everything else is as if it had never been claimed.
 *
 * A view of another process's buffer does not fly, a copy of it does; with the pool used up there is none. By then its cell is claimed.
 */
#include "pair.h"

#include "port/way.h"

enum { LEN = 100000, BEHIND = 50, MOST = 4096 };
enum { POSTED, BLOCKING, FORMS };

static struct weft_buf *hoard[MOST];
static int hoarded;

/* All of this process's pool. */
static void hoard_all(void)
{
	for (size_t len = MIB; len >= 256; len /= 2)
		while (weft_buf_get(len, 0, &hoard[hoarded]) == 0)
			MUST(++hoarded < MOST);
}

static void hoard_put(void)
{
	while (hoarded > 0)
		CHECK_OK(weft_buf_put(hoard[--hoarded]));
}

/* Cells claimed on the way to @to, in all. */
static uint32_t cells_to(weft_id to)
{
	struct wf_way *way;
	uint16_t who;

	MUST_OK(wf_way_find(to, 0, NULL, &way, &who));
	return (uint32_t)atomic_load(&way->tail);
}

static void send_numbers(weft_id peer, uint64_t first, uint64_t end)
{
	for (uint64_t i = first; i < end; i++)
		CHECK_OK(weft_send(NULL, peer, 1, &i, 8, SOON));
}

/* [rank 1] Sends what was lent to it on, without memory to do so; @fails: and none comes. */
static void send_on(int form, bool fails)
{
	weft_id peer = far_id(0);
	struct weft_status st = { 0 };
	struct weft_req *req = NULL;
	struct weft_buf *view = NULL;
	uint64_t v = 0;
	uint32_t cells;
	int r;

	MUST_OK(weft_buf_recv(NULL, peer, 1, SOON, &view, NULL));
	MUST(send_post(NULL, WEFT_SYNC, peer, 2, &v, 8, &req) >= 0);    /* from now on there are tickets */
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	hoard_all();
	cells = cells_to(peer);
	send_numbers(peer, 0, 1);
	if (form == POSTED) {
		MUST_OK(weft_send_post(NULL, WEFT(op, .peer = peer, .tag = 1, .buf = view), &req));
		send_numbers(peer, 1, BEHIND);
		/* It was claimed for, and then announced. */
		CHECK(cells_to(peer) - cells >= BEHIND + 2);
		if (!fails)
			hoard_put();
		far_meet();
		r = weft_req_wait(&req, SOON, &st);
	} else {
		far_meet();
		r = weft_buf_send(NULL, peer, 1, view, SOON);
		CHECK(cells_to(peer) - cells >= 3);
		st.buf = view;
		send_numbers(peer, 1, BEHIND);
	}
	CHECK_EQ(r, fails ? -ENOMEM : 0);
	if (fails) {
		CHECK(st.buf == view);
		CHECK_EQ(weft_buf_state(view), WEFT_BUF_IDLE);
		CHECK(pattern_ok(view->data, LEN, 3));
		CHECK_OK(weft_buf_put(view));
	}
	hoard_put();
}

/* [rank 0] Lends it, and receives what comes back, in its place. */
static void lend(bool fails)
{
	weft_id peer = far_id(1);
	unsigned char *mem = memory(LEN);
	struct weft_buf *lent = NULL;
	struct weft_req *req = NULL;

	MUST_OK(weft_buf_get(LEN, 0, &lent));
	pattern_put(lent->data, LEN, 3);
	CHECK(weft_send_post(NULL, WEFT(op, .flags = WEFT_KEEP, .peer = peer, .tag = 1, .buf = lent), &req) >= 0);
	CHECK_OK(weft_req_wait(&req, SOON, NULL));
	CHECK_NEXT(NULL, peer, 2, 0);
	far_meet();
	CHECK_NEXT(NULL, peer, 1, 0);
	CHECK_EQ(weft_recv(NULL, peer, 1, mem, LEN, SOON, NULL), fails ? -ECONNRESET : 0);
	CHECK(fails || pattern_ok(mem, LEN, 3));
	for (uint64_t i = 1; i < BEHIND; i++)
		CHECK_NEXT(NULL, peer, 1, i);
	EVENTUALLY(weft_buf_state(lent) == WEFT_BUF_IDLE);
	CHECK_OK(weft_buf_put(lent));
	free(mem);
}

static void play(int form, bool fails)
{
	if (far_rank == 1)
		send_on(form, fails);
	else
		lend(fails);
	far_meet();
}

FAR(a_buffer_that_cannot_take_off_behind_its_claim_fails_and_is_back_and_what_is_sent_behind_it_arrives_in_order, 2)
{
	far_join_with(WEFT(init_opts, .knobs = "pool=4194304"));
	for (int form = 0; form < FORMS; form++)
		for (int again = 0; again < 3; again++)
			play(form, true);
	far_leave();
}

FAR(a_buffer_that_cannot_take_off_at_first_arrives_in_its_place_when_there_is_memory, 2)
{
	far_join_with(WEFT(init_opts, .knobs = "pool=4194304"));
	for (int again = 0; again < 3; again++)
		play(POSTED, false);
	far_leave();
}

FAR_MAIN
