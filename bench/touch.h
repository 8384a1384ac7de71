/* touch.h - memory that changes hands: the giver writes and the taker reads the first line of
 * every page of it.
 *
 * Two links do the same to the same memory, so that their difference is what the carrier costs:
 *   raw touch     a raw ring tells the taker that it is its turn
 *   weft buffer   the memory is a weft buffer, and the buffer is handed over
 * Small ones (below a page) are touched in their first line only.
 */
#ifndef BENCH_TOUCH_H
#define BENCH_TOUCH_H
#include "raw_ring.h"
#include "weft_link.h"

struct touch { /* one side's view; both count alike */
	size_t n, page;
	uint64_t turn; /* hand-overs so far */
};

static inline struct touch touch_of(size_t n)
{
	return (struct touch){ .n = n, .page = (size_t)sysconf(_SC_PAGESIZE) };
}

/* A new number in each page, so that a line that did not arrive is noticed. */
static inline void touch_write(struct touch *t, void *mem)
{
	uint64_t number = ++t->turn;

	for (size_t at = 0; at < t->n; at += t->page)
		*(volatile uint64_t *)(void *)((char *)mem + at) = number;
}

static inline void touch_read(struct touch *t, void *mem)
{
	uint64_t number = ++t->turn, wrong = 0;

	for (size_t at = 0; at < t->n; at += t->page)
		wrong |= *(volatile uint64_t *)(void *)((char *)mem + at) ^ number;
	if (wrong)
		die("a page of %zu bytes arrived with old contents", t->n);
}

/* ---- raw touch ---- */

struct touch_link {
	struct ring_link ring;
	struct touch touch;
	void *mem; /* seen by both sides */
};

static inline void touch_link_send(struct link *l, void *mem, size_t n)
{
	struct touch_link *k = (struct touch_link *)l;

	touch_write(&k->touch, k->mem);
	ring_send(l, mem, n);
}

static inline void touch_link_recv(struct link *l, void *mem, size_t n)
{
	struct touch_link *k = (struct touch_link *)l;

	ring_recv(l, mem, n);
	touch_read(&k->touch, k->mem);
}

/* One side over a fresh pair of rings; touch_set says which memory. */
static inline struct touch_link touch_link(struct ring *two, int side)
{
	struct touch_link k = { .ring = ring_link(two, side) };

	k.ring.l.send = touch_link_send;
	k.ring.l.recv = touch_link_recv;
	return k;
}

/* The plan goes over plain: two of its numbers in a row would touch the pages twice in one turn. */
static inline void touch_set(struct touch_link *k, struct link *plain, void *mem, size_t n)
{
	k->ring.l.plan = plain;
	k->mem = mem;
	k->touch = touch_of(n);
}

/* Half a hand-over by word of a raw ring; the pages are checked with every turn. */
static inline void touch_sample(struct touch_link *k, struct link *plain, int side, void *mem, size_t n,
				const char *series)
{
	uint64_t word = 0;
	double v;

	touch_set(k, plain, mem, n);
	v = measure_lat(&k->ring.l, side, &word, sizeof(word));
	if (side == 0)
		sample(series, "lat", n, v);
}

/* ---- weft buffers ---- */

struct buf_link {
	struct weft_link w; /* w.buf: set while this side has the buffer */
	struct touch touch;
};

static inline void buf_link_send(struct link *l, void *mem, size_t n)
{
	struct buf_link *k = (struct buf_link *)l;

	(void)mem;
	(void)n;
	touch_write(&k->touch, k->w.buf->data);
	must(weft_buf_send(NULL, k->w.peer, LINK_TAG, k->w.buf, WEFT_FOREVER), "weft_buf_send");
	k->w.buf = NULL;
}

static inline void buf_link_recv(struct link *l, void *mem, size_t n)
{
	struct buf_link *k = (struct buf_link *)l;

	(void)mem;
	(void)n;
	must(weft_buf_recv(NULL, k->w.peer, LINK_TAG, WEFT_FOREVER, &k->w.buf, NULL), "weft_buf_recv");
	if (k->w.buf->len != k->touch.n)
		die("a buffer of %zu bytes arrived with %zu", k->touch.n, k->w.buf->len);
	touch_read(&k->touch, k->w.buf->data);
}

/* Side 0 starts with the buffer, side 1 with NULL. The plan goes over plain, for a number cannot
 * travel in a buffer that is on its way. */
static inline struct buf_link buf_link(struct link *plain, weft_id peer, struct weft_buf *buf, size_t n)
{
	return (struct buf_link){ .w = { .l = { .send = buf_link_send, .recv = buf_link_recv, .plan = plain },
					 .peer = peer,
					 .buf = buf },
				  .touch = touch_of(n) };
}

/* Half a hand-over of the buffer itself. Side 0 has it before and after; side 1's @buf is not looked at. */
static inline void buf_sample(struct weft_link *plain, int side, struct weft_buf **buf, size_t n,
			      const char *series)
{
	struct buf_link k = buf_link(&plain->l, plain->peer, side == 0 ? *buf : NULL, n);
	uint64_t word = 0;
	double v = measure_lat(&k.w.l, side, &word, sizeof(word));

	if (side != 0)
		return;
	sample(series, "lat", n, v);
	*buf = k.w.buf;
}

#endif
