/* trunk.c - see trunk.h: what remotes want done. The table of trunks is in trunks.c. */
#include "wire/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/shield.h"
#include "port/host.h"
#include "port/lead.h"
#include "port/open.h"
#include "wire/hot.h"

#define HELD_LONG (100 * 1000)          /* ns, when none comes any more and its sender does not wait */
#define SHUT_OUT 4u                     /* times that the other end closes a lane without a word before that is its answer */

static struct wf_lock place_lock;
_Atomic weft_time wf_trunks_wake = WEFT_FOREVER;
static _Atomic uint32_t holding;                /* a hint: trunks may hold something */

/* Of the own job the agents tell who is dead; of another this is all that is ever heard. @met: also of one that was met. */
static void concluded(struct wf_trunk *t, int err, bool met)
{
	if (!wf_foreign(t->process))
		return;
	wf_trunk_lock(t);
	if (met || !t->known)
		wf_remote_gone(&t->remote, err, wf_now());
	wf_unlock(&t->lock);
}

/* One of the own job that we have met and that listens no more has left it, or is dead, which agents tell. What it has left to say of our farewell may be lost with a lane, and nobody there says it again. */
void wf_trunk_refused(struct wf_trunk *t)
{
	concluded(t, -ECONNRESET, true);
	wf_trunk_lock(t);
	if (t->known)
		wf_remote_left(&t->remote, wf_now());
	wf_unlock(&t->lock);
}

/* One that runs may not have been told of the attachment yet; but not for ever. */
void wf_trunk_shut(struct wf_trunk *t)
{
	weft_time now = wf_now();
	bool enough;

	wf_trunk_lock(t);
	if (!t->shut++)
		t->shut_since = now;
	enough = t->shut >= SHUT_OUT && now - t->shut_since >= wf_knob(WF_KNOB_SILENCE) * WEFT_MS;
	wf_unlock(&t->lock);
	if (enough)
		concluded(t, -EACCES, false);
}

/* True: it is known where it is by rail 0. */
static bool place(struct wf_trunk *t)
{
	struct weft_addr addr;
	int r;

	if (atomic_load_explicit(&t->placed, memory_order_acquire))
		return true;
	r = wf_host_addr(t->process, 0, &addr);
	if (r == -ESRCH)
		concluded(t, -ESRCH, false);            /* who has called us is answered by the lanes it has opened */
	if (r < 0)
		return false;
	wf_lock(&place_lock);
	if (!atomic_load_explicit(&t->placed, memory_order_relaxed)) {  /* another may have been first, and use it */
		t->addr = addr;
		atomic_store_explicit(&t->placed, true, memory_order_release);
	}
	wf_unlock(&place_lock);
	return true;
}

/* Where it is by rail @n. By others than the first that is asked anew each time: it may have said so since. */
static bool find(struct wf_trunk *t, uint32_t n, struct weft_addr *ret_addr)
{
	if (n)
		return wf_host_addr(t->process, n, ret_addr) == 0;
	if (!place(t))
		return false;
	*ret_addr = t->addr;
	return true;
}

void wf_trunk_elsewhere_locked(struct wf_trunk *t, uint32_t slot, const struct wf_rail *rail)
{
	if (slot == 0 && wf_rail_to(t->control) == rail)
		t->control = (t->control + 1) % wf_rails_count();
}

bool wf_trunk_useless(struct wf_trunk *t, const struct wf_rail *rail)
{
	uint32_t before, n = 0;

	if (wf_rail_is_first(rail))
		return true;
	while (n < wf_rails_count() && wf_rail_to(n) != rail)
		n++;
	wf_trunk_lock(t);
	before = t->useless;
	t->useless |= UINT32_C(1) << n;
	wf_unlock(&t->lock);
	return before != t->useless;
}

/* By which rail. That of control goes by one after the other, until one works. */
static uint32_t rail_of(struct wf_trunk *t, uint32_t slot)
{
	uint32_t n;

	if (slot)
		return (slot - 1) / 2;
	wf_trunk_lock(t);
	n = t->control;
	wf_unlock(&t->lock);
	return n;
}

/* A lane is wanted. */
static void open_lane(struct wf_trunk *t, const struct wf_act *a)
{
	uint32_t n = rail_of(t, a->slot);
	struct wf_rail *rail = wf_rail_to(n);
	struct weft_addr addr;
	struct wf_line *l = rail && find(t, n, &addr) ? wf_line_new(rail, true) : NULL;
	int klass = a->slot == 0 ? WEFT_LANE_CONTROL : a->slot % 2 ? WEFT_LANE_HEAD : WEFT_LANE_BULK, r = 0;

	if (l) {
		l->trunk = t;
		l->slot = a->slot;
		l->gen = a->gen;
		r = wf_lane_open(rail, &addr, klass, l, &l->lane);
		if (r == 0)
			return;
		wf_log(WF_DEBUG, "no lane to process %s: %s", t->name, weft_last_error());
		wf_line_free(l);
		if (r == -ECONNREFUSED && wf_rail_is_first(rail))
			wf_trunk_refused(t);
	}
	wf_trunk_lock(t);
	if (r != -ECONNREFUSED)
		wf_trunk_elsewhere_locked(t, a->slot, rail);
	wf_remote_open_failed(&t->remote, a->slot, wf_now());
	wf_unlock(&t->lock);
}

/* The line of @lane, which stays until it is let go; NULL: it is over. */
static struct wf_line *hold_line(struct wf_trunk *t, struct wf_lane *lane)
{
	struct wf_line *l;

	wf_trunk_lock(t);
	l = t->lines[lane - t->remote.lanes];
	if (l)
		atomic_fetch_add_explicit(&l->users, 1, memory_order_relaxed);
	wf_unlock(&t->lock);
	return l;
}

static void let_go(struct wf_line *l)
{
	atomic_fetch_sub_explicit(&l->users, 1, memory_order_release);
}

static void dead(struct wf_trunk *t, int err)
{
	err = err ? err : -ECONNRESET;
	atomic_store_explicit(&t->err, err, memory_order_release);
	wf_log(WF_INFO, "process %s of another host: %s", t->name, strerror(-err));
	wf_process_ended(t->process, err);
	wf_arrive_dead(t->process, err);
}

void wf_wire_joined(uint32_t process)
{
	struct wf_trunk *t = wf_hosts ? wf_trunk_at(process) : NULL;

	if (!t)
		return;
	wf_trunk_lock(t);
	wf_remote_found(&t->remote, wf_now());
	wf_unlock(&t->lock);
	wf_trunk_kick(t);
}

/* Who has not met it makes its trunk to know that it is dead. */
void wf_wire_dead(uint32_t process)
{
	struct wf_trunk *t = wf_hosts ? wf_trunk_get(process) : NULL;

	if (!t)
		return;
	wf_trunk_lock(t);
	wf_remote_doomed(&t->remote, wf_now());
	wf_unlock(&t->lock);
	wf_trunk_kick(t);
}

void wf_trunks_by(weft_time when)
{
	weft_time earliest;

	wf_fence_slow();                                                /* F1 with wf_trunks_turn: it sees what we have set, or we what it left */
	earliest = atomic_load_explicit(&wf_trunks_wake, memory_order_relaxed);
	while (when < earliest && !atomic_compare_exchange_weak_explicit(&wf_trunks_wake, &earliest, when, memory_order_relaxed, memory_order_relaxed))
		;
	if (when < earliest)
		wf_lead_hurry(when);
}

bool wf_trunk_do(struct wf_trunk *t, struct wf_acts *acts, struct wf_line *line)
{
	bool told = false;

	for (int i = 0; i < acts->n; i++) {
		struct wf_act *a = &acts->a[i];
		struct wf_line *l;

		told |= a->kind != WF_ACT_WRITE && a->kind != WF_ACT_SENT;
		switch (a->kind) {
		case WF_ACT_SENT:
			wf_depart_sent(a->send, a->err);
			break;
		case WF_ACT_DEAD:
			dead(t, a->err);
			break;
		case WF_ACT_OPEN:
			open_lane(t, a);
			break;
		case WF_ACT_CLOSE:
			l = hold_line(t, a->lane);
			if (l) {
				wf_line_end(l);
				let_go(l);
			}
			break;
		case WF_ACT_WRITE:
			l = hold_line(t, a->lane);
			if (l) {
				wf_line_write(l);
				let_go(l);
			}
			break;
		case WF_ACT_CLOSED:
			atomic_store_explicit(&t->closed, true, memory_order_relaxed);
			break;
		default:
			wf_arrive_act(t, a, line);
		}
	}
	return told;
}

void wf_trunk_turn(struct wf_trunk *t)
{
	struct wf_acts acts;
	bool news = false;

	wf_shield();
	do {
		weft_time now = wf_now();

		acts.n = 0;
		wf_trunk_lock(t);
		t->held = 0;
		t->written = wf_ticks();
		wf_remote_acts(&t->remote, now, &acts);
		news |= wf_trunk_news_locked(t);
		wf_unlock(&t->lock);
	} while (wf_trunk_do(t, &acts, NULL) || acts.n == WF_ACTS);
	wf_unshield();
	if (news)
		wf_trunks_by(atomic_load_explicit(&t->wake, memory_order_relaxed));
}

struct wf_line *wf_trunk_take_locked(struct wf_trunk *t, weft_time now, bool *ret_news)
{
	struct wf_remote *r = &t->remote;
	uint32_t write = r->write_due;
	struct wf_line *l;

	if (!write || write & (write - 1))
		return NULL;
	r->write_due = 0;
	l = wf_remote_due(r, now) ? NULL : t->lines[__builtin_ctz(write)];
	if (l && wf_line_take_locked(l, now))
		return wf_trunk_taken_locked(t, l, wf_ticks(), ret_news);
	r->write_due |= write;
	return NULL;
}

bool wf_trunk_idle_locked(const struct wf_trunk *t)
{
	const struct wf_remote *r = &t->remote;
	const struct wf_lane *lane = r->out[WF_STREAM_PLAIN] ? r->out[WF_STREAM_PLAIN]->lane : NULL;

	return lane && !(lane->active | lane->writing) && !lane->ready && !r->write_due;
}

WF_HOT void wf_trunk_let_go(struct wf_trunk *t, struct wf_line *l, bool news)
{
	let_go(l);
	if (news)
		wf_trunks_by(atomic_load_explicit(&t->wake, memory_order_relaxed));
}

void wf_trunk_held(struct wf_trunk *t)
{
	atomic_store_explicit(&t->due, true, memory_order_relaxed);
	atomic_store_explicit(&holding, 1, memory_order_relaxed);
	wf_trunks_by(wf_now() + HELD_LONG);
	wf_lead_soon();
}

/* As wf_trunk_turn, by the short way if there is nothing but something to write. */
static void write_out(struct wf_trunk *t)
{
	struct wf_line *l;
	bool news = false;

	wf_trunk_lock(t);
	l = wf_trunk_take_locked(t, wf_now_about(), &news);
	wf_unlock(&t->lock);
	if (l)
		wf_trunk_taken(t, l, news);
	else
		wf_trunk_turn(t);
}

WF_HOT void wf_trunks_flush(void)
{
	struct wf_trunk *t;

	if (wf_likely(!atomic_load_explicit(&holding, memory_order_relaxed)))
		return;
	atomic_store_explicit(&holding, 0, memory_order_relaxed);
	for (uint32_t at = 0; (t = wf_trunk_next(&at)) != NULL;)
		if (atomic_load_explicit(&t->due, memory_order_relaxed) && atomic_exchange_explicit(&t->due, false, memory_order_relaxed))
			write_out(t);
}

void wf_trunk_kick(struct wf_trunk *t)
{
	atomic_store_explicit(&t->due, true, memory_order_relaxed);
	wf_trunks_by(0);
}

void wf_trunks_turn(weft_time now)
{
	weft_time earliest = WEFT_FOREVER;
	struct wf_trunk *t;

	if (now < wf_trunks_next())
		return;
	atomic_store_explicit(&wf_trunks_wake, WEFT_FOREVER, memory_order_relaxed);
	wf_fence_slow();                                                /* F1 with wf_trunks_by */
	for (uint32_t at = 0; (t = wf_trunk_next(&at)) != NULL;) {
		if ((atomic_load_explicit(&t->due, memory_order_relaxed) && atomic_exchange_explicit(&t->due, false, memory_order_relaxed)) ||
		    atomic_load_explicit(&t->wake, memory_order_relaxed) <= now)
			wf_trunk_turn(t);
		if (atomic_load_explicit(&t->wake, memory_order_relaxed) < earliest)
			earliest = atomic_load_explicit(&t->wake, memory_order_relaxed);
	}
	wf_trunks_by(earliest);
}

/* Its farewell came, and that this is known here is not written yet: it waits for that. */
static bool owes(struct wf_trunk *t)
{
	struct wf_remote *r = &t->remote;
	bool any = false;

	wf_trunk_lock(t);
	for (struct wf_lane *lane = r->lanes; r->bye_in && lane < r->lanes + WF_LANES; lane++)
		any |= lane->up && !lane->closing && (lane->ack_now || lane->active || lane->writing);
	wf_unlock(&t->lock);
	return any;
}

bool wf_trunks_close(bool begin)
{
	struct wf_trunk *t;
	bool all = true;

	for (uint32_t at = 0; (t = wf_trunk_next(&at)) != NULL;) {
		if (atomic_load_explicit(&t->err, memory_order_relaxed)) {
			if (owes(t)) {
				all = false;
				wf_trunk_turn(t);
			}
			continue;
		}
		if (begin) {
			wf_trunk_lock(t);
			wf_remote_close(&t->remote, wf_now());
			wf_unlock(&t->lock);
			wf_trunk_turn(t);
		}
		all &= atomic_load_explicit(&t->closed, memory_order_relaxed);
	}
	return all;
}

void wf_trunks_free(void)
{
	struct wf_trunk *t;

	for (uint32_t at = 0; (t = wf_trunk_next(&at)) != NULL;) {
		struct wf_rsend *s;

		while ((s = wf_remote_spent(&t->remote)) != NULL)
			wf_depart_sent(s, 0);
		wf_remote_fini(&t->remote);
		wf_ids_fini(&t->watched);
		wf_ids_fini(&t->asked);
		wf_ids_fini(&t->keeping);
		explicit_bzero(t, sizeof(*t));
		free(t);
	}
	wf_trunks_forget();
	atomic_store_explicit(&wf_trunks_wake, WEFT_FOREVER, memory_order_relaxed);
}
