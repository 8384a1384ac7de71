/* proc.h - what /proc tells a test of processes: files, mappings, memory, who was started with which setting.
 *
 * Of a process that is not this one anything may be gone when it is looked at: that is no failure here.
 */
#ifndef PROC_H
#define PROC_H
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* The beginning of a file, as much as fits; how much, or -1. */
static inline ssize_t proc_read(const char *path, char *text, size_t n)
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

/* How many names a directory has, "." and ".." too; -1: it cannot be read. */
static inline int proc_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	if (!dir)
		return -1;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Open in this process, and three more: to be compared with another count of it. */
static inline int proc_descriptors(void)
{
	return proc_entries("/proc/self/fd");
}

static inline int proc_threads(void)
{
	return proc_entries("/proc/self/task") - 2;
}

/* Mappings of weft's memory in this process, and their pages; -1: unknown. */
static inline int proc_mappings_of(long *ret_pages)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char line[1024];
	int n = 0;

	*ret_pages = 0;
	if (!maps)
		return -1;
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "memfd:weft") && sscanf(line, "%lx-%lx", &from, &to) == 2) {
			*ret_pages += (long)((to - from) / (unsigned long)sysconf(_SC_PAGESIZE));
			n++;
		}
	fclose(maps);
	return n;
}

static inline int proc_mappings(void)
{
	long pages;

	return proc_mappings_of(&pages);
}

/* Their pages, all together: two that lie side by side are one line or two, as it happens. */
static inline long proc_mapped(void)
{
	long pages;

	return proc_mappings_of(&pages) < 0 ? -1 : pages;
}

/* Bytes of this process in memory; 0: unknown. */
static inline size_t proc_resident(void)
{
	unsigned long all, here;
	char text[256];

	if (proc_read("/proc/self/statm", text, sizeof(text)) <= 0 || sscanf(text, "%lu %lu", &all, &here) != 2)
		return 0;
	return here * (size_t)sysconf(_SC_PAGESIZE);
}

/* Processes that were started with @setting ("NAME=VALUE") in their environment, this one excepted; how many, the first
 * @most of them in @ret_pids. */
static inline int proc_started_with(const char *setting, pid_t *ret_pids, int most)
{
	static char text[1 << 17];
	size_t want = strlen(setting) + 1;
	struct dirent *e;
	DIR *dir = opendir("/proc");
	int n = 0;

	while (dir && (e = readdir(dir)) != NULL) {
		pid_t pid = (pid_t)atol(e->d_name);
		char path[64];
		ssize_t len;

		if (pid <= 0 || pid == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%d/environ", pid);
		len = proc_read(path, text, sizeof(text));
		for (char *s = text; len > 0 && s < text + len; s += strlen(s) + 1)
			if (strlen(s) + 1 == want && !memcmp(s, setting, want)) {
				if (n < most)
					ret_pids[n] = pid;
				n++;
				break;
			}
	}
	if (dir)
		closedir(dir);
	return n;
}
#endif
