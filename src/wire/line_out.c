/* line_out.c - what a line writes: records, sealed piece by piece. See line.h.
 *
 * Whoever has something to write tries `writing`; who does not get it leaves a mark, and the one at it looks again, whatever he did there. A record is sealed into one list of
 * pieces and sent until the rail takes no more; then the rail's writable goes on.
 * Tested  tests/models/line.pml.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/shield.h"
#include "peer/brief_body.h"
#include "port/lead.h"
#include "wire/line.h"
#include "wire/line_again.h"

#define FLAT_ROOM (sizeof(((struct wf_line *)0)->flat) - WF_RECORD_HEAD - WF_AEAD_TAG)
#define AGAIN_MOST 256u                         /* bytes of frames that are looked for in the next one */
#define SEALED_BODY (128u << 10)                /* of a body are encrypted at a time, at most: */
#define SEALED_LEAST (16u << 10)
#define SEALED_SHARE 4                          /* this part of its message, as who reads decrypts one while the next is encrypted */
#define SEALED_ROOM (WF_WIRE_SMALL + SEALED_BODY + WF_RECORD_HEAD + 2 * WF_AEAD_TAG)

bool wf_line_say_locked(struct wf_line *l)
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
		long n;

		l->again.frames = 0;
		n = wf_sealer_frames(&l->seal, f->small, f->nsmall, f->body_len, at);
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

static uint32_t sealed_most(const struct wf_line *l)
{
	uint64_t n = l->fill.send->len / SEALED_SHARE & ~UINT64_C(4095);

	return n < SEALED_LEAST ? SEALED_LEAST : n < SEALED_BODY ? (uint32_t)n : SEALED_BODY;
}

/* [writing] As much of the body as fits this round. */
static int seal_body(struct wf_line *l, uint8_t **to)
{
	struct wf_fill *f = &l->fill;
	bool full = l->seal.end.mode == WF_MODE_FULL;
	uint32_t room = full ? sealed_most(l) : UINT32_MAX;
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
	wf_trunk_lock(l->trunk);
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

/* [writing] @n bytes more have left. */
static void wrote(struct wf_line *l, size_t n)
{
	while (n > 0 && n >= l->iov[l->iov_at].iov_len)
		n -= l->iov[l->iov_at++].iov_len;
	if (n > 0) {
		l->iov[l->iov_at].iov_base = (char *)l->iov[l->iov_at].iov_base + n;
		l->iov[l->iov_at].iov_len -= n;
	}
}

/* [writing] 0: all is written; -EAGAIN: the rail takes no more now; else the line is over. */
static int write_locked(struct wf_line *l)
{
	if (!wf_line_say_locked(l))
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
		wrote(l, (size_t)n);
	}
}

/* @r: of write_locked. Is somebody's mark to be looked at, left while we wrote? Also if the rail took no more: the mark may be of who was told, meanwhile, that it takes more again. */
static bool again(struct wf_line *l, int r)
{
	return atomic_load(&l->wanted) && (r >= 0 || r == -EAGAIN);
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
	} while (again(l, r));
	if (r == -EAGAIN)
		wf_lead_soon();
	else if (r < 0)
		wf_line_end(l);
}

/* [trunk.lock, writing] Not ours to write to after all. Who wanted to meanwhile has left a mark and gone: it is written to by who turns the trunk next, as our caller does. */
void wf_line_leave_locked(struct wf_line *l)
{
	wf_unlock(&l->writing);
	atomic_thread_fence(memory_order_seq_cst);      /* as in wf_line_write */
	if (wf_unlikely(atomic_load(&l->wanted)) && l->of)
		wf_remote_write(&l->trunk->remote, l->of);
}

/* [trunk.lock] Ours to write to, and nothing is on its way there? Then `writing` is held. */
static inline bool line_idle_locked(struct wf_line *l)
{
	if (wf_unlikely(!wf_trylock(&l->writing)))
		return false;
	if (wf_likely(wf_line_idle_locked(l))) {
		l->iovs = l->iov_at = 0;
		return true;
	}
	wf_line_leave_locked(l);
	return false;
}

bool wf_line_take_locked(struct wf_line *l, weft_time now)
{
	if (!line_idle_locked(l))
		return false;
	l->flat_n = wf_remote_fill_flat(&l->trunk->remote, l->of, l->flat + WF_RECORD_HEAD, FLAT_ROOM, now, &l->flat_heads, &l->more);
	if (l->flat_n) {
		l->again.frames = 0;
		return true;
	}
	l->filled = wf_remote_fill(&l->trunk->remote, l->of, &l->fill, now) == 1;
	if (l->filled)
		return true;
	wf_line_leave_locked(l);
	return false;
}

/* [trunk.lock, writing] @b lies flat: the next may be alike. */
static void remember_locked(struct wf_line *l, const struct wf_brisk *b)
{
	const uint8_t *frames = l->flat + WF_RECORD_HEAD;

	l->again.frames = 0;
	if (l->seal.end.mode == WF_MODE_FULL || l->flat_n != l->flat_heads || l->flat_n > AGAIN_MOST || frames[0] != WF_WIRE_STREAM || frames[16] != WF_WIRE_MSG)
		return;
	l->again.frames = (uint32_t)l->flat_n;
	l->again.msg = *b;
	l->again.last_to = wf_invite_at(&l->trunk->remote, b->to, b->context);
	l->trunk->again = l;
}

bool wf_line_brisk_locked(struct wf_line *l, const struct wf_brisk *b, weft_time now)
{
	if (wf_unlikely(!line_idle_locked(l)))
		return false;
	l->flat_n = wf_remote_brisk_flat(&l->trunk->remote, l->of, b, l->flat + WF_RECORD_HEAD, FLAT_ROOM, now, &l->flat_heads, &l->more);
	if (wf_likely(l->flat_n)) {
		remember_locked(l, b);
		return true;
	}
	wf_line_leave_locked(l);
	return false;
}

/* [writing] Of the @n bytes that lie flat so many were sent, or it went wrong. 0: write_locked goes on; or the error. */
static WF_SLOW int sent_some_locked(struct wf_line *l, long n, ssize_t sent)
{
	l->iovs = 1;
	l->iov_at = sent == n;
	if (sent < 0)
		return (int)sent;
	l->iov[0] = (struct iovec){ l->flat + sent, (size_t)(n - sent) };
	return 0;
}

/* [writing] The record that lies flat, sealed where it lies and sent. 1: all of it, and there is no more; 0: write_locked goes on; or an error. */
static int send_flat_locked(struct wf_line *l)
{
	long n = wf_sealer_flat(&l->seal, l->flat_n, l->flat_heads, l->flat);
	ssize_t sent;

	l->flat_n = 0;
	if (wf_unlikely(n < 0))
		return (int)n;
	l->iov[0] = (struct iovec){ l->flat, (size_t)n };
	sent = wf_lane_send(l->rail, l->lane, &(struct weft_out){ .piece = l->iov, .pieces = 1 });
	if (wf_likely(sent == n && !l->more))
		return 1;
	return sent_some_locked(l, n, sent);
}

/* [writing] Ours no more: @r as of write_locked. */
WF_HOT static void write_over(struct wf_line *l, int r)
{
	wf_unlock(&l->writing);
	atomic_thread_fence(memory_order_seq_cst);      /* as in wf_line_write */
	if (wf_likely(r >= 0 && !atomic_load(&l->wanted)))
		return;
	wf_shield();
	if (r < 0 && r != -EAGAIN)
		wf_line_end(l);
	else if (again(l, r))
		wf_line_write(l);
	else if (r == -EAGAIN)
		wf_lead_soon();
	wf_unshield();
}

WF_HOT void wf_line_again_over(struct wf_line *l, long n, ssize_t sent)
{
	int r = 1;

	if (wf_unlikely(sent != n || n <= 0)) {
		wf_shield();
		r = n < 0 ? (int)n : sent_some_locked(l, n, sent);
		if (r == 0)
			r = write_locked(l);
		wf_unshield();
	}
	write_over(l, r);
}

/* [trunk.lock, writing] As wf_line_again_locked for one with a body. */
static inline bool body_again_locked(struct wf_line *l, struct wf_rsend *s, weft_time now)
{
	const struct wf_brisk *m = &l->again.msg;
	uint64_t other = (m->tag ^ s->tag) | (m->context ^ s->context) | (m->to ^ s->to) | (m->from ^ s->from) | (m->index ^ s->index) | (m->len ^ s->len);

	if (wf_unlikely(other || l->again.frames != WF_BODY_FRAMES) || !wf_body_again(&l->trunk->remote, l->of, s, l->flat + WF_RECORD_HEAD, l->again.last_to, now))
		return false;
	l->flat_n = WF_BODY_FRAMES;
	l->more = false;
	return true;
}

/* [trunk.lock, writing] As remember_locked. No short message is as long. */
static void remember_body_locked(struct wf_line *l, const struct wf_rsend *s)
{
	l->again.frames = wf_body_like(l->flat + WF_RECORD_HEAD, wf_body_step(s->context)) ? WF_BODY_FRAMES : 0;
	l->again.msg = (struct wf_brisk){ .to = s->to, .from = s->from, .index = s->index, .tag = s->tag, .context = s->context, .len = s->len };
	l->again.last_to = wf_invite_at(&l->trunk->remote, s->to, s->context);
}

WF_HOT bool wf_line_body_locked(struct wf_line *l, struct wf_rsend *s, weft_time now)
{
	if (wf_unlikely(!(l->rail->driver->slots.caps & WEFT_DRIVER_UNCANCELLED) || l->rail->info.pieces < 2 || !line_idle_locked(l)))
		return false;
	l->again.now = body_again_locked(l, s, now);
	if (wf_likely(l->again.now))
		return true;
	l->again.frames = 0;
	if (wf_likely(l->seal.end.mode == WF_MODE_AUTH))
		l->flat_n = wf_remote_body_flat(&l->trunk->remote, l->of, s, l->flat + WF_RECORD_HEAD, FLAT_ROOM, now, &l->more);
	if (wf_likely(l->flat_n)) {
		remember_body_locked(l, s);
		return true;
	}
	wf_line_leave_locked(l);
	return false;
}

WF_HOT int wf_line_body_taken(struct wf_line *l, const void *body, size_t len)
{
	long n = wf_likely(l->again.now) ? wf_sealer_again(&l->seal, WF_BODY_FRAMES, len, l->flat) : wf_sealer_bodied(&l->seal, l->flat_n, len, l->flat);
	ssize_t sent;

	l->flat_n = 0;
	l->again.now = false;
	if (wf_unlikely(n < 0))
		return (int)n;
	l->iov[0] = (struct iovec){ l->flat, (size_t)n };
	l->iov[1] = (struct iovec){ (void *)(uintptr_t)body, len };
	sent = wf_lane_send(l->rail, l->lane, &(struct weft_out){ .piece = l->iov, .pieces = 2 });
	if (wf_likely(sent == n + (ssize_t)len && !l->more))
		return 1;
	if (sent < 0 && sent != -EAGAIN)
		return (int)sent;
	l->iovs = 2;
	l->iov_at = 0;
	wrote(l, sent < 0 ? 0 : (size_t)sent);
	return 0;
}

void wf_line_body_rest(struct wf_line *l, struct wf_rsend *s, const void *body)
{
	struct wf_fill *f = &l->fill;

	if (l->iov_at < l->iovs)
		l->iov[1].iov_base = (char *)(uintptr_t)body + (s->len - l->iov[1].iov_len);
	f->nsmall = 0;
	f->small_len = 0;
	f->send = s;
	f->body_at = 0;
	f->body_len = l->body_sent = (uint32_t)s->len;          /* all of it is sealed, and in l->iov */
	l->filled = true;
	wf_trunk_lock(l->trunk);
	wf_remote_body_rest(&l->trunk->remote, l->of, s);
	wf_unlock(&l->trunk->lock);
}

WF_HOT void wf_line_body_over(struct wf_line *l, int r)
{
	if (wf_unlikely(r == 0)) {
		wf_shield();
		r = write_locked(l);
		wf_unshield();
	}
	write_over(l, r);
}

WF_HOT bool wf_line_flat_taken(struct wf_line *l)
{
	int r;

	if (wf_unlikely(!l->flat_n || !(l->rail->driver->slots.caps & WEFT_DRIVER_UNCANCELLED)))
		return false;
	r = send_flat_locked(l);
	if (wf_unlikely(r == 0))
		return false;
	write_over(l, r);
	return true;
}

void wf_line_taken(struct wf_line *l)
{
	int r = 0;

	if (l->flat_n)
		r = send_flat_locked(l);
	else if (l->filled)
		r = (r = seal_filled(l)) < 0 ? r : 0;
	if (r == 0)
		r = write_locked(l);
	write_over(l, r);
}
