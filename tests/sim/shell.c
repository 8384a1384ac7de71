/* shell.c - what drives the remotes of a process: connections become lanes, records are written and read, acts are carried out.
 *
 * A record is u32 bytes of frames, u32 bytes of body, the frames, the body: what the secure layer does is left out. Reading a body goes in
 * slices: where bytes go is asked at one instant, they are written there some microseconds later, as a thread would; anything may happen between.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static void read_on(struct world *w, struct end *e);

/* ---- writing ---- */

/* The bytes of e's record from e->wrote on: a piece. */
static uint32_t piece(struct end *e, struct wf_remote *r, const uint8_t **ret, uint8_t head[8])
{
	uint32_t at = e->wrote;
	struct iovec iov[4];

	if (at < 8) {
		memcpy(head, &e->fill.small_len, 4);
		memcpy(head + 4, &e->fill.body_len, 4);
		*ret = head + at;
		return 8 - at;
	}
	at -= 8;
	for (int i = 0; i < e->fill.nsmall; i++) {
		if (at < e->fill.small[i].iov_len) {
			*ret = (const uint8_t *)e->fill.small[i].iov_base + at;
			return (uint32_t)e->fill.small[i].iov_len - at;
		}
		at -= (uint32_t)e->fill.small[i].iov_len;
	}
	if (at == e->fill.body_len)
		return 0;
	wf_fill_body(r, &e->fill, at, iov, 4);
	*ret = iov[0].iov_base;
	return (uint32_t)iov[0].iov_len;
}

/* A record of @n bytes that lies flat. */
static void fill_with_flat(struct end *e, size_t n)
{
	e->is_flat = true;
	e->fill.nsmall = 1;
	e->fill.small[0] = (struct iovec){ e->flat, n };
	e->fill.small_len = (uint32_t)n;
	e->fill.body_len = 0;
	e->fill.send = NULL;
}

/* The next record, by the short way or the other. */
static bool filled(struct world *w, struct end *e)
{
	struct wf_remote *r = e->p->remote[e->other];
	bool more;
	size_t heads;
	size_t n = sim_random(w, 2) ? wf_remote_fill_flat(r, e->lane, e->flat, sizeof(e->flat), w->now, &heads, &more) : 0;

	e->left.n = n ? 0 : e->left.n;
	e->is_flat = false;
	if (!n)
		return wf_remote_fill(r, e->lane, &e->fill, w->now);
	fill_with_flat(e, n);
	return true;
}

static void write_on(struct world *w, struct end *e)
{
	struct wf_remote *r = e->p->remote[e->other];

	if (!e->up || e->closed || e->p->paused > w->now)
		return;
	for (;;) {
		const uint8_t *bytes;
		uint8_t head[8];
		uint32_t n, took;

		if (!e->has) {
			if (!filled(w, e))
				break;
			e->has = true;
			e->wrote = 0;
		}
		n = piece(e, r, &bytes, head);
		if (!n) {
			e->has = false;
			if (!e->is_flat)
				wf_remote_wrote(r, e->lane, w->now);
			continue;
		}
		took = wire_put(w, e, bytes, n);
		e->wrote += took;
		if (!took)
			break;
	}
}

/* Nothing is being written there, and nothing is to be done first? */
static bool idles(const struct end *e, const struct wf_remote *r, const struct world *w)
{
	return e->up && !e->closed && !e->has && !wf_remote_due(r, w->now);
}

/* Where plain messages leave, if nothing is in the way; else NULL. */
static struct end *idle_end(struct proc *p, uint32_t to)
{
	const struct wf_remote *r = p->remote[to];
	const struct wf_lane *lane = r->out[WF_STREAM_PLAIN] ? r->out[WF_STREAM_PLAIN]->lane : NULL;
	struct end *e = NULL;

	for (struct wire *wire = p->w->wires; wire && lane; wire = wire->next)
		for (int i = 0; i < 2; i++)
			if (wire->end[i].p == p && wire->end[i].other == to && wire->end[i].up && wire->end[i].lane == lane)
				e = &wire->end[i];
	return e && idles(e, r, p->w) ? e : NULL;
}

bool shell_body(struct proc *p, uint32_t to, struct wf_rsend *s)
{
	struct wf_remote *r = p->remote[to];
	struct end *e = idle_end(p, to);
	size_t n = e ? like_body(e, r, s) : 0;

	if (!n)
		return false;
	fill_with_flat(e, n);
	e->fill.body_len = (uint32_t)s->len;
	e->fill.body_at = 0;
	e->fill.send = s;
	e->has = true;
	e->wrote = 0;
	if (sim_random(p->w, 2)) {
		wf_remote_body_rest(r, e->lane, s);
		e->is_flat = false;
		write_on(p->w, e);
		return true;
	}
	write_on(p->w, e);
	if (e->has && e->fill.send == s) {      /* some of it is still to be written, from its memory */
		wf_remote_body_rest(r, e->lane, s);
		e->is_flat = false;
	} else {
		wf_remote_kept(r, s);           /* its memory stays */
	}
	return true;
}

bool shell_brisk(struct proc *p, uint32_t to, const struct wf_brisk *b)
{
	struct wf_remote *r = p->remote[to];
	struct end *e = idle_end(p, to);
	size_t n = e ? like_short(e, r, b) : 0;

	if (!n)
		return false;
	fill_with_flat(e, n);
	e->has = true;
	e->wrote = 0;
	write_on(p->w, e);
	return true;
}

void shell_room(struct world *w, struct end *e)
{
	if (e->p->dead || !e->up || e->closed || !e->has)
		return;
	write_on(w, e);
	shell_after(e->p, e->other);
}

void shell_awake(struct world *w, struct proc *p)
{
	for (struct wire *wire = w->wires; wire; wire = wire->next)
		for (int i = 0; i < 2; i++)
			if (wire->end[i].p == p && !p->dead) {
				write_on(w, &wire->end[i]);
				shell_after(p, wire->end[i].other);
			}
}

/* ---- lanes ---- */

static void down(struct world *w, struct end *e)
{
	struct wf_remote *r = e->p->remote[e->other];

	if (!e->up)
		return;
	if (e->slice && !e->slice_drop)
		wf_remote_placed(r, e->lane, 0);        /* the thread has left */
	e->slice = false;
	e->up = false;
	e->closed = true;
	wf_remote_lane_down(r, e->lane, w->now);
	sim_note(w, 0xd0 + e->w->slot);
}

void shell_lost(struct world *w, struct end *e)
{
	if (e->p->dead || e->closed)
		return;
	e->w->broken = true;
	if (e->up) {
		down(w, e);
	} else {
		e->closed = true;
		if (e->side)
			return;
		wf_remote_open_failed(e->p->remote[e->other], e->w->slot, w->now);
	}
	shell_after(e->p, e->other);
}

struct wf_lane *shell_up(struct end *e, bool mine)
{
	struct world *w = e->p->w;
	struct wf_remote *r = e->p->remote[e->other];

	e->lane = wf_remote_lane_up(r, e->w->slot, e->w->gen, mine, w->now);
	if (!e->lane)
		return NULL;
	e->up = true;
	w->lanes_up++;
	sim_note(w, 0xe0 + e->w->slot);
	return e->lane;
}

static void finish(struct world *w, void *a, uint64_t step);

/* The handshake ends at one side first. step 0: connecting; 1: the first side is up; 2: both. */
static void later(struct world *w, struct wire *wire, weft_time at, uint64_t step)
{
	sim_at(w, at, finish, wire, step);
}

static void refused(struct world *w, struct wire *wire, bool gone)
{
	struct end *e = &wire->end[0];

	wire->broken = true;
	if (e->p->dead || e->closed)
		return;
	if (e->up) {
		down(w, e);
	} else {
		e->closed = true;
		if (gone)
			wf_remote_gone(e->p->remote[e->other], -ECONNRESET, w->now);
		else
			wf_remote_open_failed(e->p->remote[e->other], wire->slot, w->now);
	}
	shell_after(e->p, e->other);
}

static bool one_up(struct world *w, struct wire *wire, int side)
{
	struct end *e = &wire->end[side];
	bool ok = shell_up(e, side == 0);

	if (!ok)
		e->closed = true;
	shell_after(e->p, e->other);
	if (ok)
		read_on(w, e);
	return ok;
}

static void finish(struct world *w, void *a, uint64_t step)
{
	struct wire *wire = a;
	struct end *from = &wire->end[0], *to = &wire->end[1];
	weft_time pause = from->p->paused > to->p->paused ? from->p->paused : to->p->paused;
	int first = (int)(wire->gen + wire->slot + from->p->number) & 1;

	if (from->p->dead)
		return;
	if (from->p->paused > w->now) {
		later(w, wire, from->p->paused, step);
		return;
	}
	/* The acceptor is dead, stopped for long or cannot be heard: the attempt fails by time. */
	if (to->p->dead || w->silent[from->p->number][to->p->number] > w->now || w->silent[to->p->number][from->p->number] > w->now ||
	    to->p->paused > w->now + WEFT_S || (!step && wire->broken)) {
		if (!step) {
			later(w, wire, w->now + WEFT_S, 3);
			return;
		}
	}
	if (step == 3 || wire->broken) {
		refused(w, wire, to->p->over[to->other] && !to->p->dead);
		return;
	}
	if (pause > w->now) {
		later(w, wire, pause, step);
		return;
	}
	if (to->p->over[to->other]) {
		refused(w, wire, true);
		return;
	}
	if (step == 0) {
		if (!one_up(w, wire, first)) {
			if (first == 0)
				wire_close(w, from);
			else
				refused(w, wire, false);
			return;
		}
		later(w, wire, w->now + wire->latency + (weft_time)sim_random(w, 200000), 1);
		return;
	}
	if (wire->end[first].closed)
		wire->broken = true;
	if (wire->broken) {
		refused(w, wire, false);
		return;
	}
	if (!one_up(w, wire, !first)) {
		if (first)
			wire_close(w, from);    /* ours was not wanted any more */
		else
			refused(w, wire, false);
	}
}

void shell_connect(struct world *w, struct proc *p, uint32_t other, uint32_t slot, uint32_t gen)
{
	struct wire *wire = wire_open(w, p->number, other, slot, gen);

	w->connects++;
	if (w->conf.faults && !w->draining && !sim_random(w, 12))
		wire->broken = true;                    /* refused connection */
	later(w, wire, w->now + 3 * wire->latency, 0);
}

/* ---- reading ---- */

static void eat(struct end *e, uint32_t n)
{
	e->rx_len -= n;
	memmove(e->rx, e->rx + n, e->rx_len);
}

static void protocol_error(struct world *w, struct end *e)
{
	sim_fail(w, "process %u: an honest record from %u was refused", e->p->number, e->other);
	down(w, e);
}

static void perform(struct end *e, struct wf_acts *acts)
{
	for (int i = 0; i < acts->n; i++)
		upper_act(e->p, e->other, e, &acts->a[i]);
	acts->n = 0;
}

/* The slice ends: bytes are there. */
static void slice_end(struct world *w, void *a, uint64_t b)
{
	struct end *e = a;
	struct wf_remote *r = e->p->remote[e->other];
	uint32_t n = 0;

	(void)b;
	if (!e->up || e->closed || !e->slice || e->p->dead)
		return;
	if (e->p->paused > w->now) {
		sim_at(w, e->p->paused, slice_end, e, 0);
		return;
	}
	e->slice = false;
	if (e->slice_drop) {
		n = e->rx_len < e->body_len - e->body_got ? e->rx_len : e->body_len - e->body_got;
	} else {
		for (int i = 0; i < e->niov && n < e->rx_len; i++) {
			uint32_t m = (uint32_t)e->iov[i].iov_len;

			if (m > e->rx_len - n)
				m = e->rx_len - n;
			memcpy(e->iov[i].iov_base, e->rx + n, m);
			n += m;
		}
		wf_remote_placed(r, e->lane, n);
	}
	eat(e, n);
	e->body_got += n;
	if (e->body_got == e->body_len) {
		e->reading = READ_HEAD;
		wf_remote_body(r, e->lane, true, w->now);
	}
	shell_after(e->p, e->other);
	read_on(w, e);
}

static void retry(struct world *w, void *a, uint64_t b)
{
	struct end *e = a;

	(void)b;
	if (!e->retry)
		return;
	e->retry = false;
	read_on(w, e);
}

/* By the shortest way: short messages. */
static bool read_row(struct end *e)
{
	struct wf_row row;

	if (e->body_len || !like_row(e, &row))
		return false;
	for (struct wf_row_at at = wf_row_begin(&row); wf_row_more(&at);) {
		const unsigned char *frame = at.left ? NULL : at.next;
		const struct wf_brisk *m = &at.m;
		struct wf_act a = { .kind = WF_ACT_MSG };

		wf_row_next(&at);
		a.msg = wf_brisk_msg(m);
		if (frame && frame[0] == WF_WIRE_MSG && wf_wire_get_msg(frame, &a.msg))
			sim_fail(e->p->w, "a row has what is no message");
		if (m->to != a.msg.to || m->from != a.msg.from || m->index != a.msg.index || m->tag != a.msg.tag || m->context != a.msg.context || m->payload != a.msg.payload ||
		    m->len != a.msg.len)
			sim_fail(e->p->w, "a row says what its frames do not");
		a.cost = m->len + WF_COST;
		row.cost -= a.cost;
		upper_act(e->p, e->other, e, &a);
	}
	if (row.cost)
		sim_fail(e->p->w, "a row costs what its messages do not");
	return true;
}

/* By the short way: the record, with its body if all of that is here. */
static bool read_briskly(struct end *e, struct wf_acts *acts)
{
	bool here = e->body_len && e->rx_len - e->small_len >= e->body_len;
	struct wf_whole whole = { .frames = e->rx, .len = e->small_len, .body_len = e->body_len, .body = here ? e->rx + e->small_len : NULL };
	struct world *w = e->p->w;

	if (e->body_len && !here)
		return false;
	if (!wf_remote_record_brisk(e->p->remote[e->other], e->lane, &whole, w->now, acts, false))
		return false;
	e->whole = here;
	return true;
}

/* By the short way of one message with its body, if all of that is here. */
static bool read_body_whole(struct end *e)
{
	struct wf_whole whole = { .frames = e->rx, .len = e->small_len, .body_len = e->body_len, .body = e->rx + e->small_len };
	struct wf_remote *r = e->p->remote[e->other];
	struct wf_act a = { .kind = WF_ACT_MSG };
	const unsigned char *where;
	struct wf_brief b;
	struct wf_brisk m;
	bool told;

	if (!e->body_len || e->rx_len - e->small_len < e->body_len)
		return false;
	where = wf_remote_body_where(&whole, &m);
	if (!where)
		return false;
	told = like_read(e);
	if (!told && !wf_remote_body_looked(r, e->lane, &whole, where, &b))
		return false;
	if (wf_wire_get_msg(where, &a.msg))
		sim_fail(e->p->w, "a body of what is no message");
	a.msg.payload = whole.body;
	a.cost = e->body_len + WF_COST;
	if (!told)
		wf_remote_body_told(r, e->lane, &b, e->body_len, e->p->w->now);
	like_came(e);
	upper_act(e->p, e->other, e, &a);
	e->whole = true;
	return true;
}

/* A step; false: wait for more. */
static bool read_step(struct world *w, struct end *e)
{
	struct wf_remote *r = e->p->remote[e->other];
	struct wf_acts acts = { 0 };
	int rc;

	switch (e->reading) {
	case READ_HEAD:
		if (e->rx_len < 8)
			return false;
		memcpy(&e->small_len, e->rx, 4);
		memcpy(&e->body_len, e->rx + 4, 4);
		eat(e, 8);
		e->reading = READ_SMALL;
		return true;
	case READ_SMALL:
		if (e->rx_len < e->small_len)
			return false;
		if (w->conf.dull && e->body_len <= WF_EAGER && e->rx_len - e->small_len < e->body_len)
			return false;           /* all of it at once, as who expects it reads it */
		do {
			rc = 0;
			if (!sim_random(w, w->conf.dull ? 8 : 2) || !(w->conf.dull || sim_random(w, 2) ? read_row(e) || read_body_whole(e) : read_briskly(e, &acts)))
				rc = wf_remote_record(r, e->lane, e->rx, e->small_len, e->body_len, w->now, &acts);
			perform(e, &acts);
		} while (rc == 1);
		if (rc < 0 && !e->p->over[e->other] && !r->err) {
			protocol_error(w, e);
			return false;
		}
		eat(e, e->small_len + (e->whole ? e->body_len : 0));
		e->body_got = 0;
		e->reading = e->body_len && !e->whole ? READ_BODY : READ_HEAD;
		e->whole = false;
		shell_after(e->p, e->other);
		return e->up && !e->closed;
	case READ_BODY:
		if (e->slice || e->retry || !e->rx_len)
			return false;
		if (wf_remote_leads(e->lane) && sim_random(w, 2)) {     /* somebody may be about to match it */
			e->retry = true;
			sim_at(w, w->now + (weft_time)sim_random(w, 30000), retry, e, 0);
			return false;
		}
		e->niov = wf_remote_place(r, e->lane, e->iov, 4);
		if (e->niov == -EAGAIN) {
			e->retry = true;
			sim_at(w, w->now + 5000, retry, e, 0);
			return false;
		}
		e->slice = true;
		e->slice_drop = !e->niov;
		sim_at(w, w->now + (weft_time)sim_random(w, 30000), slice_end, e, 0);
		return false;
	}
	return false;
}

static void read_on(struct world *w, struct end *e)
{
	if (!e->up || e->closed || e->p->dead || e->p->paused > w->now)
		return;
	while (!w->failed && read_step(w, e))
		;
}

void shell_bytes(struct world *w, struct end *e)
{
	read_on(w, e);
}

/* ---- what is to be done ---- */

static struct end *end_of(struct world *w, struct proc *p, const struct wf_lane *lane, uint32_t other)
{
	for (struct wire *wire = w->wires; wire; wire = wire->next)
		for (int i = 0; i < 2; i++)
			if (wire->end[i].up && wire->end[i].p == p && wire->end[i].other == other && wire->end[i].lane == lane)
				return &wire->end[i];
	return NULL;
}

static void lane_act(struct proc *p, uint32_t other, const struct wf_act *a)
{
	struct world *w = p->w;
	struct end *e;

	if (a->kind == WF_ACT_OPEN) {
		shell_connect(w, p, other, a->slot, a->gen);
		return;
	}
	e = end_of(w, p, a->lane, other);
	if (!e)
		return;
	if (a->kind == WF_ACT_WRITE) {
		write_on(w, e);
		return;
	}
	wire_close(w, e);
	down(w, e);
}

static void tick(struct world *w, void *a, uint64_t b)
{
	struct proc *p = a;
	uint32_t other = (uint32_t)b;

	if (p->dead)
		return;
	if (p->tick[other] == w->now)
		p->tick[other] = WEFT_FOREVER;
	if (p->paused > w->now) {
		sim_at(w, p->paused, tick, p, b);
		return;
	}
	shell_after(p, other);
}

void shell_after(struct proc *p, uint32_t other)
{
	struct wf_remote *r = p->remote[other];
	struct world *w = p->w;

	if (p->busy[other] || p->dead)
		return;
	p->busy[other] = true;
	for (int round = 0;; round++) {
		struct wf_acts acts = { 0 };

		wf_remote_acts(r, w->now, &acts);
		if (!acts.n)
			break;
		for (int i = 0; i < acts.n; i++) {
			if (acts.a[i].kind >= WF_ACT_OPEN)
				lane_act(p, other, &acts.a[i]);
			else
				upper_act(p, other, NULL, &acts.a[i]);
		}
		if (round > 10000) {
			sim_fail(w, "process %u: acts without end", p->number);
			break;
		}
	}
	p->busy[other] = false;
	if (r->wake < p->tick[other]) {
		p->tick[other] = r->wake;
		sim_at(w, r->wake > w->now ? r->wake : w->now, tick, p, other);
	}
}
