/* sample.c - the items of a sample, and those that are no port's. See sample.h. */
#include "port/sample.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem/space.h"
#include "mem/word.h"
#include "net/local/peer.h"
#include "port/budget.h"
#include "port/way.h"

#define WAYS_MOST 65536u                /* the walk over them is bounded, whatever is read */

struct wf_roots wf_roots;

void wf_sample_add(struct weft_state *s, uint32_t kind, weft_id who, weft_id whom, uint64_t tag, uint64_t len, const char *text)
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

void wf_sample_port(struct weft_state *s, const struct weft_port *p, weft_id id, weft_id process)
{
	char text[64];

	s->port = s->count;
	snprintf(text, sizeof(text), "%s%.40s", p->limbo ? "not open yet " : "",
		 p->name[0] ? p->name : p->thread_port ? "thread" : id == process ? "process" : "port");
	wf_sample_add(s, WEFT_STATE_PORT, id, 0, atomic_load_explicit(&p->context, memory_order_relaxed), p->held, text);
}

void wf_sample_queued(struct weft_state *s, weft_id id, int side, bool foreign, const struct wf_arrival *a, size_t len)
{
	struct wf_head h;

	memcpy(&h, a->entry.head, sizeof(h));
	if (foreign)
		h = (struct wf_head){ .src = side == WEFT_MATCH_ARRIVALS ? a->src : WEFT_ANY };
	if (side == WEFT_MATCH_WANTS)
		wf_sample_add(s, WEFT_STATE_QUEUED, id, h.src, h.ignore == UINT64_MAX ? WEFT_ANY_TAG : h.tag, len, "expected");
	else
		wf_sample_add(s, WEFT_STATE_QUEUED, id, a->src, h.tag, a->len,
			      a->flags & WF_MSG_SENDS ? "unexpected, announced" : "unexpected");
}

void wf_sample_awaited(struct weft_state *s, weft_id who, weft_id at, bool foreign, const struct weft_req *r)
{
	char port[WEFT_ID_TEXT], text[64] = "receives from anyone";
	struct wf_head h;

	memcpy(&h, r->a.entry.head, sizeof(h));
	if (r->what == WF_SEND) {
		wf_sample_add(s, WEFT_STATE_WAITER, who, r->st.from, foreign ? 0 : h.tag, r->a.len, "sends");
		return;
	}
	if (foreign)
		return;
	if (h.src != WEFT_ANY)
		snprintf(text, sizeof(text), "receives at %s", weft_id_print(at, port, sizeof(port)));
	wf_sample_add(s, WEFT_STATE_WAITER, who, h.src == WEFT_ANY ? at : h.src, h.ignore == UINT64_MAX ? WEFT_ANY_TAG : h.tag, r->mem.len, text);
}

void wf_sample_looker(struct weft_state *s, weft_id who, weft_id at, const struct wf_waiter *w, const void *want)
{
	char port[WEFT_ID_TEXT], text[64];
	const char *does = w->receives ? "receives" : "probes";
	struct wf_head h;
	uint64_t tag;

	if (!want) {
		wf_sample_add(s, WEFT_STATE_WAITER, who, at, 0, w->room, does);
		return;
	}
	memcpy(&h, want, sizeof(h));
	tag = h.ignore == UINT64_MAX ? WEFT_ANY_TAG : h.tag;
	if (h.src != WEFT_ANY)
		snprintf(text, sizeof(text), "%s at %s", does, weft_id_print(at, port, sizeof(port)));
	else
		snprintf(text, sizeof(text), "%s %s anyone", does, w->receives ? "from" : "for");
	if (w->receives)
		wf_sample_add(s, WEFT_STATE_QUEUED, at, h.src, tag, w->room, "expected");
	wf_sample_add(s, WEFT_STATE_WAITER, who, h.src == WEFT_ANY ? at : h.src, tag, w->room, text);
}

void wf_sample_waiter(struct weft_state *s, weft_id who, weft_id at)
{
	for (size_t i = s->port; i < s->count; i++)
		if (s->items[i].kind == WEFT_STATE_WAITER && s->items[i].who == who && strcmp(s->items[i].text, "sends") != 0)
			return;
	wf_sample_add(s, WEFT_STATE_WAITER, who, at, 0, 0, "receives");
}

static bool get(const struct wf_memory *mem, uint64_t at, void *to, size_t n)
{
	return at && mem->read(mem->arg, at, to, n);
}

/* Entry @i of an array of pointers; 0: none, or not to be read. */
static uint64_t pointer(const struct wf_memory *mem, uint64_t array, uint64_t i)
{
	uint64_t p;

	return array && get(mem, array + i * sizeof(p), &p, sizeof(p)) ? p : 0;
}

/* Of one unit of a chunk of buffers: how many are with other processes. */
static size_t away_of(const struct wf_memory *mem, const struct wf_chunk *c, unsigned unit, unsigned class)
{
	unsigned n = class > WF_CLASS_UNIT ? 1 : 1u << (WF_CLASS_UNIT - class);
	uint64_t at = (uint64_t)(uintptr_t)(c->handles + unit * WF_UNIT_HANDLES);
	struct wf_buf some[256];
	size_t away = 0;

	for (unsigned i = 0; class >= WF_CLASS_MIN && class <= WF_CLASS_MAX && i < n; i += 256) {
		unsigned m = n - i < 256 ? n - i : 256;

		if (!get(mem, at + i * sizeof(*some), some, m * sizeof(*some)))
			break;
		for (unsigned k = 0; k < m; k++)
			away += wf_is_away(atomic_load_explicit(&some[k].word, memory_order_relaxed));
	}
	return away;
}

static size_t buffers_away(const struct wf_memory *mem, const struct wf_roots *roots)
{
	struct wf_chunk c;
	size_t away = 0;
	uint64_t at;

	for (unsigned i = 0; i < 4096 && (at = pointer(mem, roots->buffers, i)) != 0 && get(mem, at, &c, sizeof(c)); i++)
		for (unsigned u = 0; u < WF_UNITS; u++)
			away += away_of(mem, &c, u, atomic_load_explicit(&c.class[u], memory_order_relaxed));
	return away;
}

static void sample_budget(struct weft_state *s, const struct wf_roots *roots, const struct wf_memory *mem)
{
	struct wf_budget b;
	size_t used;
	char text[64];

	if (!get(mem, roots->budget, &b, sizeof(b)))
		return;
	used = atomic_load_explicit(&b.used, memory_order_relaxed);
	snprintf(text, sizeof(text), "budget %zu of %zu, buffers away %zu", used, b.limit, buffers_away(mem, roots));
	wf_sample_add(s, WEFT_STATE_PROCESS, roots->process, 0, 0, used, text);
	wf_sample_strangers(s, roots, mem);
}

bool wf_sample_near(const struct wf_roots *roots, const struct wf_memory *mem, uint32_t process)
{
	uint8_t where;

	return !roots->whereabouts || process >= roots->processes || !get(mem, roots->whereabouts + process, &where, sizeof(where)) || where != WF_OFF_HOST;
}

static void sample_peers(struct weft_state *s, const struct wf_roots *roots, const struct wf_memory *mem)
{
	static const char *const words[] = { "not met", "has not joined yet", "met", "dead or gone" };
	struct wf_peer p;
	uint32_t state;

	for (uint32_t i = 1; i < WF_PROCESSES && i < roots->processes; i++) {
		if (!get(mem, pointer(mem, roots->peers, i), &p, sizeof(p)))
			continue;
		if (!wf_sample_near(roots, mem, i)) {
			wf_sample_abroad(s, roots, mem, i);
			continue;
		}
		state = atomic_load_explicit(&p.state, memory_order_relaxed);
		wf_sample_add(s, WEFT_STATE_PEER, roots->process, (weft_id)i << 32, 0, 0, state < 4 ? words[state] : "?");
	}
	wf_sample_foreign(s, roots, mem);
}

static void sample_ways(struct weft_state *s, const struct wf_roots *roots, const struct wf_memory *mem)
{
	struct wf_way w;
	uint64_t at, t;

	for (uint32_t i = 0; i < WAYS_MOST && i < roots->ways_most && (at = pointer(mem, roots->ways, i)) != 0; i++) {
		if (!get(mem, at, &w, sizeof(w)) || !atomic_load_explicit(&w.id, memory_order_relaxed))
			continue;
		t = atomic_load_explicit(&w.tail, memory_order_relaxed);
		if (w.backlogged || t & WF_WAY_WAITS)
			wf_sample_add(s, WEFT_STATE_PEER, roots->process, atomic_load_explicit(&w.id, memory_order_relaxed),
				      atomic_load_explicit(&w.context, memory_order_relaxed), w.backlogged,
				      t & WF_WAY_WAITS ? "backlog, not let in yet" : "backlog");
	}
}

void wf_sample_process(struct weft_state *s, const struct wf_roots *roots, const struct wf_memory *mem)
{
	sample_budget(s, roots, mem);
	sample_peers(s, roots, mem);
	sample_ways(s, roots, mem);
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
