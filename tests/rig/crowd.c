/* crowd.c - one process of a chaos job: joins, starts its workers, tells the others who they are, waits for them, leaves.
 *
 *   weft run --hosts ... crowd SCOREFILE
 */
#include "crowd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HELLO 1
#define HELLO_TIME (40 * WEFT_S)        /* one that is killed before it is met is given up after 30 s */

struct score *score;
struct row *mine;
uint32_t rank;
weft_id everybody[EVERYBODY];
_Atomic uint32_t dead;

static pthread_barrier_t named, told;

void fault(const char *fmt, ...)
{
	char text[sizeof(mine->fault)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "member %u: %s\n", rank, text);
	if (atomic_fetch_add(&mine->faults, 1) == 0)
		memcpy(mine->fault, text, sizeof(text));
}

bool means_dead(int err)
{
	return err == -ESRCH || err == -ECONNRESET || err == -EHOSTUNREACH;
}

void told_dead(uint32_t member, int err, const char *by)
{
	if (atomic_load(&score->killed) >> member & 1)
		atomic_fetch_or(&dead, 1u << member);
	else if (atomic_load(&score->row[member].phase) < PHASE_LEAVING)
		fault("%s says %d of member %u, which lives: %s", by, err, member, weft_last_error());
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

static void heard(uint32_t member, int r, const char *by)
{
	if (means_dead(r))
		told_dead(member, r, by);
	else if (r < 0)
		fault("%s %u: %d %s", by, member, r, weft_last_error());
}

/* Each tells each who its workers are. Who dies meanwhile has none. */
static void hello(void)
{
	struct weft_port *world = weft_port_world();
	const size_t size = WORKERS * sizeof(weft_id);
	struct weft_status st;

	for (uint32_t i = 0; i < MEMBERS; i++)
		if (i != rank)
			heard(i, weft_send(world, id_of(i), HELLO, &everybody[rank * WORKERS], size, weft_in(HELLO_TIME)), "hello to");
	for (uint32_t i = 0; i < MEMBERS; i++)
		if (i != rank)
			heard(i, weft_recv(world, id_of(i), HELLO, &everybody[i * WORKERS], size, weft_in(HELLO_TIME), &st), "hello from");
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

static void live(void)
{
	pthread_t thread[WORKERS];

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
	for (uint32_t i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&mine->phase, PHASE_LEAVING);
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1, before, after, r;
	const char *text = getenv("WEFT_RANK");

	score = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*score), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (score == MAP_FAILED || !text || (rank = (uint32_t)atoi(text)) >= MEMBERS)
		return fprintf(stderr, "usage: weft run --hosts ... crowd SCOREFILE\n"), 2;
	mine = &score->row[rank];
	atomic_store(&mine->phase, PHASE_JOINING);
	atomic_store(&mine->pid, (uint64_t)getpid());
	before = descriptors();
	r = weft_init(NULL);
	if (r < 0) {
		fault("weft_init: %d %s", r, weft_last_error());
		return 1;
	}
	live();
	r = weft_fini(weft_in(20 * WEFT_S));
	if (r < 0)
		fault("weft_fini: %d %s", r, weft_last_error());
	after = descriptors();
	if (after > before)
		fault("%d descriptors before, %d after", before, after);
	atomic_store(&mine->phase, PHASE_OVER);
	return atomic_load(&mine->faults) ? 1 : 0;
}
