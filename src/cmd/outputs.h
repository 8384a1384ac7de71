/* outputs.h - what the processes of a host print, on its way to the launcher. The station's; one thread.
 *
 * An output is a pipe that a process writes into. What is read of it goes on in pieces, each output in its turn, and no more is on its way than CONTROL_OUTPUT_WAY: a launcher that
 * does not keep up with printing slows the processes down. A piece ends with a line, if lines are not too long and come at once: pieces of different processes
 * are printed one after another, and so lines stay whole.
 */
#ifndef OUTPUTS_H
#define OUTPUTS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control.h"

#define OUTPUT_PIECE (16u << 10)        /* read at once */
#define OUTPUT_LINE (64u << 10)         /* a longer line is taken apart */

/* Zeros: none. */
struct outputs {
	struct output *each;
	unsigned count, room;
	unsigned next;                  /* whose turn it is */
	size_t unprinted;
	bool alone;                     /* there is one process in the job: nobody could get into its lines, and nothing of them is kept */
};

/* Takes @fd, which is read without waiting. -1: no memory, and it is closed. @rank, @stream: as CONTROL_OUTPUT says. */
int outputs_add(struct outputs *o, int fd, uint32_t rank, uint32_t stream);
void outputs_close(struct outputs *o);

/* What to poll for: o->count entries. And when to come again by itself, in ms; -1: not. */
void outputs_fill(const struct outputs *o, struct pollfd *polls);
int outputs_wait(const struct outputs *o, int64_t now);

/* A piece of each that has one; lines whose end does not come. */
void outputs_carry(struct outputs *o, struct talk *t, int64_t now);

bool outputs_printed(struct outputs *o, uint32_t n);    /* CONTROL_PRINTED; false: nonsense */

/* Nobody is left who could write: what is there now is all. True: it has been said. */
bool outputs_over(struct outputs *o, struct talk *t);

#endif
