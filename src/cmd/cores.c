/* cores.c - see cores.h. */
#include "cores.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYS "/sys/devices/system/"

/* A digit at @text: the number there, at most CPU_SETSIZE; *@text goes on behind it. */
static unsigned number_take(const char **text)
{
	unsigned v = 0;

	for (; **text >= '0' && **text <= '9'; (*text)++)
		v = v >= CPU_SETSIZE ? CPU_SETSIZE : 10 * v + (unsigned)(**text - '0');
	return v < CPU_SETSIZE ? v : CPU_SETSIZE;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool cpulist_parse(const char *text, cpu_set_t *ret_set)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_ZERO(ret_set);
	while (is_digit(*text)) {
		unsigned first = number_take(&text), last = first;

		if (*text == '-') {
			text++;
			if (!is_digit(*text))
				return false;
			last = number_take(&text);
		}
		for (; first <= last && first < CPU_SETSIZE; first++)
			CPU_SET(first, &set);
		if (*text != ',')
			break;
		text++;
		if (!is_digit(*text))
			return false;
	}
	if (*text && *text != '\n')
		return false;
	*ret_set = set;
	return true;
}

int cpulist_print(const cpu_set_t *set, char *ret_text, size_t n)
{
	size_t used = 0;

	if (n)
		*ret_text = 0;
	for (unsigned i = 0; i < CPU_SETSIZE; i++) {
		unsigned last = i;

		if (!CPU_ISSET(i, set))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
			last++;
		used += (size_t)snprintf(used < n ? ret_text + used : NULL, used < n ? n - used : 0, last > i ? "%s%u-%u" : "%s%u",
					 used ? "," : "", i, last);
		i = last;
	}
	return (int)used;
}

/* What stands in a file of /sys; false: it is not there. */
static bool file_read(const char *path, char *ret_text, size_t n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd >= 0 ? read(fd, ret_text, n - 1) : -1;

	if (fd >= 0)
		close(fd);
	ret_text[len > 0 ? len : 0] = 0;
	return len > 0;
}

static bool set_read(const char *path, cpu_set_t *ret_set)
{
	char text[8192];

	CPU_ZERO(ret_set);
	return file_read(path, text, sizeof(text)) && cpulist_parse(text, ret_set);
}

/* The first CPU of @set that is not less than @from; CPU_SETSIZE: there is none. */
static unsigned next_of(const cpu_set_t *set, unsigned from)
{
	while (from < CPU_SETSIZE && !CPU_ISSET(from, set))
		from++;
	return from;
}

/* The CPUs of a node. */
static bool node_read(unsigned node, cpu_set_t *ret_set)
{
	char path[80];

	snprintf(path, sizeof(path), SYS "node/node%u/cpulist", node);
	return set_read(path, ret_set);
}

void cores_nodes(const cpu_set_t *set, cpu_set_t *ret_nodes)
{
	cpu_set_t all, cpus, both;

	CPU_ZERO(ret_nodes);
	set_read(SYS "node/online", &all);
	for (unsigned i = next_of(&all, 0); i < CPU_SETSIZE; i = next_of(&all, i + 1))
		if (node_read(i, &cpus)) {
			CPU_AND(&both, &cpus, set);
			if (CPU_COUNT(&both))
				CPU_SET(i, ret_nodes);
		}
}

static void sys_read(const cpu_set_t *may, struct cores *c)
{
	cpu_set_t nodes, set;
	char path[96], text[32];

	c->count = 0;
	for (unsigned i = next_of(may, 0); i < CPU_SETSIZE; i = next_of(may, i + 1)) {
		struct cpu *cpu = &c->cpus[c->count++];

		*cpu = (struct cpu){ .cpu = i, .core = i };
		snprintf(path, sizeof(path), SYS "cpu/cpu%u/topology/thread_siblings_list", i);
		if (set_read(path, &set) && CPU_ISSET(i, &set))
			cpu->core = next_of(&set, 0);
		snprintf(path, sizeof(path), SYS "cpu/cpu%u/topology/physical_package_id", i);
		if (file_read(path, text, sizeof(text)) && is_digit(*text))
			cpu->socket = (unsigned)strtoul(text, NULL, 10);
	}
	cores_nodes(may, &nodes);
	for (unsigned node = next_of(&nodes, 0); node < CPU_SETSIZE; node = next_of(&nodes, node + 1)) {
		node_read(node, &set);
		for (unsigned i = 0; i < c->count; i++)
			if (CPU_ISSET(c->cpus[i].cpu, &set))
				c->cpus[i].numa = node;
	}
	snprintf(c->by, sizeof(c->by), "/sys");
}

static int compare(const void *a, const void *b)
{
	const struct cpu *x = a, *y = b;
	const unsigned by[][2] = { { x->socket, y->socket }, { x->numa, y->numa }, { x->core, y->core }, { x->cpu, y->cpu } };

	for (int i = 0; i < 4; i++)
		if (by[i][0] != by[i][1])
			return by[i][0] < by[i][1] ? -1 : 1;
	return 0;
}

void cores_sort(struct cores *c)
{
	qsort(c->cpus, c->count, sizeof(*c->cpus), compare);
}

static int may_read(cpu_set_t *ret_may, char *words, size_t n)
{
	if (sched_getaffinity(0, sizeof(*ret_may), ret_may) == 0)
		return 0;
	snprintf(words, n, errno == EINVAL ? "this machine has more than %d CPUs" : "the kernel does not say which of at most %d CPUs may be used", CPU_SETSIZE);
	return -ENOSYS;
}

int cores_read(struct cores *ret_cores, char *words, size_t n)
{
	cpu_set_t may;
	int r = may_read(&may, words, n);

	if (r < 0)
		return r;
	if (!cores_hwloc(&may, ret_cores))
		sys_read(&may, ret_cores);
	cores_sort(ret_cores);
	return 0;
}

int cores_plain(struct cores *ret_cores, char *words, size_t n)
{
	cpu_set_t may;
	int r = may_read(&may, words, n);

	if (r < 0)
		return r;
	sys_read(&may, ret_cores);
	cores_sort(ret_cores);
	return 0;
}

/* How many different values there are in one of the columns, which begins at @column of a row. */
static unsigned count_different(const struct cores *c, size_t column)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->count; i++) {
		bool seen = false;

		for (unsigned k = 0; k < i && !seen; k++)
			seen = !memcmp((const char *)&c->cpus[i] + column, (const char *)&c->cpus[k] + column, sizeof(unsigned));
		n += !seen;
	}
	return n;
}

struct cores_sum cores_count(const struct cores *c)
{
	return (struct cores_sum){
		.cpus = c->count,
		.cores = count_different(c, offsetof(struct cpu, core)),
		.nodes = count_different(c, offsetof(struct cpu, numa)),
		.sockets = count_different(c, offsetof(struct cpu, socket)),
	};
}
