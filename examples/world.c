/* world.c - who is there: each process says which one it is, and has a word with its neighbour.
 *
 *   weft run -n 4 world            or as the site starts programs: mpiexec -n 4 world, mpirun -n 4 world, srun -n 4 --mpi=pmix world
 *
 * The world port's members are the processes that were started together, by whichever launcher. A small message is copied and
 * gone, so everybody may send first and receive then; in a job of one the process is its own neighbour.
 */
#include <stdio.h>
#include <weft/weft.h>

enum { GREETING = 1 };

static int failed(const char *what, int answer)
{
	fprintf(stderr, "%s: %s (%s)\n", what, weft_strerror(answer), weft_last_error());
	return 1;
}

int main(void)
{
	struct weft_port_info info = { .size = sizeof(info) };
	struct weft_port *world;
	uint32_t left, right, greeter = UINT32_MAX;
	int r = weft_init(NULL);

	if (r < 0)
		return failed("weft_init", r);
	world = weft_port_world();
	weft_port_stat(world, &info);
	right = (info.index + 1) % info.count;
	left = (info.index + info.count - 1) % info.count;
	r = weft_send(world, weft_at(right), GREETING, &info.index, sizeof(info.index), weft_in(30 * WEFT_S));
	if (r < 0)
		return failed("weft_send", r);
	r = weft_recv(world, weft_at(left), GREETING, &greeter, sizeof(greeter), weft_in(30 * WEFT_S), NULL);
	if (r < 0)
		return failed("weft_recv", r);
	printf("%u of %u, greeted by %u\n", info.index, info.count, greeter);
	return weft_fini(weft_in(30 * WEFT_S)) < 0 || greeter != left;
}
