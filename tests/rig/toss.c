/* toss.c - long messages of two hosts to and fro, and now and then no answer. usage: weft run --hosts A:1,B:1 ... toss ROUNDS FILE
 *
 * Process 0 sends, process 1 answers at once, so that each learns to expect that: beginnings leave unasked, ends wait for answers. Every eighth time process 1 does not answer, and calls nothing
 * of weft's, before process 0 says by FILE, which both see, that its send is over. Every other eighth time process 0 takes the answer a little later. Says "toss: ok" and exits 0.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#include "expect.h"

enum { LEAST = 260 << 10, MOST = 1 << 20, TAG = 7 };

static unsigned char mem[MOST], bytes[MOST];
static const char *file;
static weft_id other;

static size_t length_of(uint32_t round)
{
	return LEAST + round * 77777u % (MOST - LEAST + 1);
}

static void toss(uint32_t round)
{
	bytes[0] = (unsigned char)round;
	EXPECT(weft_send(weft_port_world(), other, TAG, bytes, length_of(round), SOON), 0);
}

static void take(uint32_t round)
{
	struct weft_status st;

	EXPECT(weft_recv(weft_port_world(), other, TAG, mem, MOST, SOON, &st), 0);
	EXPECT(st.len, length_of(round));
	bytes[0] = (unsigned char)round;
	EXPECT(memcmp(mem, bytes, length_of(round)), 0);
}

static void say_over(void)
{
	int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	EXPECT(fd >= 0 && close(fd) == 0, 1);
}

static void await_over(void)
{
	for (int i = 0; i < 200000 && access(file, F_OK) < 0; i++)
		usleep(100);
	EXPECT(unlink(file), 0);
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 2 ? (uint32_t)atoi(argv[1]) : 0;
	bool first;

	if (!rounds || weft_init(NULL) < 0) {
		fprintf(stderr, "toss: %s\n", rounds ? weft_last_error() : "usage: toss ROUNDS FILE");
		return 1;
	}
	file = argv[2];
	first = getenv("WEFT_RANK")[0] == '0';
	other = weft_at(first);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i ^ i >> 7 ^ i >> 15);
	for (uint32_t i = 0; i < rounds && !faults; i++) {
		if (first) {
			toss(i);
			if (i % 8 == 7)
				say_over();
			if (i % 8 == 3)
				usleep(i % 64 * 20);
			take(i);
		} else {
			take(i);
			if (i % 8 == 7)
				await_over();
			toss(i);
		}
	}
	if (first)
		printf("toss: %s\n", faults ? "failed" : "ok");
	return faults || weft_fini(SOON) < 0;
}
