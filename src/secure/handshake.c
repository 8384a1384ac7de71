/* handshake.c - the states of a handshake, both roles. See handshake.h for the order, chain.h for the keys.
 *
 * What comes from outside is looked at only after its MAC held, but for this: the magic; the tag of a hello, by which a key is chosen; the code of a verdict, which
 * says under which key its MAC is; and the X25519 value of an accepting one, which that key is made of.
 */
#include "secure/handshake.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <weft/base.h>

#include "base/bytes.h"

static const uint8_t none[32];

int wf_endpoint_init(struct wf_endpoint *e, const struct wf_key *key, const uint8_t job[WF_JOB_BYTES],
		     const struct wf_identity *self, enum wf_mode mode)
{
	*e = (struct wf_endpoint){ .self = *self, .oldest = WF_WIRE_OLDEST, .newest = WF_WIRE_NEWEST, .mode = mode };
	int r = wf_credentials_init(&e->credentials, key, job);

	if (r < 0)
		return r;
	e->aeads = (uint8_t)wf_crypto_aeads();
	e->best = wf_crypto_best();
	return 0;
}

void wf_endpoint_fini(struct wf_endpoint *e)
{
	wf_credentials_fini(&e->credentials);
}

/* Over. What is in out, if anything, is the last word; the secret goes at once. */
static void refused(struct wf_handshake *h, enum wf_refusal why)
{
	h->state = WF_HS_REFUSED;
	h->refusal = why;
	explicit_bzero(h->secret, sizeof(h->secret));
}

/* Ends the frame in out with its MAC and adds it to the transcript. */
static int frame_close(struct wf_handshake *h, const uint8_t key[WF_SECRET], size_t n)
{
	int r = wf_transcript_mac(h->transcript, key, h->out, n - WF_HS_MAC, h->out + n - WF_HS_MAC);

	if (r == 0)
		r = wf_transcript_add(h->transcript, h->out, n);
	h->out_n = r == 0 ? (uint16_t)n : 0;
	return r;
}

/* Does the MAC of the frame in in hold? Then the frame joins the transcript. 0; -EBADMSG; or libcrypto failed. */
static int frame_check(struct wf_handshake *h, const uint8_t key[WF_SECRET], size_t n)
{
	uint8_t mac[WF_HS_MAC];
	int r = wf_transcript_mac(h->transcript, key, h->in, n - WF_HS_MAC, mac);

	if (r < 0)
		return r;
	if (!wf_crypto_same(mac, h->in + n - WF_HS_MAC, WF_HS_MAC))
		return -EBADMSG;
	return wf_transcript_add(h->transcript, h->in, n);
}

/* X25519 values of our own, fresh for this handshake. */
static int pair_make(struct wf_handshake *h, uint8_t ret_public[WF_SECRET])
{
	int r = wf_random_fill(&h->me->random, h->secret, sizeof(h->secret));

	return r < 0 ? r : wf_x25519_public(h->secret, ret_public);
}

/* Who holds the secret of the session says so about everything before it in the claim, and about the challenge. */
static int proof_make(const uint8_t t[WF_SECRET], const struct wf_session *session, const uint8_t *claim, uint8_t ret_proof[32])
{
	uint8_t key[WF_SECRET];
	int r = wf_hkdf_expand(session->secret, "weft 1 lane proof", NULL, 0, key, sizeof(key));

	if (r == 0)
		r = wf_transcript_mac(t, key, claim, WF_HS_CLAIM_PROOF, ret_proof);
	explicit_bzero(key, sizeof(key));
	return r;
}

/* The same at both ends: what both like best; else ChaCha20, which needs no instructions; else what both have. */
static enum wf_aead aead_choose(enum wf_mode mode, uint8_t aeads_a, uint8_t best_a, uint8_t aeads_b, uint8_t best_b)
{
	unsigned both = aeads_a & aeads_b;

	if (mode != WF_MODE_FULL)
		return WF_AEAD_NONE;
	if (best_a == best_b && (best_a == WF_AEAD_AES_GCM || best_a == WF_AEAD_CHACHA) && both & 1u << best_a)
		return (enum wf_aead)best_a;
	if (both & 1u << WF_AEAD_CHACHA)
		return WF_AEAD_CHACHA;
	return both & 1u << WF_AEAD_AES_GCM ? WF_AEAD_AES_GCM : WF_AEAD_NONE;
}

/* The secrets of both directions and, of a new session, its own. The transcript has all four frames. */
static int keys_make(struct wf_handshake *h, const uint8_t mixed[WF_SECRET], bool initiator)
{
	const uint8_t *t = h->transcript;
	int r = wf_hkdf_expand(mixed, "weft 1 to responder", t, WF_SECRET, initiator ? h->send : h->recv, WF_SECRET);

	if (r == 0)
		r = wf_hkdf_expand(mixed, "weft 1 to initiator", t, WF_SECRET, initiator ? h->recv : h->send, WF_SECRET);
	if (r == 0 && h->old)
		memcpy(h->session.secret, h->old->secret, WF_SECRET);
	else if (r == 0)
		r = wf_hkdf_expand(mixed, "weft 1 session", t, WF_SECRET, h->session.secret, WF_SECRET);
	return r;
}

/* What X25519 with @peer gives, mixed with the session's secret, and the MAC key of the verdict. The transcript has three frames.
 * -EINVAL: @peer's value is of no use. */
static int mix(struct wf_handshake *h, const uint8_t peer[WF_SECRET], uint8_t ret_mixed[WF_SECRET], uint8_t ret_mac_key[WF_SECRET])
{
	uint8_t shared[WF_SECRET];
	int r = wf_x25519(h->secret, peer, shared);

	explicit_bzero(h->secret, sizeof(h->secret));
	if (r == 0)
		r = wf_chain_mix(&h->me->credentials, shared, h->old ? h->old->secret : NULL, ret_mixed);
	if (r == 0)
		r = wf_hkdf_expand(ret_mixed, "weft 1 verdict", h->transcript, WF_SECRET, ret_mac_key, WF_SECRET);
	explicit_bzero(shared, sizeof(shared));
	return r;
}

static bool is_self(const struct wf_endpoint *me, const struct wf_identity *other)
{
	return other->process == me->self.process || memcmp(other->incarnation, me->self.incarnation, 16) == 0;
}

static bool is_wanted(const struct wf_identity *is, const struct wf_identity *wanted)
{
	return is->process == wanted->process &&
	       (memcmp(wanted->incarnation, none, 16) == 0 || memcmp(wanted->incarnation, is->incarnation, 16) == 0);
}

/* --- the initiator --- */

void wf_handshake_call(struct wf_handshake *h, const struct wf_endpoint *me, const struct wf_hs_call *call)
{
	struct wf_hs_hello hello = { .oldest = me->oldest, .newest = me->newest, .features = me->features, .required = me->required };

	memset(h, 0, sizeof(*h));
	h->me = me;
	h->state = WF_HS_CALLS;
	h->old = call->session;
	h->claim.lane = call->lane;
	h->claim.wanted = call->peer;
	if (call->session) {
		memcpy(h->claim.session, call->session->id, 16);
		h->claim.wanted = call->session->peer;
	}
	memcpy(hello.tag, me->credentials.tag, sizeof(hello.tag));
	if (wf_random_fill(&me->random, hello.fresh, sizeof(hello.fresh)) < 0) {
		refused(h, WF_REFUSED_BROKEN);
		return;
	}
	wf_hs_hello_pack(&hello, h->out);
	if (frame_close(h, me->credentials.mac[WF_HS_FRAME_HELLO], WF_HS_HELLO_BYTES) < 0)
		refused(h, WF_REFUSED_BROKEN);
}

static enum wf_refusal claim_send(struct wf_handshake *h)
{
	const struct wf_endpoint *me = h->me;
	struct wf_hs_claim *c = &h->claim;

	c->version = h->version;
	c->features = h->features;
	c->mode = (uint8_t)me->mode;
	c->aeads = me->aeads;
	c->best = (uint8_t)me->best;
	c->self = me->self;
	if (pair_make(h, c->public) < 0)
		return WF_REFUSED_BROKEN;
	wf_hs_claim_pack(c, h->out);
	if (h->old) {
		if (proof_make(h->transcript, h->old, h->out, c->proof) < 0)
			return WF_REFUSED_BROKEN;
		memcpy(h->out + WF_HS_CLAIM_PROOF, c->proof, sizeof(c->proof));
	}
	if (frame_close(h, me->credentials.mac[WF_HS_FRAME_CLAIM], WF_HS_CLAIM_BYTES) < 0)
		return WF_REFUSED_BROKEN;
	h->state = WF_HS_AWAITS;
	return WF_REFUSED_NOT;
}

static enum wf_refusal take_challenge(struct wf_handshake *h)
{
	const struct wf_endpoint *me = h->me;
	struct wf_hs_challenge c;
	int r = frame_check(h, me->credentials.mac[WF_HS_FRAME_CHALLENGE], WF_HS_CHALLENGE_BYTES);

	if (r < 0)
		return r == -EBADMSG ? WF_REFUSED_FORGED : WF_REFUSED_BROKEN;
	wf_hs_challenge_unpack(h->in, &c);
	h->other_oldest = c.oldest;
	h->other_newest = c.newest;
	if (c.version == 0) {
		h->told = true;
		return c.code && c.code < WF_REFUSED_MAGIC ? (enum wf_refusal)c.code : WF_REFUSED_NONSENSE;
	}
	/* The newest of both, and nothing else. */
	if (c.version != (c.newest < me->newest ? c.newest : me->newest) || c.version < me->oldest || c.version < c.oldest)
		return WF_REFUSED_VERSION;
	if (c.required & ~me->features)
		return WF_REFUSED_FEATURE;
	h->version = c.version;
	h->features = c.features & me->features;
	return claim_send(h);
}

/* What an accepting verdict says, its MAC having held. */
static enum wf_refusal verdict_judge(const struct wf_handshake *h, const struct wf_hs_verdict *v)
{
	const struct wf_endpoint *me = h->me;

	if (v->version != h->version || v->features != h->features)
		return WF_REFUSED_NONSENSE;
	if (v->mode != me->mode)
		return WF_REFUSED_MODE;
	if (v->aead != aead_choose(me->mode, me->aeads, (uint8_t)me->best, v->aeads, v->best) || (v->aead == WF_AEAD_NONE && me->mode == WF_MODE_FULL))
		return WF_REFUSED_AEAD;
	if (is_self(me, &v->self))
		return WF_REFUSED_SELF;
	if (!is_wanted(&v->self, &h->claim.wanted))
		return WF_REFUSED_PROCESS;
	if (memcmp(v->session, none, 16) == 0 || (h->old && memcmp(v->session, h->old->id, 16) != 0))
		return WF_REFUSED_SESSION;
	return WF_REFUSED_NOT;
}

static enum wf_refusal take_refusal(struct wf_handshake *h)
{
	struct wf_hs_verdict v;
	int r = frame_check(h, h->me->credentials.mac[WF_HS_FRAME_VERDICT], WF_HS_VERDICT_BYTES);

	if (r < 0)
		return r == -EBADMSG ? WF_REFUSED_FORGED : WF_REFUSED_BROKEN;
	if (!wf_hs_verdict_unpack(h->in, &v) || v.code >= WF_REFUSED_MAGIC)
		return WF_REFUSED_NONSENSE;
	h->told = true;
	h->detail = v.detail;
	h->other_mode = v.mode;
	h->session.peer = v.self;
	return (enum wf_refusal)v.code;
}

static enum wf_refusal take_verdict(struct wf_handshake *h)
{
	uint8_t mixed[WF_SECRET], mac_key[WF_SECRET];
	enum wf_refusal why = WF_REFUSED_NOT;
	struct wf_hs_verdict v;

	if (wf_get16(h->in + WF_HS_VERDICT_CODE) != 0)
		return take_refusal(h);
	if (!wf_hs_verdict_unpack(h->in, &v))
		return WF_REFUSED_FORGED;
	if (mix(h, v.public, mixed, mac_key) < 0 || frame_check(h, mac_key, WF_HS_VERDICT_BYTES) < 0) {
		why = WF_REFUSED_FORGED;
	} else {
		why = verdict_judge(h, &v);
		h->other_mode = v.mode;
		h->aead = (enum wf_aead)v.aead;
		h->session.peer = v.self;
		h->session.mode = h->me->mode;
		memcpy(h->session.id, v.session, 16);
	}
	if (why == WF_REFUSED_NOT && keys_make(h, mixed, true) < 0)
		why = WF_REFUSED_BROKEN;
	if (why == WF_REFUSED_NOT) {
		h->state = WF_HS_DONE;
		h->old = NULL;          /* held no longer */
	}
	explicit_bzero(mixed, sizeof(mixed));
	explicit_bzero(mac_key, sizeof(mac_key));
	return why;
}

/* --- the responder --- */

void wf_handshake_listen(struct wf_handshake *h, const struct wf_endpoint *me)
{
	memset(h, 0, sizeof(*h));
	h->me = me;
	h->state = WF_HS_LISTENS;
}

static enum wf_refusal take_hello(struct wf_handshake *h)
{
	const struct wf_endpoint *me = h->me, *other = NULL;
	struct wf_hs_challenge c = { .version = 0 };
	struct wf_hs_hello hello;
	int r;

	wf_hs_hello_unpack(h->in, &hello);      /* of it the tag alone is looked at before the MAC held: it says under which key that is */
	if (h->others && memcmp(hello.tag, me->credentials.tag, sizeof(hello.tag)) != 0)
		other = h->others(hello.tag);
	if (other)
		h->me = me = other;
	r = frame_check(h, me->credentials.mac[WF_HS_FRAME_HELLO], WF_HS_HELLO_BYTES);
	if (r < 0 && r != -EBADMSG)
		return WF_REFUSED_BROKEN;
	if (memcmp(hello.tag, me->credentials.tag, sizeof(hello.tag)) != 0)
		return WF_REFUSED_JOB;          /* for the log alone: without its MAC it is refused in any case */
	if (r < 0)
		return WF_REFUSED_KEY;
	h->other_oldest = hello.oldest;
	h->other_newest = hello.newest;
	c = (struct wf_hs_challenge){ .oldest = me->oldest, .newest = me->newest, .features = me->features, .required = me->required };
	c.version = hello.newest < me->newest ? hello.newest : me->newest;
	if (c.version < hello.oldest || c.version < me->oldest)
		c.code = WF_REFUSED_VERSION;
	else if (hello.required & ~me->features)
		c.code = WF_REFUSED_FEATURE;
	if (c.code)
		c.version = 0;
	if (wf_random_fill(&me->random, c.fresh, sizeof(c.fresh)) < 0)
		return WF_REFUSED_BROKEN;
	wf_hs_challenge_pack(&c, h->out);
	if (frame_close(h, me->credentials.mac[WF_HS_FRAME_CHALLENGE], WF_HS_CHALLENGE_BYTES) < 0)
		return WF_REFUSED_BROKEN;
	h->version = c.version;
	h->features = hello.features & me->features;
	h->state = WF_HS_CHALLENGED;
	return (enum wf_refusal)c.code;
}

static void verdict_fill(const struct wf_handshake *h, struct wf_hs_verdict *v)
{
	const struct wf_endpoint *me = h->me;

	*v = (struct wf_hs_verdict){
		.version = h->version, .features = h->features,
		.mode = (uint8_t)me->mode, .aeads = me->aeads, .best = (uint8_t)me->best, .self = me->self,
	};
}

void wf_handshake_refuse(struct wf_handshake *h, enum wf_refusal why, uint64_t detail)
{
	struct wf_hs_verdict v;

	assert(h->state == WF_HS_ASKS && why > WF_REFUSED_NOT && why < WF_REFUSED_MAGIC);
	verdict_fill(h, &v);
	v.code = (uint16_t)why;
	v.detail = detail;
	wf_hs_verdict_pack(&v, h->out);
	refused(h, frame_close(h, h->me->credentials.mac[WF_HS_FRAME_VERDICT], WF_HS_VERDICT_BYTES) < 0 ? WF_REFUSED_BROKEN : why);
}

static enum wf_refusal take_claim(struct wf_handshake *h)
{
	const struct wf_endpoint *me = h->me;
	struct wf_hs_claim *c = &h->claim;
	enum wf_refusal why = WF_REFUSED_NOT;
	int r;

	memcpy(h->unclaimed, h->transcript, sizeof(h->unclaimed));
	r = frame_check(h, me->credentials.mac[WF_HS_FRAME_CLAIM], WF_HS_CLAIM_BYTES);
	if (r < 0)
		return r == -EBADMSG ? WF_REFUSED_FORGED : WF_REFUSED_BROKEN;
	if (!wf_hs_claim_unpack(h->in, c) || c->version != h->version || c->features != h->features)
		return WF_REFUSED_NONSENSE;
	h->state = WF_HS_ASKS;
	h->other_mode = c->mode;
	h->aead = aead_choose(me->mode, me->aeads, (uint8_t)me->best, c->aeads, c->best);
	if (c->mode != me->mode)
		why = WF_REFUSED_MODE;
	else if (h->aead == WF_AEAD_NONE && me->mode == WF_MODE_FULL)
		why = WF_REFUSED_AEAD;
	else if (is_self(me, &c->self))
		why = WF_REFUSED_SELF;
	else if (!is_wanted(&me->self, &c->wanted))
		why = WF_REFUSED_PROCESS;
	if (why)
		wf_handshake_refuse(h, why, 0);
	return WF_REFUSED_NOT;
}

/* Does the claim belong to @session? The frame is still in in. */
static bool proof_holds(const struct wf_handshake *h, const struct wf_session *session)
{
	uint8_t proof[32];

	if (!session || memcmp(session->id, h->claim.session, 16) != 0 || session->mode != h->me->mode ||
	    session->peer.process != h->claim.self.process || memcmp(session->peer.incarnation, h->claim.self.incarnation, 16) != 0)
		return false;
	return proof_make(h->unclaimed, session, h->in, proof) == 0 && wf_crypto_same(proof, h->claim.proof, sizeof(proof));
}

static int verdict_send(struct wf_handshake *h, uint8_t mixed[WF_SECRET], uint8_t mac_key[WF_SECRET])
{
	struct wf_hs_verdict v;
	int r;

	verdict_fill(h, &v);
	v.aead = (uint8_t)h->aead;
	r = pair_make(h, v.public);
	if (r == 0 && h->old)
		memcpy(h->session.id, h->old->id, 16);
	else if (r == 0)
		r = wf_random_fill(&h->me->random, h->session.id, 16);
	memcpy(v.session, h->session.id, 16);
	if (r == 0)
		r = mix(h, h->claim.public, mixed, mac_key);
	if (r < 0)
		return r;
	wf_hs_verdict_pack(&v, h->out);
	r = frame_close(h, mac_key, WF_HS_VERDICT_BYTES);
	return r < 0 ? r : keys_make(h, mixed, false);
}

void wf_handshake_accept(struct wf_handshake *h, const struct wf_session *session)
{
	bool old = memcmp(h->claim.session, none, 16) != 0;
	uint8_t mixed[WF_SECRET], mac_key[WF_SECRET];
	int r;

	assert(h->state == WF_HS_ASKS);
	if (old && !proof_holds(h, session)) {
		wf_handshake_refuse(h, WF_REFUSED_SESSION, 0);
		return;
	}
	h->old = old ? session : NULL;
	h->session.peer = h->claim.self;
	h->session.mode = h->me->mode;
	h->state = WF_HS_DONE;
	r = verdict_send(h, mixed, mac_key);
	h->old = NULL;
	if (r < 0) {
		h->out_n = 0;
		refused(h, r == -EINVAL ? WF_REFUSED_NONSENSE : WF_REFUSED_BROKEN);
	}
	explicit_bzero(mixed, sizeof(mixed));
	explicit_bzero(mac_key, sizeof(mac_key));
}

/* --- both --- */

void wf_handshake_fini(struct wf_handshake *h)
{
	explicit_bzero(h, sizeof(*h));
	h->state = WF_HS_REFUSED;
}

/* What is waited for; 0: nothing. @ret_magic: how it begins, NULL where only its MAC tells. */
static size_t expected(const struct wf_handshake *h, const uint8_t **ret_magic)
{
	*ret_magic = NULL;
	switch (h->state) {
	case WF_HS_LISTENS:
		*ret_magic = wf_hs_hello_magic;
		return WF_HS_HELLO_BYTES;
	case WF_HS_CALLS:
		*ret_magic = wf_hs_challenge_magic;
		return WF_HS_CHALLENGE_BYTES;
	case WF_HS_CHALLENGED:
		return WF_HS_CLAIM_BYTES;
	case WF_HS_AWAITS:
		return WF_HS_VERDICT_BYTES;
	default:
		return 0;
	}
}

static enum wf_refusal take(struct wf_handshake *h)
{
	switch (h->state) {
	case WF_HS_LISTENS:
		return take_hello(h);
	case WF_HS_CALLS:
		return take_challenge(h);
	case WF_HS_CHALLENGED:
		return take_claim(h);
	default:
		return take_verdict(h);
	}
}

size_t wf_handshake_input(struct wf_handshake *h, const void *bytes, size_t n)
{
	const uint8_t *magic;
	size_t whole = expected(h, &magic), have = h->in_n;
	enum wf_refusal why;

	if (whole == 0)
		return 0;               /* in_n may be anything: what was refused in mid-frame is still there */
	if (n > whole - have)
		n = whole - have;
	if (n == 0)
		return 0;
	memcpy(h->in + have, bytes, n);
	have += n;
	h->in_n = (uint16_t)have;
	h->out_n = 0;
	if (magic && memcmp(h->in, magic, have < WF_HS_MAGIC ? have : WF_HS_MAGIC) != 0) {
		refused(h, WF_REFUSED_MAGIC);
		return n;
	}
	if (have < whole)
		return n;
	h->in_n = 0;
	why = take(h);
	if (why)
		refused(h, why);
	return n;
}
