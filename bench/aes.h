/* aes.h - how fast one core seals 1 MiB with AES-256-GCM, as libcrypto does it and with nothing around. libcrypto is loaded, as weft does
 * it, so that no program here is linked with it.
 */
#ifndef BENCH_AES_H
#define BENCH_AES_H
#include "measure.h"
#include <dlfcn.h>
#include <openssl/evp.h>

#define AES_BYTES (1u << 20)

struct aes {
	__typeof__(EVP_EncryptInit_ex) *init;
	__typeof__(EVP_EncryptUpdate) *update;
	__typeof__(EVP_EncryptFinal_ex) *final;
	__typeof__(EVP_CIPHER_CTX_ctrl) *ctrl;
	EVP_CIPHER_CTX *ctx;
	unsigned char *from, *to;
	uint64_t number; /* of the message; part of its nonce */
};

static inline void aes_find(void *so, const char *name, void *call)
{
	void *at = dlsym(so, name);

	if (!at)
		die("libcrypto has no %s", name);
	memcpy(call, &at, sizeof(at));
}

static inline struct aes aes_start(void)
{
	void *so = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
	static const unsigned char key[32] = { 1 };
	__typeof__(EVP_CIPHER_CTX_new) *make;
	__typeof__(EVP_aes_256_gcm) *cipher;
	struct aes a = { .from = page_memory(AES_BYTES), .to = page_memory(AES_BYTES) };

	if (!so)
		die("%s", dlerror());
	aes_find(so, "EVP_EncryptInit_ex", &a.init);
	aes_find(so, "EVP_EncryptUpdate", &a.update);
	aes_find(so, "EVP_EncryptFinal_ex", &a.final);
	aes_find(so, "EVP_CIPHER_CTX_ctrl", &a.ctrl);
	aes_find(so, "EVP_CIPHER_CTX_new", &make);
	aes_find(so, "EVP_aes_256_gcm", &cipher);
	a.ctx = make();
	if (!a.ctx || a.init(a.ctx, cipher(), NULL, key, NULL) != 1)
		die("libcrypto: no AES-256-GCM");
	return a;
}

static inline void aes_seal(void *arg)
{
	struct aes *a = arg;
	unsigned char nonce[12] = { 0 }, tag[16];
	int n = 0;

	a->number++;
	memcpy(nonce, &a->number, sizeof(a->number));
	if (a->init(a->ctx, NULL, NULL, NULL, nonce) != 1 || a->update(a->ctx, a->to, &n, a->from, AES_BYTES) != 1 ||
	    a->final(a->ctx, a->to + n, &n) != 1 || a->ctrl(a->ctx, EVP_CTRL_AEAD_GET_TAG, sizeof(tag), tag) != 1)
		die("libcrypto: AES-256-GCM of %u bytes fails", AES_BYTES);
}

#endif
