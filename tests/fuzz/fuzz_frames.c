/* fuzz_frames.c - records of another host's process that has the key and means no good: frames to src/peer.
 *
 *     input: records, each  u16 bytes of frames, u8 lane, u8 body (in units of 16 bytes), the frames
 *
 * Frames of a stream need a STREAM before them that says where they are, and that a MOVE: numbers that no search would guess. So a lane of 128 or more says that they are to be
 * put in front, as they have to be: for the control stream, or with 64 for that of messages.
 *
 * The process here answers as an honest one: it sends, receives, takes, refuses. Whatever comes, memory stays whole, a session that is over ends
 * every operation once, and nothing is left. The mutator knows the table of frames, so inputs with the shape of frames are common.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peer/remote.h"

#define SENDS 32
#define LATER 8                 /* of them after a record each */
#define LANDS 32

static struct wf_remote r;
static struct wf_lane *lanes[3];
static struct wf_rsend sends[SENDS];
static int nsends, sends_left;
static struct wf_landing lands[LANDS];
static bool land_used[LANDS];
static struct wf_held helds[LANDS];
static bool held_used[LANDS];
static unsigned char memory[1 << 20];
static weft_time now;

static int send_pieces(const struct wf_rsend *s, uint64_t at, struct iovec *iov, int max)
{
	(void)max;
	iov[0] = (struct iovec){ memory + at, (size_t)(s->len - at) };
	return 1;
}

static int land_pieces(const struct wf_landing *l, uint64_t at, struct iovec *iov, int max)
{
	(void)max;
	iov[0] = (struct iovec){ memory + at, (size_t)(l->len - at) };
	return 1;
}

static bool fits(const struct wf_rsend *s, const void *want, size_t len)
{
	return len && *(const unsigned char *)want == (unsigned char)s->tag;
}

static const struct wf_remote_ops ops = { .send_pieces = send_pieces, .land_pieces = land_pieces, .fits = fits };

static struct wf_landing *landing(uint64_t len)
{
	for (int i = 0; i < LANDS; i++)
		if (!land_used[i] && len <= sizeof(memory)) {
			land_used[i] = true;
			lands[i] = (struct wf_landing){ .len = len };
			return &lands[i];
		}
	return NULL;
}

static void unhold(uint64_t send)
{
	struct wf_held *h = wf_remote_held(&r, send);

	if (!h)
		return;
	wf_remote_release(&r, h);
	held_used[h - helds] = false;
}

static void announced(const struct wf_rmsg *m)
{
	struct wf_landing *l = m->flags & WF_WIRE_INVITED && lands[0].invited && m->token == lands[0].token ? &lands[0] : NULL;

	if (l && m->len <= l->len && !wf_remote_take_invited(&r, m->send, l, m->len))
		return;
	l = m->tag & 1 ? landing(m->len) : NULL;

	if (l) {
		if (wf_remote_take(&r, m->send, l))
			land_used[l - lands] = false;
		return;
	}
	for (int i = 0; i < LANDS; i++)
		if (!held_used[i] && !wf_remote_held(&r, m->send)) {
			held_used[i] = true;
			helds[i].send = m->send;
			wf_remote_hold(&r, &helds[i]);
			return;
		}
	wf_remote_answer(&r, m->send, -ESRCH);
}

static void act(const struct wf_act *a, struct wf_lane *lane)
{
	struct wf_rsend *s;
	struct wf_landing *l;

	switch (a->kind) {
	case WF_ACT_MSG:
		if (a->msg.len && ((const unsigned char *)a->msg.payload)[a->msg.len - 1] == 255)
			return;                         /* kept for ever */
		wf_remote_freed(&r, a->cost);
		break;
	case WF_ACT_BODY:
		l = landing(a->msg.len);
		wf_remote_body_into(&r, lane, l);
		wf_remote_freed(&r, a->cost);
		break;
	case WF_ACT_ANNOUNCE:
		announced(&a->msg);
		break;
	case WF_ACT_CANCEL:
		if (wf_remote_held(&r, a->number)) {
			unhold(a->number);
			wf_remote_answer(&r, a->number, -ECANCELED);
		} else {
			wf_remote_late(&r, a->number);
		}
		break;
	case WF_ACT_SEEK:
		s = wf_remote_seek_next(&r, a->to, a->context, NULL);
		if (s && a->want_len & 8)
			wf_remote_offer(&r, s, a->name, now);
		else
			wf_remote_sought(&r, a->to, a->context);
		break;
	case WF_ACT_SENT:
		if (a->send->user != &r)
			abort();
		a->send->user = NULL;                   /* once */
		sends_left--;
		break;
	case WF_ACT_LANDED:
		if (wf_landing_close(&r, a->landing, -ECANCELED))
			abort();                        /* nobody is in a slice here */
		land_used[a->landing - lands] = false;
		break;
	case WF_ACT_OPEN:
		wf_remote_open_failed(&r, a->slot, now);
		break;
	case WF_ACT_CLOSE:
		for (int i = 0; i < 3; i++)
			if (lanes[i] == a->lane)
				lanes[i] = NULL;
		wf_remote_lane_down(&r, a->lane, now);
		break;
	default:
		break;
	}
}

static void settle(void)
{
	static struct wf_acts acts;
	static struct wf_fill f;

	for (int round = 0; round < 1000; round++) {
		acts.n = 0;
		wf_remote_acts(&r, now, &acts);
		if (!acts.n)
			return;
		for (int i = 0; i < acts.n; i++)
			if (acts.a[i].kind != WF_ACT_WRITE)
				act(&acts.a[i], NULL);
			else
				while (wf_remote_fill(&r, acts.a[i].lane, &f, now))
					wf_remote_wrote(&r, acts.a[i].lane, now);
	}
	abort();
}

static void send_one(void)
{
	int i = nsends++;
	struct wf_rsend *s = &sends[i];

	*s = (struct wf_rsend){ .to = 1 + (uint32_t)i % 2, .from = 7, .len = (uint64_t)(i * i * 700), .user = &r, .tag = (uint64_t)i,
				.flags = i % 3 ? 0 : WF_SEND_SYNC, .prio = (int8_t)(i < SENDS - LATER ? i % 8 - 4 : 0) };
	if (wf_remote_send(&r, s, now) == 0)
		sends_left++;
	else
		s->user = NULL;
}

static void begin(void)
{
	struct wf_remote_conf conf = { .me = 1, .them = 2, .rails = 1, .cap = 4, .ops = &ops, .deadline = WEFT_S };

	struct wf_landing *l;

	now = WEFT_S;
	memset(land_used, 0, sizeof(land_used));
	memset(held_used, 0, sizeof(held_used));
	if (wf_remote_init(&r, &conf, now))
		abort();
	for (uint32_t i = 0; i < 3; i++)
		lanes[i] = wf_remote_lane_up(&r, i, 1, true, now);
	sends_left = nsends = 0;
	while (nsends < SENDS - LATER)
		send_one();
	l = landing(200000);
	if (wf_remote_invite(&r, l, 0, 1, 0, "", 1))
		abort();
	settle();
}

static void body(struct wf_lane *lane, uint32_t len)
{
	struct iovec iov[4];

	for (uint32_t done = 0; done < len;) {
		int n = wf_remote_place(&r, lane, iov, 4);
		uint32_t part = len - done;

		if (n < 0)
			abort();
		if (!n)
			break;
		if (part > iov[0].iov_len)
			part = (uint32_t)iov[0].iov_len;
		memset(iov[0].iov_base, 1, part);
		wf_remote_placed(&r, lane, part);
		done += part;
	}
	wf_remote_body(&r, lane, true, now);
}

/* False: the lane is to be closed. */
static bool record(struct wf_lane *lane, const uint8_t *bytes, uint32_t len, uint32_t body_len)
{
	static struct wf_acts acts;
	static const uint8_t body_bytes[1 << 20];
	struct wf_whole w = { .frames = bytes, .len = len, .body_len = body_len, .body = body_bytes };
	const unsigned char *where;
	struct wf_brief b;
	struct wf_brisk one;
	struct wf_row row;
	int rc;

	if (body_len && body_len <= sizeof(body_bytes) && len & 16 && (where = wf_remote_body_where(&w, &one)) != NULL && wf_remote_body_looked(&r, lane, &w, where, &b)) {
		struct wf_act a = { .kind = WF_ACT_MSG, .cost = b.cost };

		if (wf_wire_get_msg(where, &a.msg) || a.msg.len != one.len || one.len != body_len || a.msg.to != one.to || a.msg.context != one.context)
			abort();
		a.msg.payload = body_bytes;
		wf_remote_body_told(&r, lane, &b, body_len, now);
		act(&a, lane);
		return true;
	}
	if (!body_len && len & 16 && wf_remote_record_row(&r, lane, bytes, len, now, &row)) {
		for (struct wf_row_at at = wf_row_begin(&row); wf_row_more(&at);) {
			struct wf_act a = { .kind = WF_ACT_MSG };
			struct wf_rmsg m;

			if (!at.left && at.next[0] == WF_WIRE_MSG && wf_wire_get_msg(at.next, &m))
				abort();
			wf_row_next(&at);
			a.msg = wf_brisk_msg(&at.m);
			if ((const unsigned char *)a.msg.payload < row.first || (const unsigned char *)a.msg.payload + a.msg.len > row.end)
				abort();
			a.cost = at.m.len + WF_COST;
			act(&a, lane);
		}
		return true;
	}
	do {
		acts.n = 0;
		rc = 0;
		if (body_len || len & 8 || !wf_remote_record_brisk(&r, lane, &(struct wf_whole){ .frames = bytes, .len = len }, now, &acts, false))
			rc = wf_remote_record(&r, lane, bytes, len, body_len, now, &acts);
		for (int i = 0; i < acts.n; i++)
			act(&acts.a[i], lane);
	} while (rc == 1);
	if (rc < 0)
		return false;
	if (body_len)
		body(lane, body_len);
	return true;
}

/* What says whose the frames behind it are, as the next of that stream: bytes. */
static uint32_t introduced(uint8_t *to, unsigned id, const struct wf_lane *lane)
{
	const struct wf_in *in = &r.in[id];
	bool moves = in->lane != lane;
	uint32_t epoch = in->epoch + moves;

	if (moves)
		wf_wire_put(to, WF_WIRE_MOVE, (uint8_t)id, epoch, 0);
	wf_wire_put(to + (moves ? 16 : 0), WF_WIRE_STREAM, (uint8_t)id, epoch, in->next);
	return moves ? 32 : 16;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	begin();
	while (n >= 4) {
		uint32_t len = wf_get16(data), how = data[2], which = how % 3, body_len = data[3] * 16u, front = 0;
		uint8_t before[32], *copy;

		data += 4;
		n -= 4;
		if (len > n)
			len = (uint32_t)n;
		if (!lanes[which]) {
			lanes[which] = wf_remote_lane_up(&r, which, r.slots[which].gen + 1, false, now);
			if (!lanes[which])
				break;
		}
		if (how >= 128)
			front = introduced(before, how & 64 ? WF_STREAM_PLAIN : 0, lanes[which]);
		copy = malloc(front + len ? front + len : 1);           /* a byte too far is seen */
		memcpy(copy, before, front);
		memcpy(copy + front, data, len);
		if (!record(lanes[which], copy, front + len, body_len) && lanes[which]) {
			wf_remote_lane_down(&r, lanes[which], now);
			lanes[which] = NULL;
		}
		settle();
		free(copy);
		data += len;
		n -= len;
		if (nsends < SENDS)
			send_one();
		now += 3 * WEFT_MS;
		settle();
	}
	wf_remote_gone(&r, -ECONNRESET, now);
	settle();
	if (sends_left || r.live || r.sends.used || r.tokens.used || r.ndests != r.nclogs)  /* a port that is clogged is so until it says otherwise */
		abort();
	wf_remote_fini(&r);
	return 0;
}

/* ---- inputs that look like frames ---- */

size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t most) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed)
{
	const struct wf_wire_shape *shape = &wf_wire_shapes[seed >> 3 & 127];
	size_t len = shape->fixed + (shape->most > shape->fixed ? seed >> 16 & 63 : 0), padded = WF_WIRE_PAD(len);

	if (seed & 3 || !shape->name || n + 4 + padded > most)
		return LLVMFuzzerMutate(data, n, most);
	/* One more record, of that frame. */
	data[n + 2] = (uint8_t)(shape->class == WF_WIRE_LANE ? 0 : shape->class == WF_WIRE_DATA ? 128 + 64 : 128);
	data[n + 2] += (uint8_t)(seed >> 10 & 3);
	data[n + 3] = (uint8_t)(seed >> 12 & 4);
	wf_put16(data + n, (uint16_t)padded);
	memset(data + n + 4, 0, padded);
	wf_wire_head(data + n + 4, shape->type, (uint8_t)(seed >> 24 & (seed & 4 ? 255 : shape->flags)), len);
	for (size_t i = shape->zero && !(seed & 4) ? 8 : 4; i + 4 <= len; i += 4)
		data[n + 4 + i] = (uint8_t)(seed >> (i & 15)) & 3;
	return n + 4 + padded;
}
