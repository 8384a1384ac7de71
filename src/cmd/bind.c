/* bind.c - see bind.h. */
#include "bind.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cores.h"

bool bind_read(const char *text, enum bind *ret_how)
{
	static const char *const names[] = { [BIND_NONE] = "none", [BIND_CORE] = "core", [BIND_NUMA] = "numa", [BIND_SOCKET] = "socket" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(text, names[i])) {
			*ret_how = (enum bind)i;
			return true;
		}
	return false;
}

/* Where in the table each core begins, and its end; how many there are. */
static unsigned cores_begin(const struct cores *c, unsigned ret_begins[CPU_SETSIZE + 1])
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->count; i++)
		if (i == 0 || c->cpus[i].core != c->cpus[i - 1].core)
			ret_begins[n++] = i;
	ret_begins[n] = c->count;
	return n;
}

static bool belongs(const struct cpu *cpu, const struct cpu *to, enum bind how)
{
	return how == BIND_NONE || (how == BIND_NUMA ? cpu->numa == to->numa : cpu->socket == to->socket);
}

int bind_share(const struct cores *c, enum bind how, unsigned local_count, cpu_set_t *ret_sets, char *words, size_t n)
{
	unsigned begins[CPU_SETSIZE + 1], cores = cores_begin(c, begins);

	if (!cores) {
		snprintf(words, n, "there is no CPU to bind to");
		return -EINVAL;
	}
	if (how == BIND_CORE && local_count > cores) {
		snprintf(words, n, "--bind core: %u processes on a host, and %u core%s to share out", local_count, cores, cores == 1 ? "" : "s");
		return -EINVAL;
	}
	/* Every process has its place among the cores: with as many cores as possible between it and the next. A node or socket with few
	 * cores thus gets few processes. */
	for (unsigned i = 0; i < local_count; i++) {
		unsigned first = begins[(uint64_t)i * cores / local_count], last = begins[(uint64_t)(i + 1) * cores / local_count];

		CPU_ZERO(&ret_sets[i]);
		for (unsigned k = 0; k < c->count; k++)
			if (how == BIND_CORE ? k >= first && k < last : belongs(&c->cpus[k], &c->cpus[first], how))
				CPU_SET(c->cpus[k].cpu, &ret_sets[i]);
	}
	return 0;
}

int bind_plan(enum bind how, unsigned local_count, cpu_set_t *ret_sets, char *words, size_t n)
{
	static struct cores c;
	int r;

	/* Nobody is kept waiting for hwloc who does not want to know. */
	r = how == BIND_NONE ? cores_plain(&c, words, n) : cores_read(&c, words, n);
	return r < 0 ? r : bind_share(&c, how, local_count, ret_sets, words, n);
}

int bind_line(unsigned rank, const char *host, const cpu_set_t *set, char *ret_text, size_t n)
{
	char cpus[128], nodes[64];
	cpu_set_t numa;

	cores_nodes(set, &numa);
	if (cpulist_print(set, cpus, sizeof(cpus)) >= (int)sizeof(cpus))
		snprintf(cpus, sizeof(cpus), "%d of them", CPU_COUNT(set));
	if (cpulist_print(&numa, nodes, sizeof(nodes)) >= (int)sizeof(nodes))
		snprintf(nodes, sizeof(nodes), "%d of them", CPU_COUNT(&numa));
	return snprintf(ret_text, n, "rank %-4u %-16s cpus %-11s numa %s", rank, host, cpus, *nodes ? nodes : "-");
}
