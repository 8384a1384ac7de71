/* watch.c - threads and ports of other hosts that somebody here waits for in particular, and those of this process that somebody there waits for.
 *
 *     a receive names far id F ----WATCH F----> asked; F lives?  no: GONE
 *                                               F ends: asked by whom? GONE to each
 *     receives that name F end  <----GONE F---- behind everything that F has sent (peer/gone.c)
 *
 * Edges   An id is asked for (under the trunk's lock) before it is looked whether it lives; who ends it clears it before he looks, under the same lock, who has asked. So one of
 *         the two says GONE, and the word in the set says who has.
 */
#include <errno.h>
#include <stdlib.h>

#include "port/open.h"
#include "port/table.h"
#include "wire/wire.h"

static _Thread_local struct {
	weft_id id;
	uint32_t gones;
} last;                                 /* the last that was asked for by this thread, when as many were gone */

int wf_watch_abroad(weft_id id)
{
	struct wf_trunk *t;
	uint32_t gones;
	int r = wf_depart_lives(id), word = WF_ID_NONE;

	if (r < 0 || !(uint32_t)id)
		return r;
	t = wf_trunk_at((uint32_t)(id >> 32));
	gones = atomic_load_explicit(&t->gones, memory_order_acquire);
	if (wf_likely(last.id == id && last.gones == gones))
		return 0;
	wf_trunk_lock(t);
	word = wf_ids_get(&t->watched, (uint32_t)id);
	if (word == WF_ID_NONE && wf_ids_put(&t->watched, (uint32_t)id, WF_ID_ASKED) == 0)
		wf_remote_watch(&t->remote, (uint32_t)id);
	wf_unlock(&t->lock);
	if (word == WF_ID_OVER)
		return -ESRCH;
	last.id = id;
	last.gones = gones;
	if (word == WF_ID_NONE)
		wf_trunk_kick(t);
	return 0;
}

WF_HOT bool wf_watch_over(struct wf_trunk *t, uint32_t id)
{
	bool over;

	if (wf_likely(!atomic_load_explicit(&t->gones, memory_order_acquire)))
		return false;
	wf_trunk_lock(t);
	over = wf_ids_get(&t->watched, id) == WF_ID_OVER;
	wf_unlock(&t->lock);
	return over;
}

/* All that is watched there, once more. */
static void ask_again(struct wf_trunk *t)
{
	wf_trunk_lock(t);
	for (uint32_t i = 0; i < t->watched.size; i++)
		if (t->watched.slot[i].id && t->watched.slot[i].word == WF_ID_ASKED)
			wf_remote_watch(&t->remote, t->watched.slot[i].id);
	wf_unlock(&t->lock);
}

void wf_watch_gone(struct wf_trunk *t, uint32_t id)
{
	if (!id) {
		ask_again(t);
		return;
	}
	wf_trunk_lock(t);
	wf_ids_put(&t->watched, id, WF_ID_OVER);        /* without memory it is asked for again, and answered again */
	wf_unlock(&t->lock);
	atomic_fetch_add_explicit(&t->gones, 1, memory_order_release);
	wf_id_ended((weft_id)t->process << 32 | id, WF_WATCHED_BY_ANY);
}

void wf_watch_look(void)
{
	struct wf_trunk *t;

	for (uint32_t at = 0; (t = wf_trunk_next(&at)) != NULL;) {
		if (!atomic_load_explicit(&t->cared, memory_order_relaxed) || wf_process_named(t->process))
			continue;
		wf_trunk_lock(t);
		if (atomic_exchange_explicit(&t->cared, false, memory_order_relaxed))
			wf_remote_care(&t->remote, -1);
		wf_unlock(&t->lock);
	}
}

/* [trunk.lock] It is no more: said once, if they have asked. */
static bool say_locked(struct wf_trunk *t, uint32_t id)
{
	if (wf_ids_get(&t->asked, id) != WF_ID_ASKED)
		return false;
	wf_ids_put(&t->asked, id, WF_ID_OVER);
	wf_remote_say_gone(&t->remote, id);
	return true;
}

void wf_watch_asked(struct wf_trunk *t, uint32_t id)
{
	weft_id full = (wf_process_id >> 32) << 32 | id;
	bool lives = wf_id_lives(full), asked;

	wf_trunk_lock(t);
	asked = lives && wf_ids_put(&t->asked, id, WF_ID_ASKED) == 0;   /* only ids that live: so the set is bounded, whatever they ask for */
	if (!lives)
		wf_remote_say_gone(&t->remote, id);
	else if (!asked)
		t->remote.gone_lost = true;                             /* they ask again */
	wf_unlock(&t->lock);
	if (!asked || wf_id_lives(full))
		return;
	wf_trunk_lock(t);
	say_locked(t, id);
	wf_unlock(&t->lock);
}

void wf_watch_ended(weft_id id)
{
	struct wf_trunk *t;
	bool said;

	for (uint32_t at = 0; (t = wf_trunk_next(&at)) != NULL;) {
		wf_trunk_lock(t);
		said = say_locked(t, (uint32_t)id);
		wf_unlock(&t->lock);
		if (said)
			wf_trunk_kick(t);
	}
}
