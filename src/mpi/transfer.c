/* transfer.c - the arguments of a send or a receive: refused in words, kept in a request. */
#include "request.h"

int wm_refuse(MPI_Comm comm, const char *function, int code, MPI_Count count, int rank, int tag)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);

	switch (code) {
	case MPI_ERR_COMM:
		return wm_error(NULL, function, code, wm_alive() ? "not a communicator" : "called before MPI_Init or after MPI_Finalize");
	case MPI_ERR_RANK:
		return wm_error(c, function, code, "rank %d of a communicator with %d", rank, c->peers);
	case MPI_ERR_TAG:
		return wm_error(c, function, code, "tag %d", tag);
	case MPI_ERR_COUNT:
		return wm_error(c, function, code, "count %lld", (long long)count);
	case MPI_ERR_TYPE:
		return wm_error(c, function, code, "not a datatype, or not committed");
	case MPI_ERR_ARG:
		return wm_error(c, function, code, "a NULL where something is to be put");
	default:
		return wm_error(c, function, code, "no memory at NULL for %lld elements", (long long)count);
	}
}

struct MPI_ABI_Request *wm_described(enum wm_what what, const void *buf, MPI_Count count, MPI_Datatype datatype, int rank, int tag,
				     MPI_Comm comm, enum wm_mode mode)
{
	struct MPI_ABI_Request *r = wm_request_new(what, wm_comm(comm));

	if (!r)
		return NULL;
	r->mode = (uint8_t)mode;
	r->rank = rank;
	r->tag = tag;
	r->buf = buf;
	r->count = count;
	r->type = wm_type_get(wm_type(datatype));
	return r;
}

int wm_keep(const char *function, struct MPI_ABI_Request *r, MPI_Comm comm, MPI_Request *request)
{
	if (!r)
		return wm_error(wm_comm(comm), function, MPI_ERR_NO_MEM, "no memory for a request");
	r->persistent = true;
	r->active = false;
	*request = r;
	return MPI_SUCCESS;
}
