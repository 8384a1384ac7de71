/* test_peer_brisk.c - the short ways (peer/brisk.c) do what the others do: the same bytes, the same acts, the same state; or nothing. */
#include "brisk.h"

#include "base/bytes.h"
#include "peer/brief.h"

enum { LONGEST = 600 };         /* bytes of a short message here */

static bool brisk(struct wf_remote *r, size_t len)
{
	struct wf_brisk b = mail(len);

	return wf_remote_brisk(r, &b);
}

/* And in a record at once. */
static size_t brisk_flat(struct wf_remote *r, struct wf_lane *lane, size_t len, unsigned char *to, size_t room, size_t *ret_heads, bool *ret_more)
{
	struct wf_brisk b = mail(len);

	return wf_remote_brisk_flat(r, lane, &b, to, room, WEFT_S, ret_heads, ret_more);
}

static int plain(struct wf_remote *r, size_t len)
{
	struct wf_rsend s = { .to = 7, .from = 9, .index = 11, .tag = 0x123456789, .context = len % 2 ? 0x55 : 0, .len = len, .flags = WF_SEND_NOW };

	return wf_remote_send(r, &s, WEFT_S);
}

TEST(a_short_message_has_the_same_bytes_by_either_way)
{
	for (size_t len = 0; len <= LONGEST; len++) {
		unsigned char a[ROOM], b[ROOM], c[ROOM], d[ROOM];
		struct wf_lane *la[3], *lb[3], *lc[3], *ld[3];
		struct wf_remote ra, rb, rc, rd;
		size_t na, nb, nc, nd;
		bool more, most;
		size_t heads, high;

		warm(&ra, la);
		warm(&rb, lb);
		warm(&rc, lc);
		warm(&rd, ld);
		CHECK_EQ(plain(&ra, len), WEFT_DONE);
		CHECK(brisk(&rb, len));
		CHECK_EQ(plain(&rc, len), WEFT_DONE);
		na = general(&ra, la[1], a);
		nb = general(&rb, lb[1], b);
		nc = wf_remote_fill_flat(&rc, lc[1], c, sizeof(c), WEFT_S, &heads, &more);
		nd = brisk_flat(&rd, ld[1], len, d, sizeof(d), &high, &most);
		CHECK(na == nb && na == nc && !more && na == nd && !most && high == heads);
		CHECK(memcmp(a, b, na) == 0 && memcmp(a, c, na) == 0 && memcmp(a, d, na) == 0);
		alike(&rc, lc[1], &rd, ld[1]);
		CHECK(ra.used == rb.used && ra.unacked == rb.unacked && ra.out[WF_STREAM_PLAIN]->rt.sent == rc.out[WF_STREAM_PLAIN]->rt.sent);
		CHECK_EQ(wf_remote_fill_flat(&rc, lc[1], c, sizeof(c), WEFT_S, &heads, &more), 0);
		wf_remote_fini(&ra);
		wf_remote_fini(&rb);
		wf_remote_fini(&rc);
		wf_remote_fini(&rd);
	}
}

/* The ring that keeps them is gone round several times, and ends within messages, behind their heads and in the middle of them. */
TEST(a_short_message_has_the_same_bytes_round_the_end_of_the_ring)
{
	static unsigned char a[ROOM], b[ROOM], c[ROOM], d[ROOM];
	struct wf_lane *la[3], *lb[3], *lc[3], *ld[3];
	struct wf_remote ra, rb, rc, rd;
	uint64_t rounds = 0, refused = 0;

	warm(&ra, la);
	warm(&rb, lb);
	warm(&rc, lc);
	warm(&rd, ld);
	ra.limit = rb.limit = rc.limit = rd.limit = UINT64_MAX / 2;     /* credit for all */
	for (size_t i = 0; i < 4096; i++) {
		size_t len = i * 13 % (LONGEST + 1), na, nb, nc, nd, heads = 0, high = 0, head;
		uint32_t size = ra.out[WF_STREAM_PLAIN]->rt.size;
		bool more;

		rounds += (ra.out[WF_STREAM_PLAIN]->rt.tail ^ (ra.out[WF_STREAM_PLAIN]->rt.tail + len)) / size > 0;
		CHECK(brisk(&ra, len));
		CHECK_EQ(plain(&rb, len), WEFT_DONE);
		CHECK(brisk(&rc, len));
		na = general(&ra, la[1], a);
		nb = general(&rb, lb[1], b);
		nc = wf_remote_fill_flat(&rc, lc[1], c, sizeof(c), WEFT_S, &heads, &more);
		nd = brisk_flat(&rd, ld[1], len, d, sizeof(d), &high, &more);
		if (!nd) {              /* it goes round the end */
			refused++;
			CHECK(brisk(&rd, len));
			nd = wf_remote_fill_flat(&rd, ld[1], d, sizeof(d), WEFT_S, &high, &more);
		}
		CHECK(na == nb && na == nc && na == nd && heads == high && !more);
		CHECK(memcmp(a, b, na) == 0 && memcmp(a, c, na) == 0 && memcmp(a, d, na) == 0);
		alike(&rc, lc[1], &rd, ld[1]);
		head = nc - WF_WIRE_PAD(len);
		CHECK(heads == nc || (heads == head && len >= 128));
		CHECK(heads < nc || len < 512);
		acknowledge(&ra, la[1]);
		acknowledge(&rb, lb[1]);
		acknowledge(&rc, lc[1]);
		acknowledge(&rd, ld[1]);
	}
	CHECK(rounds > 20);
	CHECK(refused > 20 && refused < 2 * rounds);
	wf_remote_fini(&ra);
	wf_remote_fini(&rb);
	wf_remote_fini(&rc);
	wf_remote_fini(&rd);
}

TEST(what_is_in_the_way_is_left_to_the_general_way)
{
	unsigned char bytes[ROOM];
	struct wf_lane *lane[3];
	struct wf_remote r;
	bool more;
	size_t heads;

	alone(&r, lane);
	CHECK(!brisk(&r, 8));                   /* nothing has gone that way yet */
	wf_remote_fini(&r);
	warm(&r, lane);
	while (brisk(&r, 64) || plain(&r, 64) == WEFT_DONE)
		;
	CHECK(!brisk(&r, 64));                  /* no credit */
	CHECK_EQ(wf_remote_fill_flat(&r, lane[1], bytes, 64, WEFT_S, &heads, &more), 0);        /* no room */
	lane[1]->ping_due = true;
	CHECK_EQ(wf_remote_fill_flat(&r, lane[1], bytes, sizeof(bytes), WEFT_S, &heads, &more), 0);
	wf_remote_gone(&r, -ECONNRESET, WEFT_S);
	CHECK(!brisk(&r, 8));
	wf_remote_fini(&r);
}

/* A record as its sender writes it: an acknowledgement, and @n messages. */
static uint32_t record(const struct wf_remote *r, unsigned char *to, int n)
{
	struct wf_rmsg m = { .type = WF_WIRE_MSG, .to = 3, .from = 4, .index = 5, .tag = 6, .context = 0x77 };
	uint32_t len = 32;

	wf_wire_put(to, WF_WIRE_ACK, WF_STREAM_PLAIN, r->out[WF_STREAM_PLAIN]->epoch, r->out[WF_STREAM_PLAIN]->rt.sent);
	wf_wire_put(to + 16, WF_WIRE_STREAM, WF_STREAM_PLAIN, r->in[WF_STREAM_PLAIN].epoch, r->in[WF_STREAM_PLAIN].next);
	for (int i = 0; i < n; i++) {
		size_t all;

		m.flags = i % 2 ? WF_WIRE_CONTEXT : 0;
		all = wf_wire_put_msg(to + len, &m, (size_t)i);

		memset(to + len + all, i, WF_WIRE_PAD((size_t)i));
		len += (uint32_t)WF_WIRE_PAD(all + (size_t)i);
	}
	return len;
}

/* What is in the way of a record of its own, one thing after the other; each is put back. */
TEST(what_else_waits_goes_first)
{
	static unsigned char bytes[ROOM];
	struct wf_rsend other = { .len = 1 };
	struct wf_lane *lane[3], *l;
	struct wf_remote r, before;
	struct wf_out *out, kept, control;
	size_t heads;
	bool more;

#define IN_THE_WAY(set, back) do { \
	set; \
	before = r; \
	kept = *out; \
	CHECK_EQ(brisk_flat(&r, l, 8, bytes, sizeof(bytes), &heads, &more), 0); \
	CHECK(memcmp(&before, &r, sizeof(r)) == 0 && memcmp(&kept, out, sizeof(kept)) == 0); \
	back; \
} while (0)
	warm(&r, lane);
	l = lane[1];
	out = r.out[WF_STREAM_PLAIN];
	IN_ITS_WAY(IN_THE_WAY);
	control = (struct wf_out){ .lane = l };
	r.out[0] = &control;
	IN_THE_WAY(r.done = 5, r.done = 0);     /* ENDED is to leave there itself */
	control.lane = lane[0];
	r.done = 5;
	CHECK(brisk_flat(&r, l, 8, bytes, sizeof(bytes), &heads, &more) == 64 && bytes[0] == WF_WIRE_DONE && bytes[16] == WF_WIRE_STREAM && !r.done);
	r.out[0] = NULL;
	IN_THE_WAY(r.used = r.limit, r.used = 0);
	CHECK_EQ(brisk_flat(&r, l, 8, bytes, 72, &heads, &more), 0);    /* no room for what may come with it */
	CHECK(brisk_flat(&r, l, 8, bytes, 80, &heads, &more) > 0);
	wf_remote_fini(&r);
#undef IN_THE_WAY
}

/* They would be a fourth of every record of a talk by short messages. */
TEST(acknowledgements_of_little_ride_along_when_they_are_owed_for_a_while)
{
	static unsigned char bytes[ROOM];
	struct wf_brisk b = mail(8);
	struct wf_lane *lane[3];
	struct wf_remote r;
	struct wf_row row;
	uint32_t len;
	size_t heads;
	bool more;

	warm(&r, lane);
	for (int i = 0; i < 4; i++) {
		weft_time came = (2 + i) * WEFT_S, left;

		len = record(&r, bytes, 1);
		CHECK(wf_remote_record_row(&r, lane[1], bytes, len, came, &row));
		left = i == 1 ? lane[1]->ack_at - WEFT_MS / 2 : came + WEFT_MS / 2;
		CHECK(lane[1]->acks && lane[1]->ack_at > left);
		lane[1]->bodies = i == 2;               /* its sender keeps much for it */
		lane[1]->ack_now = i == 3;
		CHECK(wf_remote_brisk_flat(&r, lane[1], &b, bytes, sizeof(bytes), left, &heads, &more) > 0);
		CHECK_EQ(bytes[0], i ? WF_WIRE_ACK : WF_WIRE_STREAM);
		CHECK_EQ(!lane[1]->acks, i > 0);
		CHECK_EQ(!lane[1]->ack_at, i > 0);
		acknowledge(&r, lane[1]);
		lane[1]->acks = 0;              /* as if they had gone */
		lane[1]->ack_at = 0;
	}
	wf_remote_fini(&r);
}

static void same(const struct wf_remote *a, const struct wf_acts *aa, const struct wf_remote *b, const struct wf_acts *ab)
{
	CHECK_EQ(aa->n, ab->n);
	for (int i = 0; i < aa->n && i < ab->n; i++) {
		const struct wf_rmsg *x = &aa->a[i].msg, *y = &ab->a[i].msg;

		CHECK_EQ(aa->a[i].kind, ab->a[i].kind);
		if (aa->a[i].kind != WF_ACT_MSG)
			continue;
		CHECK(x->to == y->to && x->from == y->from && x->index == y->index && x->tag == y->tag && x->len == y->len && x->flags == y->flags);
		CHECK(x->payload == y->payload && x->context == y->context && x->send == y->send && x->head_len == y->head_len && aa->a[i].cost == ab->a[i].cost);
	}
	CHECK(a->in[WF_STREAM_PLAIN].next == b->in[WF_STREAM_PLAIN].next && a->arrived == b->arrived && a->heard == b->heard && a->err == b->err);
	CHECK(a->unacked == b->unacked && a->out[WF_STREAM_PLAIN]->rt.acked == b->out[WF_STREAM_PLAIN]->rt.acked && a->wake == b->wake);
}

/* A row's messages, as acts. */
static void row_acts(const struct wf_row *row, struct wf_acts *ret_acts)
{
	uint64_t cost = 0;

	ret_acts->n = 0;
	for (struct wf_row_at at = wf_row_begin(row); wf_row_more(&at) && ret_acts->n < WF_ACTS;) {
		struct wf_act *a = &ret_acts->a[ret_acts->n++];

		wf_row_next(&at);
		*a = (struct wf_act){ .kind = WF_ACT_MSG, .msg = wf_brisk_msg(&at.m), .cost = at.m.len + WF_COST };
		cost += a->cost;
	}
	CHECK_EQ(cost, row->cost);
}

/* The same ones come where those that are alike are taken several at once. */
static void row_alike(const struct wf_row *row, const struct wf_acts *acts)
{
	for (uint32_t most = 1; most <= 5; most++) {
		int i = 0;

		for (struct wf_row_at at = wf_row_begin(row); wf_row_more(&at);) {
			const unsigned char *first;
			uint32_t n;

			wf_row_next(&at);
			first = at.m.payload;
			n = wf_row_alike(&at, most);
			CHECK(n >= 1 && n <= most && (n == most || !at.left));
			for (uint32_t k = 0; k < n && i < acts->n; k++, i++) {
				const struct wf_rmsg *m = &acts->a[i].msg;

				CHECK(m->payload == first + k * at.m.len && m->len == at.m.len && m->to == at.m.to && m->from == at.m.from);
				CHECK(m->index == at.m.index && m->tag == at.m.tag && m->context == at.m.context);
			}
		}
		CHECK_EQ(i, acts->n);
	}
}

/* One record to two remotes that are alike, to one by the short way if that takes it. True: it did. */
static bool both(const unsigned char *bytes, uint32_t len)
{
	struct wf_acts aa = { 0 }, ab = { 0 };
	struct wf_lane *la[3], *lb[3];
	struct wf_remote a, b;
	struct wf_row row;
	bool taken, a_row;
	int rc;

	warm(&a, la);
	warm(&b, lb);
	rc = wf_remote_record(&a, la[1], bytes, len, 0, 2 * WEFT_S, &aa);
	taken = wf_remote_record_brisk(&b, lb[1], &(struct wf_whole){ .frames = bytes, .len = len }, 2 * WEFT_S, &ab, false);
	if (taken)
		CHECK_OK(rc);
	else
		CHECK_EQ(wf_remote_record(&b, lb[1], bytes, len, 0, 2 * WEFT_S, &ab), rc);
	same(&a, &aa, &b, &ab);
	wf_remote_fini(&b);
	warm(&b, lb);
	a_row = wf_remote_record_row(&b, lb[1], bytes, len, 2 * WEFT_S, &row);
	CHECK(a_row || !taken);
	CHECK(rc >= 0 || !a_row);
	if (a_row && rc == 0) {
		row_acts(&row, &ab);
		same(&a, &aa, &b, &ab);
		row_alike(&row, &ab);
	}
	if (!a_row) {
		ab.n = 0;
		CHECK_EQ(wf_remote_record(&b, lb[1], bytes, len, 0, 2 * WEFT_S, &ab), rc);
		same(&a, &aa, &b, &ab);
	}
	wf_remote_fini(&a);
	wf_remote_fini(&b);
	return taken;
}

TEST(a_record_of_short_messages_is_read_the_same_by_either_way)
{
	static unsigned char bytes[64 << 10];
	struct wf_lane *lane[3];
	struct wf_remote r;

	warm(&r, lane);
	for (int n = 1; n <= WF_ACTS; n++)
		CHECK(both(bytes, record(&r, bytes, n)));
	CHECK(!both(bytes, record(&r, bytes, WF_ACTS + 1)));
	CHECK(both(bytes + 16, record(&r, bytes, 3) - 16));     /* without the acknowledgement */
	wf_remote_fini(&r);
}

/* At the end of a record of @len bytes: @n messages of @each bytes in one frame. */
static uint32_t add_row(unsigned char *bytes, uint32_t len, uint32_t n, size_t each, bool context)
{
	struct wf_rmsg m = { .type = WF_WIRE_MSG, .to = 3, .from = 4, .index = 5, .tag = 6, .context = 0x77, .flags = context ? WF_WIRE_CONTEXT : 0 };
	size_t head = wf_wire_put_msg(bytes + len, &m, 0), all = head + n * each;

	wf_wire_head(bytes + len, WF_WIRE_ROW, (uint8_t)(m.flags | each / 8 << WF_WIRE_ROW_SHIFT), all);
	for (size_t i = 0; i < n * each; i++)
		bytes[len + head + i] = (unsigned char)(i * 7);
	return len + (uint32_t)WF_WIRE_PAD(all);
}

TEST(rows_are_read_the_same_by_either_way)
{
	static unsigned char bytes[64 << 10];
	struct wf_lane *lane[3];
	struct wf_remote r;

	warm(&r, lane);
	for (uint32_t n = 2; n <= WF_WIRE_ROW_MOST; n++)
		for (size_t each = 8; each <= WF_WIRE_ROW_EACH; each += 8) {
			uint32_t len = add_row(bytes, record(&r, bytes, 0), n, each, n % 2);

			both(bytes, len);
			if (n < 20) {           /* between others, and behind one another */
				len = add_row(bytes, record(&r, bytes, 2), n, each, n % 2);
				both(bytes, add_row(bytes, len, 3, 16, true));
			}
		}
	/* Ones that are wrong: of one message, of too many, of none, of nothing, with a rest. */
	for (int i = 0; i < 5; i++) {
		uint32_t len = record(&r, bytes, 0), end = add_row(bytes, len, i == 0 ? 1 : i == 1 ? WF_WIRE_ROW_MOST + 1 : 4, 8, false);
		struct wf_acts acts = { 0 };
		struct wf_row row;

		if (i == 2)
			wf_wire_head(bytes + len, WF_WIRE_ROW, 1 << WF_WIRE_ROW_SHIFT, 24);
		if (i == 3)
			wf_wire_head(bytes + len, WF_WIRE_ROW, 0, 56);
		if (i == 4)
			wf_wire_head(bytes + len, WF_WIRE_ROW, 3 << WF_WIRE_ROW_SHIFT, 56);
		both(bytes, end);
		CHECK(!wf_remote_record_row(&r, lane[1], bytes, end, 2 * WEFT_S, &row));
		CHECK_EQ(wf_remote_record(&r, lane[1], bytes, end, 0, 2 * WEFT_S, &acts), -EPROTO);
		wf_remote_fini(&r);
		warm(&r, lane);
	}
	/* More than there is room for among the acts: in two goes. */
	{
		uint32_t len = add_row(bytes, record(&r, bytes, 3), WF_WIRE_ROW_MOST, 8, false);
		struct wf_acts acts = { 0 };

		CHECK_EQ(wf_remote_record(&r, lane[1], bytes, len, 0, 2 * WEFT_S, &acts), 1);
		CHECK_EQ(acts.n, 3);
		acts.n = 0;
		CHECK_EQ(wf_remote_record(&r, lane[1], bytes, len, 0, 2 * WEFT_S, &acts), 0);
		CHECK_EQ(acts.n, WF_WIRE_ROW_MOST);
	}
	wf_remote_fini(&r);
}

/* The messages in @n bytes of frames behind a STREAM, each of which has the next number: how many frames they are. */
static int numbered(const unsigned char *bytes, size_t n, size_t each, uint64_t *number)
{
	struct wf_row row = { .first = bytes + 16, .end = bytes + n };
	int frames = 0;

	CHECK_EQ(bytes[0], WF_WIRE_STREAM);
	for (struct wf_row_at at = wf_row_begin(&row); wf_row_more(&at);) {
		frames += !at.left;
		wf_row_next(&at);
		CHECK_EQ(at.m.len, each);
		CHECK(at.m.to == 7 && at.m.from == 9 && at.m.index == 11 && at.m.tag == 5);
		for (size_t i = 0; i < each; i += 8)
			CHECK_EQ(wf_get64((const unsigned char *)at.m.payload + i), *number);
		++*number;
	}
	return frames;
}

static bool put_number(struct wf_remote *r, size_t each, uint64_t number, uint64_t context)
{
	unsigned char payload[256];
	struct wf_brisk b = { .to = 7, .from = 9, .index = 11, .tag = 5, .context = context, .payload = payload, .len = each };

	for (size_t i = 0; i < each; i += 8)
		wf_put64(payload + i, number);
	return wf_remote_brisk(r, &b);
}

/* Also where the ring that keeps them ends within them. */
TEST(messages_that_wait_and_are_alike_share_a_frame)
{
	static unsigned char bytes[ROOM * 8];
	uint64_t put = 0, got = 0, rounds = 0;
	struct wf_lane *lane[3];
	struct wf_remote r;

	warm(&r, lane);
	r.limit = UINT64_MAX / 2;
	for (size_t i = 0; i < 3000; i++) {
		size_t each = 8 + i % 16 * 8, n = 1 + i % 70, len;
		const struct wf_retain *rt = &r.out[WF_STREAM_PLAIN]->rt;
		uint64_t used = r.used, from = rt->tail, context = i % 2 ? 0x55 : 0;
		int frames;

		for (size_t k = 0; k < n; k++)
			CHECK(put_number(&r, each, put++, context));
		CHECK_EQ(r.used - used, n * (each + WF_COST));
		rounds += (from ^ rt->tail) / rt->size > 0;
		for (len = general(&r, lane[1], bytes); len; len = general(&r, lane[1], bytes)) {
			frames = numbered(bytes, len, each, &got);
			CHECK(frames <= 5 || each > WF_WIRE_ROW_EACH);
			CHECK((from ^ rt->tail) / rt->size || each > WF_WIRE_ROW_EACH || frames == 1 + (n > WF_WIRE_ROW_MOST));
		}
		CHECK_EQ(got, put);
		acknowledge(&r, lane[1]);
	}
	CHECK(rounds > 50);
	wf_remote_fini(&r);
}

/* Of @n that follow one as many as are let, from @number on: how many joined. */
static size_t join_numbers(struct wf_remote *r, size_t each, size_t n, uint64_t number)
{
	unsigned char *place = NULL;
	uint32_t left = wf_row_lends(r, &place);

	if (n > left)
		n = left;
	for (size_t k = 0; k < n; k++, place += each)
		for (size_t at = 0; at < each; at += 8)
			wf_put64(place + at, number + k);
	if (n)
		wf_row_has_joined(r, (uint32_t)n);
	return n;
}

TEST(those_that_join_without_the_remote_are_as_if_it_had_put_them)
{
	static unsigned char bytes[2][ROOM * 8];
	uint64_t number = 0, joined = 0;
	struct wf_lane *la[3], *lb[3];
	struct wf_remote ra, rb;

	warm(&ra, la);
	warm(&rb, lb);
	for (size_t i = 0; i < 3000; i++) {
		size_t each = 8 + i % 20 * 8, n = 1 + i % 70, len;
		uint64_t context = i % 2 ? 0x55 : 0, first = number;

		ra.limit = rb.limit = ra.used + (i % 5 ? UINT64_MAX / 4 : n * (each + WF_COST));        /* with not a byte more than it takes */
		for (size_t k = 0; k < n; k++)
			CHECK(put_number(&ra, each, first + k, context));
		while (number < first + n) {
			size_t rest;

			CHECK(put_number(&rb, each, number++, context));
			rest = first + n - number;
			rest = join_numbers(&rb, each, rest < i % 11 ? rest : i % 11, number);
			number += rest;
			joined += rest;
		}
		alike(&ra, la[1], &rb, lb[1]);
		for (len = general(&ra, la[1], bytes[0]); len; len = general(&ra, la[1], bytes[0])) {
			CHECK_EQ(general(&rb, lb[1], bytes[1]), len);
			CHECK_EQ(memcmp(bytes[0], bytes[1], len), 0);
		}
		acknowledge(&ra, la[1]);
		acknowledge(&rb, lb[1]);
	}
	CHECK(joined > number / 2);
	wf_remote_fini(&ra);
	wf_remote_fini(&rb);
}

TEST(nothing_is_lent_where_a_message_would_not_join)
{
	static unsigned char bytes[ROOM];
	struct wf_rsend other = { .len = 1 };
	unsigned char *place = NULL;
	struct wf_lane *lane[3];
	struct wf_remote r;
	struct wf_retain *rt;
	struct wf_out *out;
	size_t heads;
	bool more;

	warm(&r, lane);
	out = r.out[WF_STREAM_PLAIN];
	rt = &out->rt;
	CHECK_EQ(wf_row_lends(&r, &place), 0);
	CHECK(put_number(&r, 8, 1, 0));
	CHECK(wf_row_lends(&r, &place) > 50 && place == wf_retain_head(rt, rt->tail));
#define NOTHING(set, back) do { \
	set; \
	CHECK_EQ(wf_row_lends(&r, &place), 0); \
	back; \
	CHECK(wf_row_lends(&r, &place) > 50); \
} while (0)
	NOTHING(rt->lent = 1, rt->lent = 0);
	NOTHING(r.done_at = 5, r.done_at = 0);
	NOTHING(r.err = -ECONNRESET, r.err = 0);
	NOTHING(r.closing = true, r.closing = false);
	NOTHING(r.ndests++, r.ndests--);
	NOTHING(r.ninvites++, r.ninvites--);
	NOTHING(wf_list_add(&out->waiting, &other.node), wf_list_del(&other.node));
	NOTHING(rt->tail += 8, rt->tail -= 8);
#undef NOTHING
	r.limit = r.used + 3 * (8 + WF_COST) + 1;
	CHECK_EQ(wf_row_lends(&r, &place), 3);
	r.limit = r.used;
	CHECK_EQ(wf_row_lends(&r, &place), 0);
	r.limit = UINT64_MAX / 2;
	CHECK(wf_remote_fill_flat(&r, lane[1], bytes, sizeof(bytes), WEFT_S, &heads, &more) > 0);
	CHECK_EQ(wf_row_lends(&r, &place), 0);          /* it has left */
	CHECK(put_number(&r, 12, 1, 0));
	CHECK_EQ(wf_row_lends(&r, &place), 0);          /* of no whole words */
	wf_remote_fini(&r);
}

TEST(a_message_joins_only_its_like_and_only_what_has_not_left)
{
	static unsigned char bytes[ROOM];
	struct wf_lane *lane[3];
	struct wf_remote r;
	struct wf_retain *rt;
	struct wf_brisk b;
	bool more;
	size_t heads;

	warm(&r, lane);
	rt = &r.out[WF_STREAM_PLAIN]->rt;
#define GROWS(by) do { \
	uint64_t tail_ = rt->tail; \
	CHECK(wf_remote_brisk(&r, &b)); \
	CHECK_EQ(rt->tail - tail_, by); \
} while (0)
	b = mail(8);
	GROWS(32);
	GROWS(8);
	b.tag++;
	GROWS(32);
	GROWS(8);
	b.to++;
	GROWS(32);
	b.from++;
	GROWS(32);
	b.index++;
	GROWS(32);
	b.context = 1;
	GROWS(40);
	b.len = 16;
	GROWS(48);
	GROWS(16);
	b.len = 12;
	GROWS(48);                              /* of no whole words: never */
	GROWS(48);
	b.len = 0;
	GROWS(32);
	GROWS(32);
	b.len = WF_WIRE_ROW_EACH;
	GROWS(32 + WF_WIRE_ROW_EACH);
	GROWS(WF_WIRE_ROW_EACH);
	b.len += 8;
	GROWS(32 + b.len);
	GROWS(32 + b.len);
	b.len = 8;
	GROWS(40);
	rt->lent = 1;                           /* a lane writes from there */
	rt->lent_low = rt->tail;
	GROWS(40);
	rt->lent = 0;
	GROWS(8);
	CHECK(wf_remote_fill_flat(&r, lane[1], bytes, sizeof(bytes), WEFT_S, &heads, &more) > 0);
	GROWS(40);                              /* that has left */
	GROWS(8);
#undef GROWS
	wf_remote_fini(&r);
}

TEST(a_record_that_is_wrong_anywhere_does_the_same_by_either_way)
{
	static unsigned char bytes[ROOM];
	struct wf_lane *lane[3];
	struct wf_remote r;
	uint32_t len;

	warm(&r, lane);
	len = add_row(bytes, record(&r, bytes, 4), 3, 16, true);
	for (uint32_t cut = 0; cut < len; cut += 8)
		both(bytes, cut);
	for (uint32_t at = 0; at < len; at++)
		for (int bit = 0; bit < 8; bit++) {
			bytes[at] ^= (unsigned char)(1 << bit);
			both(bytes, len);
			bytes[at] ^= (unsigned char)(1 << bit);
		}
	wf_remote_fini(&r);
}

/* A record whose message has its payload, of @body bytes, behind it. */
static uint32_t long_record(const struct wf_remote *r, unsigned char *to, uint64_t body)
{
	struct wf_rmsg m = { .type = WF_WIRE_MSG, .to = 3, .from = 4, .index = 5, .tag = 6, .send = 1, .len = body, .flags = WF_WIRE_BODY | WF_WIRE_LENGTH | WF_WIRE_SEND };

	wf_wire_put(to, WF_WIRE_STREAM, WF_STREAM_PLAIN, r->in[WF_STREAM_PLAIN].epoch, r->in[WF_STREAM_PLAIN].next);
	return 16 + (uint32_t)WF_WIRE_PAD(wf_wire_put_msg(to + 16, &m, 0));
}

TEST(a_long_message_is_acknowledged_by_its_answer_or_soon)
{
	static unsigned char bytes[ROOM], body[128 << 10];
	enum { ACK_SOON = 20000 };              /* ns */
	struct wf_acts acts = { 0 };
	struct wf_lane *lane[3];
	struct wf_remote r;
	bool more;
	size_t heads;

	warm(&r, lane);
	r.promised = 1 << 20;           /* it may send as much */
	for (int answered = 0; answered < 2; answered++) {
		weft_time now = (2 + answered) * WEFT_S;
		struct wf_whole w = { .frames = bytes, .len = long_record(&r, bytes, sizeof(body)), .body = body, .body_len = sizeof(body) };

		CHECK(wf_remote_record_brisk(&r, lane[1], &w, now, &acts, false));
		CHECK(acts.n == 1 && acts.a[0].msg.len == sizeof(body));
		CHECK(!lane[1]->ack_now && r.wake <= now + ACK_SOON);
		if (answered) {
			CHECK(brisk(&r, 8));
			CHECK(wf_remote_fill_flat(&r, lane[1], bytes, sizeof(bytes), now, &heads, &more) > 0);
			CHECK_EQ(bytes[0], WF_WIRE_ACK);
			CHECK(!lane[1]->acks && !lane[1]->ack_at);
		} else {
			acts.n = 0;
			wf_remote_acts(&r, now + ACK_SOON, &acts);
			CHECK(acts.n == 1 && acts.a[0].kind == WF_ACT_WRITE && acts.a[0].lane == lane[1]);
			CHECK_EQ(wf_remote_fill(&r, lane[1], &(struct wf_fill){ .send = NULL }, now), 1);
			wf_remote_wrote(&r, lane[1], now);
			CHECK(!lane[1]->acks && !lane[1]->ack_at);
		}
	}
	wf_remote_fini(&r);
}

TEST_MAIN
