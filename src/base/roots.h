/* roots.h - where in this process's memory a reader from outside finds what goes on (port/state_far.c).
 *
 * Set at init, then constant. The board says where this struct is; it says whose board it is in return, as other processes' boards are
 * mapped here, too. Sizes tell a build that lays its structs out differently under the same version.
 */
#ifndef WF_BASE_ROOTS_H
#define WF_BASE_ROOTS_H

#include <stdint.h>

#define WF_ROOTS_MAGIC UINT64_C(0x73746f6f72746677)     /* "wftroots" */

struct wf_roots {
	uint64_t magic;
	uint32_t bytes;                         /* of this struct */
	uint32_t port_bytes, req_bytes, way_bytes, peer_bytes, chunk_bytes, remote_bytes;
	uint64_t process;                       /* id */
	uint64_t board;
	uint64_t port_chunks, ports;            /* addresses: of the array of chunks of ports; of how many there are */
	uint64_t ports_per_chunk, ways_most;
	uint64_t ways, peers, budget;           /* addresses: of the arrays of pointers; of the struct */
	uint64_t processes;
	uint64_t buffers;                       /* address: of the array of chunks of buffers, if others may have some; else 0 */
	/* of a job on several hosts, set when it has been joined; else 0 */
	uint64_t whereabouts;                   /* address: of an array of bytes, WF_OFF_HOST for a process of another host */
	uint64_t trunks, trunks_most;           /* address: of an array of pointers, by process, then those of processes of other jobs as they came; how many */
	uint32_t board_fd, event_fd;            /* descriptors + 1: of its board; what wakes its listener */
	uint64_t trunk_remote, trunk_process;   /* where in what they point to its struct wf_remote is, and its number, 32 bits */
	uint64_t strangers;                     /* address: of how many were refused */
};

extern struct wf_roots wf_roots;

#endif
