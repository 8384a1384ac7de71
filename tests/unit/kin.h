/* kin.h - processes of a test that share buffers: each a process of weft's as far as src/mem goes, without an agent.
 *
 *   kin_run(2, story)    forks processes 1 and 2, both run story(); passes when both end well
 *
 * In place of an agent there are a list of segments in memory that all share, a process that keeps their descriptors
 * (opened through /proc), and a box of messages from each to each. The parent is none of them.
 */
#ifndef KIN_H
#define KIN_H

#include "proc.h"
#include "test.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <weft/weft.h>

#include "mem/atlas.h"
#include "mem/buf.h"
#include "mem/ledger.h"
#include "mem/segment.h"
#include "mem/share.h"
#include "mem/straight.h"
#include "mem/word.h"

enum { KIN_MOST = 4, KIN_SEGMENTS = 512, KIN_MAIL = 4096 };

struct kin_letter {
	struct wf_flight flight;
	size_t len;
};

struct kin_box {
	_Alignas(128) _Atomic uint64_t tail;
	_Alignas(128) _Atomic uint64_t head;
	struct kin_letter letter[KIN_MAIL];
};

struct kin {
	pthread_mutex_t lock;
	struct kin_segment {
		uint32_t process, segment;
		int pid, fd;            /* its maker's */
		int kept;               /* the keeper's descriptor of it, -1: not yet */
	} segment[KIN_SEGMENTS];
	int keeper;
	_Atomic uint32_t step;
	_Atomic uint32_t dead;          /* bits of processes that are no more */
	_Atomic uint64_t count[8];      /* a story's own */
	struct kin_box box[KIN_MOST + 1][KIN_MOST + 1];
};

static struct kin *kin;
static uint32_t kin_me;
static _Atomic int kin_tell_fails;      /* the next so many tells fail */

/* Whoever is killed may hold it. */
static inline void kin_lock(void)
{
	if (pthread_mutex_lock(&kin->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&kin->lock);
}

/* Keeps what was told, also of those who are dead by now; runs in a process of its own. */
static inline void kin_keep(void)
{
	int kept[KIN_SEGMENTS];

	memset(kept, -1, sizeof(kept));
	for (;; usleep(100)) {
		kin_lock();
		for (int i = 0; i < KIN_SEGMENTS; i++) {
			struct kin_segment *s = &kin->segment[i];
			char path[64];

			if (s->process && s->kept < 0) {
				snprintf(path, sizeof(path), "/proc/%d/fd/%d", s->pid, s->fd);
				s->kept = kept[i] = open(path, O_RDWR | O_CLOEXEC);
			} else if (!s->process && kept[i] >= 0) {
				close(kept[i]);
				kept[i] = -1;
			}
		}
		pthread_mutex_unlock(&kin->lock);
	}
}

/* Until the keeper has it. */
static inline void kin_kept(struct kin_segment *s)
{
	for (bool kept = false; !kept; sched_yield()) {
		kin_lock();
		kept = s->kept >= 0;
		pthread_mutex_unlock(&kin->lock);
	}
}

static inline int kin_tell(uint32_t segment, int fd)
{
	struct kin_segment *s = NULL;

	if (atomic_load(&kin_tell_fails) > 0) {
		atomic_fetch_sub(&kin_tell_fails, 1);
		return -ECONNRESET;
	}
	kin_lock();
	for (int i = 0; !s && i < KIN_SEGMENTS; i++)
		if (!kin->segment[i].process) {
			s = &kin->segment[i];
			*s = (struct kin_segment){ kin_me, segment, getpid(), fd, -1 };
		}
	pthread_mutex_unlock(&kin->lock);
	if (!s)
		return -ENOMEM;
	kin_kept(s);
	return 0;
}

static inline int kin_untell(uint32_t segment)
{
	int r = -ESRCH;

	kin_lock();
	for (int i = 0; i < KIN_SEGMENTS; i++)
		if (kin->segment[i].process == kin_me && kin->segment[i].segment == segment) {
			kin->segment[i].process = 0;
			r = 0;
		}
	pthread_mutex_unlock(&kin->lock);
	return r;
}

static inline int kin_give(uint32_t process, uint32_t segment)
{
	char path[64] = "";
	int fd;

	kin_lock();
	for (int i = 0; i < KIN_SEGMENTS; i++)
		if (kin->segment[i].process == process && kin->segment[i].segment == segment)
			snprintf(path, sizeof(path), "/proc/%d/fd/%d", kin->keeper, kin->segment[i].kept);
	/* open(2) would be a cancellation point, which a hook must not be. */
	fd = path[0] ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
	pthread_mutex_unlock(&kin->lock);
	if (!path[0])
		return -ESRCH;
	return fd < 0 ? -errno : fd;
}

static const struct wf_segment_hooks kin_hooks = { kin_tell, kin_untell, kin_give };

static inline void kin_fresh(void)
{
	pthread_mutexattr_t attr;

	kin = mmap(NULL, sizeof(*kin), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(kin != MAP_FAILED);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	MUST_OK(pthread_mutex_init(&kin->lock, &attr));
}

/* Forks the processes and waits for their end. @dies: bits of the processes that kill themselves in the story. */
static inline void kin_join(uint32_t n, void (*story)(void), uint32_t dies)
{
	pid_t pid[KIN_MOST + 1], keeper;
	int status;

	MUST(n <= KIN_MOST);
	fflush(stdout);
	keeper = fork();
	MUST(keeper >= 0);
	if (keeper == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		kin_keep();
	}
	kin->keeper = keeper;
	for (uint32_t p = 1; p <= n; p++) {
		pid[p] = fork();
		MUST(pid[p] >= 0);
		if (pid[p] == 0) {
			kin_me = p;
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			wf_segments_share(p, &kin_hooks);
			MUST_OK(wf_pool_init(0));
			story();
			_exit(atomic_load(&test_failures) ? 1 : 0);
		}
	}
	for (uint32_t left = n; left > 0; left--) {
		pid_t ended = waitpid(-1, &status, 0);
		bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;

		MUST(ended > 0);
		for (uint32_t p = 1; p <= n; p++)
			if (pid[p] == ended) {
				if (dies >> p & 1)
					well = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
				pid[p] = 0;
				atomic_fetch_or(&kin->dead, 1u << p);
			}
		CHECK(well);
		for (uint32_t p = 1; p <= n && !well; p++)      /* the others may wait for it for ever */
			if (pid[p])
				kill(pid[p], SIGKILL);
	}
	kill(keeper, SIGKILL);
	MUST(waitpid(keeper, &status, 0) == keeper);
}

static inline void kin_end(void)
{
	munmap(kin, sizeof(*kin));
}

static inline void kin_run_dying(uint32_t n, void (*story)(void), uint32_t dies)
{
	kin_fresh();
	kin_join(n, story, dies);
	kin_end();
}

static inline void kin_run(uint32_t n, void (*story)(void))
{
	kin_run_dying(n, story, 0);
}

static inline void kin_wait(uint32_t step)
{
	while (atomic_load_explicit(&kin->step, memory_order_acquire) < step)
		sched_yield();
}

/* The story has come to @step: whoever waits for it goes on. Steps are numbered from 1. */
static inline void kin_step(uint32_t step)
{
	kin_wait(step - 1);
	atomic_store_explicit(&kin->step, step, memory_order_release);
}

static inline struct weft_buf *kin_get(size_t len)
{
	struct weft_buf *b = NULL;

	MUST_OK(weft_buf_get(len, WEFT_RAIL_ANY, &b));
	MUST(b && b->data);
	return b;
}

static inline void kin_post(uint32_t to, const struct wf_flight *flight, size_t len)
{
	struct kin_box *box = &kin->box[kin_me][to];
	uint64_t tail = atomic_load_explicit(&box->tail, memory_order_relaxed);

	while (tail - atomic_load_explicit(&box->head, memory_order_acquire) == KIN_MAIL)
		sched_yield();
	box->letter[tail % KIN_MAIL].flight = *flight;
	box->letter[tail % KIN_MAIL].len = len;
	atomic_store_explicit(&box->tail, tail + 1, memory_order_release);
}

static inline bool kin_next(uint32_t from, struct kin_letter *ret_letter)
{
	struct kin_box *box = &kin->box[from][kin_me];
	uint64_t head = atomic_load_explicit(&box->head, memory_order_relaxed);

	if (atomic_load_explicit(&box->tail, memory_order_acquire) == head)
		return false;
	*ret_letter = box->letter[head % KIN_MAIL];
	atomic_store_explicit(&box->head, head + 1, memory_order_release);
	return true;
}

static inline struct kin_letter kin_letter(uint32_t from)
{
	struct kin_letter letter;

	while (!kin_next(from, &letter))
		sched_yield();
	return letter;
}

/* As a send does it: 0, or what wf_buf_fly said (and the buffer is as before). */
static inline int kin_send(struct weft_buf *b, uint32_t to, bool keep)
{
	static _Atomic unsigned turn;           /* every other one goes straight, if it can */
	struct wf_flight flight;
	struct weft_buf *carry;
	size_t len = b->len;
	int r;

	if (!keep && atomic_fetch_add(&turn, 1) % 2 && wf_buf_giveable(b, &flight, &len)) {
		while (!wf_buf_give(b, to))
			;
		kin_post(to, &flight, len);
		return 0;
	}
	MUST_OK(wf_buf_send_begin(b, keep, &carry));
	r = wf_buf_fly(carry, to, &flight);
	if (r < 0) {
		wf_buf_send_undo(carry);
		return r;
	}
	kin_post(to, &flight, len);
	wf_buf_flown(&flight);
	return 0;
}

static inline struct weft_buf *kin_take(uint32_t from)
{
	struct kin_letter letter = kin_letter(from);
	struct weft_buf *b = NULL;

	if (letter.flight.number % 2 || !wf_buf_land_straight(from, &letter.flight, letter.len, &b))
		MUST_OK(wf_buf_land(from, &letter.flight, letter.len, &b));
	MUST(b && b->data);
	CHECK_EQ(b->len, letter.len);
	CHECK_EQ(wf_buf_is_shared(b), letter.flight.view);
	return b;
}

static inline size_t kin_away(void)
{
	size_t away, here;

	wf_share_count(&away, &here);
	return away;
}

static inline size_t kin_here(void)
{
	size_t away, here;

	wf_share_count(&away, &here);
	return here;
}

/* Until @n of ours are away, or the test's limit is over. */
static inline void kin_until_away(size_t n)
{
	while (kin_away() != n) {
		wf_share_collect();
		sched_yield();
	}
}

static inline void kin_fill(struct weft_buf *b, unsigned seed)
{
	unsigned char *p = b->data;

	for (size_t i = 0; i < b->len; i += b->len < 65536 ? 1 : 1021)
		p[i] = (unsigned char)(seed + i * 7);
}

static inline void kin_check(const struct weft_buf *b, unsigned seed)
{
	const unsigned char *p = b->data;
	size_t wrong = 0;

	for (size_t i = 0; i < b->len; i += b->len < 65536 ? 1 : 1021)
		wrong += p[i] != (unsigned char)(seed + i * 7);
	CHECK_EQ(wrong, 0);
}

static inline int kin_descriptors(void)
{
	return proc_descriptors();
}

static inline int kin_maps(void)
{
	return (int)proc_mapped();
}
#endif
