/* state_abroad.c - the processes of other hosts, and of other jobs, in a sample.
 *
 * A process that was spoken to has a trunk in src/wire, and in it a struct wf_remote (peer/remote.h), which tells everything: it is copied as it
 * stands, without its lock, and taken for what it is, words of one moment or of two. Nothing it points to is followed but the streams, for how
 * much of them is not acknowledged: they stay where they are as long as the trunk does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/base.h>

#include "base/clock.h"
#include "peer/remote.h"
#include "port/sample.h"

static bool get(const struct wf_memory *mem, uint64_t at, void *to, size_t n)
{
	return at && mem->read(mem->arg, at, to, n);
}

/* The address of a trunk; 0: none. */
static uint64_t trunk_at(const struct wf_roots *roots, const struct wf_memory *mem, uint32_t i)
{
	uint64_t trunk;

	return roots->trunks && i < roots->trunks_most && get(mem, roots->trunks + i * sizeof(trunk), &trunk, sizeof(trunk)) ? trunk : 0;
}

bool wf_sample_remote(const struct wf_roots *roots, const struct wf_memory *mem, uint32_t process, struct wf_remote *ret_remote)
{
	uint64_t trunk = trunk_at(roots, mem, process);

	return trunk && get(mem, trunk + roots->trunk_remote, ret_remote, sizeof(*ret_remote));
}

/* How long ago @then was, for an item: at least 1, as 0 means that it is not known. */
static int64_t ago(weft_time then)
{
	weft_time now = wf_now();

	return then > 0 && then < now ? now - then : 1;
}

static const char *kind_of(uint32_t slot)
{
	return !slot ? "control" : slot & 1 ? "head" : "bulk";
}

/* One lane that is up, or that is tried and does not come up. */
static void sample_lane(struct weft_state *s, weft_id me, weft_id whom, const struct wf_lane *lane)
{
	char text[96];

	snprintf(text, sizeof(text), "rail %u %s, %s, round trip %lld us%s", lane->rail, kind_of(lane->slot), lane->mine ? "begun here" : "begun there",
		 (long long)lane->rtt / 1000, lane->closing ? ", closing" : lane->suspect ? ", suspected" : "");
	wf_sample_add(s, WEFT_STATE_RAIL, me, whom, (uint64_t)lane->slot << 32 | lane->gen, lane->chunk_sent - lane->chunk_acked, text);
	if (!s->short_of_memory)
		s->items[s->count - 1].age = ago(lane->up_at);
}

static void sample_slot(struct weft_state *s, weft_id me, weft_id whom, uint32_t slot, const struct wf_lane_slot *l)
{
	char text[64];

	snprintf(text, sizeof(text), "rail %u %s, not up, tries %u%s", slot ? (slot - 1) / 2 : 0, kind_of(slot), l->tries, l->opening ? ", one now" : "");
	wf_sample_add(s, WEFT_STATE_RAIL, me, whom, (uint64_t)slot << 32 | l->gen, 0, text);
}

static uint64_t unacknowledged(const struct wf_remote *r, const struct wf_memory *mem)
{
	uint64_t sum = 0;
	struct wf_out out;

	for (unsigned i = 0; i < WF_STREAMS; i++)
		if (get(mem, (uint64_t)(uintptr_t)r->out[i], &out, sizeof(out)))
			sum += out.rt.tail - out.rt.acked;
	return sum;
}

static bool was_met(const struct wf_remote *r)
{
	for (unsigned i = 0; i < WF_LANES; i++)
		if (r->lanes[i].up_at)
			return true;
	return false;
}

/* In words: is it reached? */
static void tell_whether(const struct wf_remote *r, const char *of, char *ret_text, size_t n)
{
	bool up = false;
	unsigned tries = 0;

	for (unsigned i = 0; i < WF_LANES; i++)
		up |= r->lanes[i].up && !r->lanes[i].closing;
	for (unsigned i = 0; i < WF_LANE_SLOTS; i++)
		tries += r->slots[i].tries;
	if (r->err)
		snprintf(ret_text, n, "of another %s, %s: %s", of, r->bye_in ? "left" : "gone", strerror(-r->err));
	else if (up)
		snprintf(ret_text, n, "of another %s, reached", of);
	else if (tries)
		snprintf(ret_text, n, "of another %s, not reached, tries %u", of, tries);
	else
		snprintf(ret_text, n, "of another %s, %s", of, was_met(r) ? "no lane now" : "no lane yet");
}

static void sample_summary(struct weft_state *s, weft_id me, weft_id whom, const struct wf_remote *r, const struct wf_memory *mem)
{
	char text[64];

	tell_whether(r, whom >> 52 ? "job" : "host", text, sizeof(text));
	wf_sample_add(s, WEFT_STATE_PEER, me, whom, r->limit > r->used ? r->limit - r->used : 0, unacknowledged(r, mem), text);
	if (!s->short_of_memory && was_met(r))
		s->items[s->count - 1].age = ago(r->heard);
}

static void sample_messages(struct weft_state *s, weft_id me, weft_id whom, const struct wf_remote *r)
{
	char text[64];

	if (r->live) {
		snprintf(text, sizeof(text), "sends %u, announced %u, held back %u", r->live, r->announced, r->held_back);
		wf_sample_add(s, WEFT_STATE_PEER, me, whom, 0, r->live, text);
	}
	if (r->tokens.used || r->nheld) {
		snprintf(text, sizeof(text), "landing %u, announced to us %u", r->tokens.used, r->nheld);
		wf_sample_add(s, WEFT_STATE_PEER, me, whom, 0, r->tokens.used, text);
	}
}

void wf_sample_strangers(struct weft_state *s, const struct wf_roots *roots, const struct wf_memory *mem)
{
	uint64_t refused = 0;
	char text[64];

	if (!get(mem, roots->strangers, &refused, sizeof(refused)) || !refused)
		return;
	snprintf(text, sizeof(text), "strangers refused %llu", (unsigned long long)refused);
	wf_sample_add(s, WEFT_STATE_PROCESS, roots->process, 0, 0, refused, text);
}

static void sample_remote(struct weft_state *s, const struct wf_roots *roots, const struct wf_memory *mem, weft_id whom, const struct wf_remote *r)
{
	sample_summary(s, roots->process, whom, r, mem);
	sample_messages(s, roots->process, whom, r);
	for (uint32_t slot = 0; slot < WF_LANE_SLOTS; slot++) {
		for (unsigned i = 0; i < WF_LANES; i++)
			if (r->lanes[i].up && r->lanes[i].slot == slot)
				sample_lane(s, roots->process, whom, &r->lanes[i]);
		if (!r->slots[slot].lane && (r->slots[slot].opening || r->slots[slot].tries))
			sample_slot(s, roots->process, whom, slot, &r->slots[slot]);
	}
}

void wf_sample_abroad(struct weft_state *s, const struct wf_roots *roots, const struct wf_memory *mem, uint32_t process)
{
	struct wf_remote *r = malloc(sizeof(*r));
	weft_id whom = (weft_id)process << 32;

	if (!r)
		s->short_of_memory = true;
	else if (wf_sample_remote(roots, mem, process, r))
		sample_remote(s, roots, mem, whom, r);
	else
		wf_sample_add(s, WEFT_STATE_PEER, roots->process, whom, 0, 0, "of another host, nothing was sent to it or came from it");
	free(r);
}

void wf_sample_foreign(struct weft_state *s, const struct wf_roots *roots, const struct wf_memory *mem)
{
	struct wf_remote *r = malloc(sizeof(*r));
	uint32_t process;
	uint64_t trunk;

	if (!r)
		s->short_of_memory = true;
	for (uint32_t i = WF_PROCESSES; r && (trunk = trunk_at(roots, mem, i)) != 0; i++)
		if (get(mem, trunk + roots->trunk_process, &process, sizeof(process)) && wf_sample_remote(roots, mem, i, r))
			sample_remote(s, roots, mem, (weft_id)process << 32, r);
	free(r);
}
