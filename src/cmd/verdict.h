/* verdict.h - which host is given up, when agents hear nothing of each other. No clock, no conversation: field.c has both.
 *
 * Who serves hears all, the others hear only it. Each tells when it has heard nothing of the other for three fifths of the time after which a host counts as dead, and
 * takes it back when it hears of it again. What is not taken back within a quarter of that time is judged: by then all have spoken who have something to say, since
 * those that lose sight of one host do so within a beat. In all, 17 twentieths of the time have passed then; the rest is for telling the processes, whose connections
 * to the dead take a while to end.
 */
#ifndef VERDICT_H
#define VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "hostlist.h"

/* Of the time after which a host counts as dead: from beat to beat; what an agent waits before it complains, what the complaint then waits, and both. */
#define VERDICT_BEAT(silence) ((silence) / 10)
#define VERDICT_COMPLAIN(silence) ((silence) * 12 / 20)
#define VERDICT_PUT_OFF(silence) ((silence) * 5 / 20)
#define VERDICT_ALONE(silence) ((silence) * 17 / 20)

struct verdict {
	int64_t put_off;                /* set by who has it */
	uint32_t server;
	struct {
		bool in;
		bool unheard, deaf;     /* the one that serves does not hear it, it does not hear that one */
		int64_t since;          /* when the first of both was said */
	} hosts[HOSTLIST_HOSTS];
};

void verdict_in(struct verdict *v, uint32_t host, bool in);
void verdict_server(struct verdict *v, uint32_t host);                  /* who serves from now on; nobody has anything against it yet, nor it against anybody */
void verdict_silent(struct verdict *v, uint32_t by, uint32_t host, int64_t now);
void verdict_heard(struct verdict *v, uint32_t by, uint32_t host);

int64_t verdict_next(const struct verdict *v);                          /* when to look; 0: nobody complains */
bool verdict_look(struct verdict *v, int64_t now, uint32_t *ret_host);  /* true: that one is given up, and is not in any more; call again */

#endif
