/* test_coll_threads.c - collectives on several communicators at once, each by a thread of its own; and many in a row, with
 * members that come late.
 */
#include <pthread.h>
#include <unistd.h>

#include "coll_kinds.h"

#define THREADS 3

struct worker {
	pthread_t thread;
	MPI_Comm comm;
	unsigned seed;
	int bad;
};

/* A round of everything, where what comes out depends on every member. */
static int rounds(MPI_Comm comm, unsigned seed, int times, int late)
{
	int me, n, bad = 0, big = 20000, *p, *q;

	MPI_Comm_rank(comm, &me);
	MPI_Comm_size(comm, &n);
	p = malloc(sizeof(int) * (size_t)big);
	q = malloc(sizeof(int) * (size_t)big);
	if (!p || !q)
		abort();
	for (int t = 0; t < times; t++) {
		int x = me + t, y = -1, all[16], root = t % n, len = t % 5 ? 1 + t % 300 : big;

		if (late && mixed(seed, (unsigned)me, (unsigned)t) % 8 == 0)
			usleep(mixed(seed, (unsigned)me, (unsigned)t + 1) % 3000);
		switch (mixed(seed, 0, (unsigned)t) % 8) {
		case 0:
			bad |= MPI_Barrier(comm) != MPI_SUCCESS;
			break;
		case 1:
			MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, comm);
			bad |= y != n * (n - 1) / 2 + n * t;
			break;
		case 2:
			for (int i = 0; i < len; i++)
				p[i] = me == root ? i ^ t : 0;
			MPI_Bcast(p, len, MPI_INT, root, comm);
			for (int i = 0; i < len; i++)
				bad |= p[i] != (i ^ t);
			break;
		case 3:
			MPI_Allgather(&x, 1, MPI_INT, all, 1, MPI_INT, comm);
			for (int i = 0; i < n; i++)
				bad |= all[i] != i + t;
			break;
		case 4:
			MPI_Scan(&x, &y, 1, MPI_INT, MPI_SUM, comm);
			bad |= y != me * (me + 1) / 2 + (me + 1) * t;
			break;
		case 5:
			for (int i = 0; i < len; i++)
				p[i] = me + i;
			MPI_Reduce(p, q, len, MPI_INT, MPI_SUM, root, comm);
			for (int i = 0; i < len && me == root; i++)
				bad |= q[i] != n * (n - 1) / 2 + n * i;
			break;
		case 6:
			for (int i = 0; i < n; i++)
				p[i] = 100 * me + i;
			MPI_Alltoall(p, 1, MPI_INT, q, 1, MPI_INT, comm);
			for (int i = 0; i < n; i++)
				bad |= q[i] != 100 * i + me;
			break;
		default:
			MPI_Gather(&x, 1, MPI_INT, all, 1, MPI_INT, root, comm);
			for (int i = 0; i < n && me == root; i++)
				bad |= all[i] != i + t;
		}
	}
	free(p);
	free(q);
	return bad;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	w->bad = rounds(w->comm, w->seed, 300, 0);
	return NULL;
}

static void threads(void)
{
	struct worker workers[THREADS];

	for (int i = 0; i < THREADS; i++) {
		workers[i].seed = 77u + (unsigned)i;
		MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
	}
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			abort();
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		EXPECT(!workers[i].bad);
		MPI_Comm_free(&workers[i].comm);
	}
	case_end("threads run collectives on communicators of their own at the same time");
}

int main(int argc, char **argv)
{
	int level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	EXPECT_INT(level, MPI_THREAD_MULTIPLE);
	threads();
	EXPECT(!rounds(MPI_COMM_WORLD, 5, 3000, 0));
	case_end("many collectives follow each other with nothing in between");
	EXPECT(!rounds(MPI_COMM_WORLD, 6, 400, 1));
	case_end("members that come late to some of many collectives hold up nothing for ever and confuse nobody");
	return cases_end();
}
