/* state_far.c - a sample of another process, read from outside (outside.h).
 *
 * Every walk has a bound, and what does not fit ends it. Ports are never unmapped and count their openings, so a port that
 * closed or was reused while it was read is noticed and read again. What it queues may change meanwhile, too: then the walk
 * sees an entry of another side or an older number, and starts again a few times.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mem/space.h"
#include "port/outside.h"
#include "port/sample.h"
#include "port/ticket.h"
#include "port/way.h"

#define TRIES 4
#define QUEUED_MOST 100000u             /* items of one queue */
#define READERS_MOST 2048u

struct far {
	struct wf_outside out;
	struct weft_state *s;
	struct weft_port port;                  /* the one that is looked at */
	uint64_t at;                            /* where it is */
};

static uint64_t port_address(struct far *f, uint64_t number)
{
	uint64_t chunk;

	if (!f->out.roots.ports_per_chunk || number >= WF_FACES ||
	    !wf_outside_read(&f->out, f->out.roots.port_chunks + number / f->out.roots.ports_per_chunk * sizeof(chunk), &chunk, sizeof(chunk)))
		return 0;
	return chunk ? chunk + number % f->out.roots.ports_per_chunk * sizeof(struct weft_port) : 0;
}

/* The id of the thread that sleeps on the park word at @parker, which is on its port's face. */
static weft_id sleeper_of(struct far *f, uint64_t parker)
{
	uint64_t at = parker - f->out.roots.board - offsetof(struct wf_board, face);
	weft_id id = 0;

	at = port_address(f, at / sizeof(struct wf_face));
	return at && wf_outside_read(&f->out, at + offsetof(struct weft_port, id), &id, sizeof(id)) ? id : 0;
}

/* Who sleeps until @r ends, as it was read at or from port @id. */
static void sample_awaited(struct far *f, weft_id id, bool foreign, const struct weft_req *r)
{
	uint64_t waiter = (uint64_t)(uintptr_t)atomic_load_explicit(&r->waiter, memory_order_relaxed);
	weft_id who = waiter ? sleeper_of(f, waiter) : 0;

	if (who)
		wf_sample_awaited(f->s, who, id, foreign, r);
}

/* One side of the matcher. False: it changed under the walk. */
static bool sample_side(struct far *f, weft_id id, int side)
{
	bool foreign = f->port.match && f->port.proto;
	uint64_t m = foreign ? (uint64_t)(uintptr_t)f->port.match : f->at + offsetof(struct weft_port, native);
	uint64_t head = m + offsetof(struct wf_native_match, side) + (uint64_t)(side - 1) * sizeof(struct weft_match_side) +
			offsetof(struct weft_match_side, order);
	struct weft_match_link link;
	uint64_t number = 0, at;
	union {
		struct weft_req r;
		struct wf_arrival a;
	} e;

	if (!wf_outside_read(&f->out, head, &link, sizeof(link)))
		return true;
	for (unsigned n = 0; n < QUEUED_MOST && link.next && (uint64_t)(uintptr_t)link.next != head; n++) {
		at = (uint64_t)(uintptr_t)link.next - offsetof(struct weft_match_entry, order);
		if (!wf_outside_read(&f->out, at, &e, side == WEFT_MATCH_WANTS ? sizeof(e.r) : sizeof(e.a)) || e.a.entry.side != side ||
		    e.a.entry.number <= number)
			return false;
		number = e.a.entry.number;
		wf_sample_queued(f->s, id, side, foreign, &e.a, side == WEFT_MATCH_WANTS ? e.r.mem.len : 0);
		if (side == WEFT_MATCH_WANTS)
			sample_awaited(f, id, foreign, &e.r);
		link = e.a.entry.order;
	}
	return true;
}

static void sample_cell(struct far *f, weft_id id, const struct wf_cell *c)
{
	struct wf_announcement a;
	uint64_t len = c->len;

	if (c->kind == WF_GROWN)
		return;
	if (c->kind == WF_ANNOUNCED)            /* its length is with its sender */
		len = 0;
	if (c->kind == WF_FAR && !f->port.proto) {
		memcpy(&a, c->body, sizeof(a));
		len = a.len;
	}
	wf_sample_add(f->s, WEFT_STATE_QUEUED, id, c->src, f->port.proto ? 0 : c->tag, len, "in the mailbox");
}

/* What has come and nobody has looked at: the rings, its own and one per process that sends here. */
static void sample_rings(struct far *f, weft_id id)
{
	struct wf_reader r = f->port.ring.reader;
	struct wf_cell c;

	for (unsigned n = 0; n < READERS_MOST; n++) {
		uint32_t pos = atomic_load_explicit(&r.pos, memory_order_relaxed), mask = atomic_load_explicit(&r.mask, memory_order_relaxed);
		uint64_t cells = (uint64_t)(uintptr_t)atomic_load_explicit(&r.cells, memory_order_relaxed), next;

		for (uint32_t i = 0; cells && i <= mask && i < WF_CELLS_BIG; i++, pos++) {
			if (!wf_outside_read(&f->out, cells + (pos & mask) * sizeof(c), &c, sizeof(c)) ||
			    atomic_load_explicit(&c.seq, memory_order_relaxed) != pos + 1)
				break;
			sample_cell(f, id, &c);
		}
		next = (uint64_t)(uintptr_t)atomic_load_explicit(&r.next, memory_order_relaxed);
		if (!next || !wf_outside_read(&f->out, next, &r, sizeof(r)))
			break;
	}
}

/* The list whose head is at @head: elements' addresses one by one, 0 at its end. */
static uint64_t follow(struct far *f, uint64_t head, uint64_t at)
{
	struct wf_node n;

	if (!wf_outside_read(&f->out, at, &n, sizeof(n)) || (uint64_t)(uintptr_t)n.next == head)
		return 0;
	return (uint64_t)(uintptr_t)n.next;
}

static void sample_sends(struct far *f, weft_id id)
{
	uint64_t head = f->at + offsetof(struct weft_port, sends), at = head;
	struct wf_head h;
	struct weft_req r;

	for (unsigned n = 0; n < QUEUED_MOST && (at = follow(f, head, at)) != 0; n++) {
		if (!wf_outside_read(&f->out, at - offsetof(struct weft_req, mine), &r, sizeof(r)) || r.what != WF_SEND)
			return;
		memcpy(&h, r.a.entry.head, sizeof(h));
		wf_sample_add(f->s, WEFT_STATE_QUEUED, id, r.st.from, f->port.proto ? 0 : h.tag, r.a.len, "to be sent");
		sample_awaited(f, id, f->port.proto != NULL, &r);
	}
}

/* Who looks for something itself, and for what: that is on its stack. */
static void sample_looker(struct far *f, weft_id id, const struct wf_waiter *w)
{
	struct wf_head want;
	bool known = !f->port.proto && wf_outside_read(&f->out, (uint64_t)(uintptr_t)w->probes, &want, sizeof(want));

	wf_sample_looker(f->s, sleeper_of(f, (uint64_t)(uintptr_t)w->parker), id, w, known ? &want : NULL);
}

static void sample_waiters(struct far *f, weft_id id)
{
	uint64_t head = f->at + offsetof(struct weft_port, waiters), at = head;
	struct wf_waiter w;

	for (unsigned n = 0; n < QUEUED_MOST && (at = follow(f, head, at)) != 0; n++) {
		if (!wf_outside_read(&f->out, at - offsetof(struct wf_waiter, link), &w, sizeof(w)))
			return;
		if (w.probes)
			sample_looker(f, id, &w);
		else
			wf_sample_waiter(f->s, sleeper_of(f, (uint64_t)(uintptr_t)w.parker), id);
	}
}

/* True: it was one port, open, all the while, or none. */
static bool try_port(struct far *f)
{
	uint32_t serial;
	weft_id id, now;
	bool whole;

	if (!wf_outside_read(&f->out, f->at, &f->port, sizeof(f->port)))
		return true;
	id = atomic_load_explicit(&f->port.id, memory_order_relaxed);
	if (!id || !f->port.open)
		return true;
	f->port.name[sizeof(f->port.name) - 1] = 0;
	wf_sample_port(f->s, &f->port, id, f->out.roots.process);
	whole = sample_side(f, id, WEFT_MATCH_WANTS);
	whole &= sample_side(f, id, WEFT_MATCH_ARRIVALS);
	sample_rings(f, id);
	sample_sends(f, id);
	sample_waiters(f, id);
	return whole && wf_outside_read(&f->out, f->at + offsetof(struct weft_port, serial), &serial, sizeof(serial)) && serial == f->port.serial &&
	       wf_outside_read(&f->out, f->at + offsetof(struct weft_port, id), &now, sizeof(now)) && now == id;
}

static void sample_ports(struct far *f)
{
	uint32_t count;

	if (!wf_outside_read(&f->out, f->out.roots.ports, &count, sizeof(count)))
		return;
	for (uint32_t n = 0; n < count && n < WF_FACES && !f->s->short_of_memory; n++) {
		size_t before = f->s->count;

		f->at = port_address(f, n);
		for (int i = 0; f->at && i < TRIES; i++) {
			f->s->count = before;
			if (try_port(f))
				break;
		}
	}
}

static int sample_all(struct far *f)
{
	struct wf_memory mem = { wf_outside_read, &f->out };

	sample_ports(f);
	wf_sample_process(f->s, &f->out.roots, &mem);
	if (f->s->short_of_memory)
		return weft_fail(-ENOMEM, "no memory for a sample");
	/* One that ended while it was read has told nothing, or nonsense. */
	if (kill(f->out.pid, 0) < 0 && errno == ESRCH)
		return weft_fail(-ESRCH, "process %d has ended", (int)f->out.pid);
	return 0;
}

int wf_sample_far(pid_t pid, struct weft_state **ret_state)
{
	struct far *f = aligned_alloc(_Alignof(struct far), sizeof(*f));
	int r;

	if (!f)
		return weft_fail(-ENOMEM, "no memory for a sample");
	memset(f, 0, sizeof(*f));
	r = wf_outside_open(&f->out, pid);
	if (r == 0) {
		f->s = calloc(1, sizeof(*f->s));
		r = f->s ? sample_all(f) : weft_fail(-ENOMEM, "no memory for a sample");
		wf_outside_close(&f->out);
	}
	if (r == 0)
		*ret_state = f->s;
	else
		weft_state_close(f->s);
	free(f);
	return r;
}
