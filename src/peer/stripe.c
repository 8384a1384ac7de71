/* stripe.c - see stripe.h.
 *
 * A slow lane is worth while as long as it is done with its chunk before a fast one would be done with everything: then all are busy until the end, and the last chunks go where they arrive first. To ask who
 * would have this chunk through first is not enough: the fast one always would, and the slow one have nothing, while the fast one has no room for more.
 */
#include "peer/stripe.h"

#define UNKNOWN UINT64_C(1000000000)    /* bytes a second of a lane nobody has measured: it is tried */

/* Until @bytes more are through. */
static double time_of(const struct wf_stripe_load *l, uint64_t fastest, uint64_t bytes)
{
	uint64_t rate = l->rate ? l->rate : fastest ? fastest : UNKNOWN;

	return (double)(l->queued + bytes) * 1e9 / (double)rate + (double)l->rtt / 2;
}

bool wf_stripe_worth(const struct wf_stripe_load *load, int n, int me, uint64_t bytes, uint64_t left)
{
	uint64_t fastest = 0;
	double mine;

	bytes = bytes < left ? bytes : left;    /* or two would leave it to each other */
	for (int i = 0; i < n; i++)
		if (load[i].rate > fastest)
			fastest = load[i].rate;
	mine = time_of(&load[me], fastest, bytes);
	for (int i = 0; i < n; i++)
		if (i != me && time_of(&load[i], fastest, left) < mine)
			return false;
	return true;
}
