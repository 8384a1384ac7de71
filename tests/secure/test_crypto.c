/* test_crypto.c - libcrypto as weft calls it gives what the standards' own examples say; the three checksums are one. */
#include "test.h"

#include <weft/weft.h>

#include "secure/crc32c.h"
#include "secure/crypto.h"

static size_t unhex(const char *text, uint8_t *ret)
{
	size_t n = strlen(text) / 2;

	for (size_t i = 0; i < n; i++) {
		char two[3] = { text[2 * i], text[2 * i + 1], 0 };

		ret[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return n;
}

static bool is(const uint8_t *bytes, const char *hex)
{
	uint8_t want[256];

	return memcmp(bytes, want, unhex(hex, want)) == 0;
}

/* First: nothing has loaded it yet in this process. */
TEST(a_missing_libcrypto_is_an_error_that_names_it)
{
	const char *usual = wf_crypto_library;

	wf_crypto_library = "libnot-there.so.3";
	CHECK_EQ(wf_crypto_load(), -ENOSYS);
	CHECK(strstr(weft_last_error(), "libnot-there.so.3"));
	wf_crypto_library = "libc.so.6";
	CHECK_EQ(wf_crypto_load(), -ENOSYS);
	CHECK(strstr(weft_last_error(), "libc.so.6 has no "));
	wf_crypto_library = usual;
}

static void *load(void *arg)
{
	uint8_t hash[WF_SECRET];

	(void)arg;
	CHECK_OK(wf_crypto_load());
	CHECK_OK(wf_sha256("abc", 3, hash));
	return NULL;
}

/* Second: they are the first to do so. */
TEST(several_threads_load_it_at_once)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		MUST_OK(pthread_create(&threads[i], NULL, load, NULL));
	for (int i = 0; i < 4; i++)
		MUST_OK(pthread_join(threads[i], NULL));
	wf_crypto_library = "libnot-there.so.3";
	CHECK_OK(wf_crypto_load());             /* once is enough */
	wf_crypto_library = "libcrypto.so.3";
}

TEST(hashes_are_those_of_their_standards)
{
	uint8_t out[WF_SECRET], key[WF_SECRET] = "Jefe";        /* shorter keys are filled up with zeros */

	MUST_OK(wf_crypto_load());
	CHECK_OK(wf_sha256("abc", 3, out));
	CHECK(is(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
	CHECK_OK(wf_hmac(key, "what do ya want for nothing?", 28, out));
	CHECK(is(out, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"));
}

TEST(hkdf_is_that_of_its_standard)
{
	uint8_t salt[WF_SECRET] = { 0 }, secret[22], prk[WF_SECRET], info[10], out[42];

	MUST_OK(wf_crypto_load());
	unhex("000102030405060708090a0b0c", salt);
	memset(secret, 11, sizeof(secret));
	unhex("f0f1f2f3f4f5f6f7f8f9", info);
	CHECK_OK(wf_hkdf_extract(salt, secret, sizeof(secret), prk));
	CHECK(is(prk, "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5"));
	CHECK_OK(wf_hkdf_expand(prk, "", info, sizeof(info), out, sizeof(out)));
	CHECK(is(out, "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"));
	CHECK_OK(wf_hkdf_expand(prk, "\xf0\xf1\xf2", info + 3, 7, out, sizeof(out)));   /* label and context in a row */
	CHECK(is(out, "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"));
	CHECK_EQ(wf_hkdf_expand(prk, "", out, WF_HKDF_CONTEXT + 1, out, 1), -EINVAL);
}

TEST(x25519_is_that_of_its_standard)
{
	uint8_t a[WF_SECRET], b[WF_SECRET], public_a[WF_SECRET], public_b[WF_SECRET], shared[WF_SECRET];
	static const uint8_t zero[WF_SECRET];

	MUST_OK(wf_crypto_load());
	unhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a", a);
	unhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb", b);
	CHECK_OK(wf_x25519_public(a, public_a));
	CHECK(is(public_a, "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"));
	CHECK_OK(wf_x25519_public(b, public_b));
	CHECK(is(public_b, "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"));
	CHECK_OK(wf_x25519(a, public_b, shared));
	CHECK(is(shared, "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"));
	CHECK_OK(wf_x25519(b, public_a, shared));
	CHECK(is(shared, "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"));
	CHECK_EQ(wf_x25519(a, zero, shared), -EINVAL);          /* of small order: everybody would get the same */
}

static void seal(enum wf_aead aead, const uint8_t *key, const uint8_t *nonce, const void *clear, size_t clear_n, const void *text, size_t n,
		 uint8_t *ret, uint8_t *ret_tag)
{
	struct wf_cipher c;

	MUST_OK(wf_cipher_init(&c, aead, key, true));
	CHECK_OK(wf_cipher_begin(&c, nonce, clear, clear_n));
	CHECK_OK(wf_cipher_piece(&c, ret, text, n));
	CHECK_OK(wf_cipher_seal_end(&c, ret_tag));
	wf_cipher_fini(&c);
}

TEST(ciphers_are_those_of_their_standards)
{
	static const char text[] = "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.";
	uint8_t key[WF_SECRET] = { 0 }, nonce[WF_AEAD_NONCE] = { 0 }, zeros[16] = { 0 }, clear[12], out[128], tag[WF_AEAD_TAG];

	MUST_OK(wf_crypto_load());
	CHECK_EQ(wf_crypto_aeads(), 1 << WF_AEAD_AES_GCM | 1 << WF_AEAD_CHACHA);
	seal(WF_AEAD_AES_GCM, key, nonce, zeros, 0, zeros, sizeof(zeros), out, tag);
	CHECK(is(out, "cea7403d4d606b6e074ec5d3baf39d18") && is(tag, "d0d1c8a799996bf0265b98b5d48ab919"));
	unhex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f", key);
	unhex("070000004041424344454647", nonce);
	unhex("50515253c0c1c2c3c4c5c6c7", clear);
	seal(WF_AEAD_CHACHA, key, nonce, clear, sizeof(clear), text, sizeof(text) - 1, out, tag);
	CHECK(is(out, "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"));
	CHECK(is(tag, "1ae10b594f09e26a7e902ecbd0600691"));
}

TEST(a_cipher_takes_pieces_in_place_and_nothing_with_a_wrong_tag)
{
	uint8_t key[WF_SECRET] = { 1 }, nonce[WF_AEAD_NONCE] = { 2 }, text[1000], whole[1000], pieces[1000], tag[WF_AEAD_TAG], tag2[WF_AEAD_TAG];
	uint64_t random = test_seed;

	MUST_OK(wf_crypto_load());
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)test_random(&random);
	for (enum wf_aead aead = WF_AEAD_AES_GCM; aead <= WF_AEAD_CHACHA; aead++) {
		struct wf_cipher c, o;

		seal(aead, key, nonce, "head", 4, text, sizeof(text), whole, tag);
		memcpy(pieces, text, sizeof(text));
		MUST_OK(wf_cipher_init(&c, aead, key, true));
		MUST_OK(wf_cipher_init(&o, aead, key, false));
		for (int round = 0; round < 100; round++) {     /* a context again and again, with a new nonce each time */
			wf_cipher_begin(&c, nonce, "head", 4);
			for (size_t at = 0, n; at < sizeof(text); at += n) {
				n = test_random(&random) % 70;
				n = n < sizeof(text) - at ? n : sizeof(text) - at;
				CHECK_OK(wf_cipher_piece(&c, pieces + at, pieces + at, n));
			}
			CHECK_OK(wf_cipher_seal_end(&c, tag2));
			if (round == 0)
				CHECK(memcmp(pieces, whole, sizeof(whole)) == 0 && memcmp(tag, tag2, WF_AEAD_TAG) == 0);
			tag2[round % WF_AEAD_TAG] ^= (uint8_t)(round & 1);
			CHECK_OK(wf_cipher_begin(&o, nonce, "head", 4));
			CHECK_OK(wf_cipher_piece(&o, pieces, pieces, sizeof(pieces)));
			CHECK_EQ(wf_cipher_open_end(&o, tag2), round & 1 ? -EBADMSG : 0);
			CHECK(memcmp(pieces, text, sizeof(text)) == 0);
			nonce[5]++;
		}
		nonce[5] = 0;
		wf_cipher_fini(&c);
		wf_cipher_fini(&c);             /* one that is not there is fine */
		wf_cipher_fini(&o);
	}
	CHECK_EQ(wf_cipher_init(&(struct wf_cipher){ 0 }, WF_AEAD_NONE, key, true), -EINVAL);
}

TEST(the_checksum_is_crc32c_by_table_and_by_instruction)
{
	static uint8_t bytes[8192 + 64];
	wf_crc32c_fn fast = wf_crc32c_instruction();
	uint64_t random = test_seed;

	CHECK_EQ(wf_crc32c_table(0, "123456789", 9), 0xe3069283);
	CHECK_EQ(wf_crc32c(0, "123456789", 9), 0xe3069283);
	CHECK_EQ(wf_crc32c(wf_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
	CHECK_EQ(wf_crc32c_three(UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908), UINT64_C(0x1716151413121110)),
		 wf_crc32c_table(0, "\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\24\25\26\27", 24));
	CHECK_EQ(wf_crc32c(0, bytes, 32), 0x8a9136aa);          /* 32 zeros, as in the iSCSI standard */
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)test_random(&random);
	for (int i = 0; i < 20000; i++) {
		size_t at = test_random(&random) % 64, n = test_random(&random) % (i % 4 == 3 ? 8192 : i % 4 == 1 ? 1024 : 40);
		uint32_t before = (uint32_t)test_random(&random);

		CHECK_EQ(wf_crc32c(before, bytes + at, n), wf_crc32c_table(before, bytes + at, n));
		CHECK_EQ(wf_crc32c_few(before, bytes + at, n), wf_crc32c_table(before, bytes + at, n));
		CHECK_EQ(wf_crc32c(wf_crc32c(before, bytes, n), bytes + n, 64), wf_crc32c_table(before, bytes, n + 64));
		if (fast)
			CHECK_EQ(fast(before, bytes + at, n), wf_crc32c_table(before, bytes + at, n));
	}
	if (!fast)
		SKIP("this CPU has no instruction for it; the table alone was looked at");
}

TEST_MAIN
