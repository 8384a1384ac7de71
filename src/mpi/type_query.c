/* type_query.c - what a datatype tells: its size, its bounds, its name. */
#include <limits.h>
#include <stdio.h>

#include "type.h"

static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;  /* the names of all of them */

static int check(const char *function, const struct MPI_ABI_Datatype *type, const void *ret)
{
	if (!type)
		return wm_error(NULL, function, MPI_ERR_TYPE, "not a datatype");
	if (!ret)
		return wm_error(NULL, function, MPI_ERR_ARG, "NULL for a result");
	return MPI_SUCCESS;
}

static int size_of(const char *function, MPI_Datatype datatype, MPI_Count *size)
{
	struct MPI_ABI_Datatype *t = wm_type(datatype);
	int r = check(function, t, size);

	if (!r)
		*size = t->size;
	return r;
}

int PMPI_Type_size_c(MPI_Datatype datatype, MPI_Count *size)
{
	return size_of(__func__, datatype, size);
}
MPI_DONE(Type_size_c);

int PMPI_Type_size_x(MPI_Datatype datatype, MPI_Count *size)
{
	return size_of(__func__, datatype, size);
}
MPI_DONE(Type_size_x);

int PMPI_Type_size(MPI_Datatype datatype, int *size)
{
	MPI_Count n;
	int r = size_of(__func__, datatype, size ? &n : NULL);

	if (!r)
		*size = n > INT_MAX ? MPI_UNDEFINED : (int)n;
	return r;
}
MPI_DONE(Type_size);

static int bounds_of(const char *function, bool real, MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent)
{
	struct MPI_ABI_Datatype *t = wm_type(datatype);
	int r = check(function, t, lb && extent ? lb : NULL);

	if (!r) {
		*lb = real ? t->true_lb : t->lb;
		*extent = real ? t->true_extent : t->extent;
	}
	return r;
}

/* An address is as wide as a count here. */
static int narrow_bounds_of(const char *function, bool real, MPI_Datatype datatype, MPI_Aint *lb, MPI_Aint *extent)
{
	MPI_Count low, n;
	int r = bounds_of(function, real, datatype, lb && extent ? &low : NULL, &n);

	_Static_assert(sizeof(MPI_Aint) == sizeof(MPI_Count), "an address must hold any bound");
	if (!r) {
		*lb = (MPI_Aint)low;
		*extent = (MPI_Aint)n;
	}
	return r;
}

int PMPI_Type_get_extent(MPI_Datatype datatype, MPI_Aint *lb, MPI_Aint *extent)
{
	return narrow_bounds_of(__func__, false, datatype, lb, extent);
}
MPI_DONE(Type_get_extent);

int PMPI_Type_get_extent_c(MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent)
{
	return bounds_of(__func__, false, datatype, lb, extent);
}
MPI_DONE(Type_get_extent_c);

int PMPI_Type_get_extent_x(MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent)
{
	return bounds_of(__func__, false, datatype, lb, extent);
}
MPI_DONE(Type_get_extent_x);

int PMPI_Type_get_true_extent(MPI_Datatype datatype, MPI_Aint *true_lb, MPI_Aint *true_extent)
{
	return narrow_bounds_of(__func__, true, datatype, true_lb, true_extent);
}
MPI_DONE(Type_get_true_extent);

int PMPI_Type_get_true_extent_c(MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent)
{
	return bounds_of(__func__, true, datatype, true_lb, true_extent);
}
MPI_DONE(Type_get_true_extent_c);

int PMPI_Type_get_true_extent_x(MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent)
{
	return bounds_of(__func__, true, datatype, true_lb, true_extent);
}
MPI_DONE(Type_get_true_extent_x);

int PMPI_Type_get_name(MPI_Datatype datatype, char *type_name, int *resultlen)
{
	struct MPI_ABI_Datatype *t = wm_type(datatype);

	if (!t && datatype != MPI_DATATYPE_NULL)
		return wm_error(NULL, __func__, MPI_ERR_TYPE, "not a datatype");
	if (!type_name || !resultlen)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL for a result");
	pthread_mutex_lock(&names_lock);
	*resultlen = snprintf(type_name, MPI_MAX_OBJECT_NAME, "%s", t ? t->name : "MPI_DATATYPE_NULL");
	pthread_mutex_unlock(&names_lock);
	return MPI_SUCCESS;
}
MPI_DONE(Type_get_name);

int PMPI_Type_set_name(MPI_Datatype datatype, const char *type_name)
{
	struct MPI_ABI_Datatype *t = wm_type(datatype);

	if (!t)
		return wm_error(NULL, __func__, MPI_ERR_TYPE, "not a datatype");
	if (!type_name)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL for the name");
	pthread_mutex_lock(&names_lock);
	snprintf(t->name, sizeof(t->name), "%s", type_name);
	pthread_mutex_unlock(&names_lock);
	return MPI_SUCCESS;
}
MPI_DONE(Type_set_name);
