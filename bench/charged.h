/* charged.h - the memory this process is charged with.
 *
 * Pages that were reserved in a memfd and not touched yet are in no resident set; they count as what the
 * file holds. It is found by its number in any table that names it: this process's mappings (root only) and
 * descriptors, and those of its parent, which may keep them for it.
 */
#ifndef BENCH_CHARGED_H
#define BENCH_CHARGED_H
#include "measure.h"
#include <dirent.h>
#include <sys/stat.h>

/* One figure in KiB of a file in /proc, in bytes. */
static inline double proc_bytes(const char *path, const char *field)
{
	FILE *f = fopen(path, "r");
	char line[256];
	unsigned long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, field, strlen(field)))
			kib = strtoul(line + strlen(field), NULL, 10);
	if (f)
		fclose(f);
	return (double)kib * 1024;
}

static inline double status_bytes(const char *field)
{
	return proc_bytes("/proc/self/status", field);
}

/* What memfd number @inode holds, as the files named in @folder tell; negative: none of them is it. */
static inline double memfd_bytes(const char *folder, unsigned long inode)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	double found = -1;

	while (d && found < 0 && (e = readdir(d))) {
		char path[400], target[16] = "";
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		if (readlink(path, target, sizeof(target) - 1) > 0 && !strncmp(target, "/memfd:", 7) &&
		    !stat(path, &st) && st.st_ino == inode)
			found = (double)st.st_blocks * 512;
	}
	if (d)
		closedir(d);
	return found;
}

static inline double memfd_find(unsigned long inode)
{
	char parents[40];
	const char *folder[] = { "/proc/self/map_files", "/proc/self/fd", parents };
	double found = -1;

	snprintf(parents, sizeof(parents), "/proc/%ld/fd", (long)getppid());
	for (size_t i = 0; i < COUNT(folder) && found < 0; i++)
		found = memfd_bytes(folder[i], inode);
	if (found < 0)
		die("cannot tell how much memory memfd %lu holds", inode);
	return found;
}

/* All that the memfds mapped here hold. */
static inline double shared_bytes(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long inode, seen[256];
	size_t known = 0;
	char line[512];
	double sum = 0;

	while (f && fgets(line, sizeof(line), f)) {
		size_t i = 0;

		if (!strstr(line, " /memfd:") || sscanf(line, "%*s %*s %*s %*s %lu", &inode) != 1)
			continue;
		while (i < known && seen[i] != inode)
			i++;
		if (i < known)
			continue;
		if (known == COUNT(seen))
			die("more than %zu memfds are mapped", COUNT(seen));
		seen[known++] = inode;
		sum += memfd_find(inode);
	}
	if (f)
		fclose(f);
	return sum;
}

/* Without files: what this process has of its own or shares with others of its job. */
static inline double private_bytes(void)
{
	double touched = status_bytes("RssShmem:"), held = shared_bytes();

	return status_bytes("RssAnon:") + (touched > held ? touched : held);
}

#endif
