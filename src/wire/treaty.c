/* treaty.c - see treaty.h. */
#include "wire/treaty.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "wire/wire.h"

#define PROCESS ((1u << WF_FOREIGN_SHIFT) - 1)

struct held {
	struct wf_endpoint endpoint;            /* this process, as handshakes with that job say; first, as who has it has all of this */
	uint32_t alias, side;
	uint8_t id[WF_JOB_BYTES];
	_Atomic bool over;
};

static struct wf_lock treaties_lock;
static bool on;                                         /* under treaties_lock */
static _Atomic(struct held *) by_alias[WF_ALIASES];     /* set once */
static struct held *standing[WF_TREATIES];              /* under treaties_lock: those that hold */
static struct held unheard = { .over = true };          /* of an alias that was over before it was known */
static int (*ask)(uint32_t alias, struct wf_treaty *ret);

void wf_treaties_open(int (*fn)(uint32_t alias, struct wf_treaty *ret))
{
	wf_lock(&treaties_lock);
	ask = fn;
	on = true;
	wf_unlock(&treaties_lock);
}

void wf_treaties_close(void)
{
	wf_lock(&treaties_lock);
	on = false;
	for (uint32_t i = 0; i < WF_ALIASES; i++) {
		struct held *h = atomic_exchange_explicit(&by_alias[i], NULL, memory_order_relaxed);

		if (!h || h == &unheard)
			continue;
		wf_endpoint_fini(&h->endpoint);
		free(h);
	}
	memset(standing, 0, sizeof(standing));
	wf_unlock(&treaties_lock);
}

static struct held *held_of(uint32_t alias)
{
	return alias < WF_ALIASES ? atomic_load_explicit(&by_alias[alias], memory_order_acquire) : NULL;
}

static bool is_over(const struct held *h)
{
	return atomic_load_explicit(&h->over, memory_order_acquire);
}

/* Where one more is kept; NULL: there are too many. */
static struct held **place_locked(void)
{
	for (unsigned i = 0; i < WF_TREATIES; i++)
		if (!standing[i])
			return &standing[i];
	return NULL;
}

static bool number_known_locked(const uint8_t id[WF_JOB_BYTES])
{
	for (unsigned i = 0; i < WF_TREATIES; i++)
		if (standing[i] && memcmp(standing[i]->id, id, WF_JOB_BYTES) == 0)
			return true;
	return false;
}

static int keep_locked(struct held *h)
{
	struct held *old = held_of(h->alias), **place = place_locked();

	if (!on)
		return weft_fail(-EOPNOTSUPP, "this process is not reached by sockets, and so by no other job");
	if (old && !is_over(old) && memcmp(old->id, h->id, sizeof(h->id)) == 0)
		return -EALREADY;
	if (old || number_known_locked(h->id))
		return weft_fail(-EEXIST, "job %u: that number is, or was, another attachment's", h->alias);
	if (!place)
		return weft_fail(-ENOSPC, "more than %u jobs cannot be attached at a time", WF_TREATIES);
	*place = h;
	atomic_store_explicit(&by_alias[h->alias], h, memory_order_release);
	return 0;
}

int wf_wire_treaty_add(const struct wf_treaty *t)
{
	struct wf_identity self = wf_endpoint.self;
	struct held *h;
	int r;

	if (!t->alias || t->alias >= WF_ALIASES || t->side > 1 || t->me > PROCESS)
		return weft_fail(-EINVAL, "an attachment %u of side %u that makes no sense", t->alias, t->side);
	if (!wf_hosts)
		return weft_fail(-EOPNOTSUPP, "this process is not reached by sockets, and so by no other job");
	h = calloc(1, sizeof(*h));
	if (!h)
		return weft_fail(-ENOMEM, "no memory for an attached job");
	h->alias = t->alias;
	h->side = t->side;
	memcpy(h->id, t->id, sizeof(h->id));
	self.process = t->side << WF_FOREIGN_SHIFT | (t->me ? t->me : self.process);
	r = wf_endpoint_init(&h->endpoint, &t->key, t->id, &self, wf_endpoint.mode);
	if (r == 0) {
		wf_lock(&treaties_lock);
		r = keep_locked(h);
		wf_unlock(&treaties_lock);
	}
	if (r < 0) {
		wf_endpoint_fini(&h->endpoint);
		free(h);
	} else {
		wf_log(WF_INFO, "job %u is attached", t->alias);
	}
	return r == -EALREADY ? 0 : r;
}

void wf_wire_treaty_drop(uint32_t alias)
{
	struct held *h;
	bool was = false;

	if (!alias || alias >= WF_ALIASES)
		return;
	wf_lock(&treaties_lock);
	h = held_of(alias);
	if (!h && on)
		atomic_store_explicit(&by_alias[alias], &unheard, memory_order_release);
	for (unsigned i = 0; h && i < WF_TREATIES; i++)
		if (standing[i] == h) {
			standing[i] = NULL;
			atomic_store_explicit(&h->over, true, memory_order_release);
			was = true;
		}
	wf_unlock(&treaties_lock);
	if (!was)
		return;
	wf_log(WF_INFO, "job %u is no longer attached", alias);
	wf_trunks_drop(alias);
}

void wf_wire_treaties_drop(void)
{
	for (uint32_t i = 1; i < WF_ALIASES; i++)
		if (held_of(i))
			wf_wire_treaty_drop(i);
}

/* The notice of it may have come and not been read. */
static struct held *asked_for(uint32_t alias)
{
	struct wf_treaty t;

	memset(&t, 0, sizeof(t));
	if (!ask || ask(alias, &t) < 0 || t.alias != alias)
		return NULL;
	wf_wire_treaty_add(&t);
	wf_key_wipe(&t.key);
	return held_of(alias);
}

int wf_treaty_meet(uint32_t process, const struct wf_endpoint **ret_me, uint32_t *ret_them)
{
	uint32_t alias = process >> WF_FOREIGN_SHIFT;
	struct held *h = held_of(alias);

	if (!h && alias && alias < WF_ALIASES)
		h = asked_for(alias);
	if (!h || is_over(h) || !(process & PROCESS))
		return wf_treaty_fail(process);
	*ret_me = &h->endpoint;
	*ret_them = !h->side << WF_FOREIGN_SHIFT | (process & PROCESS);
	return 0;
}

int wf_treaty_fail(uint32_t process)
{
	uint32_t alias = process >> WF_FOREIGN_SHIFT;
	struct held *h = held_of(alias);

	if (!h)
		return weft_fail(-ESRCH, "no job %u is attached", alias);
	if (is_over(h))
		return weft_fail(-ECONNRESET, "job %u is no longer attached", alias);
	return weft_fail(-ESRCH, "job %u has no process %u, or does not offer it", alias, process & PROCESS);
}

static const struct held *held_by(const struct wf_endpoint *me)
{
	return (const struct held *)(const void *)me;
}

bool wf_treaty_holds(const struct wf_endpoint *me)
{
	return !is_over(held_by(me));
}

const struct wf_endpoint *wf_treaty_of_tag(const uint8_t tag[WF_JOB_BYTES])
{
	const struct wf_endpoint *e = NULL;

	wf_lock(&treaties_lock);
	for (unsigned i = 0; i < WF_TREATIES && !e; i++)
		if (standing[i] && memcmp(standing[i]->endpoint.credentials.tag, tag, WF_JOB_BYTES) == 0)
			e = &standing[i]->endpoint;
	wf_unlock(&treaties_lock);
	return e;
}

uint32_t wf_treaty_caller(const struct wf_endpoint *me, uint32_t called)
{
	const struct held *h = held_by(me);

	if (called >> WF_FOREIGN_SHIFT != !h->side || !(called & PROCESS) || is_over(h))
		return 0;
	return h->alias << WF_FOREIGN_SHIFT | (called & PROCESS);
}
