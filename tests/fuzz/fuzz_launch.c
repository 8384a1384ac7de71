/* fuzz_launch.c - what a process asks its agent to start, from a process that may say anything. What is taken must be writable again, byte for byte. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "job/launch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(int truth)
{
	if (!truth)
		abort();
}

static void check(struct wf_launch_spec *spec, const uint8_t *data, size_t n)
{
	struct wf_body again = { .bytes = malloc(n), .n = n };
	uint32_t count = 0;

	for (uint32_t i = 0; i < spec->parts; i++) {
		must(spec->part[i].prog && spec->part[i].argv[0] && spec->part[i].count);
		count += spec->part[i].count;
	}
	must(count == spec->count);
	wf_launch_write(&again, spec);
	must(!again.bad && again.at == n);
	/* Of the first word only whether it is 0 counts. */
	must(!memcmp(again.bytes + 4, data + 4, n - 4));
	free(again.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct wf_launch_spec spec;
	struct wf_body b = { .bytes = malloc(n + 1), .n = n };

	memcpy(b.bytes, data, n);
	if (wf_launch_read(&b, &spec)) {
		check(&spec, data, n);
		wf_launch_free(&spec);
	}
	free(b.bytes);
	return 0;
}
