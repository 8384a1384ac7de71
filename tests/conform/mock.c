/* mock.c - a driver for the suite: frames inside this process, with what no driver of weft has yet.
 *
 * Memory must be registered, sends hold it until the frame has been copied into a room, there is no descriptor to wait on. One lock
 * for everything, never held in an upcall. A lane is two ends, each in the list of its rail; frames wait in the inbox of the end they go to.
 */
#include "mock.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RAILS 8
#define FRAME 4096
#define ROOMS 64
#define INBOX 32
#define PIECES 8

struct frame {
	struct frame *next;
	struct iovec piece[PIECES];
	uint32_t pieces;
	struct mend *from;              /* NULL: it has been closed */
	struct mrail *home;             /* where the token goes */
	void *token;
	int err;
};

struct mend {
	struct mend *next, *peer;
	struct mrail *rail;
	void *cookie;
	bool opener, known, up_told, down_told, owed;   /* known: to the core */
	struct frame *inbox, **last;
	int count;
};

struct region {
	struct region *next;
	char *base;
	size_t len;
};

struct mrail {
	const struct weft_upcalls *up;
	void *cookie;
	uint32_t index, serial;
	struct mend *ends;
	struct frame *done;             /* tokens to give back */
	struct region *regions;
	struct weft_room *room[ROOMS];
	int rooms;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mrail *rails[RAILS];
static uint32_t serials;

static int probe(const struct weft_driver *self, struct weft_found *ret_found, int max)
{
	(void)self;
	if (max > 0) {
		memset(ret_found, 0, sizeof(*ret_found));
		strcpy(ret_found->name, "here");
		ret_found->flags = WEFT_FOUND_LOOP;
	}
	return 1;
}

static int rail_open(const struct weft_driver *self, const struct weft_rail_conf *conf, const struct weft_upcalls *up, void *cookie,
		     struct weft_rail_info *ret_info, void **ret_rail)
{
	struct weft_rail_info info = { .size = sizeof(info), .frame = FRAME, .pieces = PIECES, .rooms = ROOMS, .poll_ns = 100000 };
	struct mrail *rail = calloc(1, sizeof(*rail));
	uint32_t i = 0;

	(void)self;
	if (!rail)
		return weft_fail(-ENOMEM, "mock: out of memory");
	pthread_mutex_lock(&lock);
	while (i < RAILS && rails[i])
		i++;
	if (i < RAILS && !(conf->options && strstr(conf->options, "mock."))) {
		rail->index = i;
		rail->serial = ++serials;
		rails[i] = rail;
	}
	pthread_mutex_unlock(&lock);
	if (!rail->serial) {
		free(rail);
		return i < RAILS ? weft_fail(-EINVAL, "mock: %s", conf->options) : weft_fail(-EMFILE, "mock: too many rails");
	}
	rail->up = up;
	rail->cookie = cookie;
	info.addr.len = 8;
	memcpy(info.addr.bytes, &rail->index, 4);
	memcpy(info.addr.bytes + 4, &rail->serial, 4);
	*ret_info = info;
	*ret_rail = rail;
	return 0;
}

static struct mend *end_new(struct mrail *rail)
{
	struct mend *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->rail = rail;
	e->last = &e->inbox;
	e->next = rail->ends;
	rail->ends = e;
	return e;
}

/* A frame is over: its memory goes home. */
static void give_back(struct frame *f, int err)
{
	f->err = err;
	if (f->from)
		f->from->owed = true;           /* there is room again */
	f->next = f->home->done;
	f->home->done = f;
}

static void end_free(struct mend *e)
{
	struct mend **at = &e->rail->ends;
	struct frame *f;

	while ((f = e->inbox)) {                /* never read */
		e->inbox = f->next;
		give_back(f, -ECONNRESET);
	}
	if (e->peer) {                          /* ours that wait over there; what is there to be read stays */
		struct frame **k = &e->peer->inbox;

		while ((f = *k)) {
			*k = f->next;
			f->from = NULL;
			give_back(f, -ECONNRESET);
		}
		e->peer->last = &e->peer->inbox;
		e->peer->count = 0;
		e->peer->peer = NULL;
	}
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	free(e);
}

static void rail_close(void *state)
{
	struct mrail *rail = state;
	struct frame *f;
	struct region *r;

	pthread_mutex_lock(&lock);
	rails[rail->index] = NULL;
	while (rail->ends)
		end_free(rail->ends);
	while ((f = rail->done)) {
		rail->done = f->next;
		free(f);
	}
	while ((r = rail->regions)) {
		rail->regions = r->next;
		free(r);
	}
	pthread_mutex_unlock(&lock);
	free(rail);
}

static int lane_open(void *state, const struct weft_addr *to, int klass, void *cookie, void **ret_lane)
{
	struct mrail *rail = state, *there;
	struct mend *a, *b = NULL;
	uint32_t index, serial;
	int r = 0;

	(void)klass;
	memcpy(&index, to->bytes, 4);
	memcpy(&serial, to->bytes + 4, 4);
	if (to->len != 8 || index >= RAILS)
		return weft_fail(-EINVAL, "mock: not an address of this driver");
	pthread_mutex_lock(&lock);
	there = rails[index];
	if (!there || there->serial != serial)
		r = -ECONNREFUSED;
	a = r ? NULL : end_new(rail);
	b = a ? end_new(there) : NULL;
	if (b) {
		a->peer = b;
		b->peer = a;
		a->cookie = cookie;
		a->opener = a->known = true;
		*ret_lane = a;
	}
	pthread_mutex_unlock(&lock);
	return r ? weft_fail(r, "mock: nobody is there") : b ? 0 : weft_fail(-ENOMEM, "mock: out of memory");
}

static void lane_close(void *state)
{
	struct mend *e = state;

	pthread_mutex_lock(&lock);
	if (e->peer && !e->peer->known)         /* the core there never heard of it */
		end_free(e->peer);
	end_free(e);
	pthread_mutex_unlock(&lock);
}

static bool registered(const struct mrail *rail, const void *mem, const struct iovec *v)
{
	for (const struct region *r = rail->regions; r; r = r->next)
		if (r == mem)
			return (char *)v->iov_base >= r->base && (char *)v->iov_base + v->iov_len <= r->base + r->len;
	return false;
}

static ssize_t lane_send(void *state, const struct weft_out *out)
{
	struct mend *e = state;
	struct frame *f;
	size_t all = 0;
	ssize_t r = 1;

	for (uint32_t i = 0; i < out->pieces; i++)
		all += out->piece[i].iov_len;
	if (all == 0)
		return 0;
	if (all > FRAME || out->pieces > PIECES)
		return weft_fail(-EMSGSIZE, "mock: too large");
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < out->pieces; i++)
		if (!out->mem || !registered(e->rail, out->mem[i], &out->piece[i]))
			r = weft_fail(-EFAULT, "mock: memory is not registered");
	if (r > 0 && !e->peer)
		r = -EPIPE;
	else if (r > 0 && ((e->opener && !e->up_told) || e->peer->count == INBOX))
		r = -EAGAIN;
	f = r > 0 ? calloc(1, sizeof(*f)) : NULL;
	if (f) {
		memcpy(f->piece, out->piece, out->pieces * sizeof(*out->piece));
		f->pieces = out->pieces;
		f->from = e;
		f->home = e->rail;
		f->token = out->token;
		*e->peer->last = f;
		e->peer->last = &f->next;
		e->peer->count++;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

/* Under the lock: the first frame of @e is copied into a room. */
static struct weft_room *take_in(struct mend *e, size_t *ret_len)
{
	struct mrail *rail = e->rail;
	struct weft_room *room = rail->room[--rail->rooms];
	struct frame *f = e->inbox;

	e->inbox = f->next;
	if (!e->inbox)
		e->last = &e->inbox;
	e->count--;
	*ret_len = 0;
	for (uint32_t i = 0; i < f->pieces; i++) {
		memcpy((char *)room->data + *ret_len, f->piece[i].iov_base, f->piece[i].iov_len);
		*ret_len += f->piece[i].iov_len;
	}
	give_back(f, 0);
	return room;
}

/* Enters locked, leaves unlocked: one event of @e, if it has one. */
static bool serve(struct mend *e)
{
	static const struct weft_addr nobody = { .len = 8 };
	struct mrail *rail = e->rail;
	struct weft_room *room;
	size_t len;

	if (e->opener && !e->up_told) {
		e->up_told = true;
		pthread_mutex_unlock(&lock);
		rail->up->up(e->cookie);
	} else if (!e->known && e->inbox) {
		e->known = true;
		pthread_mutex_unlock(&lock);
		if (rail->up->incoming(rail->cookie, e, &nobody, &e->cookie) < 0)
			lane_close(e);
	} else if (e->inbox && rail->rooms) {
		room = take_in(e, &len);
		pthread_mutex_unlock(&lock);
		rail->up->frame(rail->cookie, e->cookie, NULL, room, len);
	} else if (!e->peer && e->known && !e->down_told) {
		e->down_told = true;
		pthread_mutex_unlock(&lock);
		rail->up->down(e->cookie, 0);
	} else if (e->owed && e->known && !e->down_told) {
		e->owed = false;
		pthread_mutex_unlock(&lock);
		rail->up->writable(e->cookie);
	} else {
		return false;
	}
	return true;
}

static int rail_poll(void *state, int budget, unsigned flags)
{
	struct mrail *rail = state;
	int n = 0;

	(void)flags;
	for (bool more = true; more && n < budget;) {
		struct frame *f;

		more = false;
		pthread_mutex_lock(&lock);
		f = rail->done;
		if (f) {
			rail->done = f->next;
			pthread_mutex_unlock(&lock);
			rail->up->sent(rail->cookie, f->token, f->err);
			free(f);
			more = true;
		} else {
			for (struct mend *e = rail->ends; e; e = e->next) {
				more = serve(e);
				if (more)
					break;          /* the list may be another now, and @e gone */
			}
			if (!more)
				pthread_mutex_unlock(&lock);
		}
		n += more;
	}
	return n;
}

static int provide(void *state, struct weft_room *const *rooms, int n)
{
	struct mrail *rail = state;
	int taken = 0;

	pthread_mutex_lock(&lock);
	while (taken < n && rail->rooms < ROOMS)
		rail->room[rail->rooms++] = rooms[taken++];
	pthread_mutex_unlock(&lock);
	return taken;
}

static int mem_add(void *state, void *base, size_t len, void **ret_mem, void *ret_key, uint32_t *ret_key_len)
{
	struct mrail *rail = state;
	struct region *r = calloc(1, sizeof(*r));

	(void)ret_key;
	if (!r)
		return weft_fail(-ENOMEM, "mock: out of memory");
	r->base = base;
	r->len = len;
	pthread_mutex_lock(&lock);
	r->next = rail->regions;
	rail->regions = r;
	pthread_mutex_unlock(&lock);
	*ret_key_len = 0;
	*ret_mem = r;
	return 0;
}

static void mem_del(void *state, void *mem)
{
	struct mrail *rail = state;

	pthread_mutex_lock(&lock);
	for (struct region **at = &rail->regions; *at; at = &(*at)->next)
		if (*at == mem) {
			*at = (*at)->next;
			free(mem);
			break;
		}
	pthread_mutex_unlock(&lock);
}

static const struct weft_driver_mem mem = { mem_add, mem_del };

const struct weft_driver mock_driver = {
	.abi = WEFT_DRIVER_ABI,
	.size = sizeof(struct weft_driver),
	.name = "mock",
	.caps = WEFT_DRIVER_RELIABLE | WEFT_DRIVER_LOCAL_MEM,
	.probe = probe,
	.rail_open = rail_open,
	.rail_close = rail_close,
	.lane_open = lane_open,
	.lane_close = lane_close,
	.send = lane_send,
	.poll = rail_poll,
	.provide = provide,
	.mem = &mem,
};
