/* change.c - threads that join a communicator of threads and leave it.
 *
 * A ticket names a context and the thread that made it. Who joins sends that thread a hello in that context; the hellos wait until
 * it takes part in a change with the ticket, and opens its port there. When the members have agreed it tells its
 * guests who is in the new communicator.
 *
 *   guest    open (guest, context)   hello -->               wait for the answer        open the new one
 *   member   ticket                  change: take hellos, agree with the members, answer --^   open the new one
 *
 * A hello is sent synchronously: it fails where nobody will take it, because the inviter has ended or has let in as many as it
 * wanted. One that was taken is answered.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mpix.h"

#define TICKET_MARK UINT64_C(0x77656674746b7431)
#define LOOK (100 * WEFT_MS)            /* while guests are waited for: how often to see whether a member has ended */
#define DRAIN (10 * WEFT_S)             /* for answers, before the port closes */

enum { TAG_HELLO, TAG_ANSWER, TAG_IDS };

struct ticket {
	uint64_t mark;
	weft_id inviter;
	weft_ctx ctx;
	int64_t threads;
};

_Static_assert(sizeof(struct ticket) == sizeof(MPIX_Weft_ticket), "a ticket is its bytes");

struct answer {
	int64_t err;                    /* an error class */
	int64_t size;                   /* of the new communicator; its members' ids follow in a message of their own */
	weft_ctx ctx[2];
};

static bool ticket_read(const MPIX_Weft_ticket *bytes, struct ticket *ret)
{
	if (!bytes)
		return false;
	memcpy(ret, bytes, sizeof(*ret));
	return ret->mark == TICKET_MARK && ret->inviter && ret->ctx && ret->threads >= 0 && ret->threads <= INT_MAX;
}

int MPIX_Weft_invite(int nthreads, MPIX_Weft_ticket *ticket)
{
	struct ticket t = { .mark = TICKET_MARK, .threads = nthreads };

	if (nthreads < 0 || !ticket)
		return WX->error(NULL, __func__, MPI_ERR_ARG, nthreads < 0 ? "%d threads" : "NULL as place of a ticket for %d threads", nthreads);
	t.inviter = weft_self();
	t.ctx = weft_ctx_new();
	if (!t.inviter || !t.ctx)
		return WX->error(NULL, __func__, MPI_ERR_OTHER, "%s", weft_last_error());
	memcpy(ticket, &t, sizeof(t));
	return MPI_SUCCESS;
}

/* The guest's side */

/* A hello, and the answer to it with the ids (free them). weft's answers. */
static int ask(struct weft_port *port, weft_id inviter, struct answer *ret_answer, weft_id **ret_ids)
{
	const struct weft_op hello = { .size = sizeof(hello), .peer = inviter, .tag = TAG_HELLO, .flags = WEFT_SYNC };
	struct weft_req *req = NULL;
	weft_id *ids;
	int r = weft_send_post(port, &hello, &req);

	if (r == 0)
		r = weft_req_wait(&req, WEFT_FOREVER, NULL);
	if (r >= 0)
		r = weft_recv(port, inviter, TAG_ANSWER, ret_answer, sizeof(*ret_answer), WEFT_FOREVER, NULL);
	if (r < 0 || ret_answer->err)
		return r;
	ids = malloc((size_t)ret_answer->size * sizeof(*ids));
	if (!ids)
		return weft_fail(-ENOMEM, "no memory for %lld members", (long long)ret_answer->size);
	r = weft_recv(port, inviter, TAG_IDS, ids, (size_t)ret_answer->size * sizeof(*ids), WEFT_FOREVER, NULL);
	if (r < 0)
		free(ids);
	else
		*ret_ids = ids;
	return r;
}

int MPIX_Weft_join(const MPIX_Weft_ticket *ticket, MPI_Comm *newcomm)
{
	struct answer answer = { .err = 0 };
	struct weft_port *port;
	weft_id *ids = NULL;
	struct ticket t;
	int r;

	if (!ticket_read(ticket, &t) || !newcomm)
		return WX->error(NULL, __func__, MPI_ERR_ARG, newcomm ? "not a ticket" : "NULL as place of the new communicator");
	if (t.inviter == weft_self())
		return WX->error(NULL, __func__, MPI_ERR_ARG, "a thread that invites itself would wait for ever");
	*newcomm = MPI_COMM_NULL;
	r = weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED, .name = "mpix join", .context = t.ctx), &port);
	if (r == -EEXIST || r == -ESTALE)
		return WX->error(NULL, __func__, MPI_ERR_ARG, "this thread has used the ticket before");
	if (r < 0)
		return WX->weft_error(NULL, __func__, r);
	r = ask(port, t.inviter, &answer, &ids);
	weft_port_close(port, WEFT_NOW);
	if (r < 0)
		return WX->weft_error(NULL, __func__, r);
	r = answer.err ? (int)answer.err : wx_open(WX->world, ids, (int)answer.size, answer.ctx, newcomm);
	free(ids);
	return r ? WX->error(NULL, __func__, r, "the members could not agree on a new communicator") : MPI_SUCCESS;
}

/* The members' side */

struct door {                           /* where a member's guests come in; nothing without a ticket */
	struct weft_port *port;         /* or NULL */
	int64_t guests;
	weft_id *ids;                   /* of those that have come; owned */
	int64_t come;
};

/* Takes the hellos. 0 or an error class; those that have come want an answer in any case. */
static int door_open(struct MPI_ABI_Comm *c, const MPIX_Weft_ticket *ticket, struct door *d)
{
	struct weft_port_info info = { .size = sizeof(info) };
	struct weft_status st;
	struct ticket t;
	int r;

	if (!ticket)
		return 0;
	if (!ticket_read(ticket, &t) || t.inviter != weft_self())
		return MPI_ERR_ARG;
	d->ids = malloc((size_t)t.threads * sizeof(*d->ids) + 1);
	if (!d->ids)
		return MPI_ERR_NO_MEM;
	d->guests = t.threads;
	r = weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OWNED, .name = "mpix change", .context = t.ctx), &d->port);
	if (r < 0)
		return r == -EEXIST || r == -ESTALE ? MPI_ERR_ARG : WX->class(r);
	while (d->come < d->guests) {
		r = weft_recv(d->port, WEFT_ANY, TAG_HELLO, NULL, 0, weft_in(LOOK), &st);
		if (r == 0)
			d->ids[d->come++] = st.from;
		else if (r != -ETIMEDOUT)
			return WX->class(r);
		else if (weft_port_stat(c->coll, &info) == 0 && info.dead)
			return MPI_ERR_PROC_ABORTED;
	}
	return 0;
}

static void door_close(struct door *d, const struct answer *answer, const weft_id *ids)
{
	for (int64_t i = 0; i < d->come; i++) {
		/* A guest that has ended is what the new communicator will tell. */
		if (weft_send(d->port, d->ids[i], TAG_ANSWER, answer, sizeof(*answer), WEFT_FOREVER) == 0 && !answer->err)
			weft_send(d->port, d->ids[i], TAG_IDS, ids, (size_t)answer->size * sizeof(*ids), WEFT_FOREVER);
	}
	weft_port_close(d->port, weft_in(DRAIN));
	free(d->ids);
}

struct seat {                           /* what each member tells the others */
	int64_t err, stays, guests;
	weft_ctx ctx[2];                /* the first one's count */
};

/* Who is in the new communicator: *@ret_ids (free them). 0 or an error class. */
static int list_all(struct MPI_ABI_Comm *c, const struct seat *seats, const struct door *d, weft_id **ret_ids, int64_t *ret_size)
{
	int64_t most = 0, total = 0, n = 0;
	weft_id *ids, *rows, *mine;
	int r = 0;

	for (int i = 0; i < c->size; i++) {
		r = r ? r : (int)seats[i].err;
		total += seats[i].stays + seats[i].guests;
		most = seats[i].guests > most ? seats[i].guests : most;
	}
	if (r || total > INT_MAX)
		return r ? r : MPI_ERR_ARG;
	ids = malloc((size_t)total * sizeof(*ids) + 1);
	rows = malloc((size_t)c->size * (size_t)most * sizeof(*rows) + 1);
	mine = calloc((size_t)most + 1, sizeof(*mine));
	if (!ids || !rows || !mine)
		r = MPI_ERR_NO_MEM;
	if (!r && d->guests)
		memcpy(mine, d->ids, (size_t)d->guests * sizeof(*mine));
	if (!r && most)
		r = WX->allgather(c, mine, (size_t)most * sizeof(*mine), rows);
	for (int i = 0; i < c->size && !r; i++)
		if (seats[i].stays)
			ids[n++] = c->group->ids[i];
	for (int i = 0; i < c->size && !r; i++)
		for (int64_t k = 0; k < seats[i].guests; k++)
			ids[n++] = rows[i * most + k];
	free(rows);
	free(mine);
	if (r)
		free(ids);
	else
		*ret_ids = ids;
	*ret_size = total;
	return r;
}

/* Collective. What is decided, with *@ret_ids where that is no error. */
static struct answer agree(struct MPI_ABI_Comm *c, bool stays, const struct door *d, int err, weft_id **ret_ids)
{
	struct seat *seats = malloc((size_t)c->size * sizeof(*seats));
	struct seat mine = { .err = seats ? err : MPI_ERR_NO_MEM, .stays = stays, .guests = d->guests };
	struct answer a = { .err = MPI_ERR_NO_MEM };

	mine.ctx[0] = weft_ctx_new();
	mine.ctx[1] = weft_ctx_new();
	if (!seats)
		return a;
	a.err = WX->allgather(c, &mine, sizeof(mine), seats);
	memcpy(a.ctx, seats[0].ctx, sizeof(a.ctx));
	if (!a.err)
		a.err = list_all(c, seats, d, ret_ids, &a.size);
	free(seats);
	return a;
}

int MPIX_Weft_comm_change(MPI_Comm comm, int stays, const MPIX_Weft_ticket *ticket, MPI_Comm *newcomm)
{
	struct MPI_ABI_Comm *c = WX->comm(comm);
	struct door door = { .port = NULL };
	weft_id *ids = NULL;
	struct answer a;
	int r;

	if (!c)
		return wx_no_comm(__func__);
	if (c->inter || c->owner != weft_self())
		return WX->error(c, __func__, MPI_ERR_COMM, "not a communicator of threads, this one among them");
	if (!newcomm)
		return WX->error(c, __func__, MPI_ERR_ARG, "NULL as place of the new communicator");
	*newcomm = MPI_COMM_NULL;
	r = door_open(c, ticket, &door);
	a = agree(c, stays != 0, &door, r, &ids);
	door_close(&door, &a, ids);
	r = (int)a.err;
	if (!r && stays)
		r = wx_open(c, ids, (int)a.size, a.ctx, newcomm);
	free(ids);
	return r ? WX->error(c, __func__, r, "the members could not agree on a new communicator") : MPI_SUCCESS;
}
