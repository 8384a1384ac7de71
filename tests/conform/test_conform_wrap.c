/* test_conform_wrap.c - the wrappers do what they say: lossy breaks and loses, trace tells, mrstrict refuses. */
#include "conform.h"
#include "net/wrap/wrap.h"

#define QUIET "lossy.short=0 lossy.again=0 lossy.stall=0 "

static void open_named(struct side *s, const char *name, const char *options)
{
	setenv("CONFORM_RAIL", name, 1);
	side_open_with(s, options);
	setenv("CONFORM_RAIL", "", 1);
}

/* A lane from @a to @b, written to until it breaks. How many bytes were right at the other end. */
static uint64_t until_it_breaks(struct side *a, struct side *b)
{
	unsigned char hello[HELLO] = { 0 };
	struct end *e = end_new(a), *to;
	weft_time late = weft_now() + 20 * WEFT_S;
	uint32_t before = b->ends;
	size_t said = 0;

	e->opener = true;
	memcpy(hello, &e->number, sizeof(e->number));
	MUST_OK(wf_lane_open(a->rail, &b->rail->info.addr, WEFT_LANE_HEAD, e, &e->lane));
	while (!e->downs && weft_now() < late) {
		ssize_t r;

		if (e->ups && said < HELLO) {
			r = end_write(e, hello + said, HELLO - said, 0);
			said += r > 0 ? (size_t)r : 0;
		} else if (e->ups) {
			end_send(e, 3000, 0);
		}
		pump(a, b);
		to = b->ends > before ? b->end[before] : NULL;
		if (to && to->downs)
			end_close(to);          /* as the core does: so the other end hears of it */
	}
	CHECK_EQ(e->downs, 1);
	to = b->ends > before ? b->end[before] : NULL;
	if (to) {
		if (!to->closing)
			PUMP_UNTIL(a, b, to->downs);
		CHECK_EQ(to->wrong, 0);
		CHECK(to->in <= e->out);
	}
	end_close(e);
	end_close(to);
	return to ? to->in : 0;
}

TEST(a_lane_breaks_at_any_byte_and_all_before_it_is_right)
{
	uint64_t few = 0, many = 0;

	for (uint64_t i = 0; i < test_scaled(200); i++) {
		char options[96];
		struct side a, b;
		uint64_t n;

		snprintf(options, sizeof(options), "lossy.break=%u lossy.seed=%llu", i % 3 ? 100000 : 100, (unsigned long long)(test_seed + i));
		open_named(&a, i % 2 ? "lossy/tcp:lo" : "tcp:lo", i % 2 ? options : "");
		open_named(&b, "lossy/tcp:lo", options);
		a.other = &b;
		b.other = &a;
		b.eating = i % 5 == 0 ? EAT_NEED : EAT_RANDOM;
		n = until_it_breaks(&a, &b);
		few += n < 1000;
		many += n > 10000;
		side_close(&a);
		side_close(&b);
	}
	printf("# %llu lanes broke early, %llu late\n", (unsigned long long)few, (unsigned long long)many);
	CHECK(few > 0 && many > 0);
}

TEST(the_same_seed_breaks_at_the_same_byte)
{
	uint64_t seen[8][2], differ = 0;

	for (int seed = 0; seed < 8; seed++)
		for (int twice = 0; twice < 2; twice++) {
			char options[96];
			struct side a, b;

			snprintf(options, sizeof(options), QUIET "lossy.break=20000 lossy.seed=%d", seed + 1);
			open_named(&a, "tcp:lo", "");
			open_named(&b, "lossy/tcp:lo", options);
			a.other = &b;
			b.other = &a;
			seen[seed][twice] = until_it_breaks(&a, &b);
			side_close(&a);
			side_close(&b);
		}
	for (int seed = 0; seed < 8; seed++) {
		CHECK_EQ(seen[seed][0], seen[seed][1]);
		differ += seen[seed][0] != seen[0][0];
	}
	CHECK(differ >= 6);
}

/* ---- frames ---- */

#define FRAMES 3000u

struct tally {
	struct side side;               /* first: the cookie of its rail */
	uint8_t seen[FRAMES];
	uint32_t last, late, bad, all;
};

static uint32_t sum_of(const unsigned char *p, size_t n)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

static void tally_frame(void *rail, void *lane, const struct weft_addr *from, struct weft_room *room, size_t len)
{
	struct tally *t = rail;
	uint32_t number, sum;

	(void)lane, (void)from;
	MUST(len >= 12);
	memcpy(&number, room->data, 4);
	memcpy(&sum, (char *)room->data + 4, 4);
	t->all++;
	if (sum != sum_of((unsigned char *)room->data + 8, len - 8) || number >= FRAMES) {
		t->bad++;
	} else {
		t->seen[number]++;
		t->late += number < t->last;
		t->last = number;
	}
	MUST_EQ(wf_rail_provide(t->side.rail, &room, 1), 1);
}

static const struct weft_upcalls tally_upcalls = {
	.size = sizeof(struct weft_upcalls), .incoming = conform_incoming, .up = conform_up, .down = conform_down, .frame = tally_frame,
	.writable = conform_writable, .sent = conform_sent,
};

/* Frames over a rail that loses what @options says. */
static void lose(struct tally *t, const char *name, const char *options)
{
	struct side a;
	struct end *e;
	int quiet = 0;

	memset(t, 0, sizeof(*t));
	open_named(&a, strchr(name, '/') + 1, "");
	MUST_OK(wf_rail_open(name, options, &tally_upcalls, conform_retry, t, &t->side.rail));
	for (int i = 0; i < 32; i++) {
		struct weft_room *one[1] = { &t->side.room[t->side.rooms++] };

		room_make(&t->side, one[0]);
		MUST_EQ(wf_rail_provide(t->side.rail, one, 1), 1);
	}
	a.other = &t->side;
	t->side.other = &a;
	e = end_new(&a);
	MUST_OK(wf_lane_open(a.rail, &t->side.rail->info.addr, WEFT_LANE_HEAD, e, &e->lane));
	PUMP_UNTIL(&a, &t->side, e->ups);
	for (uint32_t i = 0; i < FRAMES;) {
		unsigned char frame[100] = { 0 };
		size_t n = 12 + i % 80;
		uint32_t sum;

		memcpy(frame, &i, 4);
		pattern_fill(i, 0, frame + 8, n - 8);
		sum = sum_of(frame + 8, n - 8);
		memcpy(frame + 4, &sum, 4);
		if (end_write(e, frame, n, 0) > 0)
			i++;
		pump(&a, &t->side);
	}
	while (quiet < 500) {
		uint32_t before = t->all;

		pump(&a, &t->side);
		quiet = t->all == before ? quiet + 1 : 0;
	}
	side_close(&a);
	side_close(&t->side);
}

static uint32_t lost(const struct tally *t, uint32_t *ret_doubled)
{
	uint32_t n = 0;

	*ret_doubled = 0;
	for (uint32_t i = 0; i < FRAMES; i++) {
		n += t->seen[i] == 0;
		*ret_doubled += t->seen[i] > 1;
	}
	return n;
}

static void lose_each_way(const char *name)
{
	static struct tally t;
	uint32_t gone, twice;

	lose(&t, name, "");
	gone = lost(&t, &twice);
	CHECK(gone == 0 && twice == 0 && t.bad == 0 && t.late == 0 && t.all == FRAMES);
	lose(&t, name, "lossy.drop=100");
	gone = lost(&t, &twice);
	CHECK(gone > FRAMES / 20 && gone < FRAMES / 5 && twice == 0 && t.bad == 0 && t.late == 0);
	lose(&t, name, "lossy.double=100");
	gone = lost(&t, &twice);
	CHECK(gone == 0 && twice > FRAMES / 40 && t.bad == 0);
	lose(&t, name, "lossy.swap=100");
	gone = lost(&t, &twice);
	CHECK(gone == 0 && twice == 0 && t.bad == 0 && t.late > FRAMES / 40);
	lose(&t, name, "lossy.corrupt=100");
	gone = lost(&t, &twice);
	CHECK(t.bad > 0 && t.all == FRAMES);
	lose(&t, name, "lossy.corrupt=50 lossy.drop=50 lossy.double=50 lossy.swap=50 lossy.seed=9");
	gone = lost(&t, &twice);
	CHECK(gone > 0 && twice > 0 && t.bad > 0 && t.late > 0);
}

TEST(frames_get_lost_doubled_swapped_and_corrupted)
{
	lose_each_way("lossy/mock:here");
}

TEST(frames_of_a_loaded_driver_too)
{
	if (!getenv("CONFORM_LOAD"))
		SKIP("CONFORM_LOAD names no driver");
	lose_each_way("lossy/unix:host");
}

/* ---- trace, mrstrict ---- */

TEST(a_trace_tells_what_happened_and_forgets_the_oldest)
{
	char *text = NULL;
	size_t size = 0;
	struct side a;
	struct end *e;
	FILE *file;
	int lines = 0;

	for (int events = 8; events <= 1000; events += 992) {
		char options[40];

		snprintf(options, sizeof(options), "trace.events=%d", events);
		open_named(&a, "trace/tcp:lo", options);
		a.other = &a;
		e = cable(&a, &a, WEFT_LANE_HEAD);
		for (int i = 0; i < 20; i++)
			carry(e, 100, 100);
		file = open_memstream(&text, &size);
		MUST(file);
		wf_trace_print(a.rail->state, file);
		fclose(file);
		lines = 0;
		for (char *c = text; *c; c++)
			lines += *c == '\n';
		if (events == 8) {
			CHECK_EQ(lines, 8);
			CHECK(!strstr(text, " open "));
		} else {
			CHECK(strstr(text, "lane 1 open 1 -> 0\n") && strstr(text, "lane 1 up ") && strstr(text, "incoming "));
			CHECK(strstr(text, "lane 1 send ") && strstr(text, "lane 2 take "));
		}
		free(text);
		side_close(&a);
	}
	CHECK_EQ(wf_rail_open("trace/tcp:lo", "trace.events=0", &conform_upcalls, conform_retry, &a, &a.rail), -EINVAL);
	CHECK_EQ(wf_rail_open("trace/tcp:lo", "trace.nonsense=0", &conform_upcalls, conform_retry, &a, &a.rail), -EINVAL);
}

TEST(mrstrict_refuses_memory_that_is_not_registered)
{
	unsigned char data[64] = { 0 }, key[64];
	struct iovec v = { data, sizeof(data) };
	uint32_t key_len = sizeof(key);
	struct weft_out out = { .piece = &v, .pieces = 1 };
	const struct weft_driver_mem *mem;
	struct token token = { 0 };
	struct side a, b;
	struct end *e;
	void *handle, *other;

	open_named(&a, "mrstrict/mock:here", "");
	open_named(&b, "mrstrict/mock:here", "");
	a.other = &b;
	b.other = &a;
	e = cable(&a, &b, WEFT_LANE_HEAD);
	carry(e, 10000, 1000);          /* registered as the rig does, all works */
	mem = a.rail->driver->slots.mem;
	out.token = &token;
	CHECK_EQ(wf_lane_send(a.rail, e->lane, &out), -EFAULT);         /* no handle */
	CHECK(strstr(weft_last_error(), "not registered"));
	MUST_OK(mem->add(a.rail->state, data, 32, &handle, key, &key_len));
	out.mem = &handle;
	CHECK_EQ(wf_lane_send(a.rail, e->lane, &out), -EFAULT);         /* too short by half */
	v.iov_len = 33;
	CHECK_EQ(wf_lane_send(a.rail, e->lane, &out), -EFAULT);
	v = (struct iovec){ data + 1, 32 };
	CHECK_EQ(wf_lane_send(a.rail, e->lane, &out), -EFAULT);
	v.iov_len = 31;
	other = &token;
	out.mem = &other;
	CHECK_EQ(wf_lane_send(a.rail, e->lane, &out), -EFAULT);         /* not a handle */
	out.mem = &handle;
	pattern_fill(seed_out(e), e->out, data + 1, 31);
	CHECK_EQ(wf_lane_send(a.rail, e->lane, &out), 1);
	PUMP_UNTIL(&a, &b, token.freed);
	CHECK_EQ(token.freed, 1);
	mem->del(a.rail->state, handle);
	CHECK_EQ(wf_lane_send(a.rail, e->lane, &out), -EFAULT);         /* a handle no more */
	side_close(&a);
	side_close(&b);
}

TEST(mrstrict_refuses_rooms_that_are_not_registered)
{
	unsigned char data[4096], key[64];
	struct weft_room room = { .data = data, .len = sizeof(data) }, *one = &room;
	uint32_t key_len = sizeof(key);
	struct side a;
	void *handle;

	open_named(&a, "mrstrict/mock:here", "");
	CHECK_EQ(wf_rail_provide(a.rail, &one, 1), -EFAULT);
	MUST_OK(a.rail->driver->slots.mem->add(a.rail->state, data, sizeof(data) - 1, &handle, key, &key_len));
	room.mem = handle;
	CHECK_EQ(wf_rail_provide(a.rail, &one, 1), -EFAULT);
	a.rail->driver->slots.mem->del(a.rail->state, a.room[0].mem);   /* a room that is out: refused, and still there */
	CHECK(strstr(weft_last_error(), "room"));
	a.other = &a;
	carry(cable(&a, &a, WEFT_LANE_HEAD), 1000, 100);
	side_close(&a);
}

TEST(mrstrict_wants_a_driver_that_registers)
{
	struct wf_rail *rail;

	CHECK_EQ(wf_rail_open("mrstrict/tcp:lo", "", &conform_upcalls, conform_retry, NULL, &rail), -EOPNOTSUPP);
	CHECK(strstr(weft_last_error(), "tcp"));
}

CONFORM_MAIN
