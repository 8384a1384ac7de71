/* tsan.h - tells a user's ThreadSanitizer what weft's atomics order.
 *
 * weft itself is usually built without it, so the sanitizer of a program sees neither the ring's
 * stores nor its loads. Where its runtime is present (the symbols are weak), sends release and
 * receives acquire an address both know. In a build of weft with the sanitizer the atomics speak
 * for themselves and these are nothing; but for what is ordered by way of another process, which it
 * does not see either: wf_far_hands_on.
 */
#ifndef WF_BASE_TSAN_H
#define WF_BASE_TSAN_H

#include "base/cpu.h"
#include "base/fence.h"

#if WF_TSAN
void __tsan_release(void *at);

static inline void wf_tsan_init(void) {}
static inline void wf_user_releases(void *at) { (void)at; }
static inline void wf_user_acquires(void *at) { (void)at; }
static inline _Bool wf_user_watched(void) { return 0; }
#else
extern _Bool wf_tsan_user WF_HERE;      /* set at init, then constant */

static inline _Bool wf_user_watched(void) { return wf_tsan_user; }

void wf_tsan_init(void);
void wf_tsan_release(void *at);
void wf_tsan_acquire(void *at);

static inline void wf_user_releases(void *at)
{
	if (wf_unlikely(wf_tsan_user))
		wf_tsan_release(at);
}

static inline void wf_user_acquires(void *at)
{
	if (wf_unlikely(wf_tsan_user))
		wf_tsan_acquire(at);
}
#endif

/* What this thread did so far, another process will hand on to who acquires @word. */
static inline void wf_far_hands_on(_Atomic uint64_t *word)
{
#if WF_TSAN
	__tsan_release(word);
#else
	(void)word;
#endif
}
#endif
