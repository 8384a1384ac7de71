/* key.h - the key of a job, as it lies in a file.
 *
 * 32 random bytes, written as 64 hexadecimal digits and a newline, and nothing else. The file must be private: a
 * regular file (no symbolic link), owned by the user who runs the process, mode 0600 or 0400. Who holds the key is a
 * member of the job; it does not say which one. The caller makes credentials of the key (chain.h) and wipes it
 * (wf_key_wipe).
 */
#ifndef WF_SECURE_KEY_H
#define WF_SECURE_KEY_H

#include <stdint.h>

#define WF_KEY_BYTES 32

struct wf_key {
	uint8_t bytes[WF_KEY_BYTES];
};

/* 0; -EACCES: not private to its owner; -EINVAL: not a key; or what opening it said. The words name the file and what is
 * wrong with it. Any thread. */
int wf_key_read(const char *path, struct wf_key *ret_key);
void wf_key_wipe(struct wf_key *key);

#endif
