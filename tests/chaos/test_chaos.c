/* test_chaos.c - jobs of 8 processes with 8 threads each, all sending to all, while some are killed and some are stopped.
 *
 *   test_chaos WEFT MEMBER [test...]
 *
 * A job's processes are not replaced, so there are rounds: each a job of its own, of which up to 5 die at random moments:
 * while joining, in the traffic, at the end. Those who live must account for every message between them (worker.c); the
 * nemesis here watches that they go on, and that nothing of a job is left. check-long has 1,000 kills and as many stops;
 * TEST_SCALE 1 a fifth of that.
 *
 * CHAOS_LOUD=1 shows what the jobs say, CHAOS_PATIENCE=MS shortens the wait for what does not come, CHAOS_FREEZE=1 stops a
 * member at its first fault, to be looked at.
 */
#include "proc.h"
#include "test.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "score.h"

#ifndef CHAOS_SLOW
#define CHAOS_SLOW 1                    /* times as long under a sanitizer */
#endif
#define HANG_MS (10000 * CHAOS_SLOW)
#define ROUND_MOST_MS (90000 * CHAOS_SLOW)
#define BLOWS 16                        /* kills and stops of a round */

static const char *weft, *member;
static char dir[64];                    /* TMPDIR of the jobs: must stay empty */

struct blow {
	uint64_t at_ms;
	uint32_t member;
	int sig;
	uint32_t stop_ms;
	bool done;
};

struct round {
	struct score *score;
	char path[96], mark[64];
	pid_t job;
	struct blow blow[BLOWS];
	int blows;
	uint64_t began, resume[MEMBERS];        /* when a stopped one goes on; 0: it is not stopped */
	uint32_t kills, stops;
};

static struct {
	uint64_t rounds, kills, stops, sent, received, bytes, refused, cancelled;
} sum;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void begin(struct round *r, uint64_t seed, uint32_t traffic_ms)
{
	int fd;

	memset(r, 0, sizeof(*r));
	snprintf(r->path, sizeof(r->path), "%s.score", dir);
	snprintf(r->mark, sizeof(r->mark), "CHAOS_MARK=%d.%llu", getpid(), (unsigned long long)sum.rounds);
	fd = open(r->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(fd >= 0 && ftruncate(fd, sizeof(*r->score)) == 0);
	r->score = mmap(NULL, sizeof(*r->score), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(r->score != MAP_FAILED);
	close(fd);
	r->score->seed = seed;
	r->score->traffic_ms = traffic_ms;
	r->score->patience_ms = (uint32_t)test_env("CHAOS_PATIENCE", 20000) * CHAOS_SLOW;
	r->began = now_ms();
	fflush(stdout);
	r->job = fork();
	MUST(r->job >= 0);
	if (r->job == 0) {
		putenv(r->mark);
		setenv("TMPDIR", dir, 1);
		setenv("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1", 1);
		setenv("ASAN_OPTIONS", "detect_leaks=0", 1);    /* it would look for them in others' memory, for long */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(open("/dev/null", O_RDWR), 0);
		if (!getenv("CHAOS_LOUD"))      /* it tells who was killed, for each */
			dup2(0, 2);
		execl(weft, weft, "run", "-n", "8", member, r->path, (char *)NULL);
		_exit(127);
	}
}

static void blow_add(struct round *r, uint64_t *random, int sig, uint32_t within_ms)
{
	struct blow *b = &r->blow[r->blows++];

	b->at_ms = test_random(random) % within_ms;
	b->member = (uint32_t)(test_random(random) % MEMBERS);
	b->sig = sig;
	b->stop_ms = 1 + (uint32_t)(test_random(random) % 60);
}

static bool can_be_struck(struct round *r, uint32_t i)
{
	return r->score->row[i].pid && r->score->row[i].phase < PHASE_OVER && !(r->score->killed >> i & 1);
}

static void strike(struct round *r, struct blow *b)
{
	pid_t pid = r->score->row[b->member].pid;

	b->done = true;
	if (!can_be_struck(r, b->member))
		return;
	if (b->sig == SIGKILL) {
		atomic_fetch_or(&r->score->killed, 1u << b->member);
		r->kills += kill(pid, SIGKILL) == 0;
		r->resume[b->member] = 0;
	} else if (kill(pid, SIGSTOP) == 0) {
		r->stops++;
		r->resume[b->member] = now_ms() + b->stop_ms;
	}
}

static void nemesis(struct round *r)
{
	uint64_t now = now_ms();

	for (int i = 0; i < r->blows; i++)
		if (!r->blow[i].done && now - r->began >= r->blow[i].at_ms && r->score->row[r->blow[i].member].pid)
			strike(r, &r->blow[i]);
	for (int i = 0; i < MEMBERS; i++)
		if (r->resume[i] && now >= r->resume[i]) {
			r->resume[i] = 0;
			kill(r->score->row[i].pid, SIGCONT);
		}
}

/* Stacks of everybody who has not ended, for who has to find out why. */
static void dump(struct round *r)
{
	char line[400];

	for (int i = 0; i < MEMBERS; i++) {
		struct score_row *row = &r->score->row[i];

		printf("# member %d: pid %d, phase %u, killed %u, left %#x, lines", i, row->pid, row->phase,
		       r->score->killed >> i & 1, row->left);
		for (int k = 0; k < WORKERS; k++)
			printf(" %u", row->where[k]);
		printf("\n");
		if (!can_be_struck(r, (uint32_t)i) || access("/usr/bin/gdb", X_OK))
			continue;
		snprintf(line, sizeof(line), "gdb -p %d -batch -ex 'thread apply all bt 14' 2>/dev/null | "
			 "grep -E '^(Thread|#)' | sed 's/^/# /'", row->pid);
		fflush(stdout);
		if (system(line) < 0)
			printf("# no stacks\n");
	}
}

static uint64_t beats(struct round *r)
{
	uint64_t all = 0;

	for (int i = 0; i < MEMBERS; i++) {
		all += r->score->row[i].phase;
		for (int k = 0; k < WORKERS; k++)
			all += r->score->row[i].beat[k];
	}
	return all;
}

/* Until the job ends; false: it had to be ended. */
static bool watch(struct round *r, int *ret_status)
{
	uint64_t last = 0, since = now_ms(), now;

	for (;;) {
		if (waitpid(r->job, ret_status, WNOHANG) == r->job)
			return true;
		nemesis(r);
		now = now_ms();
		if (beats(r) != last) {
			last = beats(r);
			since = now;
		}
		if (now - since > HANG_MS || now - r->began > ROUND_MOST_MS) {
			printf("# %s for %llu ms\n", now - since > HANG_MS ? "nothing has moved" : "the round has gone on",
			       (unsigned long long)(now - since > HANG_MS ? now - since : now - r->began));
			dump(r);
			kill(r->job, SIGKILL);
			waitpid(r->job, ret_status, 0);
			return false;
		}
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
	}
}

static void tally(struct round *r, int status)
{
	for (int i = 0; i < MEMBERS; i++) {
		struct score_row *row = &r->score->row[i];
		bool killed = r->score->killed >> i & 1;

		if (row->faults)
			printf("# member %d: %u faults, the first: %s\n", i, row->faults, row->fault);
		CHECK_EQ(row->faults, 0);
		if (!killed)
			CHECK_EQ(row->phase, PHASE_OVER);
		sum.sent += row->sent;
		sum.received += row->received;
		sum.bytes += row->bytes;
		sum.refused += row->refused;
		sum.cancelled += row->cancelled;
	}
	CHECK(WIFEXITED(status));
	if (!r->kills)
		CHECK_EQ(WEXITSTATUS(status), 0);
	sum.rounds++;
	sum.kills += r->kills;
	sum.stops += r->stops;
}

static void residue(struct round *r, int fds)
{
	for (int i = 0; proc_started_with(r->mark, NULL, 0) && i < 100; i++)     /* the killed are reaped by whoever is init here */
		usleep(10000);
	CHECK_EQ(proc_started_with(r->mark, NULL, 0), 0);
	CHECK_EQ(proc_entries(dir), 2);
	munmap(r->score, sizeof(*r->score));
	unlink(r->path);
	CHECK_EQ(proc_descriptors(), fds);
}

static void play(uint64_t *random, uint32_t traffic_ms, uint32_t kills, uint32_t stops)
{
	int fds = proc_descriptors(), status = 0;
	uint64_t seed = test_random(random);
	struct round r;

	alarm(2 * ROUND_MOST_MS / 1000);
	begin(&r, seed, traffic_ms);
	for (uint32_t i = 0; i < kills; i++)
		blow_add(&r, random, SIGKILL, traffic_ms + 600);
	for (uint32_t i = 0; i < stops; i++)
		blow_add(&r, random, SIGSTOP, traffic_ms + 600);
	CHECK(watch(&r, &status));
	tally(&r, status);
	residue(&r, fds);
}

static void say(void)
{
	printf("# %llu rounds, %llu kills, %llu stops: ", (unsigned long long)sum.rounds, (unsigned long long)sum.kills,
	       (unsigned long long)sum.stops);
	printf("%llu messages sent, %llu received (%llu MiB), %llu refused, %llu cancelled\n", (unsigned long long)sum.sent,
	       (unsigned long long)sum.received, (unsigned long long)sum.bytes >> 20, (unsigned long long)sum.refused,
	       (unsigned long long)sum.cancelled);
}

TEST(everything_arrives_once_and_in_order)
{
	uint64_t random = test_seed;

	memset(&sum, 0, sizeof(sum));
	for (uint64_t i = test_scaled(10); i > 0 && !test_failures; i--)
		play(&random, 500, 0, 0);
	say();
	CHECK_EQ(sum.sent, sum.received);
}

TEST(the_stopped_go_on_with_nothing_lost)
{
	uint64_t random = test_seed + 1;

	memset(&sum, 0, sizeof(sum));
	while (sum.stops < test_scaled(50) && !test_failures)
		play(&random, 500, 0, 8);
	say();
	CHECK_EQ(sum.sent, sum.received);
}

TEST(survivors_lose_nothing_among_themselves)
{
	uint64_t random = test_seed + 2;

	memset(&sum, 0, sizeof(sum));
	while (sum.kills < test_scaled(200) && !test_failures)
		play(&random, 100 + (uint32_t)(test_random(&random) % 800), (uint32_t)(test_random(&random) % 6), 2);
	say();
}

int main(int argc, char **argv)
{
	int r;

	if (argc < 3)
		return fprintf(stderr, "usage: test_chaos WEFT MEMBER [test...]\n"), 2;
	weft = argv[1];
	member = argv[2];
	snprintf(dir, sizeof(dir), "/tmp/weft-chaos.%d", getpid());
	if (mkdir(dir, 0700) < 0)
		return perror(dir), 2;
	r = test_main(argc - 2, argv + 2);
	rmdir(dir);
	return r;
}
