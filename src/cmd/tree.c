/* tree.c - finding and ending all that descends from this process.
 *
 * A descendant whose parent ends becomes a child of this process (PR_SET_CHILD_SUBREAPER), so the tree below it is whole at every
 * moment, though it may grow while one looks: who must have it empty looks until it is.
 */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run.h"

struct process {
	pid_t pid, parent;
	bool ours;
};

struct table {
	struct process *all;
	size_t count, room;
};

/* The name in /proc/PID/stat may contain anything; what follows its last ')' does not. */
pid_t tree_parent(pid_t pid)
{
	char path[64], text[512], *end;
	FILE *f;
	size_t n;
	int parent;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	end = strrchr(text, ')');
	return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : -1;
}

static bool table_add(struct table *t, pid_t pid, pid_t parent)
{
	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 256;
		struct process *all = realloc(t->all, room * sizeof(*all));

		if (!all)
			return false;
		t->all = all;
		t->room = room;
	}
	t->all[t->count++] = (struct process){ .pid = pid, .parent = parent };
	return true;
}

static int by_pid(const void *a, const void *b)
{
	const struct process *p = a, *q = b;

	return (p->pid > q->pid) - (p->pid < q->pid);
}

static void table_read(struct table *t)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	if (!proc)
		return;
	while ((entry = readdir(proc))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);
		pid_t parent;

		if (pid <= 1 || *end || pid == getpid())
			continue;
		parent = tree_parent((pid_t)pid);
		if (parent > 0 && !table_add(t, (pid_t)pid, parent))
			break;
	}
	closedir(proc);
	if (t->count)
		qsort(t->all, t->count, sizeof(*t->all), by_pid);
}

/* Marks what descends from this process. A child may have a lower number than its parent, so rounds until nothing changes. */
static void table_mark(struct table *t)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < t->count; i++) {
			struct process *p = &t->all[i], key = { .pid = p->parent }, *parent;

			if (p->ours)
				continue;
			parent = bsearch(&key, t->all, t->count, sizeof(key), by_pid);
			p->ours = p->parent == getpid() || (parent && parent->ours);
			more |= p->ours;
		}
	}
}

/* The number may mean another process by now. If it did before the descriptor was opened, the parent, asked again, is not
 * the one that was found; if it does after that, the descriptor means one that is dead. */
static void process_signal(const struct process *p, int sig)
{
	int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	pid_t parent = tree_parent(p->pid);

	if (parent == p->parent || parent == getpid()) {
		if (fd < 0 || (syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0) < 0 && errno != ESRCH))
			kill(p->pid, sig);      /* as near as one can come without */
	}
	if (fd >= 0)
		close(fd);
}

void tree_signal(int sig)
{
	struct table t = { 0 };

	table_read(&t);
	table_mark(&t);
	for (size_t i = 0; i < t.count; i++)
		if (t.all[i].ours)
			process_signal(&t.all[i], sig);
	free(t.all);
}

bool tree_kill(int ms)
{
	int64_t until = now_ns() + ms * MS;

	for (;;) {
		pid_t pid;

		do {
			pid = waitpid(-1, NULL, WNOHANG);
		} while (pid > 0 || (pid < 0 && errno == EINTR));
		if (pid < 0)
			return true;
		if (now_ns() > until)
			return false;
		tree_signal(SIGKILL);
		nanosleep(&(struct timespec){ .tv_nsec = 2 * MS }, NULL);
	}
}
