/* op.h - options from outside, checked. */
#ifndef WF_PORT_OP_H
#define WF_PORT_OP_H

#include "port/port.h"
#include "port/self.h"

/* To be copied: one that is written where gcc sees all of it is cleared by `rep stos`, which takes x86-64 15 ns. */
extern const struct weft_op wf_blank_op;

/* Copies a struct that begins with its size into the library's own, zero where the caller's is shorter.
 * -E2BIG: longer, and not zero there. -EINVAL: no size, or NULL. */
int wf_opts_read(void *ret_own, size_t own, const void *theirs, const char *what);

/* An op for sending from @p or receiving at @p: everything that can be said without looking at the peer. */
int wf_op_read_send(const struct weft_port *p, const struct weft_op *theirs, struct weft_op *ret_op);
int wf_op_read_recv(const struct weft_port *p, const struct weft_op *theirs, struct weft_op *ret_op);

/* The id behind @peer: itself, or the member weft_at(i) means at @p. -EINVAL: nobody, or none such;
 * -ESRCH: that member has ended. */
int wf_peer_id(const struct weft_port *p, weft_id peer, weft_id *ret_id);
int wf_source_id(const struct weft_port *p, weft_id peer, weft_id *ret_id);      /* to receive from: also one that has ended */

/* The pattern of a receive at @p, in the form its matcher takes (32 bytes). */
int wf_want_of(const struct weft_port *p, const struct weft_op *op, void *ret_want);

/* Are the 64-bit words of @op from byte @from to @to all zero? Each is read by itself: the caller has just written the struct, 16
 * bytes at a time, and a load that takes from two stores waits until both have left the core (10 ns). */
static inline bool wf_op_zero(const struct weft_op *op, size_t from, size_t to)
{
	typedef uint64_t __attribute__((may_alias)) word;
	uint64_t any = 0;

#pragma GCC unroll 16
	for (size_t i = from; i < to; i += sizeof(word))
		any |= __atomic_load_n((const word *)(const void *)((const char *)op + i), __ATOMIC_RELAXED);
	return !any;
}

/* An op that is only peer, tag and plain memory, of the size we know, and no flags but @flags: the hot paths need not look further. */
static inline bool wf_op_plain(const struct weft_op *op, uint32_t flags)
{
	_Static_assert(offsetof(struct weft_op, user) - offsetof(struct weft_op, iov) == 80, "all but user is zero in a plain op");
	return op && __atomic_load_n(&op->size, __ATOMIC_RELAXED) == sizeof(*op) &&
	       !(__atomic_load_n(&op->flags, __ATOMIC_RELAXED) & ~flags) && op->data &&
	       wf_op_zero(op, offsetof(struct weft_op, iov), offsetof(struct weft_op, user)) &&
	       wf_op_zero(op, offsetof(struct weft_op, expires), sizeof(*op));
}

/* May this thread receive at @p? 0 or -EPERM. */
int wf_may_not_receive(void);

static inline int wf_may_receive(const struct weft_port *p)
{
	return wf_likely(p->shared || p->owner == wf_self.id) ? 0 : wf_may_not_receive();
}

#endif
