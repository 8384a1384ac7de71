/* hosted.h - the agent of processes that a launcher of the site has started (`weft agent --pact`).
 *
 * It is started by the first process of its host (src/job/born.c), which tells it who belongs to the job (src/job/birth.h); from then on there is nobody above it. The processes are
 * no children of it: they come as guests do, each to its own place. It ends when those of all hosts have come and gone.
 *
 * Of several hosts that of rank 0 decides what a launcher would: who is lost, which numbers are given, when it is over. If it is silent, the next one does.
 */
#ifndef HOSTED_H
#define HOSTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent;
struct place;
struct wf_body;

int hosted_main(void);                          /* the exit code, if it comes to nothing */

/* The rest is for an agent whose run is hosted. */
void hosted_begin(struct agent *a);
int hosted_reached(struct agent *a, const char *at);            /* other agents reach it there; -1: its first is gone */
void hosted_control(struct agent *a);                           /* its first says something, or nothing any more */
struct place *hosted_place(struct agent *a, uint32_t rank);     /* that somebody may take; NULL: not of this host, or taken */
void hosted_abort(struct agent *a);                             /* a process of this host wants all to end */
void hosted_silent(struct agent *a, uint32_t host);             /* nothing was heard of it for too long */
void hosted_asked(struct agent *a, uint32_t host);              /* that one serves from now on */
void hosted_heard(struct agent *a, uint32_t host, uint64_t tag, struct wf_body *b);    /* of another such agent */
void hosted_numbers(struct agent *a, uint32_t ticket, uint32_t count);

int64_t hosted_next(const struct agent *a);     /* when to look again; 0: never */
void hosted_look(struct agent *a, int64_t now);

#endif
