/* read.c - from the socket to where bytes are needed, or to take(). Poller only.
 *
 *     one readv:   [ what is still open of the need ... ][ stage ]
 *
 * The stage is the rail's and serves all lanes, as long as take() leaves nothing. What it leaves is copied aside if it is little; else the
 * stage stays with the lane, and the rail gets another. So who sends half a record and stops costs half a kilobyte, and
 * a lane in the middle of a large one no copy. Where a large need came last, little is read ahead of the next one: another call costs less than copying that out of the stage.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "base/call.h"
#include "base/shield.h"
#include "net/tcp/tcp.h"

#define BYTES ((size_t)512 << 10)       /* of one lane, before others are looked at */
#define REST_TRIES 64                   /* looks, each of 0.2 to 0.3 us, for the rest of something whose beginning is here */

bool wf_tcp_same(struct tcp_ref ref)
{
	/* relaxed: closed by another thread, which then waits for us: seen later. By this one, in an upcall: seen now. */
	return (atomic_load_explicit(&ref.lane->word, memory_order_relaxed) & ~TCP_DROP) == ref.word;
}

bool wf_tcp_fail(struct tcp_ref ref, int err)
{
	struct tcp_lane *lane = ref.lane;
	int broken = atomic_load_explicit(&lane->broken, memory_order_relaxed);         /* a hint: the words for an end that send met first */

	wf_shield();
	wf_tcp_lane_settle(lane);
	atomic_store_explicit(&lane->state, TCP_DEAD, memory_order_relaxed);            /* relaxed: a send that misses it fails by itself */
	epoll_ctl(lane->rail->epoll, EPOLL_CTL_DEL, lane->fd, NULL);
	lane->rail->up->down(lane->cookie, err == 0 && broken ? broken : err);
	wf_unshield();
	return false;
}

/* What take() left is forgotten, or has been taken. */
void wf_tcp_unblock(struct tcp_lane *lane)
{
	free(lane->block);
	lane->block = NULL;
	lane->whole = false;
	lane->rest = 0;
}

static bool stage_have(struct tcp_rail *rail)
{
	if (rail->stage)
		return true;
	rail->stage = rail->spare_stage ? rail->spare_stage : malloc(TCP_STAGE);
	rail->spare_stage = NULL;
	return rail->stage != NULL;
}

/* Where the next bytes are read to: behind what was left, in the lane's own stage or at the front of the rail's. */
static bool base_of(struct tcp_lane *lane, unsigned char **ret_base)
{
	struct tcp_rail *rail = lane->rail;

	if (lane->whole) {
		size_t next = lane->rest + TCP_TAIL;

		if (lane->at + (next > lane->want ? next : lane->want) > TCP_STAGE) {
			memmove(lane->block, lane->block + lane->at, lane->rest);
			lane->at = 0;
		}
		*ret_base = lane->block + lane->at;
		return true;
	}
	if (!stage_have(rail))
		return false;
	if (lane->rest)
		memcpy(rail->stage, lane->block, lane->rest);
	*ret_base = rail->stage;
	return true;
}

/* The stage a lane had is not needed any more. */
static void stage_back(struct tcp_rail *rail, unsigned char *stage)
{
	if (rail->spare_stage)
		free(stage);
	else
		rail->spare_stage = stage;
}

/* @len bytes at @p were left: they stay with the lane. */
static bool keep(struct tcp_lane *lane, const unsigned char *p, size_t len)
{
	unsigned char *stage = lane->whole ? lane->block : lane->rail->stage;

	if (wf_likely(!len && !lane->block)) {
		lane->rest = 0;
		return true;
	}
	lane->at = (size_t)(p - stage);
	lane->rest = len;
	if (len > TCP_STASH) {
		if (!lane->whole) {
			free(lane->block);
			lane->block = stage;
			lane->rail->stage = NULL;
			lane->whole = true;
		}
		return true;
	}
	if (lane->whole) {
		lane->block = NULL;
		lane->whole = false;
	} else {
		stage = NULL;
	}
	if (len && !lane->block)
		lane->block = malloc(TCP_STASH);
	if (len && lane->block)
		memcpy(lane->block, p, len);
	else
		wf_tcp_unblock(lane);
	if (stage)
		stage_back(lane->rail, stage);
	return !len || lane->block;
}

/* The core asks for the next bytes to be put somewhere. 0, or what is wrong with that. */
static int need_begin(struct tcp_lane *lane, const struct weft_need *need)
{
	size_t total = 0;

	if (need->pieces > WEFT_NEED_PIECES)
		return -EINVAL;
	for (uint32_t i = 0; i < need->pieces; i++)
		total += need->piece[i].iov_len;
	if (need->pieces && (total == 0 || need->min > total))
		return -EINVAL;
	lane->need.pieces = need->pieces;
	memcpy(lane->need.piece, need->piece, need->pieces * sizeof(*need->piece));
	lane->need.min = need->min ? need->min : total;
	lane->total = total;
	lane->got = 0;
	lane->piece = 0;
	lane->want = need->pieces ? 0 : need->want;
	lane->later = !need->pieces && need->later;
	if (need->pieces) {
		lane->large = total >= TCP_LARGE;
		lane->huge = total > TCP_HUGE;
	}
	return lane->want > TCP_HOLD ? -EMSGSIZE : 0;
}

/* The same where there are no pieces, as mostly. */
static int need_none(struct tcp_lane *lane, const struct weft_need *need)
{
	lane->want = need->want;
	lane->later = need->later;
	return wf_unlikely(lane->want > TCP_HOLD) ? -EMSGSIZE : 0;
}

/* @n more bytes are in the need's pieces. */
static void need_advance(struct tcp_lane *lane, size_t n)
{
	lane->got += n;
	while (n) {
		struct iovec *v = &lane->need.piece[lane->piece];
		size_t k = n < v->iov_len ? n : v->iov_len;

		v->iov_base = (char *)v->iov_base + k;
		v->iov_len -= k;
		n -= k;
		if (v->iov_len == 0)
			lane->piece++;
	}
}

/* Bytes that are already here go where they are needed. Returns how many did. */
static size_t need_copy(struct tcp_lane *lane, const unsigned char *p, size_t len)
{
	size_t done = 0;

	while (done < len && lane->piece < lane->need.pieces) {
		struct iovec *v = &lane->need.piece[lane->piece];
		size_t n = len - done < v->iov_len ? len - done : v->iov_len;

		memcpy(v->iov_base, p + done, n);
		done += n;
		if (n)
			need_advance(lane, n);
		else
			lane->piece++;
	}
	return done;
}

/* The need is over: tells so, and begins the next one if there is. 0, or why the lane is given up; 1: it is not ours any more. */
static int need_end(struct tcp_ref ref)
{
	struct weft_need need;
	int r;

	need.pieces = 0;
	need.min = need.want = 0;
	need.later = 0;
	ref.lane->need.pieces = 0;
	r = ref.lane->rail->up->placed(ref.lane->cookie, ref.lane->got, &need);
	if (!wf_tcp_same(ref))
		return 1;
	if (r < 0)
		return r;
	return need_begin(ref.lane, &need);
}

/* Bytes that go to needs and to take(). */
struct feed {
	unsigned char *p;
	size_t len;
	bool again;             /* take() is to be asked */
};

/* take() has answered @took of them, and @need. As need_end. */
static int fed(struct tcp_ref ref, struct feed *f, ssize_t took, const struct weft_need *need)
{
	struct tcp_lane *lane = ref.lane;
	int r;

	if (!wf_tcp_same(ref))
		return 1;
	r = took < 0 ? (int)took : (size_t)took > f->len ? -EINVAL : need->pieces ? need_begin(lane, need) : need_none(lane, need);
	if (r < 0)
		return r;
	if (!need->pieces && (size_t)took > TCP_SMALL)
		lane->large = lane->huge = false;
	f->p += took;
	f->len -= (size_t)took;
	f->again = took && need->want && need->want <= f->len;  /* else not before more has come */
	return 0;
}

/* What is left of them. As need_end. */
static int feed_on(struct tcp_ref ref, struct feed *f, int *events)
{
	struct tcp_lane *lane = ref.lane;
	struct weft_need need;
	ssize_t took;
	int r;

	while (f->len && (lane->need.pieces || (f->again && f->len >= lane->want))) {
		if (wf_unlikely(lane->need.pieces)) {
			size_t n = need_copy(lane, f->p, f->len);

			f->p += n;
			f->len -= n;
			if (lane->got < lane->need.min)
				break;
			r = need_end(ref);
			if (r)
				return r;
			f->again = true;
			continue;
		}
		need.pieces = 0;
		need.min = need.want = 0;
		need.later = 0;
		++*events;
		took = lane->rail->up->take(lane->cookie, f->p, f->len, &need);
		r = fed(ref, f, took, &need);
		if (r)
			return r;
	}
	if (f->len >= TCP_HOLD)
		return -EMSGSIZE;
	return keep(lane, f->p, f->len) ? 0 : -ENOMEM;
}

/* @len bytes at @p, those left last time first. Answers as need_end. */
WF_HOT static int feed(struct tcp_ref ref, unsigned char *p, size_t len, int *events)
{
	return feed_on(ref, &(struct feed){ .p = p, .len = len, .again = true }, events);
}

/* One system call. Bytes read, with those of the need accounted for in @ret_rest: what lies at @ret_base in all. 0: the end; -E. */
static ssize_t read_once(struct tcp_lane *lane, unsigned char **ret_base, size_t *ret_rest, bool *ret_full)
{
	struct iovec iov[WEFT_NEED_PIECES + 1];
	size_t room, open = 0;
	unsigned char *base;
	ssize_t n;
	int k = 0;

	if (!base_of(lane, &base))
		return -ENOMEM;
	room = TCP_STAGE - lane->rest - (lane->whole ? lane->at : 0);
	if (room > TCP_READ)
		room = TCP_READ;
	if (lane->large && room > TCP_FRONT)
		room = TCP_FRONT;
	if (wf_likely(!lane->need.pieces)) {
		n = wf_call(SYS_recvfrom, lane->fd, (intptr_t)(base + lane->rest), (intptr_t)room, MSG_DONTWAIT, 0, 0);
	} else {
		open = lane->total - lane->got;
		if (open >= 4 * TCP_TAIL)
			room = TCP_TAIL;
		for (uint32_t i = lane->piece; i < lane->need.pieces; i++)
			iov[k++] = lane->need.piece[i];
		iov[k++] = (struct iovec){ base, room };
		n = wf_call(SYS_readv, lane->fd, (intptr_t)iov, k, 0, 0, 0);
	}
	if (n < 0)
		return n;
	*ret_full = (size_t)n == room + open;
	wf_tcp_count(lane, &lane->received, n);
	if ((size_t)n < open)
		open = (size_t)n;
	if (open)
		need_advance(lane, open);
	*ret_base = base;
	*ret_rest = lane->rest + (size_t)n - open;
	return n;
}

/* The rest of something is on its way: waits for it, for a few us. Asked by poll(2), which leaves the socket to who brings it: one that is busy with a read is given it only behind that, and has to
 * do the work of the one who brings it, too. False: it does not come. */
static bool rest_came(const struct tcp_lane *lane, int *tries)
{
	struct pollfd p = { .fd = lane->fd, .events = POLLIN };

	while (++*tries <= REST_TRIES) {
		struct timespec at_once = { 0 };

		if (wf_call(SYS_ppoll, (intptr_t)&p, 1, (intptr_t)&at_once, 0, 0, 0) != 0)
			return true;
	}
	return false;
}

/* Bytes that may be meant for @piece, behind @front others in @stage: read there, and what comes behind both into the stage behind the room for them. If they have begun to come, all of
 * them, or as many as are here in time. How many in all; 0: the end; -E. */
static ssize_t read_into(struct tcp_lane *lane, unsigned char *stage, size_t front, struct iovec piece)
{
	struct iovec iov[3] = { { stage, front }, piece, { stage + front + piece.iov_len, TCP_TAIL } };
	size_t sum = 0, whole = front + piece.iov_len;
	int first = 0, tries = 0;

	for (;;) {
		ssize_t n = wf_call(SYS_readv, lane->fd, (intptr_t)(iov + first), 3 - first, 0, 0, 0);

		if (n == -EAGAIN && sum && rest_came(lane, &tries))
			continue;
		if (n <= 0)
			return sum ? (ssize_t)sum : n;
		sum += (size_t)n;
		if (sum <= front || sum >= whole)
			return (ssize_t)sum;
		first = 1;
		iov[1] = (struct iovec){ (char *)piece.iov_base + (sum - front), whole - sum };
	}
}

/* The core has a guess where the next bytes go. As need_end; @ret_n as of read_once; -EFAULT: they cannot go there, nothing happened. */
WF_HOT static int read_ahead(struct tcp_ref ref, size_t front, struct iovec piece, int *events, ssize_t *ret_n)
{
	struct tcp_lane *lane = ref.lane;
	unsigned char *stage;
	size_t got;
	ssize_t n;
	int r;

	if (!stage_have(lane->rail) || front + piece.iov_len + TCP_TAIL > TCP_STAGE) {
		*ret_n = -EFAULT;
		return 0;
	}
	stage = lane->rail->stage;
	*ret_n = n = read_into(lane, stage, front, piece);
	if (n <= 0)
		return 0;
	wf_tcp_count(lane, &lane->received, n);
	if ((size_t)n <= front)
		return feed(ref, stage, (size_t)n, events);
	got = (size_t)n - front < piece.iov_len ? (size_t)n - front : piece.iov_len;
	++*events;
	r = lane->rail->up->came_ahead(lane->cookie, stage, front, got);
	if (!wf_tcp_same(ref))
		return 1;
	if (wf_unlikely(r == 0))
		return feed(ref, stage, (size_t)n, events);
	if (r < 0)
		return r;
	return (size_t)n > front + got ? feed(ref, stage + front + got, (size_t)n - front - got, events) : 0;
}

/* A need was dropped: what had come of it is told before anything else. As need_end. */
static int obey_drop(struct tcp_ref ref)
{
	if (!(atomic_fetch_and(&ref.lane->word, ~TCP_DROP) & TCP_DROP) || !ref.lane->need.pieces)
		return 0;
	return need_end(ref);
}

/* The end, or an error: always false. */
static WF_SLOW bool read_fails(struct tcp_ref ref, ssize_t n, int *ret_events)
{
	++*ret_events;
	return wf_tcp_fail(ref, (int)n);
}

/* What @r, an answer as of need_end, means for the lane: as wf_tcp_read. */
static WF_SLOW bool read_ends(struct tcp_ref ref, int r, int *ret_events)
{
	return r < 0 ? read_fails(ref, r, ret_events) : r == 0;
}

/* Whatever there is, behind @sum bytes that were read already; @front and rail->guess as ahead() has answered. */
static __attribute__((noinline)) bool read_any(struct tcp_ref ref, size_t sum, size_t front, int *ret_events)
{
	struct tcp_lane *lane = ref.lane;
	struct iovec piece = lane->rail->guess;
	bool full = true;
	int r = 0;

	if (atomic_load_explicit(&lane->word, memory_order_relaxed) & TCP_DROP)
		r = obey_drop(ref);
	while (full && sum < BYTES && r == 0) {
		unsigned char *base = NULL;
		size_t rest = 0;
		ssize_t n;

		if (front) {
			r = read_ahead(ref, front, piece, ret_events, &n);
			if (n != -EFAULT)
				full = false;
			else
				front = 0;      /* no such memory: whose it is will find out; or more than was thought of */
		}
		if (!front)
			n = read_once(lane, &base, &rest, &full);
		if (n == -EAGAIN || n == -EINTR)
			return true;
		if (n <= 0)
			return read_fails(ref, n, ret_events);
		sum += (size_t)n;
		if (r == 0 && lane->need.pieces && lane->got >= lane->need.min) {
			++*ret_events;
			r = need_end(ref);
		}
		if (r == 0 && rest)
			r = feed(ref, base, rest, ret_events);
		if (atomic_load_explicit(&lane->word, memory_order_relaxed) & TCP_DROP)
			break;          /* somebody waits for us to leave: T1 */
		if (lane->later)
			break;
		front = r == 0 && full && lane->rail->up->ahead && !lane->rest && !lane->need.pieces ? lane->rail->up->ahead(lane->cookie, &piece) : 0;
	}
	return wf_likely(r == 0) || read_ends(ref, r, ret_events);
}

/* Where the core has a guess and nothing else is in the way. */
WF_HOT static __attribute__((noinline)) bool read_guessed(struct tcp_ref ref, size_t front, int *ret_events)
{
	struct iovec piece = ref.lane->rail->guess;
	ssize_t n;
	int r = read_ahead(ref, front, piece, ret_events, &n);

	if (wf_likely(n > 0 || n == -EAGAIN))
		return wf_likely(r == 0) || read_ends(ref, r, ret_events);
	if (n == -EFAULT)
		return read_any(ref, 0, 0, ret_events);          /* no such memory: whose it is will find out; or more than was thought of */
	return n == -EINTR || read_fails(ref, n, ret_events);
}

/* Of @n bytes that were read to the stage, @full if there may be more, take() has taken @took and asked for rail->asked: not all of them, or not for nothing; or there may be more. */
static WF_SLOW bool read_on(struct tcp_ref ref, size_t n, bool full, ssize_t took, int *ret_events)
{
	struct feed f = { .p = ref.lane->rail->stage, .len = n };
	int r = fed(ref, &f, took, &ref.lane->rail->asked);

	if (r == 0)
		r = feed_on(ref, &f, ret_events);
	if (r != 0)
		return read_ends(ref, r, ret_events);
	if (!full || ref.lane->later || (atomic_load_explicit(&ref.lane->word, memory_order_relaxed) & TCP_DROP))
		return true;
	return read_any(ref, n, 0, ret_events);
}

/* It has no memory of its own on the stack that others are told of, so that what it does last it jumps to: recv.c says what a return costs. */
WF_HOT bool wf_tcp_read(struct tcp_ref ref, int *ret_events)
{
	struct tcp_lane *lane = ref.lane;
	struct tcp_rail *rail = lane->rail;
	struct weft_need *need = &rail->asked;
	size_t front = 0, room;
	ssize_t n, took;

	lane->later = false;
	if (wf_likely(!(lane->rest | lane->need.pieces)) && rail->up->ahead)
		front = rail->up->ahead(lane->cookie, &rail->guess);
	if (wf_unlikely(lane->want || lane->block || lane->need.pieces || !rail->stage || (atomic_load_explicit(&lane->word, memory_order_relaxed) & TCP_DROP)))
		return read_any(ref, 0, front, ret_events);
	if (front)
		return read_guessed(ref, front, ret_events);
	/* As mostly: nothing was left, and nothing is needed elsewhere. */
	room = lane->large ? TCP_FRONT : TCP_READ;
	n = wf_call(SYS_recvfrom, lane->fd, (intptr_t)rail->stage, (intptr_t)room, MSG_DONTWAIT, 0, 0);
	if (wf_unlikely(n <= 0))
		return n == -EAGAIN || n == -EINTR || read_fails(ref, n, ret_events);
	++*ret_events;
	wf_tcp_count(lane, &lane->received, n);
	need->pieces = 0;
	need->min = need->want = 0;
	need->later = 0;
	took = rail->up->take(lane->cookie, rail->stage, (size_t)n, need);
	/* As mostly: all is taken, and there is nothing to remember. */
	if (wf_unlikely(took != n || (size_t)n == room || (need->pieces | need->later | need->want) || !wf_tcp_same(ref)))
		return read_on(ref, (size_t)n, (size_t)n == room, took, ret_events);
	if (wf_unlikely(n > (ssize_t)TCP_SMALL))
		lane->large = lane->huge = false;
	return true;
}
