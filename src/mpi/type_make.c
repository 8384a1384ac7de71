/* type_make.c - makes datatypes of others: repeated, in blocks at displacements, with other bounds, as they are.
 *
 * Every function has a form for large counts, and the type remembers by which of them it was made
 * (MPI_Type_get_envelope): so both are here, over a common body.
 */
#include "type.h"

#define BAD_COUNT "a negative count"
#define BAD_BLOCK "a negative length of a block"
#define BAD_TYPE "not a datatype"
#define BAD_NULL "NULL for an array or the result"

/* Repeated */

/* @count blocks of @len elements, @stride bytes apart. */
static int vector_draft(struct wm_draft *ret, MPI_Count count, MPI_Count len, MPI_Count stride, const struct MPI_ABI_Datatype *old)
{
	struct wm_draft one, block;
	int r;

	wm_draft_of(&one, old);
	r = wm_draft_run(&block, len, old->extent, &one);
	wm_draft_put(&one);
	if (r)
		return r;
	r = wm_draft_run(ret, count, stride, &block);
	wm_draft_put(&block);
	return r;
}

static int contiguous(const char *function, bool wide, MPI_Count count, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	struct MPI_ABI_Datatype *old = wm_type(oldtype);
	struct wm_draft draft = { 0 };
	struct wm_made *made;

	if (count < 0)
		return wm_error(NULL, function, MPI_ERR_COUNT, BAD_COUNT);
	if (!old)
		return wm_error(NULL, function, MPI_ERR_TYPE, BAD_TYPE);
	if (!newtype)
		return wm_error(NULL, function, MPI_ERR_ARG, BAD_NULL);
	made = wm_made_new(MPI_COMBINER_CONTIGUOUS, wide, 1, 0, 1);
	if (made) {
		wm_made_count(made, count);
		wm_made_type(made, old);
	}
	return wm_type_new(function, vector_draft(&draft, 1, count, 0, old), &draft, made, newtype);
}

int PMPI_Type_contiguous(int count, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return contiguous(__func__, false, count, oldtype, newtype);
}
MPI_DONE(Type_contiguous);

int PMPI_Type_contiguous_c(MPI_Count count, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return contiguous(__func__, true, count, oldtype, newtype);
}
MPI_DONE(Type_contiguous_c);

/* @combiner: VECTOR, whose stride counts elements, or HVECTOR. */
static int vector(const char *function, int combiner, bool wide, MPI_Count count, MPI_Count len, MPI_Count stride,
		  MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	struct MPI_ABI_Datatype *old = wm_type(oldtype);
	struct wm_draft draft = { 0 };
	struct wm_made *made;
	MPI_Count bytes = stride;
	int r = 0;

	if (count < 0)
		return wm_error(NULL, function, MPI_ERR_COUNT, BAD_COUNT);
	if (len < 0)
		return wm_error(NULL, function, MPI_ERR_ARG, BAD_BLOCK);
	if (!old)
		return wm_error(NULL, function, MPI_ERR_TYPE, BAD_TYPE);
	if (!newtype)
		return wm_error(NULL, function, MPI_ERR_ARG, BAD_NULL);
	made = wm_made_new(combiner, wide, 3, 1, 1);
	if (made) {
		wm_made_count(made, count);
		wm_made_count(made, len);
		if (combiner == MPI_COMBINER_VECTOR)
			wm_made_count(made, stride);
		else
			wm_made_addr(made, stride);
		wm_made_type(made, old);
	}
	if (combiner == MPI_COMBINER_VECTOR && __builtin_mul_overflow(stride, old->extent, &bytes))
		r = MPI_ERR_COUNT;
	if (!r)
		r = vector_draft(&draft, count, len, bytes, old);
	return wm_type_new(function, r, &draft, made, newtype);
}

int PMPI_Type_vector(int count, int blocklength, int stride, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return vector(__func__, MPI_COMBINER_VECTOR, false, count, blocklength, stride, oldtype, newtype);
}
MPI_DONE(Type_vector);

int PMPI_Type_vector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return vector(__func__, MPI_COMBINER_VECTOR, true, count, blocklength, stride, oldtype, newtype);
}
MPI_DONE(Type_vector_c);

int PMPI_Type_create_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return vector(__func__, MPI_COMBINER_HVECTOR, false, count, blocklength, stride, oldtype, newtype);
}
MPI_DONE(Type_create_hvector);

int PMPI_Type_create_hvector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return vector(__func__, MPI_COMBINER_HVECTOR, true, count, blocklength, stride, oldtype, newtype);
}
MPI_DONE(Type_create_hvector_c);

/* Blocks at displacements */

struct blocks {
	int combiner;
	bool wide;
	MPI_Count n;
	struct wm_numbers lens;         /* or */
	MPI_Count len;                  /* of each */
	struct wm_numbers disps;
	MPI_Datatype old;               /* or */
	const MPI_Datatype *olds;
};

static bool disps_in_bytes(const struct blocks *b)
{
	return b->combiner != MPI_COMBINER_INDEXED && b->combiner != MPI_COMBINER_INDEXED_BLOCK;
}

static bool len_of_each(const struct blocks *b)
{
	return b->combiner == MPI_COMBINER_INDEXED_BLOCK || b->combiner == MPI_COMBINER_HINDEXED_BLOCK;
}

static int blocks_draft(struct wm_draft *ret, const struct blocks *b)
{
	const struct MPI_ABI_Datatype *last = NULL;
	struct wm_draft block = { 0 };
	MPI_Count last_len = -1;
	struct wm_join join;
	int r = wm_join_begin(&join, b->n);

	if (r)
		return r;
	for (MPI_Count i = 0; i < b->n && !r; i++) {
		const struct MPI_ABI_Datatype *type = wm_type(b->olds ? b->olds[i] : b->old);
		MPI_Count len = len_of_each(b) ? b->len : wm_number(&b->lens, i), disp = wm_number(&b->disps, i);

		if (type != last || len != last_len) {  /* blocks that are alike share their shape */
			wm_draft_put(&block);
			r = vector_draft(&block, 1, len, 0, type);
			last = type;
			last_len = len;
		}
		if (!r && !disps_in_bytes(b) && __builtin_mul_overflow(disp, type->extent, &disp))
			r = MPI_ERR_COUNT;
		if (!r)
			r = wm_join_add(&join, disp, &block);
	}
	wm_draft_put(&block);
	r = wm_join_end(&join, r, ret);
	if (!r && b->combiner == MPI_COMBINER_STRUCT)
		wm_draft_pad(ret);
	return r;
}

static struct wm_made *blocks_made(const struct blocks *b)
{
	struct wm_made *made = NULL;

	if (b->n <= INT64_MAX / 64)
		made = wm_made_new(b->combiner, b->wide, 2 * b->n + 2, b->n, b->olds ? b->n : 1);
	if (!made)
		return NULL;
	wm_made_count(made, b->n);
	if (len_of_each(b))
		wm_made_count(made, b->len);
	else
		for (MPI_Count i = 0; i < b->n; i++)
			wm_made_count(made, wm_number(&b->lens, i));
	for (MPI_Count i = 0; i < b->n; i++) {
		if (disps_in_bytes(b))
			wm_made_addr(made, wm_number(&b->disps, i));
		else
			wm_made_count(made, wm_number(&b->disps, i));
	}
	if (b->olds)
		for (MPI_Count i = 0; i < b->n; i++)
			wm_made_type(made, wm_type(b->olds[i]));
	else if (b->combiner != MPI_COMBINER_STRUCT)
		wm_made_type(made, wm_type(b->old));
	return made;
}

static int blocks(const char *function, const struct blocks *b, MPI_Datatype *newtype)
{
	struct wm_draft draft = { 0 };
	struct wm_made *made;

	if (b->n < 0)
		return wm_error(NULL, function, MPI_ERR_COUNT, BAD_COUNT);
	if (len_of_each(b) && b->len < 0)
		return wm_error(NULL, function, MPI_ERR_ARG, BAD_BLOCK);
	if (!newtype || (b->n && (!wm_numbers_there(&b->disps) || (!len_of_each(b) && !wm_numbers_there(&b->lens)) ||
				  (b->combiner == MPI_COMBINER_STRUCT && !b->olds))))
		return wm_error(NULL, function, MPI_ERR_ARG, BAD_NULL);
	if (b->combiner != MPI_COMBINER_STRUCT && !wm_type(b->old))
		return wm_error(NULL, function, MPI_ERR_TYPE, BAD_TYPE);
	for (MPI_Count i = 0; i < b->n; i++) {
		if (!len_of_each(b) && wm_number(&b->lens, i) < 0)
			return wm_error(NULL, function, MPI_ERR_ARG, BAD_BLOCK);
		if (b->olds && !wm_type(b->olds[i]))
			return wm_error(NULL, function, MPI_ERR_TYPE, BAD_TYPE);
	}
	made = blocks_made(b);
	return wm_type_new(function, made ? blocks_draft(&draft, b) : MPI_ERR_NO_MEM, &draft, made, newtype);
}

int PMPI_Type_indexed(int count, const int array_of_blocklengths[], const int array_of_displacements[], MPI_Datatype oldtype,
		      MPI_Datatype *newtype)
{
	return blocks(__func__, &(struct blocks){ .combiner = MPI_COMBINER_INDEXED, .n = count, .lens.narrow = array_of_blocklengths,
						  .disps.narrow = array_of_displacements, .old = oldtype }, newtype);
}
MPI_DONE(Type_indexed);

int PMPI_Type_indexed_c(MPI_Count count, const MPI_Count array_of_blocklengths[], const MPI_Count array_of_displacements[],
			MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return blocks(__func__, &(struct blocks){ .combiner = MPI_COMBINER_INDEXED, .wide = true, .n = count,
						  .lens.wide = array_of_blocklengths, .disps.wide = array_of_displacements,
						  .old = oldtype }, newtype);
}
MPI_DONE(Type_indexed_c);

int PMPI_Type_create_hindexed(int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[],
			      MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return blocks(__func__, &(struct blocks){ .combiner = MPI_COMBINER_HINDEXED, .n = count, .lens.narrow = array_of_blocklengths,
						  .disps.addr = array_of_displacements, .old = oldtype }, newtype);
}
MPI_DONE(Type_create_hindexed);

int PMPI_Type_create_hindexed_c(MPI_Count count, const MPI_Count array_of_blocklengths[], const MPI_Count array_of_displacements[],
				MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return blocks(__func__, &(struct blocks){ .combiner = MPI_COMBINER_HINDEXED, .wide = true, .n = count,
						  .lens.wide = array_of_blocklengths, .disps.wide = array_of_displacements,
						  .old = oldtype }, newtype);
}
MPI_DONE(Type_create_hindexed_c);

int PMPI_Type_create_indexed_block(int count, int blocklength, const int array_of_displacements[], MPI_Datatype oldtype,
				   MPI_Datatype *newtype)
{
	return blocks(__func__, &(struct blocks){ .combiner = MPI_COMBINER_INDEXED_BLOCK, .n = count, .len = blocklength,
						  .disps.narrow = array_of_displacements, .old = oldtype }, newtype);
}
MPI_DONE(Type_create_indexed_block);

int PMPI_Type_create_indexed_block_c(MPI_Count count, MPI_Count blocklength, const MPI_Count array_of_displacements[],
				     MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return blocks(__func__, &(struct blocks){ .combiner = MPI_COMBINER_INDEXED_BLOCK, .wide = true, .n = count,
						  .len = blocklength, .disps.wide = array_of_displacements, .old = oldtype },
		      newtype);
}
MPI_DONE(Type_create_indexed_block_c);

int PMPI_Type_create_hindexed_block(int count, int blocklength, const MPI_Aint array_of_displacements[], MPI_Datatype oldtype,
				    MPI_Datatype *newtype)
{
	return blocks(__func__, &(struct blocks){ .combiner = MPI_COMBINER_HINDEXED_BLOCK, .n = count, .len = blocklength,
						  .disps.addr = array_of_displacements, .old = oldtype }, newtype);
}
MPI_DONE(Type_create_hindexed_block);

int PMPI_Type_create_hindexed_block_c(MPI_Count count, MPI_Count blocklength, const MPI_Count array_of_displacements[],
				      MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	return blocks(__func__, &(struct blocks){ .combiner = MPI_COMBINER_HINDEXED_BLOCK, .wide = true, .n = count,
						  .len = blocklength, .disps.wide = array_of_displacements, .old = oldtype },
		      newtype);
}
MPI_DONE(Type_create_hindexed_block_c);

int PMPI_Type_create_struct(int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[],
			    const MPI_Datatype array_of_types[], MPI_Datatype *newtype)
{
	return blocks(__func__, &(struct blocks){ .combiner = MPI_COMBINER_STRUCT, .n = count, .lens.narrow = array_of_blocklengths,
						  .disps.addr = array_of_displacements, .olds = array_of_types }, newtype);
}
MPI_DONE(Type_create_struct);

int PMPI_Type_create_struct_c(MPI_Count count, const MPI_Count array_of_blocklengths[], const MPI_Count array_of_displacements[],
			      const MPI_Datatype array_of_types[], MPI_Datatype *newtype)
{
	return blocks(__func__, &(struct blocks){ .combiner = MPI_COMBINER_STRUCT, .wide = true, .n = count,
						  .lens.wide = array_of_blocklengths, .disps.wide = array_of_displacements,
						  .olds = array_of_types }, newtype);
}
MPI_DONE(Type_create_struct_c);

/* As they are, or with other bounds */

static int resized(const char *function, bool wide, MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype *newtype)
{
	struct MPI_ABI_Datatype *old = wm_type(oldtype);
	struct wm_draft draft;
	struct wm_made *made;
	MPI_Count ub;
	int r = 0;

	if (!old)
		return wm_error(NULL, function, MPI_ERR_TYPE, BAD_TYPE);
	if (!newtype)
		return wm_error(NULL, function, MPI_ERR_ARG, BAD_NULL);
	made = wm_made_new(MPI_COMBINER_RESIZED, wide, 0, 2, 1);
	if (made) {
		wm_made_addr(made, lb);
		wm_made_addr(made, extent);
		wm_made_type(made, old);
	}
	wm_draft_of(&draft, old);
	if (__builtin_add_overflow(lb, extent, &ub))
		r = MPI_ERR_COUNT;
	else
		wm_draft_bounds(&draft, lb, extent);
	return wm_type_new(function, r, &draft, made, newtype);
}

int PMPI_Type_create_resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype *newtype)
{
	return resized(__func__, false, oldtype, lb, extent, newtype);
}
MPI_DONE(Type_create_resized);

int PMPI_Type_create_resized_c(MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype *newtype)
{
	return resized(__func__, true, oldtype, lb, extent, newtype);
}
MPI_DONE(Type_create_resized_c);

int PMPI_Type_dup(MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	struct MPI_ABI_Datatype *old = wm_type(oldtype);
	struct wm_draft draft;
	struct wm_made *made;
	MPI_Datatype new;
	int r;

	if (!old)
		return wm_error(NULL, __func__, MPI_ERR_TYPE, BAD_TYPE);
	if (!newtype)
		return wm_error(NULL, __func__, MPI_ERR_ARG, BAD_NULL);
	made = wm_made_new(MPI_COMBINER_DUP, false, 0, 0, 1);
	if (made)
		wm_made_type(made, old);
	wm_draft_of(&draft, old);
	r = wm_type_new(__func__, 0, &draft, made, &new);
	if (r)
		return r;
	new->committed = old->committed;
	r = wm_attrs_copy(&new->attrs, &old->attrs, oldtype);
	if (r) {
		wm_attrs_delete(&new->attrs, new);
		wm_type_put(new);
		*newtype = MPI_DATATYPE_NULL;
		return wm_error(NULL, __func__, r, "a function that copies an attribute failed");
	}
	*newtype = new;
	return MPI_SUCCESS;
}
MPI_DONE(Type_dup);
