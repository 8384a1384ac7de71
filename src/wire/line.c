/* line.c - one lane over a rail: a handshake, then records. See trunk.h.
 *
 * In   The driver's upcalls, from the one thread that polls the rail. A record of frames is opened where it lies and its acts are carried out before the next
 *      one is looked at; a body is read straight to where the remote wants it, and opened there.
 * Out  Whoever has something to write tries `writing`; who does not get it leaves a mark, and the one at it looks again. A record is sealed into one list of
 *      pieces and sent until the rail takes no more; then the rail's writable goes on.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/knob.h"
#include "base/log.h"
#include "secure/quiet.h"
#include "wire/trunk.h"

#define SEALED_BODY (128u << 10)                /* of a body are encrypted at a time */
#define SEALED_ROOM (WF_WIRE_SMALL + SEALED_BODY + WF_RECORD_HEAD + 2 * WF_AEAD_TAG)

#define STRANGERS 1024u                         /* handshakes begun by others, at a time */
#define SHAKE_TIME (5 * WEFT_S)
#define LANDING_TIME (5 * WEFT_MS)
#define AGAIN (WEFT_MS / 10)                      /* until who still writes is looked at again */

static struct wf_lock lines_lock;
static struct wf_node lines;                    /* all of them */
static struct wf_node over;                     /* those to be buried */
static _Atomic uint32_t strangers, overs;       /* hints */
static _Atomic uint64_t hung_up;                /* strangers that did not become members */
static struct wf_quiet quiet;                   /* under lines_lock */
static _Atomic uint64_t rounds;                 /* of wf_lines_retry */

struct wf_line *wf_line_new(struct wf_rail *rail)
{
	struct wf_line *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->shake = calloc(1, sizeof(*l->shake));
	if (!l->shake) {
		free(l);
		return NULL;
	}
	l->rail = rail;
	l->since = wf_now();
	atomic_store_explicit(&l->shakes, true, memory_order_relaxed);
	wf_lock(&lines_lock);
	wf_list_add(&lines, &l->all);
	wf_unlock(&lines_lock);
	return l;
}

static void shake_over(struct wf_line *l)
{
	if (!l->shake)
		return;
	wf_handshake_fini(l->shake);
	free(l->shake);
	l->shake = NULL;
	if (!l->mine)
		atomic_fetch_sub_explicit(&strangers, 1, memory_order_relaxed);
	explicit_bzero(&l->old, sizeof(l->old));
}

uint64_t wf_lines_hung_up(void)
{
	return atomic_load_explicit(&hung_up, memory_order_relaxed);
}

/* Who never said a hello that holds, or was refused before it proved to be one of the job. A member whose lane is one too many goes as well before its handshake is done. */
static bool stranger(const struct wf_line *l)
{
	return !l->mine && !l->trunk && l->shake && (l->shake->state == WF_HS_LISTENS || l->shake->state == WF_HS_REFUSED);
}

void wf_line_free(struct wf_line *l)
{
	wf_lock(&lines_lock);
	if (wf_list_has(&l->all))
		wf_list_del(&l->all);
	wf_unlock(&lines_lock);
	if (stranger(l))
		atomic_fetch_add_explicit(&hung_up, 1, memory_order_relaxed);   /* a count */
	shake_over(l);
	wf_sealer_fini(&l->seal);
	wf_opener_fini(&l->open);
	free(l->sealed);
	free(l);
}

/* ---- writing ---- */

/* [writing] Handshake bytes first. False: the rail takes no more now. */
static bool say_locked(struct wf_line *l)
{
	while (l->said_at < l->said_n) {
		struct iovec v = { l->said + l->said_at, l->said_n - l->said_at };
		ssize_t n = wf_lane_send(l->rail, l->lane, &(struct weft_out){ .piece = &v, .pieces = 1 });

		if (n <= 0)
			return false;
		l->said_at += (uint32_t)n;
	}
	return true;
}

static void piece_add(struct wf_line *l, const void *base, size_t len)
{
	if (len)
		l->iov[l->iovs++] = (struct iovec){ (void *)(uintptr_t)base, len };
}

/* [writing] The frames, sealed. */
static int seal_small(struct wf_line *l, uint8_t **to)
{
	struct wf_fill *f = &l->fill;
	bool full = l->seal.end.mode == WF_MODE_FULL, flat = f->small_len <= sizeof(l->flat) - WF_RECORD_HEAD - WF_AEAD_TAG;
	int r;

	/* In one piece, if they are few: copying them costs less than the pieces do in the kernel. */
	if (full || flat) {
		uint8_t *at = full ? *to : l->flat;
		long n = wf_sealer_frames(&l->seal, f->small, f->nsmall, f->body_len, at);

		if (n < 0)
			return (int)n;
		piece_add(l, at, (size_t)n);
		*to += full ? n : 0;
		return 0;
	}
	r = wf_sealer_begin(&l->seal, f->small_len, f->body_len, l->head);
	piece_add(l, l->head, WF_RECORD_HEAD);
	for (int i = 0; i < f->nsmall && r == 0; i++) {
		r = wf_sealer_piece(&l->seal, NULL, f->small[i].iov_base, f->small[i].iov_len);
		piece_add(l, f->small[i].iov_base, f->small[i].iov_len);
	}
	if (r == 0)
		r = wf_sealer_end(&l->seal, l->tails[0]);
	piece_add(l, l->tails[0], wf_record_tail(l->seal.end.mode));
	return r;
}

/* [writing] As much of the body as fits this round. */
static int seal_body(struct wf_line *l, uint8_t **to)
{
	struct wf_fill *f = &l->fill;
	bool full = l->seal.end.mode == WF_MODE_FULL;
	uint32_t room = full ? SEALED_BODY : UINT32_MAX;
	int r = 0;

	while (r == 0 && l->body_sent < f->body_len && room && l->iovs < 48) {
		struct iovec v[8];
		int n = wf_fill_body(&l->trunk->remote, f, l->body_sent, v, 8);

		if (n <= 0)
			return -EIO;
		for (int i = 0; i < n && r == 0 && room && l->body_sent < f->body_len; i++) {
			size_t len = v[i].iov_len < room ? v[i].iov_len : room;

			len = len < f->body_len - l->body_sent ? len : f->body_len - l->body_sent;
			r = wf_sealer_piece(&l->seal, full ? *to : NULL, v[i].iov_base, len);
			piece_add(l, full ? *to : v[i].iov_base, len);
			*to += full ? len : 0;
			room -= full ? (uint32_t)len : 0;
			l->body_sent += (uint32_t)len;
		}
	}
	if (r == 0 && l->body_sent == f->body_len) {
		r = wf_sealer_end(&l->seal, l->tails[1]);
		piece_add(l, l->tails[1], wf_record_body_tail(l->seal.end.mode));
	}
	return r;
}

/* [writing] The record in l->fill becomes pieces. 1, or an error. */
static int seal_filled(struct wf_line *l)
{
	uint8_t *to;
	int r;

	if (l->seal.end.mode == WF_MODE_FULL && !l->sealed && !(l->sealed = malloc(SEALED_ROOM)))
		return weft_fail(-ENOMEM, "no memory to encrypt");
	l->body_sent = 0;
	to = l->sealed;
	r = seal_small(l, &to);
	if (r == 0 && l->fill.body_len)
		r = seal_body(l, &to);
	return r < 0 ? r : 1;
}

/* [writing] The next pieces to send, if there is something: 1, 0 or an error. */
static int gather_locked(struct wf_line *l)
{
	struct wf_rsend *keep = NULL;
	weft_time now;
	uint8_t *to;
	int r;

	l->iovs = l->iov_at = 0;
	if (l->filled && l->body_sent < l->fill.body_len) {
		to = l->sealed;
		r = seal_body(l, &to);
		return r < 0 ? r : 1;
	}
	now = wf_now();
	wf_lock(&l->trunk->lock);
	if (l->filled) {
		if (l->fill.send && wf_remote_keep(l->fill.send))
			keep = l->fill.send;
		wf_remote_wrote(&l->trunk->remote, l->of, now);
	}
	l->filled = wf_remote_fill(&l->trunk->remote, l->of, &l->fill, now) == 1;
	wf_unlock(&l->trunk->lock);
	if (keep)
		wf_depart_written(l->trunk, keep);
	return l->filled ? seal_filled(l) : 0;
}

/* [writing] 0: all is written; -EAGAIN: the rail takes no more now; else the line is over. */
static int write_locked(struct wf_line *l)
{
	if (!say_locked(l))
		return -EAGAIN;
	if (!l->of)
		return 0;
	for (;;) {
		struct weft_out out;
		ssize_t n;

		if (l->iov_at == l->iovs) {
			int r = gather_locked(l);

			if (r <= 0)
				return r;
		}
		out = (struct weft_out){ .piece = l->iov + l->iov_at, .pieces = l->iovs - l->iov_at };
		if (out.pieces > l->rail->info.pieces)
			out.pieces = l->rail->info.pieces;
		n = wf_lane_send(l->rail, l->lane, &out);
		if (n < 0)
			return (int)n;
		while (n > 0 && (size_t)n >= l->iov[l->iov_at].iov_len)
			n -= (ssize_t)l->iov[l->iov_at++].iov_len;
		if (n > 0) {
			l->iov[l->iov_at].iov_base = (char *)l->iov[l->iov_at].iov_base + n;
			l->iov[l->iov_at].iov_len -= (size_t)n;
		}
	}
}

void wf_line_write(struct wf_line *l)
{
	int r = 0;

	do {
		/* seq_cst: either who writes finds the mark behind his unlock, or we get the lock. */
		atomic_store(&l->wanted, 1);
		if (!wf_trylock(&l->writing))
			return;
		atomic_store(&l->wanted, 0);
		if (!atomic_load_explicit(&l->down, memory_order_acquire))
			r = write_locked(l);
		wf_unlock(&l->writing);
		atomic_thread_fence(memory_order_seq_cst);
	} while (atomic_load(&l->wanted) && r >= 0);
	if (r < 0 && r != -EAGAIN)
		wf_line_end(l);
}

bool wf_line_take_locked(struct wf_line *l, weft_time now)
{
	if (!wf_trylock(&l->writing))
		return false;
	if (!atomic_load_explicit(&l->down, memory_order_acquire) && l->of && l->said_at == l->said_n && l->iov_at == l->iovs && !l->filled) {
		l->iovs = l->iov_at = 0;
		l->flat_n = wf_remote_fill_flat(&l->trunk->remote, l->of, l->flat + WF_RECORD_HEAD, sizeof(l->flat) - WF_RECORD_HEAD - WF_AEAD_TAG, now, &l->more);
		if (l->flat_n)
			return true;
		l->filled = wf_remote_fill(&l->trunk->remote, l->of, &l->fill, now) == 1;
		if (l->filled)
			return true;
	}
	wf_unlock(&l->writing);
	return false;
}

/* [writing] The record that lies flat, sealed where it lies and sent. As write_locked. */
static int send_flat_locked(struct wf_line *l)
{
	struct iovec frames = { l->flat + WF_RECORD_HEAD, l->flat_n };
	long n = wf_sealer_frames(&l->seal, &frames, 1, 0, l->flat);
	ssize_t sent;

	l->flat_n = 0;
	if (n < 0)
		return (int)n;
	l->iov[0] = (struct iovec){ l->flat, (size_t)n };
	l->iovs = 1;
	sent = wf_lane_send(l->rail, l->lane, &(struct weft_out){ .piece = l->iov, .pieces = 1 });
	if (sent == n && !l->more) {
		l->iovs = 0;
		return 0;
	}
	if (sent < 0)
		return (int)sent;
	l->iov[0] = (struct iovec){ l->flat + sent, (size_t)(n - sent) };
	l->iov_at = sent == n;
	return write_locked(l);
}

void wf_line_taken(struct wf_line *l)
{
	int r;

	if (l->flat_n) {
		r = send_flat_locked(l);
	} else {
		r = seal_filled(l);
		if (r > 0)
			r = write_locked(l);
	}
	wf_unlock(&l->writing);
	atomic_thread_fence(memory_order_seq_cst);      /* as in wf_line_write */
	if (r < 0 && r != -EAGAIN)
		wf_line_end(l);
	else if (atomic_load(&l->wanted) && r >= 0)
		wf_line_write(l);
}

/* ---- the handshake ---- */

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
	say_locked(l);
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
	wf_lock(&t->lock);
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
	shake_over(l);
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
	wf_lock(&t->lock);
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

	wf_lock(&t->lock);
	if (h->refusal == WF_REFUSED_SESSION)
		session_forget(t, l->old.id);
	if (h->refusal == WF_REFUSED_DEAD || (h->refusal == WF_REFUSED_SESSION && !same_as_before(t, &h->session.peer)))
		wf_remote_gone(&t->remote, -ECONNRESET, wf_now());
	wf_unlock(&t->lock);
}

/* Strangers are told of once a minute each; what was begun here always, as somebody waits for it. */
static int refused(struct wf_line *l)
{
	uint8_t source[16] = { 0 };
	uint64_t since = 0;
	bool tell = true;
	int r = wf_handshake_fail(l->shake);

	if (!l->mine) {
		memcpy(source, l->from.bytes, l->from.len < sizeof(source) ? l->from.len : sizeof(source));
		wf_lock(&lines_lock);
		tell = wf_quiet_tell(&quiet, source, wf_now(), &since);
		wf_unlock(&lines_lock);
	} else if (l->shake->told) {
		refused_by_them(l);
	}
	if (tell)
		wf_log(WF_WARN, "%s refused: %s (%llu more since the last line)", l->mine ? "our lane was" : "a lane was", weft_last_error(),
		       (unsigned long long)since);
	return r;
}

/* [reader] Goes on after bytes came: 0, or why the line ends. */
static int shake(struct wf_line *l)
{
	struct wf_handshake *h = l->shake;

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

	wf_lock(&t->lock);
	if (t->nsessions) {
		l->old = t->sessions[t->nsessions - 1];         /* the handshake holds it until it is over */
		call.session = &l->old;
	}
	if (t->known)
		memcpy(call.peer.incarnation, t->incarnation, sizeof(t->incarnation));
	wf_unlock(&t->lock);
	wf_handshake_call(l->shake, t->me, &call);
	return shake(l);
}

void wf_line_listen(struct wf_line *l)
{
	wf_handshake_listen(l->shake, &wf_endpoint);
	l->shake->others = wf_treaty_of_tag;
}

/* ---- reading ---- */

/* What was read may have left something to do. */
static void settle(struct wf_trunk *t)
{
	bool due, news;

	wf_lock(&t->lock);
	due = wf_remote_due(&t->remote, t->remote.now);
	news = !due && wf_trunk_news_locked(t);
	wf_unlock(&t->lock);
	if (due)
		wf_trunk_turn(t);
	else if (news)
		wf_trunks_by(atomic_load_explicit(&t->wake, memory_order_relaxed));
}

/* [reading, trunk.lock] What messages cost that were read is given back. */
static void credit_locked(struct wf_trunk *t)
{
	wf_arrive_credit_locked(t, t->costs);
	t->costs = 0;
}

/* [reader] The frames of a record, with its body if that is there: told to the remote, and done. */
static int frames(struct wf_line *l, const struct wf_whole *w)
{
	struct wf_trunk *t = l->trunk;
	weft_time now = wf_now();
	struct wf_acts acts;
	bool due, news = false;
	int r;

	wf_lock(&t->reading);
	do {
		acts.n = 0;
		wf_lock(&t->lock);
		if (t->costs)           /* of the last time: as long as it is little it can wait */
			credit_locked(t);
		r = 0;
		if ((w->body_len && !w->body) || !wf_remote_record_brisk(&t->remote, l->of, w, now, &acts, false))
			r = w->body ? -ECONNABORTED : wf_remote_record(&t->remote, l->of, w->frames, w->len, w->body_len, now, &acts);
		due = wf_remote_due(&t->remote, now);
		news |= wf_trunk_news_locked(t);                /* an acknowledgement, in a while; whoever asks has to tell it */
		wf_unlock(&t->lock);
		wf_trunk_do(t, &acts, l);
		for (int i = 0; i < acts.n; i++)
			t->stirred |= acts.a[i].kind != WF_ACT_MSG;
	} while (r == 1);
	if (wf_unlikely(t->stirred || t->costs > t->remote.conf.window / 8)) {
		t->stirred = false;
		wf_lock(&t->lock);
		credit_locked(t);
		due = wf_remote_due(&t->remote, now);
		news |= wf_trunk_news_locked(t);
		wf_unlock(&t->lock);
	}
	wf_unlock(&t->reading);
	if (due)
		wf_trunk_turn(t);
	if (news)
		wf_trunks_by(atomic_load_explicit(&t->wake, memory_order_relaxed));
	return r;
}

/* [reader] Where the body goes on; the driver is told by @need. Bytes nobody wants go by take().
 * Another line may be in that landing: one of another rail, which another thread reads, leaves it soon. One of this rail leaves it when it gets more bytes or ends, and both
 * are ours to read: then this line ends instead, and what it carried comes again by the next one. */
static int body_goes(struct wf_line *l, struct weft_need *need)
{
	struct wf_trunk *t = l->trunk;
	weft_time since = 0;
	int n;

	for (;;) {
		wf_lock(&t->lock);
		n = wf_remote_place(&t->remote, l->of, l->into, WEFT_NEED_PIECES);
		wf_unlock(&t->lock);
		if (n != -EAGAIN)
			break;
		if (!since)
			since = wf_now();
		else if (wf_now() - since > LANDING_TIME)
			return weft_fail(-EBUSY, "another lane does not leave the place of this one's bytes");
		sched_yield();
	}
	if (n < 0)
		return n;
	l->pieces = (uint32_t)n;
	memcpy(need->piece, l->into, (size_t)n * sizeof(l->into[0]));
	need->pieces = (uint32_t)n;
	need->min = 0;
	if (n == 0)
		need->want = 1;
	return 0;
}

/* [reader] @n bytes are in the pieces; they are the landing's own again. */
static void body_came(struct wf_line *l, size_t n)
{
	l->pieces = 0;
	wf_lock(&l->trunk->lock);
	wf_remote_placed(&l->trunk->remote, l->of, (uint32_t)n);
	wf_unlock(&l->trunk->lock);
	l->body_left -= n;
}

/* [reader] All of the record is here, and the body at @body a message's: it need not be placed anywhere, but goes the way of the short ones. */
static bool message_whole(struct wf_line *l, struct wf_whole *w, const uint8_t *body)
{
	struct wf_acts acts;
	bool so;

	w->body = body;
	wf_lock(&l->trunk->lock);
	so = wf_remote_record_brisk(&l->trunk->remote, l->of, w, 0, &acts, true);
	wf_unlock(&l->trunk->lock);
	if (!so)
		w->body = NULL;
	return so;
}

/* [reader] A record's beginning at @p: how many bytes it took; 0: not all of it is there; need.want says how much is. */
static ssize_t record(struct wf_line *l, uint8_t *p, size_t n, struct weft_need *need)
{
	size_t length, body, end = wf_record_body_tail(l->open.end.mode);
	long took = wf_opener_frames(&l->open, p, n, &length, &body);
	struct wf_whole w;
	int r;

	if (took < 0)
		return took;
	if (took == 0) {
		need->want = n < WF_RECORD_HEAD ? WF_RECORD_HEAD : WF_RECORD_HEAD + wf_get32(p) + wf_record_tail(l->open.end.mode);
		return 0;
	}
	w = (struct wf_whole){ .frames = p + WF_RECORD_HEAD, .len = (uint32_t)length, .body_len = (uint32_t)body };
	if (body && n - (size_t)took >= body + end && message_whole(l, &w, p + took)) {
		r = wf_opener_piece(&l->open, p + took, p + took, body);
		if (r == 0)
			r = wf_opener_end(&l->open, p + took + body);
		if (r == 0)
			r = frames(l, &w);
		return r < 0 ? r : took + (ssize_t)(body + end);
	}
	r = frames(l, &w);
	if (r == 0 && body) {
		l->stage = WF_LINE_BODY;
		l->body_left = body;
		r = body_goes(l, need);
	}
	return r < 0 ? r : took;
}

/* [reader] What is left of the body and cannot be placed: opened and forgotten. */
static ssize_t body_dropped(struct wf_line *l, uint8_t *p, size_t n)
{
	size_t len = n < l->body_left ? n : l->body_left;
	int r = wf_opener_piece(&l->open, p, p, len);

	if (r < 0)
		return r;
	l->body_left -= len;
	return (ssize_t)len;
}

/* [reader] The end of a body: does its tag hold? */
static ssize_t tail(struct wf_line *l, const uint8_t *p, size_t n, struct weft_need *need)
{
	size_t len = wf_record_body_tail(l->open.end.mode);
	struct wf_trunk *t = l->trunk;
	struct wf_acts acts = { .n = 0 };
	int r;

	if (n < len) {
		need->want = len;
		return 0;
	}
	r = wf_opener_end(&l->open, p);
	/* In one go, so that nobody else gets the message that is whole now: it is to be delivered before what follows it is read. */
	wf_lock(&t->reading);
	wf_lock(&t->lock);
	wf_remote_body(&t->remote, l->of, r == 0, wf_now());
	wf_remote_acts(&t->remote, wf_now(), &acts);
	wf_unlock(&t->lock);
	wf_trunk_do(t, &acts, l);
	wf_unlock(&t->reading);
	l->stage = WF_LINE_RECORDS;
	settle(t);
	return r < 0 ? r : (ssize_t)len;
}

/* [reader] All bytes of a body are there. */
static int body_whole(struct wf_line *l)
{
	struct weft_need none;

	l->stage = WF_LINE_TAIL;
	return wf_record_body_tail(l->open.end.mode) ? 0 : (int)tail(l, NULL, 0, &none);
}

static ssize_t take(void *cookie, void *bytes, size_t len, struct weft_need *need)
{
	struct wf_line *l = cookie;
	uint8_t *p = bytes;
	size_t at = 0;

	while (at < len && !need->pieces && !need->want) {
		ssize_t n = 0;
		int r = 0;

		switch (l->stage) {
		case WF_LINE_SHAKES:
			n = (ssize_t)wf_handshake_input(l->shake, p + at, len - at);
			r = shake(l);
			if (r == 0 && n == 0 && l->stage == WF_LINE_SHAKES)
				return weft_fail(-EPROTO, "bytes before it was their turn");
			break;
		case WF_LINE_RECORDS:
			n = record(l, p + at, len - at, need);
			break;
		case WF_LINE_BODY:
			n = body_dropped(l, p + at, len - at);
			if (n >= 0)
				r = l->body_left ? body_goes(l, need) : body_whole(l);
			break;
		case WF_LINE_TAIL:
			n = tail(l, p + at, len - at, need);
			break;
		case WF_LINE_OVER:
			return -ECONNABORTED;
		}
		if (n < 0 || r < 0)
			return n < 0 ? n : r;
		at += (size_t)n;
	}
	return (ssize_t)at;
}

/* Bytes are where they belong: opened there. */
static int placed(void *cookie, size_t got, struct weft_need *need)
{
	struct wf_line *l = cookie;
	size_t left = got;
	int r = 0;

	for (uint32_t i = 0; i < l->pieces && left && r == 0; i++) {
		size_t n = l->into[i].iov_len < left ? l->into[i].iov_len : left;

		r = wf_opener_piece(&l->open, l->into[i].iov_base, l->into[i].iov_base, n);
		left -= n;
	}
	body_came(l, got);
	if (r < 0)
		return r;
	return l->body_left ? body_goes(l, need) : body_whole(l);
}

/* ---- life ---- */

void wf_line_end(struct wf_line *l)
{
	if (atomic_exchange_explicit(&l->down, true, memory_order_acq_rel))
		return;
	wf_lock(&lines_lock);
	wf_list_add(&over, &l->over);
	wf_unlock(&lines_lock);
	atomic_fetch_add_explicit(&overs, 1, memory_order_relaxed);
	wf_trunks_by(0);
}

/* [polls] No upcall comes, no thread writes: the remote may be told. */
static void bury(struct wf_line *l)
{
	struct wf_trunk *t = l->trunk;
	bool was_up = l->of != NULL;

	if (t && was_up && l->pieces)
		body_came(l, 0);
	if (t) {
		wf_lock(&t->lock);
		if (was_up)
			wf_remote_lane_down(&t->remote, l->of, wf_now());
		else if (l->mine)
			wf_remote_open_failed(&t->remote, l->slot, wf_now());
		wf_unlock(&t->lock);
	}
	wf_line_free(l);
	if (t)
		wf_trunk_turn(t);
}

/* From now on nobody finds it. True: and nobody has it. */
static bool alone(struct wf_line *l)
{
	struct wf_trunk *t = l->trunk;
	bool nobody;

	if (t) {
		wf_lock(&t->lock);
		for (unsigned i = 0; i < WF_LANES; i++)
			if (t->lines[i] == l)
				t->lines[i] = NULL;
		wf_unlock(&t->lock);
	}
	wf_lock(&lines_lock);
	nobody = !atomic_load_explicit(&l->users, memory_order_acquire);
	if (nobody)
		wf_list_del(&l->all);           /* nor by wf_lines_retry */
	wf_unlock(&lines_lock);
	return nobody;
}

void wf_lines_retry(void *cookie)
{
	uint64_t round = atomic_fetch_add_explicit(&rounds, 1, memory_order_relaxed) + 1;
	struct wf_line *l;

	(void)cookie;
	do {
		l = NULL;
		wf_lock(&lines_lock);
		for (struct wf_node *n = lines.next; n && n != &lines && !l; n = n->next)
			if (wf_of(n, struct wf_line, all)->round < round)
				l = wf_of(n, struct wf_line, all);
		if (l) {
			l->round = round;
			atomic_fetch_add_explicit(&l->users, 1, memory_order_relaxed);
		}
		wf_unlock(&lines_lock);
		if (l) {
			wf_line_write(l);
			atomic_fetch_sub_explicit(&l->users, 1, memory_order_release);
		}
	} while (l);
}

int wf_lines_bury(void)
{
	uint32_t left = atomic_load_explicit(&overs, memory_order_relaxed);
	int n = 0;

	for (; left; left--) {
		struct wf_node *first;
		struct wf_line *l;

		wf_lock(&lines_lock);
		first = wf_list_pop(&over);
		wf_unlock(&lines_lock);
		if (!first)
			break;
		l = wf_of(first, struct wf_line, over);
		if (alone(l)) {
			atomic_fetch_sub_explicit(&overs, 1, memory_order_relaxed);
			wf_lane_close(l->rail, l->lane);        /* waits for upcalls: nobody touches it any more */
			bury(l);
			n++;
		} else {
			wf_lock(&lines_lock);
			wf_list_add(&over, &l->over);
			wf_unlock(&lines_lock);
			wf_trunks_by(wf_now() + AGAIN);
		}
	}
	return n;
}

void wf_lines_look(weft_time now)
{
	struct wf_line *late;

	do {
		late = NULL;
		wf_lock(&lines_lock);
		for (struct wf_node *n = lines.next; n && n != &lines && !late; n = n->next) {
			struct wf_line *l = wf_of(n, struct wf_line, all);

			/* One that shakes is not freed but by bury, which needs it to be over. */
			if (now - l->since > SHAKE_TIME && atomic_load_explicit(&l->shakes, memory_order_relaxed) &&
			    !atomic_load_explicit(&l->down, memory_order_relaxed))
				late = l;
		}
		if (late && !atomic_exchange_explicit(&late->down, true, memory_order_acq_rel)) {
			wf_list_add(&over, &late->over);
			atomic_fetch_add_explicit(&overs, 1, memory_order_relaxed);
		}
		wf_unlock(&lines_lock);
	} while (late);
}

bool wf_lines_end_all(void)
{
	bool any = false;

	wf_lock(&lines_lock);
	for (struct wf_node *n = lines.next; n && n != &lines; n = n->next) {
		struct wf_line *l = wf_of(n, struct wf_line, all);

		any = true;
		if (!atomic_exchange_explicit(&l->down, true, memory_order_acq_rel)) {
			wf_list_add(&over, &l->over);
			atomic_fetch_add_explicit(&overs, 1, memory_order_relaxed);
		}
	}
	wf_unlock(&lines_lock);
	return any;
}

static int incoming(void *cookie, void *lane, const struct weft_addr *from, void **ret_line)
{
	struct wf_line *l;

	(void)cookie;
	if (atomic_load_explicit(&strangers, memory_order_relaxed) >= STRANGERS)
		return -EBUSY;
	l = wf_line_new(wf_rail_to(NULL, 0));
	if (!l)
		return -ENOMEM;
	atomic_fetch_add_explicit(&strangers, 1, memory_order_relaxed);
	l->lane = lane;
	l->from = *from;
	wf_line_listen(l);
	*ret_line = l;
	return 0;
}

static void up(void *cookie)
{
	struct wf_line *l = cookie;

	if (wf_line_call(l) < 0)
		wf_line_end(l);
}

static void down(void *cookie, int err)
{
	struct wf_line *l = cookie;

	if (l->trunk)
		wf_log(WF_DEBUG, "lane %u.%u with process %s is down: %d", l->slot, l->gen, l->trunk->name, err);
	else
		wf_log(WF_DEBUG, "a stranger's lane is down: %d", err);
	if (l->mine && err == -ECONNREFUSED)
		wf_trunk_refused(l->trunk);
	else if (l->mine && l->shake && l->shake->state == WF_HS_CALLS)
		wf_trunk_shut(l->trunk);
	wf_line_end(l);
}

static void writable(void *cookie)
{
	wf_line_write(cookie);
}

const struct weft_upcalls wf_line_upcalls = {
	.size = sizeof(wf_line_upcalls),
	.incoming = incoming,
	.up = up,
	.down = down,
	.take = take,
	.placed = placed,
	.writable = writable,
};
