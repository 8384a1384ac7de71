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
#include <dirent.h>
#include <fcntl.h>
#include "../test.h"

enum { RESIDUE_MOST = 64 };

struct residue {
	int descriptors;                /* open in this process */
	int mappings;                   /* of weft's memory in this process */
	int children;                   /* of this process, ended ones too */
};

/* The beginning of a file of /proc, as much as fits; how much, or -1. It is gone when its process is. */
static inline ssize_t residue_read(const char *path, char *text, size_t n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = 0, r = 0;

	if (fd < 0)
		return -1;
	while ((size_t)len < n - 1 && (r = read(fd, text + len, n - 1 - (size_t)len)) > 0)
		len += r;
	close(fd);
	text[len] = 0;
	return r < 0 ? -1 : len;
}

static inline int residue_count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	MUST(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static inline int residue_count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[1024];
	int n = 0;

	MUST(maps);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, "memfd:weft") != NULL;
	fclose(maps);
	return n;
}

static inline int residue_count_children(void)
{
	char path[64], text[4096];
	int n = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	if (residue_read(path, text, sizeof(text)) < 0)
		return 0;               /* a kernel without that file */
	for (char *s = text; *s; s++)
		n += *s == ' ';
	return n;
}

static inline struct residue residue_take(void)
{
	return (struct residue){ residue_count_fds(), residue_count_mappings(), residue_count_children() };
}

/* Processes that were started with @setting ("NAME=VALUE") in their environment, this one excepted; how many, the first of
 * them in @ret_pids. */
static inline int residue_processes(const char *setting, pid_t *ret_pids, int most)
{
	static char text[1 << 17];
	size_t want = strlen(setting) + 1;
	struct dirent *e;
	DIR *dir = opendir("/proc");
	int n = 0;

	MUST(dir);
	while ((e = readdir(dir)) != NULL) {
		pid_t pid = (pid_t)atol(e->d_name);
		char path[64];
		ssize_t len;

		if (pid <= 0 || pid == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%d/environ", pid);
		len = residue_read(path, text, sizeof(text));
		for (char *s = text; len > 0 && s < text + len; s += strlen(s) + 1)
			if (strlen(s) + 1 == want && !memcmp(s, setting, want)) {
				if (n < most)
					ret_pids[n] = pid;
				n++;
				break;
			}
	}
	closedir(dir);
	return n;
}

/* Nothing is there that was not there before. A process that was killed may take a moment to vanish: 2 s. */
static inline void residue_check(const struct residue *before, const char *setting)
{
	pid_t left[RESIDUE_MOST];
	struct residue now;
	int n;

	for (int i = 0; (n = residue_processes(setting, left, RESIDUE_MOST)) > 0 && i < 200; i++)
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
