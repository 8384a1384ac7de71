/* coll.c - messages of a collective (see coll.h), and collectives for the layer's own use. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll.h"

#define TOLD_WITHIN (100 * WEFT_MS)    /* a death is known to all */

/* Memory */

static void copy_holes(struct wm_block to, struct wm_block from, size_t n)
{
	char bytes[4096];

	for (size_t at = 0, part; at < n; at += part) {
		part = n - at < sizeof(bytes) ? n - at : sizeof(bytes);
		wm_type_pack(bytes, from.buf, from.count, from.type, (MPI_Count)at, (MPI_Count)part);
		wm_type_unpack(bytes, to.buf, to.count, to.type, (MPI_Count)at, (MPI_Count)part);
	}
}

void wm_coll_copy(struct wm_coll *c, struct wm_block to, struct wm_block from)
{
	size_t n = wm_block_len(from);

	if (n != wm_block_len(to))
		wm_coll_fail(c, n > wm_block_len(to) ? -EMSGSIZE : -EBADMSG);
	if (c->err || !n || (to.buf == from.buf && to.type == from.type))
		return;
	if (to.type->plain && from.type->plain)
		memcpy(to.buf, from.buf, n);
	else if (to.type->plain)
		wm_type_pack(to.buf, from.buf, from.count, from.type, 0, (MPI_Count)n);
	else if (from.type->plain)
		wm_type_unpack(from.buf, to.buf, to.count, to.type, 0, (MPI_Count)n);
	else
		copy_holes(to, from, n);
}

static MPI_Count least(MPI_Count a, MPI_Count b)
{
	return a < b ? a : b;
}

void *wm_coll_scratch(struct wm_coll *c, MPI_Count count, const struct MPI_ABI_Datatype *type, void **ret_memory)
{
	/* From the lowest to the highest byte of an element, with what pads it: an operation may write that too. */
	MPI_Count low = least(type->true_lb, least(type->lb, type->lb + type->extent));
	MPI_Count high = -least(-(type->true_lb + type->true_extent), least(-type->lb, -(type->lb + type->extent)));
	MPI_Count steps = count ? (count - 1) * type->extent : 0;
	char *memory = malloc((size_t)(high - low + (steps < 0 ? -steps : steps)) + 1);
	static char nowhere;

	*ret_memory = memory;
	if (!memory) {
		wm_coll_fail(c, -ENOMEM);
		return &nowhere;
	}
	return memory - low - (steps < 0 ? steps : 0);  /* of elements that go downwards the first one lies highest */
}

/* Messages */

/* What a message was to be if its receive was answered @r; a short one comes from a member that failed. */
static void received(struct wm_coll *c, int r, size_t len, size_t want)
{
	if (r < 0)
		wm_coll_fail(c, r);
	else if (len != want)
		wm_coll_fail(c, -EBADMSG);
}

/* Takes the next message of @peer and drops it, or what of it is longer than a block had room for. */
static void drop(struct wm_coll *c, int peer)
{
	const struct weft_op *op = WEFT(op, .peer = weft_at((uint32_t)peer), .tag = c->tag, .flags = WEFT_TRUNCATE);
	struct weft_req *req = NULL;
	int r = weft_recv_post(c->port, op, &req, NULL);

	if (r == 0)
		r = weft_req_wait(&req, WEFT_FOREVER, NULL);
	if (r < 0 && r != -EMSGSIZE)
		wm_coll_fail(c, r);
}

void wm_coll_send(struct wm_coll *c, int peer, struct wm_block b)
{
	struct wm_pending p;
	int r;

	if (WM_UNLIKELY(c->err))
		b = wm_bytes(NULL, 0);
	if (!b.type->plain) {
		wm_coll_send_post(c, &p, peer, b);
		wm_coll_wait(c, &p);
		return;
	}
	r = weft_send(c->port, weft_at((uint32_t)peer), c->tag, b.buf, wm_block_len(b), WEFT_FOREVER);
	if (WM_UNLIKELY(r < 0))
		wm_coll_fail(c, r);
}

void wm_coll_recv(struct wm_coll *c, int peer, struct wm_block b)
{
	struct weft_status st;
	struct wm_pending p;
	int r;

	if (WM_UNLIKELY(c->err)) {
		drop(c, peer);
		return;
	}
	if (!b.type->plain) {
		wm_coll_recv_post(c, &p, peer, b);
		wm_coll_wait(c, &p);
		return;
	}
	r = weft_recv(c->port, weft_at((uint32_t)peer), c->tag, b.buf, wm_block_len(b), WEFT_FOREVER, &st);
	received(c, r, st.len, wm_block_len(b));
	if (WM_UNLIKELY(r == -EMSGSIZE))
		drop(c, peer);
}

void wm_coll_send_post(struct wm_coll *c, struct wm_pending *p, int peer, struct wm_block b)
{
	struct weft_op op = { .size = sizeof(op), .peer = weft_at((uint32_t)peer), .tag = c->tag };
	int r;

	p->req = NULL;
	p->want = SIZE_MAX;
	if (WM_LIKELY(!c->err))
		wm_place(&op, &p->room, b.buf, b.count, b.type);
	r = weft_send_post(c->port, &op, &p->req);
	if (WM_UNLIKELY(r < 0))
		wm_coll_fail(c, r);
}

void wm_coll_recv_post(struct wm_coll *c, struct wm_pending *p, int peer, struct wm_block b)
{
	struct weft_op op = { .size = sizeof(op), .peer = weft_at((uint32_t)peer), .tag = c->tag, .flags = WEFT_TRUNCATE };
	struct weft_status st;
	int r;

	p->req = NULL;
	p->want = wm_block_len(b);
	if (WM_LIKELY(!c->err))
		wm_place(&op, &p->room, b.buf, b.count, b.type);
	r = weft_recv_post(c->port, &op, &p->req, &st);
	if (r != 0)
		received(c, r, st.len, p->want);
}

void wm_coll_wait(struct wm_coll *c, struct wm_pending *p)
{
	struct weft_status st;
	int r;

	if (!p->req)
		return;
	r = weft_req_wait(&p->req, WEFT_FOREVER, &st);
	if (p->want == SIZE_MAX)
		st.len = SIZE_MAX;
	received(c, r, st.len, p->want);
}

void wm_coll_wait_all(struct wm_coll *c, struct wm_pending *p, int n)
{
	for (int i = 0; i < n; i++)
		wm_coll_wait(c, &p[i]);
}

void wm_coll_exchange(struct wm_coll *c, int to, struct wm_block out, int from, struct wm_block in)
{
	struct wm_pending p;

	wm_coll_recv_post(c, &p, from, in);
	wm_coll_send(c, to, out);
	wm_coll_wait(c, &p);
}

/* Buffers */

struct weft_buf *wm_coll_buf(struct wm_coll *c, struct wm_block b)
{
	struct weft_buf *buf;

	if (c->err || weft_buf_get(wm_block_len(b), WEFT_RAIL_ANY, &buf) < 0)
		return NULL;
	wm_coll_copy(c, wm_bytes(buf->data, buf->len), b);
	return buf;
}

void wm_coll_give(struct wm_coll *c, int peer, struct weft_buf *buf, struct wm_block b)
{
	int r = -EBUSY;

	if (buf && !c->err)
		r = weft_buf_send(c->port, weft_at((uint32_t)peer), c->tag, buf, WEFT_FOREVER);
	if (r == 0)
		return;
	if (buf) {
		if (!c->err)
			wm_coll_fail(c, r);
		weft_buf_put(buf);
	}
	wm_coll_send(c, peer, b);
}

void wm_coll_lend(struct wm_coll *c, int peer, struct weft_buf *buf, struct wm_block b)
{
	const struct weft_op op = {
		.size = sizeof(op), .peer = weft_at((uint32_t)peer), .tag = c->tag, .buf = buf, .flags = WEFT_KEEP
	};
	int r;

	if (!buf || c->err) {
		wm_coll_send(c, peer, b);
		return;
	}
	r = weft_send_post(c->port, &op, NULL);   /* the buffer itself knows when it is free again */
	if (r < 0)
		wm_coll_fail(c, r);
}

struct weft_buf *wm_coll_take(struct wm_coll *c, int peer, size_t len)
{
	struct weft_status st;
	struct weft_buf *buf;
	int r;

	if (c->err) {
		drop(c, peer);
		return NULL;
	}
	r = weft_buf_recv(c->port, weft_at((uint32_t)peer), c->tag, WEFT_FOREVER, &buf, &st);
	received(c, r, st.len, len);
	if (r == 0 && c->err)
		weft_buf_put(buf);
	return c->err ? NULL : buf;
}

void wm_coll_combine(struct wm_coll *c, struct MPI_ABI_Op *op, struct wm_block *acc, struct wm_block *got, bool higher)
{
	struct wm_block swap;

	if (c->err)
		return;
	if (!higher || op->commutative) {
		wm_op_apply(op, got->buf, acc->buf, acc->count, wm_type_handle(acc->type));
		return;
	}
	wm_op_apply(op, acc->buf, got->buf, acc->count, wm_type_handle(acc->type));
	swap = *acc;
	*acc = *got;
	*got = swap;
}

/* The end */

/* A member that failed sends less than it should. If that was because another one has ended we may hear of the end a moment later than
 * it did: then that is the reason to tell. */
static void find_reason(struct wm_coll *c)
{
	struct weft_port_info info = { .size = sizeof(info) };
	weft_time until = weft_in(TOLD_WITHIN);

	while (c->err == -EBADMSG && weft_port_stat(c->port, &info) == 0) {
		if (info.dead)
			c->err = -ECONNRESET;
		else if (weft_now() > until)
			return;
		else
			usleep(1000);
	}
}

int wm_coll_end(struct wm_coll *c, const char *function)
{
	if (WM_UNLIKELY(c->err == -EBADMSG))
		find_reason(c);
	switch (c->err) {
	case 0:
		return MPI_SUCCESS;
	case -EMSGSIZE:
		return wm_error(c->comm, function, MPI_ERR_TRUNCATE, "a member sent more than was to be received");
	case -EBADMSG:
		return wm_error(c->comm, function, MPI_ERR_OTHER, "a member failed, or sent less than was to be received");
	case -ENOMEM:
		return wm_error(c->comm, function, MPI_ERR_NO_MEM, "no memory");
	case -ECONNRESET:
	case -ESRCH:
		return wm_error(c->comm, function, MPI_ERR_PROC_ABORTED, "a member of the communicator has ended");
	default:
		return wm_weft_error(c->comm, function, c->err);
	}
}

int wm_coll_class(struct wm_coll *c)
{
	if (WM_UNLIKELY(c->err == -EBADMSG))
		find_reason(c);
	if (c->err == -ECONNRESET || c->err == -ESRCH)
		return MPI_ERR_PROC_ABORTED;
	return c->err == -EBADMSG ? MPI_ERR_OTHER : wm_class(c->err);
}

/* For the layer's own use */

int wm_coll_barrier(struct MPI_ABI_Comm *comm)
{
	struct wm_coll c = wm_coll_begin(comm);

	wm_barrier(&c);
	return wm_coll_class(&c);
}

int wm_coll_bcast(struct MPI_ABI_Comm *comm, int root, void *data, size_t len)
{
	struct wm_coll c = wm_coll_begin(comm);

	wm_bcast(&c, root, wm_bytes(data, len));
	return wm_coll_class(&c);
}

int wm_coll_allgather(struct MPI_ABI_Comm *comm, const void *mine, size_t len, void *ret_all)
{
	const struct wm_blocks all = { .buf = ret_all, .type = wm_byte, .count = (MPI_Count)len };
	struct wm_coll c = wm_coll_begin(comm);

	wm_allgather(&c, wm_bytes(mine, len), &all);
	return wm_coll_class(&c);
}
