/* train.c - see train.h. Run by whoever sends, without a lock. */
#include "port/train.h"

#include <string.h>

#include "mem/atlas.h"
#include "port/pipe.h"
#include "port/request.h"
#include "port/tell.h"
#include "port/way.h"

#define PAGE ((size_t)4096)
#define TRAINS 2                /* to one process: what nobody has received yet has as many */

static struct train {
	struct wf_lock busy;
	_Atomic(const void *) ahead;    /* the pipe's head, for who only asks for its line */
	/* under busy */
	struct wf_pipe *pipe;           /* NULL: none yet */
	bool never;                     /* there was no memory for one */
	struct wf_pipe_place at;        /* with the number of the first chunk of what it carries, or did last */
	weft_id src, to;                /* likewise: from whom, to whom */
	uint64_t context;
	size_t len;
} trains[WF_PROCESSES][TRAINS];
static _Atomic uint32_t used_to = 1;    /* processes from here on have none; a hint */

/* [busy] Has all been read? */
static bool is_empty(const struct train *t)
{
	return wf_acquire32(&t->pipe->head->read) == t->pipe->written;          /* K4 */
}

/* [busy] */
static bool make_up(struct train *t, uint32_t process)
{
	uint32_t used = atomic_load_explicit(&used_to, memory_order_relaxed);

	if (t->never || wf_peer_died(process))
		return false;
	wf_lock(&wf_user_lock);
	t->pipe = wf_pipe_keep_locked();
	wf_unlock(&wf_user_lock);
	t->never = !t->pipe;
	if (t->never)
		return false;
	t->at = wf_pipe_place(t->pipe, t->pipe->written);
	atomic_store_explicit(&t->ahead, t->pipe->head, memory_order_relaxed);
	while (used <= process && !atomic_compare_exchange_weak_explicit(&used_to, &used, process + 1, memory_order_relaxed, memory_order_relaxed))
		continue;
	return true;
}

/* One to @process that is empty, its busy taken; NULL: none. */
static struct train *train_to(uint32_t process)
{
	for (int i = 0; i < TRAINS; i++) {
		struct train *t = &trains[process][i];

		if (!wf_trylock(&t->busy))
			continue;
		if (t->pipe ? is_empty(t) : make_up(t, process)) {
			t->pipe->read = t->pipe->written;       /* whatever its receiver writes there from now on */
			return t;
		}
		wf_unlock(&t->busy);
	}
	return NULL;
}

/* The second line of the cell before the first: send.c says why. */
static void fill_cell(struct wf_cell *c, weft_id src, uint32_t index, uint64_t tag, size_t len, const struct wf_pipe_place *at)
{
	struct wf_announcement a = { .with = WF_WITH_PIPE, .len = len, .waits = WF_A_WRITTEN };
	unsigned char body[sizeof(a) + sizeof(*at)];

	_Static_assert(sizeof(body) <= WF_BODY && sizeof(body) > WF_BODY_NEAR, "an announcement and the place of its pipe lie in both lines of a cell");
	memcpy(body, &a, sizeof(a));
	memcpy(body + sizeof(a), at, sizeof(*at));
	memcpy(c->body + WF_BODY_NEAR, body + WF_BODY_NEAR, sizeof(body) - WF_BODY_NEAR);
	atomic_signal_fence(memory_order_seq_cst);
	c->kind = WF_FAR;
	c->flags = 0;
	c->len = 0;
	c->index = index;
	c->src = src;
	c->tag = tag;
	memcpy(c->body, body, WF_BODY_NEAR);
}

/* [busy] Where the next message begins. Not where the last one did, if there is room elsewhere: its receiver still has those lines, and has to be asked for them back (64 KiB took
 * 1.22 of the raw ring so on x86-64, and 0.96 behind each other). */
static uint32_t start_behind(const struct train *t, size_t len)
{
	size_t at = t->at.start + ((t->len + PAGE - 1) & ~(PAGE - 1));

	return at + len <= WF_CHUNKS * WF_CHUNK ? (uint32_t)at : 0;
}

bool wf_train_send(struct wf_way *w, uint16_t who, weft_id src, uint32_t index, uint64_t tag, const void *data, size_t len)
{
	struct wf_claimed c;
	struct wf_place lies;
	struct train *t;

	/* What its receiver can read where it lies is better left there (announce.c). */
	if (len > WF_WRITTEN_MOST || atomic_load_explicit(&w->box->clogged, memory_order_relaxed) || wf_place_of_all(data, len, &lies))
		return false;
	t = train_to(w->peer->process);
	if (!t)
		return false;
	if (wf_way_claim(w, who, 0, 0, &c) != WF_CLAIMED) {
		wf_unlock(&t->busy);
		return false;
	}
	t->at.base = t->pipe->written;
	t->at.start = start_behind(t, len);
	fill_cell(c.cell, src, index, tag, len, &t->at);
	wf_way_publish(w, &c);
	t->src = src;
	t->to = atomic_load_explicit(&w->id, memory_order_relaxed);
	t->context = atomic_load_explicit(&w->context, memory_order_relaxed);
	t->len = len;
	for (size_t done = 0, n; done < len; done += n) {
		n = wf_piece_bytes(done);
		n = len - done < n ? len - done : n;
		memcpy(t->pipe->data + t->at.start + done, (const char *)data + done, n);
		wf_pipe_filled(t->pipe);
	}
	wf_peer_wake_named(w->peer, &t->pipe->head->reader);
	wf_unlock(&t->busy);
	return true;
}

void wf_trains_insist(void)
{
	for (uint32_t process = 1; process < atomic_load_explicit(&used_to, memory_order_relaxed); process++)
		for (int i = 0; i < TRAINS; i++) {
			struct train *t = &trains[process][i];

			if (!wf_trylock(&t->busy))
				continue;               /* whoever has it is at it */
			if (t->pipe && !is_empty(t)) {
				wf_pipe_insist(t->pipe, t->at.base);
				wf_peer_wake_named(wf_peer_at(process), &t->pipe->head->reader);
			}
			wf_unlock(&t->busy);
		}
}

void wf_train_ahead(uint32_t process)
{
	__builtin_prefetch(atomic_load_explicit(&trains[process][0].ahead, memory_order_relaxed));      /* of NULL: nothing happens */
}

void wf_trains_dead(uint32_t process)
{
	for (int i = 0; i < TRAINS; i++) {
		struct train *t = &trains[process][i];
		bool lost;

		wf_lock(&t->busy);              /* who writes to a dead process is soon done */
		lost = t->pipe && !is_empty(t);
		if (t->pipe) {
			wf_lock(&wf_user_lock);
			wf_pipe_drop_locked(t->pipe);
			wf_unlock(&wf_user_lock);
		}
		t->pipe = NULL;
		atomic_store_explicit(&t->ahead, NULL, memory_order_relaxed);
		wf_unlock(&t->busy);
		if (lost)                       /* nobody else looks at it any more */
			wf_tell_lost(t->src, t->context, t->to, t->len, 1);
	}
}
