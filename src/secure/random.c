/* random.c - random bytes, of the kernel unless told otherwise. */
#include "secure/random.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>
#include <weft/base.h>

int wf_random_fill(const struct wf_random *from, void *ret, size_t n)
{
	char *p = ret;

	if (from->fill)
		return from->fill(from->user, ret, n);
	while (n) {
		ssize_t got = syscall(SYS_getrandom, p, n, 0);  /* not getrandom(3): that is a cancellation point */

		if (got < 0 && errno != EINTR)
			return weft_fail(-errno, "the kernel gives no random bytes");
		if (got > 0) {
			p += got;
			n -= (size_t)got;
		}
	}
	return 0;
}
