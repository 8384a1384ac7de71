/* type.c - datatypes: the predefined ones, and the life of those that are made.
 *
 * A made one is there as long as a handle, another type or an operation uses it. Its shape says where the bytes are
 * (shape.h), what it was made with serves MPI_Type_get_contents and the counting of basic elements.
 */
#include <stdio.h>
#include <wchar.h>

#include "type.h"

struct MPI_ABI_Datatype wm_types[256];

struct float_int { float value; int index; };
struct double_int { double value; int index; };
struct long_int { long value; int index; };
struct short_int { short value; int index; };
struct long_double_int { long double value; int index; };

/* Single values, by the elder name where there are two. Fortran's have the sizes that its compilers give them; what C has no name for is bytes here. */
static const struct single {
	MPI_Datatype type;
	const char *name;
	uint8_t size, align, base;
} singles[] = {
#define C(name, c, base) { name, #name, sizeof(c), _Alignof(c), WM_BASE_##base }
#define FORTRAN(name, size, align, base) { name, #name, size, align, WM_BASE_##base }
	C(MPI_AINT, MPI_Aint, I64),
	C(MPI_COUNT, MPI_Count, I64),
	C(MPI_OFFSET, MPI_Offset, I64),
	C(MPI_PACKED, char, NONE),
	C(MPI_SHORT, short, I16),
	C(MPI_INT, int, I32),
	C(MPI_LONG, long, I64),
	C(MPI_LONG_LONG_INT, long long, I64),
	C(MPI_UNSIGNED_SHORT, unsigned short, U16),
	C(MPI_UNSIGNED, unsigned, U32),
	C(MPI_UNSIGNED_LONG, unsigned long, U64),
	C(MPI_UNSIGNED_LONG_LONG, unsigned long long, U64),
	C(MPI_FLOAT, float, F32),
	C(MPI_C_COMPLEX, float _Complex, C32),
	C(MPI_CXX_FLOAT_COMPLEX, float _Complex, C32),
	C(MPI_DOUBLE, double, F64),
	C(MPI_C_DOUBLE_COMPLEX, double _Complex, C64),
	C(MPI_CXX_DOUBLE_COMPLEX, double _Complex, C64),
	C(MPI_LONG_DOUBLE, long double, LD),
	C(MPI_C_LONG_DOUBLE_COMPLEX, long double _Complex, CLD),
	C(MPI_CXX_LONG_DOUBLE_COMPLEX, long double _Complex, CLD),
	C(MPI_C_BOOL, bool, BOOL),
	C(MPI_CXX_BOOL, bool, BOOL),
	C(MPI_WCHAR, wchar_t, CHAR),
	C(MPI_INT8_T, int8_t, I8),
	C(MPI_UINT8_T, uint8_t, U8),
	C(MPI_CHAR, char, CHAR),
	C(MPI_SIGNED_CHAR, signed char, I8),
	C(MPI_UNSIGNED_CHAR, unsigned char, U8),
	C(MPI_BYTE, char, BYTE),
	C(MPI_INT16_T, int16_t, I16),
	C(MPI_UINT16_T, uint16_t, U16),
	C(MPI_INT32_T, int32_t, I32),
	C(MPI_UINT32_T, uint32_t, U32),
	C(MPI_INT64_T, int64_t, I64),
	C(MPI_UINT64_T, uint64_t, U64),
	FORTRAN(MPI_LOGICAL, 4, 4, LOGICAL),
	FORTRAN(MPI_INTEGER, 4, 4, I32),
	FORTRAN(MPI_REAL, 4, 4, F32),
	FORTRAN(MPI_COMPLEX, 8, 4, C32),
	FORTRAN(MPI_DOUBLE_PRECISION, 8, 8, F64),
	FORTRAN(MPI_DOUBLE_COMPLEX, 16, 8, C64),
	FORTRAN(MPI_CHARACTER, 1, 1, CHAR),
	FORTRAN(MPI_LOGICAL1, 1, 1, LOGICAL1),
	FORTRAN(MPI_INTEGER1, 1, 1, I8),
	FORTRAN(MPI_LOGICAL2, 2, 2, LOGICAL2),
	FORTRAN(MPI_INTEGER2, 2, 2, I16),
	FORTRAN(MPI_REAL2, 2, 2, NONE),
	FORTRAN(MPI_LOGICAL4, 4, 4, LOGICAL),
	FORTRAN(MPI_INTEGER4, 4, 4, I32),
	FORTRAN(MPI_REAL4, 4, 4, F32),
	FORTRAN(MPI_COMPLEX4, 4, 2, NONE),
	FORTRAN(MPI_LOGICAL8, 8, 8, LOGICAL8),
	FORTRAN(MPI_INTEGER8, 8, 8, I64),
	FORTRAN(MPI_REAL8, 8, 8, F64),
	FORTRAN(MPI_COMPLEX8, 8, 4, C32),
	FORTRAN(MPI_LOGICAL16, 16, 16, NONE),
	FORTRAN(MPI_INTEGER16, 16, 16, I128),
	FORTRAN(MPI_REAL16, 16, 16, NONE),
	FORTRAN(MPI_COMPLEX16, 16, 8, C64),
	FORTRAN(MPI_COMPLEX32, 32, 16, NONE),
#undef C
#undef FORTRAN
};

/* Pairs: two basic elements, with the holes that C leaves. */
static const struct pair {
	MPI_Datatype type;
	const char *name;
	uint8_t value_size, index_at, index_size, extent, align, base;
} pairs[] = {
#define C(name, c, base)                                                                                                \
	{ name, #name, sizeof((c){ 0 }.value), offsetof(c, index), sizeof(int), sizeof(c), _Alignof(c), WM_BASE_##base }
	C(MPI_FLOAT_INT, struct float_int, FLOAT_INT),
	C(MPI_DOUBLE_INT, struct double_int, DOUBLE_INT),
	C(MPI_LONG_INT, struct long_int, LONG_INT),
	C(MPI_SHORT_INT, struct short_int, SHORT_INT),
	C(MPI_LONG_DOUBLE_INT, struct long_double_int, LDOUBLE_INT),
#undef C
	{ MPI_2INT, "MPI_2INT", 4, 4, 4, 8, 4, WM_BASE_2INT },
	{ MPI_2REAL, "MPI_2REAL", 4, 4, 4, 8, 4, WM_BASE_2REAL },
	{ MPI_2DOUBLE_PRECISION, "MPI_2DOUBLE_PRECISION", 8, 8, 8, 16, 8, WM_BASE_2DOUBLE },
	{ MPI_2INTEGER, "MPI_2INTEGER", 4, 4, 4, 8, 4, WM_BASE_2INTEGER },
};

static struct MPI_ABI_Datatype *predefine(MPI_Datatype type, const char *name, uint8_t base, uint8_t align)
{
	struct MPI_ABI_Datatype *t = &wm_types[(uintptr_t)type & 0xff];

	atomic_init(&t->obj.kind, WM_TYPE);
	t->predefined = t->committed = true;
	t->base = base;
	t->align = align;
	snprintf(t->name, sizeof(t->name), "%s", name);
	wm_attrs_init(&t->attrs);
	return t;
}

__attribute__((constructor)) static void types_init(void)
{
	for (size_t i = 0; i < sizeof(singles) / sizeof(*singles); i++) {
		const struct single *s = &singles[i];
		struct MPI_ABI_Datatype *t = predefine(s->type, s->name, s->base, s->align);

		t->size = t->extent = t->true_extent = s->size;
		t->elements = 1;
		t->plain = true;
	}
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		const struct pair *p = &pairs[i];
		struct MPI_ABI_Datatype *t = predefine(p->type, p->name, p->base, p->align);
		struct wm_part both[2] = { { .len = p->value_size }, { .off = p->index_at, .len = p->index_size } }, part;

		t->size = p->value_size + p->index_size;
		t->extent = p->extent;
		t->true_extent = p->index_at + p->index_size;
		t->elements = 2;
		t->plain = t->size == t->extent;
		if (!t->plain && (wm_part_list(&part, both, 2) || wm_part_shape(&part, &t->shape)))
			t->predefined = false;          /* no memory so early: the type is not there */
	}
}

MPI_Datatype wm_type_handle(struct MPI_ABI_Datatype *type)
{
	if (type >= wm_types && type < wm_types + 256)
		return (MPI_Datatype)(uintptr_t)(0x200 + (type - wm_types));
	return type;
}

int wm_type_new(const char *function, int r, struct wm_draft *draft, struct wm_made *made, MPI_Datatype *ret_type)
{
	struct MPI_ABI_Datatype *t = NULL;

	if (!r) {
		t = wm_object_new(WM_TYPE, sizeof(*t));
		r = t && made ? 0 : MPI_ERR_NO_MEM;
	}
	if (!r) {
		wm_attrs_init(&t->attrs);
		atomic_init(&t->handles, 1);
		t->size = draft->size;
		t->elements = draft->elements;
		t->lb = draft->none ? 0 : draft->lb;
		t->extent = draft->none ? 0 : draft->ub - draft->lb;
		t->true_lb = draft->size ? draft->true_lb : 0;
		t->true_extent = draft->size ? draft->true_ub - draft->true_lb : 0;
		t->align = draft->align;
		t->marked = draft->marked;
		t->plain = t->size == 0 || (!draft->part.shape && draft->part.off == 0 && t->lb == 0 && t->extent == t->size);
		if (!t->plain)
			r = wm_part_shape(&draft->part, &t->shape);
	}
	if (r) {
		if (t)
			wm_object_free(t);
		wm_draft_put(draft);
		wm_made_free(made);
		return wm_error(NULL, function, r, r == MPI_ERR_NO_MEM ? "no memory" : "a datatype larger than can be counted");
	}
	t->made = made;
	*ret_type = t;
	return MPI_SUCCESS;
}

void wm_type_put(struct MPI_ABI_Datatype *type)
{
	if (type->predefined || !wm_object_put(&type->obj))
		return;
	wm_shape_put(type->shape);
	wm_made_free(type->made);
	wm_object_free(type);
}

int PMPI_Type_commit(MPI_Datatype *datatype)
{
	struct MPI_ABI_Datatype *t = datatype ? wm_type(*datatype) : NULL;

	if (!t)
		return wm_error(NULL, __func__, MPI_ERR_TYPE, "not a datatype");
	if (!t->committed)              /* predefined ones are only read */
		t->committed = true;
	return MPI_SUCCESS;
}
MPI_DONE(Type_commit);

int PMPI_Type_free(MPI_Datatype *datatype)
{
	struct MPI_ABI_Datatype *t = datatype ? wm_type(*datatype) : NULL;
	int r;

	if (!t)
		return wm_error(NULL, __func__, MPI_ERR_TYPE, "not a datatype");
	if (t->predefined)
		return wm_error(NULL, __func__, MPI_ERR_TYPE, "a predefined datatype is not freed");
	if (atomic_fetch_sub_explicit(&t->handles, 1, memory_order_acq_rel) == 1) {
		r = wm_attrs_delete(&t->attrs, t);
		if (r) {
			atomic_fetch_add_explicit(&t->handles, 1, memory_order_relaxed);
			return wm_error(NULL, __func__, r, "a function that deletes an attribute failed");
		}
	}
	*datatype = MPI_DATATYPE_NULL;
	wm_type_put(t);
	return MPI_SUCCESS;
}
MPI_DONE(Type_free);
