/* test_far_behind.c - the last words of a thread to another process, behind a cell that another thread has claimed and not yet published. See
 * tests/integ/test_behind.c. */
#include "pair.h"

#include "port/way.h"

static _Atomic bool claimed, said;

/* From now on two threads use the way. */
static void *lags(void *arg)
{
	struct wf_claimed at = { .cell = NULL };
	struct wf_way *way;
	uint16_t who;

	(void)arg;
	CHECK_OK(weft_send(NULL, far_id(0), 2, NULL, 0, SOON));
	MUST_OK(wf_way_find(far_id(0), 0, NULL, &way, &who));
	MUST_EQ(wf_way_claim(way, who, 0, 0, &at), WF_CLAIMED);
	atomic_store(&claimed, true);
	EVENTUALLY(atomic_load(&said));
	for (int i = 0; i < 30; i++)
		crew_nap();             /* time for the other to end too early */
	at.cell->kind = WF_VOID;
	wf_way_publish(way, &at);
	return NULL;
}

static void *talks(void *arg)
{
	uint64_t v = 77;

	(void)arg;
	far_tell(0, weft_self());
	CHECK_OK(weft_send(NULL, far_id(0), 3, NULL, 0, SOON));
	EVENTUALLY(atomic_load(&claimed));
	CHECK_OK(weft_send(NULL, far_id(0), 1, &v, 8, SOON));
	atomic_store(&said, true);
	return NULL;
}

static void talk_behind(void)
{
	pthread_t lagging, talking = thread_start(talks, NULL);

	far_hear(0);
	CHECK_OK(weft_recv(NULL, far_id(0), 4, NULL, 0, SOON, NULL));   /* it has heard that one */
	lagging = thread_start(lags, NULL);
	thread_join(lagging);
	thread_join(talking);
}

/* [the receiver] Who will send behind it; its first message was heard. */
static weft_id hear_first(void)
{
	weft_id talker = far_hear(0);

	CHECK_OK(weft_recv(NULL, talker, 3, NULL, 0, SOON, NULL));
	CHECK_OK(weft_send(NULL, far_id(1), 4, NULL, 0, SOON));
	return talker;
}

FAR(a_receive_that_waits_for_it_gets_them, 2)
{
	far_join(0);
	if (far_rank == 1) {
		talk_behind();
	} else {
		weft_id talker = hear_first();

		CHECK_NEXT(NULL, talker, 1, 77);
		CHECK_OK(weft_recv(NULL, WEFT_ANY, 2, NULL, 0, SOON, NULL));
	}
	far_leave();
}

FAR(a_probe_that_asks_again_and_again_finds_them, 2)
{
	far_join(0);
	if (far_rank == 1) {
		talk_behind();
	} else {
		weft_id talker = hear_first();
		int r;

		while ((r = weft_probe(NULL, WEFT(op, .peer = talker, .tag = 1), WEFT_NOW, NULL, NULL)) == -EAGAIN)
			crew_nap();
		CHECK_OK(r);
		CHECK_NEXT(NULL, talker, 1, 77);
		CHECK_OK(weft_recv(NULL, WEFT_ANY, 2, NULL, 0, SOON, NULL));
	}
	far_leave();
}

FAR_MAIN
