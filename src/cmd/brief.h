/* brief.h - what the launcher tells a station: the job, and what of it is that host's.
 *
 * And what a station says of itself first, so that hosts that cannot work together are told apart before anything is started.
 */
#ifndef BRIEF_H
#define BRIEF_H

#include "control.h"
#include "run.h"

/* What has to be the same on all hosts, and who answers. */
struct hello {
	char version[32];
	char machine[32];               /* uname's */
	char name[64];                  /* of the host, as it calls itself */
	uint32_t order;                 /* HELLO_ORDER as the machine writes it */
	uint32_t page;                  /* bytes */
};

#define HELLO_ORDER 0x01020304u

void hello_make(struct hello *ret_hello);
void hello_write(struct wf_body *b, const struct hello *h);
bool hello_read(struct wf_body *b, struct hello *ret_hello);
/* Why @b cannot be in a job with @a, in words; or an empty text. */
void hello_compare(const struct hello *a, const char *a_name, const struct hello *b, const char *b_name, char *words, size_t n);

/* @run with what concerns @host: its ranks. */
void brief_write(struct wf_body *b, const struct run *run, unsigned host, const char *adapter, char *const *environment, const char *directory);

/* Fills @ret_run; its texts lie in the body, which stays. *@ret_environment, *@ret_directory: likewise. False: nonsense, or no memory, and there is nothing to free. */
bool brief_read(struct wf_body *b, struct run *ret_run, char ***ret_environment, const char **ret_directory);
void brief_free(struct run *run, char **environment);           /* what was read */

#endif
