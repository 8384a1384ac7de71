/* life.c - a process's life in its job: a job of one, or that of the agent that started it. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#include "base/clock.h"
#include "base/fence.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/park.h"
#include "base/tsan.h"
#include "dir/link.h"
#include "dir/text.h"
#include "job/attach.h"
#include "job/entry.h"
#include "job/grow.h"
#include "job/others.h"
#include "job/spawn.h"
#include "mem/bury.h"
#include "mem/pool.h"
#include "mem/segment.h"
#include "port/budget.h"
#include "port/context.h"
#include "port/listener.h"
#include "port/op.h"
#include "port/open.h"
#include "port/sample.h"
#include "port/self.h"
#include "port/table.h"
#include "port/tell.h"
#include "port/way.h"

#define EXIT_DRAIN (1 * WEFT_S)         /* leaving main without weft_fini drains for so long at most */

static pthread_mutex_t life_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned inits;                  /* under life_lock */
static struct weft_port *world;         /* set while joined */
static atomic_bool shared;              /* has been in a job of several: buffers of others, and segments, may be here for good */

struct weft_port *weft_port_world(void)
{
	if (atomic_load_explicit(&wf_life, memory_order_acquire) == WF_IN)
		return world;
	wf_not_in();
	return NULL;
}

const char *weft_version(void)
{
	return WF_VERSION;
}

/* The child has one thread and a copy of everything; what the copy means belongs to the parent. */
static void in_child(void)
{
	if (atomic_load_explicit(&wf_life, memory_order_relaxed) != WF_OUT || atomic_load_explicit(&shared, memory_order_relaxed))
		atomic_store_explicit(&wf_life, WF_CHILD, memory_order_relaxed);
	atomic_store_explicit(&wf_pool_bound, 0, memory_order_relaxed);
	wf_board_blank();
	memset(&wf_self, 0, sizeof(wf_self));
}

static void any_sends(struct weft_port *p, void *arg)
{
	if (wf_sends_pending(p))
		*(bool *)arg = true;
}

/* True: everything posted was taken by somebody before @until. */
static bool drain_all(weft_time until)
{
	for (;;) {
		bool pending = false;

		wf_port_each(any_sends, &pending);
		if (!pending)
			return true;
		if (wf_past(until))
			return false;
		wf_nap(100000);
	}
}

static void at_exit(void)
{
	if (atomic_load_explicit(&wf_life, memory_order_acquire) == WF_IN)
		drain_all(weft_in(EXIT_DRAIN));
}

static void register_once(void)
{
	pthread_atfork(NULL, NULL, in_child);
	atexit(at_exit);
}

static int open_world(uint32_t base, uint32_t count)
{
	/* Not from the heap: a program that ends without weft_fini has leaked nothing. */
	static _Alignas(struct wf_members) char room[sizeof(struct wf_members) + WF_PROCESSES * sizeof(weft_id)];
	struct wf_members *m = (struct wf_members *)(void *)room;
	int r;

	atomic_init(&m->refs, 2);       /* never the last */
	m->count = count;
	for (uint32_t i = 0; i < count; i++)
		atomic_init(&m->ids[i], (weft_id)(base + i + 1) << 32);
	r = wf_port_make(wf_process_id, 0, NULL, WF_MAKE_PORT, &world);
	if (r < 0)
		return r;
	world->members = m;
	atomic_store_explicit(&world->with_members, true, memory_order_relaxed);
	world->index = (uint32_t)(wf_process_id >> 32) - base - 1;
	world->shared = true;
	wf_slot_set(wf_process_id, world);
	return 0;
}

static int check(const struct weft_init_opts *o)
{
	if (o->flags)
		return weft_fail(-EINVAL, "init flags: %#x", o->flags);
	if (o->key)
		return weft_fail(-EOPNOTSUPP, "init key is not served yet");
	if (o->tasks)
		return weft_fail(-EOPNOTSUPP, "init tasks is not served yet");
	if (o->name && !wf_dir_is_name(o->name, strlen(o->name)))
		return weft_fail(-EINVAL, "'%s' is no name", o->name);
	if (o->budget && o->budget < 65536)
		return weft_fail(-EINVAL, "a budget has at least 65536 bytes");
	return 0;
}

/* The world is open: the others, and the directory. */
static int enter(uint32_t process, uint32_t base, uint32_t count, bool others)
{
	int r = wf_others_listed() ? wf_dir_open(others ? wf_others_dir() : NULL, wf_process_id) : 0;

	if (r == 0 && others)
		r = wf_others_join(process, base, count);
	if (r < 0) {
		wf_dir_close();
		wf_port_end(world, WEFT_NOW);
		world = NULL;
	}
	return r;
}

/* This process's entry in the directory. */
static int list(const struct weft_init_opts *o)
{
	const char *attrs = o->attrs ? o->attrs : getenv("WEFT_ATTRS");
	size_t n = (attrs ? strlen(attrs) : 0) + 32;
	char *all = malloc(n);
	int r;

	if (!all)
		return weft_fail(-ENOMEM, "no memory");
	snprintf(all, n, "pid=%d %s", (int)getpid(), attrs ? attrs : "");
	r = wf_dir_self(o->name, all);
	free(all);
	return r;
}

static int join_job(const struct weft_init_opts *o)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint32_t process = 1, base = 0, count = 1;
	int r, others;

	wf_log_init(o->log);
	others = wf_others_offered(o->join ? o->join : getenv("WEFT_JOIN"), &process, &base, &count);
	if (others < 0)
		return others;
	r = wf_knob_init(o->knobs);
	if (r == 0)
		r = wf_board_make();
	if (r == 0)
		r = wf_slab_setup(WF_SLAB_REQ, sizeof(struct weft_req));
	if (r == 0)
		r = wf_slab_setup(WF_SLAB_RECORD, sizeof(struct wf_record));
	if (r == 0)
		r = wf_table_init((weft_id)process << 32);
	if (r == 0)
		wf_fence_init(wf_knob(WF_KNOB_MEMBARRIER));
	if (r == 0 && others)
		r = wf_others_prepare(process);
	if (r == 0)
		r = wf_pool_init((size_t)wf_knob(WF_KNOB_POOL));
	if (r < 0)
		return r;
	wf_tsan_init();
	wf_park_init();
	wf_budget_init(o->budget ? o->budget : (size_t)wf_knob(WF_KNOB_BUDGET), (size_t)wf_knob(WF_KNOB_EAGER));
	pthread_once(&once, register_once);
	wf_state_show();
	r = open_world(base, count);
	if (r == 0)
		r = enter(process, base, count, others);
	if (r < 0) {
		wf_pool_fini();
		return r;
	}
	if (o->name)
		strncpy(world->name, o->name, sizeof(world->name) - 1);
	if (wf_others_listed())
		r = list(o);
	if (r < 0)
		wf_log(WF_WARN, "not in the directory: %s", weft_last_error());
	wf_knob_fix(1);
	atomic_store_explicit(&shared, wf_segments_shared(), memory_order_relaxed);
	wf_log(WF_INFO, "joined: process %u of %u, budget %zu, membarrier %s", process, count, wf_budget.limit,
	       wf_fence_free ? "granted" : "not used");
	return 0;
}

int weft_init(const struct weft_init_opts *theirs)
{
	static const struct weft_init_opts none = { .size = sizeof(none) };
	struct weft_init_opts o;
	int r;

	if (atomic_load_explicit(&wf_life, memory_order_acquire) == WF_CHILD)
		return wf_not_in();
	r = wf_opts_read(&o, sizeof(o), theirs ? theirs : &none, "init options");
	if (r == 0)
		r = check(&o);
	if (r < 0)
		return r;
	pthread_mutex_lock(&life_lock);
	if (inits == 0) {
		r = join_job(&o);
		if (r < 0)
			wf_board_blank();       /* nobody was told of it */
	}
	if (r == 0 && inits++ == 0)
		/* release: all that was set up, to wf_join. */
		atomic_store_explicit(&wf_life, WF_IN, memory_order_release);
	pthread_mutex_unlock(&life_lock);
	return r;
}

static void pick(struct weft_port *p, void *arg)
{
	struct weft_port **ret = arg;

	if (!*ret && p != world && p != wf_self.port)
		*ret = p;
}

static bool leave_job(weft_time until)
{
	bool drained;

	wf_spawns_close();
	wf_grows_close();
	wf_attach_close(-ECANCELED);
	wf_dir_close();
	wf_selves_leave(true);
	for (;;) {
		struct weft_port *p = NULL;

		wf_port_each(pick, &p);
		if (!p)
			break;
		wf_port_end(p, WEFT_NOW);
	}
	if (wf_self.port && atomic_load_explicit(&wf_self.port->id, memory_order_relaxed) == wf_self.id)
		wf_port_end(wf_self.port, WEFT_NOW);
	wf_port_end(world, WEFT_NOW);
	wf_listener_stop();
	drained = wf_others_leave(until);
	wf_callbacks_run();             /* ends told in the last moment */
	world = NULL;
	wf_self.port = NULL;
	wf_self.id = 0;
	wf_ways_drop_spares(0);
	wf_pool_fini();
	wf_board_blank();
	wf_bury_all();
	wf_knob_fix(0);
	wf_selves_leave(false);
	return drained;
}

int weft_fini(weft_time until)
{
	int cancel, r = 0;

	if (atomic_load_explicit(&wf_life, memory_order_acquire) != WF_IN)
		return wf_not_in();
	if (wf_self.in_callback)
		return weft_fail(-EDEADLK, "weft_fini inside a callback");
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&life_lock);
	if (inits == 0) {
		r = wf_not_in();
	} else if (--inits == 0) {
		wf_entries_close();     /* who waits for a thread elsewhere has a send under way */
		if (!drain_all(until))
			r = wf_late(until);
		if (!leave_job(until) && r == 0)
			r = wf_late(until);
		atomic_store_explicit(&wf_life, WF_OUT, memory_order_release);
	}
	pthread_mutex_unlock(&life_lock);
	pthread_setcancelstate(cancel, NULL);
	return r;
}
