/* proc.h - the processes of one job that measure together: who is who, memory that all of them see,
 * meeting. Their programs are started by `weft run -n N`.
 *
 * The raw limits run between the very processes that weft runs between, in turns with it: nothing but
 * the carrier differs. What they need is made by the first process and opened by the others
 * through /proc, so that it owes nothing to weft but the telling of a name.
 */
#ifndef BENCH_PROC_H
#define BENCH_PROC_H
#include "weft_link.h"
#include <fcntl.h>
#include <sys/stat.h>

#define PROC_TAG 1

struct procs {
	struct weft_port *world;
	int rank, count;
};

static inline void procs_send(struct procs *p, int to, const void *mem, size_t n)
{
	must(weft_send(p->world, weft_at((uint32_t)to), PROC_TAG, mem, n, WEFT_FOREVER),
	     "weft_send to a process");
}

static inline void procs_recv(struct procs *p, int from, void *mem, size_t n)
{
	must(weft_recv(p->world, weft_at((uint32_t)from), PROC_TAG, mem, n, WEFT_FOREVER, NULL),
	     "weft_recv from a process");
}

/* Nobody goes on before all have come. */
static inline void procs_meet(struct procs *p)
{
	uint64_t word = 0;

	for (int i = 1; i < p->count; i++) {
		if (p->rank == 0)
			procs_recv(p, i, &word, sizeof(word));
		else if (p->rank == i)
			procs_send(p, 0, &word, sizeof(word));
	}
	for (int i = 1; i < p->count; i++) {
		if (p->rank == 0)
			procs_send(p, i, &word, sizeof(word));
		else if (p->rank == i)
			procs_recv(p, 0, &word, sizeof(word));
	}
}

/* Of something small, @n bytes: mine goes to @other, and his comes back. */
static inline void procs_swap(struct procs *p, int other, const void *mine, void *his, size_t n)
{
	procs_send(p, other, mine, n);
	procs_recv(p, other, his, n);
}

/* The id of the thread that calls this in process @other at the same time. */
static inline weft_id procs_peer(struct procs *p, int other)
{
	weft_id mine = weft_self(), his = 0;

	if (!mine)
		die("weft_self: %s", weft_last_error());
	procs_swap(p, other, &mine, &his, sizeof(his));
	return his;
}

static inline struct procs procs_start(int count)
{
	struct weft_port_info info = { .size = sizeof(info) };
	struct procs p;

	bench_start();
	must_init();
	p.world = weft_port_world();
	must(weft_port_stat(p.world, &info), "weft_port_stat");
	if (info.count != (uint32_t)count)
		die("this program is one of %d processes: weft run -n %d PROGRAM", count, count);
	p.rank = (int)info.index;
	p.count = count;
	return p;
}

/* A process's end ends what it has under way: leave together. */
static inline void procs_end(struct procs *p)
{
	procs_meet(p);
	must_fini();
}

/* True: this machine has too few cores for marks @names (separated by blanks), and that was told. */
static inline bool procs_skip(struct procs *p, const char *names)
{
	if (cpu_count() >= 2)
		return false;
	for (size_t n; p->rank == 0 && *names; names += n + (names[n] != '\0')) {
		n = strcspn(names, " ");
		printf("skip %.*s fewer than 2 cores\n", (int)n, names);
	}
	procs_end(p);
	return true;
}

/* @n bytes that all processes see, zeroed, every page of it mapped; all call it alike. */
static inline void *procs_memory(struct procs *p, size_t n)
{
	struct {
		long pid;
		int fd;
	} at = { .pid = getpid() };
	void *mem;

	if (p->rank == 0) {
		at.fd = memfd_create("bench", MFD_CLOEXEC);
		if (at.fd < 0 || ftruncate(at.fd, (off_t)n))
			die("%zu bytes of shared memory: %s", n, strerror(errno));
		for (int i = 1; i < p->count; i++)
			procs_send(p, i, &at, sizeof(at));
	} else {
		char path[64];

		procs_recv(p, 0, &at, sizeof(at));
		snprintf(path, sizeof(path), "/proc/%ld/fd/%d", at.pid, at.fd);
		at.fd = open(path, O_RDWR | O_CLOEXEC);
		if (at.fd < 0)
			die("%s: %s", path, strerror(errno));
	}
	mem = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, at.fd, 0);
	if (mem == MAP_FAILED)
		die("mmap of %zu bytes: %s", n, strerror(errno));
	procs_meet(p);
	close(at.fd);
	return mem;
}

#endif
