/* fuzz_url.c - a text that says where a job is.
 *
 * What must hold: it is refused in words, or it is printed as it was read, but for the case of its digits.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <weft/base.h>

#include "job/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(int truth)
{
	if (!truth)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct wf_url url, again;
	char out[WF_URL_TEXT], *text = malloc(n + 1);
	int r;

	must(text != NULL);
	memcpy(text, data, n);
	text[n] = 0;
	weft_fail(0, NULL);
	r = wf_url_parse(text, &url);
	must(r == 0 || (r == -EINVAL && *weft_last_error()));
	if (r == 0) {
		must(wf_url_print(&url, out, sizeof(out)) == (int)strlen(text) && !strcasecmp(out, text));
		must(wf_url_parse(out, &again) == 0 && !memcmp(&url, &again, sizeof(url)));
	}
	/* What is in memory as it likes, with and without ends. */
	if (n >= sizeof(url)) {
		memcpy(&url, data, sizeof(url));
		url.kind = (enum wf_url_kind)(data[0] % 4);
		memset(&url.offered, data[1] & 1, sizeof(url.offered));
		r = wf_url_print(&url, out, sizeof(out));
		must(r == -EINVAL || (r > 0 && (size_t)r == strlen(out) && wf_url_parse(out, &again) == 0));
	}
	free(text);
	return 0;
}
