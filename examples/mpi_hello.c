/* mpi_hello.c - the first program of every MPI tutorial. mpicc mpi_hello.c && mpiexec -n 4 ./a.out */
#include <stdio.h>
#include <mpi.h>

int main(int argc, char **argv)
{
	char host[MPI_MAX_PROCESSOR_NAME];
	int rank, size, length;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Get_processor_name(host, &length);
	printf("hello from rank %d of %d on %s\n", rank, size, host);
	MPI_Finalize();
	return 0;
}
