/* msg.c - see msg.h. One cursor reads, and remembers that something was wrong; so each message is a list of its fields. */
#include "dir/msg.h"

#include <errno.h>
#include <string.h>
#include <weft/req.h>

struct cursor {
	const uint8_t *p;
	size_t left;
	bool bad;
};

static const uint8_t *take(struct cursor *c, size_t n)
{
	static const uint8_t nothing[8];
	const uint8_t *p = c->p;

	if (n > c->left) {
		c->bad = true;
		c->left = 0;
		return nothing;         /* only numbers are read from what take gives */
	}
	c->p += n;
	c->left -= n;
	return p;
}

static uint8_t get8(struct cursor *c)
{
	return *take(c, 1);
}

static uint16_t get16(struct cursor *c)
{
	return wf_get16(take(c, 2));
}

static uint32_t get32(struct cursor *c)
{
	return wf_get32(take(c, 4));
}

static uint64_t get64(struct cursor *c)
{
	return wf_get64(take(c, 8));
}

static void zero16(struct cursor *c)
{
	c->bad |= get16(c) != 0;
}

static struct wf_dir_text get_text(struct cursor *c, size_t n, bool (*is)(const char *text, size_t n))
{
	struct wf_dir_text t = { (const char *)c->p, n };

	if (n > c->left) {
		c->bad = true;
		return (struct wf_dir_text){ "", 0 };
	}
	take(c, n);
	if (is && !is(t.at, n))
		c->bad = true;
	return t;
}

static bool is_shown(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return true;
}

static bool is_host(const char *text, size_t n)
{
	return !n || wf_dir_is_name(text, n);
}

static bool is_group(const char *text, size_t n)
{
	return !n || wf_dir_is_group(text, n);
}

static bool same(struct wf_dir_text a, struct wf_dir_text b)
{
	return a.n == b.n && memcmp(a.at, b.at, a.n) == 0;
}

/* Keys are not named twice, nor do they have names that mean something else; group is among them, and its value a path. */
static void get_attrs(struct cursor *c, struct wf_dir_msg *m)
{
	struct wf_dir_text keys[WF_DIR_ATTRS];

	m->list = c->p;
	if (m->count > WF_DIR_ATTRS) {
		c->bad = true;
		return;
	}
	for (uint32_t i = 0; i < m->count && !c->bad; i++) {
		uint8_t key = get8(c), value = get8(c);
		struct wf_dir_text v;
		char name[WF_DIR_KEY + 1];

		keys[i] = get_text(c, key, wf_dir_is_key);
		v = get_text(c, value, wf_dir_is_value);
		if (c->bad)
			return;
		memcpy(name, keys[i].at, key);
		name[key] = 0;
		switch (wf_dir_key_of(name)) {
		case WF_KEY_OWN:
			break;
		case WF_KEY_GROUP:
			c->bad |= !wf_dir_is_group(v.at, v.n);
			break;
		default:
			c->bad = true;
		}
		for (uint32_t k = 0; k < i; k++)
			c->bad |= same(keys[k], keys[i]);
	}
	m->list_bytes = (size_t)(c->p - m->list);
}

static void get_set(struct cursor *c, struct wf_dir_msg *m)
{
	uint8_t name;

	m->id = get64(c);
	m->version = get32(c);
	m->index = get32(c);
	m->member_index = get32(c);
	m->kind = get8(c);
	name = get8(c);
	m->count = get16(c);
	m->name = get_text(c, name, wf_dir_is_name);
	c->bad |= m->kind < WF_DIR_PROCESS || m->kind > WF_DIR_PORT;
	get_attrs(c, m);
}

static void get_find(struct cursor *c, struct wf_dir_msg *m)
{
	uint16_t n;

	m->number = get32(c);
	m->want = get32(c);
	m->max = get32(c);
	m->flags = get16(c);
	n = get16(c);
	c->bad |= m->flags & ~(uint32_t)WF_DIR_KEEP || n > WF_DIR_QUERY;
	m->query = get_text(c, n, is_shown);
}

static void get_watch(struct cursor *c, struct wf_dir_msg *m)
{
	uint16_t n;

	m->number = get32(c);
	n = get16(c);
	zero16(c);
	c->bad |= n > WF_DIR_QUERY;
	m->query = get_text(c, n, is_shown);
}

/* An error is a negative errno of a size that no kernel exceeds. */
static int32_t get_err(struct cursor *c)
{
	int32_t err = (int32_t)get32(c);

	c->bad |= err > 0 || err < -4095;
	return err;
}

static void get_entity(struct cursor *c, struct wf_dir_msg *m)
{
	uint8_t name, host, group;
	uint16_t path;

	m->number = get32(c);
	m->err = get_err(c);
	if (m->err)
		return;
	m->id = get64(c);
	m->parent = get64(c);
	m->version = get32(c);
	m->index = get32(c);
	m->member_index = get32(c);
	m->flags = get16(c);
	m->kind = get8(c);
	name = get8(c);
	host = get8(c);
	group = get8(c);
	path = get16(c);
	m->count = get16(c);
	zero16(c);
	c->bad |= m->flags & ~(uint32_t)WF_DIR_KEEP || m->kind < WF_DIR_HOST || m->kind > WF_DIR_GROUPS || path > WF_DIR_PATH;
	m->name = get_text(c, name, wf_dir_is_name);
	m->host = get_text(c, host, is_host);
	m->group = get_text(c, group, is_group);
	m->path = get_text(c, path, is_shown);
	get_attrs(c, m);
}

static void get_found(struct cursor *c, struct wf_dir_msg *m)
{
	m->number = get32(c);
	m->err = get_err(c);
	m->total = get32(c);
	m->flags = get16(c);
	m->count = get16(c);
	m->list = c->p;
	m->list_bytes = m->count * 8u;
	c->bad |= m->flags & ~(uint32_t)(WF_DIR_KEEP | WF_DIR_MORE) || m->count > WF_DIR_PAGE || m->count > m->total;
	c->bad |= m->err && (m->count || m->total || m->flags);
	c->bad |= m->flags & WF_DIR_MORE && !m->count;
	c->bad |= m->list_bytes > c->left;
	if (!c->bad)
		take(c, m->list_bytes);
}

static void get_events(struct cursor *c, struct wf_dir_msg *m)
{
	m->number = get32(c);
	m->flags = get16(c);
	m->count = get16(c);
	m->list = c->p;
	m->list_bytes = m->count * WF_DIR_EVENT_BYTES;
	c->bad |= m->flags & ~(uint32_t)(WF_DIR_FIRST | WF_DIR_MORE) || (m->flags & WF_DIR_MORE && !(m->flags & WF_DIR_FIRST));
	c->bad |= m->count > WF_DIR_BATCH || m->list_bytes > c->left;
	for (uint32_t i = 0; i < m->count && !c->bad; i++) {
		uint8_t what = get8(c);

		c->bad |= what < WEFT_JOINED || what > WEFT_LEFT || get8(c) != 0;
		zero16(c);
		get32(c);
		c->bad |= get64(c) == 0;
	}
}

static void get_fields(struct cursor *c, struct wf_dir_msg *m)
{
	switch (m->type) {
	case WF_DIR_SET:
		get_set(c, m);
		break;
	case WF_DIR_DROP:
	case WF_DIR_INVALID:
		m->id = get64(c);
		break;
	case WF_DIR_GET:
		m->number = get32(c);
		m->id = get64(c);
		break;
	case WF_DIR_FIND:
		get_find(c, m);
		break;
	case WF_DIR_WATCH:
		get_watch(c, m);
		break;
	case WF_DIR_CANCEL:
	case WF_DIR_STALE:
		m->number = get32(c);
		break;
	case WF_DIR_AGAIN:
	case WF_DIR_HELD:
	case WF_DIR_MOVED:
	case WF_DIR_READY:
		m->epoch = get32(c);
		break;
	case WF_DIR_ENTITY:
		get_entity(c, m);
		break;
	case WF_DIR_FOUND:
		get_found(c, m);
		break;
	case WF_DIR_EVENTS:
		get_events(c, m);
		break;
	case WF_DIR_ENDED:
		m->number = get32(c);
		m->err = get_err(c);
		break;
	case WF_DIR_REFUSED:
		m->id = get64(c);
		m->version = get32(c);
		m->err = get_err(c);
		break;
	case WF_DIR_PLACED:
		m->id = get64(c);
		m->version = get32(c);
		m->index = get32(c);
		m->member_index = get32(c);
		break;
	default:
		c->bad = true;
	}
}

int wf_dir_read(const void *msg, size_t len, bool from_server, struct wf_dir_msg *ret_msg)
{
	struct cursor c = { msg, len, len > WF_DIR_MESSAGE };
	uint8_t version = get8(&c), type = get8(&c);

	memset(ret_msg, 0, sizeof(*ret_msg));
	zero16(&c);
	ret_msg->type = type;
	if (!c.bad && version == WF_DIR_VERSION && from_server == (type >= WF_DIR_ENTITY))
		get_fields(&c, ret_msg);
	else
		c.bad = true;
	return c.bad || c.left ? -EBADMSG : 0;
}

/* Writing: the same fields in the same order. */

static uint8_t *put8(uint8_t *p, uint32_t v)
{
	*p = (uint8_t)v;
	return p + 1;
}

static uint8_t *put16(uint8_t *p, uint32_t v)
{
	wf_put16(p, (uint16_t)v);
	return p + 2;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	wf_put32(p, v);
	return p + 4;
}

static uint8_t *put64(uint8_t *p, uint64_t v)
{
	wf_put64(p, v);
	return p + 8;
}

static uint8_t *put_text(uint8_t *p, struct wf_dir_text t)
{
	if (t.n)
		memcpy(p, t.at, t.n);
	return p + t.n;
}

static uint8_t *put_list(uint8_t *p, const struct wf_dir_msg *m)
{
	if (m->list_bytes && m->list != p)
		memcpy(p, m->list, m->list_bytes);
	return p + m->list_bytes;
}

static uint8_t *put_set(uint8_t *p, const struct wf_dir_msg *m)
{
	p = put64(p, m->id);
	p = put32(p, m->version);
	p = put32(p, m->index);
	p = put32(p, m->member_index);
	p = put8(p, m->kind);
	p = put8(p, (uint32_t)m->name.n);
	p = put16(p, m->count);
	p = put_text(p, m->name);
	return put_list(p, m);
}

static uint8_t *put_find(uint8_t *p, const struct wf_dir_msg *m)
{
	p = put32(p, m->number);
	p = put32(p, m->want);
	p = put32(p, m->max);
	p = put16(p, m->flags);
	p = put16(p, (uint32_t)m->query.n);
	return put_text(p, m->query);
}

static uint8_t *put_watch(uint8_t *p, const struct wf_dir_msg *m)
{
	p = put32(p, m->number);
	p = put16(p, (uint32_t)m->query.n);
	p = put16(p, 0);
	return put_text(p, m->query);
}

static uint8_t *put_entity(uint8_t *p, const struct wf_dir_msg *m)
{
	p = put32(p, m->number);
	p = put32(p, (uint32_t)m->err);
	if (m->err)
		return p;
	p = put64(p, m->id);
	p = put64(p, m->parent);
	p = put32(p, m->version);
	p = put32(p, m->index);
	p = put32(p, m->member_index);
	p = put16(p, m->flags);
	p = put8(p, m->kind);
	p = put8(p, (uint32_t)m->name.n);
	p = put8(p, (uint32_t)m->host.n);
	p = put8(p, (uint32_t)m->group.n);
	p = put16(p, (uint32_t)m->path.n);
	p = put16(p, m->count);
	p = put16(p, 0);
	p = put_text(p, m->name);
	p = put_text(p, m->host);
	p = put_text(p, m->group);
	p = put_text(p, m->path);
	return put_list(p, m);
}

static uint8_t *put_found(uint8_t *p, const struct wf_dir_msg *m)
{
	p = put32(p, m->number);
	p = put32(p, (uint32_t)m->err);
	p = put32(p, m->total);
	p = put16(p, m->flags);
	p = put16(p, m->count);
	return put_list(p, m);
}

static uint8_t *put_events(uint8_t *p, const struct wf_dir_msg *m)
{
	p = put32(p, m->number);
	p = put16(p, m->flags);
	p = put16(p, m->count);
	return put_list(p, m);
}

size_t wf_dir_put(const struct wf_dir_msg *m, uint8_t *room)
{
	uint8_t *p = put8(put8(room, WF_DIR_VERSION), m->type);

	p = put16(p, 0);
	switch (m->type) {
	case WF_DIR_SET:
		p = put_set(p, m);
		break;
	case WF_DIR_DROP:
	case WF_DIR_INVALID:
		p = put64(p, m->id);
		break;
	case WF_DIR_GET:
		p = put64(put32(p, m->number), m->id);
		break;
	case WF_DIR_FIND:
		p = put_find(p, m);
		break;
	case WF_DIR_WATCH:
		p = put_watch(p, m);
		break;
	case WF_DIR_CANCEL:
	case WF_DIR_STALE:
		p = put32(p, m->number);
		break;
	case WF_DIR_AGAIN:
	case WF_DIR_HELD:
	case WF_DIR_MOVED:
	case WF_DIR_READY:
		p = put32(p, m->epoch);
		break;
	case WF_DIR_ENTITY:
		p = put_entity(p, m);
		break;
	case WF_DIR_FOUND:
		p = put_found(p, m);
		break;
	case WF_DIR_EVENTS:
		p = put_events(p, m);
		break;
	case WF_DIR_ENDED:
		p = put32(put32(p, m->number), (uint32_t)m->err);
		break;
	case WF_DIR_REFUSED:
		p = put32(put32(put64(p, m->id), m->version), (uint32_t)m->err);
		break;
	case WF_DIR_PLACED:
		p = put32(put32(put32(put64(p, m->id), m->version), m->index), m->member_index);
		break;
	}
	return (size_t)(p - room);
}

void wf_dir_attr_next(const uint8_t **list, struct wf_dir_attr *ret_attr)
{
	const uint8_t *p = *list;

	ret_attr->key = (struct wf_dir_text){ (const char *)p + 2, p[0] };
	ret_attr->value = (struct wf_dir_text){ (const char *)p + 2 + p[0], p[1] };
	*list = p + 2 + p[0] + p[1];
}

size_t wf_dir_attr_put(uint8_t *at, const char *key, const char *value)
{
	size_t k = strlen(key), v = strlen(value);

	at[0] = (uint8_t)k;
	at[1] = (uint8_t)v;
	memcpy(at + 2, key, k);
	memcpy(at + 2 + k, value, v);
	return 2 + k + v;
}

struct wf_dir_text wf_dir_list_group(const struct wf_dir_msg *m)
{
	const uint8_t *at = m->list;
	struct wf_dir_attr a;

	for (uint32_t i = 0; i < m->count; i++) {
		wf_dir_attr_next(&at, &a);
		if (a.key.n == 5 && memcmp(a.key.at, "group", 5) == 0)
			return a.value;
	}
	return (struct wf_dir_text){ "", 0 };
}

struct wf_dir_event wf_dir_event_at(const struct wf_dir_msg *m, uint32_t i)
{
	const uint8_t *p = m->list + (size_t)i * WF_DIR_EVENT_BYTES;

	return (struct wf_dir_event){ .what = p[0], .version = wf_get32(p + 4), .id = wf_get64(p + 8) };
}

void wf_dir_event_put(uint8_t *at, const struct wf_dir_event *e)
{
	memset(at, 0, 4);
	at[0] = e->what;
	wf_put32(at + 4, e->version);
	wf_put64(at + 8, e->id);
}
