/* worker.c - one thread of a chaos job: sends to everybody and receives from everybody, in every way there is.
 *
 * Sending     numbers count per (this worker, that worker), and a number is used up only by a send that was accepted and not
 *             taken back: so what arrives is 0, 1, 2 ... without a hole, whatever timed out or was cancelled between.
 * Receiving   several receives are posted at once, some for anybody, some for one sender. A message goes to the first posted
 *             one that fits, so looking at them in the order of posting, each sender's numbers must count up.
 * The end     each sends each a last message, numbered like all, and goes when all who live have sent theirs and nothing of
 *             its own is under way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "member.h"
#include "payload.h"

#define SENDS 6                         /* posted at once */
#define RECVS 4
#define SHORT_ROOM 4096u
#define HELD_MOST (24u << 20)           /* bytes of own sends under way */

#define TAG_LAST (UINT64_C(1) << 62)

struct out {
	struct weft_req *req;
	uint32_t to;
	void *mem;                      /* of ours until it is over */
	struct weft_buf *kept;          /* lent: to be put when it is over */
	size_t len;
};

struct in {
	struct weft_req *req;
	uint32_t from;                  /* EVERYBODY: anybody */
	bool alloc;
	void *mem;
	size_t room;
	bool over;                      /* on the spot; it waits for its turn all the same: */
	int err;
	struct weft_status st;
};

struct worker {
	uint32_t number, me;            /* in the process; in the job */
	uint64_t random;
	uint32_t next_out[EVERYBODY], next_in[EVERYBODY];
	bool told[EVERYBODY], heard[EVERYBODY];         /* the last message */
	struct out out[SENDS];
	struct in in[RECVS];            /* the oldest first */
	uint32_t posted;
	size_t held;
	struct weft_buf *spare;         /* a received one, to be sent on */
	char *large;
};

#define BEAT(w) (atomic_fetch_add_explicit(&mine->beat[(w)->number], 1, memory_order_relaxed), \
		 atomic_store_explicit(&mine->where[(w)->number], __LINE__, memory_order_relaxed))

static uint64_t roll(struct worker *w)
{
	uint64_t z = (w->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static bool one_in(struct worker *w, unsigned n)
{
	return roll(w) % n == 0;
}

/* 0 to 16 MiB, each power of two as likely as another. */
static size_t some_length(struct worker *w)
{
	unsigned bits = (unsigned)(roll(w) % 25);
	size_t top = (size_t)1 << bits;

	return bits == 0 ? 0 : top / 2 + roll(w) % (top / 2) + 1;
}

static bool is_dead(uint32_t who)
{
	return !everybody[who] || atomic_load(&dead) >> (who / WORKERS) & 1;
}

static bool was_killed(uint32_t who)
{
	return atomic_load(&score->killed) >> (who / WORKERS) & 1;
}

static bool means_dead(int err)
{
	return err == -ESRCH || err == -ECONNRESET;
}

static uint32_t who_is(weft_id id)
{
	for (uint32_t i = 0; i < EVERYBODY; i++)
		if (everybody[i] == id)
			return i;
	return EVERYBODY;
}

/* A message has come: is it the one that must come next, and whole? */
static void check(struct worker *w, const struct weft_status *st, const void *mem)
{
	uint32_t from = who_is(st->from);
	struct payload_name n = { .from = st->from, .to = everybody[w->me], .number = (uint32_t)st->tag, .len = st->len };
	size_t said = st->tag >> 32 & 0x1ffffff, at;

	BEAT(w);
	if (from == EVERYBODY) {
		fault("a message from nobody, %llx", (unsigned long long)st->from);
		return;
	}
	/* Of one that was killed the last messages may be half there, and are left out. */
	if ((w->next_in[from] != n.number && !(was_killed(from) && n.number > w->next_in[from])) || w->heard[from])
		fault("%u got number %u from %u instead of %u%s", w->me, (uint32_t)n.number, from, w->next_in[from],
		      w->heard[from] ? " after the last" : "");
	w->next_in[from] = (uint32_t)n.number + 1;
	if (said != st->len)
		fault("%u got %zu bytes from %u instead of %zu", w->me, st->len, from, said);
	else if ((at = payload_wrong(mem, &n)) < n.len)
		fault("%u got wrong bytes from %u: number %u, at %zu of %zu", w->me, from, (uint32_t)n.number, at, st->len);
	w->heard[from] |= (st->tag & TAG_LAST) != 0;
	atomic_fetch_add(&mine->received, 1);
	atomic_fetch_add(&mine->bytes, st->len);
}

static void take_buffer(struct worker *w, struct weft_status *st)
{
	int r = 0;

	if (!st->buf && st->len)
		fault("%u got %zu bytes and no buffer", w->me, st->len);
	check(w, st, st->buf ? st->buf->data : NULL);
	if (!w->spare && st->buf && !(st->flags & WEFT_ST_SHARED) && one_in(w, 2))
		w->spare = st->buf;
	else
		r = weft_buf_put(st->buf);
	if (r < 0)
		fault("buf_put: %d %s", r, weft_last_error());
}

/* Sends */

static void out_over(struct worker *w, struct out *o, int err, struct weft_buf *back)
{
	BEAT(w);
	if (means_dead(err))
		told_dead(o->to / WORKERS, err, "a send");
	else if (err < 0)
		fault("a posted send of %zu bytes to %u: %d", o->len, o->to, err);
	if (back && back != o->kept && weft_buf_put(back) < 0)
		fault("buf_put of what came back: %s", weft_last_error());
	if (o->kept && weft_buf_put(o->kept) < 0)
		fault("buf_put of what was lent: %s", weft_last_error());
	free(o->mem);
	w->held -= o->len;
	memset(o, 0, sizeof(*o));
}

/* Ends of posted sends, waiting until @until for one. True: none is left. */
static bool reap_sends(struct worker *w, weft_time until)
{
	struct weft_req *req[SENDS];
	struct weft_status st[SENDS];
	int which[SENDS], n, left = 0;

	for (int i = 0; i < SENDS; i++)
		req[i] = w->out[i].req;
	n = weft_req_wait_some(req, SENDS, 1, SENDS, until, which, st);
	if (n < 0 && n != -ETIMEDOUT && n != -EAGAIN)
		fault("wait_some: %d %s", n, weft_last_error());
	for (int i = 0; i < n; i++)
		out_over(w, &w->out[which[i]], st[i].err, st[i].err < 0 ? st[i].buf : NULL);
	for (int i = 0; i < SENDS; i++)
		left += w->out[i].req != NULL;
	return left == 0;
}

static struct out *free_out(struct worker *w)
{
	for (int i = 0; i < SENDS; i++)
		if (!w->out[i].req)
			return &w->out[i];
	return NULL;
}

static struct payload_name name_next(struct worker *w, uint32_t to, size_t len, uint64_t *ret_tag)
{
	*ret_tag = (uint64_t)len << 32 | w->next_out[to];
	return (struct payload_name){ .from = everybody[w->me], .to = everybody[to], .number = w->next_out[to], .len = len };
}

static void accepted(struct worker *w, uint32_t to)
{
	w->next_out[to]++;
	atomic_fetch_add(&mine->sent, 1);
}

static struct weft_buf *get_buffer(struct worker *w, size_t len)
{
	struct weft_buf *b = w->spare;
	int r = 0;

	if (b && b->cap >= len) {
		w->spare = NULL;
		b->len = len;
		return b;
	}
	b = NULL;
	r = weft_buf_get(len, 0, &b);
	if (r < 0 && r != -EAGAIN)
		fault("buf_get %zu: %d %s", len, r, weft_last_error());
	return b;
}

static void send_blocking(struct worker *w, uint32_t to, size_t len)
{
	weft_time until = one_in(w, 8) ? WEFT_NOW : weft_in((int64_t)(roll(w) % 20) * WEFT_MS);
	struct weft_buf *b = NULL;
	uint64_t tag;
	struct payload_name n = name_next(w, to, len, &tag);
	void *mem = NULL;
	int r;

	if (one_in(w, 2)) {
		b = get_buffer(w, len);
		if (!b)
			return;
		payload_fill(b->data, &n);
		r = weft_buf_send(NULL, everybody[to], tag, b, until);
		if (r < 0 && weft_buf_put(b) < 0)
			fault("buf_put of one that was not sent (%d): %s", r, weft_last_error());
	} else {
		mem = malloc(len + 1);
		if (!mem)
			return;
		payload_fill(mem, &n);
		r = weft_send(NULL, everybody[to], tag, mem, len, until);
		memset(mem, 0xee, len);
		free(mem);
	}
	if (r == 0)
		accepted(w, to);
	else if (means_dead(r))
		told_dead(to / WORKERS, r, "a blocking send");
	else if (r == -ETIMEDOUT || r == -EAGAIN)
		atomic_fetch_add(&mine->refused, 1);
	else
		fault("a blocking send of %zu bytes to %u: %d %s", len, to, r, weft_last_error());
}

/* Takes back what was just posted; unless it was too late its number is free again. */
static void cancel_send(struct worker *w, struct out *o)
{
	struct weft_status st;
	uint32_t to = o->to;
	int r;

	weft_req_cancel(o->req);
	BEAT(w);
	r = weft_req_wait(&o->req, WEFT_FOREVER, &st);
	if (r == -ECANCELED) {
		w->next_out[to]--;
		atomic_fetch_sub(&mine->sent, 1);
		atomic_fetch_add(&mine->cancelled, 1);
		r = 0;
	}
	out_over(w, o, r, st.err < 0 ? st.buf : NULL);
}

static void send_posted(struct worker *w, uint32_t to, size_t len)
{
	static const uint32_t some_flags[] = { 0, 0, 0, 0, WEFT_SYNC, WEFT_SYNC, WEFT_RENDEZVOUS, WEFT_COPY };
	struct out *o = free_out(w);
	uint32_t flags = some_flags[roll(w) % 8];
	struct weft_op op = { .size = sizeof(op), .peer = everybody[to] };
	struct payload_name n = name_next(w, to, len, &op.tag);
	int r;

	if (!o || w->held + len > HELD_MOST)
		return;
	o->to = to;
	o->len = len;
	op.flags = flags;
	if (flags != WEFT_COPY && one_in(w, 2)) {
		op.buf = get_buffer(w, len);
		if (!op.buf)
			return;
		payload_fill(op.buf->data, &n);
		if (one_in(w, 4)) {
			op.flags |= WEFT_KEEP;
			o->kept = op.buf;
		}
	} else {
		o->mem = malloc(len + 1);
		if (!o->mem)
			return;
		payload_fill(o->mem, &n);
		op.data = o->mem;
		op.len = len;
	}
	w->held += len;
	r = weft_send_post(NULL, &op, &o->req);
	if (r >= 0)
		accepted(w, to);
	if (r == 0 && one_in(w, 8)) {
		cancel_send(w, o);
		return;
	}
	if (r == 0)
		return;
	if (r == -EAGAIN || (r == -ENOBUFS && flags == WEFT_COPY)) {
		atomic_fetch_add(&mine->refused, 1);
		out_over(w, o, 0, op.buf);
	} else {
		out_over(w, o, r == WEFT_DONE ? 0 : r, r < 0 ? op.buf : NULL);
	}
}

static void send_something(struct worker *w)
{
	uint32_t to = (uint32_t)(roll(w) % EVERYBODY);
	size_t len = some_length(w);

	BEAT(w);
	if (to == w->me || is_dead(to))
		return;
	if (one_in(w, 3))
		send_blocking(w, to, len);
	else
		send_posted(w, to, len);
}

/* Receives */

static void in_over(struct worker *w, struct in *i, int err, struct weft_status *st)
{
	BEAT(w);
	if (err == 0 && i->alloc)
		take_buffer(w, st);
	else if (err == 0)
		check(w, st, i->mem);
	else if (means_dead(err) && i->from < EVERYBODY) {
		if (!w->heard[i->from])         /* after its last message a worker ends, and with it its id */
			told_dead(i->from / WORKERS, err, "a receive");
	} else if (err == -ECONNRESET && atomic_load(&score->killed)) {
		BEAT(w);                        /* of anybody, and it died before all of it was there */
	} else if (err != -ECANCELED && !(err == -EMSGSIZE && !i->alloc && st->len > i->room))
		fault("a receive of %u (%llx): %d %s", i->from, (unsigned long long)st->from, err, weft_last_error());
	if (i->mem != w->large)
		free(i->mem);
}

/* From @from or anybody: into a buffer, into room for everything (one at a time), or into little room: many are too long. */
static void post_recv(struct worker *w, uint32_t from)
{
	struct in *i = &w->in[w->posted];
	bool large_used = false;
	int r;

	for (uint32_t k = 0; k < w->posted; k++)
		large_used |= w->in[k].mem == w->large;
	*i = (struct in){ .from = from, .alloc = one_in(w, 2) };
	if (!i->alloc) {
		i->room = large_used ? SHORT_ROOM : LARGEST;
		i->mem = large_used ? malloc(SHORT_ROOM) : w->large;
	}
	r = weft_recv_post(NULL, WEFT(op, .flags = i->alloc ? WEFT_ALLOC : 0,
				      .peer = from == EVERYBODY ? WEFT_ANY : everybody[from],
				      .tag = WEFT_ANY_TAG, .data = i->mem, .len = i->room), &i->req, &i->st);
	if (r != 0) {
		i->over = true;
		i->err = r == WEFT_DONE ? i->st.err : r;
	}
	w->posted++;
}

/* The oldest posted receive, until @until; one that was for one sender only may be taken back then. */
static void reap_recv(struct worker *w, weft_time until)
{
	struct in *i = &w->in[0];
	int r;

	if (!w->posted)
		return;
	r = i->over ? i->err : weft_req_wait(&i->req, until, &i->st);
	if (i->req && (r == -ETIMEDOUT || r == -EAGAIN)) {
		if (i->from == EVERYBODY && !one_in(w, 4))
			return;
		weft_req_cancel(i->req);
		BEAT(w);
		r = weft_req_wait(&i->req, WEFT_FOREVER, &i->st);
	}
	in_over(w, i, r, &i->st);
	memmove(&w->in[0], &w->in[1], --w->posted * sizeof(w->in[0]));
}

/* Nothing is posted: a blocking receive, into memory or a buffer, or a probe and what it found. */
static void recv_blocking(struct worker *w, uint32_t from, weft_time until)
{
	struct in i = { .from = from };
	weft_id id = from == EVERYBODY ? WEFT_ANY : everybody[from];
	struct weft_status st = { .err = 0 };
	struct weft_msg *msg = NULL;
	int r;

	switch (roll(w) % 3) {
	case 0:
		i.mem = w->large;
		i.room = LARGEST;
		r = weft_recv(NULL, id, WEFT_ANY_TAG, i.mem, i.room, until, &st);
		break;
	case 1:
		i.alloc = true;
		r = weft_buf_recv(NULL, id, WEFT_ANY_TAG, until, &st.buf, &st);
		break;
	default:
		r = weft_probe(NULL, WEFT(op, .peer = id, .tag = WEFT_ANY_TAG), until, &msg, &st);
		if (r < 0)
			break;
		i.mem = w->large;
		i.room = LARGEST;
		BEAT(w);
		r = weft_recv_post(NULL, WEFT(op, .msg = msg, .data = i.mem, .len = i.room), &i.req, &st);
		if (r == 0)
			r = weft_req_wait(&i.req, WEFT_FOREVER, &st);
		else if (r == WEFT_DONE)
			r = st.err;
	}
	if (r != -ETIMEDOUT && r != -EAGAIN)
		in_over(w, &i, r, &st);
}

static void recv_something(struct worker *w, int64_t patience)
{
	uint32_t from = (uint32_t)(one_in(w, 3) ? roll(w) % EVERYBODY : EVERYBODY);

	if (from < EVERYBODY && (from == w->me || is_dead(from) || w->heard[from]))
		from = EVERYBODY;
	if (w->posted == 0 && one_in(w, 3))
		recv_blocking(w, from, weft_in(patience));
	else if (w->posted < RECVS && !one_in(w, 3))
		post_recv(w, from);
	else
		reap_recv(w, weft_in(patience));
}

/* The end */

static void tell_last(struct worker *w)
{
	for (uint32_t to = 0; to < EVERYBODY; to++) {
		struct out *o = free_out(w);
		int r;

		if (to == w->me || w->told[to] || is_dead(to))
			continue;
		if (!o)
			return;
		o->to = to;
		r = weft_send_post(NULL, WEFT(op, .peer = everybody[to], .tag = TAG_LAST | w->next_out[to]), &o->req);
		if (r == -EAGAIN)
			return;
		w->told[to] = true;
		if (r >= 0)
			accepted(w, to);
		if (r != 0)
			out_over(w, o, r == WEFT_DONE ? 0 : r, NULL);
	}
}

static uint32_t not_heard(struct worker *w)
{
	for (uint32_t i = 0; i < EVERYBODY; i++)
		if (i != w->me && !w->heard[i] && !is_dead(i))
			return i;
	return EVERYBODY;
}

static uint32_t not_told(struct worker *w)
{
	for (uint32_t i = 0; i < EVERYBODY; i++)
		if (i != w->me && !w->told[i] && !is_dead(i))
			return i;
	return EVERYBODY;
}

static void tell_missing(struct worker *w, bool sent)
{
	char text[160];
	int n = 0;

	for (uint32_t i = 0; i < EVERYBODY && n < 120; i++)
		if (i != w->me && !w->heard[i] && !is_dead(i))
			n += snprintf(text + n, sizeof(text) - (size_t)n, " %u (next %u)", i, w->next_in[i]);
	fault("%u waits in vain: sends %s, not told %u, not heard of%s", w->me, sent ? "over" : "pending", not_told(w),
	      n ? text : " nobody");
}

static void say_goodbye(struct worker *w)
{
	weft_time until = weft_in(score->patience_ms * WEFT_MS);
	bool sent;

	/* The last messages too have to be over: with its sender's port ends what has not been matched. */
	while (!(sent = reap_sends(w, WEFT_NOW)) || not_told(w) < EVERYBODY || not_heard(w) < EVERYBODY) {
		if (sent)
			tell_last(w);
		recv_something(w, 2 * WEFT_MS);
		BEAT(w);
		if (weft_now() > until) {
			tell_missing(w, sent);
			return;
		}
	}
}

/* Nothing more can be there but what the dead left. */
static void nothing_left(struct worker *w)
{
	struct weft_status st;

	while (w->posted) {
		if (w->in[0].req)
			weft_req_cancel(w->in[0].req);
		reap_recv(w, WEFT_FOREVER);
	}
	while (weft_buf_recv(NULL, WEFT_ANY, WEFT_ANY_TAG, WEFT_NOW, &st.buf, &st) == 0) {
		if (!is_dead(who_is(st.from)))
			fault("%u got one more from %u", w->me, who_is(st.from));
		take_buffer(w, &st);
	}
	if (w->spare && weft_buf_put(w->spare) < 0)
		fault("buf_put of the spare: %s", weft_last_error());
}

void worker_run(uint32_t number)
{
	struct worker *w = calloc(1, sizeof(*w));
	weft_time until = weft_in(score->traffic_ms * WEFT_MS);

	if (!w || !(w->large = malloc(LARGEST)))
		abort();
	w->number = number;
	w->me = rank * WORKERS + number;
	w->random = score->seed + w->me * UINT64_C(0x632be59bd9b4e019);
	while (weft_now() < until && !atomic_load(&mine->faults)) {
		if (one_in(w, 2))
			send_something(w);
		else
			recv_something(w, (int64_t)(roll(w) % 3) * WEFT_MS);
		reap_sends(w, WEFT_NOW);
	}
	say_goodbye(w);
	if (!atomic_load(&mine->faults))
		nothing_left(w);
	free(w->large);
	free(w);
}
