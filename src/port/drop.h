/* drop.h - short messages that this thread has just read from another host, into its own mailbox.
 *
 * As if they came from here: its next receive finds them the short way. What the mailbox has is before what comes by the port's door.
 */
#ifndef WF_PORT_DROP_H
#define WF_PORT_DROP_H

#include "base/tsan.h"
#include "port/deliver.h"

struct wf_guest {
	weft_id to, src;
	uint64_t tag, context;
	const void *payload;
	size_t len;
	uint32_t index;
};

/* [thread] To the receive it is in (expect.h), or into the mailbox. False: it is another's, or there is no room; by the port's door it goes. */
bool wf_drop_in(const struct wf_guest *g);

/* Several at once: cells of its mailbox are taken, filled in order, and shown. */
struct wf_seats {
	struct weft_port *at;
	struct wf_claim_row row;
};

uint32_t wf_seats_take(weft_id to, uint32_t most, struct wf_seats *ret_seats);  /* [thread] how many: at most @most. 0: it is another's, or there is no room */
void wf_seats_told(const struct wf_seats *s);                                   /* [thread] all of them are filled: who waits there may look */

/* [thread] @n of them from the @i-th on: messages of at most WF_BODY bytes, alike but for their payloads, which lie one behind the other. */
static inline void wf_seats_fill(const struct wf_seats *s, uint32_t i, uint32_t n, weft_id src, uint32_t index, uint64_t tag, const void *payloads, size_t len)
{
	const unsigned char *payload = payloads;
	struct wf_cell *cells = s->row.cells;
	uint32_t mask = s->row.mask;

	wf_user_releases(&s->at->ring);
	for (uint32_t pos = s->row.pos + i, end = pos + n; pos != end; pos++, payload += len) {
		struct wf_cell *c = &cells[pos & mask];

		wf_cell_fill(c, src, index, tag, payload, len);
		wf_ring_publish(c, pos);
	}
}

#endif
