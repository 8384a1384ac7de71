/* info.c - `weft info`: what this weft is and where it runs; `weft info --mpi`: what of MPI is there.
 *
 * The functions of MPI that are not there yet come from the sources of the MPI layer when this is built: the command
 * needs no MPI library to list them.
 */
#include "info.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "run.h"

#define MPI_FUNCTIONS 664       /* in the table of the ABI; tests/mpi/abi counts them */

static const char usage[] =
	"weft info          the version of weft, and the machine\n"
	"weft info --mpi    the version of MPI, and the functions of it that are not there yet\n"
	"  -h, --help       this\n";

#define NAME(x) #x,
static const char *const mpi_missing[] = {
#include "mpi_missing.h"
	NULL
};
#undef NAME

static void machine_print(void)
{
	const uint16_t one = 1;
	struct utsname u;

	printf("weft %s\n", WF_VERSION);
	if (uname(&u) == 0)
		printf("%s %s on %s\n", u.sysname, u.release, u.machine);
	printf("%ld cores, pages of %ld bytes, %s-endian, pointers of %zu bits\n", sysconf(_SC_NPROCESSORS_ONLN),
	       sysconf(_SC_PAGESIZE), *(const char *)&one ? "little" : "big", 8 * sizeof(void *));
}

static void mpi_print(void)
{
	int missing = sizeof(mpi_missing) / sizeof(*mpi_missing) - 1;

	printf("MPI %d.%d, ABI %d.%d\n", MPI_VERSION, MPI_SUBVERSION, MPI_ABI_VERSION, MPI_ABI_SUBVERSION);
	printf("%d of %d functions are there", MPI_FUNCTIONS - missing, MPI_FUNCTIONS);
	if (missing)
		printf("; these answer MPI_ERR_UNSUPPORTED_OPERATION:");
	puts("");
	for (int i = 0; i < missing; i++)
		puts(mpi_missing[i]);
}

int info_main(int argc, char **argv)
{
	if (argc == 1) {
		machine_print();
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "--mpi")) {
		mpi_print();
		return 0;
	}
	if (argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		fputs(usage, stdout);
		return 0;
	}
	fputs(usage, stderr);
	return CODE_USAGE;
}
