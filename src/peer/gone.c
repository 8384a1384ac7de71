/* gone.c - the ends of threads and ports, told to who has asked.
 *
 * What an id has sent comes before its end. Its messages ride on several streams, the word about its end on the control stream: so that waits until all streams are
 * acknowledged up to where they were when the id ended. Ids that end meanwhile wait together, for the next such mark. Without memory for one the other end is told to ask
 * again for all it watches.
 */
#include <stdlib.h>
#include <string.h>

#include "peer/inner.h"

#define GONE_LEAST 16u
#define GONE_MOST 4096u                 /* so many wait: an end that asks and does not acknowledge gets no more */

void wf_remote_watch(struct wf_remote *r, uint32_t id)
{
	if (!r->err)
		wf_control(r, WF_WIRE_WATCH, id, 0);
}

static void mark(struct wf_remote *r)
{
	for (unsigned i = 1; i < WF_STREAMS; i++)
		r->gone_mark[i] = r->out[i] ? r->out[i]->rt.tail : 0;
	r->gone_marked = r->ngone;
}

static bool reached(const struct wf_remote *r)
{
	for (uint64_t m = r->unacked & ~wf_bit(0); m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctzll(m);

		if (r->out[i]->rt.acked < r->gone_mark[i])
			return false;
	}
	return true;
}

void wf_remote_say_gone(struct wf_remote *r, uint32_t id)
{
	if (r->err)
		return;
	if (r->ngone == r->gone_size) {
		uint32_t size = r->gone_size ? 2 * r->gone_size : GONE_LEAST;
		uint32_t *more = size <= GONE_MOST ? realloc(r->gone, size * sizeof(*more)) : NULL;

		if (!more) {
			r->gone_lost = true;
			return;
		}
		r->gone = more;
		r->gone_size = size;
	}
	r->gone[r->ngone++] = id;
	if (!r->gone_marked)
		mark(r);
}

void wf_gones_run(struct wf_remote *r)
{
	while (r->gone_marked && reached(r)) {
		for (uint32_t i = 0; i < r->gone_marked; i++)
			wf_control(r, WF_WIRE_GONE, r->gone[i], 0);
		r->ngone -= r->gone_marked;
		memmove(r->gone, r->gone + r->gone_marked, r->ngone * sizeof(*r->gone));
		mark(r);
	}
	if (r->gone_lost && !r->ngone) {
		r->gone_lost = false;
		wf_control(r, WF_WIRE_GONE, 0, 0);
	}
}
