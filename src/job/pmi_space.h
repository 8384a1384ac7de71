/* pmi_space.h - the key-value space of the launcher that started this process.
 *
 * A launcher of a site (mpiexec, mpirun, srun) gives the processes it starts together a common name, each a rank, and a
 * space where each can put texts that all can get after a fence. That is all weft wants of it: by this the processes find each
 * other (pact.h), and everything after goes over weft itself.
 *
 *   open ; put ... fence get ... ; put ... fence get ... ; close
 *
 * Three ways to it, one at a time: PMIx (libpmix, loaded when the environment speaks of it), PMI-2 and PMI-1 (text over
 * the socket PMI_FD). What a launcher says is taken for a stranger's: bounded, checked, and waited for only so long. After
 * an answer that makes no sense or comes too late the space is spoilt: nobody knows any more which answer belongs to which question,
 * and every call but close says so.
 *
 * Threads: one at a time.
 */
#ifndef WF_JOB_PMI_SPACE_H
#define WF_JOB_PMI_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/base.h>

#define WF_SPACE_JOB 256        /* with their ends; what every launcher has room for */
#define WF_SPACE_KEY 40
#define WF_SPACE_VALUE 641
#define WF_SPACE_RANKS (1u << 24)       /* a job has no more */

enum wf_space_kind { WF_SPACE_PMIX, WF_SPACE_PMI2, WF_SPACE_PMI1 };

struct wf_space {
	/* set by open */
	uint32_t rank, size;
	char job[WF_SPACE_JOB];         /* the launcher's name of the job */
	const struct wf_space_back *back;
	/* inside */
	void *state;                    /* of the back end; NULL: closed */
	int spoilt;                     /* 0, or what every further call answers */
};

/* How long open, put, get and close wait for the launcher, in ns. A test makes it shorter. */
extern int64_t wf_space_patience;

/* What is loaded for PMIx; a test names a library that is not there. */
extern const char *wf_pmix_library;

/* Returns 1: there is a launcher, and *@ret_space is open; 0: no trace of one in the environment; negative: there is one, but it
 * does not work, and the words say why. Once in the life of a process: -EALREADY. */
int wf_space_open(struct wf_space *ret_space);

/* The same by one way, whatever the environment prefers. */
int wf_space_open_as(enum wf_space_kind kind, struct wf_space *ret_space);

/* Keys are letters, digits and ._- ; values also :/@+, . -EINVAL: other characters, empty or too long; nothing happened. A key is put once. */
int wf_space_put(struct wf_space *s, const char *key, const char *value);

/* When it returns 0 everybody has called it or has died, and everything put before can be got. -ETIMEDOUT: somebody has not come. */
int wf_space_fence(struct wf_space *s, weft_time until);

/* What @rank put before the last fence. -ENOENT: nothing; -ENOSPC: more than @n bytes, with its end. */
int wf_space_get(struct wf_space *s, uint32_t rank, const char *key, char *ret_value, size_t n);

/* Tells the launcher that this process is done with it, unless the space is spoilt. Everything is given back in any case. */
int wf_space_close(struct wf_space *s);

/* For the back ends. */

/* They see only keys and values that are in order, and ranks of the job; @until is never WEFT_NOW's 0. -ENOENT from get leaves all well,
 * any other failure spoils. */
struct wf_space_back {
	int (*put)(void *state, const char *key, const char *value, weft_time until);
	int (*fence)(void *state, weft_time until);
	int (*get)(void *state, uint32_t rank, const char *key, char ret_value[WF_SPACE_VALUE],
		   weft_time until);
	int (*close)(void *state, bool polite, weft_time until);        /* frees @state */
};

/* What every launcher must have said sensibly before a space is open: rank, size and job, which goes into keys, words and hashes. */
int wf_space_vet(const struct wf_space *s);

/* Each sets rank, size, job, back and state, and answers 0 or a failure. */
int wf_space_open_pmix(struct wf_space *s, weft_time until);
int wf_space_open_pmi(struct wf_space *s, int version, weft_time until);

#endif
