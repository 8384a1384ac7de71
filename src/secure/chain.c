/* chain.c - the derivations of chain.h. */
#include "secure/chain.h"

#include <string.h>

int wf_credentials_init(struct wf_credentials *c, const struct wf_key *key, const uint8_t job[WF_JOB_BYTES])
{
	static const char *const labels[WF_HS_FRAMES] = { "weft hello", "weft challenge", "weft 1 claim", "weft 1 refusal" };
	static const char tag_label[12] = "weft job tag", root_label[8] = "weft job";
	uint8_t text[sizeof(tag_label) + WF_JOB_BYTES], root[WF_SECRET], hash[WF_SECRET];
	int r = wf_crypto_load();

	if (r < 0)
		return r;
	memcpy(text, tag_label, sizeof(tag_label));
	memcpy(text + sizeof(tag_label), job, WF_JOB_BYTES);
	r = wf_sha256(text, sizeof(text), hash);
	memcpy(c->tag, hash, sizeof(c->tag));
	memcpy(text, root_label, sizeof(root_label));
	memcpy(text + sizeof(root_label), job, WF_JOB_BYTES);
	if (r == 0)
		r = wf_hmac(key->bytes, text, sizeof(root_label) + WF_JOB_BYTES, root);
	for (int i = 0; i < WF_HS_FRAMES && r == 0; i++)
		r = wf_hkdf_expand(root, labels[i], NULL, 0, c->mac[i], WF_SECRET);
	if (r == 0)
		r = wf_hkdf_expand(root, "weft 1 chain", NULL, 0, c->chain, WF_SECRET);
	explicit_bzero(root, sizeof(root));
	if (r < 0)
		wf_credentials_fini(c);
	return r;
}

void wf_credentials_fini(struct wf_credentials *c)
{
	explicit_bzero(c, sizeof(*c));
}

int wf_transcript_add(uint8_t t[WF_SECRET], const uint8_t *frame, size_t n)
{
	uint8_t text[WF_SECRET + WF_HS_FRAME_MAX];

	memcpy(text, t, WF_SECRET);
	memcpy(text + WF_SECRET, frame, n);
	return wf_sha256(text, WF_SECRET + n, t);
}

int wf_transcript_mac(const uint8_t t[WF_SECRET], const uint8_t key[WF_SECRET], const uint8_t *frame, size_t n, uint8_t ret_mac[WF_SECRET])
{
	uint8_t text[WF_SECRET + WF_HS_FRAME_MAX];

	memcpy(text, t, WF_SECRET);
	memcpy(text + WF_SECRET, frame, n);
	return wf_hmac(key, text, WF_SECRET + n, ret_mac);
}

int wf_chain_mix(const struct wf_credentials *c, const uint8_t shared[WF_SECRET], const uint8_t *session_secret, uint8_t ret_mixed[WF_SECRET])
{
	static const uint8_t none[WF_SECRET];
	uint8_t step[WF_SECRET];
	int r = wf_hkdf_extract(c->chain, shared, WF_SECRET, step);

	if (r == 0)
		r = wf_hkdf_extract(step, session_secret ? session_secret : none, WF_SECRET, ret_mixed);
	explicit_bzero(step, sizeof(step));
	return r;
}
