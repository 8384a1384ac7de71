/* pack.c - elements put end to end into a buffer of the program's, and taken out again. */
#include <limits.h>

#include "type.h"

static int pack(const char *function, const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf, MPI_Count outsize,
		MPI_Count *position, MPI_Comm comm)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);
	struct MPI_ABI_Datatype *t = wm_type(datatype);
	int r = wm_check_data(inbuf, incount, t);
	MPI_Count bytes;

	if (!c)
		return wm_error(NULL, function, MPI_ERR_COMM, "not a communicator");
	if (r)
		return wm_error(c, function, r, "the elements to pack");
	if (*position < 0 || outsize < 0)
		return wm_error(c, function, MPI_ERR_ARG, "a negative position or size");
	if (__builtin_mul_overflow(incount, t->size, &bytes) || bytes > outsize - *position)
		return wm_error(c, function, MPI_ERR_TRUNCATE, "the buffer is full");
	if (bytes && !outbuf)
		return wm_error(c, function, MPI_ERR_BUFFER, "NULL for the buffer");
	if (bytes)
		wm_type_pack((char *)outbuf + *position, inbuf, incount, t, 0, bytes);
	*position += bytes;
	return MPI_SUCCESS;
}

int PMPI_Pack_c(const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf, MPI_Count outsize, MPI_Count *position,
		MPI_Comm comm)
{
	if (!position)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL for the position");
	return pack(__func__, inbuf, incount, datatype, outbuf, outsize, position, comm);
}
MPI_DONE(Pack_c);

int PMPI_Pack(const void *inbuf, int incount, MPI_Datatype datatype, void *outbuf, int outsize, int *position, MPI_Comm comm)
{
	MPI_Count at;
	int r;

	if (!position)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL for the position");
	at = *position;
	r = pack(__func__, inbuf, incount, datatype, outbuf, outsize, &at, comm);
	*position = (int)at;
	return r;
}
MPI_DONE(Pack);

static int unpack(const char *function, const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf, MPI_Count outcount,
		  MPI_Datatype datatype, MPI_Comm comm)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);
	struct MPI_ABI_Datatype *t = wm_type(datatype);
	int r = wm_check_data(outbuf, outcount, t);
	MPI_Count bytes;

	if (!c)
		return wm_error(NULL, function, MPI_ERR_COMM, "not a communicator");
	if (r)
		return wm_error(c, function, r, "the elements to unpack");
	if (*position < 0 || insize < 0)
		return wm_error(c, function, MPI_ERR_ARG, "a negative position or size");
	if (__builtin_mul_overflow(outcount, t->size, &bytes) || bytes > insize - *position)
		return wm_error(c, function, MPI_ERR_TRUNCATE, "the buffer holds less");
	if (bytes && !inbuf)
		return wm_error(c, function, MPI_ERR_BUFFER, "NULL for the buffer");
	if (bytes)
		wm_type_unpack((const char *)inbuf + *position, outbuf, outcount, t, 0, bytes);
	*position += bytes;
	return MPI_SUCCESS;
}

int PMPI_Unpack_c(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf, MPI_Count outcount, MPI_Datatype datatype,
		  MPI_Comm comm)
{
	if (!position)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL for the position");
	return unpack(__func__, inbuf, insize, position, outbuf, outcount, datatype, comm);
}
MPI_DONE(Unpack_c);

int PMPI_Unpack(const void *inbuf, int insize, int *position, void *outbuf, int outcount, MPI_Datatype datatype, MPI_Comm comm)
{
	MPI_Count at;
	int r;

	if (!position)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL for the position");
	at = *position;
	r = unpack(__func__, inbuf, insize, &at, outbuf, outcount, datatype, comm);
	*position = (int)at;
	return r;
}
MPI_DONE(Unpack);

static int pack_size(const char *function, MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count *size)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);
	struct MPI_ABI_Datatype *t = wm_type(datatype);

	if (!c)
		return wm_error(NULL, function, MPI_ERR_COMM, "not a communicator");
	if (!t)
		return wm_error(c, function, MPI_ERR_TYPE, "not a datatype");
	if (incount < 0)
		return wm_error(c, function, MPI_ERR_COUNT, "a negative count");
	if (!size)
		return wm_error(c, function, MPI_ERR_ARG, "NULL for the result");
	if (__builtin_mul_overflow(incount, t->size, size))
		*size = MPI_UNDEFINED;
	return MPI_SUCCESS;
}

int PMPI_Pack_size_c(MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count *size)
{
	return pack_size(__func__, incount, datatype, comm, size);
}
MPI_DONE(Pack_size_c);

int PMPI_Pack_size(int incount, MPI_Datatype datatype, MPI_Comm comm, int *size)
{
	MPI_Count n;
	int r = pack_size(__func__, incount, datatype, comm, size ? &n : NULL);

	if (!r)
		*size = n > INT_MAX ? MPI_UNDEFINED : (int)n;
	return r;
}
MPI_DONE(Pack_size);
