/* self.c - a thread joins by its first use of weft and leaves when it ends. */
#include "port/self.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/id.h>

#include "base/clock.h"
#include "port/context.h"
#include "port/expect.h"
#include "port/open.h"
#include "port/publish.h"
#include "port/table.h"
#include "port/way.h"

_Thread_local struct wf_self wf_self;
const struct wf_publisher *_Atomic wf_publisher;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void is_owned(struct weft_port *p, void *arg)
{
	struct weft_port **ret = arg;

	if (*ret || p == wf_self.port)
		return;
	wf_port_enter(p);               /* another thread may be dressing it */
	if (!p->shared && p->owner == wf_self.id)
		*ret = p;
	wf_port_leave(p);
}

static struct weft_port *owned_port(void)
{
	struct weft_port *p = NULL;

	wf_port_each(is_owned, &p);
	return p;
}

/* A port is closed by one: by its thread, or by who leaves the job for all. Each says so first and looks then, in one order of all four (seq_cst): so the
 * thread sees that all leave, and leaves its ports alone, or who leaves for all sees the thread, and waits until it has done. */
static _Atomic bool all_leave;
static _Atomic uint32_t leavers;

void wf_selves_leave(bool begin)
{
	atomic_store(&all_leave, begin);
	while (begin && atomic_load(&leavers))
		wf_nap(10000);
}

static void close_own(void)
{
	struct weft_port *p;

	while ((p = wf_context_orphan(wf_self.id)) != NULL)
		wf_port_end(p, WEFT_NOW);
	while (wf_self.owns && (p = owned_port()) != NULL)
		wf_port_end(p, WEFT_NOW);
	wf_port_end(wf_self.port, WEFT_NOW);
}

static void leave(void)
{
	atomic_fetch_add(&leavers, 1);
	if (!atomic_load(&all_leave) && atomic_load_explicit(&wf_self.port->id, memory_order_relaxed) == wf_self.id)
		close_own();
	atomic_fetch_sub(&leavers, 1);
	wf_self.owns = 0;
	wf_self.port = NULL;
	wf_self.id = 0;
}

static void forget(void *self)
{
	struct wf_self *s = self;
	bool in = s->port && atomic_load_explicit(&wf_life, memory_order_relaxed) == WF_IN &&
		  atomic_load_explicit(&s->port->id, memory_order_relaxed) == s->id;

	if (in)
		leave();
	wf_routes_free(s->routes);
	wf_ways_forget(s->ways);
	wf_expect_forget();
	memset(s, 0, sizeof(*s));
}

static void make_key(void)
{
	pthread_key_create(&key, forget);
}

int wf_join_as(const char *name)
{
	struct weft_port *p;
	weft_id id;
	int r;

	if (atomic_load_explicit(&wf_life, memory_order_acquire) != WF_IN)
		return wf_not_in();
	pthread_once(&key_once, make_key);
	r = pthread_setspecific(key, &wf_self);
	if (r)
		return weft_fail(-r, "no memory to remember the thread");
	r = wf_slot_take(&id);
	if (r < 0)
		return r;
	r = wf_port_make(id, 0, NULL, WF_MAKE_THREAD, &p);
	if (r < 0) {
		wf_slot_drop(id);
		return r;
	}
	wf_self.port = p;
	wf_self.id = id;
	if (name) {
		wf_port_enter(p);       /* it is listed: weft_state_open may be looking at it */
		snprintf(p->name, sizeof(p->name), "%s", name);
		wf_port_leave(p);
	}
	wf_slot_set(id, p);
	wf_publish_named(id, true, name);
	return 0;
}

int wf_join(void)
{
	return wf_join_as(NULL);
}

weft_id weft_self(void)
{
	return wf_enter() < 0 ? 0 : wf_self.id;
}

weft_id weft_process(void)
{
	if (atomic_load_explicit(&wf_life, memory_order_acquire) != WF_IN) {
		wf_not_in();
		return 0;
	}
	return wf_process_id;
}

static bool joined(void)
{
	return wf_self.port && atomic_load_explicit(&wf_self.port->id, memory_order_relaxed) == wf_self.id;
}

int weft_thread_enter(const char *name)
{
	if (atomic_load_explicit(&wf_life, memory_order_acquire) != WF_IN)
		return wf_not_in();
	if (name && (!*name || strlen(name) >= sizeof(wf_self.port->name)))
		return weft_fail(-EINVAL, "a name has 1 to 63 bytes");
	if (joined())
		return weft_fail(-EALREADY, "this thread has joined already");
	return wf_join_as(name);
}

int weft_thread_leave(void)
{
	int cancel;

	if (atomic_load_explicit(&wf_life, memory_order_acquire) != WF_IN)
		return wf_not_in();
	if (!joined())
		return weft_fail(-ENOTCONN, "this thread has not joined");
	if (wf_self.in_callback)
		return weft_fail(-EDEADLK, "weft_thread_leave inside a callback");
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	leave();
	pthread_setcancelstate(cancel, NULL);
	return 0;
}
