/* context.h - which port of a context is whose: (id, context) -> port.
 *
 * A message for a context port that nobody has opened yet needs a place to wait: the first one opens
 * the port in limbo, a port like any other that nobody receives at, and weft_port_open then takes it over as it
 * is, messages first. A context closed here is remembered, as ranges of its maker's counter.
 */
#ifndef WF_PORT_CONTEXT_H
#define WF_PORT_CONTEXT_H

#include "port/port.h"

struct wf_routes;

#define WF_CTX_TEXT (UINT64_C(1) << 63)         /* made from a channel's text: may be opened again */

weft_ctx wf_ctx_of_text(const char *text);

/* [any] Where a message to (@id, @context) goes, by the calling thread's cache; a port in limbo if nobody
 * has opened it yet (it then speaks @proto). -ESRCH: @id is gone or the context is closed there; -ENOMEM. */
int wf_route(weft_id id, weft_ctx context, const struct weft_proto *proto, struct weft_port **ret_port,
	     uint16_t *ret_who);

/* For open: the port in limbo for it (out of limbo now), or NULL: none; -EEXIST, -ESTALE. */
int wf_context_adopt(weft_id id, weft_ctx context, struct weft_port **ret_port);
void wf_context_abandon(struct weft_port *p);   /* back into limbo: the opening came to nothing */
void wf_context_remove(struct weft_port *p);    /* and remember that it was closed */
bool wf_context_known(weft_id id, weft_ctx context);    /* open or in limbo */

bool wf_context_closed(weft_id id, weft_ctx context);   /* and will not be opened again */

/* @id has ended: a port of a context that was its, one at a time, to be closed; NULL: no more. */
struct weft_port *wf_context_orphan(weft_id id);
void wf_routes_free(struct wf_routes *routes);

#endif
