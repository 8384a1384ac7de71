/* crew.h - what the tests of the public calls share: a job per test, threads that do what they
 * are told, memory with a pattern, and waiting for what must come about.
 *
 * Nothing here measures time: what must come about is waited for without a bound of its own,
 * and TEST_LIMIT ends a test that hangs.
 */
#ifndef CREW_H
#define CREW_H
#include "../test.h"
#include <weft/weft.h>

/* A deadline for what must happen: a failure is then told where it happened, not as a hang. */
#define SOON weft_in(60 * WEFT_S)

/* Waits, without calling weft itself, until what the test set going has come about. */
#define EVENTUALLY(cond)                                                                           \
	do {                                                                                       \
		while (!(cond))                                                                    \
			crew_nap();                                                                \
	} while (0)

/* The next message that matches is these 8 bytes. */
#define CHECK_NEXT(at, from, tag, value)                                                           \
	do {                                                                                       \
		uint64_t crew_v = ~UINT64_C(0);                                                    \
		CHECK_OK(weft_recv(at, from, tag, &crew_v, sizeof(crew_v), SOON, NULL));           \
		CHECK_EQ(crew_v, value);                                                           \
	} while (0)

/* No message there matches. */
#define CHECK_NOTHING(port, sender, which)                                                         \
	CHECK_EQ(weft_probe(port, WEFT(op, .peer = (sender), .tag = (which)), WEFT_NOW, NULL, NULL), -EAGAIN)

static inline void crew_nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 300000 }, NULL);
}

/* Every test has a job of its own: nothing it left behind may hold up weft_fini. */
static inline void job_begin(size_t budget)
{
	MUST_OK(weft_init(WEFT(init_opts, .budget = budget)));
	MUST(weft_self() != 0);
}

static inline void job_end(void)
{
	CHECK_OK(weft_fini(SOON));
}

static inline struct weft_port *port_new(uint32_t flags)
{
	struct weft_port *port = NULL;

	MUST_OK(weft_port_open(WEFT(port_opts, .flags = flags), &port));
	return port;
}

/* Nothing they have under way holds them up. */
static inline void ports_close(struct weft_port *a, struct weft_port *b)
{
	CHECK_OK(weft_port_close(a, SOON));
	CHECK_OK(weft_port_close(b, SOON));
}

static inline weft_id port_id(const struct weft_port *port)
{
	struct weft_port_info info = { .size = sizeof(info) };

	MUST_OK(weft_port_stat(port, &info));
	return info.id;
}

static inline struct weft_stats stats_of(const struct weft_port *port)
{
	struct weft_stats stats = { .size = sizeof(stats) };

	MUST_OK(weft_stats_get(port, &stats));
	return stats;
}

/* Until a thread of this process sleeps in weft, for a while: weft's own, on its way to sleep, may be taken for one. */
static inline void until_asleep(void)
{
	for (int seen = 0; seen < 20; crew_nap())
		seen = stats_of(NULL).parked ? seen + 1 : 0;
}

/* Sends 0, 1, 2 ... until the mailbox is full; how many went in. */
static inline uint64_t mailbox_fill(struct weft_port *from, weft_id to, uint64_t tag)
{
	uint64_t n = 0;
	int r;

	while ((r = weft_send(from, to, tag, &n, sizeof(n), WEFT_NOW)) == 0)
		MUST(++n < 100000);
	MUST_EQ(r, -EAGAIN);
	return n;
}

/* Sends 0, 1, 2 ... until nothing goes at once any more: what the mailbox held is in the receiver's queue, and
 * the budget is used up. To be used with a small budget. How many went. */
static inline uint64_t budget_fill(struct weft_port *from, weft_id to, uint64_t tag)
{
	uint64_t n = 0;
	int r;

	while ((r = weft_send(from, to, tag, &n, sizeof(n), weft_in(WEFT_MS))) == 0)
		MUST(++n < 100000);
	MUST_EQ(r, -ETIMEDOUT);
	return n;
}

/* The posted forms with the fields that most tests use. */
static inline int send_post(struct weft_port *from, uint32_t flags, weft_id to, uint64_t tag, void *mem,
			    size_t len, struct weft_req **ret_req)
{
	return weft_send_post(from, WEFT(op, .flags = flags, .peer = to, .tag = tag, .data = mem, .len = len),
			      ret_req);
}

static inline int recv_post(struct weft_port *at, uint32_t flags, weft_id from, uint64_t tag, void *mem,
			    size_t len, struct weft_req **ret_req)
{
	return weft_recv_post(at, WEFT(op, .flags = flags, .peer = from, .tag = tag, .data = mem, .len = len),
			      ret_req, NULL);
}

/* A posted receive waited for: every option, and the end of the operation as the answer. */
static inline int recv_op(struct weft_port *at, const struct weft_op *op, struct weft_status *ret_st)
{
	struct weft_req *req = NULL;
	int r = weft_recv_post(at, op, &req, ret_st);

	return r == WEFT_DONE ? 0 : r < 0 ? r : weft_req_wait(&req, SOON, ret_st);
}

static inline void pattern_put(void *mem, size_t n, uint64_t seed)
{
	unsigned char *b = mem;

	for (size_t i = 0; i < n; i++)
		b[i] = (unsigned char)(seed + i * 7 + (i >> 8));
}

static inline bool pattern_ok(const void *mem, size_t n, uint64_t seed)
{
	const unsigned char *b = mem;

	for (size_t i = 0; i < n; i++)
		if (b[i] != (unsigned char)(seed + i * 7 + (i >> 8)))
			return false;
	return true;
}

static inline void *memory(size_t n)
{
	void *mem = calloc(1, n);

	MUST(mem);
	return mem;
}

static inline pthread_t thread_start(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	MUST_OK(pthread_create(&t, NULL, fn, arg));
	return t;
}

static inline void thread_join(pthread_t t)
{
	MUST_OK(pthread_join(t, NULL));
}

/* A callback's ends, counted; last is to be read when no further end can come. */
struct tally {
	_Atomic int count;
	_Atomic int failed;
	struct weft_status last;
};

static inline void tally_done(const struct weft_status *st)
{
	struct tally *t = st->user;

	t->last = *st;
	if (st->err)
		atomic_fetch_add(&t->failed, 1);
	atomic_fetch_add(&t->count, 1);
}

/* A mate is a thread with a port of its own that runs one function after another as told, and
 * between them computes: it does not call weft. */
struct mate {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t turn;
	void (*fn)(void *arg);          /* under lock; NULL: idle */
	void *arg;
	bool ending;
	weft_id id;
};

static inline void *mate_main(void *arg)
{
	struct mate *m = arg;

	pthread_mutex_lock(&m->lock);
	m->id = weft_self();
	pthread_cond_broadcast(&m->turn);
	for (;;) {
		while (!m->fn && !m->ending)
			pthread_cond_wait(&m->turn, &m->lock);
		if (!m->fn)
			break;
		pthread_mutex_unlock(&m->lock);
		m->fn(m->arg);
		pthread_mutex_lock(&m->lock);
		m->fn = NULL;
		pthread_cond_broadcast(&m->turn);
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

static inline void mate_start(struct mate *m)
{
	*m = (struct mate){ .id = 0 };
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->turn, NULL);
	m->thread = thread_start(mate_main, m);
	pthread_mutex_lock(&m->lock);
	while (!m->id)
		pthread_cond_wait(&m->turn, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

/* Until what it was told is over. */
static inline void mate_wait(struct mate *m)
{
	pthread_mutex_lock(&m->lock);
	while (m->fn)
		pthread_cond_wait(&m->turn, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

/* Begins fn(arg) in the mate's thread. */
static inline void mate_begin(struct mate *m, void (*fn)(void *arg), void *arg)
{
	mate_wait(m);
	pthread_mutex_lock(&m->lock);
	m->fn = fn;
	m->arg = arg;
	pthread_cond_broadcast(&m->turn);
	pthread_mutex_unlock(&m->lock);
}

static inline void mate_run(struct mate *m, void (*fn)(void *arg), void *arg)
{
	mate_begin(m, fn, arg);
	mate_wait(m);
}

/* Its thread ends, and with it its port. */
static inline void mate_stop(struct mate *m)
{
	mate_wait(m);
	pthread_mutex_lock(&m->lock);
	m->ending = true;
	pthread_cond_broadcast(&m->turn);
	pthread_mutex_unlock(&m->lock);
	thread_join(m->thread);
	pthread_cond_destroy(&m->turn);
	pthread_mutex_destroy(&m->lock);
}

/* What a mate does that waits for a request. */
struct waiter {
	struct weft_req *req;
	int result;
};

static inline void waiter_wait(void *arg)
{
	struct waiter *w = arg;

	w->result = weft_req_wait(&w->req, WEFT_FOREVER, NULL);
}
#endif
