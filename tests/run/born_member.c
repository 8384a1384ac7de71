/* born_member.c - a process that some launcher has started, as a member of the job that comes of it. See the file born.
 *
 *   born_member DIR quiet               joins; nothing of that may be seen by a program that looks after its children and descriptors
 *   born_member DIR dead RANK HOW       RANK ends (HOW: kill, exit) when all have joined; the others wait for a word of it
 *   born_member DIR watch RANK          the others wait for a word of RANK, which says none
 *   born_member DIR bereft RANK         the same; the last rank has a process started as soon as DIR/go is there
 *   born_member DIR missing RANK        RANK does not join; all go on until DIR/go is there
 *   born_member DIR again               joins, leaves, and tries to join once more
 *   born_member DIR stay                joins, leaves and goes on until DIR/go is there
 *   born_member DIR busy                joins and waits until DIR/go is there
 *   born_member DIR abort RANK CODE     RANK ends the job with CODE, the others wait for it
 *   born_member DIR spawn               rank 0 has two processes started, which say so
 *   born_member DIR knock NAME RANK     no member: asks for the place of RANK at the agent's socket NAME
 *
 * What comes of it goes to DIR/rank: a launcher may lose what is printed when somebody dies.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.h>

#include "job/frames.h"

enum { GREETING = 1, READY, NEVER };

static const char *dir;
static struct weft_port_info info = { .size = sizeof(info) };
static volatile sig_atomic_t children;

static void note(uint32_t rank, const char *what, int answer)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%u", dir, rank);
	file = fopen(path, "a");
	if (!file)
		exit(1);
	fprintf(file, "%s %d %s\n", what, answer, answer < 0 ? weft_last_error() : "");
	fclose(file);
}

static bool is_there(const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

static void await(const char *name)
{
	while (!is_there(name))
		usleep(5000);
}

/* A word from everybody to everybody: afterwards all have joined. */
static void greet_all(void)
{
	uint32_t word = info.index, n = info.count;
	int r;

	for (uint32_t i = 1; i < n; i++) {
		r = weft_send(weft_port_world(), weft_at((info.index + i) % n), GREETING, &word, sizeof(word), weft_in(30 * WEFT_S));
		if (r < 0)
			note(info.index, "send", r);
	}
	for (uint32_t i = 1; i < n; i++) {
		r = weft_recv(weft_port_world(), weft_at((info.index + i) % n), GREETING, &word, sizeof(word), weft_in(30 * WEFT_S), NULL);
		if (r < 0 || word != (info.index + i) % n)
			note(info.index, "recv", r);
	}
}

static int join(void)
{
	int r = weft_init(NULL);

	if (r == 0)
		weft_port_stat(weft_port_world(), &info);
	return r;
}

static int descriptors(void)
{
	DIR *all = opendir("/proc/self/fd");
	int n = 0;

	while (all && readdir(all))
		n++;
	if (all)
		closedir(all);
	return n;
}

static void on_child(int sig)
{
	(void)sig;
	children++;
}

static int play_quiet(void)
{
	int before = descriptors(), after;

	signal(SIGCHLD, on_child);
	if (join() < 0)
		return 1;
	greet_all();
	errno = 0;
	note(info.index, "children", waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD && !children ? 0 : -1);
	if (weft_fini(weft_in(30 * WEFT_S)) < 0)
		return 1;
	after = descriptors();
	note(info.index, "descriptors", after <= before ? 0 : before - after);
	return 0;
}

static void die(const char *how)
{
	uint32_t word;

	for (uint32_t i = 1; i < info.count; i++)
		weft_recv(weft_port_world(), WEFT_ANY, READY, &word, sizeof(word), weft_in(30 * WEFT_S), NULL);
	if (strcmp(how, "kill") == 0)
		kill(getpid(), SIGKILL);
	_exit(0);
}

static int play_dead(uint32_t victim, const char *how)
{
	struct weft_req *req = NULL;
	struct weft_status st;
	uint32_t word = 0;
	int r;

	if (join() < 0)
		return 1;
	greet_all();
	if (info.index == victim)
		die(how);
	r = weft_recv_post(weft_port_world(), WEFT(op, .peer = weft_at(victim), .tag = NEVER, .data = &word, .len = sizeof(word)), &req, &st);
	if (r == 0) {
		weft_send(weft_port_world(), weft_at(victim), READY, &word, sizeof(word), weft_in(30 * WEFT_S));
		r = weft_req_wait(&req, weft_in(30 * WEFT_S), &st);
	}
	note(info.index, "heard", r);
	return weft_fini(weft_in(5 * WEFT_S)) < 0;
}

static int play_watch(uint32_t whom)
{
	struct weft_req *req = NULL;
	struct weft_status st;
	uint32_t word;
	int r;

	if (join() < 0)
		return 1;
	greet_all();
	if (info.index == whom) {
		note(info.index, "well", 0);
		pause();
	}
	r = weft_recv_post(weft_port_world(), WEFT(op, .peer = weft_at(whom), .tag = NEVER, .data = &word, .len = sizeof(word)), &req, &st);
	note(info.index, "well", 0);
	if (r == 0)
		r = weft_req_wait(&req, weft_in(60 * WEFT_S), &st);
	note(info.index, "heard", r);
	return weft_fini(weft_in(5 * WEFT_S)) < 0;
}

static int play_bereft(char *self, uint32_t whom)
{
	char *argv[] = { self, (char *)(uintptr_t)dir, (char[]){ "spawned" }, NULL };
	uint32_t word;

	if (join() < 0)
		return 1;
	greet_all();
	note(info.index, "well", 0);
	if (info.index == whom)
		pause();
	await("go");
	if (info.index == info.count - 1)
		note(info.index, "spawned", weft_spawn(WEFT(spawn_opts, .count = 1, .prog = self, .argv = argv), weft_in(30 * WEFT_S), NULL, NULL));
	note(info.index, "heard", weft_recv(weft_port_world(), weft_at(whom), NEVER, &word, sizeof(word), weft_in(60 * WEFT_S), NULL));
	return weft_fini(weft_in(5 * WEFT_S)) < 0;
}

static int play_missing(const char *victim)
{
	const char *pmi = getenv("PMI_RANK"), *pmix = getenv("PMIX_RANK"), *rank = pmix ? pmix : pmi;

	if (rank && strcmp(rank, victim) != 0)
		note((uint32_t)atoi(rank), "joined", join());
	await("go");
	return 0;
}

static int play_again(void)
{
	if (join() < 0)
		return 1;
	greet_all();
	if (weft_fini(weft_in(30 * WEFT_S)) < 0)
		return 1;
	note(info.index, "again", weft_init(NULL));
	return 0;
}

static int play_until_told(bool stay)
{
	if (join() < 0)
		return 1;
	greet_all();
	if (stay && weft_fini(weft_in(30 * WEFT_S)) < 0)
		return 1;
	note(info.index, "well", 0);
	await("go");
	return stay ? 0 : weft_fini(weft_in(30 * WEFT_S)) < 0;
}

static int play_abort(uint32_t who, int code)
{
	uint32_t word;

	if (join() < 0)
		return 1;
	greet_all();
	if (info.index == who)
		weft_job_abort(code, "as the test wants it");
	weft_recv(weft_port_world(), weft_at(who), NEVER, &word, sizeof(word), WEFT_FOREVER, NULL);
	note(info.index, "outlived", 0);
	pause();
	return 0;
}

static int play_spawn(char *self)
{
	char *argv[] = { self, (char *)(uintptr_t)dir, (char[]){ "spawned" }, NULL };
	struct weft_req *ends[2] = { NULL };
	struct weft_status st;
	weft_id ids[2];
	int r = join();

	if (r < 0)
		return 1;
	greet_all();
	if (info.index == 0) {
		r = weft_spawn(WEFT(spawn_opts, .count = 2, .prog = self, .argv = argv), weft_in(30 * WEFT_S), ids, ends);
		note(0, "spawned", r);
		for (int i = 0; r == 2 && i < 2; i++) {
			r = weft_req_wait(&ends[i], weft_in(30 * WEFT_S), &st) < 0 ? -1 : 2;
			note(0, "ended", r < 0 ? r : (int)st.len);
		}
	}
	greet_all();
	return weft_fini(weft_in(30 * WEFT_S)) < 0;
}

static int play_spawned(void)
{
	if (join() < 0)
		return 1;
	greet_all();
	note(100 + info.index, "of", (int)info.count);
	return weft_fini(weft_in(30 * WEFT_S)) < 0;
}

static int play_knock(const char *name, uint32_t rank)
{
	struct wf_frame_knock knock = { .magic = WF_KNOCK_MAGIC, .protocol = WF_JOIN_PROTOCOL, .rank = rank, .version = WF_VERSION };
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct wf_frame_seat seat;
	int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, "%s", name);
	if (connect(sock, (struct sockaddr *)&sa, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) < 0 ||
	    send(sock, &knock, sizeof(knock), 0) != (ssize_t)sizeof(knock) || recv(sock, &seat, sizeof(seat), 0) != (ssize_t)sizeof(seat))
		return printf("no answer\n"), 1;
	printf("%d %u %u %u %.*s\n", seat.result, seat.process, seat.base, seat.count, (int)sizeof(seat.words), seat.result < 0 ? seat.words : "");
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";

	dir = argc > 1 ? argv[1] : ".";
	signal(SIGUSR1, SIG_IGN);               /* by this Hydra tells of the dead, where it does not end all */
	if (strcmp(what, "quiet") == 0)
		return play_quiet();
	if (strcmp(what, "dead") == 0 && argc == 5)
		return play_dead((uint32_t)atoi(argv[3]), argv[4]);
	if (strcmp(what, "watch") == 0 && argc == 4)
		return play_watch((uint32_t)atoi(argv[3]));
	if (strcmp(what, "bereft") == 0 && argc == 4)
		return play_bereft(argv[0], (uint32_t)atoi(argv[3]));
	if (strcmp(what, "missing") == 0 && argc == 4)
		return play_missing(argv[3]);
	if (strcmp(what, "again") == 0)
		return play_again();
	if (strcmp(what, "stay") == 0 || strcmp(what, "busy") == 0)
		return play_until_told(what[0] == 's');
	if (strcmp(what, "abort") == 0 && argc == 5)
		return play_abort((uint32_t)atoi(argv[3]), atoi(argv[4]));
	if (strcmp(what, "spawn") == 0)
		return play_spawn(argv[0]);
	if (strcmp(what, "spawned") == 0)
		return play_spawned();
	if (strcmp(what, "knock") == 0 && argc == 5)
		return play_knock(argv[3], (uint32_t)strtoul(argv[4], NULL, 10));
	return 2;
}
