/* fuzz_dirquery.c - queries and words of the directory, as a user or a neighbour may write them.
 *
 *     input: the text. As a query it is refused, or answered by a small directory; as words they are refused, or written and read again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dir/query.h"
#include "dir/server.h"

#define HOST ((weft_id)99 << 32)

static void emit(void *ctx, weft_id who, const void *msg, size_t len)
{
	(void)ctx;
	(void)who;
	(void)msg;
	(void)len;
}

static void count(void *arg, weft_id id)
{
	(void)id;
	++*(int *)arg;
}

static void read_words(const char *text)
{
	struct wf_dir_word w, again;
	char room[1200];
	const char *why;

	while (wf_dir_next_word(&text, false, &w, &why) == 1) {
		struct wf_dir_writer to = { .text = room, .room = sizeof(room) };
		const char *at = room;

		wf_dir_write_word(&to, w.key, w.value);
		if (wf_dir_write_end(&to) >= sizeof(room) || wf_dir_next_word(&at, false, &again, &why) != 1 || *at ||
		    strcmp(w.key, again.key) != 0 || strcmp(w.value, again.value) != 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct wf_dir_server *server;
	char *text = malloc(n + 1), all[8192];
	const char *why;
	int found = 0, r;

	if (!server) {
		server = wf_dir_server_new(&(struct wf_dir_hooks){ .emit = emit }, 1, false);
		if (!server)
			abort();
		for (unsigned i = 0; i < 5; i++) {
			char name[8];

			snprintf(name, sizeof(name), "n%u", i / 2);
			if (wf_dir_server_host(server, HOST + ((weft_id)i << 32), name, i % 2 ? "cores=4 os=\"a b\"" : NULL) < 0)
				abort();
		}
	}
	if (!text)
		abort();
	memcpy(text, data, n);
	text[n] = 0;
	r = wf_dir_server_each(server, text, count, &found, &why);
	if (r >= 0 ? r != found : !why)
		abort();
	read_words(text);
	wf_dir_server_get(server, HOST, text, all, sizeof(all));
	free(text);
	return 0;
}
