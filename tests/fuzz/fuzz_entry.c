/* fuzz_entry.c - what processes tell each other about spawned threads.
 *
 *     input: a byte, whose lowest bit says whether the rest is an answer or a call; the rest.
 *
 * What must hold: it is refused, or within its bounds and written as it was read.
 */
#include <stdlib.h>
#include <string.h>

#include "job/entry_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(int truth)
{
	if (!truth)
		abort();
}

static void read_call(const uint8_t *bytes, size_t n)
{
	struct wf_entry_call c;
	uint8_t *again = malloc(n + 1);

	must(again != NULL);
	if (wf_entry_call_read(bytes, n, &c)) {
		must(c.count >= 1 && c.count <= WF_ENTRY_COUNT && c.len <= WF_ENTRY_ARG && strlen(c.name) <= WF_DIR_NAME);
		must(wf_entry_call_write(&c, again, n + 1) == n && !memcmp(bytes, again, n));
		must(wf_entry_call_write(&c, again, n - 1) == 0);
	}
	free(again);
}

static void read_answer(const uint8_t *bytes, size_t n)
{
	uint8_t again[WF_ENTRY_ANSWER];
	struct wf_entry_answer a;

	if (!wf_entry_answer_read(bytes, n, &a))
		return;
	must((a.id != 0) == (a.err == 0) && a.err <= 0 && strlen(a.words) <= WF_ENTRY_WORDS);
	must(wf_entry_answer_write(&a, again, sizeof(again)) == n && !memcmp(bytes, again, n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint8_t *own;

	if (!n)
		return 0;
	own = malloc(n - 1 ? n - 1 : 1);    /* so that a byte too many is seen */
	must(own != NULL);
	memcpy(own, data + 1, n - 1);
	if (data[0] & 1)
		read_answer(own, n - 1);
	else
		read_call(own, n - 1);
	free(own);
	return 0;
}
