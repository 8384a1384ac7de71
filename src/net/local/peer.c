/* peer.c - see peer.h. */
#include "net/local/peer.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <weft/base.h>

#include "base/log.h"

static _Atomic(struct wf_peer *) peers[WF_PROCESSES];   /* by number; those of this launch at init, others when they are heard of; then constant */
static _Atomic uint32_t highest;                /* number with one */
static uint32_t self;
static bool on;
static const struct wf_peer_hooks *hooks;
static struct wf_lock meet_lock;
static _Atomic uint32_t owed;                   /* peers for whom frames are kept */

_Atomic uint8_t wf_whereabouts[WF_PROCESSES];

/* [one thread, or under meet_lock] NULL: no memory. */
static struct wf_peer *add(uint32_t process)
{
	struct wf_peer *p = aligned_alloc(WF_LINE, (sizeof(*p) + WF_LINE - 1) & ~(size_t)(WF_LINE - 1));

	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->process = process;
	p->event_fd = -1;
	atomic_store_explicit(&peers[process], p, memory_order_release);        /* C3 */
	if (process > atomic_load_explicit(&highest, memory_order_relaxed))
		atomic_store_explicit(&highest, process, memory_order_release);
	return p;
}

int wf_peers_init(uint32_t process, uint32_t base, uint32_t n, const struct wf_peer_hooks *h)
{
	for (uint32_t i = base + 1; i <= base + n && i < WF_PROCESSES; i++)
		if (i != process && !wf_peer_at(i) && !add(i))
			return weft_fail(-ENOMEM, "no memory for %u processes", n);
	hooks = h;
	self = process;
	on = true;
	atomic_store_explicit(&wf_whereabouts[process], WF_ON_HOST, memory_order_relaxed);
	return 0;
}

bool wf_peers_on(void)
{
	return on;
}

uint32_t wf_peers_count(void)
{
	uint32_t most = atomic_load_explicit(&highest, memory_order_acquire);

	return most > self ? most : self ? self : 1;
}

struct wf_peer *wf_peer_at(uint32_t process)
{
	return process < WF_PROCESSES ? atomic_load_explicit(&peers[process], memory_order_acquire) : NULL;      /* C3 */
}

bool wf_peer_find(uint32_t process)
{
	int near = on && hooks->near ? hooks->near(process) : 1;

	if (near >= 0 && on)
		atomic_store_explicit(&wf_whereabouts[process], near ? WF_ON_HOST : WF_OFF_HOST, memory_order_relaxed);
	return near != 0;
}

/* One that was not started with this process, and is heard of for the first time. NULL: there is none of that number, or no memory for it. */
static struct wf_peer *heard_of(uint32_t process)
{
	struct wf_peer *p = NULL;

	if (!on || !process || process == self || process >= WF_PROCESSES)
		return NULL;
	wf_peer_near(process);
	if (atomic_load_explicit(&wf_whereabouts[process], memory_order_relaxed) != WF_ON_HOST)
		return NULL;
	wf_lock(&meet_lock);
	p = wf_peer_at(process);
	if (!p)
		p = add(process);
	wf_unlock(&meet_lock);
	return p;
}

bool wf_peer_died(uint32_t process)
{
	struct wf_peer *p = wf_peer_at(process);

	return !p || atomic_load_explicit(&p->state, memory_order_acquire) == WF_PEER_DEAD;
}

/* Not close(3): that is where a thread can be cancelled. */
static void shut_fd(int fd)
{
	syscall(SYS_close, fd);
}

static int meet_locked(struct wf_peer *p)
{
	int board_fd, event_fd, r;
	struct wf_board *b;

	r = wf_board_control(p->process);
	if (r < 0)
		return weft_fail(r, "no memory for frames to process %u", p->process);
	r = hooks->meet(p->process, &board_fd, &event_fd);
	if (r == -EAGAIN)
		atomic_store_explicit(&p->state, WF_PEER_ASKED, memory_order_relaxed);
	if (r < 0)
		return r;
	b = wf_board_map(board_fd, p->process);
	shut_fd(board_fd);
	if (!b) {
		shut_fd(event_fd);
		return -EPROTO;
	}
	p->event_fd = event_fd;
	p->strong = b->strong || !wf_fence_global;
	atomic_store_explicit(&p->board, b, memory_order_release);              /* C3 */
	atomic_store_explicit(&p->state, WF_PEER_MET, memory_order_release);    /* C3 */
	return 0;
}

int wf_peer_get(uint32_t process, struct wf_peer **ret_peer)
{
	struct wf_peer *p = wf_peer_at(process);
	uint32_t state;
	int r = 0;

	if (wf_unlikely(!p))
		p = heard_of(process);
	if (!p)
		return weft_fail(-ESRCH, "the job has no process %u", process);
	if (wf_unlikely(!wf_peer_near(process)))
		return weft_fail(-ESRCH, "process %u is not of this host", process);
	*ret_peer = p;
	state = atomic_load_explicit(&p->state, memory_order_acquire);          /* C3 */
	if (wf_likely(state == WF_PEER_MET))
		return 0;
	if (state == WF_PEER_DEAD)
		return weft_fail(-ESRCH, "process %u is gone", process);
	wf_lock(&meet_lock);
	state = atomic_load_explicit(&p->state, memory_order_relaxed);
	if (state == WF_PEER_DEAD)
		r = weft_fail(-ESRCH, "process %u is gone", process);
	else if (state != WF_PEER_MET)
		r = meet_locked(p);
	wf_unlock(&meet_lock);
	return r;
}

void wf_peer_set_dead(uint32_t process)
{
	struct wf_peer *p = wf_peer_at(process);

	if (!p)
		return;
	wf_lock(&meet_lock);
	atomic_store_explicit(&p->state, WF_PEER_DEAD, memory_order_release);
	wf_unlock(&meet_lock);
	wf_lock(&p->out_lock);
	if (wf_kept_free(&p->kept))
		atomic_fetch_sub_explicit(&owed, 1, memory_order_relaxed);
	if (p->event_fd >= 0)
		shut_fd(p->event_fd);
	p->event_fd = -1;
	wf_unlock(&p->out_lock);
}

void wf_peer_ring(struct wf_peer *p)
{
	struct pollfd full = { .events = POLLOUT };
	struct timespec now = { 0, 0 };
	struct wf_board *b = wf_peer_board(p);
	uint64_t one = 1;

	wf_fence_slow();                /* F1: what was written before the look; rings are rare enough for a full fence */
	/* Only the listener clears it: one of us might be stopped, or killed, between clearing and writing. */
	if (!b || atomic_load_explicit(&b->bell.word, memory_order_relaxed) != 1)
		return;
	wf_lock(&p->out_lock);          /* it may die, and its descriptor with it */
	full.fd = p->event_fd;
	/* At its maximum it is readable anyway; its owner may have made it one that blocks. */
	if (p->event_fd >= 0 && syscall(SYS_ppoll, &full, 1, &now, NULL, 0) == 1 && full.revents & POLLOUT)
		syscall(SYS_write, p->event_fd, &one, sizeof(one));
	wf_unlock(&p->out_lock);
}

void wf_peer_wake(struct wf_peer *p, uint32_t name)
{
	struct wf_face *f;

	if (name == WF_SLEEPS_LISTENER) {
		wf_peer_ring(p);
		return;
	}
	f = name ? wf_face_of(wf_peer_board(p), name - 1) : NULL;
	if (f && wf_wake_word(&f->parker) > 1)
		wf_peer_ring(p);        /* its listener passes it on */
}

/* [out_lock] True: written. */
static bool write_locked(struct wf_peer *p, uint32_t what, const void *body, size_t len)
{
	struct wf_control *c = &wf_board->control[p->process];
	struct wf_frame *f = &c->frame[p->out_pos % WF_FRAMES];

	if (p->out_pos - atomic_load_explicit(&c->head, memory_order_acquire) >= WF_FRAMES)     /* C2 */
		return false;
	f->what = what;
	memcpy(f->body, body, len);
	memset(f->body + len, 0, WF_FRAME_BYTES - len);
	atomic_store_explicit(&f->seq, ++p->out_pos, memory_order_release);                     /* C1 */
	return true;
}

static void flush_locked(struct wf_peer *p)
{
	const struct wf_kept_frame *f = wf_kept_first(p->kept);

	if (!f)
		return;
	for (; f && write_locked(p, f->what, f->body, sizeof(f->body)); f = wf_kept_first(p->kept))
		wf_kept_drop(p->kept);
	if (!f)
		atomic_fetch_sub_explicit(&owed, 1, memory_order_relaxed);
}

static bool keep_locked(struct wf_peer *p, uint32_t what, const void *body, size_t len)
{
	bool first = !wf_kept_first(p->kept);

	if (what >= WF_FRAME_KINDS || !wf_kept_add(&p->kept, &hooks->rules[what], what, body, len))
		return false;
	if (first)
		atomic_fetch_add_explicit(&owed, 1, memory_order_relaxed);
	return true;
}

bool wf_frame_send(struct wf_peer *p, uint32_t what, const void *body, size_t len)
{
	bool sent = false;

	assert(len <= WF_FRAME_BYTES);
	wf_lock(&p->out_lock);
	if (atomic_load_explicit(&p->state, memory_order_acquire) == WF_PEER_MET) {
		flush_locked(p);
		sent = (!wf_kept_first(p->kept) && write_locked(p, what, body, len)) || keep_locked(p, what, body, len);
	}
	wf_unlock(&p->out_lock);
	if (sent)
		wf_peer_ring(p);
	return sent;
}

static struct wf_frame *next_frame(struct wf_peer *p)
{
	struct wf_frame *f = &wf_peer_board(p)->control[self].frame[p->in_pos % WF_FRAMES];

	return atomic_load_explicit(&f->seq, memory_order_acquire) == p->in_pos + 1 ? f : NULL; /* C1 */
}

static int poll_locked(struct wf_peer *p)
{
	unsigned char body[WF_FRAME_BYTES];
	struct wf_frame *f;
	int n = 0;

	for (; n < (int)WF_FRAMES && (f = next_frame(p)) != NULL; n++) {
		uint32_t what = *(volatile uint32_t *)&f->what;

		memcpy(body, f->body, sizeof(body));
		p->in_pos++;
		atomic_store_explicit(&wf_peer_board(p)->control[self].head, p->in_pos, memory_order_release);  /* C2 */
		hooks->frame(p, what, body);
	}
	return n;
}

int wf_peer_poll(struct wf_peer *p)
{
	int n, all = 0;

	if (!wf_peer_board(p))
		return 0;
	do {
		wf_lock(&p->in_lock);
		n = poll_locked(p);
		wf_unlock(&p->in_lock);
		all += n;
	} while (n && all < 64 * (int)WF_FRAMES);       /* one that writes without end does not keep us */
	return all;
}

int wf_peers_poll(void)
{
	int n = 0;

	for (uint32_t i = 1, most = wf_peers_count(); i <= most; i++) {
		struct wf_peer *p = wf_peer_at(i);

		if (!p || atomic_load_explicit(&p->state, memory_order_acquire) != WF_PEER_MET)         /* C3 */
			continue;
		if (wf_trylock(&p->in_lock)) {
			n += poll_locked(p);
			wf_unlock(&p->in_lock);
		}
		if (wf_peers_owe()) {
			uint32_t before;

			wf_lock(&p->out_lock);
			before = p->out_pos;
			flush_locked(p);
			before = p->out_pos - before;
			wf_unlock(&p->out_lock);
			if (before)
				wf_peer_ring(p);
		}
	}
	return n;
}

bool wf_peers_waiting(void)
{
	for (uint32_t i = 1, most = wf_peers_count(); i <= most; i++) {
		struct wf_peer *p = wf_peer_at(i);

		if (p && atomic_load_explicit(&p->state, memory_order_acquire) == WF_PEER_MET && next_frame(p))
			return true;
	}
	return false;
}

bool wf_peers_owe(void)
{
	return atomic_load_explicit(&owed, memory_order_relaxed) > 0;
}

void wf_peers_close(void)
{
	for (uint32_t i = 1; i <= wf_peers_count(); i++)
		if (wf_peer_at(i)) {
			wf_peer_set_dead(i);
			wf_board_bury(wf_peer_board(wf_peer_at(i)));
		}
	on = false;
}

void wf_peers_show(struct wf_roots *roots)
{
	roots->peers = (uintptr_t)peers;
	roots->processes = WF_PROCESSES;
}
