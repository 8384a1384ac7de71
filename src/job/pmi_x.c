/* pmi_x.c - PMIx: libpmix, loaded at run time, and a clerk that waits in it.
 *
 * A call of libpmix comes back when it likes, or never: there is no deadline that every version and every launcher keeps. So a thread
 * of our own, the clerk, does the calls, one at a time, and the caller waits for the clerk as long as it wants to. A clerk that is late
 * is left alone with its desk: when it comes back it takes no further question, frees the desk, and ends.
 *
 *   caller: state = ASKED, signal ... waits for IDLE           clerk: waits for ASKED, calls, state = IDLE, signal
 *
 * libpmix is never unloaded: it has threads.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "job/pmi_space.h"
#include "job/pmi_x_abi.h"

const char *wf_pmix_library = "libpmix.so.2";

#define OLDEST_VERSION 3

#define SLOT(name, type) __typeof__(type) name;
#define ROW(name, type) { #name, offsetof(struct calls, name) },
struct calls {
	X_CALLS(SLOT)
};
static const struct {
	const char *name;
	size_t at;
} rows[] = { X_CALLS(ROW) };
#undef SLOT
#undef ROW

enum what { DO_INIT, DO_PUT, DO_FENCE, DO_GET, DO_CLOSE };

struct desk {
	pthread_mutex_t lock;           /* a leaf; everything below is under it, but the clerk reads the question and writes the answer while ASKED */
	pthread_cond_t turn;
	enum { IDLE, ASKED, LEFT } state;       /* LEFT: the caller has gone; the desk is the clerk's */
	/* the question */
	enum what what;
	uint32_t rank;
	char key[WF_SPACE_KEY + 8];
	/* the question of PUT, the answer of GET */
	char value[WF_SPACE_VALUE];
	/* the answer */
	int result;
	char words[192];
	uint32_t size;                  /* of INIT */
	struct x_proc self;
	/* the clerk's */
	struct calls lib;
};

/* The clerk's answer: words of its own, kept for the thread that asked. */
__attribute__((format(printf, 3, 4))) static void answer(struct desk *d, int result, const char *fmt, ...)
{
	va_list args;

	d->result = result;
	va_start(args, fmt);
	vsnprintf(d->words, sizeof(d->words), fmt, args);
	va_end(args);
}

static void answer_status(struct desk *d, const char *call, int status)
{
	const char *why = d->lib.PMIx_Error_string(status);

	answer(d, -EREMOTEIO, "%s: %.100s (%d)", call, why ? why : "?", status);
}

/* "OpenPMIx 4.2.2, ...": the first number in it. */
static int major_of(const char *version)
{
	while (*version && !(*version >= '0' && *version <= '9'))
		version++;
	return *version ? atoi(version) : 0;
}

static bool load(struct desk *d)
{
	void *so = dlopen(wf_pmix_library, RTLD_NOW | RTLD_LOCAL);

	if (!so) {
		answer(d, -ENOSYS, "the launcher speaks PMIx, and %s cannot be loaded", wf_pmix_library);
		return false;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *call = dlsym(so, rows[i].name);

		if (!call) {
			answer(d, -ENOSYS, "%s has no %s", wf_pmix_library, rows[i].name);
			return false;
		}
		memcpy((char *)&d->lib + rows[i].at, &call, sizeof(call));
	}
	if (major_of(d->lib.PMIx_Get_version()) < OLDEST_VERSION) {
		answer(d, -ENOSYS, "%s is older than PMIx %d", wf_pmix_library, OLDEST_VERSION);
		return false;
	}
	return true;
}

static struct x_info flag_info(const char *key)
{
	struct x_info info = { .value = { .type = X_BOOL, .data.flag = true } };

	strncpy(info.key, key, sizeof(info.key) - 1);
	return info;
}

/* What libpmix gives is one block and, of a string, one more. */
static void drop(struct x_value *v)
{
	if (v->type == X_STRING)
		free(v->data.string);
	free(v);
}

static void do_init(struct desk *d)
{
	struct x_proc all;
	struct x_value *v = NULL;
	int status = d->lib.PMIx_Init(&d->self, NULL, 0);

	if (status != X_SUCCESS) {
		answer_status(d, "PMIx_Init", status);
		return;
	}
	all = d->self;
	all.rank = X_WHOLE_JOB;
	status = d->lib.PMIx_Get(&all, X_JOB_SIZE, NULL, 0, &v);
	if (status != X_SUCCESS || !v) {
		answer_status(d, "PMIx_Get of the job's size", status);
		return;
	}
	d->size = v->type == X_UINT32 ? v->data.uint32 : 0;
	drop(v);
}

static void do_put(struct desk *d)
{
	struct x_value v = { .type = X_STRING, .data.string = d->value };      /* libpmix copies it */
	int status = d->lib.PMIx_Put(X_GLOBAL, d->key, &v);

	if (status != X_SUCCESS)
		answer_status(d, "PMIx_Put", status);
}

/* With the data itself, so that getting it asks nobody, least of all the dead. */
static void do_fence(struct desk *d)
{
	struct x_info collect = flag_info(X_COLLECT);
	struct x_proc all = d->self;
	int status = d->lib.PMIx_Commit();

	all.rank = X_WHOLE_JOB;
	if (status == X_SUCCESS)
		status = d->lib.PMIx_Fence(&all, 1, &collect, 1);
	if (status != X_SUCCESS)
		answer_status(d, "PMIx_Fence", status);
}

static void do_get(struct desk *d)
{
	struct x_info at_once = flag_info(X_IMMEDIATE);
	struct x_proc who = d->self;
	struct x_value *v = NULL;
	int status;

	who.rank = d->rank;
	status = d->lib.PMIx_Get(&who, d->key, &at_once, 1, &v);
	if (status == X_NOT_FOUND) {
		answer(d, -ENOENT, "process %u has put no '%s' into the launcher's space", d->rank, d->key);
		return;
	}
	if (status != X_SUCCESS || !v) {
		answer_status(d, "PMIx_Get", status);
		return;
	}
	if (v->type == X_STRING && v->data.string && strnlen(v->data.string, sizeof(d->value)) < sizeof(d->value))
		memcpy(d->value, v->data.string, strlen(v->data.string) + 1);
	else
		answer(d, -EPROTO, "the launcher gives for '%s' of process %u what cannot have been put", d->key, d->rank);
	drop(v);
}

static void serve(struct desk *d)
{
	d->result = 0;
	switch (d->what) {
	case DO_INIT:
		if (load(d))
			do_init(d);
		break;
	case DO_PUT:
		do_put(d);
		break;
	case DO_FENCE:
		do_fence(d);
		break;
	case DO_GET:
		do_get(d);
		break;
	case DO_CLOSE:
		d->lib.PMIx_Finalize(NULL, 0);
		break;
	}
}

static void desk_free(struct desk *d)
{
	pthread_cond_destroy(&d->turn);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

static void *clerk(void *arg)
{
	struct desk *d = arg;

	pthread_mutex_lock(&d->lock);
	for (;;) {
		while (d->state == IDLE)
			pthread_cond_wait(&d->turn, &d->lock);
		if (d->state == LEFT)
			break;
		pthread_mutex_unlock(&d->lock);
		serve(d);
		pthread_mutex_lock(&d->lock);
		if (d->state == ASKED)
			d->state = IDLE;
		pthread_cond_signal(&d->turn);
	}
	pthread_mutex_unlock(&d->lock);
	desk_free(d);
	return NULL;
}

/* The caller's half */

struct office {
	struct desk *desk;              /* NULL: the clerk has it */
	pthread_t clerk;
};

/* The clerk does nothing more, and frees the desk. */
static void leave(struct office *o, bool late)
{
	if (!late) {
		pthread_mutex_lock(&o->desk->lock);
		o->desk->state = LEFT;
		pthread_cond_signal(&o->desk->turn);
		pthread_mutex_unlock(&o->desk->lock);
		pthread_join(o->clerk, NULL);
	} else {
		pthread_detach(o->clerk);
	}
	o->desk = NULL;
}

/* Has the clerk do @what. */
static int ask(struct office *o, enum what what, weft_time until)
{
	struct timespec end = { .tv_sec = until / WEFT_S, .tv_nsec = until % WEFT_S };
	struct desk *d = o->desk;
	bool late = false;

	pthread_mutex_lock(&d->lock);
	d->what = what;
	d->state = ASKED;
	pthread_cond_signal(&d->turn);
	while (d->state == ASKED && !late) {
		if (until == WEFT_FOREVER)
			pthread_cond_wait(&d->turn, &d->lock);
		else
			late = pthread_cond_timedwait(&d->turn, &d->lock, &end) == ETIMEDOUT && d->state == ASKED;
	}
	if (late)
		d->state = LEFT;
	pthread_mutex_unlock(&d->lock);
	if (late) {
		leave(o, true);
		return weft_fail(-ETIMEDOUT, "the launcher (PMIx) did not answer in time");
	}
	return d->result < 0 ? weft_fail(d->result, "%s", d->words) : 0;
}

/* Of this way the ranks have keys each of their own. */
static void set_key(struct desk *d, const char *key)
{
	snprintf(d->key, sizeof(d->key), "weft.%s", key);
}

static int office_put(void *state, const char *key, const char *value, weft_time until)
{
	struct office *o = state;

	set_key(o->desk, key);
	memcpy(o->desk->value, value, strlen(value) + 1);
	return ask(o, DO_PUT, until);
}

static int office_fence(void *state, weft_time until)
{
	return ask(state, DO_FENCE, until);
}

static int office_get(void *state, uint32_t rank, const char *key, char ret_value[WF_SPACE_VALUE],
		      weft_time until)
{
	struct office *o = state;
	int r;

	set_key(o->desk, key);
	o->desk->rank = rank;
	r = ask(o, DO_GET, until);
	if (r == 0)
		memcpy(ret_value, o->desk->value, WF_SPACE_VALUE);
	return r;
}

static int office_close(void *state, bool polite, weft_time until)
{
	struct office *o = state;
	int r = 0;

	if (o->desk && polite)
		r = ask(o, DO_CLOSE, until);
	if (o->desk)
		leave(o, false);
	free(o);
	return r;
}

static struct desk *desk_new(void)
{
	struct desk *d = calloc(1, sizeof(*d));
	pthread_condattr_t monotonic;

	if (!d)
		return NULL;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->turn, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return d;
}

/* Signals are for the program's threads: neither the clerk nor the threads that libpmix starts from it take any. */
static struct office *office_new(void)
{
	struct office *o = calloc(1, sizeof(*o));
	struct desk *d = desk_new();
	sigset_t all, before;
	int r = ENOMEM;

	sigfillset(&all);
	if (o && d) {
		o->desk = d;
		pthread_sigmask(SIG_SETMASK, &all, &before);
		r = pthread_create(&o->clerk, NULL, clerk, d);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	if (r == 0)
		return o;
	if (d)
		desk_free(d);
	free(o);
	return NULL;
}

int wf_space_open_pmix(struct wf_space *s, weft_time until)
{
	static const struct wf_space_back back = { office_put, office_fence, office_get, office_close };
	struct office *o = office_new();
	int r;

	if (!o)
		return weft_fail(-ENOMEM, "no memory or no thread to wait for the launcher (PMIx)");
	r = ask(o, DO_INIT, until);
	if (r == 0) {
		s->rank = o->desk->self.rank;
		s->size = o->desk->size;
		memcpy(s->job, o->desk->self.nspace, sizeof(s->job));
		r = wf_space_vet(s);
	}
	if (r < 0) {
		office_close(o, false, WEFT_NOW);
		return r;
	}
	s->back = &back;
	s->state = o;
	return 0;
}

_Static_assert(WF_SPACE_JOB == X_NSPACE, "a name that PMIx has room for");
