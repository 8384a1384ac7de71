/* request.h - one operation under way: weft's request, and what MPI wants to know when it is over.
 *
 * weft ends many operations on the spot and then gives no request of its own: req is NULL and done says how it ended.
 * A send that is over with nothing to tell needs no object at all: its handle is that of wm_sent, which is
 * always over, never changes and is shared by all.
 *
 *   made        wm_request_new, active; for most messages wm_request_bare
 *   over        req NULL: whoever waits or tests takes how it ended from done and lets the object go
 *   persistent  made inactive; MPI_Start posts op again and again; over is inactive, not freed
 *   orphan      freed while active: kept until weft is done with its memory (request.c)
 */
#ifndef WM_REQUEST_H
#define WM_REQUEST_H

#include "inner.h"

enum wm_mode { WM_STANDARD, WM_SYNC, WM_READY, WM_BUFFERED };

struct wm_user {                        /* of a generalized request */
	MPI_Grequest_query_function *query;
	MPI_Grequest_free_function *free;
	MPI_Grequest_cancel_function *cancel;
	void *state;
	bool ended, freed;              /* by MPI_Grequest_complete, by MPI_Request_free: whoever is second lets it go; under request.c's users */
};

struct MPI_ABI_Request {
	struct wm_object obj;
	uint8_t what;                   /* enum wm_what */
	bool active, persistent;
	bool cancelled;                 /* MPI_Cancel was called: -ECANCELED is what was asked for */
	uint8_t mode;                   /* persistent sends: enum wm_mode */
	bool bare;                      /* one message of plain memory: nothing below done is used, and it ends when the message does */
	union {
		struct {
			int rank, tag;  /* persistent: the arguments */
		};
		struct MPI_ABI_Request *spare;  /* of a thread's spares: the next */
	};
	struct weft_req *req;           /* NULL: over */
	struct MPI_ABI_Comm *comm;      /* referenced; NULL: none */
	struct weft_status done;        /* how it ended; index WEFT_NOBODY: with nobody */

	/* persistent, or not plain: referenced, as weft reads the layout until the end */
	struct MPI_ABI_Datatype *type;
	union {
		struct wm_layout layout;
		struct wm_user user;
	};
	const void *buf;                /* persistent: the arguments */
	MPI_Count count;

	struct MPI_ABI_Request *with;   /* a second operation that ends with this one: the send of MPI_Isendrecv; owned */
	void *copy;                     /* of what a send replaces; of a collective what it does, a struct wm_icoll; owned */
	struct MPI_ABI_Request *next;   /* orphans */
};

extern struct MPI_ABI_Request wm_sent WM_HERE;

/* Requests that a thread keeps for its next messages. Of these type, with and copy are NULL, persistent and cancelled false and active true, so that a bare
 * one needs little to be made and less to be let go. */
extern _Thread_local struct wm_spares {
	struct MPI_ABI_Request *first;
	int room;                       /* so many more may be kept; 0 until the thread's end is watched */
} wm_spares WM_HERE;

/* One that is active, with a reference to @comm (NULL: none). NULL: no memory. */
struct MPI_ABI_Request *wm_request_new(enum wm_what what, struct MPI_ABI_Comm *comm);
void wm_request_drop(struct MPI_ABI_Request *r);        /* over, or never posted: lets go of what it holds */

/* The same for one that is bare; done is for the caller to set. Who gives it more to hold makes it one that is not. */
static inline struct MPI_ABI_Request *wm_request_bare(enum wm_what what, struct MPI_ABI_Comm *comm)
{
	struct MPI_ABI_Request *r = wm_spares.first;

	if (WM_UNLIKELY(!r)) {
		r = wm_request_new(what, comm);
		if (r)
			r->bare = true;
		return r;
	}
	wm_spares.first = r->spare;
	wm_spares.room++;
	atomic_store_explicit(&r->obj.kind, WM_REQUEST, memory_order_relaxed);
	r->what = (uint8_t)what;
	r->bare = true;
	r->req = NULL;
	r->comm = comm;
	if (WM_UNLIKELY(comm != &wm_world))             /* which is always there */
		wm_object_get(&comm->obj);
	return r;
}

static inline void wm_request_drop_bare(struct MPI_ABI_Request *r)
{
	if (WM_UNLIKELY(r->comm != &wm_world || !wm_spares.room)) {
		wm_request_drop(r);
		return;
	}
	atomic_store_explicit(&r->obj.kind, 0, memory_order_relaxed);
	r->spare = wm_spares.first;
	wm_spares.first = r;
	wm_spares.room--;
}

static inline struct MPI_ABI_Request *wm_request(MPI_Request request)   /* NULL: MPI_REQUEST_NULL or none */
{
	return wm_object_is(request, WM_REQUEST) ? request : NULL;
}

/* Whether it is over by @until: 1 (done says how; again and again), 0, or weft's answer if it cannot be waited for. */
int wm_request_over(struct MPI_ABI_Request *r, weft_time until);
/* How it ended: MPI_SUCCESS or an error class, and the status. For a generalized one its query function says. */
int wm_request_ending(struct MPI_ABI_Request *r, MPI_Status *status);
/* After that: freed, or, if persistent, inactive. What the free function of a generalized one answered. */
int wm_request_release(MPI_Request *request);
/* The handle of a call: 1 active, 0 null or inactive, -1 no request. */
static inline int wm_request_active(MPI_Request request)
{
	if (request == MPI_REQUEST_NULL)
		return 0;
	return wm_object_is(request, WM_REQUEST) ? request->active : -1;
}

/* Posts what @r describes: comm, type, buf and so on are set. MPI_SUCCESS, or an error class that nobody was told of. */
int wm_send_start(struct MPI_ABI_Request *r);
int wm_recv_start(struct MPI_ABI_Request *r);

/* Likewise for a collective (icoll.c); the class of how it ended; and what its request owns. */
struct wm_icoll;
int wm_icoll_start(struct MPI_ABI_Request *r);
void wm_icoll_help(struct MPI_ABI_Request *r);          /* for who is going to wait for it: does it here if it was not begun */
int wm_icoll_class(const struct MPI_ABI_Request *r);
void wm_icoll_free(struct wm_icoll *ic);

/* What most messages are: one block of memory of a modest size, a rank there is, a tag. What is not goes through the checks below. */
static inline bool wm_is_plain(const void *buf, MPI_Count count, const struct MPI_ABI_Datatype *type, int rank, int tag, const struct MPI_ABI_Comm *c)
{
	return WM_LIKELY(c && type && type->plain && type->committed && (uint64_t)count <= INT32_MAX && (unsigned)rank < (unsigned)c->peers &&
			 tag >= 0 && (buf || !count));
}

/* The arguments of a transfer: 0 or an error class. */
static inline int wm_check_send(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
	const struct MPI_ABI_Comm *c = wm_comm(comm);

	if (WM_UNLIKELY(!c))
		return MPI_ERR_COMM;
	if (WM_UNLIKELY((unsigned)dest >= (unsigned)c->peers && dest != MPI_PROC_NULL))
		return MPI_ERR_RANK;
	if (WM_UNLIKELY(tag < 0))
		return MPI_ERR_TAG;
	return wm_check_data(buf, count, wm_type(datatype));
}

static inline int wm_check_recv(const void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm)
{
	const struct MPI_ABI_Comm *c = wm_comm(comm);

	if (WM_UNLIKELY(!c))
		return MPI_ERR_COMM;
	if (WM_UNLIKELY((unsigned)source >= (unsigned)c->peers && source != MPI_PROC_NULL && source != MPI_ANY_SOURCE))
		return MPI_ERR_RANK;
	if (WM_UNLIKELY(tag < 0 && tag != MPI_ANY_TAG))
		return MPI_ERR_TAG;
	return wm_check_data(buf, count, wm_type(datatype));
}

int wm_refuse(MPI_Comm comm, const char *function, int code, MPI_Count count, int rank, int tag) __attribute__((cold));      /* raises it */

/* A request with the arguments in it, not posted; the type is referenced. NULL: no memory. */
struct MPI_ABI_Request *wm_described(enum wm_what what, const void *buf, MPI_Count count, MPI_Datatype datatype, int rank, int tag,
				     MPI_Comm comm, enum wm_mode mode);
/* Makes it persistent and gives it to the user. NULL: raises that there is no memory. */
int wm_keep(const char *function, struct MPI_ABI_Request *r, MPI_Comm comm, MPI_Request *request);

/* Whom and what a receive or a probe wants, for weft; put into @op. The tags of the layer's own messages are beyond 32 bits: no
 * wildcard of the user's sees them. */
static inline weft_id wm_source(int source)
{
	return source == MPI_ANY_SOURCE ? WEFT_ANY : weft_at((uint32_t)source);
}

static inline uint64_t wm_tag_wanted(int tag)
{
	return tag == MPI_ANY_TAG ? 0 : (uint64_t)tag;
}

static inline uint64_t wm_tag_ignored(int tag)
{
	return tag == MPI_ANY_TAG ? UINT32_MAX : 0;
}

static inline void wm_want(struct weft_op *op, int source, int tag)
{
	op->peer = wm_source(source);
	op->tag = wm_tag_wanted(tag);
	op->ignore = wm_tag_ignored(tag);
}

/* A buffered send: MPI_SUCCESS, or an error class. */
int wm_bsend(struct MPI_ABI_Comm *comm, const void *buf, MPI_Count count, struct MPI_ABI_Datatype *type, int dest, int tag);

void wm_send_leave(struct MPI_ABI_Comm *comm, struct weft_req *req WEFT_TAKES);  /* nobody waits for it; @comm stays until it is over */
void wm_orphans_end(void);              /* at the end: waits for those that nobody waits for, for a while */

#endif
