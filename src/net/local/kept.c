/* kept.c - see kept.h. */
#include "net/local/kept.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 256u

struct wf_kept {
	struct wf_kept_frame *first, *last;
	struct wf_kept_frame *bucket[BUCKETS];
	uint32_t count[WF_FRAME_KINDS];
};

static uint32_t hash(uint32_t what, const unsigned char *body, uint32_t bytes)
{
	uint32_t h = 2166136261u ^ what;

	for (uint32_t i = 0; i < bytes; i++)
		h = (h ^ body[i]) * 16777619u;
	return h ^ h >> 15;
}

/* The end of a chain, or where in it a frame about the same as @f is. */
static struct wf_kept_frame **place(struct wf_kept *k, const struct wf_kept_frame *f, uint32_t same)
{
	struct wf_kept_frame **at = &k->bucket[f->hash % BUCKETS];

	while (*at && ((*at)->hash != f->hash || (*at)->what != f->what || memcmp((*at)->body, f->body, same)))
		at = &(*at)->chain;
	return at;
}

static void replace(struct wf_kept_frame *old, const struct wf_kept_frame *f, uint32_t add)
{
	uint64_t count, more;

	memcpy(&count, old->body + add, sizeof(count));
	memcpy(&more, f->body + add, sizeof(more));
	memcpy(old->body, f->body, sizeof(old->body));
	count += more;
	if (add)
		memcpy(old->body + add, &count, sizeof(count));
}

bool wf_kept_add(struct wf_kept **kept, const struct wf_frame_rule *rule, uint32_t what, const void *body, size_t len)
{
	struct wf_kept_frame f = { .what = what }, **at, *fresh;
	struct wf_kept *k = *kept;

	assert(what < WF_FRAME_KINDS && len <= sizeof(f.body) && rule->add + sizeof(uint64_t) <= sizeof(f.body));
	if (!k)
		k = *kept = calloc(1, sizeof(*k));
	if (!k)
		return false;
	memcpy(f.body, body, len);
	f.hash = hash(what, f.body, rule->same);
	at = place(k, &f, rule->same);
	if (*at) {
		replace(*at, &f, rule->add);
		return true;
	}
	if (rule->most && k->count[what] >= rule->most)
		return false;
	fresh = malloc(sizeof(*fresh));
	if (!fresh)
		return false;
	*fresh = f;
	*at = fresh;
	if (k->last)
		k->last->next = fresh;
	else
		k->first = fresh;
	k->last = fresh;
	k->count[what]++;
	return true;
}

const struct wf_kept_frame *wf_kept_first(const struct wf_kept *k)
{
	return k ? k->first : NULL;
}

void wf_kept_drop(struct wf_kept *k)
{
	struct wf_kept_frame *f = k->first;

	assert(k->bucket[f->hash % BUCKETS] == f);
	k->bucket[f->hash % BUCKETS] = f->chain;
	k->count[f->what]--;
	k->first = f->next;
	if (!k->first)
		k->last = NULL;
	free(f);
}

uint32_t wf_kept_free(struct wf_kept **kept)
{
	uint32_t n = 0;

	for (; wf_kept_first(*kept); n++)
		wf_kept_drop(*kept);
	free(*kept);
	*kept = NULL;
	return n;
}
