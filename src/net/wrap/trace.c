/* trace.c - the trace wrapper: what a rail was asked and what it told, the last events of it in a ring.
 *
 * Any thread writes: a number is taken by an atomic add, then the fields are stored. A reader may find an event half of one round and half of
 * the next while the rail is busy; it is a picture for people. Options: trace.events (how many are kept).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "net/wrap/wrap.h"

enum what { OPEN, CLOSE, SEND, INCOMING, UP, DOWN, TAKE, PLACED, FRAME, WRITABLE, SENT, WHATS };

static const char *const words[WHATS] = { "open", "close", "send", "incoming", "up", "down", "take", "placed", "frame", "writable", "sent" };

struct event {
	_Atomic uint64_t number;        /* 0: never written */
	_Atomic int64_t when, given, answer;
	_Atomic uint32_t lane;
	_Atomic uint32_t what;
};

struct trace_rail {
	struct wf_wrap_rail w;
	struct event *ring;
	uint64_t events;
	_Atomic uint64_t next;
	_Atomic uint32_t lanes;
};

struct trace_lane {
	struct wf_wrap_lane w;
	uint32_t number;
};

/* All relaxed: see above. */
static void note(struct wf_wrap_rail *w, enum what what, uint32_t lane, int64_t given, int64_t answer)
{
	struct trace_rail *rail = (struct trace_rail *)w;
	uint64_t n = atomic_fetch_add_explicit(&rail->next, 1, memory_order_relaxed);
	struct event *e = &rail->ring[n % rail->events];

	atomic_store_explicit(&e->when, wf_now(), memory_order_relaxed);
	atomic_store_explicit(&e->what, what, memory_order_relaxed);
	atomic_store_explicit(&e->lane, lane, memory_order_relaxed);
	atomic_store_explicit(&e->given, given, memory_order_relaxed);
	atomic_store_explicit(&e->answer, answer, memory_order_relaxed);
	atomic_store_explicit(&e->number, n + 1, memory_order_relaxed);
}

void wf_trace_print(const void *state, FILE *to)
{
	const struct trace_rail *rail = state;
	uint64_t last = atomic_load_explicit(&rail->next, memory_order_relaxed);
	uint64_t first = last > rail->events ? last - rail->events : 0;

	for (uint64_t n = first; n < last; n++) {
		const struct event *e = &rail->ring[n % rail->events];

		if (atomic_load_explicit(&e->number, memory_order_relaxed) != n + 1)
			continue;
		fprintf(to, "%" PRIu64 " %.6f lane %u %s %" PRId64 " -> %" PRId64 "\n", n + 1,
			(double)atomic_load_explicit(&e->when, memory_order_relaxed) / 1e9, atomic_load_explicit(&e->lane, memory_order_relaxed),
			words[atomic_load_explicit(&e->what, memory_order_relaxed) % WHATS],
			atomic_load_explicit(&e->given, memory_order_relaxed), atomic_load_explicit(&e->answer, memory_order_relaxed));
	}
}

static int rail_init(struct wf_wrap_rail *w, const struct weft_rail_conf *conf)
{
	struct trace_rail *rail = (struct trace_rail *)w;
	int r;

	rail->events = 4096;
	r = wf_wrap_options(conf->options, "trace", (const struct wf_wrap_option[]){ { "events", &rail->events } }, 1);
	if (r < 0)
		return r;
	if (rail->events < 1 || rail->events > 1 << 24)
		return weft_fail(-EINVAL, "trace.events=%" PRIu64 " is not between 1 and 2^24", rail->events);
	rail->ring = calloc(rail->events, sizeof(*rail->ring));
	return rail->ring ? 0 : weft_fail(-ENOMEM, "trace: no memory for %" PRIu64 " events", rail->events);
}

static void rail_fini(struct wf_wrap_rail *w)
{
	free(((struct trace_rail *)w)->ring);
}

static void lane_init(struct wf_wrap_lane *w)
{
	struct trace_rail *rail = (struct trace_rail *)w->rail;

	((struct trace_lane *)w)->number = atomic_fetch_add_explicit(&rail->lanes, 1, memory_order_relaxed) + 1;
}

static uint32_t number_of(void *lane)
{
	return lane ? ((struct trace_lane *)lane)->number : 0;
}

static struct wf_wrap_rail *rail_of(void *lane)
{
	return ((struct wf_wrap_lane *)lane)->rail;
}

static int lane_open(void *rail, const struct weft_addr *to, int klass, void *cookie, void **ret_lane)
{
	int r = wf_wrap_lane_open(rail, to, klass, cookie, ret_lane);

	note(rail, OPEN, r < 0 ? 0 : number_of(*ret_lane), klass, r);
	return r;
}

static void lane_close(void *lane)
{
	note(rail_of(lane), CLOSE, number_of(lane), 0, 0);
	wf_wrap_lane_close(lane);
}

static ssize_t trace_send(void *lane, const struct weft_out *out)
{
	int64_t all = 0;
	ssize_t r;

	for (uint32_t i = 0; i < out->pieces; i++)
		all += (int64_t)out->piece[i].iov_len;
	r = wf_wrap_send(lane, out);
	note(rail_of(lane), SEND, number_of(lane), all, r);
	return r;
}

static int incoming(void *cookie, void *driver_lane, const struct weft_addr *from, void **ret_lane)
{
	void *lane = NULL;
	int r = wf_wrap_incoming(cookie, driver_lane, from, &lane);

	note(cookie, INCOMING, 0, 0, r);
	if (r >= 0)
		*ret_lane = lane;
	return r;
}

static void up(void *lane)
{
	note(rail_of(lane), UP, number_of(lane), 0, 0);
	wf_wrap_up(lane);
}

static void down(void *lane, int err)
{
	note(rail_of(lane), DOWN, number_of(lane), err, 0);
	wf_wrap_down(lane, err);
}

static ssize_t take(void *lane, void *bytes, size_t len, struct weft_need *need)
{
	struct wf_wrap_rail *rail = rail_of(lane);
	uint32_t number = number_of(lane);
	ssize_t r = wf_wrap_take(lane, bytes, len, need);       /* may have closed it */

	note(rail, TAKE, number, (int64_t)len, r);
	return r;
}

static int placed(void *lane, size_t got, struct weft_need *need)
{
	struct wf_wrap_rail *rail = rail_of(lane);
	uint32_t number = number_of(lane);
	int r = wf_wrap_placed(lane, got, need);

	note(rail, PLACED, number, (int64_t)got, r);
	return r;
}

static void frame(void *cookie, void *lane, const struct weft_addr *from, struct weft_room *room, size_t len)
{
	note(cookie, FRAME, number_of(lane), (int64_t)len, 0);
	wf_wrap_frame(cookie, lane, from, room, len);
}

static void writable(void *lane)
{
	note(rail_of(lane), WRITABLE, number_of(lane), 0, 0);
	wf_wrap_writable(lane);
}

static void sent(void *cookie, void *token, int err)
{
	note(cookie, SENT, 0, err, 0);
	wf_wrap_sent(cookie, token, err);
}

static int wrap(const struct wf_driver *inner, struct weft_driver **ret_driver)
{
	struct wf_wrap *w = wf_wrap_new(inner, "trace", sizeof(struct trace_rail), sizeof(struct trace_lane));

	if (!w)
		return weft_fail(-ENOMEM, "trace: out of memory");
	w->rail_init = rail_init;
	w->rail_fini = rail_fini;
	w->lane_init = lane_init;
	w->slots.lane_open = lane_open;
	w->slots.lane_close = lane_close;
	w->slots.send = trace_send;
	w->ups.incoming = incoming;
	w->ups.up = up;
	w->ups.down = down;
	w->ups.take = take;
	w->ups.placed = placed;
	w->ups.frame = frame;
	w->ups.writable = writable;
	w->ups.sent = sent;
	*ret_driver = &w->slots;
	return 0;
}

const struct wf_wrapper wf_trace_wrapper = { "trace", wrap };
