/* rig.h - two processes and a network that fails only when told: for tests of single rules. */
#ifndef RIG_H
#define RIG_H

#include "sim.h"

#include "test.h"

static inline struct world *rig_new(struct sim_conf conf)
{
	conf.seed = conf.seed ? conf.seed : 7;
	conf.procs = conf.procs ? conf.procs : 2;
	conf.rails = conf.rails ? conf.rails : 1;
	conf.mails = SIM_MAILS;
	conf.deadline = conf.deadline ? conf.deadline : 5 * WEFT_S;
	conf.window = conf.window ? conf.window : 256 << 10;
	conf.cap = conf.cap ? conf.cap : 32;
	conf.eager = conf.eager ? conf.eager : WF_EAGER;
	conf.quiet = true;
	return sim_new(&conf);
}

static inline void rig_free(struct world *w)
{
	upper_free(w);
	if (w->failed)
		printf("# %s\n", w->why);
	CHECK(!w->failed);
	sim_free(w);
}

static inline void rig_run(struct world *w, int64_t ms)
{
	sim_run(w, w->now + ms * WEFT_MS);
}

/* From port 1 of process 1 to port 1 of process 2. */
static inline struct mail *rig_send(struct world *w, uint64_t len, int flags)
{
	return mail_send(&w->proc[1], 1, 2, 1, len, flags, 0, 0);
}

static inline struct post *rig_post(struct world *w)
{
	return upper_post(&w->proc[2], 1, -1, -1, 1 << 20);
}

static inline struct wf_remote *rig_remote(struct world *w, uint32_t at, uint32_t of)
{
	return w->proc[at].remote[of];
}

/* The connection that is process 1's lane of @slot to process 2, or NULL. */
static inline struct wire *rig_wire(struct world *w, uint32_t slot)
{
	struct wf_lane *lane = rig_remote(w, 1, 2)->slots[slot].lane;

	for (struct wire *wire = w->wires; wire && lane; wire = wire->next)
		for (int i = 0; i < 2; i++)
			if (wire->end[i].up && wire->end[i].lane == lane && wire->end[i].p == &w->proc[1])
				return wire;
	return NULL;
}

/* Everything between the two is silent for @ms, in both directions or from 2 to 1 only. */
static inline void rig_silence(struct world *w, int64_t ms, bool both)
{
	w->silent[2][1] = w->now + ms * WEFT_MS;
	if (both)
		w->silent[1][2] = w->silent[2][1];
}

#endif
