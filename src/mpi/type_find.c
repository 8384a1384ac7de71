/* type_find.c - predefined datatypes by what they can hold: by class and size, by Fortran's precision and range,
 * by the two halves of a pair.
 *
 * The types of MPI_Type_create_f90_real and its like are predefined but have no names: the same arguments give the
 * same handle, which is there for ever.
 */
#include <stdlib.h>

#include "type.h"

int PMPI_Type_match_size(int typeclass, int size, MPI_Datatype *datatype)
{
	static const struct {
		int class, size;
		MPI_Datatype type;
	} table[] = {
		{ MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1 }, { MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2 },
		{ MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4 }, { MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8 },
		{ MPI_TYPECLASS_INTEGER, 16, MPI_INTEGER16 },
		{ MPI_TYPECLASS_REAL, 2, MPI_REAL2 }, { MPI_TYPECLASS_REAL, 4, MPI_REAL4 },
		{ MPI_TYPECLASS_REAL, 8, MPI_REAL8 }, { MPI_TYPECLASS_REAL, 16, MPI_REAL16 },
		{ MPI_TYPECLASS_COMPLEX, 4, MPI_COMPLEX4 }, { MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8 },
		{ MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16 }, { MPI_TYPECLASS_COMPLEX, 32, MPI_COMPLEX32 },
		{ MPIX_TYPECLASS_LOGICAL, 1, MPI_LOGICAL1 }, { MPIX_TYPECLASS_LOGICAL, 2, MPI_LOGICAL2 },
		{ MPIX_TYPECLASS_LOGICAL, 4, MPI_LOGICAL4 }, { MPIX_TYPECLASS_LOGICAL, 8, MPI_LOGICAL8 },
		{ MPIX_TYPECLASS_LOGICAL, 16, MPI_LOGICAL16 },
	};

	if (!datatype)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL for the result");
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].class == typeclass && table[i].size == size) {
			*datatype = table[i].type;
			return MPI_SUCCESS;
		}
	return wm_error(NULL, __func__, MPI_ERR_ARG, "no type of class %d has %d bytes", typeclass, size);
}
MPI_DONE(Type_match_size);

int PMPI_Type_get_value_index(MPI_Datatype value_type, MPI_Datatype index_type, MPI_Datatype *pair_type)
{
	static const struct {
		MPI_Datatype value, index, pair;
	} table[] = {
		{ MPI_FLOAT, MPI_INT, MPI_FLOAT_INT }, { MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT },
		{ MPI_LONG, MPI_INT, MPI_LONG_INT }, { MPI_INT, MPI_INT, MPI_2INT },
		{ MPI_SHORT, MPI_INT, MPI_SHORT_INT }, { MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT },
		{ MPI_REAL, MPI_REAL, MPI_2REAL }, { MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION },
		{ MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER },
	};

	if (!wm_type(value_type) || !wm_type(index_type))
		return wm_error(NULL, __func__, MPI_ERR_TYPE, "not a datatype");
	if (!pair_type)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL for the result");
	*pair_type = MPI_DATATYPE_NULL;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].value == value_type && table[i].index == index_type)
			*pair_type = table[i].pair;
	return MPI_SUCCESS;
}
MPI_DONE(Type_get_value_index);

/* Fortran's */

static struct {
	pthread_mutex_t lock;
	struct known {
		struct known *next;
		int combiner, p, r;
		MPI_Datatype type;
	} *first;
} known = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct known *known_find_locked(int combiner, int p, int r)
{
	struct known *k = known.first;

	while (k && (k->combiner != combiner || k->p != p || k->r != r))
		k = k->next;
	return k;
}

/* A type like @like, of which one more is made only once. */
static int known_new_locked(const char *function, int combiner, int p, int r, const struct MPI_ABI_Datatype *like, MPI_Datatype *ret)
{
	struct known *k = malloc(sizeof(*k));
	struct wm_made *made = wm_made_new(combiner, false, 2, 0, 0);
	struct wm_draft draft;
	int err;

	if (made && combiner != MPI_COMBINER_F90_INTEGER)
		wm_made_int(made, p);
	if (made)
		wm_made_int(made, r);
	wm_draft_of(&draft, like);
	err = wm_type_new(function, k ? 0 : MPI_ERR_NO_MEM, &draft, made, ret);
	if (err) {
		free(k);
		return err;
	}
	(*ret)->base = like->base;
	(*ret)->committed = (*ret)->predefined = true;
	*k = (struct known){ .next = known.first, .combiner = combiner, .p = p, .r = r, .type = *ret };
	known.first = k;
	return MPI_SUCCESS;
}

static int f90(const char *function, int combiner, int p, int r, MPI_Datatype like, MPI_Datatype *ret)
{
	struct known *k;
	int err = MPI_SUCCESS;

	if (!ret)
		return wm_error(NULL, function, MPI_ERR_ARG, "NULL for the result");
	if (like == MPI_DATATYPE_NULL)
		return wm_error(NULL, function, MPI_ERR_ARG, "no type has such a precision and range");
	pthread_mutex_lock(&known.lock);
	k = known_find_locked(combiner, p, r);
	if (k)
		*ret = k->type;
	else
		err = known_new_locked(function, combiner, p, r, wm_type(like), ret);
	pthread_mutex_unlock(&known.lock);
	return err;
}

/* Digits and decimal exponents that a real has in 4, 8 and 16 bytes; -1: none has them. Either may be MPI_UNDEFINED. */
static int real_kind(int p, int r)
{
	static const struct {
		int p, r;
	} kinds[] = { { 6, 37 }, { 15, 307 }, { 33, 4931 } };

	if ((p == MPI_UNDEFINED && r == MPI_UNDEFINED) || (p < 0 && p != MPI_UNDEFINED) || (r < 0 && r != MPI_UNDEFINED))
		return -1;
	for (int i = 0; i < 3; i++)
		if (p <= kinds[i].p && r <= kinds[i].r)
			return i;
	return -1;
}

int PMPI_Type_create_f90_real(int p, int r, MPI_Datatype *newtype)
{
	const MPI_Datatype types[] = { MPI_REAL4, MPI_REAL8, MPI_REAL16 };
	int kind = real_kind(p, r);

	return f90(__func__, MPI_COMBINER_F90_REAL, p, r, kind < 0 ? MPI_DATATYPE_NULL : types[kind], newtype);
}
MPI_DONE(Type_create_f90_real);

int PMPI_Type_create_f90_complex(int p, int r, MPI_Datatype *newtype)
{
	const MPI_Datatype types[] = { MPI_COMPLEX8, MPI_COMPLEX16, MPI_COMPLEX32 };
	int kind = real_kind(p, r);

	return f90(__func__, MPI_COMBINER_F90_COMPLEX, p, r, kind < 0 ? MPI_DATATYPE_NULL : types[kind], newtype);
}
MPI_DONE(Type_create_f90_complex);

int PMPI_Type_create_f90_integer(int r, MPI_Datatype *newtype)
{
	MPI_Datatype like = r < 0	? MPI_DATATYPE_NULL
			    : r <= 2	? MPI_INTEGER1
			    : r <= 4	? MPI_INTEGER2
			    : r <= 9	? MPI_INTEGER4
			    : r <= 18	? MPI_INTEGER8
			    : r <= 38	? MPI_INTEGER16
					: MPI_DATATYPE_NULL;

	return f90(__func__, MPI_COMBINER_F90_INTEGER, 0, r, like, newtype);
}
MPI_DONE(Type_create_f90_integer);
