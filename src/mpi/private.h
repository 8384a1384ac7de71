/* private.h - what the extension library (src/mpix) calls of this one.
 *
 * libmpi_abi shows MPI's names and nothing else, so that what is inside goes through one symbol in a version of its own:
 * this table. Whoever changes it, or a struct of inner.h that src/mpix looks into, gives it the next number: a library of
 * another number is then refused by the loader, instead of being misread.
 */
#ifndef WM_PRIVATE_H
#define WM_PRIVATE_H

#include "request.h"

struct wm_inner_calls {
	struct MPI_ABI_Comm *world;     /* whose error handler those inherit that come from nowhere */
	struct MPI_ABI_Request *sent;

	struct MPI_ABI_Comm *(*comm)(MPI_Comm comm);
	int (*comm_open)(struct MPI_ABI_Comm *parent, struct MPI_ABI_Group *group, struct MPI_ABI_Group *remote, const weft_ctx ctx[2],
			 struct MPI_ABI_Comm **ret_comm);
	void (*comm_put)(struct MPI_ABI_Comm *comm);
	int (*split)(struct MPI_ABI_Comm *c, const char *function, int color, int key, struct MPI_ABI_Comm **ret_comm);
	int (*allgather)(struct MPI_ABI_Comm *comm, const void *mine, size_t len, void *ret_all);

	struct MPI_ABI_Group *(*group_new)(const weft_id *ids, int size);
	void (*group_put)(struct MPI_ABI_Group *group);

	void *(*object_new)(uint32_t kind, size_t size);
	void (*object_free)(void *object);

	int (*error)(struct MPI_ABI_Comm *comm, const char *function, int code, const char *fmt, ...)
		__attribute__((format(printf, 4, 5)));
	int (*weft_error)(struct MPI_ABI_Comm *comm, const char *function, int r);
	int (*class)(int r);

	int (*check_send)(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
	int (*check_recv)(const void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm);
	int (*refuse)(MPI_Comm comm, const char *function, int code, MPI_Count count, int rank, int tag);
	struct MPI_ABI_Request *(*request_new)(enum wm_what what, struct MPI_ABI_Comm *comm);
	void (*status_set)(MPI_Status *ret_status, const struct weft_status *st);
	void (*status_proc_null)(MPI_Status *ret_status);
};

extern const struct wm_inner_calls wm_inner_1;

#endif
