/* count.c - bytes received as elements of a datatype, whole ones or basic ones, and elements as bytes.
 *
 * A type other than a struct is, in its bytes, just many of the one it was made of: only structs are walked.
 */
#include <limits.h>

#include "type.h"

void wm_basics(const struct MPI_ABI_Datatype *type, MPI_Count count, wm_basics_fn each, void *user)
{
	while (count && type->size && !wm_basic(type)) {
		const struct wm_made *m = type->made;

		if (m->combiner != MPI_COMBINER_STRUCT) {
			count *= type->size / m->type_of[0]->size;
			type = m->type_of[0];
			continue;
		}
		for (MPI_Count k = 0; k < count; k++)
			for (MPI_Count i = 0; i < m->types; i++)
				wm_basics(m->type_of[i], wm_made_block(m, i), each, user);
		return;
	}
	if (count && type->size)
		each(user, type, count);
}

/* Basic elements in the first @bytes of many of @type; @ret_over: bytes that are none. */
static MPI_Count elements_in(const struct MPI_ABI_Datatype *type, MPI_Count bytes, MPI_Count *ret_over)
{
	const struct wm_made *m;
	MPI_Count n;

	while (type->size && !wm_basic(type) && type->made->combiner != MPI_COMBINER_STRUCT)
		type = type->made->type_of[0];
	if (type->size == 0) {
		*ret_over = bytes;
		return 0;
	}
	n = bytes / type->size * type->elements;
	bytes %= type->size;
	if (wm_basic(type)) {
		if (type->elements == 2 && bytes >= wm_pair_value_size(type)) {
			bytes -= wm_pair_value_size(type);
			n++;
		}
		*ret_over = bytes;
		return n;
	}
	m = type->made;
	for (MPI_Count i = 0; i < m->types && bytes; i++) {
		const struct MPI_ABI_Datatype *of = m->type_of[i];
		MPI_Count block = wm_made_block(m, i);

		if (bytes < block * of->size)
			return n + elements_in(of, bytes, ret_over);
		n += block * of->elements;
		bytes -= block * of->size;
	}
	*ret_over = bytes;
	return n;
}

/* The opposite: the bytes of the first @n basic elements. */
static MPI_Count bytes_in(const struct MPI_ABI_Datatype *type, MPI_Count n)
{
	const struct wm_made *m;
	MPI_Count bytes;

	while (type->elements && !wm_basic(type) && type->made->combiner != MPI_COMBINER_STRUCT)
		type = type->made->type_of[0];
	if (type->elements == 0)
		return 0;
	bytes = n / type->elements * type->size;
	n %= type->elements;
	if (wm_basic(type))
		return n ? bytes + wm_pair_value_size(type) : bytes;
	m = type->made;
	for (MPI_Count i = 0; i < m->types && n; i++) {
		const struct MPI_ABI_Datatype *of = m->type_of[i];
		MPI_Count block = wm_made_block(m, i);

		if (n < block * of->elements)
			return bytes + bytes_in(of, n);
		n -= block * of->elements;
		bytes += block * of->size;
	}
	return bytes;
}

static int check(const char *function, const MPI_Status *status, const struct MPI_ABI_Datatype *type, const void *ret)
{
	if (!status || !ret)
		return wm_error(NULL, function, MPI_ERR_ARG, "NULL for the status or the result");
	if (!type)
		return wm_error(NULL, function, MPI_ERR_TYPE, "not a datatype");
	return MPI_SUCCESS;
}

static int count(const char *function, const MPI_Status *status, MPI_Datatype datatype, MPI_Count most, MPI_Count *ret_count)
{
	struct MPI_ABI_Datatype *t = wm_type(datatype);
	int r = check(function, status, t, ret_count);
	MPI_Count bytes, n;

	if (r)
		return r;
	bytes = wm_status_bytes(status);
	if (t->size == 0)
		n = bytes ? MPI_UNDEFINED : 0;
	else
		n = bytes % t->size ? MPI_UNDEFINED : bytes / t->size;
	*ret_count = n > most ? MPI_UNDEFINED : n;
	return MPI_SUCCESS;
}

int PMPI_Get_count_c(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *ret_count)
{
	return count(__func__, status, datatype, INT64_MAX, ret_count);
}
MPI_DONE(Get_count_c);

int PMPI_Get_count(const MPI_Status *status, MPI_Datatype datatype, int *ret_count)
{
	MPI_Count n;
	int r = count(__func__, status, datatype, INT_MAX, ret_count ? &n : NULL);

	if (!r)
		*ret_count = (int)n;
	return r;
}
MPI_DONE(Get_count);

static int elements(const char *function, const MPI_Status *status, MPI_Datatype datatype, MPI_Count most, MPI_Count *ret_count)
{
	struct MPI_ABI_Datatype *t = wm_type(datatype);
	int r = check(function, status, t, ret_count);
	MPI_Count over, n;

	if (r)
		return r;
	n = elements_in(t, wm_status_bytes(status), &over);
	*ret_count = over || n > most ? MPI_UNDEFINED : n;
	return MPI_SUCCESS;
}

int PMPI_Get_elements_c(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *ret_count)
{
	return elements(__func__, status, datatype, INT64_MAX, ret_count);
}
MPI_DONE(Get_elements_c);

int PMPI_Get_elements_x(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *ret_count)
{
	return elements(__func__, status, datatype, INT64_MAX, ret_count);
}
MPI_DONE(Get_elements_x);

int PMPI_Get_elements(const MPI_Status *status, MPI_Datatype datatype, int *ret_count)
{
	MPI_Count n;
	int r = elements(__func__, status, datatype, INT_MAX, ret_count ? &n : NULL);

	if (!r)
		*ret_count = (int)n;
	return r;
}
MPI_DONE(Get_elements);

static int set_elements(const char *function, MPI_Status *status, MPI_Datatype datatype, MPI_Count n)
{
	struct MPI_ABI_Datatype *t = wm_type(datatype);
	int r = check(function, status, t, status);

	if (r)
		return r;
	if (n < 0)
		return wm_error(NULL, function, MPI_ERR_COUNT, "a negative count");
	wm_status_put_bytes(status, bytes_in(t, n));
	return MPI_SUCCESS;
}

int PMPI_Status_set_elements_c(MPI_Status *status, MPI_Datatype datatype, MPI_Count n)
{
	return set_elements(__func__, status, datatype, n);
}
MPI_DONE(Status_set_elements_c);

int PMPI_Status_set_elements_x(MPI_Status *status, MPI_Datatype datatype, MPI_Count n)
{
	return set_elements(__func__, status, datatype, n);
}
MPI_DONE(Status_set_elements_x);
