/* attr.h - keys and values as attr_call.c asks attr.c for them.
 *
 * Each of these is the body of a call of MPI: it raises its errors itself, as those of @function on @comm, NULL: on no
 * communicator.
 */
#ifndef WM_ATTR_H
#define WM_ATTR_H

#include "inner.h"

union wm_copy {                         /* by the key's kind */
	MPI_Comm_copy_attr_function *comm;
	MPI_Type_copy_attr_function *type;
	MPI_Win_copy_attr_function *win;
};

union wm_delete {
	MPI_Comm_delete_attr_function *comm;
	MPI_Type_delete_attr_function *type;
	MPI_Win_delete_attr_function *win;
};

enum { WM_WIN = WM_KINDS };             /* windows are no objects of the layer yet; their keys are */

int wm_key_new(const char *function, uint32_t kind, union wm_copy copy, union wm_delete delete, void *extra,
	       int *ret_number);
int wm_key_free(const char *function, uint32_t kind, int *number);

int wm_attr_set(struct MPI_ABI_Comm *comm, const char *function, struct wm_attrs *attrs, void *handle, uint32_t kind,
		int number, void *value);
int wm_attr_delete(struct MPI_ABI_Comm *comm, const char *function, struct wm_attrs *attrs, void *handle,
		   uint32_t kind, int number);
int wm_attr_get(struct MPI_ABI_Comm *comm, const char *function, struct wm_attrs *attrs, uint32_t kind, int number,
		void *ret_value, int *ret_flag);

#endif
