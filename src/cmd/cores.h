/* cores.h - the CPUs this process may use: which share a core, a NUMA node, a socket.
 *
 * Told by hwloc if it is on this machine (it is loaded, and knows of kernels that tell it wrong), else by /sys.
 */
#ifndef CORES_H
#define CORES_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

struct cores {
	unsigned count;                 /* CPUs */
	struct cpu {
		unsigned cpu;
		unsigned core;          /* the first CPU of its core: those with the same are hardware threads of one */
		unsigned numa, socket;  /* as the kernel numbers them; 0 where it does not */
	} cpus[CPU_SETSIZE];            /* those of a socket side by side, therein those of a node, therein those of a core */
	char by[32];                    /* who told it */
};

/* 0; -ENOSYS: the kernel does not say what this process may use, or it has more CPUs than a cpu_set_t; @words say so. */
int cores_read(struct cores *ret_cores, char *words, size_t n);
int cores_plain(struct cores *ret_cores, char *words, size_t n);       /* by /sys in any case */

/* How many CPUs, cores, nodes and sockets; of each only what has a CPU in @c. */
struct cores_sum {
	unsigned cpus, cores, nodes, sockets;
};
struct cores_sum cores_count(const struct cores *c);

void cores_sort(struct cores *c);

/* By hwloc, of those CPUs; false: it is not there, or does not know them all. */
bool cores_hwloc(const cpu_set_t *may, struct cores *ret_cores);

/* "0-3,8": as the kernel writes sets of CPUs. What is beyond a cpu_set_t is left out; false: that was none, and the set is empty. */
bool cpulist_parse(const char *text, cpu_set_t *ret_set);
int cpulist_print(const cpu_set_t *set, char *ret_text, size_t n);      /* the length, as snprintf does */

/* The numbers of the NUMA nodes that @set has CPUs of; empty where the kernel knows of none. */
void cores_nodes(const cpu_set_t *set, cpu_set_t *ret_nodes);

#endif
