/* body.h - what is said as bytes: numbers, texts and lists, written and read with one look at the end.
 *
 * Numbers are little-endian; a text has its length before it and a 0 behind it.
 */
#ifndef WF_JOB_BODY_H
#define WF_JOB_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writing and reading bodies. What does not fit, or is not there, makes the whole bad: look once at the end. */
struct wf_body {
	uint8_t *bytes;
	size_t at, n;                   /* n: room when writing, what there is when reading */
	bool bad;
};

void wf_body_u32(struct wf_body *b, uint32_t value);
void wf_body_text(struct wf_body *b, const char *text);               /* NULL is told from "" */
void wf_body_bytes(struct wf_body *b, const void *bytes, size_t n);   /* without their length */
uint32_t wf_body_get32(struct wf_body *b);
const char *wf_body_get_text(struct wf_body *b);                      /* in the body, ends with 0; NULL if it was, or if the body is bad */
const void *wf_body_get_bytes(struct wf_body *b, size_t n);
bool wf_body_whole(const struct wf_body *b);                          /* read to its end, and not bad */

/* Lists of texts. Reading: with a NULL behind it, the texts in the body; free(list). NULL: the body is bad. */
void wf_body_list(struct wf_body *b, char *const *list, size_t count);
size_t wf_list_count(char *const *list);                        /* up to the NULL; NULL: 0 */
char **wf_body_get_list(struct wf_body *b, size_t *ret_count);

#endif
