/* bind.h - on which CPUs the processes of one host run.
 *
 *   none     wherever the command itself may
 *   core     each has cores of its own, all with their hardware threads, and all have as many as the others (or one more)
 *   numa     each has all cores of the NUMA node it falls to; those of a node share them
 *   socket   likewise, of a socket
 *
 * None is what nobody has asked for: a process has as many threads as it likes, and weft's waiters give their core away when another wants it.
 * What the command itself may not use is not given out.
 */
#ifndef BIND_H
#define BIND_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

enum bind { BIND_NONE, BIND_CORE, BIND_NUMA, BIND_SOCKET };

/* What --bind names; false: nothing is called that. */
bool bind_read(const char *text, enum bind *ret_how);

/* The CPUs of each of @local_count processes, in the order of their ranks. -EINVAL: more processes than cores, for core; -ENOSYS: the kernel does not
 * tell which CPUs there are, or they are more than a cpu_set_t holds; @words say so in one line. With none they get what this process may use. */
int bind_plan(enum bind how, unsigned local_count, cpu_set_t *ret_sets, char *words, size_t n);

/* The same over CPUs that the caller names. */
struct cores;
int bind_share(const struct cores *cores, enum bind how, unsigned local_count, cpu_set_t *ret_sets, char *words, size_t n);

/* A line of the map, without newline: "rank 3    node1            cpus 4-7         numa 0". The length, as snprintf does. */
int bind_line(unsigned rank, const char *host, const cpu_set_t *set, char *ret_text, size_t n);

#endif
