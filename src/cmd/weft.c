/* weft.c - the weft command: which part of it was asked for. */
#include <stdio.h>
#include <string.h>

#include "info.h"
#include "look.h"
#include "ping.h"
#include "run.h"
#include "state.h"

static int help_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	puts("weft run [OPTIONS] PROGRAM [ARGUMENTS]   start processes on this machine as one job (weft run --help)\n"
	     "weft ps                                  the processes of a job\n"
	     "weft ls [QUERY]                          who is in its directory\n"
	     "weft kill [-SIGNAL] ID...                a signal to processes of a job\n"
	     "weft grow HOSTS                          hosts join a job\n"
	     "weft state PID                           ports, queues and who waits for whom in a process\n"
	     "weft ping ID                             how far a process of another host is, over each lane\n"
	     "weft info [--mpi]                        the version, the machine; what of MPI is there\n"
	     "weft version                             the version of weft\n"
	     "weft help                                this\n"
	     "\n"
	     "The manual: man 1 weft, man 7 weft");
	return 0;
}

static int version_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	puts("weft " WF_VERSION);
	return 0;
}

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
} parts[] = {
	{ "run", run_main },
	{ "agent", station_main },
	{ "ps", ps_main },
	{ "ls", ls_main },
	{ "kill", kill_main },
	{ "grow", grow_main },
	{ "state", state_main },
	{ "ping", ping_main },
	{ "info", info_main },
	{ "version", version_main },
	{ "--version", version_main },
	{ "help", help_main },
	{ "--help", help_main },
	{ "-h", help_main },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(parts) / sizeof(*parts); i++)
		if (!strcmp(argv[1], parts[i].name))
			return parts[i].main(argc - 1, argv + 1);
	if (argc > 1)
		fprintf(stderr, "weft: there is no \"weft %s\"; weft help lists what there is\n", argv[1]);
	else
		fprintf(stderr, "weft: what? weft help lists what there is\n");
	return CODE_USAGE;
}
