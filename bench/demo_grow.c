/* demo_grow.c - who is there, and more of them: names and a query, a thread begun in a process of another host, a process that joins late.
 * usage: weft run --hosts A:1,B:1 demo_grow
 *
 * Ada is on the first host, Ben on the second, and offers threads that square numbers. Ada finds him by what he says of himself, has a thread begun there, and
 * gives it work. Then a program that nobody of the job has started comes by the job's url, is seen to come, says hello, and goes.
 */
#include "measure.h"

#include <sys/wait.h>
#include <weft/weft.h>

#define NUMBERS 5

enum { TAG_NUMBER = 1, TAG_SQUARE, TAG_HELLO, TAG_END };

static weft_time soon(void)
{
	return weft_in(20 * WEFT_S);
}

static void must_be(int r, const char *what)
{
	if (r < 0)
		die("%s: %s", what, weft_last_error());
}

/* The entry: whose id is in @arg asks, until he says 0. */
static void square(const void *arg, size_t len)
{
	weft_id by;
	uint64_t x;

	if (len != sizeof(by))
		return;
	memcpy(&by, arg, len);
	while (weft_recv(NULL, by, TAG_NUMBER, &x, sizeof(x), soon(), NULL) == 0 && x) {
		x *= x;
		weft_send(NULL, by, TAG_SQUARE, &x, sizeof(x), soon());
	}
}

static void be_ben(void)
{
	char end;

	must_be(weft_entry_add("square", square), "weft_entry_add");
	must_be(weft_dir_set(weft_process(), "role=calculator speed=fast"), "weft_dir_set");
	must_be(weft_recv(weft_port_world(), WEFT_ANY, TAG_END, &end, 1, soon(), NULL), "weft_recv");
}

/* The program that comes late; a process like any other once it is in. */
static void be_late(const char *url)
{
	weft_id ada;
	char text[] = "may I join?";

	must_be(weft_init(WEFT(init_opts, .join = url, .name = "cleo", .attrs = "role=guest")), "weft_init");
	must_be(weft_dir_find("kind=thread role=host-of-the-party", 1, soon(), &ada, 1), "weft_dir_find");
	must_be(weft_send(NULL, ada, TAG_HELLO, text, sizeof(text), soon()), "weft_send");
	must_be(weft_fini(soon()), "weft_fini");
}

static void ask_a_thread(weft_id ben)
{
	weft_id thread, me = weft_self();
	struct weft_req *end = NULL;
	char id[WEFT_ID_TEXT];
	uint64_t x;

	must_be(weft_spawn(WEFT(spawn_opts, .entry = "square", .in = ben, .arg = &me, .arg_len = sizeof(me)), soon(), &thread, &end), "weft_spawn");
	printf("  a thread was begun there: %s; it squares", weft_id_print(thread, id, sizeof(id)));
	for (uint64_t i = 1; i <= NUMBERS; i++) {
		must_be(weft_send(NULL, thread, TAG_NUMBER, &i, sizeof(i), soon()), "weft_send");
		must_be(weft_recv(NULL, thread, TAG_SQUARE, &x, sizeof(x), soon(), NULL), "weft_recv");
		printf(" %llu", (unsigned long long)x);
	}
	x = 0;
	must_be(weft_send(NULL, thread, TAG_NUMBER, &x, sizeof(x), soon()), "weft_send");
	must_be(weft_req_wait(&end, soon(), NULL), "its end");
	printf(", and has ended\n");
}

static void have_a_guest(void)
{
	struct weft_queue *queue;
	struct weft_req *watch;
	struct weft_status st;
	char name[64], text[64];
	pid_t pid;

	must_be(weft_dir_set(weft_self(), "role=host-of-the-party"), "weft_dir_set");
	must_be(weft_queue_open(&queue), "weft_queue_open");
	must_be(weft_dir_watch("kind=process role=guest", WEFT(op, .queue = queue), &watch), "weft_dir_watch");
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		unsetenv("WEFT_AGENT");
		execl("/proc/self/exe", "demo_grow", getenv("WEFT_URL"), (char *)NULL);
		_exit(127);
	}
	for (int seen = 0; seen < 2; seen++) {
		if (weft_queue_next(queue, soon(), &st, 1) != 1)
			die("nobody came");
		if (st.tag == WEFT_JOINED) {
			weft_dir_get(st.from, "name", soon(), name, sizeof(name));
			must_be(weft_recv(NULL, WEFT_ANY, TAG_HELLO, text, sizeof(text), soon(), NULL), "weft_recv");
			printf("  %s has joined, which the job has not started, and says: \"%s\"\n", name, text);
		} else {
			printf("  %s has left again\n", name);
		}
	}
	waitpid(pid, NULL, 0);
	weft_req_cancel(watch);
	weft_req_free(watch);
}

static void be_ada(void)
{
	char text[512];
	weft_id ben;

	must_be(weft_dir_find("kind=process role=calculator speed=f*", 1, soon(), &ben, 1), "weft_dir_find");
	must_be(weft_dir_get(ben, NULL, soon(), text, sizeof(text)), "weft_dir_get");
	printf("  asked for kind=process role=calculator speed=f*, found: %s\n", text);
	ask_a_thread(ben);
	have_a_guest();
	must_be(weft_send(weft_port_world(), ben, TAG_END, "", 1, soon()), "weft_send");
}

int main(int argc, char **argv)
{
	struct weft_port_info info = { .size = sizeof(info) };

	if (argc > 1) {
		be_late(argv[1]);
		return 0;
	}
	must_be(weft_init(WEFT(init_opts, .name = getenv("WEFT_RANK") && *getenv("WEFT_RANK") == '1' ? "ben" : "ada")), "weft_init");
	weft_port_stat(weft_port_world(), &info);
	if (info.count != 2)
		die("two processes are wanted");
	if (info.index == 1)
		be_ben();
	else
		be_ada();
	must_be(weft_fini(soon()), "weft_fini");
	return 0;
}
