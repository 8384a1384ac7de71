/* demo_talk.c - threads get to know each other and talk; then 64 MiB change hands.
 *
 * Four threads join weft under a name and tell the main thread their ids. It sends the list of all
 * to each; from then on they write to whom they like: each greets the next one, who answers.
 * Then one thread fills a buffer of 64 MiB and hands it to another, which finds every byte of it in
 * the very same memory; beside it, what one copy of as much would have taken.
 */
#include "demo_large.h"
#include "weft_link.h"

#define TALKERS 4

enum { TAG_HELLO = 1, TAG_LIST, TAG_GREETING, TAG_ANSWER, TAG_READY, TAG_LARGE, TAG_RECEIPT };

static const char *const names[TALKERS] = { "ada", "ben", "cleo", "dan" };

struct hello {
	weft_id id;
	uint64_t index;
};

struct talker {
	uint64_t index;
	weft_id main;
};

static void send_to(weft_id to, uint64_t tag, const void *data, size_t len)
{
	must(weft_send(NULL, to, tag, data, len, weft_in(10 * WEFT_S)), "weft_send");
}

static size_t recv_from(weft_id from, uint64_t tag, void *data, size_t cap)
{
	struct weft_status st;

	must(weft_recv(NULL, from, tag, data, cap, weft_in(10 * WEFT_S), &st), "weft_recv");
	return st.len;
}

static void *talker_main(void *arg)
{
	const struct talker *t = arg;
	uint64_t next = (t->index + 1) % TALKERS, last = (t->index + TALKERS - 1) % TALKERS;
	char text[128], id[WEFT_ID_TEXT];
	weft_id list[TALKERS];
	struct hello hello;

	must(weft_thread_enter(names[t->index]), "weft_thread_enter");
	hello = (struct hello){ weft_self(), t->index };
	send_to(t->main, TAG_HELLO, &hello, sizeof(hello));
	recv_from(t->main, TAG_LIST, list, sizeof(list));

	snprintf(text, sizeof(text), "hello %s, this is %s (%s)", names[next], names[t->index],
		 weft_id_print(list[t->index], id, sizeof(id)));
	send_to(list[next], TAG_GREETING, text, strlen(text) + 1);
	recv_from(list[last], TAG_GREETING, text, sizeof(text));
	printf("  %-4s <- \"%s\"\n", names[t->index], text);
	snprintf(text, sizeof(text), "nice to meet you, %s", names[last]);
	send_to(list[last], TAG_ANSWER, text, strlen(text) + 1);
	recv_from(list[next], TAG_ANSWER, text, sizeof(text));
	printf("  %-4s <- \"%s\"\n", names[t->index], text);
	return NULL;
}

static void talk(void)
{
	struct talker t[TALKERS];
	weft_id list[TALKERS] = { 0 };
	pthread_t thread[TALKERS];

	printf("threads of one process exchange ids and talk:\n");
	for (uint64_t i = 0; i < TALKERS; i++) {
		t[i] = (struct talker){ i, weft_self() };
		thread[i] = thread_start(talker_main, &t[i]);
	}
	for (int i = 0; i < TALKERS; i++) {
		struct hello hello;

		recv_from(WEFT_ANY, TAG_HELLO, &hello, sizeof(hello));
		list[hello.index] = hello.id;
	}
	for (int i = 0; i < TALKERS; i++)
		send_to(list[i], TAG_LIST, list, sizeof(list));
	for (int i = 0; i < TALKERS; i++)
		pthread_join(thread[i], NULL);
}

/* ---- 64 MiB ---- */

struct receipt {
	uint64_t when, sum; /* when the buffer was in hand; what is in it */
	void *where;
};

static void *taker_main(void *arg)
{
	weft_id giver = *(const weft_id *)arg;
	struct weft_buf *buf;
	struct receipt receipt;

	cpu_pin(1);
	send_to(giver, TAG_READY, NULL, 0);
	must(weft_buf_recv(NULL, giver, TAG_LARGE, weft_in(10 * WEFT_S), &buf, NULL), "weft_buf_recv");
	receipt = (struct receipt){ .when = clock_ns(), .where = buf->data };
	receipt.sum = sum_words(buf->data, buf->len);
	send_to(giver, TAG_RECEIPT, &receipt, sizeof(receipt));
	must(weft_buf_put(buf), "weft_buf_put");
	return NULL;
}

static void hand_over(void)
{
	weft_id me = weft_self();
	struct receipt receipt;
	struct weft_buf *buf;
	struct weft_status st;
	uint64_t sum, start;
	pthread_t taker;
	void *where;

	cpu_pin(0);
	must(weft_buf_get(LARGE, WEFT_RAIL_ANY, &buf), "weft_buf_get");
	fill_words(buf->data, LARGE);
	sum = sum_words(buf->data, LARGE);
	where = buf->data;
	taker = thread_start(taker_main, &me);
	must(weft_recv(NULL, WEFT_ANY, TAG_READY, NULL, 0, weft_in(10 * WEFT_S), &st), "weft_recv");

	start = clock_ns();
	must(weft_buf_send(NULL, st.from, TAG_LARGE, buf, weft_in(10 * WEFT_S)), "weft_buf_send");
	recv_from(st.from, TAG_RECEIPT, &receipt, sizeof(receipt));
	pthread_join(taker, NULL);
	if (receipt.sum != sum || receipt.where != where)
		die("the 64 MiB did not arrive as they were sent");
	printf("64 MiB change hands between threads:\n"
	       "  handed over in %.1f us, the same memory, checksum %016llx on both sides;\n"
	       "  one copy of as much takes %.0f us here\n",
	       (double)(receipt.when - start) / 1e3, (unsigned long long)sum, copy_ns(LARGE) / 1e3);
}

int main(void)
{
	bench_start();
	setvbuf(stdout, NULL, _IOLBF, 0);
	must_init();
	talk();
	hand_over();
	must_fini();
	return 0;
}
