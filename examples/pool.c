/* pool.c - workers are spawned, found by what they say of themselves, and given work: weft run pool */
#include <inttypes.h>
#include <stdio.h>
#include <weft/weft.h>

enum { N = 4, WORK = 1, RESULT = 2 };

/* Goes home when there was no work for a second. */
static void work(void)
{
	struct weft_status st;
	uint64_t x;

	weft_dir_set(weft_self(), "role=worker");
	while (weft_recv(NULL, WEFT_ANY, WORK, &x, sizeof(x), weft_in(WEFT_S), &st) == 0) {
		x *= x;
		weft_send(NULL, st.from, RESULT, &x, sizeof(x), weft_in(10 * WEFT_S));
	}
}

int main(int argc, char **argv)
{
	char word[] = "worker", *args[] = { argv[0], word, NULL };
	weft_id worker[N];
	uint64_t x, sum = 0;

	if (weft_init(NULL) < 0)
		return fprintf(stderr, "%s\n", weft_last_error()), 1;
	weft_time soon = weft_in(10 * WEFT_S);
	if (argc > 1) {
		work();
		return weft_fini(WEFT_FOREVER) < 0;
	}
	if (weft_spawn(WEFT(spawn_opts, .prog = argv[0], .argv = args, .count = N), soon, NULL, NULL) != N ||
	    weft_dir_find("kind=thread role=worker", N, soon, worker, N) < N)
		return fprintf(stderr, "no workers: %s\n", weft_last_error()), 1;
	for (x = 1; x <= 100; x++)
		weft_send(NULL, worker[x % N], WORK, &x, sizeof(x), soon);
	for (int i = 0; i < 100 && weft_recv(NULL, WEFT_ANY, RESULT, &x, sizeof(x), soon, NULL) == 0; i++)
		sum += x;
	printf("sum of squares: %" PRIu64 "\n", sum);
	return weft_fini(WEFT_FOREVER) < 0;
}
