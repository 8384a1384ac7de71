/* stripe.h - which of several lanes a chunk goes to: one that has it through before another would have all that is left. A policy, and nothing else. */
#ifndef WF_PEER_STRIPE_H
#define WF_PEER_STRIPE_H

#include <stdbool.h>
#include <stdint.h>
#include <weft/base.h>

struct wf_stripe_load {
	uint64_t queued;                /* bytes given to it and not acknowledged */
	uint64_t rate;                  /* bytes a second; 0: not measured, taken for the best of the others */
	weft_time rtt;
};

/* Is lane @me of the @n to have @bytes of the @left that are to go? By queued bytes, rate and half the round trip. At least one is. */
bool wf_stripe_worth(const struct wf_stripe_load *load, int n, int me, uint64_t bytes, uint64_t left);

#endif
