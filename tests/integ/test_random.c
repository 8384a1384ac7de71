/* test_random.c - random programs agree, step by step, with a matcher that anybody can read.
 *
 * One thread drives a few open ports: it sends in every way there is, receives, posts, probes,
 * cancels and waits at random, and keeps beside weft a reference: per port one list of messages
 * nobody has asked for and one of receives nothing has come for, searched from the front. After
 * every call both must tell the same story. Nothing moves but in these calls, so after a port has
 * been looked at (settle) the reference knows the exact outcome of each.
 *
 * The same programs run directly, with every send announced (WEFT_RENDEZVOUS), and with a budget
 * so small that it is used up all the time. test_random_threads.c does the like with threads.
 */
#include <sys/uio.h>
#include <weft/weft.h>

#include "../test.h"

enum { PORTS = 6, MANY = 120, HELD = 8, LARGEST = 40000, NO_TAG = 1 << 20 };
enum mode { DIRECT, ANNOUNCED, SMALL_BUDGET };

struct message {
	uint64_t number, tag;           /* number: of all messages, and what its bytes are made of */
	int from, to;
	size_t len;
	uint32_t flags;
	struct weft_req *req;           /* NULL: its send is over */
	unsigned char *memory;          /* held until then, */
	struct iovec iov[3];            /* as this is */
	bool queued;                    /* among the arrivals of its port */
	bool received;                  /* over for the receiving side too */
};

struct want {
	int from, at;                   /* from -1: anyone */
	uint64_t tag, ignore;
	size_t cap;
	uint32_t flags;
	struct weft_req *req;
	unsigned char *memory;
	struct message *got;            /* over: with this message, */
	struct message seen;            /* as it was then, for one that did not fit and may be gone since */
	int err;                        /* and so */
};

struct list {                           /* pointers, oldest first */
	void *at[8 * MANY];
	int n;
};

struct held {
	struct weft_msg *msg;
	struct message *m;
};

struct game {
	enum mode mode;
	uint64_t rng, steps, numbers;
	struct weft_port *port[PORTS];
	weft_id id[PORTS];
	struct list arrivals[PORTS], wants[PORTS];
	struct list ended;              /* wants that must be over, of all ports */
	struct list sends;              /* messages whose send was not over when last seen */
	struct held held[HELD];         /* taken by matched probe */
	int unsettled[PORTS];
};

#define AGREE(g, cond)                                                                             \
	do {                                                                                       \
		if (!test_check(!!(cond), __FILE__, __LINE__, #cond, 0, 0, false)) {               \
			printf("# at step %llu of mode %d, last words: %s\n",                      \
			       (unsigned long long)(g)->steps, (int)(g)->mode, weft_last_error()); \
			test_die();                                                                \
		}                                                                                  \
	} while (0)

static uint32_t pick(struct game *g, uint32_t n)
{
	return (uint32_t)(test_random(&g->rng) >> 33) % n;
}

static void list_add(struct list *l, void *p)
{
	MUST(l->n < 8 * MANY);
	l->at[l->n++] = p;
}

static void *list_take(struct list *l, int i)
{
	void *p = l->at[i];

	memmove(&l->at[i], &l->at[i + 1], (size_t)(--l->n - i) * sizeof(void *));
	return p;
}

static void list_drop(struct list *l, void *p)
{
	for (int i = 0; i < l->n; i++)
		if (l->at[i] == p) {
			list_take(l, i);
			return;
		}
	MUST(!"in the list");
}

/* Bytes that belong to one message and one place in it. */
static void fill(unsigned char *data, size_t len, uint64_t number)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (unsigned char)(number * 31 + i * 7 + (number >> 8) + (i >> 8));
}

static bool filled(const unsigned char *data, size_t len, uint64_t number)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] != (unsigned char)(number * 31 + i * 7 + (number >> 8) + (i >> 8)))
			return false;
	return true;
}

/* The reference */

static bool matches(const struct want *w, const struct message *m)
{
	return (w->from < 0 || w->from == m->from) &&
	       (w->tag == WEFT_ANY_TAG || !((w->tag ^ m->tag) & ~w->ignore));
}

static bool fits(const struct want *w, const struct message *m)
{
	return m->len <= w->cap || (w->flags & (WEFT_TRUNCATE | WEFT_ALLOC));
}

static struct message *look(const struct list *l, const struct want *w)
{
	for (int i = 0; i < l->n; i++)
		if (matches(w, l->at[i]))
			return l->at[i];
	return NULL;
}

static void want_decide(struct want *w, struct message *m)
{
	w->seen = *m;
	w->got = fits(w, m) ? m : &w->seen;
	w->err = m->len > w->cap && !(w->flags & WEFT_ALLOC) ? -EMSGSIZE : 0;
	if (fits(w, m))
		m->queued = false;
}

/* A message comes: the earliest posted receive that fits it has it. One it does not fit ends, and
 * the message looks on. */
static void arrive(struct game *g, struct message *m)
{
	struct list *wants = &g->wants[m->to];

	for (int i = 0; i < wants->n;) {
		struct want *w = wants->at[i];

		if (!matches(w, m)) {
			i++;
			continue;
		}
		want_decide(w, m);
		list_add(&g->ended, list_take(wants, i));
		if (w->err == 0 || (w->flags & WEFT_TRUNCATE))
			return;
	}
	m->queued = true;
	list_add(&g->arrivals[m->to], m);
}

/* Steps */

/* A message is forgotten when both sides have done with it. */
static void message_release(struct message *m)
{
	if (m->received && !m->req) {
		free(m->memory);
		free(m);
	}
}

/* Looks at a port without finding anything: what was sent to it is matched now. */
static void settle(struct game *g, int p)
{
	AGREE(g, weft_probe(g->port[p], WEFT(op, .peer = WEFT_ANY, .tag = NO_TAG), WEFT_NOW, NULL, NULL) ==
			 -EAGAIN);
	g->unsettled[p] = 0;
}

static size_t random_len(struct game *g)
{
	uint32_t kind = pick(g, 32);

	return pick(g, kind == 0 ? LARGEST : kind < 3 ? 8193 : kind < 10 ? 1025 : 100);
}

static uint64_t random_tag(struct game *g)
{
	return pick(g, 8) | (pick(g, 8) ? 0 : UINT64_C(1) << 40);
}

static struct want random_want(struct game *g, bool masks)
{
	static const uint64_t ignore[] = { 1, 2, 4, 6, UINT64_C(1) << 40, UINT64_C(0xffffffff), UINT64_MAX };
	struct want w = { .at = (int)pick(g, PORTS), .from = pick(g, 3) ? (int)pick(g, PORTS) : -1,
			  .tag = pick(g, 3) ? random_tag(g) : WEFT_ANY_TAG,
			  .cap = pick(g, 16) ? LARGEST : pick(g, 64) };

	if (masks && w.tag != WEFT_ANY_TAG && !pick(g, 3))
		w.ignore = ignore[pick(g, sizeof(ignore) / sizeof(ignore[0]))];
	return w;
}

static void agree_status(struct game *g, const struct weft_status *st, const struct message *m, int err)
{
	AGREE(g, st->err == err);
	AGREE(g, st->from == g->id[m->from]);
	AGREE(g, st->tag == m->tag);
	AGREE(g, st->len == m->len);
}

/* A buffer's bytes are the message's; the plain memory beside it is only where they come from. */
static int send_buffer(struct game *g, struct message *m, struct weft_op *op, bool post)
{
	int r = weft_buf_get(m->len, 0, &op->buf);

	AGREE(g, r == 0);
	memcpy(op->buf->data, m->memory, m->len);
	r = post ? weft_send_post(g->port[m->from], op, &m->req) :
		   weft_buf_send(g->port[m->from], op->peer, op->tag, op->buf, WEFT_NOW);
	if (r < 0)
		AGREE(g, weft_buf_put(op->buf) == 0);   /* still mine */
	return r == 0 && !post ? WEFT_DONE : r;
}

/* In one of many ways; answers like weft_send_post. */
static int send_start(struct game *g, struct message *m)
{
	struct weft_op op = { .size = sizeof(op), .flags = m->flags, .peer = g->id[m->to], .tag = m->tag };
	uint32_t how = pick(g, 8);
	size_t third = m->len / 3;
	int r;

	if (how < 2 && !m->flags) {
		r = weft_send(g->port[m->from], op.peer, m->tag, m->memory, m->len, WEFT_NOW);
		return r == 0 ? WEFT_DONE : r;
	}
	if (how < 4 && !(m->flags & WEFT_COPY))
		return send_buffer(g, m, &op, how == 2 || m->flags);
	op.data = m->memory, op.len = m->len;
	if (how == 4 && third) {
		for (size_t i = 0; i < 3; i++)
			m->iov[i] =
				(struct iovec){ m->memory + i * third, i < 2 ? third : m->len - 2 * third };
		op.data = NULL, op.len = 0, op.iov = m->iov, op.niov = 3;
	}
	return weft_send_post(g->port[m->from], &op, &m->req);
}

/* A send that was taken back was there for a moment, and receives too short for it may have ended. */
static void taken_back(struct game *g, struct message *m)
{
	struct list *wants = &g->wants[m->to];

	for (int i = 0; i < wants->n;) {
		struct want *w = wants->at[i];

		if (matches(w, m) && !fits(w, m) && weft_req_peek(w->req, NULL) == WEFT_DONE) {
			want_decide(w, m);
			list_add(&g->ended, list_take(wants, i));
		} else {
			i++;
		}
	}
	m->received = true;
	message_release(m);
}

static void step_send(struct game *g)
{
	static const uint32_t flags[] = { 0, 0, 0, 0, WEFT_SYNC, WEFT_RENDEZVOUS, WEFT_COPY, WEFT_READY };
	struct message *m = calloc(1, sizeof(*m));
	int r;

	MUST(m);
	*m = (struct message){ .number = ++g->numbers,
			       .tag = random_tag(g),
			       .len = random_len(g),
			       .from = (int)pick(g, PORTS),
			       .to = (int)pick(g, PORTS),
			       .flags = flags[pick(g, 8)] };
	if (g->mode == ANNOUNCED)
		m->flags = WEFT_RENDEZVOUS | (m->flags & WEFT_SYNC);
	m->memory = malloc(m->len + 1);
	MUST(m->memory);
	fill(m->memory, m->len, m->number);
	r = send_start(g, m);
	if (r == -EAGAIN) {             /* no room, and did not want to wait */
		AGREE(g, !m->req);
		taken_back(g, m);
		return;
	}
	AGREE(g, r == 0 || r == WEFT_DONE);
	AGREE(g, (r == 0) == (m->req != NULL));
	arrive(g, m);
	if (r == WEFT_DONE) {
		AGREE(g, !(m->flags & (WEFT_SYNC | WEFT_RENDEZVOUS)) || !m->queued);
		memset(m->memory, 0xee, m->len);        /* mine again */
	} else {
		list_add(&g->sends, m);
	}
	if (++g->unsettled[m->to] > 8)
		settle(g, m->to);
}

/* Checks what a receive brought and lets go of it. */
static void agree_received(struct game *g, struct want *w, struct message *m, struct weft_status *st)
{
	agree_status(g, st, m, w->err);
	if (w->flags & WEFT_ALLOC) {
		AGREE(g, st->buf && st->buf->len == m->len && filled(st->buf->data, m->len, m->number));
		AGREE(g, weft_buf_put(st->buf) == 0);
	} else if (w->err == 0 || (w->flags & WEFT_TRUNCATE)) {
		AGREE(g, filled(w->memory, m->len < w->cap ? m->len : w->cap, m->number));
	}
	if (fits(w, m)) {
		m->received = true;
		message_release(m);
	}
}

static void step_recv(struct game *g)
{
	static unsigned char memory[LARGEST];
	struct want w = random_want(g, false);
	struct message *m = look(&g->arrivals[w.at], &w);
	weft_id from = w.from < 0 ? WEFT_ANY : g->id[w.from];
	struct weft_buf *buf = NULL;
	struct weft_status st;
	int r;

	w.memory = memory;
	if (pick(g, 4)) {
		r = weft_recv(g->port[w.at], from, w.tag, memory, w.cap, WEFT_NOW, &st);
	} else {
		w.flags = WEFT_ALLOC;
		r = weft_buf_recv(g->port[w.at], from, w.tag, WEFT_NOW, &buf, &st);
		st.buf = buf;
	}
	g->unsettled[w.at] = 0;
	if (!m) {
		AGREE(g, r == -EAGAIN);
		return;
	}
	want_decide(&w, m);
	AGREE(g, r == w.err);
	if (fits(&w, m))
		list_drop(&g->arrivals[w.at], m);
	agree_received(g, &w, m, &st);
}

static void want_free(struct want *w)
{
	free(w->memory);
	free(w);
}

/* The request of a receive that the reference knows to be over. */
static void want_end(struct game *g, struct want *w)
{
	struct weft_status st;
	int r = weft_req_wait(&w->req, WEFT_NOW, &st);

	AGREE(g, !w->req);
	AGREE(g, r == w->err);
	AGREE(g, st.user == w);
	agree_received(g, w, w->got, &st);
	want_free(w);
}

static void step_post(struct game *g)
{
	static const uint32_t flags[] = { 0, 0, WEFT_TRUNCATE, WEFT_ALLOC };
	struct want *w = malloc(sizeof(*w));
	struct weft_status st;
	struct message *m;
	int r;

	MUST(w);
	*w = random_want(g, true);
	w->flags = flags[pick(g, 4)];
	w->memory = w->flags & WEFT_ALLOC ? NULL : malloc(w->cap + 1);
	m = look(&g->arrivals[w->at], w);
	r = weft_recv_post(g->port[w->at],
			   WEFT(op, .flags = w->flags, .peer = w->from < 0 ? WEFT_ANY : g->id[w->from],
				.tag = w->tag, .ignore = w->ignore, .data = w->memory,
				.len = w->flags & WEFT_ALLOC ? 0 : w->cap, .user = w),
			   &w->req, &st);
	g->unsettled[w->at] = 0;
	if (!m) {
		AGREE(g, r == 0 && w->req);
		list_add(&g->wants[w->at], w);
		return;
	}
	want_decide(w, m);
	if (fits(w, m))
		list_drop(&g->arrivals[w->at], m);
	if (r == 0) {
		list_add(&g->ended, w);
		return;
	}
	AGREE(g, !w->req && (r == WEFT_DONE || r == w->err));
	agree_received(g, w, m, &st);
	want_free(w);
}

static void step_probe(struct game *g)
{
	struct want w = random_want(g, true);
	struct message *m = look(&g->arrivals[w.at], &w);
	struct held *h = &g->held[pick(g, HELD)];
	bool take = pick(g, 2) && !h->msg;
	struct weft_status st;
	int r = weft_probe(
		g->port[w.at],
		WEFT(op, .peer = w.from < 0 ? WEFT_ANY : g->id[w.from], .tag = w.tag, .ignore = w.ignore),
		WEFT_NOW, take ? &h->msg : NULL, &st);

	g->unsettled[w.at] = 0;
	AGREE(g, r == (m ? 0 : -EAGAIN));
	if (!m)
		return;
	agree_status(g, &st, m, 0);
	if (take) {
		AGREE(g, h->msg);
		h->m = m;
		m->queued = false;
		list_drop(&g->arrivals[w.at], m);
	}
}

static void held_receive(struct game *g, struct held *h)
{
	static unsigned char memory[LARGEST];
	struct want w = { .at = h->m->to, .cap = pick(g, 4) ? LARGEST : pick(g, 64), .memory = memory,
			  .flags = pick(g, 4) ? WEFT_TRUNCATE : WEFT_ALLOC };
	struct weft_req *req = NULL;
	struct weft_status st;
	bool alloc = w.flags & WEFT_ALLOC;
	int r = weft_recv_post(g->port[w.at],
			       WEFT(op, .flags = w.flags, .msg = h->msg, .data = alloc ? NULL : memory,
				    .len = alloc ? 0 : w.cap),
			       &req, &st);

	if (r == 0)
		r = weft_req_wait(&req, WEFT_NOW, &st);
	want_decide(&w, h->m);
	AGREE(g, !req && (r == WEFT_DONE || r == w.err));
	agree_received(g, &w, h->m, &st);
	*h = (struct held){ NULL, NULL };
}

static void step_held(struct game *g)
{
	struct held *h = &g->held[pick(g, HELD)];

	if (h->msg)
		held_receive(g, h);
}

static void step_wait(struct game *g)
{
	struct list *wants = &g->wants[pick(g, PORTS)];
	struct weft_status st;

	if (wants->n) {
		struct want *w = wants->at[pick(g, (uint32_t)wants->n)];

		AGREE(g, weft_req_peek(w->req, &st) == -EAGAIN);
		g->unsettled[w->at] = 0;
	}
	if (g->ended.n)
		want_end(g, list_take(&g->ended, (int)pick(g, (uint32_t)g->ended.n)));
}

/* A send's request: over if the receiving side is through with it, not if only SYNC or RENDEZVOUS
 * keep it and nobody has asked for it. */
static void step_sent(struct game *g)
{
	struct message *m;
	int r;

	if (!g->sends.n)
		return;
	m = g->sends.at[pick(g, (uint32_t)g->sends.n)];
	r = weft_req_wait(&m->req, WEFT_NOW, NULL);
	AGREE(g, r == 0 || r == -EAGAIN);
	AGREE(g, (r == 0) == !m->req);
	if (m->received)
		AGREE(g, r == 0);
	if (m->queued && (m->flags & (WEFT_SYNC | WEFT_RENDEZVOUS)))
		AGREE(g, r == -EAGAIN);
	if (r == 0) {
		memset(m->memory, 0xee, m->len);
		list_drop(&g->sends, m);
		message_release(m);
	}
}

static void step_cancel_recv(struct game *g)
{
	struct list *wants = &g->wants[pick(g, PORTS)];
	struct weft_status st;
	struct want *w;

	if (g->ended.n && !pick(g, 4)) {        /* over: too late */
		w = list_take(&g->ended, (int)pick(g, (uint32_t)g->ended.n));
		AGREE(g, weft_req_peek(w->req, &st) == WEFT_DONE);
		AGREE(g, weft_req_cancel(w->req) == -EALREADY);
		want_end(g, w);
	} else if (wants->n) {
		w = list_take(wants, (int)pick(g, (uint32_t)wants->n));
		settle(g, w->at);
		AGREE(g, weft_req_cancel(w->req) == 0);
		AGREE(g, weft_req_wait(&w->req, WEFT_NOW, &st) == -ECANCELED && !w->req);
		AGREE(g, st.err == -ECANCELED && st.user == w);
		want_free(w);
	}
}

static void step_cancel_send(struct game *g)
{
	struct message *m;
	int r;

	if (!g->sends.n)
		return;
	m = g->sends.at[pick(g, (uint32_t)g->sends.n)];
	settle(g, m->to);
	r = weft_req_cancel(m->req);
	AGREE(g, r == 0 || r == -EALREADY);
	if (!m->queued)                         /* matched, or taken by a probe: too late */
		return;
	r = weft_req_wait(&m->req, WEFT_NOW, NULL);
	AGREE(g, !m->req);
	AGREE(g, r == -ECANCELED || (r == 0 && !(m->flags & (WEFT_SYNC | WEFT_RENDEZVOUS))));
	memset(m->memory, 0xee, m->len);
	list_drop(&g->sends, m);
	if (r == -ECANCELED) {
		list_drop(&g->arrivals[m->to], m);
		m->received = true;
		message_release(m);
	}
}

/* Whole games */

static void step(struct game *g)
{
	static void (*const steps[])(struct game *) = {
		step_send, step_send, step_send,	step_send,	  step_send,  step_recv,
		step_recv, step_recv, step_post,	step_post,	  step_probe, step_held,
		step_wait, step_sent, step_cancel_recv, step_cancel_send,
	};
	int arrivals = 0, wants = 0;

	for (int p = 0; p < PORTS; p++) {
		arrivals = g->arrivals[p].n > arrivals ? g->arrivals[p].n : arrivals;
		wants = g->wants[p].n > wants ? g->wants[p].n : wants;
	}
	g->steps++;
	if (arrivals >= MANY)
		step_recv(g);
	else if (wants >= MANY)
		step_cancel_recv(g);
	else if (g->ended.n >= MANY)
		step_wait(g);
	else if (g->sends.n >= 4 * MANY)
		step_sent(g), step_recv(g), step_held(g), step_wait(g);
	else
		steps[pick(g, sizeof(steps) / sizeof(steps[0]))](g);
}

/* Everything that is under way is brought to its end. */
static void game_end(struct game *g)
{
	static unsigned char memory[LARGEST];
	struct weft_stats stats = { .size = sizeof(stats) };

	for (int i = 0; i < HELD; i++)
		if (g->held[i].msg)
			held_receive(g, &g->held[i]);
	while (g->ended.n)
		want_end(g, list_take(&g->ended, 0));
	for (int p = 0; p < PORTS; p++) {
		struct want any = { .from = -1, .tag = WEFT_ANY_TAG, .cap = LARGEST, .memory = memory };
		struct weft_status st;

		while (g->wants[p].n) {
			struct want *w = list_take(&g->wants[p], 0);

			AGREE(g, weft_req_cancel(w->req) == 0);
			AGREE(g, weft_req_wait(&w->req, WEFT_NOW, NULL) == -ECANCELED);
			want_free(w);
		}
		while (g->arrivals[p].n) {
			struct message *m = list_take(&g->arrivals[p], 0);

			AGREE(g, weft_recv(g->port[p], WEFT_ANY, WEFT_ANY_TAG, memory, LARGEST, WEFT_NOW,
					   &st) == 0);
			m->queued = false;
			agree_received(g, &any, m, &st);
		}
	}
	while (g->sends.n)
		step_sent(g);
	AGREE(g, weft_stats_get(NULL, &stats) == 0);
	AGREE(g,
	      stats.expected == 0 && stats.unexpected == 0 && stats.requested == 0 && stats.unrequested == 0);
	AGREE(g, stats.unexpected_bytes == 0);
}

static void play(enum mode mode, size_t budget, uint64_t steps)
{
	static struct game game;
	struct game *g = &game;

	game = (struct game){ .mode = mode, .rng = test_seed + mode };
	MUST_OK(weft_init(WEFT(init_opts, .budget = budget)));
	for (int p = 0; p < PORTS; p++) {
		struct weft_port_info info = { .size = sizeof(info) };

		MUST_OK(weft_port_open(NULL, &g->port[p]));
		MUST_OK(weft_port_stat(g->port[p], &info));
		g->id[p] = info.id;
	}
	while (g->steps < steps)
		step(g);
	game_end(g);
	for (int p = 0; p < PORTS; p++)
		CHECK_OK(weft_port_close(g->port[p], WEFT_FOREVER));
	CHECK_OK(weft_fini(WEFT_FOREVER));
	printf("# %llu steps, %llu messages\n", (unsigned long long)g->steps, (unsigned long long)g->numbers);
}

TEST(random_programs_agree_with_the_reference_matcher)
{
	play(DIRECT, 0, test_scaled(1000000));
}

TEST(random_programs_agree_when_every_send_is_announced)
{
	play(ANNOUNCED, 0, test_scaled(1000000));
}

TEST(random_programs_agree_when_the_budget_is_used_up)
{
	play(SMALL_BUDGET, 65536, test_scaled(1000000));
}

TEST_MAIN
