/* world.c - time, events, faults, and a whole random run with its checks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

uint64_t sim_random(struct world *w, uint64_t below)
{
	uint64_t z = (w->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (z ^ (z >> 31)) % below;
}

void sim_fail(struct world *w, const char *fmt, ...)
{
	va_list args;

	if (w->failed)
		return;
	w->failed = true;
	va_start(args, fmt);
	vsnprintf(w->why, sizeof(w->why), fmt, args);
	va_end(args);
}

void sim_note(struct world *w, uint64_t what)
{
	w->hash = (w->hash ^ what ^ (uint64_t)w->now << 20) * UINT64_C(0x100000001b3);
	w->hash ^= w->hash >> 29;
}

/* ---- events ---- */

static bool before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void sim_at(struct world *w, weft_time at, void (*fn)(struct world *, void *, uint64_t), void *a, uint64_t b)
{
	struct event e = { at, w->order++, fn, a, b };
	uint32_t i;

	if (w->nheap == w->heap_size) {
		w->heap_size = w->heap_size ? 2 * w->heap_size : 256;
		w->heap = realloc(w->heap, w->heap_size * sizeof(*w->heap));
		if (!w->heap)
			abort();
	}
	for (i = w->nheap++; i && before(&e, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = e;
}

static struct event next(struct world *w)
{
	struct event first = w->heap[0], last = w->heap[--w->nheap];
	uint32_t i = 0;

	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= w->nheap)
			break;
		if (c + 1 < w->nheap && before(&w->heap[c + 1], &w->heap[c]))
			c++;
		if (!before(&w->heap[c], &last))
			break;
		w->heap[i] = w->heap[c];
		i = c;
	}
	w->heap[i] = last;
	return first;
}

static void check_remote(struct world *w, struct proc *p, uint32_t other)
{
	struct wf_remote *r = p->remote[other];

	for (unsigned i = 0; i < WF_STREAMS; i++)
		if (r->out[i] && i && r->out[i]->rt.size > r->conf.retain)
			sim_fail(w, "a stream keeps %u bytes", r->out[i]->rt.size);
}

static void step(struct world *w)
{
	struct event e = next(w);

	if (e.at > w->now)
		w->now = e.at;
	e.fn(w, e.a, e.b);
}

void sim_run(struct world *w, weft_time until)
{
	while (!w->failed && w->nheap && w->heap[0].at <= until)
		step(w);
	if (w->now < until)
		w->now = until;
}

bool sim_until(struct world *w, bool (*done)(struct world *), weft_time most)
{
	weft_time end = w->now + most;
	uint32_t n = 0;

	while (!w->failed && !done(w)) {
		if (!w->nheap || w->heap[0].at > end)
			return false;
		for (n = 0; n < 16 && w->nheap && !w->failed; n++)
			step(w);
	}
	return !w->failed;
}

/* ---- beginning and end ---- */

struct world *sim_new(const struct sim_conf *conf)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->conf = *conf;
	w->random = conf->seed;
	w->now = WEFT_S;
	for (uint32_t i = 1; i <= conf->procs; i++) {
		struct proc *p = &w->proc[i];

		p->w = w;
		p->number = i;
		for (uint32_t port = 1; port <= SIM_PORTS; port++) {
			wf_list_init(&p->posted[port]);
			wf_list_init(&p->arrivals[port]);
		}
		for (uint32_t k = 1; k <= conf->procs; k++) {
			struct wf_remote_conf c = { .me = 10 * i, .them = 10 * k, .rails = conf->rails, .cap = conf->cap, .eager = conf->eager, .eager_most = conf->eager_most, .moments = conf->moments, .chunk = conf->chunk,
						    .window = conf->window, .retain = conf->retain, .deadline = conf->deadline,
						    .seed = conf->seed, .ops = &upper_ops };

			if (k == i)
				continue;
			p->remote[k] = malloc(sizeof(*p->remote[k]));
			if (!p->remote[k] || wf_remote_init(p->remote[k], &c, w->now))
				abort();
			p->tick[k] = WEFT_FOREVER;
		}
	}
	return w;
}

/* Nothing is left of what is over. */
static void check_rest(struct world *w, struct proc *p, uint32_t other)
{
	struct wf_remote *r = p->remote[other];

	if (r->live || r->announced || r->ndests > r->nclogs || r->sends.used || r->tokens.used || !wf_list_empty(&r->landings))
		sim_fail(w, "process %u keeps %u sends, %u announced, %u destinations, %u tokens of %u", p->number, r->live, r->announced, r->ndests,
			 r->tokens.used, other);
	if (p->announcements[other] || p->unexpected[other])
		sim_fail(w, "process %u counts %u announcements, %lu bytes of %u", p->number, p->announcements[other],
			 (unsigned long)p->unexpected[other], other);
	if (!r->err && (r->nheld || r->unacked))
		sim_fail(w, "process %u: %u held, streams %lx not acknowledged by %u", p->number, r->nheld, (unsigned long)r->unacked, other);
}

void sim_free(struct world *w)
{
	for (uint32_t i = 1; i <= w->conf.procs; i++)
		for (uint32_t k = 1; k <= w->conf.procs; k++) {
			struct proc *p = &w->proc[i];

			if (!p->remote[k])
				continue;
			wf_remote_fini(p->remote[k]);
			free(p->remote[k]);
		}
	wires_free(w);
	free(w->heap);
	free(w);
}

/* ---- faults ---- */

static void awake(struct world *w, void *a, uint64_t b)
{
	(void)b;
	shell_awake(w, a);
}

static void pause_for(struct world *w, struct proc *p, weft_time t)
{
	p->paused = w->now + t;
	sim_at(w, p->paused, awake, p, 0);
}

static void die(struct world *w, struct proc *p)
{
	p->dead = true;
	for (struct wire *wire = w->wires; wire; wire = wire->next)
		for (int i = 0; i < 2; i++)
			if (wire->end[i].p == p && !wire->broken && sim_random(w, 2))
				wire_break(w, wire);            /* else: silence, as of a host that vanished */
	for (uint32_t i = 0; i < w->nmails; i++)
		if (w->mail[i]->from_proc == p->number || w->mail[i]->to_proc == p->number)
			w->mail[i]->lost = true;
}

static weft_time some_time(struct world *w)
{
	if (w->conf.cuts_off && !sim_random(w, 6))
		return w->conf.deadline + (weft_time)sim_random(w, (uint64_t)w->conf.deadline);
	return (weft_time)sim_random(w, sim_random(w, 3) ? 20000000 : (uint64_t)w->conf.deadline / 3);
}

static void fault(struct world *w, void *a, uint64_t b)
{
	uint32_t x = 1 + (uint32_t)sim_random(w, w->conf.procs), y = 1 + (uint32_t)sim_random(w, w->conf.procs);
	uint32_t n = 0, pick;
	struct wire *wire;
	struct way *way;

	(void)a, (void)b;
	if (w->draining)
		return;
	sim_at(w, w->now + (weft_time)sim_random(w, 30000000), fault, NULL, 0);
	for (wire = w->wires; wire; wire = wire->next)
		n += !wire->broken && !wire->done;
	pick = n ? (uint32_t)sim_random(w, n) : 0;
	for (wire = w->wires; wire && (wire->broken || wire->done || pick--); wire = wire->next)
		;
	way = wire ? &wire->way[sim_random(w, 2)] : NULL;
	switch (sim_random(w, 8)) {
	case 0:
	case 1:
		if (wire)
			wire_break(w, wire);
		break;
	case 2:
		if (wire)
			way->cut = (int64_t)sim_random(w, 50000) + 1;
		break;
	case 3:
	case 4:
		if (wire)
			way->stall = w->now + (weft_time)sim_random(w, 600000000);
		break;
	case 5:
		w->silent[x][y] = w->now + some_time(w);
		if (sim_random(w, 2))
			w->silent[y][x] = w->silent[x][y];
		break;
	case 6:
		if (w->conf.pauses && !w->proc[x].dead && w->proc[x].paused < w->now)
			pause_for(w, &w->proc[x], some_time(w));
		break;
	case 7:
		if (w->conf.deaths && !sim_random(w, 6) && !w->proc[x].dead)
			die(w, &w->proc[x]);
		break;
	}
}

/* ---- a random program ---- */

static uint64_t some_length(struct world *w)
{
	switch (sim_random(w, 16)) {
	case 0:
		return 0;
	case 1:
	case 2:
	case 3:
	case 4:
	case 5:
		return sim_random(w, 65);
	case 6:
	case 7:
	case 8:
		return sim_random(w, 4200);
	case 9:
	case 10:
	case 11:
		return 4000 + sim_random(w, 20000);
	case 12:
	case 13:
		return sim_random(w, 66000);
	case 14:
		return 60000 + sim_random(w, 200000);
	default:
		return sim_random(w, 4) ? sim_random(w, 300000) : sim_random(w, 1 << 20);
	}
}

static void app_alike(struct world *w, void *a, uint64_t to)
{
	static const uint16_t lengths[] = { 8, 40, 5000, 16384 };
	struct proc *p = a;

	if (!p->dead && p->paused <= w->now && w->nmails < w->conf.mails && !w->draining)
		mail_alike(p, (uint32_t)to, lengths[(p->number + w->conf.seed) % 4]);
}

void sim_answer_alike(struct proc *p, uint32_t to)
{
	struct world *w = p->w;

	if (sim_random(w, 32))
		sim_at(w, w->now + (weft_time)sim_random(w, 32000), app_alike, p, to);
}

static void app_send(struct world *w, struct proc *p)
{
	uint32_t to = 1 + (uint32_t)sim_random(w, w->conf.procs), from_port, to_port, class;
	int flags = 0, prio;
	uint64_t len;

	if (to == p->number || w->nmails >= w->conf.mails)
		return;
	if (w->conf.dull && sim_random(w, 4)) {
		app_alike(w, p, to);
		return;
	}
	if (!sim_random(w, 6))
		flags |= WF_SEND_SYNC;
	if (!sim_random(w, 10))
		flags |= WF_SEND_RENDEZVOUS;
	if (!sim_random(w, 12))
		flags |= WF_SEND_NOW;
	/* One by one: what is evaluated first among arguments is the compiler's choice, and a seed is to be the same everywhere. */
	from_port = 1 + (uint32_t)sim_random(w, SIM_PORTS);
	to_port = 1 + (uint32_t)sim_random(w, SIM_PORTS);
	len = some_length(w);
	prio = sim_random(w, 3) ? 0 : (int)sim_random(w, 8) - 4;
	class = (uint32_t)sim_random(w, SIM_CLASSES);
	mail_send(p, from_port, to, to_port, len, flags, prio, class);
	if (!sim_random(w, 8)) {
		uint32_t count = 2 + (uint32_t)sim_random(w, 12);

		len = 8 + 8 * sim_random(w, 16);
		mail_row(p, from_port, to, to_port, len, count, class);
	}
}

static void app_answer(struct world *w, void *a, uint64_t to)
{
	struct proc *p = a;
	uint32_t from_port = 1 + (uint32_t)sim_random(w, SIM_PORTS), to_port = 1 + (uint32_t)sim_random(w, SIM_PORTS);
	uint64_t len = 60000 + sim_random(w, 200000);
	uint32_t class = (uint32_t)sim_random(w, SIM_CLASSES);

	if (p->dead || w->draining || p->paused > w->now || w->nmails >= w->conf.mails)
		return;
	upper_post(&w->proc[to], to_port, -1, -1, 1 << 20);
	mail_send(p, from_port, (uint32_t)to, to_port, len, 0, 0, class);
}

void sim_answer(struct proc *p, uint32_t to)
{
	struct world *w = p->w;

	if (sim_random(w, 6))
		sim_at(w, w->now + (weft_time)sim_random(w, 32000), app_answer, p, to);
}

static void app_post(struct world *w, struct proc *p)
{
	int want_proc = sim_random(w, 2) ? -1 : 1 + (int)sim_random(w, w->conf.procs);
	int want_class = sim_random(w, 3) ? -1 : (int)sim_random(w, SIM_CLASSES);
	uint32_t port = 1 + (uint32_t)sim_random(w, SIM_PORTS);

	if (!p->port_closed[port])
		upper_post(p, port, want_proc, want_class, sim_random(w, 8) ? 1 << 20 : sim_random(w, 70000));
}

static void app_cancel(struct world *w, struct proc *p)
{
	uint32_t i = w->nmails ? (uint32_t)sim_random(w, w->nmails) : 0, k = (uint32_t)sim_random(w, 8);

	if (!w->nmails || !w->conf.cancels)
		return;
	if (w->mail[i]->from_proc == p->number)
		upper_cancel(p, w->mail[i]);
	for (struct post *post = w->posts; post; post = post->all)
		if (post->p == p && !post->over && !k--) {
			upper_unpost(p, post);
			return;
		}
}

static void app(struct world *w, void *a, uint64_t b)
{
	struct proc *p = a;

	(void)b;
	if (p->dead || w->draining)
		return;
	if (p->paused > w->now) {
		sim_at(w, p->paused, app, p, 0);
		return;
	}
	for (uint64_t n = sim_random(w, w->conf.bursts && !sim_random(w, 8) ? 60 : 6); n && !w->failed; n--) {
		uint64_t what = sim_random(w, 100);

		if (what < 50)
			app_send(w, p);
		else if (what < 88)
			app_post(w, p);
		else if (what < 99)
			app_cancel(w, p);
		else if (w->conf.closes && !sim_random(w, 4))
			upper_close(p, 1 + (uint32_t)sim_random(w, SIM_PORTS));
	}
	for (uint32_t k = 1; k <= w->conf.procs; k++)
		if (p->remote[k])
			check_remote(w, p, k);
	sim_at(w, w->now + (weft_time)sim_random(w, (uint64_t)w->conf.span / 40), app, p, 0);
}

/* ---- to the end ---- */

static bool pair_over(struct world *w, uint32_t a, uint32_t b)
{
	return w->proc[a].dead || w->proc[b].dead || w->proc[a].remote[b]->err || w->proc[b].remote[a]->err;
}

static bool names_dead(struct world *w, const struct post *post)
{
	return post->want_proc >= 0 && (uint32_t)post->want_proc != post->p->number && w->proc[post->want_proc].dead;
}

/* Everything sent is received or was taken back, every operation has ended. */
static bool all_over(struct world *w)
{
	for (uint32_t i = 0; i < w->nmails; i++) {
		struct mail *m = w->mail[i];

		if (w->proc[m->from_proc].dead)
			continue;
		if (!m->ended || (!m->matched && !m->dropped && !m->lost && !pair_over(w, m->from_proc, m->to_proc)))
			return false;
	}
	for (struct post *post = w->posts; post; post = post->all)
		if (post->invite_closing && !post->p->dead)
			return false;
	for (struct post *post = w->posts; post; post = post->all)
		if (!post->over && !post->p->dead && (!wf_list_has(&post->node) || names_dead(w, post)))
			return false;
	for (uint32_t i = 1; i <= w->conf.procs; i++) {
		for (uint32_t port = 1; port <= SIM_PORTS; port++)
			if (!w->proc[i].dead && !wf_list_empty(&w->proc[i].arrivals[port]))
				return false;
		for (uint32_t k = 1; k <= w->conf.procs; k++)
			if (w->proc[i].remote[k] && !w->proc[i].dead && !w->proc[i].remote[k]->err && w->proc[i].remote[k]->unacked)
				return false;
	}
	return true;
}

/* What two processes think of each other: printed when a seed fails that was asked for. */
static void show(struct world *w, struct proc *p, uint32_t other)
{
	struct wf_remote *r = p->remote[other];

	if (w->conf.quiet)
		return;
	printf("# %u of %u: err %d, wake %.6f, now %.6f, announced %u, live %u\n", p->number, other, r->err, (double)r->wake / 1e9,
	       (double)w->now / 1e9, r->announced, r->live);
	for (unsigned i = 0; i < WF_LANES; i++) {
		struct wf_lane *l = &r->lanes[i];

		if (l->up)
			printf("#   slot %u gen %u%s%s%s%s%s since %.6f heard %.6f chunks %llu of %llu\n", l->slot, l->gen,
			       l->closing ? " closing" : "", l->suspect ? " suspect" : "", l->active ? " active" : "",
			       l->writing ? " writing" : "", l->pinged ? " pinged" : "",
			       (double)l->since / 1e9, (double)l->heard / 1e9, (unsigned long long)l->chunk_acked, (unsigned long long)l->chunk_sent);
	}
	for (unsigned i = 0; i < WF_STREAMS; i++) {
		struct wf_out *o = r->out[i];

		if (o)
			printf("#   out %u acked %llu sent %llu tail %llu epoch %u%s\n", i, (unsigned long long)o->rt.acked,
			       (unsigned long long)o->rt.sent, (unsigned long long)o->rt.tail, o->epoch, o->waits ? " waits" : "");
		if (r->in[i].epoch)
			printf("#   in %u next %llu epoch %u%s\n", i, (unsigned long long)r->in[i].next, r->in[i].epoch,
			       r->in[i].begun ? " begun" : "");
	}
}

static void name_pending(struct world *w)
{
	for (uint32_t i = 1; i <= w->conf.procs; i++)
		for (uint32_t k = 1; k <= w->conf.procs; k++)
			if (w->proc[i].remote[k] && !w->proc[i].dead)
				show(w, &w->proc[i], k);
	for (uint32_t i = 0; i < w->nmails; i++) {
		struct mail *m = w->mail[i];

		if (w->proc[m->from_proc].dead)
			continue;
		if (!m->ended || (!m->matched && !m->dropped && !m->lost && !pair_over(w, m->from_proc, m->to_proc)))
			sim_fail(w, "message %u (%lu bytes, %u.%u to %u.%u, prio %d, flags %u) is %s for ever, state %u", m->id,
				 (unsigned long)m->len, m->from_proc, m->from_port, m->to_proc, m->to_port, m->prio, m->s.flags,
				 m->ended ? "unreceived" : "pending",
				 m->s.state);
	}
	sim_fail(w, "something is pending for ever");
}

/* Takes whatever comes, at every open port. */
static void receive_all(struct world *w, void *a, uint64_t b)
{
	(void)a, (void)b;
	for (uint32_t i = 1; i <= w->conf.procs; i++)
		for (uint32_t port = 1; port <= SIM_PORTS; port++) {
			struct proc *p = &w->proc[i];

			if (!p->dead && !p->port_closed[port] && p->paused <= w->now && wf_list_empty(&p->posted[port]))
				for (int k = 0; k < 4; k++)
					upper_post(p, port, -1, -1, 1 << 20);
		}
	if (w->draining && !w->failed)
		sim_at(w, w->now + 2 * WEFT_MS, receive_all, NULL, 0);
}

static void drain(struct world *w)
{
	w->draining = true;
	for (struct wire *wire = w->wires; wire; wire = wire->next)
		wire->way[0].cut = wire->way[1].cut = -1;
	/* Receives that name a dead process end by themselves. */
	for (struct post *post = w->posts; post; post = post->all)
		if (!post->p->dead && (post->want_proc < 0 || !w->proc[post->want_proc].dead))
			upper_unpost(post->p, post);
	receive_all(w, NULL, 0);
	if (!sim_until(w, all_over, 20 * w->conf.deadline) && !w->failed)
		name_pending(w);
	/* Who is dead was found to be, or nobody asked. */
	for (uint32_t i = 1; i <= w->conf.procs && !w->failed; i++)
		for (uint32_t k = 1; k <= w->conf.procs; k++)
			if (w->proc[i].remote[k] && !w->proc[i].dead)
				check_rest(w, &w->proc[i], k);
}

/* Nobody has anything to say any more: one end closes, or both. */
static bool all_closed(struct world *w)
{
	for (uint32_t i = 1; i <= w->conf.procs; i++)
		for (uint32_t k = 1; k <= w->conf.procs; k++) {
			struct proc *p = &w->proc[i];

			if (p->remote[k] && !p->dead && p->remote[k]->closing && !p->closed[k])
				return false;
		}
	return true;
}

static void close_all(struct world *w)
{
	for (uint32_t i = 1; i <= w->conf.procs; i++)
		for (uint32_t k = 1; k <= w->conf.procs; k++) {
			struct proc *p = &w->proc[i];

			if (!p->remote[k] || p->dead || !(i < k || sim_random(w, 2)))
				continue;
			wf_remote_close(p->remote[k], w->now);
			shell_after(p, k);
		}
	if (!sim_until(w, all_closed, 4 * w->conf.deadline) && !w->failed)
		sim_fail(w, "a session is not closed");
	for (uint32_t i = 1; i <= w->conf.procs && !w->failed; i++)
		for (uint32_t k = 1; k <= w->conf.procs; k++)
			if (i != k && !pair_over(w, i, k))
				sim_fail(w, "process %u has heard no BYE of %u, nor said one", i, k);
}

bool sim_play(const struct sim_conf *conf, uint64_t *ret_hash, char *ret_why)
{
	struct world *w = sim_new(conf);
	bool ok;

	for (uint32_t i = 1; i <= conf->procs; i++)
		sim_at(w, w->now, app, &w->proc[i], 0);
	if (conf->faults)
		sim_at(w, w->now, fault, NULL, 0);
	sim_run(w, w->now + conf->span);
	if (!w->failed)
		drain(w);
	if (!w->failed)
		close_all(w);
	for (uint32_t i = 1; i <= conf->procs; i++)
		for (uint32_t k = 1; k <= conf->procs; k++)
			if (w->proc[i].remote[k])
				sim_note(w, w->proc[i].remote[k]->counted_moves * 1000 + w->proc[i].remote[k]->counted_resent);
	upper_free(w);
	ok = !w->failed;
	*ret_hash = w->hash;
	memcpy(ret_why, w->why, sizeof(w->why));
	if (!conf->quiet)
		printf("# seed %llu: hash %016llx, %u messages, %llu bytes, %llu lanes, %llu breaks, %.1f s\n", (unsigned long long)conf->seed,
		       (unsigned long long)w->hash, w->nmails, (unsigned long long)w->bytes, (unsigned long long)w->lanes_up,
		       (unsigned long long)w->breaks, (double)w->now / 1e9);
	sim_free(w);
	return ok;
}
