/* coll_scan.c - MPI_Scan and MPI_Exscan: what the ranks before reduce to, with one's own or without.
 *
 * Pairs at growing distance give each other what the run of ranks they stand for reduces to; one takes into its result what
 * came from lower ranks. A run whose partner is not there ends at the last rank, and nobody above needs it.
 */
#include <stdlib.h>

#include "coll.h"

#define CROWD_TO (64 << 10)     /* bytes up to which one member may do the work of all, where they share cores anyhow */

static void scan(struct wm_coll *c, struct MPI_ABI_Op *op, const void *in, struct wm_block out, bool with_own)
{
	const struct wm_block mine = { in == MPI_IN_PLACE ? out.buf : (void *)(uintptr_t)in, out.count, out.type };
	const MPI_Datatype type = wm_type_handle(out.type);
	const int rank = c->comm->rank, size = c->comm->size;
	struct wm_block run = out, got = out;
	bool begun = with_own;
	void *memory[2];

	if (!out.count)
		return;
	if (wm_crowded(c->comm) && wm_block_len(out) <= CROWD_TO) {
		wm_crowd_scan(c, op, mine, out, with_own);
		return;
	}
	run.buf = wm_coll_scratch(c, out.count, out.type, &memory[0]);
	got.buf = wm_coll_scratch(c, out.count, out.type, &memory[1]);
	wm_coll_copy(c, run, mine);
	if (with_own)
		wm_coll_copy(c, out, run);
	for (int bit = 1; bit < size; bit *= 2) {
		int other = rank ^ bit;

		if (other >= size)
			continue;
		wm_coll_exchange(c, other, run, other, got);
		if (other < rank && !begun)
			wm_coll_copy(c, out, got);
		else if (other < rank && !c->err)
			wm_op_apply(op, got.buf, out.buf, out.count, type);
		begun |= other < rank;
		wm_coll_combine(c, op, &run, &got, other > rank);
	}
	free(memory[0]);
	free(memory[1]);
}

void wm_scan(struct wm_coll *c, struct MPI_ABI_Op *op, const void *in, struct wm_block out)
{
	scan(c, op, in, out, true);
}

void wm_exscan(struct wm_coll *c, struct MPI_ABI_Op *op, const void *in, struct wm_block out)
{
	scan(c, op, in, out, false);
}

int wm_scan_check(const struct MPI_ABI_Comm *m, const struct MPI_ABI_Op *op, const void *in, struct wm_block out, bool with_own)
{
	int r = m->inter ? MPI_ERR_COMM : wm_check_reduce(op, in, out);

	/* Without its own rank 0 has no result: it need not have room for one. */
	if (r == MPI_ERR_BUFFER && !with_own && m->rank == 0 && in != MPI_IN_PLACE)
		r = wm_check_data(in, out.count, out.type);
	return r;
}

static int scan_call(const char *function, const void *in, struct wm_block out, MPI_Op op, MPI_Comm comm, bool with_own)
{
	struct MPI_ABI_Comm *m = wm_comm(comm);
	struct MPI_ABI_Op *o = wm_op(op);
	struct wm_coll c;
	int r;

	if (!m)
		return wm_coll_wrong(NULL, function, MPI_ERR_COMM);
	r = wm_scan_check(m, o, in, out, with_own);
	if (r)
		return wm_coll_wrong(m, function, r);
	c = wm_coll_begin(m);
	(with_own ? wm_scan : wm_exscan)(&c, o, in, out);
	return wm_coll_end(&c, function);
}

int PMPI_Scan_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
	return scan_call(__func__, sendbuf, wm_block(recvbuf, count, datatype), op, comm, true);
}
MPI_DONE(Scan_c);

int PMPI_Exscan_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
	return scan_call(__func__, sendbuf, wm_block(recvbuf, count, datatype), op, comm, false);
}
MPI_DONE(Exscan_c);
