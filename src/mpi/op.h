/* op.h - predefined operations by number, and what they compute (op_apply.c). */
#ifndef WM_OP_H
#define WM_OP_H

#include "inner.h"

enum wm_op_number {                     /* the last 5 bits of the handle */
	WM_OP_SUM = 0x01, WM_OP_MIN, WM_OP_MAX, WM_OP_PROD,
	WM_OP_BAND = 0x08, WM_OP_BOR, WM_OP_BXOR,
	WM_OP_LAND = 0x10, WM_OP_LOR, WM_OP_LXOR,
	WM_OP_MINLOC = 0x18, WM_OP_MAXLOC,
	WM_OP_REPLACE = 0x1c, WM_OP_NO_OP,
	WM_OPS = 0x20
};

/* inout = in op inout for @n elements that lie @extent bytes apart. */
typedef void (*wm_op_fn)(const void *in, void *inout, size_t n, size_t extent);

/* NULL: not an operation on elements of this type. */
wm_op_fn wm_op_function(enum wm_op_number op, const struct MPI_ABI_Datatype *type);

#endif
