/* open.c - a port's beginning. close.c has its end. */
#include "port/open.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/context.h"
#include "port/inway.h"
#include "port/op.h"
#include "port/proto.h"
#include "port/publish.h"
#include "port/route.h"
#include "port/self.h"
#include "port/table.h"

#define PORT_FLAGS (WEFT_PORT_OWNED | WEFT_PORT_OBSERVE | WEFT_PORT_FRAGILE | WEFT_PORT_WARY)

/* All but the ring's positions and cells, which run on. Nobody knows the port yet but by stale pointers: what those look at is stored word by word. */
static void clear(struct weft_port *p)
{
	const size_t match = offsetof(struct weft_port, match), wanted = offsetof(struct weft_port, big_wanted), open = offsetof(struct weft_port, open),
		     cells = offsetof(struct weft_port, cells);

	p->proto = NULL;
	p->incarnation = 0;
	atomic_store_explicit(&p->id, 0, memory_order_relaxed);
	atomic_store_explicit(&p->context, 0, memory_order_relaxed);
	atomic_store_explicit(&p->watcher, 0, memory_order_relaxed);
	memset((char *)p + match, 0, wanted - match);
	atomic_store_explicit(&p->big_wanted, false, memory_order_relaxed);
	atomic_store_explicit(&p->broken, false, memory_order_relaxed);
	atomic_store_explicit(&p->with_members, false, memory_order_relaxed);
	atomic_store_explicit(&p->under_way, 0, memory_order_relaxed);
	atomic_store_explicit(&p->epoch, 0, memory_order_relaxed);
	atomic_store_explicit(&p->dead, 0, memory_order_relaxed);
	atomic_store_explicit(&p->dead_told, 0, memory_order_relaxed);
	atomic_store_explicit(&p->drains, 0, memory_order_relaxed);
	atomic_store_explicit(&p->sent, 0, memory_order_relaxed);
	atomic_store_explicit(&p->sent_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&p->own_sent, 0, memory_order_relaxed);
	atomic_store_explicit(&p->own_sent_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&p->ready_missed, 0, memory_order_relaxed);
	atomic_store_explicit(&p->lost, 0, memory_order_relaxed);
	atomic_store_explicit(&p->sent_lost, 0, memory_order_relaxed);
	atomic_store_explicit(&p->wakes, 0, memory_order_relaxed);
	memset((char *)p + open, 0, cells - open);
	atomic_store_explicit(&p->ring.sleeper, NULL, memory_order_relaxed);
}

int wf_port_make(weft_id id, weft_ctx context, const struct weft_proto *proto, enum wf_make as, struct weft_port **ret_port)
{
	struct weft_port *p = wf_port_new();
	uint64_t t;

	if (!p)
		return weft_fail(-ENOMEM, "no memory for a port");
	wf_door_reset(&p->door, as == WF_MAKE_THREAD);
	clear(p);
	p->proto = proto;
	if (proto) {
		p->match = malloc(proto->match_size);
		if (!p->match) {
			wf_port_recycle(p);
			return weft_fail(-ENOMEM, "no memory for the matcher of %s", proto->name);
		}
		proto->init(p->match, proto->ctx);
		wf_proto_ref(proto);
	} else {
		wf_native_match_init(&p->native);
	}
	p->ring.reader.process = (uint32_t)(wf_process_id >> 32);
	atomic_store_explicit(&p->last, &p->ring.reader, memory_order_relaxed);
	p->index = WEFT_NOBODY;
	p->thread_port = as == WF_MAKE_THREAD;
	p->owner = p->thread_port ? id : 0;
	p->watches_as = p->owner ? p->number + 1 : WF_WATCHED_BY_ANY;
	p->limbo = p->shared = as == WF_MAKE_LIMBO;
	p->open = true;
	atomic_store_explicit(&p->id, id, memory_order_relaxed);
	atomic_store_explicit(&p->context, context, memory_order_relaxed);
	t = atomic_load_explicit(&p->ring.tail, memory_order_relaxed);
	p->incarnation = (uint16_t)((WF_TAIL_INCARNATION(t) + 1) & WF_INCARNATIONS);
	t = (uint32_t)t | (uint64_t)p->incarnation << 32 | (proto ? WF_TAIL_FOREIGN : 0);
	/* release: the port, to who is told of it by the slot or the registry; here for a stale sender's failing CAS. */
	atomic_store_explicit(&p->ring.tail, t, memory_order_release);
	/* release: B1. */
	atomic_store_explicit(&p->face->gate, (uint64_t)++p->serial << 32 | WF_GATE_OPEN, memory_order_release);
	if (context && wf_hosts)
		p->asks = wf_hosts->keepers(id, context);       /* an earlier port of that name was told, and nobody says it again */
	wf_port_listed(p, true);
	*ret_port = p;
	return 0;
}

int wf_port_limbo(weft_id id, weft_ctx context, const struct weft_proto *proto, struct weft_port **ret_port)
{
	return wf_port_make(id, context, proto, WF_MAKE_LIMBO, ret_port);
}

void wf_members_put(struct wf_members *m)
{
	/* acq_rel: the last one frees what the others have read. */
	if (m && atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) == 1)
		free(m);
}

static int members_of(const struct weft_port_opts *o, struct wf_members **ret_members)
{
	struct wf_members *m;

	*ret_members = NULL;
	if (o->like) {
		m = o->like->members;
		if (m)
			atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
		*ret_members = m;
		return 0;
	}
	if (!o->count)
		return 0;
	if (!o->members)
		return weft_fail(-EINVAL, "members is NULL with count %u", o->count);
	m = malloc(sizeof(*m) + o->count * sizeof(m->ids[0]));
	if (!m)
		return weft_fail(-ENOMEM, "no memory for %u members", o->count);
	atomic_init(&m->refs, 1);
	m->count = o->count;
	for (uint32_t i = 0; i < o->count; i++)
		atomic_init(&m->ids[i], o->members[i]);
	*ret_members = m;
	return 0;
}

static int check(const struct weft_port_opts *o)
{
	if (o->flags & ~(uint32_t)PORT_FLAGS)
		return weft_fail(-EINVAL, "port flags: %#x", o->flags & ~(uint32_t)PORT_FLAGS);
	if (o->flags & WEFT_PORT_OBSERVE)
		return weft_fail(-EOPNOTSUPP, "WEFT_PORT_OBSERVE is not served yet");
	if (o->flags & WEFT_PORT_WARY && (o->proto || !(o->count || o->like)))
		return weft_fail(-EINVAL, "WEFT_PORT_WARY wants members, and matching by source and tag");
	if (o->rail)
		return weft_fail(-EOPNOTSUPP, "port rail is not served yet");
	if (o->cast)
		return weft_fail(-EOPNOTSUPP, "port cast is not served yet");
	if (o->context && o->channel)
		return weft_fail(-EINVAL, "context and channel");
	if (o->channel && !*o->channel)
		return weft_fail(-EINVAL, "channel is empty");
	if (o->name && (!*o->name || strlen(o->name) >= sizeof(((struct weft_port *)0)->name)))
		return weft_fail(-EINVAL, "port name is empty or longer than 63 bytes");
	if (o->like && (o->members || o->count))
		return weft_fail(-EINVAL, "like and members");
	if (o->members && !o->count)
		return weft_fail(-EINVAL, "members without a count");
	return o->proto ? wf_proto_check(o->proto) : 0;
}

/* The port of a context: taken over from limbo, into which it is put first if no early message has done that. */
static int adopt(weft_id id, weft_ctx context, const struct weft_proto *proto, struct weft_port **ret_port)
{
	struct weft_port *p = NULL;
	uint16_t who;
	int r = wf_context_adopt(id, context, &p);

	while (r == 0 && !p) {
		r = wf_route(id, context, proto, &p, &who);
		if (r == 0)
			r = wf_context_adopt(id, context, &p);
	}
	if (r < 0)
		return r;
	if (!wf_proto_same(p->proto, proto)) {
		wf_context_abandon(p);
		return weft_fail(-EPROTO, "messages of another protocol are waiting in that context");
	}
	*ret_port = p;
	return 0;
}

/* A member, watched from now on if it is another process's thread. */
static bool lives(weft_id id)
{
	if (id >> 32 == wf_process_id >> 32)
		return wf_id_lives(id);
	if (wf_abroad(id))
		return wf_hosts->watch(id) == 0;
	return !wf_peers_on() || wf_far_watch(id) == 0;
}

static void dress(struct weft_port *p, const struct weft_port_opts *o, struct wf_members *members)
{
	wf_door_keep(&p->door, (uint32_t)wf_self.id);
	wf_port_enter(p);
	p->members = members;
	p->index = o->like ? o->like->index : members ? o->index : WEFT_NOBODY;
	p->flags = o->flags;
	p->limit = o->limit;
	p->event = o->event;
	p->user = o->user;
	p->shared = !(o->flags & WEFT_PORT_OWNED);
	p->owner = p->shared ? 0 : wf_self.id;
	p->watches_as = p->owner ? p->number + 1 : WF_WATCHED_BY_ANY;
	if (o->name)
		strcpy(p->name, o->name);
	if (members) {
		atomic_store_explicit(&p->with_members, true, memory_order_relaxed);
		atomic_fetch_add_explicit(&wf_ports_with_members, 1, memory_order_relaxed);
		wf_fence_light();               /* F1: who ends clears its id, passes a heavy fence and looks at these; if it sees them, it waits until we have left */
	}
	for (uint32_t i = 0; members && i < members->count; i++) {
		weft_id id = atomic_load_explicit(&members->ids[i], memory_order_relaxed);

		if (!id)
			continue;       /* vacant from the beginning is not dead */
		if (!(id & WF_MEMBER_GONE) && lives(id))
			continue;
		if (!o->like)                   /* counted: its end will not be again. A table that others use waits for theirs */
			atomic_fetch_or_explicit(&members->ids[i], WF_MEMBER_GONE, memory_order_relaxed);
		atomic_fetch_add_explicit(&p->dead, 1, memory_order_relaxed);   /* has ended before we came */
		if (o->flags & WEFT_PORT_FRAGILE)
			atomic_store_explicit(&p->broken, true, memory_order_relaxed);
	}
	wf_port_leave(p);
}

int weft_port_open(const struct weft_port_opts *theirs, struct weft_port **ret_port)
{
	static const struct weft_port_opts none = { .size = sizeof(none) };
	struct wf_members *members = NULL;
	struct weft_port_opts o;
	struct weft_port *p = NULL;
	weft_id id;
	weft_ctx context;
	int r = wf_enter();

	if (r < 0)
		return r;
	if (!ret_port)
		return weft_fail(-EINVAL, "ret_port is NULL");
	r = wf_opts_read(&o, sizeof(o), theirs ? theirs : &none, "port options");
	if (r == 0)
		r = check(&o);
	if (r == 0)
		r = members_of(&o, &members);
	if (r < 0)
		return r;
	context = o.channel ? wf_ctx_of_text(o.channel) : o.context;
	id = o.flags & WEFT_PORT_OWNED ? wf_self.id : wf_process_id;
	if (!context)
		r = wf_slot_take(&id);
	if (r == 0) {
		r = context ? adopt(id, context, o.proto, &p) : wf_port_make(id, 0, o.proto, WF_MAKE_PORT, &p);
		if (r < 0 && !context)
			wf_slot_drop(id);
	}
	if (r < 0) {
		wf_members_put(members);
		return r;
	}
	dress(p, &o, members);
	wf_inways_opened(p);
	wf_self.owns += !p->shared;
	if (!context) {
		wf_slot_set(id, p);
		wf_publish_named(id, false, o.name);
	}
	*ret_port = p;
	return 0;
}

static const struct weft_port *mine_or(const struct weft_port *p)
{
	if (p)
		return atomic_load_explicit(&p->id, memory_order_relaxed) ? p : NULL;
	return wf_enter() < 0 ? NULL : wf_self.port;
}

int weft_port_stat(const struct weft_port *port, struct weft_port_info *ret_info)
{
	const struct weft_port *p = mine_or(port);
	struct weft_port_info info = { .size = sizeof(info) };
	uint32_t size;

	if (!p)
		return port ? weft_fail(-EINVAL, "the port is closed") : wf_not_in();
	if (!ret_info || ret_info->size < sizeof(uint32_t))
		return weft_fail(-EINVAL, "ret_info is NULL, or its size is not set");
	size = ret_info->size < sizeof(info) ? ret_info->size : (uint32_t)sizeof(info);
	info.flags = p->flags;
	info.id = atomic_load_explicit(&p->id, memory_order_relaxed);
	info.context = atomic_load_explicit(&p->context, memory_order_relaxed);
	info.count = p->members ? p->members->count : 0;
	info.index = p->index;
	info.epoch = atomic_load_explicit(&p->epoch, memory_order_relaxed);
	info.dead = atomic_load_explicit(&p->dead, memory_order_relaxed);
	info.size = ret_info->size;
	memcpy(ret_info, &info, size);
	return 0;
}

weft_id weft_port_member(const struct weft_port *port, uint32_t index)
{
	const struct weft_port *p = mine_or(port);
	weft_id id;

	if (!p || !p->members || index >= p->members->count)
		return 0;
	id = atomic_load_explicit(&p->members->ids[index], memory_order_relaxed);
	return id & WF_MEMBER_GONE ? 0 : id;
}

int weft_port_index(const struct weft_port *port, weft_id id)
{
	const struct weft_port *p = mine_or(port);

	if (!p)
		return port ? weft_fail(-EINVAL, "the port is closed") : wf_not_in();
	for (uint32_t i = 0; id && p->members && i < p->members->count; i++)
		if (atomic_load_explicit(&p->members->ids[i], memory_order_relaxed) == id)
			return (int)i;
	return weft_fail(-ENOENT, "no member has that id");
}
