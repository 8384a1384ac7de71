/* victim.c - the acts, as the one plays them that is killed or stopped in them: see actor.c. */
#include "actor.h"

#include <time.h>

#include "mem/share.h"

static struct weft_port *port;
static struct weft_req *many[MANY];

static void on_message(const struct weft_status *st)
{
	if (st->err)
		WRONG(st->err, "a message for a callback: %s", weft_strerror(st->err));
	CHECK_BYTES(room, st->len, SMALL, now.round);
	atomic_store(&told, 1);
}

static void post_told(void)
{
	atomic_store(&told, 0);
	TRY(weft_recv_post(NULL, WEFT(op, .peer = other, .tag = TAG, .data = room, .len = sizeof(room), .done = on_message), NULL,
			   NULL));
}

/* It is in the mailbox by now. */
static void arrived(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

/* It has been moved from there to the messages nobody has told for. */
static void arrived_early(void)
{
	struct weft_op any = { .size = sizeof(any), .peer = other, .tag = TAG };

	TRY(weft_probe(NULL, &any, weft_in(WEDGED), NULL, NULL));
}

static int send_many(unsigned from, unsigned to)
{
	int r = 0;

	for (unsigned i = from; i < to && r >= 0; i++)
		r = weft_send_post(NULL, WEFT(op, .peer = other, .tag = TAG, .data = bytes + i * SMALL, .len = SMALL), &many[i]);
	return r < 0 ? r : 0;
}

static void set_many(void)
{
	for (unsigned i = 0; i < MANY; i++)
		fill(bytes + i * SMALL, SMALL, now.round + i);
	TRY(send_many(0, BEFORE));
}

static void take_buffers(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		TRY(weft_buf_recv(NULL, other, TAG, weft_in(WEDGED), &kept[i], NULL));
}

void victim_set(void)
{
	switch (now.act) {
	case ACT_buffer_send:
	case ACT_first_buffer_send:
	case ACT_lend:
		kept[0] = filled(BUFFER, now.round);
		break;
	case ACT_shared_send:
	case ACT_first_shared_send:
	case ACT_shared_cancel:
		kept[0] = filled(SHARED, now.round);
		break;
	case ACT_full_mailbox:
		set_many();
		break;
	case ACT_forward:
	case ACT_put_lent:
		take_buffers(1);
		break;
	case ACT_put:
		take_buffers(BUFFERS);
		break;
	case ACT_small_receive:
	case ACT_large_receive:
	case ACT_announced_receive:
	case ACT_shared_receive:
	case ACT_buffer_receive:
	case ACT_first_buffer:
		arrived();
		break;
	case ACT_medium_receive:
		arrived_early();
		break;
	case ACT_listener:
		post_told();
		break;
	default:
		fill(bytes, sizeof(bytes), now.round);
	}
}

/* Between the marks. Nothing but weft, so that what is stepped through is weft. */
static int act(weft_time until, struct weft_status *ret_st)
{
	struct iovec whole = { bytes, LARGE };          /* in pieces: not by a train */
	struct weft_req *req = NULL;
	int r = 0;

	switch (now.act) {
	case ACT_small_send:
		return weft_send(NULL, other, TAG, bytes, SMALL, until);
	case ACT_medium_send:
		return weft_send(NULL, other, TAG, bytes, MEDIUM, until);
	case ACT_large_send:
	case ACT_first_large_send:
		return weft_send(NULL, other, TAG, bytes, LARGE, until);
	case ACT_shared_send:
	case ACT_first_shared_send:
		return weft_send(NULL, other, TAG, kept[0]->data, SHARED, until);
	case ACT_sync_send:
		r = weft_send_post(NULL, WEFT(op, .peer = other, .tag = TAG, .data = bytes, .len = SMALL, .flags = WEFT_SYNC), &req);
		return r < 0 ? r : weft_req_wait(&req, until, NULL);
	case ACT_announced_send:
		r = weft_send_post(NULL, WEFT(op, .peer = other, .tag = TAG, .iov = &whole, .niov = 1), &req);
		return r ? (r < 0 ? r : 0) : weft_req_wait(&req, until, NULL);
	case ACT_buffer_send:
	case ACT_first_buffer_send:
		return weft_buf_send(NULL, other, TAG, kept[0], until);
	case ACT_forward:
		return weft_buf_send(NULL, now.id[SECOND], TAG, kept[0], until);
	case ACT_put:
		for (unsigned i = 0; i < BUFFERS && r == 0; i++)
			r = weft_buf_put(kept[i]);
		return r;
	case ACT_lend:
		r = weft_send_post(NULL, WEFT(op, .peer = other, .tag = TAG, .buf = kept[0], .flags = WEFT_KEEP), &req);
		return r < 0 ? r : weft_req_wait(&req, until, NULL);
	case ACT_put_lent:
		r = weft_buf_put(kept[0]);
		wf_share_flush();
		return r;
	case ACT_full_mailbox:
		return send_many(BEFORE, MANY);
	case ACT_cancel:
	case ACT_shared_cancel:
		r = weft_send_post(NULL, WEFT(op, .peer = other, .tag = TAG, .data = now.act == ACT_cancel ? bytes : kept[0]->data,
					      .len = now.act == ACT_cancel ? LARGE : SHARED,
					      .flags = WEFT_SYNC), &req);
		if (r == 0)
			r = weft_req_cancel(req);
		r = r < 0 ? r : weft_req_wait(&req, until, NULL);
		return r == -ECANCELED ? 0 : r;
	case ACT_small_receive:
	case ACT_medium_receive:
	case ACT_large_receive:
	case ACT_announced_receive:
	case ACT_shared_receive:
		return weft_recv(NULL, other, TAG, room, sizeof(room), until, ret_st);
	case ACT_buffer_receive:
	case ACT_first_buffer:
		return weft_buf_recv(NULL, other, TAG, until, &kept[0], ret_st);
	case ACT_sleeping_receive:
		r = weft_recv(NULL, other, TAG, room, sizeof(room), weft_in(WEFT_MS), ret_st);
		return r == -ETIMEDOUT ? 0 : r;
	case ACT_question:
		r = weft_send(NULL, other, TAG, bytes, SMALL, until);
		return r < 0 ? r : weft_recv(NULL, PROCESS(FIRST), TAG_ANSWER, room, sizeof(room), until, ret_st);
	case ACT_port:
		r = weft_port_open(WEFT(port_opts, .channel = CHANNEL), &port);
		if (r == 0)
			r = weft_recv(port, WEFT_ANY, TAG, room, sizeof(room), until, ret_st);
		return r < 0 ? r : weft_port_close(port, until);
	case ACT_thread:
		r = weft_thread_leave();
		return r == 0 && !weft_self() ? -ENOMEM : r;
	case ACT_first_send:
		return weft_send(weft_port_world(), weft_at(FIRST), TAG, bytes, SMALL, until);
	case ACT_init:
		r = weft_init(NULL);
		return r == 0 && !weft_self() ? -ENOMEM : r;
	case ACT_fini:
		return weft_fini(until);
	default:
		return -ENOSYS;
	}
}

/* They end when FIRST has received them, which it begins when the victim has answered: not waited for here. */
static void finish_many(void)
{
	for (unsigned i = 0; i < MANY; i++) {
		TRY(weft_req_free(many[i]));
		many[i] = NULL;
	}
}

/* What came is what was sent; what is left goes. */
static void look(int r, const struct weft_status *st)
{
	switch (now.act) {
	case ACT_small_receive:
	case ACT_question:
	case ACT_port:
		CHECK_BYTES(room, st->len, SMALL, now.round);
		break;
	case ACT_medium_receive:
		CHECK_BYTES(room, st->len, MEDIUM, now.round);
		break;
	case ACT_large_receive:
	case ACT_announced_receive:
	case ACT_shared_receive:
		CHECK_BYTES(room, st->len, now.act == ACT_shared_receive ? SHARED : LARGE, now.round);
		break;
	case ACT_buffer_receive:
	case ACT_first_buffer:
		if (r == 0) {
			CHECK_BYTES(kept[0]->data, st->len, BUFFER, now.round);
			TRY(weft_buf_put(kept[0]));
		}
		break;
	case ACT_lend:
		TRY(weft_buf_put(kept[0]));     /* free when the other has put it, too */
		break;
	case ACT_shared_send:
	case ACT_first_shared_send:
	case ACT_shared_cancel:
		TRY(weft_buf_put(kept[0]));
		break;
	case ACT_full_mailbox:
		finish_many();
		break;
	case ACT_init:
		TRY(weft_send(weft_port_world(), weft_at(FIRST), TAG, bytes, SMALL, weft_in(WEDGED)));
		break;
	default:
		break;
	}
}

void victim_act(void)
{
	struct weft_status st = { 0 };
	weft_time until = weft_in(1000 * WEFT_S);       /* who steps through it has limits of his own */
	int r;

	if (now.act == ACT_listener) {
		if (!settles(was_told))
			WRONG(0, "the callback was not called");
		return;
	}
	sweep_mark();
	r = act(until, &st);
	sweep_mark();
	TRY(r);
	look(r, &st);
	wf_share_flush();
	if (now.act == ACT_thread || now.act == ACT_init)
		say.id = weft_self();
}
