/* seek.c - see seek.h. */
#include "port/seek.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "port/deliver.h"
#include "port/push.h"
#include "port/request.h"
#include "port/table.h"

#define AT_ONCE 64              /* receives asked for at a time */
#define AGAIN (10 * WEFT_MS)

static _Atomic uint32_t clogs;          /* rings that are clogged; a count */
static weft_time next;                  /* [listener] */

/* Where @slot's last question has not even been written, this one takes its place: what was asked there is asked again in its turn. */
static void ask(struct wf_inway *w, uint32_t slot, const void *want)
{
	struct wf_f_seek f = { .key = w->key, .who = w->who, .slot = slot };

	memcpy(f.want, want, sizeof(f.want));
	wf_frame_send(w->peer, WF_F_SEEK, &f, sizeof(f));
}

/* The next so many of what is posted, in turns: what is wanted may be behind many that are not there. */
static void ask_all_locked(struct weft_port *p, struct wf_inway *w)
{
	struct weft_match_entry *e = wf_first(p, WEFT_MATCH_WANTS);
	uint32_t n = 0;

	for (uint32_t i = 0; e && i < w->asked; i++)
		e = wf_next(p, e);
	if (!e) {
		w->asked = 0;
		e = wf_first(p, WEFT_MATCH_WANTS);
	}
	for (; e && n < AT_ONCE; e = wf_next(p, e))
		ask(w, n++, e->head);
	w->asked += n;
}

void wf_seek_clog_locked(struct weft_port *p, struct wf_inway *w)
{
	w->clogged = true;
	p->clogs++;
	atomic_fetch_add_explicit(&clogs, 1, memory_order_relaxed);
	atomic_store_explicit(&w->box->clogged, 1, memory_order_relaxed);      /* one that misses it announces one more */
	ask_all_locked(p, w);
}

void wf_seek_unclog_locked(struct weft_port *p, struct wf_inway *w)
{
	struct wf_f_way f = { .key = w->key, .who = w->who };

	w->clogged = false;
	p->clogs--;
	atomic_fetch_sub_explicit(&clogs, 1, memory_order_relaxed);
	atomic_store_explicit(&w->box->clogged, 0, memory_order_relaxed);
	wf_frame_send(w->peer, WF_F_ROOM, &f, sizeof(f));
}

void wf_seek_locked(struct weft_port *p, const void *want)
{
	for (struct wf_reader *r = atomic_load_explicit(&p->ring.reader.next, memory_order_relaxed); r;
	     r = atomic_load_explicit(&r->next, memory_order_relaxed))
		if (wf_inway_of(r)->clogged)
			ask(wf_inway_of(r), AT_ONCE, want);
}

void wf_seek_instead_locked(struct wf_inway *w, const void *want)
{
	if (w->clogged)                 /* else all that is kept there is on its way */
		ask(w, AT_ONCE, want);
}

uint64_t wf_seek_name(const struct weft_port *p, const void *want)
{
	size_t len = p->proto ? p->proto->head_len : sizeof(struct wf_head);
	uint64_t name = len;

	for (const unsigned char *c = want; c < (const unsigned char *)want + len; c++) {
		name = (name ^ *c) * UINT64_C(0x9e3779b97f4a7c15);
		name ^= name >> 29;
	}
	return name | 1;
}

static void ask_at(struct weft_port *p, void *arg)
{
	(void)arg;
	wf_port_enter(p);
	if (p->open && p->clogs)
		for (struct wf_reader *r = atomic_load_explicit(&p->ring.reader.next, memory_order_relaxed); r;
		     r = atomic_load_explicit(&r->next, memory_order_relaxed))
			if (wf_inway_of(r)->clogged)
				ask_all_locked(p, wf_inway_of(r));
	wf_port_leave(p);
}

bool wf_seeks(void)
{
	return atomic_load_explicit(&clogs, memory_order_relaxed) > 0;
}

void wf_seek_again(void)
{
	if (!wf_seeks() || wf_now() < next)
		return;
	next = weft_in(AGAIN);
	wf_port_each(ask_at, NULL);
}

/* Does @r's header fit @want, by the protocol of its port? @m: a matcher that holds the want. */
static bool fits(const struct weft_req *r, const void *want, void *m)
{
	struct wf_head w, h;

	if (r->from->proto)
		return r->from->proto->find_want(m, r->a.entry.head) != NULL;
	memcpy(&w, want, sizeof(w));
	memcpy(&h, r->a.entry.head, sizeof(h));
	return wf_matches(&w, h.src, h.tag);
}

struct weft_req *wf_seek(struct wf_way *w, const void *want)
{
	const struct weft_proto *proto = w->proto;
	struct weft_match_entry e = { .side = 0 };
	struct weft_req *found = NULL;
	void *m = proto ? malloc(proto->match_size) : NULL;

	if (proto && !m)
		return NULL;
	if (proto) {
		proto->init(m, proto->ctx);
		proto->add_want(m, want, &e);
	}
	for (int i = WF_PRIOS; i-- > 0 && !found;)
		for (struct wf_node *n = w->backlog[i].next; n && n != &w->backlog[i] && !found; n = n->next) {
			struct weft_req *r = wf_of(n, struct weft_req, spill);

			if (fits(r, want, m))
				found = r;
		}
	if (proto) {
		proto->remove(m, &e);
		proto->fini(m);
		free(m);
	}
	return found;
}
