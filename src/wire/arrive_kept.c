/* arrive_kept.c - messages that the other end keeps back for a port: receives posted there ask for what they want.
 *
 * There is not always room to ask (wf_remote_seek). Who was refused has its turn when there is: receives are numbered in the order in which they were posted, and how far their turn has come is
 * remembered for each port and trunk (struct wf_turn). So those that ask in vain do not stand in the way of the ones behind them, however many they are.
 */
#include <errno.h>
#include <string.h>

#include "port/seek.h"
#include "port/wait.h"
#include "wire/arrive.h"

/* @want, posted at @p, as the process at the other end is to read it: all of its bytes are said. One of another job has another name for itself: there no process number is the reader's
 * own. False: it is not from that process. */
static bool want_said(const struct wf_trunk *t, const struct weft_port *p, const void *want, unsigned char ret[WF_HEAD_ROOM])
{
	struct wf_head h;

	if (p->proto) {
		memcpy(ret, want, WF_HEAD_ROOM);
		return true;
	}
	memcpy(&h, want, sizeof(h));
	if (wf_foreign(t->process) && h.src != WEFT_ANY) {
		if (h.src >> 32 != t->process)
			return false;
		h.src = (uint32_t)h.src;
	}
	memset(ret, 0, WF_HEAD_ROOM);
	memcpy(ret, &h, sizeof(h));
	return true;
}

static uint32_t key_of(uint32_t to, uint64_t context)
{
	uint64_t h = (to + (context ^ context >> 32) * UINT64_C(0xd6e8feb86659fd93)) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(h >> 32) | 1;
}

static uint32_t key_at(const struct weft_port *p)
{
	return key_of((uint32_t)atomic_load_explicit(&p->id, memory_order_relaxed), atomic_load_explicit(&p->context, memory_order_relaxed));
}

/* [a door] @e, posted at @p, asks @t. False: there is no room for that; when there is wf_arrive_backlog hears of it. */
static bool seek(struct wf_trunk *t, struct weft_port *p, const struct weft_match_entry *e)
{
	unsigned char want[WF_HEAD_ROOM];
	int r;

	if (!want_said(t, p, e->head, want))
		return true;
	wf_trunk_lock(t);
	r = wf_remote_seek(&t->remote, (uint32_t)atomic_load_explicit(&p->id, memory_order_relaxed), atomic_load_explicit(&p->context, memory_order_relaxed),
			   wf_seek_name(p, e->head), want, WF_HEAD_ROOM);
	wf_unlock(&t->lock);
	return r != -EAGAIN;
}

/* [trunk.lock] Number @n is due, too. */
static void turn_add(struct wf_turn *turn, uint64_t n)
{
	if (!turn->due) {
		*turn = (struct wf_turn){ .asked = n - 1, .due = true, .on = true };
		return;
	}
	if (!turn->on && (n > turn->end || n <= turn->asked))
		*turn = (struct wf_turn){ .asked = turn->asked, .due = true, .on = true };
	if (n <= turn->asked && n > turn->end)
		turn->end = n;
}

/* [trunk.lock] All are due: those that have waited longest first, as there may always be news before the last has had its turn. */
static void turn_all(struct wf_turn *turn)
{
	*turn = (struct wf_turn){ .asked = turn->due ? turn->asked : 0, .end = turn->due ? turn->asked : 0, .due = true, .on = true };
}

void wf_arrive_seek_locked(struct weft_port *p, const struct weft_match_entry *e)
{
	struct wf_trunk *t;

	for (uint32_t at = 0; (t = wf_trunk_next(&at)) != NULL;) {
		struct wf_turn *turn;

		if (!atomic_load_explicit(&t->keeps, memory_order_relaxed))
			continue;
		if (!seek(t, p, e)) {
			wf_trunk_lock(t);
			turn = wf_ids_turn(&t->keeping, key_at(p));
			if (turn)
				turn_add(turn, e->number);
			wf_unlock(&t->lock);
		}
		wf_trunk_kick(t);
	}
}

/* [a door] Those of @turn ask. False: there was no room for all. */
static bool ask(struct wf_trunk *t, struct weft_port *p, struct wf_turn *turn)
{
	while (turn->due) {
		for (struct weft_match_entry *e = wf_first(p, WEFT_MATCH_WANTS); e && (turn->on || e->number <= turn->end); e = wf_next(p, e)) {
			if (e->number <= turn->asked)
				continue;
			if (!seek(t, p, e))
				return false;
			turn->asked = e->number;
		}
		*turn = (struct wf_turn){ .end = turn->end, .due = turn->on && turn->end };
	}
	return true;
}

/* [a door] Those of @p whose turn it is ask. @all: all of them are to. False: as ask. */
static bool ask_due(struct wf_trunk *t, struct weft_port *p, bool all)
{
	struct wf_turn turn = { .due = all, .on = true }, *kept;
	bool done;

	wf_trunk_lock(t);
	kept = wf_ids_turn(&t->keeping, key_at(p));
	if (kept && all)
		turn_all(kept);
	if (kept)
		turn = *kept;
	wf_unlock(&t->lock);
	if (!turn.due)
		return true;
	done = ask(t, p, &turn);
	wf_trunk_lock(t);
	kept = wf_ids_turn(&t->keeping, key_at(p));
	if (kept)
		*kept = turn;           /* nobody else has changed it: that takes the door */
	wf_unlock(&t->lock);
	wf_trunk_kick(t);
	return done;
}

struct room {
	struct wf_trunk *trunk;
	const struct weft_port *behind;         /* those behind this one; NULL: all */
	bool full;
};

static void ask_at(struct weft_port *p, void *arg)
{
	struct room *x = arg;

	if (x->full)
		return;
	if (x->behind) {
		x->behind = x->behind == p ? NULL : x->behind;
		return;
	}
	wf_port_enter(p);
	if (p->asks && !p->closing && !ask_due(x->trunk, p, false)) {
		x->trunk->refused = p;
		x->full = true;
	}
	wf_port_leave(p);
}

/* There is room again: the other ports first, then the one that had the last of it. */
static void ask_again(struct wf_trunk *t)
{
	struct room x = { .trunk = t, .behind = t->refused };

	if (x.behind)
		wf_port_each(ask_at, &x);
	x.behind = NULL;
	wf_port_each(ask_at, &x);
}

/* [a door] Does the other end keep messages for (@to, @context)? It may say the same more than once. True: that is news. */
static bool keeps(struct wf_trunk *t, uint32_t to, uint64_t context, bool more)
{
	uint32_t key = key_of(to, context);
	bool news;

	wf_trunk_lock(t);
	news = (wf_ids_get(&t->keeping, key) == WF_ID_ASKED) != more;
	if (news)
		wf_ids_put(&t->keeping, key, more ? WF_ID_ASKED : WF_ID_OVER);          /* without memory it is asked for longer than need be */
	wf_unlock(&t->lock);
	return news;
}

/* What was told of an earlier port of that name holds. None of its receives is left. */
uint32_t wf_arrive_keepers(weft_id id, weft_ctx context)
{
	struct wf_trunk *t;
	uint32_t n = 0;

	for (uint32_t at = 0; (t = wf_trunk_next(&at)) != NULL;) {
		struct wf_turn *turn;

		if (!atomic_load_explicit(&t->keeps, memory_order_relaxed))
			continue;
		wf_trunk_lock(t);
		turn = wf_ids_turn(&t->keeping, key_of((uint32_t)id, context));
		if (turn) {
			*turn = (struct wf_turn){ .due = false };
			n++;
		}
		wf_unlock(&t->lock);
	}
	return n;
}

void wf_arrive_backlog(struct wf_trunk *t, const struct wf_act *a, bool more)
{
	struct wf_rmsg to = { .to = a->to, .context = a->context };
	struct weft_port *p;
	bool news;

	if (a->err) {
		ask_again(t);
		return;
	}
	p = wf_arrive_enter(&to);
	if (!p)
		return;
	news = keeps(t, a->to, a->context, more);
	if (more) {
		if (news) {
			p->asks++;
			atomic_fetch_add_explicit(&t->keeps, 1, memory_order_relaxed);
			wf_wake_probers_locked(p);      /* to ask for what they want: what they wait for may be there */
		}
		ask_due(t, p, true);
	} else if (news && p->asks) {
		p->asks--;
		atomic_fetch_sub_explicit(&t->keeps, 1, memory_order_relaxed);
	}
	wf_port_leave(p);
}
