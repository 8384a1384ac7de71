/* test_pool.c - classes, the limit, and what happens to memory: at a miss, in the pool, when it closes. */
#include "test.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <weft/weft.h>

#include "mem/buf.h"
#include "mem/poison.h"

static struct weft_buf *get(size_t len)
{
	struct weft_buf *b = NULL;

	MUST_OK(weft_buf_get(len, WEFT_RAIL_ANY, &b));
	MUST(b && b->data);
	return b;
}

/* A view of @buf in a receiver's hands. */
static struct weft_buf *lend(struct weft_buf *buf)
{
	struct weft_buf *view = NULL;

	MUST_OK(wf_buf_send_begin(buf, true, &view));
	wf_buf_delivered(view);
	return view;
}

/* How many buffers of @len can be had at once; all are put again. */
static size_t count_available(size_t len)
{
	static struct weft_buf *all[(1 << 18) + 1];
	size_t n = 0;
	int r = 0;

	while (n < sizeof(all) / sizeof(*all) && (r = weft_buf_get(len, WEFT_RAIL_ANY, &all[n])) == 0)
		n++;
	CHECK_EQ(r, -EAGAIN);
	for (size_t i = 0; i < n; i++)
		CHECK_OK(weft_buf_put(all[i]));
	return n;
}

TEST(there_are_no_buffers_before_the_pool_is_opened_or_after_it_is_closed)
{
	struct weft_buf *b = NULL;

	CHECK_EQ(weft_buf_get(10, WEFT_RAIL_ANY, &b), -ENOTCONN);
	CHECK(b == NULL);
	wf_pool_fini();
	MUST_OK(wf_pool_init(0));
	weft_buf_put(get(10));
	wf_pool_fini();
	CHECK_EQ(weft_buf_get(10, WEFT_RAIL_ANY, &b), -ENOTCONN);
	CHECK_EQ(weft_buf_get(0, WEFT_RAIL_ANY, &b), -ENOTCONN);
	CHECK(b == NULL);
}

TEST(a_buffer_has_room_for_what_was_asked_in_a_power_of_two_of_at_least_256_bytes)
{
	static const size_t lens[] = { 0, 1, 255, 256, 257, 511, 512, 513, 4095, 4096, 4097, 65537,
				       1048576, 1048577, 33554432, 33554433 };

	MUST_OK(wf_pool_init(0));
	for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		struct weft_buf *b = get(lens[i]);
		size_t cap = 256;

		while (cap < lens[i])
			cap *= 2;
		CHECK_EQ(b->len, lens[i]);
		CHECK_EQ(b->cap, cap);
		CHECK_EQ(weft_buf_state(b), WEFT_BUF_IDLE);
		CHECK_OK(weft_buf_put(b));
	}
	wf_pool_fini();
}

TEST(data_is_aligned_to_64_bytes_and_from_4096_bytes_on_to_pages)
{
	MUST_OK(wf_pool_init(0));
	for (size_t len = 1; len <= 64 * MIB; len *= 2)
		for (int i = 0; i < 3; i++) {
			struct weft_buf *b = get(len);

			CHECK_EQ((uintptr_t)b->data % (len >= 4096 ? 4096 : 64), 0);
			CHECK_OK(weft_buf_put(b));
		}
	wf_pool_fini();
}

TEST(buffers_in_use_do_not_overlap_and_every_byte_is_theirs)
{
	enum { N = 2000 };
	static struct weft_buf *b[N];
	uint64_t seed = test_seed;

	MUST_OK(wf_pool_init(0));
	for (int i = 0; i < N; i++) {
		b[i] = get((size_t)1 << (6 + test_random(&seed) % 12));
		memset(b[i]->data, i & 255, b[i]->cap);
	}
	for (int i = 0; i < N; i++) {
		const unsigned char *p = b[i]->data;
		size_t wrong = 0;

		for (size_t k = 0; k < b[i]->cap; k++)
			wrong += p[k] != (i & 255);
		CHECK_EQ(wrong, 0);
		CHECK_OK(weft_buf_put(b[i]));
	}
	wf_pool_fini();
}

TEST(the_buffer_put_last_is_got_first)
{
	struct weft_buf *a, *b;

	MUST_OK(wf_pool_init(0));
	for (size_t len = 256; len <= 2 * MIB; len *= 8) {
		a = get(len);
		b = get(len);
		CHECK(a != b && a->data != b->data);
		CHECK_OK(weft_buf_put(a));
		CHECK_OK(weft_buf_put(b));
		CHECK(get(len) == b);
		CHECK(get(len - 1) == a);
		CHECK_OK(weft_buf_put(a));
		CHECK_OK(weft_buf_put(b));
	}
	wf_pool_fini();
}

static void *put_and_get(void *arg)
{
	struct weft_buf *b;

	CHECK_OK(weft_buf_put(arg));
	b = get(1000);
	CHECK(b == arg);
	return b;
}

TEST(a_buffer_goes_to_the_cache_of_the_thread_that_puts_it)
{
	pthread_t t;
	void *b;

	MUST_OK(wf_pool_init(0));
	b = get(1000);
	MUST_OK(pthread_create(&t, NULL, put_and_get, b));
	MUST_OK(pthread_join(t, NULL));
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_IDLE);
	CHECK_OK(weft_buf_put(b));
	wf_pool_fini();
}

TEST(the_pool_grows_to_its_limit_exactly_and_then_asks_to_come_again)
{
	struct weft_buf *b;

	for (size_t len = 256; len <= 2 * MIB; len *= 2) {
		MUST_OK(wf_pool_init(2 * MIB));
		CHECK_EQ(count_available(len), 2 * MIB / len);
		CHECK_EQ(count_available(len), 2 * MIB / len);
		wf_pool_fini();
	}
	MUST_OK(wf_pool_init(3 * 65536 + 1));
	CHECK_EQ(count_available(65536), 3);
	CHECK_EQ(weft_buf_get(65536 * 2 + 1, WEFT_RAIL_ANY, &b), -ENOBUFS);
	CHECK_EQ(count_available(65536 * 2), 1);
	wf_pool_fini();
	MUST_OK(wf_pool_init(128 * MIB));
	CHECK_EQ(count_available(64 * MIB), 2);
	CHECK_EQ(count_available(128 * MIB), 1);
	wf_pool_fini();
}

TEST(memory_free_in_another_class_is_turned_over_at_the_limit)
{
	static const size_t lens[] = { 256, 64 * 1024, 1024, 4 << 20, 4096, 32 << 20, 256, 64 << 20,
				       512 * 1024, 256 };
	struct weft_buf *held;

	MUST_OK(wf_pool_init(64 * MIB));
	for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++)
		CHECK_EQ(count_available(lens[i]), 64 * MIB / lens[i]);
	held = get(256);                        /* keeps its piece of 1 MiB at most */
	CHECK(count_available(1 * MIB) >= 62);
	CHECK_OK(weft_buf_put(held));
	CHECK_EQ(count_available(1 * MIB), 64);
	wf_pool_fini();
}

enum { IDLERS = 8 };
static pthread_barrier_t idle_barrier;

static void *fill_cache_and_idle(void *arg)
{
	static _Thread_local struct weft_buf *b[200];

	for (size_t len = 256; len <= 65536; len *= 4) {
		int n = 0;

		while (n < 200 && weft_buf_get(len, WEFT_RAIL_ANY, &b[n]) == 0)
			n++;
		while (n > 0)
			CHECK_OK(weft_buf_put(b[--n]));
	}
	pthread_barrier_wait(&idle_barrier);
	pthread_barrier_wait(&idle_barrier);
	return arg;
}

TEST(idle_threads_cannot_keep_more_than_a_quarter_of_the_pool_and_leave_it_all_when_they_end)
{
	pthread_t t[IDLERS];

	MUST_OK(wf_pool_init(16 * MIB));
	MUST_OK(pthread_barrier_init(&idle_barrier, NULL, IDLERS + 1));
	for (int i = 0; i < IDLERS; i++)
		MUST_OK(pthread_create(&t[i], NULL, fill_cache_and_idle, NULL));
	pthread_barrier_wait(&idle_barrier);
	/* Units of 1 MiB of which idlers hold one small buffer cannot be turned over, but the class that all
	 * ended with has three quarters. */
	CHECK(count_available(65536) + 64 >= 256 * 3 / 4);
	pthread_barrier_wait(&idle_barrier);
	for (int i = 0; i < IDLERS; i++)
		MUST_OK(pthread_join(t[i], NULL));
	CHECK_EQ(count_available(65536), 256);
	CHECK_EQ(count_available(2 * MIB), 8);
	pthread_barrier_destroy(&idle_barrier);
	wf_pool_fini();
}

TEST(what_is_held_when_the_pool_closes_stays_good_and_it_can_be_opened_again)
{
	struct weft_buf *b, *big, *v;

	MUST_OK(wf_pool_init(0));
	b = get(1000);
	big = get(64 * MIB);
	memset(b->data, 1, b->cap);
	memset(big->data, 2, big->cap);
	v = lend(b);
	wf_pool_fini();
	CHECK_EQ(((char *)b->data)[1023], 1);
	CHECK_EQ(((char *)big->data)[64 * MIB - 1], 2);
	CHECK(weft_buf_of(b->data) == b);
	CHECK_EQ(weft_buf_state(b), WEFT_BUF_WITH_RECEIVER);
	MUST_OK(wf_pool_init(0));
	CHECK_OK(weft_buf_put(get(1000)));
	wf_pool_fini();
	CHECK_EQ(((char *)b->data)[1023], 1);
	CHECK_OK(weft_buf_put(v));
	CHECK_OK(weft_buf_put(b));
	CHECK_EQ(weft_buf_put(b), -EINVAL);
	CHECK_OK(weft_buf_put(big));
	CHECK_EQ(weft_buf_put(big), -EINVAL);
	CHECK(weft_buf_of(big) == NULL);
	MUST_OK(wf_pool_init(4 * MIB));
	CHECK_EQ(count_available(1 * MIB), 4);
	wf_pool_fini();
}

/* How many pages of [mem, mem + bytes) are there; -1: not mapped. */
static long resident(void *mem, size_t bytes)
{
	static unsigned char page[16384];
	long n = 0;

	MUST(bytes / 4096 <= sizeof(page));
	if (mincore(mem, bytes, page) < 0)
		return -1;
	for (size_t i = 0; i < (bytes + 4095) / 4096; i++)
		n += page[i] & 1;
	return n;
}

TEST(memory_has_its_pages_before_it_is_handed_out_and_loses_them_when_the_pool_closes)
{
	struct weft_buf *b, *big;
	void *data, *big_data;

	if (sysconf(_SC_PAGESIZE) != 4096)
		SKIP("pages are not of 4096 bytes");
	MUST_OK(wf_pool_init(0));
	b = get(256 * KIB);
	big = get(64 * MIB);
	data = b->data;
	big_data = big->data;
	if (madvise(data, 4096, 23 /* MADV_POPULATE_WRITE */) == 0) {
		CHECK_EQ(resident(data, 256 * KIB), 64);
		CHECK_EQ(resident(big_data, 64 * MIB), 16384);
	}
	memset(data, 1, 256 * KIB);
	CHECK_OK(weft_buf_put(b));
	CHECK_OK(weft_buf_put(big));
	CHECK_EQ(resident(data, 256 * KIB), 64);        /* kept while open */
	wf_pool_fini();
	CHECK_EQ(resident(data, 256 * KIB), 0);
	CHECK(resident(big_data, 64 * MIB) <= 0);
}

/* How many of @len there are when it is memory that runs out; all are put again. */
static int count_until_no_memory(size_t len)
{
	static struct weft_buf *b[2048];
	int n = 0, r = 0, bad = 0;

	while (n < 2048 && (r = weft_buf_get(len, WEFT_RAIL_ANY, &b[n])) == 0)
		n++;
	for (int i = 0; i < n; i++)
		bad |= weft_buf_put(b[i]);
	return r == -ENOMEM && !bad ? n : -1;
}

/* In a child, which may not have more address space than it has. */
static int starve(void)
{
	struct rlimit none = { 0, 0 };
	struct weft_buf *big = NULL;
	int n;

	if (wf_pool_init((size_t)1 << 40) < 0)
		return 10;
	wf_buf_release(lend(get(1 * MIB)));     /* there are handles for views */
	if (setrlimit(RLIMIT_AS, &none) < 0)
		return 11;
	if (weft_buf_get(64 * MIB, WEFT_RAIL_ANY, &big) != -ENOMEM || big)
		return 12;
	n = count_until_no_memory(32 * MIB);
	if (n < 0 || count_until_no_memory(32 * MIB) != n)
		return 13;
	n = count_until_no_memory(1 * MIB);
	if (n < 31 || count_until_no_memory(1 * MIB) != n)      /* the units of at least one chunk */
		return 14;
	wf_pool_fini();
	return 0;
}

static int in_child(int (*fn)(void))
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (pid == 0)
		_exit(fn());
	MUST(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(without_memory_get_answers_ENOMEM_and_what_is_there_goes_on)
{
	if (TEST_ASAN || TEST_TSAN || wf_poison_on)
		SKIP("the tool needs address space of its own");
	CHECK_EQ(in_child(starve), 0);
}

#if TEST_ASAN
int __asan_address_is_poisoned(void const volatile *p);

static int read_after_put(void)
{
	struct weft_buf *b;
	volatile char *p;

	if (!freopen("/dev/null", "w", stderr) || wf_pool_init(0) < 0)
		return 0;
	b = get(1000);
	p = b->data;
	weft_buf_put(b);
	return p[500] * 0;
}
#endif

TEST(memory_in_the_pool_is_out_of_bounds_for_AddressSanitizer)
{
#if TEST_ASAN
	struct weft_buf *b, *v;
	char *p;

	MUST_OK(wf_pool_init(0));
	CHECK(wf_poison_on);
	for (size_t len = 256; len <= 64 * MIB; len *= 8) {
		b = get(len);
		p = b->data;
		CHECK(!__asan_address_is_poisoned(p));
		CHECK(!__asan_address_is_poisoned(p + b->cap - 1));
		v = lend(b);
		CHECK_OK(weft_buf_put(b));
		CHECK(!__asan_address_is_poisoned(p));  /* others still have it */
		CHECK_OK(weft_buf_put(v));
		CHECK(__asan_address_is_poisoned(p));
		CHECK(__asan_address_is_poisoned(p + len - 1));
	}
	wf_pool_fini();
	CHECK(in_child(read_after_put) != 0);
#else
	SKIP("built without AddressSanitizer");
#endif
}

TEST_MAIN
