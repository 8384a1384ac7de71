/* crowd_worker.c - one thread of a chaos job: sends to everybody and receives from everybody, in every way there is.
 *
 * Sending     numbers count per pair of workers, and only a send that was accepted and not taken back uses one up: what arrives is 0, 1, 2 ...
 *             without a hole, whatever timed out or was cancelled between.
 * Receiving   up to four receives are posted. A message goes to the first posted one that fits it, so looked at in the order of posting each
 *             sender's numbers count up.
 * The end     each tells each how many there were, and goes when all who live have done so and nothing of its own is under way.
 */
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "crowd.h"

#define SENDS 5
#define RECVS 4
#define LITTLE 4096u                    /* room of a receive for which much is too long */
#define HELD_MOST (12u << 20)           /* bytes of own sends under way */
#define LAST (UINT64_C(1) << 62)        /* tag: no more follow */
#define LENGTH_AT 32                    /* tag: length above, number below */

struct out {
	struct weft_req *req;
	uint32_t to;
	size_t len;
	void *mem;                      /* of ours until it is over */
	struct weft_buf *lent;
};

struct in {
	struct weft_req *req;
	uint32_t from;                  /* EVERYBODY: of anybody */
	bool alloc, over;               /* over: on the spot, but it waits for its turn */
	void *mem;
	size_t room;
	int err;
	struct weft_status st;
};

struct worker {
	uint32_t number, me;            /* in the process; in the job */
	uint32_t friend;                /* who gets most for a while: between two many are under way, and could overtake each other */
	uint64_t random;
	uint32_t next_out[EVERYBODY], next_in[EVERYBODY];
	bool told[EVERYBODY], heard[EVERYBODY];
	struct out out[SENDS];
	struct in in[RECVS];            /* the oldest first */
	uint32_t posted;
	size_t held;
	char *large;                    /* room for anything; one receive at a time has it */
};

#define BEAT(w) (atomic_fetch_add_explicit(&mine->beat[(w)->number], 1, memory_order_relaxed), \
		 atomic_store_explicit(&mine->line[(w)->number], __LINE__, memory_order_relaxed))

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 32)) * UINT64_C(0xd6e8feb86659fd93);
	z = (z ^ (z >> 32)) * UINT64_C(0xd6e8feb86659fd93);
	return z ^ (z >> 32);
}

static uint64_t roll(struct worker *w)
{
	return mix(w->random += UINT64_C(0x9e3779b97f4a7c15));
}

static bool one_in(struct worker *w, unsigned n)
{
	return roll(w) % n == 0;
}

/* From nothing to the most, each power of two as likely as another. */
static size_t some_length(struct worker *w)
{
	size_t top = (size_t)1 << (roll(w) % 24);

	return (top + roll(w) % top) % (score->most + 1) * !one_in(w, 16);
}

static bool is_dead(uint32_t who)
{
	return !everybody[who] || atomic_load(&dead) >> (who / WORKERS) & 1;
}

static bool was_killed(uint32_t who)
{
	return atomic_load(&score->killed) >> (who / WORKERS) & 1;
}

/* Bytes */

/* Every word of a payload tells which message it is of, and where. */
static uint64_t key_of(weft_id from, weft_id to, uint32_t number, size_t len)
{
	return mix(mix(mix(from) + to) + number) + len;
}

static uint64_t word_at(uint64_t key, size_t at)
{
	uint64_t z = (key ^ at) * UINT64_C(0x9fb21c651e98df25);

	return z ^ (z >> 28);
}

static void payload_fill(char *mem, uint64_t key, size_t len)
{
	for (size_t at = 0; at < len; at += 8) {
		uint64_t word = word_at(key, at);

		memcpy(mem + at, &word, len - at < 8 ? len - at : 8);
	}
}

/* The place of the first wrong word; @len: none. */
static size_t payload_wrong(const char *mem, uint64_t key, size_t len)
{
	for (size_t at = 0; at < len; at += 8) {
		uint64_t word = word_at(key, at);

		if (memcmp(mem + at, &word, len - at < 8 ? len - at : 8))
			return at;
	}
	return len;
}

/* A message has come: is it the one that must come next, and whole? */
static void got(struct worker *w, const struct weft_status *st, const void *mem)
{
	uint32_t from = 0, number = (uint32_t)st->tag;
	size_t said = st->tag >> LENGTH_AT & 0xffffff, at;

	BEAT(w);
	while (from < EVERYBODY && everybody[from] != st->from)
		from++;
	if (from == EVERYBODY) {
		fault("%u got a message from nobody, %llx", w->me, (unsigned long long)st->from);
		return;
	}
	/* Of one that was killed some may be missing, but none comes again. */
	if ((number != w->next_in[from] && !(was_killed(from) && number > w->next_in[from])) || w->heard[from])
		fault("%u got number %u from %u instead of %u%s", w->me, number, from, w->next_in[from], w->heard[from] ? " after the last" : "");
	w->next_in[from] = number + 1;
	if (said != st->len)
		fault("%u got %zu bytes from %u instead of %zu", w->me, st->len, from, said);
	else if ((at = payload_wrong(mem, key_of(st->from, everybody[w->me], number, said), said)) < said)
		fault("%u got wrong bytes from %u: number %u, at %zu of %zu", w->me, from, number, at, said);
	w->heard[from] |= (st->tag & LAST) != 0;
	atomic_fetch_add(&mine->received, 1);
	atomic_fetch_add(&mine->bytes, st->len);
}

/* Sends */

static void put(struct weft_buf *b, const char *what)
{
	if (weft_buf_put(b) < 0)
		fault("buf_put of %s: %s", what, weft_last_error());
}

static void out_over(struct worker *w, struct out *o, int err, struct weft_buf *back)
{
	BEAT(w);
	if (means_dead(err))
		told_dead(o->to / WORKERS, err, "a send");
	else if (err < 0)
		fault("a send of %zu bytes from %u to %u: %d", o->len, w->me, o->to, err);
	if (back && back != o->lent)
		put(back, "one that came back");
	if (o->lent)
		put(o->lent, "one that was lent");
	free(o->mem);
	w->held -= o->len;
	*o = (struct out){ 0 };
}

/* True: nothing is under way. */
static bool reap_sends(struct worker *w)
{
	bool none = true;

	for (int i = 0; i < SENDS; i++) {
		struct out *o = &w->out[i];
		struct weft_status st;
		int r = o->req ? weft_req_wait(&o->req, WEFT_NOW, &st) : -EAGAIN;

		if (r != -EAGAIN)
			out_over(w, o, r, r < 0 ? st.buf : NULL);
		none &= o->req == NULL;
	}
	return none;
}

static struct out *free_out(struct worker *w)
{
	for (int i = 0; i < SENDS; i++)
		if (!w->out[i].req)
			return &w->out[i];
	return NULL;
}

/* What one sends to one always goes with the same priority, as only then its order is promised: 0 for most pairs. */
static int8_t prio_to(struct worker *w, uint32_t to)
{
	uint64_t z = mix(w->me * EVERYBODY + to);

	return z % 4 ? 0 : (int8_t)(z / 4 % 8) - 4;
}

/* Memory or a buffer, filled, in @op. False: there is none now. */
static bool pack(struct worker *w, struct weft_op *op, uint32_t to, size_t len, bool buffer)
{
	uint64_t key = key_of(everybody[w->me], everybody[to], w->next_out[to], len);

	op->size = sizeof(*op);
	op->peer = everybody[to];
	op->prio = prio_to(w, to);
	op->tag = (uint64_t)len << LENGTH_AT | w->next_out[to];
	if (buffer) {
		if (weft_buf_get(len, 0, &op->buf) < 0)
			return false;
		payload_fill(op->buf->data, key, len);
		return true;
	}
	op->data = malloc(len + 1);
	op->len = len;
	if (op->data)
		payload_fill(op->data, key, len);
	return op->data != NULL;
}

static void accepted(struct worker *w, uint32_t to)
{
	w->next_out[to]++;
	atomic_fetch_add(&mine->sent, 1);
}

static void send_blocking(struct worker *w, uint32_t to, size_t len)
{
	weft_time until = one_in(w, 8) ? WEFT_NOW : weft_in((int64_t)(roll(w) % 40) * WEFT_MS);
	struct weft_op op = { 0 };
	int r;

	if (!pack(w, &op, to, len, one_in(w, 2)))
		return;
	r = op.buf ? weft_buf_send(NULL, op.peer, op.tag, op.buf, until) : weft_send(NULL, op.peer, op.tag, op.data, len, until);
	if (op.buf && r < 0)
		put(op.buf, "one that was not sent");
	if (op.data)
		memset(op.data, 0xee, len);
	free(op.data);
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
	int r;

	weft_req_cancel(o->req);
	BEAT(w);
	r = weft_req_wait(&o->req, WEFT_FOREVER, &st);
	if (r == -ECANCELED) {
		w->next_out[o->to]--;
		atomic_fetch_sub(&mine->sent, 1);
		atomic_fetch_add(&mine->cancelled, 1);
	}
	out_over(w, o, r == -ECANCELED ? 0 : r, r < 0 ? st.buf : NULL);
}

static void send_posted(struct worker *w, uint32_t to, size_t len)
{
	static const uint32_t some[] = { 0, 0, 0, 0, WEFT_SYNC, WEFT_RENDEZVOUS, WEFT_COPY, WEFT_KEEP };
	struct out *o = free_out(w);
	struct weft_op op = { .flags = some[roll(w) % 8] };
	int r;

	if (!o || w->held + len > HELD_MOST)
		return;
	if (!pack(w, &op, to, len, op.flags == WEFT_KEEP || (op.flags != WEFT_COPY && one_in(w, 2))))
		return;
	*o = (struct out){ .to = to, .len = len, .mem = op.data, .lent = op.flags == WEFT_KEEP ? op.buf : NULL };
	w->held += len;
	r = weft_send_post(NULL, &op, &o->req);
	if (r >= 0)
		accepted(w, to);
	if (r == 0 && one_in(w, 10)) {
		cancel_send(w, o);
	} else if (r == -EAGAIN || (r == -ENOBUFS && op.flags == WEFT_COPY)) {
		atomic_fetch_add(&mine->refused, 1);
		out_over(w, o, 0, op.buf);
	} else if (r != 0) {
		out_over(w, o, r == WEFT_DONE ? 0 : r, r < 0 ? op.buf : NULL);
	}
}

static void send_something(struct worker *w)
{
	uint32_t to;
	size_t len = some_length(w);

	BEAT(w);
	if (one_in(w, 30))
		w->friend = (uint32_t)(roll(w) % EVERYBODY);
	to = one_in(w, 4) ? (uint32_t)(roll(w) % EVERYBODY) : w->friend;
	if (to == w->me || is_dead(to))
		return;
	if (!prio_to(w, to) && one_in(w, 3))
		send_blocking(w, to, len);
	else
		send_posted(w, to, len);
}

/* Receives */

static void in_over(struct worker *w, struct in *i, int err)
{
	BEAT(w);
	if (err == 0) {
		if (i->alloc && !i->st.buf && i->st.len)
			fault("%u got %zu bytes and no buffer", w->me, i->st.len);
		else
			got(w, &i->st, !i->alloc ? i->mem : i->st.buf ? i->st.buf->data : NULL);
		if (i->alloc)
			put(i->st.buf, "a received one");
	} else if (means_dead(err) && i->from < EVERYBODY) {
		if (!w->heard[i->from])         /* after its last message a worker ends, and with it its id */
			told_dead(i->from / WORKERS, err, "a receive");
	} else if (means_dead(err) && atomic_load(&score->killed)) {
		BEAT(w);                        /* of anybody, and it died before all of it was there */
	} else if (err != -ECANCELED && !(err == -EMSGSIZE && !i->alloc && i->st.len > i->room)) {
		fault("a receive of %u at %u (%llx): %d %s", i->from, w->me, (unsigned long long)i->st.from, err, weft_last_error());
	}
	if (i->mem != w->large)
		free(i->mem);
}

/* Into a buffer, into room for everything (one at a time), or into little room, for which many are too long. */
static void post_recv(struct worker *w, uint32_t from)
{
	struct in *i = &w->in[w->posted];
	bool taken = false;
	int r;

	for (uint32_t k = 0; k < w->posted; k++)
		taken |= w->in[k].mem == w->large;
	*i = (struct in){ .from = from, .alloc = one_in(w, 2) };
	if (!i->alloc) {
		i->room = taken ? LITTLE : LARGEST;
		i->mem = taken ? malloc(LITTLE) : w->large;
	}
	r = weft_recv_post(NULL, WEFT(op, .flags = i->alloc ? WEFT_ALLOC : 0, .peer = from == EVERYBODY ? WEFT_ANY : everybody[from],
				      .tag = WEFT_ANY_TAG, .data = i->mem, .len = i->room), &i->req, &i->st);
	if (r != 0) {
		i->over = true;
		i->err = r == WEFT_DONE ? i->st.err : r;
	}
	w->posted++;
}

/* The oldest posted receive, until @until; then it may be taken back. */
static void reap_recv(struct worker *w, weft_time until, bool give_up)
{
	struct in *i = &w->in[0];
	int r;

	if (!w->posted)
		return;
	r = i->over ? i->err : weft_req_wait(&i->req, until, &i->st);
	if (i->req) {
		if (!give_up && i->from == EVERYBODY && !one_in(w, 4))
			return;
		weft_req_cancel(i->req);
		BEAT(w);
		r = weft_req_wait(&i->req, WEFT_FOREVER, &i->st);
	}
	in_over(w, i, r);
	memmove(&w->in[0], &w->in[1], --w->posted * sizeof(w->in[0]));
}

static int probe(struct worker *w, weft_id id, weft_time until, struct in *i)
{
	struct weft_msg *msg = NULL;
	int r = weft_probe(NULL, WEFT(op, .peer = id, .tag = WEFT_ANY_TAG), until, &msg, &i->st);

	if (r < 0)
		return r;
	BEAT(w);
	r = weft_recv_post(NULL, WEFT(op, .msg = msg, .data = i->mem, .len = i->room), &i->req, &i->st);
	if (r == 0)
		return weft_req_wait(&i->req, WEFT_FOREVER, &i->st);
	return r == WEFT_DONE ? i->st.err : r;
}

/* Nothing is posted: into memory, into a buffer, or a probe and what it found. */
static void recv_blocking(struct worker *w, uint32_t from, weft_time until)
{
	weft_id id = from == EVERYBODY ? WEFT_ANY : everybody[from];
	struct in i = { .from = from, .mem = w->large, .room = LARGEST };
	int r;

	switch (roll(w) % 3) {
	case 0:
		r = weft_recv(NULL, id, WEFT_ANY_TAG, i.mem, i.room, until, &i.st);
		break;
	case 1:
		i.alloc = true;
		r = weft_buf_recv(NULL, id, WEFT_ANY_TAG, until, &i.st.buf, &i.st);
		break;
	default:
		r = probe(w, id, until, &i);
	}
	if (r != -ETIMEDOUT && r != -EAGAIN)
		in_over(w, &i, r);
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
		reap_recv(w, weft_in(patience), false);
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
		r = weft_send_post(NULL, WEFT(op, .peer = everybody[to], .prio = prio_to(w, to), .tag = LAST | w->next_out[to]), &o->req);
		if (r == -EAGAIN)
			return;
		w->told[to] = true;
		if (r >= 0)
			accepted(w, to);
		if (r != 0)
			out_over(w, o, r == WEFT_DONE ? 0 : r, NULL);
	}
}

static uint32_t missing(struct worker *w, const bool *what)
{
	for (uint32_t i = 0; i < EVERYBODY; i++)
		if (i != w->me && !what[i] && !is_dead(i))
			return i;
	return EVERYBODY;
}

static void tell_missing(struct worker *w, bool sent)
{
	char text[200];
	int n = 0;

	for (uint32_t i = 0; i < EVERYBODY && n < 160; i++)
		if (i != w->me && !w->heard[i] && !is_dead(i))
			n += snprintf(text + n, sizeof(text) - (size_t)n, " %u (next %u)", i, w->next_in[i]);
	fault("%u waits in vain: sends %s, not told %u, not heard of%s", w->me, sent ? "over" : "pending", missing(w, w->told), n ? text : " nobody");
}

static void say_goodbye(struct worker *w)
{
	weft_time until = weft_in((int64_t)score->patience_ms * WEFT_MS);
	bool sent;

	while (!(sent = reap_sends(w)) || missing(w, w->told) < EVERYBODY || missing(w, w->heard) < EVERYBODY) {
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

	while (w->posted)
		reap_recv(w, WEFT_NOW, true);
	while (weft_buf_recv(NULL, WEFT_ANY, WEFT_ANY_TAG, WEFT_NOW, &st.buf, &st) == 0) {
		got(w, &st, st.buf ? st.buf->data : NULL);
		put(st.buf, "what was left");
	}
}

void worker_run(uint32_t number)
{
	struct worker *w = calloc(1, sizeof(*w));
	weft_time until = weft_in((int64_t)score->traffic_ms * WEFT_MS);

	if (!w || !(w->large = malloc(LARGEST)))
		abort();
	w->number = number;
	w->me = rank * WORKERS + number;
	w->random = mix(score->seed + w->me);
	w->friend = (uint32_t)(roll(w) % EVERYBODY);
	while (weft_now() < until && !atomic_load(&mine->faults)) {
		if (one_in(w, 2))
			send_something(w);
		else
			recv_something(w, (int64_t)(roll(w) % 3) * WEFT_MS);
		reap_sends(w);
	}
	say_goodbye(w);
	if (!atomic_load(&mine->faults))
		nothing_left(w);
	free(w->large);
	free(w);
}
