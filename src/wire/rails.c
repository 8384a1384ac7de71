/* rails.c - who looks at the rails of this process, and where the others are. See rails.h.
 *
 * Who looks looks at the first, and at the others: at each of them, if he is about to sleep; who spins leaves out those that had nothing for a while, but for now and then.
 * Where others are the job is asked when they are needed.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/shield.h"
#include "secure/key.h"
#include "port/lead.h"
#include "port/listener.h"
#include "wire/ping.h"
#include "wire/places.h"
#include "wire/rails.h"

#define BUDGET 64                       /* events of one look */
#define HURRIED 16                      /* looks of who spins that found something before timers are looked at */
#define IDLE 8                          /* ... that found nothing: each takes a system call, so that is a few us */
#define RESTLESS 16                     /* ... and this many for one of several to be passed by, but for one look of: */
#define SELDOM 8
#define LOOK WEFT_S                     /* how often handshakes are looked at, and who is waited for */

struct wf_endpoint wf_endpoint;
static int (*where)(uint32_t process, char *ret_at, size_t n);
static uint32_t others;
static struct wf_rails rails;
static _Atomic uint32_t quiet[WF_RAILS];        /* looks at each of several since one found something, or passed it by; of whoever spins, about */
static _Atomic weft_time next_look;
static _Atomic uint32_t hurried;               /* looks since timers were looked at, found something or not; of whoever spins, about */
static _Atomic uint64_t refused;                /* strangers, by the driver and by us; as of the last look */

struct wf_rail *wf_rail_to(uint32_t n)
{
	return n < rails.n ? rails.at[n] : NULL;
}

uint32_t wf_rails_count(void)
{
	return rails.n;
}

bool wf_rail_is_first(const struct wf_rail *rail)
{
	return rail == rails.first;
}

int wf_host_addr(uint32_t process, uint32_t n, struct weft_addr *ret_addr)
{
	char text[WF_WIRE_AT], place[WF_WIRE_AT];
	int r = where(process, text, sizeof(text));

	if (r != 0)
		return r < 0 ? r : -ESRCH;
	r = wf_places_nth(text, n, place, sizeof(place));
	if (r < 0 || !wf_rail_to(n))
		return r < 0 ? r : -ENODEV;
	return rails.at[n]->driver->slots.addr_parse(place, ret_addr);
}

uint32_t wf_hosts_abroad(void)
{
	return others > 1 ? others - 1 : 1;
}

/* For who looks from outside. */
static void count_strangers(void)
{
	uint64_t sum = wf_lines_hung_up();

	for (uint32_t i = 0; i < rails.n; i++) {
		struct weft_rail_stat stat = { .size = sizeof(stat) };

		if (rails.at[i] && wf_rail_stat(rails.at[i], &stat) == 0)
			sum += stat.refused;
	}
	atomic_store_explicit(&refused, sum, memory_order_relaxed);
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

/* Rail @i of several had nothing for who spins, again and again: it has its turn now and then. Counted as timers_turn does. */
static bool passed_by(uint32_t i)
{
	uint32_t n = atomic_load_explicit(&quiet[i], memory_order_relaxed);

	if (n < RESTLESS)
		return false;
	atomic_store_explicit(&quiet[i], n + 1, memory_order_relaxed);
	return n % SELDOM != 0;
}

/* The rails behind the first, where a look found @r: of all of them. */
static WF_SLOW int look_at_others(bool spins, int r)
{
	for (uint32_t i = 0; i < rails.n; i++) {
		int found;

		if (!rails.at[i] || rails.at[i] == rails.first || (spins && passed_by(i)))
			continue;
		found = wf_rail_poll(rails.at[i], BUDGET, spins ? WEFT_POLL_SPIN : 0);
		if (found > 0)
			atomic_store_explicit(&quiet[i], 0, memory_order_relaxed);
		else if (atomic_load_explicit(&quiet[i], memory_order_relaxed) < RESTLESS)
			atomic_fetch_add_explicit(&quiet[i], 1, memory_order_relaxed);
		if (found > 0 && r > 0)
			r += found;
		else if (found > 0 || r == 0)
			r = found;
	}
	return r;
}

WF_HOT static int poll(bool spins)
{
	bool shields = !ops.uncancelled || !spins;
	int r;

	if (shields)
		wf_shield();
	wf_trunks_flush();
	wf_line_late_look();
	r = wf_rail_poll(rails.first, BUDGET, spins ? WEFT_POLL_SPIN : 0);
	if (wf_unlikely(rails.n > 1))
		r = look_at_others(spins, r);
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
	int r = 0;

	for (uint32_t i = 0; i < rails.n; i++)
		if (rails.at[i])
			r |= wf_rail_arm(rails.at[i]);
	return r;
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

int wf_wire_join(const struct wf_wire_self *job, char *ret_at, size_t n)
{
	struct wf_identity self = { .process = job->process };
	int r = wf_random_fill(&(struct wf_random){ 0 }, self.incarnation, sizeof(self.incarnation));

	if (r < 0)
		return r;
	r = wf_endpoint_init(&wf_endpoint, job->key, job->job, &self, (enum wf_mode)(WF_MODE_FULL + wf_knob(WF_KNOB_SECURE)));
	if (r < 0)
		return r;
	where = job->where;
	others = job->count;
	wf_treaties_open(job->treaty);
	r = wf_rails_open(job, &rails, ret_at, n);
	if (r < 0)
		return r;
	r = wf_lead_init(rails.epoll ? rails.fd : -1);
	if (r < 0) {
		wf_rails_close(&rails);
		return r;
	}
	ops.fd = rails.fd;
	ops.uncancelled = rails.uncancelled;
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
	wf_rails_close(&rails);
	wf_lead_fini();
	wf_treaties_close();
	wf_endpoint_fini(&wf_endpoint);
	return all;
}
