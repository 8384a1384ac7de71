/* buffered.c - buffered sends: the message is copied into memory that the user attached, and leaves from there.
 *
 *   |  piece  |  piece  | free            |  piece  |        pieces in order of their place, each with its request
 *
 * What weft can take over at once (WEFT_COPY) needs no piece. A piece is free when its send is over, which the next
 * buffered send, and whoever detaches the memory, finds out. Until then its request keeps the communicator, which the
 * program may free at once: ports that close take back what nobody receives within a while. One store, the process's:
 * buffers of a communicator are not there yet. Where MPI_BUFFER_AUTOMATIC is attached each piece has memory of its own.
 */
#include "request.h"

#include <errno.h>
#include <stdlib.h>

struct piece {
	struct piece *next;
	struct MPI_ABI_Request *r;
	size_t len;                     /* with this head, a multiple of the alignment */
	uint64_t number;                /* as they came */
	bool waited;                    /* somebody waits for it, without the lock: nobody else looks at its request */
	_Alignas(16) char data[];
};

struct store {
	pthread_mutex_t lock;
	pthread_cond_t left;            /* who waited for a piece is through */
	void *given;                    /* what was attached; NULL: nothing */
	MPI_Count size;
	char *at;                       /* aligned */
	size_t len;
	struct piece *first;
	uint64_t count;                 /* pieces there ever were */
};

static bool automatic(const struct store *s)
{
	return s->given == MPI_BUFFER_AUTOMATIC;
}

static struct store process = { .lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER };

/* Its memory is free. Its request is put before @dead, for requests_drop. */
static void unlink_locked(struct store *s, struct piece **link, struct MPI_ABI_Request **dead)
{
	struct piece *p = *link;

	*link = p->next;
	p->r->next = *dead;
	*dead = p->r;
	if (automatic(s))
		free(p);
}

/* Lets go of pieces whose sends are over. */
static void reap_locked(struct store *s, struct MPI_ABI_Request **dead)
{
	for (struct piece **p = &s->first; *p;) {
		if (!(*p)->waited && wm_request_over((*p)->r, WEFT_NOW) == 1)
			unlink_locked(s, p, dead);
		else
			p = &(*p)->next;
	}
}

/* Waits for the pieces numbered below @upto, without the lock: a buffered send waits for no other, also not for one that somebody waits for.
 * 0, or weft's answer if they cannot be waited for. */
static int drain_locked(struct store *s, uint64_t upto, struct MPI_ABI_Request **dead)
{
	struct piece **link, *p;
	bool others;
	int r;

	for (;;) {
		others = false;
		for (p = s->first; p && (p->waited || p->number >= upto); p = p->next)
			others |= p->waited && p->number < upto;
		if (!p && !others)
			return 0;
		if (!p) {
			pthread_cond_wait(&s->left, &s->lock);
			continue;
		}
		p->waited = true;
		pthread_mutex_unlock(&s->lock);
		r = wm_request_over(p->r, WEFT_FOREVER);
		pthread_mutex_lock(&s->lock);
		p->waited = false;
		pthread_cond_broadcast(&s->left);
		if (r < 0)
			return r;
		for (link = &s->first; *link != p; link = &(*link)->next)
			continue;
		unlink_locked(s, link, dead);
	}
}

/* Without the lock: with one of them a communicator may end. */
static void requests_drop(struct MPI_ABI_Request *dead)
{
	struct MPI_ABI_Request *r;

	while ((r = dead)) {
		dead = r->next;
		wm_request_drop(r);
	}
}

/* Where @len bytes fit, first come: the link before it, or NULL. */
static struct piece **room_locked(struct store *s, size_t len, char **ret_at)
{
	char *at = s->at;

	if (automatic(s)) {
		*ret_at = malloc(len);
		return *ret_at ? &s->first : NULL;
	}
	for (struct piece **p = &s->first;; p = &(*p)->next) {
		char *end = *p ? (char *)*p : s->at + s->len;

		if ((size_t)(end - at) >= len) {
			*ret_at = at;
			return p;
		}
		if (!*p)
			return NULL;
		at = (char *)*p + (*p)->len;
	}
}

/* @request has the communicator; if this succeeds it is the piece's, or one of @dead. */
static int send_locked(struct store *s, struct MPI_ABI_Request *request, struct weft_op *op, const void *buf, MPI_Count count,
		       struct MPI_ABI_Datatype *type, struct MPI_ABI_Request **dead)
{
	MPI_Count bytes = count * type->size;
	size_t len = (sizeof(struct piece) + (size_t)bytes + 15) & ~(size_t)15;
	struct piece **link, *p;
	char *at;
	int r;

	if (!s->given) {
		weft_fail(-ENOBUFS, "no buffer is attached");
		return MPI_ERR_BUFFER;
	}
	reap_locked(s, dead);
	link = room_locked(s, len, &at);
	if (!link) {
		weft_fail(-ENOBUFS, "the attached buffer of %lld bytes has no room for %lld", (long long)s->size, (long long)bytes);
		return MPI_ERR_BUFFER;
	}
	p = (struct piece *)(void *)at;
	p->r = request;
	p->len = len;
	p->number = s->count++;
	p->waited = false;
	wm_type_pack(p->data, buf, count, type, 0, bytes);
	op->flags = 0;
	op->layout = NULL;
	op->data = p->data;
	op->len = (size_t)bytes;
	r = weft_send_post(request->comm->talk, op, &request->req);
	if (r == 0) {
		p->next = *link;
		*link = p;
		return MPI_SUCCESS;
	}
	if (r > 0) {
		request->next = *dead;
		*dead = request;
	}
	if (automatic(s))
		free(p);
	return wm_class(r);
}

int wm_bsend(struct MPI_ABI_Comm *comm, const void *buf, MPI_Count count, struct MPI_ABI_Datatype *type, int dest, int tag)
{
	struct weft_op op = { .size = sizeof(op), .flags = WEFT_COPY, .peer = weft_at((uint32_t)dest), .tag = (uint64_t)tag };
	struct MPI_ABI_Request *dead = NULL, *request;
	struct weft_req *req = NULL;
	struct wm_layout room;
	int r;

	wm_place(&op, &room, buf, count, type);
	if (process.given) {
		r = weft_send_post(comm->talk, &op, &req);
		if (r == 0)
			wm_send_leave(comm, req);
		if (r >= 0 || (r != -EAGAIN && r != -ENOBUFS))
			return wm_class(r);
	}
	request = wm_request_new(WM_SEND, comm);
	if (!request)
		return MPI_ERR_NO_MEM;
	pthread_mutex_lock(&process.lock);
	r = send_locked(&process, request, &op, buf, count, type, &dead);
	pthread_mutex_unlock(&process.lock);
	if (r)
		wm_request_drop(request);
	requests_drop(dead);
	return r;
}

int PMPI_Buffer_attach_c(void *buffer, MPI_Count size)
{
	int err = MPI_SUCCESS;

	if (buffer == MPI_BUFFER_AUTOMATIC)
		size = 0;               /* says nothing */
	if (size < 0 || (!buffer && size))
		return wm_error(NULL, __func__, size < 0 ? MPI_ERR_ARG : MPI_ERR_BUFFER, "%lld bytes", (long long)size);
	pthread_mutex_lock(&process.lock);
	if (process.given) {
		err = MPI_ERR_BUFFER;
	} else {
		uintptr_t at = ((uintptr_t)buffer + 15) & ~(uintptr_t)15, end = (uintptr_t)buffer + (uintptr_t)size;

		process.given = buffer;
		process.size = size;
		process.at = (char *)at;
		process.len = end > at ? end - at : 0;
	}
	pthread_mutex_unlock(&process.lock);
	return err ? wm_error(NULL, __func__, err, "a buffer is attached already") : MPI_SUCCESS;
}
MPI_DONE(Buffer_attach_c);

/* Waits until everything has left. */
static int detach(const char *function, void *buffer_addr, const void *size, MPI_Count *ret_size)
{
	struct MPI_ABI_Request *dead = NULL;
	int r;

	*ret_size = 0;
	if (!buffer_addr || !size)
		return wm_error(NULL, function, MPI_ERR_ARG, "no place for the address, or for the size");
	pthread_mutex_lock(&process.lock);
	r = drain_locked(&process, UINT64_MAX, &dead);
	if (r == 0) {
		*(void **)buffer_addr = process.given;
		if (process.given)
			*ret_size = process.size;
		process.given = NULL;
	}
	pthread_mutex_unlock(&process.lock);
	requests_drop(dead);
	return r < 0 ? wm_weft_error(NULL, function, r) : MPI_SUCCESS;
}

int PMPI_Buffer_detach_c(void *buffer_addr, MPI_Count *size)
{
	MPI_Count n;
	int err = detach(__func__, buffer_addr, size, &n);

	if (!err)
		*size = n;
	return err;
}
MPI_DONE(Buffer_detach_c);

int PMPI_Buffer_detach(void *buffer_addr, int *size)
{
	MPI_Count n;
	int err = detach(__func__, buffer_addr, size, &n);

	if (!err)
		*size = n > INT32_MAX ? MPI_UNDEFINED : (int)n;
	return err;
}
MPI_DONE(Buffer_detach);

int PMPI_Buffer_flush(void)
{
	struct MPI_ABI_Request *dead = NULL;
	int r;

	pthread_mutex_lock(&process.lock);
	r = drain_locked(&process, process.count, &dead);
	pthread_mutex_unlock(&process.lock);
	requests_drop(dead);
	return r < 0 ? wm_weft_error(NULL, __func__, r) : MPI_SUCCESS;
}
MPI_DONE(Buffer_flush);
