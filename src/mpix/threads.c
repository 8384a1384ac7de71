/* threads.c - a communicator of threads, from one of processes.
 *
 * The processes agree on how many threads come from where and on the contexts, and keep a communicator of their own for one more
 * exchange: that of the threads' ids, by whichever thread of a process joins last. The other threads of it wait here.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mpix.h"

struct MPIX_Weft_meeting {
	struct wm_object obj;

	/* constant once made */
	struct MPI_ABI_Comm *via;       /* of the processes that have threads here; owned */
	weft_ctx ctx[2];
	int *counts;                    /* threads, by rank in via; owned */
	int here, most, total;          /* of these mine, the largest, all */

	pthread_mutex_t lock;           /* the rest */
	pthread_cond_t changed;
	weft_id *mine;                  /* in the order of joining; with room for the largest; owned */
	weft_id *all;                   /* everybody's, when over; owned */
	int joined, gone;               /* of mine */
	bool over;                      /* with err, an error class */
	int err;
};

static struct MPIX_Weft_meeting *threads_new(int processes)
{
	struct MPIX_Weft_meeting *t = WX->object_new(WM_THREADS, sizeof(*t));

	if (!t)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
	t->counts = malloc((size_t)processes * sizeof(*t->counts));
	return t;
}

static void threads_free(struct MPIX_Weft_meeting *t)
{
	if (!t)
		return;
	if (t->via)
		WX->comm_put(t->via);
	free(t->counts);
	free(t->mine);
	free(t->all);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	WX->object_free(t);
}

/* What each process tells the others. */
struct share {
	int64_t threads;                /* -1: no memory */
	weft_ctx ctx[2];                /* the first one's count */
};

/* 0 or an error class, the same everywhere. */
static int shares_read(struct MPIX_Weft_meeting *t, const struct share *shares, int processes)
{
	int64_t total = 0, most = 0;

	for (int i = 0; i < processes; i++) {
		if (shares[i].threads < 0)
			return MPI_ERR_NO_MEM;
		total += shares[i].threads;
		most = shares[i].threads > most ? shares[i].threads : most;
	}
	if (total > INT_MAX)
		return MPI_ERR_ARG;
	for (int i = 0; i < processes; i++)
		t->counts[i] = (int)shares[i].threads;
	t->total = (int)total;
	t->most = (int)most;
	memcpy(t->ctx, shares[0].ctx, sizeof(t->ctx));
	return 0;
}

/* Takes @via, also where it fails. */
static int agree(struct MPI_ABI_Comm *via, int nthreads, struct MPIX_Weft_meeting **ret_threads)
{
	struct share *shares = calloc((size_t)via->size, sizeof(*shares)), mine = { .threads = nthreads };
	struct MPIX_Weft_meeting *t = threads_new(via->size);
	int r;

	if (!shares || !t || !t->counts)
		mine.threads = -1;
	mine.ctx[0] = weft_ctx_new();
	mine.ctx[1] = weft_ctx_new();
	r = shares ? WX->allgather(via, &mine, sizeof(mine), shares) : MPI_ERR_NO_MEM;
	if (!r)
		r = shares_read(t, shares, via->size);
	free(shares);
	if (!r) {
		t->here = nthreads;
		t->mine = calloc((size_t)t->most, sizeof(*t->mine));
		t->all = malloc((size_t)t->total * sizeof(*t->all));
		r = t->mine && t->all ? 0 : MPI_ERR_NO_MEM;
	}
	if (t)
		t->via = via;
	else
		WX->comm_put(via);
	if (r)
		threads_free(t);
	else
		*ret_threads = t;
	return r;
}

int MPIX_Weft_threads_create(MPI_Comm comm, int nthreads, MPIX_Weft_threads *threads)
{
	struct MPI_ABI_Comm *c = WX->comm(comm), *via = NULL;
	int r;

	if (!c)
		return wx_no_comm(__func__);
	if (c->inter || c->owner)
		return WX->error(c, __func__, MPI_ERR_COMM, c->inter ? "an intercommunicator" : "a communicator of threads");
	if (nthreads < 0 || !threads)
		return WX->error(c, __func__, MPI_ERR_ARG, nthreads < 0 ? "%d threads" : "NULL as place of the handle for %d threads", nthreads);
	*threads = MPIX_WEFT_THREADS_NULL;
	r = WX->split(c, __func__, nthreads ? 0 : MPI_UNDEFINED, 0, &via);
	if (r || !via)
		return r;
	r = agree(via, nthreads, threads);
	return r ? WX->error(c, __func__, r, "the processes could not agree on a communicator of threads") : MPI_SUCCESS;
}

/* Everybody's ids, from those of each process. 0 or an error class. */
static int exchange(struct MPIX_Weft_meeting *t)
{
	weft_id *rows = malloc((size_t)t->via->size * (size_t)t->most * sizeof(*rows)), *next = t->all;
	int r = rows ? WX->allgather(t->via, t->mine, (size_t)t->most * sizeof(*rows), rows) : MPI_ERR_NO_MEM;

	for (int i = 0; i < t->via->size && !r; i++) {
		memcpy(next, rows + (size_t)i * (size_t)t->most, (size_t)t->counts[i] * sizeof(*rows));
		next += t->counts[i];
	}
	free(rows);
	return r;
}

/* Whether @me may join and has. */
static bool join_locked(struct MPIX_Weft_meeting *t, weft_id me)
{
	if (t->joined == t->here)
		return false;
	for (int i = 0; i < t->joined; i++)
		if (t->mine[i] == me)
			return false;
	t->mine[t->joined++] = me;
	return true;
}

/* Until the ids are there: 0 or an error class. */
static int meet(struct MPIX_Weft_meeting *t, bool last)
{
	int r = last ? exchange(t) : 0;

	pthread_mutex_lock(&t->lock);
	if (last) {
		t->err = r;
		t->over = true;
		pthread_cond_broadcast(&t->changed);
	}
	while (!t->over)
		pthread_cond_wait(&t->changed, &t->lock);
	r = t->err;
	pthread_mutex_unlock(&t->lock);
	return r;
}

static void leave(struct MPIX_Weft_meeting *t)
{
	bool last;

	pthread_mutex_lock(&t->lock);
	last = ++t->gone == t->here;
	pthread_mutex_unlock(&t->lock);
	if (last)
		threads_free(t);
}

int MPIX_Weft_threads_join(MPIX_Weft_threads threads, MPI_Comm *newcomm)
{
	struct MPIX_Weft_meeting *t = wm_object_is(threads, WM_THREADS) ? threads : NULL;
	weft_id me = weft_self();
	bool in, last;
	int here, r;

	if (!t || !newcomm)
		return WX->error(NULL, __func__, MPI_ERR_ARG, t ? "NULL as place of the new communicator" : "nothing that can be joined");
	if (!me)
		return WX->error(NULL, __func__, MPI_ERR_OTHER, "%s", weft_last_error());
	pthread_mutex_lock(&t->lock);
	in = join_locked(t, me);
	here = t->here;
	last = t->joined == here;
	pthread_mutex_unlock(&t->lock);
	if (!in)
		return WX->error(NULL, __func__, MPI_ERR_ARG, "this thread has joined, or all %d have", here);
	*newcomm = MPI_COMM_NULL;
	r = meet(t, last);
	if (!r)
		r = wx_open(t->via, t->all, t->total, t->ctx, newcomm);
	leave(t);
	return r ? WX->error(NULL, __func__, r, "the threads could not come together") : MPI_SUCCESS;
}
