/* type_made.c - what a datatype was made with: MPI_Type_get_envelope and MPI_Type_get_contents.
 *
 * A type made by a function for large counts answers to the _c forms alone: its numbers may not fit the others.
 */
#include <stdlib.h>

#include "type.h"

struct wm_made *wm_made_new(int combiner, bool wide, MPI_Count ints, MPI_Count addrs, MPI_Count types)
{
	size_t counts = wide ? (size_t)(ints + addrs) : 0;
	size_t numbers = counts * sizeof(MPI_Count) + (size_t)addrs * sizeof(MPI_Aint);
	struct wm_made *m = malloc(sizeof(*m) + numbers + (size_t)types * sizeof(*m->type_of) + (size_t)ints * sizeof(int));

	if (!m)
		return NULL;
	*m = (struct wm_made){ .combiner = combiner, .wide = wide };
	m->count_of = (MPI_Count *)(m + 1);
	m->addr_of = (MPI_Aint *)(m->count_of + counts);
	m->type_of = (struct MPI_ABI_Datatype **)(m->addr_of + addrs);
	m->int_of = (int *)(m->type_of + types);
	return m;
}

void wm_made_free(struct wm_made *made)
{
	for (MPI_Count i = 0; made && i < made->types; i++)
		wm_type_put(made->type_of[i]);
	free(made);
}

static const struct wm_made named = { .combiner = MPI_COMBINER_NAMED };

static const struct wm_made *made_of(const struct MPI_ABI_Datatype *type)
{
	return type->made ? type->made : &named;
}

int PMPI_Type_get_envelope_c(MPI_Datatype datatype, MPI_Count *num_integers, MPI_Count *num_addresses, MPI_Count *num_large_counts,
			     MPI_Count *num_datatypes, int *combiner)
{
	struct MPI_ABI_Datatype *t = wm_type(datatype);
	const struct wm_made *m;

	if (!t)
		return wm_error(NULL, __func__, MPI_ERR_TYPE, "not a datatype");
	if (!num_integers || !num_addresses || !num_large_counts || !num_datatypes || !combiner)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL for a result");
	m = made_of(t);
	*num_integers = m->ints;
	*num_addresses = m->addrs;
	*num_large_counts = m->counts;
	*num_datatypes = m->types;
	*combiner = m->combiner;
	return MPI_SUCCESS;
}
MPI_DONE(Type_get_envelope_c);

int PMPI_Type_get_envelope(MPI_Datatype datatype, int *num_integers, int *num_addresses, int *num_datatypes, int *combiner)
{
	struct MPI_ABI_Datatype *t = wm_type(datatype);
	const struct wm_made *m;

	if (!t)
		return wm_error(NULL, __func__, MPI_ERR_TYPE, "not a datatype");
	if (!num_integers || !num_addresses || !num_datatypes || !combiner)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL for a result");
	m = made_of(t);
	if (m->counts)
		return wm_error(NULL, __func__, MPI_ERR_TYPE, "the datatype was made with large counts: MPI_Type_get_envelope_c");
	*num_integers = (int)m->ints;
	*num_addresses = (int)m->addrs;
	*num_datatypes = (int)m->types;
	*combiner = m->combiner;
	return MPI_SUCCESS;
}
MPI_DONE(Type_get_envelope);

int PMPI_Type_get_contents_c(MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_large_counts,
			     MPI_Count max_datatypes, int array_of_integers[], MPI_Aint array_of_addresses[],
			     MPI_Count array_of_large_counts[], MPI_Datatype array_of_datatypes[])
{
	struct MPI_ABI_Datatype *t = wm_type(datatype);
	const struct wm_made *m;

	if (!t || !t->made)
		return wm_error(NULL, __func__, MPI_ERR_TYPE, t ? "a named datatype was not made" : "not a datatype");
	m = t->made;
	if (max_integers < m->ints || max_addresses < m->addrs || max_large_counts < m->counts || max_datatypes < m->types)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "less room than MPI_Type_get_envelope says");
	if ((m->ints && !array_of_integers) || (m->addrs && !array_of_addresses) || (m->counts && !array_of_large_counts) ||
	    (m->types && !array_of_datatypes))
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL for a result");
	for (MPI_Count i = 0; i < m->ints; i++)
		array_of_integers[i] = m->int_of[i];
	for (MPI_Count i = 0; i < m->addrs; i++)
		array_of_addresses[i] = m->addr_of[i];
	for (MPI_Count i = 0; i < m->counts; i++)
		array_of_large_counts[i] = m->count_of[i];
	for (MPI_Count i = 0; i < m->types; i++) {
		struct MPI_ABI_Datatype *of = wm_type_get(m->type_of[i]);

		if (!of->predefined)
			atomic_fetch_add_explicit(&of->handles, 1, memory_order_relaxed);
		array_of_datatypes[i] = wm_type_handle(of);
	}
	return MPI_SUCCESS;
}
MPI_DONE(Type_get_contents_c);

int PMPI_Type_get_contents(MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes, int array_of_integers[],
			   MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[])
{
	struct MPI_ABI_Datatype *t = wm_type(datatype);

	if (t && t->made && t->made->counts)
		return wm_error(NULL, __func__, MPI_ERR_TYPE, "the datatype was made with large counts: MPI_Type_get_contents_c");
	return PMPI_Type_get_contents_c(datatype, max_integers, max_addresses, 0, max_datatypes, array_of_integers,
					array_of_addresses, NULL, array_of_datatypes);
}
MPI_DONE(Type_get_contents);
