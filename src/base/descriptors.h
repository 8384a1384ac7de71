/* descriptors.h - how many of the process's descriptors strangers may hold. */
#ifndef WF_BASE_DESCRIPTORS_H
#define WF_BASE_DESCRIPTORS_H

#include <stdint.h>
#include <sys/resource.h>

#define WF_STRANGERS_PART 8             /* this part of them: the rest is the program's, and that of lanes to the job's own processes */
#define WF_STRANGERS_LEAST 16

/* At most @most. */
static inline uint32_t wf_descriptors_for_strangers(uint32_t most)
{
	struct rlimit files;
	uint64_t part;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return most;
	part = files.rlim_cur / WF_STRANGERS_PART;
	part = part < WF_STRANGERS_LEAST ? WF_STRANGERS_LEAST : part;
	return part < most ? (uint32_t)part : most;
}

#endif
