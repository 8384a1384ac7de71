/* arrive_kept.c - messages that the other end keeps back for a port: receives posted there ask for what they want. */
#include <string.h>

#include "port/seek.h"
#include "port/wait.h"
#include "wire/arrive.h"

/* @want as a process of another job is to read it, which has another name for itself: no process number is the reader's own. False: it is not from that process. */
static bool want_abroad(const struct wf_trunk *t, const void *want, unsigned char *ret)
{
	struct wf_head h;

	memcpy(ret, want, WF_HEAD_ROOM);
	memcpy(&h, want, sizeof(h));
	if (h.src == WEFT_ANY)
		return true;
	if (h.src >> 32 != t->process)
		return false;
	h.src = (uint32_t)h.src;
	memcpy(ret, &h, sizeof(h));
	return true;
}

void wf_arrive_seek_locked(struct weft_port *p, const void *want)
{
	unsigned char abroad[WF_HEAD_ROOM];
	struct wf_trunk *t;

	for (uint32_t at = 0; (t = wf_trunk_next(&at)) != NULL;) {
		const void *said = want;

		if (!atomic_load_explicit(&t->keeps, memory_order_relaxed))
			continue;
		if (wf_foreign(t->process) && !p->proto) {
			if (!want_abroad(t, want, abroad))
				continue;
			said = abroad;
		}
		wf_trunk_lock(t);
		wf_remote_seek(&t->remote, (uint32_t)atomic_load_explicit(&p->id, memory_order_relaxed),
			       atomic_load_explicit(&p->context, memory_order_relaxed), wf_seek_name(p, want), said, WF_HEAD_ROOM);
		wf_unlock(&t->lock);
		wf_trunk_kick(t);
	}
}

/* [a door] Does the other end keep messages for (@to, @context)? It may say the same more than once. True: that is news. */
static bool keeps(struct wf_trunk *t, uint32_t to, uint64_t context, bool more)
{
	uint64_t h = (to + (context ^ context >> 32) * UINT64_C(0xd6e8feb86659fd93)) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t key = (uint32_t)(h >> 32) | 1;
	bool news;

	wf_trunk_lock(t);
	news = (wf_ids_get(&t->keeping, key) == WF_ID_ASKED) != more;
	if (news)
		wf_ids_put(&t->keeping, key, more ? WF_ID_ASKED : WF_ID_OVER);          /* without memory it is asked for longer than need be */
	wf_unlock(&t->lock);
	return news;
}

void wf_arrive_backlog(struct wf_trunk *t, const struct wf_act *a, bool more)
{
	struct wf_rmsg to = { .to = a->to, .context = a->context };
	struct weft_port *p = wf_arrive_enter(&to);
	bool news;

	if (!p)
		return;
	news = keeps(t, a->to, a->context, more);
	if (more) {
		if (news) {
			p->asks++;
			atomic_fetch_add_explicit(&t->keeps, 1, memory_order_relaxed);
			wf_wake_probers_locked(p);      /* to ask for what they want: what they wait for may be there */
		}
		for (struct weft_match_entry *e = wf_first(p, WEFT_MATCH_WANTS); e; e = wf_next(p, e))
			wf_arrive_seek_locked(p, e->head);
	} else if (news && p->asks) {
		p->asks--;
		atomic_fetch_sub_explicit(&t->keeps, 1, memory_order_relaxed);
	}
	wf_port_leave(p);
}
