/* record.c - records sealed and opened. See record.h. */
#include "secure/record.h"

#include <errno.h>
#include <string.h>
#include <weft/base.h>

#include "base/cpu.h"
#include "base/bytes.h"
#include "secure/crc32c.h"

#define AT_FLAGS 8
#define AT_CHECK 10
#define FLAG_LAST 1u                    /* the last record under this key */
#define SUMMED_SHIFT 8                  /* above it, in auth: words of 8 bytes that the checksum of the frames covers; 0: all are covered */
#define FLAGS_SUMMED (0xffu << SUMMED_SHIFT)

#ifndef NDEBUG
const struct wf_seal_witness *wf_seal_witness;
#endif

/* The next key, its start value and the secret after it. The one it came from is gone. */
static int end_key(struct wf_record_end *e, enum wf_aead aead, bool seals)
{
	uint8_t made[WF_SECRET + WF_AEAD_NONCE], next[WF_SECRET];
	int r = wf_hkdf_expand(e->next, "weft 1 record key", NULL, 0, made, sizeof(made));

	if (r == 0)
		r = wf_hkdf_expand(e->next, "weft 1 next secret", NULL, 0, next, sizeof(next));
	if (r == 0)
		r = e->cipher.ctx ? wf_cipher_rekey(&e->cipher, made) : wf_cipher_init(&e->cipher, aead, made, seals);
	if (r == 0) {
		memcpy(e->next, next, sizeof(next));
		memcpy(e->start, made + WF_SECRET, WF_AEAD_NONCE);
		e->key_parts = e->key_bytes = 0;
#ifndef NDEBUG
		if (seals && wf_seal_witness)
			wf_seal_witness->key(e, made);
#endif
	}
	explicit_bzero(made, sizeof(made));
	explicit_bzero(next, sizeof(next));
	return r;
}

static int end_init(struct wf_record_end *e, const struct wf_record_conf *conf, bool seals)
{
	int r = 0;

	*e = (struct wf_record_end){
		.mode = conf->mode,
		.rekey_parts = conf->rekey_parts ? conf->rekey_parts : WF_REKEY_PARTS,
		.rekey_bytes = conf->rekey_bytes ? conf->rekey_bytes : WF_REKEY_BYTES,
	};
	if (conf->mode == WF_MODE_FULL) {
		memcpy(e->next, conf->secret, WF_SECRET);
		r = end_key(e, conf->aead, seals);
	}
	if (r < 0)
		explicit_bzero(e, sizeof(*e));
	return r;
}

static void end_fini(struct wf_record_end *e)
{
	wf_cipher_fini(&e->cipher);
	explicit_bzero(e, sizeof(*e));
	e->dead = true;
}

int wf_sealer_init(struct wf_sealer *s, const struct wf_record_conf *conf)
{
	return end_init(&s->end, conf, true);
}

int wf_opener_init(struct wf_opener *o, const struct wf_record_conf *conf)
{
	return end_init(&o->end, conf, false);
}

void wf_sealer_fini(struct wf_sealer *s)
{
	end_fini(&s->end);
}

void wf_opener_fini(struct wf_opener *o)
{
	end_fini(&o->end);
}

static WF_SLOW int end_dies(struct wf_record_end *e, const char *why)
{
	if (!e->dead)
		weft_fail(-EBADMSG, "record %llu: %s", (unsigned long long)e->number, why);
	e->dead = true;
	return -EBADMSG;
}

/* Over number and head: what the head's own check and the checksums begin with. Zeros stand for the check and behind it:
 * 24 bytes are three steps of the instruction, 18 would be four. */
static inline uint32_t head_crc(uint64_t number, const uint8_t head[WF_RECORD_HEAD])
{
	uint64_t lengths;

	memcpy(&lengths, head, sizeof(lengths));
	return wf_crc32c_three(htole64(number), lengths, htole64(wf_get16(head + AT_FLAGS)));
}

/* Bytes of the frames that their checksum covers, by a head that was checked. */
static uint32_t covered(const uint8_t head[WF_RECORD_HEAD])
{
	uint32_t frames = wf_get32(head), words = wf_get16(head + AT_FLAGS) >> SUMMED_SHIFT;

	return words ? words * 8 : frames;
}

/* One of the two parts of the record whose head is in @e, and whose checksum so far in e->crc. Its number is used up from here on. */
static int part_begin(struct wf_record_end *e, int part)
{
	uint8_t nonce[WF_AEAD_NONCE];
	uint64_t number = e->number++;

	e->part = part;
	e->left = wf_get32(e->head + (part == WF_PART_BODY ? 4 : 0));
	if (e->mode == WF_MODE_AUTH)
		e->unsummed = part == WF_PART_BODY ? e->left : e->left - covered(e->head);
	if (e->mode != WF_MODE_FULL)
		return 0;
	memcpy(nonce, e->start, sizeof(nonce));
	wf_put64(nonce + 4, wf_get64(nonce + 4) ^ number);
#ifndef NDEBUG
	if (e->cipher.seals && wf_seal_witness)
		wf_seal_witness->nonce(e, nonce);
#endif
	return wf_cipher_begin(&e->cipher, nonce, e->head, WF_RECORD_HEAD) < 0 ? end_dies(e, "the cipher failed") : 0;
}

static int part_piece(struct wf_record_end *e, void *to, const void *from, size_t n)
{
	if (wf_unlikely(e->dead || e->part == WF_PART_NONE || n > e->left))
		return end_dies(e, "more bytes than its head says");
	if (e->mode == WF_MODE_FULL) {
		e->left -= (uint32_t)n;
		return wf_cipher_piece(&e->cipher, to, from, n) < 0 ? end_dies(e, "the cipher failed") : 0;
	}
	if (e->left > e->unsummed)
		e->crc = wf_crc32c(e->crc, from, n < e->left - e->unsummed ? n : e->left - e->unsummed);
	e->left -= (uint32_t)n;
	if (to && to != from && n)
		memcpy(to, from, n);
	return 0;
}

static int body_begin(struct wf_record_end *e)
{
	if (e->mode == WF_MODE_SUM)
		e->crc = head_crc(e->number, e->head);
	return part_begin(e, WF_PART_BODY);
}

/* Frames that nothing encrypts were sealed or opened in one go, without being begun: what is left of them is that their number is used up, and the body, if there is one. */
static inline int plain_close(struct wf_record_end *e, const uint8_t head[WF_RECORD_HEAD], size_t body)
{
	e->number++;
	if (!body)
		return 0;
	memcpy(e->head, head, WF_RECORD_HEAD);
	return body_begin(e);
}

/* A part is over and held: the body begins, or the record is over, too. */
static int part_close(struct wf_record_end *e)
{
	if (e->part == WF_PART_FRAMES && wf_get32(e->head + 4))
		return body_begin(e);
	e->part = WF_PART_NONE;
	if (wf_unlikely(e->head[AT_FLAGS] & FLAG_LAST) && end_key(e, WF_AEAD_NONE, e->cipher.seals) < 0)
		return end_dies(e, "the cipher takes no new key");
	return 0;
}

static bool part_has_tail(const struct wf_record_end *e)
{
	return e->part == WF_PART_FRAMES || e->mode != WF_MODE_AUTH;
}

/* Both parts must find a number; the last one is never used. */
static bool has_numbers(const struct wf_record_end *e)
{
	return e->number < UINT64_MAX - 1;
}

/* The head of the next record, with @flags beside its own; e->crc has its checksum so far. */
static inline __attribute__((always_inline)) int head_put(struct wf_record_end *e, size_t frames, size_t body, unsigned flags, uint8_t ret_head[WF_RECORD_HEAD])
{
	bool last;

	if (wf_unlikely(frames > WF_RECORD_FRAMES || body > WF_RECORD_BODY))
		return weft_fail(-EMSGSIZE, "a record of %zu and %zu bytes, where %u and %u fit", frames, body, WF_RECORD_FRAMES, WF_RECORD_BODY);
	if (wf_unlikely(e->dead || e->part != WF_PART_NONE))
		return end_dies(e, "begun within another");
	if (wf_unlikely(!has_numbers(e)))
		return weft_fail(-EOVERFLOW, "the record numbers of this lane are used up");
	e->key_parts += body ? 2 : 1;
	e->key_bytes += frames + body;
	last = e->mode == WF_MODE_FULL && (e->key_parts >= e->rekey_parts || e->key_bytes >= e->rekey_bytes);
	wf_put32(ret_head, (uint32_t)frames);
	wf_put32(ret_head + 4, (uint32_t)body);
	wf_put16(ret_head + AT_FLAGS, (uint16_t)(flags | (last ? FLAG_LAST : 0)));
	e->crc = head_crc(e->number, ret_head);
	wf_put16(ret_head + AT_CHECK, (uint16_t)e->crc);
	return 0;
}

int wf_sealer_begin(struct wf_sealer *s, size_t frames, size_t body, uint8_t ret_head[WF_RECORD_HEAD])
{
	struct wf_record_end *e = &s->end;
	int r = head_put(e, frames, body, 0, ret_head);

	if (r < 0)
		return r;
	memcpy(e->head, ret_head, WF_RECORD_HEAD);
	return part_begin(e, WF_PART_FRAMES);
}

int wf_sealer_piece(struct wf_sealer *s, void *to, const void *from, size_t n)
{
	return part_piece(&s->end, to, from, n);
}

int wf_sealer_end(struct wf_sealer *s, uint8_t *ret_tail)
{
	struct wf_record_end *e = &s->end;

	if (wf_unlikely(e->dead || e->part == WF_PART_NONE || e->left))
		return end_dies(e, "ended before its bytes were there");
	if (e->mode == WF_MODE_FULL) {
		if (wf_cipher_seal_end(&e->cipher, ret_tail) < 0)
			return end_dies(e, "the cipher failed");
	} else if (part_has_tail(e)) {
		wf_put32(ret_tail, e->crc);
	}
	return part_close(e);
}

WF_HOT long wf_sealer_flat(struct wf_sealer *s, size_t frames, size_t summed, uint8_t *out)
{
	bool all = s->end.mode != WF_MODE_AUTH || summed >= frames || summed > WF_RECORD_SUMMED || summed % 8 || !summed;
	int r;

	if (wf_unlikely(s->end.mode == WF_MODE_FULL))
		return wf_sealer_frames(s, &(struct iovec){ out + WF_RECORD_HEAD, frames }, 1, 0, out);
	r = head_put(&s->end, frames, 0, all ? 0 : (unsigned)(summed / 8) << SUMMED_SHIFT, out);
	if (wf_unlikely(r < 0))
		return r;
	wf_put32(out + WF_RECORD_HEAD + frames, wf_crc32c_few(s->end.crc, out + WF_RECORD_HEAD, all ? frames : summed));
	s->end.number++;
	return (long)(WF_RECORD_HEAD + frames + 4);
}

WF_HOT long wf_sealer_bodied(struct wf_sealer *s, size_t frames, size_t body, uint8_t *out)
{
	int r;

	if (wf_unlikely(s->end.mode != WF_MODE_AUTH || !body))
		return weft_fail(-EINVAL, "a body that is to be sealed, or none");
	r = head_put(&s->end, frames, body, 0, out);
	if (wf_unlikely(r < 0))
		return r;
	wf_put32(out + WF_RECORD_HEAD + frames, wf_crc32c_few(s->end.crc, out + WF_RECORD_HEAD, frames));
	s->end.number += 2;
	return (long)(WF_RECORD_HEAD + frames + 4);
}

/* As wf_sealer_frames where nothing is encrypted. */
static int plain_frames(struct wf_record_end *e, const struct iovec *pieces, int n, size_t frames, size_t body, uint8_t *out)
{
	uint8_t *p = out + WF_RECORD_HEAD;
	int r = head_put(e, frames, body, 0, out);

	if (r < 0)
		return r;
	for (int i = 0; i < n; i++) {
		if (p != pieces[i].iov_base && pieces[i].iov_len)
			memcpy(p, pieces[i].iov_base, pieces[i].iov_len);
		p += pieces[i].iov_len;
	}
	wf_put32(p, wf_crc32c_few(e->crc, out + WF_RECORD_HEAD, frames));
	return plain_close(e, out, body);
}

long wf_sealer_frames(struct wf_sealer *s, const struct iovec *pieces, int n, size_t body, uint8_t *out)
{
	size_t frames = 0, tail = wf_record_tail(s->end.mode);
	uint8_t *p = out + WF_RECORD_HEAD;
	int r;

	for (int i = 0; i < n; i++) {
		if (wf_unlikely(pieces[i].iov_len > WF_RECORD_FRAMES - frames))
			return weft_fail(-EMSGSIZE, "more than %u bytes of frames in a record", WF_RECORD_FRAMES);
		frames += pieces[i].iov_len;
	}
	if (s->end.mode != WF_MODE_FULL) {
		r = plain_frames(&s->end, pieces, n, frames, body, out);
	} else {
		r = wf_sealer_begin(s, frames, body, out);
		for (int i = 0; i < n && r == 0; i++) {
			r = part_piece(&s->end, p, pieces[i].iov_base, pieces[i].iov_len);
			p += pieces[i].iov_len;
		}
		if (r == 0)
			r = wf_sealer_end(s, p);
	}
	return r < 0 ? r : (long)(WF_RECORD_HEAD + frames + tail);
}

/* Does @head begin the next record? Then e->crc has its checksum so far. Asked again it says the same; a lie kills. */
static inline __attribute__((always_inline)) int head_check(struct wf_record_end *e, const uint8_t head[WF_RECORD_HEAD])
{
	if (wf_unlikely(e->dead || e->part != WF_PART_NONE))
		return end_dies(e, "begun within another");
	e->crc = head_crc(e->number, head);
	if (wf_unlikely(wf_get16(head + AT_CHECK) != (uint16_t)e->crc))
		return end_dies(e, "its head is damaged, or not the next one");
	if (wf_unlikely(wf_get32(head) > WF_RECORD_FRAMES || wf_get32(head + 4) > WF_RECORD_BODY))
		return end_dies(e, "longer than a record may be");
	if (wf_unlikely(wf_get16(head + AT_FLAGS) & ~(e->mode == WF_MODE_FULL ? FLAG_LAST : e->mode == WF_MODE_AUTH ? FLAGS_SUMMED : 0u)))
		return end_dies(e, "with flags this version does not know");
	if (wf_unlikely(wf_get16(head + AT_FLAGS) >> SUMMED_SHIFT && covered(head) >= wf_get32(head)))
		return end_dies(e, "with a checksum over more than it has");
	if (wf_unlikely(!has_numbers(e)))
		return end_dies(e, "past the last number");
	return 0;
}

int wf_opener_begin(struct wf_opener *o, const uint8_t head[WF_RECORD_HEAD], size_t *ret_frames, size_t *ret_body)
{
	struct wf_record_end *e = &o->end;
	int r = head_check(e, head);

	if (r == 0) {
		memcpy(e->head, head, WF_RECORD_HEAD);
		r = part_begin(e, WF_PART_FRAMES);
	}
	if (r == 0) {
		*ret_frames = wf_get32(head);
		*ret_body = wf_get32(head + 4);
	}
	return r;
}

int wf_opener_piece(struct wf_opener *o, void *to, const void *from, size_t n)
{
	return part_piece(&o->end, to, from, n);
}

int wf_opener_end(struct wf_opener *o, const uint8_t *tail)
{
	struct wf_record_end *e = &o->end;

	if (wf_unlikely(e->dead || e->part == WF_PART_NONE || e->left))
		return end_dies(e, "ended before its bytes were there");
	if (e->mode == WF_MODE_FULL) {
		if (wf_unlikely(wf_cipher_open_end(&e->cipher, tail) < 0))
			return end_dies(e, "its tag does not hold");
	} else if (part_has_tail(e) && wf_unlikely(wf_get32(tail) != e->crc)) {
		return end_dies(e, "its checksum does not hold");
	}
	return part_close(e);
}

int wf_opener_body(struct wf_opener *o, uint8_t *bytes, size_t n)
{
	int r = part_piece(&o->end, bytes, bytes, n);

	return r < 0 ? r : wf_opener_end(o, bytes + n);
}

WF_HOT long wf_opener_frames(struct wf_opener *o, uint8_t *bytes, size_t n, size_t *ret_frames, size_t *ret_body)
{
	size_t tail = wf_record_tail(o->end.mode), frames, body;
	uint8_t *p = bytes + WF_RECORD_HEAD;
	int r;

	if (n < WF_RECORD_HEAD)
		return o->end.dead ? -EBADMSG : 0;
	r = head_check(&o->end, bytes);
	if (r < 0)
		return r;
	frames = wf_get32(bytes);
	if (n - WF_RECORD_HEAD < tail || n - WF_RECORD_HEAD - tail < frames)
		return 0;
	body = wf_get32(bytes + 4);
	if (o->end.mode != WF_MODE_FULL) {
		if (wf_unlikely(wf_get32(p + frames) != wf_crc32c_few(o->end.crc, p, covered(bytes))))
			return end_dies(&o->end, "its checksum does not hold");
		r = plain_close(&o->end, bytes, body);
	} else {
		memcpy(o->end.head, bytes, WF_RECORD_HEAD);
		r = part_begin(&o->end, WF_PART_FRAMES);
		if (r == 0)
			r = part_piece(&o->end, p, p, frames);
		if (r == 0)
			r = wf_opener_end(o, p + frames);
	}
	if (r < 0)
		return r;
	*ret_frames = frames;
	*ret_body = body;
	return (long)(WF_RECORD_HEAD + frames + tail);
}
