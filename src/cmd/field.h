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
#include "verdict.h"

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
	enum { SITE_STARTING, SITE_GREETED, SITE_READY, SITE_JOINING, SITE_WORKING, SITE_DONE, SITE_LOST } stage;     /* JOINING: growth.h */
	bool begun;                     /* its first word has come */
	bool told;                      /* the others have heard of it: its number is used up */
	bool knows;                     /* of the one that is joining */
	struct growth *growth;          /* by which it is to join; NULL: it is in, or is of the first */
	char line[CONTROL_LINE_ROOM];   /* the last it had to say while it was to join */
	struct hello hello;
	char at[96];                    /* where its agent is */
	uint32_t running;
	struct piece *pieces, **pieces_end;
	size_t unprinted;               /* bytes of them */
	unsigned ends;                  /* of them that have none: there a process's output ends */
};

struct growth;
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
	struct verdict verdict;         /* on those who hear nothing of each other */
	unsigned server, epoch;
	struct growth *growths;
	struct site *joining;           /* one at a time; NULL: none */
	int64_t join_deadline;
	uint32_t numbers;               /* of processes, given out */
	uint32_t jobs;                  /* likewise, of other jobs */
	size_t input_way;               /* bytes of input that rank 0's host has not taken */
	bool input_over;
	char *lines;                    /* to be printed: texts with their ends, one after another */
	size_t lines_at, lines_n, lines_room;
};

#define FIELD_MEMBER 400u               /* bytes of one in CONTROL_MEMBERS, at most */

/* field.c */
bool site_is_in(const struct site *s);
void field_tell_all(struct field *f, enum control kind, uint32_t value);        /* who has an agent */
void field_tell_server(const struct field *f, struct site *s);                  /* who serves the directory */
void field_member(struct wf_body *b, const struct site *s);                     /* as CONTROL_MEMBERS has it */

/* site.c */
struct site *site_new(unsigned index, const struct host *host);         /* NULL: no memory */
int site_start(const struct run *run, struct site *s, char *words, size_t n);   /* -1: @words say why not */
bool site_brief(const struct run *run, struct site *s);                 /* it is told what it is to do; false: that is too long */

#endif
