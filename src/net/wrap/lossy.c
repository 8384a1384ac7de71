/* lossy.c - the lossy wrapper: a bad network, the same for the same seed and the same calls.
 *
 * Stream lanes: bytes come and go in small parts, sends find no room, polls find nothing, and a lane breaks at any byte, in either direction,
 * in the middle of a need too. Message lanes: frames get lost, come twice, late, or with a bit flipped.
 *
 * Options, all lossy.: seed; per mille: short (a send or what came is cut), again (a send finds no room), stall (a poll finds
 * nothing), drop, double, swap, corrupt (of frames); break: bytes after which a stream lane breaks, on average; 0: never.
 *
 * Threads: it does not claim WEFT_DRIVER_THREADS, so all its calls come one at a time, and it needs no lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "net/wrap/wrap.h"

#define PIECES 64               /* of a send that is cut */
#define LATE 100                /* polls that find nothing before a late frame comes by itself */

struct lossy_rail {
	struct wf_wrap_rail w;
	uint64_t random;
	uint64_t cut, again, stall, drop, twice, swap, corrupt, broken;
	struct wf_node owed;            /* lanes to be told writable, or that are to break */
	struct weft_room *spare;        /* kept for frames that come twice */
	struct weft_room *late;         /* a frame that the next one overtakes */
	struct wf_wrap_lane *late_lane;
	struct weft_addr late_from;
	size_t late_len;
	int late_polls;
};

struct lossy_lane {
	struct wf_wrap_lane w;
	struct wf_node owed;
	bool doomed;                    /* the inner lane is gone, down() is owed */
	bool dead;                      /* down() was told */
	uint64_t in_left, out_left;     /* bytes until it breaks */
	size_t want;                    /* what the core said */
	/* The need of the core, given on in parts. */
	struct weft_need need;
	size_t got, total, asked;       /* come so far; in all; of the part that is out */
	bool last;                      /* that part ends where the lane breaks */
};

static uint64_t number(struct lossy_rail *rail)
{
	uint64_t z = (rail->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static bool happens(struct lossy_rail *rail, uint64_t per_mille)
{
	return per_mille && number(rail) % 1000 < per_mille;
}

static struct lossy_rail *rail_of(void *lane)
{
	return (struct lossy_rail *)((struct wf_wrap_lane *)lane)->rail;
}

/* Its end is at hand at once, or after a while: small parts are likelier than large ones. */
static size_t part(struct lossy_rail *rail, size_t most)
{
	return most < 2 ? most : 1 + number(rail) % (number(rail) % 2 ? most : most < 16 ? most : 16);
}

static void owe(struct lossy_lane *lane)
{
	if (!wf_list_has(&lane->owed))
		wf_list_add(&rail_of(lane)->owed, &lane->owed);
}

static int rail_init(struct wf_wrap_rail *w, const struct weft_rail_conf *conf)
{
	struct lossy_rail *rail = (struct lossy_rail *)w;
	const struct wf_wrap_option options[] = {
		{ "seed", &rail->random }, { "short", &rail->cut }, { "again", &rail->again }, { "stall", &rail->stall }, { "drop", &rail->drop },
		{ "double", &rail->twice }, { "swap", &rail->swap }, { "corrupt", &rail->corrupt }, { "break", &rail->broken },
	};

	rail->random = 1;
	rail->cut = 300;
	rail->again = rail->stall = 50;
	return wf_wrap_options(conf->options, "lossy", options, sizeof(options) / sizeof(*options));
}

static void lane_init(struct wf_wrap_lane *w)
{
	struct lossy_rail *rail = rail_of(w);
	struct lossy_lane *lane = (struct lossy_lane *)w;

	lane->in_left = rail->broken ? number(rail) % (2 * rail->broken) : UINT64_MAX;
	lane->out_left = rail->broken ? number(rail) % (2 * rail->broken) : UINT64_MAX;
}

static void lane_close(void *state)
{
	struct lossy_lane *lane = state;
	struct lossy_rail *rail = rail_of(lane);

	if (wf_list_has(&lane->owed))
		wf_list_del(&lane->owed);
	if (rail->late && rail->late_lane == &lane->w) {        /* overtaken for good */
		wf_wrap_provide(rail, &rail->late, 1);
		rail->late = NULL;
	}
	wf_wrap_lane_close(lane);
}

/* ---- sending ---- */

static ssize_t lossy_send(void *state, const struct weft_out *out)
{
	struct lossy_lane *lane = state;
	struct lossy_rail *rail = rail_of(lane);
	struct iovec piece[PIECES];
	struct weft_out less = *out;
	size_t all = 0, left;
	ssize_t r;

	if (lane->doomed || lane->dead)
		return -ECONNRESET;
	if (happens(rail, rail->again)) {
		owe(lane);
		return -EAGAIN;
	}
	if (!rail->w.in->need_drop)     /* frames are not cut */
		return wf_wrap_send(lane, out);
	for (uint32_t i = 0; i < out->pieces; i++)
		all += out->piece[i].iov_len;
	left = happens(rail, rail->cut) ? part(rail, all) : all;
	left = left < lane->out_left ? left : (size_t)lane->out_left;
	less.piece = piece;
	less.pieces = 0;
	for (size_t n = left; less.pieces < out->pieces && less.pieces < PIECES && (n || less.pieces == 0); less.pieces++) {
		piece[less.pieces] = out->piece[less.pieces];
		if (piece[less.pieces].iov_len > n)
			piece[less.pieces].iov_len = n;
		n -= piece[less.pieces].iov_len;
	}
	r = left || !all ? wf_wrap_send(lane, &less) : -EAGAIN;
	if (r > 0)
		lane->out_left -= (uint64_t)r;
	if (all && lane->out_left == 0 && lane->w.state) {      /* the other end sees it too */
		rail->w.in->lane_close(lane->w.state);
		lane->w.state = NULL;
		lane->doomed = true;
	}
	if ((r > 0 && (size_t)r < all) || lane->doomed)
		owe(lane);
	return r;
}

/* ---- what came ---- */

/* The next part of the core's need, as much of it as the lane lives to see. False: it does not. */
static bool give_on(struct lossy_lane *lane, struct weft_need *ret_need)
{
	struct lossy_rail *rail = rail_of(lane);
	size_t skip = lane->got, k = lane->total - lane->got;

	if (happens(rail, rail->cut))
		k = part(rail, k);
	lane->last = k >= lane->in_left;
	if (lane->last)
		k = (size_t)lane->in_left;
	if (k == 0)
		return false;
	lane->asked = k;
	memset(ret_need, 0, sizeof(*ret_need));
	for (uint32_t i = 0; i < lane->need.pieces && k; i++) {
		struct iovec v = lane->need.piece[i];

		if (skip >= v.iov_len) {
			skip -= v.iov_len;
			continue;
		}
		v.iov_base = (char *)v.iov_base + skip;
		v.iov_len = v.iov_len - skip < k ? v.iov_len - skip : k;
		skip = 0;
		k -= v.iov_len;
		ret_need->piece[ret_need->pieces++] = v;
	}
	return true;
}

/* The core has said what it needs. 0: passed on; -ECONNRESET: nothing of that will come. */
static int need_begin(struct lossy_lane *lane, struct weft_need *need)
{
	lane->want = need->pieces ? 0 : need->want;
	lane->need = *need;
	lane->got = lane->total = 0;
	if (!need->pieces)
		return 0;
	for (uint32_t i = 0; i < need->pieces; i++)
		lane->total += need->piece[i].iov_len;
	if (!need->min)
		lane->need.min = lane->total;
	return give_on(lane, need) ? 0 : -ECONNRESET;
}

/* Tells the core what came, a prefix at a time; all of it before it returns, unless the core waits for more or needs it elsewhere. */
static ssize_t tell(struct lossy_lane *lane, unsigned char *p, size_t len, struct weft_need *need)
{
	struct lossy_rail *rail = rail_of(lane);
	size_t all = len < lane->in_left ? len : (size_t)lane->in_left, at = 0, n;
	ssize_t took;
	int r;

	while (at < all && (all - at >= lane->want || all < len)) {
		n = happens(rail, rail->cut) ? part(rail, all - at) : all - at;
		if (n < lane->want && lane->want <= all - at)
			n = lane->want;
		memset(need, 0, sizeof(*need));
		took = wf_wrap_take(lane, p + at, n, need);
		if (lane->w.closed || took < 0)
			return took;
		at += (size_t)took;
		lane->in_left -= (uint64_t)took;
		r = need_begin(lane, need);
		if (r < 0)
			return r;
		if (need->pieces)
			return (ssize_t)at;
		if (took == 0 && n == all - at)         /* it has seen all there is */
			break;
		if (took == 0 && lane->want < n + 1)
			lane->want = n + 1;             /* more than last time */
	}
	if (all < len || lane->in_left == 0)
		return -ECONNRESET;                     /* here it breaks */
	need->want = lane->want > len - at ? lane->want : 0;
	return (ssize_t)at;
}

static ssize_t take(void *cookie, void *bytes, size_t len, struct weft_need *need)
{
	struct lossy_lane *lane = cookie;
	ssize_t r;

	wf_wrap_enter(&lane->w);
	r = tell(lane, bytes, len, need);
	wf_wrap_leave(&lane->w);
	return r;
}

static int placed_part(struct lossy_lane *lane, size_t got, struct weft_need *need)
{
	bool dropped = got < lane->asked;
	int r;

	lane->got += got;
	lane->in_left -= got;
	if (lane->last && !dropped)
		return -ECONNRESET;
	if (lane->got < lane->need.min && !dropped)
		return give_on(lane, need) ? 0 : -ECONNRESET;
	r = wf_wrap_placed(lane, lane->got, need);
	if (r < 0 || lane->w.closed)
		return r;
	return need_begin(lane, need);
}

static int placed(void *cookie, size_t got, struct weft_need *need)
{
	struct lossy_lane *lane = cookie;
	int r;

	wf_wrap_enter(&lane->w);
	r = placed_part(lane, got, need);
	wf_wrap_leave(&lane->w);
	return r;
}

static void down(void *cookie, int err)
{
	struct lossy_lane *lane = cookie;

	lane->dead = true;
	if (wf_list_has(&lane->owed))
		wf_list_del(&lane->owed);
	wf_wrap_down(lane, err);
}

/* ---- frames ---- */

static void late_now(struct lossy_rail *rail)
{
	struct weft_room *room = rail->late;

	rail->late = NULL;
	if (room)
		wf_wrap_frame(rail, rail->late_lane, rail->late_lane ? NULL : &rail->late_from, room, rail->late_len);
}

static void frame(void *cookie, void *lane, const struct weft_addr *from, struct weft_room *room, size_t len)
{
	struct lossy_rail *rail = cookie;
	struct weft_room *copy = NULL;

	if (happens(rail, rail->drop)) {
		wf_wrap_provide(rail, &room, 1);
		return;
	}
	if (len && happens(rail, rail->corrupt))
		((unsigned char *)room->data)[number(rail) % len] ^= (unsigned char)(1u << number(rail) % 8);
	if (rail->spare && happens(rail, rail->twice)) {
		copy = rail->spare;
		rail->spare = NULL;
		memcpy(copy->data, room->data, len);
	}
	if (!rail->late && happens(rail, rail->swap)) {
		rail->late = room;
		rail->late_lane = lane;
		rail->late_len = len;
		rail->late_polls = 0;
		if (!lane)
			rail->late_from = *from;
	} else {
		wf_wrap_frame(rail, lane, from, room, len);
		late_now(rail);
	}
	if (copy)
		wf_wrap_frame(rail, lane, from, copy, len);
}

static int provide(void *state, struct weft_room *const *rooms, int n)
{
	struct lossy_rail *rail = state;

	if (n > 0 && !rail->spare && rail->twice) {
		rail->spare = rooms[0];
		return n == 1 ? 1 : 1 + wf_wrap_provide(rail, rooms + 1, n - 1);
	}
	return wf_wrap_provide(rail, rooms, n);
}

/* ---- polling ---- */

/* Lanes that a send was cut short on, or broke. */
static int pay(struct lossy_rail *rail)
{
	struct wf_node owed, *node;
	int n = 0;

	wf_list_init(&owed);
	while ((node = wf_list_pop(&rail->owed)))
		wf_list_add(&owed, node);       /* what is owed meanwhile is for the next poll */
	for (; (node = wf_list_pop(&owed)); n++) {
		struct lossy_lane *lane = wf_of(node, struct lossy_lane, owed);

		if (lane->doomed && !lane->dead)
			down(lane, -ECONNRESET);
		else
			wf_wrap_writable(lane);
	}
	return n;
}

static int lossy_poll(void *state, int budget, unsigned flags)
{
	struct lossy_rail *rail = state;
	int n = pay(rail), r;

	if (happens(rail, rail->stall))
		return n;
	r = wf_wrap_poll(rail, budget, flags);
	if (r == 0 && rail->late && ++rail->late_polls == LATE) {       /* nothing overtakes it */
		late_now(rail);
		r = 1;
	}
	return r < 0 ? r : n + r;
}

static int arm(void *state)
{
	struct lossy_rail *rail = state;

	if (!wf_list_empty(&rail->owed) || rail->late)
		return 1;
	return rail->w.in->arm ? rail->w.in->arm(rail->w.state) : 0;
}

static int wrap(const struct wf_driver *inner, struct weft_driver **ret_driver)
{
	struct wf_wrap *w = wf_wrap_new(inner, "lossy", sizeof(struct lossy_rail), sizeof(struct lossy_lane));
	bool stream = inner->slots.caps & WEFT_DRIVER_STREAM;

	if (!w)
		return weft_fail(-ENOMEM, "lossy: out of memory");
	w->slots.caps &= ~(uint32_t)(stream ? WEFT_DRIVER_THREADS : WEFT_DRIVER_THREADS | WEFT_DRIVER_RELIABLE);
	w->rail_init = rail_init;
	w->lane_init = lane_init;
	w->slots.lane_close = lane_close;
	w->slots.send = lossy_send;
	w->slots.poll = lossy_poll;
	w->slots.arm = arm;
	if (w->slots.provide)
		w->slots.provide = provide;
	w->ups.take = take;
	w->ups.placed = placed;
	w->ups.down = down;
	w->ups.frame = frame;
	*ret_driver = &w->slots;
	return 0;
}

const struct wf_wrapper wf_lossy_wrapper = { "lossy", wrap };
