/* test_mpix.c - the extension library: communicators of threads, memory that changes hands.
 *
 * Every process starts threads; each of them joins and is a rank of its own. What all of them see is compared with a plain
 * computation. Any number of processes.
 */
#include <pthread.h>
#include <string.h>

#include <mpix_weft.h>

#include "mpitest.h"

#define THREADS 4                       /* of a process, unless a case says otherwise */
#define WAVES 40

static int process, processes;

/* Threads of one case */

struct thread {
	MPIX_Weft_threads threads;
	void (*run)(MPI_Comm comm, int rank, int size);
	MPI_Comm comm;                  /* its handle, seen from outside */
	int keeps;                      /* ends without freeing it */
	pthread_t id;
};

static void *thread_main(void *arg)
{
	struct thread *t = arg;
	int rank = -1, size = -1;

	EXPECT_INT(MPIX_Weft_threads_join(t->threads, &t->comm), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_rank(t->comm, &rank), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_size(t->comm, &size), MPI_SUCCESS);
	if (t->run)
		t->run(t->comm, rank, size);
	if (!t->keeps)
		EXPECT_INT(MPI_Comm_free(&t->comm), MPI_SUCCESS);
	return NULL;
}

/* @n threads of this process run @run, among those of all others. */
static void among_threads(int n, void (*run)(MPI_Comm comm, int rank, int size))
{
	struct thread all[64] = { { .threads = NULL } };
	MPIX_Weft_threads threads;

	EXPECT_INT(MPIX_Weft_threads_create(MPI_COMM_WORLD, n, &threads), MPI_SUCCESS);
	EXPECT((threads == MPIX_WEFT_THREADS_NULL) == (n == 0));
	for (int i = 0; i < n; i++) {
		all[i] = (struct thread){ .threads = threads, .run = run };
		pthread_create(&all[i].id, NULL, thread_main, &all[i]);
	}
	for (int i = 0; i < n; i++) {
		pthread_join(all[i].id, NULL);
		EXPECT(all[i].comm == MPI_COMM_NULL);
	}
}

/* Joining */

static void ranks_by_process(MPI_Comm comm, int rank, int size)
{
	int processes_of[256];

	EXPECT_INT(size, processes * THREADS);
	EXPECT_INT(MPI_Allgather(&process, 1, MPI_INT, processes_of, 1, MPI_INT, comm), MPI_SUCCESS);
	for (int i = 0; i < size; i++)
		EXPECT_INT(processes_of[i], i / THREADS);
	EXPECT_INT(rank / THREADS, process);
}

static void uneven(MPI_Comm comm, int rank, int size)
{
	int sum = 0, want = 0;

	for (int i = 1; i < processes; i++)
		want += i;
	EXPECT_INT(size, want);
	EXPECT_INT(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
	EXPECT_INT(sum, size * (size - 1) / 2);
}

/* Messages */

struct note {
	int from, number;
};

static void all_to_all(MPI_Comm comm, int rank, int size)
{
	struct note out[WAVES], in;
	MPI_Request requests[256];
	int next[256] = { 0 };
	MPI_Status st;

	for (int k = 0; k < WAVES; k++) {
		out[k] = (struct note){ rank, k };
		for (int i = 0; i < size; i++)
			EXPECT_INT(MPI_Isend(&out[k], 2, MPI_INT, (rank + i) % size, k, comm, &requests[i]), MPI_SUCCESS);
		for (int i = 0; i < size; i++) {
			EXPECT_INT(MPI_Recv(&in, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &st), MPI_SUCCESS);
			EXPECT_INT(st.MPI_SOURCE, in.from);
			EXPECT_INT(st.MPI_TAG, in.number);
			EXPECT_INT(in.number, next[in.from]);
			next[in.from]++;
		}
		EXPECT_INT(MPI_Waitall(size, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
	}
	for (int i = 0; i < size; i++)
		EXPECT_INT(next[i], WAVES);
}

static void probes_and_requests(MPI_Comm comm, int rank, int size)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size, x = rank, y = -1, n = 0, flag, which;
	char big[70000] = "", place[70000];
	MPI_Request requests[2];
	MPI_Message message;
	MPI_Status st;

	EXPECT_INT(MPI_Isend(&x, 1, MPI_INT, right, 5, comm, &requests[0]), MPI_SUCCESS);
	EXPECT_INT(MPI_Probe(MPI_ANY_SOURCE, 5, comm, &st), MPI_SUCCESS);
	EXPECT_INT(st.MPI_SOURCE, left);
	EXPECT_INT(MPI_Mprobe(left, MPI_ANY_TAG, comm, &message, &st), MPI_SUCCESS);
	EXPECT_INT(MPI_Mrecv(&y, 1, MPI_INT, &message, &st), MPI_SUCCESS);
	EXPECT_INT(y, left);
	EXPECT_INT(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_SUCCESS);
	EXPECT_INT(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &st), MPI_SUCCESS);
	EXPECT_INT(flag, 0);
	EXPECT_INT(MPI_Irecv(place, sizeof(place), MPI_CHAR, left, 6, comm, &requests[0]), MPI_SUCCESS);
	EXPECT_INT(MPI_Barrier(comm), MPI_SUCCESS);
	big[69999] = (char)rank;
	EXPECT_INT(MPI_Issend(big, sizeof(big), MPI_CHAR, right, 6, comm, &requests[1]), MPI_SUCCESS);
	for (int i = 0; i < 2; i++) {
		EXPECT_INT(MPI_Waitany(2, requests, &which, &st), MPI_SUCCESS);
		if (which == 0)
			MPI_Get_count(&st, MPI_CHAR, &n);
	}
	EXPECT_INT(n, 70000);
	EXPECT_INT(place[69999], (char)left);
	EXPECT_INT(MPI_Irecv(&y, 1, MPI_INT, MPI_ANY_SOURCE, 7, comm, &requests[0]), MPI_SUCCESS);
	EXPECT_INT(MPI_Cancel(&requests[0]), MPI_SUCCESS);
	EXPECT_INT(MPI_Wait(&requests[0], &st), MPI_SUCCESS);
	MPI_Test_cancelled(&st, &flag);
	EXPECT_INT(flag, 1);
	EXPECT_INT(MPI_Sendrecv(&x, 1, MPI_INT, left, 8, &y, 1, MPI_INT, right, 8, comm, &st), MPI_SUCCESS);
	EXPECT_INT(y, right);
}

/* Collectives */

static void sums(MPI_Comm comm, int rank, int size)
{
	enum { MANY = 20000 };
	long *in = malloc(MANY * sizeof(*in)), *out = malloc(MANY * sizeof(*out)), wrong = 0, x = rank + 1, y = 0;
	const long all = (long)size * (size + 1) / 2;

	for (int i = 0; i < MANY; i++)
		in[i] = x * i;
	EXPECT_INT(MPI_Allreduce(in, out, MANY, MPI_LONG, MPI_SUM, comm), MPI_SUCCESS);
	for (int i = 0; i < MANY; i++)
		wrong += out[i] != all * i;
	EXPECT_INT(wrong, 0);
	EXPECT_INT(MPI_Scan(&x, &y, 1, MPI_LONG, MPI_SUM, comm), MPI_SUCCESS);
	EXPECT_INT(y, (long)(rank + 1) * (rank + 2) / 2);
	for (int root = 0; root < size; root++) {
		y = 0;
		EXPECT_INT(MPI_Reduce(&x, &y, 1, MPI_LONG, MPI_MAX, root, comm), MPI_SUCCESS);
		EXPECT_INT(y, rank == root ? size : 0);
	}
	free(in);
	free(out);
}

static void collectives(MPI_Comm comm, int rank, int size)
{
	int row[256], column[256], wrong = 0;
	char *bytes = malloc(100000);

	for (int k = 0; k < 50; k++)
		EXPECT_INT(MPI_Barrier(comm), MPI_SUCCESS);
	for (int root = 0; root < size; root++) {
		memset(bytes, rank == root ? root + 1 : 0, 100000);
		EXPECT_INT(MPI_Bcast(bytes, root % 2 ? 1 : 100000, MPI_CHAR, root, comm), MPI_SUCCESS);
		EXPECT_INT(bytes[root % 2 ? 0 : 99999], root + 1);
		EXPECT_INT(MPI_Gather(&rank, 1, MPI_INT, row, 1, MPI_INT, root, comm), MPI_SUCCESS);
		for (int i = 0; i < size && rank == root; i++)
			wrong += row[i] != i;
	}
	for (int i = 0; i < size; i++)
		row[i] = rank * 1000 + i;
	EXPECT_INT(MPI_Alltoall(row, 1, MPI_INT, column, 1, MPI_INT, comm), MPI_SUCCESS);
	for (int i = 0; i < size; i++)
		wrong += column[i] != i * 1000 + rank;
	EXPECT_INT(wrong, 0);
	sums(comm, rank, size);
	free(bytes);
}

/* More communicators */

static void check_ring(MPI_Comm comm)
{
	int rank, size, y = -1, sum = 0;
	MPI_Status st;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	EXPECT_INT(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 1, &y, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &st), MPI_SUCCESS);
	EXPECT_INT(y, (rank + size - 1) % size);
	EXPECT_INT(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
	EXPECT_INT(sum, size * (size - 1) / 2);
}

static void copies_and_parts(MPI_Comm comm, int rank, int size)
{
	int x = rank, y = -1, want = 0, n, result;
	MPI_Comm copy, later, part, chosen;
	MPI_Group all, even;
	MPI_Request request;

	EXPECT_INT(MPI_Comm_dup(comm, &copy), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_compare(comm, copy, &result), MPI_SUCCESS);
	EXPECT_INT(result, MPI_CONGRUENT);
	EXPECT_INT(MPI_Isend(&x, 1, MPI_INT, rank, 1, comm, &request), MPI_SUCCESS);
	check_ring(copy);
	EXPECT_INT(MPI_Recv(&y, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, MPI_STATUS_IGNORE), MPI_SUCCESS);
	EXPECT_INT(y, rank);
	EXPECT_INT(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_idup(copy, &later, &request), MPI_SUCCESS);
	EXPECT_INT(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
	check_ring(later);
	EXPECT_INT(MPI_Comm_split(comm, rank % 3, -rank, &part), MPI_SUCCESS);
	for (int i = 0; i < size; i++)
		want += i % 3 == rank % 3;
	MPI_Comm_size(part, &n);
	EXPECT_INT(n, want);
	check_ring(part);
	MPI_Comm_group(comm, &all);
	EXPECT_INT(MPI_Group_range_incl(all, 1, (int[][3]){ { 0, size - 1, 2 } }, &even), MPI_SUCCESS);
	if (rank % 2 == 0) {
		EXPECT_INT(MPI_Comm_create_group(comm, even, 3, &chosen), MPI_SUCCESS);
		check_ring(chosen);
		EXPECT_INT(MPI_Comm_free(&chosen), MPI_SUCCESS);
	}
	MPI_Group_free(&all);
	MPI_Group_free(&even);
	EXPECT_INT(MPI_Comm_free(&part), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_free(&copy), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_disconnect(&later), MPI_SUCCESS);
}

static void two_groups(MPI_Comm comm, int rank, int size)
{
	MPI_Comm half, both, merged;
	int y = -1, n;

	EXPECT_INT(MPI_Comm_split(comm, rank % 2, rank, &half), MPI_SUCCESS);
	EXPECT_INT(MPI_Intercomm_create(half, 0, comm, 1 - rank % 2, 9, &both), MPI_SUCCESS);
	MPI_Comm_remote_size(both, &n);
	EXPECT_INT(n, size / 2);
	EXPECT_INT(MPI_Sendrecv(&rank, 1, MPI_INT, rank / 2, 0, &y, 1, MPI_INT, MPI_ANY_SOURCE, 0, both, MPI_STATUS_IGNORE), MPI_SUCCESS);
	EXPECT_INT(y, rank ^ 1);
	EXPECT_INT(MPI_Intercomm_merge(both, rank % 2, &merged), MPI_SUCCESS);
	check_ring(merged);
	EXPECT_INT(MPI_Comm_free(&merged), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_free(&both), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_free(&half), MPI_SUCCESS);
}

static void count_error(MPI_Comm *comm, int *code, ...)
{
	int key, flag, *seen;

	(void)code;
	MPI_Comm_get_attr(*comm, MPI_TAG_UB, &seen, &flag);
	EXPECT(flag);
	MPI_Comm_rank(*comm, &key);
	EXPECT(key >= 0);
}

static void attributes_and_handlers(MPI_Comm comm, int rank, int size)
{
	int key, flag, mine = rank, *seen = NULL;
	MPI_Errhandler handler;
	MPI_Comm copy;

	EXPECT_INT(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_set_attr(comm, key, &mine), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_dup(comm, &copy), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_get_attr(copy, key, &seen, &flag), MPI_SUCCESS);
	EXPECT(flag && seen == &mine);
	MPI_Comm_create_errhandler(count_error, &handler);
	MPI_Comm_set_errhandler(copy, handler);
	MPI_Errhandler_free(&handler);
	EXPECT_INT(MPI_Send(&mine, 1, MPI_INT, size, 0, copy), MPI_ERR_RANK);
	EXPECT_INT(MPI_Comm_free(&copy), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_free_keyval(&key), MPI_SUCCESS);
}

/* Coming and going */

#define ROUNDS 6

static struct {
	pthread_mutex_t lock;
	pthread_t ids[256];
	int started, joined;
} crowd = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct guest {
	MPIX_Weft_ticket ticket;
	int round;                      /* the first in which it is a member */
};

static void *guest_main(void *arg);

static void guest_start(const MPIX_Weft_ticket *ticket, int round)
{
	struct guest *g = malloc(sizeof(*g));

	*g = (struct guest){ *ticket, round };
	pthread_mutex_lock(&crowd.lock);
	pthread_create(&crowd.ids[crowd.started++], NULL, guest_main, g);
	pthread_mutex_unlock(&crowd.lock);
}

static void crowd_wait(void)
{
	for (;;) {
		pthread_t id;

		pthread_mutex_lock(&crowd.lock);
		if (crowd.joined == crowd.started) {
			pthread_mutex_unlock(&crowd.lock);
			return;
		}
		id = crowd.ids[crowd.joined++];
		pthread_mutex_unlock(&crowd.lock);
		pthread_join(id, NULL);
	}
}

/* A change in which the last two leave, and the first and the second invite two and one. @comm becomes the new one; false: left. */
static int change(MPI_Comm *comm, int round)
{
	int rank, size, new_rank = -1, new_size = -1, stays, guests, old[256];
	MPIX_Weft_ticket ticket;
	MPI_Comm next;

	MPI_Comm_rank(*comm, &rank);
	MPI_Comm_size(*comm, &size);
	stays = rank < size - 2;
	guests = rank == 0 ? 2 : rank == 1;
	if (guests)
		EXPECT_INT(MPIX_Weft_invite(guests, &ticket), MPI_SUCCESS);
	for (int i = 0; i < guests; i++)
		guest_start(&ticket, round + 1);
	EXPECT_INT(MPIX_Weft_comm_change(*comm, stays, guests ? &ticket : NULL, &next), MPI_SUCCESS);
	EXPECT((next != MPI_COMM_NULL) == stays);
	if (stays) {
		MPI_Comm_rank(next, &new_rank);
		MPI_Comm_size(next, &new_size);
		EXPECT_INT(new_rank, rank);
		EXPECT_INT(new_size, size + 1);
		EXPECT_INT(MPI_Allgather(&rank, 1, MPI_INT, old, 1, MPI_INT, next), MPI_SUCCESS);
		for (int i = 0; i < new_size; i++)
			EXPECT_INT(old[i], i < size - 2 ? i : -1);
		check_ring(next);
	}
	EXPECT_INT(MPI_Barrier(*comm), MPI_SUCCESS);    /* the old one goes on */
	EXPECT_INT(MPI_Comm_free(comm), MPI_SUCCESS);
	*comm = next;
	return stays;
}

static void member(MPI_Comm comm, int round)
{
	while (round < ROUNDS)
		if (!change(&comm, round++))
			return;
	EXPECT_INT(MPI_Comm_free(&comm), MPI_SUCCESS);
}

static void *guest_main(void *arg)
{
	struct guest g = *(struct guest *)arg;
	int rank = -1, size = 0, none = -1, old[256];
	MPI_Comm comm = MPI_COMM_NULL, again;

	free(arg);
	EXPECT_INT(MPIX_Weft_join(&g.ticket, &comm), MPI_SUCCESS);
	EXPECT_INT(MPIX_Weft_join(&g.ticket, &again), MPI_ERR_ARG);
	if (comm == MPI_COMM_NULL)
		return NULL;
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	EXPECT(rank >= size - 3);
	EXPECT_INT(MPI_Allgather(&none, 1, MPI_INT, old, 1, MPI_INT, comm), MPI_SUCCESS);
	check_ring(comm);
	member(comm, g.round);
	return NULL;
}

static void come_and_go(MPI_Comm comm, int rank, int size)
{
	MPI_Comm copy;

	(void)rank;
	(void)size;
	MPI_Comm_dup(comm, &copy);      /* the caller frees the other */
	member(copy, 0);
}

/* A ticket by message: the threads come from the next process. */
static void guests_of_next(MPI_Comm comm, int rank, int size)
{
	MPIX_Weft_ticket ticket;
	MPI_Comm next = MPI_COMM_NULL;
	int n = 0;

	if (rank == 0) {
		EXPECT_INT(MPIX_Weft_invite(3, &ticket), MPI_SUCCESS);
		for (int i = 0; i < 3; i++)
			MPI_Send(&ticket, sizeof(ticket), MPI_BYTE, size - 1, 0, comm);
	}
	for (int i = 0; i < 3 && rank == size - 1; i++) {
		MPI_Recv(&ticket, sizeof(ticket), MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
		guest_start(&ticket, ROUNDS);
	}
	EXPECT_INT(MPIX_Weft_comm_change(comm, 1, rank == 0 ? &ticket : NULL, &next), MPI_SUCCESS);
	MPI_Comm_size(next, &n);
	EXPECT_INT(n, size + 3);
	EXPECT_INT(MPI_Allgather(&rank, 1, MPI_INT, (int[256]){ 0 }, 1, MPI_INT, next), MPI_SUCCESS);
	check_ring(next);
	EXPECT_INT(MPI_Comm_free(&next), MPI_SUCCESS);
}

/* Ending without a word */

static void expect_gone(int r)
{
	EXPECT_INT(r, MPI_ERR_PROC_ABORTED);
}

static void without_a_word(MPI_Comm comm, int rank, int size)
{
	int x = rank, y = -1, last = size - 1;
	MPI_Request request;

	for (int i = 0; i < last && rank == last; i++)
		EXPECT_INT(MPI_Recv(&y, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE), MPI_SUCCESS);
	if (rank == last)
		pthread_exit(NULL);
	EXPECT_INT(MPI_Send(&x, 1, MPI_INT, last, 0, comm), MPI_SUCCESS);
	if (rank == 0) {
		int r = MPI_Irecv(&y, 1, MPI_INT, last, 1, comm, &request);

		expect_gone(r == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : r);
	} else {
		expect_gone(MPI_Recv(&y, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, MPI_STATUS_IGNORE));
	}
	/* What a member that was told first sends to one that was not is another error. */
	EXPECT(MPI_Barrier(comm) != MPI_SUCCESS);
	expect_gone(MPI_Ssend(&x, 1, MPI_INT, last, 2, comm));
	EXPECT(MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS);
	/* Those that are left go on. */
	EXPECT_INT(MPI_Sendrecv(&x, 1, MPI_INT, (rank + 1) % last, 3, &y, 1, MPI_INT, (rank + last - 1) % last, 3, comm, MPI_STATUS_IGNORE),
		   MPI_SUCCESS);
	EXPECT_INT(y, (rank + last - 1) % last);
}

/* Joining fails where nobody will let in: the inviter ended, or wanted fewer. */

static void *invite_and_end(void *ticket)
{
	EXPECT_INT(MPIX_Weft_invite(1, ticket), MPI_SUCCESS);
	return NULL;
}

static void *join_late(void *ticket)
{
	MPI_Comm comm = MPI_COMM_WORLD;

	EXPECT_INT(MPIX_Weft_join(ticket, &comm), MPI_ERR_PROC_ABORTED);
	EXPECT(comm == MPI_COMM_NULL);
	return NULL;
}

static void tickets_used_up(MPI_Comm comm, int rank, int size)
{
	MPIX_Weft_ticket ticket;
	MPI_Comm next;
	pthread_t id;

	(void)size;
	EXPECT_INT(MPIX_Weft_invite(0, &ticket), MPI_SUCCESS);
	pthread_create(&id, NULL, join_late, &ticket);
	EXPECT_INT(MPIX_Weft_comm_change(comm, 1, &ticket, &next), MPI_SUCCESS);
	pthread_join(id, NULL);
	EXPECT_INT(MPI_Comm_free(&next), MPI_SUCCESS);
	/* Used up at one member: nobody gets a communicator. */
	EXPECT_INT(MPIX_Weft_comm_change(comm, 1, rank == 0 ? &ticket : NULL, &next), MPI_ERR_ARG);
	EXPECT(next == MPI_COMM_NULL);
	EXPECT_INT(MPI_Barrier(comm), MPI_SUCCESS);
	pthread_create(&id, NULL, invite_and_end, &ticket);
	pthread_join(id, NULL);
	join_late(&ticket);
}

/* Others' handles */

struct foreign {
	MPI_Comm comm;
	MPI_Request request;
};

static void *use_foreign(void *arg)
{
	struct foreign *f = arg;
	MPI_Comm copy;
	int x;

	EXPECT(MPI_Recv(&x, 1, MPI_INT, 0, 0, f->comm, MPI_STATUS_IGNORE) != MPI_SUCCESS);
	EXPECT(MPIX_Weft_comm_change(f->comm, 1, NULL, &copy) == MPI_ERR_COMM);
	EXPECT(MPI_Comm_idup(f->comm, &copy, &f->request) != MPI_SUCCESS);
	EXPECT(copy == MPI_COMM_NULL);
	return NULL;
}

static void *free_foreign(void *arg)
{
	struct foreign *f = arg;

	EXPECT_INT(MPI_Wait(&f->request, MPI_STATUS_IGNORE), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_free(&f->comm), MPI_SUCCESS);
	return NULL;
}

static void by_others(MPI_Comm comm, int rank, int size)
{
	struct foreign f;
	pthread_t id;
	int y = -1;

	EXPECT_INT(MPI_Comm_dup(comm, &f.comm), MPI_SUCCESS);
	pthread_create(&id, NULL, use_foreign, &f);
	pthread_join(id, NULL);
	EXPECT_INT(MPI_Barrier(comm), MPI_SUCCESS);
	EXPECT_INT(MPI_Irecv(&y, 1, MPI_INT, (rank + 1) % size, 4, f.comm, &f.request), MPI_SUCCESS);
	EXPECT_INT(MPI_Send(&rank, 1, MPI_INT, (rank + size - 1) % size, 4, f.comm), MPI_SUCCESS);
	EXPECT_INT(MPI_Barrier(comm), MPI_SUCCESS);
	pthread_create(&id, NULL, free_foreign, &f);
	pthread_join(id, NULL);
	EXPECT_INT(y, (rank + 1) % size);
	EXPECT(f.comm == MPI_COMM_NULL);
	EXPECT_INT(MPI_Comm_dup(comm, &f.comm), MPI_SUCCESS);   /* here its ports are closed */
	EXPECT_INT(MPI_Comm_free(&f.comm), MPI_SUCCESS);
}

/* Memory */

static const MPI_Count sizes[] = { 0, 1, 5000, 1 << 20, 64 << 20 };
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

static void fill(unsigned char *data, MPI_Count n, int seed)
{
	for (MPI_Count i = 0; i < n; i += n < 10000 ? 1 : 997)
		data[i] = (unsigned char)(i * 7 + seed);
	if (n)
		data[n - 1] = (unsigned char)seed;
}

static int holds(const unsigned char *data, MPI_Count n, int seed)
{
	for (MPI_Count i = 0; i < n - 1; i += n < 10000 ? 1 : 997)
		if (data[i] != (unsigned char)(i * 7 + seed))
			return 0;
	return !n || data[n - 1] == (unsigned char)seed;
}

/* Rank 0 gives, the last one takes and gives back what it got; also where one side does it the ordinary way. */
static void memory_from_hand_to_hand(MPI_Comm comm, int rank, int size)
{
	unsigned char *buf;
	MPI_Count bytes;
	MPI_Status st;
	void *mem;

	for (int i = 0; i < SIZES; i++) {
		if (rank == 0) {
			EXPECT_INT(MPI_Alloc_mem(sizes[i], MPI_INFO_NULL, &mem), MPI_SUCCESS);
			fill(mem, sizes[i], i);
			EXPECT_INT(MPIX_Weft_give_send(mem, sizes[i], size - 1, i, comm), MPI_SUCCESS);
			buf = malloc((size_t)sizes[i] + 1);
			EXPECT_INT(MPI_Recv_c(buf, sizes[i], MPI_BYTE, size - 1, i, comm, &st), MPI_SUCCESS);
			EXPECT(holds(buf, sizes[i], i + 1));
			EXPECT_INT(MPI_Send_c(buf, sizes[i], MPI_BYTE, size - 1, i, comm), MPI_SUCCESS);
			free(buf);
		} else if (rank == size - 1) {
			EXPECT_INT(MPIX_Weft_alloc_recv(&mem, &bytes, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &st), MPI_SUCCESS);
			EXPECT_INT(bytes, sizes[i]);
			EXPECT_INT(st.MPI_SOURCE, 0);
			EXPECT_INT(st.MPI_TAG, i);
			MPI_Get_count_c(&st, MPI_BYTE, &bytes);
			EXPECT_INT(bytes, sizes[i]);
			EXPECT(holds(mem, bytes, i));
			fill(mem, bytes, i + 1);
			EXPECT_INT(MPIX_Weft_give_send(mem, bytes, 0, i, comm), MPI_SUCCESS);
			EXPECT_INT(MPIX_Weft_alloc_recv(&mem, &bytes, 0, i, comm, MPI_STATUS_IGNORE), MPI_SUCCESS);
			EXPECT_INT(bytes, sizes[i]);
			EXPECT(holds(mem, bytes, i + 1));
			EXPECT_INT(MPIX_Weft_free(mem), MPI_SUCCESS);
		}
	}
}

static void memory_under_way(MPI_Comm comm, int rank, int size)
{
	MPI_Request requests[SIZES];
	MPI_Count bytes;
	MPI_Status st;
	void *mem;

	for (int i = 0; i < SIZES; i++) {
		EXPECT_INT(MPI_Alloc_mem(sizes[i] / 8, MPI_INFO_NULL, &mem), MPI_SUCCESS);
		fill(mem, sizes[i] / 8, rank + i);
		EXPECT_INT(MPIX_Weft_igive_send(mem, sizes[i] / 8, (rank + 1) % size, i, comm, &requests[i]), MPI_SUCCESS);
	}
	for (int i = 0; i < SIZES; i++) {
		EXPECT_INT(MPIX_Weft_alloc_recv(&mem, &bytes, MPI_ANY_SOURCE, i, comm, &st), MPI_SUCCESS);
		EXPECT_INT(bytes, sizes[i] / 8);
		EXPECT(holds(mem, bytes, st.MPI_SOURCE + i));
		EXPECT_INT(MPIX_Weft_free(mem), MPI_SUCCESS);
	}
	EXPECT_INT(MPI_Waitall(SIZES, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
}

static void memory_of_a_process(void)
{
	MPI_Count bytes;
	void *mem;
	int x = process;

	EXPECT_INT(MPI_Alloc_mem(sizeof(x), MPI_INFO_NULL, &mem), MPI_SUCCESS);
	memcpy(mem, &x, sizeof(x));
	EXPECT_INT(MPIX_Weft_give_send(mem, sizeof(x), (process + 1) % processes, 0, MPI_COMM_WORLD), MPI_SUCCESS);
	EXPECT_INT(MPIX_Weft_alloc_recv(&mem, &bytes, (process + processes - 1) % processes, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_SUCCESS);
	memcpy(&x, mem, sizeof(x));
	EXPECT_INT(x, (process + processes - 1) % processes);
	EXPECT_INT(MPI_Free_mem(mem), MPI_SUCCESS);
}

static void memory_nonsense(void)
{
	MPI_Request request;
	MPI_Count bytes = 5;
	MPI_Status st;
	int x = 1;
	void *mem, *got = &x;

	EXPECT_INT(MPI_Alloc_mem(100, MPI_INFO_NULL, &mem), MPI_SUCCESS);
	EXPECT_INT(MPIX_Weft_give_send(&x, 4, 0, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
	EXPECT_INT(MPIX_Weft_give_send(NULL, 0, 0, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
	EXPECT_INT(MPIX_Weft_give_send((char *)mem + 1, 4, 0, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
	EXPECT_INT(MPIX_Weft_give_send(mem, -1, 0, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
	EXPECT_INT(MPIX_Weft_give_send(mem, 1 << 30, 0, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
	EXPECT_INT(MPIX_Weft_give_send(mem, 4, processes, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
	EXPECT_INT(MPIX_Weft_give_send(mem, 4, 0, -1, MPI_COMM_WORLD), MPI_ERR_TAG);
	EXPECT_INT(MPIX_Weft_give_send(mem, 4, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM);
	EXPECT_INT(MPIX_Weft_igive_send(mem, 4, 0, 0, MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
	EXPECT_INT(MPIX_Weft_free((char *)mem + 1), MPI_ERR_BASE);
	EXPECT_INT(MPIX_Weft_alloc_recv(NULL, &bytes, 0, 0, MPI_COMM_WORLD, &st), MPI_ERR_ARG);
	EXPECT_INT(MPIX_Weft_alloc_recv(&got, NULL, 0, 0, MPI_COMM_WORLD, &st), MPI_ERR_ARG);
	EXPECT_INT(MPIX_Weft_alloc_recv(&got, &bytes, -77, 0, MPI_COMM_WORLD, &st), MPI_ERR_RANK);
	EXPECT_INT(MPIX_Weft_alloc_recv(&got, &bytes, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &st), MPI_SUCCESS);
	EXPECT(!got && bytes == 0 && st.MPI_SOURCE == MPI_PROC_NULL);
	EXPECT_INT(MPIX_Weft_free(got), MPI_SUCCESS);
	EXPECT_INT(MPIX_Weft_give_send(mem, 4, MPI_PROC_NULL, 0, MPI_COMM_WORLD), MPI_SUCCESS);
	EXPECT_INT(MPI_Alloc_mem(100, MPI_INFO_NULL, &mem), MPI_SUCCESS);
	EXPECT_INT(MPIX_Weft_igive_send(mem, 4, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request), MPI_SUCCESS);
	EXPECT_INT(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
}

static void nonsense(MPI_Comm comm, int rank, int size)
{
	MPIX_Weft_threads threads = MPIX_WEFT_THREADS_NULL;
	MPIX_Weft_ticket ticket = { { 0 } };
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Comm next = MPI_COMM_NULL;

	(void)rank;
	(void)size;
	EXPECT_INT(MPI_Ibarrier(comm, &request), MPI_ERR_UNSUPPORTED_OPERATION);
	EXPECT_INT(MPI_Barrier_init(comm, MPI_INFO_NULL, &request), MPI_ERR_UNSUPPORTED_OPERATION);
	EXPECT(request == MPI_REQUEST_NULL);
	EXPECT_INT(MPIX_Weft_threads_create(MPI_COMM_NULL, 1, &threads), MPI_ERR_COMM);
	EXPECT_INT(MPIX_Weft_threads_create(comm, 1, &threads), MPI_ERR_COMM);
	EXPECT_INT(MPIX_Weft_threads_create(MPI_COMM_WORLD, -1, &threads), MPI_ERR_ARG);
	EXPECT_INT(MPIX_Weft_threads_create(MPI_COMM_WORLD, 1, NULL), MPI_ERR_ARG);
	EXPECT_INT(MPIX_Weft_threads_join(MPIX_WEFT_THREADS_NULL, &next), MPI_ERR_ARG);
	EXPECT_INT(MPIX_Weft_invite(-1, &ticket), MPI_ERR_ARG);
	EXPECT_INT(MPIX_Weft_invite(1, NULL), MPI_ERR_ARG);
	EXPECT_INT(MPIX_Weft_join(&ticket, &next), MPI_ERR_ARG);
	EXPECT_INT(MPIX_Weft_join(NULL, &next), MPI_ERR_ARG);
	EXPECT_INT(MPIX_Weft_comm_change(MPI_COMM_WORLD, 1, NULL, &next), MPI_ERR_COMM);
	EXPECT_INT(MPIX_Weft_comm_change(MPI_COMM_NULL, 1, NULL, &next), MPI_ERR_COMM);
	EXPECT_INT(MPIX_Weft_comm_change(comm, 1, NULL, NULL), MPI_ERR_ARG);
	EXPECT_INT(MPIX_Weft_invite(1, &ticket), MPI_SUCCESS);
	EXPECT_INT(MPIX_Weft_join(&ticket, &next), MPI_ERR_ARG);        /* to oneself */
	EXPECT(next == MPI_COMM_NULL);
}

/* Threads that end with their handle, which then is none. */
static void ended_handles(void)
{
	struct thread all[THREADS];
	MPIX_Weft_threads threads;
	int rank;

	EXPECT_INT(MPIX_Weft_threads_create(MPI_COMM_WORLD, THREADS, &threads), MPI_SUCCESS);
	for (int i = 0; i < THREADS; i++) {
		all[i] = (struct thread){ .threads = threads, .keeps = 1, .run = without_a_word };
		pthread_create(&all[i].id, NULL, thread_main, &all[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(all[i].id, NULL);
		EXPECT_INT(MPI_Comm_rank(all[i].comm, &rank), MPI_ERR_COMM);
	}
}

int main(int argc, char **argv)
{
	int level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &process);
	MPI_Comm_size(MPI_COMM_WORLD, &processes);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);

	among_threads(THREADS, ranks_by_process);
	case_end("threads that join are ranked by process");
	among_threads(process, uneven);
	case_end("processes bring as many threads as they like, also none");
	among_threads(THREADS, all_to_all);
	case_end("every thread receives from any other in order");
	among_threads(THREADS, probes_and_requests);
	case_end("probes, matched probes, requests and cancelling work for a thread as for a process");
	among_threads(THREADS, collectives);
	case_end("collectives of threads compute what they should");
	among_threads(THREADS, copies_and_parts);
	case_end("copies and parts of a communicator of threads are such communicators");
	among_threads(THREADS, two_groups);
	case_end("two groups of threads make an intercommunicator, and one of both");
	among_threads(THREADS, attributes_and_handlers);
	case_end("attributes and error handlers belong to the thread's handle");
	among_threads(THREADS, come_and_go);
	crowd_wait();
	case_end("threads join and leave between collectives, those who stay keep their order");
	among_threads(2, guests_of_next);
	crowd_wait();
	case_end("a ticket lets threads of another process join");
	among_threads(THREADS, tickets_used_up);
	case_end("who comes with a ticket that is used up, or whose maker has ended, is told");
	among_threads(THREADS, by_others);
	case_end("a handle is of use to its thread alone, and may be freed by another");
	ended_handles();
	case_end("a thread that ends without a word is an error for the others, and its handle is none");
	among_threads(THREADS, memory_from_hand_to_hand);
	case_end("memory is given and taken at every size, and either end may do it the ordinary way");
	among_threads(THREADS, memory_under_way);
	case_end("memory is given by immediate sends");
	memory_of_a_process();
	case_end("memory is given between processes, too");
	memory_nonsense();
	case_end("memory that cannot be given stays the caller's");
	among_threads(1, nonsense);
	case_end("arguments that make no sense are refused");
	return cases_end();
}
