/* hostlist.h - the hosts of a job, and which of its processes is on which.
 *
 *   --hosts a:4,b,[fd00::1]:2       with commas: names, each with its slots; none said: one
 *
 *   # a hostfile: one host per line, in any of these spellings
 *   node1
 *   node2:4
 *   node3 slots=4                   also count=, cpus=; blanks around = are fine
 *   [fd00::1]:2 address=fd00::1     where its processes listen, if that is not what the name says
 *   node4 address=10.0.0.4+10.1.0.4 on two networks: all hosts name the same ones, in the same order
 *
 * A host that is named again gets the slots of both. A name ends up as an argument of other programs: letters, digits and ._-
 * (in brackets :% too), not beginning with a dash, and nothing else.
 */
#ifndef HOSTLIST_H
#define HOSTLIST_H

#include <stdbool.h>
#include <stddef.h>

#define HOSTLIST_HOSTS 256u
#define HOSTLIST_SLOTS 4096u            /* of a host */
#define HOSTLIST_LINE 4096u             /* bytes of one */
#define HOSTLIST_FILE (1u << 20)        /* bytes of a hostfile */

struct host {
	char name[256];                 /* without brackets */
	char address[96];               /* "": not said, and the name is no address itself; one for each of several networks: wire/places.h */
	unsigned slots;                 /* 1 or more */
};

/* Zeros: none. */
struct hostlist {
	struct host *hosts;
	unsigned count;
};

/* All three: 0, and what was read has to be freed; or -EINVAL (hostlist_read also another errno): @words say where and why, in one line. */
int hostlist_parse(const char *text, size_t len, struct hostlist *ret_list, char *words, size_t n);     /* a hostfile's text */
int hostlist_read(const char *path, struct hostlist *ret_list, char *words, size_t n);                  /* a hostfile */
int hostlist_commas(const char *text, struct hostlist *ret_list, char *words, size_t n);                /* what follows --hosts */
void hostlist_free(struct hostlist *list);

unsigned hostlist_slots(const struct hostlist *list);           /* of all hosts */

enum hostlist_by {
	HOSTLIST_BY_SLOT,               /* fill a host, then the next */
	HOSTLIST_BY_NODE,               /* one to each in turn, while it has slots */
};

/* The host of each of @count processes, as an index into the list. -EINVAL: there are fewer slots and @oversubscribe is not set (with it each
 * host gets a share as large as its slots are, to the process), or more processes than a job has; @words say which. */
int hostlist_lay(const struct hostlist *list, unsigned count, enum hostlist_by by, bool oversubscribe, unsigned *ret_hosts, char *words, size_t n);

#endif
