/* ticket.c - tickets that are free. See ticket.h.
 *
 * Run by whoever announces or ends a send, under wf_user_lock. Tickets lie in the pool's shared memory and are never given back: a receiver that
 * still has an old announcement may look at one at any time. Each process has its own.
 */
#include "port/ticket.h"

#include <stdlib.h>
#include <string.h>

#include "mem/buf.h"
#include "mem/bury.h"
#include "net/local/peer.h"
#include "port/request.h"

/* A ticket that is free holds, in its own words, nothing the other process could still use: its serial has moved on. */
struct ticket_room {
	struct ticket_room *next;
	struct wf_ticket *ticket;
	uint32_t serial;
};
static struct ticket_room *free_tickets[WF_PROCESSES];  /* 0: of dead ones, for anybody */
static struct ticket_room *spare_rooms;

static void more_tickets_locked(uint32_t process)
{
	struct ticket_room *rooms = calloc(WF_TICKETS, sizeof(*rooms));
	struct weft_buf *b;

	if (!rooms || wf_buf_alloc(WF_TICKETS * sizeof(struct wf_ticket), &b) < 0) {
		free(rooms);
		return;
	}
	wf_buf_stands(b, true);
	memset(b->data, 0, b->len);
	for (uint32_t i = 0; i < WF_TICKETS; i++) {
		rooms[i].ticket = (struct wf_ticket *)b->data + i;
		rooms[i].next = free_tickets[process];
		free_tickets[process] = &rooms[i];
	}
}

struct wf_ticket *wf_ticket_get_locked(uint32_t process, uint32_t writer, uint32_t *ret_serial)
{
	struct ticket_room **from = &free_tickets[process], *room;
	struct wf_ticket *t;

	if (!*from && free_tickets[0])
		from = &free_tickets[0];
	if (!*from)
		more_tickets_locked(process);
	room = *from;
	if (!room)
		return NULL;
	*from = room->next;
	t = room->ticket;
	*ret_serial = ++room->serial;
	room->next = spare_rooms;
	spare_rooms = room;
	atomic_store_explicit(&t->writer, writer, memory_order_relaxed);
	atomic_store_explicit(&t->reader, 0, memory_order_relaxed);
	atomic_store_explicit(&t->ready, 0, memory_order_relaxed);
	atomic_store_explicit(&t->word, wf_ticket_word(*ret_serial, WF_T_OPEN, 0), memory_order_release);      /* K1 */
	return t;
}

void wf_ticket_put_locked(uint32_t process, struct wf_ticket *t, uint32_t serial)
{
	struct ticket_room *room = spare_rooms;

	spare_rooms = room->next;
	room->ticket = t;
	room->serial = serial;
	/* Whoever still has the announcement finds that it is over. */
	atomic_store_explicit(&t->word, wf_ticket_word(serial, WF_T_CANCELLED, 0), memory_order_relaxed);
	if (wf_peer_died(process))
		process = 0;
	room->next = free_tickets[process];
	free_tickets[process] = room;
}

void wf_tickets_dead(uint32_t process)
{
	struct ticket_room *room;

	wf_lock(&wf_user_lock);
	while ((room = free_tickets[process]) != NULL) {
		free_tickets[process] = room->next;
		room->next = free_tickets[0];
		free_tickets[0] = room;
	}
	wf_unlock(&wf_user_lock);
}
