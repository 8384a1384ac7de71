/* abroad.h - questions to the directories of other jobs: which job is meant, and who carries them there.
 *
 * A query with the word job=N is for the job that this one calls N; 0 is this one. Whoever is attached there tells the functions that ask (src/job/attach.c).
 */
#ifndef WF_DIR_ABROAD_H
#define WF_DIR_ABROAD_H

#include <stddef.h>
#include <stdint.h>
#include <weft/dir.h>

#include "dir/text.h"

struct wf_dir_abroad {
	/* [any, no lock] As the public calls; @query is sound, and has no word job= any more. */
	int (*find)(uint32_t job, const char *query, int want, weft_time until, weft_id *ret_ids, int max);
	int (*get)(weft_id id, const char *key, weft_time until, char *ret_text, size_t n);
};

void wf_dir_abroad_open(const struct wf_dir_abroad *abroad);    /* [one] NULL: nobody carries them */

/* [any] The number behind job= in @query, 0 without one, and the rest of it. 0; -EINVAL: it is no query, or no number. */
int wf_dir_job_of(const char *query, uint32_t *ret_job, char ret_rest[WF_DIR_QUERY + 1]);

/* [any] -ESRCH: no such job is attached. */
int wf_dir_abroad_find(uint32_t job, const char *query, int want, weft_time until, weft_id *ret_ids, int max);
int wf_dir_abroad_get(weft_id id, const char *key, weft_time until, char *ret_text, size_t n);

#endif
