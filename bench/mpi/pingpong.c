/* pingpong.c - the plain ping-pong of any tutorial; what counts is how large it is with weft and its MPI linked in (mpi-size). */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, word = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 1000; i++) {
		if (rank == 0)
			MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(&word, 1, MPI_INT, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		word++;
		if (rank == 1)
			MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("%d\n", word);
	MPI_Finalize();
	return 0;
}
