/* payload.h - bytes that say which message they are: a function of (from, to, number, length), so that a receiver can tell
 * each wrong one, and of which message it is, without having been told anything.
 */
#ifndef CHAOS_PAYLOAD_H
#define CHAOS_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PAYLOAD_NAMED 32u               /* from here on a message begins with its name in plain words */

struct payload_name {
	uint64_t from, to, number, len;
};

static inline uint64_t payload_word(uint64_t key, uint64_t i)
{
	uint64_t z = key + i * UINT64_C(0x9e3779b97f4a7c15);

	z ^= z >> 29;
	return z * UINT64_C(0xbf58476d1ce4e5b9);
}

static inline uint64_t payload_key(const struct payload_name *n)
{
	return payload_word(n->from ^ (n->to << 17 | n->to >> 47), n->number + 1) ^ n->len * UINT64_C(0x94d049bb133111eb);
}

static inline void payload_fill(void *mem, const struct payload_name *n)
{
	uint64_t key = payload_key(n), w;
	unsigned char *p = mem;
	size_t i = 0;

	if (n->len >= PAYLOAD_NAMED) {
		memcpy(p, n, sizeof(*n));
		i = sizeof(*n);
	}
	for (; i + 8 <= n->len; i += 8) {
		w = payload_word(key, i);
		memcpy(p + i, &w, 8);
	}
	w = payload_word(key, i);
	memcpy(p + i, &w, n->len - i);
}

/* The place of the first wrong byte; n->len: none. */
static inline size_t payload_wrong(const void *mem, const struct payload_name *n)
{
	uint64_t key = payload_key(n), w, got;
	const unsigned char *p = mem;
	size_t i = 0;

	if (n->len >= PAYLOAD_NAMED) {
		if (memcmp(p, n, sizeof(*n)))
			return 0;
		i = sizeof(*n);
	}
	for (; i + 8 <= n->len; i += 8) {
		w = payload_word(key, i);
		memcpy(&got, p + i, 8);
		if (w != got)
			return i;
	}
	w = payload_word(key, i);
	return memcmp(p + i, &w, n->len - i) ? i : n->len;
}

#endif
