/* state.c - what goes on in this process: counters, and a sample of ports, queues and waiters. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/state.h>

#include "port/budget.h"
#include "port/deliver.h"
#include "port/listener.h"
#include "port/self.h"
#include "port/table.h"

static uint64_t get(_Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void add_port(struct weft_port *p, void *arg)
{
	struct weft_stats *s = arg;

	wf_port_enter(p);
	s->sent += get(&p->sent);
	s->bytes_sent += get(&p->sent_bytes);
	s->ready_missed += get(&p->ready_missed);
	s->lost += get(&p->lost);               /* a port counts its own too: see weft_stats_get */
	s->wakes += get(&p->wakes);
	s->received += p->received;
	s->bytes_received += p->received_bytes;
	s->copies += p->copies;
	s->expected += wf_wants(p);
	s->unexpected += wf_arrivals(p);
	s->requested += p->copying;
	s->unrequested += p->unrequested;
	s->unexpected_bytes += p->held;
	for (struct wf_node *n = p->waiters.next; n && n != &p->waiters; n = n->next)
		s->parked++;
	wf_port_leave(p);
}

int weft_stats_get(const struct weft_port *port, struct weft_stats *ret_stats)
{
	struct weft_stats s = { .size = sizeof(s), .budget = wf_budget.limit };
	struct weft_port *p;
	struct wf_gone gone;
	uint32_t size;
	int r = wf_enter();

	if (r < 0)
		return r;
	if (!ret_stats || ret_stats->size < sizeof(uint32_t))
		return weft_fail(-EINVAL, "ret_stats is NULL, or its size is not set");
	if (port) {
		memcpy(&p, &port, sizeof(p));   /* counted under its lock */
		if (!atomic_load_explicit(&p->id, memory_order_relaxed))
			return weft_fail(-EINVAL, "the port is closed");
		add_port(p, &s);
		s.lost += get(&p->sent_lost);
	} else {
		wf_port_each(add_port, &s);
		s.requested += atomic_load_explicit(&wf_taken, memory_order_relaxed);
		s.parked = atomic_load_explicit(&wf_parked, memory_order_relaxed);
		s.parked -= atomic_load_explicit(&wf_listener_parker.word, memory_order_relaxed) && s.parked;
		gone = wf_gone_read();
		s.lost += gone.lost;
		s.sent += gone.sent;
		s.received += gone.received;
		s.bytes_sent += gone.bytes_sent;
		s.bytes_received += gone.bytes_received;
		s.copies += gone.copies;
		s.wakes += gone.wakes;
		s.ready_missed += gone.ready_missed;
		s.unexpected_bytes = atomic_load_explicit(&wf_budget.used, memory_order_relaxed);
	}
	size = ret_stats->size < sizeof(s) ? ret_stats->size : (uint32_t)sizeof(s);
	s.size = ret_stats->size;
	memcpy(ret_stats, &s, size);
	return 0;
}

struct weft_state {
	size_t count, room, next;
	bool short_of_memory;
	struct weft_state_item *items;
};

static void item(struct weft_state *s, uint32_t kind, weft_id who, weft_id whom, uint64_t tag, uint64_t len,
		 const char *text)
{
	struct weft_state_item *i;

	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 64;
		struct weft_state_item *items = realloc(s->items, room * sizeof(*items));

		if (!items) {
			s->short_of_memory = true;
			return;
		}
		s->items = items;
		s->room = room;
	}
	i = &s->items[s->count++];
	*i = (struct weft_state_item){ .size = sizeof(*i), .kind = kind, .who = who, .whom = whom, .tag = tag, .len = len };
	snprintf(i->text, sizeof(i->text), "%s", text);
}

static void sample_queue(struct weft_state *s, struct weft_port *p, weft_id id, int side)
{
	for (struct weft_match_entry *e = wf_first(p, side); e; e = wf_next(p, e)) {
		struct wf_arrival *a = wf_of(e, struct wf_arrival, entry);
		struct wf_head h;

		memcpy(&h, e->head, sizeof(h));
		if (p->proto)
			h = (struct wf_head){ .src = side == WEFT_MATCH_ARRIVALS ? a->src : WEFT_ANY };
		if (side == WEFT_MATCH_WANTS)
			item(s, WEFT_STATE_QUEUED, id, h.src, h.ignore == UINT64_MAX ? WEFT_ANY_TAG : h.tag,
			     wf_of(e, struct weft_req, a.entry)->mem.len, "expected");
		else
			item(s, WEFT_STATE_QUEUED, id, a->src, h.tag, a->len,
			     a->flags & WF_MSG_SENDS ? "unexpected, announced" : "unexpected");
	}
}

static void sample(struct weft_port *p, void *arg)
{
	struct weft_state *s = arg;
	weft_id id = atomic_load_explicit(&p->id, memory_order_relaxed);
	char text[64];

	wf_port_enter(p);
	snprintf(text, sizeof(text), "%s%.40s", p->limbo ? "not open yet " : "",
		 p->name[0] ? p->name : p->thread_port ? "thread" : id == wf_process_id ? "process" : "port");
	item(s, WEFT_STATE_PORT, id, 0, atomic_load_explicit(&p->context, memory_order_relaxed), p->held, text);
	sample_queue(s, p, id, WEFT_MATCH_WANTS);
	sample_queue(s, p, id, WEFT_MATCH_ARRIVALS);
	for (struct wf_node *n = p->waiters.next; n && n != &p->waiters; n = n->next) {
		struct wf_waiter *w = wf_of(n, struct wf_waiter, link);
		struct weft_port *own = wf_of(w->parker, struct weft_port, parker);

		item(s, WEFT_STATE_WAITER, atomic_load_explicit(&own->id, memory_order_relaxed), id, 0, 0,
		     w->probes ? "probes" : "receives");
	}
	wf_port_leave(p);
}

int weft_state_open(pid_t pid, struct weft_state **ret_state)
{
	struct weft_state *s;
	int r = wf_enter();

	if (r < 0)
		return r;
	if (!ret_state)
		return weft_fail(-EINVAL, "ret_state is NULL");
	if (pid != 0 && pid != getpid())
		return weft_fail(-EOPNOTSUPP, "the state of another process is not served yet");
	s = calloc(1, sizeof(*s));
	if (!s)
		return weft_fail(-ENOMEM, "no memory for a sample");
	wf_port_each(sample, s);
	if (s->short_of_memory) {
		weft_state_close(s);
		return weft_fail(-ENOMEM, "no memory for a sample");
	}
	*ret_state = s;
	return 0;
}

int weft_state_next(struct weft_state *state, struct weft_state_item *ret_item)
{
	uint32_t size;

	if (!state || !ret_item || ret_item->size < sizeof(uint32_t))
		return weft_fail(-EINVAL, "state or ret_item is NULL, or its size is not set");
	if (state->next == state->count)
		return WEFT_DONE;
	size = ret_item->size;
	memcpy(ret_item, &state->items[state->next++], size < sizeof(*ret_item) ? size : sizeof(*ret_item));
	ret_item->size = size;
	return 0;
}

int weft_state_close(struct weft_state *state)
{
	if (state)
		free(state->items);
	free(state);
	return 0;
}
