/* test_pmi_x.c - PMIx's way into a launcher's space, with a libpmix that fails, lies and does not come back. */
#include <dlfcn.h>

#include "base/clock.h"
#include "job/pmi_space.h"
#include "test.h"
#include "test_pmi_x_fake.h"
#include "witness.h"

static struct wf_space space;
static struct fake_pmix *fake;

/* The library as it is at the beginning; its counts at 0. */
static void stage(void)
{
	static void *so;

	if (!so) {
		wf_pmix_library = getenv("FAKE_PMIX");
		MUST(wf_pmix_library != NULL);
		so = dlopen(wf_pmix_library, RTLD_NOW);
		MUST(so != NULL);
		fake = dlsym(so, "fake");
		MUST(fake != NULL);
	}
	wf_space_patience = 30 * WEFT_S;
	fake->version = "OpenPMIx 4.2.2, fake";
	fake->rank = 0;
	fake->init = 0;
	fake->put = 0;
	fake->fence = 0;
	fake->get = 0;
	fake->fence_ms = 0;
	fake->hold = false;
	fake->endless_name = false;
	fake->size_type = 0;
	fake->value_type = 0;
	fake->value = "of-the-other";
	fake->inits = 0;
	fake->fences = 0;
	fake->finalized = 0;
}

static int open_it(void)
{
	return wf_space_open_as(WF_SPACE_PMIX, &space);
}

/* Lets a call that was left alone come back, and waits until it has; one that was left before it had begun never does. */
static void await(const _Atomic int *count)
{
	CHECK_EQ(*count, 0);
	fake->hold = false;
	for (int ms = 0; ms < 2000 * TEST_SLOW && !*count; ms++)
		wf_nap(WEFT_MS);
	wf_nap(20 * WEFT_MS);
}

TEST(a_space_by_pmix_from_beginning_to_end)
{
	char value[WF_SPACE_VALUE];

	stage();
	MUST_EQ(open_it(), 1);
	CHECK(space.rank == 0 && space.size == 2 && strcmp(space.job, "fake") == 0);
	CHECK_OK(wf_space_put(&space, "a", "mine"));
	CHECK_OK(wf_space_fence(&space, WEFT_FOREVER));
	CHECK_OK(wf_space_get(&space, 0, "a", value, sizeof(value)));
	CHECK(strcmp(value, "mine") == 0);
	CHECK_OK(wf_space_get(&space, 1, "a", value, sizeof(value)));
	CHECK(strcmp(value, "of-the-other") == 0);
	CHECK_EQ(wf_space_get(&space, 0, "b", value, sizeof(value)), -ENOENT);
	CHECK_OK(wf_space_close(&space));
	CHECK_EQ(fake->finalized, 1);
	CHECK_EQ(fake->fences, 1);
}

TEST(old_and_odd_libraries_are_refused)
{
	static const char *const versions[] = { "PMIx 2.2.5", "", "none", "0" };

	stage();
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		fake->version = versions[i];
		CHECK_EQ(open_it(), -ENOSYS);
		CHECK(strstr(weft_last_error(), "older than PMIx 3"));
	}
	fake->version = "5";
	CHECK_EQ(open_it(), 1);
	CHECK_OK(wf_space_close(&space));
}

TEST(what_makes_no_sense_is_not_opened)
{
	stage();
	fake->init = -25;
	CHECK_EQ(open_it(), -EREMOTEIO);
	CHECK(strstr(weft_last_error(), "PMIx_Init: FAKE (-25)"));
	fake->init = -1;                /* without words */
	CHECK_EQ(open_it(), -EREMOTEIO);
	fake->init = 0;
	fake->rank = 2;
	CHECK_EQ(open_it(), -EPROTO);
	fake->rank = 0;
	fake->size_type = 4;
	CHECK_EQ(open_it(), -EPROTO);
	fake->size_type = 0;
	fake->endless_name = true;
	CHECK_EQ(open_it(), -EPROTO);
}

/* What getting rank 1's value answers. */
static int got(const char *text, uint16_t type, int answer)
{
	char value[WF_SPACE_VALUE] = "before";
	int r;

	stage();
	fake->value = text;
	fake->value_type = type;
	fake->get = answer;
	MUST_EQ(open_it(), 1);
	r = wf_space_get(&space, 1, "a", value, sizeof(value));
	CHECK(r == 0 || strcmp(value, "before") == 0);
	CHECK_OK(wf_space_close(&space));
	return r;
}

TEST(values_that_cannot_have_been_put_are_not_got)
{
	char wide[WF_SPACE_VALUE + 1];

	memset(wide, 'w', sizeof(wide));
	wide[WF_SPACE_VALUE] = '\0';
	CHECK_EQ(got(wide, 0, 0), -EPROTO);
	wide[WF_SPACE_VALUE - 1] = '\0';
	CHECK_EQ(got(wide, 0, 0), 0);
	CHECK_EQ(got("", 0, 0), -EPROTO);
	CHECK_EQ(got("a b", 0, 0), -EPROTO);
	CHECK_EQ(got("a\x1b[2J", 0, 0), -EPROTO);
	CHECK_EQ(got(NULL, 0, 0), -EPROTO);
	CHECK_EQ(got("a", 14, 0), -EPROTO);
	CHECK_EQ(got("a", 0, -46), -ENOENT);
	CHECK_EQ(got("a", 0, -3), -EREMOTEIO);
}

TEST(a_failure_spoils_the_space)
{
	stage();
	fake->fence = -52;
	MUST_EQ(open_it(), 1);
	CHECK_EQ(wf_space_fence(&space, WEFT_FOREVER), -EREMOTEIO);
	CHECK_EQ(wf_space_put(&space, "a", "b"), -EREMOTEIO);
	CHECK_OK(wf_space_close(&space));
	CHECK_EQ(fake->finalized, 0);           /* nothing more is asked of it */
}

TEST(a_fence_that_does_not_come_back_is_left_at_its_deadline)
{
	weft_time start;

	stage();
	MUST_EQ(open_it(), 1);
	fake->hold = true;
	witness_call();
	start = wf_now();
	CHECK_EQ(wf_space_fence(&space, start + 50 * WEFT_MS), -ETIMEDOUT);
	CHECK(wf_now() - start >= 50 * WEFT_MS);
	WITHIN(start, 250 * WEFT_MS * TEST_SLOW);
	CHECK_EQ(wf_space_put(&space, "a", "b"), -ETIMEDOUT);
	CHECK_OK(wf_space_close(&space));
	await(&fake->fences);                   /* it ends by itself, and touches nothing any more */
	CHECK_EQ(fake->finalized, 0);
}

TEST(an_opening_that_does_not_come_back_is_left_as_well)
{
	weft_time start;

	stage();
	wf_space_patience = 50 * WEFT_MS;
	fake->hold = true;
	witness_call();
	start = wf_now();
	CHECK_EQ(open_it(), -ETIMEDOUT);
	WITHIN(start, 250 * WEFT_MS * TEST_SLOW);
	await(&fake->inits);
}

TEST(a_close_that_does_not_come_back_is_left_as_well)
{
	stage();
	MUST_EQ(open_it(), 1);
	wf_space_patience = 50 * WEFT_MS;
	fake->hold = true;
	CHECK_EQ(wf_space_close(&space), -ETIMEDOUT);
	CHECK_EQ(wf_space_close(&space), -ENOTCONN);
	await(&fake->finalized);
}

TEST(deadlines_and_answers_may_meet_at_any_moment)
{
	uint64_t seed = test_seed;

	for (uint64_t i = 0, n = test_scaled(200); i < n; i++) {
		stage();
		fake->fence_ms = 1;
		MUST_EQ(open_it(), 1);
		int r = wf_space_fence(&space, wf_now() + (int64_t)(test_random(&seed) % 2200) * 1000);

		CHECK(r == 0 || r == -ETIMEDOUT);
		CHECK_OK(wf_space_close(&space));
	}
	wf_nap(20 * WEFT_MS);
}

TEST_MAIN
