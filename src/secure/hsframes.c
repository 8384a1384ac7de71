/* hsframes.c - the frames of a handshake, packed and unpacked at fixed places. */
#include "secure/hsframes.h"

#include <string.h>

#include "base/bytes.h"

/* Not text, changed by whoever treats it as text, and neither HTTP nor TLS begins so. */
const uint8_t wf_hs_hello_magic[WF_HS_MAGIC] = { 'w', 'e', 'f', 't', '\r', '\n', 0x9a, 'h' };
const uint8_t wf_hs_challenge_magic[WF_HS_MAGIC] = { 'w', 'e', 'f', 't', '\r', '\n', 0x9a, 'c' };

enum { NUMBER_CLAIM = 3, NUMBER_VERDICT = 4 };

static bool is_zero(const uint8_t *p, size_t n)
{
	uint8_t any = 0;

	while (n--)
		any |= *p++;
	return !any;
}

void wf_hs_hello_pack(const struct wf_hs_hello *h, uint8_t ret[WF_HS_HELLO_BYTES])
{
	memset(ret, 0, WF_HS_HELLO_BYTES);
	memcpy(ret, wf_hs_hello_magic, WF_HS_MAGIC);
	wf_put16(ret + 8, h->oldest);
	wf_put16(ret + 10, h->newest);
	wf_put16(ret + 12, h->features);
	wf_put16(ret + 14, h->required);
	memcpy(ret + 16, h->tag, 16);
	memcpy(ret + 32, h->fresh, 32);
}

void wf_hs_hello_unpack(const uint8_t in[WF_HS_HELLO_BYTES], struct wf_hs_hello *ret)
{
	ret->oldest = wf_get16(in + 8);
	ret->newest = wf_get16(in + 10);
	ret->features = wf_get16(in + 12);
	ret->required = wf_get16(in + 14);
	memcpy(ret->tag, in + 16, 16);
	memcpy(ret->fresh, in + 32, 32);
}

void wf_hs_challenge_pack(const struct wf_hs_challenge *c, uint8_t ret[WF_HS_CHALLENGE_BYTES])
{
	memset(ret, 0, WF_HS_CHALLENGE_BYTES);
	memcpy(ret, wf_hs_challenge_magic, WF_HS_MAGIC);
	wf_put16(ret + 8, c->oldest);
	wf_put16(ret + 10, c->newest);
	wf_put16(ret + 12, c->features);
	wf_put16(ret + 14, c->required);
	wf_put16(ret + 16, c->version);
	wf_put16(ret + 18, c->code);
	memcpy(ret + 32, c->fresh, 32);
}

void wf_hs_challenge_unpack(const uint8_t in[WF_HS_CHALLENGE_BYTES], struct wf_hs_challenge *ret)
{
	ret->oldest = wf_get16(in + 8);
	ret->newest = wf_get16(in + 10);
	ret->features = wf_get16(in + 12);
	ret->required = wf_get16(in + 14);
	ret->version = wf_get16(in + 16);
	ret->code = wf_get16(in + 18);
	memcpy(ret->fresh, in + 32, 32);
}

void wf_hs_claim_pack(const struct wf_hs_claim *c, uint8_t ret[WF_HS_CLAIM_BYTES])
{
	wf_put16(ret, NUMBER_CLAIM);
	wf_put16(ret + 2, c->version);
	wf_put16(ret + 4, c->features);
	wf_put16(ret + 6, 0);
	ret[8] = c->mode;
	ret[9] = c->aeads;
	ret[10] = c->best;
	ret[11] = c->lane.kind;
	wf_put32(ret + 12, c->self.process);
	memcpy(ret + 16, c->self.incarnation, 16);
	memcpy(ret + 32, c->session, 16);
	wf_put32(ret + 48, c->wanted.process);
	wf_put32(ret + 52, c->lane.number);
	wf_put64(ret + 56, c->lane.incarnation);
	memcpy(ret + 64, c->wanted.incarnation, 16);
	memcpy(ret + 80, c->public, 32);
	memcpy(ret + WF_HS_CLAIM_PROOF, c->proof, 32);
}

bool wf_hs_claim_unpack(const uint8_t in[WF_HS_CLAIM_BYTES], struct wf_hs_claim *ret)
{
	ret->version = wf_get16(in + 2);
	ret->features = wf_get16(in + 4);
	ret->mode = in[8];
	ret->aeads = in[9];
	ret->best = in[10];
	ret->lane.kind = in[11];
	ret->self.process = wf_get32(in + 12);
	memcpy(ret->self.incarnation, in + 16, 16);
	memcpy(ret->session, in + 32, 16);
	ret->wanted.process = wf_get32(in + 48);
	ret->lane.number = wf_get32(in + 52);
	ret->lane.incarnation = wf_get64(in + 56);
	memcpy(ret->wanted.incarnation, in + 64, 16);
	memcpy(ret->public, in + 80, 32);
	memcpy(ret->proof, in + WF_HS_CLAIM_PROOF, 32);
	return wf_get16(in) == NUMBER_CLAIM && wf_get16(in + 6) == 0 && (!is_zero(ret->session, 16) || is_zero(ret->proof, 32));
}

void wf_hs_verdict_pack(const struct wf_hs_verdict *v, uint8_t ret[WF_HS_VERDICT_BYTES])
{
	wf_put16(ret, NUMBER_VERDICT);
	wf_put16(ret + 2, v->version);
	wf_put16(ret + 4, v->features);
	wf_put16(ret + WF_HS_VERDICT_CODE, v->code);
	ret[8] = v->mode;
	ret[9] = v->aeads;
	ret[10] = v->best;
	ret[11] = v->aead;
	wf_put32(ret + 12, v->self.process);
	memcpy(ret + 16, v->self.incarnation, 16);
	memcpy(ret + 32, v->session, 16);
	wf_put64(ret + 48, v->detail);
	wf_put64(ret + 56, 0);
	memcpy(ret + 64, v->public, 32);
}

bool wf_hs_verdict_unpack(const uint8_t in[WF_HS_VERDICT_BYTES], struct wf_hs_verdict *ret)
{
	ret->version = wf_get16(in + 2);
	ret->features = wf_get16(in + 4);
	ret->code = wf_get16(in + WF_HS_VERDICT_CODE);
	ret->mode = in[8];
	ret->aeads = in[9];
	ret->best = in[10];
	ret->aead = in[11];
	ret->self.process = wf_get32(in + 12);
	memcpy(ret->self.incarnation, in + 16, 16);
	memcpy(ret->session, in + 32, 16);
	ret->detail = wf_get64(in + 48);
	memcpy(ret->public, in + 64, 32);
	if (wf_get16(in) != NUMBER_VERDICT || wf_get64(in + 56))
		return false;
	return ret->code ? !ret->aead && is_zero(ret->session, 16) && is_zero(ret->public, 32) : !ret->detail;
}
