/* script.h - what the sweep (test_sweep.c) and the processes it sweeps (actor.c) say to each other over a socket. */
#ifndef SWEEP_SCRIPT_H
#define SWEEP_SCRIPT_H

#include <stdint.h>

#define SWEEP_ADDRESS "WEFT_SWEEP"      /* environment: the name of the socket in the abstract space */

enum { FIRST, SECOND, VICTIM, ACTORS }; /* ranks */

/* The operation that is swept, at the victim; FIRST is its other end, SECOND where a buffer is forwarded to. "listener" is what
 * weft's own thread does when the first message of another process comes, up to a callback. "shared": large memory that lies in a buffer, and is read
 * there by who receives it. "large" goes by a train, "announced" is as large and has a ticket. */
#define SWEEP_ACTS(ACT)                                                                            \
	ACT(small_send) ACT(medium_send) ACT(large_send) ACT(sync_send) ACT(buffer_send)           \
	ACT(forward) ACT(put) ACT(lend) ACT(put_lent) ACT(full_mailbox) ACT(cancel)                \
	ACT(small_receive) ACT(medium_receive) ACT(large_receive) ACT(buffer_receive)              \
	ACT(sleeping_receive) ACT(question) ACT(port) ACT(thread) ACT(first_send)                  \
	ACT(first_large_send) ACT(first_buffer_send) ACT(first_buffer) ACT(listener) ACT(init)      \
	ACT(fini) ACT(shared_send) ACT(first_shared_send) ACT(shared_receive) ACT(shared_cancel)    \
	ACT(announced_send) ACT(announced_receive)

enum sweep_act {
#define ACT(name) ACT_##name,
	SWEEP_ACTS(ACT)
#undef ACT
	ACTS
};

enum sweep_order {
	DO_JOIN,                /* weft_init */
	DO_TALK,                /* survivors: messages of all kinds to each other and back */
	DO_COUNT,               /* survivors: remember how many buffers are in use */
	DO_SET,                 /* prepare the act */
	DO_ACT,                 /* victim: the act, between two marks; of the listener: what remains of it */
	DO_END,                 /* survivors: the act is over, and what it was to do is done */
	DO_BURY,                /* survivors: the victim is dead */
	DO_LEAVE                /* weft_fini, and exit */
};

struct order {
	uint32_t what, act, round, zero;
	uint64_t id[ACTORS];    /* the threads that play */
};

struct answer {
	uint32_t rank;
	int32_t pid;
	int32_t line;           /* 0: all is well; else where it was not, and what came */
	int32_t result;
	char file[24];
	uint64_t id;
	uint64_t mark, text, text_end;  /* said with the first */
	char said[128];
};

#endif
