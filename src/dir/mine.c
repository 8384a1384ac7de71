/* mine.c - what this process has published, kept so that it can be said again. See client.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "dir/client.h"
#include "dir/server.h"

#define OUTBOX_MOST (1u << 20)          /* beyond it nothing new is published until there is room */

struct wf_dir_mine *wf_dir_client_mine(const struct wf_dir_client *c, weft_id id)
{
	struct wf_hnode *n = wf_hash_first(&c->mine, wf_hash_number(id));

	while (n && wf_of(n, struct wf_dir_mine, by)->id != id)
		n = wf_hash_skip(n->next, n->hash);
	return n ? wf_of(n, struct wf_dir_mine, by) : NULL;
}

bool wf_dir_client_has(const struct wf_dir_client *c, weft_id id)
{
	return wf_dir_client_mine(c, id) != NULL;
}

static size_t cost_of(const struct wf_dir_mine *m)
{
	return m ? wf_dir_cost(strlen(m->name), m->list_bytes) : 0;
}

static struct wf_dir_msg as_set(const struct wf_dir_mine *m)
{
	return (struct wf_dir_msg){ .type = WF_DIR_SET, .id = m->id, .version = m->version, .index = m->index, .member_index = m->member_index,
				    .kind = m->kind, .name = { m->name, strlen(m->name) }, .count = m->count, .list = m->list,
				    .list_bytes = m->list_bytes };
}

static void say(struct wf_dir_client *c, const struct wf_dir_mine *m)
{
	struct wf_dir_msg msg = as_set(m);

	wf_dir_client_send(c, &msg);
}

static struct wf_dir_text group_of(const struct wf_dir_mine *m)
{
	struct wf_dir_msg msg = as_set(m);

	return wf_dir_list_group(&msg);
}

/* Setting: the attributes it has, changed by words, are a new block. */

struct draft {
	uint32_t count;
	size_t bytes;
	uint8_t *list;                  /* the client's room for it */
	char name[WF_DIR_NAME + 1];
	const char *why;
};

static int wrong(struct draft *d, int err, const char *why)
{
	d->why = why;
	return err;
}

static void take_out(struct draft *d, const char *key)
{
	const uint8_t *at = d->list, *next;
	struct wf_dir_attr a;

	for (uint32_t i = 0; i < d->count; i++, at = next) {
		next = at;
		wf_dir_attr_next(&next, &a);
		if (a.key.n != strlen(key) || memcmp(a.key.at, key, a.key.n) != 0)
			continue;
		memmove(d->list + (at - d->list), next, d->bytes - (size_t)(next - d->list));
		d->bytes -= (size_t)(next - at);
		d->count--;
		return;
	}
}

static int set_name(struct draft *d, unsigned kind, const char *name)
{
	if (kind != WF_DIR_THREAD && strcmp(name, d->name) != 0)
		return wrong(d, -EPERM, "only a thread can be given another name");
	if (!wf_dir_is_name(name, strlen(name)))
		return wrong(d, -EINVAL, "a name has 1 to 63 bytes, and none of space / [ ] * ? \\ \"");
	strcpy(d->name, name);
	return 0;
}

static int set_word(struct draft *d, unsigned kind, const struct wf_dir_word *w)
{
	switch (wf_dir_key_of(w->key)) {
	case WF_KEY_NAME:
		return set_name(d, kind, w->value);
	case WF_KEY_GROUP:
		if (w->value[0] && !wf_dir_is_group(w->value, strlen(w->value)))
			return wrong(d, -EINVAL, "a group is a path of names, /a/b, of at most 127 bytes and 7 names");
		break;
	case WF_KEY_OWN:
		break;
	default:
		return wrong(d, -EPERM, "kind, index, parent, host, id, path, member and job are not to be set");
	}
	take_out(d, w->key);
	if (!w->value[0])
		return 0;
	if (d->count == WF_DIR_ATTRS)
		return wrong(d, -EINVAL, "an entity has at most 32 attributes");
	d->bytes += wf_dir_attr_put(d->list + d->bytes, w->key, w->value);
	d->count++;
	return 0;
}

static bool same_group(const struct wf_dir_mine *a, const struct wf_dir_mine *b)
{
	struct wf_dir_text x = group_of(a), y = group_of(b);

	return x.n == y.n && memcmp(x.at, y.at, x.n) == 0;
}

static struct wf_dir_mine *mine_put(struct wf_dir_client *c, struct wf_dir_mine *old, weft_id id, unsigned kind, const struct draft *d)
{
	struct wf_dir_mine *m = malloc(sizeof(*m) + d->bytes);

	if (!m)
		return NULL;
	*m = (struct wf_dir_mine){ .id = id, .version = ++c->last_version, .kind = (uint8_t)kind, .count = d->count, .list_bytes = d->bytes,
				   .index = WF_DIR_NOWHERE, .member_index = WF_DIR_NOWHERE };
	strcpy(m->name, d->name);
	memcpy(m->list, d->list, d->bytes);
	m->named = m->grouped = m->version;
	if (old && strcmp(old->name, m->name) == 0) {
		m->index = old->index;
		m->named = old->named;
	}
	if (old && m->named != m->version && same_group(old, m)) {
		m->member_index = old->member_index;
		m->grouped = old->grouped;
	}
	if (old) {                      /* it keeps its turn: the process is said before its threads */
		m->order = old->order;
		m->order.next->prev = m->order.prev->next = &m->order;
		wf_hash_del(&c->mine, &old->by);
		c->mine_bytes -= cost_of(old);
		free(old);
	} else {
		wf_list_add(&c->mine_order, &m->order);
	}
	c->mine_bytes += cost_of(m);
	wf_hash_add(&c->mine, &m->by, wf_hash_number(id));
	return m;
}

int wf_dir_client_set(struct wf_dir_client *c, weft_id id, unsigned kind, const char *name, const char *attrs, const char **ret_why)
{
	struct wf_dir_mine *m = wf_dir_client_mine(c, id);
	struct wf_dir_word w;
	struct draft d;
	int r;

	d.why = "";
	d.list = c->list;
	d.count = m ? m->count : 0;
	d.bytes = m ? m->list_bytes : 0;
	if (m)
		memcpy(d.list, m->list, m->list_bytes);
	wf_dir_name_from(m ? m->name : name, wf_dir_kind_name(kind), d.name);
	while ((r = wf_dir_next_word(&attrs, false, &w, &d.why)) == 1 && (r = set_word(&d, kind, &w)) == 0)
		;
	*ret_why = d.why;
	if (r < 0)
		return r;
	*ret_why = "a process has published so much already";
	if ((!m && c->mine.count >= WF_DIR_MOST_ENTITIES) ||
	    c->mine_bytes - cost_of(m) + wf_dir_cost(strlen(d.name), d.bytes) > WF_DIR_MOST_BYTES)
		return -ENOBUFS;
	*ret_why = "what was published before is still on its way";
	if (c->outbox_bytes > OUTBOX_MOST)
		return -EAGAIN;
	*ret_why = "no memory for an entity";
	m = mine_put(c, m, id, kind, &d);
	if (!m)
		return -ENOMEM;
	c->sets++;
	wf_dir_kept_invalid(c, id);
	wf_dir_kept_finds_forget(c, true);
	say(c, m);
	return 0;
}

static void mine_free(struct wf_dir_client *c, struct wf_dir_mine *m)
{
	wf_hash_del(&c->mine, &m->by);
	wf_list_del(&m->order);
	c->mine_bytes -= cost_of(m);
	free(m);
}

void wf_dir_client_drop(struct wf_dir_client *c, weft_id id)
{
	struct wf_dir_mine *m = wf_dir_client_mine(c, id);
	struct wf_dir_msg msg = { .type = WF_DIR_DROP, .id = id };

	if (!m)
		return;
	mine_free(c, m);
	c->sets++;
	wf_dir_kept_invalid(c, id);
	wf_dir_kept_finds_forget(c, true);
	wf_dir_client_send(c, &msg);
}

/* How much of its place is known: 2 all, 1 that under its parent, 0 nothing. Without the process there are no others. */
static int placed(const struct wf_dir_mine *m)
{
	if (m->kind == WF_DIR_PROCESS || (m->index != WF_DIR_NOWHERE && (m->member_index != WF_DIR_NOWHERE || !group_of(m).n)))
		return 2;
	return m->index != WF_DIR_NOWHERE;
}

/* Those first whose places are known, so that nobody takes them away. */
void wf_dir_client_say_all(struct wf_dir_client *c)
{
	struct wf_dir_msg again = { .type = WF_DIR_AGAIN, .epoch = c->epoch }, held = { .type = WF_DIR_HELD, .epoch = c->epoch };

	wf_dir_client_send(c, &again);
	for (int known = 2; known >= 0; known--)
		for (struct wf_node *n = c->mine_order.next; n != &c->mine_order; n = n->next) {
			struct wf_dir_mine *m = wf_of(n, struct wf_dir_mine, order);

			if (placed(m) == known)
				say(c, m);
		}
	wf_dir_client_send(c, &held);
}

void wf_dir_client_placed(struct wf_dir_client *c, const struct wf_dir_msg *msg)
{
	struct wf_dir_mine *m = wf_dir_client_mine(c, msg->id);

	if (m && msg->version >= m->named)
		m->index = msg->index;
	if (m && msg->version >= m->grouped)
		m->member_index = msg->member_index;
}

/* The server counts as we do, so that this is its lack of memory. What we know of ourselves stays: the next server may have more. */
void wf_dir_client_refused(struct wf_dir_client *c, const struct wf_dir_msg *msg)
{
	char id[WEFT_ID_TEXT];

	(void)c;
	wf_dir_id_print(msg->id, id);
	wf_log(WF_WARN, "directory: %s could not be published: %s", id, strerror(-msg->err));
}

void wf_dir_client_mine_fini(struct wf_dir_client *c)
{
	while (!wf_list_empty(&c->mine_order))
		mine_free(c, wf_of(c->mine_order.next, struct wf_dir_mine, order));
}
