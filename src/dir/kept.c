/* kept.c - answers a client keeps: entities by id, finds by the text of their query. See client.h.
 *
 * Each has a bound, and the one not used for longest makes room. An entity goes silently: the server calls it back in its own time, which
 * then means nothing here. A find is cancelled there, as it costs the server work with every change.
 */
#include <stdlib.h>
#include <string.h>

#include "dir/client.h"

#define MOST_ENTITIES 2048u
#define MOST_FINDS 64u

struct kept {
	struct wf_hnode by;
	struct wf_node order;
	weft_id id;
	size_t len;
	uint8_t msg[];
};

struct kept_find {
	struct wf_dir_numbered n;       /* in the order of use */
	struct wf_hnode by;
	uint32_t total;
	weft_id *ids;
	char query[];
};

static struct kept *find(const struct wf_dir_client *c, weft_id id)
{
	struct wf_hnode *n = wf_hash_first(&c->kept, wf_hash_number(id));

	while (n && wf_of(n, struct kept, by)->id != id)
		n = wf_hash_skip(n->next, n->hash);
	return n ? wf_of(n, struct kept, by) : NULL;
}

static void let_go(struct wf_dir_client *c, struct kept *k)
{
	wf_hash_del(&c->kept, &k->by);
	wf_list_del(&k->order);
	free(k);
}

void wf_dir_keep_entity(struct wf_dir_client *c, const struct wf_dir_msg *m, const void *msg, size_t len)
{
	struct kept *k = find(c, m->id);

	if (k)
		let_go(c, k);
	if (c->kept.count >= MOST_ENTITIES)
		let_go(c, wf_of(c->kept_order.next, struct kept, order));
	k = malloc(sizeof(*k) + len);
	if (!k)
		return;
	*k = (struct kept){ .id = m->id, .len = len };
	memcpy(k->msg, msg, len);
	wf_list_add(&c->kept_order, &k->order);
	wf_hash_add(&c->kept, &k->by, wf_hash_number(k->id));
}

bool wf_dir_client_kept(struct wf_dir_client *c, weft_id id, struct wf_dir_msg *ret_msg)
{
	const struct wf_dir_mine *mine = wf_dir_client_mine(c, id);
	struct kept *k = c->moving ? NULL : find(c, id);

	if (!k)
		return false;
	wf_dir_read(k->msg, k->len, true, ret_msg);     /* it was sound when it came */
	if (id >> 32 == c->process >> 32 && (!mine || mine->version != ret_msg->version))
		return false;           /* one's own was said before it changed, or left */
	wf_list_del(&k->order);
	wf_list_add(&c->kept_order, &k->order);
	return true;
}

void wf_dir_kept_invalid(struct wf_dir_client *c, weft_id id)
{
	struct kept *k = find(c, id);

	if (k)
		let_go(c, k);
}

/* Finds */

static uint64_t query_hash(const char *query)
{
	return wf_hash_bytes(3, query, strlen(query));
}

static struct kept_find *find_find(const struct wf_dir_client *c, const char *query)
{
	uint64_t hash = query_hash(query);

	for (struct wf_hnode *n = wf_hash_first(&c->kept_finds, hash); n; n = wf_hash_skip(n->next, hash)) {
		struct kept_find *k = wf_of(n, struct kept_find, by);

		if (strcmp(k->query, query) == 0)
			return k;
	}
	return NULL;
}

static void let_find_go(struct wf_dir_client *c, struct kept_find *k, bool tell)
{
	if (tell)
		wf_dir_say_number(c, WF_DIR_CANCEL, k->n.number);
	wf_dir_number_take(c, &k->n);
	wf_hash_del(&c->kept_finds, &k->by);
	free(k->ids);
	free(k);
}

void wf_dir_keep_find(struct wf_dir_client *c, const struct wf_dir_ask *ask, uint32_t number)
{
	struct kept_find *k = find_find(c, ask->query);
	size_t n = strlen(ask->query) + 1;

	if (k)
		let_find_go(c, k, true);
	if (c->kept_finds.count >= MOST_FINDS)
		let_find_go(c, wf_of(c->uses[WF_DIR_USE_KEPT].next, struct kept_find, n.all), true);
	k = calloc(1, sizeof(*k) + n);
	if (k)
		k->ids = malloc(ask->got * sizeof(*k->ids) + 1);
	if (!k || !k->ids) {
		free(k);
		wf_dir_say_number(c, WF_DIR_CANCEL, number);
		return;
	}
	memcpy(k->query, ask->query, n);
	if (ask->got)
		memcpy(k->ids, ask->ids, ask->got * sizeof(*k->ids));
	k->total = ask->total;
	k->n.number = number;
	k->n.use = WF_DIR_USE_KEPT;
	wf_hash_add(&c->numbers, &k->n.by, wf_hash_number(k->n.number));
	wf_list_add(&c->uses[WF_DIR_USE_KEPT], &k->n.all);
	wf_hash_add(&c->kept_finds, &k->by, query_hash(k->query));
}

bool wf_dir_client_kept_find(struct wf_dir_client *c, const char *query, const weft_id **ret_ids, uint32_t *ret_total)
{
	struct kept_find *k = c->moving ? NULL : find_find(c, query);

	if (!k)
		return false;
	wf_list_del(&k->n.all);
	wf_list_add(&c->uses[WF_DIR_USE_KEPT], &k->n.all);
	*ret_ids = k->ids;
	*ret_total = k->total;
	return true;
}

void wf_dir_kept_stale(struct wf_dir_client *c, struct wf_dir_numbered *n)
{
	let_find_go(c, wf_of(n, struct kept_find, n), false);
}

void wf_dir_kept_finds_forget(struct wf_dir_client *c, bool tell)
{
	while (!wf_list_empty(&c->uses[WF_DIR_USE_KEPT]))
		let_find_go(c, wf_of(c->uses[WF_DIR_USE_KEPT].next, struct kept_find, n.all), tell);
}

void wf_dir_kept_forget(struct wf_dir_client *c)
{
	while (!wf_list_empty(&c->kept_order))
		let_go(c, wf_of(c->kept_order.next, struct kept, order));
	wf_dir_kept_finds_forget(c, false);
}
