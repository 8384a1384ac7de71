/* test_call.c - a system call where it stands (base/call.h): six arguments arrive, and errors are told without errno. */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/call.h"
#include "test.h"

TEST(an_error_is_answered_and_errno_stays)
{
	errno = 4711;
	CHECK_EQ(wf_call(SYS_close, -1, 0, 0, 0, 0, 0), -EBADF);
	CHECK_EQ(wf_call(SYS_getpid, 0, 0, 0, 0, 0, 0), getpid());
	CHECK_EQ(errno, 4711);
	errno = 0;
}

TEST(all_six_arguments_arrive)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 3 * page;
	int fd = memfd_create("call", MFD_CLOEXEC);
	char *p;

	MUST(fd >= 0 && ftruncate(fd, (off_t)n) == 0 && pwrite(fd, "third", 5, (off_t)(2 * page)) == 5);
	p = (char *)wf_call(SYS_mmap, 0, (intptr_t)page, PROT_READ, MAP_SHARED, fd, (intptr_t)(2 * page));
	MUST((intptr_t)p > 0);
	CHECK_EQ(memcmp(p, "third", 5), 0);
	MUST(pwrite(fd, "again", 5, (off_t)(2 * page)) == 5);
	CHECK_EQ(memcmp(p, "again", 5), 0);     /* it is that memory, not a copy of it */
	MUST(munmap(p, page) == 0);
	close(fd);
}

TEST_MAIN
