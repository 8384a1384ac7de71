/* recv.h - what receives have in common, and those that go on. */
#ifndef WF_PORT_RECV_H
#define WF_PORT_RECV_H

#include <errno.h>
#include <string.h>

#include "port/native.h"
#include "port/route.h"
#include "port/table.h"
#include "port/way.h"

struct wf_work;

/* [inside] Posts @r if nothing is there: 0 posted; 1 or an error: over, nothing is posted. */
int wf_post_locked(struct weft_port *p, struct weft_req *r, const void *want, struct wf_work *work, struct weft_req **ret_send);
void wf_recv_fetch(struct weft_port *p, struct weft_req *r, struct weft_req *send);     /* [no lock] @send, of another process, is @r's: it is fetched by and by, and nobody waits for that here */

/* A repeating receive takes what is there, each told on its own, and is then posted. */
void wf_recv_again(struct weft_req *r);
void wf_recv_landed(struct weft_req *r, int err);       /* [no lock] one of another process was fetched; its port was pinned */
void wf_recv_resume(struct weft_req *r);        /* [callback runner] its memory is free again; its port was kept open */

/* The first one's number stays until there is a second one. */
static inline void wf_watch_as(struct weft_port *p, uint32_t who)
{
	uint32_t nobody = 0;

	/* release, as the look at it is acquire: ordered with the id by the fence that follows */
	if (!atomic_compare_exchange_strong_explicit(&p->watcher, &nobody, who, memory_order_release, memory_order_relaxed) && nobody != who)
		atomic_store_explicit(&p->watcher, WF_WATCHED_BY_ANY, memory_order_release);
}

/* [inside @at, or behind that] A receive at @at that names @src will wait: its end shall be told. -ESRCH: it has ended already. */
static inline int wf_watch(struct weft_port *at, weft_id src)
{
	struct weft_port *p;
	uint32_t watcher;

	if (wf_far_watched(src))
		return 0;
	p = wf_port_by_id(src);
	if (wf_unlikely(!p) && wf_abroad(src))
		return wf_hosts->watch(src);
	if (wf_unlikely(!p) && wf_peers_on() && src >> 32 != wf_process_id >> 32)
		return wf_far_watch(src);
	if (wf_unlikely(!p))
		return -ESRCH;
	/* acquire: whoever said it may have come too late, which the id, read after it, tells */
	watcher = atomic_load_explicit(&p->watcher, memory_order_acquire);
	if (wf_unlikely(atomic_load_explicit(&p->id, WF_DEPENDS) != src))
		return -ESRCH;
	if (wf_likely(watcher == at->watches_as || watcher == WF_WATCHED_BY_ANY))
		return 0;
	wf_watch_as(p, at->watches_as);
	wf_fence_light();               /* F1: the closer clears its id, passes a heavy fence and looks at watcher */
	return atomic_load_explicit(&p->id, memory_order_relaxed) == src ? 0 : -ESRCH;
}

/* Does @id live, here or in another process? A hint. */
static inline bool wf_lives(weft_id id)
{
	if (wf_likely(id >> 32 == wf_process_id >> 32) || !wf_peers_on())
		return wf_id_lives(id);
	return wf_unlikely(wf_abroad(id)) ? wf_hosts->lives(id) == 0 : wf_far_lives(id);
}

bool wf_port_alone(struct weft_port *p);        /* every member but the port itself has ended */

/* A receive or probe from anyone found nothing: at a WARY port, whether a member's end is still to be told, of which @told were
 * before. Two at once may both be told. */
static inline int wf_wary(struct weft_port *p, uint32_t told)
{
	uint32_t dead;

	if (wf_likely(!(p->flags & WEFT_PORT_WARY)))
		return 0;
	dead = atomic_load_explicit(&p->dead, memory_order_relaxed);    /* written inside; a probe that looks too early is woken */
	if (dead == told && !(dead && wf_port_alone(p)))
		return 0;
	atomic_store_explicit(&p->dead_told, dead, memory_order_relaxed);
	return weft_fail(-ECONNRESET, "a member of the port has ended");
}

/* The source a native receive names, or 0. */
static inline weft_id wf_named(const struct weft_port *p, const void *want)
{
	struct wf_head h;

	memcpy(&h, want, sizeof(h));
	return p->proto || h.src == WEFT_ANY ? 0 : h.src;
}

/* wf_wary for a receive. */
static inline int wf_wary_now(struct weft_port *p)
{
	return wf_wary(p, atomic_load_explicit(&p->dead_told, memory_order_relaxed));
}

#endif
