/* service.c - two jobs: one offers a service, the others attach to it, and know nothing else of it.
 *
 *   weft run --net -n 2 service URL             serves until every process was told to stop; URL is a file that it makes
 *   weft run --net -n 3 service URL 7 8 9       has these numbers squared, a process of the service for each in turn; 0 stops one
 *
 * What is in the file is all it takes to attach, so it is made for its owner alone.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

enum { WORK = 1, RESULT = 2, MOST = 64 };

static int failed(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, weft_last_error());
	return 1;
}

static int publish(const char *path)
{
	char url[WEFT_URL_TEXT];
	int len = weft_job_offer("kind=process role=service", url, sizeof(url));
	int fd = len < 0 ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (fd < 0 || write(fd, url, (size_t)len) != len)
		return failed(path);
	return close(fd);
}

/* Who asks is of another job: its id has this job's number for that one, and can be answered like any other. */
static int serve(void)
{
	struct weft_status st;
	uint64_t x = 1;

	while (x && weft_recv(weft_port_world(), WEFT_ANY, WORK, &x, sizeof(x), WEFT_FOREVER, &st) == 0) {
		x *= x;
		weft_send(weft_port_world(), st.from, RESULT, &x, sizeof(x), weft_in(10 * WEFT_S));
	}
	return 0;
}

static int ask(const char *path, char **numbers, int count)
{
	char url[WEFT_URL_TEXT] = "", query[64];
	weft_time soon = weft_in(30 * WEFT_S);
	weft_id service[MOST];
	FILE *file = fopen(path, "r");
	int job = -1, n = 0;

	if (file && fgets(url, sizeof(url), file))
		job = weft_job_attach(url, soon);
	if (file)
		fclose(file);
	if (job > 0) {
		snprintf(query, sizeof(query), "job=%d role=service", job);
		n = weft_dir_find(query, 1, soon, service, MOST);
	}
	if (n < 1)
		return failed(path);
	for (int i = 0; i < count; i++) {
		uint64_t x = strtoull(numbers[i], NULL, 10), y = 0;
		weft_id to = service[i % (n < MOST ? n : MOST)];

		if (weft_send(weft_port_world(), to, WORK, &x, sizeof(x), soon) < 0 || weft_recv(weft_port_world(), to, RESULT, &y, sizeof(y), soon, NULL) < 0)
			return failed("no answer");
		printf("%" PRIu64 " squared is %" PRIu64 "\n", x, y);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int r;

	if (argc < 2 || weft_init(NULL) < 0)
		return failed("weft run --net service URL [NUMBER...]");
	if (argc > 2)
		r = ask(argv[1], argv + 2, argc - 2);
	else
		r = weft_dir_set(weft_process(), "role=service") < 0 || (weft_port_index(weft_port_world(), weft_process()) == 0 && publish(argv[1])) || serve();
	return weft_fini(weft_in(10 * WEFT_S)) < 0 || r;
}
