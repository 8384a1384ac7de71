/* sendrecv.c - both ways at once: the receive is posted first, so that no cycle of these can block. */
#include <stdlib.h>

#include "request.h"

int PMPI_Sendrecv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, MPI_Count recvcount,
		    MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
	MPI_Request in;
	int err = wm_check_send(sendbuf, sendcount, sendtype, dest, sendtag, comm), other;

	if (err)
		return wm_refuse(comm, __func__, err, sendcount, dest, sendtag);
	err = wm_check_recv(recvbuf, recvcount, recvtype, source, recvtag, comm);
	if (err)
		return wm_refuse(comm, __func__, err, recvcount, source, recvtag);
	err = PMPI_Irecv_c(recvbuf, recvcount, recvtype, source, recvtag, comm, &in);
	if (err)
		return err;
	err = PMPI_Send_c(sendbuf, sendcount, sendtype, dest, sendtag, comm);
	if (err)
		PMPI_Cancel(&in);
	other = PMPI_Wait(&in, status);
	return err ? err : other;
}
MPI_DONE(Sendrecv_c);

/* What goes out, end to end. NULL: no memory. */
static char *copied(const void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Count *ret_bytes)
{
	MPI_Count bytes = count * wm_type(datatype)->size;
	char *copy = malloc((size_t)bytes + 1);

	if (copy)
		wm_type_pack(copy, buf, count, wm_type(datatype), 0, bytes);
	*ret_bytes = bytes;
	return copy;
}

int PMPI_Sendrecv_replace_c(void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag, MPI_Comm comm,
			    MPI_Status *status)
{
	int err = wm_check_send(buf, count, datatype, dest, sendtag, comm);
	char *copy;
	MPI_Count bytes;

	if (err)
		return wm_refuse(comm, __func__, err, count, dest, sendtag);
	copy = copied(buf, count, datatype, &bytes);
	if (!copy)
		return wm_error(wm_comm(comm), __func__, MPI_ERR_NO_MEM, "no memory for a copy of %lld bytes", (long long)bytes);
	err = PMPI_Sendrecv_c(copy, bytes, MPI_BYTE, dest, sendtag, buf, count, datatype, source, recvtag, comm, status);
	free(copy);
	return err;
}
MPI_DONE(Sendrecv_replace_c);

/* The receive's request has the send's with it. */
int PMPI_Isendrecv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, MPI_Count recvcount,
		     MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Request *request)
{
	MPI_Request in, out;
	int err = wm_check_send(sendbuf, sendcount, sendtype, dest, sendtag, comm);

	if (err || !request)
		return wm_refuse(comm, __func__, request ? err : MPI_ERR_ARG, sendcount, dest, sendtag);
	err = wm_check_recv(recvbuf, recvcount, recvtype, source, recvtag, comm);
	if (err)
		return wm_refuse(comm, __func__, err, recvcount, source, recvtag);
	*request = MPI_REQUEST_NULL;
	err = PMPI_Irecv_c(recvbuf, recvcount, recvtype, source, recvtag, comm, &in);
	if (err)
		return err;
	err = PMPI_Isend_c(sendbuf, sendcount, sendtype, dest, sendtag, comm, &out);
	if (err) {
		PMPI_Cancel(&in);
		PMPI_Wait(&in, MPI_STATUS_IGNORE);
		return err;
	}
	in->bare = false;
	if (out != &wm_sent)
		in->with = out;
	*request = in;
	return MPI_SUCCESS;
}
MPI_DONE(Isendrecv_c);

int PMPI_Isendrecv_replace_c(void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag, MPI_Comm comm,
			     MPI_Request *request)
{
	int err = wm_check_send(buf, count, datatype, dest, sendtag, comm);
	char *copy;
	MPI_Count bytes;

	if (err || !request)
		return wm_refuse(comm, __func__, request ? err : MPI_ERR_ARG, count, dest, sendtag);
	copy = copied(buf, count, datatype, &bytes);
	if (!copy)
		return wm_error(wm_comm(comm), __func__, MPI_ERR_NO_MEM, "no memory for a copy of %lld bytes", (long long)bytes);
	err = PMPI_Isendrecv_c(copy, bytes, MPI_BYTE, dest, sendtag, buf, count, datatype, source, recvtag, comm, request);
	if (err)
		free(copy);
	else
		(*request)->copy = copy;
	return err;
}
MPI_DONE(Isendrecv_replace_c);
