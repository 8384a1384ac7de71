/* bench_match.c - does a match cost more when many others wait? (match-100k)
 *
 * Two threads on one core, one after the other: at the port of one 10 others wait, at that of the
 * other 100,000. None of them is what the measured operation wants, and the one it wants is always
 * the youngest, so that a search through a list would see them all. ns for one whole operation:
 *   posted      the others are receives, a third of each of exact, any-source and any-tag.
 *               Post a receive, send it its message, wait for the receive.
 *   unexpected  the others are messages. Send one, let the port take it in, receive it.
 * each with the receive exact, any-source, any-tag, or both any. (Both any among messages can only
 * take the oldest; the one sent before it takes its place at the end.) The measured messages come
 * from a port of their own with tags never used before, the others belong to 64 quiet ports.
 * A thread sends to itself, so that no waiting is in the figure. The answers are checked.
 */
#include "weft_link.h"

#define FEW 10
#define MANY 100000
#define QUIET 64

enum shape { EXACT, ANY_SOURCE, ANY_TAG, BOTH, SHAPES };

static const char *const shape_name[SHAPES] = { "exact", "any-source", "any-tag", "both" };

struct place { /* a thread at whose port others wait */
	size_t n; /* how many */
	weft_id id;
	struct weft_port *quiet[QUIET], *talker;
	weft_id quiet_id[QUIET], talker_id;
	struct weft_req **standing; /* receives that wait there */
	uint64_t oldest, youngest; /* numbers of the messages that wait there */
	uint64_t fresh_tag;
	enum shape shape; /* of the operation measured now */
};

static pthread_barrier_t turn;

static struct weft_port *open_port(weft_id *ret_id)
{
	struct weft_port_info info = { .size = sizeof(info) };
	struct weft_port *port;

	must(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED), &port), "weft_port_open");
	must(weft_port_stat(port, &info), "weft_port_stat");
	*ret_id = info.id;
	return port;
}

static weft_id want_from(enum shape s, weft_id exact)
{
	return s == ANY_SOURCE || s == BOTH ? WEFT_ANY : exact;
}

static uint64_t want_tag(enum shape s, uint64_t exact)
{
	return s == ANY_TAG || s == BOTH ? WEFT_ANY_TAG : exact;
}

static void check_got(const struct place *p, uint64_t got, uint64_t wanted)
{
	if (got != wanted)
		die("%s: got message %llu, not %llu", shape_name[p->shape], (unsigned long long)got,
		    (unsigned long long)wanted);
}

/* ---- the others are receives ---- */

static void posted_fill(struct place *p)
{
	static uint64_t nothing;

	p->standing = calloc(p->n, sizeof(struct weft_req *));
	if (!p->standing)
		die("no memory for %zu receives", p->n);
	for (size_t i = 0; i < p->n; i++) {
		enum shape s = (enum shape)(i % 3);

		must(weft_recv_post(NULL,
				    WEFT(op, .peer = want_from(s, p->quiet_id[i / 3 % QUIET]),
					 .tag = want_tag(s, i + 1), .data = &nothing, .len = sizeof(nothing)),
				    &p->standing[i], NULL),
		     "weft_recv_post");
	}
}

static void posted_empty(struct place *p)
{
	for (size_t i = 0; i < p->n; i++) {
		must(weft_req_cancel(p->standing[i]), "weft_req_cancel");
		if (weft_req_wait(&p->standing[i], WEFT_FOREVER, NULL) != -ECANCELED)
			die("a receive that nobody answered did not end cancelled");
	}
	free(p->standing);
}

static void posted_step(void *arg)
{
	struct place *p = arg;
	uint64_t tag = p->fresh_tag++, got = 0;
	struct weft_req *req = NULL;

	must(weft_recv_post(NULL,
			    WEFT(op, .peer = want_from(p->shape, p->talker_id),
				 .tag = want_tag(p->shape, tag), .data = &got, .len = sizeof(got)),
			    &req, NULL),
	     "weft_recv_post");
	must(weft_send(p->talker, p->id, tag, &tag, sizeof(tag), WEFT_FOREVER), "weft_send");
	must(weft_req_wait(&req, WEFT_FOREVER, NULL), "weft_req_wait");
	check_got(p, got, tag);
}

/* ---- the others are messages ---- */

static void take_in(void)
{
	int r = weft_poll(WEFT_NOW);

	if (r != -EAGAIN)
		must(r, "weft_poll");
}

static void unexpected_send(struct place *p)
{
	uint64_t number = p->youngest++;

	must(weft_send(p->quiet[number % QUIET], p->id, number + 1, &number, sizeof(number), WEFT_FOREVER),
	     "weft_send");
	take_in();
}

static void unexpected_recv(struct place *p, enum shape s, weft_id from, uint64_t tag, uint64_t wanted)
{
	uint64_t got = UINT64_MAX;

	must(weft_recv(NULL, want_from(s, from), want_tag(s, tag), &got, sizeof(got), WEFT_FOREVER, NULL),
	     "weft_recv");
	check_got(p, got, wanted);
}

static void unexpected_fill(struct place *p)
{
	p->oldest = p->youngest = 0;
	while (p->youngest < p->n)
		unexpected_send(p);
}

static void unexpected_empty(struct place *p)
{
	while (p->oldest < p->youngest) {
		unexpected_recv(p, BOTH, 0, 0, p->oldest);
		p->oldest++;
	}
}

static void unexpected_step(void *arg)
{
	struct place *p = arg;
	uint64_t tag;

	if (p->shape == BOTH) {
		unexpected_send(p);
		unexpected_recv(p, BOTH, 0, 0, p->oldest++);
		return;
	}
	tag = p->fresh_tag++;
	must(weft_send(p->talker, p->id, tag, &tag, sizeof(tag), WEFT_FOREVER), "weft_send");
	take_in();
	unexpected_recv(p, p->shape, p->talker_id, tag, tag);
}

/* Each kind is measured at 10 and at 100,000 in direct succession: the other thread sleeps. */
static void measure_kinds(struct place *p, const char *queue, void (*step)(void *))
{
	for (int s = 0; s < SHAPES; s++) {
		char series[64];

		snprintf(series, sizeof(series), "match/%s-%s", queue, shape_name[s]);
		p->shape = (enum shape)s;
		if (p->n == FEW)
			sample(series, "match", p->n, measure_alone(step, p));
		pthread_barrier_wait(&turn);
		if (p->n == MANY)
			sample(series, "match", p->n, measure_alone(step, p));
		pthread_barrier_wait(&turn);
	}
}

static void *match_main(void *arg)
{
	struct place *p = arg;

	cpu_pin(0);
	p->id = weft_self();
	p->fresh_tag = UINT64_C(1) << 40;
	for (int i = 0; i < QUIET; i++)
		p->quiet[i] = open_port(&p->quiet_id[i]);
	p->talker = open_port(&p->talker_id);
	for (int r = 0; r < repeats(); r++) {
		posted_fill(p);
		pthread_barrier_wait(&turn);
		measure_kinds(p, "posted", posted_step);
		posted_empty(p);
		unexpected_fill(p);
		pthread_barrier_wait(&turn);
		measure_kinds(p, "unexpected", unexpected_step);
		unexpected_empty(p);
	}
	return NULL;
}

int main(void)
{
	struct place few = { .n = FEW }, many = { .n = MANY };
	pthread_t t[2];

	bench_start();
	must_init();
	pthread_barrier_init(&turn, NULL, 2);
	t[0] = thread_start(match_main, &few);
	t[1] = thread_start(match_main, &many);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	must_fini();
	return 0;
}
