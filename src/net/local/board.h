/* board.h - what a process shows to the others of its host: which ports it has, who of it sleeps, and frames for each of them.
 *
 * A board is segment 0 of its process: a memfd that the others map as a whole and of which only used pages exist.
 *
 *     header   version, numbers of slots and faces; the listener's park word
 *     slots    local number -> face and generation: is there a thread, a process, a port of that id
 *     faces    one line per port (by page, so it outlives incarnations): gate, sleeper, and its thread's park word
 *     control  one page per other process: the ring of frames from this process to that one
 *
 * Everything here is written by its process to be read by others, but for the park words (whoever wakes exchanges them), `watched`, `asked`, and a
 * control ring's head. The process never reads back what it wrote here: it keeps its own truth. So a faulty neighbour can
 * disturb its own view, wake somebody for nothing, and no more.
 *
 * Edges   B1  gate release -> gate acquire: that the port is open, and face.sleeper is its.
 *         B2  slot release -> slot acquire: the face it names.
 *         F1  (fence.h) between publishing to a port and its sleeper's name, across processes by wf_fence_heavy_far.
 */
#ifndef WF_NET_LOCAL_BOARD_H
#define WF_NET_LOCAL_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"
#include "base/park.h"
#include "mem/segment.h"

#define WF_BOARD_MAGIC UINT64_C(0x6472616f62746677)     /* "wftboard" */
#define WF_BOARD_LAYOUT 1u
#define WF_SLOTS (1u << 20)
#define WF_FACES (1u << 20)
#define WF_FRAMES 16u                           /* of a control ring */
#define WF_FRAME_BYTES 112u

#define WF_GATE_OPEN 1u
#define WF_GATE_TIGHT 2u                        /* no budget: announce */

#define WF_SLEEPS_LISTENER UINT32_MAX           /* face.sleeper: by a BELL frame */

struct wf_face {
	_Alignas(WF_LINE) _Atomic uint64_t gate;        /* serial of the opening << 32 | WF_GATE_* */
	_Atomic uint32_t sleeper;                       /* number of his face + 1; 0: nobody */
	struct wf_parker parker;                        /* of the thread whose port this is */
	_Atomic uint32_t watched;                       /* 1: a process wants to be told of its end */
};

struct wf_frame {
	_Alignas(WF_PAIR) _Atomic uint32_t seq;         /* position + 1, as in a mailbox */
	uint32_t what;
	uint64_t reserved;
	unsigned char body[WF_FRAME_BYTES];
};

struct wf_control {                             /* a page of its own */
	_Alignas(4096) _Atomic uint32_t head;           /* the other process writes it */
	struct wf_frame frame[WF_FRAMES];
};

struct wf_board {
	_Atomic uint64_t magic;                         /* set last */
	uint32_t layout, process;
	char version[32];
	uint32_t strong;                                /* its sleepers' fence does not reach others: pass a full one */
	uint64_t roots[8];                              /* private addresses, for who reads this process's memory: state.c */
	_Atomic uint32_t slots, faces;                  /* how many may be looked at */
	_Alignas(WF_PAIR) struct wf_parker bell;        /* the listener's: 1: asleep, write its descriptor */
	_Alignas(WF_PAIR) _Atomic uint64_t asked;       /* who looks from outside may ask for something: the last question (wire/ping.h). Then it is rung */
	_Alignas(4096) _Atomic uint64_t slot[WF_SLOTS]; /* 0: nobody; (face + 1) << 12 | generation */
	_Alignas(4096) struct wf_face face[WF_FACES];
	struct wf_control control[WF_PROCESSES];        /* by number of who reads it */
};

extern struct wf_board *wf_board;               /* this process's own; set at init, stays */
extern int wf_board_fd;                         /* -1: nobody else can map it */

int wf_board_make(void);                        /* -ENOMEM */
void wf_board_blank(void);                      /* [one thread] in a forked child, and after leaving: nobody sees it any more */
void wf_board_name(uint32_t process);           /* joined: all is said, others may look */

/* Room for slots below @slots, faces below @faces, frames to @process. 0 or -ENOMEM. [under a lock of the caller's] */
int wf_board_slots(uint32_t slots);
int wf_board_faces(uint32_t faces);
int wf_board_control(uint32_t process);

/* Another process's board behind @fd, or NULL: not one, or of another make (words said). */
struct wf_board *wf_board_map(int fd, uint32_t process);

/* [any] One whose process is gone: no ports, nobody sleeps. Its memory is given back, its addresses stay. */
void wf_board_bury(struct wf_board *b);

static inline struct wf_face *wf_face_of(struct wf_board *b, uint32_t n)
{
	return n < atomic_load_explicit(&b->faces, memory_order_relaxed) && n < WF_FACES ? &b->face[n] : NULL;
}

/* The number of @face on @b; WF_FACES: it is not there, or there is no board yet. */
static inline uint32_t wf_face_number(const struct wf_board *b, const struct wf_face *face)
{
	uintptr_t at = b ? (uintptr_t)face - (uintptr_t)b->face : UINTPTR_MAX;

	return at < WF_FACES * sizeof(*face) ? (uint32_t)(at / sizeof(*face)) : WF_FACES;
}

#endif
