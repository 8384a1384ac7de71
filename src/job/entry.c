/* entry.c - the process in which threads are spawned: its entries, calls that come, and the life of a spawned thread.
 *
 * Calls come to a callback, which begins the first thread of a call; each begins the next before it does anything else, so that a call for many holds
 * up nobody. A thread joins weft, is published, tells its spawner its id and waits for his word: go on, or not. What he has given up, or what he no longer
 * lives to see, never reaches the program's function. See entry_msg.h for what is said, entry_spawn.c for the other end.
 */
#include "job/entry.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/dir.h>

#include "base/log.h"
#include "job/entry_room.h"
#include "port/self.h"

/* How the program's threads are to be, whoever runs the callback that begins one: as the thread that added the entry. */
struct manner {
	sigset_t mask;
	cpu_set_t cores;
	bool cores_known;               /* a machine may have more than the set can hold */
};

struct entry {
	struct entry *next;
	weft_entry_fn fn;
	struct manner manner;
	char name[];
};

/* Under the room's lock; inbox is the callback's while it runs. */
static struct entry *entries;
static uint8_t *inbox;
static bool listening;

/* The threads of a call. */
struct launch {
	_Atomic uint32_t refs;          /* one per thread */
	weft_entry_fn fn;
	struct manner manner;
	weft_id by;                     /* process of the spawner */
	uint64_t ticket, life;
	uint32_t count, next;           /* next: index of the thread that is being begun */
	bool ends;
	size_t len;
	const char *attrs;              /* behind the argument; NULL: none */
	_Alignas(max_align_t) char arg[];
};

static void launch_put(struct launch *l)
{
	/* acq_rel: the last frees what the others have read. */
	if (atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) == 1)
		free(l);
}

static int answer_locked(weft_id to, uint64_t ticket, uint32_t index, const struct wf_entry_answer *a)
{
	uint8_t bytes[WF_ENTRY_ANSWER];
	size_t n = wf_entry_answer_write(a, bytes, sizeof(bytes));
	int r = wf_entry_tell_locked(to, wf_entry_tag(WF_ENTRY_ANSWERS, ticket, index), bytes, n);

	/* He is gone, or we are about to be: he learns of that. Else he waits until his deadline. */
	if (r == -ENOMEM)
		wf_log(WF_WARN, "no memory to answer who spawns threads here");
	return r;
}

static void refuse(weft_id to, uint64_t ticket, uint32_t index, bool rest, int err, const char *words)
{
	wf_entry_lock();
	answer_locked(to, ticket, index, &(struct wf_entry_answer){ .err = err, .rest = rest, .words = words });
	wf_entry_unlock();
}

/* A spawned thread */

struct spawned {
	struct launch *l;
	uint32_t index;
};

static void *spawned_main(void *arg);

static int manner_attr(const struct manner *m, pthread_attr_t *attr)
{
	int r = pthread_attr_init(attr);

	if (r == 0 && m->cores_known)
		pthread_attr_setaffinity_np(attr, sizeof(m->cores), &m->cores);
	return r;
}

/* Begins the next thread of @l, with every signal blocked until it is about to call the program. */
static int begin(struct launch *l)
{
	pthread_attr_t attr;
	sigset_t all, mine;
	pthread_t thread;
	bool stale;
	int r;

	wf_entry_lock();
	stale = l->life != wf_entry_life_locked();
	if (!stale)
		wf_entry_busy_locked();
	wf_entry_unlock();
	if (stale)
		return weft_fail(-ESRCH, "the process is leaving the job");
	atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
	r = manner_attr(&l->manner, &attr);
	if (r == 0) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &mine);
		r = pthread_create(&thread, &attr, spawned_main, l);
		if (r == EINVAL)        /* those processors are not ours any more */
			r = pthread_create(&thread, NULL, spawned_main, l);
		pthread_sigmask(SIG_SETMASK, &mine, NULL);
		pthread_attr_destroy(&attr);
	}
	if (r == 0)
		return 0;
	launch_put(l);
	wf_entry_lock();
	wf_entry_idle_locked();
	wf_entry_unlock();
	return weft_fail(-r, "no thread can be created there: %s", strerror(r));
}

/* Tells the spawner who it is; *@ret_word: what he says to that, by and by. */
static int introduce(struct spawned *s, struct weft_req **ret_req, uint32_t *ret_word)
{
	struct launch *l = s->l;
	weft_id me = weft_self();
	struct weft_port *port;
	int r = me ? 0 : -ENOTCONN;

	if (r == 0 && l->attrs)
		r = weft_dir_set(me, l->attrs);
	if (r < 0) {
		refuse(l->by, l->ticket, s->index, false, r, weft_last_error());
		return r;
	}
	wf_entry_lock();
	r = l->life == wf_entry_life_locked() ? wf_entry_port_locked(&port) : -ECANCELED;
	if (r == 0)
		r = weft_recv_post(port, WEFT(op, .flags = WEFT_TRUNCATE, .peer = l->by, .tag = wf_entry_tag(WF_ENTRY_VERDICTS, l->ticket, s->index),
						.data = ret_word, .len = sizeof(*ret_word)), ret_req, NULL);
	if (r >= 0 && answer_locked(l->by, l->ticket, s->index, &(struct wf_entry_answer){ .id = me }) < 0 && *ret_req)
		weft_req_cancel(*ret_req);      /* he will not say anything to that */
	wf_entry_unlock();
	return r;
}

/* Whether the program's function is to be called. */
static bool wanted(struct spawned *s)
{
	struct weft_req *req = NULL;
	uint32_t word = 0;

	if (introduce(s, &req, &word) < 0)
		return false;
	/* No deadline: the spawner keeps it, and its end ends this. */
	return weft_req_wait(&req, WEFT_FOREVER, NULL) == 0 && word;
}

/* It has left the function: by return, pthread_exit or cancellation. */
static void leave(void *arg)
{
	struct spawned *s = arg;
	struct launch *l = s->l;
	bool here;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	wf_entry_lock();
	here = l->life == wf_entry_life_locked();
	if (here)
		wf_entry_busy_locked();
	wf_entry_unlock();
	if (!here) {
		wf_entry_outlast();
		pthread_detach(pthread_self());         /* the process has left its job meanwhile: nobody looks for it there */
		launch_put(l);
		return;
	}
	weft_thread_leave();
	if (l->ends) {
		wf_entry_lock();
		wf_entry_tell_locked(l->by, wf_entry_tag(WF_ENTRY_ENDS, l->ticket, s->index), "", 0);
		wf_entry_unlock();
		weft_thread_leave();                    /* whoever sends has joined */
	}
	launch_put(l);
	wf_entry_thread_over();
}

static void *spawned_main(void *arg)
{
	struct launch *l = arg;
	struct spawned s = { .l = l, .index = l->next++ };      /* nobody else begins, or is begun, now */
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (l->next < l->count) {
		uint32_t next = l->next;        /* the other thread counts on */
		int r = begin(l);

		if (r < 0)
			refuse(l->by, l->ticket, next, true, r, weft_last_error());
	}
	if (!wanted(&s)) {
		weft_thread_leave();
		launch_put(l);
		wf_entry_thread_over();
		return NULL;
	}
	wf_entry_lock();
	wf_entry_idle_locked();         /* from here on it is the program's */
	wf_entry_unlock();
	pthread_cleanup_push(leave, &s);
	pthread_sigmask(SIG_SETMASK, &l->manner.mask, NULL);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	l->fn(l->arg, l->len);
	pthread_cleanup_pop(1);
	return NULL;
}

/* Calls */

static struct launch *launch_new(const struct entry *e, const struct wf_entry_call *c)
{
	size_t attrs = c->attrs ? strlen(c->attrs) + 1 : 0;
	struct launch *l = calloc(1, sizeof(*l) + c->len + attrs + 1);

	if (!l)
		return NULL;
	atomic_init(&l->refs, 1);
	l->fn = e->fn;
	l->manner = e->manner;
	l->life = wf_entry_life_locked();
	l->count = c->count;
	l->ends = c->ends;
	l->len = c->len;
	memcpy(l->arg, c->arg, c->len);
	if (attrs)
		l->attrs = memcpy(l->arg + c->len, c->attrs, attrs);
	return l;
}

static struct entry *entry_locked(const char *name)
{
	struct entry *e = entries;

	while (e && strcmp(e->name, name) != 0)
		e = e->next;
	return e;
}

/* A call of @n bytes in the inbox. */
static int take(const struct weft_status *st, size_t n)
{
	struct wf_entry_call call;
	struct launch *l = NULL;
	struct entry *e;
	int r;

	if (!wf_entry_call_read(inbox, n, &call))
		return weft_fail(-EBADMSG, "it does not understand the call");
	wf_entry_lock();
	e = entry_locked(call.name);
	if (e)
		l = launch_new(e, &call);
	wf_entry_unlock();
	if (!l)
		return e ? weft_fail(-ENOMEM, "no memory there") : weft_fail(-ENOENT, "process %u has no entry '%s'", weft_id_split(weft_process()).process, call.name);
	l->by = st->from;
	l->ticket = wf_entry_tag_ticket(st->tag);
	r = begin(l);
	launch_put(l);
	return r;
}

static int listen_locked(void);

static void called(const struct weft_status *st)
{
	bool over = !(st->flags & WEFT_ST_MORE);
	int r = st->err;

	if (!over && (uint32_t)st->from == 0) {
		if (r == 0)
			r = take(st, st->len);
		else
			weft_fail(r, "the call is too long");
		if (r < 0)
			refuse(st->from, wf_entry_tag_ticket(st->tag), 0, true, r, weft_last_error());
	}
	if (!over)
		return;
	wf_entry_lock();
	listening = false;
	if (st->err != -ECANCELED && listen_locked() < 0)
		wf_log(WF_WARN, "no thread can be spawned here any more: %s", weft_last_error());
	if (!listening) {
		free(inbox);
		inbox = NULL;
	}
	wf_entry_idle_locked();
	wf_entry_unlock();
}

/* Calls that came before are taken now. */
static int listen_locked(void)
{
	struct weft_port *port;
	int r = wf_entry_port_locked(&port);

	if (r < 0 || listening)
		return r;
	if (!inbox)
		inbox = malloc(WF_ENTRY_CALL);
	if (!inbox)
		return weft_fail(-ENOMEM, "no memory for calls of entries");
	wf_entry_busy_locked();
	r = weft_recv_post(port, WEFT(op, .flags = WEFT_REPEAT | WEFT_TRUNCATE, .peer = WEFT_ANY, .tag = wf_entry_tag(WF_ENTRY_CALLS, 0, 0),
					.ignore = WF_ENTRY_TICKET_BITS | WF_ENTRY_INDEX_BITS, .data = inbox, .len = WF_ENTRY_CALL, .done = called), NULL, NULL);
	if (r < 0)
		wf_entry_idle_locked();
	else
		listening = true;
	return r;
}

/* Adding */

static struct entry *entry_new(const char *name, weft_entry_fn fn)
{
	struct entry *e = calloc(1, sizeof(*e) + strlen(name) + 1);

	if (!e)
		return NULL;
	strcpy(e->name, name);
	e->fn = fn;
	pthread_sigmask(SIG_SETMASK, NULL, &e->manner.mask);
	e->manner.cores_known = pthread_getaffinity_np(pthread_self(), sizeof(e->manner.cores), &e->manner.cores) == 0;
	return e;
}

static int add_locked(const char *name, weft_entry_fn fn)
{
	struct weft_port *port;
	struct entry *e;
	int r = wf_entry_port_locked(&port);    /* first: it may find what is known to be of another life */

	if (r < 0)
		return r;
	e = entry_locked(name);
	if (e)
		return e->fn == fn ? 0 : weft_fail(-EEXIST, "the entry '%s' is another function", name);
	e = entry_new(name, fn);
	if (!e)
		return weft_fail(-ENOMEM, "no memory for an entry");
	e->next = entries;
	entries = e;
	r = listen_locked();
	if (r < 0) {
		entries = e->next;
		free(e);
	}
	return r;
}

int weft_entry_add(const char *name, weft_entry_fn fn)
{
	int r = wf_enter();

	if (r < 0)
		return r;
	if (!name || !wf_dir_is_name(name, strlen(name)))
		return weft_fail(-EINVAL, name ? "'%s' is no name" : "name is NULL", name);
	if (!fn)
		return weft_fail(-EINVAL, "the function of entry '%s' is NULL", name);
	wf_entry_lock();
	r = add_locked(name, fn);
	wf_entry_unlock();
	return r == -ECANCELED ? -ENOTCONN : r;
}

void wf_entries_forget_locked(void)
{
	while (entries) {
		struct entry *e = entries;

		entries = e->next;
		free(e);
	}
}
