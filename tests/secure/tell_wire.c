/* tell_wire.c - a handshake, a second lane of its session and some records, told as hexadecimal lines: NAME BYTES. The script wire
 * makes the same from docs/wire.md alone, and compares. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "secure/handshake.h"
#include "secure/record.h"

static const char *who;                 /* draws random bytes now */
static uint8_t drawn;

static void tell(const char *name, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	printf("%s ", name);
	while (n--)
		printf("%02x", *p++);
	printf("\n");
}

static void must(int truth)
{
	if (!truth) {
		fprintf(stderr, "not what it should be\n");
		exit(1);
	}
}

static int draw(void *user, void *ret, size_t n)
{
	uint8_t *p = ret;

	for (size_t i = 0; i < n; i++)
		p[i] = drawn = (uint8_t)(drawn * 73 + 41 + i / 16);
	(void)user;
	tell(who, ret, n);
	return 0;
}

static void endpoint(struct wf_endpoint *e, uint32_t process, enum wf_mode mode)
{
	struct wf_identity self = { .process = process };
	uint8_t job[WF_JOB_BYTES];
	struct wf_key key;

	for (int i = 0; i < WF_KEY_BYTES; i++)
		key.bytes[i] = (uint8_t)(i * 3 + 1);
	for (int i = 0; i < WF_JOB_BYTES; i++)
		job[i] = (uint8_t)(200 + i);
	memset(self.incarnation, (int)(process >> 8), sizeof(self.incarnation));
	must(wf_endpoint_init(e, &key, job, &self, mode) == 0);
	e->random.fill = draw;
	e->features = process == 0x1122 ? 0x8007 : 0x0103;
	e->required = 1;
	e->newest = process == 0x1122 ? 3 : 1;
	e->best = WF_AEAD_CHACHA;
	e->aeads = 1 << WF_AEAD_CHACHA | 1 << WF_AEAD_AES_GCM;
	tell("key", key.bytes, sizeof(key));
	tell("job", job, sizeof(job));
}

static void shake(struct wf_handshake *ha, const struct wf_endpoint *a, struct wf_handshake *hb, const struct wf_endpoint *b,
		  const struct wf_session *of_a, const struct wf_session *of_b)
{
	struct wf_hs_call call = { .peer = b->self, .lane = { 2, 0x01020304, UINT64_C(0x1112131415161718) }, .session = of_a };

	who = "random-a";
	wf_handshake_call(ha, a, &call);
	tell("hello", ha->out, ha->out_n);
	who = "random-b";
	wf_handshake_listen(hb, b);
	wf_handshake_input(hb, ha->out, ha->out_n);
	tell("challenge", hb->out, hb->out_n);
	who = "random-a";
	wf_handshake_input(ha, hb->out, hb->out_n);
	tell("claim", ha->out, ha->out_n);
	wf_handshake_input(hb, ha->out, ha->out_n);
	must(hb->state == WF_HS_ASKS);
	who = "random-b";
	wf_handshake_accept(hb, of_b);
	tell("verdict", hb->out, hb->out_n);
	wf_handshake_input(ha, hb->out, hb->out_n);
	must(ha->state == WF_HS_DONE && hb->state == WF_HS_DONE);
	tell("to-responder", ha->send, WF_SECRET);
	tell("to-initiator", ha->recv, WF_SECRET);
	tell("session-secret", ha->session.secret, WF_SECRET);
}

/* Three records, each the last under its key; the second has a body. */
static void records(const struct wf_handshake *h)
{
	struct wf_record_conf conf = { .mode = h->session.mode, .aead = h->aead, .secret = h->send, .rekey_parts = 1 };
	uint8_t text[100], out[300];
	struct iovec piece = { text, 20 };
	struct wf_sealer s;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)i;
	must(wf_sealer_init(&s, &conf) == 0);
	for (int i = 0; i < 3; i++) {
		size_t body = i == 1 ? 77 : 0;
		long n = wf_sealer_frames(&s, &piece, 1, body, out);

		must(n > 0);
		if (body) {
			must(wf_sealer_piece(&s, out + n, text, body) == 0 && wf_sealer_end(&s, out + n + body) == 0);
			n += (long)(body + wf_record_body_tail(conf.mode));
		}
		tell("record", out, (size_t)n);
	}
	wf_sealer_fini(&s);
}

/* One whose checksum covers the first 40 bytes only, where the mode allows that. */
static void long_record(const struct wf_handshake *h)
{
	struct wf_record_conf conf = { .mode = h->session.mode, .aead = h->aead, .secret = h->send, .rekey_parts = 1 };
	uint8_t out[300 + WF_RECORD_HEAD + WF_AEAD_TAG];
	struct wf_sealer s;
	long n;

	for (size_t i = 0; i < 300; i++)
		out[WF_RECORD_HEAD + i] = (uint8_t)i;
	must(wf_sealer_init(&s, &conf) == 0);
	n = wf_sealer_flat(&s, 300, 40, out);
	must(n > 0);
	tell("long-record", out, (size_t)n);
	wf_sealer_fini(&s);
}

/* One handshake that ends with a VERDICT that refuses, one that ends with such a CHALLENGE. */
static void refusals(const struct wf_endpoint *a, struct wf_endpoint *b)
{
	struct wf_hs_call call = { .peer = b->self, .lane = { 2, 0x01020304, UINT64_C(0x1112131415161718) } };
	struct wf_handshake ha, hb;

	for (int which = 0; which < 2; which++) {
		if (which)
			b->oldest = b->newest = 9;
		who = "refused-random-a";
		wf_handshake_call(&ha, a, &call);
		who = "refused-random-b";
		wf_handshake_listen(&hb, b);
		wf_handshake_input(&hb, ha.out, ha.out_n);
		tell("refused-challenge", hb.out, hb.out_n);
		who = "refused-random-a";
		wf_handshake_input(&ha, hb.out, hb.out_n);
		if (which) {
			must(hb.state == WF_HS_REFUSED && ha.state == WF_HS_REFUSED);
			continue;
		}
		wf_handshake_input(&hb, ha.out, ha.out_n);
		must(hb.state == WF_HS_ASKS);
		wf_handshake_refuse(&hb, WF_REFUSED_LANE, UINT64_C(0x2122232425262728));
		tell("refused-verdict", hb.out, hb.out_n);
	}
}

int main(void)
{
	for (enum wf_mode mode = WF_MODE_FULL; mode <= WF_MODE_SUM; mode++) {
		struct wf_endpoint a, b;
		struct wf_handshake ha, hb;
		struct wf_session of_a, of_b;

		printf("mode %02x\n", mode);
		endpoint(&a, 0x1122, mode);
		endpoint(&b, 0x3344, mode);
		shake(&ha, &a, &hb, &b, NULL, NULL);
		records(&ha);
		of_a = ha.session;
		of_b = hb.session;
		shake(&ha, &a, &hb, &b, &of_a, &of_b);
		records(&ha);
		long_record(&ha);
		refusals(&a, &b);
	}
	return 0;
}
