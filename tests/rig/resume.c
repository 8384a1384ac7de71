/* resume.c - how long a connection that was cut holds up who talks over it. usage: weft run --hosts A:1,B:1 ... resume MS
 *
 * Process 0 sends and process 1 answers, to and fro: short messages in one thread, long ones in another, for MS. All have a number and bytes that tell it. Process 0 says
 * "resume: N and M answers, the longest after T ms" and exits 0.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

enum { SHORT = 8, LONG = 1 << 20, IDS = 1, LAST = 1 << 30 };

#define SOON weft_in(20 * WEFT_S)

static int rank;
static weft_time until;
static weft_id there[2];
static pthread_barrier_t named, told;

struct talker {
	size_t len;
	weft_id self;
	unsigned char *bytes;
	uint64_t n;
	int64_t longest;
};

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "resume: process %d: %s: %s\n", rank, what, weft_last_error());
	exit(1);
}

static void wrong(const char *what, uint64_t n)
{
	fprintf(stderr, "resume: process %d: %s, message %llu\n", rank, what, (unsigned long long)n);
	exit(1);
}

static void fill(struct talker *t)
{
	for (size_t i = 0; i < t->len; i += 8) {
		uint64_t word = t->n * 1000003 + i;

		memcpy(t->bytes + i, &word, 8);
	}
}

static void look(const struct talker *t)
{
	for (size_t i = 0; i < t->len; i += 8) {
		uint64_t word;

		memcpy(&word, t->bytes + i, 8);
		if (word != t->n * 1000003 + i)
			wrong("wrong bytes", t->n);
	}
}

static void ask(struct talker *t, weft_id to)
{
	struct weft_status st;

	for (; weft_now() < until; t->n++) {
		weft_time began = weft_now();
		int64_t took;

		fill(t);
		must(weft_send(NULL, to, t->n, t->bytes, t->len, SOON), "weft_send");
		memset(t->bytes, 0, t->len);
		must(weft_recv(NULL, to, WEFT_ANY_TAG, t->bytes, t->len, SOON, &st), "weft_recv");
		took = weft_now() - began;
		if (st.tag != t->n || st.len != t->len)
			wrong("another answer", t->n);
		look(t);
		t->longest = took > t->longest ? took : t->longest;
	}
	must(weft_send(NULL, to, LAST, NULL, 0, SOON), "the last");
}

static void answer(struct talker *t, weft_id to)
{
	struct weft_status st;

	for (;; t->n++) {
		must(weft_recv(NULL, to, WEFT_ANY_TAG, t->bytes, t->len, SOON, &st), "weft_recv");
		if (st.tag == LAST)
			return;
		if (st.tag != t->n || st.len != t->len)
			wrong("another message", t->n);
		look(t);
		must(weft_send(NULL, to, t->n, t->bytes, t->len, SOON), "weft_send");
	}
}

static struct talker talkers[2] = { { .len = SHORT }, { .len = LONG } };

static void *talk(void *arg)
{
	struct talker *t = arg;

	t->self = weft_self();
	t->bytes = calloc(1, t->len);
	pthread_barrier_wait(&named);
	pthread_barrier_wait(&told);
	(rank ? answer : ask)(t, there[t - talkers]);
	free(t->bytes);
	return NULL;
}

int main(int argc, char **argv)
{
	struct weft_port *world;
	pthread_t of[2];
	weft_id ids[2];
	int64_t longest;

	if (argc != 2)
		return fprintf(stderr, "usage: resume MS\n"), 2;
	must(weft_init(NULL), "weft_init");
	rank = atoi(getenv("WEFT_RANK"));
	world = weft_port_world();
	pthread_barrier_init(&named, NULL, 3);
	pthread_barrier_init(&told, NULL, 3);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&of[i], NULL, talk, &talkers[i]))
			return 2;
	pthread_barrier_wait(&named);
	for (int i = 0; i < 2; i++)
		ids[i] = talkers[i].self;
	must(weft_send(world, weft_at(!rank), IDS, ids, sizeof(ids), SOON), "the names");
	must(weft_recv(world, weft_at(!rank), IDS, there, sizeof(there), SOON, NULL), "the names");
	until = weft_in(atoi(argv[1]) * WEFT_MS);
	pthread_barrier_wait(&told);
	for (int i = 0; i < 2; i++)
		pthread_join(of[i], NULL);
	longest = talkers[0].longest > talkers[1].longest ? talkers[0].longest : talkers[1].longest;
	must(weft_fini(SOON), "weft_fini");
	if (rank == 0)
		printf("resume: %llu and %llu answers, the longest after %lld ms\n", (unsigned long long)talkers[0].n, (unsigned long long)talkers[1].n,
		       (long long)(longest / WEFT_MS));
	return 0;
}
