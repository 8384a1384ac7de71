/* start.c - a program that joins its job and leaves it: what is measured is how long that takes from outside (bench/mpi/run). */
#include <mpi.h>

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Finalize();
	return 0;
}
