/* stress_cancel.c - cancels, deadlines, expiries, closes and ends of threads race with matches;
 * each message that was sent for good is received once, and each that was taken back never.
 *
 * Messages are numbered. A sender writes down how each ended, a receiver how often it came.
 */
#include "../integ/crew.h"

enum { PORTS = 3, SENDERS = 3, RECEIVERS = 3, LARGE = 100000 };
enum { UNSENT, SENT, MATCHED, TAKEN_BACK, RESET };

struct record {
	_Atomic int ended;              /* SENT: done, not known to be received; MATCHED: it was */
	_Atomic int came;
};

static struct record *records;
static uint64_t per_sender;
static struct weft_port *_Atomic ports[PORTS];
static weft_id _Atomic port_ids[PORTS];
static _Atomic int senders;
static bool closing;                    /* ports close and open anew under the traffic */
static pthread_rwlock_t use[PORTS];     /* a port's pointer is used for reading, replaced for writing */

struct mind {
	uint64_t random;
	int number;
	struct weft_port *from;
	unsigned char *mem;
};

static void dawdle(struct mind *m)
{
	static _Atomic uint64_t sink;

	for (uint64_t n = test_random(&m->random) % 200; n > 0; n--)
		atomic_fetch_add_explicit(&sink, 1, memory_order_relaxed);
}

static int ended_by(int r, bool sync)
{
	if (r == 0)
		return sync ? MATCHED : SENT;
	if (r == -ECONNRESET || r == -ESRCH)
		return RESET;
	CHECK(r == -ECANCELED || r == -ETIMEDOUT || r == -EAGAIN);
	return TAKEN_BACK;
}

/* One message, sent in one of the ways that can be taken back, and then perhaps taken back. */
static int send_one(struct mind *m, uint64_t number)
{
	uint64_t way = test_random(&m->random) % 6;
	weft_id to = atomic_load(&port_ids[test_random(&m->random) % PORTS]);
	bool large = way >= 4, sync = way == 1 || way == 2;
	struct weft_op op = { .size = sizeof(op), .peer = to, .tag = number % 4, .data = m->mem,
			      .len = large ? LARGE : 8 };
	struct weft_req *req = NULL;
	int r;

	memcpy(m->mem, &number, sizeof(number));
	if (way == 0 || way == 4)
		return ended_by(weft_send(m->from, to, op.tag, m->mem, op.len, weft_in(WEFT_MS / 10)), large);
	op.flags = sync ? WEFT_SYNC : way == 3 ? WEFT_RENDEZVOUS : 0;
	if (way == 2)
		op.expires = weft_in(WEFT_MS / 10);
	r = weft_send_post(m->from, &op, &req);
	if (r != 0)
		return ended_by(r == WEFT_DONE ? 0 : r, true);
	dawdle(m);
	if (way != 2)
		weft_req_cancel(req);
	return ended_by(weft_req_wait(&req, SOON, NULL), true);
}

static void *sender_main(void *arg)
{
	struct mind *m = arg;

	m->mem = memory(LARGE);
	for (uint64_t i = 0; i < per_sender; i++) {
		uint64_t number = (uint64_t)m->number * per_sender + i;

		atomic_store(&records[number].ended, send_one(m, number));
	}
	free(m->mem);
	atomic_fetch_sub(&senders, 1);
	return NULL;
}

static void received(const unsigned char *mem, const struct weft_status *st)
{
	uint64_t number;

	memcpy(&number, mem, sizeof(number));
	MUST(number < per_sender * SENDERS);
	MUST_EQ(st->tag, number % 4);
	MUST(st->len == 8 || st->len == LARGE);
	atomic_fetch_add(&records[number].came, 1);
}

/* One receive at a port, in one of the ways; 0 if a message came. */
static int receive_one(struct mind *m, struct weft_port *at)
{
	uint64_t way = test_random(&m->random) % 5;
	uint64_t tag = test_random(&m->random) % 2 ? WEFT_ANY_TAG : test_random(&m->random) % 4;
	struct weft_op op = {
		.size = sizeof(op), .peer = WEFT_ANY, .tag = tag, .data = m->mem, .len = LARGE
	};
	struct weft_status st;
	struct weft_req *req = NULL;
	struct weft_msg *msg = NULL;
	int r;

	if (way <= 1) {
		r = weft_recv(at, WEFT_ANY, tag, m->mem, LARGE, way ? WEFT_NOW : weft_in(WEFT_MS / 10), &st);
	} else if (way == 2) {
		r = weft_probe(at, &op, weft_in(WEFT_MS / 10), &msg, &st);
		dawdle(m);
		if (r == 0)
			r = recv_op(at, WEFT(op, .msg = msg, .data = m->mem, .len = LARGE), &st);
	} else {
		if (way == 4)
			op.expires = weft_in(WEFT_MS / 20);
		r = weft_recv_post(at, &op, &req, &st);
		if (r == 0) {
			dawdle(m);
			if (way == 3)
				weft_req_cancel(req);
			r = weft_req_wait(&req, SOON, &st);
		}
		r = r == WEFT_DONE ? 0 : r;
	}
	if (r == 0)
		received(m->mem, &st);
	CHECK(r == 0 || r == -EAGAIN || r == -ETIMEDOUT || r == -ECANCELED);
	return r;
}

static void *receiver_main(void *arg)
{
	struct mind *m = arg;

	m->mem = memory(LARGE);
	while (atomic_load(&senders)) {
		int i = (int)(test_random(&m->random) % PORTS);

		pthread_rwlock_rdlock(&use[i]);
		receive_one(m, atomic_load(&ports[i]));
		pthread_rwlock_unlock(&use[i]);
	}
	free(m->mem);
	return NULL;
}

static void *closer_main(void *arg)
{
	struct mind *m = arg;

	while (atomic_load(&senders)) {
		int i = (int)(test_random(&m->random) % PORTS);

		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
		/* Senders know the port by its id and may meet it open, closing or gone. */
		pthread_rwlock_wrlock(&use[i]);
		CHECK_OK(weft_port_close(atomic_load(&ports[i]), SOON));
		atomic_store(&ports[i], port_new(0));
		atomic_store(&port_ids[i], port_id(atomic_load(&ports[i])));
		pthread_rwlock_unlock(&use[i]);
	}
	return NULL;
}

static void drain(struct weft_port *at)
{
	unsigned char *mem = memory(LARGE);
	struct weft_status st;
	int r;

	while ((r = weft_recv(at, WEFT_ANY, WEFT_ANY_TAG, mem, LARGE, WEFT_NOW, &st)) == 0)
		received(mem, &st);
	CHECK_EQ(r, -EAGAIN);
	free(mem);
}

static void run(bool with_closes)
{
	struct mind minds[SENDERS + RECEIVERS + 1];
	pthread_t thread[SENDERS + RECEIVERS + 1];
	pthread_rwlockattr_t attr;
	int n = SENDERS + RECEIVERS + with_closes;
	uint64_t count[RESET + 1] = { 0 }, lost = 0, told = 0;

	per_sender = test_scaled(20000);
	records = memory(per_sender * SENDERS * sizeof(*records));
	closing = with_closes;
	job_begin(0);
	uint64_t lost_before = stats_of(NULL).lost;
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	for (int i = 0; i < PORTS; i++) {
		pthread_rwlock_init(&use[i], &attr);
		atomic_store(&ports[i], port_new(0));
		atomic_store(&port_ids[i], port_id(atomic_load(&ports[i])));
	}
	atomic_store(&senders, SENDERS);
	for (int i = 0; i < n; i++) {
		minds[i] = (struct mind){ .random = test_seed + (uint64_t)i * 104729, .number = i };
		minds[i].from = i < SENDERS ? port_new(0) : NULL;
		void *(*fn)(void *) = i < SENDERS	      ? sender_main :
				      i < SENDERS + RECEIVERS ? receiver_main :
								closer_main;
		thread[i] = thread_start(fn, &minds[i]);
	}
	for (int i = 0; i < n; i++)
		thread_join(thread[i]);
	for (int i = 0; i < PORTS; i++) {
		drain(atomic_load(&ports[i]));
		CHECK_OK(weft_port_close(atomic_load(&ports[i]), SOON));
		pthread_rwlock_destroy(&use[i]);
	}
	for (uint64_t i = 0; i < per_sender * SENDERS; i++) {
		int ended = atomic_load(&records[i].ended), came = atomic_load(&records[i].came);

		count[ended]++;
		lost += ended == SENT && came == 0;
		CHECK(ended != UNSENT);
		CHECK(ended == SENT && closing ? came <= 1 : came == (ended == SENT || ended == MATCHED));
	}
	CHECK_EQ(stats_of(NULL).lost - lost_before, lost);
	for (int i = 0; i < SENDERS; i++) {
		told += stats_of(minds[i].from).lost;
		CHECK_OK(weft_port_close(minds[i].from, SOON));
	}
	CHECK_EQ(told, lost);
	printf("# %llu done, %llu matched, %llu taken back, %llu reset, %llu lost\n",
	       (unsigned long long)count[SENT], (unsigned long long)count[MATCHED],
	       (unsigned long long)count[TAKEN_BACK], (unsigned long long)count[RESET],
	       (unsigned long long)lost);
	job_end();
	free(records);
}

TEST(what_was_sent_for_good_came_once_and_what_was_taken_back_never)
{
	run(false);
}

TEST(the_same_while_ports_close_and_what_was_lost_is_counted)
{
	run(true);
}

/* Threads that end with everything pending, and others that wait for those operations. */
struct ending {
	weft_id to, id;
	uint64_t random, seen;
	struct weft_req *req[3];
	unsigned char *mem;
};

static void *ending_main(void *arg)
{
	struct ending *e = arg;

	e->id = weft_self();
	MUST_OK(recv_post(NULL, 0, WEFT_ANY, 1, &e->seen, 8, &e->req[0]));
	CHECK(send_post(NULL, WEFT_SYNC, e->to, 2, e->mem, 8, &e->req[1]) >= 0);
	CHECK(send_post(NULL, 0, e->to, 3, e->mem, LARGE, &e->req[2]) >= 0);
	return NULL;
}

TEST(threads_end_with_operations_pending_while_others_match_them)
{
	unsigned char *mem = memory(LARGE), *got = memory(LARGE);
	uint64_t random = test_seed, matched = 0, cancelled = 0;

	job_begin(0);
	for (uint64_t i = test_scaled(3000); i > 0; i--) {
		struct ending e = { .to = weft_self(), .mem = mem };
		pthread_t t = thread_start(ending_main, &e);
		int came = 0, ok = 0;

		for (uint64_t k = test_random(&random) % 8; k > 0; k--)
			came += weft_recv(NULL, WEFT_ANY, WEFT_ANY_TAG, got, LARGE, weft_in(20000), NULL) ==
				0;
		thread_join(t);
		for (int k = 0; k < 3; k++) {
			bool given = e.req[k] != NULL;
			int r = weft_req_wait(&e.req[k], SOON, NULL);

			CHECK(r == 0 || r == -ECANCELED);
			if (k == 0)
				CHECK_EQ(r, -ECANCELED);
			ok += k > 0 && r == 0;
			cancelled += given && r != 0;
		}
		CHECK_EQ(ok, came);
		matched += (uint64_t)came;
		CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
	}
	printf("# %llu matched, %llu cancelled\n", (unsigned long long)matched,
	       (unsigned long long)cancelled);
	job_end();
	free(mem);
	free(got);
}

TEST_MAIN
