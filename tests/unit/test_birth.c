/* test_birth.c - packets between the first process of a host and its agent, and how that is started. */
#include "job/birth.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "job/hatch.h"
#include "test.h"

static uint8_t room[WF_BIRTH_ROOM];

static void make_pair(int pair[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		abort();
}

TEST(a_packet_comes_as_it_was_said)
{
	uint8_t bytes[64];
	struct wf_body said = { .bytes = bytes, .n = sizeof(bytes) }, heard;
	enum wf_birth kind;
	int pair[2];

	make_pair(pair);
	wf_body_u32(&said, 7);
	wf_body_text(&said, "card");
	CHECK_OK(wf_birth_say(pair[0], WF_BIRTH_SEAL, &said));
	CHECK_OK(wf_birth_say(pair[0], WF_BIRTH_BEGIN, NULL));
	CHECK_OK(wf_birth_hear(pair[1], weft_in(60 * WEFT_S), &kind, &heard, room));
	CHECK(kind == WF_BIRTH_SEAL && wf_body_get32(&heard) == 7 && !strcmp(wf_body_get_text(&heard), "card") && wf_body_whole(&heard));
	CHECK_OK(wf_birth_hear(pair[1], weft_in(60 * WEFT_S), &kind, &heard, room));
	CHECK(kind == WF_BIRTH_BEGIN && wf_body_whole(&heard));
	close(pair[0]);
	close(pair[1]);
}

TEST(nothing_nobody_and_nonsense_are_told_apart)
{
	static uint8_t much[WF_BIRTH_ROOM + 8];
	struct wf_body body, bad = { .bad = true };
	enum wf_birth kind;
	int pair[2];

	make_pair(pair);
	CHECK_EQ(wf_birth_hear(pair[1], WEFT_NOW, &kind, &body, room), -EAGAIN);
	CHECK_EQ(wf_birth_hear(pair[1], weft_in(10 * WEFT_MS), &kind, &body, room), -ETIMEDOUT);
	CHECK_EQ(wf_birth_say(pair[0], WF_BIRTH_TASK, &bad), -EMSGSIZE);
	CHECK_EQ(send(pair[0], much, 3, 0), 3);
	CHECK_EQ(wf_birth_hear(pair[1], WEFT_NOW, &kind, &body, room), -ECONNRESET);
	CHECK_EQ(send(pair[0], much, WF_BIRTH_ROOM + 4, 0), WF_BIRTH_ROOM + 4);
	CHECK_OK(wf_birth_hear(pair[1], WEFT_NOW, &kind, &body, room));
	CHECK_EQ(send(pair[0], much, WF_BIRTH_ROOM + 5, 0), WF_BIRTH_ROOM + 5);
	CHECK_EQ(wf_birth_hear(pair[1], WEFT_NOW, &kind, &body, room), -ECONNRESET);
	close(pair[0]);
	CHECK_EQ(wf_birth_hear(pair[1], WEFT_FOREVER, &kind, &body, room), -ECONNRESET);
	CHECK_EQ(wf_birth_say(pair[1], WF_BIRTH_BEGIN, NULL), -ECONNRESET);
	close(pair[1]);
}

TEST(the_limit_is_what_the_environment_says)
{
	static const char *const wrong[] = { "0", "-1", "86401", "x", "1s", "99999999999999999999" };

	unsetenv("WEFT_START_S");
	CHECK_EQ(wf_birth_limit(), 60 * WEFT_S);
	setenv("WEFT_START_S", "", 1);
	CHECK_EQ(wf_birth_limit(), 60 * WEFT_S);
	setenv("WEFT_START_S", "86400", 1);
	CHECK_EQ(wf_birth_limit(), 86400 * WEFT_S);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		setenv("WEFT_START_S", wrong[i], 1);
		CHECK_EQ(wf_birth_limit(), -EINVAL);
		CHECK(strstr(weft_last_error(), wrong[i]));
	}
	unsetenv("WEFT_START_S");
}

static volatile sig_atomic_t children;

static void on_child(int sig)
{
	(void)sig;
	children++;
}

TEST(a_command_that_cannot_be_executed_is_the_first_thing_heard)
{
	struct wf_body body;
	enum wf_birth kind;
	int sock;

	setenv("WEFT_COMMAND", "/nobody/weft", 1);
	CHECK_OK(wf_hatch(&sock));
	CHECK_OK(wf_birth_hear(sock, weft_in(10 * WEFT_S), &kind, &body, room));
	CHECK(kind == WF_BIRTH_FAILED && wf_body_get32(&body) == ENOENT && !wf_body_get_text(&body) && wf_body_whole(&body));
	CHECK_EQ(wf_birth_hear(sock, weft_in(10 * WEFT_S), &kind, &body, room), -ECONNRESET);
	close(sock);
}

TEST(nobody_here_is_told_of_the_end_of_what_was_started)
{
	struct wf_body body;
	enum wf_birth kind;
	int sock;

	signal(SIGCHLD, on_child);
	setenv("WEFT_COMMAND", "/bin/true", 1);
	CHECK_OK(wf_hatch(&sock));
	CHECK_EQ(wf_birth_hear(sock, weft_in(10 * WEFT_S), &kind, &body, room), -ECONNRESET);
	close(sock);
	errno = 0;
	CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
	CHECK_EQ(children, 0);
	signal(SIGCHLD, SIG_DFL);
}

TEST(a_command_name_that_is_no_path_is_refused)
{
	static char name[8192];
	int sock = 77;

	memset(name, 'x', sizeof(name) - 1);
	setenv("WEFT_COMMAND", name, 1);
	CHECK_EQ(wf_hatch(&sock), -ENAMETOOLONG);
	CHECK_EQ(sock, 77);
	unsetenv("WEFT_COMMAND");
}

TEST_MAIN
