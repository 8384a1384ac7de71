/* bench_ends.c - the ways in which a receive's end is told, and what each costs: half a round trip
 * of 8 B between two threads on two cores, ns.
 *
 *   weft/send       the caller does it all itself, as a procedure (weft_recv)
 *   weft/posted     a request, and weft_req_wait
 *   weft/queue      posted with a queue, and weft_queue_next
 *   weft/callback   posted with a callback, and weft_poll runs it
 *   weft/handoff    posted with a callback while the receiver sleeps outside of weft: another
 *                   thread does the receiving and hands it over by a semaphore
 */
#include "weft_link.h"
#include <semaphore.h>
#include <stdatomic.h>

struct end_link {
	struct weft_link w;
	struct weft_queue *queue;
	_Atomic int ended; /* set by the callback, release -> acquire */
	sem_t ended_sem;
};

static void queue_recv(struct link *l, void *mem, size_t n)
{
	struct end_link *k = (struct end_link *)l;
	struct weft_status st = { 0 };

	must(weft_recv_post(
		     NULL,
		     WEFT(op, .peer = k->w.peer, .tag = LINK_TAG, .data = mem, .len = n, .queue = k->queue),
		     NULL, NULL),
	     "weft_recv_post");
	must(weft_queue_next(k->queue, WEFT_FOREVER, &st, 1), "weft_queue_next");
	must(st.err, "a queued receive");
}

static void ended(const struct weft_status *st)
{
	struct end_link *k = st->user;

	atomic_store_explicit(&k->ended, st->err < 0 ? st->err : 1, memory_order_release);
}

static void callback_recv(struct link *l, void *mem, size_t n)
{
	struct end_link *k = (struct end_link *)l;
	int r;

	atomic_store_explicit(&k->ended, 0, memory_order_relaxed); /* ours alone until the post */
	must(weft_recv_post(NULL,
			    WEFT(op, .peer = k->w.peer, .tag = LINK_TAG, .data = mem, .len = n, .done = ended,
				 .user = k),
			    NULL, NULL),
	     "weft_recv_post");
	while (!(r = atomic_load_explicit(&k->ended, memory_order_acquire))) {
		r = weft_poll(weft_in(WEFT_MS));
		if (r != -ETIMEDOUT)
			must(r, "weft_poll");
	}
	must(r, "a receive with a callback");
}

static void ended_post(const struct weft_status *st)
{
	struct end_link *k = st->user;

	must(st->err, "a receive handed over");
	sem_post(&k->ended_sem);
}

static void handoff_recv(struct link *l, void *mem, size_t n)
{
	struct end_link *k = (struct end_link *)l;
	struct timespec late;

	must(weft_recv_post(NULL,
			    WEFT(op, .peer = k->w.peer, .tag = LINK_TAG, .data = mem, .len = n,
				 .done = ended_post, .user = k),
			    NULL, NULL),
	     "weft_recv_post");
	clock_gettime(CLOCK_REALTIME, &late);
	late.tv_sec += 5;
	while (sem_timedwait(&k->ended_sem, &late))
		if (errno != EINTR)
			die("a message was not handed over within 5 s");
}

struct ends {
	struct weft_meet meet;
};

static void end_measure(struct link *l, int side, const char *series)
{
	uint64_t mem[8] = { 0 };
	double v;

	link_check(l, side, (unsigned char *)mem, 8);
	v = measure_lat(l, side, mem, 8);
	if (side == 0)
		sample(series, "ends", 8, v);
}

static void ends_side(int side, void *arg)
{
	struct ends *x = arg;
	weft_id peer = meet_peer(&x->meet, side);
	struct weft_link send = weft_link_blocking(peer), posted = weft_link_posted(peer);
	struct end_link k = { .w = weft_link_blocking(peer) };

	must(weft_queue_open(&k.queue), "weft_queue_open");
	sem_init(&k.ended_sem, 0, 0);
	for (int r = 0; r < repeats(); r++) {
		end_measure(&send.l, side, "weft/send");
		end_measure(&posted.l, side, "weft/posted");
		k.w.l.recv = queue_recv;
		end_measure(&k.w.l, side, "weft/queue");
		k.w.l.recv = callback_recv;
		end_measure(&k.w.l, side, "weft/callback");
		k.w.l.recv = handoff_recv;
		end_measure(&k.w.l, side, "weft/handoff");
	}
	meet_leave(&x->meet);
	must(weft_queue_close(k.queue), "weft_queue_close");
}

int main(void)
{
	struct ends x;

	bench_start();
	must_init();
	meet_init(&x.meet);
	pair_run(ends_side, &x);
	must_fini();
	return 0;
}
