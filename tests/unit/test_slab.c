/* test_slab.c - private objects of fixed size: what slab.h promises. */
#include "test.h"

#include "mem/slab.h"

enum { SIZE = 200 };

static void setup(void)
{
	MUST_OK(wf_slab_setup(WF_SLAB_REQ, SIZE));
	MUST_OK(wf_slab_setup(WF_SLAB_RECORD, 64));
}

TEST(before_its_setup_a_kind_has_no_objects)
{
	CHECK(wf_slab_get(WF_SLAB_REQ) == NULL);
}

TEST(setting_up_again_changes_nothing_and_another_size_is_refused)
{
	setup();
	CHECK_OK(wf_slab_setup(WF_SLAB_REQ, SIZE));
	CHECK_EQ(wf_slab_setup(WF_SLAB_REQ, 3 * SIZE), -EINVAL);
	CHECK_EQ(wf_slab_setup(WF_SLAB_RECORD, 0), -EINVAL);
	CHECK_EQ(wf_slab_setup(WF_SLAB_KINDS, 64), -EINVAL);
	CHECK_EQ(wf_slab_setup(-1, 64), -EINVAL);
	CHECK_EQ(wf_slab_setup(WF_SLAB_RECORD, (size_t)1 << 40), -EINVAL);
}

TEST(new_objects_are_zero_aligned_to_a_line_and_do_not_overlap)
{
	enum { N = 3000 };
	unsigned char **obj = calloc(N, sizeof(*obj));

	MUST(obj);
	setup();
	for (int i = 0; i < N; i++) {
		obj[i] = wf_slab_get(WF_SLAB_REQ);
		MUST(obj[i]);
		CHECK_EQ((uintptr_t)obj[i] % WF_SLAB_ALIGN, 0);
		for (size_t b = sizeof(struct wf_link); b < SIZE; b++)
			CHECK_EQ(obj[i][b], 0);
		memset(obj[i], i & 255, SIZE);
	}
	for (int i = 0; i < N; i++) {
		CHECK_EQ(obj[i][0], i & 255);
		CHECK_EQ(obj[i][SIZE - 1], i & 255);
		memset(obj[i], 0, SIZE);
		wf_slab_put(WF_SLAB_REQ, obj[i]);
	}
	free(obj);
}

TEST(the_object_put_last_is_got_first)
{
	void *a, *b;

	setup();
	a = wf_slab_get(WF_SLAB_RECORD);
	b = wf_slab_get(WF_SLAB_RECORD);
	MUST(a && b);
	wf_slab_put(WF_SLAB_RECORD, a);
	wf_slab_put(WF_SLAB_RECORD, b);
	CHECK(wf_slab_get(WF_SLAB_RECORD) == b);
	CHECK(wf_slab_get(WF_SLAB_RECORD) == a);
	wf_slab_put(WF_SLAB_RECORD, a);
	wf_slab_put(WF_SLAB_RECORD, b);
	wf_slab_put(WF_SLAB_RECORD, NULL);
}

TEST(beyond_its_first_16_bytes_a_free_object_is_left_as_it_was)
{
	unsigned char *a;

	setup();
	a = wf_slab_get(WF_SLAB_REQ);
	MUST(a);
	memset(a, 0x5a, SIZE);
	wf_slab_put(WF_SLAB_REQ, a);
	for (int i = 16; i < SIZE; i++)
		CHECK_EQ(a[i], 0x5a);
	CHECK(wf_slab_get(WF_SLAB_REQ) == a);
	for (int i = 16; i < SIZE; i++)
		CHECK_EQ(a[i], 0x5a);
	memset(a, 0, SIZE);
	wf_slab_put(WF_SLAB_REQ, a);
}

enum { MOVED = 1000 };
static void *moved[MOVED];

static void *get_them(void *arg)
{
	(void)arg;
	for (int i = 0; i < MOVED; i++)
		moved[i] = wf_slab_get(WF_SLAB_RECORD);
	return NULL;
}

static void *put_them(void *arg)
{
	(void)arg;
	for (int i = 0; i < MOVED; i++)
		wf_slab_put(WF_SLAB_RECORD, moved[i]);
	return NULL;
}

static int by_address(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return x < y ? -1 : x > y;
}

/* Every object of the first round is got again in the second: threads that came and went in between took
 * nothing with them. */
TEST(what_one_thread_got_another_may_put_and_a_thread_that_ends_leaves_nothing_behind)
{
	static void *first[MOVED];
	pthread_t t;

	setup();
	for (int round = 0; round < 2; round++) {
		MUST_OK(pthread_create(&t, NULL, get_them, NULL));
		MUST_OK(pthread_join(t, NULL));
		for (int i = 0; i < MOVED; i++)
			MUST(moved[i]);
		qsort(moved, MOVED, sizeof(*moved), by_address);
		for (int i = 1; i < MOVED; i++)
			MUST(moved[i] != moved[i - 1]);
		if (round == 0)
			memcpy(first, moved, sizeof(first));
		else
			CHECK(memcmp(first, moved, sizeof(first)) == 0);
		MUST_OK(pthread_create(&t, NULL, put_them, NULL));
		MUST_OK(pthread_join(t, NULL));
	}
}

static pthread_key_t late_key;

/* Runs at least once after the cache has gone: keys are gone through in rounds. */
static void late_put(void *obj)
{
	static _Thread_local int rounds;
	void *other;

	if (++rounds < 3) {
		pthread_setspecific(late_key, obj);
		return;
	}
	other = wf_slab_get(WF_SLAB_RECORD);
	CHECK(other != NULL);
	wf_slab_put(WF_SLAB_RECORD, other);
	wf_slab_put(WF_SLAB_RECORD, obj);
	CHECK(wf_cache == NULL);
}

static void *end_late(void *arg)
{
	void *obj = wf_slab_get(WF_SLAB_RECORD);

	(void)arg;
	CHECK(wf_cache != NULL);
	pthread_setspecific(late_key, obj);
	return obj;
}

TEST(thread_exit_code_may_still_get_and_put_after_the_cache_has_gone)
{
	pthread_t t;
	void *obj;

	setup();
	MUST_OK(pthread_key_create(&late_key, late_put));
	MUST_OK(pthread_create(&t, NULL, end_late, NULL));
	MUST_OK(pthread_join(t, &obj));
	CHECK(obj != NULL);
	pthread_key_delete(late_key);
}

static void *look_idle(void *arg)
{
	(void)arg;
	return wf_cache;
}

TEST(a_thread_that_uses_none_has_no_cache)
{
	pthread_t t;
	void *cache = &t;

	setup();
	MUST_OK(pthread_create(&t, NULL, look_idle, NULL));
	MUST_OK(pthread_join(t, &cache));
	CHECK(cache == NULL);
}

TEST_MAIN
