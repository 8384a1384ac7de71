/* wait.c - waiting for requests and testing them: one, any, some, all. */
#include "request.h"

#include <stdlib.h>

#define LOT 64                          /* requests looked at without allocating */

/* One */

static int none(const char *function)
{
	return wm_error(NULL, function, MPI_ERR_REQUEST, "not a request");
}

/* Over: its status, its error raised, the handle released. */
static int end_one(const char *function, MPI_Request *request, MPI_Status *status)
{
	struct MPI_ABI_Request *r = *request;
	int err = wm_request_ending(r, status), freed;

	if (WM_UNLIKELY(err))
		err = wm_error(r->comm, function, err, "%s", weft_strerror(r->done.err));
	freed = wm_request_release(request);
	if (WM_UNLIKELY(freed && !err))
		err = wm_error(NULL, function, freed, "the free function of a request answered %d", freed);
	return err;
}

int PMPI_Wait(MPI_Request *request, MPI_Status *status)
{
	int active = request ? wm_request_active(*request) : -1, r;

	if (WM_UNLIKELY(active < 0))
		return none(__func__);
	if (!active) {
		wm_status_empty(status);
		return MPI_SUCCESS;
	}
	r = wm_request_over(*request, WEFT_FOREVER);
	if (WM_UNLIKELY(r < 0))
		return wm_weft_error((*request)->comm, __func__, r);
	return end_one(__func__, request, status);
}
MPI_DONE(Wait);

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	int active = request && flag ? wm_request_active(*request) : -1, r;

	if (WM_UNLIKELY(active < 0))
		return none(__func__);
	if (!active) {
		*flag = 1;
		wm_status_empty(status);
		return MPI_SUCCESS;
	}
	r = wm_request_over(*request, WEFT_NOW);
	if (WM_UNLIKELY(r < 0))
		return wm_weft_error((*request)->comm, __func__, r);
	*flag = r;
	return r ? end_one(__func__, request, status) : MPI_SUCCESS;
}
MPI_DONE(Test);

/* Several. Being over is a state of the request, so that all of these first bring it about and then look. */

static int check_several(const char *function, int count, const MPI_Request requests[], const void *out)
{
	if (count < 0 || (count && !requests) || !out)
		return wm_error(NULL, function, count < 0 ? MPI_ERR_COUNT : MPI_ERR_ARG, "%d requests", count);
	for (int i = 0; i < count; i++)
		if (WM_UNLIKELY(wm_request_active(requests[i]) < 0))
			return wm_error(NULL, function, MPI_ERR_REQUEST, "number %d of %d is not a request", i, count);
	return MPI_SUCCESS;
}

/* Weft's view of the operations that are under way, and whose they are. */
struct lot {
	struct weft_req *few_reqs[LOT], **reqs;
	struct MPI_ABI_Request *few_owners[LOT], **owners;
	struct weft_status few_ends[LOT], *ends;
	int few_which[LOT], *which;
	int n;
	void *memory;                   /* of more than a few; NULL: none */
};

static bool lot_room(struct lot *lot, size_t n)
{
	char *m = NULL;

	if (n > LOT) {
		m = malloc(n * (sizeof(*lot->ends) + sizeof(*lot->reqs) + sizeof(*lot->owners) + sizeof(*lot->which)));
		if (!m)
			return false;
	}
	lot->memory = m;
	lot->ends = m ? (void *)m : lot->few_ends;
	lot->reqs = m ? (void *)(lot->ends + n) : lot->few_reqs;
	lot->owners = m ? (void *)(lot->reqs + n) : lot->few_owners;
	lot->which = m ? (void *)(lot->owners + n) : lot->few_which;
	return true;
}

static bool lot_fill(struct lot *lot, int count, MPI_Request requests[])
{
	size_t most = 0;

	for (int i = 0; i < count; i++)
		for (struct MPI_ABI_Request *p = wm_request_active(requests[i]) > 0 ? requests[i] : NULL; p; p = p->with)
			most += p->req != NULL;
	if (!lot_room(lot, most))
		return false;
	lot->n = 0;
	for (int i = 0; i < count; i++)
		for (struct MPI_ABI_Request *p = wm_request_active(requests[i]) > 0 ? requests[i] : NULL; p; p = p->with)
			if (p->req) {
				lot->owners[lot->n] = p;
				lot->reqs[lot->n++] = p->req;
			}
	return true;
}

/* Takes what has ended of all these, waiting for the first until @until: 0 or an error class. */
static int progress(int count, MPI_Request requests[], weft_time until)
{
	struct lot lot;
	int n;

	if (!lot_fill(&lot, count, requests))
		return MPI_ERR_NO_MEM;
	n = weft_req_wait_some(lot.reqs, lot.n, until == WEFT_NOW ? 0 : 1, lot.n, until, lot.which, lot.ends);
	for (int k = 0; k < n; k++) {
		lot.owners[lot.which[k]]->req = NULL;
		lot.owners[lot.which[k]]->done = lot.ends[k];
	}
	free(lot.memory);
	return wm_class(n);
}

static bool is_over(const struct MPI_ABI_Request *r)
{
	for (; r; r = r->with)
		if (r->req)
			return false;
	return true;
}

/* How many are active, and of these over. */
static int count_over(int count, const MPI_Request requests[], int *ret_active)
{
	int over = 0;

	*ret_active = 0;
	for (int i = 0; i < count; i++)
		if (wm_request_active(requests[i]) > 0) {
			++*ret_active;
			over += is_over(requests[i]);
		}
	return over;
}

/* Brings about that one is over, if one is active. How many are, at least 1 unless @until is now; or minus an error class. */
static int some_over(int count, MPI_Request requests[], weft_time until, int *ret_active)
{
	int over = count_over(count, requests, ret_active), err;

	while (*ret_active && !over) {
		err = progress(count, requests, until);
		if (err)
			return -err;
		over = count_over(count, requests, ret_active);
		if (until == WEFT_NOW)
			break;
	}
	return over;
}

/* The same of all that have ended: one that is over at each call must not keep the others from being seen, ever. */
static int every_over(int count, MPI_Request requests[], weft_time until, int *ret_active)
{
	int over = count_over(count, requests, ret_active), err;

	if (!over || over == *ret_active)
		return over ? over : some_over(count, requests, until, ret_active);
	err = progress(count, requests, WEFT_NOW);
	return err ? -err : count_over(count, requests, ret_active);
}

/* Any */

static int any(const char *function, int count, MPI_Request requests[], weft_time until, int *ret_index, int *ret_flag, MPI_Status *status)
{
	int err = check_several(function, count, requests, ret_index && ret_flag ? ret_index : NULL), active, over;

	if (err)
		return err;
	over = some_over(count, requests, until, &active);
	if (over < 0)
		return wm_error(NULL, function, -over, "%s", weft_last_error());
	*ret_index = MPI_UNDEFINED;
	*ret_flag = over || !active;
	if (!active)
		wm_status_empty(status);
	for (int i = 0; i < count && over; i++)
		if (wm_request_active(requests[i]) > 0 && is_over(requests[i])) {
			*ret_index = i;
			return end_one(function, &requests[i], status);
		}
	return MPI_SUCCESS;
}

int PMPI_Waitany(int count, MPI_Request array_of_requests[], int *indx, MPI_Status *status)
{
	int flag;

	return any(__func__, count, array_of_requests, WEFT_FOREVER, indx, &flag, status);
}
MPI_DONE(Waitany);

int PMPI_Testany(int count, MPI_Request array_of_requests[], int *indx, int *flag, MPI_Status *status)
{
	return any(__func__, count, array_of_requests, WEFT_NOW, indx, flag, status);
}
MPI_DONE(Testany);

/* Some and all: errors go into the statuses, and one answer says that there are some. */

struct ends {
	MPI_Status *statuses;           /* or NULL */
	int n;                          /* so far */
	struct MPI_ABI_Comm *comm;      /* of the first that failed; referenced */
	bool failed;
};

static void end_next(struct ends *e, MPI_Request *request)
{
	MPI_Status *status = e->statuses ? &e->statuses[e->n] : NULL;
	int active = wm_request_active(*request) > 0, err = MPI_SUCCESS, freed;
	struct MPI_ABI_Comm *comm = active ? (*request)->comm : NULL;

	if (active)
		err = wm_request_ending(*request, status);
	else
		wm_status_empty(status);
	if (active && (*request)->what == WM_USER) {    /* what its free function answers counts, too */
		freed = wm_request_release(request);
		err = err ? err : freed;
		active = 0;
	}
	if (WM_UNLIKELY(err) && !e->failed) {
		e->failed = true;
		e->comm = comm;
		if (e->comm)
			wm_object_get(&e->comm->obj);
		for (int k = 0; k < e->n && status; k++)
			e->statuses[k].MPI_ERROR = MPI_SUCCESS;
	}
	if (WM_UNLIKELY(e->failed) && status)
		status->MPI_ERROR = err;
	e->n++;
	if (active)
		wm_request_release(request);
}

static int ends_tell(const char *function, struct ends *e)
{
	int err;

	if (WM_LIKELY(!e->failed))
		return MPI_SUCCESS;
	err = wm_error(e->comm, function, MPI_ERR_IN_STATUS, "an operation failed: see the statuses");
	if (e->comm)
		wm_comm_put(e->comm);
	return err;
}

static int some(const char *function, int count, MPI_Request requests[], weft_time until, int *ret_count, int ret_which[],
		MPI_Status statuses[])
{
	struct ends e = { .statuses = statuses };
	int err = check_several(function, count, requests, ret_count && (ret_which || !count) ? ret_count : NULL), active, over;

	if (err)
		return err;
	over = every_over(count, requests, until, &active);
	if (over < 0)
		return wm_error(NULL, function, -over, "%s", weft_last_error());
	*ret_count = active ? over : MPI_UNDEFINED;
	for (int i = 0; i < count && e.n < over; i++)
		if (wm_request_active(requests[i]) > 0 && is_over(requests[i])) {
			ret_which[e.n] = i;
			end_next(&e, &requests[i]);
		}
	return ends_tell(function, &e);
}

int PMPI_Waitsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[], MPI_Status array_of_statuses[])
{
	return some(__func__, incount, array_of_requests, WEFT_FOREVER, outcount, array_of_indices, array_of_statuses);
}
MPI_DONE(Waitsome);

int PMPI_Testsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[], MPI_Status array_of_statuses[])
{
	return some(__func__, incount, array_of_requests, WEFT_NOW, outcount, array_of_indices, array_of_statuses);
}
MPI_DONE(Testsome);

/* Whether all are over by @until: 1, 0 or weft's answer. */
static int all_over(int count, MPI_Request requests[], weft_time until)
{
	for (int i = 0; i < count; i++)
		if (wm_request_active(requests[i]) > 0) {
			int r = wm_request_over(requests[i], until);

			if (r <= 0)
				return r;
		}
	return 1;
}

static int all(const char *function, int count, MPI_Request requests[], weft_time until, int *ret_flag, MPI_Status statuses[])
{
	struct ends e = { .statuses = statuses };
	int err = check_several(function, count, requests, ret_flag), r;

	if (err)
		return err;
	r = all_over(count, requests, until);
	if (r < 0)
		return wm_weft_error(NULL, function, r);
	*ret_flag = r;
	for (int i = 0; i < count && r; i++)
		end_next(&e, &requests[i]);
	return ends_tell(function, &e);
}

/* Whether nobody asks how it ended, and it has: without an error, and let go. */
static inline bool ended_bare(MPI_Request *request)
{
	struct MPI_ABI_Request *r = *request;

	if (r != &wm_sent) {
		if (!wm_object_is(r, WM_REQUEST) || !r->bare)
			return false;
		if ((r->req && weft_req_wait(&r->req, WEFT_FOREVER, &r->done) < 0) || r->done.err)
			return false;
		wm_request_drop_bare(r);
	}
	*request = MPI_REQUEST_NULL;
	return true;
}

/* One after the other, each ended as soon as it is over: most are by then. */
int PMPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[])
{
	struct ends e = { .statuses = array_of_statuses };
	int err = MPI_SUCCESS;

	if (WM_UNLIKELY(count < 0 || (count && !array_of_requests)))
		return wm_error(NULL, __func__, count < 0 ? MPI_ERR_COUNT : MPI_ERR_ARG, "%d requests", count);
	for (int i = 0; i < count; i++) {
		MPI_Request r = array_of_requests[i];
		int active;

		if (WM_LIKELY(!array_of_statuses && ended_bare(&array_of_requests[i])))
			continue;
		active = wm_request_active(r);
		if (WM_UNLIKELY(active < 0)) {
			err = wm_error(NULL, __func__, MPI_ERR_REQUEST, "number %d of %d is not a request", i, count);
			break;
		}
		if (active && WM_UNLIKELY((active = wm_request_over(r, WEFT_FOREVER)) < 0)) {
			err = wm_weft_error(r->comm, __func__, active);
			break;
		}
		end_next(&e, &array_of_requests[i]);
	}
	return err ? err : ends_tell(__func__, &e);
}
MPI_DONE(Waitall);

int PMPI_Testall(int count, MPI_Request array_of_requests[], int *flag, MPI_Status array_of_statuses[])
{
	return all(__func__, count, array_of_requests, WEFT_NOW, flag, array_of_statuses);
}
MPI_DONE(Testall);

/* Looks only: the requests stay as they are. */

int PMPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	int active = flag ? wm_request_active(request) : -1, r;

	if (active < 0)
		return none(__func__);
	if (!active) {
		*flag = 1;
		wm_status_empty(status);
		return MPI_SUCCESS;
	}
	r = wm_request_over(request, WEFT_NOW);
	if (r < 0)
		return wm_weft_error(request->comm, __func__, r);
	*flag = r;
	if (r)
		wm_request_ending(request, status);
	return MPI_SUCCESS;
}
MPI_DONE(Request_get_status);

int PMPI_Request_get_status_all(int count, const MPI_Request array_of_requests[], int *flag, MPI_Status array_of_statuses[])
{
	int err = check_several(__func__, count, array_of_requests, flag);

	if (err)
		return err;
	*flag = 1;
	for (int i = 0; i < count && *flag; i++)
		if (wm_request_active(array_of_requests[i]) > 0)
			*flag = wm_request_over(array_of_requests[i], WEFT_NOW) == 1;
	for (int i = 0; i < count && *flag && array_of_statuses; i++)
		PMPI_Request_get_status(array_of_requests[i], flag, &array_of_statuses[i]);
	return MPI_SUCCESS;
}
MPI_DONE(Request_get_status_all);

int PMPI_Request_get_status_any(int count, const MPI_Request array_of_requests[], int *indx, int *flag, MPI_Status *status)
{
	int err = check_several(__func__, count, array_of_requests, indx && flag ? indx : NULL), active = 0;

	if (err)
		return err;
	*indx = MPI_UNDEFINED;
	for (int i = 0; i < count; i++)
		if (wm_request_active(array_of_requests[i]) > 0) {
			active = 1;
			if (wm_request_over(array_of_requests[i], WEFT_NOW) == 1) {
				*indx = i;
				return PMPI_Request_get_status(array_of_requests[i], flag, status);
			}
		}
	*flag = !active;
	if (!active)
		wm_status_empty(status);
	return MPI_SUCCESS;
}
MPI_DONE(Request_get_status_any);

int PMPI_Request_get_status_some(int incount, const MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
				 MPI_Status array_of_statuses[])
{
	int err = check_several(__func__, incount, array_of_requests, outcount), active = 0, n = 0, flag;

	if (err)
		return err;
	for (int i = 0; i < incount; i++)
		if (wm_request_active(array_of_requests[i]) > 0) {
			active = 1;
			if (wm_request_over(array_of_requests[i], WEFT_NOW) != 1)
				continue;
			array_of_indices[n] = i;
			PMPI_Request_get_status(array_of_requests[i], &flag, array_of_statuses ? &array_of_statuses[n] : NULL);
			n++;
		}
	*outcount = active ? n : MPI_UNDEFINED;
	return MPI_SUCCESS;
}
MPI_DONE(Request_get_status_some);
