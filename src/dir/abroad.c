/* abroad.c - see abroad.h. */
#include "dir/abroad.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "dir/here.h"

#define JOBS 4096u

static const struct wf_dir_abroad *_Atomic abroad;

void wf_dir_abroad_open(const struct wf_dir_abroad *how)
{
	atomic_store_explicit(&abroad, how, memory_order_release);
}

/* Decimal, without a sign; -1: it is none. */
static int job_number(const char *text)
{
	uint32_t n = 0;

	if (!*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		n = 10 * n + (uint32_t)(*text - '0');
		if (n >= JOBS)
			return -1;
	}
	return (int)n;
}

int wf_dir_job_of(const char *query, uint32_t *ret_job, char ret_rest[WF_DIR_QUERY + 1])
{
	const char *from = query, *text = query, *why;
	size_t n = strlen(query), before;
	struct wf_dir_word w;
	bool found = false;
	int r, job = 0;

	if (n > WF_DIR_QUERY)
		return weft_fail(-EINVAL, "the query: a query has at most %d bytes", WF_DIR_QUERY);
	memcpy(ret_rest, query, n + 1);
	*ret_job = 0;
	if (query[strspn(query, " ")] == '/')
		return 0;
	while ((r = wf_dir_next_word(&text, true, &w, &why)) == 1) {
		if (wf_dir_key_of(w.key) == WF_KEY_JOB) {
			if (found || (job = job_number(w.value)) < 0)
				return weft_fail(-EINVAL, "the query: job= wants one number, from 0 to %u", JOBS - 1);
			found = true;
			before = (size_t)(from - query);
			memcpy(ret_rest + before, text, n - (size_t)(text - query) + 1);
		}
		from = text;
	}
	if (r < 0)
		return weft_fail(r, "the query: %s", why);
	*ret_job = (uint32_t)job;
	/* job=N alone is everything that is there. */
	if (found && !ret_rest[strspn(ret_rest, " ")])
		strcpy(ret_rest, "kind=*");
	return 0;
}

static int nobody(uint32_t job)
{
	return weft_fail(-ESRCH, "no job is attached as number %u", job);
}

int wf_dir_abroad_find(uint32_t job, const char *query, int want, weft_time until, weft_id *ret_ids, int max)
{
	const struct wf_dir_abroad *how = atomic_load_explicit(&abroad, memory_order_acquire);
	int r = wf_dir_check(query);

	if (r < 0)
		return r;
	return how ? how->find(job, query, want, until, ret_ids, max) : nobody(job);
}

int wf_dir_abroad_get(weft_id id, const char *key, weft_time until, char *ret_text, size_t n)
{
	const struct wf_dir_abroad *how = atomic_load_explicit(&abroad, memory_order_acquire);

	return how ? how->get(id, key, until, ret_text, n) : nobody((uint32_t)(id >> 52));
}
