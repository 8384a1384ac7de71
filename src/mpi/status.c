/* status.c - statuses: what an operation ended with. Counting elements in them is count.c. */
#include <errno.h>

#include "inner.h"

enum { CANCELLED = 2 };                 /* place in MPI_internal; [0] and [1] are the bytes */

void wm_status_set(MPI_Status *ret_status, const struct weft_status *st)
{
	if (!ret_status)
		return;
	ret_status->MPI_SOURCE = st->index == WEFT_NOBODY ? MPI_PROC_NULL : (int)st->index;
	ret_status->MPI_TAG = (int)st->tag;
	wm_status_put_bytes(ret_status, (MPI_Count)st->len);
	ret_status->MPI_internal[CANCELLED] = st->err == -ECANCELED;
}

/* Of what ended at once and did nothing: a null request, an inactive one. */
void wm_status_empty(MPI_Status *ret_status)
{
	if (!ret_status)
		return;
	*ret_status = (MPI_Status){ .MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG, .MPI_ERROR = MPI_SUCCESS };
}

void wm_status_proc_null(MPI_Status *ret_status)
{
	if (!ret_status)
		return;
	ret_status->MPI_SOURCE = MPI_PROC_NULL;
	ret_status->MPI_TAG = MPI_ANY_TAG;
	wm_status_put_bytes(ret_status, 0);
	ret_status->MPI_internal[CANCELLED] = 0;
}

int PMPI_Test_cancelled(const MPI_Status *status, int *flag)
{
	if (!status || !flag)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL");
	*flag = status->MPI_internal[CANCELLED];
	return MPI_SUCCESS;
}
MPI_DONE(Test_cancelled);

int PMPI_Status_set_cancelled(MPI_Status *status, int flag)
{
	if (!status)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL");
	status->MPI_internal[CANCELLED] = flag != 0;
	return MPI_SUCCESS;
}
MPI_DONE(Status_set_cancelled);

/* The three public fields, for languages that cannot see them. */
#define FIELD(name, member)                                                                                    \
	int PMPI_Status_get_##name(const MPI_Status *status, int *value)                                       \
	{                                                                                                      \
		if (!status || !value)                                                                         \
			return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL");                                  \
		*value = status->member;                                                                       \
		return MPI_SUCCESS;                                                                            \
	}                                                                                                      \
	int PMPI_Status_set_##name(MPI_Status *status, int value)                                              \
	{                                                                                                      \
		if (!status)                                                                                   \
			return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL");                                  \
		status->member = value;                                                                        \
		return MPI_SUCCESS;                                                                            \
	}

FIELD(source, MPI_SOURCE)
FIELD(tag, MPI_TAG)
FIELD(error, MPI_ERROR)
MPI_DONE(Status_get_source);
MPI_DONE(Status_set_source);
MPI_DONE(Status_get_tag);
MPI_DONE(Status_set_tag);
MPI_DONE(Status_get_error);
MPI_DONE(Status_set_error);
