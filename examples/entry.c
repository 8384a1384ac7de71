/* entry.c - a thread is spawned in another process, and the two talk.
 *
 *   weft run -n 2 entry            or on two hosts: weft run --hosts a:1,b:1 entry
 *
 * Every process has the entry "adder": it says under which name it may be called, and its main thread is then free to do
 * something else. The first process spawns three of them in the second, gives each its share of the numbers, and adds up what they send.
 */
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

enum { NUMBERS = 1, SUM, DONE, ADDERS = 3, SHARE = 1000 };

#define PATIENCE weft_in(30 * WEFT_S)

static int failed(const char *what, int answer)
{
	fprintf(stderr, "%s: %s (%s)\n", what, weft_strerror(answer), weft_last_error());
	return 1;
}

/* A spawned thread: its argument is the id of who wants the sum. */
static void adder(const void *arg, size_t len)
{
	uint64_t number[SHARE], sum = 0;
	weft_id boss;

	if (len != sizeof(boss))
		return;
	memcpy(&boss, arg, sizeof(boss));
	if (weft_recv(NULL, boss, NUMBERS, number, sizeof(number), PATIENCE, NULL) < 0)
		return;
	for (int i = 0; i < SHARE; i++)
		sum += number[i];
	weft_send(NULL, boss, SUM, &sum, sizeof(sum), PATIENCE);
}

static int add_up(weft_id in)
{
	struct weft_req *ends[ADDERS];
	weft_id adders[ADDERS], me = weft_self();
	uint64_t number[SHARE], sum, total = 0;
	int r = weft_spawn(WEFT(spawn_opts, .entry = "adder", .in = in, .count = ADDERS, .arg = &me, .arg_len = sizeof(me)), PATIENCE, adders, ends);

	if (r != ADDERS)
		return failed("weft_spawn", r);
	for (int i = 0; i < ADDERS; i++) {
		for (uint64_t k = 0; k < SHARE; k++)
			number[k] = (uint64_t)i * SHARE + k + 1;
		r = weft_send(NULL, adders[i], NUMBERS, number, sizeof(number), PATIENCE);
		if (r < 0)
			return failed("weft_send", r);
	}
	for (int i = 0; i < ADDERS; i++) {
		char who[WEFT_ID_TEXT];

		r = weft_recv(NULL, adders[i], SUM, &sum, sizeof(sum), PATIENCE, NULL);
		if (r == 0)
			r = weft_req_wait(&ends[i], PATIENCE, NULL);
		if (r < 0)
			return failed("an adder", r);
		printf("%s adds up to %llu, and has ended\n", weft_id_print(adders[i], who, sizeof(who)), (unsigned long long)sum);
		total += sum;
	}
	printf("in all %llu\n", (unsigned long long)total);
	return total != (uint64_t)ADDERS * SHARE * (ADDERS * SHARE + 1) / 2;
}

int main(void)
{
	struct weft_port_info info = { .size = sizeof(info) };
	struct weft_port *world;
	int r = weft_init(NULL), bad = 0;

	if (r < 0)
		return failed("weft_init", r);
	r = weft_entry_add("adder", adder);
	if (r < 0)
		return failed("weft_entry_add", r);
	world = weft_port_world();
	weft_port_stat(world, &info);
	if (info.index == 0)
		bad = add_up(weft_port_member(world, info.count - 1));         /* in a job of one it is this process itself */
	/* Nobody leaves before the sum is there. */
	for (uint32_t i = 1; i < info.count && info.index == 0; i++)
		weft_send(world, weft_at(i), DONE, NULL, 0, PATIENCE);
	if (info.index)
		bad = weft_recv(world, weft_at(0), DONE, NULL, 0, PATIENCE, NULL) < 0;
	return weft_fini(PATIENCE) < 0 || bad;
}
