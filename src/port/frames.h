/* frames.h - what processes of one host say to each other beside the messages (net/local/peer.h carries it). A -> B: sender to reader. */
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
	WF_F_MISSED,            /* B -> A  a READY send of that id found no receive     struct wf_f_word */
	WF_F_SEEK,              /* B -> A  I look for this in your backlog              struct wf_f_seek */
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
};

struct wf_f_seek {
	uint32_t key, who;
	unsigned char want[32];
};

#endif
