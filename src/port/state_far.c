/* state_far.c - a sample of another process, read from outside.
 *
 * The process takes no part and pays nothing: its board is found in its map, the board tells where its roots are
 * (base/roots.h), and from there its private memory is read, whether it runs, sleeps, computes or is stopped. Nothing is
 * trusted: an address that cannot be read is a false answer of the kernel's, every walk has a bound, and what does not
 * fit ends it. Ports are never unmapped and count their openings, so a port that closed or was reused while it was read
 * is noticed and read again. What it queues may change meanwhile, too: then the walk sees an entry of another side or an
 * older number, and starts again a few times.
 *
 * Whoever may debug a process may read it (ptrace(2), "access mode").
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "mem/space.h"
#include "port/sample.h"
#include "port/ticket.h"
#include "port/way.h"

#define TRIES 4
#define QUEUED_MOST 100000u             /* items of one queue */
#define READERS_MOST 2048u
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

struct far {
	pid_t pid;
	int mem;                                /* /proc/PID/mem, where process_vm_readv is refused; else -1 */
	struct wf_roots roots;
	struct weft_state *s;
	struct weft_port port;                  /* the one that is looked at */
	uint64_t at;                            /* where it is */
};

static bool read_far(void *arg, uint64_t at, void *to, size_t n)
{
	struct far *f = arg;
	struct iovec mine = { to, n }, theirs = { (void *)(uintptr_t)at, n };
	char path[32];
	ssize_t r;

	if (f->mem < 0) {
		r = process_vm_readv(f->pid, &mine, 1, &theirs, 1, 0);
		if (r >= 0 || (errno != ENOSYS && errno != EPERM))
			return r == (ssize_t)n;
		snprintf(path, sizeof(path), "/proc/%d/mem", (int)f->pid);
		f->mem = open(path, O_RDONLY | O_CLOEXEC);
		if (f->mem < 0) {
			errno = EPERM;
			return false;
		}
	}
	return at <= INT64_MAX && pread(f->mem, to, n, (off_t)at) == (ssize_t)n;
}

static int not_permitted(pid_t pid)
{
	return weft_fail(-EPERM, "process %d may not be looked at: it is another user's, or tracing is restricted (ptrace_scope)",
			 (int)pid);
}

/* Is the board that is mapped at @at the process's own? 1; 0: no; -EPROTO, -EPERM. */
static int own_board(struct far *f, uint64_t at)
{
	struct title t;

	if (!read_far(f, at, &t, sizeof(t)))
		return errno == EPERM ? not_permitted(f->pid) : 0;
	t.version[sizeof(t.version) - 1] = 0;
	if (!t.version[0])
		return 0;
	if (t.layout != WF_BOARD_LAYOUT || strcmp(t.version, WF_VERSION) != 0)
		return weft_fail(-EPROTO, "process %d runs weft %s, this is weft %s", (int)f->pid, t.version, WF_VERSION);
	if (!t.roots[0] || !read_far(f, t.roots[0], &f->roots, sizeof(f->roots)) || f->roots.magic != WF_ROOTS_MAGIC)
		return 0;
	if (f->roots.bytes != sizeof(f->roots) || f->roots.port_bytes != sizeof(struct weft_port) ||
	    f->roots.req_bytes != sizeof(struct weft_req) || f->roots.way_bytes != sizeof(struct wf_way) ||
	    f->roots.peer_bytes != sizeof(struct wf_peer) || f->roots.chunk_bytes != sizeof(struct wf_chunk))
		return weft_fail(-EPROTO, "process %d runs another build of weft %s than this", (int)f->pid, t.version);
	return f->roots.board == at;
}

/* Finds the process's board among what it has mapped, and with it the roots. */
static int find_roots(struct far *f)
{
	char line[512];
	FILE *maps;
	int r = 0, other = 0;

	snprintf(line, sizeof(line), "/proc/%d/maps", (int)f->pid);
	maps = fopen(line, "re");
	if (!maps)
		return errno == ENOENT || errno == ESRCH ? weft_fail(-ESRCH, "there is no process %d", (int)f->pid) :
		       errno == EACCES || errno == EPERM ? not_permitted(f->pid) :
							   weft_fail(-errno, "%s: %s", line, strerror(errno));
	while (r <= 0 && fgets(line, sizeof(line), maps)) {
		unsigned long long from, offset;

		if (!strstr(line, BOARD_MAP) || sscanf(line, "%llx-%*x %*s %llx", &from, &offset) != 2 || offset)
			continue;
		r = own_board(f, from);
		if (r == -EPERM)
			break;
		other = r < 0 ? r : other;
	}
	if (ferror(maps) && r <= 0 && !other)           /* says so when it is read, not when it is opened */
		r = not_permitted(f->pid);
	fclose(maps);
	if (r == 1)
		return 0;
	if (r < 0 || other)
		return r < 0 ? r : other;
	return weft_fail(-ENOENT, "process %d does not use weft now", (int)f->pid);
}

static uint64_t port_address(struct far *f, uint64_t number)
{
	uint64_t chunk;

	if (!f->roots.ports_per_chunk || number >= WF_FACES ||
	    !read_far(f, f->roots.port_chunks + number / f->roots.ports_per_chunk * sizeof(chunk), &chunk, sizeof(chunk)))
		return 0;
	return chunk ? chunk + number % f->roots.ports_per_chunk * sizeof(struct weft_port) : 0;
}

/* The id of the thread that sleeps on the park word at @parker, which is on its port's face. */
static weft_id sleeper_of(struct far *f, uint64_t parker)
{
	uint64_t at = parker - f->roots.board - offsetof(struct wf_board, face);
	weft_id id = 0;

	at = port_address(f, at / sizeof(struct wf_face));
	return at && read_far(f, at + offsetof(struct weft_port, id), &id, sizeof(id)) ? id : 0;
}

/* Who sleeps until @r ends, as it was read at or from port @id. */
static void sample_awaited(struct far *f, weft_id id, bool foreign, const struct weft_req *r)
{
	uint64_t waiter = (uint64_t)(uintptr_t)atomic_load_explicit(&r->waiter, memory_order_relaxed);
	weft_id who = waiter ? sleeper_of(f, waiter) : 0;

	if (who)
		wf_sample_awaited(f->s, who, id, foreign, r);
}

/* One side of the matcher. False: it changed under the walk. */
static bool sample_side(struct far *f, weft_id id, int side)
{
	bool foreign = f->port.match && f->port.proto;
	uint64_t m = foreign ? (uint64_t)(uintptr_t)f->port.match : f->at + offsetof(struct weft_port, native);
	uint64_t head = m + offsetof(struct wf_native_match, side) + (uint64_t)(side - 1) * sizeof(struct weft_match_side) +
			offsetof(struct weft_match_side, order);
	struct weft_match_link link;
	uint64_t number = 0, at;
	union {
		struct weft_req r;
		struct wf_arrival a;
	} e;

	if (!read_far(f, head, &link, sizeof(link)))
		return true;
	for (unsigned n = 0; n < QUEUED_MOST && link.next && (uint64_t)(uintptr_t)link.next != head; n++) {
		at = (uint64_t)(uintptr_t)link.next - offsetof(struct weft_match_entry, order);
		if (!read_far(f, at, &e, side == WEFT_MATCH_WANTS ? sizeof(e.r) : sizeof(e.a)) || e.a.entry.side != side ||
		    e.a.entry.number <= number)
			return false;
		number = e.a.entry.number;
		wf_sample_queued(f->s, id, side, foreign, &e.a, side == WEFT_MATCH_WANTS ? e.r.mem.len : 0);
		if (side == WEFT_MATCH_WANTS)
			sample_awaited(f, id, foreign, &e.r);
		link = e.a.entry.order;
	}
	return true;
}

static void sample_cell(struct far *f, weft_id id, const struct wf_cell *c)
{
	struct wf_announcement a;
	uint64_t len = c->len;

	if (c->kind == WF_GROWN)
		return;
	if (c->kind == WF_ANNOUNCED)            /* its length is with its sender */
		len = 0;
	if (c->kind == WF_FAR && !f->port.proto) {
		memcpy(&a, c->body, sizeof(a));
		len = a.len;
	}
	wf_sample_add(f->s, WEFT_STATE_QUEUED, id, c->src, f->port.proto ? 0 : c->tag, len, "in the mailbox");
}

/* What has come and nobody has looked at: the rings, its own and one per process that sends here. */
static void sample_rings(struct far *f, weft_id id)
{
	struct wf_reader r = f->port.ring.reader;
	struct wf_cell c;

	for (unsigned n = 0; n < READERS_MOST; n++) {
		uint32_t pos = atomic_load_explicit(&r.pos, memory_order_relaxed), mask = atomic_load_explicit(&r.mask, memory_order_relaxed);
		uint64_t cells = (uint64_t)(uintptr_t)atomic_load_explicit(&r.cells, memory_order_relaxed), next;

		for (uint32_t i = 0; cells && i <= mask && i < WF_CELLS_BIG; i++, pos++) {
			if (!read_far(f, cells + (pos & mask) * sizeof(c), &c, sizeof(c)) ||
			    atomic_load_explicit(&c.seq, memory_order_relaxed) != pos + 1)
				break;
			sample_cell(f, id, &c);
		}
		next = (uint64_t)(uintptr_t)atomic_load_explicit(&r.next, memory_order_relaxed);
		if (!next || !read_far(f, next, &r, sizeof(r)))
			break;
	}
}

/* The list whose head is at @head: elements' addresses one by one, 0 at its end. */
static uint64_t follow(struct far *f, uint64_t head, uint64_t at)
{
	struct wf_node n;

	if (!read_far(f, at, &n, sizeof(n)) || (uint64_t)(uintptr_t)n.next == head)
		return 0;
	return (uint64_t)(uintptr_t)n.next;
}

static void sample_sends(struct far *f, weft_id id)
{
	uint64_t head = f->at + offsetof(struct weft_port, sends), at = head;
	struct wf_head h;
	struct weft_req r;

	for (unsigned n = 0; n < QUEUED_MOST && (at = follow(f, head, at)) != 0; n++) {
		if (!read_far(f, at - offsetof(struct weft_req, mine), &r, sizeof(r)) || r.what != WF_SEND)
			return;
		memcpy(&h, r.a.entry.head, sizeof(h));
		wf_sample_add(f->s, WEFT_STATE_QUEUED, id, r.st.from, f->port.proto ? 0 : h.tag, r.a.len, "to be sent");
		sample_awaited(f, id, f->port.proto != NULL, &r);
	}
}

static void sample_waiters(struct far *f, weft_id id)
{
	uint64_t head = f->at + offsetof(struct weft_port, waiters), at = head;
	struct wf_waiter w;

	for (unsigned n = 0; n < QUEUED_MOST && (at = follow(f, head, at)) != 0; n++) {
		if (!read_far(f, at - offsetof(struct wf_waiter, link), &w, sizeof(w)))
			return;
		wf_sample_waiter(f->s, sleeper_of(f, (uint64_t)(uintptr_t)w.parker), id, w.probes);
	}
}

/* True: it was one port, open, all the while, or none. */
static bool try_port(struct far *f)
{
	uint32_t serial;
	weft_id id, now;
	bool whole;

	if (!read_far(f, f->at, &f->port, sizeof(f->port)))
		return true;
	id = atomic_load_explicit(&f->port.id, memory_order_relaxed);
	if (!id || !f->port.open)
		return true;
	f->port.name[sizeof(f->port.name) - 1] = 0;
	wf_sample_port(f->s, &f->port, id, f->roots.process);
	whole = sample_side(f, id, WEFT_MATCH_WANTS);
	whole &= sample_side(f, id, WEFT_MATCH_ARRIVALS);
	sample_rings(f, id);
	sample_sends(f, id);
	sample_waiters(f, id);
	return whole && read_far(f, f->at + offsetof(struct weft_port, serial), &serial, sizeof(serial)) && serial == f->port.serial &&
	       read_far(f, f->at + offsetof(struct weft_port, id), &now, sizeof(now)) && now == id;
}

static void sample_ports(struct far *f)
{
	uint32_t count;

	if (!read_far(f, f->roots.ports, &count, sizeof(count)))
		return;
	for (uint32_t n = 0; n < count && n < WF_FACES && !f->s->short_of_memory; n++) {
		size_t before = f->s->count;

		f->at = port_address(f, n);
		for (int i = 0; f->at && i < TRIES; i++) {
			f->s->count = before;
			if (try_port(f))
				break;
		}
	}
}

static int sample_all(struct far *f)
{
	struct wf_memory mem = { read_far, f };
	int r = find_roots(f);

	if (r < 0)
		return r;
	sample_ports(f);
	wf_sample_process(f->s, &f->roots, &mem);
	if (f->s->short_of_memory)
		return weft_fail(-ENOMEM, "no memory for a sample");
	/* One that ended while it was read has told nothing, or nonsense. */
	if (kill(f->pid, 0) < 0 && errno == ESRCH)
		return weft_fail(-ESRCH, "process %d has ended", (int)f->pid);
	return 0;
}

int wf_sample_far(pid_t pid, struct weft_state **ret_state)
{
	struct far *f;
	int r;

	if (pid <= 0)
		return weft_fail(-ESRCH, "there is no process %d", (int)pid);
	f = aligned_alloc(_Alignof(struct far), sizeof(*f));
	if (!f)
		return weft_fail(-ENOMEM, "no memory for a sample");
	memset(f, 0, sizeof(*f));
	f->pid = pid;
	f->mem = -1;
	f->s = calloc(1, sizeof(*f->s));
	r = f->s ? sample_all(f) : weft_fail(-ENOMEM, "no memory for a sample");
	if (r == 0)
		*ret_state = f->s;
	else
		weft_state_close(f->s);
	if (f->mem >= 0)
		close(f->mem);
	free(f);
	return r;
}
