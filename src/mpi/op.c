/* op.c - operations of reductions: handles of predefined and user ones. What the predefined compute is in op_apply.c. */
#include <limits.h>

#include "inner.h"
#include "op.h"

#define PREDEFINED(number, commutes) [number] = { .predefined = true, .commutative = (commutes) }

static struct MPI_ABI_Op ops[WM_OPS] = {
	PREDEFINED(WM_OP_SUM, true), PREDEFINED(WM_OP_MIN, true), PREDEFINED(WM_OP_MAX, true), PREDEFINED(WM_OP_PROD, true),
	PREDEFINED(WM_OP_BAND, true), PREDEFINED(WM_OP_BOR, true), PREDEFINED(WM_OP_BXOR, true),
	PREDEFINED(WM_OP_LAND, true), PREDEFINED(WM_OP_LOR, true), PREDEFINED(WM_OP_LXOR, true),
	PREDEFINED(WM_OP_MINLOC, true), PREDEFINED(WM_OP_MAXLOC, true),
	PREDEFINED(WM_OP_REPLACE, false), PREDEFINED(WM_OP_NO_OP, false),
};

struct MPI_ABI_Op *wm_op(MPI_Op op)
{
	uintptr_t n = (uintptr_t)op;

	if (WM_LIKELY(n >> 5 == 1))
		return ops[n & 0x1f].predefined ? &ops[n & 0x1f] : NULL;
	return wm_object_is(op, WM_OP) ? op : NULL;
}

void wm_op_put(struct MPI_ABI_Op *op)
{
	if (!op->predefined && wm_object_put(&op->obj))
		wm_object_free(op);
}

bool wm_op_takes(const struct MPI_ABI_Op *op, const struct MPI_ABI_Datatype *type)
{
	return !op->predefined || wm_op_function((enum wm_op_number)(op - ops), type);
}

void wm_op_apply(struct MPI_ABI_Op *op, const void *in, void *inout, MPI_Count count, MPI_Datatype type)
{
	struct MPI_ABI_Datatype *t;

	if (op->predefined) {
		t = wm_type(type);
		wm_op_function((enum wm_op_number)(op - ops), t)(in, inout, (size_t)count, (size_t)t->extent);
	} else if (op->large) {
		op->call_c((void *)(uintptr_t)in, inout, &count, &type);
	} else {
		for (MPI_Count at = 0, left; (left = count - at) > 0; at += INT_MAX) {
			MPI_Aint skip = (MPI_Aint)(at * wm_type(type)->extent);
			int n = left < INT_MAX ? (int)left : INT_MAX;

			op->call((char *)(uintptr_t)in + skip, (char *)inout + skip, &n, &type);
		}
	}
}

static int create(const char *function, MPI_User_function *call, MPI_User_function_c *call_c, int commute, MPI_Op *ret_op)
{
	struct MPI_ABI_Op *op;

	if ((!call && !call_c) || !ret_op)
		return wm_error(NULL, function, MPI_ERR_ARG, "no %s", ret_op ? "function" : "place for the handle");
	op = wm_object_new(WM_OP, sizeof(*op));
	if (!op)
		return wm_error(NULL, function, MPI_ERR_NO_MEM, "no memory for an operation");
	op->commutative = commute;
	op->large = call_c;
	if (call_c)
		op->call_c = call_c;
	else
		op->call = call;
	*ret_op = op;
	return MPI_SUCCESS;
}

int PMPI_Op_create(MPI_User_function *user_fn, int commute, MPI_Op *op)
{
	return create(__func__, user_fn, NULL, commute, op);
}
MPI_DONE(Op_create);

int PMPI_Op_create_c(MPI_User_function_c *user_fn, int commute, MPI_Op *op)
{
	return create(__func__, NULL, user_fn, commute, op);
}
MPI_DONE(Op_create_c);

int PMPI_Op_free(MPI_Op *op)
{
	struct MPI_ABI_Op *o = op ? wm_op(*op) : NULL;

	if (!o || o->predefined)
		return wm_error(NULL, __func__, MPI_ERR_OP, o ? "a predefined operation is not freed" : "not an operation");
	wm_op_put(o);
	*op = MPI_OP_NULL;
	return MPI_SUCCESS;
}
MPI_DONE(Op_free);

int PMPI_Op_commutative(MPI_Op op, int *commute)
{
	struct MPI_ABI_Op *o = wm_op(op);

	if (!o)
		return wm_error(NULL, __func__, MPI_ERR_OP, "not an operation");
	if (!commute)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "no place for the answer");
	*commute = o->commutative;
	return MPI_SUCCESS;
}
MPI_DONE(Op_commutative);

int PMPI_Reduce_local_c(const void *inbuf, void *inoutbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op)
{
	struct MPI_ABI_Datatype *type = wm_type(datatype);
	struct MPI_ABI_Op *o = wm_op(op);
	int r = wm_check_data(inbuf, count, type);

	if (!r)
		r = wm_check_data(inoutbuf, count, type);
	if (!r && count && (inbuf == MPI_IN_PLACE || inoutbuf == MPI_IN_PLACE || inbuf == inoutbuf))
		r = MPI_ERR_BUFFER;
	if (r)
		return wm_error(NULL, __func__, r, "a buffer, the count or the datatype is none");
	if (!o || !wm_op_takes(o, type))
		return wm_error(NULL, __func__, MPI_ERR_OP, o ? "not an operation on elements of this type" : "not an operation");
	if (count)
		wm_op_apply(o, inbuf, inoutbuf, count, datatype);
	return MPI_SUCCESS;
}
MPI_DONE(Reduce_local_c);
