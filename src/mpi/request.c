/* request.c - the life of a request: made, over, let go; freed early, started again, cancelled. Waiting is wait.c.
 *
 * Every message of an immediate call takes one, so each thread keeps a few of its own. One that is freed while weft still
 * works for it becomes an orphan: it keeps the layout, the type and the communicator until weft is done, which whoever frees
 * the next ones, or MPI_Finalize, sees to. So does a buffered send of which weft has the bytes and no receiver yet.
 */
#include "request.h"

#include <errno.h>
#include <stdlib.h>

#define SPARES 64                       /* of a thread; more go to the pool of all (object.c) */
#define ORPHANS_WAIT (10 * WEFT_S)
#define ORPHANS_LOOK 4                  /* looked at with each new one, in turn: there may be thousands that take long */

struct MPI_ABI_Request wm_sent = {
	.obj = { .kind = WM_REQUEST, .refs = 1 },
	.what = WM_SEND,
	.active = true,
	.done = { .index = WEFT_NOBODY },
};

_Thread_local struct wm_spares wm_spares;
static _Thread_local bool watched;      /* the key below is set */

static pthread_key_t spares_key;
static pthread_once_t spares_once = PTHREAD_ONCE_INIT;

static void spares_give_up(void *unused)
{
	(void)unused;
	while (wm_spares.first) {
		struct MPI_ABI_Request *r = wm_spares.first;

		wm_spares.first = r->spare;
		atomic_store_explicit(&r->obj.kind, WM_REQUEST, memory_order_relaxed);
		wm_object_free(r);
	}
	wm_spares.room = 0;
	watched = false;
}

static void spares_key_make(void)
{
	pthread_key_create(&spares_key, spares_give_up);
}

struct MPI_ABI_Request *wm_request_new(enum wm_what what, struct MPI_ABI_Comm *comm)
{
	struct MPI_ABI_Request *r = wm_spares.first;

	if (WM_LIKELY(r != NULL)) {
		wm_spares.first = r->spare;
		wm_spares.room++;
		atomic_store_explicit(&r->obj.kind, WM_REQUEST, memory_order_relaxed);
	} else {
		r = wm_object_new(WM_REQUEST, sizeof(*r));
		if (!r)
			return NULL;
		r->active = true;
	}
	r->what = (uint8_t)what;
	r->bare = false;
	r->req = NULL;
	r->comm = comm;
	r->done.err = 0;
	r->done.index = WEFT_NOBODY;
	if (WM_UNLIKELY(comm && comm != &wm_world))     /* which is always there */
		wm_object_get(&comm->obj);
	return r;
}

/* Back to what a spare is. */
static void let_go(struct MPI_ABI_Request *r)
{
	if (r->with)
		wm_request_drop(r->with);
	if (r->copy) {
		if (r->what == WM_COLL)
			wm_icoll_free(r->copy);
		else
			free(r->copy);
	}
	if (r->type)
		wm_type_put(r->type);
	r->with = NULL;
	r->copy = NULL;
	r->type = NULL;
	r->persistent = r->cancelled = false;
	r->active = true;
}

void wm_request_drop(struct MPI_ABI_Request *r)
{
	if (!r->bare)
		let_go(r);
	if (WM_UNLIKELY(r->comm && r->comm != &wm_world))
		wm_comm_put(r->comm);
	if (WM_UNLIKELY(!watched)) {
		pthread_once(&spares_once, spares_key_make);
		pthread_setspecific(spares_key, &wm_spares);
		watched = true;
		wm_spares.room = SPARES;
	}
	if (WM_UNLIKELY(!wm_spares.room)) {
		wm_object_free(r);
		return;
	}
	atomic_store_explicit(&r->obj.kind, 0, memory_order_relaxed);
	r->spare = wm_spares.first;
	wm_spares.first = r;
	wm_spares.room--;
}

/* Its end */

int wm_request_over(struct MPI_ABI_Request *r, weft_time until)
{
	int err;

	if (r->req) {
		if (r->what == WM_COLL && until == WEFT_FOREVER)
			wm_icoll_help(r);
		err = weft_req_wait(&r->req, until, &r->done);
		if (r->req)
			return err == -EAGAIN || err == -ETIMEDOUT ? 0 : err;
	}
	return r->with ? wm_request_over(r->with, until) : 1;
}

/* A collective has no sender and no length. */
static int coll_ending(const struct MPI_ABI_Request *r, MPI_Status *status)
{
	int error = status ? status->MPI_ERROR : 0;

	wm_status_empty(status);
	if (status)
		status->MPI_ERROR = error;
	return wm_icoll_class(r);
}

/* The generalized request's own words. Its free function comes when the object goes. */
static int user_ending(struct MPI_ABI_Request *r, MPI_Status *status)
{
	MPI_Status own;
	int err;

	wm_status_empty(&own);
	err = r->user.query ? r->user.query(r->user.state, &own) : MPI_SUCCESS;
	if (status) {
		own.MPI_ERROR = status->MPI_ERROR;
		*status = own;
	}
	return err;
}

int wm_request_ending(struct MPI_ABI_Request *r, MPI_Status *status)
{
	if (r->what >= WM_USER)
		return r->what == WM_USER ? user_ending(r, status) : coll_ending(r, status);
	if (r == &wm_sent) {
		int error = status ? status->MPI_ERROR : 0;

		wm_status_empty(status);
		if (status)
			status->MPI_ERROR = error;
		return MPI_SUCCESS;
	}
	wm_status_set(status, &r->done);
	if (r->done.err == -ECANCELED && r->cancelled)
		return MPI_SUCCESS;
	if (r->done.err)
		return wm_class(r->done.err);
	return r->with ? wm_class(r->with->done.err) : MPI_SUCCESS;
}

int wm_request_release(MPI_Request *request)
{
	struct MPI_ABI_Request *r = *request;
	int err = MPI_SUCCESS;

	if (r->persistent) {
		r->active = false;
		return MPI_SUCCESS;
	}
	*request = MPI_REQUEST_NULL;
	if (r == &wm_sent)
		return MPI_SUCCESS;
	if (r->what == WM_USER && r->user.free)
		err = r->user.free(r->user.state);
	wm_request_drop(r);
	return err;
}

/* Freed early */

static struct {
	pthread_mutex_t lock;
	struct MPI_ABI_Request *first, **last;
	size_t count;
} orphans = { .lock = PTHREAD_MUTEX_INITIALIZER, .last = &orphans.first };

static void orphan_add(struct MPI_ABI_Request *r)
{
	r->next = NULL;
	pthread_mutex_lock(&orphans.lock);
	*orphans.last = r;
	orphans.last = &r->next;
	orphans.count++;
	pthread_mutex_unlock(&orphans.lock);
}

/* The one that was not looked at for longest; NULL: none. */
static struct MPI_ABI_Request *orphan_take(void)
{
	struct MPI_ABI_Request *r;

	pthread_mutex_lock(&orphans.lock);
	r = orphans.first;
	if (r) {
		orphans.first = r->next;
		orphans.count--;
	}
	if (!orphans.first)
		orphans.last = &orphans.first;
	pthread_mutex_unlock(&orphans.lock);
	return r;
}

/* Lets go of those that are over, of so many. */
static void orphans_look(size_t most, weft_time until)
{
	struct MPI_ABI_Request *r;

	for (; most && (r = orphan_take()); most--) {
		if (wm_request_over(r, until) == 1) {
			r->persistent = false;
			wm_request_release(&r);
		} else {
			orphan_add(r);
		}
	}
}

void wm_orphans_end(void)
{
	size_t all;

	pthread_mutex_lock(&orphans.lock);
	all = orphans.count;
	pthread_mutex_unlock(&orphans.lock);
	orphans_look(all, weft_in(ORPHANS_WAIT));
}

void wm_send_leave(struct MPI_ABI_Comm *comm, struct weft_req *req)
{
	struct MPI_ABI_Request *r = wm_request_new(WM_SEND, comm);

	if (!r) {
		weft_req_free(req);
		return;
	}
	r->req = req;
	orphan_add(r);
	orphans_look(ORPHANS_LOOK, WEFT_NOW);
}

static pthread_mutex_t users = PTHREAD_MUTEX_INITIALIZER;       /* which of the two came second */

/* A generalized one that was freed and has ended. */
static int user_let_go(const char *function, struct MPI_ABI_Request *r)
{
	int err;

	wm_request_over(r, WEFT_FOREVER);       /* it is, or another thread is about to say so */
	err = wm_request_release(&r);
	return err ? wm_error(NULL, function, err, "the free function of a request answered %d", err) : MPI_SUCCESS;
}

static int user_free(const char *function, struct MPI_ABI_Request *r)
{
	bool ended;

	pthread_mutex_lock(&users);
	ended = r->user.ended;
	r->user.freed = true;
	pthread_mutex_unlock(&users);
	return ended ? user_let_go(function, r) : MPI_SUCCESS;
}

int PMPI_Request_free(MPI_Request *request)
{
	struct MPI_ABI_Request *r = request ? wm_request(*request) : NULL;

	if (!r)
		return wm_error(NULL, __func__, MPI_ERR_REQUEST, "not a request");
	if (r->what == WM_COLL && r->active)
		return wm_error(r->comm, __func__, MPI_ERR_REQUEST, "a collective that is under way");
	*request = MPI_REQUEST_NULL;
	if (r == &wm_sent)
		return MPI_SUCCESS;
	if (!r->active) {
		wm_request_drop(r);
		return MPI_SUCCESS;
	}
	if (r->what == WM_USER)
		return user_free(__func__, r);
	orphan_add(r);
	orphans_look(ORPHANS_LOOK, WEFT_NOW);
	return MPI_SUCCESS;
}
MPI_DONE(Request_free);

int PMPI_Cancel(MPI_Request *request)
{
	struct MPI_ABI_Request *r = request ? wm_request(*request) : NULL;

	if (!r || !r->active)
		return wm_error(r ? r->comm : NULL, __func__, MPI_ERR_REQUEST, r ? "an inactive request" : "not a request");
	if (r == &wm_sent)
		return MPI_SUCCESS;     /* too late: the status says so */
	if (r->what == WM_COLL)
		return wm_error(r->comm, __func__, MPI_ERR_REQUEST, "a collective is not cancelled");
	if (r->what == WM_USER) {
		int over = r->req && weft_req_peek(r->req, NULL) != WEFT_DONE ? 0 : 1;

		return r->user.cancel ? r->user.cancel(r->user.state, over) : MPI_SUCCESS;
	}
	r->bare = false;
	r->cancelled = true;
	if (r->req)
		weft_req_cancel(r->req);
	if (r->with && r->with->req)
		weft_req_cancel(r->with->req);
	return MPI_SUCCESS;
}
MPI_DONE(Cancel);

/* Started again and again */

int PMPI_Start(MPI_Request *request)
{
	struct MPI_ABI_Request *r = request ? wm_request(*request) : NULL;
	int err;

	if (!r || !r->persistent || r->active)
		return wm_error(r ? r->comm : NULL, __func__, MPI_ERR_REQUEST, "not a persistent request, or active");
	if (r->what == WM_SEND)
		err = wm_send_start(r);
	else
		err = r->what == WM_RECV ? wm_recv_start(r) : wm_icoll_start(r);
	return err ? wm_error(r->comm, __func__, err, "%s", weft_last_error()) : MPI_SUCCESS;
}
MPI_DONE(Start);

int PMPI_Startall(int count, MPI_Request array_of_requests[])
{
	int err = MPI_SUCCESS;

	if (count < 0 || (count && !array_of_requests))
		return wm_error(NULL, __func__, count < 0 ? MPI_ERR_COUNT : MPI_ERR_ARG, "%d requests", count);
	for (int i = 0; i < count && !err; i++)
		err = PMPI_Start(&array_of_requests[i]);
	return err;
}
MPI_DONE(Startall);

/* Requests that the program ends */

int PMPI_Grequest_start(MPI_Grequest_query_function *query_fn, MPI_Grequest_free_function *free_fn, MPI_Grequest_cancel_function *cancel_fn,
			void *extra_state, MPI_Request *request)
{
	struct MPI_ABI_Request *r;
	int err;

	if (!request)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "no place for the request");
	r = wm_request_new(WM_USER, NULL);
	if (!r)
		return wm_error(NULL, __func__, MPI_ERR_NO_MEM, "no memory for a request");
	r->user = (struct wm_user){ .query = query_fn, .free = free_fn, .cancel = cancel_fn, .state = extra_state };
	err = weft_req_new(NULL, NULL, NULL, &r->req);
	if (err < 0) {
		wm_request_drop(r);
		return wm_weft_error(NULL, __func__, err);
	}
	*request = r;
	return MPI_SUCCESS;
}
MPI_DONE(Grequest_start);

int PMPI_Grequest_complete(MPI_Request request)
{
	struct MPI_ABI_Request *r = wm_request(request);
	bool freed;

	if (!r || r->what != WM_USER || !r->req)
		return wm_error(NULL, __func__, MPI_ERR_REQUEST, "not a generalized request that is under way");
	pthread_mutex_lock(&users);
	freed = r->user.freed;
	r->user.ended = true;
	pthread_mutex_unlock(&users);
	weft_req_complete(r->req, NULL);        /* unless it was freed it may be gone now */
	return freed ? user_let_go(__func__, r) : MPI_SUCCESS;
}
MPI_DONE(Grequest_complete);
