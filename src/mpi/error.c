/* error.c - what becomes of an error: the handler of the communicator it happened on is called.
 *
 * A handler that nobody set is NULL and fatal. An error on no communicator at all is MPI_COMM_SELF's; programs older
 * than MPI 4 set only MPI_COMM_WORLD's handler for those, so that one counts while MPI_COMM_SELF's was never set.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inner.h"

#define WORDS 400       /* of one error, without who and where */

static struct MPI_ABI_Errhandler fatal = { .what = WM_FATAL }, ends_job = { .what = WM_ABORT }, returns = { .what = WM_RETURN };

struct MPI_ABI_Errhandler *wm_errhandler(MPI_Errhandler errhandler)
{
	if (errhandler == MPI_ERRORS_ARE_FATAL)
		return &fatal;
	if (errhandler == MPI_ERRORS_ABORT)
		return &ends_job;
	if (errhandler == MPI_ERRORS_RETURN)
		return &returns;
	return wm_object_is(errhandler, WM_ERRHANDLER) ? errhandler : NULL;
}

static MPI_Errhandler handle_of(struct MPI_ABI_Errhandler *h)
{
	if (!h || h == &fatal)
		return MPI_ERRORS_ARE_FATAL;
	if (h == &ends_job)
		return MPI_ERRORS_ABORT;
	return h == &returns ? MPI_ERRORS_RETURN : h;
}

static bool is_made(const struct MPI_ABI_Errhandler *h)
{
	return h && h != &fatal && h != &ends_job && h != &returns;
}

void wm_errhandler_put(struct MPI_ABI_Errhandler *errhandler)
{
	if (is_made(errhandler) && wm_object_put(&errhandler->obj))
		wm_object_free(errhandler);
}

/* The lock keeps the handler there until the reference is counted. */
struct MPI_ABI_Errhandler *wm_errhandler_get(struct MPI_ABI_Comm *comm)
{
	struct MPI_ABI_Errhandler *h;

	pthread_mutex_lock(&comm->lock);
	h = atomic_load_explicit(&comm->errhandler, memory_order_relaxed);
	if (is_made(h))
		wm_object_get(&h->obj);
	pthread_mutex_unlock(&comm->lock);
	return h;
}

/* Raising */

/* "PMPI_Send_c" is MPI_Send to the program. */
static void name_of(const char *function, char *ret_name, size_t n)
{
	size_t len;

	if (!strncmp(function, "PMPI_", 5))
		function++;
	len = strlen(function);
	if (len > 2 && !strcmp(function + len - 2, "_c"))
		len -= 2;
	snprintf(ret_name, n, "%.*s", (int)len, function);
}

/* One line, in one piece also when many ranks write theirs. Does not return. */
static void end_job(const char *function, int code, const char *words)
{
	char line[WORDS + 200], who[40] = "", class[MPI_MAX_ERROR_STRING];
	int n;

	if (wm_world.talk)
		snprintf(who, sizeof(who), "rank %d of %d: ", wm_world.rank, wm_world.size);
	n = snprintf(line, sizeof(line), "weft mpi: %s%s: %s (%s)\n", who, function, words,
		     wm_error_name(code, class, sizeof(class)));
	fwrite(line, 1, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1, stderr);
	fflush(stderr);
	if (wm_alive())
		PMPI_Abort(MPI_COMM_WORLD, code);
	exit(1);
}

/* The handler of @comm, NULL: of the communicator that stands for none; and its handle. */
static struct MPI_ABI_Errhandler *handler_of(struct MPI_ABI_Comm *comm, MPI_Comm *ret_comm)
{
	struct MPI_ABI_Errhandler *h;

	if (!comm) {
		comm = &wm_self;
		if (!atomic_load_explicit(&wm_self.errhandler, memory_order_relaxed))
			comm = &wm_world;
	}
	h = wm_errhandler_get(comm);
	*ret_comm = wm_comm_handle(comm);
	return h ? h : &fatal;
}

static int raise_error(struct MPI_ABI_Comm *comm, const char *function, int code, const char *words)
{
	char name[64];
	MPI_Comm handle;
	struct MPI_ABI_Errhandler *h = handler_of(comm, &handle);

	name_of(function, name, sizeof(name));
	weft_fail(-EINVAL, "%s: %s", name, words);
	if (h->what == WM_CALL)
		h->call(&handle, &code);
	else if (h->what != WM_RETURN)
		end_job(name, code, words);
	wm_errhandler_put(h);
	return code;
}

int wm_error(struct MPI_ABI_Comm *comm, const char *function, int code, const char *fmt, ...)
{
	char words[WORDS];
	int ended = 0;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	/* No communicator is there yet, or any more: that is the cause, whichever was named. */
	if (!comm && code == MPI_ERR_COMM && !wm_world.talk) {
		code = MPI_ERR_OTHER;
		PMPI_Finalized(&ended);
		snprintf(words, sizeof(words), "called %s", ended ? "after MPI_Finalize" : "before MPI_Init");
	}
	return raise_error(comm, function, code, words);
}

int wm_unsupported(MPI_Comm comm, const char *function)
{
	return raise_error(wm_comm(comm), function, MPI_ERR_UNSUPPORTED_OPERATION, "not there yet in weft's MPI");
}

int wm_class(int r)
{
	switch (r) {
	case -ENOMEM:
	case -ENOSPC:
	case -EMFILE:
		return MPI_ERR_NO_MEM;
	case -ENOBUFS:
		return MPI_ERR_BUFFER;
	case -EMSGSIZE:
		return MPI_ERR_TRUNCATE;
	case -ESRCH:
	case -ECONNRESET:
		return MPI_ERR_PROC_ABORTED;
	case -EINVAL:
		return MPI_ERR_ARG;
	case -EOPNOTSUPP:
		return MPI_ERR_UNSUPPORTED_OPERATION;
	case -EPROTO:
	case -EBADMSG:
	case -EEXIST:
	case -ESTALE:
		return MPI_ERR_INTERN;
	default:
		return r < 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
	}
}

/* Not weft_last_error: where @r is how an operation ended, that may speak of another. */
int wm_weft_error(struct MPI_ABI_Comm *comm, const char *function, int r)
{
	return raise_error(comm, function, wm_class(r), weft_strerror(r));
}

/* Handlers */

static int errhandler_new(const char *function, MPI_Comm_errhandler_function *call, MPI_Errhandler *errhandler)
{
	struct MPI_ABI_Errhandler *h;

	if (!call || !errhandler)
		return wm_error(NULL, function, MPI_ERR_ARG, "NULL as %s", call ? "place of the handler" : "function");
	h = wm_object_new(WM_ERRHANDLER, sizeof(*h));
	if (!h)
		return wm_error(NULL, function, MPI_ERR_NO_MEM, "no memory for an error handler");
	h->what = WM_CALL;
	h->call = call;
	*errhandler = h;
	return MPI_SUCCESS;
}

int PMPI_Comm_create_errhandler(MPI_Comm_errhandler_function *comm_errhandler_fn, MPI_Errhandler *errhandler)
{
	return errhandler_new(__func__, comm_errhandler_fn, errhandler);
}
MPI_DONE(Comm_create_errhandler);

int PMPI_Errhandler_free(MPI_Errhandler *errhandler)
{
	struct MPI_ABI_Errhandler *h = errhandler ? wm_errhandler(*errhandler) : NULL;

	if (!h)
		return wm_error(NULL, __func__, MPI_ERR_ERRHANDLER, "not an error handler");
	wm_errhandler_put(h);
	*errhandler = MPI_ERRHANDLER_NULL;
	return MPI_SUCCESS;
}
MPI_DONE(Errhandler_free);

int PMPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);
	struct MPI_ABI_Errhandler *h = wm_errhandler(errhandler), *old;

	if (!c)
		return wm_error(NULL, __func__, MPI_ERR_COMM, "not a communicator");
	if (!h)
		return wm_error(c, __func__, MPI_ERR_ERRHANDLER, "not an error handler");
	if (is_made(h))
		wm_object_get(&h->obj);
	pthread_mutex_lock(&c->lock);
	old = atomic_exchange_explicit(&c->errhandler, h, memory_order_relaxed);
	pthread_mutex_unlock(&c->lock);
	wm_errhandler_put(old);
	return MPI_SUCCESS;
}
MPI_DONE(Comm_set_errhandler);

int PMPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *errhandler)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);

	if (!c)
		return wm_error(NULL, __func__, MPI_ERR_COMM, "not a communicator");
	if (!errhandler)
		return wm_error(c, __func__, MPI_ERR_ARG, "NULL as place of the handler");
	*errhandler = handle_of(wm_errhandler_get(c));
	return MPI_SUCCESS;
}
MPI_DONE(Comm_get_errhandler);

int PMPI_Comm_call_errhandler(MPI_Comm comm, int errorcode)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);

	if (!c)
		return wm_error(NULL, __func__, MPI_ERR_COMM, "not a communicator");
	wm_error(c, __func__, errorcode, "called by the program");
	return MPI_SUCCESS;
}
MPI_DONE(Comm_call_errhandler);
