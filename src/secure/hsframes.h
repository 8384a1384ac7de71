/* hsframes.h - the four frames of a handshake, as bytes and as structs.
 *
 *   initiator                                        responder
 *   HELLO      who are we, which versions  128  -->
 *              <--  128  which version, or none; a challenge  CHALLENGE
 *   CLAIM      who am I, which lane         176  -->
 *              <--  128  accepted, or why not        VERDICT
 *
 * HELLO and CHALLENGE keep size and layout for ever: by them two versions that have nothing else in common can say
 * so. CLAIM and VERDICT are those of version 1. Every frame ends with a MAC of 32 bytes, which the caller sets and
 * checks; these functions do neither, and run on a frame from outside only after its MAC held. docs/wire.md has the
 * bytes.
 */
#ifndef WF_SECURE_HSFRAMES_H
#define WF_SECURE_HSFRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "secure/chain.h"

#define WF_HS_MAC 32
#define WF_HS_MAGIC 8
#define WF_HS_HELLO_BYTES 128
#define WF_HS_CHALLENGE_BYTES 128
#define WF_HS_CLAIM_BYTES 176
#define WF_HS_CLAIM_PROOF 112      /* where its proof begins: what lies before is proved */
#define WF_HS_VERDICT_BYTES 128
#define WF_HS_VERDICT_CODE 6       /* where its code lies: it says under which key the MAC is */

extern const uint8_t wf_hs_hello_magic[WF_HS_MAGIC], wf_hs_challenge_magic[WF_HS_MAGIC];

struct wf_identity {
	uint32_t process;               /* its number in the job */
	uint8_t incarnation[16];        /* random, made when the process joined */
};

struct wf_lane_name {
	uint8_t kind;                   /* both mean something to the user of the handshake, nothing here */
	uint32_t number;
	uint64_t incarnation;           /* how often it was made before */
};

/* Features are 16 bits. Both ends know a bit: it is in use. One does not: it is off, unless the other requires it. */
struct wf_hs_hello {
	uint16_t oldest, newest;        /* versions spoken */
	uint16_t features, required;
	uint8_t tag[WF_JOB_BYTES];
	uint8_t fresh[32];              /* random */
};

struct wf_hs_challenge {
	uint16_t oldest, newest;
	uint16_t features, required;
	uint16_t version;               /* 0: refused */
	uint16_t code;                  /* why */
	uint8_t fresh[32];
};

struct wf_hs_claim {
	uint16_t version, features;
	uint8_t mode, aeads, best;
	struct wf_lane_name lane;
	struct wf_identity self, wanted;        /* wanted.incarnation zeros: any */
	uint8_t session[16];            /* zeros: a new one */
	uint8_t public[WF_SECRET];
	uint8_t proof[32];
};

struct wf_hs_verdict {
	uint16_t version, features, code;
	uint8_t mode, aeads, best, aead;
	struct wf_identity self;
	uint8_t session[16];
	uint64_t detail;
	uint8_t public[WF_SECRET];
};

/* Each writes or reads the whole frame but its MAC; unpacking answers false for what no version 1 writes. */
void wf_hs_hello_pack(const struct wf_hs_hello *h, uint8_t ret[WF_HS_HELLO_BYTES]);
void wf_hs_hello_unpack(const uint8_t in[WF_HS_HELLO_BYTES], struct wf_hs_hello *ret);
void wf_hs_challenge_pack(const struct wf_hs_challenge *c, uint8_t ret[WF_HS_CHALLENGE_BYTES]);
void wf_hs_challenge_unpack(const uint8_t in[WF_HS_CHALLENGE_BYTES], struct wf_hs_challenge *ret);
void wf_hs_claim_pack(const struct wf_hs_claim *c, uint8_t ret[WF_HS_CLAIM_BYTES]);
bool wf_hs_claim_unpack(const uint8_t in[WF_HS_CLAIM_BYTES], struct wf_hs_claim *ret);
void wf_hs_verdict_pack(const struct wf_hs_verdict *v, uint8_t ret[WF_HS_VERDICT_BYTES]);
bool wf_hs_verdict_unpack(const uint8_t in[WF_HS_VERDICT_BYTES], struct wf_hs_verdict *ret);

#endif
