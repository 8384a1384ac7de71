/* shield.h - a thread is not cancelled in here: what it does must not be left half done, and drivers call what threads are cancelled in.
 *
 * Shields nest; only the outermost asks the C library, which costs two compare-and-swaps. So who looks again and again takes one around all its looks.
 */
#ifndef WF_BASE_SHIELD_H
#define WF_BASE_SHIELD_H

#include <pthread.h>

struct wf_shield {
	unsigned depth;
	int before;                     /* whether it could be cancelled outside */
};

extern _Thread_local struct wf_shield wf_shielded;

static inline void wf_shield(void)
{
	if (!wf_shielded.depth++)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &wf_shielded.before);
}

static inline void wf_unshield(void)
{
	if (!--wf_shielded.depth)
		pthread_setcancelstate(wf_shielded.before, NULL);
}

#endif
