/* test_lead.c - how often the listener comes by while others look at the rails: as a thread that plays both, over rails where nothing happens. */
#include <sys/eventfd.h>

#include "base/clock.h"
#include "port/lead.h"
#include "port/listener.h"
#include "test.h"
#include "weft/weft.h"

#define USUAL WEFT_MS                   /* how long it stays away at most, unless somebody is always there */
#define LONG (8 * WEFT_MS)
#define SHARE 4                         /* of that time */
#define PROMPT (WEFT_MS / 8)
#define PATIENCE (10 * WEFT_S * TEST_SLOW)

static int nothing_came(bool spins)
{
	(void)spins;
	return 0;
}

static int armed(void)
{
	return 0;
}

static weft_time never(void)
{
	return WEFT_FOREVER;
}

static struct wf_route_ops quiet = { .poll = nothing_came, .arm = armed, .next = never };

/* As the listener does: it comes by, and goes. For how long; @ret_watches: it sleeps on the rails itself. */
static int64_t come_by(bool *ret_watches)
{
	int64_t patience = WEFT_S;

	CHECK_EQ(wf_lead_listen(), 0);
	*ret_watches = wf_lead_watch(&patience) == quiet.fd;
	return patience;
}

/* Nobody has looked for long. */
static void rails_open(void)
{
	bool watches;

	MUST((quiet.fd = eventfd(0, EFD_CLOEXEC)) >= 0);
	MUST(wf_lead_init(-1) == 0);
	wf_hosts = &quiet;
	come_by(&watches);
	come_by(&watches);
}

static void rails_close(void)
{
	wf_hosts = NULL;
	wf_lead_fini();
	close(quiet.fd);
}

/* Somebody looks as soon as it has gone, and is there until it comes by again, until it stays away for longer than usual: that must come about. And @more times after that. */
static void attend(weft_time since, int more)
{
	int64_t away = 0;

	for (weft_time end = wf_now() + PATIENCE; (away <= USUAL || more--) && wf_now() < end;) {
		bool watches;

		away = come_by(&watches);
		if (watches)
			away = 0;       /* nobody had looked */
		CHECK(away <= USUAL || away <= (wf_now() - since) / SHARE);
		CHECK(away <= LONG);
		wf_lead_look();
		wf_nap(away);
	}
	CHECK(away > USUAL);
}

TEST(where_nobody_looks_the_listener_watches_the_rails)
{
	bool watches = false;

	rails_open();
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(come_by(&watches), WEFT_S);
		CHECK(watches);
	}
	rails_close();
}

TEST(where_somebody_is_there_whenever_it_comes_by_it_does_so_ever_more_seldom_but_not_for_longer_than_a_share_of_that_time)
{
	rails_open();
	attend(wf_now(), 40);
	rails_close();
}

TEST(who_does_not_look_for_a_while_is_not_always_there)
{
	bool watches = true;
	weft_time since;

	rails_open();
	attend(wf_now(), 0);
	come_by(&watches);
	wf_nap(2 * PROMPT);
	wf_lead_look();
	since = wf_now();
	CHECK(come_by(&watches) <= USUAL);
	CHECK(!watches);
	attend(since, 0);                  /* from the beginning */
	rails_close();
}

TEST(what_waits_for_company_calls_a_listener_that_has_gone_for_long)
{
	bool watches = true;

	rails_open();
	attend(wf_now(), 0);
	wf_park_begin(&wf_listener_parker);
	wf_lead_soon();
	CHECK_EQ(atomic_load(&wf_listener_parker.word), 0);
	CHECK(come_by(&watches) <= USUAL);
	CHECK(!watches);
	wf_park_begin(&wf_listener_parker);
	wf_lead_soon();                 /* it comes soon enough */
	CHECK_EQ(atomic_load(&wf_listener_parker.word), 1);
	wf_park_end(&wf_listener_parker);
	rails_close();
}

TEST(so_does_who_posts_a_receive)
{
	struct weft_req *req[2] = { NULL };
	char byte;

	MUST_OK(weft_init(NULL));
	rails_open();
	for (int i = 0; i < 2; i++) {
		struct weft_op op = { .size = sizeof(op), .peer = WEFT_ANY, .tag = 1, .data = i ? NULL : &byte, .len = !i };   /* the short way, and the long one */

		attend(wf_now(), 0);
		wf_park_begin(&wf_listener_parker);
		CHECK_EQ(weft_recv_post(NULL, &op, &req[i], NULL), 0);
		CHECK_EQ(atomic_load(&wf_listener_parker.word), 0);
	}
	rails_close();
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(weft_req_cancel(req[i]), 0);
		CHECK_EQ(weft_req_wait(&req[i], 0, NULL), -ECANCELED);
	}
	MUST_OK(weft_fini(WEFT_FOREVER));
}

static void nothing(void *arg)
{
	(void)arg;
}

/* The one who slept on the rails goes, and has just looked; the other sleeps elsewhere, and somebody is to look for it. */
TEST(so_does_a_leader_that_goes_while_another_sleeps)
{
	struct wf_parker mine = { 0 };
	bool watches;

	rails_open();
	attend(wf_now(), 0);
	atomic_fetch_add(&wf_parked, 1);
	wf_park_begin(&wf_listener_parker);
	wf_park_begin(&mine);
	wf_lead_park(&mine, weft_in(WEFT_MS), nothing, NULL);
	CHECK_EQ(atomic_load(&wf_listener_parker.word), 0);
	CHECK(come_by(&watches) <= PROMPT);
	come_by(&watches);
	CHECK(watches);
	atomic_fetch_sub(&wf_parked, 1);
	rails_close();
}

TEST(a_leader_that_was_woken_by_another_process_is_rung_for_before_the_listener_sleeps)
{
	struct wf_parker leader = { 0 };

	rails_open();
	CHECK(!wf_lead_unrung());
	atomic_store(&leader.word, 2);
	atomic_store(&wf_leader, &leader);
	CHECK(!wf_lead_unrung());
	atomic_store(&leader.word, 0);
	CHECK(wf_lead_unrung());
	wf_lead_ring();
	CHECK(!wf_lead_unrung());       /* it is to wake only */
	atomic_store(&wf_leader, NULL);
	rails_close();
}

TEST_MAIN
