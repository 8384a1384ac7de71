/* deny.c - deny CALL[,CALL...] ERRNO PROGRAM [ARGUMENTS]: runs it where the kernel answers those calls so (seccomp). */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned number;
} known[] = {
	{ "membarrier", SYS_membarrier }, { "memfd_create", SYS_memfd_create }, { "process_vm_readv", SYS_process_vm_readv },
	{ "pidfd_open", SYS_pidfd_open }, { "madvise", SYS_madvise }, { "eventfd2", SYS_eventfd2 }, { "fallocate", SYS_fallocate },
	{ "sched_yield", SYS_sched_yield },
};

static int number_of(const char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(known[i].name, name))
			return (int)known[i].number;
	return -1;
}

int main(int argc, char **argv)
{
	struct sock_filter code[64] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)) };
	struct sock_fprog program = { .filter = code, .len = 1 };
	char *rest = NULL;

	if (argc < 4)
		return 2;
	for (char *name = strtok_r(argv[1], ",", &rest); name && program.len < 60; name = strtok_r(NULL, ",", &rest)) {
		int n = number_of(name);

		if (n < 0)
			return 2;
		code[program.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)n, 0, 1);
		code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)atoi(argv[2]) & 0xffff));
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
		fprintf(stderr, "deny: %s\n", strerror(errno));
		return 77;
	}
	execv(argv[3], argv + 3);
	return 127;
}
