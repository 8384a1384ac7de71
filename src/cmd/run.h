/* run.h - `weft run`: what its two processes have in common.
 *
 *   launcher   what the user started: the terminal, signals, standard streams, the exit code      run.c, options.c,
 *      |                                                                                        streams.c
 *      |  control: a socket pair; either end's closing says that the other is gone
 *   agent      its child, in a session of its own: starts the processes, knows who is who,        agent.c, start.c, desk.c,
 *      |       passes descriptors, decides deaths, cleans up                                      news.c, death.c
 *   processes  children of the agent, each in a process group of its own
 *
 * Both are subreapers: what a process leaves behind becomes the agent's child, and if there is no agent any more the
 * launcher's. So each of the two can find and end everything that was started, and does when the other is gone (tree.c).
 */
#ifndef RUN_H
#define RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "secure/key.h"

#define RUN_MOST 1024           /* processes of a job */

enum { CODE_FAULT = 1, CODE_USAGE = 2, CODE_TIMEOUT = 124, CODE_NOEXEC = 126, CODE_NOTFOUND = 127 };

/* A program of the job, and the ranks that run it. */
struct part {
	unsigned first, count;
	char **argv;                    /* the program and its arguments */
	char **env;                     /* NAME=VALUE, so many; owned, the texts not */
	size_t env_count;
	const char *wdir;               /* NULL: where the command was called */
};

/* What the command line and the surroundings say; constant once the agent is forked. */
struct run {
	unsigned count;                 /* here */
	unsigned first, total;          /* processes of other hosts before these; of all hosts */
	const char *hosts;              /* NULL: one host */
	const char *key_path;
	struct wf_hosts_map *map;       /* of hosts */
	struct wf_key key;
	unsigned host;
	unsigned ports, ports_last;     /* where processes are reached from other hosts */
	bool label, verbose, kill_on_fail;
	double timeout, stop_limit;     /* seconds; 0: none */
	struct part *parts;             /* in the order of their ranks, with none between them */
	unsigned part_count;

	sigset_t mask;                  /* as this command found them: processes get them back */
	bool pipe_ignored;
	struct rlimit files;

	int stdin_fd;                   /* process 1's */
	int *out_fds, *err_fds;         /* --label: the writing end of each process's pipe; else NULL */
	int control;                    /* the agent's end */
};

/* Over the control socket. Launcher to agent: an int, a signal to forward. Agent to launcher: a line of text to print,
 * without newline. */
#define CONTROL_LINE 512

int run_main(int argc, char **argv);
int run_options(struct run *run, int argc, char **argv);        /* -1: go on; else the exit code */
_Noreturn void agent_main(const struct run *run);

/* Raises the limit of descriptors as far as allowed; what it was goes to @ret_was. */
void files_raise(struct rlimit *ret_was);

int64_t now_ns(void);

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)

#endif
