/* info.c - `weft info`: what this weft is, where it runs and how it is set; `weft info --mpi`: what of MPI is there.
 *
 * The functions of MPI that are not there yet come from the sources of the MPI layer when this is built: the command
 * needs no MPI library to list them.
 */
#include "info.h"

#include <ctype.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/variables.h"
#include "machine.h"
#include "net/choose.h"
#include "run.h"

#define RAILS 64                /* shown */

#define MPI_FUNCTIONS 664       /* in the table of the ABI; tests/mpi/abi counts them */

static const char usage[] =
	"weft info          the version of weft, the machine, the rails, and the knobs with what has set them\n"
	"weft info --mpi    the version of MPI, and the functions of it that are not there yet\n"
	"  -h, --help       this\n";

#define NAME(x) #x,
static const char *const mpi_missing[] = {
#include "mpi_missing.h"
	NULL
};
#undef NAME

/* What a terminal would obey is not shown. */
static const char *shown(char *text)
{
	for (char *c = text; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	return text;
}

static void rails_print(void)
{
	static struct wf_choice rails[RAILS];
	const char *text = wf_knob_text(WF_KNOB_RAILS);
	int n = wf_rails_choose(text, rails, RAILS);

	if (n <= 0)
		printf("rails       %s\n", n < 0 ? weft_last_error() : "none");
	for (int i = 0; i < n && i < RAILS; i++) {
		printf("%-11s %s:%s", i ? "" : "rails", rails[i].driver->name, shown(rails[i].adapter));
		if (rails[i].rate)
			printf(", %.3g Gbit/s", (double)rails[i].rate * 8 / 1e9);
		puts("");
	}
	if (!*text && n > 1)
		puts("            of these, the one that has the address by which the host is listed");
}

static void knobs_print(void)
{
	static const char *const by[] = { [WF_BY_DEFAULT] = "default", [WF_BY_ENVIRONMENT] = "environment", [WF_BY_CALL] = "call" };

	printf("\n%-11s %-11s %-11s %s\n", "knob", "value", "default", "set by");
	for (int i = 0; i < WF_KNOBS; i++) {
		struct wf_knob_view v;

		wf_knob_view((enum wf_knob)i, &v);
		shown(v.value);
		printf("%-11s %-11s %-11s %-12s%s%s%s%s%s\n", v.name, *v.value ? v.value : "-", *v.otherwise ? v.otherwise : "-", by[v.origin], v.unit,
		       *v.unit ? ": " : "", v.what, v.choices ? ": " : "", v.choices ? v.choices : "");
	}
}

static void log_line(int level, const char *line)
{
	if (level == WF_ERROR)          /* what it would warn of is told below */
		fprintf(stderr, "%s\n", line);
}

static void stranger_print(const char *name, const char *meant)
{
	fprintf(stderr, "weft info: nothing is set by %s%s%s%s\n", name, meant ? ", is " : "", meant ? meant : "", meant ? " meant?" : "");
}

/* What a program would find that is started here. */
static int all_print(void)
{
	unsigned strangers;
	int r;

	wf_log_init(log_line);
	r = wf_knob_init(NULL);
	if (r < 0)
		fprintf(stderr, "weft info: %s; a program would not get beyond weft_init\n", weft_last_error());
	strangers = wf_variable_strangers(stranger_print);
	if (strangers > WF_STRANGERS)
		fprintf(stderr, "weft info: nor by %u more that begin with WEFT_\n", strangers - WF_STRANGERS);
	printf("weft %s\n", WF_VERSION);
	machine_print();
	rails_print();
	knobs_print();
	return r < 0 ? CODE_FAULT : 0;
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
	if (argc == 1)
		return all_print();
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
