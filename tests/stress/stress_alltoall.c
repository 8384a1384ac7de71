/* stress_alltoall.c - threads send to each other in every way there is and receive in every way
 * there is, sizes from nothing to 1 MiB; every message arrives once, whole, and in order.
 *
 * The tag carries the sender's number and a count per destination; the payload is computed from
 * both. A send that is taken back (deadline, no room for a copy) gives its count to the next one,
 * so that counts arrive without a gap. No thread waits for another without an end: all receive.
 */
#include "../integ/crew.h"

enum { THREADS = 6, SLOTS = 16, MOST = 1 << 20, BATCH = 4 };

/* An operation under way and the memory it holds. */
struct slot {
	enum { FREE, BY_REQUEST, BY_CALLBACK, BY_QUEUE } how;
	_Atomic int ended;              /* a callback or the queue has told */
	int err;
	struct weft_req *req;
	unsigned char *mem;
	struct weft_buf *kept;          /* lent: to be put when the send is over */
	struct iovec iov[3];
};

struct actor {
	int me;
	uint64_t random, budget;
	weft_id id;
	struct weft_queue *queue;
	struct slot slots[SLOTS];
	uint64_t next_out[THREADS], next_in[THREADS];
	unsigned char *in[BATCH];
	uint64_t taken_back, by_way[16];
};

static struct actor actors[THREADS];
static _Atomic uint64_t sent_to[THREADS];
static _Atomic int ready, senders;

static uint64_t word_at(uint64_t tag, size_t i)
{
	return (tag + 1) * UINT64_C(0x9e3779b97f4a7c15) + i * UINT64_C(0xbf58476d1ce4e5b9);
}

static void payload_put(unsigned char *mem, size_t len, uint64_t tag)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t w = word_at(tag, i);

		memcpy(mem + i, &w, len - i < 8 ? len - i : 8);
	}
}

static bool payload_ok(const unsigned char *mem, size_t len, uint64_t tag)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t w = word_at(tag, i);

		if (memcmp(mem + i, &w, len - i < 8 ? len - i : 8))
			return false;
	}
	return true;
}

static size_t size_random(uint64_t *random)
{
	static const size_t most[] = { 24, 88, 88, 200, 1000, 8192, 8192, 9000, 65536, MOST };
	uint64_t r = test_random(random);

	/* The largest are rarer still: they take most of the time. */
	return r % 10 == 9 && r / 10 % 4 ? 0 : (size_t)(r / 64 % (most[r % 10] + 1));
}

static void slot_told(const struct weft_status *st)
{
	struct slot *s = st->user;

	s->err = st->err;
	atomic_store(&s->ended, 1);
}

/* Frees the slot if its operation is over. */
static bool slot_reap(struct slot *s, weft_time until)
{
	if (s->how == BY_REQUEST) {
		int r = weft_req_wait(&s->req, until, NULL);

		if (r == -EAGAIN || r == -ETIMEDOUT)
			return false;
		s->err = r;
	} else if (s->how != FREE && !atomic_load(&s->ended)) {
		return false;
	}
	CHECK_OK(s->err);
	if (s->kept)
		CHECK_OK(weft_buf_put(s->kept));
	free(s->mem);
	*s = (struct slot){ .how = FREE };
	return true;
}

static struct slot *slot_find(struct actor *a)
{
	struct weft_status st[SLOTS];
	int n = weft_queue_next(a->queue, WEFT_NOW, st, SLOTS);

	for (int i = 0; i < n; i++)
		slot_told(&st[i]);
	for (int i = 0; i < SLOTS; i++)
		if (a->slots[i].how == FREE || slot_reap(&a->slots[i], WEFT_NOW))
			return &a->slots[i];
	return NULL;
}

/* Blocking calls with short deadlines: what was not done by then is taken back. */
static int send_blocking(weft_id to, uint64_t tag, size_t len, bool as_buffer)
{
	weft_time soon = weft_in(WEFT_MS / 2);
	int r;

	if (as_buffer) {
		struct weft_buf *buf = NULL;

		MUST_OK(weft_buf_get(len, 0, &buf));
		payload_put(buf->data, len, tag);
		r = weft_buf_send(NULL, to, tag, buf, soon);
		if (r)
			CHECK_OK(weft_buf_put(buf));
	} else {
		unsigned char *mem = memory(len + 1);

		payload_put(mem, len, tag);
		r = weft_send(NULL, to, tag, mem, len, soon);
		/* Done or taken back, it is free again. */
		memset(mem, 0xee, len);
		free(mem);
	}
	CHECK(r == 0 || r == -ETIMEDOUT);
	return r;
}

static void op_memory(struct weft_op *op, struct slot *s, size_t len, uint64_t tag, uint64_t way)
{
	if (way == 4 || way == 5) {
		struct weft_buf *buf = NULL;

		MUST_OK(weft_buf_get(len, 0, &buf));
		payload_put(buf->data, len, tag);
		op->buf = buf;
		if (way == 5) {
			op->flags |= WEFT_KEEP;
			s->kept = buf;
		}
		return;
	}
	s->mem = memory(len + 1);
	payload_put(s->mem, len, tag);
	if (way == 6) {
		s->iov[0] = (struct iovec){ s->mem, len / 3 };
		s->iov[1] = (struct iovec){ s->mem + len / 3, 0 };
		s->iov[2] = (struct iovec){ s->mem + len / 3, len - len / 3 };
		op->iov = s->iov;
		op->niov = 3;
	} else {
		op->data = s->mem;
		op->len = len;
	}
}

static int send_posted(struct actor *a, struct slot *s, weft_id to, uint64_t tag, size_t len, uint64_t way)
{
	static const uint32_t flags[] = { 0, WEFT_SYNC, WEFT_RENDEZVOUS, WEFT_COPY, 0, 0, 0 };
	struct weft_op op = { .size = sizeof(op), .flags = flags[way], .peer = to, .tag = tag, .user = s };

	*s = (struct slot){ .how = (int)(test_random(&a->random) % 3) + BY_REQUEST };
	op_memory(&op, s, len, tag, way);
	if (way != 3 && test_random(&a->random) % 4 == 0)
		op.flags |= WEFT_SYNC;
	if (s->how == BY_CALLBACK)
		op.done = slot_told;
	else if (s->how == BY_QUEUE)
		op.queue = a->queue;
	int r = weft_send_post(NULL, &op, s->how == BY_REQUEST ? &s->req : NULL);
	/* A copy may find no room now, or never, where the budget is small. */
	CHECK(r == 0 || (r == WEFT_DONE && s->how == BY_REQUEST) ||
	      (way == 3 && (r == -EAGAIN || r == -ENOBUFS)));
	if (r < 0) {
		free(s->mem);
		*s = (struct slot){ .how = FREE };
	}
	return r < 0 ? r : 0;
}

static bool actor_send(struct actor *a)
{
	uint64_t way = test_random(&a->random) % 9;
	int dst = (int)(test_random(&a->random) % THREADS), r;
	uint64_t tag = (uint64_t)a->me << 48 | a->next_out[dst];
	size_t len = size_random(&a->random);

	if (way >= 7) {
		r = send_blocking(actors[dst].id, tag, len, way == 8);
	} else {
		struct slot *s = slot_find(a);

		if (!s)
			return false;
		r = send_posted(a, s, actors[dst].id, tag, len, way);
	}
	a->taken_back += r != 0;
	a->next_out[dst] += r == 0;
	if (r == 0)
		atomic_fetch_add(&sent_to[dst], 1);
	return r == 0;
}

static uint64_t in_total(const struct actor *a)
{
	uint64_t n = 0;

	for (int i = 0; i < THREADS; i++)
		n += a->next_in[i];
	return n;
}

static void actor_check(struct actor *a, const struct weft_status *st, const unsigned char *mem)
{
	uint64_t src = st->tag >> 48, count = st->tag & UINT64_C(0xffffffffffff);

	MUST_OK(st->err);
	MUST(src < THREADS && st->from == actors[src].id);
	MUST_EQ(count, a->next_in[src]);
	MUST(payload_ok(mem, st->len, st->tag));
	a->next_in[src]++;
}

/* Several receives at once; those that get nothing for a while are cancelled. */
static void recv_batch(struct actor *a)
{
	struct weft_req *req[BATCH] = { NULL };
	struct weft_status st[BATCH];
	int r[BATCH];

	for (int i = 0; i < BATCH; i++) {
		struct weft_op op = { .size = sizeof(op),
				      .peer = WEFT_ANY,
				      .tag = WEFT_ANY_TAG,
				      .data = a->in[i],
				      .len = MOST };

		r[i] = weft_recv_post(NULL, &op, &req[i], &st[i]);
		MUST(r[i] == 0 || r[i] == WEFT_DONE);
	}
	for (int i = 0; i < BATCH; i++) {
		if (r[i] == 0)
			r[i] = weft_req_wait(&req[i], weft_in(WEFT_MS / 5), &st[i]);
		else
			r[i] = 0;
		if (r[i] == -ETIMEDOUT) {
			weft_req_cancel(req[i]);
			r[i] = weft_req_wait(&req[i], SOON, &st[i]);
		}
		if (r[i] != -ECANCELED)
			actor_check(a, &st[i], a->in[i]);
	}
}

static void recv_matched(struct actor *a, weft_time until, bool alloc)
{
	struct weft_msg *msg = NULL;
	struct weft_status st;
	int r = weft_probe(NULL, WEFT(op, .peer = WEFT_ANY, .tag = WEFT_ANY_TAG), until, &msg, &st);

	if (r < 0) {
		MUST(r == -EAGAIN || r == -ETIMEDOUT);
		return;
	}
	if (alloc) {
		MUST_OK(recv_op(NULL, WEFT(op, .flags = WEFT_ALLOC, .msg = msg), &st));
		actor_check(a, &st, st.buf->data);
		MUST_OK(weft_buf_put(st.buf));
	} else {
		MUST_OK(recv_op(NULL, WEFT(op, .msg = msg, .data = a->in[0], .len = MOST), &st));
		actor_check(a, &st, a->in[0]);
	}
}

static void actor_recv(struct actor *a)
{
	uint64_t way = test_random(&a->random) % 8;
	weft_time until = test_random(&a->random) % 2 ? WEFT_NOW : weft_in(WEFT_MS / 5);
	struct weft_buf *buf = NULL;
	struct weft_status st;
	uint64_t before = in_total(a);
	int r;

	if (way == 0) {
		recv_batch(a);
	} else if (way <= 2) {
		recv_matched(a, until, way == 2);
	} else if (way == 3) {
		r = weft_buf_recv(NULL, WEFT_ANY, WEFT_ANY_TAG, until, &buf, &st);
		MUST(r == 0 || r == -EAGAIN || r == -ETIMEDOUT);
		if (r == 0) {
			actor_check(a, &st, buf->data);
			MUST_OK(weft_buf_put(buf));
		}
	} else {
		/* From one in particular, or from anyone. */
		weft_id from = way == 4 ? actors[test_random(&a->random) % THREADS].id : WEFT_ANY;

		r = weft_recv(NULL, from, WEFT_ANY_TAG, a->in[0], MOST, until, &st);
		MUST(r == 0 || r == -EAGAIN || r == -ETIMEDOUT);
		if (r == 0)
			actor_check(a, &st, a->in[0]);
	}
	a->by_way[way] += in_total(a) - before;
}

static void *actor_main(void *arg)
{
	struct actor *a = arg;

	a->id = weft_self();
	MUST_OK(weft_queue_open(&a->queue));
	for (int i = 0; i < BATCH; i++)
		a->in[i] = memory(MOST);
	atomic_fetch_add(&ready, 1);
	EVENTUALLY(atomic_load(&ready) == THREADS);
	for (uint64_t sent = 0; sent < a->budget; ) {
		sent += actor_send(a);
		if (test_random(&a->random) % 4)
			actor_recv(a);
	}
	atomic_fetch_sub(&senders, 1);
	while (atomic_load(&senders) || in_total(a) < atomic_load(&sent_to[a->me]))
		actor_recv(a);
	/* All that was sent to me is here; my own sends end as the others receive. */
	for (int i = 0; i < SLOTS; i++)
		while (a->slots[i].how != FREE) {
			slot_find(a);
			slot_reap(&a->slots[i], weft_in(WEFT_MS));
		}
	atomic_fetch_sub(&ready, 1);
	EVENTUALLY(atomic_load(&ready) == 0);
	CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
	CHECK_OK(weft_queue_close(a->queue));
	for (int i = 0; i < BATCH; i++)
		free(a->in[i]);
	return NULL;
}

static void all_to_all(size_t budget)
{
	pthread_t thread[THREADS];
	uint64_t n = 0, back = 0, ways[8] = { 0 };

	job_begin(budget);
	memset(actors, 0, sizeof(actors));
	atomic_store(&ready, 0);
	atomic_store(&senders, THREADS);
	for (int i = 0; i < THREADS; i++) {
		atomic_store(&sent_to[i], 0);
		actors[i].me = i;
		actors[i].random = test_seed + (uint64_t)i * 7919;
		actors[i].budget = test_scaled(8000);
	}
	for (int i = 0; i < THREADS; i++)
		thread[i] = thread_start(actor_main, &actors[i]);
	for (int i = 0; i < THREADS; i++)
		thread_join(thread[i]);
	for (int i = 0; i < THREADS; i++) {
		for (int k = 0; k < THREADS; k++)
			CHECK_EQ(actors[i].next_out[k], actors[k].next_in[i]);
		for (int k = 0; k < 8; k++)
			ways[k] += actors[i].by_way[k];
		n += in_total(&actors[i]);
		back += actors[i].taken_back;
	}
	for (int k = 0; k < 8; k++)
		CHECK(ways[k] > 0 || test_scale() < 1);
	CHECK_EQ(n, THREADS * test_scaled(8000));
	CHECK_EQ(stats_of(NULL).unexpected_bytes, 0);
	printf("# %llu messages, %llu sends taken back\n", (unsigned long long)n, (unsigned long long)back);
	job_end();
}

TEST(every_message_arrives_once_whole_and_in_order_whatever_the_ways)
{
	all_to_all(0);
}

TEST(every_message_arrives_once_whole_and_in_order_with_a_budget_that_is_always_used_up)
{
	all_to_all(128 << 10);
}

TEST_MAIN
