/* verdict.h - which host is given up, when agents hear nothing of each other. No clock, no conversation: field.c has both.
 *
 * Who serves hears all, the others hear only it. Each tells when it has heard nothing of the other for three fifths of the time after which a host counts as dead, and
 * takes it back when it hears of it again. What is not taken back within a quarter of that time is judged. In all, 17 twentieths of the time have passed then; the
 * rest is for telling the processes, whose connections to the dead take a while to end.
 *
 * A complaint may be the first of many: it may be the one that serves who is cut off. So with the first all are asked to say whom they hear from now on, and a host
 * is given up only when the one that serves and a third are known to hear each other since; or when much more time has gone by and nobody has said a word.
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
#define VERDICT_UNVOUCHED 8             /* so many times what it waits, a complaint waits for a third */
#define VERDICT_ALONE(silence) ((silence) * 17 / 20)

struct verdict {
	int64_t put_off;                /* set by who has it */
	uint32_t server;
	struct {
		bool in;
		bool unheard, deaf;     /* the one that serves does not hear it, it does not hear that one */
		int64_t since;          /* when the first of both was said */
		int64_t heard, hears;   /* when it was last said that the one that serves has heard it, that it has heard that one */
	} hosts[HOSTLIST_HOSTS];
};

void verdict_in(struct verdict *v, uint32_t host, bool in);
void verdict_server(struct verdict *v, uint32_t host);                  /* who serves from now on; nobody has anything against it yet, nor it against anybody */
bool verdict_silent(struct verdict *v, uint32_t by, uint32_t host, int64_t now);       /* true: all are to be asked whom they hear */
void verdict_heard(struct verdict *v, uint32_t by, uint32_t host, int64_t now);

int64_t verdict_next(const struct verdict *v, int64_t now);             /* when to look, if nothing is said before; 0: nobody complains */
bool verdict_look(struct verdict *v, int64_t now, uint32_t *ret_host);  /* true: that one is given up, and is not in any more; call again */

#endif
