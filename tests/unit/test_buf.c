/* test_buf.c - who has a buffer: what weft/buf.h and the inner buf.h promise, and misuse of every kind. */
#include "test.h"

#include <sys/mman.h>
#include <weft/weft.h>

#include "mem/buf.h"

static struct weft_buf *get(size_t len)
{
	struct weft_buf *b = NULL;

	MUST_OK(weft_buf_get(len, WEFT_RAIL_ANY, &b));
	MUST(b && b->data);
	return b;
}

static struct weft_buf *begin(struct weft_buf *buf, bool keep)
{
	struct weft_buf *carry = NULL;

	MUST_OK(wf_buf_send_begin(buf, keep, &carry));
	MUST(carry);
	return carry;
}

/* As the core does it for a message that arrives. */
static struct weft_buf *send_through(struct weft_buf *buf, bool keep)
{
	struct weft_buf *carry = begin(buf, keep);

	wf_buf_sent(carry);
	wf_buf_delivered(carry);
	return carry;
}

static void check_foreign(const void *p)
{
	struct weft_buf *b = (struct weft_buf *)(uintptr_t)p, *carry = NULL;

	CHECK_EQ(weft_buf_state(b), -EINVAL);
	CHECK_EQ(wf_buf_send_begin(b, false, &carry), -EINVAL);
	CHECK_EQ(wf_buf_send_begin(b, true, &carry), -EINVAL);
	CHECK(carry == NULL);
	if (b)
		CHECK_EQ(weft_buf_put(b), -EINVAL);
}

TEST(a_pointer_that_is_no_buffers_is_an_error_wherever_it_points)
{
	static struct weft_buf fake_static;
	struct weft_buf fake_stack, *b, *big;
	char *heap = aligned_alloc(64, 256), *gone;
	uint64_t seed = test_seed;

	MUST_OK(wf_pool_init(0));
	b = get(100000);
	big = get(64 * MIB);
	gone = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(heap && gone != MAP_FAILED);
	memset(&fake_stack, 0, sizeof(fake_stack));
	memset(heap, 1, 256);
	check_foreign(NULL);
	check_foreign(&fake_static);
	check_foreign(&fake_stack);
	check_foreign(heap);
	check_foreign(gone);
	munmap(gone, 65536);
	check_foreign(gone);
	check_foreign(b->data);
	check_foreign(big->data);
	check_foreign((char *)b + 8);
	check_foreign((char *)b + 64);          /* the handle of a buffer not made yet */
	for (long k = -4; k <= 4; k++)          /* handles that are not mapped */
		if (k)
			check_foreign((char *)b + k * (8 << 20));
	for (int i = 0; i < 64; i++) {
		uintptr_t p = (uintptr_t)1 << i;

		if (p != (uintptr_t)b && p != (uintptr_t)big)
			check_foreign((void *)p);
		check_foreign((void *)-p);
	}
	for (int i = 0; i < 100000; i++) {
		uint64_t r = test_random(&seed);
		uintptr_t p = (uintptr_t)b ^ (r & (((uint64_t)1 << (r >> 58)) - 1));

		if (p == (uintptr_t)b || p == (uintptr_t)big)
			continue;
		check_foreign((void *)p);
		weft_buf_of((void *)p);
		weft_buf_of((void *)(uintptr_t)r);
	}
	CHECK_OK(weft_buf_put(b));
	CHECK_OK(weft_buf_put(big));
	free(heap);
	wf_pool_fini();
}

TEST(buf_of_finds_the_buffer_of_any_of_its_bytes_and_none_elsewhere)
{
	int local = 0;

	MUST_OK(wf_pool_init(0));
	for (size_t len = 256; len <= 128 * MIB; len *= 2) {
		struct weft_buf *a = get(len), *b = get(len);
		char *p = a->data;

		CHECK(weft_buf_of(p) == a);
		CHECK(weft_buf_of(p + 1) == a);
		CHECK(weft_buf_of(p + len / 2) == a);
		CHECK(weft_buf_of(p + len - 1) == a);
		CHECK(weft_buf_of(p - 1) != a);
		CHECK(weft_buf_of(p + len) != a);
		CHECK(weft_buf_of(b->data) == b);
		CHECK_OK(weft_buf_put(a));
		CHECK(weft_buf_of(p) == NULL);
		CHECK(weft_buf_of(b->data) == b);
		CHECK_OK(weft_buf_put(b));
	}
	CHECK(weft_buf_of(NULL) == NULL);
	CHECK(weft_buf_of(&local) == NULL);
	CHECK(weft_buf_of((void *)UINTPTR_MAX) == NULL);
	wf_pool_fini();
}

TEST(putting_twice_is_an_error)
{
	MUST_OK(wf_pool_init(0));
	for (size_t len = 256; len <= 64 * MIB; len *= 4) {
		struct weft_buf *b = get(len), *c;

		CHECK_OK(weft_buf_put(b));
		CHECK_EQ(weft_buf_put(b), -EINVAL);
		CHECK_EQ(weft_buf_state(b), -EINVAL);
		CHECK_EQ(wf_buf_send_begin(b, false, &c), -EINVAL);
		CHECK_EQ(wf_buf_send_begin(b, true, &c), -EINVAL);
	}
	wf_pool_fini();
}

TEST(what_a_holder_wrote_into_a_handle_is_mended_when_it_is_got_again)
{
	struct weft_buf *b;
	void *data;

	MUST_OK(wf_pool_init(0));
	b = get(300);
	data = b->data;
	b->data = NULL;
	b->cap = b->len = 7;
	CHECK_OK(weft_buf_put(b));
	CHECK(get(301) == b);
	CHECK(b->data == data);
	CHECK_EQ(b->cap, 512);
	CHECK_EQ(b->len, 301);
	CHECK_OK(weft_buf_put(b));
	wf_pool_fini();
}

TEST(nonsense_asked_of_get_is_an_error_and_the_output_stays_untouched)
{
	struct weft_buf *b = NULL;

	MUST_OK(wf_pool_init(8 * MIB));
	CHECK_EQ(weft_buf_get(10, WEFT_RAIL_ANY, NULL), -EINVAL);
	CHECK_EQ(weft_buf_get(10, 2, &b), -EOPNOTSUPP);
	CHECK_EQ(weft_buf_get(10, -1, &b), -EOPNOTSUPP);
	CHECK_EQ(weft_buf_get(8 * MIB + 1, WEFT_RAIL_ANY, &b), -ENOBUFS);
	CHECK_EQ(weft_buf_get(SIZE_MAX, WEFT_RAIL_ANY, &b), -ENOBUFS);
	CHECK(strstr(weft_last_error(), "buffer") != NULL);
	CHECK(b == NULL);
	CHECK_OK(weft_buf_get(10, WEFT_RAIL_FASTEST, &b));
	CHECK_OK(weft_buf_put(b));
	CHECK_OK(weft_buf_put(NULL));
	wf_pool_fini();

	MUST_OK(wf_pool_init((size_t)1 << 40));
	CHECK_EQ(weft_buf_get(((size_t)1 << 30) + 1, WEFT_RAIL_ANY, &b), -ENOBUFS);
	wf_pool_fini();
}

TEST(a_sent_buffer_is_busy_until_it_is_delivered_and_then_an_ordinary_one)
{
	struct weft_buf *b, *carry;

	MUST_OK(wf_pool_init(0));
	b = get(100);
	memcpy(b->data, "same memory", 12);
	carry = begin(b, false);
	CHECK(carry == b);
	CHECK(!wf_buf_is_shared(carry));
	for (int sent = 0; sent < 2; sent++) {
		struct weft_buf *no = NULL;

		CHECK_EQ(weft_buf_state(b), sent ? WEFT_BUF_SENT : WEFT_BUF_SENDING);
		CHECK_EQ(weft_buf_put(b), -EBUSY);
		CHECK_EQ(wf_buf_send_begin(b, false, &no), -EBUSY);
		CHECK_EQ(wf_buf_send_begin(b, true, &no), -EBUSY);
		CHECK(no == NULL);
		if (!sent)
			wf_buf_sent(carry);
	}
	wf_buf_delivered(carry);
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_IDLE);
	CHECK_EQ(b->len, 100);
	CHECK(strcmp(b->data, "same memory") == 0);
	b->len = b->cap;
	CHECK(send_through(b, false) == b);     /* filled and sent on */
	CHECK_EQ(b->len, 256);
	CHECK_OK(weft_buf_put(b));
	wf_pool_fini();
}

TEST(a_send_taken_back_leaves_the_buffer_as_it_was)
{
	struct weft_buf *b, *carry;

	MUST_OK(wf_pool_init(0));
	b = get(100);
	for (int sent = 0; sent < 2; sent++)
		for (int keep = 0; keep < 2; keep++) {
			carry = begin(b, keep);
			if (sent)
				wf_buf_sent(carry);
			CHECK(wf_buf_send_undo(carry) == (keep ? NULL : b));
			CHECK_EQ(weft_buf_state(b), WEFT_BUF_IDLE);
			CHECK_EQ(b->len, 100);
		}
	carry = send_through(b, true);
	CHECK(begin(carry, false) == carry);    /* a received view, sent on in vain: still the receiver's */
	CHECK(wf_buf_send_undo(carry) == carry);
	CHECK_EQ(weft_buf_state(carry), WEFT_BUF_IDLE);
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_WITH_RECEIVER);
	CHECK_OK(weft_buf_put(carry));
	CHECK_OK(weft_buf_put(b));
	CHECK_EQ(weft_buf_put(b), -EINVAL);
	wf_pool_fini();
}

TEST(a_length_beyond_cap_or_moved_data_cannot_be_sent)
{
	struct weft_buf *b, *carry = NULL;
	char *data;

	MUST_OK(wf_pool_init(0));
	b = get(100);
	data = b->data;
	for (int keep = 0; keep < 2; keep++) {
		b->len = 257;
		CHECK_EQ(wf_buf_send_begin(b, keep, &carry), -EINVAL);
		b->cap = SIZE_MAX;              /* does not make it longer */
		CHECK_EQ(wf_buf_send_begin(b, keep, &carry), -EINVAL);
		b->len = 100;
		b->data = data + 8;
		CHECK_EQ(wf_buf_send_begin(b, keep, &carry), -EINVAL);
		b->data = data;
		CHECK(carry == NULL);
		CHECK_EQ(weft_buf_state(b), WEFT_BUF_IDLE);
	}
	CHECK(send_through(b, false) == b);
	CHECK_EQ(b->cap, 256);
	CHECK_OK(weft_buf_put(b));
	wf_pool_fini();
}

TEST(a_lent_buffer_is_seen_by_the_receiver_through_a_view_of_its_own)
{
	struct weft_buf *b, *view;

	MUST_OK(wf_pool_init(0));
	b = get(100);
	memcpy(b->data, "lent", 5);
	view = begin(b, true);
	CHECK(view != b);
	CHECK(view->data == b->data);
	CHECK_EQ(view->len, 100);
	CHECK_EQ(view->cap, 100);
	CHECK(wf_buf_is_shared(view));
	CHECK(!wf_buf_is_shared(b));
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_SENDING);
	wf_buf_sent(view);
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_SENT);
	wf_buf_delivered(view);
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_WITH_RECEIVER);
	CHECK_EQ(weft_buf_state(view), WEFT_BUF_IDLE);
	CHECK(strcmp(view->data, "lent") == 0);
	CHECK_OK(weft_buf_put(view));
	CHECK_EQ(weft_buf_put(view), -EINVAL);
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_IDLE);
	CHECK_OK(weft_buf_put(b));
	wf_pool_fini();
}

TEST(a_buffer_lent_several_times_is_as_far_as_the_slowest)
{
	struct weft_buf *b, *v[3];

	MUST_OK(wf_pool_init(0));
	b = get(5);
	for (int i = 0; i < 3; i++)
		v[i] = begin(b, true);
	wf_buf_sent(v[0]);
	wf_buf_delivered(v[0]);
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_SENDING);
	wf_buf_sent(v[1]);
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_SENDING);
	wf_buf_delivered(v[2]);                 /* straight to the receiver */
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_SENT);
	wf_buf_delivered(v[1]);
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_WITH_RECEIVER);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(weft_buf_state(b), WEFT_BUF_WITH_RECEIVER);
		CHECK_OK(weft_buf_put(v[i]));
	}
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_IDLE);
	CHECK_OK(weft_buf_put(b));
	wf_pool_fini();
}

TEST(a_lent_buffer_cannot_be_handed_over_until_it_is_idle)
{
	struct weft_buf *b, *v, *carry = NULL;

	MUST_OK(wf_pool_init(0));
	b = get(5);
	v = send_through(b, true);
	CHECK_EQ(wf_buf_send_begin(b, false, &carry), -EBUSY);
	CHECK(carry == NULL);
	CHECK_OK(weft_buf_put(v));
	CHECK(send_through(b, false) == b);
	CHECK_OK(weft_buf_put(b));
	wf_pool_fini();
}

TEST(a_buffer_put_while_lent_goes_home_when_the_last_view_is_put)
{
	struct weft_buf *b, *v, *w, *carry = NULL;
	void *data;

	MUST_OK(wf_pool_init(4 * KIB));
	b = get(4096);                          /* all there is */
	data = b->data;
	memset(data, 7, 4096);
	v = send_through(b, true);
	w = begin(b, true);
	CHECK_OK(weft_buf_put(b));
	CHECK_EQ(weft_buf_put(b), -EBUSY);      /* put before, and others still have it */
	CHECK_EQ(wf_buf_send_begin(b, false, &carry), -EBUSY);
	CHECK_EQ(wf_buf_send_begin(b, true, &carry), -EBUSY);
	CHECK_EQ(weft_buf_get(4096, WEFT_RAIL_ANY, &carry), -EAGAIN);
	CHECK_OK(weft_buf_put(v));
	CHECK_EQ(weft_buf_put(b), -EBUSY);
	CHECK_EQ(weft_buf_get(4096, WEFT_RAIL_ANY, &carry), -EAGAIN);
	CHECK(carry == NULL);
	wf_buf_delivered(w);
	CHECK_EQ(((char *)w->data)[4095], 7);
	CHECK_OK(weft_buf_put(w));
	CHECK_EQ(weft_buf_put(b), -EINVAL);     /* in the pool */
	CHECK_OK(weft_buf_get(4096, WEFT_RAIL_ANY, &carry));
	CHECK(carry->data == data);
	CHECK_OK(weft_buf_put(carry));
	wf_pool_fini();
}

TEST(a_view_may_be_sent_on)
{
	struct weft_buf *b, *v;

	MUST_OK(wf_pool_init(0));
	b = get(50);
	v = send_through(b, true);
	CHECK(begin(v, false) == v);
	CHECK(wf_buf_is_shared(v));
	CHECK_EQ(weft_buf_put(v), -EBUSY);
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_WITH_RECEIVER);
	wf_buf_sent(v);
	CHECK_EQ(weft_buf_state(v), WEFT_BUF_SENT);
	wf_buf_delivered(v);
	CHECK_EQ(v->len, 50);
	v->len = 51;                            /* it cannot grow on its way */
	CHECK_EQ(wf_buf_send_begin(v, false, &v), -EINVAL);
	v->len = 50;
	CHECK_OK(weft_buf_put(v));
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_IDLE);
	CHECK_OK(weft_buf_put(b));
	wf_pool_fini();
}

TEST(a_view_may_be_lent_in_turn_and_the_buffer_goes_home_after_all_of_them)
{
	struct weft_buf *b, *v, *w;

	MUST_OK(wf_pool_init(0));
	b = get(50);
	v = send_through(b, true);
	w = send_through(v, true);
	CHECK(w->data == b->data);
	CHECK_EQ(weft_buf_state(v), WEFT_BUF_WITH_RECEIVER);
	CHECK_OK(weft_buf_put(b));
	CHECK_OK(weft_buf_put(v));
	CHECK_EQ(weft_buf_put(v), -EBUSY);
	CHECK_EQ(weft_buf_put(b), -EBUSY);
	CHECK_OK(weft_buf_put(w));
	CHECK_EQ(weft_buf_put(w), -EINVAL);
	CHECK_EQ(weft_buf_put(v), -EINVAL);
	CHECK_EQ(weft_buf_put(b), -EINVAL);
	wf_pool_fini();
}

TEST(a_buffer_is_lent_at_most_a_million_times)
{
	enum { MOST = (1 << 20) - 1 };
	struct weft_buf *b, **v = calloc(MOST, sizeof(*v)), *carry = NULL;

	MUST(v);
	MUST_OK(wf_pool_init(0));
	b = get(1);
	for (int i = 0; i < MOST; i++)
		v[i] = begin(b, true);
	CHECK_EQ(wf_buf_send_begin(b, true, &carry), -EAGAIN);
	for (int i = 0; i < MOST; i++)
		wf_buf_sent(v[i]);
	CHECK_EQ(wf_buf_send_begin(b, true, &carry), -EAGAIN);
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_SENT);
	for (int i = 0; i < MOST; i++)
		wf_buf_delivered(v[i]);
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_WITH_RECEIVER);
	for (int i = 0; i < MOST; i++)
		CHECK_OK(weft_buf_put(v[i]));
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_IDLE);
	CHECK_OK(weft_buf_put(b));
	free(v);
	wf_pool_fini();
}

TEST_MAIN
