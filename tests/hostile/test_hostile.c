/* test_hostile.c - two honest processes and a villain: rounds of a job each, and what becomes of the honest.
 *
 *   test_hostile WEFT PLAYER [test...]
 */
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "stage.h"

#define HANG_MS 40000

static const char *weft, *player;
static struct {
	uint64_t rounds, deeds, exchanged, dealt, refused, ms;
} sum;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static struct stage *stage_make(char *path, size_t n)
{
	struct stage *s;
	int fd;

	snprintf(path, n, "/tmp/weft-hostile.%d", getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(fd >= 0 && ftruncate(fd, sizeof(*s)) == 0);
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(s != MAP_FAILED);
	close(fd);
	return s;
}

static pid_t start(const char *path)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(open("/dev/null", O_RDWR), 0);
		setenv("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1", 1);
		setenv("ASAN_OPTIONS", "detect_leaks=0", 1);    /* it would look for them in others' memory, for long */
		execl(weft, weft, "run", "-n", "3", player, path, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static void dump(struct stage *s)
{
	char line[300];

	for (uint32_t i = 0; i < HONEST; i++) {
		if (s->row[i].over || access("/usr/bin/gdb", X_OK))
			continue;
		snprintf(line, sizeof(line), "gdb -p %d -batch -ex 'thread apply all bt 14' 2>/dev/null | "
			 "grep -E '^(Thread|#)' | sed 's/^/# /'", s->row[i].pid);
		fflush(stdout);
		if (system(line) < 0)
			printf("# no stacks\n");
	}
}

/* False: it had to be ended. */
static bool watch(struct stage *s, pid_t job)
{
	uint64_t since = now_ms(), last = 0, beat;
	int status;

	while (waitpid(job, &status, WNOHANG) != job) {
		beat = s->row[0].beat + s->row[1].beat + s->row[0].over + s->row[1].over;
		if (beat != last)
			since = now_ms();
		last = beat;
		if (now_ms() - since > HANG_MS) {
			dump(s);
			kill(job, SIGKILL);
			waitpid(job, &status, 0);
			return false;
		}
		usleep(5000);
	}
	return true;
}

static void play(uint64_t seed, uint32_t mode, uint32_t ms)
{
	uint64_t began = now_ms();
	char path[64];
	struct stage *s = stage_make(path, sizeof(path));

	alarm(2 * HANG_MS / 1000);
	s->seed = seed;
	s->mode = mode;
	s->ms = ms;
	CHECK(watch(s, start(path)));
	for (uint32_t i = 0; i < HONEST; i++) {
		if (s->row[i].faults)
			printf("# rank %u: %u faults, the first: %s\n", i, s->row[i].faults, s->row[i].fault);
		CHECK_EQ(s->row[i].faults, 0);
		CHECK_EQ(s->row[i].over, 1);    /* it came to its end, and did not crash */
		sum.exchanged += s->row[i].exchanged;
		sum.dealt += s->row[i].with_villain;
		sum.refused += s->row[i].refused;
	}
	for (int i = 0; i < DEEDS_MOST; i++)
		sum.deeds += s->deeds[i];
	sum.rounds++;
	sum.ms += now_ms() - began;
	if (test_failures)
		printf("# seed of the round: %llu\n", (unsigned long long)seed);
	munmap(s, sizeof(*s));
	unlink(path);
}

static void rounds(uint32_t mode, uint64_t count)
{
	uint64_t random = test_seed + mode;

	memset(&sum, 0, sizeof(sum));
	for (uint64_t i = 0; i < count && !test_failures; i++)
		play(test_random(&random), mode, 700);
	printf("# %llu rounds, %llu deeds of the villain (%llu a second), ", (unsigned long long)sum.rounds,
	       (unsigned long long)sum.deeds, (unsigned long long)(sum.deeds * 1000 / (sum.ms + 1)));
	printf("%llu messages among the honest, %llu calls with the villain done, %llu refused\n",
	       (unsigned long long)sum.exchanged, (unsigned long long)sum.dealt, (unsigned long long)sum.refused);
}

TEST(the_honest_lose_nothing_to_one_who_lies)
{
	rounds(VILLAIN_LIES, test_scaled(30));
}

TEST(nobody_breaks_or_hangs_by_one_who_writes_anywhere)
{
	rounds(VILLAIN_RAGES, test_scaled(30));
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return fprintf(stderr, "usage: test_hostile WEFT PLAYER [test...]\n"), 2;
	weft = argv[1];
	player = argv[2];
	return test_main(argc - 2, argv + 2);
}
