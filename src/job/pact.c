/* pact.c - host identities, cards and sealed job keys, as texts. See pact.h. */
#include "job/pact.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/base.h>

#include "base/bytes.h"

#define VERSION 1
#define FRESH 16
#define CARD_BYTES ((WF_PACT_CARD - 1) / 2)
#define PLAIN (WF_JOB_BYTES + WF_KEY_BYTES)
#define SEALED_BYTES ((WF_PACT_SEALED - 1) / 2)
#define JOB_NAME 255
#define BOOT_ID 36

_Static_assert(SEALED_BYTES == 2 + FRESH + PLAIN + WF_AEAD_TAG, "where things lie in what is sealed");

/* Hexadecimal */

static void hex_write(const uint8_t *bytes, size_t n, char *ret_text)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		ret_text[2 * i] = digits[bytes[i] >> 4];
		ret_text[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret_text[2 * n] = '\0';
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns how many bytes, at most @room; -1: it is not that. One value has one text: capitals are none. */
static long hex_read(const char *text, size_t room, uint8_t *ret_bytes)
{
	size_t n = strnlen(text, 2 * room + 1);

	if (n % 2 || n > 2 * room)
		return -1;
	for (size_t i = 0; i < n / 2; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -1;
		ret_bytes[i] = (uint8_t)(high << 4 | low);
	}
	return (long)(n / 2);
}

/* Hosts: BOOT-ID.NAMESPACE.USER, the last two in decimal */

static int read_boot_id(char ret[BOOT_ID + 1])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, BOOT_ID);

	if (fd >= 0)
		close(fd);
	if (n != BOOT_ID)
		return weft_fail(-ENOSYS, "this host's boot id cannot be read");
	ret[BOOT_ID] = '\0';
	return 0;
}

int wf_pact_host_here(char ret_text[WF_PACT_HOST])
{
	char boot[BOOT_ID + 1], text[WF_PACT_HOST];
	struct stat net;
	int r = read_boot_id(boot);

	if (r < 0)
		return r;
	if (stat("/proc/self/ns/net", &net) < 0)
		return weft_fail(-errno, "this process's network namespace is not known: %s", strerror(errno));
	snprintf(text, sizeof(text), "%s.%" PRIu64 ".%u", boot, (uint64_t)net.st_ino, (unsigned)geteuid());
	r = wf_pact_host_check(text);
	if (r == 0)
		memcpy(ret_text, text, sizeof(text));
	return r;
}

/* A number of @digits at most, without a 0 ahead. Returns what follows it, or NULL. */
static const char *skip_number(const char *text, int digits)
{
	const char *end = text;

	while (*end >= '0' && *end <= '9' && end - text <= digits)
		end++;
	return end == text || end - text > digits || (*text == '0' && end - text > 1) ? NULL : end;
}

int wf_pact_host_check(const char *text)
{
	const char *rest = text;

	for (int i = 0; i < BOOT_ID; i++, rest++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? *rest != '-' : digit(*rest) < 0)
			return weft_fail(-EPROTO, "what a process has put is no host");
	}
	rest = *rest == '.' ? skip_number(rest + 1, 20) : NULL;
	rest = rest && *rest == '.' ? skip_number(rest + 1, 10) : NULL;
	return rest && !*rest ? 0 : weft_fail(-EPROTO, "what a process has put is no host");
}

static int by_host_and_rank(const void *a, const void *b, void *user)
{
	const char (*hosts)[WF_PACT_HOST] = user;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int order = strcmp(hosts[x], hosts[y]);

	return order ? order : (x > y) - (x < y);
}

/* The rest of each place, from its host: there are @hosts. */
static int settle(struct wf_pact_place *places, uint32_t n, uint32_t hosts)
{
	struct {
		uint32_t first, count;
	} *of = calloc(hosts + 1, sizeof(*of));

	if (!of)
		return weft_fail(-ENOMEM, "no memory for the places of %u processes", n);
	for (uint32_t i = 0; i < n; i++) {
		struct wf_pact_place *p = &places[i];

		if (of[p->host].count == 0)
			of[p->host].first = i;
		p->first = of[p->host].first;
		p->index = of[p->host].count++;
	}
	for (uint32_t i = 0; i < n; i++)
		places[i].count = of[places[i].host].count;
	free(of);
	return 0;
}

long wf_pact_group(const char (*hosts)[WF_PACT_HOST], uint32_t n, struct wf_pact_place *ret_places)
{
	uint32_t *order, number = 0;
	int r;

	for (uint32_t i = 0; i < n; i++)
		if (strnlen(hosts[i], WF_PACT_HOST) == WF_PACT_HOST || wf_pact_host_check(hosts[i]) < 0)
			return weft_fail(-EPROTO, "what process %u has put is no host", i);
	order = malloc(n * sizeof(*order) + 1);
	if (!order)
		return weft_fail(-ENOMEM, "no memory for the places of %u processes", n);
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), by_host_and_rank, (void *)(uintptr_t)hosts);
	for (uint32_t i = 0, head = 0; i < n; i++) {
		if (strcmp(hosts[order[i]], hosts[order[head]]) != 0)
			head = i;
		ret_places[order[i]].first = order[head];
	}
	for (uint32_t i = 0; i < n; i++)        /* a first comes before the others of its host */
		ret_places[i].host = ret_places[i].first == i ? number++ : ret_places[ret_places[i].first].host;
	free(order);
	r = settle(ret_places, n, number);
	return r < 0 ? r : (long)number;
}

uint32_t wf_pact_map_write(const struct wf_pact_place *places, uint32_t n, uint32_t from, char ret_text[WF_PACT_MAP])
{
	size_t at = 0;

	ret_text[0] = '\0';
	while (from < n) {
		uint32_t end = from + 1;
		char run[32];
		int len;

		while (end < n && places[end].host == places[from].host)
			end++;
		len = snprintf(run, sizeof(run), "%s%u", at ? "," : "", places[from].host);
		if (end - from > 1)
			len += snprintf(run + len, sizeof(run) - (size_t)len, ":%u", end - from);
		if ((size_t)len >= WF_PACT_MAP - at)
			break;
		memcpy(ret_text + at, run, (size_t)len + 1);
		at += (size_t)len;
		from = end;
	}
	return from;
}

/* Decimal digits at *@text, up to @most; moves on behind them. False: none, or more. */
static bool take_number(const char **text, uint32_t most, uint32_t *ret)
{
	const char *end = skip_number(*text, 10);
	uint64_t n = 0;

	for (const char *c = *text; end && c < end; c++)
		n = 10 * n + (uint64_t)(*c - '0');
	if (!end || n > most)
		return false;
	*text = end;
	*ret = (uint32_t)n;
	return true;
}

static bool take_run(const char **text, uint32_t hosts, uint32_t ranks, uint32_t *ret_host, uint32_t *ret_count)
{
	*ret_count = 1;
	if (!take_number(text, hosts, ret_host))
		return false;
	if (**text != ':')
		return true;
	++*text;
	return take_number(text, ranks, ret_count) && *ret_count > 0;
}

long wf_pact_map_read(const char *text, uint32_t n, uint32_t from, struct wf_pact_place *places)
{
	uint32_t known = 0;             /* hosts that have come so far: a new one has the next number */
	int r;

	if (from >= n || strnlen(text, WF_PACT_MAP) == WF_PACT_MAP)
		return weft_fail(-EPROTO, "no map of the job");
	for (uint32_t i = 0; i < from; i++)
		known = places[i].host >= known ? places[i].host + 1 : known;
	for (;;) {
		uint32_t host, count;

		if (!take_run(&text, known, n - from, &host, &count))
			return weft_fail(-EPROTO, "no map of the job");
		known += host == known;
		while (count--)
			places[from++].host = host;
		if (*text == '\0' || from == n)
			break;
		if (*text++ != ',')
			return weft_fail(-EPROTO, "no map of the job");
	}
	if (*text)
		return weft_fail(-EPROTO, "a map of more processes than the job has");
	r = from == n ? settle(places, n, known) : 0;
	return r < 0 ? r : (long)from;
}

/* Cards: version 1, public 32, length 1 and address, length 1 and door */

static bool is_visible(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return true;
}

/* Returns the bytes, or -EINVAL. */
static long card_pack(const struct wf_pact_card *card, uint8_t ret[CARD_BYTES])
{
	size_t address = strnlen(card->address, sizeof(card->address)), door = strnlen(card->door, sizeof(card->door));
	uint8_t *p = ret;

	if (address == 0 || address == sizeof(card->address) || door == sizeof(card->door) || !is_visible(card->address, address) ||
	    !is_visible(card->door, door))
		return weft_fail(-EINVAL, "an agent's address or door that cannot be put");
	*p++ = VERSION;
	memcpy(p, card->public, WF_SECRET);
	p += WF_SECRET;
	*p++ = (uint8_t)address;
	memcpy(p, card->address, address);
	p += address;
	*p++ = (uint8_t)door;
	memcpy(p, card->door, door);
	return p + door - ret;
}

/* Takes a length and a text from the @n bytes at @p. Returns how many bytes, or -1. */
static long take_text(const uint8_t *p, size_t n, char *ret, size_t room)
{
	if (n < 1 || p[0] > n - 1 || p[0] >= room)
		return -1;
	memset(ret, 0, room);
	memcpy(ret, p + 1, p[0]);
	return is_visible(ret, p[0]) ? 1 + p[0] : -1;
}

int wf_pact_card_write(const struct wf_pact_card *card, char ret_text[WF_PACT_CARD])
{
	uint8_t bytes[CARD_BYTES];
	long n = card_pack(card, bytes);

	if (n < 0)
		return (int)n;
	hex_write(bytes, (size_t)n, ret_text);
	return 0;
}

int wf_pact_card_read(const char *text, struct wf_pact_card *ret_card)
{
	uint8_t bytes[CARD_BYTES];
	struct wf_pact_card card;
	long n = hex_read(text, sizeof(bytes), bytes), at = 1 + WF_SECRET, took;

	if (n < at || bytes[0] != VERSION)
		return weft_fail(-EPROTO, n > 0 && bytes[0] != VERSION ? "an agent's card of another version of weft" : "no agent's card");
	memcpy(card.public, bytes + 1, WF_SECRET);
	took = take_text(bytes + at, (size_t)(n - at), card.address, sizeof(card.address));
	at += took;
	if (took > 1) {
		took = take_text(bytes + at, (size_t)(n - at), card.door, sizeof(card.door));
		at += took;
	} else {
		took = -1;
	}
	if (took < 0 || at != n)
		return weft_fail(-EPROTO, "no agent's card");
	*ret_card = card;
	return 0;
}

/* Keys */

int wf_pact_keys_make(const struct wf_random *random, struct wf_pact_keys *ret_keys)
{
	int r = wf_crypto_load();

	if (r == 0)
		r = wf_random_fill(random, ret_keys->secret, WF_SECRET);
	if (r == 0)
		r = wf_x25519_public(ret_keys->secret, ret_keys->public);
	if (r < 0)
		wf_pact_keys_wipe(ret_keys);
	return r;
}

void wf_pact_keys_wipe(struct wf_pact_keys *keys)
{
	explicit_bzero(keys, sizeof(*keys));
}

int wf_pact_job_make(const struct wf_random *random, struct wf_pact_job *ret_job)
{
	int r = wf_random_fill(random, ret_job->number, sizeof(ret_job->number));

	if (r == 0)
		r = wf_random_fill(random, ret_job->key.bytes, sizeof(ret_job->key.bytes));
	if (r < 0)
		wf_pact_job_wipe(ret_job);
	return r;
}

void wf_pact_job_wipe(struct wf_pact_job *job)
{
	explicit_bzero(job, sizeof(*job));
}

/* Sealed: version 1, cipher 1, random bytes 16, number and key 48, tag 16. The first 18 are what @head is. */

#define HEAD (2 + FRESH)

/* C of pact.h. Every part has its length or a fixed one, so no two ends have the same. */
static int context_of(const struct wf_pact_ends *ends, const uint8_t head[HEAD], uint8_t ret[WF_SECRET])
{
	uint8_t bytes[HEAD + 4 * 4 + JOB_NAME + 2 * (1 + CARD_BYTES)], *p = bytes;
	size_t name = strnlen(ends->job, JOB_NAME + 1);
	const struct wf_pact_card *cards[2] = { ends->from_card, ends->to_card };

	if (name > JOB_NAME)
		return weft_fail(-EINVAL, "the launcher's name of the job is too long");
	memcpy(p, head, HEAD);
	p += HEAD;
	wf_put32(p, ends->size);
	wf_put32(p + 4, ends->from);
	wf_put32(p + 8, ends->to);
	wf_put32(p + 12, (uint32_t)name);
	memcpy(p + 16, ends->job, name);
	p += 16 + name;
	for (int i = 0; i < 2; i++) {
		long n = card_pack(cards[i], p);        /* its lengths are in it */

		if (n < 0)
			return (int)n;
		p += n;
	}
	return wf_sha256(bytes, (size_t)(p - bytes), ret);
}

/* The key for one sealing. @mine and @theirs: who of the two computes it. */
static int derive(const struct wf_pact_ends *ends, const uint8_t head[HEAD], const uint8_t mine[WF_SECRET], const uint8_t theirs[WF_SECRET],
		  uint8_t ret_key[WF_SECRET])
{
	uint8_t shared[WF_SECRET], prk[WF_SECRET], context[WF_SECRET];
	int r = context_of(ends, head, context);

	if (r == 0)
		r = wf_x25519(mine, theirs, shared);
	if (r == 0)
		r = wf_hkdf_extract(context, shared, sizeof(shared), prk);
	if (r == 0)
		r = wf_hkdf_expand(prk, "weft pact", context, sizeof(context), ret_key, WF_SECRET);
	explicit_bzero(shared, sizeof(shared));
	explicit_bzero(prk, sizeof(prk));
	return r;
}

/* The key is used once, so the nonce can be any. */
static int cipher_begin(struct wf_cipher *c, const uint8_t head[HEAD], const uint8_t key[WF_SECRET], bool seals)
{
	static const uint8_t nonce[WF_AEAD_NONCE];
	int r = wf_cipher_init(c, (enum wf_aead)head[1], key, seals);

	return r < 0 ? r : wf_cipher_begin(c, nonce, head, HEAD);
}

static void job_pack(const struct wf_pact_job *job, uint8_t ret[PLAIN])
{
	memcpy(ret, job->number, WF_JOB_BYTES);
	memcpy(ret + WF_JOB_BYTES, job->key.bytes, WF_KEY_BYTES);
}

/* A card of @mine is what the others take for us. */
static int check_mine(const struct wf_pact_card *card, const struct wf_pact_keys *mine)
{
	return memcmp(card->public, mine->public, WF_SECRET) == 0 ? 0 : weft_fail(-EINVAL, "an agent's card that is not of its keys");
}

int wf_pact_seal(const struct wf_pact_ends *ends, const struct wf_pact_keys *mine, const struct wf_random *random,
		 const struct wf_pact_job *job, char ret_text[WF_PACT_SEALED])
{
	uint8_t out[SEALED_BYTES], plain[PLAIN], key[WF_SECRET];
	struct wf_cipher c = { .ctx = NULL };
	int r = wf_crypto_load();

	if (r == 0)
		r = check_mine(ends->from_card, mine);
	if (r < 0)
		return r;
	out[0] = VERSION;
	out[1] = wf_crypto_aeads() & 1u << WF_AEAD_AES_GCM ? WF_AEAD_AES_GCM : WF_AEAD_CHACHA;   /* the one every libcrypto has, if this has it */
	r = wf_random_fill(random, out + 2, FRESH);
	if (r == 0)
		r = derive(ends, out, mine->secret, ends->to_card->public, key);
	if (r == 0)
		r = cipher_begin(&c, out, key, true);
	job_pack(job, plain);
	if (r == 0)
		r = wf_cipher_piece(&c, out + HEAD, plain, PLAIN);
	if (r == 0)
		r = wf_cipher_seal_end(&c, out + HEAD + PLAIN);
	wf_cipher_fini(&c);
	explicit_bzero(plain, sizeof(plain));
	explicit_bzero(key, sizeof(key));
	if (r == 0)
		hex_write(out, sizeof(out), ret_text);
	return r;
}

static int open_bytes(const struct wf_pact_ends *ends, const struct wf_pact_keys *mine, const uint8_t in[SEALED_BYTES], uint8_t plain[PLAIN])
{
	struct wf_cipher c = { .ctx = NULL };
	uint8_t key[WF_SECRET];
	int r = derive(ends, in, mine->secret, ends->from_card->public, key);

	if (r == 0)
		r = cipher_begin(&c, in, key, false);
	if (r == 0)
		r = wf_cipher_piece(&c, plain, in + HEAD, PLAIN);
	if (r == 0)
		r = wf_cipher_open_end(&c, in + HEAD + PLAIN);
	wf_cipher_fini(&c);
	explicit_bzero(key, sizeof(key));
	return r == -EBADMSG ? weft_fail(-EACCES, "the job key from rank %u was not sealed for rank %u of this job, or was changed", ends->from,
					 ends->to) : r;
}

int wf_pact_open(const struct wf_pact_ends *ends, const struct wf_pact_keys *mine, const char *text, struct wf_pact_job *ret_job)
{
	uint8_t in[SEALED_BYTES], plain[PLAIN];
	int r = wf_crypto_load();

	if (r == 0)
		r = check_mine(ends->to_card, mine);
	if (r < 0)
		return r;
	if (hex_read(text, sizeof(in), in) != SEALED_BYTES || in[0] != VERSION)
		return weft_fail(-EPROTO, "no sealed job key");
	r = open_bytes(ends, mine, in, plain);
	if (r == 0) {
		memcpy(ret_job->number, plain, WF_JOB_BYTES);
		memcpy(ret_job->key.bytes, plain + WF_JOB_BYTES, WF_KEY_BYTES);
	}
	explicit_bzero(plain, sizeof(plain));
	return r;
}
