/* jobs.h - tests of what holds between processes of different jobs.
 *
 *   FAR(a_sentence, 4) { jobs_join(); ... processes 0 and 1 are one job, 2 and 3 another, 4 and 5 a third ... }
 *   JOBS_MAIN
 *
 * As far.h, but nobody launches: the program itself stands in for `weft run` and starts itself as often as is wanted. Each process joins as agents do, told by the test
 * where the others are and which jobs are attached; ports are on the loopback interface. Both processes of every job have the same two numbers, and no two jobs call a third the same.
 */
#ifndef JOBS_H
#define JOBS_H
#include "far.h"
#include "job/others.h"
#include "mem/segment.h"
#include "wire/wire.h"

enum { JOBS = 3, JOBS_OF = 2, JOBS_PORTS = 32 /* words of the page: where processes listen */ };

static char jobs_at[WF_WIRE_AT];
static _Atomic uint32_t jobs_hidden;    /* rank + 1: nobody is told where that one is */
static _Atomic uint32_t jobs_sought;    /* rank + 1: where that one is is still being found out */
static _Atomic int jobs_asked;          /* how often the agent was asked for a treaty */
static bool jobs_answer;                /* and it knows */
static bool jobs_wrong_key;

static inline uint32_t job_of(uint32_t rank)
{
	return rank / JOBS_OF;
}

static inline uint32_t jobs_me(void)
{
	return job_of(far_rank);
}

/* What job @here calls @other. */
static inline uint32_t jobs_alias_of(uint32_t here, uint32_t other)
{
	return 100 * (here + 1) + other;
}

static inline uint32_t jobs_alias(uint32_t other)
{
	return jobs_alias_of(jobs_me(), other);
}

/* @id as this process has to call it, given as its own job does. */
static inline weft_id jobs_id(uint32_t rank, weft_id id)
{
	return job_of(rank) == jobs_me() ? id : (weft_id)jobs_alias(job_of(rank)) << 52 | id;
}

static inline weft_id jobs_thread(uint32_t rank)
{
	return jobs_id(rank, far_id(rank));
}

static inline uint32_t jobs_number(uint32_t rank)
{
	return WF_AGENTS + rank % JOBS_OF;
}

static inline weft_id jobs_process(uint32_t rank)
{
	return jobs_id(rank, (weft_id)jobs_number(rank) << 32);
}

static inline struct wf_treaty jobs_treaty(uint32_t other)
{
	uint32_t me = jobs_me(), low = me < other ? me : other, high = me < other ? other : me;
	struct wf_treaty t = { .alias = jobs_alias(other), .side = me > other };

	memset(t.id, (int)(1 + low + 16 * high), sizeof(t.id));
	memset(t.key.bytes, (int)(77 + low + 16 * high), sizeof(t.key.bytes));
	if (jobs_wrong_key)
		t.key.bytes[3] ^= 1;
	return t;
}

static inline int jobs_attach(uint32_t other)
{
	struct wf_treaty t = jobs_treaty(other);

	return wf_wire_treaty_add(&t);
}

static inline int jobs_ask(uint32_t alias, struct wf_treaty *ret)
{
	atomic_fetch_add(&jobs_asked, 1);
	for (uint32_t i = 0; i < JOBS && jobs_answer; i++)
		if (i != jobs_me() && alias == jobs_alias(i)) {
			*ret = jobs_treaty(i);
			return 0;
		}
	return -ESRCH;
}

static inline int jobs_where(uint32_t process, char *ret_at, size_t n)
{
	uint32_t alias = process >> 20, number = (process & 0xfffff) - WF_AGENTS, rank = FAR_MOST;

	for (uint32_t i = 0; i < JOBS && number < JOBS_OF; i++)
		if (alias == (i == jobs_me() ? 0 : jobs_alias(i)))
			rank = i * JOBS_OF + number;
	if (rank >= far_count || atomic_load(&jobs_hidden) == rank + 1)
		return -ESRCH;
	if (!far_told(JOBS_PORTS + (int)rank) || atomic_load(&jobs_sought) == rank + 1)
		return -EAGAIN;
	snprintf(ret_at, n, "127.0.0.1:%u", (unsigned)far_told(JOBS_PORTS + (int)rank));
	return 0;
}

static inline void jobs_join(void)
{
	static struct wf_wire_self self;
	static struct wf_key key;
	char *colon;

	memset(key.bytes, (int)(10 + jobs_me()), sizeof(key.bytes));
	self = (struct wf_wire_self){ .process = jobs_number(far_rank), .count = JOBS_OF, .key = &key, .adapter = "127.0.0.1", .where = jobs_where, .treaty = jobs_ask };
	memset(self.job, (int)(20 + jobs_me()), sizeof(self.job));
	wf_others_agent(&self, jobs_at, sizeof(jobs_at));
	MUST_OK(weft_init(NULL));
	MUST(weft_self() != 0);
	colon = strrchr(jobs_at, ':');
	MUST(colon);
	far_tell(JOBS_PORTS + (int)far_rank, (uint64_t)atoi(colon + 1));
	atomic_store(&far->id[far_rank], weft_self());
	far_meet();
}

/* The same, and every job is attached to every other. */
static inline void jobs_join_attached(void)
{
	jobs_join();
	for (uint32_t i = 0; i * JOBS_OF < far_count; i++)
		if (i != jobs_me())
			MUST_OK(jobs_attach(i));
	far_meet();
}

/* In place of weft run -n COUNT SELF --case NAME. */
static inline int jobs_run(char **argv)
{
	int count = atoi(argv[3]), code = 0, status;
	char rank[16];

	setenv("WEFT_SIZE", argv[3], 1);
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		MUST(pid >= 0);
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			snprintf(rank, sizeof(rank), "%d", i);
			setenv("WEFT_RANK", rank, 1);
			execv(argv[4], argv + 4);
			_exit(127);
		}
	}
	while (wait(&status) > 0)
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			code = 1;
	return code;
}

#define JOBS_MAIN                                                                                  \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		char self[4096];                                                                   \
		ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);                    \
                                                                                                   \
		if (argc == 3 && !strcmp(argv[1], "--case"))                                       \
			return far_process_main(argv[2]);                                          \
		if (argc == 7 && !strcmp(argv[1], "run"))                                          \
			return jobs_run(argv);                                                     \
		self[n > 0 ? n : 0] = 0;                                                           \
		setenv("WEFT_COMMAND", self, 1);                                                   \
		return test_main(argc, argv);                                                      \
	}
#endif
