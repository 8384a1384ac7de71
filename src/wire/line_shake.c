/* line_shake.c - how a line begins: two processes prove themselves to each other, and the lane is the remote's. See line.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/log.h"
#include "secure/quiet.h"
#include "wire/line.h"

_Atomic uint32_t wf_strangers, wf_silent;
static struct wf_lock quiet_lock;
static struct wf_quiet quiet;                   /* under quiet_lock */

static void spoke(struct wf_line *l)
{
	if (atomic_exchange_explicit(&l->silent, false, memory_order_relaxed))
		atomic_fetch_sub_explicit(&wf_silent, 1, memory_order_relaxed);
}

void wf_line_shaken(struct wf_line *l)
{
	spoke(l);
	if (!l->shake)
		return;
	wf_handshake_fini(l->shake);
	free(l->shake);
	l->shake = NULL;
	if (!l->mine)
		atomic_fetch_sub_explicit(&wf_strangers, 1, memory_order_relaxed);
	explicit_bzero(&l->old, sizeof(l->old));
}

/* [reader] What the handshake wants said. */
static void say(struct wf_line *l)
{
	if (!l->shake->out_n)
		return;
	wf_lock(&l->writing);
	if (l->said_at == l->said_n)
		l->said_at = l->said_n = 0;
	if (l->shake->out_n <= sizeof(l->said) - l->said_n) {
		memcpy(l->said + l->said_n, l->shake->out, l->shake->out_n);
		l->said_n += l->shake->out_n;
	}
	l->shake->out_n = 0;
	wf_line_say_locked(l);
	wf_unlock(&l->writing);
}

/* [trunk.lock] The session both know by that number. */
static struct wf_session *session_of(struct wf_trunk *t, const uint8_t id[16])
{
	for (uint32_t i = 0; i < t->nsessions; i++)
		if (memcmp(t->sessions[i].id, id, 16) == 0)
			return &t->sessions[i];
	return NULL;
}

static void session_keep(struct wf_trunk *t, const struct wf_session *s)
{
	if (session_of(t, s->id))
		return;
	if (t->nsessions == WF_SESSIONS)
		memmove(&t->sessions[0], &t->sessions[1], --t->nsessions * sizeof(t->sessions[0]));
	t->sessions[t->nsessions++] = *s;
}

/* Is it who it was before? It is the same process for ever. */
static bool same_as_before(struct wf_trunk *t, const struct wf_identity *who)
{
	if (!t->known) {
		memcpy(t->incarnation, who->incarnation, sizeof(t->incarnation));
		t->known = true;
	}
	return memcmp(t->incarnation, who->incarnation, sizeof(t->incarnation)) == 0;
}

/* [reader] Both have proved themselves: the lane is the remote's. */
static int carry(struct wf_line *l)
{
	struct wf_handshake *h = l->shake;
	struct wf_trunk *t = l->trunk;
	struct wf_record_conf conf = { .mode = h->session.mode, .aead = h->aead, .secret = h->send };
	struct wf_lane *of = NULL;
	int r = wf_sealer_init(&l->seal, &conf);

	conf.secret = h->recv;
	if (r == 0)
		r = wf_opener_init(&l->open, &conf);
	if (r < 0)
		return r;
	wf_trunk_lock(t);
	if (same_as_before(t, &h->session.peer))
		of = wf_remote_lane_up(&t->remote, l->slot, l->gen, l->mine, wf_now());
	if (of) {
		t->remote.conf.deadline = wf_knob(WF_KNOB_SILENCE) * WEFT_MS;
		session_keep(t, &h->session);
		t->lines[of - t->remote.lanes] = l;
	}
	wf_unlock(&t->lock);
	if (!of)
		return -EALREADY;
	wf_lane_tune(l->rail, l->lane, of->kind, 0);
	wf_lock(&l->writing);
	l->of = of;
	wf_unlock(&l->writing);
	l->stage = WF_LINE_RECORDS;
	atomic_store_explicit(&l->shakes, false, memory_order_relaxed);
	wf_line_shaken(l);
	wf_log(WF_DEBUG, "lane %u.%u with process %s is up", l->slot, l->gen, t->name);
	wf_trunk_turn(t);
	wf_line_write(l);
	return 0;
}

/* [reader] The other says who it is and what it wants. */
static void asked(struct wf_line *l)
{
	struct wf_handshake *h = l->shake;
	struct wf_trunk *t = wf_trunk_caller(h->me, h->claim.self.process);
	static const uint8_t none[16];
	struct wf_session *s, known;

	if (!t || h->claim.lane.number >= WF_LANE_SLOTS) {
		wf_handshake_refuse(h, WF_REFUSED_PROCESS, 0);
		return;
	}
	if (atomic_load_explicit(&t->err, memory_order_relaxed)) {
		wf_handshake_refuse(h, WF_REFUSED_DEAD, 0);
		return;
	}
	l->trunk = t;
	l->slot = h->claim.lane.number;
	l->gen = (uint32_t)h->claim.lane.incarnation;
	wf_trunk_lock(t);
	s = memcmp(h->claim.session, none, sizeof(none)) ? session_of(t, h->claim.session) : NULL;
	if (s)
		known = *s;
	wf_unlock(&t->lock);
	wf_handshake_accept(h, s ? &known : NULL);
	if (s)
		explicit_bzero(&known, sizeof(known));
}

static void session_forget(struct wf_trunk *t, const uint8_t id[16])
{
	struct wf_session *s = session_of(t, id);

	if (!s)
		return;
	*s = t->sessions[--t->nsessions];
	explicit_bzero(&t->sessions[t->nsessions], sizeof(*s));
}

/* [reader] The other end, who has the job's key, says why not. A session that it does not know is not named again: each end keeps the last few that it saw made, and a lane
 * cut at the wrong moment leaves one end with one that the other never got. */
static void refused_by_them(struct wf_line *l)
{
	const struct wf_handshake *h = l->shake;
	struct wf_trunk *t = l->trunk;

	wf_trunk_lock(t);
	if (h->refusal == WF_REFUSED_SESSION)
		session_forget(t, l->old.id);
	if (h->refusal == WF_REFUSED_DEAD || (h->refusal == WF_REFUSED_SESSION && !same_as_before(t, &h->session.peer)))
		wf_remote_gone(&t->remote, -ECONNRESET, wf_now());
	wf_unlock(&t->lock);
}

/* Strangers are told of once a minute each; what was begun here always, as somebody waits for it. */
static int refused(struct wf_line *l)
{
	uint8_t source[WF_QUIET_NAME] = { 0 };
	char who[64] = "another host";
	uint64_t since = 0;
	bool tell = true;
	int r = wf_handshake_fail(l->shake);

	if (!l->mine) {
		memcpy(source, l->from.bytes, l->from.len < sizeof(source) ? l->from.len : sizeof(source));
		wf_lock(&quiet_lock);
		tell = wf_quiet_tell(&quiet, source, wf_now(), &since);
		wf_unlock(&quiet_lock);
	} else {
		tell = wf_trunk_useless(l->trunk, l->rail);
		if (l->shake->told)
			refused_by_them(l);
	}
	if (tell && l->mine)
		wf_log(WF_WARN, "our lane was refused: %s", weft_last_error());
	if (tell && !l->mine && l->rail->driver->slots.addr_print)
		l->rail->driver->slots.addr_print(&l->from, who, sizeof(who));
	if (tell && !l->mine)
		wf_log(WF_WARN, "a lane of %s was refused: %s (%llu more since the last line)", who, weft_last_error(), (unsigned long long)since);
	return r;
}

int wf_line_shake(struct wf_line *l)
{
	struct wf_handshake *h = l->shake;

	if (h->state != WF_HS_LISTENS)
		spoke(l);
	if (h->state == WF_HS_ASKS)
		asked(l);
	say(l);
	if (h->state == WF_HS_REFUSED)
		return refused(l);
	return h->state == WF_HS_DONE ? carry(l) : 0;
}

int wf_line_call(struct wf_line *l)
{
	struct wf_trunk *t = l->trunk;
	struct wf_hs_call call = { .peer.process = t->them, .lane = { .number = l->slot, .incarnation = l->gen } };

	wf_trunk_lock(t);
	if (t->nsessions) {
		l->old = t->sessions[t->nsessions - 1];         /* the handshake holds it until it is over */
		call.session = &l->old;
	}
	if (t->known)
		memcpy(call.peer.incarnation, t->incarnation, sizeof(t->incarnation));
	wf_unlock(&t->lock);
	wf_handshake_call(l->shake, t->me, &call);
	return wf_line_shake(l);
}

void wf_line_listen(struct wf_line *l)
{
	wf_handshake_listen(l->shake, &wf_endpoint);
	l->shake->others = wf_treaty_of_tag;
}
