/* test_random_threads.c - threads that send and receive at random never see a pair out of order.
 *
 * Every thread sends a fixed number of messages to every thread, itself included, in random ways
 * and sizes, and meanwhile receives in random ways until it has all of its own. A message says
 * which it is among those of its pair, and among those of its pair and tag. Then for every
 * receive, exact or wild, blocking, posted or by matched probe, these must hold:
 *   - of its sender and tag it is the next;
 *   - if any tag would have done, it is the earliest of its sender not received yet;
 *   - its bytes are its own.
 * Posted receives come in windows of equal ones, checked in the order of posting.
 */
#include <weft/weft.h>

#include "../test.h"

enum { THREADS = 4, TAGS = 3, LARGEST = 50000, OPEN = 48, WINDOW = 8 };

struct head {
	uint32_t src, tag;
	uint64_t of_tag, of_pair;       /* its number among those of the pair and tag, of the pair */
};

struct sending {
	struct weft_req *req;
	unsigned char *memory;
};

struct player {
	int me;
	uint64_t rng;
	uint64_t sent[THREADS], sent_tag[THREADS][TAGS];
	uint64_t next_tag[THREADS][TAGS];
	uint64_t lowest[THREADS];       /* all of the pair below are received */
	unsigned char *had[THREADS];    /* a byte per message of the pair: received */
	uint64_t to_send, to_receive;
	struct sending open[OPEN];
	int nopen;
	unsigned char *window[WINDOW];  /* LARGEST bytes each */
};

static struct { /* set before the threads start, but ids: before the barrier opens */
	uint64_t each;
	uint32_t flags;
	weft_id ids[THREADS];
	pthread_barrier_t ready;
} all;

static uint32_t pick(struct player *p, uint32_t n)
{
	return (uint32_t)(test_random(&p->rng) >> 33) % n;
}

static unsigned char byte_of(const struct head *h, size_t i)
{
	return (unsigned char)(h->of_pair * 13 + h->src + i + (i >> 8));
}

/* Sending */

/* Ends what is over; with @all waits for everything. */
static void sends_end(struct player *p, bool everything)
{
	struct weft_req *reqs[OPEN];
	struct weft_status st[OPEN];
	int which[OPEN], n;

	for (int i = 0; i < p->nopen; i++)
		reqs[i] = p->open[i].req;
	n = weft_req_wait_some(reqs, p->nopen, everything ? p->nopen : 0, OPEN,
			       everything ? WEFT_FOREVER : WEFT_NOW, which, st);
	MUST(n >= 0);
	for (int k = 0; k < n; k++) {
		struct sending *s = &p->open[which[k]];

		CHECK_OK(st[k].err);
		MUST(!reqs[which[k]]);
		free(s->memory);
		s->req = NULL;
	}
	n = 0;
	for (int i = 0; i < p->nopen; i++)
		if (p->open[i].req)
			p->open[n++] = p->open[i];
	p->nopen = n;
}

static int send_in_some_way(struct player *p, weft_id to, uint64_t tag, unsigned char *memory, size_t len,
			    struct weft_req **ret_req)
{
	static const uint32_t flags[] = { 0, 0, 0, WEFT_SYNC, WEFT_RENDEZVOUS, WEFT_COPY };
	struct weft_op op = { .size = sizeof(op), .peer = to, .tag = tag,
			      .flags = all.flags ? all.flags : flags[pick(p, 6)] };
	int r;

	if (pick(p, 4) == 0 && !(op.flags & WEFT_COPY)) {
		if (weft_buf_get(len, 0, &op.buf) == 0) {
			memcpy(op.buf->data, memory, len);
			r = weft_send_post(NULL, &op, ret_req);
			if (r < 0)
				weft_buf_put(op.buf);
			return r;
		}
	}
	op.data = memory, op.len = len;
	return weft_send_post(NULL, &op, ret_req);
}

static void send_one(struct player *p)
{
	uint32_t to = pick(p, THREADS), kind = pick(p, 16);
	struct head h = { .src = (uint32_t)p->me, .tag = pick(p, TAGS) };
	size_t len = sizeof(h) + pick(p, kind == 0 ? LARGEST - sizeof(h) : kind < 4 ? 9000 : 64);
	unsigned char *memory;
	struct weft_req *req = NULL;
	int r;

	if (p->nopen == OPEN)
		sends_end(p, false);
	if (p->sent[to] == all.each || p->nopen == OPEN)
		return;
	h.of_pair = p->sent[to];
	h.of_tag = p->sent_tag[to][h.tag];
	memory = malloc(len);
	MUST(memory);
	for (size_t i = 0; i < len; i++)
		memory[i] = byte_of(&h, i);
	memcpy(memory, &h, sizeof(h));
	r = send_in_some_way(p, all.ids[to], h.tag, memory, len, &req);
	if (r == -EAGAIN) {             /* a copy had no room */
		free(memory);
		return;
	}
	MUST(r == 0 || r == WEFT_DONE);
	p->sent[to]++;
	p->sent_tag[to][h.tag]++;
	p->to_send--;
	if (r == 0)
		p->open[p->nopen++] = (struct sending){ req, memory };
	else
		free(memory);
}

/* Receiving */

static void check_one(struct player *p, const unsigned char *data, const struct weft_status *st, bool any_tag)
{
	struct head h;
	size_t wrong = 0;

	MUST(st->len >= sizeof(h));
	memcpy(&h, data, sizeof(h));
	MUST(h.src < THREADS && h.tag < TAGS && h.of_pair < all.each);
	CHECK_EQ(st->from, all.ids[h.src]);
	CHECK_EQ(st->tag, h.tag);
	for (size_t i = sizeof(h); i < st->len; i++)
		wrong += data[i] != byte_of(&h, i);
	CHECK_EQ(wrong, 0);
	CHECK_EQ(h.of_tag, p->next_tag[h.src][h.tag]++);
	CHECK(!p->had[h.src][h.of_pair]);
	if (any_tag)
		CHECK_EQ(h.of_pair, p->lowest[h.src]);
	p->had[h.src][h.of_pair] = 1;
	while (p->lowest[h.src] < all.each && p->had[h.src][p->lowest[h.src]])
		p->lowest[h.src]++;
	p->to_receive--;
}

static void recv_one(struct player *p, weft_id from, uint64_t tag)
{
	bool last = p->to_send == 0 && from == WEFT_ANY && tag == WEFT_ANY_TAG; /* one is sure to come */
	struct weft_status st;
	int r = weft_recv(NULL, from, tag, p->window[0], LARGEST, last ? WEFT_FOREVER : WEFT_NOW, &st);

	MUST(r == 0 || (r == -EAGAIN && !last));
	if (r == 0)
		check_one(p, p->window[0], &st, tag == WEFT_ANY_TAG);
}

static void recv_buffer(struct player *p, weft_id from, uint64_t tag)
{
	struct weft_status st;
	struct weft_buf *buf;
	int r = weft_buf_recv(NULL, from, tag, WEFT_NOW, &buf, &st);

	MUST(r == 0 || r == -EAGAIN);
	if (r == 0) {
		check_one(p, buf->data, &st, tag == WEFT_ANY_TAG);
		CHECK_OK(weft_buf_put(buf));
	}
}

static void recv_probed(struct player *p, weft_id from, uint64_t tag)
{
	struct weft_msg *msg = NULL;
	struct weft_req *req = NULL;
	struct weft_status seen, st;
	int r = weft_probe(NULL, WEFT(op, .peer = from, .tag = tag), WEFT_NOW, &msg, &seen);

	MUST(r == 0 || r == -EAGAIN);
	if (r < 0)
		return;
	r = weft_recv_post(NULL, WEFT(op, .msg = msg, .data = p->window[0], .len = LARGEST), &req, &st);
	if (r == 0)
		r = weft_req_wait(&req, WEFT_FOREVER, &st);
	MUST(r >= 0);
	CHECK_EQ(st.len, seen.len);
	CHECK_EQ(st.from, seen.from);
	check_one(p, p->window[0], &st, tag == WEFT_ANY_TAG);
}

/* Some equal receives are posted, something else is done, and then those that are not over are
 * cancelled from the last to the first: what a cancelled one might have had goes to one before it. */
static void recv_window(struct player *p, weft_id from, uint64_t tag)
{
	struct weft_req *reqs[WINDOW] = { NULL };
	struct weft_status st[WINDOW];
	int n = 1 + (int)pick(p, WINDOW), r;
	bool over = false;

	for (int i = 0; i < n; i++) {
		r = weft_recv_post(NULL,
				   WEFT(op, .peer = from, .tag = tag, .data = p->window[i], .len = LARGEST),
				   &reqs[i], &st[i]);
		MUST(r == 0 || r == WEFT_DONE);
		MUST((r == 0) == (reqs[i] != NULL));
	}
	for (uint32_t k = pick(p, 8); k && p->to_send; k--)
		send_one(p);
	for (int i = n - 1; i >= 0; i--)
		if (reqs[i] && pick(p, 4)) {
			r = weft_req_wait(&reqs[i], WEFT_NOW, &st[i]);
			MUST(r == 0 || r == -EAGAIN);
		}
	for (int i = n - 1; i >= 0; i--)
		if (reqs[i]) {
			r = weft_req_cancel(reqs[i]);
			MUST(r == 0 || r == -EALREADY);
			r = weft_req_wait(&reqs[i], WEFT_FOREVER, &st[i]);
			MUST(r == 0 || r == -ECANCELED);
			MUST(!reqs[i]);
		}
	for (int i = 0; i < n; i++) {
		if (st[i].err == 0) {
			MUST(!over);            /* none behind one that got nothing */
			check_one(p, p->window[i], &st[i], tag == WEFT_ANY_TAG);
		}
		over |= st[i].err != 0;
	}
}

static void *player_main(void *arg)
{
	struct player *p = arg;

	all.ids[p->me] = weft_self();
	MUST(all.ids[p->me]);
	pthread_barrier_wait(&all.ready);
	while (p->to_send || p->to_receive) {
		weft_id from = pick(p, 2) ? WEFT_ANY : all.ids[pick(p, THREADS)];
		uint64_t tag = pick(p, 2) ? WEFT_ANY_TAG : pick(p, TAGS);

		if (p->to_send && pick(p, 3) == 0)
			send_one(p);
		else if (!p->to_receive)
			sends_end(p, false);
		else if (pick(p, 2))
			recv_one(p, from, tag);
		else if (pick(p, 2))
			recv_window(p, from, tag);
		else if (pick(p, 2))
			recv_probed(p, from, tag);
		else
			recv_buffer(p, from, tag);
	}
	sends_end(p, true);
	pthread_barrier_wait(&all.ready);       /* nobody's port ends while another still sends */
	return NULL;
}

static void play(uint32_t flags, size_t budget)
{
	static struct player players[THREADS];
	pthread_t threads[THREADS];

	all.each = test_scaled(2500);
	all.flags = flags;
	MUST_OK(weft_init(WEFT(init_opts, .budget = budget)));
	pthread_barrier_init(&all.ready, NULL, THREADS);
	for (int i = 0; i < THREADS; i++) {
		struct player *p = &players[i];

		*p = (struct player){ .me = i, .rng = test_seed * 7 + (uint64_t)i,
				      .to_send = THREADS * all.each, .to_receive = THREADS * all.each };
		for (int k = 0; k < THREADS; k++)
			MUST(p->had[k] = calloc(1, all.each));
		for (int k = 0; k < WINDOW; k++)
			MUST(p->window[k] = malloc(LARGEST));
		MUST_OK(pthread_create(&threads[i], NULL, player_main, p));
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		for (int k = 0; k < THREADS; k++) {
			CHECK_EQ(players[i].lowest[k], all.each);
			free(players[i].had[k]);
		}
		for (int k = 0; k < WINDOW; k++)
			free(players[i].window[k]);
	}
	pthread_barrier_destroy(&all.ready);
	CHECK_OK(weft_fini(WEFT_FOREVER));
}

TEST(threads_at_random_keep_the_order_of_every_pair)
{
	play(0, 0);
}

TEST(threads_at_random_keep_it_when_every_send_is_announced)
{
	play(WEFT_RENDEZVOUS, 0);
}

TEST(threads_at_random_keep_it_when_the_budget_is_used_up)
{
	play(0, 65536);
}

TEST_MAIN
