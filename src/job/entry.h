/* entry.h - threads spawned at entries of processes, this one or others: weft_entry_add, and the half of weft_spawn that is about threads. */
#ifndef WF_JOB_ENTRY_H
#define WF_JOB_ENTRY_H

#include <weft/job.h>

/* [any, not in a callback] weft_spawn of the one @o, which names an entry. */
int wf_entry_spawn(const struct weft_spawn_opts *o, weft_time until, weft_id *ret_ids, struct weft_req **ret_ends);

/* [one thread] This process leaves the job, its ports are still open. Spawns that are under way end with -ECANCELED, threads that have not reached
 * their function never do. Those in it are left alone. */
void wf_entries_close(void);

#endif
