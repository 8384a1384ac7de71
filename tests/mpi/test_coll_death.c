/* test_coll_death.c WHAT COUNT VICTIM DELAY_US - collectives one after the other, in the middle of which a rank is killed.
 *
 * Each survivor prints one line: "told after so many ms" once an error came, counted from its last collective that went well, and
 * once the next collective has failed too and a message went round the survivors; another line if something is not so. Nothing but
 * these lines says how it went (coll_death), as a job with a killed rank fails.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <mpi.h>

#define COUNT_MAX 50000

static int *p, *q;

/* A nonblocking or persistent one that @err says is begun or made. */
static int ended(int err, MPI_Request *request, int start)
{
	int freed = MPI_SUCCESS;

	if (!err && start)
		err = MPI_Start(request);
	if (!err)
		err = MPI_Wait(request, MPI_STATUS_IGNORE);
	if (*request != MPI_REQUEST_NULL)
		freed = MPI_Request_free(request);
	return err ? err : freed;
}

static int call(int what, int n, MPI_Comm comm)
{
	MPI_Request request = MPI_REQUEST_NULL;
	int counts[16], displs[16];

	for (int i = 0; i < 16; i++) {
		counts[i] = n;
		displs[i] = i * n;
	}
	switch (what) {
	case 0:
		return MPI_Barrier(comm);
	case 1:
		return MPI_Bcast(p, n, MPI_INT, 0, comm);
	case 2:
		return MPI_Reduce(p, q, n, MPI_INT, MPI_SUM, 0, comm);
	case 3:
		return MPI_Allreduce(p, q, n, MPI_INT, MPI_SUM, comm);
	case 4:
		return MPI_Gatherv(p, n, MPI_INT, q, counts, displs, MPI_INT, 0, comm);
	case 5:
		return MPI_Scatter(p, n, MPI_INT, q, n, MPI_INT, 0, comm);
	case 6:
		return MPI_Allgather(p, n, MPI_INT, q, n, MPI_INT, comm);
	case 7:
		return MPI_Alltoall(p, n, MPI_INT, q, n, MPI_INT, comm);
	case 8:
		return MPI_Scan(p, q, n, MPI_INT, MPI_SUM, comm);
	case 9:
		return MPI_Reduce_scatter_block(p, q, n, MPI_INT, MPI_SUM, comm);
	case 10:
		return ended(MPI_Ibarrier(comm, &request), &request, 0);
	case 11:
		return ended(MPI_Iallreduce(p, q, n, MPI_INT, MPI_SUM, comm, &request), &request, 0);
	default:
		return ended(MPI_Bcast_init(p, n, MPI_INT, 0, comm, MPI_INFO_NULL, &request), &request, 1);
	}
}

static void *kill_me(void *delay)
{
	usleep((useconds_t)*(int *)delay);
	raise(SIGKILL);
	return NULL;
}

static void hangs(int sig)
{
	static const char line[] = "hangs\n";

	(void)sig;
	if (write(1, line, sizeof(line) - 1) < 0)
		_exit(2);
	_exit(1);
}

/* A token round those who are left, on the same communicator. */
static int survivors_talk(MPI_Comm comm, int rank, int size, int victim)
{
	int next = (rank + 1) % size, before = (rank - 1 + size) % size, token = 41;

	next = next == victim ? (next + 1) % size : next;
	before = before == victim ? (before - 1 + size) % size : before;
	if (rank == (victim + 1) % size) {
		if (MPI_Send(&token, 1, MPI_INT, next, 9, comm) || MPI_Recv(&token, 1, MPI_INT, before, 9, comm, MPI_STATUS_IGNORE))
			return 0;
	} else if (MPI_Recv(&token, 1, MPI_INT, before, 9, comm, MPI_STATUS_IGNORE) || MPI_Send(&token, 1, MPI_INT, next, 9, comm)) {
		return 0;
	}
	return token == 41;
}

int main(int argc, char **argv)
{
	int what, n, victim, delay, rank, size, r, again;
	pthread_t thread;
	MPI_Comm comm;
	double t;

	MPI_Init(&argc, &argv);
	if (argc < 5)
		MPI_Abort(MPI_COMM_WORLD, 2);
	what = atoi(argv[1]);
	n = atoi(argv[2]) < COUNT_MAX ? atoi(argv[2]) : COUNT_MAX;
	victim = atoi(argv[3]);
	delay = atoi(argv[4]);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	p = calloc((size_t)n * (size_t)size, sizeof(*p));
	q = calloc((size_t)n * (size_t)size, sizeof(*q));
	if (!p || !q)
		MPI_Abort(MPI_COMM_WORLD, 2);
	signal(SIGALRM, hangs);
	alarm(20);
	MPI_Barrier(comm);
	if (rank == victim && pthread_create(&thread, NULL, kill_me, &delay))
		abort();
	do {
		t = MPI_Wtime();
		r = call(what, n, comm);
	} while (r == MPI_SUCCESS);
	t = MPI_Wtime() - t;
	again = call(what, n, comm);
	if (r != MPI_ERR_PROC_ABORTED && r != MPI_ERR_OTHER)
		printf("wrong error %d\n", r);
	else if (again != MPI_ERR_PROC_ABORTED)
		printf("wrong answer %d by the next\n", again);
	else if (!survivors_talk(comm, rank, size, victim))
		printf("no message among survivors\n");
	else
		printf("told after %.0f ms\n", t * 1e3);
	fflush(stdout);
	MPI_Comm_free(&comm);
	free(p);
	free(q);
	return MPI_Finalize();
}
