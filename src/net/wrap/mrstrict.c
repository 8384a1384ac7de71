/* mrstrict.c - the mrstrict wrapper: memory that was not registered is refused, and so is forgetting it too early.
 *
 * Some adapters fail, or corrupt memory, when they meet memory that was never registered; most test machines have none of those. This
 * wrapper, around a driver that has `mem`, refuses with -EFAULT every send and every room whose handle is missing, is not one of ours, or
 * does not cover it. A handle that a room still uses cannot be deleted: that is counted, and refused.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/log.h"
#include "net/wrap/wrap.h"

struct region {
	struct wf_node node;
	void *mem;                      /* the inner driver's handle */
	uintptr_t base;
	size_t len;
	uint32_t rooms;                 /* provided, and not come back */
};

/* What the inner driver gets for a room: its own handle in it. */
struct stand_in {
	struct weft_room room;          /* first: comes back by its address */
	struct wf_node node;
	struct weft_room *theirs;
	struct region *region;
};

struct strict_rail {
	struct wf_wrap_rail w;
	pthread_mutex_t lock;
	struct wf_node regions, rooms;  /* under lock */
	_Atomic uint64_t refused;
};

static int refuse(struct strict_rail *rail, const char *what)
{
	atomic_fetch_add_explicit(&rail->refused, 1, memory_order_relaxed);
	wf_log(WF_WARN, "mrstrict: %s", what);
	return weft_fail(-EFAULT, "mrstrict: %s", what);
}

/* Under lock. The region @mem stands for, if it covers that memory. Handles are pointers of ours: only compared, never followed. */
static struct region *find_locked(struct strict_rail *rail, const void *mem, const void *base, size_t len)
{
	for (struct wf_node *n = rail->regions.next; n && n != &rail->regions; n = n->next) {
		struct region *r = wf_of(n, struct region, node);
		uintptr_t at = (uintptr_t)base;

		if (r == mem)
			return at >= r->base && len <= r->len && at - r->base <= r->len - len ? r : NULL;
	}
	return NULL;
}

static int rail_init(struct wf_wrap_rail *w, const struct weft_rail_conf *conf)
{
	struct strict_rail *rail = (struct strict_rail *)w;

	pthread_mutex_init(&rail->lock, NULL);
	return wf_wrap_options(conf->options, "mrstrict", NULL, 0);
}

static void rail_fini(struct wf_wrap_rail *w)
{
	struct strict_rail *rail = (struct strict_rail *)w;
	struct wf_node *node;

	while ((node = wf_list_pop(&rail->regions)))
		free(wf_of(node, struct region, node));
	while ((node = wf_list_pop(&rail->rooms)))
		free(wf_of(node, struct stand_in, node));
	pthread_mutex_destroy(&rail->lock);
}

static int mem_add(void *state, void *base, size_t len, void **ret_mem, void *ret_key, uint32_t *ret_key_len)
{
	struct strict_rail *rail = state;
	struct region *region = calloc(1, sizeof(*region));
	int r;

	if (!region)
		return weft_fail(-ENOMEM, "mrstrict: out of memory");
	r = rail->w.in->mem->add(rail->w.state, base, len, &region->mem, ret_key, ret_key_len);
	if (r < 0) {
		free(region);
		return r;
	}
	region->base = (uintptr_t)base;
	region->len = len;
	pthread_mutex_lock(&rail->lock);
	wf_list_add(&rail->regions, &region->node);
	pthread_mutex_unlock(&rail->lock);
	*ret_mem = region;
	return 0;
}

static void mem_del(void *state, void *mem)
{
	struct strict_rail *rail = state;
	struct region *region = NULL;

	pthread_mutex_lock(&rail->lock);
	for (struct wf_node *n = rail->regions.next; n && n != &rail->regions && !region; n = n->next)
		if (wf_of(n, struct region, node) == mem)
			region = mem;
	if (region && !region->rooms)
		wf_list_del(&region->node);
	pthread_mutex_unlock(&rail->lock);
	if (!region) {
		refuse(rail, "a handle is deleted that is none");
	} else if (region->rooms) {
		refuse(rail, "memory is forgotten that a room still uses");
	} else {
		rail->w.in->mem->del(rail->w.state, region->mem);
		free(region);
	}
}

static ssize_t strict_send(void *state, const struct weft_out *out)
{
	struct wf_wrap_lane *lane = state;
	struct strict_rail *rail = (struct strict_rail *)lane->rail;
	void **mem = calloc(out->pieces ? out->pieces : 1, sizeof(*mem));
	struct weft_out inner = *out;
	bool known = true;
	ssize_t r;

	if (!mem)
		return weft_fail(-ENOMEM, "mrstrict: out of memory");
	pthread_mutex_lock(&rail->lock);
	for (uint32_t i = 0; i < out->pieces && known; i++) {
		struct region *region = out->mem ? find_locked(rail, out->mem[i], out->piece[i].iov_base, out->piece[i].iov_len) : NULL;

		known = region != NULL;
		mem[i] = known ? region->mem : NULL;
	}
	pthread_mutex_unlock(&rail->lock);
	inner.mem = mem;
	r = known ? wf_wrap_send(lane, &inner) : refuse(rail, "a send from memory that is not registered");
	free(mem);
	return r;
}

/* One room. 1, or why not. */
static int provide_one(struct strict_rail *rail, struct weft_room *room)
{
	struct stand_in *in = calloc(1, sizeof(*in));
	struct weft_room *inner = &in->room;
	int r;

	if (!in)
		return weft_fail(-ENOMEM, "mrstrict: out of memory");
	in->theirs = room;
	pthread_mutex_lock(&rail->lock);
	in->region = find_locked(rail, room->mem, room->data, room->len);
	if (in->region) {
		in->room = (struct weft_room){ .data = room->data, .len = room->len, .mem = in->region->mem };
		in->region->rooms++;
		wf_list_add(&rail->rooms, &in->node);
	}
	pthread_mutex_unlock(&rail->lock);
	r = in->region ? wf_wrap_provide(rail, &inner, 1) : refuse(rail, "a room in memory that is not registered");
	if (r == 1)
		return 1;
	pthread_mutex_lock(&rail->lock);
	if (in->region) {
		in->region->rooms--;
		wf_list_del(&in->node);
	}
	pthread_mutex_unlock(&rail->lock);
	free(in);
	return r;
}

static int provide(void *state, struct weft_room *const *rooms, int n)
{
	int taken = 0, r = 1;

	while (taken < n && (r = provide_one(state, rooms[taken])) == 1)
		taken++;
	return taken || r == 1 ? taken : r;
}

static void frame(void *cookie, void *lane, const struct weft_addr *from, struct weft_room *room, size_t len)
{
	struct strict_rail *rail = cookie;
	struct stand_in *in = (struct stand_in *)(void *)room;
	struct weft_room *theirs = in->theirs;

	pthread_mutex_lock(&rail->lock);
	in->region->rooms--;
	wf_list_del(&in->node);
	pthread_mutex_unlock(&rail->lock);
	free(in);
	wf_wrap_frame(cookie, lane, from, theirs, len);
}

static const struct weft_driver_mem mem_slots = { mem_add, mem_del };

static int wrap(const struct wf_driver *inner, struct weft_driver **ret_driver)
{
	struct wf_wrap *w;

	if (!inner->slots.mem)
		return weft_fail(-EOPNOTSUPP, "mrstrict: driver %s registers no memory", inner->name);
	if (inner->slots.land || inner->slots.remote)
		return weft_fail(-EOPNOTSUPP, "mrstrict: driver %s writes remote memory, whose handles are not followed", inner->name);
	w = wf_wrap_new(inner, "mrstrict", sizeof(struct strict_rail), sizeof(struct wf_wrap_lane));
	if (!w)
		return weft_fail(-ENOMEM, "mrstrict: out of memory");
	w->slots.caps |= WEFT_DRIVER_LOCAL_MEM;
	w->rail_init = rail_init;
	w->rail_fini = rail_fini;
	w->slots.mem = &mem_slots;
	w->slots.send = strict_send;
	if (w->slots.provide) {
		w->slots.provide = provide;
		w->ups.frame = frame;
	}
	*ret_driver = &w->slots;
	return 0;
}

const struct wf_wrapper wf_mrstrict_wrapper = { "mrstrict", wrap };
