/* pmi_x_abi.h - of PMIx's binary interface what weft uses: libpmix.so.2, from version 3 on.
 *
 * Only facts: sizes, places and numbers, as the PMIx standard and the libraries of the versions 3 to 5 have them; a test
 * compares them with the headers where those are installed. Version 2 has a smaller value, and is refused (pmi_x.c).
 */
#ifndef WF_JOB_PMI_X_ABI_H
#define WF_JOB_PMI_X_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define X_NSPACE 256            /* bytes of a job's name, with its end */
#define X_KEY 512

enum { X_BOOL = 1, X_STRING = 3, X_UINT32 = 14 };       /* kinds of values */
enum { X_SUCCESS = 0, X_NOT_FOUND = -46 };
#define X_GLOBAL 3              /* who may get what is put: everybody */
#define X_WHOLE_JOB (UINT32_MAX - 1)    /* a rank that stands for all */

#define X_JOB_SIZE "pmix.job.size"
#define X_COLLECT "pmix.collect"
#define X_IMMEDIATE "pmix.immediate"

struct x_proc {
	char nspace[X_NSPACE];
	uint32_t rank;
};

struct x_value {
	uint16_t type;
	union {
		bool flag;
		char *string;
		uint32_t uint32;
		uint64_t room[3];       /* the largest is three words */
	} data;
};

struct x_info {
	char key[X_KEY];
	uint32_t flags;
	struct x_value value;
};

_Static_assert(sizeof(struct x_proc) == 260 && sizeof(struct x_value) == 32 && sizeof(struct x_info) == 552, "PMIx's sizes");

/* Every function used, with its type: named once, so that table and look-up cannot differ. */
#define X_CALLS(X)                                                                                                     \
	X(PMIx_Get_version, const char *(*)(void))                                                                     \
	X(PMIx_Error_string, const char *(*)(int status))                                                              \
	X(PMIx_Init, int (*)(struct x_proc *ret_proc, struct x_info *info, size_t n))                                  \
	X(PMIx_Finalize, int (*)(const struct x_info *info, size_t n))                                                 \
	X(PMIx_Put, int (*)(uint8_t scope, const char *key, struct x_value *value))                                    \
	X(PMIx_Commit, int (*)(void))                                                                                  \
	X(PMIx_Fence, int (*)(const struct x_proc *who, size_t n, const struct x_info *info, size_t infos))            \
	X(PMIx_Get, int (*)(const struct x_proc *who, const char *key, const struct x_info *info, size_t n, struct x_value **ret_value))

#endif
