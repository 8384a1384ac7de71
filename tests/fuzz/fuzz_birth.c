/* fuzz_birth.c - what the first process of a host and the agent it has started say to each other, from whoever the other end is.
 *
 * Input: packets, each with two bytes before it that are its length. What must hold: a packet that is heard lies in what came; one that is too short or too long is the end of the
 * conversation; and what its kind says is read within its bounds, as the two ends do (hosted.c, born.c).
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "job/birth.h"
#include "job/pact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(int truth)
{
	if (!truth)
		abort();
}

static void text_check(const struct wf_body *b, const char *text)
{
	must(!text || (b->bytes <= (const uint8_t *)text && (const uint8_t *)text + strlen(text) < b->bytes + b->at));
}

/* A card of another agent, which goes on to who reads cards. */
static void card_check(struct wf_body *b)
{
	const char *text = wf_body_get_text(b);
	struct wf_pact_card card;

	text_check(b, text);
	if (text && wf_pact_card_read(text, &card) == 0)
		must(memchr(card.address, 0, sizeof(card.address)) && memchr(card.door, 0, sizeof(card.door)));
}

static void body_check(enum wf_birth kind, struct wf_body *b)
{
	uint32_t count;

	switch (kind) {
	case WF_BIRTH_TASK:
		wf_body_get32(b);
		text_check(b, wf_body_get_text(b));
		count = wf_body_get32(b);
		for (uint32_t i = 0; !b->bad && i < count; i++)
			wf_body_get32(b);
		break;
	case WF_BIRTH_SEAL:
	case WF_BIRTH_MEMBER:
		wf_body_get32(b);
		card_check(b);
		break;
	case WF_BIRTH_OPEN:
		card_check(b);
		text_check(b, wf_body_get_text(b));
		break;
	case WF_BIRTH_FAILED:
		wf_body_get32(b);
		text_check(b, wf_body_get_text(b));
		break;
	default:
		card_check(b);
	}
	must(b->at <= b->n && wf_body_whole(b) == (!b->bad && b->at == b->n));
}

static void packet(int from, int to, const uint8_t *bytes, size_t n)
{
	static uint8_t room[WF_BIRTH_ROOM];
	enum wf_birth kind;
	struct wf_body b;
	int r;

	must(send(from, bytes, n, 0) == (ssize_t)n);
	r = wf_birth_hear(to, WEFT_NOW, &kind, &b, room);
	must(r == (n < 4 || n - 4 > WF_BIRTH_ROOM ? -ECONNRESET : 0));
	if (r < 0)
		return;
	must((uint32_t)kind == wf_get32(bytes) && b.bytes == room && b.n == n - 4 && !memcmp(room, bytes + 4, b.n));
	body_check(kind, &b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	int pair[2];

	must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	while (n >= 2) {
		size_t len = data[0] | (size_t)data[1] << 8;

		data += 2;
		n -= 2;
		len = len < n ? len : n;
		if (len)
			packet(pair[0], pair[1], data, len);
		data += len;
		n -= len;
	}
	close(pair[0]);
	close(pair[1]);
	return 0;
}
