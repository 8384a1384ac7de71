/* ended.c - what follows when an id ends: receives that named it, probes, members of ports.
 *
 * A walk over all open ports, under the table's lock, which enters those that it may concern: where somebody has said
 * that he waits for this id in particular (port.watcher), and those that have members.
 */
#include <errno.h>
#include <string.h>

#include "port/deliver.h"
#include "port/open.h"
#include "port/publish.h"
#include "port/recv.h"
#include "port/request.h"
#include "port/tell.h"
#include "port/wait.h"
#include "port/way.h"

_Atomic uint32_t wf_ports_with_members;

struct ending {
	weft_id id, mask;               /* whoever is @id in these bits: one, or all of a process */
	uint32_t watcher;               /* the port at which somebody waits for it in particular, as port.watcher says */
	int err;                        /* of receives that named it */
	bool broke;                     /* FRAGILE ports: their sends are to be taken back when no lock is held */
};

#define LOOK_MOST 64                    /* ids at a time */

struct looking {
	uint32_t process;
	int n;
	weft_id gone[LOOK_MOST];
};

static bool concerns(const struct ending *x, weft_id id)
{
	return id && id != WEFT_ANY && !(id & WF_MEMBER_GONE) && ((id ^ x->id) & x->mask) == 0;
}

/* May it concern @p at all? A visit costs a heavy fence, and when many end at once each would come to all of them. */
static bool may_concern(const struct ending *x, const struct weft_port *p)
{
	return x->watcher == WF_WATCHED_BY_ANY || x->watcher == p->number + 1 || atomic_load_explicit(&p->with_members, memory_order_relaxed);
}

/* Receives at @p that only @id could have satisfied. What it published comes first. */
static void end_named_locked(struct weft_port *p, const struct ending *x)
{
	struct weft_match_entry *e, *next;

	for (e = p->proto ? NULL : wf_first(p, WEFT_MATCH_WANTS); e; e = next) {
		struct weft_req *r = wf_of(e, struct weft_req, a.entry);
		struct wf_head h;

		next = wf_next(p, e);
		memcpy(&h, e->head, sizeof(h));
		if (!concerns(x, h.src))
			continue;
		wf_unmatch(p, e);
		p->told_wants -= r->told;
		r->st.from = h.src;
		wf_req_end_locked(r, weft_fail(x->err, x->err == -ECONNRESET ? "the one it named has ended" : "the one it named is not reached any more"));
	}
}

/* Receives at a WARY port that wait for anyone: whom they wait for may be the one. */
static void end_any_locked(struct weft_port *p)
{
	struct weft_match_entry *e, *next;

	for (e = wf_first(p, WEFT_MATCH_WANTS); e; e = next) {
		struct weft_req *r = wf_of(e, struct weft_req, a.entry);
		struct wf_head h;

		next = wf_next(p, e);
		memcpy(&h, e->head, sizeof(h));
		if (h.src != WEFT_ANY)
			continue;
		wf_unmatch(p, e);
		p->told_wants -= r->told;
		wf_req_end_locked(r, weft_fail(-ECONNRESET, "a member of the port has ended"));
		atomic_store_explicit(&p->dead_told, atomic_load_explicit(&p->dead, memory_order_relaxed), memory_order_relaxed);
	}
}

bool wf_port_alone(struct weft_port *p)
{
	weft_id own = atomic_load_explicit(&p->id, memory_order_relaxed);

	/* relaxed: who ends meanwhile is told by the ending itself */
	if (atomic_load_explicit(&p->dead, memory_order_relaxed) + 1 < p->members->count)
		return false;
	for (uint32_t i = 0; i < p->members->count; i++) {
		weft_id id = atomic_load_explicit(&p->members->ids[i], memory_order_relaxed);

		if (id && id != own && !(id & WF_MEMBER_GONE))
			return false;
	}
	return true;
}

static void break_locked(struct weft_port *p)
{
	struct weft_match_entry *e;

	atomic_store_explicit(&p->broken, true, memory_order_relaxed);
	while ((e = wf_first(p, WEFT_MATCH_WANTS)) != NULL) {
		struct weft_req *r = wf_of(e, struct weft_req, a.entry);

		wf_unmatch(p, e);
		p->told_wants -= r->told;
		wf_req_end_locked(r, weft_fail(-ECONNRESET, "a member of the port has ended"));
	}
}

static void member_left_locked(struct weft_port *p, uint32_t index, struct ending *x)
{
	struct weft_status st = { .from = atomic_load_explicit(&p->members->ids[index], memory_order_relaxed), .tag = WEFT_LEFT, .index = index, .user = p->user };

	atomic_fetch_add_explicit(&p->epoch, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&p->dead, 1, memory_order_relaxed);
	if (p->event)
		wf_tell_event(p->event, &st);
	if (p->flags & WEFT_PORT_WARY)
		end_any_locked(p);
	if (!(p->flags & WEFT_PORT_FRAGILE))
		return;
	break_locked(p);
	x->broke = true;
}

static void visit(struct weft_port *p, void *arg)
{
	struct ending *x = arg;
	struct wf_work work = { NULL };

	if (!may_concern(x, p))
		return;
	wf_port_enter(p);
	if (p->open && !p->closing) {
		wf_drain_ended_locked(p, &work);
		end_named_locked(p, x);
		for (uint32_t i = 0; p->members && i < p->members->count; i++)
			if (concerns(x, atomic_load_explicit(&p->members->ids[i], memory_order_relaxed)))
				member_left_locked(p, i, x);
		wf_wake_probers_locked(p);
	}
	wf_port_leave(p);
	wf_work_do(p, &work);
}

static void vacate(struct weft_port *p, void *arg)
{
	struct ending *x = arg;

	if (!atomic_load_explicit(&p->with_members, memory_order_relaxed))
		return;
	wf_port_enter(p);               /* one that is just being opened gets its members there */
	for (uint32_t i = 0; p->members && i < p->members->count; i++)
		if (concerns(x, atomic_load_explicit(&p->members->ids[i], memory_order_relaxed)))
			atomic_fetch_or_explicit(&p->members->ids[i], WF_MEMBER_GONE, memory_order_relaxed);   /* what it has left can still be received */
	wf_port_leave(p);
}

struct picking {
	struct weft_port *p;
	uint32_t from;
};

/* The broken port with sends pending whose number is the lowest of those not visited yet. */
static void pick_broken(struct weft_port *p, void *arg)
{
	struct picking *x = arg;

	if (p->number >= x->from && (!x->p || p->number < x->p->number) && atomic_load_explicit(&p->broken, memory_order_relaxed) && wf_sends_pending(p))
		x->p = p;
}

static void ended(struct ending x)
{
	struct picking next = { NULL, 0 };

	wf_port_each(visit, &x);
	wf_port_each(vacate, &x);
	while (x.broke) {
		next.p = NULL;
		wf_port_each(pick_broken, &next);
		if (!next.p)
			break;
		wf_sends_break(next.p, -ECONNRESET);
		next.from = next.p->number + 1;
	}
}

void wf_id_ended(weft_id id, uint32_t watcher)
{
	wf_publish_ended(id);
	if (watcher || atomic_load_explicit(&wf_ports_with_members, memory_order_relaxed))
		ended((struct ending){ .id = id, .mask = UINT64_MAX, .watcher = watcher, .err = -ECONNRESET });
}

/* @id, if it is a thread or a port of that process that is no more. */
static void note(struct looking *l, weft_id id)
{
	struct ending all = { .id = (weft_id)l->process << 32, .mask = UINT64_MAX << 32 };

	if (l->n == LOOK_MOST || !(uint32_t)id || !concerns(&all, id) || wf_far_lives(id))
		return;
	for (int i = 0; i < l->n; i++)
		if (l->gone[i] == id)
			return;
	l->gone[l->n++] = id;
}

static void look(struct weft_port *p, void *arg)
{
	struct looking *l = arg;

	wf_port_enter(p);
	if (p->open && !p->closing) {
		for (struct weft_match_entry *e = p->proto ? NULL : wf_first(p, WEFT_MATCH_WANTS); e; e = wf_next(p, e)) {
			struct wf_head h;

			memcpy(&h, e->head, sizeof(h));
			note(l, h.src);
		}
		for (uint32_t i = 0; p->members && i < p->members->count; i++)
			note(l, atomic_load_explicit(&p->members->ids[i], memory_order_relaxed));
		wf_wake_probers_locked(p);
	}
	wf_port_leave(p);
}

void wf_ids_look(uint32_t process)
{
	struct looking l = { .process = process };

	do {
		l.n = 0;
		wf_port_each(look, &l);
		for (int i = 0; i < l.n; i++)
			wf_id_ended(l.gone[i], WF_WATCHED_BY_ANY);
	} while (l.n == LOOK_MOST);             /* those are named by nobody any more: it ends */
}

struct naming {
	struct ending who;
	bool named;
};

static void look_for(struct weft_port *p, void *arg)
{
	struct naming *x = arg;

	if (x->named)
		return;
	wf_port_enter(p);
	for (struct weft_match_entry *e = p->proto ? NULL : wf_first(p, WEFT_MATCH_WANTS); e && !x->named; e = wf_next(p, e)) {
		struct wf_head h;

		memcpy(&h, e->head, sizeof(h));
		x->named = concerns(&x->who, h.src);
	}
	for (uint32_t i = 0; p->members && i < p->members->count && !x->named; i++)
		x->named = concerns(&x->who, atomic_load_explicit(&p->members->ids[i], memory_order_relaxed));
	x->named |= p->probing;         /* for whom is its own affair */
	wf_port_leave(p);
}

bool wf_process_named(uint32_t process)
{
	struct naming x = { .who = { .id = (weft_id)process << 32, .mask = UINT64_MAX << 32 } };

	wf_port_each(look_for, &x);
	return x.named;
}

void wf_process_ended(uint32_t process, int err)
{
	ended((struct ending){ .id = (weft_id)process << 32, .mask = UINT64_MAX << 32, .watcher = WF_WATCHED_BY_ANY, .err = err });
}
