/* outside.c - see outside.h. */
#include "port/outside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <weft/base.h>

#include "mem/space.h"
#include "net/local/peer.h"
#include "peer/remote.h"
#include "port/port.h"
#include "port/way.h"

#define BOARD_MAP "/memfd:weft-board"

/* The beginning of a board, the same in every version. */
struct title {
	uint64_t magic;
	uint32_t layout, process;
	char version[32];
	uint32_t strong;
	uint64_t roots[8];
};
_Static_assert(offsetof(struct title, roots) == offsetof(struct wf_board, roots) &&
	       offsetof(struct title, version) == offsetof(struct wf_board, version), "as on the board");

bool wf_outside_read(void *arg, uint64_t at, void *to, size_t n)
{
	struct wf_outside *o = arg;
	struct iovec mine = { to, n }, theirs = { (void *)(uintptr_t)at, n };
	char path[32];
	ssize_t r;

	if (o->mem < 0) {
		r = process_vm_readv(o->pid, &mine, 1, &theirs, 1, 0);
		if (r >= 0 || (errno != ENOSYS && errno != EPERM))
			return r == (ssize_t)n;
		snprintf(path, sizeof(path), "/proc/%d/mem", (int)o->pid);
		o->mem = open(path, O_RDONLY | O_CLOEXEC);
		if (o->mem < 0) {
			errno = EPERM;
			return false;
		}
	}
	return at <= INT64_MAX && pread(o->mem, to, n, (off_t)at) == (ssize_t)n;
}

static int not_permitted(pid_t pid)
{
	return weft_fail(-EPERM, "process %d may not be looked at: it is another user's, or tracing is restricted (ptrace_scope)",
			 (int)pid);
}

/* Is the board that is mapped at @at the process's own? 1; 0: no; -EPROTO, -EPERM. */
static int own_board(struct wf_outside *o, uint64_t at)
{
	struct title t;

	if (!wf_outside_read(o, at, &t, sizeof(t)))
		return errno == EPERM ? not_permitted(o->pid) : 0;
	t.version[sizeof(t.version) - 1] = 0;
	if (!t.version[0])
		return 0;
	if (t.layout != WF_BOARD_LAYOUT || strcmp(t.version, WF_VERSION) != 0)
		return weft_fail(-EPROTO, "process %d runs weft %s, this is weft %s", (int)o->pid, t.version, WF_VERSION);
	if (!t.roots[0] || !wf_outside_read(o, t.roots[0], &o->roots, sizeof(o->roots)) || o->roots.magic != WF_ROOTS_MAGIC)
		return 0;
	if (o->roots.bytes != sizeof(o->roots) || o->roots.port_bytes != sizeof(struct weft_port) ||
	    o->roots.req_bytes != sizeof(struct weft_req) || o->roots.way_bytes != sizeof(struct wf_way) ||
	    o->roots.peer_bytes != sizeof(struct wf_peer) || o->roots.chunk_bytes != sizeof(struct wf_chunk) ||
	    o->roots.remote_bytes != sizeof(struct wf_remote))
		return weft_fail(-EPROTO, "process %d runs another build of weft %s than this", (int)o->pid, t.version);
	return o->roots.board == at;
}

/* Finds the process's board among what it has mapped, and with it the roots. */
static int find_roots(struct wf_outside *o)
{
	char line[512];
	FILE *maps;
	int r = 0, other = 0;

	snprintf(line, sizeof(line), "/proc/%d/maps", (int)o->pid);
	maps = fopen(line, "re");
	if (!maps)
		return errno == ENOENT || errno == ESRCH ? weft_fail(-ESRCH, "there is no process %d", (int)o->pid) :
		       errno == EACCES || errno == EPERM ? not_permitted(o->pid) :
							   weft_fail(-errno, "%s: %s", line, strerror(errno));
	while (r <= 0 && fgets(line, sizeof(line), maps)) {
		unsigned long long from, offset;

		if (!strstr(line, BOARD_MAP) || sscanf(line, "%llx-%*x %*s %llx", &from, &offset) != 2 || offset)
			continue;
		r = own_board(o, from);
		if (r == -EPERM)
			break;
		other = r < 0 ? r : other;
	}
	if (ferror(maps) && r <= 0 && !other)           /* says so when it is read, not when it is opened */
		r = not_permitted(o->pid);
	fclose(maps);
	if (r == 1)
		return 0;
	if (r < 0 || other)
		return r < 0 ? r : other;
	return weft_fail(-ENOENT, "process %d does not use weft now", (int)o->pid);
}

int wf_outside_open(struct wf_outside *o, pid_t pid)
{
	int r;

	if (pid <= 0)
		return weft_fail(-ESRCH, "there is no process %d", (int)pid);
	memset(o, 0, sizeof(*o));
	o->pid = pid;
	o->mem = -1;
	r = find_roots(o);
	if (r < 0)
		wf_outside_close(o);
	return r;
}

void wf_outside_close(struct wf_outside *o)
{
	if (o->mem >= 0)
		close(o->mem);
	o->mem = -1;
}
