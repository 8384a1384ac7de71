/* stripe.c - see stripe.h. */
#include "peer/stripe.h"

#define UNKNOWN UINT64_C(1000000000)    /* bytes a second of a lane nobody has measured: it is tried */

int wf_stripe_best(const struct wf_stripe_load *load, int n, uint64_t bytes)
{
	uint64_t fastest = 0;
	double least = 0;
	int best = -1;

	for (int i = 0; i < n; i++)
		if (load[i].rate > fastest)
			fastest = load[i].rate;
	for (int i = 0; i < n; i++) {
		uint64_t rate = load[i].rate ? load[i].rate : fastest ? fastest : UNKNOWN;
		double t = (double)(load[i].queued + bytes) * 1e9 / (double)rate + (double)load[i].rtt / 2;

		if (best < 0 || t < least) {
			least = t;
			best = i;
		}
	}
	return best;
}
