/* coll_alltoall.c - MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw. */
#include <stdlib.h>

#include "coll.h"

#define ALLTOALL_WINDOW 16      /* steps that one member has under way at most */
#define CROWD_TO 1024           /* bytes of all a member's blocks up to which a crowd's messages shall be few */
/* Bytes of a block that goes in a buffer on one host, so that the two need not meet. 64 KiB, 8 ranks on 2 cores: 281 us, without 472. */
#define BUF_FROM (16 << 10)

static void send_step(struct wm_coll *c, struct wm_pending *p, int target, struct wm_block b)
{
	struct weft_buf *buf = c->comm->here && wm_block_len(b) >= BUF_FROM ? wm_coll_buf(c, b) : NULL;

	if (buf)
		wm_coll_give(c, target, buf, b);
	else
		wm_coll_send_post(c, p, target, b);
}

/* In step i everybody sends to the i-th after it and receives from the i-th before it, counted in the larger group; a few steps
 * are under way at once. Whoever is furthest behind waits only for what the others have posted long ago. Nothing is sent
 * where there is nothing to send: both sides know. */
static void pairwise(struct wm_coll *c, const struct wm_blocks *out, const struct wm_blocks *in)
{
	const struct MPI_ABI_Comm *comm = c->comm;
	const int steps = comm->peers > comm->size ? comm->peers : comm->size;
	struct wm_pending from[ALLTOALL_WINDOW], to[ALLTOALL_WINDOW];

	for (int i = 0; i < ALLTOALL_WINDOW; i++)
		from[i].req = to[i].req = NULL;
	for (int i = comm->inter ? 0 : 1; i < steps; i++) {
		int source = (comm->rank - i + steps) % steps, target = (comm->rank + i) % steps;
		int slot = i % ALLTOALL_WINDOW;

		wm_coll_wait(c, &from[slot]);
		wm_coll_wait(c, &to[slot]);
		if (source < comm->peers && wm_block_len(wm_block_of(in, source)))
			wm_coll_recv_post(c, &from[slot], source, wm_block_of(in, source));
		if (target < comm->peers && wm_block_len(wm_block_of(out, target)))
			send_step(c, &to[slot], target, wm_block_of(out, target));
	}
	wm_coll_wait_all(c, from, ALLTOALL_WINDOW);
	wm_coll_wait_all(c, to, ALLTOALL_WINDOW);
}

/* In place: what is sent is packed first; as much as is received. */
static void in_place(struct wm_coll *c, const struct wm_blocks *in)
{
	const int size = c->comm->size;
	struct wm_blocks out = { .type = wm_byte, .vary = true };
	MPI_Count total = 0, *counts, at = 0;
	void *memory, *table;
	MPI_Aint *displs;

	for (int i = 0; i < size; i++)
		total += (MPI_Count)wm_block_len(wm_block_of(in, i));
	out.buf = wm_coll_scratch(c, total, wm_byte, &memory);
	counts = wm_coll_scratch(c, 2 * size, wm_type(MPI_INT64_T), &table);
	displs = (MPI_Aint *)(counts + size);
	for (int i = 0; i < size && !c->err; i++) {
		counts[i] = (MPI_Count)wm_block_len(wm_block_of(in, i));
		displs[i] = (MPI_Aint)at;
		wm_coll_copy(c, wm_bytes((char *)out.buf + at, (size_t)counts[i]), wm_block_of(in, i));
		at += counts[i];
	}
	out.counts_c = counts;
	out.displs_c = displs;
	pairwise(c, c->err ? in : &out, in);    /* after a failure nothing is read from there */
	free(table);
	free(memory);
}

void wm_alltoall(struct wm_coll *c, const struct wm_blocks *out, const struct wm_blocks *in)
{
	if (!in->vary && wm_crowded(c->comm) && !c->comm->inter &&
	    wm_block_len(wm_block_of(in, 0)) * (size_t)c->comm->size <= CROWD_TO) {
		wm_crowd_alltoall(c, out, in);
		return;
	}
	if (out->buf == MPI_IN_PLACE) {
		in_place(c, in);
		return;
	}
	if (!c->comm->inter)
		wm_coll_copy(c, wm_block_of(in, c->comm->rank), wm_block_of(out, c->comm->rank));
	pairwise(c, out, in);
}

int wm_alltoall_check(const struct MPI_ABI_Comm *m, const struct wm_blocks *out, const struct wm_blocks *in)
{
	int r = wm_check_blocks(in, m->peers);

	if (!r && out->buf == MPI_IN_PLACE)
		r = m->inter ? MPI_ERR_BUFFER : 0;
	else if (!r)
		r = wm_check_blocks(out, m->peers);
	if (!r && (in->buf == MPI_IN_PLACE || (!in->vary && in->count && in->buf && out->buf == in->buf)))
		r = MPI_ERR_BUFFER;
	return r;
}

static int alltoall(const char *function, const struct wm_blocks *out, const struct wm_blocks *in, MPI_Comm comm)
{
	struct MPI_ABI_Comm *m = wm_comm(comm);
	struct wm_coll c;
	int r;

	if (!m)
		return wm_coll_wrong(NULL, function, MPI_ERR_COMM);
	r = wm_alltoall_check(m, out, in);
	if (r)
		return wm_coll_wrong(m, function, r);
	c = wm_coll_begin(m);
	wm_alltoall(&c, out, in);
	return wm_coll_end(&c, function);
}

int PMPI_Alltoall_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
		    void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
	const struct wm_blocks out = { .buf = (void *)(uintptr_t)sendbuf, .type = wm_type(sendtype), .count = sendcount };
	const struct wm_blocks in = { .buf = recvbuf, .type = wm_type(recvtype), .count = recvcount };

	return alltoall(__func__, &out, &in, comm);
}
MPI_DONE(Alltoall_c);

int PMPI_Alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
		   void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
	const struct wm_blocks out = {
		.buf = (void *)(uintptr_t)sendbuf, .type = wm_type(sendtype), .vary = true, .counts = sendcounts, .displs = sdispls
	}, in = {
		.buf = recvbuf, .type = wm_type(recvtype), .vary = true, .counts = recvcounts, .displs = rdispls
	};

	return alltoall(__func__, &out, &in, comm);
}
MPI_DONE(Alltoallv);

int PMPI_Alltoallv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], MPI_Datatype sendtype,
		     void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
	const struct wm_blocks out = {
		.buf = (void *)(uintptr_t)sendbuf, .type = wm_type(sendtype), .vary = true, .counts_c = sendcounts, .displs_c = sdispls
	}, in = {
		.buf = recvbuf, .type = wm_type(recvtype), .vary = true, .counts_c = recvcounts, .displs_c = rdispls
	};

	return alltoall(__func__, &out, &in, comm);
}
MPI_DONE(Alltoallv_c);

int PMPI_Alltoallw(const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
		   void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm)
{
	const struct wm_blocks out = {
		.buf = (void *)(uintptr_t)sendbuf, .types = sendtypes, .vary = true, .counts = sendcounts, .displs = sdispls
	}, in = {
		.buf = recvbuf, .types = recvtypes, .vary = true, .counts = recvcounts, .displs = rdispls
	};

	return alltoall(__func__, &out, &in, comm);
}
MPI_DONE(Alltoallw);

int PMPI_Alltoallw_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[],
		     void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
		     MPI_Comm comm)
{
	const struct wm_blocks out = {
		.buf = (void *)(uintptr_t)sendbuf, .types = sendtypes, .vary = true, .counts_c = sendcounts, .displs_c = sdispls
	}, in = {
		.buf = recvbuf, .types = recvtypes, .vary = true, .counts_c = recvcounts, .displs_c = rdispls
	};

	return alltoall(__func__, &out, &in, comm);
}
MPI_DONE(Alltoallw_c);
