/* weft_link.h - weft as a link: everything through the public calls, exact source and tag.
 *
 * send     weft_send and weft_recv
 * posted   weft_send_post and weft_recv_post, then weft_req_wait; windows: 64 posted, then one
 *          weft_req_wait_some for all of them
 * buffer   weft_buf_send and weft_buf_recv: the buffer itself changes hands
 */
#ifndef BENCH_WEFT_LINK_H
#define BENCH_WEFT_LINK_H
#include "measure.h"
#include <weft/weft.h>

#define LINK_TAG 7

struct weft_link {
	struct link l;
	weft_id peer;
	struct weft_buf *buf; /* buffer links: the one this side has, or NULL */
};

/* weft's answers while measuring: anything but success ends the program, in weft's own words. */
static inline void must(int answer, const char *call)
{
	if (answer < 0)
		die("%s: %s (%s)", call, weft_strerror(answer), weft_last_error());
}

static inline void must_init(void)
{
	must(weft_init(NULL), "weft_init");
}

static inline void must_fini(void)
{
	must(weft_fini(weft_in(5 * WEFT_S)), "weft_fini");
}

/* Both sides of a pair learn each other's id. */
struct weft_meet {
	pthread_barrier_t both;
	weft_id id[2];
};

static inline void meet_init(struct weft_meet *m)
{
	pthread_barrier_init(&m->both, NULL, 2);
}

static inline weft_id meet_peer(struct weft_meet *m, int side)
{
	m->id[side] = weft_self();
	if (!m->id[side])
		die("weft_self: %s", weft_last_error());
	pthread_barrier_wait(&m->both);
	return m->id[!side];
}

/* A thread's id ends with it, and what its peer sends then fails: leave together. */
static inline void meet_leave(struct weft_meet *m)
{
	pthread_barrier_wait(&m->both);
}

static inline void weft_link_send(struct link *l, void *mem, size_t n)
{
	struct weft_link *k = (struct weft_link *)l;

	must(weft_send(NULL, k->peer, LINK_TAG, mem, n, WEFT_FOREVER), "weft_send");
}

static inline void weft_link_recv(struct link *l, void *mem, size_t n)
{
	struct weft_link *k = (struct weft_link *)l;

	must(weft_recv(NULL, k->peer, LINK_TAG, mem, n, WEFT_FOREVER, NULL), "weft_recv");
}

static inline struct weft_link weft_link_blocking(weft_id peer)
{
	return (struct weft_link){ .l = { .send = weft_link_send, .recv = weft_link_recv }, .peer = peer };
}

/* ---- posted ---- */

static inline void posted_send(struct link *l, void *mem, size_t n)
{
	struct weft_link *k = (struct weft_link *)l;
	struct weft_req *req = NULL;

	must(weft_send_post(NULL, WEFT(op, .peer = k->peer, .tag = LINK_TAG, .data = mem, .len = n), &req),
	     "weft_send_post");
	must(weft_req_wait(&req, WEFT_FOREVER, NULL), "weft_req_wait");
}

static inline void posted_recv(struct link *l, void *mem, size_t n)
{
	struct weft_link *k = (struct weft_link *)l;
	struct weft_req *req = NULL;

	must(weft_recv_post(NULL, WEFT(op, .peer = k->peer, .tag = LINK_TAG, .data = mem, .len = n), &req,
			    NULL),
	     "weft_recv_post");
	must(weft_req_wait(&req, WEFT_FOREVER, NULL), "weft_req_wait");
}

static inline void posted_send_window(struct link *l, void *mem, size_t n)
{
	struct weft_link *k = (struct weft_link *)l;
	struct weft_req *req[WINDOW] = { NULL };

	for (int i = 0; i < WINDOW; i++)
		must(weft_send_post(NULL, WEFT(op, .peer = k->peer, .tag = LINK_TAG, .data = mem, .len = n),
				    &req[i]),
		     "weft_send_post");
	must(weft_req_wait_some(req, WINDOW, WINDOW, WINDOW, WEFT_FOREVER, NULL, NULL), "weft_req_wait_some");
}

static inline void posted_recv_window(struct link *l, void *mem, size_t n)
{
	struct weft_link *k = (struct weft_link *)l;
	struct weft_req *req[WINDOW] = { NULL };
	char *to = mem;

	for (int i = 0; i < WINDOW; i++, to += n)
		must(weft_recv_post(NULL, WEFT(op, .peer = k->peer, .tag = LINK_TAG, .data = to, .len = n),
				    &req[i], NULL),
		     "weft_recv_post");
	must(weft_req_wait_some(req, WINDOW, WINDOW, WINDOW, WEFT_FOREVER, NULL, NULL), "weft_req_wait_some");
}

static inline struct weft_link weft_link_posted(weft_id peer)
{
	return (struct weft_link){ .l = { .send = posted_send,
					  .recv = posted_recv,
					  .send_window = posted_send_window,
					  .recv_window = posted_recv_window },
				   .peer = peer };
}

/* What link_check is for windows: side 0 sends one, side 1 looks at every message of it. */
static inline void window_check(struct link *l, int side)
{
	uint64_t mem[WINDOW] = { 0 }, number = UINT64_C(0x1122334455667788), answer = 0;

	if (side == 0) {
		window_send(l, &number, sizeof(number));
		l->recv(l, &answer, sizeof(answer));
		return;
	}
	window_recv(l, mem, sizeof(number));
	for (int i = 0; i < (l->recv_window ? WINDOW : 1); i++)
		if (mem[i] != number)
			die("message %d of a window arrived wrong", i);
	l->send(l, &answer, sizeof(answer));
}

#endif
