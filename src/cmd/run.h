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

#include "bind.h"
#include "secure/key.h"

#define RUN_MOST 1024           /* processes of a job */

enum { CODE_FAULT = 1, CODE_USAGE = 2, CODE_TIMEOUT = 124, CODE_NOEXEC = 126, CODE_NOTFOUND = 127 };

/* A program of the job, and the ranks that run it. */
struct part {
	unsigned first, count;
	bool counted;                   /* -n said so */
	char **argv;                    /* the program and its arguments */
	const char *program;            /* NULL: argv[0] is what it is called */
	char **env;                     /* NAME=VALUE, so many; owned, the texts not */
	size_t env_count;
	const char *wdir;               /* NULL: where the command was called */
};

/* What the command line and the surroundings say; constant once the agent is forked. */
struct run {
	unsigned count;                 /* here */
	uint32_t *ranks;                /* of those here, ascending */
	unsigned total;                 /* of all hosts */
	unsigned char job[16];

	/* several hosts */
	unsigned host, hosts_count;     /* this one; 0: it is the only one */
	struct wf_key key;
	unsigned ports, ports_last;     /* where processes listen for other hosts; 0: anywhere */
	/* each started by hand (--host) */
	const char *hosts, *key_path;   /* NULL: not so */
	struct wf_hosts_map *map;       /* of hosts */
	/* or all by one launcher */
	bool meshed;
	bool hosted;                    /* the processes were started by a launcher of the site: hosted.h */
	struct hostlist *list;          /* the launcher's */
	const char *launcher;           /* the template; NULL: ssh */
	uint32_t *host_of;              /* of each rank */
	const char *adapter;            /* an address of this host; NULL: not known */
	int silence_ms;                 /* after which a host counts as dead */

	bool label, verbose, kill_on_fail, map_shown;
	enum bind bind;
	double timeout, stop_limit;     /* seconds; 0: none */
	double silence;
	bool by_hand, by_node, oversubscribe, net;
	const char *hostfile;
	struct part *parts;             /* in the order of their ranks, with none between them */
	unsigned part_count;

	sigset_t mask;                  /* as this command found them: processes get them back */
	bool pipe_ignored;
	struct rlimit files;

	int stdin_fd;                   /* process 1's */
	int *out_fds, *err_fds;         /* --label: the writing end of each process's pipe; else NULL */
	int control;                    /* the agent's end */
};

int run_main(int argc, char **argv);
int run_options(struct run *run, int argc, char **argv);        /* -1: go on; else the exit code */
_Noreturn void agent_main(const struct run *run);

/* The beginnings of a launcher or a station. All: -1, errno says why. */
int run_descriptors(void);                      /* 0, 1 and 2 are something */
int run_signals(struct run *run, bool forwards, int *ret_signals);      /* what was found is in @run; @forwards: those that go to the processes are read, too */
pid_t run_agent(struct run *run, int signals, int *ret_control);        /* forks it; 0: in the agent, for agent_main */

bool run_stop(void);                            /* stops this process as SIGTSTP does by default; true: nobody will tell that it goes on but the caller */

int field_main(struct run *run);                /* field.c: launches over several hosts; the exit code */
int station_main(int argc, char **argv);        /* station.c: `weft agent` */
void station_adapter(char *ret_text, size_t n);  /* an address of this host that others reach, as far as it can be guessed */

/* Raises the limit of descriptors as far as allowed; what it was goes to @ret_was. */
void files_raise(struct rlimit *ret_was);

int64_t now_ns(void);

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)

#endif
