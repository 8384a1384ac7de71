/* control.h - what the launcher, the stations of its hosts and the agents say to one another.
 *
 *   launcher --pipe or ssh-- station --socket-- agent      a host of several; what is not a station's own it passes on, either way
 *   launcher ----------------socket------------ agent      the only host
 *
 * A packet is a kind and its body; on a socket it is a packet of that, in a pipe its length stands before it. Numbers are little-endian, texts have a
 * length before them. Both ends are of one version: the station's first word says which.
 */
#ifndef CONTROL_H
#define CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/body.h"

enum control {
	/* to the agent */
	CONTROL_SIGNAL = 1,             /* u32: forward it */
	CONTROL_MEMBERS,                /* u32 count, then for each u32 host, text where its agent is, text its name, u32 slots: all are there; or there is a new one */
	CONTROL_BEGIN,                  /* all know of this host */
	CONTROL_LOST,                   /* u32 host: it is no more */
	CONTROL_END,                    /* u32 code: end what is left */
	CONTROL_KILL,                   /* u32 code: likewise, at once */
	CONTROL_LISTEN,                 /* u32 0: say CONTROL_HEARD of each that you listen to, when you hear it next */
	CONTROL_SERVER,                 /* u32 host, u32 for the how manieth time: whose agent serves the directory from now on */

	CONTROL_GROWN,                  /* the answer to CONTROL_GROW: u32 process, u32 name, u32 err, u32 count, u32 host of each that has joined, text why others have not */

	/* to the station */
	CONTROL_BRIEF,                  /* what it is to do: brief.h */
	CONTROL_INPUT,                  /* bytes for rank 0; none: that was all */
	CONTROL_PRINTED,                /* u32: so many bytes of output are printed */

	/* from the agent */
	CONTROL_LINE,                   /* text to print, without newline */
	CONTROL_AT,                     /* text: where the agent is */
	CONTROL_FAILED,                 /* u32 code of the first process that failed here */
	CONTROL_ABORTED,                /* u32 code: a process has ended the job */
	CONTROL_IDLE,                   /* u32: how many run here; 0 or no longer 0 */
	CONTROL_NUMBERS,                /* u32 ticket, u32 how many; and the answer: u32 ticket, u32 the number before the first, 0: there are no more. For none: a number for another job */
	CONTROL_SILENT,                 /* u32 host: nothing was heard of its agent for a while that counts */
	CONTROL_HEARD,                  /* u32 host: of one that was called silent something was heard again, or that was asked for */

	CONTROL_KNOWN,                  /* u32 host: the last of CONTROL_MEMBERS is known, and was heard */
	CONTROL_GROW,                   /* u32 process that asks, u32 name it has for it, u32 ms it has (UINT32_MAX: any), text: hosts that are to join */
	CONTROL_STREAM,                 /* u32 label of a process that was started while the job runs; two descriptors: to read its standard output and error from */

	/* from the station */
	CONTROL_HELLO,                  /* hello.h's words, before anything else */
	CONTROL_OUTPUT,                 /* u32 rank, or label, u32 1 or 2, bytes; none: that was all of it */
	CONTROL_TAKEN,                  /* u32: so many bytes of input went to rank 0 */
	CONTROL_DONE,                   /* u32 code: the agent has ended, nothing is left; or DONE_KILLED */
};

#define CONTROL_BODY (1u << 20)         /* bytes of a body, at most */
#define CONTROL_PACKET (128u << 10)     /* on a socket: where 256 hosts with long names are */
#define CONTROL_LINE_ROOM 512u
#define DONE_KILLED 256u                /* somebody has killed the agent */
#define CONTROL_OUTPUT_WAY (256u << 10) /* bytes of a host's output that are on their way to be printed, at most */

/* One packet on a socket. 0, or a negative errno; -EAGAIN: not now. */
int control_send(int sock, enum control kind, const void *body, size_t n);
int control_send32(int sock, enum control kind, uint32_t value);
/* The next: its body's length, *ret_kind; -EAGAIN; -ECONNRESET: closed, or nonsense came. */
int control_recv(int sock, enum control *ret_kind, uint8_t body[CONTROL_PACKET]);

/* CONTROL_STREAM, whose descriptors stay the caller's. And what to receive by where it may come: likewise, and of a stream @ret_fds, the caller's to close; -1: there were no
 * descriptors left for them here. */
int control_send_stream(int sock, uint32_t label, const int fds[2]);
int control_recv_stream(int sock, enum control *ret_kind, uint8_t body[CONTROL_PACKET], int ret_fds[2]);

/* A conversation through two pipes (or one socket twice). */
struct talk {
	int in, out;                    /* non-blocking; -1: closed */
	uint8_t *got, *put;             /* read and not taken; said and not written */
	size_t got_n, got_at, got_room, put_n, put_at, put_room;
	bool unheard;                   /* the other end does not read any more: nothing is said, but what it has said is still to be read */
	bool broken;                    /* it is gone, or said nonsense, or there was no memory */
};

void talk_open(struct talk *t, int in, int out);
void talk_say(struct talk *t, enum control kind, const void *body, size_t n);
void talk_say32(struct talk *t, enum control kind, uint32_t value);
void talk_say_split(struct talk *t, enum control kind, const void *head, size_t head_n, const void *body, size_t n);
void talk_write(struct talk *t);        /* what can be now */
bool talk_owes(const struct talk *t);
void talk_read(struct talk *t);         /* what is there */
/* True: the next packet; @ret_body lasts until the next talk_read. */
bool talk_next(struct talk *t, enum control *ret_kind, struct wf_body *ret_body);
void talk_close(struct talk *t);

/* Skips what a login shell has printed before the station came to word. True: the station's first packet is next. */
#define TALK_MAGIC "\0weft station\n"
#define TALK_MAGIC_BYTES 15u
bool talk_begun(struct talk *t);

#endif
