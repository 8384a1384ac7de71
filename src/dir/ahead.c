/* ahead.c - answers for who did not wait for them: what the client itself cannot keep (that there is no such id, or that very many match) lies
 * here for the next call, a second at most. Under the directory's lock.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dir/here.h"

#define AHEAD_MOST 16
#define AHEAD_LASTS (1 * WEFT_S)

static struct ahead {
	struct wf_dir_ask *ask;         /* NULL: free */
	weft_time since;
} ahead[AHEAD_MOST];

static void ahead_drop(struct ahead *x)
{
	if (x->ask)
		wf_dir_orphan_free(x->ask);
	x->ask = NULL;
}

void wf_dir_forget_ahead(void)
{
	for (int i = 0; i < AHEAD_MOST; i++)
		ahead_drop(&ahead[i]);
}

void wf_dir_answered_ahead(void *ctx, struct wf_dir_ask *ask)
{
	struct ahead *oldest = &ahead[0];

	(void)ctx;
	for (int i = 0; i < AHEAD_MOST && oldest->ask; i++)
		if (!ahead[i].ask || ahead[i].since < oldest->since)
			oldest = &ahead[i];
	ahead_drop(oldest);
	*oldest = (struct ahead){ .ask = ask, .since = wf_now() };
}

static bool is_same(const struct wf_dir_ask *a, const struct wf_dir_ask *b)
{
	if (a->n.use != b->n.use)
		return false;
	return a->n.use == WF_DIR_USE_GET ? a->id == b->id : strcmp(a->query, b->query) == 0 && a->max >= b->max;
}

bool wf_dir_take_ahead(struct wf_dir_ask *ask)
{
	for (int i = 0; i < AHEAD_MOST; i++) {
		struct wf_dir_ask *a = ahead[i].ask;
		bool good;

		if (!a || !is_same(a, ask))
			continue;
		good = a->sets == wf_dir_client()->sets && wf_now() - ahead[i].since < AHEAD_LASTS && !wf_dir_client()->moving &&
		       (a->err || a->n.use == WF_DIR_USE_FIND);
		if (good) {
			ask->err = a->err;
			ask->ids = a->ids;
			ask->total = a->total;
			a->ids = NULL;
		}
		ahead_drop(&ahead[i]);
		return good;
	}
	return false;
}
