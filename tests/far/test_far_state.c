/* test_far_state.c - what goes on in a process of a job, seen from inside: who waits for whom in another process, and a
 * sample that is taken while everything it reads is written. */
#include "far.h"

/* How many items of a sample of this process are like this one; 0 and "": any. */
static int seen(uint32_t kind, weft_id who, weft_id whom, uint64_t tag, const char *text)
{
	struct weft_state *state = NULL;
	struct weft_state_item item = { .size = sizeof(item) };
	int n = 0, r;

	MUST_OK(weft_state_open(0, &state));
	while ((r = weft_state_next(state, &item)) == 0)
		n += item.kind == kind && (!who || item.who == who) && (!whom || item.whom == whom) && (!tag || item.tag == tag) &&
		     !strncmp(item.text, text, strlen(text));
	CHECK_EQ(r, WEFT_DONE);
	CHECK_OK(weft_state_close(state));
	return n;
}

enum { SYNCED = 1, BACKLOGGED, NAMED, STEPS };

static void send_synced(void *arg)
{
	struct weft_req *req = NULL;
	uint64_t v = 1;

	(void)arg;
	MUST_OK(send_post(NULL, WEFT_SYNC, far_id(1), SYNCED, &v, 8, &req));
	CHECK_OK(weft_req_wait(&req, WEFT_FOREVER, NULL));
}

static void send_backlogged(void *arg)
{
	uint64_t v = 2;

	(void)arg;
	CHECK_OK(weft_send(NULL, far_id(1), BACKLOGGED, &v, 8, WEFT_FOREVER));
}

static void recv_named(void *arg)
{
	uint64_t v;

	(void)arg;
	CHECK_OK(weft_recv(NULL, far_id(1), NAMED, &v, 8, WEFT_FOREVER, NULL));
}

/* Rank 0 takes a sample of itself until it shows its mate asleep like this, then lets rank 1 end that. */
static void shown(struct mate *mate, uint64_t tag, const char *text)
{
	EVENTUALLY(seen(WEFT_STATE_WAITER, mate->id, far_id(1), tag, text) == 1);
	CHECK(seen(WEFT_STATE_WAITER, mate->id, 0, 0, "") <= 1);        /* it may be looking at this moment: sleeps are short in a job */
	far_step((uint32_t)tag);
	mate_wait(mate);
	CHECK_EQ(seen(WEFT_STATE_WAITER, mate->id, 0, 0, ""), 0);
}

FAR(who_waits_for_another_process_is_shown_with_whom_it_waits_for, 2)
{
	struct mate mate;
	uint64_t v = 3;

	far_join(0);
	if (far_rank == 0) {
		mate_start(&mate);
		far_tell(0, mate.id);
		mate_begin(&mate, send_synced, NULL);
		shown(&mate, SYNCED, "sends");
		far_await(1, SYNCED);
		/* With its mailbox full the next one waits in the backlog. */
		far_tell(1, mailbox_fill(NULL, far_id(1), STEPS) + 1);
		mate_begin(&mate, send_backlogged, NULL);
		shown(&mate, BACKLOGGED, "sends");
		mate_begin(&mate, recv_named, NULL);
		shown(&mate, NAMED, "receives at ");
		mate_stop(&mate);
	} else {
		weft_id other = (weft_id)far_hear(0);

		far_await(0, SYNCED);
		CHECK_NEXT(NULL, other, SYNCED, 1);
		far_step(SYNCED);       /* from here on it takes nothing out of its mailbox */
		far_await(0, BACKLOGGED);
		for (uint64_t i = 0; i + 1 < far_told(1); i++)
			CHECK_NEXT(NULL, far_id(0), STEPS, i);
		CHECK_NEXT(NULL, other, BACKLOGGED, 2);
		far_await(0, NAMED);
		CHECK_OK(weft_send(NULL, other, NAMED, &v, 8, SOON));
	}
	far_leave();
}

static _Atomic bool over;

enum { PORTS = 32 };

/* Messages to ports of the next process, of which there are ever more: processes are met, ways made, frames sent and read. */
static void *stir(void *arg)
{
	struct weft_port **port = arg;
	uint32_t to = (far_rank + 1) % far_count;
	uint64_t v = 1;

	for (int n = 0; !atomic_load(&over); n++) {
		if (n < PORTS) {
			port[n] = port_new(0);
			far_tell(8 + (int)far_rank, port_id(port[n]));
		}
		if (far_told(8 + (int)to))
			weft_send(NULL, (weft_id)far_told(8 + (int)to), 1, &v, 8, WEFT_NOW);    /* it may be full */
		weft_send(NULL, far_id(to), 1, &v, 8, WEFT_NOW);
	}
	return NULL;
}

FAR(a_sample_of_oneself_may_be_taken_while_processes_meet_and_send, 3)
{
	static struct weft_port *port[PORTS];
	pthread_t thread;
	uint64_t v;

	far_join(0);
	thread = thread_start(stir, port);
	for (uint64_t i = test_scaled(300); i > 0; i--) {
		for (int k = 0; k < 64 && weft_recv(NULL, WEFT_ANY, 1, &v, 8, WEFT_NOW, NULL) == 0; k++)
			;
		CHECK_EQ(seen(WEFT_STATE_PORT, weft_self(), 0, 0, ""), 1);
		CHECK_EQ(seen(WEFT_STATE_PEER, weft_process(), far_process((far_rank + 1) % far_count), 0, ""), 1);
	}
	atomic_store(&over, true);
	thread_join(thread);
	far_meet();
	for (int i = 0; i < PORTS && port[i]; i++)
		CHECK_OK(weft_port_close(port[i], SOON));
	far_leave();
}

FAR_MAIN
