/* fuzz_envoy.c - what another job says, and what is said of it.
 *
 * What must hold: it is refused, or within its bounds and written as it was read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "job/envoy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(int truth)
{
	if (!truth)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint8_t *own = malloc(n ? n : 1), *again = malloc(WF_ENVOY_BYTES);      /* its own size: a byte too many is seen */
	struct wf_envoy e;
	int r;

	must(own && again);
	memcpy(own, data, n);
	r = wf_envoy_read(own, n, &e);
	must(r == 0 || r == -EBADMSG);
	if (r == 0) {
		must(n <= WF_ENVOY_BYTES && e.kind > 0 && e.kind < WF_ENVOY_KINDS && e.count <= WF_ENVOY_IDS && e.error <= 0 && e.error >= -4095);
		must(!e.text || strlen(e.text) < WF_ENVOY_TEXT);
		for (uint32_t i = 0; i < e.count; i++)
			must(wf_envoy_id(&e, i) == wf_envoy_id(&e, i));
		must(wf_envoy_write(&e, again, WF_ENVOY_BYTES) == n && !memcmp(own, again, n));
		must(wf_envoy_write(&e, again, n - 1) == 0);
	}
	free(own);
	free(again);
	return 0;
}
