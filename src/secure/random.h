/* random.h - where the random bytes of the handshake come from.
 *
 * The kernel; or, in a simulated network, whatever the simulator gives each of its processes, so that one seed makes
 * one history. Who gives a source that can be guessed gives up all secrecy: only tests do.
 */
#ifndef WF_SECURE_RANDOM_H
#define WF_SECURE_RANDOM_H

#include <stddef.h>

struct wf_random {
	int (*fill)(void *user, void *ret, size_t n);   /* 0 or a negative errno; NULL: the kernel's */
	void *user;
};

int wf_random_fill(const struct wf_random *from, void *ret, size_t n);

#endif
