/* attr_call.c - MPI's calls for attributes (attr.c), in their old and new names, and the predefined attributes.
 *
 * The predefined ones are the same on every communicator: what they tell is the same for all.
 */
#include <limits.h>
#include <stdlib.h>

#include "attr.h"

/* Communicators */

/* The value of a predefined key is the address of an int; NULL: @number is none. */
static const int *predefined(int number)
{
	static const int tag_ub = INT_MAX, host = MPI_PROC_NULL, io = MPI_ANY_SOURCE, yes = 1, no = 0;
	static int appnum, lastusedcode;        /* the program gets the address of a plain int, and reads it as it likes */
	const char *text;

	switch (number) {
	case MPI_TAG_UB:
		return &tag_ub;
	case MPI_HOST:
		return &host;
	case MPI_IO:
		return &io;
	case MPI_APPNUM:                /* which of the programs between colons */
		text = getenv("WEFT_APPNUM");
		__atomic_store_n(&appnum, text ? atoi(text) : 0, __ATOMIC_RELAXED);
		return &appnum;
	case MPI_UNIVERSE_SIZE:
		return &wm_world.size;
	case MPI_WTIME_IS_GLOBAL:       /* the clock is the host's */
		return wm_world.here ? &yes : &no;
	case MPI_LASTUSEDCODE:
		__atomic_store_n(&lastusedcode, wm_lastusedcode(), __ATOMIC_RELAXED);
		return &lastusedcode;
	default:
		return NULL;
	}
}

int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function *comm_copy_attr_fn,
			    MPI_Comm_delete_attr_function *comm_delete_attr_fn, int *comm_keyval, void *extra_state)
{
	return wm_key_new(__func__, WM_COMM, (union wm_copy){ .comm = comm_copy_attr_fn },
		       (union wm_delete){ .comm = comm_delete_attr_fn }, extra_state, comm_keyval);
}
MPI_DONE(Comm_create_keyval);

int PMPI_Keyval_create(MPI_Copy_function *copy_fn, MPI_Delete_function *delete_fn, int *keyval, void *extra_state)
{
	return wm_key_new(__func__, WM_COMM, (union wm_copy){ .comm = copy_fn }, (union wm_delete){ .comm = delete_fn },
		       extra_state, keyval);
}
MPI_DONE(Keyval_create);

int PMPI_Comm_free_keyval(int *comm_keyval)
{
	return wm_key_free(__func__, WM_COMM, comm_keyval);
}
MPI_DONE(Comm_free_keyval);

int PMPI_Keyval_free(int *keyval)
{
	return wm_key_free(__func__, WM_COMM, keyval);
}
MPI_DONE(Keyval_free);

static int comm_set_attr(const char *function, MPI_Comm comm, int keyval, void *value)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);

	if (!c)
		return wm_error(NULL, function, MPI_ERR_COMM, "no communicator");
	return wm_attr_set(c, function, &c->attrs, comm, WM_COMM, keyval, value);
}

int PMPI_Comm_set_attr(MPI_Comm comm, int comm_keyval, void *attribute_val)
{
	return comm_set_attr(__func__, comm, comm_keyval, attribute_val);
}
MPI_DONE(Comm_set_attr);

int PMPI_Attr_put(MPI_Comm comm, int keyval, void *attribute_val)
{
	return comm_set_attr(__func__, comm, keyval, attribute_val);
}
MPI_DONE(Attr_put);

static int comm_get_attr(const char *function, MPI_Comm comm, int keyval, void *ret_value, int *ret_flag)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);
	const int *known;

	if (!c)
		return wm_error(NULL, function, MPI_ERR_COMM, "no communicator");
	if (!ret_value || !ret_flag)
		return wm_error(c, function, MPI_ERR_ARG, "no place for the value or the flag");
	known = predefined(keyval);
	if (!known)
		return wm_attr_get(c, function, &c->attrs, WM_COMM, keyval, ret_value, ret_flag);
	*(const int **)ret_value = known;
	*ret_flag = 1;
	return MPI_SUCCESS;
}

int PMPI_Comm_get_attr(MPI_Comm comm, int comm_keyval, void *attribute_val, int *flag)
{
	return comm_get_attr(__func__, comm, comm_keyval, attribute_val, flag);
}
MPI_DONE(Comm_get_attr);

int PMPI_Attr_get(MPI_Comm comm, int keyval, void *attribute_val, int *flag)
{
	return comm_get_attr(__func__, comm, keyval, attribute_val, flag);
}
MPI_DONE(Attr_get);

static int comm_delete_attr(const char *function, MPI_Comm comm, int keyval)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);

	if (!c)
		return wm_error(NULL, function, MPI_ERR_COMM, "no communicator");
	return wm_attr_delete(c, function, &c->attrs, comm, WM_COMM, keyval);
}

int PMPI_Comm_delete_attr(MPI_Comm comm, int comm_keyval)
{
	return comm_delete_attr(__func__, comm, comm_keyval);
}
MPI_DONE(Comm_delete_attr);

int PMPI_Attr_delete(MPI_Comm comm, int keyval)
{
	return comm_delete_attr(__func__, comm, keyval);
}
MPI_DONE(Attr_delete);

/* Datatypes */

int PMPI_Type_create_keyval(MPI_Type_copy_attr_function *type_copy_attr_fn,
			    MPI_Type_delete_attr_function *type_delete_attr_fn, int *type_keyval, void *extra_state)
{
	return wm_key_new(__func__, WM_TYPE, (union wm_copy){ .type = type_copy_attr_fn },
		       (union wm_delete){ .type = type_delete_attr_fn }, extra_state, type_keyval);
}
MPI_DONE(Type_create_keyval);

int PMPI_Type_free_keyval(int *type_keyval)
{
	return wm_key_free(__func__, WM_TYPE, type_keyval);
}
MPI_DONE(Type_free_keyval);

int PMPI_Type_set_attr(MPI_Datatype datatype, int type_keyval, void *attribute_val)
{
	struct MPI_ABI_Datatype *t = wm_type(datatype);

	if (!t)
		return wm_error(NULL, __func__, MPI_ERR_TYPE, "no datatype");
	return wm_attr_set(NULL, __func__, &t->attrs, datatype, WM_TYPE, type_keyval, attribute_val);
}
MPI_DONE(Type_set_attr);

int PMPI_Type_get_attr(MPI_Datatype datatype, int type_keyval, void *attribute_val, int *flag)
{
	struct MPI_ABI_Datatype *t = wm_type(datatype);

	if (!t)
		return wm_error(NULL, __func__, MPI_ERR_TYPE, "no datatype");
	if (!attribute_val || !flag)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "no place for the value or the flag");
	return wm_attr_get(NULL, __func__, &t->attrs, WM_TYPE, type_keyval, attribute_val, flag);
}
MPI_DONE(Type_get_attr);

int PMPI_Type_delete_attr(MPI_Datatype datatype, int type_keyval)
{
	struct MPI_ABI_Datatype *t = wm_type(datatype);

	if (!t)
		return wm_error(NULL, __func__, MPI_ERR_TYPE, "no datatype");
	return wm_attr_delete(NULL, __func__, &t->attrs, datatype, WM_TYPE, type_keyval);
}
MPI_DONE(Type_delete_attr);

/* Windows: there are none yet, so that a handle of one is always wrong; keys for them can be made ahead. */

int PMPI_Win_create_keyval(MPI_Win_copy_attr_function *win_copy_attr_fn,
			   MPI_Win_delete_attr_function *win_delete_attr_fn, int *win_keyval, void *extra_state)
{
	return wm_key_new(__func__, WM_WIN, (union wm_copy){ .win = win_copy_attr_fn },
		       (union wm_delete){ .win = win_delete_attr_fn }, extra_state, win_keyval);
}
MPI_DONE(Win_create_keyval);

int PMPI_Win_free_keyval(int *win_keyval)
{
	return wm_key_free(__func__, WM_WIN, win_keyval);
}
MPI_DONE(Win_free_keyval);

int PMPI_Win_set_attr(MPI_Win win, int win_keyval, void *attribute_val)
{
	(void)win;
	(void)win_keyval;
	(void)attribute_val;
	return wm_error(NULL, __func__, MPI_ERR_WIN, "no window");
}
MPI_DONE(Win_set_attr);

int PMPI_Win_get_attr(MPI_Win win, int win_keyval, void *attribute_val, int *flag)
{
	(void)win;
	(void)win_keyval;
	(void)attribute_val;
	(void)flag;
	return wm_error(NULL, __func__, MPI_ERR_WIN, "no window");
}
MPI_DONE(Win_get_attr);

int PMPI_Win_delete_attr(MPI_Win win, int win_keyval)
{
	(void)win;
	(void)win_keyval;
	return wm_error(NULL, __func__, MPI_ERR_WIN, "no window");
}
MPI_DONE(Win_delete_attr);
