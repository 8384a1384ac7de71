/* trunks.c - the table of trunks. See trunk.h.
 *
 * Those of the own job are found by number. Those of other jobs, whose numbers are anything above, lie behind them in the order in which they came, and are found by a hash of few buckets
 * that are only added to: nobody needs a lock to look.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/knob.h"
#include "port/budget.h"
#include "wire/wire.h"

#define BUCKETS 256u                    /* of processes of other jobs */
#define WINDOW_MOST (1u << 20)          /* fills a line of 10 GB/s for 100 us */
#define UNASKED_MOST (256u << 10)       /* of that one message; each is kept as a copy until it is acknowledged */
#define FIRST 6                         /* silences before the first contact: hosts are not started all at once */

_Atomic(struct wf_trunk *) wf_trunk_table[WF_PROCESSES + WF_FOREIGNERS];
static _Atomic(struct wf_trunk *) buckets[BUCKETS];     /* those once more, by number; only added to */
static _Atomic uint32_t most;           /* the highest number with a trunk */
static _Atomic uint32_t foreigners;
static struct wf_lock make_lock;

static const struct wf_remote_ops ops = { .send_pieces = wf_depart_pieces, .land_pieces = wf_arrive_pieces };

static _Atomic(struct wf_trunk *) *bucket_of(uint32_t process)
{
	return &buckets[(process * 0x9e3779b1u >> 16) % BUCKETS];
}

struct wf_trunk *wf_trunk_foreign(uint32_t process)
{
	struct wf_trunk *t = atomic_load_explicit(bucket_of(process), memory_order_acquire);

	while (t && t->process != process)
		t = t->same;
	return t;
}

struct wf_trunk *wf_trunk_next(uint32_t *at)
{
	struct wf_trunk *t = NULL;

	while (!t && *at < atomic_load_explicit(&most, memory_order_relaxed))
		t = atomic_load_explicit(&wf_trunk_table[++*at], memory_order_acquire);
	if (t)
		return t;
	if (*at < WF_PROCESSES)
		*at = WF_PROCESSES;
	if (*at - WF_PROCESSES < atomic_load_explicit(&foreigners, memory_order_acquire))
		t = atomic_load_explicit(&wf_trunk_table[(*at)++], memory_order_acquire);
	return t;
}

/* What a process of another host may send unasked: its share of an eighth of the budget. What it is kept in is up to twice as much, as buffers are powers of two, and the last quarter is
 * for what comes while the budget is used up. */
static uint64_t window(void)
{
	uint64_t share = (uint64_t)wf_budget.limit / 8 / (wf_hosts_abroad() + atomic_load_explicit(&foreigners, memory_order_relaxed));

	return share < WINDOW_MOST ? share : WINDOW_MOST;       /* the remote has a floor */
}

static struct wf_trunk *make(uint32_t process, const struct wf_endpoint *me, uint32_t them)
{
	struct wf_remote_conf conf = { .me = me->self.process, .them = them, .rails = wf_rails_count(), .ops = &ops, .deadline = FIRST * wf_knob(WF_KNOB_SILENCE) * WEFT_MS, .window = window(),
					.eager_most = UNASKED_MOST };
	struct wf_trunk *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->process = process;
	t->them = them;
	t->me = me;
	if (wf_foreign(process))
		snprintf(t->name, sizeof(t->name), "%u.%u", process >> WF_FOREIGN_SHIFT, process & ((1u << WF_FOREIGN_SHIFT) - 1));
	else
		snprintf(t->name, sizeof(t->name), "%u", process);
	t->tick_us = wf_ticks_us();
	conf.seed = (uint64_t)wf_now() * 0x9e3779b97f4a7c15u + process;
	if (wf_remote_init(&t->remote, &conf, wf_now()) < 0) {
		free(t);
		return NULL;
	}
	atomic_store_explicit(&t->wake, WEFT_FOREVER, memory_order_relaxed);
	return t;
}

static struct wf_trunk *make_locked(uint32_t process)
{
	struct wf_trunk *t = make(process, &wf_endpoint, process);

	if (!t)
		return NULL;
	if (process > atomic_load_explicit(&most, memory_order_relaxed))
		atomic_store_explicit(&most, process, memory_order_relaxed);
	atomic_store_explicit(&wf_trunk_table[process], t, memory_order_release);
	return t;
}

/* NULL also if its job was dropped: who drops it comes after us, and finds it, or before. */
static struct wf_trunk *make_foreign_locked(uint32_t process, const struct wf_endpoint *me, uint32_t them)
{
	uint32_t n = atomic_load_explicit(&foreigners, memory_order_relaxed), of = 0;
	struct wf_trunk *t;

	for (uint32_t i = 0; i < n; i++)
		of += atomic_load_explicit(&wf_trunk_table[WF_PROCESSES + i], memory_order_relaxed)->me == me;
	if (n == WF_FOREIGNERS || of == WF_FOREIGNERS_OF || !wf_treaty_holds(me))
		return NULL;
	t = make(process, me, them);
	if (!t)
		return NULL;
	t->same = atomic_load_explicit(bucket_of(process), memory_order_relaxed);
	atomic_store_explicit(&wf_trunk_table[WF_PROCESSES + n], t, memory_order_release);
	atomic_store_explicit(&foreigners, n + 1, memory_order_release);
	atomic_store_explicit(bucket_of(process), t, memory_order_release);
	return t;
}

static struct wf_trunk *get_foreign(uint32_t process, const struct wf_endpoint *me, uint32_t them)
{
	struct wf_trunk *t;

	wf_lock(&make_lock);
	t = wf_trunk_foreign(process);
	if (!t)
		t = make_foreign_locked(process, me, them);
	wf_unlock(&make_lock);
	return t;
}

/* Whoever its agents do not offer has none: it may be offered later. */
static struct wf_trunk *look_abroad(uint32_t process)
{
	const struct wf_endpoint *me;
	struct weft_addr addr;
	uint32_t them;

	if (!wf_hosts || wf_treaty_meet(process, &me, &them) < 0 || wf_host_addr(process, 0, &addr) == -ESRCH)
		return NULL;
	return get_foreign(process, me, them);
}

struct wf_trunk *wf_trunk_get(uint32_t process)
{
	struct wf_trunk *t = wf_trunk_at(process);

	if (wf_likely(t != NULL))
		return t;
	if (wf_foreign(process))
		return look_abroad(process);
	if (process >= WF_PROCESSES || !wf_abroad((weft_id)process << 32))
		return NULL;
	wf_lock(&make_lock);
	t = atomic_load_explicit(&wf_trunk_table[process], memory_order_relaxed);
	if (!t)
		t = make_locked(process);
	wf_unlock(&make_lock);
	return t;
}

struct wf_trunk *wf_trunk_caller(const struct wf_endpoint *me, uint32_t called)
{
	uint32_t process;

	if (me == &wf_endpoint)
		return wf_foreign(called) ? NULL : wf_trunk_get(called);
	process = wf_treaty_caller(me, called);
	return process ? get_foreign(process, me, called) : NULL;
}

int wf_trunk_fail(uint32_t process)
{
	const struct wf_endpoint *me;
	struct weft_addr addr;
	uint32_t them;

	if (!wf_foreign(process))
		return weft_fail(-ESRCH, "the job has no process %u", process);
	if (wf_treaty_meet(process, &me, &them) < 0 || wf_host_addr(process, 0, &addr) == -ESRCH)
		return wf_treaty_fail(process);
	return weft_fail(-ENOSPC, "no room for more processes of job %u", process >> WF_FOREIGN_SHIFT);
}

void wf_trunks_drop(uint32_t alias)
{
	struct wf_trunk *t;

	wf_lock(&make_lock);            /* who is just making one has made it */
	wf_unlock(&make_lock);
	for (uint32_t at = WF_PROCESSES; (t = wf_trunk_next(&at)) != NULL;) {
		if (t->process >> WF_FOREIGN_SHIFT != alias)
			continue;
		wf_trunk_lock(t);
		wf_remote_gone(&t->remote, -ECONNRESET, wf_now());
		wf_unlock(&t->lock);
		wf_trunk_kick(t);
	}
}

void wf_trunks_show(struct wf_roots *roots)
{
	roots->trunks = (uintptr_t)wf_trunk_table;
	roots->trunks_most = WF_PROCESSES + WF_FOREIGNERS;
	roots->trunk_remote = offsetof(struct wf_trunk, remote);
	roots->trunk_process = offsetof(struct wf_trunk, process);
}

void wf_trunks_forget(void)
{
	for (uint32_t i = 0; i < WF_PROCESSES + WF_FOREIGNERS; i++)
		atomic_store_explicit(&wf_trunk_table[i], NULL, memory_order_relaxed);
	for (uint32_t i = 0; i < BUCKETS; i++)
		atomic_store_explicit(&buckets[i], NULL, memory_order_relaxed);
	atomic_store_explicit(&most, 0, memory_order_relaxed);
	atomic_store_explicit(&foreigners, 0, memory_order_relaxed);
}
