/* ticket.c - tickets that are free. See ticket.h.
 *
 * Run by whoever announces or ends a send, under wf_user_lock. Tickets lie in the pool's shared memory and are never given back: a receiver that
 * still has an old announcement may look at one at any time.
 */
#include "port/ticket.h"

#include <stdlib.h>
#include <string.h>

#include "mem/buf.h"
#include "mem/bury.h"

#define TICKETS_AT_ONCE 32

/* A ticket that is free holds, in its own words, nothing the other process could still use: its serial has moved on. */
struct ticket_room {
	struct ticket_room *next;
	struct wf_ticket *ticket;
	uint32_t serial;
};
static struct ticket_room *free_tickets, *spare_rooms;

static void more_tickets_locked(void)
{
	struct ticket_room *rooms = calloc(TICKETS_AT_ONCE, sizeof(*rooms));
	struct weft_buf *b;

	if (!rooms || wf_buf_alloc(TICKETS_AT_ONCE * sizeof(struct wf_ticket), &b) < 0) {
		free(rooms);
		return;
	}
	wf_buf_stands(b, true);
	memset(b->data, 0, b->len);
	for (int i = 0; i < TICKETS_AT_ONCE; i++) {
		rooms[i].ticket = (struct wf_ticket *)b->data + i;
		rooms[i].next = free_tickets;
		free_tickets = &rooms[i];
	}
}

struct wf_ticket *wf_ticket_get_locked(uint32_t writer, uint32_t *ret_serial)
{
	struct ticket_room *room;
	struct wf_ticket *t;

	if (!free_tickets)
		more_tickets_locked();
	room = free_tickets;
	if (!room)
		return NULL;
	free_tickets = room->next;
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

void wf_ticket_put_locked(struct wf_ticket *t, uint32_t serial)
{
	struct ticket_room *room = spare_rooms;

	spare_rooms = room->next;
	room->ticket = t;
	room->serial = serial;
	/* Whoever still has the announcement finds that it is over. */
	atomic_store_explicit(&t->word, wf_ticket_word(serial, WF_T_CANCELLED, 0), memory_order_relaxed);
	room->next = free_tickets;
	free_tickets = room;
}
