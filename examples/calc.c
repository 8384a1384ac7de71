/* calc.c - matching by a header of one's own: a board on which jobs are pinned and taken.
 *
 * A job is a message whose header says what is to be done, for whom, and which one it is. Workers
 * take from one board whatever they can do, whoever it is for; the office asks for results by
 * owner or by number. weft's own headers (source and tag) know nothing of all that: here the type
 * of the header and the rule by which two of them match are the program's.
 *
 * Two boards are open at a time. One speaks the protocol made by match.h at compile time, the
 * other the same rule given as functions at run time; and the threads' own ports speak weft's.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <weft/weft.h>

enum { ADD, MULTIPLY, RESULT, KINDS };
enum { JOBS = 12, OWNERS = 3 };
#define ANY UINT32_MAX          /* a kind or an owner that does not matter */
#define ANY_KEY UINT64_MAX

struct board_head {
	uint32_t kind, owner;
	uint64_t key;
};

static inline int board_equal(const struct board_head *want, const struct board_head *got)
{
	return (want->kind == ANY || want->kind == got->kind) &&
	       (want->owner == ANY || want->owner == got->owner) &&
	       (want->key == ANY_KEY || want->key == got->key);
}

static inline uint32_t board_shape(const struct board_head *want)
{
	return (want->kind == ANY) | (want->owner == ANY) << 1 | (want->key == ANY_KEY) << 2;
}

/* Over what the shape leaves fixed: then a header and whatever asks for it hash alike. */
static inline uint64_t board_hash(const struct board_head *head, uint32_t shape)
{
	uint64_t h = shape & 1 ? 0 : head->kind;

	h = h * 31 + (shape & 2 ? 0 : head->owner);
	return h * 31 + (shape & 4 ? 0 : head->key);
}

#define WEFT_MATCH board
#define WEFT_MATCH_HEAD struct board_head
#define WEFT_MATCH_EQ(want, got) board_equal(want, got)
#define WEFT_MATCH_SHAPE(want) board_shape(want)
#define WEFT_MATCH_HASH(head, shape) board_hash(head, shape)
#include <weft/match.h>

/* The same for callers that know heads only as bytes. */
static int bytes_equal(const void *want, const void *got)
{
	return board_equal(want, got);
}

static uint32_t bytes_shape(const void *want)
{
	return board_shape(want);
}

static uint64_t bytes_hash(const void *head, uint32_t shape)
{
	return board_hash(head, shape);
}

struct office {
	const char *name;
	const struct weft_proto *proto;
	struct weft_port *board;        /* any thread may receive here: whoever comes first has the job */
	weft_id id;
	uint64_t sum;
	int answer;                     /* 0, or what went wrong */
};

struct job {
	uint64_t x, y;                  /* of a result: x */
};

static int board_pin(struct office *o, struct board_head head, struct job job)
{
	struct weft_req *req = NULL;
	int r = weft_send_post(
		o->board, WEFT(op, .peer = o->id, .head = &head, .data = &job, .len = sizeof(job)), &req);

	return r < 0 ? r : weft_req_wait(&req, WEFT_FOREVER, NULL);
}

/* Waits for the first job or result that @head describes; gives back what its head really says. */
static int board_take(struct office *o, struct board_head *head, struct job *ret_job)
{
	struct weft_req *req = NULL;
	int r = weft_recv_post(
		o->board, WEFT(op, .peer = WEFT_ANY, .head = head, .data = ret_job, .len = sizeof(*ret_job)),
		&req, NULL);

	return r < 0 ? r : weft_req_wait(&req, WEFT_FOREVER, NULL);
}

/* Does jobs of one kind until one comes that is nobody's. */
static void work(struct office *o, uint32_t kind)
{
	struct job job;

	for (;;) {
		struct board_head head = { .kind = kind, .owner = ANY, .key = ANY_KEY };

		if (board_take(o, &head, &job) < 0 || head.owner == OWNERS)
			return;
		job.x = kind == ADD ? job.x + job.y : job.x * job.y;
		head.kind = RESULT;
		if (board_pin(o, head, job) < 0)
			return;
	}
}

static void *adder(void *office)
{
	work(office, ADD);
	return NULL;
}

static void *multiplier(void *office)
{
	work(office, MULTIPLY);
	return NULL;
}

/* Pins all jobs, then asks for the results: first every one of owner 1, in whatever order they
 * come, then the rest by number, last one first. */
static int office_run(struct office *o)
{
	struct job job;
	int r = 0;

	for (uint64_t key = 0; r >= 0 && key < JOBS; key++)
		r = board_pin(o, (struct board_head){ key % 2 ? MULTIPLY : ADD, key % OWNERS, key },
			      (struct job){ key, 10 });
	for (int i = 0; r >= 0 && i < JOBS / OWNERS; i++) {
		r = board_take(o, &(struct board_head){ RESULT, 1, ANY_KEY }, &job);
		o->sum += job.x;
	}
	for (uint64_t key = JOBS; r >= 0 && key-- > 0;) {
		if (key % OWNERS == 1)
			continue;
		r = board_take(o, &(struct board_head){ RESULT, ANY, key }, &job);
		if (r >= 0 && job.x != (key % 2 ? key * 10 : key + 10))
			r = weft_fail(-EBADMSG, "job %" PRIu64 " came out as %" PRIu64, key, job.x);
		o->sum += job.x;
	}
	for (uint32_t kind = ADD; kind <= MULTIPLY; kind++)     /* go home */
		board_pin(o, (struct board_head){ kind, OWNERS, 0 }, (struct job){ 0, 0 });
	return r;
}

static void *office_main(void *arg)
{
	struct weft_port_info info = { .size = sizeof(info) };
	pthread_t a, m;
	struct office *o = arg;

	o->answer = weft_port_open(WEFT(port_opts, .proto = o->proto, .name = o->name), &o->board);
	if (o->answer < 0)
		return NULL;
	weft_port_stat(o->board, &info);
	o->id = info.id;
	pthread_create(&a, NULL, adder, o);
	pthread_create(&m, NULL, multiplier, o);
	o->answer = office_run(o);
	if (o->answer < 0)
		fprintf(stderr, "%s: %s\n", o->name, weft_last_error());
	pthread_join(a, NULL);
	pthread_join(m, NULL);
	weft_port_close(o->board, WEFT_FOREVER);
	return NULL;
}

int main(void)
{
	static const struct weft_match_fns fns = { .size = sizeof(fns),
						   .head_len = sizeof(struct board_head),
						   .equal = bytes_equal,
						   .shape = bytes_shape,
						   .hash = bytes_hash };
	struct office offices[2] = { { .name = "compiled in", .proto = &board_proto },
				     { .name = "by functions" } };
	pthread_t threads[2];
	int wrong = 0;

	if (weft_init(NULL) < 0 || weft_proto_new("board-fns", &fns, &offices[1].proto) < 0)
		return fprintf(stderr, "%s\n", weft_last_error()), 1;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, office_main, &offices[i]);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		printf("%s: %d jobs, sum %" PRIu64 "\n", offices[i].name, JOBS, offices[i].sum);
		wrong |= offices[i].answer < 0;
	}
	weft_proto_free(offices[1].proto);
	return weft_fini(WEFT_FOREVER) < 0 || wrong;
}
