/* offered.c - the directory as another job sees it: through a query of ours that everything has to match. See server.h. */
#include <errno.h>
#include <stdlib.h>

#include "dir/inner.h"

/* NULL: *@ret_err says why. */
static struct wf_dir_query *offer_of(const struct wf_dir_server *s, const char *offer, int *ret_err)
{
	const char *why;

	if (s->gathering) {
		*ret_err = -EAGAIN;
		return NULL;
	}
	return wf_dir_query_new(offer, ret_err, &why);
}

int wf_dir_offered_find(struct wf_dir_server *s, const char *offer, const char *query, weft_id *ret_ids, uint32_t max)
{
	const char *why;
	int r = 0;
	struct wf_dir_query *o = offer_of(s, offer, &r), *q = o ? wf_dir_query_new(query, &r, &why) : NULL;
	struct found f = { .all = NULL };
	uint32_t n = 0;

	if (q)
		r = wf_dir_find(s, q, &f);
	for (size_t i = 0; q && r == 0 && i < f.n; i++) {
		const struct entity *e = wf_dir_entity(s, f.all[i].id);

		if (!e || !wf_dir_matches(o, e))
			continue;
		if (n < max)
			ret_ids[n] = e->id;
		n++;
	}
	free(f.all);
	free(q);
	free(o);
	return r < 0 ? r : (int)n;
}

int wf_dir_offered_get(struct wf_dir_server *s, const char *offer, weft_id id, const char *key, char *ret_text, size_t n)
{
	const struct entity *e = wf_dir_entity(s, id);
	int r = 0;
	struct wf_dir_query *o = offer_of(s, offer, &r);

	if (!o)
		return r;
	r = e && wf_dir_matches(o, e) ? wf_dir_server_get(s, id, key, ret_text, n) : -ESRCH;
	free(o);
	return r;
}

int wf_dir_offered_process(struct wf_dir_server *s, const char *offer, weft_id process)
{
	const struct entity *self = wf_dir_entity(s, process);
	int r = 0;
	struct wf_dir_query *o = offer_of(s, offer, &r);

	if (!o)
		return r;
	if (self && self->owner)
		for (struct wf_node *n = self->owner->entities.next; n != &self->owner->entities && !r; n = n->next)
			r = wf_dir_matches(o, wf_of(n, struct entity, mine));
	free(o);
	return r;
}
