/* line.c - the life of lines: made for a lane, over, buried. See line.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "wire/hot.h"
#include "wire/line.h"

#define STRANGERS 1024u                         /* handshakes begun by others, at a time, if there are descriptors for that */
#define SHAKE_TIME (5 * WEFT_S)
#define AGAIN (WEFT_MS / 10)                      /* until who still writes is looked at again */

static struct wf_lock lines_lock;
static struct wf_node lines;                    /* all of them */
static struct wf_node over;                     /* those to be buried */
static _Atomic uint32_t overs;                   /* a hint */
static _Atomic uint64_t hung_up;                /* strangers that did not become members */
static _Atomic uint64_t rounds;                 /* of wf_lines_retry */

struct wf_line *wf_line_new(struct wf_rail *rail, bool mine)
{
	struct wf_line *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->shake = calloc(1, sizeof(*l->shake));
	if (!l->shake) {
		free(l);
		return NULL;
	}
	l->rail = rail;
	l->mine = mine;
	l->since = wf_now();
	atomic_store_explicit(&l->shakes, true, memory_order_relaxed);
	wf_lock(&lines_lock);
	wf_list_add(&lines, &l->all);
	wf_unlock(&lines_lock);
	return l;
}

uint64_t wf_lines_hung_up(void)
{
	return atomic_load_explicit(&hung_up, memory_order_relaxed);
}

/* Who never said a hello that holds, or was refused before it proved to be one of the job. A member whose lane is one too many goes as well before its handshake is done. */
static bool stranger(const struct wf_line *l)
{
	return !l->mine && !l->trunk && l->shake && (l->shake->state == WF_HS_LISTENS || l->shake->state == WF_HS_REFUSED);
}

void wf_line_free(struct wf_line *l)
{
	wf_lock(&lines_lock);
	if (wf_list_has(&l->all))
		wf_list_del(&l->all);
	wf_unlock(&lines_lock);
	if (stranger(l))
		atomic_fetch_add_explicit(&hung_up, 1, memory_order_relaxed);   /* a count */
	wf_line_shaken(l);
	wf_sealer_fini(&l->seal);
	wf_opener_fini(&l->open);
	free(l->sealed);
	free(l);
}

/* [lines_lock] To be buried. False: it was before. */
static bool end_locked(struct wf_line *l)
{
	if (atomic_exchange_explicit(&l->down, true, memory_order_acq_rel))
		return false;
	wf_list_add(&over, &l->over);
	atomic_fetch_add_explicit(&overs, 1, memory_order_relaxed);
	return true;
}

void wf_line_end(struct wf_line *l)
{
	bool ended;

	wf_lock(&lines_lock);
	ended = end_locked(l);
	wf_unlock(&lines_lock);
	if (ended)
		wf_trunks_by(0);
}

/* [polls] No upcall comes, no thread writes: the remote may be told. */
static void bury(struct wf_line *l)
{
	struct wf_trunk *t = l->trunk;
	bool was_up = l->of != NULL;

	if (t && was_up && l->pieces)
		wf_line_body_came(l, 0);
	if (t) {
		wf_trunk_lock(t);
		wf_trunk_late_locked(t, wf_now());
		if ((was_up || l->mine) && !l->refused)
			wf_trunk_elsewhere_locked(t, l->slot, l->rail);
		if (was_up)
			wf_remote_lane_down(&t->remote, l->of, wf_now());
		else if (l->mine)
			wf_remote_open_failed(&t->remote, l->slot, wf_now());
		wf_unlock(&t->lock);
	}
	wf_line_free(l);
	if (t)
		wf_trunk_turn(t);
}

/* From now on nobody finds it. True: and nobody has it. */
static bool alone(struct wf_line *l)
{
	struct wf_trunk *t = l->trunk;
	bool nobody;

	if (t) {
		wf_trunk_lock(t);
		for (unsigned i = 0; i < WF_LANES; i++)
			if (t->lines[i] == l)
				t->lines[i] = NULL;
		if (t->again == l)
			t->again = NULL;
		wf_unlock(&t->lock);
	}
	wf_lock(&lines_lock);
	/* In this order: who writes and is not among the users yet joins them before he lets go of it. */
	nobody = !atomic_load_explicit(&l->writing.held, memory_order_acquire) && !atomic_load_explicit(&l->users, memory_order_acquire);
	if (nobody)
		wf_list_del(&l->all);           /* nor by wf_lines_retry */
	wf_unlock(&lines_lock);
	return nobody;
}

void wf_lines_retry(void *cookie)
{
	uint64_t round = atomic_fetch_add_explicit(&rounds, 1, memory_order_relaxed) + 1;
	struct wf_line *l;

	(void)cookie;
	do {
		l = NULL;
		wf_lock(&lines_lock);
		for (struct wf_node *n = lines.next; n && n != &lines && !l; n = n->next)
			if (wf_of(n, struct wf_line, all)->round < round)
				l = wf_of(n, struct wf_line, all);
		if (l) {
			l->round = round;
			atomic_fetch_add_explicit(&l->users, 1, memory_order_relaxed);
		}
		wf_unlock(&lines_lock);
		if (l) {
			wf_line_write(l);
			atomic_fetch_sub_explicit(&l->users, 1, memory_order_release);
		}
	} while (l);
}

int wf_lines_bury(void)
{
	uint32_t left = atomic_load_explicit(&overs, memory_order_relaxed);
	int n = 0;

	for (; left; left--) {
		struct wf_node *first;
		struct wf_line *l;

		wf_lock(&lines_lock);
		first = wf_list_pop(&over);
		wf_unlock(&lines_lock);
		if (!first)
			break;
		l = wf_of(first, struct wf_line, over);
		if (alone(l)) {
			atomic_fetch_sub_explicit(&overs, 1, memory_order_relaxed);
			wf_lane_close(l->rail, l->lane);        /* waits for upcalls: nobody touches it any more */
			bury(l);
			n++;
		} else {
			wf_lock(&lines_lock);
			wf_list_add(&over, &l->over);
			wf_unlock(&lines_lock);
			wf_trunks_by(wf_now() + AGAIN);
		}
	}
	return n;
}

void wf_lines_look(weft_time now)
{
	struct wf_line *late;

	do {
		late = NULL;
		wf_lock(&lines_lock);
		for (struct wf_node *n = lines.next; n && n != &lines && !late; n = n->next) {
			struct wf_line *l = wf_of(n, struct wf_line, all);

			/* One that shakes is not freed but by bury, which needs it to be over. */
			if (now - l->since > SHAKE_TIME && atomic_load_explicit(&l->shakes, memory_order_relaxed) &&
			    !atomic_load_explicit(&l->down, memory_order_relaxed))
				late = l;
		}
		if (late)
			end_locked(late);
		wf_unlock(&lines_lock);
	} while (late);
}

bool wf_lines_end_all(void)
{
	bool any = false;

	wf_lock(&lines_lock);
	for (struct wf_node *n = lines.next; n && n != &lines; n = n->next) {
		struct wf_line *l = wf_of(n, struct wf_line, all);

		any = true;
		end_locked(l);
	}
	wf_unlock(&lines_lock);
	return any;
}

/* Of those who have begun to say who they are the oldest makes room: who is of the job says it in one go. */
static void oldest_goes(void)
{
	bool ended = false;

	wf_lock(&lines_lock);
	for (struct wf_node *n = lines.next; n && n != &lines && !ended; n = n->next) {
		struct wf_line *l = wf_of(n, struct wf_line, all);

		ended = atomic_load_explicit(&l->silent, memory_order_relaxed) && end_locked(l);
	}
	wf_unlock(&lines_lock);
	if (ended)
		wf_trunks_by(0);
}

static int incoming(void *cookie, void *lane, const struct weft_addr *from, void **ret_line)
{
	struct wf_rail *const *rail = cookie;
	struct wf_line *l;

	if (atomic_load_explicit(&wf_silent, memory_order_relaxed) >= wf_descriptors_part(WF_SILENT_PART, STRANGERS))
		oldest_goes();
	/* Those that went are among them until they are buried. */
	if (atomic_load_explicit(&wf_strangers, memory_order_relaxed) >= wf_descriptors_part(WF_UNPROVED_PART, 2 * STRANGERS))
		return -EBUSY;
	l = wf_line_new(*rail, false);
	if (!l)
		return -ENOMEM;
	atomic_fetch_add_explicit(&wf_strangers, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&wf_silent, 1, memory_order_relaxed);
	atomic_store_explicit(&l->silent, true, memory_order_relaxed);
	l->lane = lane;
	l->from = *from;
	wf_line_listen(l);
	*ret_line = l;
	return 0;
}

static void up(void *cookie)
{
	struct wf_line *l = cookie;

	if (wf_line_call(l) < 0)
		wf_line_end(l);
}

/* By the first rail, which leads to it if any does: what that says of the other end. */
static void not_answered(struct wf_line *l)
{
	if (l->refused)
		wf_trunk_refused(l->trunk);
	else if (l->shake && l->shake->state == WF_HS_CALLS)
		wf_trunk_shut(l->trunk);
}

static void down(void *cookie, int err)
{
	struct wf_line *l = cookie;

	if (l->trunk)
		wf_log(WF_DEBUG, "lane %u.%u with process %s is down: %d", l->slot, l->gen, l->trunk->name, err);
	else
		wf_log(WF_DEBUG, "a stranger's lane is down: %d", err);
	l->refused = err == -ECONNREFUSED;
	if (l->mine && wf_rail_is_first(l->rail))
		not_answered(l);
	else if (l->mine && !l->of && !l->refused && err && err != -EALREADY && wf_trunk_useless(l->trunk, l->rail))
		wf_log(WF_WARN, "rail %s does not lead to process %s: %s; others are used", l->rail->name, l->trunk->name, strerror(-err));
	wf_line_end(l);
}

static void writable(void *cookie)
{
	wf_line_write(cookie);
}

const struct weft_upcalls wf_line_upcalls = {
	.size = sizeof(wf_line_upcalls),
	.incoming = incoming,
	.up = up,
	.down = down,
	.take = wf_line_bytes,
	.placed = wf_line_placed,
	.writable = writable,
	.ahead = wf_line_ahead,
	.came_ahead = wf_line_came_ahead,
};
