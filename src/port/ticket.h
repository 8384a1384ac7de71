/* ticket.h - what a sender and a receiver in different processes share of an announced message.
 *
 * A ticket lies in the sender's memory. Its word decides between match and cancel, by CAS:
 *
 *     OPEN --receiver--> TAKEN --receiver--> DONE or REFUSED(err)
 *       |                  \--receiver--> PIPED --receiver--> DONE or REFUSED(err)
 *       |--sender--> CANCELLED
 *       \--receiver--> REFUSED(err)
 *
 * A message's bytes come through a pipe: 16 chunks of 16 KiB that the sender fills and the receiver empties, while both are at it. For the whole
 * of a pipe's life its chunks are numbered on, so a chunk of an earlier message never looks new. A sender may fill a pipe before anybody has taken
 * the message. A buffer is handed over (a flight) when the message was taken.
 *
 * A message that lies in memory of its sender which others can map (in a buffer: weft_buf_get, MPI_Alloc_mem) stays there. The ticket says where from
 * the beginning, and who has taken the message copies it from there, once, without its sender's help. That one may be stopped or killed meanwhile: the
 * memory is there as long as somebody maps it. If the receiver cannot map it the word says PIPED, and the bytes come as those of any other memory.
 *
 * A third process that writes where it should not may change any of these words. Each end knows what it has said, and says it again now and then while it waits (insist,
 * in push.c and fetch.c): so the two do not wait for each other for ever. Tickets and pipes that a process was told of serve for no other while it lives: it may write there later.
 *
 * Edges   K1  word release/acquire by CAS and store: who has the message, and what was done before. Nobody reads in the sender's own memory before he has
 *             taken the message, and all is read before the word says DONE: from then on, and once it says CANCELLED, the program may write there.
 *         K2  ready release -> acquire: pipe and base, or the flight, or where the memory is, and its bytes.
 *         K3  chunk seq release -> acquire: the chunk's bytes.
 *         K4  read release -> acquire: the receiver is done with the chunk.
 *         F1  between seq, word, read and the names of who sleeps for them (writer, reader).
 */
#ifndef WF_PORT_TICKET_H
#define WF_PORT_TICKET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cpu.h"
#include "mem/share.h"
#include "port/frames.h"

#define WF_TICKETS 16u                  /* made at once, in one buffer */
#define WF_CHUNKS 16u
#define WF_CHUNK ((size_t)16 << 10)

/* Any two differ in four bits or more: one that a stray write has changed a little is none. */
enum { WF_T_OPEN = 0x0f, WF_T_TAKEN = 0x33, WF_T_DONE = 0x55, WF_T_PIPED = 0x69, WF_T_CANCELLED = 0x96, WF_T_REFUSED = 0xaa };
enum { WF_READY_PIPE = 1, WF_READY_FLIGHT, WF_READY_NEVER /* taken, and its sender has no memory to send it */, WF_READY_MEMORY };

/* Where the bytes are, and the number of the message's first chunk. */
struct wf_pipe_place {
	struct wf_f_place head, data;
	uint32_t base;
	uint32_t start;                 /* of a message without a ticket: the byte of the pipe's where it begins */
};

/* Where the message itself is, in a segment of its sender's. */
struct wf_memory_place {
	uint64_t offset;
	uint32_t segment, reserved;
};

struct wf_ticket {
	_Alignas(WF_PAIR) _Atomic uint64_t word;        /* serial << 32 | -err << 8 | WF_T_* */
	/* A line that seldom changes: both look at it often. */
	_Alignas(WF_LINE) _Atomic uint32_t writer, reader;      /* who is to be woken at which end: as face.sleeper */
	_Atomic uint32_t ready;                         /* of what was not said in the announcement */
	union {
		struct wf_pipe_place pipe;
		struct wf_flight flight;
		struct wf_memory_place memory;
	};
};

struct wf_pipe_head {
	_Alignas(WF_PAIR) _Atomic uint32_t read;        /* receiver: chunks emptied so far */
	_Atomic uint32_t reader;                        /* of what has no ticket: who is to be woken */
	struct {
		_Alignas(4 * WF_LINE) _Atomic uint32_t seq;     /* number + 1 when filled; apart, or the reader's core asks for the next ahead */
	} chunk[WF_CHUNKS];
};

/* What @process meant by @at, as wf_f_place_map. */
static inline struct wf_pipe_head *wf_pipe_map(uint32_t process, const struct wf_f_place *at)
{
	return (uint64_t)at->at * 64 % _Alignof(struct wf_pipe_head) ? NULL : wf_f_place_map(process, at, sizeof(struct wf_pipe_head));
}

#define WF_WITH_BUFFER UINT32_MAX               /* a buffer, handed over when the message was taken */
#define WF_WITH_PIPE (UINT32_MAX - 1)           /* the pipe is there already */

enum {
	WF_A_WAITS = 1,                                 /* its sender is to be woken when it is over, or chunks are free */
	WF_A_OFFER = 2,                                 /* out of a backlog, as asked for (seek.h) */
	WF_A_WRITTEN = 4                                /* with a pipe and without a ticket: its sender is done with it (train.h) */
};
#define WF_WRITTEN_MOST ((size_t)128 << 10)             /* bytes of such a one */

/* What a cell of kind WF_FAR carries, before the payload if that is short. */
struct wf_announcement {
	struct wf_f_place ticket;
	uint32_t serial, with;                          /* with: bytes of payload in the cell, all or none; or WF_WITH_* */
	uint64_t len;
	uint32_t waits, reserved;                       /* WF_A_* */
};                                                      /* behind it: the payload; a struct wf_pipe_place; or, of an offer, what was asked for */

/* The chunks of a message that has no ticket: its bytes lie one after another, behind those of the one before or at the pipe's beginning, and each piece has a chunk's seq. Its receiver is there
 * soon and follows closely, so they are of 8 KiB (with 4 he looks at a seq before it is written, which delays that; with 16 he waits for the first), the first a little shorter.
 * Which piece byte @at is in, how many bytes one has that begins at @at, and how many pieces a message has. */
#define WF_PIECE ((size_t)8 << 10)

static inline uint32_t wf_piece_number(size_t at)
{
	size_t i = (at + WF_PIECE / 4) / WF_PIECE;

	return i < WF_CHUNKS ? (uint32_t)i : WF_CHUNKS - 1;
}

static inline size_t wf_piece_bytes(size_t at)
{
	uint32_t i = wf_piece_number(at);

	return (i < WF_CHUNKS - 1 ? (i + 1) * WF_PIECE - WF_PIECE / 4 : WF_WRITTEN_MOST) - at;
}

static inline uint32_t wf_pieces_of(size_t len)
{
	return wf_piece_number(len - 1) + 1;
}

static inline uint64_t wf_ticket_word(uint32_t serial, uint32_t state, int err)
{
	return (uint64_t)serial << 32 | (uint64_t)(uint32_t)-err << 8 | state;
}

static inline bool wf_ticket_state_is(uint32_t state)
{
	return state == WF_T_OPEN || state == WF_T_TAKEN || state == WF_T_DONE || state == WF_T_PIPED || state == WF_T_CANCELLED ||
	       state == WF_T_REFUSED;
}

/* ticket.c: [wf_user_lock] One for @process that is OPEN, @writer to be woken by it; NULL: no memory. And back, whatever its word says. */
struct wf_ticket *wf_ticket_get_locked(uint32_t process, uint32_t writer, uint32_t *ret_serial);
void wf_ticket_put_locked(uint32_t process, struct wf_ticket *t, uint32_t serial);
void wf_tickets_dead(uint32_t process);         /* [no lock] nobody there writes any more: its tickets serve for others */

#endif
