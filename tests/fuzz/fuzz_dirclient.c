/* fuzz_dirclient.c - what a server of the directory that is out of its mind says to a client; and words that are no words.
 *
 *     input: u8 bytes of words, the words (set, asked and watched if they are any); then messages, each  u16 bytes, the message
 *
 * Whatever comes, memory stays whole, every look-up is answered once, a watch tells nobody as come twice or gone twice, and nothing is left.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <weft/req.h>

#include "dir/client.h"
#include "dir/describe.h"

#define PROCESS ((weft_id)1 << 32)
#define ASKS 4
#define SEEN 4096

static struct wf_dir_client client;
static struct wf_dir_ask asks[ASKS];
static bool open_ask[ASKS], open_watch;
static struct wf_dir_watching watching;
static weft_id seen[SEEN];
static size_t seen_n;

static int send_out(void *ctx, const void *msg, size_t len)
{
	struct wf_dir_msg m;

	(void)ctx;
	if (wf_dir_read(msg, len, false, &m) < 0)
		abort();
	return len % 5 ? 0 : -EAGAIN;
}

static void answered(void *ctx, struct wf_dir_ask *ask)
{
	char text[64];

	(void)ctx;
	if (!open_ask[ask - asks])
		abort();
	open_ask[ask - asks] = false;
	if (ask->entity && wf_dir_describe(ask->entity, NULL, text, sizeof(text)) < 0)
		abort();
	free(ask->ids);
	ask->ids = NULL;
}

static void event(void *ctx, struct wf_dir_watching *w, int what, weft_id id)
{
	size_t at = 0;

	(void)ctx;
	(void)w;
	while (at < seen_n && seen[at] != id)
		at++;
	if ((what == WEFT_JOINED) != (at == seen_n))
		abort();
	if (what == WEFT_JOINED && seen_n < SEEN)
		seen[seen_n++] = id;
	else if (what == WEFT_LEFT)
		seen[at] = seen[--seen_n];
}

static void ended(void *ctx, struct wf_dir_watching *w, int err)
{
	(void)ctx;
	(void)w;
	(void)err;
	open_watch = false;
}

static void begin(const char *words)
{
	struct wf_dir_client_hooks hooks = { .send = send_out, .answered = answered, .event = event, .ended = ended };
	const char *why;

	if (wf_dir_client_init(&client, PROCESS, &hooks) < 0)
		abort();
	wf_dir_client_set(&client, PROCESS, WF_DIR_PROCESS, "prog", "", &why);
	wf_dir_client_set(&client, PROCESS + 1, WF_DIR_THREAD, "w", words, &why);
	memset(asks, 0, sizeof(asks));
	for (int i = 0; i < ASKS; i++) {
		asks[i].n.use = i % 2 ? WF_DIR_USE_FIND : WF_DIR_USE_GET;
		asks[i].id = PROCESS + (weft_id)i;
		asks[i].query = i % 2 ? strdup("role=worker") : NULL;
		asks[i].want = i == 3;
		asks[i].max = 2;
		open_ask[i] = wf_dir_client_ask(&client, &asks[i]) == 0;
	}
	memset(&watching, 0, sizeof(watching));
	seen_n = 0;
	watching.query = strdup("kind=thread");
	open_watch = wf_dir_client_watch(&client, &watching) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char words[256];
	struct wf_dir_msg kept;
	const weft_id *ids;
	uint32_t total;
	size_t len = n ? data[0] : 0;

	if (len > (n ? n - 1 : 0))
		len = n - 1;
	memcpy(words, data + (n > 0), len);
	words[len] = 0;
	begin(words);
	data += len + (n > 0);
	n -= len + (n > 0);
	while (n >= 2) {
		uint8_t *exact;

		len = wf_get16(data);
		if (len > n - 2)
			len = n - 2;
		exact = malloc(len + 1);
		if (!exact)
			abort();
		memcpy(exact, data + 2, len);
		wf_dir_client_take(&client, exact, len);
		free(exact);
		wf_dir_client_kept(&client, PROCESS + 1, &kept);
		wf_dir_client_kept_find(&client, "role=worker", &ids, &total);
		wf_dir_client_flush(&client);
		data += 2 + len;
		n -= 2 + len;
	}
	wf_dir_client_fini(&client);
	for (int i = 0; i < ASKS; i++)
		if (open_ask[i])
			abort();
	if (open_watch)
		abort();
	return 0;
}
