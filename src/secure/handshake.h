/* handshake.h - two processes of a job prove it to each other, agree, and get the keys of one lane.
 *
 * One handshake makes one lane: the first lane of two processes makes their session, too; a later one names the
 * session and proves its secret. The frames are in hsframes.h, the keys in chain.h, the bytes in docs/wire.md. Bytes
 * go in, bytes come out: no socket, no clock, no memory but this struct. The caller bounds the time a handshake may
 * take, and sends what is in out before it brings more.
 *
 *   initiator   CALLS ---challenge---> AWAITS ---verdict---> DONE
 *   responder   LISTENS ---hello---> CHALLENGED ---claim---> ASKS ---wf_handshake_accept---> DONE
 *   any of them ---> REFUSED: send what is in out, if anything, and close
 *
 * What is proved  Each end, to the other, that it holds the job key now: each MAC covers random bytes the other has
 *         just made. Not which member of the job it is: who has the key can claim any identity that is free. A later
 *         lane proves that it belongs to who made the session.
 * What is hidden  The keys, also from one who gets the job key later (X25519). Not the frames: whoever listens sees
 *         the job's tag, process numbers, incarnations, session and lane.
 * What a stranger costs  One that is no weft: a compare of 8 bytes, as soon as they are there. One without the key:
 *         one MAC, no answer; which key, where there are several (treaties with other jobs), the tag says. One that replays a HELLO: two MACs and an answer of the same length; nothing is kept
 *         but this struct, and no X25519 is done before a CLAIM held, which covers the challenge. A replayed CLAIM
 *         covers another challenge.
 * Reflection  Each frame has a MAC key of its own, so none comes back as another; and a peer that has our number or
 *         our incarnation is refused.
 * Downgrade  Versions, features, mode and ciphers of both are in the MACs and in the keys. The initiator checks that
 *         what was chosen is the best of both. There is no fall-back: modes that differ are refused.
 *
 * Threads: one at a time per struct. Different ones have nothing in common but the endpoint, which is constant.
 */
#ifndef WF_SECURE_HANDSHAKE_H
#define WF_SECURE_HANDSHAKE_H

#include "secure/hsframes.h"
#include "secure/random.h"

#define WF_WIRE_OLDEST 1        /* versions of the wire this weft speaks */
#define WF_WIRE_NEWEST 1

/* What happens to records. On the wire; see record.h. */
enum wf_mode { WF_MODE_FULL = 1, WF_MODE_AUTH, WF_MODE_SUM };

/* Why not. Those up to 63 are on the wire: a number keeps its meaning for ever, one that is not known is just a refusal. */
enum wf_refusal {
	WF_REFUSED_NOT,
	WF_REFUSED_VERSION,     /* no version in common */
	WF_REFUSED_FEATURE,     /* a required feature is not known */
	WF_REFUSED_MODE,        /* the two are set to different modes */
	WF_REFUSED_AEAD,        /* no cipher in common, or not the best of both */
	WF_REFUSED_SELF,        /* that is my own number or incarnation */
	WF_REFUSED_PROCESS,     /* not the process that was wanted */
	WF_REFUSED_SESSION,     /* not known, or not proved: begin a new one */
	WF_REFUSED_LANE,        /* the caller's: such a lane, or a later incarnation of it, is there; detail: the latest */
	WF_REFUSED_DEAD,        /* the caller's: that process is dead for this one */
	WF_REFUSED_LATER,       /* the caller's: not now, try again */
	WF_REFUSED_MAGIC = 64,  /* from here on never sent: not weft at all */
	WF_REFUSED_KEY,         /* the first frame's MAC does not hold: another key */
	WF_REFUSED_JOB,         /* likewise, and it says another job */
	WF_REFUSED_FORGED,      /* a later frame's MAC does not hold: changed, replayed, or of another handshake */
	WF_REFUSED_NONSENSE,    /* well authenticated, and not what this version says */
	WF_REFUSED_BROKEN,      /* libcrypto or the kernel failed us */
};

/* What is the same for all handshakes of a process. Constant while there is one. */
struct wf_endpoint {
	struct wf_credentials credentials;
	struct wf_identity self;
	struct wf_random random;
	uint16_t oldest, newest;        /* versions */
	uint16_t features, required;    /* required: bits of features */
	enum wf_mode mode;
	uint8_t aeads;                  /* bits 1 << enum wf_aead */
	enum wf_aead best;
};

/* What both keep of a session, to make further lanes. Wiped by whoever keeps it. */
struct wf_session {
	uint8_t id[16];
	uint8_t secret[WF_SECRET];
	struct wf_identity peer;
	enum wf_mode mode;
};

/* What the initiator wants. */
struct wf_hs_call {
	struct wf_identity peer;                /* incarnation zeros: whichever has that number */
	struct wf_lane_name lane;
	const struct wf_session *session;       /* NULL: a new one. Held until the handshake is DONE or REFUSED */
};

enum wf_hs_state { WF_HS_LISTENS, WF_HS_CALLS, WF_HS_CHALLENGED, WF_HS_AWAITS, WF_HS_ASKS, WF_HS_DONE, WF_HS_REFUSED };

struct wf_handshake {
	const struct wf_endpoint *me;   /* a responder's may become another's by the HELLO */
	const struct wf_endpoint *(*others)(const uint8_t tag[WF_JOB_BYTES]);   /* LISTENS: whose tag that is, if it is not me's; NULL: nobody's. Set by the caller */
	enum wf_hs_state state;

	/* to be sent; until the next call */
	uint16_t out_n;
	uint8_t out[WF_HS_FRAME_MAX];

	/* REFUSED */
	enum wf_refusal refusal;
	bool told;                      /* by the other end, whose MAC held: it may be acted on */
	uint64_t detail;                /* what came with it; who said so is in session.peer */

	/* ASKS and later. Of the initiator its own claim */
	struct wf_hs_claim claim;

	/* DONE */
	uint16_t version, features;
	enum wf_aead aead;              /* NONE unless the mode is FULL */
	struct wf_session session;      /* with the other end in peer; for a lane of an old session the same as before */
	uint8_t send[WF_SECRET], recv[WF_SECRET];       /* the secrets of the two directions (record.h) */

	/* inside */
	const struct wf_session *old;
	uint16_t in_n;
	uint8_t in[WF_HS_FRAME_MAX];
	uint8_t transcript[WF_SECRET];
	uint8_t unclaimed[WF_SECRET];   /* the responder's transcript before the claim: what a proof is about */
	uint8_t secret[WF_SECRET];      /* of X25519 */
	uint16_t other_oldest, other_newest;
	uint8_t other_mode;
};

/* The usual endpoint of this weft: versions, ciphers and randomness of this machine. Loads libcrypto. */
int wf_endpoint_init(struct wf_endpoint *e, const struct wf_key *key, const uint8_t job[WF_JOB_BYTES],
		     const struct wf_identity *self, enum wf_mode mode);
void wf_endpoint_fini(struct wf_endpoint *e);

void wf_handshake_call(struct wf_handshake *h, const struct wf_endpoint *me, const struct wf_hs_call *call);
void wf_handshake_listen(struct wf_handshake *h, const struct wf_endpoint *me);
void wf_handshake_fini(struct wf_handshake *h);         /* wipes it */

/* Takes bytes that came, at most to the end of a frame; returns how many. 0 unless it waits for some. */
size_t wf_handshake_input(struct wf_handshake *h, const void *bytes, size_t n);

/* ASKS: @h->claim says who and which lane (what it says of session and proof is checked here).
 * @session: the one the claim names; NULL if it names none, or one that is not known: that is refused. */
void wf_handshake_accept(struct wf_handshake *h, const struct wf_session *session);
void wf_handshake_refuse(struct wf_handshake *h, enum wf_refusal why, uint64_t detail);

/* REFUSED: the words for weft_last_error, with both versions or modes where they differ; returns a negative errno. */
int wf_handshake_fail(const struct wf_handshake *h);

#endif
