/* rails.c - the rails of this process, who looks at them, and where the others are.
 *
 * One rail, on the adapter that the job says, or the knob rails. Where others are the job is asked when they are first needed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/shield.h"
#include "net/choose.h"
#include "secure/key.h"
#include "port/lead.h"
#include "port/listener.h"
#include "wire/ping.h"
#include "wire/wire.h"

#define BUDGET 64                       /* events of one look */
#define HURRIED 16                      /* looks of who spins that found something before timers are looked at */
#define IDLE 8                          /* ... that found nothing: each takes a system call, so that is a few us */
#define LOOK WEFT_S                     /* how often handshakes are looked at, and who is waited for */

struct wf_endpoint wf_endpoint;
static int (*where)(uint32_t process, char *ret_at, size_t n);
static uint32_t others;
static struct wf_rail *rail;
static _Atomic weft_time next_look;
static _Atomic uint32_t hurried;               /* looks since timers were looked at, found something or not; of whoever spins, about */
static _Atomic uint64_t refused;                /* strangers, by the driver and by us; as of the last look */

struct wf_rail *wf_rail_to(const struct wf_trunk *t, uint32_t n)
{
	(void)t;
	return n == 0 ? rail : NULL;
}

int wf_host_addr(uint32_t process, struct weft_addr *ret_addr)
{
	char text[WF_WIRE_AT];
	int r = where(process, text, sizeof(text));

	return r < 0 ? r : r > 0 ? -ESRCH : rail->driver->slots.addr_parse(text, ret_addr);
}

uint32_t wf_hosts_abroad(void)
{
	return others > 1 ? others - 1 : 1;
}

/* For who looks from outside. */
static void count_strangers(void)
{
	struct weft_rail_stat stat = { .size = sizeof(stat) };
	uint64_t silent = wf_rail_stat(rail, &stat) < 0 ? 0 : stat.refused;

	atomic_store_explicit(&refused, silent + wf_lines_hung_up(), memory_order_relaxed);
}

/* One that spins has looked: is it time to look at the clock? Counted without a read-modify-write: two that spin at once lose a count, no more. */
static inline bool timers_turn(bool found)
{
	uint32_t n = atomic_load_explicit(&hurried, memory_order_relaxed) + 1;
	bool turn = wf_unlikely(n >= (found ? HURRIED : IDLE));

	atomic_store_explicit(&hurried, turn ? 0 : n, memory_order_relaxed);
	return turn;
}

static struct wf_route_ops ops;

/* What is due by the clock, behind a look at the rails that found @r. As poll of route.h. */
static int timers(int r)
{
	weft_time now = wf_now();
	int n;

	wf_trunks_turn(now);
	n = wf_lines_bury();            /* after it: who ends a line sets the time that it clears */
	if (now > atomic_load_explicit(&next_look, memory_order_relaxed)) {
		atomic_store_explicit(&next_look, now + LOOK, memory_order_relaxed);
		wf_lines_look(now);
		wf_watch_look();
		count_strangers();
	} else if (n) {
		count_strangers();
	}
	return n == 0 && r == -EBUSY ? r : n + (r > 0 ? r : 0);
}

WF_HOT static int poll(bool spins)
{
	bool shields = !ops.uncancelled || !spins;
	int r;

	if (shields)
		wf_shield();
	wf_trunks_flush();
	wf_line_late_look();
	r = wf_rail_poll(rail, BUDGET, spins ? WEFT_POLL_SPIN : 0);
	/* Unless something came that a waiting thread may want to have at once, or it will look again at once: then the rest can wait, if nobody has asked for it. */
	if (wf_unlikely(!spins || r < 0 || wf_trunks_next() <= 0 || timers_turn(r > 0))) {
		wf_shield();
		r = timers(r);
		wf_unshield();
	}
	if (wf_unlikely(shields))
		wf_unshield();
	return r;
}

static void turn(void)
{
	wf_shield();
	timers(0);
	wf_unshield();
}

static int arm(void)
{
	return wf_rail_arm(rail);
}

static struct wf_route_ops ops = {
	.lives = wf_depart_lives,
	.watch = wf_watch_abroad,
	.ended = wf_watch_ended,
	.brisk = wf_depart_brisk,
	.send = wf_depart_now,
	.start = wf_depart,
	.cancel_locked = wf_depart_cancel_locked,
	.fetch = wf_arrive_fetch,
	.pull = wf_arrive_pull,
	.answer = wf_arrive_answer,
	.offered = wf_arrive_offered,
	.seek_locked = wf_arrive_seek_locked,
	.keepers = wf_arrive_keepers,
	.abort = wf_arrive_abort,
	.flush = wf_trunks_flush,
	.poll = poll,
	.arm = arm,
	.next = wf_trunks_next,
	.turn = turn,
	.asked = wf_ping_asked,
};

/* What the rail of this process is called, and what it is told. */
static int name_rail(const struct wf_wire_self *self, char *ret_name, size_t n, char *ret_options, size_t m)
{
	const char *text = wf_knob_text(WF_KNOB_RAILS), *driver = wf_driver_at(0)->name, *congestion = wf_knob_text(WF_KNOB_CONGESTION);
	struct wf_choice choice = { .driver = wf_driver_at(0) };        /* the first built in is the one that every machine has */
	char ports[32] = "";
	int r;

	snprintf(choice.adapter, sizeof(choice.adapter), "%s", self->adapter);
	if (*text) {
		r = wf_rails_choose(text, &choice, 1);
		if (r != 1)
			return r < 0 ? r : weft_fail(-EINVAL, "knob rails: '%s' means %d adapters, and this version uses one", text, r);
	}
	snprintf(ret_name, n, "%s:%s", choice.driver->name, choice.adapter);
	if (congestion[strcspn(congestion, " \t\n,")])
		return weft_fail(-EINVAL, "knob congestion: '%.40s' is no name", congestion);
	if (self->ports)
		snprintf(ports, sizeof(ports), "%u-%u", self->ports, self->ports_last);
	r = snprintf(ret_options, m, "%s%s%s%s %s%s%s%s", self->ports ? driver : "", self->ports ? ".ports" : "", self->ports ? "=" : "", ports,
		     *congestion ? driver : "", *congestion ? ".congestion" : "", *congestion ? "=" : "", congestion);
	return r < (int)m ? 0 : weft_fail(-EINVAL, "knob congestion: '%.40s...' is too long", congestion);
}

/* Hosts are reached by streams (line.h); their addresses go as text, and who waits sleeps on the rail. */
static int check_rail(void)
{
	const struct weft_driver *d = &rail->driver->slots;

	if (!(d->caps & WEFT_DRIVER_STREAM))
		return weft_fail(-EOPNOTSUPP, "rail %s: its lanes carry frames, and this version reaches hosts over streams only", rail->name);
	if (!d->addr_print || !d->addr_parse || rail->fd < 0)
		return weft_fail(-EOPNOTSUPP, "rail %s: its driver has no addr_print, addr_parse or wait_fd, and hosts are reached by those that have", rail->name);
	return 0;
}

int wf_wire_join(const struct wf_wire_self *job, char *ret_at, size_t n)
{
	struct wf_identity self = { .process = job->process };
	char name[160], options[160];
	int r = wf_random_fill(&(struct wf_random){ 0 }, self.incarnation, sizeof(self.incarnation));

	if (r < 0)
		return r;
	r = wf_endpoint_init(&wf_endpoint, job->key, job->job, &self, (enum wf_mode)(WF_MODE_FULL + wf_knob(WF_KNOB_SECURE)));
	if (r < 0)
		return r;
	where = job->where;
	others = job->count;
	wf_treaties_open(job->treaty);
	r = name_rail(job, name, sizeof(name), options, sizeof(options));
	if (r == 0)
		r = wf_rail_open(name, options, &wf_line_upcalls, wf_lines_retry, NULL, &rail);
	if (r < 0)
		return r;
	r = check_rail();
	if (r == 0) {
		rail->driver->slots.addr_print(&rail->info.addr, ret_at, n);
		r = wf_lead_init(rail->driver->slots.caps & WEFT_DRIVER_EPOLL ? rail->fd : -1);
	}
	if (r < 0) {
		wf_rail_close(rail);
		rail = NULL;
		return r;
	}
	ops.fd = rail->fd;
	ops.uncancelled = rail->driver->slots.caps & WEFT_DRIVER_UNCANCELLED;
	wf_hosts = &ops;
	wf_roots.whereabouts = (uintptr_t)wf_whereabouts;
	wf_trunks_show(&wf_roots);
	wf_roots.strangers = (uintptr_t)&refused;
	wf_log(WF_INFO, "process %u is reached at %s", job->process, ret_at);
	return 0;
}

bool wf_wire_leave(weft_time until)
{
	bool all = true;

	if (!wf_hosts)
		return true;
	for (bool begin = true; !(all = wf_trunks_close(begin)) && !wf_past(until); begin = false)
		if (poll(false) <= 0)
			wf_nap(100000);
	while (wf_lines_end_all())
		if (poll(false) <= 0)
			wf_nap(100000);
	wf_hosts = NULL;
	wf_roots.trunks = wf_roots.whereabouts = wf_roots.strangers = 0;
	wf_line_late_forget();
	wf_trunks_free();
	wf_rail_close(rail);
	rail = NULL;
	wf_lead_fini();
	wf_treaties_close();
	wf_endpoint_fini(&wf_endpoint);
	return all;
}
