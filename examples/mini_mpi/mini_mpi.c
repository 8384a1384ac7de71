/* mini_mpi.c - point-to-point messages, requests and probes of mini_mpi.h.
 *
 * Every call runs in the thread of the rank that makes it; there is nothing shared and no lock.
 * A rank's ports are WEFT_PORT_OWNED: only it receives there, and weft matches for it while it
 * computes. Tags are MPI's, not negative, so none of them is weft's wildcard.
 */
#include <errno.h>
#include <stdlib.h>

#include "mini_mpi.h"

/* weft_op has one pointer for both directions; a send only reads through it. */
static void *readable(const void *data)
{
	return (void *)(uintptr_t)data;
}

static weft_id peer_of(int rank)
{
	return rank == MM_ANY_SOURCE ? WEFT_ANY : weft_at((uint32_t)rank);
}

static uint64_t tag_of(int tag)
{
	return tag == MM_ANY_TAG ? WEFT_ANY_TAG : (uint64_t)tag;
}

size_t mm_type_size(enum mm_type type)
{
	static const size_t size[] = { 1, sizeof(int), sizeof(long), sizeof(double) };

	return size[type];
}

int mm_get_count(const struct mm_status *st, enum mm_type type)
{
	size_t each = mm_type_size(type);

	return st->bytes % each ? MM_UNDEFINED : (int)(st->bytes / each);
}

static void status_empty(struct mm_status *ret_st)
{
	if (ret_st)
		*ret_st = (struct mm_status){ .source = MM_PROC_NULL, .tag = MM_ANY_TAG };
}

static void status_set(struct mm_status *ret_st, const struct weft_status *st)
{
	if (ret_st)
		*ret_st = (struct mm_status){
			.source = st->index == WEFT_NOBODY ? MM_PROC_NULL : (int)st->index,
			.tag = (int)st->tag,
			.error = st->err,
			.cancelled = st->err == -ECANCELED,
			.bytes = st->len,
		};
}

/* Point to point. A request that ended on the spot, or has nobody to talk to, has no weft_req. */

static int send_start(const void *data, int count, enum mm_type type, int dest, int tag, struct mm_comm *comm,
		      uint32_t flags, struct mm_request *ret_req)
{
	int r;

	*ret_req = (struct mm_request){ .done.index = WEFT_NOBODY };
	if (count < 0 || tag < 0)
		return weft_fail(-EINVAL, "mini_mpi: count %d, tag %d", count, tag);
	if (dest != MM_PROC_NULL) {
		r = weft_send_post(comm->talk,
				   WEFT(op, .flags = flags, .peer = weft_at((uint32_t)dest),
					.tag = tag_of(tag), .data = readable(data),
					.len = (size_t)count * mm_type_size(type)),
				   &ret_req->req);
		if (r < 0)
			return r;
	}
	ret_req->active = true;
	return 0;
}

int mm_isend(const void *data, int count, enum mm_type type, int dest, int tag, struct mm_comm *comm,
	     struct mm_request *ret_req)
{
	return send_start(data, count, type, dest, tag, comm, 0, ret_req);
}

int mm_issend(const void *data, int count, enum mm_type type, int dest, int tag, struct mm_comm *comm,
	      struct mm_request *ret_req)
{
	return send_start(data, count, type, dest, tag, comm, WEFT_SYNC, ret_req);
}

/* What does not fit is cut off and consumed, as MPI has it; weft would leave it in the queue. */
int mm_irecv(void *data, int count, enum mm_type type, int source, int tag, struct mm_comm *comm,
	     struct mm_request *ret_req)
{
	int r;

	*ret_req = (struct mm_request){ .done.index = WEFT_NOBODY };
	if (count < 0 || tag < MM_ANY_TAG)
		return weft_fail(-EINVAL, "mini_mpi: count %d, tag %d", count, tag);
	if (source != MM_PROC_NULL) {
		r = weft_recv_post(comm->talk, WEFT(op, .flags = WEFT_TRUNCATE, .peer = peer_of(source),
						    .tag = tag_of(tag), .data = data,
						    .len = (size_t)count * mm_type_size(type)),
				   &ret_req->req, &ret_req->done);
		if (r < 0 && r != -EMSGSIZE)
			return r;
	}
	ret_req->active = true;
	return 0;
}

int mm_send(const void *data, int count, enum mm_type type, int dest, int tag, struct mm_comm *comm)
{
	if (count < 0 || tag < 0)
		return weft_fail(-EINVAL, "mini_mpi: count %d, tag %d", count, tag);
	if (dest == MM_PROC_NULL)
		return 0;
	return weft_send(comm->talk, weft_at((uint32_t)dest), tag_of(tag), data,
			 (size_t)count * mm_type_size(type), WEFT_FOREVER);
}

int mm_ssend(const void *data, int count, enum mm_type type, int dest, int tag, struct mm_comm *comm)
{
	struct mm_request req;
	int r = mm_issend(data, count, type, dest, tag, comm, &req);

	return r < 0 ? r : mm_wait(&req, NULL);
}

int mm_recv(void *data, int count, enum mm_type type, int source, int tag, struct mm_comm *comm,
	    struct mm_status *ret_st)
{
	struct mm_request req;
	int r = mm_irecv(data, count, type, source, tag, comm, &req);

	return r < 0 ? r : mm_wait(&req, ret_st);
}

int mm_sendrecv(const void *out, int out_count, int dest, int out_tag, void *in, int in_count, int source,
		int in_tag, enum mm_type type, struct mm_comm *comm, struct mm_status *ret_st)
{
	struct mm_request req;
	int r = mm_irecv(in, in_count, type, source, in_tag, comm, &req), end;

	if (r < 0)
		return r;
	r = mm_send(out, out_count, type, dest, out_tag, comm);
	if (r < 0)
		mm_cancel(&req);
	end = mm_wait(&req, ret_st);
	return r < 0 ? r : end;
}

/* Requests */

/* How the operation ended; a cancelled one ended well. The request is free for another. */
static int request_end(struct mm_request *req, const struct weft_status *st, struct mm_status *ret_st)
{
	status_set(ret_st, st);
	req->active = false;
	return st->err == -ECANCELED ? 0 : st->err;
}

int mm_wait(struct mm_request *req, struct mm_status *ret_st)
{
	int r;

	if (!req->active) {
		status_empty(ret_st);
		return 0;
	}
	if (req->req) {
		r = weft_req_wait(&req->req, WEFT_FOREVER, &req->done);
		if (req->req)
			return r;               /* the wait failed, not the operation */
	}
	return request_end(req, &req->done, ret_st);
}

int mm_test(struct mm_request *req, bool *ret_flag, struct mm_status *ret_st)
{
	int r;

	*ret_flag = false;
	if (req->active && req->req) {
		r = weft_req_wait(&req->req, WEFT_NOW, &req->done);
		if (req->req)
			return r == -EAGAIN ? 0 : r;
	}
	*ret_flag = true;
	return mm_wait(req, ret_st);
}

int mm_waitall(int n, struct mm_request *reqs, struct mm_status *ret_sts)
{
	int first = 0;

	for (int i = 0; i < n; i++) {
		int r = mm_wait(&reqs[i], ret_sts ? &ret_sts[i] : NULL);

		if (!first)
			first = r;
	}
	return first;
}

struct lot { /* of one waitany or waitsome: weft's view of the requests, and what it answers */
	struct weft_req **reqs;
	struct weft_status *sts;
	int *which;
};

static void lot_free(struct lot *lot)
{
	free(lot->reqs);
	free(lot->sts);
	free(lot->which);
}

static int lot_new(struct lot *lot, int n, const struct mm_request *reqs)
{
	lot->reqs = calloc((size_t)n, sizeof(struct weft_req *));
	lot->sts = calloc((size_t)n, sizeof(struct weft_status));
	lot->which = calloc((size_t)n, sizeof(int));
	if (!lot->reqs || !lot->sts || !lot->which) {
		lot_free(lot);
		return weft_fail(-ENOMEM, "mini_mpi: no memory for a wait");
	}
	for (int i = 0; i < n; i++)
		if (reqs[i].active)
			lot->reqs[i] = reqs[i].req;
	return 0;
}

/* Ends at most @max of them, at least one if any is active: those that ended on the spot first,
 * then what weft says is over. */
static int wait_some(int n, struct mm_request *reqs, int max, int *ret_count, int *ret_which,
		     struct mm_status *ret_sts)
{
	int active = 0, count = 0, got, first = 0;
	struct lot lot;

	for (int i = 0; i < n; i++)
		active += reqs[i].active;
	*ret_count = active ? 0 : MM_UNDEFINED;
	if (!active)
		return 0;
	for (int i = 0; i < n && count < max; i++)
		if (reqs[i].active && !reqs[i].req) {
			int r = request_end(&reqs[i], &reqs[i].done, ret_sts ? &ret_sts[count] : NULL);

			first = first ? first : r;
			ret_which[count++] = i;
		}
	*ret_count = count;
	if (count == max)
		return first;
	got = lot_new(&lot, n, reqs);
	if (got < 0)
		return got;
	got = weft_req_wait_some(lot.reqs, n, count ? 0 : 1, max - count, count ? WEFT_NOW : WEFT_FOREVER,
				 lot.which, lot.sts);
	for (int k = 0; k < got; k++) {
		struct mm_request *req = &reqs[lot.which[k]];
		int r = request_end(req, &lot.sts[k], ret_sts ? &ret_sts[count] : NULL);

		req->req = NULL;
		first = first ? first : r;
		ret_which[count++] = lot.which[k];
	}
	lot_free(&lot);
	*ret_count = count;
	return got < 0 && !count ? got : first;
}

int mm_waitsome(int n, struct mm_request *reqs, int *ret_count, int *ret_which, struct mm_status *ret_sts)
{
	return wait_some(n, reqs, n, ret_count, ret_which, ret_sts);
}

int mm_waitany(int n, struct mm_request *reqs, int *ret_index, struct mm_status *ret_st)
{
	int count, r;

	*ret_index = MM_UNDEFINED;
	r = wait_some(n, reqs, 1, &count, ret_index, ret_st);
	if (count == MM_UNDEFINED)
		status_empty(ret_st);
	return r;
}

int mm_cancel(struct mm_request *req)
{
	int r = req->active && req->req ? weft_req_cancel(req->req) : 0;

	return r == -EALREADY ? 0 : r;
}

/* Probes */

static int look(int source, int tag, struct mm_comm *comm, weft_time until, struct weft_msg **ret_msg,
		struct mm_status *ret_st)
{
	struct weft_status st;
	int r;

	if (source == MM_PROC_NULL) {
		status_empty(ret_st);
		return 0;
	}
	r = weft_probe(comm->talk, WEFT(op, .peer = peer_of(source), .tag = tag_of(tag)), until, ret_msg,
		       &st);
	if (r == 0)
		status_set(ret_st, &st);
	return r;
}

int mm_probe(int source, int tag, struct mm_comm *comm, struct mm_status *ret_st)
{
	return look(source, tag, comm, WEFT_FOREVER, NULL, ret_st);
}

int mm_iprobe(int source, int tag, struct mm_comm *comm, bool *ret_flag, struct mm_status *ret_st)
{
	int r = look(source, tag, comm, WEFT_NOW, NULL, ret_st);

	*ret_flag = r == 0;
	return r == -EAGAIN ? 0 : r;
}

int mm_mprobe(int source, int tag, struct mm_comm *comm, struct mm_message *ret_msg, struct mm_status *ret_st)
{
	*ret_msg = (struct mm_message){ .comm = comm };
	return look(source, tag, comm, WEFT_FOREVER, &ret_msg->msg, ret_st);
}

int mm_improbe(int source, int tag, struct mm_comm *comm, bool *ret_flag, struct mm_message *ret_msg,
	       struct mm_status *ret_st)
{
	int r;

	*ret_msg = (struct mm_message){ .comm = comm };
	r = look(source, tag, comm, WEFT_NOW, &ret_msg->msg, ret_st);
	*ret_flag = r == 0;
	return r == -EAGAIN ? 0 : r;
}

int mm_mrecv(void *data, int count, enum mm_type type, struct mm_message *msg, struct mm_status *ret_st)
{
	struct mm_request req = { .active = true, .done.index = WEFT_NOBODY };
	int r;

	if (msg->msg) {
		r = weft_recv_post(msg->comm->talk,
				   WEFT(op, .flags = WEFT_TRUNCATE, .msg = msg->msg, .data = data,
					.len = (size_t)count * mm_type_size(type)),
				   &req.req, &req.done);
		if (r < 0 && r != -EMSGSIZE)
			return r;
		msg->msg = NULL;
	}
	return mm_wait(&req, ret_st);
}
