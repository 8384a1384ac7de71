/* test_far_context.c - contexts, members and protocols of the user's, between processes. */
#include "pair.h"

enum { LARGE = 1 << 20 };

static struct weft_port *ctx_open(weft_ctx ctx, uint32_t flags)
{
	struct weft_port *port = NULL;

	MUST_OK(weft_port_open(WEFT(port_opts, .flags = flags, .context = ctx), &port));
	return port;
}

/* A number that both know: made by 0. */
static weft_ctx ctx_agreed(void)
{
	if (far_rank == 0)
		far_tell(0, weft_ctx_new());
	far_meet();
	weft_ctx ctx = far_told(0);
	MUST(ctx);
	far_meet();
	return ctx;
}

FAR(what_is_sent_from_a_port_of_a_context_reaches_the_peers_port_of_that_context_and_no_other, 2)
{
	struct weft_port *mine[3], *ours[3];
	uint64_t v;

	far_join(0);
	for (int i = 0; i < 3; i++) {
		weft_ctx ctx = ctx_agreed();

		mine[i] = ctx_open(ctx, WEFT_PORT_OWNED);
		ours[i] = ctx_open(ctx, 0);
	}
	far_meet();
	for (uint64_t i = 0; i < 3; i++) {
		v = i;
		CHECK_OK(weft_send(ours[i], far_id(1 - far_rank), 1, &v, 8, SOON));
		v = i + 10;
		CHECK_OK(weft_send(mine[i], far_process(1 - far_rank), 1, &v, 8, SOON));
	}
	CHECK_OK(weft_send(NULL, far_id(1 - far_rank), 1, &(uint64_t){ 99 }, 8, SOON));
	for (int i = 2; i >= 0; i--) {
		CHECK_NEXT(mine[i], WEFT_ANY, WEFT_ANY_TAG, i);
		CHECK_NEXT(ours[i], WEFT_ANY, WEFT_ANY_TAG, i + 10);
	}
	CHECK_NEXT(NULL, WEFT_ANY, WEFT_ANY_TAG, 99);
	far_meet();
	for (int i = 0; i < 3; i++) {
		CHECK_NOTHING(mine[i], WEFT_ANY, WEFT_ANY_TAG);
		CHECK_NOTHING(ours[i], WEFT_ANY, WEFT_ANY_TAG);
		CHECK_OK(weft_port_close(mine[i], SOON));
		CHECK_OK(weft_port_close(ours[i], SOON));
	}
	CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
	CHECK_NOTHING(weft_port_world(), WEFT_ANY, WEFT_ANY_TAG);
	far_leave();
}

FAR(messages_for_a_context_that_is_not_open_yet_are_held_and_come_first, 2)
{
	unsigned char *mem = memory(LARGE), *mid = memory(5000);
	struct weft_req *large = NULL, *sync = NULL;

	far_join(0);
	for (uint32_t owned = 0; owned <= WEFT_PORT_OWNED; owned += WEFT_PORT_OWNED)
		EACH_WAY(sends) {
			weft_ctx ctx = ctx_agreed();
			weft_id peer = owned ? far_id(1 - far_rank) : far_process(1 - far_rank);
			struct weft_port *port;
			uint64_t v = 1;

			if (sends) {
				struct weft_buf *buf = NULL;

				port = ctx_open(ctx, owned);
				CHECK_OK(weft_send(port, peer, 1, &v, 8, SOON));
				pattern_put(mid, 5000, 9);
				CHECK_OK(weft_send(port, peer, 1, mid, 5000, SOON));
				pattern_put(mem, LARGE, 2);
				MUST_OK(send_post(port, 0, peer, 2, mem, LARGE, &large));
				MUST_OK(weft_buf_get(100000, 0, &buf));
				pattern_put(buf->data, 100000, 3);
				CHECK_OK(weft_buf_send(port, peer, 3, buf, SOON));
				MUST_OK(send_post(port, WEFT_SYNC, peer, 4, &v, 8, &sync));
				far_meet();
				CHECK_EQ(weft_req_peek(sync, NULL), -EAGAIN);
				far_meet();
				CHECK_OK(weft_send(port, peer, 5, &v, 8, SOON));
				CHECK_OK(weft_req_wait(&large, SOON, NULL));
				CHECK_OK(weft_req_wait(&sync, SOON, NULL));
			} else {
				struct weft_buf *buf = NULL;

				far_meet();
				CHECK_NOTHING(NULL, WEFT_ANY, WEFT_ANY_TAG);
				CHECK_NOTHING(weft_port_world(), WEFT_ANY, WEFT_ANY_TAG);
				port = ctx_open(ctx, owned);
				far_meet();
				CHECK_NEXT(port, peer, WEFT_ANY_TAG, 1);
				CHECK_OK(weft_recv(port, peer, WEFT_ANY_TAG, mid, 5000, SOON, NULL));
				CHECK(pattern_ok(mid, 5000, 9));
				CHECK_OK(weft_recv(port, WEFT_ANY, WEFT_ANY_TAG, mem, LARGE, SOON, NULL));
				CHECK(pattern_ok(mem, LARGE, 2));
				MUST_OK(weft_buf_recv(port, WEFT_ANY, WEFT_ANY_TAG, SOON, &buf, NULL));
				CHECK_EQ(buf->len, 100000);
				CHECK(pattern_ok(buf->data, 100000, 3));
				CHECK_OK(weft_buf_put(buf));
				CHECK_NEXT(port, WEFT_ANY, 4, 1);
				CHECK_NEXT(port, WEFT_ANY, 5, 1);
			}
			far_meet();
			CHECK_OK(weft_port_close(port, SOON));
		}
	far_leave();
	free(mem);
	free(mid);
}

FAR(early_messages_beyond_the_mailbox_are_held_and_come_in_order, 2)
{
	enum { N = 2000 };
	static uint64_t v[N];

	far_join(0);
	EACH_WAY(sends) {
		weft_ctx ctx = ctx_agreed();
		weft_id peer = far_process(1 - far_rank);
		struct weft_port *port;

		if (sends) {
			struct weft_req *req[N] = { NULL };

			port = ctx_open(ctx, 0);
			for (uint64_t i = 0; i < N; i++) {
				int r;

				v[i] = i;
				r = send_post(port, 0, peer, 1, &v[i], 8, &req[i]);
				CHECK(r == 0 || r == WEFT_DONE);
			}
			far_meet();
			for (int i = 0; i < N; i++)
				CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
		} else {
			far_meet();
			port = ctx_open(ctx, 0);
			for (uint64_t i = 0; i < N; i++)
				CHECK_NEXT(port, peer, 1, i);
		}
		far_meet();
		CHECK_OK(weft_port_close(port, SOON));
	}
	far_leave();
}

FAR(messages_for_a_context_already_closed_are_refused_and_the_context_stays_closed, 2)
{
	uint64_t v = 1;

	far_join(0);
	for (int used = 0; used < 2; used++)            /* closed before or after a message went there */
		EACH_WAY(sends) {
			weft_ctx ctx = ctx_agreed();
			weft_id peer = far_process(1 - far_rank);
			struct weft_port *port = ctx_open(ctx, 0), *again = NULL;
			int r;

			far_meet();
			if (used && sends)
				CHECK_OK(weft_send(port, peer, 1, &v, 8, SOON));
			if (used && !sends)
				CHECK_NEXT(port, peer, 1, 1);
			if (!sends) {
				CHECK_OK(weft_port_close(port, SOON));
				far_meet();
				CHECK_EQ(weft_port_open(WEFT(port_opts, .context = ctx), &again), -ESTALE);
			} else {
				struct weft_req *req = NULL;

				far_meet();
				r = weft_send(port, peer, 1, &v, 8, SOON);
				CHECK(r == -ESRCH || r == -ECONNRESET);
				r = send_post(port, WEFT_SYNC, peer, 1, &v, 8, &req);
				CHECK(r == 0 || r == -ESRCH);
				if (r == 0) {
					r = weft_req_wait(&req, SOON, NULL);
					CHECK(r == -ESRCH || r == -ECONNRESET);
				}
				CHECK_OK(weft_port_close(port, SOON));
			}
		}
	far_leave();
}

/* It is there while the other process sends to it, and ends: what was done is lost. */
static void mate_that_opens_nothing(void)
{
	uint64_t before = stats_of(NULL).lost;
	struct mate mate;

	mate_start(&mate);
	far_tell(1, mate.id);
	far_meet();
	far_meet();
	mate_stop(&mate);
	EVENTUALLY(stats_of(NULL).lost > before);
}

FAR(early_messages_of_a_thread_that_ends_without_opening_are_lost_and_announced_ones_reset, 2)
{
	uint64_t v = 1;

	far_join(0);
	EACH_WAY(sends) {
		weft_ctx ctx = ctx_agreed();

		if (sends) {
			struct weft_port *port = ctx_open(ctx, 0);
			struct weft_req *req = NULL;
			weft_id mate;

			far_meet();
			mate = far_told(1);
			CHECK_OK(weft_send(port, mate, 1, &v, 8, SOON));
			MUST_OK(send_post(port, WEFT_SYNC, mate, 1, &v, 8, &req));
			far_meet();
			CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECONNRESET);
			EVENTUALLY(weft_send(port, mate, 1, &v, 8, SOON) == -ESRCH);
			CHECK_OK(weft_port_close(port, SOON));
		} else {
			mate_that_opens_nothing();
		}
		far_meet();
	}
	far_leave();
}

FAR(a_member_that_ends_in_another_process_breaks_a_fragile_port_and_is_an_event_at_another, 2)
{
	uint64_t got;

	far_join(0);
	EACH_WAY(sends) {
		weft_ctx ctx = ctx_agreed();

		if (sends) {
			struct weft_port *fragile = NULL, *tough = NULL;
			struct tally left = { 0 };
			struct weft_req *req = NULL, *other = NULL;
			weft_id members[2];

			far_meet();
			members[0] = weft_self();
			members[1] = far_told(1);
			MUST_OK(weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_FRAGILE, .context = ctx, .members = members,
					.count = 2), &fragile));
			MUST_OK(weft_port_open(WEFT(port_opts, .members = members, .count = 2, .event = tally_done,
					.user = &left), &tough));
			MUST_OK(recv_post(fragile, 0, WEFT_ANY, 1, &got, 8, &req));
			MUST_OK(recv_post(tough, 0, WEFT_ANY, 1, &got, 8, &other));
			far_meet();
			CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECONNRESET);
			CHECK_EQ(weft_send(fragile, weft_at(0), 1, &got, 8, SOON), -ECONNRESET);
			EVENTUALLY(left.count);
			CHECK_EQ(left.last.tag, WEFT_LEFT);
			CHECK(left.last.from == members[1]);
			CHECK_EQ(left.last.index, 1);
			CHECK_EQ(weft_req_peek(other, NULL), -EAGAIN);
			CHECK_OK(weft_req_cancel(other));
			CHECK_EQ(weft_req_wait(&other, SOON, NULL), -ECANCELED);
			EVENTUALLY(weft_port_member(tough, 1) == 0);    /* told first, in all ports, then vacant in all */
			ports_close(fragile, tough);
		} else {
			struct mate mate;

			mate_start(&mate);
			far_tell(1, mate.id);
			far_meet();
			far_meet();
			mate_stop(&mate);
		}
		far_meet();
	}
	far_leave();
}

/* A header of the user's own. */

struct parcel_head {
	uint32_t kind, owner;           /* UINT32_MAX: any */
	uint64_t key;
};

static inline bool parcel_equal(const struct parcel_head *want, const struct parcel_head *got)
{
	return (want->kind == UINT32_MAX || want->kind == got->kind) &&
	       (want->owner == UINT32_MAX || want->owner == got->owner) && want->key == got->key;
}

static inline uint32_t parcel_shape(const struct parcel_head *want)
{
	return (want->kind == UINT32_MAX) | (uint32_t)(want->owner == UINT32_MAX) << 1;
}

static inline uint64_t parcel_hash(const struct parcel_head *head, uint32_t shape)
{
	return head->key * 31 + (shape & 1 ? 0 : head->kind) + (shape & 2 ? 0 : head->owner * UINT64_C(1000003));
}

#define WEFT_MATCH parcel
#define WEFT_MATCH_HEAD struct parcel_head
#define WEFT_MATCH_EQ(want, got) parcel_equal(want, got)
#define WEFT_MATCH_SHAPE(want) parcel_shape(want)
#define WEFT_MATCH_HASH(head, shape) parcel_hash(head, shape)
#include <weft/match.h>

FAR(a_protocol_of_the_users_is_spoken_between_processes_opened_before_or_after, 2)
{
	static const size_t sizes[] = { 0, 8, 80, 500, 8192, 100000, LARGE };
	enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
	unsigned char *mem[SIZES];

	far_join(0);
	for (int i = 0; i < SIZES; i++)
		mem[i] = memory(sizes[i] + 1);
	for (int early = 0; early < 2; early++)
		EACH_WAY(sends) {
			weft_ctx ctx = ctx_agreed();
			weft_id peer = far_process(1 - far_rank);
			struct weft_port *port = NULL;

			if (sends || !early)
				MUST_OK(weft_port_open(WEFT(port_opts, .context = ctx, .proto = &parcel_proto), &port));
			if (!early)
				far_meet();
			if (sends) {
				struct weft_req *req[SIZES] = { NULL };

				for (uint32_t i = 0; i < SIZES; i++) {
					struct parcel_head head = { i, i * 2, i % 2 };
					int r;

					pattern_put(mem[i], sizes[i], i);
					r = weft_send_post(port, WEFT(op, .flags = i % 3 == 1 ? WEFT_SYNC : 0, .peer = peer,
							.head = &head, .data = mem[i],
								      .len = sizes[i]), &req[i]);
					CHECK(r == 0 || r == WEFT_DONE);
				}
				far_meet();
				for (int i = 0; i < SIZES; i++)
					CHECK_OK(weft_req_wait(&req[i], SOON, NULL));
			} else {
				far_meet();
				if (early)
					MUST_OK(weft_port_open(WEFT(port_opts, .context = ctx, .proto = &parcel_proto), &port));
				/* Odd keys first, in their order; then the even ones, the last by name. */
				static const uint32_t order[] = { 1, 3, 5, 6, 0, 2, 4 };
				for (int k = 0; k < SIZES; k++) {
					uint32_t i = order[k];
					struct parcel_head head = { UINT32_MAX, UINT32_MAX, i % 2 };
					struct weft_status st = { 0 };

					if (i == 6)
						head.owner = 12;
					MUST_OK(recv_op(port, WEFT(op, .peer = WEFT_ANY, .head = &head, .data = mem[i],
							.len = sizes[i]), &st));
					CHECK_EQ(head.kind, i);
					CHECK_EQ(head.owner, i * 2);
					CHECK_EQ(st.len, sizes[i]);
					CHECK(st.from == peer);
					CHECK(pattern_ok(mem[i], sizes[i], i));
				}
			}
			far_meet();
			CHECK_OK(weft_port_close(port, SOON));
		}
	far_leave();
	for (int i = 0; i < SIZES; i++)
		free(mem[i]);
}

static int parcel_post(struct weft_port *port, uint32_t flags, weft_id peer, struct weft_req **ret_req)
{
	static struct parcel_head head = { 1, 1, 1 };
	static uint64_t v = 1;

	return weft_send_post(port, WEFT(op, .flags = flags, .peer = peer, .head = &head, .data = &v, .len = 8), ret_req);
}

FAR(messages_of_a_users_protocol_for_a_context_already_closed_are_refused, 2)
{
	far_join(0);
	EACH_WAY(sends) {
		weft_ctx ctx = ctx_agreed();
		weft_id peer = far_process(1 - far_rank);
		struct weft_port *port = NULL;
		struct weft_req *req = NULL;
		int r;

		MUST_OK(weft_port_open(WEFT(port_opts, .context = ctx, .proto = &parcel_proto), &port));
		far_meet();
		if (!sends)
			CHECK_OK(weft_port_close(port, SOON));
		far_meet();
		if (sends) {
			r = parcel_post(port, WEFT_SYNC, peer, &req);
			CHECK(r == 0 || r == -ESRCH);
			if (r == 0) {
				r = weft_req_wait(&req, SOON, NULL);
				MUST(!req);
				CHECK(r == -ESRCH || r == -ECONNRESET);
			}
			EVENTUALLY(parcel_post(port, 0, peer, NULL) == -ESRCH);
			CHECK_OK(weft_port_close(port, SOON));
		}
		far_meet();
	}
	far_leave();
}

FAR(early_messages_of_a_users_protocol_of_a_thread_that_ends_without_opening_are_lost_and_announced_ones_reset, 2)
{
	far_join(0);
	EACH_WAY(sends) {
		weft_ctx ctx = ctx_agreed();

		if (sends) {
			struct weft_port *port = NULL;
			struct weft_req *req = NULL, *large = NULL;
			unsigned char *mem = memory(LARGE);
			struct parcel_head head = { 1, 1, 1 };
			weft_id mate;

			MUST_OK(weft_port_open(WEFT(port_opts, .context = ctx, .proto = &parcel_proto), &port));
			far_meet();
			mate = far_told(1);
			MUST_OK(weft_send_post(port, WEFT(op, .flags = WEFT_SYNC, .peer = mate, .head = &head, .data = mem, .len = LARGE), &large));
			EVENTUALLY(parcel_post(port, 0, mate, NULL) == WEFT_DONE);
			MUST_OK(parcel_post(port, WEFT_SYNC, mate, &req));
			far_meet();
			CHECK_EQ(weft_req_wait(&large, SOON, NULL), -ECONNRESET);
			CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECONNRESET);
			MUST(!large && !req);
			EVENTUALLY(parcel_post(port, 0, mate, NULL) == -ESRCH);
			CHECK_OK(weft_port_close(port, SOON));
			free(mem);
		} else {
			mate_that_opens_nothing();
		}
		far_meet();
	}
	far_leave();
}

FAR(early_messages_of_a_protocol_are_reset_when_the_port_opens_with_another, 2)
{
	far_join(0);
	EACH_WAY(sends) {
		weft_ctx ctx = ctx_agreed();
		weft_id peer = far_process(1 - far_rank);
		struct weft_port *port = NULL;
		struct weft_req *req = NULL;

		if (sends) {
			MUST_OK(weft_port_open(WEFT(port_opts, .context = ctx, .proto = &parcel_proto), &port));
			EVENTUALLY(parcel_post(port, 0, peer, NULL) == WEFT_DONE);
			MUST_OK(parcel_post(port, WEFT_SYNC, peer, &req));
			far_meet();
			CHECK_EQ(weft_req_wait(&req, SOON, NULL), -ECONNRESET);
			MUST(!req);
			EVENTUALLY(parcel_post(port, 0, peer, NULL) == -EPROTO);
		} else {
			far_meet();
			port = ctx_open(ctx, 0);
		}
		far_meet();
		CHECK_OK(weft_port_close(port, SOON));
	}
	far_leave();
}

FAR(a_context_that_opens_while_its_first_messages_come_gets_them_all, 2)
{
	enum { ROUNDS = 300 };

	far_join(0);
	for (int i = 0; i < ROUNDS; i++) {
		weft_ctx ctx = ctx_agreed();
		weft_id peer = far_process(1 - far_rank);
		struct weft_port *port = NULL;
		struct parcel_head head = { UINT32_MAX, UINT32_MAX, 1 };
		uint64_t got = 0;

		if (far_rank) {
			MUST_OK(weft_port_open(WEFT(port_opts, .context = ctx, .proto = &parcel_proto), &port));
			MUST_OK(recv_op(port, WEFT(op, .peer = WEFT_ANY, .head = &head, .data = &got, .len = 8), NULL));
			CHECK_EQ(got, 1);
		} else {
			struct weft_req *req = NULL;

			int r;

			MUST_OK(weft_port_open(WEFT(port_opts, .context = ctx, .proto = &parcel_proto), &port));
			r = parcel_post(port, WEFT_SYNC, peer, &req);
			MUST(r == 0 || r == WEFT_DONE);         /* done: it was met meanwhile */
			if (r == 0)
				MUST_OK(weft_req_wait(&req, SOON, NULL));
		}
		far_meet();
		CHECK_OK(weft_port_close(port, SOON));
	}
	far_leave();
}

FAR(ports_of_different_protocols_do_not_talk, 2)
{
	uint64_t v = 1;

	far_join(0);
	EACH_WAY(sends) {
		weft_ctx ctx = ctx_agreed();
		weft_id peer = far_process(1 - far_rank);
		struct weft_port *port = NULL;
		int r;

		MUST_OK(weft_port_open(WEFT(port_opts, .context = ctx, .proto = sends ? NULL : &parcel_proto), &port));
		far_meet();
		if (sends) {
			r = weft_send(port, peer, 1, &v, 8, SOON);
			CHECK_EQ(r, -EPROTO);
		}
		far_meet();
		CHECK_OK(weft_port_close(port, SOON));
	}
	far_leave();
}

FAR_MAIN
