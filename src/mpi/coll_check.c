/* coll_check.c - arguments of collectives. Each check answers 0 or an error class, which wm_coll_wrong raises. */
#include "coll.h"

int wm_check_root(const struct MPI_ABI_Comm *comm, int root)
{
	if (comm->inter && (root == MPI_ROOT || root == MPI_PROC_NULL))
		return 0;
	return root >= 0 && root < comm->peers ? 0 : MPI_ERR_ROOT;
}

int wm_check_blocks(const struct wm_blocks *b, int n)
{
	if (!b->vary)
		return wm_check_data(b->buf, b->count, b->type);
	if (!(b->counts && b->displs) && !(b->counts_c && b->displs_c))
		return MPI_ERR_ARG;
	for (int i = 0; i < n; i++) {
		MPI_Count count = b->counts ? b->counts[i] : b->counts_c[i];
		int r = b->types && !count ? 0 : wm_check_data(b->buf, count, b->types ? wm_type(b->types[i]) : b->type);

		if (r)
			return r;
	}
	return 0;
}

int wm_check_reduce(const struct MPI_ABI_Op *op, const void *in, struct wm_block out)
{
	int r = wm_check_data(MPI_IN_PLACE, out.count, out.type);

	if (r)
		return r;
	if (!op || !wm_op_takes(op, out.type))
		return MPI_ERR_OP;
	if (out.count && (out.buf == MPI_IN_PLACE || (in == out.buf && in)))
		return MPI_ERR_BUFFER;
	r = wm_check_data(out.buf, out.count, out.type);
	return r ? r : wm_check_data(in, out.count, out.type);
}

int wm_coll_wrong(struct MPI_ABI_Comm *comm, const char *function, int class)
{
	const char *words;

	switch (class) {
	case MPI_ERR_COMM:
		words = comm ? "not on an intercommunicator" : "not a communicator";
		break;
	case MPI_ERR_COUNT:
		words = "a count is negative";
		break;
	case MPI_ERR_TYPE:
		words = "not a datatype, or one that was not committed";
		break;
	case MPI_ERR_BUFFER:
		words = "a buffer is NULL, is MPI_IN_PLACE where it may not be, or is both read and written";
		break;
	case MPI_ERR_OP:
		words = "not an operation, or not one on elements of this type";
		break;
	case MPI_ERR_ROOT:
		words = "the root is no rank of the communicator";
		break;
	case MPI_ERR_TOPOLOGY:
		words = "the communicator has no topology";
		break;
	default:
		words = "an argument is NULL";
	}
	return wm_error(comm, function, class, "%s", words);
}
