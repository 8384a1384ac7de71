/* test_pmi_space.c - a launcher's space, with a launcher that says what the test wants: in order, nonsense, or nothing.
 *
 * The launcher is a thread at the other end of PMI_FD. It has a script: what it expects to be told, and what it answers then.
 */
#include <fcntl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "job/pmi_space.h"
#include "test.h"

/* One question and its answer. An answer NULL: none; "": the socket is closed. */
struct line {
	const char *asked, *answer;
};

static struct wf_space space;
static const struct line *script;
static int ends[2];             /* the process's, the launcher's */
static pthread_t launcher;
static const char *unexpected;

/* A script's "#cmd=...;" stands for a message of PMI-2, which has its length ahead. */
static const char *spell(const char *text, char ret[4096])
{
	if (*text != '#')
		return text;
	snprintf(ret, 4096, "%6zu%s", strlen(text) - 1, text + 1);
	return ret;
}

static bool hear(const char *asked)
{
	char got[4096], room[4096];
	const char *wanted = spell(asked, room);
	size_t have = 0;

	while (have < strlen(wanted)) {
		ssize_t n = recv(ends[1], got + have, strlen(wanted) - have, 0);

		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	return memcmp(got, wanted, have) == 0;
}

/* Byte by byte if the test says so: a stream has no borders. */
static bool in_bytes;

static void *launch(void *arg)
{
	char room[4096];

	(void)arg;
	for (const struct line *l = script; l->asked; l++) {
		const char *answer;

		if (!hear(l->asked)) {
			unexpected = l->asked;
			break;
		}
		if (!l->answer)
			return NULL;
		if (!*l->answer)
			break;
		answer = spell(l->answer, room);
		for (size_t at = 0, n = strlen(answer), step = in_bytes ? 1 : n; at < n; at += step)
			send(ends[1], answer + at, step, MSG_NOSIGNAL);
	}
	shutdown(ends[1], SHUT_RDWR);
	return NULL;
}

static void begin(const struct line *lines)
{
	char fd[16];

	MUST_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	snprintf(fd, sizeof(fd), "%d", ends[0]);
	setenv("PMI_FD", fd, 1);
	setenv("PMI_RANK", "1", 1);
	setenv("PMI_SIZE", "3", 1);
	unsetenv("PMI_JOBID");
	script = lines;
	unexpected = NULL;
	MUST_OK(pthread_create(&launcher, NULL, launch, NULL));
}

/* @ours: our end of the socket is still open. */
static void end(bool ours)
{
	if (ours)
		close(ends[0]);
	shutdown(ends[1], SHUT_RDWR);
	pthread_join(launcher, NULL);
	close(ends[1]);
	if (unexpected)
		printf("# the launcher waited for: %s\n", unexpected);
	CHECK(!unexpected);
}

#define INIT_1 { "cmd=init pmi_version=1 pmi_subversion=1\n", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n" }
#define MAXES { "cmd=get_maxes\n", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n" }
#define OPEN_1 INIT_1, MAXES, { "cmd=get_my_kvsname\n", "cmd=my_kvsname kvsname=kvs_1\n" }
#define INIT_2 { "cmd=init pmi_version=2 pmi_subversion=0\n", "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n" }
#define FULL_2 { "#cmd=fullinit;pmirank=1;threaded=FALSE;", "#cmd=fullinit-response;rank=1;size=3;rc=0;" }
#define OPEN_2 INIT_2, FULL_2, { "#cmd=job-getid;", "#cmd=job-getid-response;jobid=job.0;rc=0;" }

static const struct line good_1[] = {
	OPEN_1,
	{ "cmd=put kvsname=kvs_1 key=weft.a.1 value=x:y\n", "cmd=put_result rc=0 msg=success\n" },
	{ "cmd=barrier_in\n", "cmd=barrier_out\n" },
	{ "cmd=get kvsname=kvs_1 key=weft.a.2\n", "cmd=get_result rc=0 msg=success value=z\n" },
	{ "cmd=get kvsname=kvs_1 key=weft.b.0\n", "cmd=get_result rc=-1 msg=key_not_found value=unknown\n" },
	{ "cmd=finalize\n", "cmd=finalize_ack\n" },
	{ NULL, NULL },
};
static const struct line good_2[] = {
	OPEN_2,
	{ "#cmd=kvs-put;key=weft.a.1;value=x:y;", "#cmd=kvs-put-response;rc=0;" },
	{ "#cmd=kvs-fence;", "#cmd=kvs-fence-response;rc=0;" },
	{ "#cmd=kvs-get;jobid=job.0;srcid=-1;key=weft.fence;", "#cmd=kvs-get-response;rc=0;found=FALSE;" },
	{ "#cmd=kvs-get;jobid=job.0;srcid=-1;key=weft.a.2;", "#cmd=kvs-get-response;found=TRUE;value=z;rc=0;" },
	{ "#cmd=kvs-get;jobid=job.0;srcid=-1;key=weft.b.0;", "#cmd=kvs-get-response;found=FALSE;rc=0;" },
	{ "#cmd=finalize;", "#cmd=finalize-response;rc=0;" },
	{ NULL, NULL },
};

static void go_through(enum wf_space_kind kind, const struct line *lines, const char *job)
{
	char value[WF_SPACE_VALUE];

	begin(lines);
	MUST_EQ(wf_space_open_as(kind, &space), 1);
	CHECK_EQ(space.rank, 1);
	CHECK_EQ(space.size, 3);
	CHECK(strcmp(space.job, job) == 0);
	CHECK_OK(wf_space_put(&space, "a", "x:y"));
	CHECK_OK(wf_space_fence(&space, wf_now() + 30 * WEFT_S));
	CHECK_OK(wf_space_get(&space, 2, "a", value, sizeof(value)));
	CHECK(strcmp(value, "z") == 0);
	CHECK_EQ(wf_space_get(&space, 0, "b", value, sizeof(value)), -ENOENT);
	CHECK_OK(wf_space_close(&space));
	CHECK_EQ(wf_space_close(&space), -ENOTCONN);
	CHECK_EQ(wf_space_put(&space, "a", "x"), -ENOTCONN);
	end(false);
}

TEST(a_space_by_pmi_1_from_beginning_to_end)
{
	go_through(WF_SPACE_PMI1, good_1, "kvs_1");
}

TEST(a_space_by_pmi_2_from_beginning_to_end)
{
	go_through(WF_SPACE_PMI2, good_2, "job.0");
}

TEST(answers_may_come_in_pieces)
{
	in_bytes = true;
	go_through(WF_SPACE_PMI1, good_1, "kvs_1");
	go_through(WF_SPACE_PMI2, good_2, "job.0");
	in_bytes = false;
}

TEST(keys_values_and_ranks_that_are_none_never_reach_the_launcher)
{
	static const struct line lines[] = { OPEN_1, { "cmd=finalize\n", "cmd=finalize_ack\n" }, { NULL, NULL } };
	static const char *const bad[] = { "", "a b", "a=b", "a;b", "a\nb", "\x80", "a\"", "%s" };
	char wide[WF_SPACE_VALUE + 1], value[8] = "before";

	begin(lines);
	MUST_EQ(wf_space_open_as(WF_SPACE_PMI1, &space), 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK_EQ(wf_space_put(&space, bad[i], "v"), -EINVAL);
		CHECK_EQ(wf_space_put(&space, "k", bad[i]), -EINVAL);
		CHECK_EQ(wf_space_get(&space, 0, bad[i], value, sizeof(value)), -EINVAL);
	}
	memset(wide, 'x', sizeof(wide) - 1);
	wide[sizeof(wide) - 1] = '\0';
	CHECK_EQ(wf_space_put(&space, "k", wide), -EINVAL);
	wide[WF_SPACE_KEY] = '\0';
	CHECK_EQ(wf_space_put(&space, wide, "v"), -EINVAL);
	CHECK_EQ(wf_space_put(&space, NULL, "v"), -EINVAL);
	CHECK_EQ(wf_space_put(&space, "k", NULL), -EINVAL);
	CHECK_EQ(wf_space_get(&space, 3, "k", value, sizeof(value)), -EINVAL);
	CHECK_EQ(wf_space_get(&space, 0, NULL, value, sizeof(value)), -EINVAL);
	CHECK_EQ(wf_space_fence(&space, WEFT_NOW), -EAGAIN);
	CHECK_EQ(wf_space_fence(&space, wf_now() - 1), -ETIMEDOUT);
	CHECK(strcmp(value, "before") == 0);
	CHECK_OK(wf_space_close(&space));
	end(false);
}

/* Opening with @lines answers @wanted, and leaves the socket alone. */
static void refuses(enum wf_space_kind kind, const struct line *lines, int wanted)
{
	begin(lines);
	CHECK_EQ(wf_space_open_as(kind, &space), wanted);
	CHECK(weft_last_error()[0] != '\0');
	CHECK(fcntl(ends[0], F_GETFD) >= 0);
	end(true);
}

#define REFUSES(kind, wanted, ...) refuses(kind, (const struct line[]){ __VA_ARGS__, { NULL, NULL } }, wanted)

TEST(a_launcher_that_answers_nonsense_is_not_opened)
{
	static const char hello_1[] = "cmd=init pmi_version=1 pmi_subversion=1\n";

	REFUSES(WF_SPACE_PMI1, -ECONNRESET, { hello_1, "" });
	REFUSES(WF_SPACE_PMI1, -EREMOTEIO, { hello_1, "cmd=response_to_init pmi_version=1 rc=-1\n" });
	REFUSES(WF_SPACE_PMI1, -EPROTO, { hello_1, "cmd=response_to_init pmi_version=2 rc=0\n" });
	REFUSES(WF_SPACE_PMI1, -EPROTO, { hello_1, "cmd=response_to_init rc=0\n" });
	REFUSES(WF_SPACE_PMI1, -EPROTO, { hello_1, "cmd=something_else rc=0\n" });
	REFUSES(WF_SPACE_PMI1, -EPROTO, { hello_1, "rc=0\n" });
	REFUSES(WF_SPACE_PMI1, -EPROTO, { hello_1, "\n" });
	REFUSES(WF_SPACE_PMI1, -EPROTO, { hello_1, "\x01\x02\x03\n" });
	REFUSES(WF_SPACE_PMI1, -EPROTO, { hello_1, "cmd=response_to_init pmi_version=1 rc=0\ncmd=more\n" });
	REFUSES(WF_SPACE_PMI1, -EPROTO, INIT_1, { "cmd=get_maxes\n", "cmd=maxes keylen_max=x vallen_max=1024\n" });
	REFUSES(WF_SPACE_PMI1, -EOPNOTSUPP, INIT_1, { "cmd=get_maxes\n", "cmd=maxes keylen_max=64 vallen_max=64\n" });
	REFUSES(WF_SPACE_PMI1, -EOPNOTSUPP, INIT_1, { "cmd=get_maxes\n", "cmd=maxes keylen_max=8 vallen_max=1024\n" });
	REFUSES(WF_SPACE_PMI1, -EPROTO, INIT_1, MAXES, { "cmd=get_my_kvsname\n", "cmd=my_kvsname\n" });
	REFUSES(WF_SPACE_PMI1, -EPROTO, INIT_1, MAXES, { "cmd=get_my_kvsname\n", "cmd=my_kvsname kvsname=\n" });
}

TEST(a_launcher_that_answers_nonsense_in_pmi_2_is_not_opened)
{
	static const char full[] = "#cmd=fullinit;pmirank=1;threaded=FALSE;";

	REFUSES(WF_SPACE_PMI2, -EPROTO, INIT_2, { full, "cmd=response\n" });
	REFUSES(WF_SPACE_PMI2, -EPROTO, INIT_2, { full, "999999" });
	REFUSES(WF_SPACE_PMI2, -EREMOTEIO, INIT_2, { full, "#cmd=fullinit-response;rc=1;a=b;;" });
	REFUSES(WF_SPACE_PMI2, -EPROTO, INIT_2, { full, "#cmd=fullinit-response;rank=1;rc=0;" });
	REFUSES(WF_SPACE_PMI2, -EPROTO, INIT_2, { full, "#cmd=fullinit-response;rank=-;size=3;rc=0;" });
	/* the rank is not one of them */
	REFUSES(WF_SPACE_PMI2, -EPROTO, INIT_2, { full, "#cmd=fullinit-response;rank=3;size=3;rc=0;" },
		{ "#cmd=job-getid;", "#cmd=job-getid-response;jobid=job.0;rc=0;" });
}

TEST(ranks_and_sizes_that_make_no_sense_are_refused)
{
	static const struct {
		const char *rank, *size;
		bool asked;             /* the launcher, for the rest */
	} odd[] = {
		{ "3", "3", true }, { "0", "0", true }, { "x", "3", false }, { "1", "", false }, { "-1", "3", false }, { "0", "16777217", false },
	};
	static const struct line whole[] = { OPEN_1, { NULL, NULL } }, only[] = { INIT_1, { NULL, NULL } };

	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		begin(odd[i].asked ? whole : only);
		setenv("PMI_RANK", odd[i].rank, 1);
		setenv("PMI_SIZE", odd[i].size, 1);
		CHECK_EQ(wf_space_open_as(WF_SPACE_PMI1, &space), -EPROTO);
		end(true);
	}
}

TEST(a_launcher_that_falls_silent_is_waited_for_only_so_long)
{
	static const struct line silent[] = { { "cmd=init pmi_version=1 pmi_subversion=1\n", NULL }, { NULL, NULL } };
	static const struct line half[] = { OPEN_1, { "cmd=barrier_in\n", "cmd=barrier_o" }, { "never", NULL }, { NULL, NULL } };
	weft_time start = wf_now();

	wf_space_patience = 100 * WEFT_MS;
	refuses(WF_SPACE_PMI1, silent, -ETIMEDOUT);
	CHECK(wf_now() - start >= 100 * WEFT_MS && wf_now() - start < 5 * WEFT_S * TEST_SLOW);
	wf_space_patience = 30 * WEFT_S;

	begin(half);
	MUST_EQ(wf_space_open_as(WF_SPACE_PMI1, &space), 1);
	start = wf_now();
	CHECK_EQ(wf_space_fence(&space, start + 50 * WEFT_MS), -ETIMEDOUT);
	CHECK(wf_now() - start >= 50 * WEFT_MS && wf_now() - start < 5 * WEFT_S * TEST_SLOW);
	CHECK_EQ(wf_space_put(&space, "a", "b"), -ETIMEDOUT);
	CHECK_EQ(wf_space_fence(&space, WEFT_FOREVER), -ETIMEDOUT);
	CHECK_OK(wf_space_close(&space));       /* without a word */
	shutdown(ends[1], SHUT_RDWR);
	pthread_join(launcher, NULL);
	CHECK(unexpected && strcmp(unexpected, "never") == 0);
	close(ends[1]);
}

TEST(a_launcher_that_goes_away_is_told_at_once)
{
	static const struct line lines[] = { OPEN_1, { "cmd=barrier_in\n", "" }, { NULL, NULL } };

	begin(lines);
	MUST_EQ(wf_space_open_as(WF_SPACE_PMI1, &space), 1);
	CHECK_EQ(wf_space_fence(&space, WEFT_FOREVER), -ECONNRESET);
	CHECK_EQ(wf_space_put(&space, "a", "b"), -ECONNRESET);
	CHECK_OK(wf_space_close(&space));
	end(false);
}

/* What @answer to a get makes of it. */
static int got(const char *answer, size_t room)
{
	const struct line lines[] = { OPEN_1, { "cmd=get kvsname=kvs_1 key=weft.a.0\n", answer }, { "cmd=finalize\n", "cmd=finalize_ack\n" }, { NULL, NULL } };
	char value[WF_SPACE_VALUE] = "before";
	int r;

	begin(lines);
	MUST_EQ(wf_space_open_as(WF_SPACE_PMI1, &space), 1);
	r = wf_space_get(&space, 0, "a", value, room);
	CHECK(r == 0 || strcmp(value, "before") == 0);
	wf_space_close(&space);
	shutdown(ends[1], SHUT_RDWR);
	pthread_join(launcher, NULL);
	close(ends[1]);
	return r;
}

TEST(values_that_cannot_have_been_put_are_not_got)
{
	char wide[WF_SPACE_VALUE + 100], *p = wide + sprintf(wide, "cmd=get_result rc=0 value=");

	CHECK_EQ(got("cmd=get_result rc=0 value=v\n", 8), 0);
	CHECK_EQ(got("cmd=get_result rc=0 value=seven77\n", 8), 0);
	CHECK_EQ(got("cmd=get_result rc=0 value=eight888\n", 8), -ENOSPC);
	CHECK_EQ(got("cmd=get_result rc=0 value=\n", 8), -EPROTO);
	CHECK_EQ(got("cmd=get_result rc=0\n", 8), -EPROTO);
	CHECK_EQ(got("cmd=get_result rc=0 value=a=b\n", 8), -EPROTO);
	CHECK_EQ(got("cmd=put_result rc=0 value=a\n", 8), -EPROTO);
	memset(p, 'x', WF_SPACE_VALUE);
	strcpy(p + WF_SPACE_VALUE, "\n");
	CHECK_EQ(got(wide, WF_SPACE_VALUE), -EPROTO);
	strcpy(p + WF_SPACE_VALUE - 1, "\n");
	CHECK_EQ(got(wide, WF_SPACE_VALUE), 0);
}

TEST(no_library_for_pmix_is_told_in_words)
{
	const char *before = wf_pmix_library;

	wf_pmix_library = "libnobody-has-this.so.0";
	CHECK_EQ(wf_space_open_as(WF_SPACE_PMIX, &space), -ENOSYS);
	CHECK(strstr(weft_last_error(), "libnobody-has-this.so.0"));
	wf_pmix_library = "libc.so.6";          /* a library, but not this one */
	CHECK_EQ(wf_space_open_as(WF_SPACE_PMIX, &space), -ENOSYS);
	CHECK(strstr(weft_last_error(), "PMIx_"));
	wf_pmix_library = before;
}

/* Comes last: it may be opened once in the life of a process. */
TEST(the_environment_says_which_way_and_only_once)
{
	static const struct line by_2[] = { INIT_2, { "#cmd=fullinit;pmijobid=77.0;pmirank=1;threaded=FALSE;", "#cmd=fullinit-response;rank=1;size=3;rc=0;" },
		{ "#cmd=job-getid;", "#cmd=job-getid-response;jobid=job.0;rc=0;" }, { "#cmd=finalize;", "#cmd=finalize-response;rc=0;" },
		{ NULL, NULL } };

	unsetenv("PMIX_NAMESPACE");
	unsetenv("PMI_FD");
	CHECK_EQ(wf_space_open(&space), 0);
	setenv("PMI_PORT", "host:1", 1);
	CHECK_EQ(wf_space_open(&space), -EOPNOTSUPP);
	unsetenv("PMI_PORT");
	begin(by_2);
	setenv("PMI_JOBID", "77.0", 1);
	MUST_EQ(wf_space_open(&space), 1);
	CHECK_OK(wf_space_close(&space));
	end(false);
	CHECK_EQ(wf_space_open(&space), -EALREADY);
}

TEST_MAIN
