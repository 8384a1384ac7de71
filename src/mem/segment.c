/* segment.c - memfds: making, reserving, mapping and checking them. See segment.h.
 *
 * What can be said of a stranger's descriptor before its memory is trusted not to vanish: it is a file of the
 * kernel's own tmpfs (not of huge pages, which may be lacking when a page is first touched) and sealed against
 * shrinking. Pages its maker has not reserved, or has given back, read as zeroes.
 */
#include "mem/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <weft/base.h>

#include "mem/atlas.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define FIRST_FD 3                      /* 0, 1 and 2 are the program's to write to, also when it has closed them */

struct wf_segments wf_segments;
static bool huge;                       /* set once, by wf_segment_huge */

void wf_segments_share(uint32_t process, const struct wf_segment_hooks *hooks)
{
	wf_segments.hooks = *hooks;
	wf_segments.process = process;
	wf_atlas_begin(process);
}

bool wf_segments_shared(void)
{
	return wf_segments.process != 0;
}

static int memfd_new(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL), high;

	if (fd < 0 && errno == EINVAL)          /* a kernel that does not know the last flag */
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || fd >= FIRST_FD)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
	wf_segment_close(fd);
	return high;
}

/* A size beyond the limit of files would not only fail: it would be a signal. */
static bool size_allowed(size_t bytes)
{
	struct rlimit most;

	return getrlimit(RLIMIT_FSIZE, &most) < 0 || most.rlim_cur == RLIM_INFINITY || bytes <= most.rlim_cur;
}

int wf_segment_make(const char *name, size_t bytes)
{
	int fd, err;

	if (!size_allowed(bytes))
		return weft_fail(-EFBIG, "a segment of %zu bytes: the limit of a file's size is lower (ulimit -f)", bytes);
	fd = memfd_new(name);
	if (fd < 0)
		return weft_fail(-errno, "memfd_create: %s", strerror(errno));
	if (ftruncate(fd, (off_t)bytes) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	err = errno;
	wf_segment_close(fd);
	return weft_fail(-err, "a segment of %zu bytes: %s", bytes, strerror(err));
}

/* fallocate, as no cancellation point. A signal makes it undo what it has done so far: after the first they are held
 * off, or a storm of them would let it begin anew for ever. */
static int file_allocate(int fd, int mode, size_t from, size_t bytes)
{
	sigset_t all, old;
	int cancel, r;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	r = fallocate(fd, mode, (off_t)from, (off_t)bytes) < 0 ? -errno : 0;
	if (r == -EINTR) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		do
			r = fallocate(fd, mode, (off_t)from, (off_t)bytes) < 0 ? -errno : 0;
		while (r == -EINTR);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	pthread_setcancelstate(cancel, NULL);
	return r;
}

int wf_segment_reserve(int fd, size_t from, size_t bytes)
{
	return file_allocate(fd, 0, from, bytes);
}

void wf_segment_drop(int fd, size_t from, size_t bytes)
{
	(void)file_allocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, bytes);
}

void wf_segment_close(int fd)
{
	syscall(SYS_close, fd);         /* close(2) would be a cancellation point */
}

void *wf_segment_map_part(int fd, size_t from, size_t bytes, void *at, int prot)
{
	void *mem = mmap(at, bytes, prot, MAP_SHARED | (at ? MAP_FIXED : 0), fd, (off_t)from);

	if (mem == MAP_FAILED)
		return NULL;
	(void)madvise(mem, bytes, MADV_DONTDUMP);
	/* A child that kept the mapping could write what it knows nothing about. */
	if (madvise(mem, bytes, MADV_DONTFORK) == 0)
		return mem;
	if (!at || mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		munmap(mem, bytes);
	return NULL;
}

/* Whether shared memory gets huge pages where asked for: those come with a fault only, not with fallocate. */
static void huge_look(void)
{
	char text[128];
	long n, fd = syscall(SYS_openat, AT_FDCWD, "/sys/kernel/mm/transparent_hugepage/shmem_enabled", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	n = syscall(SYS_read, fd, text, sizeof(text) - 1);
	syscall(SYS_close, fd);
	text[n > 0 ? n : 0] = 0;
	huge = strstr(text, "[advise]") != NULL;
}

bool wf_segment_huge(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, huge_look);
	return huge;
}

void *wf_segment_map(int fd, size_t bytes, void *at)
{
	return wf_segment_map_part(fd, 0, bytes, at, PROT_READ | PROT_WRITE);
}

int64_t wf_segment_check(int fd, size_t least)
{
	struct statfs fs;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
		return weft_fail(-EBADMSG, "a descriptor that is no segment");
	if (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE) || (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR)
		return weft_fail(-EBADMSG, "a segment that cannot be written");
	if (st.st_size < 0 || (uint64_t)st.st_size < least)
		return weft_fail(-EBADMSG, "a segment of %lld bytes, of %zu at least", (long long)st.st_size, least);
	return st.st_size;
}
