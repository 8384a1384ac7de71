/* ended.c - what follows when an id ends: receives that named it, probes, members of ports.
 *
 * A walk over all open ports, under the table's lock; only when somebody has said that he waits for this id in
 * particular (port.watched), or some port has members.
 */
#include <errno.h>
#include <string.h>

#include "port/deliver.h"
#include "port/open.h"
#include "port/request.h"
#include "port/tell.h"

_Atomic uint32_t wf_ports_with_members;

struct ending {
	weft_id id, mask;               /* whoever is @id in these bits: one, or all of a process */
	bool broke;                     /* FRAGILE ports: their sends are to be taken back when no lock is held */
};

/* Receives at @p that only @id could have satisfied. What it published comes first. */
static bool concerns(const struct ending *x, weft_id id)
{
	return id && id != WEFT_ANY && !(id & WF_MEMBER_GONE) && ((id ^ x->id) & x->mask) == 0;
}

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
		wf_req_end_locked(r, weft_fail(-ECONNRESET, "the one it named has ended"));
	}
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
	if (!(p->flags & WEFT_PORT_FRAGILE))
		return;
	break_locked(p);
	x->broke = true;
}

static void visit(struct weft_port *p, void *arg)
{
	struct ending *x = arg;
	struct wf_work work = { NULL };

	wf_port_enter(p);
	if (p->open && !p->closing) {
		wf_drain_locked(p, &work);
		end_named_locked(p, x);
		for (uint32_t i = 0; p->members && i < p->members->count; i++)
			if (concerns(x, atomic_load_explicit(&p->members->ids[i], memory_order_relaxed)))
				member_left_locked(p, i, x);
		for (struct wf_node *n = p->waiters.next; n && n != &p->waiters; n = n->next)
			if (wf_of(n, struct wf_waiter, link)->probes)
				wf_wake(wf_of(n, struct wf_waiter, link)->parker);
	}
	wf_port_leave(p);
	wf_work_do(p, &work);
}

static void vacate(struct weft_port *p, void *arg)
{
	struct ending *x = arg;

	for (uint32_t i = 0; p->members && i < p->members->count; i++)
		if (concerns(x, atomic_load_explicit(&p->members->ids[i], memory_order_relaxed)))
			atomic_fetch_or_explicit(&p->members->ids[i], WF_MEMBER_GONE, memory_order_relaxed);   /* what it has left can still be received */
}

/* A broken port with sends pending: no further ones are accepted there, so there is a last. */
static void pick_broken(struct weft_port *p, void *arg)
{
	struct weft_port **ret = arg;

	if (!*ret && atomic_load_explicit(&p->broken, memory_order_relaxed) && wf_sends_pending(p))
		*ret = p;
}

static void ended(struct ending x)
{
	struct weft_port *p;

	wf_port_each(visit, &x);
	wf_port_each(vacate, &x);
	while (x.broke) {
		p = NULL;
		wf_port_each(pick_broken, &p);
		if (!p)
			break;
		wf_sends_cancel(p, -ECONNRESET);
	}
}

void wf_id_ended(weft_id id, bool watched)
{
	if (watched || atomic_load_explicit(&wf_ports_with_members, memory_order_relaxed))
		ended((struct ending){ .id = id, .mask = UINT64_MAX });
}

void wf_process_ended(uint32_t process)
{
	ended((struct ending){ .id = (weft_id)process << 32, .mask = UINT64_MAX << 32 });
}
