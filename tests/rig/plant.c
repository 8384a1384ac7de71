/* plant.c - comes to a job as a guest, has a program started on a host of it, and tells what becomes of that.
 *
 * usage: WEFT_JOIN=URL plant HOST PROGRAM [ARGUMENT...]
 * Prints `planted` when the program runs there, and `ended ERROR at NS` when it does not any more; or why it could not be started.
 */
#include <inttypes.h>
#include <stdio.h>
#include <weft/weft.h>

int main(int argc, char **argv)
{
	struct weft_req *end = NULL;
	struct weft_status st;
	int r = argc < 3 ? -1 : weft_init(NULL);

	if (r == 0)
		r = weft_spawn(WEFT(spawn_opts, .where = argv[1], .prog = argv[2], .argv = argv + 2), weft_in(20 * WEFT_S), NULL, &end);
	if (r < 1)
		return printf("not planted: %d %s\n", r, weft_last_error()), 1;
	puts("planted");
	fflush(stdout);
	r = weft_req_wait(&end, weft_in(60 * WEFT_S), &st);
	printf("ended %d at %" PRId64 "\n", r, (int64_t)weft_now());
	return weft_fini(weft_in(WEFT_S)) < 0;
}
