/* wrap.c - passes everything through. See wrap.h; threads as weft/driver.h says for each slot. */
#include "net/wrap/wrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\n,"

static const struct wf_wrap *wrap_of(const struct weft_driver *self)
{
	return (const struct wf_wrap *)(const void *)self;      /* slots stand first */
}

/* ---- slots ---- */

static int probe(const struct weft_driver *self, struct weft_found *ret_found, int max)
{
	const struct wf_driver *inner = wrap_of(self)->inner;

	return inner->slots.probe(inner->self, ret_found, max);
}

static void rail_close(void *state)
{
	struct wf_wrap_rail *rail = state;

	rail->in->rail_close(rail->state);
	if (rail->wrap->rail_fini)
		rail->wrap->rail_fini(rail);
	free(rail);
}

static int rail_open(const struct weft_driver *self, const struct weft_rail_conf *conf, const struct weft_upcalls *up, void *cookie,
		     struct weft_rail_info *ret_info, void **ret_rail)
{
	const struct wf_wrap *wrap = wrap_of(self);
	struct wf_wrap_rail *rail = calloc(1, wrap->rail_size);
	int r;

	if (!rail)
		return weft_fail(-ENOMEM, "%s: no memory for a rail", self->name);
	rail->wrap = wrap;
	rail->in = &wrap->inner->slots;
	rail->up = up;
	rail->cookie = cookie;
	r = wrap->rail_init ? wrap->rail_init(rail, conf) : 0;
	if (r == 0)
		r = rail->in->rail_open(wrap->inner->self, conf, &wrap->ups, rail, &rail->info, &rail->state);
	if (r < 0) {
		if (wrap->rail_fini)
			wrap->rail_fini(rail);
		free(rail);
		return r;
	}
	*ret_info = rail->info;
	*ret_rail = rail;
	return 0;
}

static struct wf_wrap_lane *lane_new(struct wf_wrap_rail *rail, void *cookie)
{
	struct wf_wrap_lane *lane = calloc(1, rail->wrap->lane_size);

	if (!lane)
		return NULL;
	lane->rail = rail;
	lane->cookie = cookie;
	if (rail->wrap->lane_init)
		rail->wrap->lane_init(lane);
	return lane;
}

static void lane_free(struct wf_wrap_lane *lane)
{
	if (lane->rail->wrap->lane_fini)
		lane->rail->wrap->lane_fini(lane);
	free(lane);
}

int wf_wrap_lane_open(void *state, const struct weft_addr *to, int klass, void *cookie, void **ret_lane)
{
	struct wf_wrap_rail *rail = state;
	struct wf_wrap_lane *lane = lane_new(rail, cookie);
	int r;

	if (!lane)
		return weft_fail(-ENOMEM, "%s: no memory for a lane", rail->wrap->slots.name);
	void *before = *ret_lane;
	*ret_lane = lane;               /* an upcall may come before the inner call returns */
	r = rail->in->lane_open(rail->state, to, klass, lane, &lane->state);
	if (r < 0) {
		*ret_lane = before;
		lane_free(lane);
	}
	return r;
}

void wf_wrap_lane_close(void *state)
{
	struct wf_wrap_lane *lane = state;

	if (lane->state)
		lane->rail->in->lane_close(lane->state);
	lane->closed = true;
	if (!lane->busy)
		lane_free(lane);
}

bool wf_wrap_leave(struct wf_wrap_lane *lane)
{
	if (--lane->busy || !lane->closed)
		return !lane->closed;
	lane_free(lane);
	return false;
}

static void lane_tune(void *state, int klass, size_t unsent)
{
	struct wf_wrap_lane *lane = state;

	if (lane->state)
		lane->rail->in->lane_tune(lane->state, klass, unsent);
}

ssize_t wf_wrap_send(void *state, const struct weft_out *out)
{
	struct wf_wrap_lane *lane = state;

	return lane->state ? lane->rail->in->send(lane->state, out) : -EPIPE;
}

int wf_wrap_poll(void *state, int budget, unsigned flags)
{
	struct wf_wrap_rail *rail = state;

	return rail->in->poll(rail->state, budget, flags);
}

static int wait_fd(void *state)
{
	struct wf_wrap_rail *rail = state;

	return rail->in->wait_fd(rail->state);
}

static int arm(void *state)
{
	struct wf_wrap_rail *rail = state;

	return rail->in->arm(rail->state);
}

static void need_drop(void *state)
{
	struct wf_wrap_lane *lane = state;

	if (lane->state)
		lane->rail->in->need_drop(lane->state);
}

int wf_wrap_provide(void *state, struct weft_room *const *rooms, int n)
{
	struct wf_wrap_rail *rail = state;

	return rail->in->provide(rail->state, rooms, n);
}

static int rail_stat(void *state, struct weft_rail_stat *ret_stat)
{
	struct wf_wrap_rail *rail = state;

	return rail->in->stat(rail->state, ret_stat);
}

static int land(void *state, uint64_t token, const struct iovec *iov, uint32_t pieces, void *const *mem)
{
	struct wf_wrap_rail *rail = state;

	return rail->in->land->land(rail->state, token, iov, pieces, mem);
}

static void unland(void *state, uint64_t token)
{
	struct wf_wrap_rail *rail = state;

	rail->in->land->unland(rail->state, token);
}

static int mem_add(void *state, void *base, size_t len, void **ret_mem, void *ret_key, uint32_t *ret_key_len)
{
	struct wf_wrap_rail *rail = state;

	return rail->in->mem->add(rail->state, base, len, ret_mem, ret_key, ret_key_len);
}

static void mem_del(void *state, void *mem)
{
	struct wf_wrap_rail *rail = state;

	rail->in->mem->del(rail->state, mem);
}

static int put(void *state, const struct weft_out *from, const void *key, uint32_t key_len, uint64_t at)
{
	struct wf_wrap_lane *lane = state;

	return lane->state ? lane->rail->in->remote->put(lane->state, from, key, key_len, at) : -EPIPE;
}

static int get(void *state, const struct weft_out *into, const void *key, uint32_t key_len, uint64_t at)
{
	struct wf_wrap_lane *lane = state;

	return lane->state ? lane->rail->in->remote->get(lane->state, into, key, key_len, at) : -EPIPE;
}

static const struct weft_driver_land land_slots = { land, unland };
static const struct weft_driver_mem mem_slots = { mem_add, mem_del };
static const struct weft_driver_remote remote_slots = { put, get };

/* ---- upcalls ---- */

int wf_wrap_incoming(void *cookie, void *driver_lane, const struct weft_addr *from, void **ret_lane)
{
	struct wf_wrap_rail *rail = cookie;
	struct wf_wrap_lane *lane = lane_new(rail, NULL);
	int r;

	if (!lane)
		return -ENOMEM;
	lane->state = driver_lane;
	wf_wrap_enter(lane);
	r = rail->up->incoming(rail->cookie, lane, from, &lane->cookie);
	if (r < 0)
		lane->closed = true;    /* the inner driver ends its own */
	else
		*ret_lane = lane;
	wf_wrap_leave(lane);
	return r;
}

void wf_wrap_up(void *cookie)
{
	struct wf_wrap_lane *lane = cookie;

	lane->rail->up->up(lane->cookie);
}

void wf_wrap_down(void *cookie, int err)
{
	struct wf_wrap_lane *lane = cookie;

	lane->rail->up->down(lane->cookie, err);
}

ssize_t wf_wrap_take(void *cookie, void *bytes, size_t len, struct weft_need *need)
{
	struct wf_wrap_lane *lane = cookie;

	return lane->rail->up->take(lane->cookie, bytes, len, need);
}

int wf_wrap_placed(void *cookie, size_t got, struct weft_need *need)
{
	struct wf_wrap_lane *lane = cookie;

	return lane->rail->up->placed(lane->cookie, got, need);
}

void wf_wrap_frame(void *cookie, void *lane, const struct weft_addr *from, struct weft_room *room, size_t len)
{
	struct wf_wrap_rail *rail = cookie;

	rail->up->frame(rail->cookie, lane ? ((struct wf_wrap_lane *)lane)->cookie : NULL, from, room, len);
}

void wf_wrap_writable(void *cookie)
{
	struct wf_wrap_lane *lane = cookie;

	lane->rail->up->writable(lane->cookie);
}

void wf_wrap_sent(void *cookie, void *token, int err)
{
	struct wf_wrap_rail *rail = cookie;

	rail->up->sent(rail->cookie, token, err);
}

/* ---- made ---- */

struct wf_wrap *wf_wrap_new(const struct wf_driver *inner, const char *name, size_t rail_size, size_t lane_size)
{
	const struct weft_driver *in = &inner->slots;
	struct wf_wrap *wrap = calloc(1, sizeof(*wrap));

	if (!wrap)
		return NULL;
	wrap->inner = inner;
	wrap->rail_size = rail_size;
	wrap->lane_size = lane_size;
	wrap->slots = (struct weft_driver){
		.abi = WEFT_DRIVER_ABI,
		.size = sizeof(struct weft_driver),
		.name = name,
		.caps = in->caps & ~(uint32_t)WEFT_DRIVER_UNCANCELLED,          /* they write what they see */
		.probe = probe,
		.rail_open = rail_open,
		.rail_close = rail_close,
		.lane_open = wf_wrap_lane_open,
		.lane_close = wf_wrap_lane_close,
		.lane_tune = in->lane_tune ? lane_tune : NULL,
		.send = wf_wrap_send,
		.poll = wf_wrap_poll,
		.wait_fd = in->wait_fd ? wait_fd : NULL,
		.arm = in->arm ? arm : NULL,
		.need_drop = in->need_drop ? need_drop : NULL,
		.provide = in->provide ? wf_wrap_provide : NULL,
		.stat = in->stat ? rail_stat : NULL,
		.addr_print = in->addr_print,
		.addr_parse = in->addr_parse,
		.land = in->land ? &land_slots : NULL,
		.mem = in->mem ? &mem_slots : NULL,
		.remote = in->remote ? &remote_slots : NULL,
	};
	wrap->ups = (struct weft_upcalls){
		.size = sizeof(struct weft_upcalls),
		.incoming = wf_wrap_incoming,
		.up = wf_wrap_up,
		.down = wf_wrap_down,
		.take = wf_wrap_take,
		.placed = wf_wrap_placed,
		.frame = wf_wrap_frame,
		.writable = wf_wrap_writable,
		.sent = wf_wrap_sent,
	};
	return wrap;
}

int wf_wrap_options(const char *text, const char *name, const struct wf_wrap_option *options, size_t n)
{
	size_t prefix = strlen(name);

	for (; text && *(text += strspn(text, BLANKS)); text += strcspn(text, BLANKS)) {
		const char *key = text + prefix + 1;
		size_t i = 0, len;
		char *end;

		if (strncmp(text, name, prefix) || text[prefix] != '.')
			continue;
		len = strcspn(key, "=" BLANKS);
		while (i < n && (strlen(options[i].key) != len || strncmp(options[i].key, key, len)))
			i++;
		if (i < n && key[len] == '=') {
			uint64_t v = strtoull(key + len + 1, &end, 10);

			if (end != key + len + 1 && (!*end || strchr(BLANKS, *end))) {
				*options[i].value = v;
				continue;
			}
		}
		return weft_fail(-EINVAL, "'%.*s' cannot be set", (int)strcspn(text, BLANKS), text);
	}
	return 0;
}
