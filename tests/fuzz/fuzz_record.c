/* fuzz_record.c - bytes from the wire into one who opens records.
 *
 * Input: two bytes what to do, then bytes. The first says how records are sealed (four ways) and whether the bytes go
 * in as they are, or are laid over a row of records that were sealed well; the second how the row is cut into pieces,
 * and whether heads get a check that holds, which everybody can make. What must hold: it comes back, reads only what
 * is there, ends for good at the first lie, and in mode full nothing comes out that was not put in.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "secure/crc32c.h"
#include "secure/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define ROW 4096

static void must(int truth)
{
	if (!truth)
		abort();
}

static const uint8_t secret[WF_SECRET] = { 7 };
static uint8_t text[64];

/* Six records of text, of growing length, every other one with a body. */
static size_t row_make(const struct wf_record_conf *conf, uint8_t *row)
{
	struct wf_sealer s;
	size_t at = 0;

	must(wf_sealer_init(&s, conf) == 0);
	for (size_t i = 0; i < 6; i++) {
		struct iovec piece = { text, i * 10 };
		size_t body = i % 2 ? 30 : 0;
		long n = wf_sealer_frames(&s, &piece, 1, body, row + at);

		must(n > 0);
		at += (size_t)n;
		if (body) {
			must(wf_sealer_piece(&s, row + at, text, body) == 0 && wf_sealer_end(&s, row + at + body) == 0);
			at += body + wf_record_body_tail(conf->mode);
		}
	}
	wf_sealer_fini(&s);
	return at;
}

static void head_mend(uint8_t *row, size_t n, uint64_t number)
{
	uint8_t covered[24] = { 0 };

	if (n < WF_RECORD_HEAD)
		return;
	wf_put64(covered, number);
	memcpy(covered + 8, row, 10);
	wf_put16(row + 10, (uint16_t)wf_crc32c(0, covered, sizeof(covered)));
}

/* What comes out of a part in mode full was put in. */
static void part_check(const struct wf_record_conf *conf, const uint8_t *bytes, size_t n)
{
	must(conf->mode != WF_MODE_FULL || (n < 60 && memcmp(bytes, text, n) == 0));
}

/* The record at the beginning of the @n bytes, which lie in memory of exactly that size. How many it took; 0: not all there; negative: refused. */
static long open_one(struct wf_opener *o, const struct wf_record_conf *conf, uint8_t *bytes, size_t n)
{
	size_t frames, body, tail = wf_record_body_tail(conf->mode);
	long used = wf_opener_frames(o, bytes, n, &frames, &body);
	uint8_t *p = bytes + used;

	must(used == -EBADMSG || (used >= 0 && (size_t)used <= n));
	if (used <= 0)
		return used;
	must(WF_RECORD_HEAD + frames < (size_t)used && body <= WF_RECORD_BODY);
	part_check(conf, bytes + WF_RECORD_HEAD, frames);
	if (body == 0)
		return used;
	n -= (size_t)used;
	if (n < tail || n - tail < body) {
		must(wf_opener_piece(o, p, p, n < body ? n : body) == 0);       /* as far as it is there */
		return 0;
	}
	must(wf_opener_piece(o, p, p, body / 2) == 0 && wf_opener_piece(o, p + body / 2, p + body / 2, body - body / 2) == 0);
	if (wf_opener_end(o, p + body) < 0)
		return -EBADMSG;
	part_check(conf, p, body);
	return used + (long)(body + tail);
}

static void open_all(const struct wf_record_conf *conf, const uint8_t *row, size_t n, bool mend)
{
	struct wf_opener o;
	long used;

	must(wf_opener_init(&o, conf) == 0);
	do {
		uint8_t *exact = malloc(n ? n : 1);     /* so that a sanitizer sees a byte too far */
		size_t frames, body;

		must(exact != NULL);
		memcpy(exact, row, n);
		if (mend)
			head_mend(exact, n, o.end.number);
		used = open_one(&o, conf, exact, n);
		if (used < 0)
			must(wf_opener_frames(&o, exact, n, &frames, &body) == -EBADMSG);
		if (used > 0) {
			row += used;
			n -= (size_t)used;
		}
		free(exact);
	} while (used > 0);
	wf_opener_fini(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct wf_record_conf ways[4] = {
		{ .mode = WF_MODE_FULL, .aead = WF_AEAD_AES_GCM, .secret = secret, .rekey_parts = 2 },
		{ .mode = WF_MODE_FULL, .aead = WF_AEAD_CHACHA, .secret = secret, .rekey_bytes = 30 },
		{ .mode = WF_MODE_AUTH, .secret = secret },
		{ .mode = WF_MODE_SUM, .secret = secret },
	};
	static uint8_t row[ROW];
	size_t whole;

	if (n < 2 || n > ROW)
		return 0;
	must(wf_crypto_load() == 0);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i * 37);
	if (data[0] & 4) {
		whole = row_make(&ways[data[0] % 4], row);
		for (size_t i = 0; i < n - 2 && i < whole; i++)
			row[i] ^= data[2 + i];
		whole -= data[1] / 2 % 64u;             /* cut off */
	} else {
		whole = n - 2;
		memcpy(row, data + 2, whole);
	}
	open_all(&ways[data[0] % 4], row, whole, data[1] & 1);
	return 0;
}
