/* growth.h - hosts that join a job that is running: the launcher's side.
 *
 * They are started and briefed as the first ones were, side by side, and come in one after the other:
 *
 *   READY     its agent can be reached
 *   JOINING   it is told who is there (CONTROL_MEMBERS), says that it knows (CONTROL_KNOWN), and something to each; then all who are in are told of it, and say that
 *             they know it when they have heard it
 *   WORKING   all know it, and it knows all: it may begin (CONTROL_BEGIN)
 *
 * So nobody can ask anything of it that it could not answer, nor be asked by it before he knows it. Until it works, whatever happens to it is told to who has asked for
 * it, and to nobody else.
 */
#ifndef GROWTH_H
#define GROWTH_H

#include <stdbool.h>
#include <stdint.h>

struct field;
struct site;
struct wf_body;

bool growth_asked(struct field *f, struct site *by, struct wf_body *b);         /* CONTROL_GROW; false: nonsense */
void growth_next_joins(struct field *f);                                        /* a site is READY */
void growth_known(struct field *f, struct site *by, uint32_t host);             /* CONTROL_KNOWN */
void growth_look_known(struct field *f);                                        /* one that was waited for is gone */
void growth_failed(struct field *f, struct site *s, const char *why);           /* it does not join */

int64_t growth_next(const struct field *f);             /* when to look; 0: nobody is waited for */
void growth_look(struct field *f, int64_t now);         /* who has not come in time is given up */

#endif
