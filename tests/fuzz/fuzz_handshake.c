/* fuzz_handshake.c - bytes of a stranger, and lies of a member, into every state of a handshake.
 *
 * Input: one byte what to do, then bytes. 0, 1: they go as they are into one who listens, one who calls; in pieces
 * whose sizes are in the input. 2-5: a whole handshake in which they are laid over the fields of frame 1-4 and the
 * MAC is made anew: what a liar with the job key can say, which is what the code behind the MAC sees. 6: likewise the
 * claim, of a session that is known. What must hold: it comes back; a stranger is never answered; and where both ends
 * are done they agree.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "secure/handshake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct wf_endpoint a, b, c;      /* c: b, as it is to another job */
static struct wf_session of_a, of_b;
static uint64_t drawn;

static int draw(void *user, void *ret, size_t n)
{
	uint8_t *p = ret;

	(void)user;
	while (n--) {
		drawn = drawn * UINT64_C(6364136223846793005) + 1442695040888963407;
		*p++ = (uint8_t)(drawn >> 56);
	}
	return 0;
}

static void must(int truth)
{
	if (!truth)
		abort();
}

/* Half of all tags are those of that job. */
static const struct wf_endpoint *other(const uint8_t tag[WF_JOB_BYTES])
{
	return tag[0] & 1 ? &c : NULL;
}

static void listen(struct wf_handshake *h)
{
	wf_handshake_listen(h, &b);
	h->others = other;
}

static void raw(struct wf_handshake *h, const uint8_t *data, size_t n)
{
	while (n) {
		size_t take = 1 + data[0] % 64u, used;
		bool refused;

		data++;
		n--;
		take = take < n ? take : n;
		refused = h->state == WF_HS_REFUSED;
		used = wf_handshake_input(h, data, take);
		must(used <= take && (refused ? used == 0 : used || !take) && (!refused || h->state == WF_HS_REFUSED));
		must(h->out_n == 0 && h->state != WF_HS_ASKS && h->state != WF_HS_DONE);
		data += take;
		n -= take;
	}
	wf_handshake_fail(h);
}

/* XOR @data over the frame in @from, make its MAC hold under the key it is checked with, where that is a key of the job. */
static void lie(struct wf_handshake *from, const uint8_t t[WF_SECRET], int frame, const uint8_t *data, size_t n)
{
	size_t whole = from->out_n;

	for (size_t i = 0; whole > WF_HS_MAC && i < n && i < whole - WF_HS_MAC; i++)
		from->out[i] ^= data[i];
	if (whole > WF_HS_MAC)
		must(wf_transcript_mac(t, from->me->credentials.mac[frame], from->out, whole - WF_HS_MAC, from->out + whole - WF_HS_MAC) == 0);
}

static void whole(int lied, const struct wf_session *session, const uint8_t *data, size_t n)
{
	struct wf_hs_call call = { .peer = { .process = 2 }, .lane = { 1, 2, 3 }, .session = session };
	struct wf_handshake ha, hb;
	uint8_t t[WF_SECRET] = { 0 };

	wf_handshake_call(&ha, &a, &call);
	listen(&hb);
	for (int frame = 0; frame < WF_HS_FRAMES; frame++) {
		struct wf_handshake *from = frame % 2 ? &hb : &ha, *to = frame % 2 ? &ha : &hb;

		if (hb.state == WF_HS_ASKS)
			wf_handshake_accept(&hb, memcmp(hb.claim.session, of_b.id, 16) == 0 ? &of_b : NULL);
		if (frame == lied)
			lie(from, t, frame, data, n);
		wf_transcript_add(t, from->out, from->out_n);
		wf_handshake_input(to, from->out, from->out_n);
	}
	if (ha.state == WF_HS_DONE)
		must(hb.state == WF_HS_DONE && memcmp(ha.send, hb.recv, WF_SECRET) == 0 && memcmp(ha.recv, hb.send, WF_SECRET) == 0 &&
		     ha.aead == hb.aead && ha.version == hb.version && memcmp(ha.session.secret, hb.session.secret, WF_SECRET) == 0);
	wf_handshake_fail(&ha);
	wf_handshake_fail(&hb);
	of_a = ha.session;
	of_b = hb.session;
	wf_handshake_fini(&ha);
	wf_handshake_fini(&hb);
}

static void setup(void)
{
	struct wf_identity self = { .process = 1, .incarnation = { 1 } };
	struct wf_key key;
	uint8_t job[WF_JOB_BYTES] = { 5 };

	memset(&key, 3, sizeof(key));
	must(wf_endpoint_init(&a, &key, job, &self, WF_MODE_FULL) == 0);
	self = (struct wf_identity){ .process = 2, .incarnation = { 2 } };
	must(wf_endpoint_init(&b, &key, job, &self, WF_MODE_FULL) == 0);
	job[0] = 6;
	memset(&key, 4, sizeof(key));
	must(wf_endpoint_init(&c, &key, job, &self, WF_MODE_FULL) == 0);
	a.features = 7;
	b.features = 3;
	a.newest = 4;
	a.random.fill = b.random.fill = c.random.fill = draw;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct wf_handshake h;
	struct wf_hs_call call = { .peer = { .process = 2 } };

	if (n == 0)
		return 0;
	if (!a.newest)
		setup();
	drawn = 0;
	switch (data[0] % 7) {
	case 0:
		listen(&h);
		raw(&h, data + 1, n - 1);
		break;
	case 1:
		wf_handshake_call(&h, &a, &call);
		h.out_n = 0;
		raw(&h, data + 1, n - 1);
		break;
	case 6:
		whole(-1, NULL, NULL, 0);
		{
			struct wf_session session = of_a;

			whole(WF_HS_FRAME_CLAIM, &session, data + 1, n - 1);
		}
		break;
	default:
		memset(&of_b, 0, sizeof(of_b));
		whole(data[0] % 7 - 2, NULL, data + 1, n - 1);
		break;
	}
	return 0;
}
