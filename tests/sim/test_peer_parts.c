/* test_peer_parts.c - the parts of src/peer by themselves: frames, rings, numbers, the choice of a lane. */
#include "peer/inner.h"
#include "peer/stripe.h"

#include "alone.h"

/* ---- frames ---- */

TEST(every_frame_has_its_length_and_lies_in_its_record)
{
	unsigned known = 0;

	for (unsigned type = 0; type < 256; type++) {
		const struct wf_wire_shape *shape = type < WF_WIRE_SKIPPABLE ? &wf_wire_shapes[type] : NULL, *got;
		unsigned char *bytes = calloc(1, 65536);

		known += shape && shape->name;
		for (size_t len = 0; len < 600; len++) {
			bool fits = len >= 8 && (shape ? shape->name && len >= shape->fixed && len <= shape->most : true);

			wf_wire_head(bytes, (uint8_t)type, 0, len);
			CHECK_EQ(wf_wire_next(bytes, 65536, &got), fits ? (int)WF_WIRE_PAD(len) : -EPROTO);
			CHECK(!fits || got == shape);
			if (!fits)
				continue;
			CHECK_EQ(wf_wire_next(bytes, WF_WIRE_PAD(len), &got), (int)WF_WIRE_PAD(len));
			CHECK_EQ(wf_wire_next(bytes, WF_WIRE_PAD(len) - 1, &got), -EPROTO);
		}
		free(bytes);
	}
	CHECK_EQ(known, 29);
}

/* One frame from the other end, as the next where it belongs, with a body if it is a CHUNK. */
static int frame_comes(const unsigned char *frame, uint32_t len)
{
	unsigned char bytes[300] = { 0 };
	struct wf_acts acts = { 0 };
	struct wf_lane *lane[3];
	struct wf_remote r;
	int rc;

	alone(&r, lane);
	if (frame[0] >= WF_WIRE_GRANT) {
		rc = control(&r, lane[0], frame, len);
	} else if (frame[0] >= WF_WIRE_MSG) {
		wf_wire_put(bytes, WF_WIRE_MOVE, WF_STREAM_PLAIN, 1, 0);
		wf_wire_put(bytes + 16, WF_WIRE_STREAM, WF_STREAM_PLAIN, 1, 0);
		memcpy(bytes + 32, frame, len);
		rc = wf_remote_record(&r, lane[1], bytes, 32 + len, 0, WEFT_S, &acts);
	} else {
		rc = wf_remote_record(&r, lane[2], frame, len, frame[0] == WF_WIRE_CHUNK ? 8 : 0, WEFT_S, &acts);
	}
	wf_remote_gone(&r, -ECONNRESET, WEFT_S);
	wf_remote_fini(&r);
	return rc;
}

/* By docs/wire.md: a newer version may mean something by them, and is not to be misunderstood. */
TEST(flags_that_are_not_there_and_fields_that_are_not_zero_are_refused)
{
	static const struct {
		uint8_t type, len, flags;       /* flags it may have, of those that need nothing else */
		uint8_t zero, n;                /* bytes that are to be 0 */
		uint8_t one;                    /* byte that must not be */
	} of[] = {
		{ WF_WIRE_CHUNKS, 16, 0, 0, 0, 0 }, { WF_WIRE_PING, 16, 0, 4, 4, 0 }, { WF_WIRE_PONG, 16, 0, 4, 4, 0 }, { WF_WIRE_CHUNK, 24, 0, 4, 4, 8 },
		{ WF_WIRE_LIMIT, 16, 0, 4, 4, 0 }, { WF_WIRE_DONE, 16, 0, 4, 4, 0 }, { WF_WIRE_CANCEL, 16, 0, 4, 4, 0 }, { WF_WIRE_VOID, 8, 0, 0, 0, 0 }, { WF_WIRE_GRANT, 32, 1, 4, 4, 0 },
		{ WF_WIRE_ENDED, 16, 0, 0, 0, 0 }, { WF_WIRE_LATE, 16, 0, 4, 4, 0 }, { WF_WIRE_CREDIT, 16, 0, 4, 4, 0 }, { WF_WIRE_BACKLOG, 16, 0, 0, 0, 0 },
		{ WF_WIRE_CLEAR, 16, 0, 0, 0, 0 }, { WF_WIRE_SEEK, 24, 0, 0, 0, 0 }, { WF_WIRE_INVITE, 48, 0, 44, 4, 16 }, { WF_WIRE_REVOKE, 16, 0, 4, 4, 0 },
		{ WF_WIRE_BYE, 8, 0, 0, 0, 0 }, { WF_WIRE_AGAIN, 32, 0, 4, 4, 0 }, { WF_WIRE_CLOG, 16, 1, 0, 0, 0 }, { WF_WIRE_WATCH, 16, 0, 8, 8, 4 },
		{ WF_WIRE_GONE, 16, 0, 8, 8, 0 },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		unsigned char frame[48] = { 0 };

		wf_wire_head(frame, of[i].type, 0, of[i].len);
		if (of[i].one)
			frame[of[i].one] = 1;
		CHECK_OK(frame_comes(frame, of[i].len));
		for (int bit = 1; bit < 256; bit *= 2) {
			frame[1] = (unsigned char)bit;
			CHECK_EQ(frame_comes(frame, of[i].len), bit & of[i].flags ? 0 : -EPROTO);
			frame[1] = 0;
			for (size_t at = of[i].zero; at < (size_t)of[i].zero + of[i].n; at++) {
				frame[at] = (unsigned char)bit;
				CHECK_EQ(frame_comes(frame, of[i].len), -EPROTO);
				frame[at] = 0;
			}
		}
	}
}

static bool same(const struct wf_rmsg *a, const struct wf_rmsg *b)
{
	return a->to == b->to && a->from == b->from && a->index == b->index && a->tag == b->tag && a->context == b->context && a->send == b->send &&
	       a->len == b->len && a->token == b->token && a->head_len == b->head_len && a->flags == b->flags &&
	       (!a->head_len || !memcmp(a->head, b->head, a->head_len));
}

/* A message with what its flags say, or one that cannot be. */
static struct wf_rmsg random_msg(uint64_t *x)
{
	static const char head[WF_WIRE_HEAD_MOST] = "what another protocol says";
	uint64_t d = test_random(x);
	struct wf_rmsg m = { .type = d & 1 ? WF_WIRE_MSG : WF_WIRE_ANNOUNCE, .flags = (uint8_t)(d >> 8), .to = (uint32_t)test_random(x),
			     .from = (uint32_t)test_random(x), .index = (uint32_t)(d >> 16), .tag = test_random(x) };

	if (m.flags & WF_WIRE_CONTEXT)
		m.context = test_random(x) | 1;
	if (m.flags & WF_WIRE_SEND)
		m.send = test_random(x) | 1;
	if (m.flags & WF_WIRE_LENGTH)
		m.len = test_random(x);
	if (m.flags & (WF_WIRE_INVITED | WF_WIRE_OFFER))
		m.token = test_random(x);
	if (m.flags & WF_WIRE_HEAD) {
		m.head = head;
		m.head_len = (uint32_t)(test_random(x) % (WF_WIRE_HEAD_MOST + 1));
	}
	return m;
}

TEST(a_message_header_comes_out_as_it_went_in_or_is_refused)
{
	uint64_t x = test_seed, good = 0, count = test_scaled(200000);

	for (uint64_t i = 0; i < count; i++) {
		struct wf_rmsg m = random_msg(&x), got;
		unsigned char bytes[WF_WIRE_MSG_HEAD + 8] = { 0 };
		const struct wf_wire_shape *shape;
		bool apart = m.type == WF_WIRE_ANNOUNCE || m.flags & WF_WIRE_BODY;
		size_t len = wf_wire_put_msg(bytes, &m, 0);
		int rc = wf_wire_next(bytes, sizeof(bytes), &shape);

		CHECK(len <= WF_WIRE_MSG_HEAD);
		if (rc < 0)
			continue;
		rc = wf_wire_get_msg(bytes, &got);
		if (!rc) {
			CHECK(same(&m, &got));
			CHECK(!apart || (m.send && m.flags & WF_WIRE_LENGTH));
			good++;
		}
		/* Cut off anywhere: refused, or at least within the frame. */
		for (size_t cut = 24; cut < len; cut += 8) {
			wf_wire_head(bytes, m.type, m.flags, cut);
			if (!wf_wire_get_msg(bytes, &got))
				CHECK(got.len <= cut || apart);
		}
	}
	CHECK(good > count / 50);
}

/* By docs/wire.md, byte by byte. */
TEST(a_message_header_lies_as_it_is_written_down)
{
	static const unsigned char all[] = {
		17, 1 | 2 | 4 | 8 | 16 | 128, 64, 0, 0x04, 0x03, 0x02, 0x01, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21,       /* to, from, index */
		0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31, 0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41,                   /* tag, context */
		0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51, 0x68, 0x67, 0x66, 0x65, 0x64, 0x63, 0x62, 0x61,                   /* send, length */
		0x78, 0x77, 0x76, 0x75, 0x74, 0x73, 0x72, 0x71, 3, 'a', 'b', 'c', 0, 0, 0, 0,                                     /* token, header */
	};
	struct wf_rmsg m = { .type = WF_WIRE_ANNOUNCE, .flags = 1 | 2 | 4 | 8 | 16 | 128, .to = 0x01020304, .from = 0x11121314, .index = 0x21222324,
			     .tag = UINT64_C(0x3132333435363738), .context = UINT64_C(0x4142434445464748), .send = UINT64_C(0x5152535455565758),
			     .len = UINT64_C(0x6162636465666768), .token = UINT64_C(0x7172737475767778), .head = "abc", .head_len = 3 }, got;
	unsigned char bytes[WF_WIRE_MSG_HEAD];
	const struct wf_wire_shape *shape;

	CHECK_EQ(wf_wire_put_msg(bytes, &m, 0), sizeof(all));
	CHECK_EQ(memcmp(bytes, all, sizeof(all)), 0);
	memcpy(bytes, all, sizeof(all));
	CHECK(wf_wire_next(bytes, sizeof(bytes), &shape) > 0);
	CHECK_OK(wf_wire_get_msg(bytes, &got));
	CHECK(same(&m, &got));
	wf_wire_put(bytes, WF_WIRE_ENDED, 7, 0x01020304, UINT64_C(0x1112131415161718));
	CHECK_EQ(memcmp(bytes, "\x21\x07\x10\x00\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11", 16), 0);
}

TEST(a_plain_message_costs_24_bytes)
{
	struct wf_rmsg m = { .type = WF_WIRE_MSG };
	unsigned char bytes[WF_WIRE_MSG_HEAD];

	CHECK_EQ(wf_wire_put_msg(bytes, &m, 8), 24);
	CHECK_EQ(wf_get16(bytes + 2), 32);
}

/* ---- rings ---- */

TEST(a_ring_gives_back_what_went_in_however_it_grows_and_is_lent)
{
	uint64_t x = test_seed;

	for (uint64_t round = 0; round < test_scaled(50); round++) {
		struct wf_retain rt = { .most = WF_RETAIN_MOST };
		struct { struct iovec iov[2]; int n; uint64_t from; } lent[4];
		int nlent = 0;

		for (int step = 0; step < 3000; step++) {
			uint64_t d = test_random(&x);
			size_t n = WF_WIRE_PAD((size_t)(d >> 8) % 3000 + 1);

			if (d % 4 < 2 && wf_retain_room(&rt, n, 0)) {
				for (size_t i = 0; i < n; i += 8) {
					uint64_t word = (rt.tail + i) * UINT64_C(0x9e3779b97f4a7c15);

					wf_retain_put(&rt, rt.tail + i, &word, 8);
				}
				rt.tail += n;
			} else if (d % 4 == 2 && nlent < 4 && rt.sent < rt.tail) {
				uint64_t to = rt.sent + 8 * (1 + (d >> 8) % ((rt.tail - rt.sent) / 8));

				lent[nlent].from = rt.sent;
				lent[nlent].n = wf_retain_lend(&rt, rt.sent, to, lent[nlent].iov);
				nlent++;
				rt.sent = to;
			} else if (d % 4 == 3 && (d >> 8) % 3 == 0 && nlent) {
				for (int k = 0; k < nlent; k++) {       /* what was lent is as it was */
					uint64_t at = lent[k].from;

					for (int i = 0; i < lent[k].n; i++)
						for (size_t b = 0; b < lent[k].iov[i].iov_len; b += 8, at += 8)
							CHECK(*(uint64_t *)(void *)((char *)lent[k].iov[i].iov_base + b) ==
							      at * UINT64_C(0x9e3779b97f4a7c15));
					wf_retain_back(&rt);
				}
				nlent = 0;
			} else if (rt.sent > rt.acked) {
				rt.acked += 8 * (1 + (d >> 8) % ((rt.sent - rt.acked) / 8));
				if (!(d >> 40 & 7))
					rt.sent = rt.acked;             /* once more */
			}
			CHECK(rt.size <= WF_RETAIN_MOST);
			for (uint64_t at = rt.acked; at < rt.tail; at += 8 * (1 + (rt.tail - rt.acked) / 64))
				CHECK(*(uint64_t *)(void *)wf_retain_head(&rt, at) == at * UINT64_C(0x9e3779b97f4a7c15));
		}
		wf_retain_fini(&rt);
	}
}

TEST(a_ring_that_is_full_says_so_and_an_empty_one_costs_nothing)
{
	struct wf_retain rt = { .most = WF_RETAIN_LEAST };

	CHECK(wf_retain_room(&rt, WF_RETAIN_LEAST - 64, 64));
	CHECK(!wf_retain_room(&rt, WF_RETAIN_LEAST - 56, 64));
	rt.tail = WF_RETAIN_LEAST - 64;
	CHECK(!wf_retain_room(&rt, 8, 64));
	CHECK(wf_retain_room(&rt, 8, 0));
	wf_retain_rest(&rt);
	CHECK(rt.mem);
	rt.acked = rt.sent = rt.tail;
	wf_retain_rest(&rt);
	CHECK(!rt.mem);
	CHECK(wf_retain_room(&rt, 8, 0));
	wf_retain_fini(&rt);
}

/* ---- numbers ---- */

TEST(a_number_that_is_over_or_made_up_names_nothing)
{
	struct wf_numbers t = { 0 };
	uint64_t number[100], again;
	int what;

	for (int i = 0; i < 100; i++)
		MUST_OK(wf_numbers_add(&t, &what, &number[i]));
	for (int i = 0; i < 100; i++) {
		CHECK(number[i] && wf_numbers_find(&t, number[i]) == &what);
		for (int k = 0; k < i; k++)
			CHECK(number[i] != number[k]);
	}
	wf_numbers_del(&t, number[7]);
	CHECK(!wf_numbers_find(&t, number[7]));
	MUST_OK(wf_numbers_add(&t, &what, &again));
	CHECK((uint32_t)again == (uint32_t)number[7] && again != number[7]);
	CHECK(!wf_numbers_find(&t, number[7]) && wf_numbers_find(&t, again));
	CHECK(!wf_numbers_find(&t, 0) && !wf_numbers_find(&t, UINT64_MAX) && !wf_numbers_find(&t, UINT64_C(1) << 32 | 4000));
	wf_numbers_fini(&t);
}

/* ---- which lane ---- */

TEST(a_chunk_goes_where_it_is_through_before_another_lane_would_have_all_that_is_left)
{
	struct wf_stripe_load lanes[2] = { { 0, 1000000000, WEFT_MS }, { 0, 100000000, WEFT_MS } };

	CHECK(wf_stripe_worth(lanes, 2, 0, 100000, 100000));
	CHECK(!wf_stripe_worth(lanes, 2, 1, 100000, 100000));   /* the last: a tenth of the time by the fast one */
	CHECK(wf_stripe_worth(lanes, 2, 1, 100000, 2000000));   /* the fast one is busy for longer */
	CHECK(wf_stripe_worth(lanes, 2, 0, 100000, 2000000));
	lanes[0].queued = 800000;
	CHECK(!wf_stripe_worth(lanes, 2, 1, 100000, 100000));
	lanes[0].queued = 1000000;                              /* now the slow one ends first */
	CHECK(wf_stripe_worth(lanes, 2, 1, 100000, 100000));
	CHECK(!wf_stripe_worth(lanes, 2, 0, 100000, 100000));
	lanes[1].rtt = 3 * WEFT_MS;
	CHECK(!wf_stripe_worth(lanes, 2, 1, 100000, 100000));
	lanes[1] = (struct wf_stripe_load){ 0, 0, 0 };          /* not measured: tried */
	CHECK(wf_stripe_worth(lanes, 2, 1, 100000, 100000));
	lanes[1] = lanes[0] = (struct wf_stripe_load){ 0, 1000000, WEFT_MS };
	CHECK(wf_stripe_worth(lanes, 2, 0, 100000, 8) || wf_stripe_worth(lanes, 2, 1, 100000, 8));
	lanes[1] = (struct wf_stripe_load){ 0, 1000, WEFT_MS }; /* however much is left, this is for ever */
	CHECK(!wf_stripe_worth(lanes, 2, 1, 100000, 50000000));
}

TEST_MAIN
