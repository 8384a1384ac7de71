/* coll_crowd.c - collectives of members that are all on one host and more than its cores.
 *
 * There a message costs little and waiting much: who waits gives its core to another and comes back when that one waits in
 * turn. So everybody waits once: all send to one, which tells all. Larger blocks travel in buffers: to the one they are handed
 * over, so that it computes where they are; from it one buffer is lent to all, and each copies it out.
 *
 * Measured with 8 ranks on 2 cores, four held to each (by themselves they need not lie so: coll_even.c), in us, first what other
 * members of one host do: barrier 29, 20; allreduce of 8 B 35, 20, of 64 KiB 374, 115, of 1 MiB 2077, 1273; bcast of 64 KiB 153, 11, of
 * 1 MiB 2719, 183; allgather of 4 KiB 73, 34; alltoall of 8 B 35, 25; scan of 8 B 37, 22.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll.h"

#define BUF_FROM 8192                   /* bytes from which on a buffer is handed over: what is shorter goes through a mailbox at once */
#define PART_MAX ((MPI_Count)512 << 10) /* bytes of one buffer: while one is copied out, the next is made */

static int cores;

/* Members on one host must answer the same: what the launcher says, as each may be bound to other cores. */
__attribute__((constructor)) static void cores_count(void)
{
	const char *told = getenv("WEFT_CORES");

	cores = told ? atoi(told) : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

bool wm_crowded(const struct MPI_ABI_Comm *comm)
{
	return comm->here && comm->size > cores;
}

/* What one receives from all the others: posted ahead, taken in the order of ranks from its own on. */
struct inflow {
	struct wm_pending p[WM_WINDOW];
	struct wm_block all;            /* room, for each of them */
	MPI_Count each;                 /* for so many elements */
	int posted;
};

/* The block of the @i-th after me, which is there now. */
static struct wm_block inflow_next(struct wm_coll *c, struct inflow *f, int i)
{
	const int rank = c->comm->rank, size = c->comm->size;

	for (; f->posted < size - 1 && f->posted < i - 1 + WM_WINDOW; f->posted++)
		wm_coll_recv_post(c, &f->p[f->posted % WM_WINDOW], (rank + f->posted + 1) % size,
				  wm_block_part(f->all, f->posted * f->each, f->each));
	wm_coll_wait(c, &f->p[(i - 1) % WM_WINDOW]);
	return wm_block_part(f->all, (i - 1) * f->each, f->each);
}

void wm_crowd_barrier(struct wm_coll *c)
{
	struct inflow f = { .each = 1 };
	wm_token token = 0, where;
	void *memory;
	int who;

	if (c->comm->rank) {
		where = wm_even_here();
		wm_coll_send(c, 0, wm_token_block(&where));
		wm_coll_recv(c, 0, wm_token_block(&token));
		if (WM_UNLIKELY(token && !c->err))
			wm_even_go(token);
		return;
	}
	f.all = (struct wm_block){ NULL, c->comm->size - 1, wm_type(MPI_UINT64_T) };
	f.all.buf = wm_coll_scratch(c, f.all.count, f.all.type, &memory);
	for (int i = 1; i < c->comm->size; i++)
		inflow_next(c, &f, i);
	who = c->err ? -1 : wm_even_look(f.all.buf, c->comm->size - 1, &where);
	for (int i = 1; i < c->comm->size; i++)
		wm_coll_send(c, i, wm_token_block(i - 1 == who ? &where : &token));
	free(memory);
}

/* Elements of a block whose bytes fill one buffer. */
static MPI_Count part_of(struct wm_block b)
{
	MPI_Count n = b.type->size ? PART_MAX / b.type->size : b.count;

	return n < 1 ? 1 : n;
}

/* From one to all the others: a buffer that holds the block, or a copy of it that is made here if it is large. */
static void spread(struct wm_coll *c, struct weft_buf *buf WEFT_TAKES, struct wm_block b)
{
	if (!buf && wm_block_len(b) >= BUF_FROM)
		buf = wm_coll_buf(c, b);
	for (int i = 1; i < c->comm->size; i++)
		wm_coll_lend(c, (c->comm->rank + i) % c->comm->size, buf, b);
	weft_buf_put(buf);
}

/* Bytes, as members may see the same ones as elements of differing types. */
void wm_crowd_bcast(struct wm_coll *c, int root, struct wm_block b)
{
	const size_t len = wm_block_len(b);
	void *packed = NULL;
	char *bytes = b.type->plain ? b.buf : wm_coll_scratch(c, (MPI_Count)len, wm_byte, &packed);

	if (c->comm->rank == root && packed)
		wm_coll_copy(c, wm_bytes(bytes, len), b);
	for (size_t at = 0, part; at < len; at += part) {
		part = len - at < (size_t)PART_MAX ? len - at : (size_t)PART_MAX;
		if (c->comm->rank == root)
			spread(c, NULL, wm_bytes(bytes + at, part));
		else
			wm_coll_recv(c, root, wm_bytes(bytes + at, part));
	}
	if (c->comm->rank != root && packed)
		wm_coll_copy(c, b, wm_bytes(bytes, len));
	free(packed);
}

/* What one makes of everybody's elements: where it is, and what that lies in, to be let go. */
struct result {
	struct wm_block b;
	struct weft_buf *buf;
	void *memory;
};

static void result_put(struct result *r)
{
	weft_buf_put(r->buf);
	free(r->memory);
}

/* Each one's elements become the result so far: nothing is copied, and lower ranks are the left operand if mine is the lowest. */
static struct result collect_bufs(struct wm_coll *c, struct MPI_ABI_Op *op, struct wm_block mine)
{
	struct result r = { .b = mine };
	struct weft_buf *buf;

	for (int i = 1; i < c->comm->size; i++) {
		buf = wm_coll_take(c, (c->comm->rank + i) % c->comm->size, wm_block_len(mine));
		if (!buf)
			continue;
		wm_op_apply(op, r.b.buf, buf->data, mine.count, wm_type_handle(mine.type));
		weft_buf_put(r.buf);
		r.buf = buf;
		r.b.buf = buf->data;
	}
	return r;
}

/* The same in memory, for elements that are few or have holes. */
static struct result collect_blocks(struct wm_coll *c, struct MPI_ABI_Op *op, struct wm_block mine)
{
	struct inflow f = { .each = mine.count, .all = { NULL, mine.count * (c->comm->size - 1), mine.type } };
	struct result r = { .b = mine };

	f.all.buf = wm_coll_scratch(c, f.all.count, f.all.type, &r.memory);
	for (int i = 1; i < c->comm->size; i++) {
		struct wm_block got = inflow_next(c, &f, i);

		if (c->err)
			continue;
		wm_op_apply(op, r.b.buf, got.buf, got.count, wm_type_handle(got.type));
		r.b = got;
	}
	return r;
}

static struct result collect(struct wm_coll *c, struct MPI_ABI_Op *op, struct wm_block mine)
{
	return mine.type->plain && wm_block_len(mine) >= BUF_FROM ? collect_bufs(c, op, mine) : collect_blocks(c, op, mine);
}

/* Mine to the one that collects. */
static void contribute(struct wm_coll *c, int to, struct wm_block mine)
{
	wm_coll_give(c, to, wm_block_len(mine) >= BUF_FROM ? wm_coll_buf(c, mine) : NULL, mine);
}

/* Who collects is the root, but rank 0 where the operation does not commute. */
void wm_crowd_reduce(struct wm_coll *c, int root, struct MPI_ABI_Op *op, struct wm_block mine, struct wm_block out)
{
	const int rank = c->comm->rank, top = op->commutative ? root : 0;

	for (MPI_Count at = 0, n; at < out.count; at += n) {
		n = out.count - at < part_of(out) ? out.count - at : part_of(out);
		if (rank == top) {
			struct result r = collect(c, op, wm_block_part(mine, at, n));

			if (rank == root)
				wm_coll_copy(c, wm_block_part(out, at, n), r.b);
			else
				wm_coll_lend(c, root, r.buf, r.b);
			result_put(&r);
			continue;
		}
		contribute(c, top, wm_block_part(mine, at, n));
		if (rank == root)
			wm_coll_recv(c, top, wm_block_part(out, at, n));
	}
}

void wm_crowd_allreduce(struct wm_coll *c, struct MPI_ABI_Op *op, struct wm_block mine, struct wm_block out)
{
	for (MPI_Count at = 0, n; at < out.count; at += n) {
		struct wm_block to = wm_block_part(out, at, n = out.count - at < part_of(out) ? out.count - at : part_of(out));
		struct result r;

		if (c->comm->rank) {
			contribute(c, 0, wm_block_part(mine, at, n));
			wm_coll_recv(c, 0, to);
			continue;
		}
		r = collect(c, op, wm_block_part(mine, at, n));
		wm_coll_copy(c, to, r.b);
		spread(c, r.buf, r.b);
		r.buf = NULL;
		result_put(&r);
	}
}

/* Rank 0 tells everybody what those before it come to, with its own or without. */
void wm_crowd_scan(struct wm_coll *c, struct MPI_ABI_Op *op, struct wm_block mine, struct wm_block out, bool with_own)
{
	struct inflow f = { .each = mine.count, .all = { NULL, mine.count * (c->comm->size - 1), mine.type } };
	struct wm_block run = mine;
	void *memory;

	if (c->comm->rank) {
		wm_coll_send(c, 0, mine);
		wm_coll_recv(c, 0, out);
		return;
	}
	f.all.buf = wm_coll_scratch(c, f.all.count, f.all.type, &memory);
	for (int i = 1; i < c->comm->size; i++) {
		struct wm_block got = inflow_next(c, &f, i);

		if (!with_own)
			wm_coll_send(c, i, run);
		if (!c->err)
			wm_op_apply(op, run.buf, got.buf, got.count, wm_type_handle(got.type));
		run = got;
		if (with_own)
			wm_coll_send(c, i, run);
	}
	if (with_own)
		wm_coll_copy(c, out, mine);
	free(memory);
}

/* Blocks one after the other, for one message. */
static void pack(struct wm_coll *c, char *bytes, const struct wm_blocks *all, bool in)
{
	for (int i = 0; i < c->comm->size; i++) {
		struct wm_block b = wm_block_of(all, i), packed = wm_bytes(bytes, wm_block_len(b));

		if (in)
			wm_coll_copy(c, packed, b);
		else if (i != c->comm->rank)
			wm_coll_copy(c, b, packed);
		bytes += wm_block_len(b);
	}
}

/* Rank 0 gathers what it then gives to all. */
void wm_crowd_allgather(struct wm_coll *c, const struct wm_blocks *all)
{
	const int rank = c->comm->rank, size = c->comm->size;
	size_t len = 0;
	void *memory;
	char *bytes;

	if (rank)
		contribute(c, 0, wm_block_of(all, rank));
	else
		wm_gather(c, 0, (struct wm_block){ .buf = MPI_IN_PLACE }, all);
	if (!all->vary) {
		wm_crowd_bcast(c, 0, (struct wm_block){ all->buf, all->count * size, all->type });
		return;
	}
	for (int i = 0; i < size; i++)
		len += wm_block_len(wm_block_of(all, i));
	bytes = wm_coll_scratch(c, (MPI_Count)len, wm_byte, &memory);
	if (rank == 0)
		pack(c, bytes, all, true);
	wm_crowd_bcast(c, 0, wm_bytes(bytes, len));
	if (rank)
		pack(c, bytes, all, false);
	free(memory);
}

/* Rank 0 has the rows of all, its own first, and gives each its column; its own is then at @column. */
static void transpose(struct wm_coll *c, char *rows, char *column, size_t len)
{
	const int size = c->comm->size;
	const size_t row = len * (size_t)size;
	struct inflow f = { .each = (MPI_Count)row, .all = wm_bytes(rows + row, row * (size_t)(size - 1)) };

	for (int i = 1; i < size; i++)
		inflow_next(c, &f, i);
	for (int to = size - 1; to >= 0; to--) {
		for (int i = 0; i < size && !c->err; i++)
			memcpy(column + len * (size_t)i, rows + row * (size_t)i + len * (size_t)to, len);
		if (to)
			wm_coll_send(c, to, wm_bytes(column, row));
	}
}

/* Small equal blocks. */
void wm_crowd_alltoall(struct wm_coll *c, const struct wm_blocks *out, const struct wm_blocks *in)
{
	const struct wm_blocks *from = out->buf == MPI_IN_PLACE ? in : out;
	const int rank = c->comm->rank, size = c->comm->size;
	const size_t len = wm_block_len(wm_block_of(in, 0)), row = len * (size_t)size;
	void *memory;
	char *rows = wm_coll_scratch(c, (MPI_Count)(rank ? row : row * (size_t)(size + 1)), wm_byte, &memory);
	char *column = rank ? rows : rows + row * (size_t)size;

	for (int i = 0; i < size; i++)
		wm_coll_copy(c, wm_bytes(rows + len * (size_t)i, len), wm_block_of(from, i));
	if (rank) {
		wm_coll_send(c, 0, wm_bytes(rows, row));
		wm_coll_recv(c, 0, wm_bytes(column, row));
	} else {
		transpose(c, rows, column, len);
	}
	for (int i = 0; i < size; i++)
		wm_coll_copy(c, wm_block_of(in, i), wm_bytes(column + len * (size_t)i, len));
	free(memory);
}
