/* pingpong.c - two processes hand one buffer to and fro: weft run -n 2 pingpong
 *
 * The world port's members are the processes that were started together, so weft_at(1) is the second
 * of them. Who has the buffer adds one to a number in it and gives it away; nothing is copied.
 */
#include <stdio.h>
#include <weft/weft.h>

enum { TURNS = 10000, BALL = 1, BYTES = 1 << 20 };

static int failed(const char *what, int answer)
{
	fprintf(stderr, "%s: %s (%s)\n", what, weft_strerror(answer), weft_last_error());
	return 1;
}

int main(void)
{
	struct weft_port_info info = { .size = sizeof(info) };
	struct weft_buf *ball = NULL;
	weft_time start;
	int r = weft_init(NULL);

	if (r < 0)
		return failed("weft_init", r);
	struct weft_port *world = weft_port_world();
	weft_port_stat(world, &info);
	if (info.count != 2)
		return fprintf(stderr, "this takes two processes: weft run -n 2 pingpong\n"), 1;

	weft_id other = weft_at(1 - info.index);
	if (info.index == 0) {
		r = weft_buf_get(BYTES, WEFT_RAIL_ANY, &ball);
		if (r < 0)
			return failed("weft_buf_get", r);
		*(int *)ball->data = 0;
	}
	start = weft_now();
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		if (turn % 2 == info.index) {
			++*(int *)ball->data;
			r = weft_buf_send(world, other, BALL, ball, weft_in(5 * WEFT_S));
		} else {
			r = weft_buf_recv(world, other, BALL, weft_in(5 * WEFT_S), &ball, NULL);
		}
		if (r < 0)
			return failed("the other process", r);
	}
	if (info.index == 0) {                  /* the last turn was the other's, so the buffer is here */
		printf("%d turns, %.0f ns each, of one buffer of 1 MiB\n", *(int *)ball->data,
		       (double)(weft_now() - start) / TURNS);
		if (*(int *)ball->data != TURNS)
			return 1;
		weft_buf_put(ball);
	}
	return weft_fini(weft_in(5 * WEFT_S)) < 0;
}
