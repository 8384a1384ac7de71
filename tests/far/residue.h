/* residue.h - what a job must not leave behind: processes, descriptors and mappings of weft's memory.
 *
 *     struct residue before = residue_take();
 *     ... a job runs, every process of it with NAME=VALUE in its environment ...
 *     residue_check(&before, "NAME=VALUE");
 *
 * A process is found by its environment, as it was when the program was started; nothing else of the machine is looked
 * at, so that other jobs may run beside. What shares memory and is no process (a descriptor under way in a socket) ends
 * with the last process that has the socket.
 */
#ifndef RESIDUE_H
#define RESIDUE_H
#include "../proc.h"
#include "../test.h"

enum { RESIDUE_MOST = 64 };

struct residue {
	int descriptors;                /* open in this process */
	int mappings;                   /* of weft's memory in this process */
	int children;                   /* of this process, ended ones too */
};

static inline int residue_count_children(void)
{
	char path[64], text[4096];
	int n = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	if (proc_read(path, text, sizeof(text)) < 0)
		return 0;               /* a kernel without that file */
	for (char *s = text; *s; s++)
		n += *s == ' ';
	return n;
}

static inline struct residue residue_take(void)
{
	return (struct residue){ proc_descriptors(), proc_mappings(), residue_count_children() };
}

/* Nothing is there that was not there before. A process that was killed may take a moment to vanish: 20 s. */
static inline void residue_check(const struct residue *before, const char *setting)
{
	pid_t left[RESIDUE_MOST];
	struct residue now;
	int n;

	for (int i = 0; (n = proc_started_with(setting, left, RESIDUE_MOST)) > 0 && i < 2000; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	for (int i = 0; i < n && i < RESIDUE_MOST; i++)
		printf("# left behind: process %d\n", left[i]);
	CHECK_EQ(n, 0);
	now = residue_take();
	CHECK_EQ(now.descriptors, before->descriptors);
	CHECK_EQ(now.mappings, before->mappings);
	CHECK_EQ(now.children, before->children);
}
#endif
