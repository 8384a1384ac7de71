/* field.h - the launcher of several hosts: what its files have in common.
 *
 * A site is a host as the launcher sees it: the command that was to start a station there (site.c), and the conversation with that (field.c).
 */
#ifndef FIELD_H
#define FIELD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "brief.h"
#include "control.h"
#include "hostlist.h"
#include "run.h"

/* Output that was not printed yet. */
struct piece {
	struct piece *next;
	uint32_t rank, stream;
	size_t at, n;
	char bytes[];
};

struct site {
	unsigned index;
	struct host host;
	pid_t pid;                      /* of the command that starts it; 0: reaped */
	struct talk talk;
	enum { SITE_STARTING, SITE_GREETED, SITE_READY, SITE_WORKING, SITE_DONE, SITE_LOST } stage;
	bool begun;                     /* its first word has come */
	struct hello hello;
	char at[96];                    /* where its agent is */
	uint32_t running;
	bool unheard, deaf;             /* the one that serves does not hear it, it does not hear that one */
	struct piece *pieces, **pieces_end;
	size_t unprinted;               /* bytes of them */
};

struct streams;

struct field {
	struct run *run;
	struct streams *streams;
	struct site *sites[HOSTLIST_HOSTS];
	unsigned count;
	int signals;
	int code;
	bool failed;
	enum { GATHERING, WORKING, ENDING } phase;
	int64_t deadline;               /* of the phase; 0: none */
	int64_t timeout, interrupted;
	int64_t verdict;                /* when those who heard nothing of each other are judged; 0: there are none */
	unsigned server, epoch;
	uint32_t numbers;               /* of processes, given out */
	size_t input_way;               /* bytes of input that rank 0's host has not taken */
	bool input_over;
	char *lines;                    /* to be printed: texts with their ends, one after another */
	size_t lines_at, lines_n, lines_room;
};

/* site.c */
struct site *site_new(unsigned index, const struct host *host);         /* NULL: no memory */
int site_start(const struct run *run, struct site *s, char *words, size_t n);   /* -1: @words say why not */
bool site_brief(const struct run *run, struct site *s);                 /* it is told what it is to do; false: that is too long */

#endif
