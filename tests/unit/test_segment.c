/* test_segment.c - segments: sealed, reserved, kept out of dumps and children, given back; places; and every call failing. */
#include "unit/kin.h"

#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

/* Calls of the library that can be made to fail: the @calls-th of them does, counted down. */
static _Atomic int calls;

/* Signals interrupt fallocate whenever they may; the kernel knows no MADV_POPULATE. */
static atomic_bool stormy, no_populate;

static bool fails_now(void)
{
	return atomic_load(&calls) > 0 && atomic_fetch_sub(&calls, 1) == 1;
}

int memfd_create(const char *name, unsigned flags)
{
	if (fails_now()) {
		errno = EMFILE;
		return -1;
	}
	return (int)syscall(SYS_memfd_create, name, flags);
}

int ftruncate(int fd, off_t bytes)
{
	if (fails_now()) {
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_ftruncate, fd, bytes);
}

int fallocate(int fd, int mode, off_t from, off_t bytes)
{
	sigset_t blocked;

	if (mode == 0 && fails_now()) {
		errno = ENOSPC;
		return -1;
	}
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	if (atomic_load(&stormy) && !sigismember(&blocked, SIGALRM)) {
		errno = EINTR;
		return -1;
	}
	return (int)syscall(SYS_fallocate, fd, mode, from, bytes);
}

int madvise(void *mem, size_t bytes, int advice)
{
	if ((advice == 22 || advice == 23) && atomic_load(&no_populate)) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_madvise, mem, bytes, advice);
}

int fcntl(int fd, int cmd, ...)
{
	va_list args;
	long arg;

	va_start(args, cmd);
	arg = va_arg(args, long);
	va_end(args);
	if (cmd == F_ADD_SEALS && fails_now()) {
		errno = EBUSY;
		return -1;
	}
	return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

#if !WF_TSAN                            /* whose own mmap must be the one that is called */
void *mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t from)
{
	if (fails_now()) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, at, bytes, prot, flags, fd, from);
}

int mprotect(void *mem, size_t bytes, int prot)
{
	if (fails_now()) {
		errno = ENOMEM;
		return -1;
	}
	return (int)syscall(SYS_mprotect, mem, bytes, prot);
}
#endif

TEST(a_segment_has_its_size_for_good)
{
	int fd = wf_segment_make("weft-test", 3 * MIB);

	MUST(fd >= 0);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK_EQ(wf_segment_check(fd, 3 * MIB), 3 * MIB);
	CHECK_EQ(wf_segment_check(fd, 3 * MIB + 1), -EBADMSG);
	CHECK(ftruncate(fd, 1 * MIB) < 0 && errno == EPERM);
	CHECK(ftruncate(fd, 4 * MIB) < 0 && errno == EPERM);
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0 && errno == EPERM);
	close(fd);
}

TEST(what_is_no_sealed_memfd_is_no_segment)
{
	int pipes[2], fd, reader;
	char path[64];

	MUST_OK(pipe(pipes));
	CHECK_EQ(wf_segment_check(pipes[0], 0), -EBADMSG);
	CHECK_EQ(wf_segment_check(-1, 0), -EBADMSG);
	CHECK_EQ(wf_segment_check(12345, 0), -EBADMSG);
	close(pipes[0]);
	close(pipes[1]);
	fd = open("/proc/self/exe", O_RDONLY);
	MUST(fd >= 0);
	CHECK_EQ(wf_segment_check(fd, 0), -EBADMSG);
	close(fd);
	fd = memfd_create("weft-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	MUST(fd >= 0 && ftruncate(fd, 1 * MIB) == 0);
	CHECK_EQ(wf_segment_check(fd, 0), -EBADMSG);
	MUST_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
	CHECK_EQ(wf_segment_check(fd, 0), -EBADMSG);
	MUST_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	CHECK_EQ(wf_segment_check(fd, 0), 1 * MIB);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	reader = open(path, O_RDONLY | O_CLOEXEC);
	MUST(reader >= 0);
	CHECK_EQ(wf_segment_check(reader, 0), -EBADMSG);        /* mapping it for writing would fail again and again */
	close(reader);
	MUST_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	CHECK_EQ(wf_segment_check(fd, 0), -EBADMSG);
	close(fd);
}

static size_t pages_of(int fd)
{
	struct stat st;

	MUST_OK(fstat(fd, &st));
	return (size_t)st.st_blocks * 512;
}

TEST(reserved_pages_are_there_before_they_are_touched)
{
	int fd = wf_segment_make("weft-test", 8 * MIB);
	char *mem;

	MUST(fd >= 0);
	CHECK_EQ(pages_of(fd), 0);
	CHECK_OK(wf_segment_reserve(fd, 1 * MIB, 1 * MIB));
	CHECK_EQ(pages_of(fd), 1 * MIB);
	mem = wf_segment_map(fd, 8 * MIB, NULL);
	MUST(mem);
	memset(mem + 1 * MIB, 1, 1 * MIB);
	CHECK_EQ(pages_of(fd), 1 * MIB);
	wf_segment_drop(fd, 0, 8 * MIB);
	CHECK_EQ(pages_of(fd), 0);
	CHECK_EQ(mem[1 * MIB], 0);
	munmap(mem, 8 * MIB);
	close(fd);
}

/* The flags of the mapping that @mem lies in, as smaps says them: " dd " no dump, " dc " no copy at fork. */
static bool flagged(const void *mem, const char *flag)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long from, to;
	bool here = false, found = false;
	char line[512];

	MUST(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = (uintptr_t)mem >= from && (uintptr_t)mem < to;
		else if (here && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, flag) != NULL;
	}
	fclose(f);
	return found;
}

TEST(a_mapped_segment_is_neither_dumped_nor_inherited)
{
	int fd = wf_segment_make("weft-test", 1 * MIB);
	char *mem = wf_segment_map(fd, 1 * MIB, NULL);

	MUST(mem);
	CHECK(flagged(mem, " dd"));
	CHECK(flagged(mem, " dc"));
	munmap(mem, 1 * MIB);
	close(fd);
}

TEST(with_standard_streams_closed_a_segment_does_not_take_their_place)
{
	int status, fd;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (pid == 0) {
		close(0);
		close(1);
		close(2);
		fd = wf_segment_make("weft-test", 4096);
		_exit(fd > 2 ? 0 : 1);
	}
	MUST(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
}

TEST(a_limit_of_file_size_is_an_error_and_no_signal)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (pid == 0) {
		struct rlimit small = { 65536, 65536 };

		MUST_OK(setrlimit(RLIMIT_FSIZE, &small));
		_exit(wf_segment_make("weft-test", 65537) == -EFBIG && wf_segment_make("weft-test", 65536) >= 0 ? 0 : 1);
	}
	MUST(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
}

static void unshared(void)
{
	struct weft_buf *b = NULL;
	struct wf_place place = { 1, 2, 0 };
	struct wf_flight flight;
	struct weft_buf *carry;
	int before;

	MUST_OK(wf_pool_init(0));
	before = kin_descriptors();
	CHECK(!wf_segments_shared());
	for (size_t len = 100; len <= 64 * MIB; len *= 655360) {
		MUST_OK(weft_buf_get(len, WEFT_RAIL_ANY, &b));
		CHECK(!wf_place_of(b->data, &place));
		CHECK(wf_place_map(&place, 1) == NULL);
		MUST_OK(wf_buf_send_begin(b, false, &carry));
		CHECK_EQ(wf_buf_fly(carry, 2, &flight), -EXDEV);
		wf_buf_send_undo(carry);
		MUST_OK(wf_buf_send_begin(b, true, &carry));
		CHECK_EQ(wf_buf_fly(carry, 2, &flight), -EXDEV);
		wf_buf_send_undo(carry);
		CHECK_OK(weft_buf_put(b));
	}
	CHECK_EQ(kin_descriptors(), before);
	CHECK_EQ(kin_maps(), 0);
	wf_pool_fini();
}

TEST(without_sharing_nothing_has_a_place)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();           /* memory that is not shared stays so: later tests want a process without */
	MUST(pid >= 0);
	if (pid == 0) {
		unshared();
		_exit(atomic_load(&test_failures) ? 1 : 0);
	}
	MUST(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
}

/* Bytes of pages that this process's segments have. */
static size_t reserved(void)
{
	size_t all = 0;

	for (int i = 0; i < KIN_SEGMENTS; i++)
		if (kin->segment[i].process == kin_me)
			all += pages_of(kin->segment[i].fd);
	return all;
}

static void memory(void)
{
	struct weft_buf *b[64], *big;
	size_t few, many;

	for (int i = 0; i < 12; i++)
		b[i] = kin_get((size_t)256 << i % 6);           /* what an idle process has: a few small ones */
	few = reserved();
	CHECK(few > 0 && few <= 1 * MIB);
	for (int i = 12; i < 64; i++)
		b[i] = kin_get(1 * MIB);
	many = reserved();
	CHECK(many >= 52 * MIB && many <= 80 * MIB);
	big = kin_get(64 * MIB);
	CHECK_EQ(reserved() / MIB, (many + 64 * MIB) / MIB);
	for (int i = 0; i < 64; i++)
		memset(b[i]->data, 1, b[i]->cap);
	memset(big->data, 1, big->cap);
	CHECK_EQ(reserved() / MIB, (many + 64 * MIB) / MIB);    /* all of it had been reserved */
	CHECK(flagged(b[0]->data, " dd") && flagged(b[0]->data, " dc"));
	CHECK(flagged(b[63]->data, " dd") && flagged(b[63]->data, " dc"));
	CHECK(flagged(big->data, " dd") && flagged(big->data, " dc"));
	for (int i = 0; i < 64; i++)
		CHECK_OK(weft_buf_put(b[i]));
	CHECK_OK(weft_buf_put(big));
	wf_pool_fini();
	CHECK(reserved() <= 64 * KIB);
}

TEST(memory_is_reserved_as_it_is_handed_out_and_given_back_when_the_pool_closes)
{
	kin_run(1, memory);
}

static void places(void)
{
	static const size_t lens[] = { 100, 5000, 1 * MIB, 32 * MIB, 64 * MIB, 128 * MIB };
	struct wf_place p, wild;
	uint64_t seed = test_seed + kin_me;
	int before;

	if (kin_me == 1) {
		for (int i = 0; i < 6; i++) {
			struct weft_buf *b = kin_get(lens[i]);
			struct wf_flight f = { 0 };

			memset(b->data, i + 1, 1);
			((char *)b->data)[b->cap - 1] = (char)(i + 101);
			MUST(wf_place_of(b->data, &p));
			CHECK_EQ(p.process, 1);
			if (i < 4)
				CHECK(wf_place_map(&p, b->cap) == b->data);
			f.segment = p.segment;
			f.offset = p.offset;
			kin_post(2, &f, b->cap);
			MUST(wf_place_of((char *)b->data + 77, &p));
			CHECK_EQ(p.offset, f.offset + 77);
			CHECK(wf_place_of_all((char *)b->data + 77, b->cap - 77, &p));
			CHECK_EQ(p.offset, f.offset + 77);
			CHECK(!wf_place_of_all((char *)b->data + 1, (size_t)1 << 30, &p));      /* none is that large */
		}
		CHECK(!wf_place_of_all(&p, sizeof(p), &p));
		CHECK(!wf_place_of(&p, &p));
		p = (struct wf_place){ 1, WF_SEGMENT_CHUNK, 31 * MIB };         /* a unit of ours without a piece */
		CHECK(wf_place_map(&p, 1) == NULL);
		kin_wait(1);
		return;
	}
	before = kin_descriptors();
	for (int i = 0; i < 6; i++) {
		struct kin_letter l = kin_letter(1);
		char *mem;

		p = (struct wf_place){ 1, l.flight.segment, l.flight.offset };
		mem = wf_place_map(&p, l.len);
		MUST(mem);
		CHECK_EQ(mem[0], i + 1);
		CHECK_EQ(mem[l.len - 1], i + 101);
		CHECK(wf_place_map(&p, l.len) == mem);
		CHECK(!wf_place_of(mem, &wild));                /* not of our own pool */
		CHECK(wf_place_map(&p, ((size_t)1 << 30) + 1) == NULL);
		CHECK(wf_place_map(&p, SIZE_MAX) == NULL);
		p.offset = UINT64_MAX;
		CHECK(wf_place_map(&p, 1) == NULL);
		CHECK(wf_place_map(&p, 0) == NULL);
		for (int n = 0; n < 2000; n++) {
			uint64_t r = test_random(&seed);

			wild.process = (uint32_t)test_random(&seed) >> r % 32;
			wild.segment = (uint32_t)test_random(&seed) >> (r >> 8) % 32;
			wild.offset = test_random(&seed) >> (r >> 16) % 64;
			mem = wf_place_map(&wild, (size_t)(r >> 40));
			CHECK(!mem || wild.process == 1);
		}
	}
	CHECK_EQ(kin_descriptors(), before);    /* given up once mapped */
	kin_step(1);
}

TEST(places_mean_the_same_memory_elsewhere_and_wild_ones_nothing)
{
	kin_run(2, places);
}

static void held(void)
{
	static const size_t lens[] = { 5000, 32 * MIB, 64 * MIB };
	uint64_t seed = test_seed + kin_me;
	struct wf_big *hold;
	const char *mem;
	struct wf_place p;

	if (kin_me == 1) {
		for (int i = 0; i < 3; i++) {
			struct weft_buf *b = kin_get(lens[i]);
			struct wf_flight f = { 0 };

			((char *)b->data)[b->cap - 1] = (char)(i + 1);
			MUST(wf_place_of(b->data, &p));
			f.segment = p.segment;
			f.offset = p.offset;
			kin_post(2, &f, b->cap);
		}
		kin_wait(1);
		return;
	}
	for (int i = 0; i < 3; i++) {
		struct kin_letter l = kin_letter(1);

		p = (struct wf_place){ 1, l.flight.segment, l.flight.offset };
		MUST_OK(wf_place_hold(&p, l.len, &mem, &hold));
		CHECK_EQ(mem[l.len - 1], i + 1);
		CHECK_EQ(hold != NULL, i == 2);
		CHECK(!hold || (hold->users == 1 && !hold->pinned));
		wf_place_let(hold);
		CHECK(!hold || hold->users == 0);
		CHECK_EQ(wf_place_hold(&p, SIZE_MAX, &mem, &hold), -EBADMSG);
		CHECK_EQ(wf_place_hold(&p, 64 * MIB + 1, &mem, &hold), -EBADMSG);
		for (int n = 0; n < 2000; n++) {
			uint64_t r = test_random(&seed);
			struct wf_place wild = { 1, p.segment, test_random(&seed) >> (r >> 8) % 64 };
			size_t bytes = (size_t)(test_random(&seed) >> (r >> 16) % 64);
			int got;

			if (r % 4 == 0)
				wild.segment = (uint32_t)r >> (r >> 24) % 32;
			got = wf_place_hold(&wild, bytes, &mem, &hold);
			CHECK(got == 0 || got == -EBADMSG || got == -ENOMEM);   /* ENOMEM: a segment that cannot be had just now */
			if (got == 0 && bytes)          /* all of it is there */
				(void)((const volatile char *)mem)[0], (void)((const volatile char *)mem)[bytes - 1];
			if (got == 0)
				wf_place_let(hold);
		}
		CHECK(!atomic_load(&wf_atlas[1])->bigs || !atomic_load(&wf_atlas[1])->bigs->users);
	}
	kin_step(1);
}

TEST(what_is_held_for_a_while_is_let_go_and_wild_places_are_refused)
{
	kin_run(2, held);
}

/* Runs @attempt with the n-th call failing, for n = 1 until none does: each time it fails cleanly or does not need
 * the call; and then it succeeds, with as many descriptors and mappings as if nothing had happened. */
static void sweep(int (*attempt)(void), int fds, int maps)
{
	int r;

	atomic_store(&calls, (int)atomic_load(&kin->count[1]));
	r = attempt();
	if (atomic_exchange(&calls, 0) > 0)
		atomic_store(&kin->count[2], 1);        /* never reached: the sweep is over */
	CHECK(r == 0 || r == -ENOMEM);
	if (r < 0) {
		CHECK(weft_last_error()[0] != 0);
		atomic_fetch_add(&kin->count[3], 1);
		CHECK_OK(attempt());
	}
	CHECK_EQ(kin_descriptors(), fds);
	CHECK_EQ(kin_maps(), maps);
}

static size_t want;

static int get_one(void)
{
	struct weft_buf *b;

	return weft_buf_get(want, WEFT_RAIL_ANY, &b);
}

static void get_fails(void)
{
	int n = (int)atomic_load(&kin->count[1]), fds = kin_descriptors(), maps;
	struct weft_buf *b;

	if (n == 0) {                                   /* how it is when all goes well */
		MUST_OK(weft_buf_get(want, WEFT_RAIL_ANY, &b));
		atomic_store(&kin->count[4], (uint64_t)(kin_descriptors() - fds));
		atomic_store(&kin->count[5], (uint64_t)kin_maps());
		return;
	}
	maps = (int)atomic_load(&kin->count[5]);
	sweep(get_one, fds + (int)atomic_load(&kin->count[4]), maps);
}

/* Each try is a process of its own: @story once without a failure, then with the first call failing, the second... */
static uint64_t sweep_run(uint32_t processes, void (*story)(void))
{
	uint64_t seen[8] = { 0 };
	uint32_t n;

	for (n = 0; n < 200 && !seen[2] && !atomic_load(&test_failures); n++) {
		kin_fresh();
		for (int i = 0; i < 8; i++)
			atomic_store(&kin->count[i], seen[i]);
		atomic_store(&kin->count[1], n);
		kin_join(processes, story, 0);
		for (int i = 0; i < 8; i++)
			seen[i] = atomic_load(&kin->count[i]);
		kin_end();
	}
	CHECK(seen[2]);
	return seen[3];
}

TEST(a_call_that_fails_while_a_buffer_is_made_is_no_memory_and_leaves_nothing)
{
	static const size_t lens[] = { 100, 1 * MIB, 64 * MIB };

	for (int i = 0; i < 3; i++) {
		want = lens[i];
		CHECK(sweep_run(1, get_fails) >= (WF_TSAN ? 4 : 8));
	}
}

static void tell_fails(void)
{
	int fds = kin_descriptors();
	struct weft_buf *b;

	for (size_t len = 100; len <= 64 * MIB; len *= 655360)
		for (int n = 1; n <= 2; n++) {
			int maps = kin_maps();

			fds = kin_descriptors();
			atomic_store(&kin_tell_fails, 1);
			if (weft_buf_get(len, WEFT_RAIL_ANY, &b) == 0) {
				atomic_store(&kin_tell_fails, 0);
				break;
			}
			CHECK(kin_descriptors() <= fds);
			CHECK_EQ(kin_maps(), maps);
		}
	MUST_OK(weft_buf_get(100, WEFT_RAIL_ANY, &b));
	MUST_OK(weft_buf_get(64 * MIB, WEFT_RAIL_ANY, &b));
}

TEST(a_segment_nobody_can_be_told_of_is_not_kept)
{
	kin_run(1, tell_fails);
}

static struct kin_letter pending;

static int land_one(void)
{
	struct weft_buf *b;

	return wf_buf_land(1, &pending.flight, pending.len, &b);
}

static void land_fails(void)
{
	int n = (int)atomic_load(&kin->count[1]), fds = kin_descriptors();
	struct weft_buf *b;

	if (kin_me == 1) {
		b = kin_get(want);
		MUST_OK(kin_send(b, 2, atomic_load(&kin->count[0])));
		kin_wait(1);
		return;
	}
	pending = kin_letter(1);
	if (n == 0) {
		MUST_OK(land_one());
		atomic_store(&kin->count[5], (uint64_t)kin_maps());
	} else {
		sweep(land_one, fds, (int)atomic_load(&kin->count[5]));
	}
	kin_step(1);
}

TEST(a_call_that_fails_while_a_buffer_lands_leaves_it_for_another_try)
{
	if (WF_TSAN)
		SKIP("under ThreadSanitizer mmap is its own");
	want = 100;
	CHECK(sweep_run(2, land_fails) >= 3);
	want = 64 * MIB;
	CHECK(sweep_run(2, land_fails) >= 3);
}

static void few_descriptors(void)
{
	struct weft_buf *b;
	int got = 0;

	for (rlim_t most = (rlim_t)kin_descriptors() - 4; most < 200; most++) {
		MUST_OK(prlimit(0, RLIMIT_NOFILE, &(struct rlimit){ most, 1000 }, NULL));
		int r = weft_buf_get(64 * MIB, WEFT_RAIL_ANY, &b);

		CHECK(r == 0 || r == -ENOMEM || r == -EAGAIN);
		got += r == 0;
		if (r == -EAGAIN)
			break;
	}
	CHECK_EQ(got, 16);              /* all of the limit, one descriptor each */
}

TEST(without_descriptors_there_is_no_memory_until_there_are_some)
{
	kin_run(1, few_descriptors);
}

static void storm(void)
{
	struct weft_buf *b;

	atomic_store(&stormy, true);
	b = kin_get(64 * MIB);
	CHECK_OK(weft_buf_put(b));
	CHECK_OK(weft_buf_put(kin_get(100)));
	wf_pool_fini();
	CHECK(reserved() <= 64 * KIB);
}

TEST(a_storm_of_signals_does_not_keep_memory_from_being_reserved)
{
	kin_run(1, storm);
}

static void refused(void)
{
	atomic_store(&no_populate, true);
	memory();
}

TEST(where_the_kernel_does_not_populate_memory_is_reserved_all_the_same)
{
	kin_run(1, refused);
}

TEST_MAIN
