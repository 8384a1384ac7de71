/* proto.c - protocols made at run time, and the one that does not match at all.
 *
 * The matcher template of weft/match.h is instantiated three times over heads of 32 plain bytes: by the
 * user's hash, by the user's less-than, and raw. The first two reach the user's functions through the
 * matcher's context. A caller's head has head_len bytes, no more are read from it.
 *
 * Threads: new and free by any thread; the functions of a protocol under the lock of the port.
 */
#include "port/proto.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct proto_head {
	uint64_t word[WEFT_MATCH_HEAD_MAX / 8];         /* aligned for whatever the user's head is */
};

#define FNS(ctx) ((const struct weft_match_fns *)(ctx))

#define WEFT_MATCH by_hash
#define WEFT_MATCH_CTX
#define WEFT_MATCH_HEAD struct proto_head
#define WEFT_MATCH_LEN(m) FNS((m)->ctx)->head_len
#define WEFT_MATCH_EQ(ctx, want, got) FNS(ctx)->equal(want, got)
#define WEFT_MATCH_SHAPE(ctx, want) FNS(ctx)->shape(want)
#define WEFT_MATCH_HASH(ctx, head, shape) FNS(ctx)->hash(head, shape)
#include <weft/match.h>

#define WEFT_MATCH by_less
#define WEFT_MATCH_CTX
#define WEFT_MATCH_HEAD struct proto_head
#define WEFT_MATCH_LEN(m) FNS((m)->ctx)->head_len
#define WEFT_MATCH_EQ(ctx, want, got) FNS(ctx)->equal(want, got)
#define WEFT_MATCH_SHAPE(ctx, want) FNS(ctx)->shape(want)
#define WEFT_MATCH_LESS(ctx, a, b) FNS(ctx)->less(a, b)
#include <weft/match.h>

/* Everything matches, so the first is always taken and no index is ever made. */
#define WEFT_MATCH raw
#define WEFT_MATCH_CTX
#define WEFT_MATCH_HEAD struct proto_head
#define WEFT_MATCH_LEN(m) 0
#define WEFT_MATCH_EQ(ctx, want, got) ((void)(ctx), (void)(want), (void)(got), true)
#define WEFT_MATCH_SHAPE(ctx, want) ((void)(ctx), (void)(want), 0u)
#define WEFT_MATCH_HASH(ctx, head, shape) ((void)(ctx), (void)(head), (void)(shape), UINT64_C(0))
#include <weft/match.h>

#define PROTO_FNS(kind) \
	.match_size = sizeof(struct kind##_match), .entry_size = sizeof(struct weft_match_entry), \
	.init = kind##_match_v_init, .fini = kind##_match_v_fini, \
	.arrive = kind##_match_v_arrive, .want = kind##_match_v_want, \
	.find_want = kind##_match_v_find_want, .look = kind##_match_v_look, \
	.add_want = kind##_match_v_add_want, .add_arrival = kind##_match_v_add_arrival, \
	.remove = kind##_match_v_remove, .first = kind##_match_v_first, .next = kind##_match_v_next, \
	.count = kind##_match_v_count

static const struct weft_proto hash_proto = { .size = sizeof(struct weft_proto), PROTO_FNS(by_hash) };
static const struct weft_proto less_proto = { .size = sizeof(struct weft_proto), PROTO_FNS(by_less) };

const struct weft_proto weft_proto_raw = { .size = sizeof(struct weft_proto), .name = "raw", PROTO_FNS(raw) };

struct proto_made {
	struct weft_proto proto;        /* first: casts rely on it */
	struct weft_match_fns fns;      /* its ctx */
	_Atomic uint32_t users;         /* ports that speak it */
	char name[];
};

static struct proto_made *made_of(const struct weft_proto *proto)
{
	return (struct proto_made *)(uintptr_t)proto;
}

static int fns_check(const struct weft_match_fns *fns)
{
	if (!fns->equal || !fns->shape)
		return weft_fail(-EINVAL, "proto: fns.equal and fns.shape must be given");
	if (!fns->hash == !fns->less)
		return weft_fail(-EINVAL, "proto: one of fns.hash and fns.less must be given");
	if (fns->head_len < 1 || fns->head_len > WEFT_MATCH_HEAD_MAX)
		return weft_fail(-EINVAL, "proto: fns.head_len is %u, it must be 1 to %d", fns->head_len,
				 WEFT_MATCH_HEAD_MAX);
	return 0;
}

int weft_proto_new(const char *name, const struct weft_match_fns *fns, const struct weft_proto **ret_proto)
{
	const unsigned char *bytes = (const unsigned char *)fns;
	struct weft_match_fns known = { 0 };
	struct proto_made *made;
	size_t len;
	int r;

	if (!name || !*name || !fns || !ret_proto)
		return weft_fail(-EINVAL, "proto: name, fns and ret_proto must be given");
	for (size_t i = sizeof(known); i < fns->size; i++)
		if (bytes[i])
			return weft_fail(-E2BIG, "proto: fns has %u bytes, this weft knows %zu", fns->size,
					 sizeof(known));
	memcpy(&known, fns, fns->size < sizeof(known) ? fns->size : sizeof(known));
	r = fns_check(&known);
	if (r < 0)
		return r;

	len = strlen(name) + 1;
	made = malloc(sizeof(*made) + len);
	if (!made)
		return weft_fail(-ENOMEM, "proto: no memory");
	made->proto = known.hash ? hash_proto : less_proto;
	made->fns = known;
	atomic_init(&made->users, 0);
	memcpy(made->name, name, len);
	made->proto.name = made->name;
	made->proto.head_len = known.head_len;
	made->proto.flags = WEFT_PROTO_MADE;
	made->proto.ctx = &made->fns;
	*ret_proto = &made->proto;
	return 0;
}

int weft_proto_free(const struct weft_proto *proto)
{
	if (!proto)
		return 0;
	if (!(proto->flags & WEFT_PROTO_MADE))
		return weft_fail(-EINVAL, "proto: %s was not made by weft_proto_new", proto->name);
	/* acquire: after the release in unref, so that the last port's use of it is over */
	if (atomic_load_explicit(&made_of(proto)->users, memory_order_acquire))
		return weft_fail(-EBUSY, "proto: a port speaks %s", proto->name);
	free(made_of(proto));
	return 0;
}

int wf_proto_check(const struct weft_proto *p)
{
	if (p->size < sizeof(*p) || !p->name || p->head_len > WEFT_MATCH_HEAD_MAX ||
	    p->match_size < sizeof(struct weft_match_link))
		return weft_fail(-EINVAL, "proto: not a protocol");
	if (p->entry_size != sizeof(struct weft_match_entry))
		return weft_fail(-EINVAL, "proto: %s was compiled with the match.h of another weft", p->name);
	if (!p->init || !p->fini || !p->arrive || !p->want || !p->find_want || !p->look || !p->add_want ||
	    !p->add_arrival || !p->remove || !p->first || !p->next || !p->count)
		return weft_fail(-EINVAL, "proto: %s lacks a function", p->name);
	return 0;
}

bool wf_proto_same(const struct weft_proto *a, const struct weft_proto *b)
{
	return a == b || (a && b && a->head_len == b->head_len && !strcmp(a->name, b->name));
}

void wf_proto_ref(const struct weft_proto *proto)
{
	/* relaxed: who opens a port has the protocol in hand; nothing is published by counting */
	if (proto->flags & WEFT_PROTO_MADE)
		atomic_fetch_add_explicit(&made_of(proto)->users, 1, memory_order_relaxed);
}

void wf_proto_unref(const struct weft_proto *proto)
{
	/* release: the port's last use comes before a free that sees the count drop */
	if (proto->flags & WEFT_PROTO_MADE)
		atomic_fetch_sub_explicit(&made_of(proto)->users, 1, memory_order_release);
}
