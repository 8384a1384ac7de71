/* op_apply.c - the predefined operations: a loop for each pair of an operation and a base type, found in a table.
 *
 * The two operands never overlap. Integers wrap around: they are added and multiplied as unsigned ones of at least
 * the width of an int. Elements of a predefined type are those of an array in C, also where they have holes.
 */
#include <complex.h>
#include <limits.h>
#include <string.h>

#include "op.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")      /* at -O2 gcc 12 does not vectorise loops of unknown length */
#endif

#define LOOP(name, T, value)                                                                                \
	static void name(const void *in, void *inout, size_t n, size_t extent)                              \
	{                                                                                                   \
		const T *restrict a = in;                                                                   \
		T *restrict b = inout;                                                                      \
                                                                                                            \
		(void)extent;                                                                               \
		for (size_t i = 0; i < n; i++)                                                              \
			b[i] = (T)(value);                                                                  \
	}

#define ORDERED(base, T)                                                                                    \
	LOOP(min_##base, T, a[i] < b[i] ? a[i] : b[i])                                                      \
	LOOP(max_##base, T, a[i] > b[i] ? a[i] : b[i])

#define ARITHMETIC(base, T, W)                                                                              \
	LOOP(sum_##base, T, (W)a[i] + (W)b[i])                                                              \
	LOOP(prod_##base, T, (W)a[i] * (W)b[i])

#define LOGIC(base, T)                                                                                      \
	LOOP(land_##base, T, a[i] && b[i])                                                                  \
	LOOP(lor_##base, T, a[i] || b[i])                                                                   \
	LOOP(lxor_##base, T, !a[i] != !b[i])

#define BITS(base, T)                                                                                       \
	LOOP(band_##base, T, a[i] & b[i])                                                                   \
	LOOP(bor_##base, T, a[i] | b[i])                                                                    \
	LOOP(bxor_##base, T, a[i] ^ b[i])

#define INTEGER(base, T, W) ORDERED(base, T) ARITHMETIC(base, T, W) LOGIC(base, T) BITS(base, T)
#define FLOAT(base, T) ORDERED(base, T) ARITHMETIC(base, T, T)

/* A value and where it is; of equal ones the lower place. */
#define PAIR(base, V, I)                                                                                    \
	struct pair_##base {                                                                                \
		V value;                                                                                    \
		I place;                                                                                    \
	};                                                                                                  \
	PLACED(minloc_##base, struct pair_##base, <)                                                        \
	PLACED(maxloc_##base, struct pair_##base, >)

#define PLACED(name, T, beats)                                                                              \
	static void name(const void *in, void *inout, size_t n, size_t extent)                              \
	{                                                                                                   \
		const T *restrict a = in;                                                                   \
		T *restrict b = inout;                                                                      \
                                                                                                            \
		(void)extent;                                                                               \
		for (size_t i = 0; i < n; i++)                                                              \
			if (a[i].value beats b[i].value ||                                                  \
			    (a[i].value == b[i].value && a[i].place < b[i].place))                          \
				b[i] = a[i];                                                                \
	}

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

INTEGER(I8, int8_t, uint32_t)
INTEGER(I16, int16_t, uint32_t)
INTEGER(I32, int32_t, uint32_t)
INTEGER(I64, int64_t, uint64_t)
INTEGER(I128, int128, uint128)
INTEGER(U8, uint8_t, uint32_t)
INTEGER(U16, uint16_t, uint32_t)
INTEGER(U32, uint32_t, uint32_t)
INTEGER(U64, uint64_t, uint64_t)
FLOAT(F32, float)
FLOAT(F64, double)
FLOAT(LD, long double)
ARITHMETIC(C32, float complex, float complex)
ARITHMETIC(C64, double complex, double complex)
ARITHMETIC(CLD, long double complex, long double complex)
LOGIC(BOOL, bool)
PAIR(FLOAT_INT, float, int)
PAIR(DOUBLE_INT, double, int)
PAIR(LONG_INT, long, int)
PAIR(2INT, int, int)
PAIR(SHORT_INT, short, int)
PAIR(LDOUBLE_INT, long double, int)
PAIR(2REAL, float, float)
PAIR(2DOUBLE, double, double)

static void replace(const void *in, void *inout, size_t n, size_t extent)
{
	memcpy(inout, in, n * extent);
}

static void keep(const void *in, void *inout, size_t n, size_t extent)
{
	(void)in;
	(void)inout;
	(void)n;
	(void)extent;
}

/* The table. Fortran's logicals are integers of their size that are true or not. */

#define ORDERED_AT(base) [WM_OP_MIN] = min_##base, [WM_OP_MAX] = max_##base
#define ARITHMETIC_AT(base) [WM_OP_SUM] = sum_##base, [WM_OP_PROD] = prod_##base
#define LOGIC_AT(base) [WM_OP_LAND] = land_##base, [WM_OP_LOR] = lor_##base, [WM_OP_LXOR] = lxor_##base
#define BITS_AT(base) [WM_OP_BAND] = band_##base, [WM_OP_BOR] = bor_##base, [WM_OP_BXOR] = bxor_##base

#define INTEGER_AT(base) [WM_BASE_##base] = { ORDERED_AT(base), ARITHMETIC_AT(base), LOGIC_AT(base), BITS_AT(base) }
#define FLOAT_AT(base) [WM_BASE_##base] = { ORDERED_AT(base), ARITHMETIC_AT(base) }
#define COMPLEX_AT(base) [WM_BASE_##base] = { ARITHMETIC_AT(base) }
#define PAIR_AT(base, as) [WM_BASE_##base] = { [WM_OP_MINLOC] = minloc_##as, [WM_OP_MAXLOC] = maxloc_##as }

static const wm_op_fn functions[WM_BASE_2INTEGER + 1][WM_OPS] = {
	INTEGER_AT(I8), INTEGER_AT(I16), INTEGER_AT(I32), INTEGER_AT(I64), INTEGER_AT(I128),
	INTEGER_AT(U8), INTEGER_AT(U16), INTEGER_AT(U32), INTEGER_AT(U64),
	FLOAT_AT(F32), FLOAT_AT(F64), FLOAT_AT(LD),
	COMPLEX_AT(C32), COMPLEX_AT(C64), COMPLEX_AT(CLD),
	[WM_BASE_BOOL] = { LOGIC_AT(BOOL) },
	[WM_BASE_LOGICAL] = { LOGIC_AT(I32) },
	[WM_BASE_LOGICAL1] = { LOGIC_AT(I8) },
	[WM_BASE_LOGICAL2] = { LOGIC_AT(I16) },
	[WM_BASE_LOGICAL8] = { LOGIC_AT(I64) },
	[WM_BASE_BYTE] = { BITS_AT(U8) },
	PAIR_AT(FLOAT_INT, FLOAT_INT), PAIR_AT(DOUBLE_INT, DOUBLE_INT), PAIR_AT(LONG_INT, LONG_INT),
	PAIR_AT(2INT, 2INT), PAIR_AT(SHORT_INT, SHORT_INT), PAIR_AT(LDOUBLE_INT, LDOUBLE_INT),
	PAIR_AT(2REAL, 2REAL), PAIR_AT(2DOUBLE, 2DOUBLE), PAIR_AT(2INTEGER, 2INT),
};

wm_op_fn wm_op_function(enum wm_op_number op, const struct MPI_ABI_Datatype *type)
{
	unsigned base = type->base;

	if (!type->predefined)
		return NULL;
	if (op == WM_OP_REPLACE)
		return replace;
	if (op == WM_OP_NO_OP)
		return keep;
	/* MPI_CHAR is text to MPI, and a small integer to many programs. */
	if (type == wm_type(MPI_CHAR))
		base = CHAR_MIN < 0 ? WM_BASE_I8 : WM_BASE_U8;
	return functions[base][op];
}
