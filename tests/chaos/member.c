/* member.c - one process of a chaos job: joins, starts its workers, tells the others who they are, waits for them, leaves.
 *
 *   weft run -n 8 chaos_member SCOREFILE
 */
#include "member.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HELLO 1
#define HELLO_TIME (20 * WEFT_S)

struct score *score;
struct score_row *mine;
uint32_t rank;
weft_id everybody[EVERYBODY];
_Atomic uint32_t dead;

static pthread_barrier_t named, told;

void fault(const char *fmt, ...)
{
	va_list ap;
	char text[sizeof(mine->fault)];

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "member %u: %s\n", rank, text);
	if (atomic_fetch_add(&mine->faults, 1) == 0)
		memcpy(mine->fault, text, sizeof(text));
	if (getenv("CHAOS_FREEZE"))             /* for who wants to look at it as it is */
		raise(SIGSTOP);
}

void told_dead(uint32_t member, int err, const char *by)
{
	if (atomic_load(&score->killed) >> member & 1)
		atomic_fetch_or(&dead, 1u << member);
	else if (atomic_load(&score->row[member].phase) < PHASE_LEAVING)
		fault("%s says %d of member %u, which lives: %s", by, err, member, weft_last_error());
}

static void event(const struct weft_status *st)
{
	uint32_t member = st->index;

	if (st->tag != WEFT_LEFT)
		return;
	if (member >= MEMBERS) {
		fault("WEFT_LEFT of member %u, from %llx", member, (unsigned long long)st->from);
		return;
	}
	if (atomic_fetch_or(&mine->left, 1u << member) >> member & 1)
		fault("WEFT_LEFT twice of member %u", member);
	told_dead(member, 0, "an event");
}

static void *worker(void *arg)
{
	uint32_t i = (uint32_t)(uintptr_t)arg;

	everybody[rank * WORKERS + i] = weft_self();
	pthread_barrier_wait(&named);
	pthread_barrier_wait(&told);
	worker_run(i);
	return NULL;
}

/* Not by weft_at: the place of one that has died is vacant, and what it sent before could not be asked for. */
static weft_id id_of(uint32_t member)
{
	return (weft_id)(member + 1) << 32;
}

/* Each tells each who its workers are. Who dies meanwhile has none. */
static void hello(void)
{
	struct weft_port *world = weft_port_world();
	const size_t size = WORKERS * sizeof(weft_id);
	struct weft_status st;

	for (uint32_t i = 0; i < MEMBERS; i++) {
		int r = 0;

		if (i != rank)
			r = weft_send(world, id_of(i), HELLO, &everybody[rank * WORKERS], size, weft_in(HELLO_TIME));
		if (r == -ESRCH || r == -ECONNRESET)
			told_dead(i, r, "sending hello");
		else if (r < 0)
			fault("hello to %u: %d %s", i, r, weft_last_error());
	}
	for (uint32_t i = 0; i < MEMBERS; i++) {
		int r = 0;

		if (i != rank)
			r = weft_recv(world, id_of(i), HELLO, &everybody[i * WORKERS], size, weft_in(HELLO_TIME), &st);
		if (r == -ESRCH || r == -ECONNRESET)
			told_dead(i, r, "receiving hello");
		else if (r < 0)
			fault("hello from %u: %d %s", i, r, weft_last_error());
	}
}

/* How many are open, but for memory: what a process made for itself stays with it, its own segments too. */
static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	char to[64];
	int n = 0;

	while (d && (e = readdir(d))) {
		ssize_t len = readlinkat(dirfd(d), e->d_name, to, sizeof(to));

		n += len > 0 && memmem(to, (size_t)len, "memfd:weft-", 11) == NULL;
	}
	if (d)
		closedir(d);
	return n;
}

/* Everybody whose death an operation told of is told of by an event too, but for those who had died before somebody asked. */
static void await_events(uint32_t before)
{
	weft_time until = weft_in(5 * WEFT_S);
	uint32_t silent;

	do {
		silent = atomic_load(&dead) & ~atomic_load(&mine->left);
		if ((uint32_t)__builtin_popcount(silent) <= before)
			return;
		weft_poll(weft_in(10 * WEFT_MS));
	} while (weft_now() < until);
	fault("of the dead %#x no WEFT_LEFT came, and only %u had died before", silent, before);
}

static struct weft_port *open_events(uint32_t *ret_dead)
{
	struct weft_port_info info = { .size = sizeof(info) };
	struct weft_port *p = NULL;
	weft_id members[MEMBERS];
	int r;

	for (uint32_t i = 0; i < MEMBERS; i++)
		members[i] = id_of(i);
	r = weft_port_open(WEFT(port_opts, .channel = "chaos", .members = members, .count = MEMBERS, .index = rank,
				.event = event), &p);
	if (r < 0)
		fault("port_open: %d %s", r, weft_last_error());
	weft_port_stat(p, &info);
	*ret_dead = info.dead;
	return p;
}

static void live(void)
{
	pthread_t thread[WORKERS];
	struct weft_port *events;
	uint32_t before;
	int r;

	events = open_events(&before);
	pthread_barrier_init(&named, NULL, WORKERS + 1);
	pthread_barrier_init(&told, NULL, WORKERS + 1);
	for (uintptr_t i = 0; i < WORKERS; i++)
		if (pthread_create(&thread[i], NULL, worker, (void *)i))
			abort();
	pthread_barrier_wait(&named);
	atomic_store(&mine->phase, PHASE_HELLO);
	hello();
	atomic_store(&mine->phase, PHASE_TRAFFIC);
	pthread_barrier_wait(&told);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
	await_events(before);
	atomic_store(&mine->phase, PHASE_LEAVING);
	r = weft_port_close(events, weft_in(WEFT_S));
	if (r < 0)
		fault("port_close: %d %s", r, weft_last_error());
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1, before, after, r;
	const char *text = getenv("WEFT_RANK");

	score = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*score), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (score == MAP_FAILED || !text || (rank = (uint32_t)atoi(text)) >= MEMBERS)
		return fprintf(stderr, "usage: weft run -n %d chaos_member SCOREFILE\n", MEMBERS), 2;
	mine = &score->row[rank];
	atomic_store(&mine->phase, PHASE_JOINING);
	atomic_store(&mine->pid, getpid());
	before = descriptors();
	r = weft_init(NULL);
	if (r < 0) {
		fault("weft_init: %d %s", r, weft_last_error());
		return 1;
	}
	live();
	r = weft_fini(weft_in(10 * WEFT_S));
	if (r < 0)
		fault("weft_fini: %d %s", r, weft_last_error());
	/* The agent's socket came with the process and is closed by leaving. */
	after = descriptors();
	if (after > before)
		fault("%d descriptors before, %d after", before, after);
	atomic_store(&mine->phase, PHASE_OVER);
	return atomic_load(&mine->faults) ? 1 : 0;
}
