/* test_icoll.c - nonblocking and persistent collectives: several at once and in differing orders, beside messages, started again
 * and again, with what they use freed meanwhile; and how errors are told. What each of them computes is compared by the tests of
 * the blocking ones, which run with these in their place (instead.h).
 */
#include <string.h>

#include "coll_kinds.h"

#define MANY 60
#define BIG 30000
#define W MPI_COMM_WORLD

static int rank, size;

/* Several at once */

#define SORTS 6

struct several {                        /* one of each sort, and what is to come out */
	MPI_Request requests[SORTS];
	int one, sum, scan, root;
	int all[16], out[16], in[16];
	int *big;
};

static void several_begin(struct several *s, MPI_Comm comm, int round)
{
	s->one = 10 * rank + round;
	s->root = round % size;
	s->big = malloc(BIG * sizeof(int));
	if (!s->big)
		abort();
	for (int i = 0; i < BIG; i++)
		s->big[i] = rank == s->root ? i ^ round : -1;
	for (int i = 0; i < size; i++)
		s->out[i] = 100 * rank + i;
	EXPECT_INT(MPI_Iallreduce(&s->one, &s->sum, 1, MPI_INT, MPI_SUM, comm, &s->requests[0]), MPI_SUCCESS);
	EXPECT_INT(MPI_Ibcast(s->big, BIG, MPI_INT, s->root, comm, &s->requests[1]), MPI_SUCCESS);
	EXPECT_INT(MPI_Ibarrier(comm, &s->requests[2]), MPI_SUCCESS);
	EXPECT_INT(MPI_Iscan(&s->one, &s->scan, 1, MPI_INT, MPI_SUM, comm, &s->requests[3]), MPI_SUCCESS);
	EXPECT_INT(MPI_Iallgather(&s->one, 1, MPI_INT, s->all, 1, MPI_INT, comm, &s->requests[4]), MPI_SUCCESS);
	EXPECT_INT(MPI_Ialltoall(s->out, 1, MPI_INT, s->in, 1, MPI_INT, comm, &s->requests[5]), MPI_SUCCESS);
}

/* Once they are over. */
static void several_look(struct several *s, int round)
{
	int bad = 0;

	EXPECT_INT(s->sum, 10 * size * (size - 1) / 2 + size * round);
	EXPECT_INT(s->scan, 10 * rank * (rank + 1) / 2 + (rank + 1) * round);
	for (int i = 0; i < size; i++)
		bad += s->all[i] != 10 * i + round || s->in[i] != 100 * i + rank;
	for (int i = 0; i < BIG; i++)
		bad += s->big[i] != (i ^ round);
	EXPECT_INT(bad, 0);
	free(s->big);
}

/* Each rank in a way of its own. */
static void several_wait(MPI_Request *requests, int n)
{
	int which[SORTS], count, flag = 0, at;

	switch (rank % 5) {
	case 0:
		EXPECT_INT(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
		break;
	case 1:
		for (int i = n - 1; i >= 0; i--)
			EXPECT_INT(MPI_Wait(&requests[i], MPI_STATUS_IGNORE), MPI_SUCCESS);
		break;
	case 2:
		for (int i = 0; i < n; i++) {
			EXPECT_INT(MPI_Waitany(n, requests, &at, MPI_STATUS_IGNORE), MPI_SUCCESS);
			EXPECT(at >= 0 && at < n && requests[at] == MPI_REQUEST_NULL);
		}
		break;
	case 3:
		for (int left = n; left; left -= count)
			EXPECT_INT(MPI_Waitsome(n, requests, &count, which, MPI_STATUSES_IGNORE), MPI_SUCCESS);
		break;
	default:
		while (!flag)
			EXPECT_INT(MPI_Testall(n, requests, &flag, MPI_STATUSES_IGNORE), MPI_SUCCESS);
	}
	for (int i = 0; i < n; i++)
		EXPECT(requests[i] == MPI_REQUEST_NULL);
}

static void at_once(void)
{
	struct several s[3];

	for (int i = 0; i < 3; i++)
		several_begin(&s[i], W, i);
	for (int i = 2; i >= 0; i--) {
		several_wait(s[i].requests, SORTS);
		several_look(&s[i], i);
	}
	case_end("several nonblocking collectives of one communicator are under way at once, waited for in any order");
}

static void two_orders(void)
{
	struct several s[2];
	MPI_Comm both[2];
	int first = rank % 2;

	MPI_Comm_dup(W, &both[0]);
	MPI_Comm_dup(W, &both[1]);
	for (int round = 0; round < 5; round++) {
		several_begin(&s[first], both[first], round);
		several_begin(&s[!first], both[!first], round);
		several_wait(s[first].requests, SORTS);
		several_wait(s[!first].requests, SORTS);
		several_look(&s[0], round);
		several_look(&s[1], round);
	}
	MPI_Comm_free(&both[0]);
	MPI_Comm_free(&both[1]);
	case_end("members begin those of two communicators in differing orders");
}

static void between(void)
{
	int x[MANY], y[MANY], sum, bad = 0;
	MPI_Request requests[MANY];

	for (int i = 0; i < MANY; i++) {
		x[i] = rank + i;
		y[i] = -1;
		MPI_Iallreduce(&x[i], &y[i], 1, MPI_INT, MPI_MAX, W, &requests[i]);
		if (i % 10 == 0) {
			MPI_Allreduce(&x[i], &sum, 1, MPI_INT, MPI_SUM, W);
			bad += sum != size * (size - 1) / 2 + size * i;
		}
	}
	EXPECT_INT(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
	for (int i = 0; i < MANY; i++)
		bad += y[i] != size - 1 + i;
	EXPECT_INT(bad, 0);
	case_end("many are under way, with blocking ones of the same communicator between them");
}

/* Beside messages */

static void with_messages(void)
{
	int next = (rank + 1) % size, before = (rank - 1 + size) % size, mine = rank, theirs = -1, sum = -1, seen = 0, at;
	MPI_Request requests[4];
	MPI_Status status;

	MPI_Irecv(&theirs, 1, MPI_INT, before, 3, W, &requests[0]);
	MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, W, &requests[1]);
	MPI_Isend(&mine, 1, MPI_INT, next, 3, W, &requests[2]);
	MPI_Ibarrier(W, &requests[3]);
	for (int i = 0; i < 4; i++) {
		EXPECT_INT(MPI_Waitany(4, requests, &at, &status), MPI_SUCCESS);
		seen |= 1 << at;
		if (at == 0)
			EXPECT_INT(status.MPI_SOURCE, before);
	}
	EXPECT_INT(seen, 15);
	EXPECT_INT(theirs, before);
	EXPECT_INT(sum, size * (size - 1) / 2);
	case_end("their requests are waited for together with those of messages");
}

static void goes_on(void)
{
	MPI_Request request;
	int token = 7;

	MPI_Ibarrier(W, &request);
	if (rank == 0) {
		for (int i = 1; i < size; i++)
			MPI_Recv(&token, 1, MPI_INT, i, 4, W, MPI_STATUS_IGNORE);
	} else {
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Send(&token, 1, MPI_INT, 0, 4, W);
	}
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	case_end("a collective goes on while its member waits for something else");
}

static void looked_at(void)
{
	MPI_Status status = { .MPI_ERROR = 77 };
	MPI_Request request, before;
	int flag = 0, count = -1;

	MPI_Ibarrier(W, &request);
	before = request;
	while (!flag)
		EXPECT_INT(MPI_Request_get_status(request, &flag, &status), MPI_SUCCESS);
	EXPECT(request == before);
	MPI_Test_cancelled(&status, &flag);
	EXPECT_INT(flag, 0);
	MPI_Get_count(&status, MPI_INT, &count);
	EXPECT_INT(count, 0);
	EXPECT_INT(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), MPI_SUCCESS);
	EXPECT_INT(flag, 1);
	EXPECT(request == MPI_REQUEST_NULL);
	case_end("MPI_Request_get_status tells that one is over and leaves it");
}

/* Persistent */

static void started_often(void)
{
	int x, y = 0, *big = malloc(BIG * sizeof(int)), bad = 0;
	MPI_Request requests[3];

	if (!big)
		abort();
	EXPECT_INT(MPI_Allreduce_init(&x, &y, 1, MPI_INT, MPI_SUM, W, MPI_INFO_NULL, &requests[0]), MPI_SUCCESS);
	EXPECT_INT(MPI_Bcast_init(big, BIG, MPI_INT, 1, W, MPI_INFO_NULL, &requests[1]), MPI_SUCCESS);
	EXPECT_INT(MPI_Barrier_init(W, MPI_INFO_NULL, &requests[2]), MPI_SUCCESS);
	EXPECT_INT(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);         /* none is active */
	for (int round = 0; round < 40; round++) {
		x = rank * round;
		for (int i = 0; i < BIG; i += 100)
			big[i] = rank == 1 ? i + round : -1;
		if (round % 2) {
			EXPECT_INT(MPI_Startall(3, requests), MPI_SUCCESS);
		} else {
			for (int i = 0; i < 3; i++)
				EXPECT_INT(MPI_Start(&requests[(i + rank) % 3]), MPI_SUCCESS);
		}
		EXPECT_INT(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
		bad += y != round * size * (size - 1) / 2;
		for (int i = 0; i < BIG; i += 100)
			bad += big[i] != i + round;
	}
	EXPECT_INT(bad, 0);
	for (int i = 0; i < 3; i++) {
		EXPECT_INT(MPI_Request_free(&requests[i]), MPI_SUCCESS);
		EXPECT(requests[i] == MPI_REQUEST_NULL);
	}
	free(big);
	case_end("persistent collectives are started again and again, by each member in its own order");
}

/* Freed meanwhile */

/* Matrices of 2 x 2: what they come to depends on the order. */
static void matrices(void *in, void *inout, int *n, MPI_Datatype *type)
{
	const unsigned *a = in;
	unsigned *b = inout, c[4];

	(void)type;
	for (int i = 0; i < *n; i++, a += 4, b += 4) {
		for (int k = 0; k < 4; k++)
			c[k] = a[k / 2 * 2] * b[k % 2] + a[k / 2 * 2 + 1] * b[k % 2 + 2];
		memcpy(b, c, sizeof(c));
	}
}

static void matrix_of(int who, unsigned *m)
{
	for (int k = 0; k < 4; k++)
		m[k] = mixed((unsigned)who, 3, (unsigned)k) | 1;
}

static void freed(void)
{
	unsigned m[4], product[4], want[4] = { 1, 0, 0, 1 };
	MPI_Request requests[3];
	MPI_Datatype matrix, types[16];
	int counts[16], displs[16], out[16], in[16], bad = 0;
	MPI_Comm comm;
	MPI_Op op;

	MPI_Comm_dup(W, &comm);
	MPI_Type_contiguous(4, MPI_UNSIGNED, &matrix);
	MPI_Type_commit(&matrix);
	MPI_Op_create(matrices, 0, &op);
	for (int i = 0; i < size; i++) {
		matrix_of(i, m);
		memcpy(product, m, sizeof(m));
		matrices(want, product, &(int){ 1 }, &matrix);
		memcpy(want, product, sizeof(m));
		MPI_Type_create_resized(MPI_INT, 0, 8, &types[i]);
		MPI_Type_commit(&types[i]);
		counts[i] = 1;
		displs[i] = 4 * i;
		out[i] = 100 * rank + i;
	}
	matrix_of(rank, m);
	EXPECT_INT(MPI_Iallreduce(m, product, 1, matrix, op, comm, &requests[0]), MPI_SUCCESS);
	EXPECT_INT(MPI_Ialltoallw(out, counts, displs, types, in, counts, displs, types, comm, &requests[1]), MPI_SUCCESS);
	EXPECT_INT(MPI_Ibarrier(comm, &requests[2]), MPI_SUCCESS);
	for (int i = 0; i < size; i++)
		MPI_Type_free(&types[i]);
	MPI_Type_free(&matrix);
	MPI_Op_free(&op);
	EXPECT_INT(MPI_Comm_free(&comm), MPI_SUCCESS);
	EXPECT_INT(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
	for (int i = 0; i < size; i++)
		bad += in[i] != 100 * i + rank;
	EXPECT_INT(bad, 0);
	EXPECT(!memcmp(product, want, sizeof(want)));
	case_end("datatypes, operation and communicator may be freed while it is under way");
}

/* Wrong ones */

static void nonsense(void)
{
	MPI_Request request = MPI_REQUEST_NULL, other = MPI_REQUEST_NULL;
	MPI_Info info, stale;
	int x = 0, y = 0;

	MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	EXPECT_INT(MPI_Ibarrier(MPI_COMM_NULL, &request), MPI_ERR_COMM);
	EXPECT_INT(MPI_Ibarrier(W, NULL), MPI_ERR_ARG);
	EXPECT_INT(MPI_Barrier_init(W, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
	EXPECT_INT(MPI_Barrier_init(MPI_COMM_NULL, MPI_INFO_NULL, &request), MPI_ERR_COMM);
	MPI_Info_create(&info);
	stale = info;
	MPI_Info_free(&info);
	EXPECT_INT(MPI_Barrier_init(W, stale, &request), MPI_ERR_INFO);
	EXPECT_INT(MPI_Ibcast(&x, 1, MPI_INT, size, W, &request), MPI_ERR_ROOT);
	EXPECT_INT(MPI_Bcast_init(&x, -1, MPI_INT, 0, W, MPI_INFO_NULL, &request), MPI_ERR_COUNT);
	EXPECT_INT(MPI_Iallreduce(&x, &x, 1, MPI_INT, MPI_SUM, W, &request), MPI_ERR_BUFFER);
	EXPECT_INT(MPI_Iallreduce(&x, &y, 1, MPI_DOUBLE, MPI_BAND, W, &request), MPI_ERR_OP);
	EXPECT_INT(MPI_Ialltoallw(&x, NULL, NULL, NULL, &y, NULL, NULL, NULL, W, &request), MPI_ERR_ARG);
	EXPECT_INT(MPI_Ineighbor_allgather(&x, 1, MPI_INT, &y, 1, MPI_INT, W, &request), MPI_ERR_TOPOLOGY);
	EXPECT(request == MPI_REQUEST_NULL);

	EXPECT_INT(MPI_Ibarrier(W, &request), MPI_SUCCESS);
	EXPECT_INT(MPI_Cancel(&request), MPI_ERR_REQUEST);
	EXPECT_INT(MPI_Request_free(&request), MPI_ERR_REQUEST);
	EXPECT_INT(MPI_Start(&request), MPI_ERR_REQUEST);
	EXPECT_INT(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
	EXPECT_INT(MPI_Barrier_init(W, MPI_INFO_NULL, &other), MPI_SUCCESS);
	EXPECT_INT(MPI_Cancel(&other), MPI_ERR_REQUEST);
	EXPECT_INT(MPI_Start(&other), MPI_SUCCESS);
	EXPECT_INT(MPI_Start(&other), MPI_ERR_REQUEST);
	EXPECT_INT(MPI_Request_free(&other), MPI_ERR_REQUEST);
	EXPECT_INT(MPI_Wait(&other, MPI_STATUS_IGNORE), MPI_SUCCESS);
	EXPECT_INT(MPI_Request_free(&other), MPI_SUCCESS);
	MPI_Comm_set_errhandler(W, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	case_end("wrong arguments are told in the call; one that is under way is neither cancelled, freed nor started");
}

static int handled;

static void handler(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
	handled++;
}

static void told_at_the_end(void)
{
	int x[4] = { 0 }, err;
	MPI_Request requests[2];
	MPI_Status statuses[2];
	MPI_Errhandler call;
	MPI_Comm comm;

	MPI_Comm_dup(W, &comm);
	MPI_Comm_create_errhandler(handler, &call);
	MPI_Comm_set_errhandler(comm, call);
	EXPECT_INT(MPI_Ibcast(x, rank == 0 ? 2 : 4, MPI_INT, 0, comm, &requests[0]), MPI_SUCCESS);
	EXPECT_INT(handled, 0);
	err = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
	EXPECT_INT(err, rank == 0 ? MPI_SUCCESS : MPI_ERR_OTHER);
	EXPECT_INT(handled, rank != 0);
	EXPECT(requests[0] == MPI_REQUEST_NULL);

	MPI_Ibcast(x, rank == 0 ? 2 : 4, MPI_INT, 0, comm, &requests[0]);
	MPI_Ibarrier(comm, &requests[1]);
	err = MPI_Waitall(2, requests, statuses);
	EXPECT_INT(err, rank == 0 ? MPI_SUCCESS : MPI_ERR_IN_STATUS);
	if (rank) {
		EXPECT_INT(statuses[0].MPI_ERROR, MPI_ERR_OTHER);
		EXPECT_INT(statuses[1].MPI_ERROR, MPI_SUCCESS);
	}
	EXPECT_INT(handled, 2 * (rank != 0));
	MPI_Errhandler_free(&call);
	MPI_Comm_free(&comm);
	case_end("what fails under way is told when it is waited for, by the communicator's error handler");
}

/* Wrong, but often seen. */
static void left_behind(void)
{
	static MPI_Request request;

	MPI_Ibarrier(W, &request);
	case_end("a collective that nobody waits for ends before MPI_Finalize does");
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(W, &rank);
	MPI_Comm_size(W, &size);
	at_once();
	two_orders();
	between();
	with_messages();
	goes_on();
	looked_at();
	started_often();
	freed();
	nonsense();
	told_at_the_end();
	left_behind();
	return cases_end();
}
