/* survivor.c - what the two others do: see actor.c. */
#include "actor.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mem/atlas.h"
#include "mem/pool.h"
#include "mem/share.h"
#include "mem/word.h"
#include "port/ticket.h"

#define TALKS 100
#define PIPES_MORE 7                    /* buffers: of three large sends at once, and their tickets */
#define TAG_TALK 5000

static struct weft_port *port;
static bool receives;                   /* pending is a receive, into room or a buffer */
static size_t expected;                 /* its bytes */
static struct used {
	int pipes, rest;
} used;                                 /* buffers, before anything came from the victim */
static struct files {
	int memory, rest;
} files;                                /* rest: before weft_init; memory: with used */

/* Survivors among themselves */

static void talk_one(unsigned i, weft_time until)
{
	static const size_t sizes[] = { 0, 8, 96, 97, 1000, 8192, 20000, 70000, 4096 };
	static unsigned char out[70000], in[70000];
	size_t n = sizes[i % 9];
	unsigned seed = now.round + i;
	struct weft_op op = { .size = sizeof(op), .peer = other, .tag = TAG_TALK + i, .data = out, .len = n,
			      .flags = i % 7 == 3 ? WEFT_SYNC : 0 };
	struct weft_req *req = NULL;
	struct weft_status st;
	struct weft_buf *b = NULL;

	if (i % 2) {
		fill(out, n, seed + rank);
	} else {
		op.buf = filled(n, seed + rank);
		op.data = NULL;
		op.len = 0;
	}
	if (TRY(weft_send_post(NULL, &op, &req)) < 0)
		return;
	if (i % 3) {
		if (TRY(weft_recv(NULL, other, TAG_TALK + i, in, sizeof(in), until, &st)) == 0)
			CHECK_BYTES(in, st.len, n, seed + 1 - rank);
	} else if (TRY(weft_buf_recv(NULL, other, TAG_TALK + i, until, &b, &st)) == 0) {
		CHECK_BYTES(b->data, st.len, n, seed + 1 - rank);
		TRY(weft_buf_put(b));
	}
	TRY(weft_req_wait(&req, until, NULL));
}

void survivor_talk(void)
{
	weft_time until = weft_in(WEDGED);
	struct weft_op any = { .size = sizeof(any), .peer = other, .tag = WEFT_ANY_TAG };
	int r;

	for (unsigned i = 0; i < TALKS && !say.line; i++)
		talk_one(i, until);
	r = weft_probe(NULL, &any, WEFT_NOW, NULL, NULL);
	if (r != -EAGAIN)
		WRONG(r, "a message too many");
}

/* Counting */

/* Weft keeps what large sends went through, and uses it again: how much that is depends on how many were under way at once, and to how many processes. */
static bool is_pipe(const struct wf_buf *b)
{
	unsigned class = wf_buf_class(b);

	return class == wf_pool_class(sizeof(struct wf_pipe_head)) || class == wf_pool_class(WF_CHUNKS * WF_CHUNK) ||
	       class == wf_pool_class(WF_TICKETS * sizeof(struct wf_ticket));
}

static void count_one(struct wf_buf *b, struct wf_entry *e, void *arg)
{
	uint64_t state = atomic_load_explicit(&b->word, memory_order_relaxed) & WF_BUF_STATE;
	struct used *u = arg;

	(void)e;
	if (state == WF_BUF_NONE || state == WF_BUF_FREE)
		return;
	if (is_pipe(b))
		u->pipes++;
	else
		u->rest++;
}

static void count(struct used *ret)
{
	*ret = (struct used){ 0 };
	wf_atlas_each_own(count_one, ret);
}

static bool all_home(void)
{
	size_t away, here;

	wf_share_count(&away, &here);
	return !away && !here;
}

static void check_home(void)
{
	size_t away, here;

	if (settles(all_home))
		return;
	wf_share_count(&away, &here);
	WRONG((int)away, "%zu buffers away, %zu of others here", away, here);
}

static bool as_before(void)
{
	struct used u;

	count(&u);
	return u.rest == used.rest && u.pipes <= used.pipes + PIPES_MORE;
}

/* Descriptors: this process's own memory, which stays with it, and everything else. */
static void files_count(struct files *ret)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	*ret = (struct files){ 0 };
	while (d && (e = readdir(d))) {
		char to[64] = "";

		if (readlinkat(dirfd(d), e->d_name, to, sizeof(to) - 1) >= 0 && !strncmp(to, "/memfd:weft", 11))
			ret->memory++;
		else
			ret->rest++;
	}
	if (d)
		closedir(d);
}

void survivor_begin(void)
{
	files_count(&files);
}

void survivor_leave(void)
{
	struct files left;

	files_count(&left);
	if (left.rest > files.rest || left.memory > files.memory)
		WRONG(left.rest, "%d descriptors and %d of memory, before there were %d and %d", left.rest, left.memory, files.rest,
		      files.memory);
}

void survivor_count(void)
{
	struct files f;

	check_home();
	count(&used);
	files_count(&f);
	files.memory = f.memory;
}

/* The act as the survivors see it */

static void post_receive(struct weft_port *at, weft_id from, size_t len, uint32_t flags)
{
	struct weft_status st = { 0 };
	int r;

	expected = len;
	receives = true;
	memset(room, 0, sizeof(room));
	r = weft_recv_post(at, WEFT(op, .peer = from, .tag = TAG, .flags = flags, .data = flags ? NULL : room,
				    .len = flags ? 0 : sizeof(room)), &pending, &st);
	if (r != 0)
		WRONG(r, "a receive of what is to come: %s", weft_last_error());
}

static void on_question(const struct weft_status *st)
{
	if (st->err == 0)
		weft_send_post(weft_port_world(), WEFT(op, .peer = st->from, .tag = TAG_ANSWER, .data = bytes, .len = SMALL,
						       .flags = WEFT_COPY), NULL);
	else if (st->err != -ECONNRESET)
		WRONG(st->err, "a question: %s", weft_strerror(st->err));
	atomic_store(&told, 1);
}

static void post_answer(void)
{
	atomic_store(&told, 0);
	fill(bytes, SMALL, now.round);
	TRY(weft_recv_post(NULL, WEFT(op, .peer = victim, .tag = TAG, .data = room, .len = sizeof(room), .done = on_question),
			   NULL, NULL));
}

static void post(const struct weft_op *op)
{
	if (TRY(weft_send_post(NULL, op, &pending)) != 0)
		pending = NULL;
}

static void lend(weft_id to)
{
	kept[0] = filled(BUFFER, now.round);
	if (kept[0])
		post(WEFT(op, .peer = to, .tag = TAG, .buf = kept[0], .flags = WEFT_KEEP));
}

static bool is_idle(void)
{
	return weft_buf_state(kept[0]) == WEFT_BUF_IDLE;
}

static void post_send(size_t len, uint32_t flags)
{
	fill(bytes, len, now.round);
	post(WEFT(op, .peer = victim, .tag = TAG, .data = bytes, .len = len, .flags = flags));
}

static void send_shared(void)
{
	kept[0] = filled(SHARED, now.round);
	if (kept[0])
		post(WEFT(op, .peer = victim, .tag = TAG, .data = kept[0]->data, .len = SHARED));
}

static void send_buffers(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct weft_buf *b = filled(BUFFER, now.round);

		if (b)
			TRY(weft_buf_send(NULL, victim, TAG, b, weft_in(WEDGED)));
	}
}

static void set_port(void)
{
	struct weft_port_opts o = { .size = sizeof(o), .channel = CHANNEL };

	if (TRY(weft_port_open(&o, &port)) == 0) {
		fill(bytes, SMALL, now.round);
		TRY(weft_send(port, PROCESS(VICTIM), TAG, bytes, SMALL, weft_in(WEDGED)));
	}
}

static void set_first(void)
{
	switch (now.act) {
	case ACT_small_send:
	case ACT_sync_send:
		post_receive(NULL, victim, SMALL, 0);
		break;
	case ACT_first_send:
	case ACT_init:
		post_receive(weft_port_world(), weft_at(VICTIM), SMALL, 0);
		break;
	case ACT_medium_send:
		post_receive(NULL, victim, MEDIUM, 0);
		break;
	case ACT_large_send:
	case ACT_first_large_send:
	case ACT_announced_send:
		post_receive(NULL, victim, LARGE, 0);
		break;
	case ACT_shared_send:
	case ACT_first_shared_send:
		post_receive(NULL, victim, SHARED, 0);
		break;
	case ACT_buffer_send:
	case ACT_lend:
		post_receive(NULL, victim, BUFFER, WEFT_ALLOC);
		break;
	case ACT_put_lent:
		lend(victim);
		break;
	case ACT_question:
		post_answer();
		break;
	case ACT_forward:
	case ACT_buffer_receive:
	case ACT_first_buffer:
		send_buffers(1);
		break;
	case ACT_put:
		send_buffers(BUFFERS);
		break;
	case ACT_small_receive:
		post_send(SMALL, 0);
		break;
	case ACT_medium_receive:
		post_send(MEDIUM, 0);
		break;
	case ACT_large_receive:
		post_send(LARGE, 0);
		break;
	case ACT_announced_receive:
		post_send(LARGE, WEFT_SYNC);            /* not by a train */
		break;
	case ACT_shared_receive:
		send_shared();
		break;
	case ACT_listener:
		post_send(SMALL, WEFT_SYNC);
		break;
	case ACT_port:
		set_port();
		break;
	case ACT_thread:
	case ACT_fini:
		post_receive(NULL, victim, SMALL, 0);
		break;
	default:
		break;
	}
}

void survivor_set(void)
{
	receives = false;
	expected = 0;
	if (rank == FIRST)
		set_first();
	else if (now.act == ACT_forward)
		post_receive(NULL, victim, BUFFER, WEFT_ALLOC);
}

/* What was under way with the victim is over by @until. */
static void finish(weft_time until, bool died)
{
	bool ends = died || now.act == ACT_thread || now.act == ACT_fini;       /* the victim's id ends, and with it what names it */
	struct weft_status st = { 0 };
	bool had = pending != NULL;
	int r = weft_req_wait(&pending, until, &st);

	if (r == -ETIMEDOUT)
		WRONG(r, "what named the victim does not end");
	else if (r < 0 && (!ends || (r != -ECONNRESET && r != -ESRCH)))
		WRONG(r, "what named the victim ended wrongly: %s", weft_strerror(r));
	if (r == 0 && had && receives)
		CHECK_BYTES(st.buf ? st.buf->data : room, st.len, expected, now.round);
	if (r == 0 && receives && st.buf)
		TRY(weft_buf_put(st.buf));
	if (r == -ETIMEDOUT && weft_req_cancel(pending) >= 0)
		weft_req_wait(&pending, weft_in(WEFT_S), NULL);
	if (now.act == ACT_shared_receive && rank == FIRST)
		TRY(weft_buf_put(kept[0]));
	if (port)
		TRY(weft_port_close(port, until));
	port = NULL;
}

/* What the victim sent and nobody has received, in order from the first on; if it has died, as far as it came. */
static void take_many(bool died)
{
	unsigned char in[SMALL] = { 0 };
	unsigned i;
	int r = 0;

	for (i = 0; i < MANY && r == 0; i++) {
		r = weft_recv(NULL, victim, TAG, in, sizeof(in), weft_in(died ? DEAD : WEDGED), NULL);
		if (r == 0)
			CHECK_BYTES(in, SMALL, SMALL, now.round + i);
	}
	if (r < 0 && (!died || (r != -ECONNRESET && r != -ESRCH) || i <= BEFORE))
		WRONG(r, "message %u of %u: %s", i, MANY, weft_strerror(r));
}

/* A buffer that was sent when nobody wanted it. */
static void take_buffer(bool died)
{
	struct weft_status st;
	struct weft_buf *b;
	int r = weft_buf_recv(NULL, victim, TAG, weft_in(died ? DEAD : WEDGED), &b, &st);

	if (r == 0) {
		CHECK_BYTES(b->data, st.len, BUFFER, now.round);
		TRY(weft_buf_put(b));
	} else if (!died || (r != -ECONNRESET && r != -ESRCH)) {
		WRONG(r, "a buffer: %s", weft_strerror(r));
	}
}

/* The rest of some acts. */
static void finish_special(bool died)
{
	if (rank != FIRST)
		return;
	if (now.act == ACT_full_mailbox)
		take_many(died);
	if (now.act == ACT_first_buffer_send)
		take_buffer(died);
	if (now.act == ACT_question && !settles(was_told))
		WRONG(0, "nobody was told of the question's end");
	if (now.act == ACT_put_lent) {
		if (!settles(is_idle))
			WRONG(weft_buf_state(kept[0]), "what was lent does not come back");
		TRY(weft_buf_put(kept[0]));
	}
}

void survivor_end(void)
{
	finish_special(false);
	finish(weft_in(WEDGED), false);
	check_home();
}

/* What names the dead one answers so, soon. */
static void name_dead(weft_id id)
{
	weft_time until = weft_in(DEAD);
	int r;

	do
		r = weft_send(NULL, id, TAG_DEAD, bytes, SMALL, until);
	while (r == 0 && weft_now() < until);
	if (r != -ESRCH && r != -ECONNRESET)
		WRONG(r, "a send to the dead: %s", weft_strerror(r));
	r = weft_recv(NULL, id, TAG_DEAD, room, sizeof(room), until, NULL);
	if (r != -ESRCH && r != -ECONNRESET)
		WRONG(r, "a receive from the dead: %s", weft_strerror(r));
}

void survivor_bury(void)
{
	struct used u;

	finish_special(true);
	finish(weft_in(DEAD), true);
	name_dead(PROCESS(VICTIM));
	if (victim)
		name_dead(victim);
	check_home();
	if (settles(as_before))
		return;
	count(&u);
	WRONG(u.rest, "%d buffers in use and %d of pipes, before there were %d and %d", u.rest, u.pipes, used.rest, used.pipes);
}
