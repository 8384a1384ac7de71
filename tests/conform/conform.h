/* conform.h - the rig of the conformance suite: two rails of the driver under test in one process, and a small core on top of them.
 *
 * CONFORM_RAIL names the rail ("tcp:lo", "lossy/tcp:lo"), CONFORM_OPTIONS its options, CONFORM_LOAD a driver to load first. The suite is one;
 * what a driver does not have is skipped with a line.
 *
 * A lane's bytes are a function of its number and direction and of their offset, so every byte can be checked alone. The first ones
 * of a lane that was opened say its number: the side that did not open it finds its partner by them.
 *
 *     side   a rail and its ends         end   one lane as its side sees it         cable   a lane with both its ends
 */
#ifndef CONFORM_H
#define CONFORM_H

#include <dirent.h>
#include <sys/stat.h>

#include "../test.h"
#include "mock.h"
#include "net/rail.h"

#define HELLO ((size_t)16)
#define ENDS 4096
#define ROOMS 256

struct side;

/* What an end does with bytes that come. */
enum eating {
	EAT_ALL,                /* takes what there is */
	EAT_RANDOM,             /* takes parts, leaves parts, needs some elsewhere: by the end's own numbers */
	EAT_NEED,               /* needs everything in pieces of need_size */
	EAT_AHEAD,              /* has memory for what comes behind some bytes, before it comes; and takes it, or has it told again */
	EAT_NOTHING             /* leaves all, and wants no more than it must */
};

struct end {
	struct side *side;
	void *lane;
	struct end *_Atomic other;      /* at the other side, once it has said hello */
	uint32_t number;                /* of the lane: index into the opener's ends, + 1 */
	bool opener;
	_Atomic int ups, downs, err, writables;
	_Atomic bool closing, closed;
	/* Receiving. */
	enum eating eating;
	uint64_t random;
	_Atomic uint64_t in;            /* bytes of the pattern that came and were right */
	uint64_t expect;                /* no need reaches beyond that */
	uint64_t wrong;
	unsigned char hello[HELLO];
	size_t greeted;
	size_t need_size, needed;       /* largest need; bytes of the one that is open */
	unsigned char *land;            /* where needs go */
	size_t land_size;
	struct iovec piece[WEFT_NEED_PIECES];
	uint32_t pieces;
	_Atomic uint64_t takes, needs, placed, drops, aheads, again;
	size_t left;                    /* bytes left by the last take */
	ssize_t refuse;                 /* <0: what take answers from now on */
	bool close_in_take, close_in_down;
	/* Sending. */
	uint64_t out;
	bool greeting_sent;
	int scribbles;                  /* upcalls after down or close */
};

struct side {
	struct wf_rail *rail;
	struct side *other;
	struct end *end[ENDS];
	_Atomic uint32_t ends;
	int refuse_incoming;            /* <0: answers this */
	enum eating eating;             /* of whoever comes */
	_Atomic bool slow;              /* its upcalls take a while */
	int refuse_bytes;               /* <0: whoever comes is let in, and what he says answered with this; then closed */
	_Atomic int incomings;
	struct weft_addr from;          /* whose the last lane that came was, as the driver says */
	_Atomic int retries;
	/* Frames. */
	struct weft_room room[ROOMS];
	int rooms;
	uint64_t strange_frames;
};

static const char *conform_name(void)
{
	const char *name = getenv("CONFORM_RAIL");
	return name && *name ? name : "tcp:lo";
}

static const char *conform_options(void)
{
	const char *text = getenv("CONFORM_OPTIONS");
	return text ? text : "";
}

/* ---- the pattern ---- */

static inline uint64_t pattern_word(uint64_t seed, uint64_t i)
{
	uint64_t z = seed * UINT64_C(0x9e3779b97f4a7c15) + i * UINT64_C(0xbf58476d1ce4e5b9);

	z = (z ^ (z >> 29)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 32);
}

static inline void pattern_fill(uint64_t seed, uint64_t at, unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n;) {
		uint64_t w = pattern_word(seed, (at + i) / 8);
		size_t from = (at + i) % 8, k = 8 - from < n - i ? 8 - from : n - i;

		memcpy(p + i, (unsigned char *)&w + from, k);
		i += k;
	}
}

/* How many bytes are not what they should be. */
static inline uint64_t pattern_wrong(uint64_t seed, uint64_t at, const unsigned char *p, size_t n)
{
	uint64_t wrong = 0;

	for (size_t i = 0; i < n;) {
		uint64_t w = pattern_word(seed, (at + i) / 8);
		size_t from = (at + i) % 8, k = 8 - from < n - i ? 8 - from : n - i;

		wrong += memcmp(p + i, (unsigned char *)&w + from, k) != 0;
		i += k;
	}
	return wrong;
}

static inline uint64_t seed_in(const struct end *e)
{
	return (uint64_t)e->number * 2 + e->opener;
}

static inline uint64_t seed_out(const struct end *e)
{
	return (uint64_t)e->number * 2 + !e->opener;
}

/* ---- ends ---- */

static inline struct end *end_new(struct side *s)
{
	struct end *e = calloc(1, sizeof(*e));
	uint32_t n = atomic_fetch_add(&s->ends, 1);

	MUST(e && n < ENDS);
	e->side = s;
	e->number = n + 1;
	e->random = test_seed + n;
	e->need_size = 64 * KIB;
	e->expect = UINT64_MAX;
	s->end[n] = e;
	return e;
}

static inline bool is_stream(const struct side *s)
{
	return s->rail->driver->slots.caps & WEFT_DRIVER_STREAM;
}

static inline void end_close(struct end *e)
{
	if (!e || atomic_exchange(&e->closing, true))
		return;
	wf_lane_close(e->side->rail, e->lane);
	atomic_store(&e->closed, true);         /* from here on no upcall may come */
}

/* The first bytes of a lane have come: whose is it? */
static inline void greet(struct end *e)
{
	uint32_t number;

	memcpy(&number, e->hello, sizeof(number));
	MUST(number >= 1 && number <= atomic_load(&e->side->other->ends));
	e->number = number;
	e->other = e->side->other->end[number - 1];
	e->other->other = e;
}

static inline void check_bytes(struct end *e, const void *p, size_t n)
{
	e->wrong += pattern_wrong(seed_in(e), e->in, p, n);
	atomic_store(&e->in, e->in + n);
}

/* A need for @n bytes, cut into pieces by the end's numbers. */
static inline void ask(struct end *e, struct weft_need *need, size_t n, bool by_parts)
{
	size_t at = 0;

	if (e->land_size < n) {
		free(e->land);
		e->land = malloc(n);
		MUST(e->land);
		e->land_size = n;
	}
	memset(e->land, 0xa5, n);
	need->pieces = 0;
	while (at < n) {
		size_t k = n - at;

		if (by_parts && need->pieces < WEFT_NEED_PIECES - 1 && k > 1)
			k = test_random(&e->random) % k;        /* also 0: an empty piece */
		need->piece[need->pieces++] = (struct iovec){ e->land + at, k };
		at += k;
	}
	need->min = by_parts && n > 1 && test_random(&e->random) % 2 ? 1 + test_random(&e->random) % (n - 1) : 0;
	e->needed = n;
	atomic_fetch_add(&e->needs, 1);
}

static inline size_t some_need(struct end *e)
{
	size_t most = e->expect - e->in < e->need_size ? (size_t)(e->expect - e->in) : e->need_size;

	if (most == 0)
		return 0;
	return test_random(&e->random) % 4 ? 1 + test_random(&e->random) % (most < 64 ? most : 64) : 1 + test_random(&e->random) % most;
}

static inline ssize_t eat(void *lane, void *bytes, size_t len, struct weft_need *need)
{
	struct end *e = lane;
	size_t n = 0, rest;

	e->scribbles += atomic_load(&e->downs) || atomic_load(&e->closed);
	atomic_fetch_add(&e->takes, 1);
	if (e->close_in_take) {
		end_close(e);
		return 0;                               /* what is left of a closed lane must not turn up in the next one */
	}
	if (e->refuse < 0)
		return e->refuse;
	if (!e->opener && e->greeted < HELLO) {
		if (len < HELLO) {
			need->want = HELLO;
			return 0;
		}
		memcpy(e->hello, bytes, HELLO);
		e->greeted = n = HELLO;
		greet(e);
	}
	if (e->eating == EAT_NOTHING) {
		e->left = len - n;
		need->want = e->left + 1;
		return (ssize_t)n;
	}
	rest = len - n;
	if (e->eating == EAT_NEED && e->expect > e->in + 8 && rest > 8)
		rest = 8;                               /* the others are copied to where they are needed */
	if (e->eating == EAT_RANDOM && rest < e->expect - e->in) {      /* the last ones are not left: nothing would bring them again */
		uint64_t what = test_random(&e->random) % 8;

		rest = what < 5 ? test_random(&e->random) % (rest + 1) : rest;
		if (len - n - rest > 60000)             /* more than that may not be left */
			rest = len - n - 60000;
		if (what == 0 && len - n - rest < 30000)
			need->want = len - n - rest + test_random(&e->random) % 30000;
		if (need->want && e->expect - e->in - rest < need->want)
			need->want = 0;
	}
	check_bytes(e, (const unsigned char *)bytes + n, rest);
	n += rest;
	if (e->eating == EAT_NEED) {
		size_t k = e->expect - e->in < e->need_size ? (size_t)(e->expect - e->in) : e->need_size;

		if (k)
			ask(e, need, k, false);
	} else if (e->eating == EAT_RANDOM && !need->want && test_random(&e->random) % 3 == 0) {
		size_t k = some_need(e);

		if (k)
			ask(e, need, k, true);
	}
	need->later = e->eating == EAT_RANDOM && test_random(&e->random) % 4 == 0;      /* beside pieces it says nothing */
	e->left = len - n;
	return (ssize_t)n;
}

/* Who closes a lane waits for this to return: if it takes its time, who did not wait is found out. */
static inline ssize_t conform_take(void *lane, void *bytes, size_t len, struct weft_need *need)
{
	struct end *e = lane;
	ssize_t r = eat(e, bytes, len, need);

	if (e->side->slow) {
		usleep(200);
		e->scribbles += atomic_load(&e->closed);
	}
	return r;
}

static inline int conform_placed(void *lane, size_t got, struct weft_need *need)
{
	struct end *e = lane;

	e->scribbles += atomic_load(&e->downs) || atomic_load(&e->closed);
	atomic_fetch_add(&e->placed, 1);
	if (e->refuse < 0)
		return (int)e->refuse;
	MUST(got <= e->needed);
	check_bytes(e, e->land, got);
	for (size_t i = got; i < e->needed; i++)                /* what did not come was not written */
		e->wrong += e->land[i] != 0xa5;
	if (e->eating == EAT_NEED || (e->eating == EAT_RANDOM && test_random(&e->random) % 3 == 0)) {
		size_t k = e->eating == EAT_NEED ? (e->expect - e->in < e->need_size ? (size_t)(e->expect - e->in) : e->need_size) : some_need(e);

		if (k)
			ask(e, need, k, e->eating == EAT_RANDOM);
	}
	return 0;
}

static inline size_t conform_ahead(void *lane, struct iovec *ret_piece)
{
	struct end *e = lane;

	e->scribbles += atomic_load(&e->downs) || atomic_load(&e->closed);
	e->wrong += e->eating == EAT_AHEAD && e->left;
	if (e->eating != EAT_AHEAD || (!e->opener && e->greeted < HELLO) || test_random(&e->random) % 4 == 0)
		return 0;
	if (!e->land) {
		e->land_size = 64 * KIB;
		e->land = malloc(e->land_size);
		MUST(e->land);
	}
	e->needed = 1 + test_random(&e->random) % (test_random(&e->random) % 2 ? 64 * KIB : 300);
	memset(e->land, 0xa5, e->needed);
	*ret_piece = (struct iovec){ e->land, e->needed };
	return 1 + test_random(&e->random) % 200;
}

static inline int conform_came_ahead(void *lane, void *bytes, size_t front, size_t got)
{
	struct end *e = lane;

	e->scribbles += atomic_load(&e->downs) || atomic_load(&e->closed);
	atomic_fetch_add(&e->aheads, 1);
	MUST(got && got <= e->needed);
	for (size_t i = got; i < e->needed; i++)
		e->wrong += e->land[i] != 0xa5;
	if (e->refuse < 0)
		return (int)e->refuse;
	if (test_random(&e->random) % 2) {
		memcpy((char *)bytes + front, e->land, got);
		atomic_fetch_add(&e->again, 1);
		return 0;
	}
	check_bytes(e, bytes, front);
	check_bytes(e, e->land, got);
	return 1;
}

static inline void conform_up(void *lane)
{
	struct end *e = lane;

	e->scribbles += atomic_load(&e->downs) || atomic_load(&e->closed);
	atomic_fetch_add(&e->ups, 1);
}

static inline void conform_down(void *lane, int err)
{
	struct end *e = lane;

	e->scribbles += atomic_load(&e->closed);
	atomic_store(&e->err, err);
	atomic_fetch_add(&e->downs, 1);
	if (e->close_in_down)
		end_close(e);
}

static inline void conform_writable(void *lane)
{
	struct end *e = lane;

	e->scribbles += atomic_load(&e->downs) || atomic_load(&e->closed);
	atomic_fetch_add(&e->writables, 1);
}

static inline int conform_incoming(void *rail, void *lane, const struct weft_addr *from, void **ret_lane)
{
	struct side *s = rail;
	struct end *e;

	CHECK(from && from->len > 0 && from->len <= WEFT_ADDR_BYTES);
	s->from = *from;
	atomic_fetch_add(&s->incomings, 1);
	if (s->refuse_incoming < 0)
		return s->refuse_incoming;
	e = end_new(s);
	e->lane = lane;
	e->eating = s->eating;
	e->refuse = s->refuse_bytes;
	e->close_in_down = s->refuse_bytes < 0;
	*ret_lane = e;
	return 0;
}

/* A frame is a piece of the pattern, whatever its size; the first one of an opened lane is the hello. */
static inline void conform_frame(void *rail, void *lane, const struct weft_addr *from, struct weft_room *room, size_t len)
{
	struct side *s = rail;
	struct end *e = lane;
	struct weft_room *again[1] = { room };

	if (!e) {
		s->strange_frames++;
		CHECK(from && from->len > 0);
	} else if (!e->opener && e->greeted < HELLO) {
		MUST_EQ(len, HELLO);
		memcpy(e->hello, room->data, HELLO);
		e->greeted = HELLO;
		greet(e);
	} else {
		e->scribbles += atomic_load(&e->downs) || atomic_load(&e->closed);
		atomic_fetch_add(&e->takes, 1);
		check_bytes(e, room->data, len);
	}
	MUST_EQ(wf_rail_provide(s->rail, again, 1), 1);
}

/* Of a send whose memory the driver held. */
struct token {
	_Atomic int freed;
};

static inline void conform_sent(void *rail, void *token, int err)
{
	(void)rail;
	(void)err;
	atomic_fetch_add(&((struct token *)token)->freed, 1);
}

static inline void conform_retry(void *cookie)
{
	atomic_fetch_add(&((struct side *)cookie)->retries, 1);
}

static const struct weft_upcalls conform_upcalls = {
	.size = sizeof(struct weft_upcalls),
	.incoming = conform_incoming,
	.up = conform_up,
	.down = conform_down,
	.take = conform_take,
	.placed = conform_placed,
	.frame = conform_frame,
	.writable = conform_writable,
	.sent = conform_sent,
	.ahead = conform_ahead,
	.came_ahead = conform_came_ahead,
};

/* ---- sides ---- */

/* The driver's @n-th room, of @size. Registered if the driver wants that. */
static inline void room_make(struct side *s, struct weft_room *room)
{
	const struct weft_driver *d = &s->rail->driver->slots;
	unsigned char key[64];
	uint32_t key_len = sizeof(key);

	room->len = s->rail->info.frame;
	room->data = malloc(room->len);
	MUST(room->data);
	if (d->caps & WEFT_DRIVER_LOCAL_MEM)
		MUST_OK(d->mem->add(s->rail->state, room->data, room->len, &room->mem, key, &key_len));
}

static inline int side_try(struct side *s, const char *options)
{
	int r;

	memset(s, 0, sizeof(*s));
	r = wf_rail_open(conform_name(), options, &conform_upcalls, conform_retry, s, &s->rail);
	if (r < 0 || is_stream(s))
		return r;
	s->rooms = s->rail->info.rooms < ROOMS ? (int)s->rail->info.rooms : ROOMS;
	for (int i = 0; i < s->rooms; i++) {
		struct weft_room *one[1] = { &s->room[i] };

		room_make(s, &s->room[i]);
		MUST_EQ(wf_rail_provide(s->rail, one, 1), 1);
	}
	return 0;
}

static inline void side_open_with(struct side *s, const char *options)
{
	int r = side_try(s, options);

	if (r < 0)
		printf("# %s: %s\n", conform_name(), weft_last_error());
	MUST_OK(r);
}

static inline void side_open(struct side *s)
{
	side_open_with(s, conform_options());
}

static inline void side_close(struct side *s)
{
	for (uint32_t i = 0; i < s->ends; i++)
		end_close(s->end[i]);
	wf_rail_close(s->rail);
	for (int i = 0; i < s->rooms; i++)
		free(s->room[i].data);
	for (uint32_t i = 0; i < s->ends; i++) {
		CHECK_EQ(s->end[i]->scribbles, 0);
		CHECK(s->end[i]->downs <= 1);
		CHECK(s->end[i]->ups <= 1);
		free(s->end[i]->land);
		free(s->end[i]);
	}
}

static inline void pair_open(struct side *a, struct side *b)
{
	side_open(a);
	side_open(b);
	a->other = b;
	b->other = a;
}

static inline void pump(struct side *a, struct side *b)
{
	int r = wf_rail_poll(a->rail, 64, 0);

	CHECK(r >= 0 || r == -EBUSY);
	if (b) {
		r = wf_rail_poll(b->rail, 64, 0);
		CHECK(r >= 0 || r == -EBUSY);
	}
}

/* Polls until it holds; a hang is the harness's to find, a wait of 20 s ours. */
#define PUMP_UNTIL(a, b, cond)                                                                     \
	do {                                                                                       \
		weft_time pump_end = weft_now() + 20 * WEFT_S;                                     \
		while (!(cond) && weft_now() < pump_end)                                           \
			pump(a, b);                                                                \
		CHECK(cond);                                                                       \
	} while (0)

/* ---- sending ---- */

/* One send of @n bytes of memory, registered if it must be. Answers as the slot. */
static inline ssize_t end_write(struct end *e, const void *p, size_t n, unsigned flags)
{
	const struct weft_driver *d = &e->side->rail->driver->slots;
	union { const void *given; void *plain; } u = { .given = p };
	struct iovec v = { u.plain, n };
	struct token token = { 0 };
	void *mem[1] = { NULL };
	unsigned char key[64];
	uint32_t key_len = sizeof(key);
	struct weft_out out = { .piece = &v, .pieces = 1, .flags = flags, .token = &token };
	ssize_t r;

	if (d->caps & WEFT_DRIVER_LOCAL_MEM) {
		MUST_OK(d->mem->add(e->side->rail->state, u.plain, n, &mem[0], key, &key_len));
		out.mem = mem;
	}
	r = wf_lane_send(e->side->rail, e->lane, &out);
	while (!is_stream(e->side) && r == 1 && !atomic_load(&token.freed))
		pump(e->side, e->side->other);
	if (mem[0])
		d->mem->del(e->side->rail->state, mem[0]);
	if (!is_stream(e->side))
		return r < 0 ? r : (ssize_t)n;
	return r;
}

/* Up to @n more bytes of the pattern. How many were taken; -E. */
static inline ssize_t end_send(struct end *e, size_t n, unsigned flags)
{
	static _Thread_local unsigned char buf[256 << 10];
	ssize_t r;

	if (n > sizeof(buf))
		n = sizeof(buf);
	if (!is_stream(e->side) && n > e->side->rail->info.frame)
		n = e->side->rail->info.frame;
	pattern_fill(seed_out(e), e->out, buf, n);
	r = end_write(e, buf, n, flags);
	if (r > 0)
		e->out += (uint64_t)r;
	return r;
}

static inline void say_hello(struct end *e)
{
	unsigned char hello[HELLO] = { 0 };
	size_t at = 0;

	memcpy(hello, &e->number, sizeof(e->number));
	while (at < HELLO && !e->downs) {
		ssize_t r = end_write(e, hello + at, HELLO - at, 0);

		if (r > 0)
			at += (size_t)r;
		else
			MUST(r == -EAGAIN || atomic_load(&e->downs) || r == -EPIPE || r == -ECONNRESET);
		pump(e->side, e->side->other);
	}
	e->greeting_sent = true;
}

/* A lane from @a to @b, greeted. NULL with a failed check if it does not come. */
static inline struct end *cable(struct side *a, struct side *b, int klass)
{
	struct end *e = end_new(a);

	e->opener = true;
	MUST_OK(wf_lane_open(a->rail, &b->rail->info.addr, klass, e, &e->lane));
	PUMP_UNTIL(a, b, e->ups || e->downs);
	MUST_EQ(e->ups, 1);
	say_hello(e);
	PUMP_UNTIL(a, b, e->other);
	MUST(e->other);
	return e;
}

/* @n bytes, however many sends it takes; not that they arrive. The other side is polled meanwhile. */
static inline void send_all(struct end *e, size_t n)
{
	while (n) {
		ssize_t r = end_send(e, n, 0);

		MUST(r > 0 || r == -EAGAIN);
		n -= r > 0 ? (size_t)r : 0;
		pump(e->side, e->side->other);
	}
}

/* One byte, without a poll of the other side. */
static inline void send_byte(struct end *e)
{
	weft_time late = weft_now() + 20 * WEFT_S;

	while (end_send(e, 1, 0) != 1 && weft_now() < late)
		pump(e->side, NULL);
}

/* Bytes that have come to a side. */
static inline uint64_t arrived(struct side *s)
{
	struct weft_rail_stat stat = { .size = sizeof(stat) };

	MUST_OK(wf_rail_stat(s->rail, &stat));
	return stat.received;
}

static inline int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Sends @total bytes from @e in chunks of random size, and waits until they are there. */
static inline void carry(struct end *e, uint64_t total, size_t most)
{
	struct end *to = e->other;
	uint64_t until = e->out + total;
	weft_time end = weft_now() + 60 * WEFT_S;

	to->expect = until;
	while ((e->out < until || to->in < until) && !e->downs && !to->downs && weft_now() < end) {
		if (e->out < until) {
			size_t n = 1 + test_random(&e->random) % most;
			bool more = n < until - e->out && test_random(&e->random) % 4 == 0;     /* never said of the last one */
			ssize_t r = end_send(e, n < until - e->out ? n : (size_t)(until - e->out), more ? WEFT_SEND_MORE : 0);

			MUST(r != 0);
			MUST(r > 0 || r == -EAGAIN);
			if (r > 0 && test_random(&e->random) % 3)
				continue;
		}
		pump(e->side, to->side);
	}
	CHECK_EQ(to->err, 0);
	CHECK_EQ(to->in, until);
	CHECK_EQ(to->wrong, 0);
}

static inline void conform_setup(void)
{
	const char *load = getenv("CONFORM_LOAD");
	struct wf_rail *rail;
	int r;

	if (load && *load && weft_driver_load(load) < 0) {
		printf("Bail out! %s\n", weft_last_error());
		exit(1);
	}
	if (weft_driver_add(&mock_driver) < 0)
		exit(1);
	r = wf_rail_open(conform_name(), conform_options(), &conform_upcalls, conform_retry, NULL, &rail);
	if (r == -ENODEV) {             /* not on this machine: said, never counted as passed */
		printf("1..0 # SKIP %s\n", weft_last_error());
		exit(77);
	}
	if (r == 0)
		wf_rail_close(rail);
	printf("# rail %s %s\n", conform_name(), conform_options());
}

#define CONFORM_MAIN                                                                               \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		conform_setup();                                                                   \
		return test_main(argc, argv);                                                      \
	}
#endif
