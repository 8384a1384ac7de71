/* far.h - tests of what holds between processes.
 *
 *   FAR(a_sentence, 2) { ... what each of 2 processes does, by far_rank ... }
 *   FAR_MAIN
 *
 * The program run alone is the TAP parent: for each sentence it starts `weft run -n N` with itself, told which sentence
 * by its arguments. A process joins (far_join), does its part and leaves (far_leave); its failures are lines on standard
 * error and a verdict in a page that all of them share with the parent (struct far_page). That page is also how a test
 * says who has come how far: without weft, so that what weft does is not helped along.
 *
 * A process that is to die says so: far_may_die() in the one, before. The parent then wants no verdict of it.
 * A job that takes longer than FAR_LIMIT seconds (40, under a sanitizer 90, more with higher counts) has failed; where its threads are is told before it is ended.
 */
#ifndef FAR_H
#define FAR_H
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "../integ/crew.h"
#include "residue.h"

enum { FAR_MOST = 16, FAR_WORDS = 64 };
enum { FAR_NONE, FAR_HOLDS, FAR_FAILED };

struct far_page {
	_Atomic int pid[FAR_MOST];
	_Atomic int verdict[FAR_MOST];
	_Atomic bool may_die[FAR_MOST];
	_Atomic bool is_void;                   /* one of them has seen that its clock said nothing */
	_Atomic uint32_t step[FAR_MOST];        /* how far it has come: far_step */
	_Atomic uint64_t id[FAR_MOST];          /* of the first thread */
	_Atomic uint32_t came, rounds;          /* far_meet */
	_Atomic uint64_t word[FAR_WORDS];       /* what a test wants to tell */
};

struct far_case {
	const char *name;
	void (*fn)(void);
	int count;
	struct far_case *next;
};

static struct far_case *far_cases;
static struct far_page *far;
static uint32_t far_rank, far_count;

static void far_parent(const struct far_case *c);

#define FAR(sentence, n)                                                                           \
	static void far_##sentence(void);                                                          \
	static struct far_case far_case_##sentence = { #sentence, far_##sentence, (n), NULL };     \
	__attribute__((constructor)) static void far_add_##sentence(void)                          \
	{                                                                                          \
		far_case_##sentence.next = far_cases;                                              \
		far_cases = &far_case_##sentence;                                                  \
	}                                                                                          \
	TEST(sentence)                                                                             \
	{                                                                                          \
		far_parent(&far_case_##sentence);                                                  \
	}                                                                                          \
	static void far_##sentence(void)

/* In a process of the job. */

static inline void far_step(uint32_t n)
{
	atomic_store(&far->step[far_rank], n);
}

static inline void far_await(uint32_t rank, uint32_t n)
{
	EVENTUALLY(atomic_load(&far->step[rank]) >= n);
}

/* All processes have come here. */
static inline void far_meet(void)
{
	uint32_t round = atomic_load(&far->rounds);

	if (atomic_fetch_add(&far->came, 1) + 1 == far_count) {
		atomic_store(&far->came, 0);
		atomic_fetch_add(&far->rounds, 1);
	}
	EVENTUALLY(atomic_load(&far->rounds) != round);
}

static inline void far_tell(int i, uint64_t v)
{
	atomic_store(&far->word[i], v);
}

static inline uint64_t far_told(int i)
{
	return atomic_load(&far->word[i]);
}

/* Told by another, and not 0. */
static inline uint64_t far_hear(int i)
{
	EVENTUALLY(far_told(i));
	return far_told(i);
}

static inline void far_may_die(void)
{
	atomic_store(&far->may_die[far_rank], true);
}

static inline weft_id far_id(uint32_t rank)
{
	return (weft_id)atomic_load(&far->id[rank]);
}

static inline weft_id far_process(uint32_t rank)
{
	return (weft_id)(rank + 1) << 32;
}

static inline pid_t far_pid(uint32_t rank)
{
	return atomic_load(&far->pid[rank]);
}

static inline void far_join_with(const struct weft_init_opts *opts)
{
	MUST_OK(weft_init(opts));
	MUST(weft_self() != 0);
	atomic_store(&far->id[far_rank], weft_self());
	far_meet();
}

static inline void far_join(size_t budget)
{
	far_join_with(WEFT(init_opts, .budget = budget));
}

static inline void far_leave(void)
{
	far_meet();
	CHECK_OK(weft_fini(SOON));
}

/* Process @rank stands still, all of its threads, until far_go_on. */
static inline void far_stop(uint32_t rank)
{
	char path[64], text[512], *state;

	MUST_OK(kill(far_pid(rank), SIGSTOP));
	snprintf(path, sizeof(path), "/proc/%d/stat", far_pid(rank));
	do {
		MUST(proc_read(path, text, sizeof(text)) > 0);
		state = strrchr(text, ')');
		MUST(state);
	} while (state[1] && state[2] != 'T');
}

static inline void far_go_on(uint32_t rank)
{
	MUST_OK(kill(far_pid(rank), SIGCONT));
}

/* Ends the one that asks: nothing of it runs after. */
static inline void far_die(void)
{
	far_may_die();
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

static inline void *far_page_map(const char *path, bool make)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | (make ? O_CREAT | O_EXCL : 0), 0600);
	void *mem;

	MUST(fd >= 0);
	if (make)
		MUST_OK(ftruncate(fd, sizeof(struct far_page)));
	mem = mmap(NULL, sizeof(struct far_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(mem != MAP_FAILED);
	close(fd);
	return mem;
}

static inline int far_process_main(const char *name)
{
	const char *rank = getenv("WEFT_RANK"), *count = getenv("WEFT_SIZE"), *page = getenv("FAR_PAGE");

	dup2(2, 1);             /* TAP is the parent's */
	setvbuf(stdout, NULL, _IOLBF, 0);
	MUST(rank && count && page);
	far_rank = (uint32_t)atoi(rank);
	far_count = (uint32_t)atoi(count);
	MUST(far_rank < FAR_MOST);
	far = far_page_map(page, false);
	test_now = name;
	test_seed = (uint64_t)test_env("TEST_SEED", 1);
	atomic_store(&far->pid[far_rank], getpid());
	for (struct far_case *c = far_cases; c; c = c->next)
		if (!strcmp(c->name, name)) {
			c->fn();
			if (atomic_load(&test_void))
				atomic_store(&far->is_void, true);
			atomic_store(&far->verdict[far_rank], test_failures ? FAR_FAILED : FAR_HOLDS);
			if (test_failures)
				printf("# process %u of %s: %d failures\n", far_rank, name, test_failures);
			return test_failures ? 1 : 0;
		}
	MUST(!"there is such a case");
	return 1;
}

/* In the parent. */

static inline const char *far_command(void)
{
	static char path[4096];
	const char *set = getenv("WEFT_COMMAND");
	ssize_t n;
	char *slash;

	if (set && *set)
		return set;
	n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	MUST(n > 0);
	path[n] = 0;
	slash = strrchr(path, '/');
	MUST(slash);
	strcpy(slash, "/../src/cmd/weft");
	return path;
}

/* Where the threads of a process that does not end are. */
static inline void far_dump(uint32_t rank, pid_t pid)
{
	char line[512];

	if (pid <= 0 || kill(pid, 0) < 0)
		return;
	printf("# process %u (%d), step %u, does not end:\n", rank, pid, atomic_load(&far->step[rank]));
	fflush(stdout);
	snprintf(line, sizeof(line),
		 "for t in /proc/%d/task/*; do echo \"# $(basename $t) $(cat $t/comm) $(cat $t/wchan)\"; done >&2;"
		 "command -v gdb >/dev/null && timeout 20 gdb -batch -nx -ex 'set pagination off' "
		 "-ex 'thread apply all bt 12' -p %d 2>/dev/null | grep -E '^(Thread|#)' | sed 's/^/# /' >&2",
		 pid, pid);
	if (system(line) < 0)
		printf("# cannot look into it\n");
}

static inline pid_t far_start(const struct far_case *c)
{
	char count[16], self[4096];
	pid_t pid;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	MUST(n > 0);
	self[n] = 0;
	snprintf(count, sizeof(count), "%d", c->count);
	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (pid == 0) {
		dup2(2, 1);
		alarm(0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);       /* a parent that gives up leaves no job */
		execl(far_command(), "weft", "run", "-n", count, self, "--case", c->name, (char *)NULL);
		printf("# cannot start %s: %s\n", far_command(), strerror(errno));
		fflush(stdout);
		_exit(127);
	}
	return pid;
}

/* One that was to live has ended without a verdict: the others may wait for it for ever. */
static inline bool far_broken(const struct far_case *c)
{
	for (int i = 0; i < c->count; i++) {
		pid_t pid = atomic_load(&far->pid[i]);

		if (pid && !atomic_load(&far->may_die[i]) && atomic_load(&far->verdict[i]) == FAR_NONE && kill(pid, 0) < 0)
			return true;
	}
	return false;
}

/* Its exit code; 124: it had to be ended. */
static inline int far_finish(const struct far_case *c, pid_t job)
{
	uint64_t times = test_scaled(100) / 100;
	weft_time until = weft_in((weft_time)(test_env("FAR_LIMIT", TEST_SLOW > 1 ? 90 : 40) * (times > 1 ? times : 1)) * WEFT_S);
	int status = 0;
	pid_t r;

	while ((r = waitpid(job, &status, WNOHANG)) == 0 && weft_now() < until) {
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
		if (far_broken(c) && until > weft_in(2 * WEFT_S))
			until = weft_in(2 * WEFT_S);
	}
	if (r == job)
		return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	printf("# %s: no end within FAR_LIMIT\n", c->name);
	for (int i = 0; i < c->count; i++)
		far_dump((uint32_t)i, atomic_load(&far->pid[i]));
	kill(job, SIGKILL);
	waitpid(job, &status, 0);
	return 124;
}

static void far_parent(const struct far_case *c)
{
	static unsigned serial;
	struct residue before = residue_take();
	char page[64], setting[80];
	bool deaths = false;
	int code;

	snprintf(page, sizeof(page), "/tmp/weft-far-%d-%u", getpid(), ++serial);
	snprintf(setting, sizeof(setting), "FAR_PAGE=%s", page);
	unlink(page);
	far = far_page_map(page, true);
	MUST_OK(setenv("FAR_PAGE", page, 1));
	code = far_finish(c, far_start(c));
	unsetenv("FAR_PAGE");
	for (int i = 0; i < c->count; i++) {
		int verdict = atomic_load(&far->verdict[i]);

		if (atomic_load(&far->may_die[i]))
			deaths = true;
		else if (verdict != FAR_HOLDS)
			printf("# process %d %s\n", i, verdict == FAR_FAILED ? "failed" : "gave no verdict");
		CHECK(atomic_load(&far->may_die[i]) || verdict == FAR_HOLDS);
	}
	CHECK(code == 0 || (deaths && code != 124));
	if (atomic_load(&far->is_void))
		atomic_store(&test_void, true);
	residue_check(&before, setting);
	unlink(page);
	munmap(far, sizeof(*far));
}

#define FAR_MAIN                                                                                   \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		if (argc == 3 && !strcmp(argv[1], "--case"))                                       \
			return far_process_main(argv[2]);                                          \
		return test_main(argc, argv);                                                      \
	}
#endif
