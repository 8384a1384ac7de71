/* courier.c - how an embassy reaches those of other jobs: where they are, and what is on its way to them. See embassy.h.
 *
 * Threads  The agent is one thread; weft's listener is the other, and asks embassy_place() for addresses, under posts_lock.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

#include "agent.h"
#include "embassy.h"

#define FAREWELL (300 * MS)
#define ENDS 16

static pthread_mutex_t posts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint32_t process;               /* 0: none */
	char at[WF_AT_TEXT];
} posts[WF_TREATIES + DRAFTS];

/* A message on its way. */
struct sent {
	uint32_t ticket;                /* of a draft whose knock it is; 0: of none */
	bool farewell;
	uint8_t bytes[];
};

static struct weft_queue *queue;
static unsigned farewells;

/* Who comes by an offer is not known before it has said something: what goes there waits, for it has come to stay until it is answered. */
int embassy_place(uint32_t process, char *ret_at, size_t n)
{
	int r = process >> WF_FOREIGN_SHIFT < TREATY_ALIASES ? -ESRCH : -EAGAIN;

	pthread_mutex_lock(&posts_lock);
	for (size_t i = 0; i < sizeof(posts) / sizeof(*posts) && r < 0; i++)
		if (process && posts[i].process == process) {
			snprintf(ret_at, n, "%s", posts[i].at);
			r = 0;
		}
	pthread_mutex_unlock(&posts_lock);
	return r;
}

/* There is room: no more are in use than treaties and drafts. */
void courier_place(uint32_t process, const char *at)
{
	bool done = false;

	pthread_mutex_lock(&posts_lock);
	for (size_t i = 0; i < sizeof(posts) / sizeof(*posts) && !done; i++)
		if (!posts[i].process) {
			posts[i].process = process;
			snprintf(posts[i].at, sizeof(posts[i].at), "%s", at);
			done = true;
		}
	pthread_mutex_unlock(&posts_lock);
}

void courier_forget(uint32_t process)
{
	pthread_mutex_lock(&posts_lock);
	for (size_t i = 0; i < sizeof(posts) / sizeof(*posts); i++)
		if (posts[i].process == process)
			posts[i].process = 0;
	pthread_mutex_unlock(&posts_lock);
}

bool courier_ready(struct agent *a)
{
	if (!queue && (weft_queue_open(&queue) < 0 || agent_watch(a, weft_queue_fd(queue), FROM_MESH, 0) < 0))
		return false;
	return true;
}

int courier_say(struct agent *a, weft_id to, const struct wf_envoy *e, uint32_t ticket, bool farewell)
{
	struct sent *s = courier_ready(a) ? malloc(sizeof(*s) + WF_ENVOY_BYTES) : NULL;
	size_t n = s ? wf_envoy_write(e, s->bytes, WF_ENVOY_BYTES) : 0;
	struct sent *smaller = n ? realloc(s, sizeof(*s) + n) : NULL;
	int r;

	if (!smaller) {
		free(s);
		return -ENOMEM;
	}
	smaller->ticket = ticket;
	smaller->farewell = farewell;
	r = weft_send_post(weft_port_world(), WEFT(op, .peer = to, .tag = 1, .data = smaller->bytes, .len = n, .queue = queue, .user = smaller,
		.flags = ticket || farewell ? WEFT_SYNC : 0), NULL);
	if (r == 0)
		farewells += farewell;
	else
		free(smaller);
	return r;
}

void embassy_event(struct agent *a)
{
	struct weft_status st[ENDS];
	int n = queue ? weft_queue_next(queue, WEFT_NOW, st, ENDS) : 0;

	for (int i = 0; i < n; i++) {
		struct sent *s = st[i].user;

		if (s->ticket)
			draft_knocked(a, s->ticket, st[i].err);
		farewells -= s->farewell;
		free(s);
	}
}

/* What embassies were told last is heard within a moment, or they find out by themselves. */
void courier_close(void)
{
	int64_t until = now_ns() + FAREWELL;

	while (farewells && now_ns() < until) {
		struct weft_status st;

		if (weft_queue_next(queue, until, &st, 1) != 1)
			break;
		farewells -= ((struct sent *)st.user)->farewell;
		free(st.user);
	}
}
