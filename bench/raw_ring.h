/* raw_ring.h - the fastest known ways to carry bytes between two cores, with no library at all.
 *
 * ring      Two copies through shared memory. Up to 56 B go in one cache line together with their
 *           sequence word; more goes through a pipeline of 32 chunks of 8 KiB.
 * one copy  The receiver copies out of the sender's own memory while the sender waits.
 *
 * Shape   One writer and one reader per ring. Position p (counted from 0) lies in slot p modulo the
 *         number of slots and is complete when its sequence word is p + 1: the lap is in it, so the
 *         reader never writes a slot.
 * Edges   R1  seq, release -> acquire: publishes the bytes of the slot.
 *         R2  cells_taken and chunks_taken, release -> acquire: the slots before it were copied out
 *             and may be written again. For cells it is told every 16th time only.
 *         B1  at, release -> acquire: publishes the sender's memory.
 *         B2  at set back to NULL, release -> acquire: the receiver has read it.
 */
#ifndef BENCH_RAW_RING_H
#define BENCH_RAW_RING_H
#include "measure.h"
#include <stdatomic.h>

#define RING_CELLS 256u
#define RING_CELL_BYTES 56u
#define RING_CHUNKS 32u
#define RING_CHUNK_BYTES 8192u
#define RING_TELL_EVERY 16u

struct ring_cell {
	_Alignas(LINE_BYTES) _Atomic uint32_t seq;
	char bytes[RING_CELL_BYTES];
};

struct ring_chunk {
	_Alignas(LINE_BYTES) _Atomic uint32_t seq;
	_Alignas(LINE_BYTES) char bytes[RING_CHUNK_BYTES];
};

struct ring {
	struct ring_cell cell[RING_CELLS];
	struct ring_chunk chunk[RING_CHUNKS];
	_Alignas(LINE_BYTES) _Atomic uint32_t cells_taken; /* written by the reader */
	_Alignas(LINE_BYTES) _Atomic uint32_t chunks_taken; /* likewise */
};

struct ring_link { /* private to one side: keep it on that thread's own stack */
	struct link l;
	struct ring *out, *in;
	uint32_t out_cells, out_cells_free_to; /* written; may be written up to here */
	uint32_t out_chunks, out_chunks_free_to;
	uint32_t in_cells, in_chunks;
};

static inline void ring_send_small(struct ring_link *k, const void *mem, size_t n)
{
	struct ring_cell *c = &k->out->cell[k->out_cells % RING_CELLS];

	while (k->out_cells == k->out_cells_free_to)
		k->out_cells_free_to = RING_CELLS + atomic_load_explicit(&k->out->cells_taken,
									 memory_order_acquire); /* R2 */
	memcpy(c->bytes, mem, n);
	atomic_store_explicit(&c->seq, ++k->out_cells, memory_order_release); /* R1 */
}

static inline void ring_recv_small(struct ring_link *k, void *mem, size_t n)
{
	struct ring_cell *c = &k->in->cell[k->in_cells % RING_CELLS];
	uint32_t complete = k->in_cells + 1;

	while (atomic_load_explicit(&c->seq, memory_order_acquire) != complete) /* R1 */
		cpu_relax();
	memcpy(mem, c->bytes, n);
	k->in_cells = complete;
	if (complete % RING_TELL_EVERY == 0)
		atomic_store_explicit(&k->in->cells_taken, complete, memory_order_release); /* R2 */
}

static inline void ring_send(struct link *l, void *mem, size_t n)
{
	struct ring_link *k = (struct ring_link *)l;
	const char *from = mem;

	if (n <= RING_CELL_BYTES) {
		ring_send_small(k, mem, n);
		return;
	}
	while (n) {
		struct ring_chunk *c = &k->out->chunk[k->out_chunks % RING_CHUNKS];
		size_t part = n < RING_CHUNK_BYTES ? n : RING_CHUNK_BYTES;

		while (k->out_chunks == k->out_chunks_free_to)
			k->out_chunks_free_to =
				RING_CHUNKS +
				atomic_load_explicit(&k->out->chunks_taken, memory_order_acquire); /* R2 */
		memcpy(c->bytes, from, part);
		atomic_store_explicit(&c->seq, ++k->out_chunks, memory_order_release); /* R1 */
		from += part;
		n -= part;
	}
}

static inline void ring_recv(struct link *l, void *mem, size_t n)
{
	struct ring_link *k = (struct ring_link *)l;
	char *to = mem;

	if (n <= RING_CELL_BYTES) {
		ring_recv_small(k, mem, n);
		return;
	}
	while (n) {
		struct ring_chunk *c = &k->in->chunk[k->in_chunks % RING_CHUNKS];
		size_t part = n < RING_CHUNK_BYTES ? n : RING_CHUNK_BYTES;
		uint32_t complete = k->in_chunks + 1;

		while (atomic_load_explicit(&c->seq, memory_order_acquire) != complete) /* R1 */
			cpu_relax();
		memcpy(to, c->bytes, part);
		k->in_chunks = complete;
		atomic_store_explicit(&k->in->chunks_taken, complete, memory_order_release); /* R2 */
		to += part;
		n -= part;
	}
}

static inline struct ring *ring_pair_new(void)
{
	return shared_memory(2 * sizeof(struct ring));
}

static inline void ring_pair_free(struct ring *two)
{
	munmap(two, 2 * sizeof(*two));
}

/* One side of a fresh pair of rings. */
static inline struct ring_link ring_link(struct ring *two, int side)
{
	return (struct ring_link){ .l = { .send = ring_send, .recv = ring_recv },
				   .out = &two[side],
				   .in = &two[!side],
				   .out_cells_free_to = RING_CELLS,
				   .out_chunks_free_to = RING_CHUNKS };
}

/* ---- one copy ---- */

struct box {
	_Alignas(LINE_BYTES) _Atomic(void *) at; /* the sender's memory; NULL: nothing there */
};

struct box_link {
	struct link l;
	struct box *out, *in;
};

static inline void box_send(struct link *l, void *mem, size_t n)
{
	struct box_link *k = (struct box_link *)l;

	(void)n;
	atomic_store_explicit(&k->out->at, mem, memory_order_release); /* B1 */
	while (atomic_load_explicit(&k->out->at, memory_order_acquire)) /* B2 */
		cpu_relax();
}

static inline void box_recv(struct link *l, void *mem, size_t n)
{
	struct box_link *k = (struct box_link *)l;
	void *from;

	while (!(from = atomic_load_explicit(&k->in->at, memory_order_acquire))) /* B1 */
		cpu_relax();
	memcpy(mem, from, n);
	atomic_store_explicit(&k->in->at, NULL, memory_order_release); /* B2 */
}

static inline struct box_link box_link(struct box two[2], int side)
{
	return (struct box_link){ { .send = box_send, .recv = box_recv }, &two[side], &two[!side] };
}

#endif
