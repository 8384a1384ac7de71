/* descriptors.h - how many of the process's descriptors who is not of the job may hold. */
#ifndef WF_BASE_DESCRIPTORS_H
#define WF_BASE_DESCRIPTORS_H

#include <stdint.h>
#include <sys/resource.h>

#define WF_SILENT_PART 8                /* who has not said yet who he is holds this part of them at most */
#define WF_UNPROVED_PART 2              /* who has, and has not proved it: many of the job may come at once */
#define WF_DESCRIPTORS_LEAST 16

/* A @part of them, and at most @most. */
static inline uint32_t wf_descriptors_part(uint32_t part, uint32_t most)
{
	struct rlimit files;
	uint64_t n;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return most;
	n = files.rlim_cur / part;
	n = n < WF_DESCRIPTORS_LEAST ? WF_DESCRIPTORS_LEAST : n;
	return n < most ? (uint32_t)n : most;
}

#endif
