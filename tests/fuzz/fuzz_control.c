/* fuzz_control.c - what the launcher and a station say to each other, from whoever the other end is.
 *
 * Input: one byte what it is, then the bytes: a brief; a station's first words; or a conversation, whose first word may have noise before it. What must hold: packets
 * lie in what came, one behind the other; a brief that is taken is one that the launcher could have written, byte for byte.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/brief.h"
#include "cmd/control.h"

#define HEAD 8u                         /* of a packet in a pipe */
#define PIPE_ROOM 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(int truth)
{
	if (!truth)
		abort();
}

static void ranks_check(const struct run *run)
{
	unsigned here = 0;

	must(run->total >= 1 && run->total <= RUN_MOST && run->host < run->hosts_count && run->silence_ms > 0);
	for (unsigned i = 0; i < run->total; i++) {
		must(run->host_of[i] < run->hosts_count);
		if (run->host_of[i] == run->host)
			must(here < run->count && run->ranks[here++] == i);
	}
	must(here == run->count);
}

static void parts_check(const struct run *run)
{
	unsigned next = 0;

	for (unsigned i = 0; i < run->part_count; i++) {
		must(run->parts[i].first == next && run->parts[i].count >= 1 && run->parts[i].argv[0]);
		next += run->parts[i].count;
	}
	must(next == run->total);
}

static void brief(uint8_t *bytes, size_t n)
{
	struct wf_body b = { .bytes = bytes, .n = n }, again = { .n = n };
	struct run run;
	char **environment;
	const char *directory;

	if (!brief_read(&b, &run, &environment, &directory))
		return;
	ranks_check(&run);
	parts_check(&run);
	again.bytes = malloc(n);
	must(again.bytes != NULL);
	brief_write(&again, &run, run.host, run.adapter, environment, directory);
	must(wf_body_whole(&again) && memcmp(again.bytes, bytes, n) == 0);
	free(again.bytes);
	brief_free(&run, environment);
}

static void hello(uint8_t *bytes, size_t n)
{
	struct wf_body b = { .bytes = bytes, .n = n };
	struct hello theirs, mine;
	char words[256];

	if (!hello_read(&b, &theirs))
		return;
	must(n == sizeof(theirs) && memchr(theirs.version, 0, sizeof(theirs.version)) && memchr(theirs.name, 0, sizeof(theirs.name)));
	hello_make(&mine);
	hello_compare(&mine, "here", &theirs, "there", words, sizeof(words));
	must(memchr(words, 0, sizeof(words)) != NULL);
}

/* A body read as anything: it stays within its bounds, and says at the end whether all was there. */
static void body(struct wf_body *b, unsigned how)
{
	while (!b->bad && b->at < b->n) {
		const char *text;
		size_t count;
		char **list;

		switch (how++ % 4) {
		case 0:
			wf_body_get32(b);
			break;
		case 1:
			text = wf_body_get_text(b);
			must(!text || (b->bytes <= (const uint8_t *)text && (const uint8_t *)text + strlen(text) < b->bytes + b->at));
			break;
		case 2:
			list = wf_body_get_list(b, &count);
			must(!list || !list[count]);
			free(list);
			break;
		default:
			wf_body_get_bytes(b, how % 7);
		}
		must(b->at <= b->n);
	}
	must(wf_body_whole(b) == (!b->bad && b->at == b->n));
}

static void conversation(const uint8_t *data, size_t n, bool noisy)
{
	struct talk talk;
	struct wf_body b;
	enum control kind;
	size_t taken = 0;
	int pair[2];

	if (n > PIPE_ROOM || pipe(pair) < 0)
		return;
	must(write(pair[1], data, n) == (ssize_t)n);
	talk_open(&talk, pair[0], pair[1]);
	talk_read(&talk);
	if (!noisy || talk_begun(&talk))
		while (talk_next(&talk, &kind, &b)) {
			taken += HEAD + b.n;
			must(taken <= n && b.n <= CONTROL_BODY);
			body(&b, (unsigned)kind);
		}
	talk_close(&talk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint8_t *copy;

	if (n < 1)
		return 0;
	copy = malloc(n);
	must(copy != NULL);
	memcpy(copy, data + 1, n - 1);
	if (data[0] % 4 == 0)
		brief(copy, n - 1);
	else if (data[0] % 4 == 1)
		hello(copy, n - 1);
	else
		conversation(copy, n - 1, data[0] % 4 == 2);
	free(copy);
	return 0;
}
