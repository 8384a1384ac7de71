/* fuzz_grow.c - what the agent says came of hosts that were asked for, from an agent that may say anything: nothing is read that is not there, and nobody is told who did not ask. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "job/grow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);      /* as long as it is, so that a look beyond its end is seen */

	if (!copy)
		return 0;
	if (n)
		memcpy(copy, data, n);
	wf_grow_news(copy, n);
	free(copy);
	return 0;
}
