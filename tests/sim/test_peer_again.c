/* test_peer_again.c - a message like the last one (peer/brief.h: wf_brief_again, wf_brief_told) does what any does: the same bytes, the same state; or nothing. */
#include "brisk.h"

#include "base/bytes.h"
#include "brief_one.h"

enum { LONGEST = 208 };         /* bytes of a payload of which 256 are left beside the heads */

/* A record of one short message. */
struct lain {
	unsigned char bytes[ROOM];
	size_t n, len;
};

static bool again(struct wf_remote *r, struct wf_lane *lane, struct lain *lain, weft_time now)
{
	struct wf_brisk b = mail(lain->len);

	return wf_brief_again(r, lane, &b, lain->bytes, lain->n - 16, wf_invite_at(r, b.to, b.context), now);
}

static void first(struct wf_remote *r, struct wf_lane *lane, size_t len, struct lain *ret_lain)
{
	struct wf_brisk b = mail(len);
	size_t heads;
	bool more;

	ret_lain->len = len;
	ret_lain->n = wf_remote_brisk_flat(r, lane, &b, ret_lain->bytes, ROOM, WEFT_S, &heads, &more);
	MUST(ret_lain->n && ret_lain->bytes[0] == WF_WIRE_STREAM);
}

/* The ring that keeps them is gone round several times. */
TEST(a_message_like_the_last_one_has_the_same_bytes)
{
	uint64_t by_that = 0, refused = 0;

	for (size_t len = 0; len <= LONGEST; len++) {
		struct wf_lane *la[3], *lb[3];
		static struct lain lain;
		struct wf_remote ra, rb;

		warm(&ra, la);
		warm(&rb, lb);
		ra.limit = rb.limit = UINT64_MAX / 2;
		first(&rb, lb[1], len, &lain);
		for (int i = 0; i < 400; i++) {
			unsigned char bytes[ROOM];
			struct wf_brisk b = mail(len);
			size_t n, heads;
			bool more;

			memset(bytes, 0xee, sizeof(bytes));
			n = wf_remote_brisk_flat(&ra, la[1], &b, bytes, sizeof(bytes), WEFT_S, &heads, &more);
			if (i > 0) {
				struct wf_remote before = rb;
				bool so = again(&rb, lb[1], &lain, WEFT_S);

				CHECK_EQ(so, n > 0);            /* else both go round the end of the ring */
				by_that += so;
				refused += !so;
				if (!so)
					CHECK_EQ(memcmp(&before, &rb, sizeof(rb)), 0);
			}
			if (n) {
				CHECK_EQ(n, lain.n);
				CHECK_EQ(memcmp(bytes, lain.bytes, n), 0);
			} else {
				CHECK(wf_remote_brisk(&ra, &b) && wf_remote_brisk(&rb, &b));
				CHECK(wf_remote_fill_flat(&ra, la[1], bytes, sizeof(bytes), WEFT_S, &heads, &more) > 0);
				CHECK(wf_remote_fill_flat(&rb, lb[1], bytes, sizeof(bytes), WEFT_S, &heads, &more) > 0);
			}
			alike(&ra, la[1], &rb, lb[1]);
			acknowledge(&ra, la[1]);
			acknowledge(&rb, lb[1]);
		}
		wf_remote_fini(&ra);
		wf_remote_fini(&rb);
	}
	CHECK(by_that > 80000 && refused > 100 && refused < 2000);
}

/* One thing after the other; each is put back. */
TEST(what_is_in_its_way_is_left_to_the_other_ways)
{
	static struct lain lain;
	struct wf_rsend other = { .len = 1 };
	struct wf_lane *lane[3], *l;
	struct wf_remote r, before;
	struct wf_out *out, kept;

#define IN_THE_WAY(set, back) do { \
	set; \
	before = r; \
	kept = *out; \
	CHECK(!again(&r, l, &lain, WEFT_S)); \
	CHECK(memcmp(&before, &r, sizeof(r)) == 0 && memcmp(&kept, out, sizeof(kept)) == 0); \
	back; \
} while (0)
	warm(&r, lane);
	l = lane[1];
	out = r.out[WF_STREAM_PLAIN];
	first(&r, l, 8, &lain);
	CHECK(again(&r, l, &lain, WEFT_S));
	IN_ITS_WAY(IN_THE_WAY);
	IN_THE_WAY(r.done = 5, r.done = 0);
	IN_THE_WAY(r.done_at = 5, r.done_at = 0);
	IN_THE_WAY(r.err = -ECONNRESET, r.err = 0);
	IN_THE_WAY(out->epoch++, out->epoch--);
	IN_THE_WAY(out->rt.sent -= 8, out->rt.sent += 8);
	IN_THE_WAY(wf_list_add(&out->waiting, &other.node), wf_list_del(&other.node));
	IN_THE_WAY(wf_list_add(&r.granted, &other.node), wf_list_del(&other.node));
	IN_THE_WAY(r.freed += r.conf.window, r.freed -= r.conf.window);         /* LIMIT is to go along */
	IN_THE_WAY((l->acks = 16, l->ack_at = WEFT_S + WEFT_MS / 2), l->acks = 0);      /* and so is ACK */
	IN_THE_WAY((l->acks = 16, l->ack_at = WEFT_S + 2 * WEFT_MS, l->ack_now = true), (l->acks = 0, l->ack_now = false));
	IN_THE_WAY((l->acks = 16, l->bodies = 1), (l->acks = 0, l->bodies = 0));
	l->acks = 16;
	CHECK(again(&r, l, &lain, WEFT_S));     /* it can wait */
	l->acks = 0;
	IN_THE_WAY(r.used = r.limit, r.used = 0);
	CHECK(again(&r, l, &lain, WEFT_S));
	wf_remote_fini(&r);
#undef IN_THE_WAY
}

/* A record of one message as its sender writes it. */
static uint32_t one(const struct wf_remote *r, unsigned char *to, size_t len)
{
	struct wf_rmsg m = { .type = WF_WIRE_MSG, .to = 3, .from = 4, .index = 5, .tag = 6, .context = 0x77, .flags = len % 2 ? WF_WIRE_CONTEXT : 0 };
	size_t all;

	wf_wire_put(to, WF_WIRE_STREAM, WF_STREAM_PLAIN, r->in[WF_STREAM_PLAIN].epoch, r->in[WF_STREAM_PLAIN].next);
	all = wf_wire_put_msg(to + 16, &m, len);
	memset(to + 16 + all, 7, WF_WIRE_PAD(len));
	return (uint32_t)(16 + WF_WIRE_PAD(all + len));
}

static bool told(struct wf_remote *r, struct wf_lane *lane, const unsigned char *bytes, uint32_t n, size_t len, weft_time now)
{
	return brief_one(r, lane, bytes[1], wf_get32(bytes + 4), wf_get64(bytes + 8), n - 16, wf_credit_cost(len), now);
}

/* Until much has come, and until there is no credit left. */
TEST(one_message_that_comes_is_told_the_same_by_either_way)
{
	for (size_t len = 0; len <= LONGEST; len += 3) {
		struct wf_lane *la[3], *lb[3];
		struct wf_remote ra, rb;
		bool more = true;

		warm(&ra, la);
		warm(&rb, lb);
		for (int i = 0; more; i++) {
			weft_time now = 2 * WEFT_S + i * INT64_C(1000);
			unsigned char bytes[ROOM];
			struct wf_row row;
			uint32_t n = one(&ra, bytes, len);

			more = wf_remote_record_row(&ra, la[1], bytes, n, now, &row);
			CHECK_EQ(told(&rb, lb[1], bytes, n, len, now), more);
			if (more)
				CHECK(row.count == 1 && row.cost == wf_credit_cost(len));
			alike(&ra, la[1], &rb, lb[1]);
			CHECK(ra.in[WF_STREAM_PLAIN].next == rb.in[WF_STREAM_PLAIN].next && ra.arrived == rb.arrived && ra.heard == rb.heard && la[1]->heard == lb[1]->heard);
			CHECK(la[1]->ack_now == lb[1]->ack_now && ra.told == rb.told && ra.promised == rb.promised);
			if (i == 5) {
				wf_remote_freed(&ra, 300);
				wf_remote_freed(&rb, 300);
			}
			CHECK(i < 2000);
		}
		wf_remote_fini(&ra);
		wf_remote_fini(&rb);
	}
}

TEST(one_that_is_not_the_next_of_its_stream_is_not_told)
{
	struct wf_lane *lane[3], *l;
	struct wf_remote r, before;
	unsigned char bytes[ROOM];
	struct wf_in *in;
	uint32_t n;

#define OTHERWISE(set, back) do { \
	set; \
	before = r; \
	CHECK(!told(&r, l, bytes, n, 8, 2 * WEFT_S)); \
	CHECK_EQ(memcmp(&before, &r, sizeof(r)), 0); \
	back; \
} while (0)
	warm(&r, lane);
	l = lane[1];
	in = &r.in[WF_STREAM_PLAIN];
	n = one(&r, bytes, 8);
	NOT_THE_NEXT(OTHERWISE);
	OTHERWISE(r.arrived = r.promised - 71, r.arrived = 0);
	CHECK(told(&r, l, bytes, n, 8, 2 * WEFT_S));
	CHECK(!told(&r, l, bytes, n, 8, 2 * WEFT_S));   /* once more */
	wf_remote_fini(&r);
#undef OTHERWISE
}

TEST_MAIN
