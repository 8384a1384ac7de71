/* host.c - see host.h. */
#include "port/host.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/log.h"
#include "mem/bury.h"
#include "mem/share.h"
#include "port/deliver.h"
#include "port/inway.h"
#include "port/open.h"
#include "port/push.h"
#include "port/request.h"
#include "port/seek.h"
#include "port/table.h"
#include "port/tell.h"
#include "port/train.h"

#define TRY_EVERY (10 * WEFT_MS)
#define TRIES 100

#define ENDED_MOST 64
#define NEWS_MOST 4096
#define BURY_EVERY WEFT_S
#define INSIST_EVERY WEFT_S
#define WAIT_MOST 5000          /* tenths of ms: threads of ours that are in the middle of something */

static unsigned quiet;                  /* [listener] looks in a row at which nothing moved */

/* [listener] Processes that could not be met when the agent told of them: no memory, no descriptors. They are tried again. */
static unsigned char tries[WF_PROCESSES];
static unsigned unmet;
static weft_time next_try;

/* [listener] Processes whose memory is still here though they are gone. */
enum { LIVES, DYING, LANDED /* what was landing at its death has */, BURIED };
static unsigned char fate[WF_PROCESSES];
static unsigned unburied;
static weft_time next_burial, next_insist;

/* A port told to attend: it rings for a ring whose sender found the listener named. */
static void bell(struct wf_peer *peer, uint64_t face)
{
	struct weft_port *p = face <= UINT32_MAX ? wf_port_at((uint32_t)face) : NULL;

	if (!p)
		return;
	for (struct wf_reader *r = atomic_load_explicit(&p->ring.reader.next, memory_order_acquire); r;
	     r = atomic_load_explicit(&r->next, memory_order_acquire))
		if (r->process == peer->process)
			/* acq_rel: as wf_way_bell. */
			atomic_exchange_explicit(&wf_inway_of(r)->box->rung, 0, memory_order_acq_rel);
	wf_port_progress(p);
}

static void lost(struct wf_peer *peer, const struct wf_f_lost *f)
{
	if (f->by >> 32 == peer->process && f->src >> 32 == wf_process_id >> 32)
		wf_tell_lost(f->src, f->context, f->by, f->len, f->times);
}

static void missed(const struct wf_f_missed *f)
{
	struct weft_port *from = wf_port_by_id(f->src);

	if (from)
		atomic_fetch_add_explicit(&from->ready_missed, f->times, memory_order_relaxed);
}

static void frame(struct wf_peer *peer, uint32_t what, const unsigned char *body)
{
	union {
		struct wf_f_ring ring;
		struct wf_f_attached attached;
		struct wf_f_way way;
		struct wf_f_word word;
		struct wf_f_lost lost;
		struct wf_f_missed missed;
		struct wf_f_seek seek;
	} f;

	memcpy(&f, body, sizeof(f));
	switch (what) {
	case WF_F_RING:
		wf_inway_ring(peer, &f.ring);
		break;
	case WF_F_ATTACHED:
		wf_way_attached(peer, &f.attached);
		break;
	case WF_F_REFUSED:
	case WF_F_CLOSED:
	case WF_F_GONE:
	case WF_F_ROOM:
		wf_way_told(peer, what, &f.way);
		break;
	case WF_F_SHUT:
		wf_inway_shut(peer, &f.way);
		break;
	case WF_F_BELL:
		bell(peer, f.word.word);
		break;
	case WF_F_ENDED:
		if (f.word.word >> 32 == peer->process)
			wf_id_ended(f.word.word, WF_WATCHED_BY_ANY);
		break;
	case WF_F_LOST:
		lost(peer, &f.lost);
		break;
	case WF_F_SEEK:
		wf_way_seek(peer, &f.seek);
		break;
	case WF_F_MISSED:
		missed(&f.missed);
		break;
	case WF_F_LOOK:
		wf_ids_look(peer->process);
		break;
	default:
		wf_log(WF_WARN, "process %u sent a frame of unknown kind %u", peer->process, what);
	}
}

/* What a frame is about: the key of a way comes first in all that are about one. */
static const struct wf_frame_rule rules[WF_FRAME_KINDS] = {
	[WF_F_RING] = { .same = offsetof(struct wf_f_ring, who) },
	[WF_F_ATTACHED] = { .same = offsetof(struct wf_f_attached, who) },
	[WF_F_REFUSED] = { .same = offsetof(struct wf_f_way, who) },
	[WF_F_CLOSED] = { .same = offsetof(struct wf_f_way, who) },
	[WF_F_SHUT] = { .same = offsetof(struct wf_f_way, who) },
	[WF_F_GONE] = { .same = offsetof(struct wf_f_way, who) },
	[WF_F_ROOM] = { .same = offsetof(struct wf_f_way, who) },
	[WF_F_BELL] = { .same = sizeof(struct wf_f_word) },
	[WF_F_ENDED] = { .same = sizeof(struct wf_f_word), .most = ENDED_MOST },
	[WF_F_LOST] = { .same = offsetof(struct wf_f_lost, times), .add = offsetof(struct wf_f_lost, times), .most = NEWS_MOST },
	[WF_F_MISSED] = { .same = sizeof(weft_id), .add = offsetof(struct wf_f_missed, times), .most = NEWS_MOST },
	[WF_F_SEEK] = { .same = offsetof(struct wf_f_seek, reserved) },
	[WF_F_LOOK] = { .same = sizeof(struct wf_f_word) },
};

const struct wf_peer_hooks *wf_host_hooks(int (*meet)(uint32_t process, int *ret_board_fd, int *ret_event_fd), int (*near)(uint32_t process))
{
	static struct wf_peer_hooks hooks;

	hooks.meet = meet;
	hooks.near = near;
	hooks.frame = frame;
	hooks.rules = rules;
	return &hooks;
}

/* True: met, or there is nobody to meet. */
static bool meet(uint32_t process)
{
	struct wf_peer *peer;
	int r = wf_peer_get(process, &peer);

	return r == 0 ? wf_ways_joined(peer) : r == -ESRCH || r == -EAGAIN;
}

void wf_host_joined(uint32_t process)
{
	if (process >= WF_PROCESSES || tries[process] || meet(process))
		return;
	wf_log(WF_WARN, "cannot meet process %u yet: %s", process, weft_last_error());
	tries[process] = 1;
	unmet++;
}

static void meet_again(void)
{
	if (wf_now() < next_try)
		return;
	next_try = weft_in(TRY_EVERY);
	for (uint32_t i = 1; unmet && i <= wf_peers_count(); i++) {
		if (!tries[i])
			continue;
		if (meet(i)) {
			tries[i] = 0;
			unmet--;
		} else if (tries[i] < TRIES) {
			tries[i]++;
		} else {
			wf_ways_end(i, -ENOMEM);        /* who waits for it is told; whoever comes later may have more luck */
		}
	}
}

static void pass(struct weft_port *p, void *arg)
{
	(void)arg;
	wf_port_enter(p);
	wf_port_leave(p);
}

/* Nobody fetches: one who did so before has landed what he fetched. */
static bool fetches(void)
{
	for (uint32_t i = 1; i <= wf_peers_count(); i++)
		if (wf_fars_pulling(i))
			return true;
	return wf_fars_active();
}

/* Buffers land inside a port's door, or are fetched: bury.h. */
static void bury(void)
{
	if (wf_now() < next_burial)
		return;
	next_burial = weft_in(BURY_EVERY);
	if (fetches())
		return;
	wf_port_each(pass, NULL);
	for (uint32_t i = 1; i < WF_PROCESSES; i++) {
		if (fate[i] == DYING)
			fate[i] = LANDED;
		if (fate[i] != LANDED || wf_fars_of(i) || !wf_bury(i))
			continue;
		wf_board_bury(wf_peer_board(wf_peer_at(i)));
		fate[i] = BURIED;
		unburied--;
	}
}

void wf_host_settled(uint32_t process)
{
	wf_share_settled(process);
	if (wf_peer_at(process) && fate[process] == LIVES) {
		fate[process] = DYING;
		unburied++;
	}
}

/* Both ends of what is under way say again what they have said, if a stray write has changed it: ticket.h. */
static void insist(void)
{
	if (wf_now() < next_insist)
		return;
	next_insist = weft_in(INSIST_EVERY);
	wf_pushes_insist();
	wf_trains_insist();
	wf_fars_insist();
}

int wf_host_attend(void)
{
	int n = wf_peers_poll();

	if (wf_unlikely(unmet))
		meet_again();
	wf_seek_again();
	n += wf_pushes_step();
	insist();
	if (wf_ways_owe())
		wf_ways_flush();        /* what an answered offer held up, too */
	n += wf_fars_step();
	wf_inways_step();
	wf_ways_bury();
	wf_share_collect();
	wf_share_flush();               /* what was put for others on the way */
	if (wf_unlikely(unburied))
		bury();
	quiet = n ? 0 : quiet + 1;
	return n;
}

/* An answer to what is under way rings only who sleeps: one that came since the last step is to be seen by this one. */
bool wf_host_waiting(void)
{
	return wf_peers_waiting() || (wf_pushes_active() && wf_pushes_step() > 0) || (wf_fars_active() && wf_fars_step() > 0);
}

int64_t wf_host_patience(void)
{
	if (unmet || wf_seeks())
		return TRY_EVERY;
	if (!wf_fars_active() && !wf_pushes_silent() && !wf_ways_owe() && !wf_peers_owe() && !wf_inways_step() && !wf_ways_bury())
		return WEFT_S;
	return quiet < 100 ? WEFT_MS : 50 * WEFT_MS;
}

/* Arrivals of a dead process whose bytes are not all there never will be. */
static void drop_broken(struct weft_port *p, void *arg)
{
	uint32_t process = *(const uint32_t *)arg;
	struct weft_match_entry *e, *next;

	wf_port_enter(p);
	for (e = p->open ? wf_first(p, WEFT_MATCH_ARRIVALS) : NULL; e; e = next) {
		struct wf_arrival *a = wf_of(e, struct wf_arrival, entry);
		struct weft_req *send = wf_of(a, struct weft_req, a);

		next = wf_next(p, e);
		if (!(a->flags & WF_MSG_SENDS) || !(a->flags & WF_MSG_TICKET) || a->src >> 32 != process || wf_far_whole(send))
			continue;
		wf_unmatch(p, e);
		p->unrequested--;
		wf_far_forget(send);
	}
	wf_port_leave(p);
}

static void wake(struct weft_port *p, void *arg)
{
	(void)arg;
	wf_futex_wake_far(&p->face->parker.word, 1);
}

void wf_host_dead(uint32_t process)
{
	struct wf_peer *peer = wf_peer_at(process);

	if (!peer || wf_peer_died(process))
		return;
	if (wf_peer_board(peer)) {
		wf_peer_poll(peer);             /* what it said last */
		wf_inways_dead(peer);
	}
	wf_peer_set_dead(process);
	wf_ways_end(process, -ECONNRESET);
	wf_pushes_dead(process);
	wf_trains_dead(process);
	wf_fars_dead(process);
	wf_tickets_dead(process);
	wf_pipes_dead(process);
	wf_port_each(drop_broken, &process);
	wf_process_ended(process, -ECONNRESET);
	wf_share_dead(process);
	wf_bury_begin(process);
	/* One it was about to wake may sleep on with a word that says awake. */
	wf_port_each(wake, NULL);
	/* What flew to it or from it has been published or landed when we say that we have acted: nobody is in the middle of either. */
	for (int i = 0; i < WAIT_MOST && (wf_ways_bury() || wf_fars_pulling(process)); i++)
		wf_nap(100000);
	wf_port_each(pass, NULL);       /* landings that did not know yet */
	wf_bury_name(process);
}

void wf_host_tell_ended(weft_id id)
{
	struct wf_f_word f = { .word = id }, look = { .word = 0 };

	for (uint32_t i = 1; i <= wf_peers_count(); i++) {
		struct wf_peer *peer;

		/* One that watches may have met us a moment ago, and be told to us only now. */
		if (i != wf_process_id >> 32 && wf_peer_get(i, &peer) == 0 && !wf_frame_send(peer, WF_F_ENDED, &f, sizeof(f)))
			wf_frame_send(peer, WF_F_LOOK, &look, sizeof(look));
	}
}

void wf_host_tell_lost(weft_id src, weft_ctx context, weft_id by, size_t len)
{
	struct wf_peer *peer = wf_peer_at((uint32_t)(src >> 32));
	struct wf_f_lost f = { .src = src, .by = by, .context = context, .len = len, .times = 1 };

	if (peer)
		wf_frame_send(peer, WF_F_LOST, &f, sizeof(f));
}
