/* fuzz_dirserver.c - what processes that mean no good say to the server of the directory.
 *
 *     input: messages, each  u8 of whom (two of the eight have joined; 6: one dies, 7: another serves), u16 bytes, the message
 *
 * Whatever comes, memory stays whole, what is emitted is a message, and when all are gone nothing is left.
 */
#include <stdlib.h>
#include <string.h>

#include "dir/msg.h"
#include "dir/server.h"

#define HOST ((weft_id)99 << 32)

static struct wf_dir_server *server;
static bool gathering;

static weft_id process(unsigned n)
{
	return (weft_id)(1 + n % 2) << 32;
}

static void emit(void *ctx, weft_id who, const void *msg, size_t len)
{
	struct wf_dir_msg m;

	(void)ctx;
	(void)who;
	if (wf_dir_read(msg, len, true, &m) < 0)
		abort();
}

static void serve(bool over)
{
	wf_dir_server_free(server);
	server = wf_dir_server_new(&(struct wf_dir_hooks){ .emit = emit }, over ? 2 : 1, over);
	gathering = over;
	if (!server || wf_dir_server_host(server, HOST, "h", "cores=4") < 0)
		abort();
	for (unsigned i = 0; i < 2; i++)
		if (wf_dir_server_join(server, process(i), HOST) < 0)
			abort();
}

static void turn(unsigned who, const uint8_t *msg, size_t len)
{
	switch (who % 8) {
	case 6:
		wf_dir_server_gone(server, process(who / 8));
		if (wf_dir_server_join(server, process(who / 8), HOST) < 0)
			abort();
		break;
	case 7:
		if (gathering)
			wf_dir_server_gathered(server);
		else
			serve(true);
		gathering = !gathering && who / 8 % 2;
		break;
	default:
		wf_dir_server_take(server, process(who), msg, len);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct wf_dir_figures left;

	serve(false);
	while (n >= 3) {
		size_t len = wf_get16(data + 1);
		uint8_t *exact;

		if (len > n - 3)
			len = n - 3;
		exact = malloc(len + 1);        /* so that a byte too far is noticed */
		if (!exact)
			abort();
		memcpy(exact, data + 3, len);
		turn(data[0], exact, len);
		free(exact);
		data += 3 + len;
		n -= 3 + len;
	}
	wf_dir_server_host_gone(server, HOST);
	left = wf_dir_server_figures(server);
	if (left.entities || left.clients || left.tags || left.watches || left.kept)
		abort();
	wf_dir_server_free(server);
	server = NULL;
	return 0;
}
