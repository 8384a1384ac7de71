/* launch.h - processes that are started while the job runs, and those that come by themselves.
 *
 * A launch is what one call of weft_spawn asks for. The agent of who asked has it in hand: it gets numbers (from the launcher, or it is the only agent), tells every agent which
 * number is on which host, has all of them say that they know, and only then has the processes started; so nobody ever hears of a process whose host
 * he does not know. How each start went and how each process ended goes back to who asked.
 */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#include "job/body.h"

struct agent;
struct place;
struct wf_parcel;

/* Process @by asks for processes: what it said is @spec, under @name. Takes the descriptors: one for each program whose output goes to one. */
void launch_asked(struct agent *a, struct place *by, uint32_t name, const void *spec, size_t n, struct wf_parcel *parcel);
void launch_numbers(struct agent *a, uint32_t ticket, uint32_t base);   /* CONTROL_NUMBERS; base 0: there are no more */

/* Processes of this host. */
void launch_exec(struct agent *a, struct place *p);                     /* whether it could be executed is known */
void launch_ended(struct agent *a, struct place *p, int status);
void launch_over(struct agent *a, uint32_t process, int status);        /* it has ended before; now its output is written, too */

/* From other agents. */
void launch_planned(struct agent *a, uint32_t host, struct wf_body *b);         /* numbers and their hosts */
void launch_plan_known(struct agent *a, uint32_t host, uint32_t base);          /* that host knows them */
void launch_start(struct agent *a, uint32_t host, struct wf_body *b);           /* start yours */
void launch_news(struct agent *a, uint32_t host, struct wf_body *b);            /* of one of them */
void launch_host_gone(struct agent *a, uint32_t host);
void launch_host_new(struct agent *a, uint32_t host);
void launch_begun(struct agent *a);                                             /* this host may start something from now on */

/* A number for a process that comes by itself, which every agent knows before it does: guest_number tells. */
void launch_guest(struct agent *a, uint32_t ticket);

#endif
