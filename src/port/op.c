/* op.c - see op.h. Wrong options are told by name. */
#include "port/op.h"

#include <errno.h>
#include <string.h>

#include "port/self.h"

const struct weft_op wf_blank_op = { .size = sizeof(wf_blank_op) };

#define SEND_FLAGS (WEFT_SYNC | WEFT_READY | WEFT_RENDEZVOUS | WEFT_COPY | WEFT_KEEP)
#define RECV_FLAGS (WEFT_ALLOC | WEFT_TRUNCATE | WEFT_REPEAT)

int wf_opts_read(void *ret_own, size_t own, const void *theirs, const char *what)
{
	uint32_t size;

	if (!theirs)
		return weft_fail(-EINVAL, "%s is NULL", what);
	memcpy(&size, theirs, sizeof(size));
	if (size < own)         /* every version so far has had all of it */
		return weft_fail(-EINVAL, "%s.size is not set", what);
	for (size_t i = own; i < size; i++)
		if (((const char *)theirs)[i])
			return weft_fail(-E2BIG, "%s has fields this weft does not know", what);
	if (ret_own != theirs) {
		memset(ret_own, 0, own);
		memcpy(ret_own, theirs, size < own ? size : own);
	}
	return 0;
}

static int read_common(const struct weft_op *theirs, struct weft_op *op, uint32_t flags)
{
	int r = wf_opts_read(op, sizeof(*op), theirs, "op");

	if (r < 0)
		return r;
	if (op->flags & ~flags)
		return weft_fail(-EINVAL, "op.flags: %#x does not belong here", op->flags & ~flags);
	if (op->prio < -4 || op->prio > 3)
		return weft_fail(-EINVAL, "op.prio: %d is not between -4 and 3", op->prio);
	if (op->elem && op->elem != 2 && op->elem != 4 && op->elem != 8)
		return weft_fail(-EINVAL, "op.elem: %u is none of 0, 2, 4, 8", op->elem);
	if (op->zero)
		return weft_fail(-EINVAL, "op.zero is not zero");
	if (op->done && op->queue)
		return weft_fail(-EINVAL, "op: done and queue");
	if (op->expires < 0)
		return weft_fail(-EINVAL, "op.expires is negative");
	if (op->rail)
		return weft_fail(-EOPNOTSUPP, "op.rail is not served yet");
	if (op->npeers || op->peers)
		return weft_fail(-EOPNOTSUPP, "op.peers is not served yet");
	return 0;
}

int wf_op_read_send(const struct weft_port *p, const struct weft_op *theirs, struct weft_op *op)
{
	int r = read_common(theirs, op, SEND_FLAGS);

	if (r < 0)
		return r;
	if (op->msg)
		return weft_fail(-EINVAL, "op.msg is for receiving");
	if (op->peer == WEFT_ALL)
		return weft_fail(-EOPNOTSUPP, "sending to WEFT_ALL is not served yet");
	if (!p->proto && op->tag == WEFT_ANY_TAG)
		return weft_fail(-EINVAL, "WEFT_ANY_TAG may not be sent");
	if (p->proto && p->proto->head_len && !op->head)
		return weft_fail(-EINVAL, "op.head is NULL, and the port speaks %s", p->proto->name);
	if (op->buf && (op->data || op->len || op->iov || op->niov || op->layout))
		return weft_fail(-EINVAL, "op: buf and other memory");
	if (op->flags & WEFT_KEEP && !op->buf)
		return weft_fail(-EINVAL, "WEFT_KEEP without a buffer");
	if (op->flags & WEFT_COPY && op->buf)
		return weft_fail(-EINVAL, "WEFT_COPY of a buffer");
	return 0;
}

int wf_op_read_recv(const struct weft_port *p, const struct weft_op *theirs, struct weft_op *op)
{
	int r = read_common(theirs, op, RECV_FLAGS);

	if (r < 0)
		return r;
	if (op->buf)
		return weft_fail(-EINVAL, "op.buf is for sending; receive one with WEFT_ALLOC");
	if (op->flags & WEFT_ALLOC && (op->data || op->len || op->iov || op->niov || op->layout))
		return weft_fail(-EINVAL, "op: WEFT_ALLOC and memory");
	if (op->flags & WEFT_REPEAT) {
		if (!op->done && !op->queue)
			return weft_fail(-EINVAL, "WEFT_REPEAT without done or queue");
		if (op->msg)
			return weft_fail(-EINVAL, "WEFT_REPEAT of one message");
		if (op->queue && !(op->flags & WEFT_ALLOC) && (op->len || op->niov || op->layout))
			return weft_fail(-EINVAL, "WEFT_REPEAT into a queue takes WEFT_ALLOC: one memory cannot hold several");
	}
	if (!op->msg && p->proto && p->proto->head_len && !op->head)
		return weft_fail(-EINVAL, "op.head is NULL, and the port speaks %s", p->proto->name);
	return 0;
}

static int peer_id(const struct weft_port *p, weft_id peer, bool receives, weft_id *ret_id)
{
	if (wf_likely(peer >> 52 != 0xfff)) {
		if (peer == 0)
			return weft_fail(-EINVAL, "peer 0 is nobody");
		*ret_id = peer;
		return 0;
	}
	if (peer >> 32 != UINT64_C(0xfff) << 20 || !p->members || (uint32_t)peer >= p->members->count)
		return weft_fail(-EINVAL, "the port has no member %u", (uint32_t)peer);
	peer = atomic_load_explicit(&p->members->ids[(uint32_t)peer], memory_order_relaxed);
	if (!peer || (peer & WF_MEMBER_GONE && !receives))
		return weft_fail(-ESRCH, "that member has ended");
	*ret_id = peer & ~WF_MEMBER_GONE;
	return 0;
}

int wf_peer_id(const struct weft_port *p, weft_id peer, weft_id *ret_id)
{
	return peer_id(p, peer, false, ret_id);
}

int wf_source_id(const struct weft_port *p, weft_id peer, weft_id *ret_id)
{
	return peer_id(p, peer, true, ret_id);
}

int wf_want_of(const struct weft_port *p, const struct weft_op *op, void *ret_want)
{
	struct wf_head h = { .src = op->peer, .tag = op->tag, .ignore = op->ignore };
	int r;

	if (p->proto) {
		memset(ret_want, 0, WEFT_MATCH_HEAD_MAX);
		if (op->head)
			memcpy(ret_want, op->head, p->proto->head_len);
		return 0;
	}
	if (op->peer != WEFT_ANY) {
		r = wf_source_id(p, op->peer, &h.src);
		if (r < 0)
			return r;
	}
	if (op->tag == WEFT_ANY_TAG)
		h.ignore = UINT64_MAX;
	memcpy(ret_want, &h, sizeof(h));
	return 0;
}

int wf_may_not_receive(void)
{
	return weft_fail(-EPERM, "only its own thread receives at that port");
}
