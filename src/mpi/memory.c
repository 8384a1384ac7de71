/* memory.c - memory from MPI_Alloc_mem: a weft buffer, which other processes of the host can read. A message out of it, if it is more than 8 KiB and one
 * block, is copied once, by its receiver. MPIX_Weft_give_send hands it over.
 *
 * What is larger than weft's largest buffer, or than its pool has now, is ordinary memory.
 */
#include <stdlib.h>

#include "inner.h"

#define ALIGN 64

int PMPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
	struct weft_buf *buf;
	void *mem;

	if (size < 0 || !baseptr)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "%lld bytes", (long long)size);
	if (info != MPI_INFO_NULL && !wm_info(info))
		return wm_error(NULL, __func__, MPI_ERR_INFO, "not an info object");
	if (wm_alive() && weft_buf_get((size_t)size, WEFT_RAIL_ANY, &buf) == 0) {
		*(void **)baseptr = buf->data;
		return MPI_SUCCESS;
	}
	if (posix_memalign(&mem, ALIGN, size ? (size_t)size : 1))
		return wm_error(NULL, __func__, MPI_ERR_NO_MEM, "no memory for %lld bytes", (long long)size);
	*(void **)baseptr = mem;
	return MPI_SUCCESS;
}
MPI_DONE(Alloc_mem);

int PMPI_Free_mem(void *base)
{
	struct weft_buf *buf = base ? weft_buf_of(base) : NULL;
	int r;

	if (!buf) {
		free(base);
		return MPI_SUCCESS;
	}
	if (buf->data != base)
		return wm_error(NULL, __func__, MPI_ERR_BASE, "not an address that MPI_Alloc_mem gave");
	r = weft_buf_put(buf);
	return r < 0 ? wm_error(NULL, __func__, MPI_ERR_BASE, "%s", weft_last_error()) : MPI_SUCCESS;
}
MPI_DONE(Free_mem);
