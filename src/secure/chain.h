/* chain.h - what is derived from the job key, and how the secrets of a lane come from it.
 *
 *   root     = HMAC(job key, "weft job" job)                 job: the job's 128 bits
 *   mac[i]   = Expand(root, "weft hello" | "weft challenge" | "weft 1 claim" | "weft 1 refusal")     one per frame: no frame passes for another
 *   chain    = Expand(root, "weft 1 chain")
 *   mixed    = Extract(Extract(chain, X25519 result), secret of the session, or zeros for a new one)
 *   verdict  = Expand(mixed, "weft 1 verdict", T3)           MAC key of an accepting verdict
 *   session  = Expand(mixed, "weft 1 session", T4)           the secret of a new session
 *   lane     = Expand(mixed, "weft 1 to responder" | "weft 1 to initiator", T4)          one per direction
 *
 * Each step is keyed by the one before and the first by the job key: without it nothing of the chain is known,
 * whatever becomes of X25519; with it alone, found later, nothing either, because of X25519. Tn is a hash over the
 * frames 1 to n, so every byte said in the handshake is in the keys: who was told something else has other keys. The
 * job's tag is made of its number alone: two jobs are told apart, a wrong key is told from a wrong job, and the
 * number is not shown.
 */
#ifndef WF_SECURE_CHAIN_H
#define WF_SECURE_CHAIN_H

#include "secure/crypto.h"
#include "secure/key.h"

#define WF_JOB_BYTES 16               /* bytes of a job's number, and of its tag */

enum wf_hs_frame { WF_HS_FRAME_HELLO, WF_HS_FRAME_CHALLENGE, WF_HS_FRAME_CLAIM, WF_HS_FRAME_VERDICT, WF_HS_FRAMES };

struct wf_credentials {
	uint8_t tag[WF_JOB_BYTES];
	uint8_t mac[WF_HS_FRAMES][WF_SECRET];
	uint8_t chain[WF_SECRET];
};

/* After this the key itself is needed no more. Loads libcrypto. */
int wf_credentials_init(struct wf_credentials *c, const struct wf_key *key, const uint8_t job[WF_JOB_BYTES]);
void wf_credentials_fini(struct wf_credentials *c);

/* T += frame; and the MAC over T and the @n bytes of a frame before its MAC. @n at most WF_HS_FRAME_MAX. */
#define WF_HS_FRAME_MAX 176
int wf_transcript_add(uint8_t t[WF_SECRET], const uint8_t *frame, size_t n);
int wf_transcript_mac(const uint8_t t[WF_SECRET], const uint8_t key[WF_SECRET], const uint8_t *frame, size_t n, uint8_t ret_mac[WF_SECRET]);

int wf_chain_mix(const struct wf_credentials *c, const uint8_t shared[WF_SECRET], const uint8_t *session_secret, uint8_t ret_mixed[WF_SECRET]);

#endif
