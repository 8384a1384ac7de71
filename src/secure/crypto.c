/* crypto.c - libcrypto behind a table of the functions weft uses. */
#include "secure/crypto.h"

#include <dlfcn.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdatomic.h>
#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif
#include <weft/base.h>

#include "base/lock.h"

/* Every function used: named once, so that table and look-up cannot differ. */
#define CALLS(X)                                                                                   \
	X(OPENSSL_init_crypto)                                                                     \
	X(CRYPTO_memcmp)                                                                           \
	X(ERR_set_mark)                                                                            \
	X(ERR_pop_to_mark)                                                                         \
	X(SHA256)                                                                                  \
	X(HMAC)                                                                                    \
	X(EVP_sha256)                                                                              \
	X(EVP_CIPHER_fetch)                                                                        \
	X(EVP_CIPHER_CTX_new)                                                                      \
	X(EVP_CIPHER_CTX_free)                                                                     \
	X(EVP_CIPHER_CTX_ctrl)                                                                     \
	X(EVP_CipherInit_ex)                                                                       \
	X(EVP_EncryptUpdate)                                                                       \
	X(EVP_EncryptFinal_ex)                                                                     \
	X(EVP_DecryptUpdate)                                                                       \
	X(EVP_DecryptFinal_ex)                                                                     \
	X(EVP_PKEY_new_raw_private_key)                                                            \
	X(EVP_PKEY_new_raw_public_key)                                                             \
	X(EVP_PKEY_get_raw_public_key)                                                             \
	X(EVP_PKEY_free)                                                                           \
	X(EVP_PKEY_CTX_new)                                                                        \
	X(EVP_PKEY_CTX_free)                                                                       \
	X(EVP_PKEY_derive_init)                                                                    \
	X(EVP_PKEY_derive_set_peer)                                                                \
	X(EVP_PKEY_derive)

#define SLOT(name) __typeof__(name) *name;
#define ROW(name) { #name, offsetof(struct calls, name) },
struct calls {
	CALLS(SLOT)
};
static const struct {
	const char *name;
	size_t at;
} rows[] = { CALLS(ROW) };
#undef SLOT
#undef ROW
#undef CALLS

const char *wf_crypto_library = "libcrypto.so.3";

static struct wf_lock load_lock;
static _Atomic bool loaded;             /* release when the three below are set, acquire before they are used */
static struct calls lib;
static EVP_CIPHER *ciphers[3];          /* by enum wf_aead; NULL: not offered */
static enum wf_aead best;

static bool cpu_has_aes(void)
{
#if defined(__aarch64__)
	unsigned long has = getauxval(AT_HWCAP);

	return (has & (1ul << 3)) && (has & (1ul << 4));        /* HWCAP_AES, HWCAP_PMULL */
#elif defined(__x86_64__)
	return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#else
	return false;
#endif
}

static int load_locked(void)
{
	void *so = dlopen(wf_crypto_library, RTLD_NOW | RTLD_LOCAL);

	if (!so)
		return weft_fail(-ENOSYS, "%s (OpenSSL 3) is needed to speak with other hosts, and cannot be loaded", wf_crypto_library);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *call = dlsym(so, rows[i].name);

		if (!call) {
			dlclose(so);
			return weft_fail(-ENOSYS, "%s has no %s: not the libcrypto of OpenSSL 3", wf_crypto_library, rows[i].name);
		}
		memcpy((char *)&lib + rows[i].at, &call, sizeof(call));
	}
	lib.OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
	lib.ERR_set_mark();
	ciphers[WF_AEAD_AES_GCM] = lib.EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
	ciphers[WF_AEAD_CHACHA] = lib.EVP_CIPHER_fetch(NULL, "ChaCha20-Poly1305", NULL);
	lib.ERR_pop_to_mark();
	if (!ciphers[WF_AEAD_AES_GCM] && !ciphers[WF_AEAD_CHACHA])
		return weft_fail(-ENOSYS, "%s offers neither AES-256-GCM nor ChaCha20-Poly1305", wf_crypto_library);
	best = ciphers[WF_AEAD_AES_GCM] && (cpu_has_aes() || !ciphers[WF_AEAD_CHACHA]) ? WF_AEAD_AES_GCM : WF_AEAD_CHACHA;
	return 0;
}

int wf_crypto_load(void)
{
	int r = 0;

	if (atomic_load_explicit(&loaded, memory_order_acquire))
		return 0;
	wf_lock(&load_lock);
	if (!atomic_load_explicit(&loaded, memory_order_relaxed)) {     /* relaxed: written under the lock */
		r = load_locked();
		if (r == 0)
			atomic_store_explicit(&loaded, true, memory_order_release);
	}
	wf_unlock(&load_lock);
	return r;
}

unsigned wf_crypto_aeads(void)
{
	unsigned mask = 0;

	for (unsigned a = WF_AEAD_AES_GCM; a <= WF_AEAD_CHACHA; a++)
		mask |= ciphers[a] ? 1u << a : 0;
	return mask;
}

enum wf_aead wf_crypto_best(void)
{
	return best;
}

int wf_sha256(const void *data, size_t n, uint8_t ret_hash[WF_SECRET])
{
	return lib.SHA256(data, n, ret_hash) ? 0 : weft_fail(-EIO, "libcrypto: SHA-256 failed");
}

int wf_hmac(const uint8_t key[WF_SECRET], const void *data, size_t n, uint8_t ret_mac[WF_SECRET])
{
	unsigned len = 0;

	if (!lib.HMAC(lib.EVP_sha256(), key, WF_SECRET, data, n, ret_mac, &len) || len != WF_SECRET)
		return weft_fail(-EIO, "libcrypto: HMAC failed");
	return 0;
}

int wf_hkdf_extract(const uint8_t salt[WF_SECRET], const void *secret, size_t n, uint8_t ret_prk[WF_SECRET])
{
	return wf_hmac(salt, secret, n, ret_prk);
}

int wf_hkdf_expand(const uint8_t prk[WF_SECRET], const char *label, const void *context, size_t context_n, uint8_t *ret, size_t n)
{
	uint8_t text[WF_SECRET + 63 + WF_HKDF_CONTEXT + 1], block[WF_SECRET];
	size_t label_n = strlen(label), have = 0, take;
	int r = 0;

	if (label_n > 63 || context_n > WF_HKDF_CONTEXT || n > 255 * (size_t)WF_SECRET)
		return weft_fail(-EINVAL, "a label, a context or a result too long for HKDF");
	for (uint8_t round = 1; n && r == 0; round++, ret += take, n -= take) {
		memcpy(text, block, have);
		memcpy(text + have, label, label_n);
		if (context_n)
			memcpy(text + have + label_n, context, context_n);
		text[have + label_n + context_n] = round;
		r = wf_hmac(prk, text, have + label_n + context_n + 1, block);
		have = sizeof(block);
		take = n < sizeof(block) ? n : sizeof(block);
		if (r == 0)
			memcpy(ret, block, take);
	}
	explicit_bzero(block, sizeof(block));
	explicit_bzero(text, sizeof(text));
	return r;
}

int wf_x25519_public(const uint8_t secret[WF_SECRET], uint8_t ret_public[WF_SECRET])
{
	size_t n = WF_SECRET;
	EVP_PKEY *mine;
	int ok;

	lib.ERR_set_mark();
	mine = lib.EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, secret, WF_SECRET);
	ok = mine && lib.EVP_PKEY_get_raw_public_key(mine, ret_public, &n) == 1 && n == WF_SECRET;
	lib.EVP_PKEY_free(mine);
	lib.ERR_pop_to_mark();
	return ok ? 0 : weft_fail(-EIO, "libcrypto: X25519 failed");
}

int wf_x25519(const uint8_t secret[WF_SECRET], const uint8_t peer[WF_SECRET], uint8_t ret_shared[WF_SECRET])
{
	static const uint8_t zero[WF_SECRET];
	EVP_PKEY *mine, *theirs;
	EVP_PKEY_CTX *ctx;
	size_t n = WF_SECRET;
	int ok;

	lib.ERR_set_mark();
	mine = lib.EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, secret, WF_SECRET);
	theirs = lib.EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, peer, WF_SECRET);
	ctx = mine ? lib.EVP_PKEY_CTX_new(mine, NULL) : NULL;
	ok = theirs && ctx && lib.EVP_PKEY_derive_init(ctx) == 1 && lib.EVP_PKEY_derive_set_peer(ctx, theirs) == 1 &&
	     lib.EVP_PKEY_derive(ctx, ret_shared, &n) == 1 && n == WF_SECRET && !wf_crypto_same(ret_shared, zero, WF_SECRET);
	lib.EVP_PKEY_CTX_free(ctx);
	lib.EVP_PKEY_free(theirs);
	lib.EVP_PKEY_free(mine);
	lib.ERR_pop_to_mark();
	return ok ? 0 : weft_fail(-EINVAL, "an X25519 value of no use");
}

bool wf_crypto_same(const void *a, const void *b, size_t n)
{
	return lib.CRYPTO_memcmp(a, b, n) == 0;
}

int wf_cipher_init(struct wf_cipher *c, enum wf_aead aead, const uint8_t key[WF_SECRET], bool seals)
{
	EVP_CIPHER_CTX *ctx;

	if (aead < WF_AEAD_AES_GCM || aead > WF_AEAD_CHACHA || !ciphers[aead])
		return weft_fail(-EINVAL, "this libcrypto does not have cipher %d", (int)aead);
	ctx = lib.EVP_CIPHER_CTX_new();
	if (!ctx)
		return weft_fail(-ENOMEM, "no memory for a cipher");
	if (lib.EVP_CipherInit_ex(ctx, ciphers[aead], NULL, key, NULL, seals) != 1) {
		lib.EVP_CIPHER_CTX_free(ctx);
		return weft_fail(-EIO, "libcrypto: the cipher does not take its key");
	}
	*c = (struct wf_cipher){ .ctx = ctx, .seals = seals };
	return 0;
}

void wf_cipher_fini(struct wf_cipher *c)
{
	if (c->ctx)
		lib.EVP_CIPHER_CTX_free(c->ctx);
	c->ctx = NULL;
}

int wf_cipher_rekey(struct wf_cipher *c, const uint8_t key[WF_SECRET])
{
	return lib.EVP_CipherInit_ex(c->ctx, NULL, NULL, key, NULL, c->seals) == 1 ? 0 :
		weft_fail(-EIO, "libcrypto: the cipher does not take its key");
}

int wf_cipher_begin(struct wf_cipher *c, const uint8_t nonce[WF_AEAD_NONCE], const void *clear, size_t n)
{
	int len;

	if (lib.EVP_CipherInit_ex(c->ctx, NULL, NULL, NULL, nonce, c->seals) != 1)
		return weft_fail(-EIO, "libcrypto: the cipher does not take its nonce");
	if ((c->seals ? lib.EVP_EncryptUpdate : lib.EVP_DecryptUpdate)(c->ctx, NULL, &len, clear, (int)n) != 1)
		return weft_fail(-EIO, "libcrypto: the cipher does not take a header");
	return 0;
}

int wf_cipher_piece(struct wf_cipher *c, void *to, const void *from, size_t n)
{
	int len;

	if (n == 0)
		return 0;       /* with a length of 0 some versions would take it for the end */
	if ((c->seals ? lib.EVP_EncryptUpdate : lib.EVP_DecryptUpdate)(c->ctx, to, &len, from, (int)n) != 1)
		return weft_fail(-EIO, "libcrypto: the cipher does not take a piece");
	return 0;
}

int wf_cipher_seal_end(struct wf_cipher *c, uint8_t ret_tag[WF_AEAD_TAG])
{
	uint8_t none[WF_AEAD_TAG];
	int len;

	if (lib.EVP_EncryptFinal_ex(c->ctx, none, &len) != 1 ||
	    lib.EVP_CIPHER_CTX_ctrl(c->ctx, EVP_CTRL_AEAD_GET_TAG, WF_AEAD_TAG, ret_tag) != 1)
		return weft_fail(-EIO, "libcrypto: no tag");
	return 0;
}

int wf_cipher_open_end(struct wf_cipher *c, const uint8_t tag[WF_AEAD_TAG])
{
	uint8_t none[WF_AEAD_TAG], copy[WF_AEAD_TAG];
	int len;

	memcpy(copy, tag, WF_AEAD_TAG);      /* the call takes no pointer to const */
	if (lib.EVP_CIPHER_CTX_ctrl(c->ctx, EVP_CTRL_AEAD_SET_TAG, WF_AEAD_TAG, copy) != 1)
		return weft_fail(-EIO, "libcrypto: the cipher does not take a tag");
	return lib.EVP_DecryptFinal_ex(c->ctx, none, &len) == 1 ? 0 : -EBADMSG;
}
