/* ids.c - see ids.h: open addressing, at most half full. */
#include "wire/ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEAST 16u

static struct wf_ids_slot *find(const struct wf_ids *s, uint32_t id)
{
	uint32_t i = id * UINT32_C(0x9e3779b1);

	for (;; i++) {
		struct wf_ids_slot *slot = &s->slot[i & (s->size - 1)];

		if (!slot->id || slot->id == id)
			return slot;
	}
}

int wf_ids_get(const struct wf_ids *s, uint32_t id)
{
	struct wf_ids_slot *slot = s->size ? find(s, id) : NULL;

	return slot && slot->id ? (int)slot->word : WF_ID_NONE;
}

struct wf_turn *wf_ids_turn(const struct wf_ids *s, uint32_t id)
{
	struct wf_ids_slot *slot = s->size ? find(s, id) : NULL;

	return slot && slot->id && slot->word == WF_ID_ASKED ? &slot->turn : NULL;
}

/* Room for one more, without those that are over. */
static int grow(struct wf_ids *s)
{
	struct wf_ids more = { 0 };
	uint32_t stay = 0;

	for (uint32_t i = 0; i < s->size; i++)
		stay += s->slot[i].id && s->slot[i].word != WF_ID_OVER;
	for (more.size = LEAST; more.size < 4 * (stay + 1);)
		more.size *= 2;
	more.slot = calloc(more.size, sizeof(*more.slot));
	if (!more.slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->size; i++)
		if (s->slot[i].id && s->slot[i].word != WF_ID_OVER) {
			*find(&more, s->slot[i].id) = s->slot[i];
			more.used++;
		}
	free(s->slot);
	*s = more;
	return 0;
}

int wf_ids_put(struct wf_ids *s, uint32_t id, uint32_t word)
{
	struct wf_ids_slot *slot = s->size ? find(s, id) : NULL;

	if (!slot || (!slot->id && 2 * (s->used + 1) > s->size)) {
		if (grow(s) < 0)
			return -ENOMEM;
		slot = find(s, id);
	}
	s->used += !slot->id;
	*slot = (struct wf_ids_slot){ .id = id, .word = word };
	return 0;
}

void wf_ids_fini(struct wf_ids *s)
{
	free(s->slot);
	memset(s, 0, sizeof(*s));
}
