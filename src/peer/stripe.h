/* stripe.h - which of several lanes a chunk goes to: the one that would finish it first. A policy, and nothing else. */
#ifndef WF_PEER_STRIPE_H
#define WF_PEER_STRIPE_H

#include <stdint.h>
#include <weft/base.h>

struct wf_stripe_load {
	uint64_t queued;                /* bytes given to it and not acknowledged */
	uint64_t rate;                  /* bytes a second; 0: not measured, taken for the best of the others */
	weft_time rtt;
};

/* Index of the lane that has @bytes more through first, by queued bytes, rate and half the round trip. -1: there is none. */
int wf_stripe_best(const struct wf_stripe_load *load, int n, uint64_t bytes);

#endif
