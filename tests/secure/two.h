/* two.h - two processes of a job for a handshake, made of a seed, in one process. */
#ifndef TWO_H
#define TWO_H

#include "test.h"

#include <weft/weft.h>

#include "secure/handshake.h"

struct two {
	struct wf_endpoint a, b;                /* a calls, b listens */
	uint64_t random_a, random_b;
	struct wf_handshake ha, hb;
	uint8_t sent[WF_HS_FRAMES][WF_HS_FRAME_MAX];  /* what went over, frame by frame */
};

static inline int two_random(void *user, void *ret, size_t n)
{
	uint8_t *p = ret;

	while (n--)
		*p++ = (uint8_t)test_random(user);
	return 0;
}

static inline void two_endpoint(struct wf_endpoint *e, uint32_t process, uint64_t *random, enum wf_mode mode)
{
	struct wf_identity self = { .process = process };
	struct wf_key key;
	uint8_t job[WF_JOB_BYTES];

	memset(&key, 7, sizeof(key));
	memset(job, 9, sizeof(job));
	two_random(random, self.incarnation, sizeof(self.incarnation));
	MUST_OK(wf_endpoint_init(e, &key, job, &self, mode));
	e->random = (struct wf_random){ two_random, random };
}

static inline void two_make(struct two *t, enum wf_mode mode)
{
	memset(t, 0, sizeof(*t));
	t->random_a = test_seed;
	t->random_b = test_seed + 1000;
	two_endpoint(&t->a, 1, &t->random_a, mode);
	two_endpoint(&t->b, 2, &t->random_b, mode);
}

static inline void two_begin(struct two *t, const struct wf_session *session)
{
	struct wf_hs_call call = { .peer = { .process = t->b.self.process }, .lane = { 1, 3, 5 }, .session = session };

	wf_handshake_call(&t->ha, &t->a, &call);
	wf_handshake_listen(&t->hb, &t->b);
}

/* One frame from @from to @to, kept as frame @i. */
static inline void two_pass(struct two *t, int i, struct wf_handshake *from, struct wf_handshake *to)
{
	size_t n = from->out_n;

	memcpy(t->sent[i], from->out, n);
	CHECK_EQ(wf_handshake_input(to, t->sent[i], n), n);
}

/* As far as it goes without an answer of the user of b. */
static inline void two_ask(struct two *t)
{
	two_pass(t, WF_HS_FRAME_HELLO, &t->ha, &t->hb);
	two_pass(t, WF_HS_FRAME_CHALLENGE, &t->hb, &t->ha);
	if (t->ha.state == WF_HS_AWAITS)
		two_pass(t, WF_HS_FRAME_CLAIM, &t->ha, &t->hb);
}

/* To the end. @session: what b's user knows of the session named. */
static inline void two_end(struct two *t, const struct wf_session *session)
{
	two_ask(t);
	if (t->hb.state == WF_HS_ASKS)
		wf_handshake_accept(&t->hb, session);
	if (t->ha.state == WF_HS_AWAITS)
		two_pass(t, WF_HS_FRAME_VERDICT, &t->hb, &t->ha);
}

static inline bool two_agree(const struct two *t)
{
	const struct wf_handshake *a = &t->ha, *b = &t->hb;

	return a->state == WF_HS_DONE && b->state == WF_HS_DONE && memcmp(a->send, b->recv, WF_SECRET) == 0 &&
	       memcmp(a->recv, b->send, WF_SECRET) == 0 && memcmp(a->send, a->recv, WF_SECRET) != 0 &&
	       memcmp(a->session.id, b->session.id, 16) == 0 && memcmp(a->session.secret, b->session.secret, WF_SECRET) == 0 &&
	       a->aead == b->aead && a->version == b->version && a->features == b->features && a->session.mode == b->session.mode;
}

#define CHECK_REFUSED(h, why)                                                                      \
	do {                                                                                       \
		CHECK_EQ((h).state, WF_HS_REFUSED);                                                \
		CHECK_EQ((h).refusal, why);                                                        \
	} while (0)

#endif
