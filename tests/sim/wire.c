/* wire.c - connections: bytes in order, or none. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

struct parcel {
	struct parcel *next;
	weft_time at;
	uint32_t n;
	uint8_t bytes[];
};

struct wire *wire_open(struct world *w, uint32_t from, uint32_t to, uint32_t slot, uint32_t gen)
{
	struct wire *wire = calloc(1, sizeof(*wire));

	if (!wire)
		abort();
	wire->slot = slot;
	wire->gen = gen;
	wire->latency = (weft_time)(5000 + sim_random(w, 300000));
	wire->rate = 50000000 + sim_random(w, 1000000000);
	for (int i = 0; i < 2; i++) {
		wire->end[i] = (struct end){ .w = wire, .p = &w->proc[i ? to : from], .other = i ? from : to, .side = i };
		wire->way[i].cut = -1;
		wire->way[i].end = &wire->way[i].first;
	}
	if (w->conf.faults && !w->draining && !sim_random(w, 3)) {      /* breaks at some byte, be it the first */
		struct way *way = &wire->way[sim_random(w, 2)];

		way->cut = (int64_t)sim_random(w, sim_random(w, 2) ? 4000 : 1000000);
	}
	wire->next = w->wires;
	w->wires = wire;
	return wire;
}

static void lost(struct world *w, void *a, uint64_t b)
{
	struct end *e = a;

	(void)b;
	if (e->p->paused > w->now) {
		sim_at(w, e->p->paused, lost, e, 0);
		return;
	}
	shell_lost(w, e);
}

void wire_break(struct world *w, struct wire *wire)
{
	if (wire->broken)
		return;
	wire->broken = true;
	w->breaks++;
	for (int i = 0; i < 2; i++)
		sim_at(w, w->now + (weft_time)sim_random(w, 2000000), lost, &wire->end[i], 0);
}

void wire_close(struct world *w, struct end *e)
{
	struct wire *wire = e->w;
	struct way *way = &wire->way[e->side];
	weft_time at = way->last > w->now ? way->last : w->now + wire->latency;

	if (wire->broken)
		return;
	/* What was written may still arrive, or not. */
	if (sim_random(w, 2))
		wire->broken = true;
	sim_at(w, at, lost, &wire->end[!e->side], 0);
}

/* What has come in the direction from @a is read. */
static void arrive(struct world *w, void *a, uint64_t b)
{
	struct end *from = a, *e = &from->w->end[!from->side];
	struct way *way = &from->w->way[from->side];
	weft_time silent = w->silent[e->other][e->p->number];

	(void)b;
	if (silent > w->now && silent > way->stall)
		way->stall = silent + (weft_time)sim_random(w, 100000000);
	while (way->first && way->first->at <= w->now && !e->w->broken && !e->closed && !e->p->dead) {
		struct parcel *p = way->first;
		uint32_t n = p->n;

		if (way->stall > w->now || e->p->paused > w->now) {
			sim_at(w, way->stall > e->p->paused ? way->stall : e->p->paused, arrive, from, 0);
			return;
		}
		way->first = p->next;
		if (!way->first)
			way->end = &way->first;
		way->queued -= n;
		if (way->cut >= 0 && way->cut < (int64_t)n)
			n = (uint32_t)way->cut;
		if (e->rx_len + n > e->rx_size) {
			e->rx_size = 2 * (e->rx_len + n);
			e->rx = realloc(e->rx, e->rx_size);
		}
		if (n)                  /* 0: it breaks before the first */
			memcpy(e->rx + e->rx_len, p->bytes, n);
		e->rx_len += n;
		w->bytes += n;
		free(p);
		if (way->cut >= 0 && (way->cut -= n) == 0)
			wire_break(w, e->w);
		shell_bytes(w, e);
		shell_room(w, from);
	}
}

uint32_t wire_put(struct world *w, struct end *e, const void *bytes, uint32_t n)
{
	struct way *way = &e->w->way[e->side];
	struct parcel *p;
	weft_time at;

	if (e->w->broken)
		return n;                               /* into the void: the loss is told soon */
	if (way->queued >= SIM_QUEUE)
		return 0;
	if (n > SIM_QUEUE - way->queued)
		n = (uint32_t)(SIM_QUEUE - way->queued);
	if (n > 1000 && !sim_random(w, 4))
		n = 1 + (uint32_t)sim_random(w, n);
	p = malloc(sizeof(*p) + n);
	if (!p)
		abort();
	p->next = NULL;
	p->n = n;
	memcpy(p->bytes, bytes, n);
	way->queued += n;
	if (way->free_at < w->now)
		way->free_at = w->now;
	way->free_at += (weft_time)(n * UINT64_C(1000000000) / e->w->rate);
	at = way->free_at + e->w->latency;
	if (at <= way->last)
		at = way->last;
	way->last = p->at = at;
	*way->end = p;
	way->end = &p->next;
	sim_at(w, at, arrive, e, 0);
	return n;
}

void wires_free(struct world *w)
{
	for (struct wire *wire = w->wires, *next; wire; wire = next) {
		next = wire->next;
		for (int i = 0; i < 2; i++) {
			for (struct parcel *p = wire->way[i].first, *after; p; p = after) {
				after = p->next;
				free(p);
			}
			free(wire->end[i].rx);
		}
		free(wire);
	}
}
