/* hosts.h - which process is on which host, and where it listens: "10.0.0.1:2,[fd00::2]:2", processes by host, numbered from 1 on. A host on several networks has an address in each: "10.0.0.1+10.1.0.1:2". */
#ifndef WF_WIRE_HOSTS_H
#define WF_WIRE_HOSTS_H

#include <stddef.h>
#include <stdint.h>

#define WF_HOSTS_MOST 256u

struct wf_hosts_map {
	uint32_t hosts, base;
	struct wf_hosts_host {
		char address[96];       /* without brackets; several as in places.h */
		uint32_t first, count;  /* numbers of its processes */
	} host[WF_HOSTS_MOST];
};

/* 0; -EINVAL: makes no sense, and the words say where. */
int wf_hosts_parse(const char *text, uint32_t base, struct wf_hosts_map *ret_map);
uint32_t wf_hosts_count(const struct wf_hosts_map *map);                /* processes in all */

/* Of a process: "10.0.0.1:7000", as in places.h; -ESRCH: no such number; -ENAMETOOLONG. */
int wf_hosts_place(const struct wf_hosts_map *map, uint32_t process, char *ret_text, size_t n);
uint32_t wf_hosts_port(const struct wf_hosts_map *map, uint32_t process);
const char *wf_hosts_adapter(const struct wf_hosts_map *map, uint32_t process);

#endif
