/* frames.h - what processes of one host say to each other beside the messages (net/local/peer.h carries it). A -> B: sender to reader.
 *
 * A frame that waits to be written says what it says once, however often it is said (net/local/kept.h; the rules are in host.c):
 *
 *     RING SHUT BELL                one for each way of ours, or face that ways lead to
 *     ATTACHED REFUSED CLOSED GONE  one for each way of theirs: of numbers below WF_WAYS_MOST, one inway each
 *     ROOM SEEK                     one for each way of theirs; SEEK one for each slot of it (seek.c)
 *     ENDED                         64; from then on LOOK, one
 *     LOST MISSED                   counts are added up, by whose message it was; 4096 of each, then a peer that reads nothing is told no more
 */
#ifndef WF_PORT_FRAMES_H
#define WF_PORT_FRAMES_H

#include "mem/segment.h"
#include "net/local/peer.h"
#include "weft/id.h"

enum wf_frame_kind {
	WF_F_RING = 1,          /* A -> B  a ring for a port of yours                   struct wf_f_ring */
	WF_F_ATTACHED,          /* B -> A  it is read; also when the port changes       struct wf_f_attached */
	WF_F_REFUSED,           /* B -> A  nobody there: err                            struct wf_f_way */
	WF_F_CLOSED,            /* B -> A  the port closes                              struct wf_f_way */
	WF_F_SHUT,              /* A -> B  nothing comes after that position            struct wf_f_way */
	WF_F_GONE,              /* B -> A  its memory is yours again                    struct wf_f_way */
	WF_F_ROOM,              /* B -> A  there is room: write                         struct wf_f_way */
	WF_F_BELL,              /* A -> B  something is at the port of that face        struct wf_f_word */
	WF_F_ENDED,             /* an id of mine, watched by somebody, has ended        struct wf_f_word */
	WF_F_LOST,              /* B -> A  a done message was not received              struct wf_f_lost */
	WF_F_MISSED,            /* B -> A  READY sends of that id found no receive      struct wf_f_missed */
	WF_F_SEEK,              /* B -> A  I look for this in your backlog              struct wf_f_seek */
	WF_F_LOOK,              /* more ids of mine have ended than ENDED names: look   struct wf_f_word, 0 */
};

struct wf_f_place {
	uint32_t segment, at;   /* at: in units of 64 bytes */
};

/* Where @mem, of this process's pool, is for others. */
static inline struct wf_f_place wf_f_place_of(const void *mem)
{
	struct wf_place p = { 0 };

	wf_place_of(mem, &p);
	return (struct wf_f_place){ .segment = p.segment, .at = (uint32_t)(p.offset / 64) };
}

/* What @process meant by @at, any numbers at all; NULL: nothing of its. */
static inline void *wf_f_place_map(uint32_t process, const struct wf_f_place *at, size_t len)
{
	struct wf_place p = { .process = process, .segment = at->segment, .offset = (uint64_t)at->at * 64 };

	return p.offset % WF_PAIR ? NULL : wf_place_map(&p, len);       /* what lies elsewhere is none of ours */
}

struct wf_f_ring {
	uint32_t key, who;
	weft_id id;
	uint64_t context;
	struct wf_f_place box, cells;
	uint64_t proto;         /* hash of the name; 0: native */
	uint32_t head_len, reserved;
};

struct wf_f_attached {
	uint32_t key, who, face, reserved;
	uint64_t gate;
};

struct wf_f_way {
	uint32_t key, who, pos;
	int32_t err;
};

struct wf_f_word {
	uint64_t word;
};

struct wf_f_lost {
	weft_id src, by;
	uint64_t context, len;
	uint64_t times;         /* so many of them */
};

struct wf_f_missed {
	weft_id src;
	uint64_t times;
};

struct wf_f_seek {
	uint32_t key, who;
	uint32_t slot, reserved;        /* a later one of the same slot may come in its place */
	unsigned char want[32];
};

#endif
