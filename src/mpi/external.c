/* external.c - packing in the form that every machine reads, "external32": big-endian, IEEE, sizes that MPI fixes.
 *
 * Elements are packed as they are into a small room, one stretch of like basic types after the other, and changed
 * there on their way; it is the slow way, for files and strangers.
 */
#include <float.h>
#include <limits.h>

#include "type.h"

#define ROOM 4096               /* bytes changed at a time: many times any basic type */

/* A basic type is a few numbers of one kind; a pair is two of these. */
struct form {
	uint8_t here, there;            /* bytes of a number */
	uint8_t numbers;
	enum { INTEGER, SIGNED, LONG_DOUBLE } kind;
};

static bool complex_like(const struct MPI_ABI_Datatype *basic)
{
	return basic->base == WM_BASE_C32 || basic->base == WM_BASE_C64 || basic->base == WM_BASE_CLD ||
	       basic == wm_type(MPI_COMPLEX4) || basic == wm_type(MPI_COMPLEX32) ||
	       (basic->made && basic->made->combiner == MPI_COMBINER_F90_COMPLEX);
}

static int forms_of(const struct MPI_ABI_Datatype *basic, struct form ret[2])
{
	uint8_t size = (uint8_t)basic->size;
	struct form f = { .here = size, .there = size, .numbers = 1, .kind = INTEGER };

	if (basic->elements == 2) {
		f.here = f.there = (uint8_t)wm_pair_value_size(basic);
		if (basic->base == WM_BASE_LONG_INT) {
			f.there = 4;
			f.kind = SIGNED;
		}
		if (basic->base == WM_BASE_LDOUBLE_INT)
			f.kind = LONG_DOUBLE;
		ret[0] = f;
		ret[1] = (struct form){ .here = (uint8_t)(size - f.here), .there = (uint8_t)(size - f.here), .numbers = 1 };
		return 2;
	}
	if (basic == wm_type(MPI_LONG) || basic == wm_type(MPI_UNSIGNED_LONG)) {
		f.there = 4;
		f.kind = basic->base == WM_BASE_I64 ? SIGNED : INTEGER;
	} else if (basic == wm_type(MPI_WCHAR)) {
		f.there = 2;
	} else if (basic->base == WM_BASE_LD) {
		f.kind = LONG_DOUBLE;
	} else if (complex_like(basic)) {
		f.here = f.there = size / 2;
		f.numbers = 2;
		f.kind = basic->base == WM_BASE_CLD ? LONG_DOUBLE : INTEGER;
	}
	ret[0] = f;
	return 1;
}

static MPI_Count external_size(const struct MPI_ABI_Datatype *basic)
{
	struct form f[2];
	MPI_Count size = 0;

	for (int i = forms_of(basic, f) - 1; i >= 0; i--)
		size += f[i].there * f[i].numbers;
	return size;
}

/* To or from IEEE's quadruple precision in this machine's order of bytes. */
static void long_double(unsigned char quad[16], unsigned char here[16], bool in)
{
#if LDBL_MANT_DIG == 64         /* x87: sign and exponent are the same; 63 bits of fraction behind a bit that is 1 */
	__extension__ typedef unsigned __int128 quad_bits;
	quad_bits q;
	uint64_t mantissa;
	uint16_t head;

	if (in) {
		memcpy(&q, quad, 16);
		head = (uint16_t)(q >> 112);
		mantissa = (uint64_t)(q >> 49) & INT64_MAX;
		if (head & 0x7fff)
			mantissa |= UINT64_C(1) << 63;
		memset(here, 0, 16);
		memcpy(here, &mantissa, 8);
		memcpy(here + 8, &head, 2);
	} else {
		memcpy(&mantissa, here, 8);
		memcpy(&head, here + 8, 2);
		q = (quad_bits)head << 112 | (quad_bits)(mantissa & INT64_MAX) << 49;
		memcpy(quad, &q, 16);
	}
#else
	memcpy(in ? here : quad, in ? quad : here, 16);
#endif
}

/* @from has the order of bytes that @to shall not have. */
static void turn(unsigned char *to, const unsigned char *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		to[i] = from[n - 1 - i];
#else
		to[i] = from[i];
#endif
}

static void number_out(const struct form *f, unsigned char *there, unsigned char *here)
{
	unsigned char turned[16], quad[16];

	if (f->kind == LONG_DOUBLE) {
		long_double(quad, here, false);
		turn(there, quad, 16);
		return;
	}
	turn(turned, here, f->here);
	memcpy(there, turned + f->here - f->there, f->there);           /* big-endian: what is cut off comes first */
}

static void number_in(const struct form *f, unsigned char *there, unsigned char *here)
{
	unsigned char wide[16], quad[16];

	if (f->kind == LONG_DOUBLE) {
		turn(quad, there, 16);
		long_double(quad, here, true);
		return;
	}
	memset(wide, f->kind == SIGNED && there[0] & 0x80 ? 0xff : 0, sizeof(wide));
	memcpy(wide + f->here - f->there, there, f->there);
	turn(here, wide, f->here);
}

/* A walk through the elements. */
struct walk {
	char *buf;
	MPI_Count count;
	struct MPI_ABI_Datatype *type;
	unsigned char *there;           /* the next byte outside */
	MPI_Count at;                   /* the next byte here */
	bool in;
};

static void walk_some(struct walk *w, const struct form *f, int forms, unsigned char *here, MPI_Count n)
{
	for (MPI_Count k = 0; k < n; k++)
		for (int i = 0; i < forms; i++)
			for (int j = 0; j < f[i].numbers; j++) {
				if (w->in)
					number_in(&f[i], w->there, here);
				else
					number_out(&f[i], w->there, here);
				here += f[i].here;
				w->there += f[i].there;
			}
}

static void walk_basics(void *user, const struct MPI_ABI_Datatype *basic, MPI_Count n)
{
	unsigned char room[ROOM];
	struct walk *w = user;
	struct form f[2];
	int forms = forms_of(basic, f);

	while (n) {
		MPI_Count some = n < ROOM / basic->size ? n : ROOM / basic->size, bytes = some * basic->size;

		if (!w->in)
			wm_type_pack(room, w->buf, w->count, w->type, w->at, bytes);
		walk_some(w, f, forms, room, some);
		if (w->in)
			wm_type_unpack(room, w->buf, w->count, w->type, w->at, bytes);
		w->at += bytes;
		n -= some;
	}
}

static void size_basics(void *user, const struct MPI_ABI_Datatype *basic, MPI_Count n)
{
	*(MPI_Count *)user += n * external_size(basic);
}

static MPI_Count size_outside(const struct MPI_ABI_Datatype *type, MPI_Count count)
{
	MPI_Count one = 0, all;

	wm_basics(type, 1, size_basics, &one);
	return __builtin_mul_overflow(one, count, &all) ? INT64_MAX : all;
}

static int check(const char *function, const char *datarep, const void *buf, MPI_Count count, const struct MPI_ABI_Datatype *type)
{
	int r = wm_check_data(buf, count, type);

	if (!datarep || strcmp(datarep, "external32") != 0)
		return wm_error(NULL, function, MPI_ERR_UNSUPPORTED_DATAREP, "no other form than \"external32\"");
	return r ? wm_error(NULL, function, r, "the elements to convert") : MPI_SUCCESS;
}

static int convert(const char *function, const char *datarep, void *buf, MPI_Count count, MPI_Datatype datatype, const void *there,
		   MPI_Count size, MPI_Count *position, bool in)
{
	struct MPI_ABI_Datatype *t = wm_type(datatype);
	struct walk w = { .buf = buf, .count = count, .type = t, .in = in };
	int r = check(function, datarep, buf, count, t);
	MPI_Count bytes;

	if (r)
		return r;
	bytes = size_outside(t, count);
	if (*position < 0 || size < 0)
		return wm_error(NULL, function, MPI_ERR_ARG, "a negative position or size");
	if (bytes > size - *position)
		return wm_error(NULL, function, MPI_ERR_TRUNCATE, in ? "the buffer holds less" : "the buffer is full");
	if (bytes && !there)
		return wm_error(NULL, function, MPI_ERR_BUFFER, "NULL for the buffer");
	w.there = (unsigned char *)(uintptr_t)there + *position;
	if (bytes)
		wm_basics(t, count, walk_basics, &w);
	*position += bytes;
	return MPI_SUCCESS;
}

int PMPI_Pack_external_c(const char *datarep, const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf,
			 MPI_Count outsize, MPI_Count *position)
{
	if (!position)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL for the position");
	return convert(__func__, datarep, (void *)(uintptr_t)inbuf, incount, datatype, outbuf, outsize, position, false);
}
MPI_DONE(Pack_external_c);

int PMPI_Pack_external(const char *datarep, const void *inbuf, int incount, MPI_Datatype datatype, void *outbuf, MPI_Aint outsize,
		       MPI_Aint *position)
{
	MPI_Count at = position ? *position : 0;
	int r = PMPI_Pack_external_c(datarep, inbuf, incount, datatype, outbuf, outsize, position ? &at : NULL);

	if (position)
		*position = (MPI_Aint)at;
	return r;
}
MPI_DONE(Pack_external);

int PMPI_Unpack_external_c(const char datarep[], const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
			   MPI_Count outcount, MPI_Datatype datatype)
{
	if (!position)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL for the position");
	return convert(__func__, datarep, outbuf, outcount, datatype, inbuf, insize, position, true);
}
MPI_DONE(Unpack_external_c);

int PMPI_Unpack_external(const char datarep[], const void *inbuf, MPI_Aint insize, MPI_Aint *position, void *outbuf, int outcount,
			 MPI_Datatype datatype)
{
	MPI_Count at = position ? *position : 0;
	int r = PMPI_Unpack_external_c(datarep, inbuf, insize, position ? &at : NULL, outbuf, outcount, datatype);

	if (position)
		*position = (MPI_Aint)at;
	return r;
}
MPI_DONE(Unpack_external);

int PMPI_Pack_external_size_c(const char *datarep, MPI_Count incount, MPI_Datatype datatype, MPI_Count *size)
{
	struct MPI_ABI_Datatype *t = wm_type(datatype);

	if (!datarep || strcmp(datarep, "external32") != 0)
		return wm_error(NULL, __func__, MPI_ERR_UNSUPPORTED_DATAREP, "no other form than \"external32\"");
	if (!t)
		return wm_error(NULL, __func__, MPI_ERR_TYPE, "not a datatype");
	if (incount < 0)
		return wm_error(NULL, __func__, MPI_ERR_COUNT, "a negative count");
	if (!size)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL for the result");
	*size = size_outside(t, incount);
	return MPI_SUCCESS;
}
MPI_DONE(Pack_external_size_c);

int PMPI_Pack_external_size(const char *datarep, int incount, MPI_Datatype datatype, MPI_Aint *size)
{
	MPI_Count n;
	int r = PMPI_Pack_external_size_c(datarep, incount, datatype, size ? &n : NULL);

	if (!r)
		*size = (MPI_Aint)n;
	return r;
}
MPI_DONE(Pack_external_size);
