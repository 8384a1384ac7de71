/* mpitest.h - cases of a test that is an MPI program: every rank checks, rank 0 prints.
 *
 * EXPECT marks the rank's own view of the current case; case_end asks all ranks and prints one line. Ranks must end
 * their cases in the same order. Reduction and printing use MPI itself; where the case under test may have broken it,
 * the job hangs and the time limit tells.
 */
#ifndef MPITEST_H
#define MPITEST_H

#include <stdio.h>
#include <stdlib.h>
#include <mpi.h>

static int case_number, case_bad, cases_failed;

#define EXPECT(x)                                                                                              \
	do {                                                                                                   \
		if (!(x)) {                                                                                    \
			int rank_ = -1;                                                                        \
			MPI_Comm_rank(MPI_COMM_WORLD, &rank_);                                                 \
			case_bad = 1;                                                                          \
			printf("# rank %d, %s:%d: not so: %s\n", rank_, __FILE__, __LINE__, #x);               \
			fflush(stdout);                                                                        \
		}                                                                                              \
	} while (0)

#define EXPECT_INT(x, y)                                                                                       \
	do {                                                                                                   \
		long long x_ = (long long)(x), y_ = (long long)(y);                                            \
		if (x_ != y_) {                                                                                \
			int rank_ = -1;                                                                        \
			MPI_Comm_rank(MPI_COMM_WORLD, &rank_);                                                 \
			case_bad = 1;                                                                          \
			printf("# rank %d, %s:%d: %s is %lld, not %lld\n", rank_, __FILE__, __LINE__, #x, x_, y_); \
			fflush(stdout);                                                                        \
		}                                                                                              \
	} while (0)

/* Collective: the end of a case, which is the sentence. */
static inline void case_end(const char *sentence)
{
	int rank, size, bad = case_bad;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank == 0) {
		for (int i = 1; i < size; i++) {
			int other = 0;

			MPI_Recv(&other, 1, MPI_INT, i, 32000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			bad |= other;
		}
		printf("%s %d - %s\n", bad ? "not ok" : "ok", ++case_number, sentence);
		fflush(stdout);
	} else {
		MPI_Send(&bad, 1, MPI_INT, 0, 32000, MPI_COMM_WORLD);
	}
	cases_failed += bad;
	case_bad = 0;
}

/* The exit code, and how many cases there were. */
static inline int cases_end(void)
{
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0)
		printf("1..%d\n", case_number);
	MPI_Finalize();
	return cases_failed != 0;
}

#endif
