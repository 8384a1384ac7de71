/* test_mini_mpi.c - the slice of MPI in examples/mini_mpi does what MPI says, with threads as ranks.
 *
 * Each test is one program, run by mm_run in as many threads as it wants ranks. It fails by its
 * CHECKs and by what mm_run answers.
 */
#include "../../examples/mini_mpi/mini_mpi.h"
#include "../test.h"

static int count_of(const struct mm_status *st)
{
	return mm_get_count(st, MM_INT);
}

/* Order and wildcards */

static int order_main(struct mm_comm *w, void *arg)
{
	int n = (int)test_scaled(2000), next[8] = { 0 };
	struct mm_status st;

	(void)arg;
	for (int i = 0; w->rank && i < n; i++)
		CHECK_OK(mm_send(&i, 1, MM_INT, 0, i % 3, w));
	for (int i = 0; !w->rank && i < n * (w->size - 1); i++) {
		int got = -1;

		MUST_OK(mm_recv(&got, 1, MM_INT, MM_ANY_SOURCE, MM_ANY_TAG, w, &st));
		MUST(st.source > 0 && st.source < w->size);
		CHECK_EQ(got, next[st.source]++);
		CHECK_EQ(st.tag, got % 3);
		CHECK_EQ(count_of(&st), 1);
	}
	return 0;
}

TEST(messages_of_a_pair_keep_their_order)
{
	CHECK_OK(mm_run(5, order_main, NULL));
}

static int pick_main(struct mm_comm *w, void *arg)
{
	struct mm_status st;
	int got;

	(void)arg;
	if (w->rank == 0)
		for (int i = 0; i < 10; i++)
			CHECK_OK(mm_send(&i, 1, MM_INT, 1, i, w));
	if (w->rank == 1) {
		for (int i = 9; i >= 5; i--) {
			CHECK_OK(mm_recv(&got, 1, MM_INT, 0, i, w, &st));
			CHECK_EQ(got, i);
			CHECK_EQ(st.source, 0);
		}
		for (int i = 0; i < 5; i++) {
			CHECK_OK(mm_recv(&got, 1, MM_INT, 0, MM_ANY_TAG, w, &st));
			CHECK_EQ(got, i);
			CHECK_EQ(st.tag, i);
		}
	}
	return 0;
}

TEST(a_receive_picks_by_tag_and_any_tag_takes_the_first)
{
	CHECK_OK(mm_run(2, pick_main, NULL));
}

/* Receives posted in a row for the same sender are filled in that row. */
static int posted_main(struct mm_comm *w, void *arg)
{
	enum { N = 100 };
	struct mm_request reqs[N];
	struct mm_status st[N];
	int got[N];

	(void)arg;
	if (w->rank == 0) {
		for (int i = 0; i < N; i++)
			MUST_OK(mm_irecv(&got[i], 1, MM_INT, i % 2 ? 1 : MM_ANY_SOURCE,
					 i % 4 < 2 ? 5 : MM_ANY_TAG, w, &reqs[i]));
		CHECK_OK(mm_barrier(w));
		CHECK_OK(mm_waitall(N, reqs, st));
		for (int i = 0; i < N; i++) {
			CHECK_EQ(got[i], i);
			CHECK_EQ(st[i].source, 1);
			CHECK_EQ(st[i].tag, 5);
		}
		return 0;
	}
	CHECK_OK(mm_barrier(w));
	for (int i = 0; i < N; i++)
		CHECK_OK(mm_send(&i, 1, MM_INT, 0, 5, w));
	return 0;
}

TEST(posted_receives_exact_and_wild_are_filled_in_the_order_of_posting)
{
	CHECK_OK(mm_run(2, posted_main, NULL));
}

/* Completion */

static int ssend_main(struct mm_comm *w, void *arg)
{
	struct mm_request req;
	int x = 7, got = 0;
	bool flag;

	(void)arg;
	if (w->rank == 0) {
		MUST_OK(mm_issend(&x, 1, MM_INT, 1, 1, w, &req));
		for (int i = 0; i < 100; i++) {
			CHECK_OK(mm_test(&req, &flag, NULL));
			CHECK(!flag);
		}
		CHECK_OK(mm_barrier(w));
		CHECK_OK(mm_wait(&req, NULL));
		CHECK_OK(mm_ssend(&x, 1, MM_INT, 1, 2, w));
		return 0;
	}
	CHECK_OK(mm_barrier(w));
	CHECK_OK(mm_recv(&got, 1, MM_INT, 0, 1, w, NULL));
	CHECK_OK(mm_recv(&got, 1, MM_INT, 0, 2, w, NULL));
	CHECK_EQ(got, 7);
	return 0;
}

TEST(a_synchronous_send_ends_when_it_is_received_and_not_before)
{
	CHECK_OK(mm_run(2, ssend_main, NULL));
}

static int some_main(struct mm_comm *w, void *arg)
{
	enum { N = 32 };
	struct mm_request reqs[N];
	struct mm_status st[N];
	int got[N], which[N], count, left = N, seen = 0;

	(void)arg;
	if (w->rank == 1) {
		CHECK_OK(mm_barrier(w));
		for (int i = N - 1; i >= 0; i--)        /* the last posted first */
			CHECK_OK(mm_send(&i, 1, MM_INT, 0, i, w));
		return 0;
	}
	for (int i = 0; i < N; i++)
		MUST_OK(mm_irecv(&got[i], 1, MM_INT, 1, i, w, &reqs[i]));
	CHECK_OK(mm_barrier(w));
	for (int i = 0; i < N / 2; i++, left--) {
		int k = -1;

		MUST_OK(mm_waitany(N, reqs, &k, st));
		MUST(k >= 0 && k < N);
		CHECK_EQ(got[k], k);
		CHECK_EQ(st->tag, k);
		CHECK(!reqs[k].active);
		seen += k;
	}
	while (left) {
		MUST_OK(mm_waitsome(N, reqs, &count, which, st));
		MUST(count > 0 && count <= left);
		for (int i = 0; i < count; i++) {
			CHECK_EQ(got[which[i]], which[i]);
			CHECK_EQ(st[i].tag, which[i]);
			seen += which[i];
		}
		left -= count;
	}
	CHECK_EQ(seen, N * (N - 1) / 2);
	CHECK_OK(mm_waitany(N, reqs, &count, st));
	CHECK_EQ(count, MM_UNDEFINED);
	CHECK_OK(mm_waitsome(N, reqs, &count, which, st));
	CHECK_EQ(count, MM_UNDEFINED);
	CHECK_OK(mm_waitall(N, reqs, st));
	return 0;
}

TEST(waitany_and_waitsome_give_each_request_once)
{
	CHECK_OK(mm_run(2, some_main, NULL));
}

static int cancel_main(struct mm_comm *w, void *arg)
{
	struct mm_request req;
	struct mm_status st;
	int x = 1, got = 0;
	bool flag;

	(void)arg;
	if (w->rank == 0) {
		MUST_OK(mm_irecv(&got, 1, MM_INT, 1, 1, w, &req));
		CHECK_OK(mm_cancel(&req));
		CHECK_OK(mm_wait(&req, &st));
		CHECK(st.cancelled);
		MUST_OK(mm_issend(&x, 1, MM_INT, 1, 2, w, &req));
		CHECK_OK(mm_cancel(&req));
		CHECK_OK(mm_wait(&req, &st));
		CHECK(st.cancelled);
		CHECK_OK(mm_barrier(w));
		CHECK_OK(mm_recv(&got, 1, MM_INT, 1, 1, w, &st)); /* the cancelled receive took nothing */
		CHECK_EQ(got, 11);
		return 0;
	}
	CHECK_OK(mm_barrier(w));
	CHECK_OK(mm_iprobe(0, 2, w, &flag, NULL));
	CHECK(!flag);
	x = 11;
	return mm_send(&x, 1, MM_INT, 0, 1, w);
}

TEST(a_cancelled_receive_takes_nothing_and_a_cancelled_send_arrives_nowhere)
{
	CHECK_OK(mm_run(2, cancel_main, NULL));
}

/* Probes */

static int probe_main(struct mm_comm *w, void *arg)
{
	struct mm_message first, second, third;
	struct mm_status st;
	int got[50] = { 0 };
	bool flag;

	(void)arg;
	if (w->rank == 1) {
		for (int i = 0; i < 3; i++) {
			got[0] = i;
			CHECK_OK(mm_send(got, 40 + i, MM_INT, 0, 4, w));
		}
		return mm_barrier(w);
	}
	CHECK_OK(mm_iprobe(MM_ANY_SOURCE, 5, w, &flag, NULL));
	CHECK(!flag);
	CHECK_OK(mm_probe(MM_ANY_SOURCE, 4, w, &st));
	CHECK_EQ(st.source, 1);
	CHECK_EQ(count_of(&st), 40);
	MUST_OK(mm_mprobe(1, MM_ANY_TAG, w, &first, &st));
	CHECK_EQ(count_of(&st), 40);
	MUST_OK(mm_mprobe(MM_ANY_SOURCE, 4, w, &second, &st));
	CHECK_EQ(count_of(&st), 41);
	CHECK_OK(mm_barrier(w));
	CHECK_OK(mm_recv(got, 50, MM_INT, 1, 4, w, &st));       /* not one of those taken */
	CHECK_EQ(count_of(&st), 42);
	CHECK_EQ(got[0], 2);
	CHECK_OK(mm_improbe(1, 4, w, &flag, &third, NULL));
	CHECK(!flag);
	CHECK_OK(mm_mrecv(got, 50, MM_INT, &second, &st));
	CHECK_EQ(got[0], 1);
	CHECK_EQ(count_of(&st), 41);
	CHECK_OK(mm_mrecv(got, 50, MM_INT, &first, &st));
	CHECK_EQ(got[0], 0);
	CHECK_EQ(st.tag, 4);
	return 0;
}

TEST(a_probe_leaves_the_message_and_a_matched_probe_takes_it_out_of_matching)
{
	CHECK_OK(mm_run(2, probe_main, NULL));
}

/* Edges */

static int edges_main(struct mm_comm *w, void *arg)
{
	int out[4] = { 1, 2, 3, 4 }, in[4] = { 0 };
	struct mm_request req;
	struct mm_status st;

	(void)arg;
	CHECK_OK(mm_send(out, 4, MM_INT, MM_PROC_NULL, 1, w));
	CHECK_OK(mm_recv(in, 4, MM_INT, MM_PROC_NULL, 1, w, &st));
	CHECK_EQ(st.source, MM_PROC_NULL);
	CHECK_EQ(st.bytes, 0);

	MUST_OK(mm_irecv(in, 4, MM_INT, w->rank, 2, w, &req));          /* to myself */
	CHECK_OK(mm_send(out, 4, MM_INT, w->rank, 2, w));
	CHECK_OK(mm_wait(&req, &st));
	CHECK_EQ(st.source, w->rank);
	CHECK(!memcmp(in, out, sizeof(in)));
	CHECK_OK(mm_wait(&req, &st));                                   /* nothing left to wait for */
	CHECK_EQ(st.source, MM_PROC_NULL);

	memset(in, 0, sizeof(in));
	CHECK_OK(mm_send(out, 4, MM_INT, w->rank, 3, w));
	CHECK_EQ(mm_recv(in, 2, MM_INT, w->rank, 3, w, &st), -EMSGSIZE);
	CHECK_EQ(in[1], 2);
	CHECK_EQ(in[2], 0);
	CHECK_OK(mm_send(out, 3, MM_BYTE, w->rank, 3, w));              /* the cut one is consumed */
	CHECK_OK(mm_recv(in, 4, MM_INT, w->rank, 3, w, &st));
	CHECK_EQ(count_of(&st), MM_UNDEFINED);
	CHECK_EQ(mm_get_count(&st, MM_BYTE), 3);

	CHECK(mm_send(out, 1, MM_INT, w->size, 1, w) < 0);              /* nobody there */
	CHECK_EQ(mm_send(out, 1, MM_INT, 0, -5, w), -EINVAL);
	CHECK_EQ(mm_send(out, -1, MM_INT, 0, 1, w), -EINVAL);
	return mm_barrier(w);
}

TEST(nobody_myself_and_what_does_not_fit)
{
	CHECK_OK(mm_run(3, edges_main, NULL));
}

static int large_main(struct mm_comm *w, void *arg)
{
	static const int counts[] = { 0, 1, 100, 2047, 2048, 2049, 100000, 1 << 20 };
	int *out = malloc(sizeof(int) << 20), *in = malloc(sizeof(int) << 20);
	int next = (w->rank + 1) % w->size, last = (w->rank + w->size - 1) % w->size;
	struct mm_status st;

	(void)arg;
	MUST(out && in);
	for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
		int wrong = 0;

		for (int i = 0; i < counts[k]; i++)
			out[i] = i * 3 + w->rank;
		MUST_OK(mm_sendrecv(out, counts[k], next, 1, in, 1 << 20, last, 1, MM_INT, w, &st));
		CHECK_EQ(count_of(&st), counts[k]);
		for (int i = 0; i < counts[k]; i++)
			wrong += in[i] != i * 3 + last;
		CHECK_EQ(wrong, 0);
	}
	free(in);
	free(out);
	return 0;
}

TEST(messages_of_every_size_arrive_whole)
{
	CHECK_OK(mm_run(4, large_main, NULL));
}

/* Communicators */

static int dup_main(struct mm_comm *w, void *arg)
{
	int other = 1 - w->rank, x, in_dup = 0, in_world = 0;
	struct mm_comm *dup, *again;
	struct mm_request req;
	struct mm_status st;
	bool flag;

	(void)arg;
	MUST_OK(mm_comm_dup(w, &dup));
	MUST_OK(mm_comm_dup(dup, &again));
	CHECK_EQ(dup->rank, w->rank);
	CHECK_EQ(again->size, w->size);
	MUST_OK(mm_irecv(&in_dup, 1, MM_INT, MM_ANY_SOURCE, MM_ANY_TAG, dup, &req));
	x = 1;
	CHECK_OK(mm_send(&x, 1, MM_INT, other, 9, w));
	CHECK_OK(mm_recv(&in_world, 1, MM_INT, MM_ANY_SOURCE, 9, w, &st));
	CHECK_EQ(in_world, 1);
	CHECK_OK(mm_barrier(dup));                              /* nor do collectives reach it */
	CHECK_OK(mm_test(&req, &flag, NULL));
	CHECK(!flag);
	CHECK_OK(mm_barrier(w));
	x = 2;
	CHECK_OK(mm_send(&x, 1, MM_INT, other, 9, dup));
	CHECK_OK(mm_wait(&req, &st));
	CHECK_EQ(in_dup, 2);
	CHECK_EQ(st.source, other);
	CHECK_OK(mm_iprobe(MM_ANY_SOURCE, MM_ANY_TAG, again, &flag, NULL));
	CHECK(!flag);
	CHECK_OK(mm_comm_free(again));
	return mm_comm_free(dup);
}

TEST(a_duplicate_hears_nothing_of_the_original)
{
	CHECK_OK(mm_run(2, dup_main, NULL));
}

/* Rank 0 talks in the new communicator at once; the others open it when they come to it. */
static int early_main(struct mm_comm *w, void *arg)
{
	struct mm_comm *dup;
	int got;

	(void)arg;
	MUST_OK(mm_comm_dup(w, &dup));
	for (int to = 1; !w->rank && to < w->size; to++)
		for (int i = 0; i < 50; i++)
			CHECK_OK(mm_send(&i, 1, MM_INT, to, 1, dup));
	for (int i = 0; w->rank && i < 50; i++) {
		CHECK_OK(mm_recv(&got, 1, MM_INT, MM_ANY_SOURCE, 1, dup, NULL));
		CHECK_EQ(got, i);
	}
	CHECK_OK(mm_barrier(dup));
	return mm_comm_free(dup);
}

TEST(what_is_sent_in_a_communicator_before_a_member_has_it_open_comes_first)
{
	for (int i = 0; i < 10; i++)
		CHECK_OK(mm_run(4, early_main, NULL));
}

static int split_main(struct mm_comm *w, void *arg)
{
	int color = w->rank % 3 == 2 ? MM_UNDEFINED : w->rank % 3, sum = 0, mine = w->rank, want = 0,
	    members = 0;
	struct mm_comm *part = NULL;

	(void)arg;
	MUST_OK(mm_comm_split(w, color, -w->rank, &part));
	if (color == MM_UNDEFINED) {
		CHECK(!part);
		return 0;
	}
	for (int i = color; i < w->size; i += 3)
		want += i, members++;
	CHECK_EQ(part->size, members);
	CHECK_EQ(part->rank, members - 1 - w->rank / 3);        /* keys turn the order round */
	CHECK_OK(mm_allreduce(&mine, &sum, 1, MM_INT, MM_SUM, part));
	CHECK_EQ(sum, want);
	return mm_comm_free(part);
}

TEST(a_split_groups_by_color_and_orders_by_key)
{
	CHECK_OK(mm_run(2, split_main, NULL));
	CHECK_OK(mm_run(11, split_main, NULL));
}

/* Collectives */

static _Atomic int arrived;

static int barrier_main(struct mm_comm *w, void *arg)
{
	(void)arg;
	for (int i = 1; i <= 20; i++) {
		atomic_fetch_add(&arrived, 1);
		MUST_OK(mm_barrier(w));
		CHECK(atomic_load(&arrived) >= i * w->size);
	}
	return 0;
}

TEST(nobody_leaves_a_barrier_before_all_have_come)
{
	for (int n = 1; n <= 64; n = n < 4 ? n + 1 : n * 2) {
		atomic_store(&arrived, 0);
		CHECK_OK(mm_run(n, barrier_main, NULL));
	}
}

static int bcast_main(struct mm_comm *w, void *arg)
{
	static const int counts[] = { 0, 1, 300, 30000 };
	long *data = malloc(30000 * sizeof(*data));

	(void)arg;
	MUST(data);
	for (int root = 0; root < w->size; root += 1 + w->size / 5)
		for (int k = 0; k < 4; k++) {
			int wrong = 0;

			for (int i = 0; i < counts[k]; i++)
				data[i] = w->rank == root ? i + root : -1;
			MUST_OK(mm_bcast(data, counts[k], MM_LONG, root, w));
			for (int i = 0; i < counts[k]; i++)
				wrong += data[i] != i + root;
			CHECK_EQ(wrong, 0);
		}
	free(data);
	return 0;
}

TEST(a_broadcast_reaches_everybody_from_any_root)
{
	static const int sizes[] = { 1, 2, 3, 7, 16, 64 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		CHECK_OK(mm_run(sizes[i], bcast_main, NULL));
}

static int reduce_main(struct mm_comm *w, void *arg)
{
	int n = w->size, x[3] = { w->rank, -w->rank, 1 }, y[3] = { 0 };
	double d = 0.5 * w->rank, e = 0;

	(void)arg;
	CHECK_OK(mm_allreduce(x, y, 3, MM_INT, MM_SUM, w));
	CHECK_EQ(y[0], n * (n - 1) / 2);
	CHECK_EQ(y[1], -n * (n - 1) / 2);
	CHECK_EQ(y[2], n);
	CHECK_OK(mm_allreduce(x, y, 3, MM_INT, MM_MAX, w));
	CHECK_EQ(y[0], n - 1);
	CHECK_OK(mm_allreduce(x, y, 3, MM_INT, MM_MIN, w));
	CHECK_EQ(y[1], 1 - n);
	CHECK_OK(mm_allreduce(&d, &e, 1, MM_DOUBLE, MM_SUM, w));
	CHECK(e == 0.25 * n * (n - 1));
	for (int i = 0; i < 20; i++) {
		long one = 1, sum = 0;

		CHECK_OK(mm_allreduce(&one, &sum, 1, MM_LONG, MM_SUM, w));
		CHECK_EQ(sum, n);
	}
	return 0;
}

TEST(an_allreduce_gives_everybody_the_whole)
{
	static const int sizes[] = { 1, 2, 3, 5, 8, 33, 64 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		CHECK_OK(mm_run(sizes[i], reduce_main, NULL));
}

static int failing_main(struct mm_comm *w, void *arg)
{
	int r;

	(void)arg;
	if (w->rank == w->size - 1)
		return -EIO;
	r = mm_barrier(w);
	CHECK(r == -ECONNRESET || r == -ESRCH);         /* died under it, or was gone before */
	return 0;
}

TEST(a_rank_that_fails_ends_the_collectives_of_the_others)
{
	CHECK_EQ(mm_run(4, failing_main, NULL), -EIO);
}

TEST_MAIN
