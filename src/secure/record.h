/* record.h - the bytes of a lane after its handshake: a row of records, each part of them sealed with its number.
 *
 *   +---------+------------------+------+-------------------+------+
 *   | head 12 | frames 0..64 KiB | tail | body 1 B .. 1 MiB | tail |      body and its tail: only where the head says so
 *   +---------+------------------+------+-------------------+------+
 *   head: frames 4, body 4, flags 2, check 2           docs/wire.md has the bytes
 *
 * The frames are one or several whole ones; the body is the payload of the last. They are sealed apart: the frames
 * tell where the body goes, before it is there, so that its bytes can be read straight to that place and opened in
 * it. Nothing of a part counts before its end answered 0.
 *
 * Mode full: both parts are encrypted, each is under its tag of 16 bytes together with the head. auth, sum: all is
 * plain, and a checksum of 4 bytes covers number, head and frames; the body, and a long payload that ends the frames,
 * are covered only with sum, because a rail that is reliable has its own. It finds damage and mistakes, it keeps
 * nobody out: who chose auth trusts the network.
 *
 * Number  Both ends count the parts of a direction; the number is not sent. It is the nonce (added to a start value
 *         that comes with the key), so a record that was dropped, doubled or exchanged fails its tag. It is used up
 *         when a part is begun, whatever becomes of it, goes on over changes of key, and after the last one nothing
 *         is sealed any more.
 * Keys    From the secret of the direction, which is that of one session, lane, incarnation and direction
 *         (handshake.h): the key, the start value, and the next secret. Before a key has sealed what it may, a record
 *         says in its head that it is the last one under it, and both ends go on with the next: who gets hold of a
 *         key cannot read what went before.
 * Pieces  begin; piece ..., end; where there is a body once more piece ..., end. A part may come from several places
 *         and go to several, without being gathered; in place, too.
 * Dead    After a tag or a check that does not hold, a head that makes no sense, or a record begun within another,
 *         every call answers -EBADMSG: the lane is to be closed.
 *
 * Threads: one at a time per struct. No I/O, no clock; the only memory is the cipher's, made by init.
 */
#ifndef WF_SECURE_RECORD_H
#define WF_SECURE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/bytes.h"
#include "base/cpu.h"
#include "secure/crc32c.h"
#include "secure/crypto.h"
#include "secure/handshake.h"

#define WF_RECORD_HEAD 12
#define WF_RECORD_FRAMES (1u << 16)     /* bytes of frames, at most */
#define WF_RECORD_BODY (1u << 20)       /* bytes of a body, at most */
#define WF_RECORD_SUMMED 2040u          /* bytes of frames that a checksum covers if it does not cover all, at most; a multiple of 8 */

/* Under one key. 2^36 bytes are 2^32 blocks: what AES-GCM leaks of them is below 2^-64. */
#define WF_REKEY_PARTS (UINT64_C(1) << 30)
#define WF_REKEY_BYTES (UINT64_C(1) << 36)

struct wf_record_conf {
	enum wf_mode mode;
	enum wf_aead aead;
	const uint8_t *secret;          /* WF_SECRET bytes; borrowed */
	uint64_t rekey_parts, rekey_bytes;      /* of the sealing end; 0: as above */
};

/* One direction, at one of its ends. */
struct wf_record_end {
	struct wf_cipher cipher;
	enum wf_mode mode;
	bool dead;
	enum { WF_PART_NONE, WF_PART_FRAMES, WF_PART_BODY } part;      /* the one that is begun */
	uint32_t left;                  /* bytes of it still to come */
	uint32_t unsummed;              /* of which so many, the last ones, are in no checksum */
	uint32_t crc;
	uint8_t head[WF_RECORD_HEAD];   /* of the record that is begun */
	uint64_t number;                /* of the next part */
	uint64_t key_parts, key_bytes;  /* sealed under this key */
	uint64_t rekey_parts, rekey_bytes;
	uint8_t start[WF_AEAD_NONCE], next[WF_SECRET];
};
struct wf_sealer {
	struct wf_record_end end;
};
struct wf_opener {
	struct wf_record_end end;
};

/* 0, or what libcrypto said; libcrypto is loaded (the handshake did). */
int wf_sealer_init(struct wf_sealer *s, const struct wf_record_conf *conf);
int wf_opener_init(struct wf_opener *o, const struct wf_record_conf *conf);
void wf_sealer_fini(struct wf_sealer *s);       /* keys are wiped; a zeroed one is fine */
void wf_opener_fini(struct wf_opener *o);

/* Bytes of the tails. */
static inline size_t wf_record_tail(enum wf_mode mode)
{
	return mode == WF_MODE_FULL ? WF_AEAD_TAG : 4;
}

static inline size_t wf_record_body_tail(enum wf_mode mode)
{
	return mode == WF_MODE_AUTH ? 0 : wf_record_tail(mode);
}

/* Sealing. @body 0: none. -EMSGSIZE: larger than a record may be, -EOVERFLOW: the numbers are used up, make a new lane; both:
 * nothing happened. -EBADMSG: dead. */
int wf_sealer_begin(struct wf_sealer *s, size_t frames, size_t body, uint8_t ret_head[WF_RECORD_HEAD]);
/* @to may be @from. Not full: nothing needs to move, @to may be NULL. */
int wf_sealer_piece(struct wf_sealer *s, void *to, const void *from, size_t n);
int wf_sealer_end(struct wf_sealer *s, uint8_t *ret_tail);      /* as many bytes as the part's tail has */

/* Head, frames and tail into @out, which has room for them; a body is to follow by pieces. Returns their bytes, or as above. */
long wf_sealer_frames(struct wf_sealer *s, const struct iovec *pieces, int n, size_t body, uint8_t *out);
/* The same, without a body, for @frames bytes that lie in @out where they belong. Those from @summed on are a payload: auth need not cover them. */
long wf_sealer_flat(struct wf_sealer *s, size_t frames, size_t summed, uint8_t *out);

/* The same with a body of @body bytes behind it, of which nothing is to be sealed: auth only. */
long wf_sealer_bodied(struct wf_sealer *s, size_t frames, size_t body, uint8_t *out);

/* As one of these two where @out has a record that it has sealed, all of it covered, with a body as long, and frames of as many bytes have taken the place of its own. @body 0: none. Not full. */
static inline __attribute__((always_inline)) long wf_sealer_again(struct wf_sealer *s, size_t frames, size_t body, uint8_t *out)
{
	struct wf_record_end *e = &s->end;
	uint32_t crc;

	if (wf_unlikely(e->dead || e->part != WF_PART_NONE || e->number >= UINT64_MAX - 1))
		return body ? wf_sealer_bodied(s, frames, body, out) : wf_sealer_flat(s, frames, frames, out);
	crc = wf_crc32c_three(htole64(e->number), htole64((uint64_t)body << 32 | frames), 0);
	e->number += body ? 2 : 1;
	wf_put16(out + 10, (uint16_t)crc);
	wf_put32(out + WF_RECORD_HEAD + frames, wf_crc32c_few(crc, out + WF_RECORD_HEAD, frames));
	return (long)(WF_RECORD_HEAD + frames + 4);
}

/* Opening: the head, the frames in any pieces, their tail; then the body likewise. 0, or -EBADMSG. */
int wf_opener_begin(struct wf_opener *o, const uint8_t head[WF_RECORD_HEAD], size_t *ret_frames, size_t *ret_body);
int wf_opener_piece(struct wf_opener *o, void *to, const void *from, size_t n);
int wf_opener_end(struct wf_opener *o, const uint8_t *tail);
int wf_opener_body(struct wf_opener *o, uint8_t *bytes, size_t n);      /* all of a body of @n bytes, in place, and the tail behind it */

/* A record that is not encrypted, of @frames bytes, all of which the checksum covers, and @body, as its head says: are the frames whole, and is it the next one? Nothing happens; it was
 * opened when wf_opener_passed was called: with a body only in auth, where nothing is to be looked at in that. False: wf_opener_frames knows more. */
static inline __attribute__((always_inline)) bool wf_opener_holds(const struct wf_opener *o, const uint8_t *record, uint32_t frames, uint32_t body)
{
	const struct wf_record_end *e = &o->end;
	uint32_t crc = wf_crc32c_three(htole64(e->number), htole64((uint64_t)body << 32 | frames), 0);

	if (wf_unlikely(e->dead || e->part != WF_PART_NONE || e->number >= UINT64_MAX - 1))
		return false;
	return wf_likely(wf_get16(record + 10) == (uint16_t)crc) && wf_likely(wf_get32(record + WF_RECORD_HEAD + frames) == wf_crc32c_few(crc, record + WF_RECORD_HEAD, frames));
}

static inline void wf_opener_passed(struct wf_opener *o, uint32_t body)
{
	o->end.number += body ? 2 : 1;
}

/* Head, frames and tail at the beginning of the @n @bytes, in place. Returns how many bytes they took; 0: they are not all
 * there, nothing happened; or -EBADMSG. Then, if @ret_body is not 0, the body by pieces. */
long wf_opener_frames(struct wf_opener *o, uint8_t *bytes, size_t n, size_t *ret_frames, size_t *ret_body);

#ifndef NDEBUG
/* Told of every key a sealer takes and of every nonce it uses, in builds with assertions: a pair must not come twice.
 * Set by a test, before it seals. */
struct wf_seal_witness {
	void (*key)(const void *sealer, const uint8_t key[WF_SECRET]);
	void (*nonce)(const void *sealer, const uint8_t nonce[WF_AEAD_NONCE]);
};
extern const struct wf_seal_witness *wf_seal_witness;
#endif

#endif
