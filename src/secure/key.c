/* key.c - reads the file with a job's key, if nobody else could have read it. */
#include "secure/key.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/base.h>

#define FILE_BYTES (2 * WF_KEY_BYTES + 1)

/* What others may do with it is asked of the open file: its name may mean another one by now. */
static int check(const char *path, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return weft_fail(-errno, "key file %.100s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return weft_fail(-EACCES, "key file %.100s: not a regular file", path);
	if (st.st_uid != geteuid())
		return weft_fail(-EACCES, "key file %.100s: belongs to user %u, not to the user of this process (%u)", path, (unsigned)st.st_uid,
				 (unsigned)geteuid());
	if (st.st_mode & 07177)
		return weft_fail(-EACCES, "key file %.100s: mode %04o; it must be private to its owner (0600 or 0400)", path,
				 (unsigned)st.st_mode & 07777);
	if (st.st_size != FILE_BYTES)
		return weft_fail(-EINVAL, "key file %.100s: %lld bytes; a key is %d hexadecimal digits and a newline", path, (long long)st.st_size,
				 2 * WF_KEY_BYTES);
	return 0;
}

/* Without branches and tables: what a digit is does not show in the time it takes. -1: none. */
static int digit(int c)
{
	int number = (c - '0') | ('9' - c);             /* negative: not in this range */
	int letter = ((c | 32) - 'a') | ('f' - (c | 32));
	int is_number = ~(number >> 31), is_letter = ~(letter >> 31);

	return (is_number & (c - '0')) | (is_letter & ((c | 32) - 'a' + 10)) | ~(is_number | is_letter);
}

static int parse(const char *path, const char *text, struct wf_key *key)
{
	int bad = 0, any = 0;

	for (int i = 0; i < WF_KEY_BYTES; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		bad |= high | low;
		key->bytes[i] = (uint8_t)((unsigned)high << 4 | (unsigned)low);
		any |= key->bytes[i];
	}
	if (bad < 0 || text[FILE_BYTES - 1] != '\n')
		return weft_fail(-EINVAL, "key file %.100s: not %d hexadecimal digits and a newline", path, 2 * WF_KEY_BYTES);
	if (!any)
		return weft_fail(-EINVAL, "key file %.100s: all digits are 0, that is no key", path);
	return 0;
}

static int read_all(const char *path, int fd, char *text)
{
	size_t have = 0;

	while (have < FILE_BYTES) {
		ssize_t n = read(fd, text + have, FILE_BYTES - have);

		if (n < 0 && errno != EINTR)
			return weft_fail(-errno, "key file %.100s: %s", path, strerror(errno));
		if (n == 0)
			return weft_fail(-EINVAL, "key file %.100s: it ended while it was read", path);
		if (n > 0)
			have += (size_t)n;
	}
	return 0;
}

static int read_key(const char *path, struct wf_key *key)
{
	char text[FILE_BYTES];
	/* O_NONBLOCK: a fifo of that name must not stop us before it is refused. */
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int r;

	if (fd < 0 && errno == ELOOP)
		return weft_fail(-EACCES, "key file %.100s: a symbolic link", path);
	if (fd < 0)
		return weft_fail(-errno, "key file %.100s: %s", path, strerror(errno));
	r = check(path, fd);
	if (r == 0)
		r = read_all(path, fd, text);
	if (r == 0)
		r = parse(path, text, key);
	explicit_bzero(text, sizeof(text));
	close(fd);
	return r;
}

int wf_key_read(const char *path, struct wf_key *ret_key)
{
	struct wf_key key;
	int cancel, r;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	r = read_key(path, &key);
	pthread_setcancelstate(cancel, NULL);
	if (r == 0)
		*ret_key = key;
	wf_key_wipe(&key);
	return r;
}

void wf_key_wipe(struct wf_key *key)
{
	explicit_bzero(key, sizeof(*key));
}
