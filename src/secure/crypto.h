/* crypto.h - libcrypto, as much of it as weft uses, loaded when it is first needed.
 *
 * weft has no cryptography of its own: SHA-256, HMAC, X25519 and the two ciphers are OpenSSL's. Only HKDF (RFC 5869)
 * is put together here, from HMAC, because its three lines are shorter than the way to libcrypto's. A job on one host
 * never comes here, so libweft is not linked with libcrypto: wf_crypto_load opens it and answers -ENOSYS where there
 * is none. It is never closed again, and asked not to clean up at exit: weft's own thread may still be sealing then
 * (a program that used libcrypto before has decided that itself).
 *
 * Threads: wf_crypto_load any, concurrently. Everything else needs it to have succeeded before; the functions without
 * a struct wf_cipher have no state, a struct wf_cipher is used by one thread at a time. Every call answers 0, or a
 * negative errno when libcrypto fails (no memory, or a cipher its configuration forbids).
 */
#ifndef WF_SECURE_CRYPTO_H
#define WF_SECURE_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_SECRET 32            /* bytes of a key, a secret, a hash, an X25519 value */
#define WF_AEAD_NONCE 12
#define WF_AEAD_TAG 16

/* The numbers are on the wire; both ciphers take a key of WF_SECRET, a nonce of WF_AEAD_NONCE and give a tag of WF_AEAD_TAG. */
enum wf_aead { WF_AEAD_NONE, WF_AEAD_AES_GCM, WF_AEAD_CHACHA };

/* 0, or -ENOSYS with words that say what could not be loaded. */
int wf_crypto_load(void);

/* What is loaded; a test names a library that is not there. Read by wf_crypto_load until it has succeeded. */
extern const char *wf_crypto_library;

unsigned wf_crypto_aeads(void);         /* the ciphers this libcrypto has: a bit 1 << enum wf_aead for each */
enum wf_aead wf_crypto_best(void);      /* of those the one this CPU is faster with */

int wf_sha256(const void *data, size_t n, uint8_t ret_hash[WF_SECRET]);
int wf_hmac(const uint8_t key[WF_SECRET], const void *data, size_t n, uint8_t ret_mac[WF_SECRET]);

/* HKDF: @ret_prk is as good as the better of the two inputs. */
int wf_hkdf_extract(const uint8_t salt[WF_SECRET], const void *secret, size_t n, uint8_t ret_prk[WF_SECRET]);

#define WF_HKDF_CONTEXT 64      /* bytes of @context at most */

/* HKDF: @n <= 255 * WF_SECRET bytes out of @prk, for one purpose: @label (at most 63 characters), then @context. */
int wf_hkdf_expand(const uint8_t prk[WF_SECRET], const char *label, const void *context, size_t context_n, uint8_t *ret, size_t n);

/* X25519 with a secret of 32 random bytes. A public value for which everybody gets the same result is -EINVAL. */
int wf_x25519_public(const uint8_t secret[WF_SECRET], uint8_t ret_public[WF_SECRET]);
int wf_x25519(const uint8_t secret[WF_SECRET], const uint8_t peer[WF_SECRET], uint8_t ret_shared[WF_SECRET]);

/* In a time that does not depend on where they differ. */
bool wf_crypto_same(const void *a, const void *b, size_t n);

/* A cipher in one direction. Per record: begin, any number of pieces, one of the ends. */
struct wf_cipher {
	void *ctx;              /* EVP_CIPHER_CTX; NULL: not made */
	bool seals;
};

int wf_cipher_init(struct wf_cipher *c, enum wf_aead aead, const uint8_t key[WF_SECRET], bool seals);
void wf_cipher_fini(struct wf_cipher *c);       /* the key is wiped; one that was never made is fine */
int wf_cipher_rekey(struct wf_cipher *c, const uint8_t key[WF_SECRET]);

int wf_cipher_begin(struct wf_cipher *c, const uint8_t nonce[WF_AEAD_NONCE], const void *clear, size_t n);   /* @clear is covered by the tag, too */
int wf_cipher_piece(struct wf_cipher *c, void *to, const void *from, size_t n);         /* @to may be @from */
int wf_cipher_seal_end(struct wf_cipher *c, uint8_t ret_tag[WF_AEAD_TAG]);
int wf_cipher_open_end(struct wf_cipher *c, const uint8_t tag[WF_AEAD_TAG]);                 /* -EBADMSG: the tag does not hold */

#endif
