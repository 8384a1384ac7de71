/* test_pt2pt.c - messages between two ranks: modes, sizes, order, wildcards, requests, probes, cancel, errors. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "mpitest.h"

static int rank, other;

static unsigned char byte_of(size_t i, int seed)
{
	return (unsigned char)(i * 131 + (size_t)seed * 29 + (i >> 8));
}

static void fill(unsigned char *p, size_t n, int seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = byte_of(i, seed);
}

static int holds(const unsigned char *p, size_t n, int seed)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != byte_of(i, seed))
			return 0;
	return 1;
}

typedef int (*send_fn)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int (*isend_fn)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static const send_fn sends[] = { MPI_Send, MPI_Ssend, MPI_Rsend, MPI_Bsend };
static const isend_fn isends[] = { MPI_Isend, MPI_Issend, MPI_Irsend, MPI_Ibsend };
static const isend_fn inits[] = { MPI_Send_init, MPI_Ssend_init, MPI_Rsend_init, MPI_Bsend_init };
static const int sizes[] = { 0, 1, 8, 96, 97, 4000, 70000, 1 << 20 };
#define MOST (1 << 20)
enum { MODES = 4, SIZES = sizeof(sizes) / sizeof(*sizes) };

static unsigned char *out, *in, *store;

/* The receiver says that its receive is posted: ready sends promise that. */
static void posted_tell(void)
{
	MPI_Send(NULL, 0, MPI_BYTE, other, 999, MPI_COMM_WORLD);
}

static void posted_wait(void)
{
	MPI_Recv(NULL, 0, MPI_BYTE, other, 999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_one(int size, int tag)
{
	MPI_Request request;
	MPI_Status st;
	int n = -1;

	memset(in, 0, (size_t)size);
	EXPECT_INT(MPI_Irecv(in, MOST, MPI_BYTE, other, tag, MPI_COMM_WORLD, &request), MPI_SUCCESS);
	posted_tell();
	EXPECT_INT(MPI_Wait(&request, &st), MPI_SUCCESS);
	EXPECT(request == MPI_REQUEST_NULL);
	EXPECT_INT(st.MPI_SOURCE, other);
	EXPECT_INT(st.MPI_TAG, tag);
	MPI_Get_count(&st, MPI_BYTE, &n);
	EXPECT_INT(n, size);
	EXPECT(holds(in, (size_t)size, tag));
}

static void modes(void)
{
	for (int m = 0; m < MODES; m++)
		for (int s = 0; s < SIZES; s++) {
			int tag = m * 100 + s;

			if (rank == 0) {
				fill(out, (size_t)sizes[s], tag);
				posted_wait();
				EXPECT_INT(sends[m](out, sizes[s], MPI_BYTE, other, tag, MPI_COMM_WORLD), MPI_SUCCESS);
			} else {
				receive_one(sizes[s], tag);
			}
		}
	case_end("every mode delivers every size, blocking");
	for (int m = 0; m < MODES; m++)
		for (int s = 0; s < SIZES; s++) {
			int tag = m * 100 + s;
			MPI_Request request;

			if (rank == 1) {
				fill(out, (size_t)sizes[s], tag);
				posted_wait();
				EXPECT_INT(isends[m](out, sizes[s], MPI_BYTE, other, tag, MPI_COMM_WORLD, &request), MPI_SUCCESS);
				EXPECT_INT(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
				EXPECT(request == MPI_REQUEST_NULL);
			} else {
				receive_one(sizes[s], tag);
			}
		}
	case_end("every mode delivers every size, immediate");
}

static void persistent(void)
{
	for (int m = 0; m < MODES; m++) {
		MPI_Request request;

		if (rank == 0) {
			inits[m](out, 5000, MPI_BYTE, other, m, MPI_COMM_WORLD, &request);
			for (int i = 0; i < 20; i++) {
				fill(out, 5000, i);
				posted_wait();
				EXPECT_INT(MPI_Start(&request), MPI_SUCCESS);
				EXPECT_INT(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
				EXPECT(request != MPI_REQUEST_NULL);
			}
		} else {
			MPI_Recv_init(in, 5000, MPI_BYTE, other, m, MPI_COMM_WORLD, &request);
			for (int i = 0; i < 20; i++) {
				MPI_Status st;

				memset(in, 0, 5000);
				EXPECT_INT(MPI_Startall(1, &request), MPI_SUCCESS);
				posted_tell();
				EXPECT_INT(MPI_Waitall(1, &request, &st), MPI_SUCCESS);
				EXPECT(holds(in, 5000, i));
			}
		}
		EXPECT_INT(MPI_Request_free(&request), MPI_SUCCESS);
		EXPECT(request == MPI_REQUEST_NULL);
	}
	case_end("a persistent request is started again and again");
}

static void order(void)
{
	enum { N = 2000 };

	if (rank == 0) {
		for (int i = 0; i < N; i++) {
			int tag = i % 3;

			MPI_Send(&i, 1, MPI_INT, other, tag, MPI_COMM_WORLD);
		}
	} else {
		int last[3] = { -1, -1, -1 }, v;
		MPI_Status st;

		for (int i = 0; i < N / 2; i++) {
			MPI_Recv(&v, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
			EXPECT_INT(v, i);
			EXPECT_INT(st.MPI_TAG, i % 3);
			last[st.MPI_TAG] = v;
		}
		for (int tag = 2; tag >= 0; tag--)
			for (int i = N / 2; i < N; i++) {
				if (i % 3 != tag)
					continue;
				MPI_Recv(&v, 1, MPI_INT, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
				EXPECT_INT(v, i);
				EXPECT(v > last[tag]);
				last[tag] = v;
			}
	}
	case_end("messages of one sender arrive in order, with and without wildcards");
}

static void truncation(void)
{
	int v[4] = { 1, 2, 3, 4 }, got[4] = { 0 };
	MPI_Status st;

	if (rank == 0) {
		for (int i = 0; i < 3; i++)
			MPI_Send(v, 4, MPI_INT, other, 5, MPI_COMM_WORLD);
		MPI_Send(v, 1, MPI_INT, other, 5, MPI_COMM_WORLD);
	} else {
		MPI_Request request;
		int code;

		code = MPI_Recv(got, 2, MPI_INT, other, 5, MPI_COMM_WORLD, &st);
		EXPECT_INT(code, MPI_ERR_TRUNCATE);
		EXPECT_INT(got[2], 0);
		MPI_Irecv(got, 2, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &request);
		EXPECT_INT(MPI_Wait(&request, &st), MPI_ERR_TRUNCATE);
		EXPECT_INT(got[2], 0);
		MPI_Irecv(got, 2, MPI_INT, other, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
		EXPECT_INT(MPI_Waitall(1, &request, &st), MPI_ERR_IN_STATUS);
		EXPECT_INT(st.MPI_ERROR, MPI_ERR_TRUNCATE);
		EXPECT_INT(MPI_Recv(got, 2, MPI_INT, other, 5, MPI_COMM_WORLD, &st), MPI_SUCCESS);
	}
	case_end("what is too long is cut off, consumed and an error");
}

static void probes(void)
{
	MPI_Message message;
	MPI_Status st;
	int n, flag, v[3] = { 0 };

	if (rank == 0) {
		for (int i = 1; i <= 3; i++)
			MPI_Send(&i, 1, MPI_INT, other, 10 + i, MPI_COMM_WORLD);
		MPI_Recv(v, 1, MPI_INT, other, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		EXPECT_INT(MPI_Probe(MPI_ANY_SOURCE, 12, MPI_COMM_WORLD, &st), MPI_SUCCESS);
		EXPECT_INT(st.MPI_TAG, 12);
		MPI_Get_count(&st, MPI_INT, &n);
		EXPECT_INT(n, 1);
		MPI_Probe(other, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
		EXPECT_INT(st.MPI_TAG, 11);
		EXPECT_INT(MPI_Mprobe(other, 12, MPI_COMM_WORLD, &message, &st), MPI_SUCCESS);
		MPI_Iprobe(other, 12, MPI_COMM_WORLD, &flag, &st);
		EXPECT_INT(flag, 0);
		MPI_Recv(&v[0], 1, MPI_INT, other, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
		EXPECT_INT(v[0], 1);
		EXPECT_INT(MPI_Mrecv(&v[1], 1, MPI_INT, &message, &st), MPI_SUCCESS);
		EXPECT(message == MPI_MESSAGE_NULL);
		EXPECT_INT(v[1], 2);
		EXPECT_INT(st.MPI_TAG, 12);
		do
			MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &st);
		while (!flag);
		EXPECT_INT(st.MPI_TAG, 13);
		MPI_Request request;
		MPI_Imrecv(&v[2], 1, MPI_INT, &message, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		EXPECT_INT(v[2], 3);
		MPI_Send(v, 1, MPI_INT, other, 20, MPI_COMM_WORLD);
	}
	MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, &st);
	EXPECT(message == MPI_MESSAGE_NO_PROC);
	EXPECT_INT(MPI_Mrecv(v, 1, MPI_INT, &message, &st), MPI_SUCCESS);
	EXPECT_INT(st.MPI_SOURCE, MPI_PROC_NULL);
	case_end("a probe looks, a matched probe takes out of matching");
}

static void cancels(void)
{
	MPI_Request request;
	MPI_Status st;
	int v = 3, flag;

	MPI_Irecv(&v, 1, MPI_INT, other, 77, MPI_COMM_WORLD, &request);
	EXPECT_INT(MPI_Cancel(&request), MPI_SUCCESS);
	EXPECT_INT(MPI_Wait(&request, &st), MPI_SUCCESS);
	MPI_Test_cancelled(&st, &flag);
	EXPECT_INT(flag, 1);
	if (rank == 0) {
		MPI_Issend(&v, 1, MPI_INT, other, 78, MPI_COMM_WORLD, &request);
		MPI_Cancel(&request);
		EXPECT_INT(MPI_Wait(&request, &st), MPI_SUCCESS);
		MPI_Test_cancelled(&st, &flag);
		EXPECT_INT(flag, 1);
		MPI_Send(&flag, 1, MPI_INT, other, 79, MPI_COMM_WORLD);
	} else {
		MPI_Recv(&flag, 1, MPI_INT, other, 79, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Iprobe(other, 78, MPI_COMM_WORLD, &flag, &st);
		EXPECT_INT(flag, 0);
	}
	case_end("a cancelled receive and a cancelled send say so, and the message is nowhere");
}

static void several(void)
{
	enum { N = 10 };
	MPI_Request requests[N];
	MPI_Status sts[N];
	int v[N], done = 0, which[N], count, index, flag;

	for (int i = 0; i < N; i++) {
		v[i] = -1;
		MPI_Irecv(&v[i], 1, MPI_INT, other, i, MPI_COMM_WORLD, &requests[i]);
	}
	MPI_Testall(N, requests, &flag, sts);
	EXPECT_INT(flag, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = N - 1; i >= 0; i--)
		MPI_Send(&i, 1, MPI_INT, other, i, MPI_COMM_WORLD);
	EXPECT_INT(MPI_Waitany(N, requests, &index, sts), MPI_SUCCESS);
	EXPECT_INT(v[index], index);
	EXPECT_INT(sts[0].MPI_TAG, index);
	EXPECT(requests[index] == MPI_REQUEST_NULL);
	done = 1;
	while (done < N) {
		EXPECT_INT(MPI_Waitsome(N, requests, &count, which, sts), MPI_SUCCESS);
		EXPECT(count > 0);
		for (int k = 0; k < count; k++) {
			EXPECT_INT(v[which[k]], which[k]);
			EXPECT_INT(sts[k].MPI_TAG, which[k]);
		}
		done += count;
	}
	MPI_Waitsome(N, requests, &count, which, sts);
	EXPECT_INT(count, MPI_UNDEFINED);
	MPI_Waitany(N, requests, &index, sts);
	EXPECT_INT(index, MPI_UNDEFINED);
	MPI_Testany(N, requests, &index, &flag, sts);
	EXPECT_INT(flag, 1);
	EXPECT_INT(index, MPI_UNDEFINED);
	EXPECT_INT(MPI_Waitall(N, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
	case_end("any, some and all of several requests");
}

/* Nothing else is called meanwhile. */
static void polled(void)
{
	enum { N = 40 };
	double until = MPI_Wtime() + 10;
	MPI_Request request;
	int v, n, which, flag;

	for (int i = 0; i < N; i++) {
		v = -1;
		MPI_Irecv(&v, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &request);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Send(&rank, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
		for (flag = 0; !flag && MPI_Wtime() < until;) {
			if (i % 2) {
				MPI_Testany(1, &request, &which, &flag, MPI_STATUS_IGNORE);
			} else {
				MPI_Testsome(1, &request, &n, &which, MPI_STATUSES_IGNORE);
				flag = n == 1;
			}
		}
		EXPECT(flag);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		EXPECT_INT(v, other);
	}
	case_end("who only tests any or some of its requests sees them end");
}

/* MPI demands that of these two, however many others are over at each call. */
static void some_see_all(void)
{
	double until = MPI_Wtime() + 10;
	MPI_Request requests[2];
	int which[2], v[2] = { -1, -1 }, count, seen;

	for (int test = 0; test < 2; test++) {
		MPI_Irecv(&v[test], 1, MPI_INT, other, 1, MPI_COMM_WORLD, &requests[0]);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Send(&rank, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
		for (seen = 0; !seen && MPI_Wtime() < until;) {
			MPI_Isend(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
			(test ? MPI_Testsome : MPI_Waitsome)(2, requests, &count, which, MPI_STATUSES_IGNORE);
			for (int k = 0; k < count; k++)
				seen |= which[k] == 0;
			MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
		}
		EXPECT(seen);
		MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
		EXPECT_INT(v[test], other);
	}
	case_end("a receive is seen to end beside requests that are over at every call");
}

static void free_early(void)
{
	MPI_Request request;
	int n = 200000;

	if (rank == 0) {
		fill(out, (size_t)n, 4);
		MPI_Isend(out, n, MPI_BYTE, other, 1, MPI_COMM_WORLD, &request);
		MPI_Request_free(&request);
		EXPECT(request == MPI_REQUEST_NULL);
		MPI_Barrier(MPI_COMM_WORLD);
	} else {
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Recv(in, n, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		EXPECT(holds(in, (size_t)n, 4));
	}
	MPI_Barrier(MPI_COMM_WORLD);
	case_end("a request freed while active ends by itself");
}

/* A communicator is freed with messages under way, and they come. On one host the last of many short ones leave from
 * the attached memory; between hosts weft has copies. */
static void free_with_sends(void)
{
	static const struct {
		int count, size;
	} ways[] = { { 1, 100 }, { 1, MOST }, { 1000, 100 } };
	double until = MPI_Wtime() + 30;
	MPI_Request request;
	MPI_Comm copy;
	int flag = 0;

	for (int i = 0; i < 3; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &copy);
		if (rank == 0) {
			fill(out, (size_t)ways[i].size, i);
			for (int k = 0; k < ways[i].count; k++)
				EXPECT_INT(MPI_Bsend(out, ways[i].size, MPI_BYTE, other, 1, copy), MPI_SUCCESS);
			MPI_Comm_free(&copy);
			MPI_Send(NULL, 0, MPI_BYTE, other, 2, MPI_COMM_WORLD);
			continue;
		}
		MPI_Recv(NULL, 0, MPI_BYTE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int k = 0; k < ways[i].count; k++) {
			memset(in, 0, (size_t)ways[i].size);
			MPI_Irecv(in, ways[i].size, MPI_BYTE, other, 1, copy, &request);
			do
				MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
			while (!flag && MPI_Wtime() < until);
			if (!flag) {
				MPI_Cancel(&request);
				MPI_Wait(&request, MPI_STATUS_IGNORE);
			}
			EXPECT(flag && holds(in, (size_t)ways[i].size, i));
			if (!flag)
				break;
		}
		MPI_Comm_free(&copy);
	}
	case_end("buffered messages outlive the communicator's handle");
}

static void *flush_it(void *unused)
{
	MPI_Buffer_flush();
	return unused;
}

/* The other one takes what was sent last first: so that must leave while what was sent before is waited for. There is more than weft makes
 * copies of. */
static void flush_beside(void)
{
	enum { N = 80, ROOM = (N + 1) * (MOST + MPI_BSEND_OVERHEAD) };
	double until = MPI_Wtime() + 10;
	int flag = 0, size, last = -1;
	void *back, *big = NULL;
	MPI_Request request;
	pthread_t t;

	if (rank == 0) {
		MPI_Buffer_detach(&back, &size);
		big = malloc(ROOM);
		MPI_Buffer_attach(big, ROOM);
		for (int i = 0; i < N; i++)
			MPI_Bsend(out, MOST, MPI_BYTE, other, 1, MPI_COMM_WORLD);
		pthread_create(&t, NULL, flush_it, NULL);
		usleep(100000);
		MPI_Bsend(out, MOST, MPI_BYTE, other, 2, MPI_COMM_WORLD);
		MPI_Bsend(&rank, 1, MPI_INT, other, 3, MPI_COMM_WORLD);
		pthread_join(t, NULL);
		MPI_Buffer_detach(&back, &size);
		EXPECT(back == big);
		free(big);
		MPI_Buffer_attach(store, 3 * MOST);
	} else {
		MPI_Irecv(&last, 1, MPI_INT, other, 3, MPI_COMM_WORLD, &request);
		do
			MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
		while (!flag && MPI_Wtime() < until);
		EXPECT(flag);
		for (int i = 0; i < N; i++)
			MPI_Recv(in, MOST, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Recv(in, MOST, MPI_BYTE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		EXPECT_INT(last, other);
	}
	case_end("a buffered send does not wait for those before it, also while another thread does");
}

/* More than a mailbox takes that nobody looks into. */
static void automatic(void)
{
	enum { N = 1000, LEN = 1000 };
	int size = -1;
	MPI_Comm copy;
	void *back;

	MPI_Comm_dup(MPI_COMM_WORLD, &copy);
	if (rank == 0) {
		MPI_Buffer_detach(&back, &size);
		EXPECT_INT(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, MOST), MPI_SUCCESS);
		EXPECT_INT(MPI_Buffer_attach(store, MOST), MPI_ERR_BUFFER);
		for (int i = 0; i < N; i++) {
			fill(out, LEN, i);
			EXPECT_INT(MPI_Bsend(out, LEN, MPI_BYTE, other, 1, copy), MPI_SUCCESS);
		}
		MPI_Barrier(MPI_COMM_WORLD);
		EXPECT_INT(MPI_Buffer_detach(&back, &size), MPI_SUCCESS);
		EXPECT(back == MPI_BUFFER_AUTOMATIC);
		MPI_Buffer_attach(store, 3 * MOST);
	} else {
		MPI_Barrier(MPI_COMM_WORLD);
		for (int i = 0; i < N; i++) {
			MPI_Recv(in, LEN, MPI_BYTE, other, 1, copy, MPI_STATUS_IGNORE);
			EXPECT(holds(in, LEN, i));
		}
	}
	MPI_Comm_free(&copy);
	case_end("buffered sends go without a buffer where MPI is to see to it");
}

/* Requests are used again and again: nothing of an earlier one's life shows in a later one's, in whatever order they ended. */
static void used_again(void)
{
	enum { MANY = 100 };            /* more than a thread keeps */
	MPI_Request request[MANY], stale;
	MPI_Comm own;
	int got[MANY], v[2] = { 5, 6 }, flag, wrong;

	MPI_Comm_dup(MPI_COMM_WORLD, &own);
	MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MANY; i++)
			MPI_Irecv(&got[i], 1, MPI_INT, i % 5 ? other : MPI_ANY_SOURCE, i % 7 == 3 ? 999 : i, i % 2 ? own : MPI_COMM_WORLD, &request[i]);
		stale = request[0];
		for (int i = 3; i < MANY; i += 7)
			EXPECT_INT(MPI_Cancel(&request[i]), MPI_SUCCESS);
		for (int i = 0; i < MANY; i++)
			if (i % 7 != 3)
				MPI_Send(&i, 1, MPI_INT, other, i, i % 2 ? own : MPI_COMM_WORLD);
		EXPECT_INT(MPI_Waitall(MANY, request, MPI_STATUSES_IGNORE), MPI_SUCCESS);
		wrong = 0;
		for (int i = 0; i < MANY; i++)
			wrong += request[i] != MPI_REQUEST_NULL || (i % 7 != 3 && got[i] != i);
		EXPECT_INT(wrong, 0);
		MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
		EXPECT_INT(MPI_Waitall(1, &stale, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST);
		EXPECT_INT(MPI_Isendrecv(v, 2, MPI_INT, other, 5, got, 2, MPI_INT, other, 5, own, &request[0]), MPI_SUCCESS);
		EXPECT_INT(MPI_Issend(v, 2, MPI_INT, other, 6, own, &request[1]), MPI_SUCCESS);
		EXPECT_INT(MPI_Irecv(&got[4], 1, MPI_INT, other, 6, own, &request[2]), MPI_SUCCESS);    /* too short */
		EXPECT_INT(MPI_Waitall(3, request, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS);
		EXPECT_INT(got[1], 6);
		EXPECT_INT(got[4], 5);
		MPI_Barrier(own);
	}
	fill(out, MOST, rank);
	if (rank == 0) {                /* its receive is over long before its send */
		MPI_Isendrecv(out, MOST, MPI_BYTE, 1, 8, in, MOST, MPI_BYTE, 1, 8, own, &request[0]);
		EXPECT_INT(MPI_Waitall(1, request, MPI_STATUSES_IGNORE), MPI_SUCCESS);
		memset(out, 0, MOST);
	} else {
		MPI_Send(out, MOST, MPI_BYTE, 0, 8, own);
		usleep(20000);
		MPI_Recv(in, MOST, MPI_BYTE, 0, 8, own, MPI_STATUS_IGNORE);
	}
	EXPECT(holds(in, MOST, other));
	MPI_Irecv(got, 1, MPI_INT, other, 7, own, &request[0]);
	EXPECT_INT(MPI_Test(&request[0], &flag, MPI_STATUS_IGNORE), MPI_SUCCESS);
	MPI_Send(v, 1, MPI_INT, other, 7, own);
	MPI_Comm_free(&own);            /* while a receive holds it */
	EXPECT_INT(MPI_Waitall(1, request, MPI_STATUSES_IGNORE), MPI_SUCCESS);
	EXPECT_INT(got[0], 5);
	case_end("a request tells nothing of what it was before, and a stale one is none");
}

static void both_ways(void)
{
	int mine = rank * 10, theirs = -1, n = 100000;
	MPI_Status st;

	EXPECT_INT(MPI_Sendrecv(&mine, 1, MPI_INT, other, 3, &theirs, 1, MPI_INT, other, 3, MPI_COMM_WORLD, &st), MPI_SUCCESS);
	EXPECT_INT(theirs, other * 10);
	EXPECT_INT(st.MPI_SOURCE, other);
	fill(out, (size_t)n, rank);
	EXPECT_INT(MPI_Sendrecv_replace(out, n, MPI_BYTE, other, 4, other, 4, MPI_COMM_WORLD, &st), MPI_SUCCESS);
	EXPECT(holds(out, (size_t)n, other));
	EXPECT_INT(MPI_Sendrecv(&mine, 1, MPI_INT, rank, 3, &theirs, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, &st), MPI_SUCCESS);
	EXPECT_INT(theirs, mine);
	EXPECT_INT(MPI_Sendrecv(&mine, 1, MPI_INT, MPI_PROC_NULL, 3, &theirs, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &st), MPI_SUCCESS);
	EXPECT_INT(st.MPI_SOURCE, MPI_PROC_NULL);
	EXPECT_INT(st.MPI_TAG, MPI_ANY_TAG);
	{
		MPI_Request request;

		fill(out, (size_t)n, rank);
		EXPECT_INT(MPI_Isendrecv_replace(out, n, MPI_BYTE, other, 5, other, 5, MPI_COMM_WORLD, &request), MPI_SUCCESS);
		EXPECT_INT(MPI_Waitall(1, &request, &st), MPI_SUCCESS);
		EXPECT_INT(st.MPI_SOURCE, other);
		EXPECT(holds(out, (size_t)n, other));
		fill(out, MOST, rank + 3);
		EXPECT_INT(MPI_Isendrecv(out, MOST, MPI_BYTE, other, 6, in, MOST, MPI_BYTE, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &request), MPI_SUCCESS);
		EXPECT_INT(MPI_Wait(&request, &st), MPI_SUCCESS);
		EXPECT(holds(in, MOST, other + 3));
	}
	case_end("sending and receiving at once: to each other, to oneself, to nobody");
}

static void nonsense(void)
{
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Status st;
	int v = 0, flag;

	EXPECT_INT(MPI_Send(&v, 1, MPI_INT, 2, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
	EXPECT_INT(MPI_Send(&v, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
	EXPECT_INT(MPI_Send(&v, -1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
	EXPECT_INT(MPI_Send(&v, 1, MPI_INT, 0, -1, MPI_COMM_WORLD), MPI_ERR_TAG);
	EXPECT_INT(MPI_Send(&v, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD), MPI_ERR_TAG);
	EXPECT_INT(MPI_Send(&v, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
	EXPECT_INT(MPI_Send(NULL, 1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
	EXPECT_INT(MPI_Recv(&v, 1, MPI_INT, -7, 0, MPI_COMM_WORLD, &st), MPI_ERR_RANK);
	EXPECT_INT(MPI_Recv(&v, 1, MPI_INT, 0, -7, MPI_COMM_WORLD, &st), MPI_ERR_TAG);
	EXPECT_INT(MPI_Irecv(&v, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request), MPI_ERR_COUNT);
	EXPECT_INT(MPI_Isend(&v, 1, MPI_INT, 5, 0, MPI_COMM_WORLD, &request), MPI_ERR_RANK);
	EXPECT_INT(MPI_Probe(9, 0, MPI_COMM_WORLD, &st), MPI_ERR_RANK);
	EXPECT_INT(MPI_Send(&v, 1, MPI_INT, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM);
	EXPECT_INT(MPI_Request_free(&request), MPI_ERR_REQUEST);
	EXPECT_INT(MPI_Start(&request), MPI_ERR_REQUEST);
	EXPECT_INT(MPI_Wait(&request, &st), MPI_SUCCESS);
	EXPECT_INT(MPI_Test(&request, &flag, &st), MPI_SUCCESS);
	EXPECT_INT(flag, 1);
	case_end("nonsense is answered with its error class");
}

static int query(void *state, MPI_Status *status)
{
	MPI_Status_set_elements(status, MPI_INT, *(int *)state);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = 41;
	status->MPI_TAG = 42;
	return MPI_SUCCESS;
}

static int freed;

static int let_go(void *state)
{
	(void)state;
	freed++;
	return MPI_SUCCESS;
}

static int asked(void *state, int complete)
{
	(void)state;
	(void)complete;
	return MPI_SUCCESS;
}

static void *complete_it(void *arg)
{
	MPI_Grequest_complete(*(MPI_Request *)arg);
	return NULL;
}

static void generalized(void)
{
	MPI_Request request, copy;
	MPI_Status st;
	pthread_t t;
	int n = 17, flag, count;

	freed = 0;
	MPI_Grequest_start(query, let_go, asked, &n, &request);
	MPI_Test(&request, &flag, &st);
	EXPECT_INT(flag, 0);
	copy = request;
	pthread_create(&t, NULL, complete_it, &copy);
	EXPECT_INT(MPI_Wait(&request, &st), MPI_SUCCESS);
	pthread_join(t, NULL);
	EXPECT(request == MPI_REQUEST_NULL);
	EXPECT_INT(freed, 1);
	MPI_Get_count(&st, MPI_INT, &count);
	EXPECT_INT(count, 17);
	EXPECT_INT(st.MPI_TAG, 42);
	case_end("a generalized request ends when the program says so");
}

static int let_go_badly(void *state)
{
	(void)state;
	freed++;
	return MPI_ERR_IO;
}

/* Freed first, it goes in the call that completes it; and what its free function answers is the answer of that call. */
static void generalized_freed(void)
{
	MPI_Request request, copy;
	MPI_Status sts[2];
	int n = 17;

	freed = 0;
	MPI_Grequest_start(query, let_go, asked, &n, &request);
	copy = request;
	EXPECT_INT(MPI_Request_free(&request), MPI_SUCCESS);
	EXPECT_INT(freed, 0);
	EXPECT_INT(MPI_Grequest_complete(copy), MPI_SUCCESS);
	EXPECT_INT(freed, 1);
	MPI_Grequest_start(query, let_go, asked, &n, &request);
	MPI_Grequest_complete(request);
	EXPECT_INT(freed, 1);
	EXPECT_INT(MPI_Request_free(&request), MPI_SUCCESS);
	EXPECT_INT(freed, 2);
	MPI_Grequest_start(query, let_go_badly, asked, &n, &request);
	MPI_Grequest_complete(request);
	EXPECT_INT(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_IO);
	for (int i = 0; i < 2; i++) {
		MPI_Request both[2];

		MPI_Grequest_start(query, let_go, asked, &n, &both[0]);
		MPI_Grequest_start(query, let_go_badly, asked, &n, &both[1]);
		MPI_Grequest_complete(both[0]);
		MPI_Grequest_complete(both[1]);
		EXPECT_INT(MPI_Waitall(2, both, i ? MPI_STATUSES_IGNORE : sts), MPI_ERR_IN_STATUS);
		EXPECT(both[0] == MPI_REQUEST_NULL && both[1] == MPI_REQUEST_NULL);
	}
	EXPECT_INT(sts[0].MPI_ERROR, MPI_SUCCESS);
	EXPECT_INT(sts[1].MPI_ERROR, MPI_ERR_IO);
	EXPECT_INT(freed, 7);
	case_end("a generalized request that was freed goes when it is completed, and its free function may fail");
}

enum { THREADS = 4, TURNS = 500 };

static void *turns(void *arg)
{
	int tag = (int)(size_t)arg, v;
	static _Thread_local int bad;

	for (int i = 0; i < TURNS; i++) {
		if (rank == 0) {
			v = i * 7 + tag;
			MPI_Send(&v, 1, MPI_INT, other, tag, MPI_COMM_WORLD);
			MPI_Recv(&v, 1, MPI_INT, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			bad |= v != i * 7 + tag + 1;
		} else {
			MPI_Recv(&v, 1, MPI_INT, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			v++;
			MPI_Send(&v, 1, MPI_INT, other, tag, MPI_COMM_WORLD);
		}
	}
	return bad ? arg : NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, turns, (void *)(size_t)(i + 1));
	for (int i = 0; i < THREADS; i++) {
		void *bad;

		pthread_join(t[i], &bad);
		EXPECT(!bad);
	}
	case_end("threads talk at once over one communicator");
}

static void memory(void)
{
	unsigned char *a, *b;
	int n = 1 << 20;

	EXPECT_INT(MPI_Alloc_mem(n, MPI_INFO_NULL, &a), MPI_SUCCESS);
	EXPECT_INT(MPI_Alloc_mem(n, MPI_INFO_NULL, &b), MPI_SUCCESS);
	for (int i = 0; i < 5; i++) {
		fill(a, (size_t)n, i + rank);
		if (rank == 0) {
			MPI_Send(a, n, MPI_BYTE, other, 1, MPI_COMM_WORLD);
			MPI_Recv(b, n, MPI_BYTE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(b, n, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(a + 100, n - 200, MPI_BYTE, other, 2, MPI_COMM_WORLD);
		}
		if (rank == 1)
			EXPECT(holds(b, (size_t)n, i));
		else
			for (int k = 0; k < n - 200; k += 997)
				EXPECT(b[k] == byte_of((size_t)k + 100, i + 1));
	}
	EXPECT_INT(MPI_Free_mem(a), MPI_SUCCESS);
	EXPECT_INT(MPI_Free_mem(b), MPI_SUCCESS);
	case_end("memory from MPI_Alloc_mem is sent and received, whole and in part");
}

int main(int argc, char **argv)
{
	int provided, size;
	void *back;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	other = 1 - rank;
	out = malloc(MOST);
	in = malloc(MOST);
	store = malloc(3 * MOST);
	EXPECT_INT(provided, MPI_THREAD_MULTIPLE);
	EXPECT_INT(size, 2);
	case_end("two ranks, any thread may call");
	MPI_Buffer_attach(store, 3 * MOST);
	modes();
	persistent();
	order();
	truncation();
	probes();
	cancels();
	several();
	polled();
	some_see_all();
	free_early();
	free_with_sends();
	flush_beside();
	automatic();
	used_again();
	both_ways();
	nonsense();
	generalized();
	generalized_freed();
	threads();
	memory();
	EXPECT_INT(MPI_Buffer_detach(&back, &size), MPI_SUCCESS);
	EXPECT(back == store);
	EXPECT_INT(size, 3 * MOST);
	case_end("a detached buffer comes back");
	free(store);
	free(in);
	free(out);
	return cases_end();
}
