/* machine.c - what weft finds on this machine: see machine.h. Everything is looked at, nothing changed. */
#include "machine.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fence.h"
#include "cores.h"

/* What stands behind the first "@name :" of a file such as /proc/cpuinfo; false: nothing. */
static bool field(const char *path, const char *name, char *ret_text, size_t n)
{
	FILE *file = fopen(path, "re");
	char line[512];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':');

		if (!colon || strncmp(line, name, strlen(name)) || strspn(line + strlen(name), " \t") != (size_t)(colon - line) - strlen(name))
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		colon[strcspn(colon, "\n")] = 0;
		snprintf(ret_text, n, "%s", colon);
		found = true;
	}
	if (file)
		fclose(file);
	return found;
}

static long number(const char *path, const char *name)
{
	char text[64];

	return field(path, name, text, sizeof(text)) ? strtol(text, NULL, 10) : 0;
}

static void cpu_print(void)
{
	char text[128], part[32];

	if (field("/proc/cpuinfo", "model name", text, sizeof(text)) || field("/proc/cpuinfo", "Model", text, sizeof(text)))
		printf("cpu         %s\n", text);
	else if (field("/proc/cpuinfo", "CPU implementer", text, sizeof(text)) && field("/proc/cpuinfo", "CPU part", part, sizeof(part)))
		printf("cpu         implementer %s, part %s\n", text, part);
}

static void cores_print(void)
{
	static struct cores c;
	struct cores_sum sum;
	char words[128];
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	if (cores_read(&c, words, sizeof(words)) < 0) {
		printf("cores       %s\n", words);
		return;
	}
	sum = cores_count(&c);
	printf("cores       %u with %u hardware threads, NUMA nodes: %u, sockets: %u (told by %s)\n", sum.cores, sum.cpus, sum.nodes, sum.sockets, c.by);
	if (online > (long)sum.cpus)
		printf("            those are what this process may use; there are %ld hardware threads\n", online);
}

/* Which of "always [madvise] never" it is. */
static void chosen(const char *path, char *ret_word, size_t n)
{
	FILE *file = fopen(path, "re");
	char text[128] = "", *open;

	if (file) {
		if (!fgets(text, sizeof(text), file))
			*text = 0;
		fclose(file);
	}
	open = strchr(text, '[');
	if (open)
		snprintf(ret_word, n, "%.*s", (int)strcspn(open + 1, "]\n"), open + 1);
	else
		snprintf(ret_word, n, "not there");
}

static void pages_print(void)
{
	static const char meminfo[] = "/proc/meminfo";
	char own[32], shared[32];

	chosen("/sys/kernel/mm/transparent_hugepage/enabled", own, sizeof(own));
	chosen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", shared, sizeof(shared));
	printf("pages       %ld bytes; huge ones of %ld KiB: %ld, %ld of them free; transparent ones: %s, in shared memory: %s\n", sysconf(_SC_PAGESIZE),
	       number(meminfo, "Hugepagesize"), number(meminfo, "HugePages_Total"), number(meminfo, "HugePages_Free"), own, shared);
}

static void membarrier_print(void)
{
	wf_fence_init(true);
	wf_fence_init_global();
	printf("membarrier  %s\n", !wf_fence_free ? "refused" : wf_fence_global ? "granted, towards other processes too" : "granted, within a process");
}

static void library_print(const char *label, const char *name)
{
	void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	struct link_map *map = NULL;

	if (library && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map)
		printf("%-11s %s\n", label, map->l_name);
	else
		printf("%-11s %s\n", label, library ? name : "not there");
}

void machine_print(void)
{
	const uint16_t one = 1;
	struct utsname u;

	if (uname(&u) == 0)
		printf("system      %s %s on %s, %s-endian, pointers of %zu bits\n", u.sysname, u.release, u.machine, *(const char *)&one ? "little" : "big",
		       8 * sizeof(void *));
	cpu_print();
	cores_print();
	pages_print();
	membarrier_print();
	library_print("libcrypto", "libcrypto.so.3");
	library_print("libhwloc", "libhwloc.so.15");
	library_print("libfabric", "libfabric.so.1");
	library_print("libpmix", "libpmix.so.2");
}
