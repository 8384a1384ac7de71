/* ping.c - `weft ping ID`: how far a process of another host is, over each lane.
 *
 * A process of the same job on this host measures: it is asked by a word on its board and rung by its descriptor (wire/ping.h), both taken from
 * it as a debugger would, and its answer is read out of its memory. Neither program takes part; the other process answers by its weft alone.
 */
#include "ping.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "net/local/board.h"
#include "peer/remote.h"
#include "port/outside.h"
#include "port/sample.h"
#include "run.h"
#include "tree.h"
#include "wire/ping.h"

#define COUNT 100u
#define PATIENCE (12 * SECOND)          /* the process itself gives up after 10 s */
#define LOOK_MS 5

struct ping {
	uint32_t process, count;
	pid_t pid;                      /* who measures; 0: whoever is found */
	uint32_t name;
	struct wf_outside out;
	struct wf_remote remote;        /* as last read */
	struct wf_ping answer;
};

static const char usage[] =
	"weft ping [OPTIONS] ID   how far a process of another host is, over each lane\n"
	"  ID                     its number in the job, or an id of one of its threads or ports\n"
	"  -c N                   so many round trips on each lane, 1 to 1000 (100)\n"
	"  -p PID                 that process of this host measures (one of the job's that is found)\n"
	"  -h, --help             this\n";

/* The process in @text: a number, or the second part of an id. */
static bool process_read(const char *text, uint32_t *ret_process)
{
	unsigned long job, n;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	n = strtoul(text, &end, 10);
	if (*end == '.') {
		job = n;
		if (job > 0xfff || !isdigit((unsigned char)end[1]))
			return false;
		n = strtoul(end + 1, &end, 10);
		for (int parts = 0; parts < 2; parts++) {
			if (*end != '.' || !isdigit((unsigned char)end[1]))
				return false;
			(void)strtoul(end + 1, &end, 10);
		}
	}
	*ret_process = (uint32_t)n;
	return !*end && n > 0 && n <= RUN_MOST;
}

static bool number_read(const char *text, long most, long *ret_n)
{
	char *end;

	errno = 0;
	*ret_n = strtol(text, &end, 10);
	return *text && !*end && !errno && *ret_n > 0 && *ret_n <= most;
}

/* -1: go on; else the exit code. */
static int options_read(struct ping *p, int argc, char **argv)
{
	static const struct option known[] = { { "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 } };
	int option;
	long n;

	p->count = COUNT;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "+c:p:h", known, NULL)) >= 0) {
		switch (option) {
		case 'h':
			fputs(usage, stdout);
			return 0;
		case 'c':
			if (!number_read(optarg, WF_PINGS, &n)) {
				fprintf(stderr, "weft ping: -c %s: 1 to %u round trips\n", optarg, WF_PINGS);
				return CODE_USAGE;
			}
			p->count = (uint32_t)n;
			break;
		case 'p':
			if (!number_read(optarg, INT32_MAX, &n)) {
				fprintf(stderr, "weft ping: -p %s: not a process\n", optarg);
				return CODE_USAGE;
			}
			p->pid = (pid_t)n;
			break;
		default:
			fputs(usage, stderr);
			return CODE_USAGE;
		}
	}
	if (optind + 1 != argc || !process_read(argv[optind], &p->process)) {
		fputs(usage, stderr);
		return CODE_USAGE;
	}
	return -1;
}

/* ---- who measures ---- */

/* Is that process, opened, one for which ours is of another host? Else words, for one that was named. */
static const char *unfit(struct wf_outside *o, uint32_t process)
{
	uint64_t peer = 0;

	if (!o->roots.whereabouts || !o->roots.trunks)
		return "its job is on one host";
	if (process >= o->roots.processes || !wf_outside_read(o, o->roots.peers + process * sizeof(peer), &peer, sizeof(peer)) || !peer)
		return process == o->roots.process >> 32 ? "that is the process itself" : "its job has no such process";
	return wf_sample_near(&o->roots, &(struct wf_memory){ .read = wf_outside_read, .arg = o }, process) ? "that is a process of the same host" : NULL;
}

static bool open_named(struct ping *p)
{
	const char *why;

	if (wf_outside_open(&p->out, p->pid) < 0) {
		fprintf(stderr, "weft ping: %s\n", weft_last_error());
		return false;
	}
	why = unfit(&p->out, p->process);
	if (why)
		fprintf(stderr, "weft ping: process %u cannot be measured by pid %d: %s\n", p->process, (int)p->pid, why);
	return !why;
}

static bool same_program(pid_t pid)
{
	char path[32];
	struct stat mine, theirs;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return stat("/proc/self/exe", &mine) == 0 && stat(path, &theirs) == 0 && mine.st_dev == theirs.st_dev && mine.st_ino == theirs.st_ino;
}

/* What is the same for processes of one agent: the agent itself, or, of those that it has not started, their session. */
static pid_t home_of(pid_t pid)
{
	pid_t up = pid;

	while ((up = tree_parent(up)) > 1)
		if (same_program(up))
			return up;
	return getsid(pid);
}

/* The first of this host's for which it is of another one. If there are such of two agents, somebody has to choose. */
static bool open_found(struct ping *p)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	bool several = false;

	while (proc && (entry = readdir(proc)) != NULL) {
		struct wf_outside o;
		long pid;

		if (!number_read(entry->d_name, INT32_MAX, &pid) || wf_outside_open(&o, (pid_t)pid) < 0)
			continue;
		if (!unfit(&o, p->process)) {
			several |= p->pid && home_of((pid_t)pid) != home_of(p->pid);
			if (!p->pid)
				p->pid = (pid_t)pid;
		}
		wf_outside_close(&o);
	}
	if (proc)
		closedir(proc);
	if (several)
		fprintf(stderr, "weft ping: several jobs here have a process %u on another host: say which with -p\n", p->process);
	else if (!p->pid)
		fprintf(stderr, "weft ping: no process here has a process %u on another host in its job, or none may be looked at\n", p->process);
	return p->pid && !several && open_named(p);
}

/* ---- asking ---- */

static bool cannot(struct ping *p, const char *what)
{
	fprintf(stderr, "weft ping: pid %d cannot be asked: %s: %s\n", (int)p->pid, what, strerror(errno));
	return false;
}

static bool ask(struct ping *p)
{
	int pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0), board_fd = -1, event_fd = -1;
	struct wf_board *board = MAP_FAILED;
	size_t head = offsetof(struct wf_board, slot);
	uint64_t one = 1;
	bool asked = false;

	if (pidfd >= 0 && p->out.roots.board_fd && p->out.roots.event_fd) {
		board_fd = (int)syscall(SYS_pidfd_getfd, pidfd, p->out.roots.board_fd - 1, 0);
		event_fd = (int)syscall(SYS_pidfd_getfd, pidfd, p->out.roots.event_fd - 1, 0);
	}
	if (board_fd < 0 || event_fd < 0) {
		cannot(p, "its descriptors");
	} else {
		board = mmap(NULL, head, PROT_READ | PROT_WRITE, MAP_SHARED, board_fd, 0);
		if (board == MAP_FAILED || atomic_load_explicit(&board->magic, memory_order_acquire) != WF_BOARD_MAGIC) {
			cannot(p, "its board");
		} else {
			atomic_store_explicit(&board->asked, wf_ping_word(p->name, p->count, p->process), memory_order_release);
			asked = write(event_fd, &one, sizeof(one)) == sizeof(one) || errno == EAGAIN || cannot(p, "its bell");
		}
	}
	if (board != MAP_FAILED)
		munmap(board, head);
	for (int i = 0, fds[] = { pidfd, board_fd, event_fd }; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return asked;
}

/* What has been measured so far. False: the process is not to be read any more. */
static bool look(struct ping *p)
{
	struct wf_memory mem = { wf_outside_read, &p->out };
	uint64_t alive;

	p->answer.name = 0;
	if (wf_sample_remote(&p->out.roots, &mem, p->process, &p->remote) && p->remote.ping &&
	    !wf_outside_read(&p->out, (uint64_t)(uintptr_t)p->remote.ping, &p->answer, sizeof(p->answer)))
		p->answer.name = 0;
	return wf_outside_read(&p->out, p->out.roots.trunks, &alive, sizeof(alive));
}

static bool wait_for_answer(struct ping *p)
{
	struct timespec nap = { .tv_nsec = LOOK_MS * MS };
	int64_t until = now_ns() + PATIENCE;

	while (now_ns() < until) {
		if (!look(p)) {
			fprintf(stderr, "weft ping: pid %d has ended or left its job\n", (int)p->pid);
			return false;
		}
		if (p->answer.name == p->name && p->answer.over)
			return true;
		if (p->remote.err) {
			fprintf(stderr, "weft ping: process %u: %s\n", p->process, strerror(-p->remote.err));
			return false;
		}
		nanosleep(&nap, NULL);
	}
	if (p->answer.name != p->name)
		fprintf(stderr, "weft ping: pid %d does not answer: is it stopped?\n", (int)p->pid);
	return p->answer.name == p->name;
}

/* ---- printing ---- */

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* False: it has not answered as often as it was asked. */
static bool print_lane(struct ping *p, uint32_t slot)
{
	uint32_t *ns = p->answer.ns[slot], n = p->answer.got[slot] < p->count ? p->answer.got[slot] : p->count;

	printf("  rail %u %-8s", slot ? (slot - 1) / 2 : 0, !slot ? "control" : slot & 1 ? "head" : "bulk");
	if (n) {
		qsort(ns, n, sizeof(*ns), by_size);
		printf("%10.1f %10.1f %10.1f", ns[0] / 1e3, ns[n / 2] / 1e3, ns[n * 99 / 100] / 1e3);
	}
	if (n < p->count)
		printf("   %u of %u answered", n, p->count);
	printf("\n");
	return n == p->count;
}

static int measure(struct ping *p)
{
	bool all = true;

	/* Not the name of an earlier question: who asks twice in a nanosecond gets the same answer, which is right. */
	p->name = ((uint32_t)now_ns() ^ (uint32_t)getpid() << 8) & 0xffffff;
	p->name += !p->name;
	if (!ask(p) || !wait_for_answer(p))
		return CODE_FAULT;
	printf("process %u, measured by process %u (pid %d), %u round trips a lane, in us:\n", p->process,
	       (unsigned)(p->out.roots.process >> 32), (int)p->pid, p->count);
	printf("  %-15s%10s %10s %10s\n", "", "min", "median", "p99");
	for (uint32_t slot = 0; slot < 1 + 2 * p->remote.conf.rails && slot < WF_LANE_SLOTS; slot++)
		all &= print_lane(p, slot);
	return fflush(stdout) == 0 && all ? 0 : CODE_FAULT;
}

int ping_main(int argc, char **argv)
{
	struct ping *p = calloc(1, sizeof(*p));
	int code = p ? options_read(p, argc, argv) : CODE_FAULT;

	if (code == -1) {
		code = CODE_FAULT;
		if (p->pid ? open_named(p) : open_found(p)) {
			code = measure(p);
			wf_outside_close(&p->out);
		}
	}
	free(p);
	return code;
}
