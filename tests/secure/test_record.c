/* test_record.c - what was sealed is opened, whole, in order and once; anything else is an error, and the last one. */
#include "test.h"

#include <weft/weft.h>

#include "base/bytes.h"
#include "secure/crc32c.h"
#include "secure/record.h"

#define ROOM (WF_RECORD_HEAD + WF_RECORD_FRAMES + WF_RECORD_BODY + 2 * WF_AEAD_TAG)

static const uint8_t secret[WF_SECRET] = { 1, 2, 3 };
static uint8_t text[WF_RECORD_BODY + 1], wire[ROOM], opened[WF_RECORD_BODY];
static struct wf_sealer s;
static struct wf_opener o;
static uint64_t random_state;

/* Every way a record can be: the two ciphers, plain, and plain with a sum. */
enum { WAYS = 4 };
static const struct wf_record_conf ways[WAYS] = {
	{ .mode = WF_MODE_FULL, .aead = WF_AEAD_AES_GCM, .secret = secret },
	{ .mode = WF_MODE_FULL, .aead = WF_AEAD_CHACHA, .secret = secret },
	{ .mode = WF_MODE_AUTH, .secret = secret },
	{ .mode = WF_MODE_SUM, .secret = secret },
};

static void make(const struct wf_record_conf *conf)
{
	static bool filled;

	if (!filled) {
		random_state = test_seed;
		for (size_t i = 0; i < sizeof(text); i++)
			text[i] = (uint8_t)test_random(&random_state);
		filled = true;
	}
	MUST_OK(wf_crypto_load());
	wf_sealer_fini(&s);
	wf_opener_fini(&o);
	MUST_OK(wf_sealer_init(&s, conf));
	MUST_OK(wf_opener_init(&o, conf));
}

/* A whole record of the first bytes of text; how many bytes it became. */
static long seal(size_t frames, size_t body, uint8_t *to)
{
	struct iovec piece = { text, frames };
	long n = wf_sealer_frames(&s, &piece, 1, body, to);
	int r;

	if (n < 0 || !body)
		return n;
	r = wf_sealer_piece(&s, to + n, text, body);
	if (r == 0)
		r = wf_sealer_end(&s, to + n + body);
	return r < 0 ? r : n + (long)(body + wf_record_body_tail(s.end.mode));
}

/* Opens the whole record in the @n bytes, in place. How many it took; -EBADMSG; 0: not all there. */
static long open_any(uint8_t *bytes, size_t n, size_t *ret_frames, size_t *ret_body)
{
	long used = wf_opener_frames(&o, bytes, n, ret_frames, ret_body);
	int r;

	if (used <= 0 || !*ret_body)
		return used;
	if (n - (size_t)used < *ret_body + wf_record_body_tail(o.end.mode))
		return 0;
	r = wf_opener_piece(&o, bytes + used, bytes + used, *ret_body);
	if (r == 0)
		r = wf_opener_end(&o, bytes + used + *ret_body);
	return r < 0 ? r : used + (long)(*ret_body + wf_record_body_tail(o.end.mode));
}

static long try_open(uint8_t *bytes, size_t n)
{
	size_t frames, body;

	return open_any(bytes, n, &frames, &body);
}

static bool opens(uint8_t *bytes, long n, size_t frames, size_t body)
{
	size_t tail = wf_record_tail(o.end.mode), got_frames, got_body;

	return n > 0 && open_any(bytes, (size_t)n, &got_frames, &got_body) == n && got_frames == frames && got_body == body &&
	       memcmp(bytes + WF_RECORD_HEAD, text, frames) == 0 && memcmp(bytes + WF_RECORD_HEAD + frames + tail, text, body) == 0;
}

TEST(every_size_comes_out_as_it_went_in)
{
	uint64_t step = test_scale() < 1 ? (uint64_t)(1 / test_scale()) : 1;

	for (int way = 0; way < WAYS; way++) {
		size_t shift = test_random(&random_state) % step;

		make(&ways[way]);
		for (size_t n = 0; n <= WF_RECORD_FRAMES; n += n < 300 ? 1 : step) {
			size_t body = n < 300 ? n : n + shift;
			size_t whole = WF_RECORD_HEAD + n + wf_record_tail(ways[way].mode);

			if (n % 2) {            /* both parts in turn, so that each size is had within twice the bytes */
				MUST_EQ(seal(n, 0, wire), whole);
				MUST(opens(wire, (long)whole, n, 0));
			} else {
				long r = seal(n % 7, body, wire);

				MUST(r > 0 && opens(wire, r, n % 7, body));
			}
		}
		for (size_t n = WF_RECORD_BODY - 2; n <= WF_RECORD_BODY; n++)
			CHECK(opens(wire, seal(WF_RECORD_FRAMES, n, wire), WF_RECORD_FRAMES, n));
		CHECK_EQ(seal(10, WF_RECORD_BODY + 1, wire), -EMSGSIZE);
		CHECK_EQ(seal(WF_RECORD_FRAMES + 1, 0, wire), -EMSGSIZE);
		CHECK_EQ(wf_sealer_begin(&s, WF_RECORD_FRAMES + 1, 0, wire), -EMSGSIZE);
		CHECK(opens(wire, seal(7, 8, wire), 7, 8));             /* that did no harm */
	}
}

/* From several places into one, and from one into several, cut anywhere. */
TEST(records_are_sealed_and_opened_in_any_pieces)
{
	for (int way = 0; way < WAYS; way++) {
		make(&ways[way]);
		for (uint64_t round = 0; round < test_scaled(2000); round++) {
			struct iovec pieces[8];
			size_t frames = 0, body = test_random(&random_state) % 3000, got_frames, got_body, at, take;
			uint8_t *p = wire;

			for (int i = 0; i < 8; i++) {
				take = test_random(&random_state) % (i % 3 ? 40 : 700);
				pieces[i] = (struct iovec){ text + frames, take };
				frames += take;
			}
			MUST(wf_sealer_frames(&s, pieces, 8, body, wire) > 0);
			p = wire + WF_RECORD_HEAD + frames + wf_record_tail(ways[way].mode);
			for (at = 0; at < body; at += take) {
				take = 1 + test_random(&random_state) % 300;
				take = take < body - at ? take : body - at;
				MUST_OK(wf_sealer_piece(&s, p + at, text + at, take));
			}
			if (body)
				MUST_OK(wf_sealer_end(&s, p + body));

			MUST_OK(wf_opener_begin(&o, wire, &got_frames, &got_body));
			CHECK(got_frames == frames && got_body == body);
			for (at = 0; at < frames; at += take) {
				take = test_random(&random_state) % 300;
				take = take < frames - at ? take : frames - at;
				MUST_OK(wf_opener_piece(&o, opened + at, wire + WF_RECORD_HEAD + at, take));
			}
			MUST_OK(wf_opener_end(&o, wire + WF_RECORD_HEAD + frames));
			CHECK(memcmp(opened, text, frames) == 0);
			for (at = 0; at < body; at += take) {           /* its own place, apart from where it was read to */
				take = 1 + test_random(&random_state) % 300;
				take = take < body - at ? take : body - at;
				MUST_OK(wf_opener_piece(&o, opened + at, p + at, take));
			}
			if (body)
				MUST_OK(wf_opener_end(&o, p + body));
			CHECK(memcmp(opened, text, body) == 0);
		}
	}
}

TEST(a_record_is_sealed_and_opened_in_place)
{
	for (int way = 0; way < WAYS; way++) {
		struct iovec piece = { wire + WF_RECORD_HEAD, 5000 };
		uint8_t *body = wire + WF_RECORD_HEAD + 5000 + wf_record_tail(ways[way].mode);

		make(&ways[way]);
		memcpy(wire + WF_RECORD_HEAD, text, 5000);
		MUST(wf_sealer_frames(&s, &piece, 1, 6000, wire) > 0);
		memcpy(body, text, 6000);
		MUST_OK(wf_sealer_piece(&s, body, body, 6000));
		MUST_OK(wf_sealer_end(&s, body + 6000));
		CHECK((memcmp(wire + WF_RECORD_HEAD, text, 5000) != 0) == (ways[way].mode == WF_MODE_FULL));
		CHECK((memcmp(body, text, 6000) != 0) == (ways[way].mode == WF_MODE_FULL));
		CHECK(opens(wire, body + 6000 + wf_record_body_tail(ways[way].mode) - wire, 5000, 6000));
	}
}

/* One message's frames in place: @frames bytes, of which those from @summed on are a payload. */
static long seal_flat(size_t frames, size_t summed)
{
	memcpy(wire + WF_RECORD_HEAD, text, frames);
	return wf_sealer_flat(&s, frames, summed, wire);
}

TEST(a_message_is_sealed_where_it_lies)
{
	static const size_t summed[] = { 0, 8, 72, 100, 2040, 2048, 4000, 4100 };

	for (int way = 0; way < WAYS; way++) {
		make(&ways[way]);
		for (size_t i = 0; i < sizeof(summed) / sizeof(summed[0]); i++)
			for (size_t frames = 0; frames < 4200; frames += 7 + frames / 3) {
				long n = seal_flat(frames, summed[i]);

				CHECK_EQ(n, WF_RECORD_HEAD + frames + wf_record_tail(ways[way].mode));
				CHECK(opens(wire, n, frames, 0));
				CHECK_EQ(s.end.number, o.end.number);
			}
		CHECK_EQ(wf_sealer_flat(&s, WF_RECORD_FRAMES + 1, 8, wire), -EMSGSIZE);
	}
}

/* Other frames take the place of those that were sealed; and who opens only asks at first. */
TEST(a_record_like_the_last_one_is_sealed_and_opened_as_any)
{
	for (int way = 2; way < WAYS; way++)
		for (size_t frames = 0; frames <= 400; frames += 8) {
			size_t got_frames, got_body;
			long n;

			make(&ways[way]);
			MUST(seal_flat(frames, frames) > 0);
			CHECK(opens(wire, WF_RECORD_HEAD + (long)frames + 4, frames, 0));
			for (int i = 0; i < 3; i++) {
				memcpy(wire + WF_RECORD_HEAD, text + i, frames);
				n = wf_sealer_again(&s, frames, 0, wire);
				CHECK_EQ(n, WF_RECORD_HEAD + (long)frames + 4);
				for (size_t at = 10; at < (size_t)n; at++) {    /* what is before that its reader compares */
					wire[at] ^= 4;
					CHECK(!wf_opener_holds(&o, wire, (uint32_t)frames, 0));
					wire[at] ^= 4;
				}
				CHECK(wf_opener_holds(&o, wire, (uint32_t)frames, 0));
				CHECK(wf_opener_holds(&o, wire, (uint32_t)frames, 0));       /* nothing has happened */
				CHECK_EQ(o.end.number + 1, s.end.number);
				if (i == 1)
					CHECK_EQ(wf_opener_frames(&o, wire, (size_t)n, &got_frames, &got_body), n);
				else
					wf_opener_passed(&o, 0);
				CHECK(!wf_opener_holds(&o, wire, (uint32_t)frames, 0));      /* once is enough */
				CHECK_EQ(o.end.number, s.end.number);
			}
			s.end.number = o.end.number = UINT64_MAX - 1;           /* the last one is never used */
			CHECK_EQ(wf_sealer_again(&s, frames, 0, wire), -EOVERFLOW);
			CHECK(!wf_opener_holds(&o, wire, (uint32_t)frames, 0));
		}
}

TEST(a_record_like_the_last_one_with_a_body_is_sealed_and_opened_as_any)
{
	for (int way = 0; way < WAYS; way++)
		for (size_t frames = 8; ways[way].mode == WF_MODE_AUTH && frames <= 400; frames += 8) {
			make(&ways[way]);
			memcpy(wire + WF_RECORD_HEAD, text, frames);
			MUST(wf_sealer_bodied(&s, frames, 6000, wire) > 0);
			CHECK(wf_opener_holds(&o, wire, (uint32_t)frames, 6000));
			wf_opener_passed(&o, 6000);
			for (int i = 0; i < 3; i++) {
				static uint8_t other[sizeof(wire)];

				memcpy(wire + WF_RECORD_HEAD, text + i, frames);
				memcpy(other, wire, sizeof(wire));
				CHECK_EQ(wf_sealer_again(&s, frames, 6000, wire), WF_RECORD_HEAD + (long)frames + 4);
				s.end.number -= 2;
				CHECK_EQ(wf_sealer_bodied(&s, frames, 6000, other), WF_RECORD_HEAD + (long)frames + 4);
				CHECK_EQ(memcmp(wire, other, WF_RECORD_HEAD + frames + 4), 0);
				CHECK(!wf_opener_holds(&o, wire, (uint32_t)frames, 0));
				CHECK(wf_opener_holds(&o, wire, (uint32_t)frames, 6000));
				wf_opener_passed(&o, 6000);
				CHECK_EQ(o.end.number, s.end.number);
			}
			s.end.number = UINT64_MAX - 1;
			CHECK_EQ(wf_sealer_again(&s, frames, 6000, wire), -EOVERFLOW);
		}
}

TEST(a_message_with_a_body_that_is_not_sealed_is_one_of_auth)
{
	for (int way = 0; way < WAYS; way++) {
		bool auth = ways[way].mode == WF_MODE_AUTH;

		make(&ways[way]);
		for (size_t frames = 8; frames < 4200; frames += 8 + frames / 3) {
			uint64_t number = s.end.number;
			long n;

			memcpy(wire + WF_RECORD_HEAD, text, frames);
			n = wf_sealer_bodied(&s, frames, 6000, wire);
			CHECK_EQ(n, auth ? (long)(WF_RECORD_HEAD + frames + 4) : -EINVAL);
			CHECK_EQ(s.end.number, number + (auth ? 2 : 0));
			if (!auth)
				continue;
			memcpy(wire + n, text, 6000);
			CHECK(wf_opener_holds(&o, wire, (uint32_t)frames, 6000) && !wf_opener_holds(&o, wire, (uint32_t)frames, 5999));
			if (frames % 16 == 8)
				CHECK(opens(wire, n + 6000, frames, 6000));
			else
				wf_opener_passed(&o, 6000);
			CHECK_EQ(s.end.number, o.end.number);
			n = seal_flat(frames, 8);               /* and what follows it is the next */
			CHECK(opens(wire, n, frames, 0));
		}
		CHECK_EQ(wf_sealer_bodied(&s, 8, 0, wire), -EINVAL);
		CHECK_EQ(wf_sealer_bodied(&s, WF_RECORD_FRAMES + 1, 8, wire), auth ? -EMSGSIZE : -EINVAL);
	}
}

/* The payload at the end of the frames is in the checksum of sum, under the tag of full, and nowhere with auth: there as with a body the rail is trusted. Heads are always covered. */
TEST(auth_leaves_out_the_payload_and_nothing_else)
{
	for (int way = 0; way < WAYS; way++)
		for (size_t at = 0; at < WF_RECORD_HEAD + 400u + 4; at++) {
			bool payload = at >= WF_RECORD_HEAD + 72 && at < WF_RECORD_HEAD + 400;
			size_t frames, body;
			long n;

			make(&ways[way]);
			n = seal_flat(400, 72);
			wire[at] ^= 1;
			if (payload && ways[way].mode == WF_MODE_AUTH) {
				CHECK_EQ(wf_opener_frames(&o, wire, (size_t)n, &frames, &body), n);
				wire[at] ^= 1;
				CHECK(memcmp(wire + WF_RECORD_HEAD, text, 400) == 0);
			} else {
				CHECK_EQ(wf_opener_frames(&o, wire, (size_t)n, &frames, &body), -EBADMSG);
			}
		}
}

TEST(what_the_checksum_covers_is_opened_in_any_pieces)
{
	make(&ways[2]);
	for (uint64_t round = 0; round < test_scaled(2000); round++) {
		size_t frames = test_random(&random_state) % 4200, got_frames, got_body, take;

		MUST(seal_flat(frames, 8 * (test_random(&random_state) % 300)) > 0);
		MUST_OK(wf_opener_begin(&o, wire, &got_frames, &got_body));
		CHECK(got_frames == frames && got_body == 0);
		for (size_t at = 0; at < frames; at += take) {
			take = test_random(&random_state) % 300;
			take = take < frames - at ? take : frames - at;
			MUST_OK(wf_opener_piece(&o, opened + at, wire + WF_RECORD_HEAD + at, take));
		}
		MUST_OK(wf_opener_end(&o, wire + WF_RECORD_HEAD + frames));
		CHECK(memcmp(opened, text, frames) == 0);
	}
}

/* Only auth may say how much is covered: with sum it would be a way round the sum. */
TEST(where_all_is_covered_no_head_says_otherwise)
{
	for (int way = 0; way < WAYS; way++) {
		size_t frames, body;
		long n;

		make(&ways[2]);
		n = seal_flat(400, 72);
		make(&ways[way]);
		CHECK_EQ(wf_opener_frames(&o, wire, (size_t)n, &frames, &body), ways[way].mode == WF_MODE_AUTH ? n : -EBADMSG);
	}
}

TEST(plain_records_move_nothing)
{
	uint8_t head[WF_RECORD_HEAD], tail[4], body_tail[4];
	size_t frames, body;

	for (int way = 2; way < WAYS; way++) {
		make(&ways[way]);
		MUST_OK(wf_sealer_begin(&s, 100, 9000, head));
		MUST_OK(wf_sealer_piece(&s, NULL, text, 100));
		MUST_OK(wf_sealer_end(&s, tail));
		MUST_OK(wf_sealer_piece(&s, NULL, text, 4000));
		MUST_OK(wf_sealer_piece(&s, NULL, text + 4000, 5000));
		MUST_OK(wf_sealer_end(&s, body_tail));
		MUST_OK(wf_opener_begin(&o, head, &frames, &body));
		MUST_OK(wf_opener_piece(&o, text, text, 100));          /* where it was read to */
		MUST_OK(wf_opener_end(&o, tail));
		MUST_OK(wf_opener_piece(&o, text, text, 9000));
		CHECK_OK(wf_opener_end(&o, body_tail));
	}
}

TEST(a_record_cut_off_anywhere_is_waited_for)
{
	for (int way = 0; way < WAYS; way++) {
		long n;

		make(&ways[way]);
		n = seal(200, 0, wire);
		for (size_t cut = 0; cut < (size_t)n; cut++)
			CHECK_EQ(try_open(wire, cut), 0);
		CHECK(opens(wire, n, 200, 0));
		CHECK_EQ(s.end.number, o.end.number);
	}
}

/* A body of mode auth is the rail's business; all else is covered in every mode. */
TEST(every_changed_byte_is_found_and_is_the_end)
{
	for (int way = 0; way < WAYS; way++) {
		size_t tail = wf_record_tail(ways[way].mode), body = WF_RECORD_HEAD + 50 + tail;
		size_t n = body + 60 + wf_record_body_tail(ways[way].mode);

		for (size_t at = 0; at < n; at++)
			for (int bit = 0; bit < 8; bit++) {
				make(&ways[way]);
				MUST_EQ(seal(50, 60, wire), n);
				wire[at] ^= (uint8_t)(1u << bit);
				if (ways[way].mode == WF_MODE_AUTH && at >= body) {
					CHECK_EQ(try_open(wire, n), n);
					continue;
				}
				CHECK_EQ(try_open(wire, n), -EBADMSG);
				MUST_EQ(seal(50, 60, wire), n);
				CHECK_EQ(try_open(wire, n), -EBADMSG);          /* dead */
				CHECK_EQ(try_open(wire, 0), -EBADMSG);
			}
	}
}

TEST(frames_count_before_their_body_is_there_and_a_false_body_is_the_end)
{
	for (int way = 0; way < WAYS; way++) {
		size_t frames, body, at;

		if (ways[way].mode == WF_MODE_AUTH)
			continue;
		make(&ways[way]);
		MUST(seal(50, 60, wire) > 0);
		at = (size_t)wf_opener_frames(&o, wire, WF_RECORD_HEAD + 50 + wf_record_tail(ways[way].mode), &frames, &body);
		CHECK(frames == 50 && body == 60 && memcmp(wire + WF_RECORD_HEAD, text, 50) == 0);
		wire[at + 30] ^= 1;
		MUST_OK(wf_opener_piece(&o, opened, wire + at, 60));
		CHECK_EQ(wf_opener_end(&o, wire + at + 60), -EBADMSG);
		CHECK(strstr(weft_last_error(), "does not hold"));
		CHECK_EQ(wf_opener_end(&o, wire + at + 60), -EBADMSG);
	}
}

TEST(a_dropped_doubled_exchanged_or_reflected_record_is_found)
{
	static uint8_t first[300], second[300], copy[300];

	for (int way = 0; way < WAYS; way++) {
		struct wf_opener other;
		struct wf_record_conf conf = ways[way];
		uint8_t back[WF_SECRET] = { 9 };
		size_t n;

		make(&conf);
		n = (size_t)seal(100, 30, first);
		MUST_EQ(seal(100, 30, second), n);
		CHECK(memcmp(first, second, n) != 0);                   /* the same bytes, under other numbers */
		CHECK_EQ(try_open(second, n), -EBADMSG);                /* dropped, or exchanged */

		make(&conf);
		MUST_EQ(seal(100, 30, first), n);
		memcpy(copy, first, n);
		CHECK(opens(first, (long)n, 100, 30));
		CHECK_EQ(try_open(copy, n), -EBADMSG);                  /* doubled */

		if (conf.mode != WF_MODE_FULL)
			continue;
		make(&conf);
		conf.secret = back;
		MUST_OK(wf_opener_init(&other, &conf));                 /* the sender's own other direction */
		MUST_EQ(seal(100, 30, first), n);
		wf_opener_fini(&o);
		o = other;
		CHECK_EQ(try_open(first, n), -EBADMSG);
	}
}

/* The two parts of a record, or the bodies of two, with nothing else changed. */
TEST(parts_that_changed_places_are_found)
{
	static uint8_t first[300], second[300];
	size_t at = WF_RECORD_HEAD + 60 + WF_AEAD_TAG;

	for (int way = 0; way < 2; way++) {
		make(&ways[way]);
		MUST(seal(60, 60, first) > 0);
		memcpy(second, first + WF_RECORD_HEAD, 60 + WF_AEAD_TAG);
		memmove(first + WF_RECORD_HEAD, first + at, 60 + WF_AEAD_TAG);
		memcpy(first + at, second, 60 + WF_AEAD_TAG);
		CHECK_EQ(try_open(first, at + 60 + WF_AEAD_TAG), -EBADMSG);
		make(&ways[way]);
		MUST(seal(60, 60, first) > 0);
		MUST(seal(60, 60, second) > 0);
		memcpy(first + at, second + at, 60 + WF_AEAD_TAG);
		CHECK_EQ(try_open(first, at + 60 + WF_AEAD_TAG), -EBADMSG);
	}
}

/* A head that is well made and makes no sense: the check is no secret. */
static void head_make(uint8_t head[WF_RECORD_HEAD], uint32_t frames, uint32_t body, uint16_t flags)
{
	uint8_t covered[24] = { 0 };

	wf_put32(head, frames);
	wf_put32(head + 4, body);
	wf_put16(head + 8, flags);
	memcpy(covered + 8, head, 10);
	wf_put16(head + 10, (uint16_t)wf_crc32c(0, covered, sizeof(covered)));
}

TEST(heads_that_make_no_sense_are_refused_before_a_byte_is_waited_for)
{
	static const struct {
		uint32_t frames, body;
		uint16_t flags;
	} rows[] = {
		{ WF_RECORD_FRAMES + 1, 0, 0 }, { UINT32_MAX, 0, 0 }, { 0x80000000, 2, 0 }, { UINT32_MAX - 11, 2, 0 },
		{ 10, WF_RECORD_BODY + 1, 0 }, { 10, UINT32_MAX, 0 }, { 10, 0x80000000, 0 },
		{ 10, 0, 2 }, { 10, 0, 128 }, { 8, 0, 256 }, { 0, 0, 256 }, { 10, 0, 0x8000 }, { 4096, 0, 0x8002 },
	};

	for (int way = 0; way < WAYS; way++) {
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			make(&ways[way]);
			head_make(wire, rows[i].frames, rows[i].body, rows[i].flags);
			CHECK_EQ(try_open(wire, WF_RECORD_HEAD), -EBADMSG);
		}
		make(&ways[way]);
		head_make(wire, WF_RECORD_FRAMES, WF_RECORD_BODY, 0);
		CHECK_EQ(try_open(wire, WF_RECORD_HEAD), 0);            /* this one would be fine */
		head_make(wire, 10, 1, 1);                              /* a change of key where there is none */
		CHECK_EQ(try_open(wire, WF_RECORD_HEAD), ways[way].mode == WF_MODE_FULL ? 0 : -EBADMSG);
	}
}

TEST(keys_change_before_their_limit_and_nobody_notices)
{
	for (int way = 0; way < 2; way++)
		for (int by_bytes = 0; by_bytes < 2; by_bytes++) {
			struct wf_record_conf conf = ways[way];
			uint8_t next[WF_SECRET];
			int changes = 0;

			conf.rekey_parts = by_bytes ? 0 : 10;
			conf.rekey_bytes = by_bytes ? 5000 : 0;
			make(&conf);
			for (int i = 0; i < 1000; i++) {
				long n;

				memcpy(next, s.end.next, sizeof(next));
				n = seal(400, 600, wire);
				if (memcmp(next, s.end.next, sizeof(next)) != 0)
					changes++;
				CHECK_EQ(wire[8], i % 5 == 4);          /* said in the head of the last one */
				MUST(opens(wire, n, 400, 600));
				CHECK(memcmp(s.end.next, o.end.next, sizeof(next)) == 0);
			}
			CHECK_EQ(changes, 200);
			CHECK_EQ(s.end.number, 2000);           /* numbers go on */
		}
}

TEST(a_change_of_key_that_was_added_or_taken_away_is_found)
{
	struct wf_record_conf conf = ways[0];
	long n;

	for (int last = 0; last < 2; last++) {
		conf.rekey_parts = last ? 1 : 0;
		make(&conf);
		n = seal(10, 0, wire);
		CHECK_EQ(wire[8], last);
		head_make(wire, 10, 0, !last);                  /* with its check made right */
		CHECK_EQ(try_open(wire, (size_t)n), -EBADMSG);
	}
}

TEST(after_the_last_number_nothing_is_sealed)
{
	for (int way = 0; way < WAYS; way++)
		for (size_t body = 0; body < 2; body++) {
			make(&ways[way]);
			s.end.number = o.end.number = UINT64_MAX - 2;
			CHECK(opens(wire, seal(10, body, wire), 10, body));
			CHECK_EQ(seal(10, body, wire), -EOVERFLOW);
			CHECK(strstr(weft_last_error(), "used up"));
			CHECK_EQ(seal(10, body, wire), -EOVERFLOW);
			CHECK(s.end.number >= UINT64_MAX - 1);          /* it has not begun again */
		}
}

/* A number is used up by begin: what would use it again is the end instead. */
TEST(a_record_left_unfinished_is_the_end)
{
	uint8_t head[WF_RECORD_HEAD], tail[WF_AEAD_TAG];
	size_t frames, body;

	for (int way = 0; way < WAYS; way++) {
		make(&ways[way]);
		MUST_OK(wf_sealer_begin(&s, 10, 0, head));
		CHECK_EQ(s.end.number, 1);
		CHECK_EQ(wf_sealer_begin(&s, 10, 0, head), -EBADMSG);
		CHECK_EQ(wf_sealer_piece(&s, opened, text, 10), -EBADMSG);
		CHECK_EQ(wf_sealer_end(&s, tail), -EBADMSG);
		make(&ways[way]);
		MUST_OK(wf_sealer_begin(&s, 10, 0, head));
		CHECK_EQ(wf_sealer_piece(&s, opened, text, 11), -EBADMSG);      /* more than said */
		make(&ways[way]);
		MUST_OK(wf_sealer_begin(&s, 10, 0, head));
		MUST_OK(wf_sealer_piece(&s, opened, text, 9));
		CHECK_EQ(wf_sealer_end(&s, tail), -EBADMSG);                    /* less */
		make(&ways[way]);
		MUST_OK(wf_sealer_begin(&s, 0, 10, head));
		MUST_OK(wf_sealer_end(&s, tail));
		CHECK_EQ(s.end.number, 2);
		CHECK_EQ(wf_sealer_begin(&s, 10, 0, head), -EBADMSG);           /* its body is missing */
		make(&ways[way]);
		MUST(seal(10, 0, wire) > 0);
		MUST_OK(wf_opener_begin(&o, wire, &frames, &body));
		CHECK_EQ(wf_opener_end(&o, wire + WF_RECORD_HEAD), -EBADMSG);
		make(&ways[way]);
		CHECK_EQ(wf_sealer_end(&s, tail), -EBADMSG);                    /* nothing begun */
		make(&ways[way]);
		CHECK_EQ(wf_opener_piece(&o, opened, text, 1), -EBADMSG);
	}
}

TEST(mode_full_shows_nothing_and_auth_everything)
{
	make(&ways[0]);
	MUST(seal(1000, 1000, wire) > 0);
	CHECK(!memmem(wire, 2100, text, 16));
	make(&ways[2]);
	MUST(seal(1000, 1000, wire) > 0);
	CHECK(memcmp(wire + WF_RECORD_HEAD, text, 1000) == 0);
	wf_sealer_fini(&s);
	wf_opener_fini(&o);
	CHECK_EQ(seal(1, 0, wire), -EBADMSG);           /* one that was ended seals nothing */
}

TEST_MAIN
