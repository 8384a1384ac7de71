/* state.c - what goes on in this process: counters, a sample of ports, queues and waiters, and what others need to take one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/state.h>

#include "mem/atlas.h"
#include "net/local/peer.h"
#include "peer/remote.h"
#include "port/budget.h"
#include "port/publish.h"
#include "port/deliver.h"
#include "port/listener.h"
#include "port/sample.h"
#include "port/self.h"
#include "port/table.h"
#include "port/way.h"

static uint64_t get(_Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void add_port(struct weft_port *p, void *arg)
{
	struct weft_stats *s = arg;

	wf_port_enter(p);
	s->sent += get(&p->sent) + get(&p->own_sent);
	s->bytes_sent += get(&p->sent_bytes) + get(&p->own_sent_bytes);
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
	for (struct wf_node *n = p->waiters.next; n && n != &p->waiters; n = n->next) {
		s->expected += wf_of(n, struct wf_waiter, link)->receives;
		s->parked++;
	}
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
		s.dir_messages = wf_publisher_messages();
	}
	size = ret_stats->size < sizeof(s) ? ret_stats->size : (uint32_t)sizeof(s);
	s.size = ret_stats->size;
	memcpy(ret_stats, &s, size);
	return 0;
}

static weft_id sleeper_of(const struct wf_parker *parker)
{
	return atomic_load_explicit(&wf_port_of_parker(parker)->id, memory_order_relaxed);
}

/* Who sleeps until @r, a send or a receive of port @id, ends. Relaxed: a sample; he is named there while he sleeps, no longer. */
static void sample_awaited(struct weft_state *s, struct weft_port *p, weft_id id, struct weft_req *r)
{
	struct wf_parker *waiter = atomic_load_explicit(&r->waiter, memory_order_relaxed);

	if (waiter)
		wf_sample_awaited(s, sleeper_of(waiter), id, p->proto != NULL, r);
}

static void sample_wants(struct weft_state *s, struct weft_port *p, weft_id id)
{
	for (struct weft_match_entry *e = wf_first(p, WEFT_MATCH_WANTS); e; e = wf_next(p, e)) {
		struct weft_req *r = wf_of(e, struct weft_req, a.entry);

		wf_sample_queued(s, id, WEFT_MATCH_WANTS, p->proto != NULL, &r->a, r->mem.len);
		sample_awaited(s, p, id, r);
	}
}

static void sample_arrivals(struct weft_state *s, struct weft_port *p, weft_id id)
{
	for (struct weft_match_entry *e = wf_first(p, WEFT_MATCH_ARRIVALS); e; e = wf_next(p, e))
		wf_sample_queued(s, id, WEFT_MATCH_ARRIVALS, p->proto != NULL, wf_of(e, struct wf_arrival, entry), 0);
}

/* Who waits for what left from here and is not done, wherever it is. What a send says of itself it said before it joined the list. */
static void sample_senders(struct weft_state *s, struct weft_port *p, weft_id id)
{
	wf_lock(&p->sends_lock);
	for (struct wf_node *n = p->sends.next; n && n != &p->sends; n = n->next)
		sample_awaited(s, p, id, wf_of(n, struct weft_req, mine));
	wf_unlock(&p->sends_lock);
}

static void sample(struct weft_port *p, void *arg)
{
	struct weft_state *s = arg;
	weft_id id = atomic_load_explicit(&p->id, memory_order_relaxed);

	wf_port_enter(p);
	wf_sample_port(s, p, id, wf_process_id);
	sample_wants(s, p, id);
	sample_arrivals(s, p, id);
	sample_senders(s, p, id);
	for (struct wf_node *n = p->waiters.next; n && n != &p->waiters; n = n->next) {
		struct wf_waiter *w = wf_of(n, struct wf_waiter, link);

		if (w->probes)
			wf_sample_looker(s, sleeper_of(w->parker), id, w, p->proto ? NULL : w->probes);
		else
			wf_sample_waiter(s, sleeper_of(w->parker), id);
	}
	wf_port_leave(p);
}

typedef uint64_t __attribute__((may_alias)) word;

/* This process's own memory: what is read this way is never unmapped.
 *
 * Others write it meanwhile, under locks that are not taken here or under none: the listener would have to wait for who looks. That is allowed, as of
 * another process nothing else could be had either: each word is loaded once, whole, and whoever gets the copy takes every value for one that may
 * be anything (sample.c). So ThreadSanitizer is not to look at these loads, and they are no memcpy, which it would look at. */
__attribute__((no_sanitize("thread")))
static bool read_own(void *arg, uint64_t at, void *to, size_t n)
{
	const volatile word *from = (const volatile word *)(uintptr_t)at;
	word *copy = to;
	size_t words = at % sizeof(word) || (uintptr_t)to % sizeof(word) ? 0 : n / sizeof(word);

	(void)arg;
	for (size_t i = 0; i < words; i++)
		copy[i] = from[i];
	for (size_t i = words * sizeof(word); i < n; i++)
		((unsigned char *)to)[i] = ((const volatile unsigned char *)(uintptr_t)at)[i];
	return true;
}

static int sample_own(struct weft_state **ret_state)
{
	struct wf_memory mem = { read_own, NULL };
	struct weft_state *s = calloc(1, sizeof(*s));

	if (s) {
		wf_port_each(sample, s);
		wf_sample_process(s, &wf_roots, &mem);
	}
	if (!s || s->short_of_memory) {
		weft_state_close(s);
		return weft_fail(-ENOMEM, "no memory for a sample");
	}
	*ret_state = s;
	return 0;
}

int weft_state_open(pid_t pid, struct weft_state **ret_state)
{
	int r;

	if (!ret_state)
		return weft_fail(-EINVAL, "ret_state is NULL");
	if (pid != 0 && pid != getpid())
		return wf_sample_far(pid, ret_state);
	r = wf_enter();
	return r < 0 ? r : sample_own(ret_state);
}

void wf_state_show(void)
{
	wf_roots = (struct wf_roots){
		.magic = WF_ROOTS_MAGIC, .bytes = sizeof(wf_roots),
		.port_bytes = sizeof(struct weft_port), .req_bytes = sizeof(struct weft_req), .way_bytes = sizeof(struct wf_way),
		.peer_bytes = sizeof(struct wf_peer), .chunk_bytes = sizeof(struct wf_chunk), .remote_bytes = sizeof(struct wf_remote),
		.process = wf_process_id, .board = (uintptr_t)wf_board, .budget = (uintptr_t)&wf_budget,
		.board_fd = (uint32_t)(wf_board_fd + 1),
	};
	wf_table_show(&wf_roots);
	wf_ways_show(&wf_roots);
	wf_peers_show(&wf_roots);
	wf_atlas_show(&wf_roots);
	/* Who reads it from outside checks what he reads: no order is needed. */
	wf_board->roots[0] = (uintptr_t)&wf_roots;
}
