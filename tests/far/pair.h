/* pair.h - a port in each of two processes that talk with each other, of every kind there is. */
#ifndef PAIR_H
#define PAIR_H
#include "far.h"

enum { PAIR_THREAD, PAIR_WORLD, PAIR_OPENED, PAIR_NUMBER, PAIR_TEXT, PAIR_OWNED, PAIR_KINDS };

struct pair {
	struct weft_port *port;         /* mine; NULL: my own */
	weft_id peer;                   /* the other's, as address and as source */
	int kind;
};

/* [ranks 0 and 1, at the same time] */
static inline struct pair pair_open(int kind)
{
	static unsigned texts;
	uint32_t other = 1 - far_rank;
	struct pair p = { .peer = far_process(other), .kind = kind };
	struct weft_port_opts opts = { .size = sizeof(opts) };
	char text[32];

	switch (kind) {
	case PAIR_THREAD:
		p.peer = far_id(other);
		break;
	case PAIR_WORLD:
		p.port = weft_port_world();
		break;
	case PAIR_OPENED:
		MUST_OK(weft_port_open(&opts, &p.port));
		far_tell(FAR_WORDS - 1 - (int)far_rank, port_id(p.port));
		far_meet();
		p.peer = far_told(FAR_WORDS - 1 - (int)other);
		break;
	case PAIR_TEXT:
		snprintf(text, sizeof(text), "pair %u", ++texts);
		opts.channel = text;
		MUST_OK(weft_port_open(&opts, &p.port));
		break;
	default:
		if (far_rank == 0)
			far_tell(FAR_WORDS - 3, weft_ctx_new());
		far_meet();
		opts.context = far_told(FAR_WORDS - 3);
		if (kind == PAIR_OWNED) {
			opts.flags = WEFT_PORT_OWNED;
			p.peer = far_id(other);
		}
		MUST_OK(weft_port_open(&opts, &p.port));
	}
	far_meet();
	return p;
}

/* [both] When both are done with it. */
static inline void pair_close(struct pair *p)
{
	far_meet();
	if (p->kind != PAIR_THREAD && p->kind != PAIR_WORLD)
		CHECK_OK(weft_port_close(p->port, SOON));
	far_meet();
}

/* Both directions: first 0 sends to 1, then 1 to 0. */
#define EACH_WAY(sends) for (uint32_t way_ = 0, sends = far_rank == 0; way_ < 2; way_++, sends = !sends, far_meet())
#define EACH_KIND(kind) for (int kind = 0; kind < PAIR_KINDS; kind++)
/* All buffers that the pool has left, of every class, each naming the next: nothing more is to be had until they are put. */
static inline struct weft_buf *pool_emptied(void)
{
	struct weft_buf *all = NULL, *b;

	for (size_t len = 1 << 30; len >= 256; len /= 2)
		while (weft_buf_get(len, 0, &b) == 0) {
			memcpy(b->data, &all, sizeof(all));
			all = b;
		}
	return all;
}

static inline void pool_filled(struct weft_buf *all)
{
	for (struct weft_buf *b; (b = all);) {
		memcpy(&all, b->data, sizeof(all));
		CHECK_OK(weft_buf_put(b));
	}
}

#endif
