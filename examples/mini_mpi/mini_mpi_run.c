/* mini_mpi_run.c - ranks are started, told of one another, and sent home together.
 *
 *   rank                                    the launcher's desk, a port of its own
 *       HELLO(rank, my id) -------------->
 *       <---------------- TABLE(two contexts, all ids)     once everybody has said hello
 *       fn(world)
 *       OVER(answer) -------------------->
 *       <---------------------------- LEAVE                once everybody is over
 *
 * A rank that did well stays until all are over, because the end of a member's thread breaks the
 * ports for collectives. One that failed leaves at once, for exactly that reason: the others
 * shall not wait for it. What ranks say leaves from the desk itself, which any thread may send
 * from: so even one that weft could not give a port can say that it failed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "mini_mpi.h"

enum { HELLO, TABLE, OVER, LEAVE };

struct launch { /* set before the threads start, then constant */
	struct weft_port *port;
	weft_id desk;                   /* its id */
	int ranks;
	mm_main_fn fn;
	void *arg;
};

struct rank {
	const struct launch *launch;    /* set before the thread starts, as number is */
	int number;
	pthread_t thread;               /* launcher only, as all that follows */
	weft_id id;                     /* 0: did not say hello */
	int answer;
};

struct word { /* a rank's to the launcher */
	int rank, answer;
	weft_id id;
};

static int desk_tell(const struct launch *l, uint64_t what, const struct word *word)
{
	return weft_send(l->port, l->desk, what, word, sizeof(*word), WEFT_FOREVER);
}

static int rank_serve(const struct launch *l, int number)
{
	struct word hello = { .rank = number, .id = weft_self() };
	size_t len = (2 + (size_t)l->ranks) * sizeof(uint64_t);
	uint64_t *table = malloc(len);
	struct mm_comm *world = NULL;
	struct weft_status st;
	int r = table && hello.id ? desk_tell(l, HELLO, &hello) : -ENOMEM, end;

	if (r == 0)
		r = weft_recv(NULL, l->desk, TABLE, table, len, WEFT_FOREVER, &st);
	if (r == 0 && st.len < len)
		r = weft_fail(-ECANCELED, "mini_mpi: not all ranks could be started");
	if (r == 0)
		r = mm_comm_open(WEFT(port_opts, .members = table + 2, .count = (uint32_t)l->ranks,
				      .index = (uint32_t)number), table, &world);
	if (r == 0) {
		r = l->fn(world, l->arg);
		end = mm_comm_free(world);
		r = r ? r : end;
	}
	free(table);
	return r;
}

static void *rank_main(void *arg)
{
	const struct rank *rank = arg;
	const struct launch *l = rank->launch;
	struct word over = { .rank = rank->number };

	over.answer = rank_serve(l, rank->number);
	if (desk_tell(l, OVER, &over) == 0 && over.answer == 0)
		weft_recv(NULL, l->desk, LEAVE, NULL, 0, WEFT_FOREVER, NULL);
	return NULL;
}

/* Hears one word; the launcher's own failure to hear ends the program's hopes and is passed on. */
static int desk_hear(const struct launch *l, struct rank *ranks, int *hellos, int *overs)
{
	struct weft_status st;
	struct word word;
	int r = weft_recv(l->port, WEFT_ANY, WEFT_ANY_TAG, &word, sizeof(word), WEFT_FOREVER, &st);

	if (r < 0)
		return r;
	if (st.tag == HELLO) {
		ranks[word.rank].id = word.id;
		++*hellos;
	} else {
		ranks[word.rank].answer = word.answer;
		++*overs;
	}
	return 0;
}

/* Everybody who said hello hears who is there, or that it will come to nothing. */
static int table_send(const struct launch *l, const struct rank *ranks, int started, bool all)
{
	size_t len = (2 + (size_t)l->ranks) * sizeof(uint64_t);
	uint64_t *table = calloc(1, len);
	int r = 0;

	if (table) {
		table[0] = weft_ctx_new();
		table[1] = weft_ctx_new();
		for (int i = 0; i < started; i++)
			table[2 + i] = ranks[i].id;
	}
	for (int i = 0; r == 0 && i < started; i++)
		if (ranks[i].id)
			r = weft_send(l->port, ranks[i].id, TABLE, table, all && table ? len : 0,
				      WEFT_FOREVER);
	free(table);
	return r;
}

static int ranks_run(struct launch *l, struct rank *ranks)
{
	int started = 0, hellos = 0, overs = 0, r = 0;

	for (; started < l->ranks; started++) {
		ranks[started] = (struct rank){ .launch = l, .number = started };
		if (pthread_create(&ranks[started].thread, NULL, rank_main, &ranks[started]) != 0)
			break;
	}
	while (r == 0 && hellos + overs < started)
		r = desk_hear(l, ranks, &hellos, &overs);
	if (r == 0)
		r = table_send(l, ranks, started, hellos == l->ranks);
	while (r == 0 && overs < started)
		r = desk_hear(l, ranks, &hellos, &overs);
	for (int i = 0; i < started; i++) {
		if (ranks[i].id && ranks[i].answer == 0)
			weft_send(l->port, ranks[i].id, LEAVE, NULL, 0, WEFT_FOREVER);
		pthread_join(ranks[i].thread, NULL);
		r = r ? r : ranks[i].answer;
	}
	return r == 0 && started < l->ranks ?
		       weft_fail(-EAGAIN, "mini_mpi: only %d threads started", started) :
		       r;
}

int mm_run(int ranks, mm_main_fn fn, void *arg)
{
	struct weft_port_info info = { .size = sizeof(info) };
	struct launch l = { .ranks = ranks, .fn = fn, .arg = arg };
	struct rank *table;
	int r, end;

	if (ranks < 1 || !fn)
		return weft_fail(-EINVAL, "mini_mpi: %d ranks", ranks);
	r = weft_init(NULL);
	if (r < 0)
		return r;
	r = weft_port_open(NULL, &l.port);
	if (r < 0)
		goto undo_init;
	r = weft_port_stat(l.port, &info);
	table = calloc((size_t)ranks, sizeof(*table));
	if (r == 0 && !table)
		r = weft_fail(-ENOMEM, "mini_mpi: no memory for %d ranks", ranks);
	l.desk = info.id;
	if (r == 0)
		r = ranks_run(&l, table);
	free(table);
	weft_port_close(l.port, WEFT_FOREVER);
undo_init:
	end = weft_fini(WEFT_FOREVER);
	return r ? r : end;
}
