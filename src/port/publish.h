/* publish.h - what the directory (src/dir, which stands above) is told of threads and ports of this process. */
#ifndef WF_PORT_PUBLISH_H
#define WF_PORT_PUBLISH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <weft/id.h>

struct wf_publisher {
	void (*named)(weft_id id, bool thread, const char *name);       /* it is open, and found by its id */
	void (*ended)(weft_id id);                                      /* it is no longer; also of other processes' */
	uint64_t (*messages)(void);                                     /* to and from whoever serves, so far */
};

/* NULL: there is no directory. acquire: what wf_dir_open has set up. */
extern const struct wf_publisher *_Atomic wf_publisher;

static inline void wf_publish_named(weft_id id, bool thread, const char *name)
{
	const struct wf_publisher *p = atomic_load_explicit(&wf_publisher, memory_order_acquire);

	if (p && name && *name)
		p->named(id, thread, name);
}

static inline void wf_publish_ended(weft_id id)
{
	const struct wf_publisher *p = atomic_load_explicit(&wf_publisher, memory_order_acquire);

	if (p)
		p->ended(id);
}

static inline uint64_t wf_publisher_messages(void)
{
	const struct wf_publisher *p = atomic_load_explicit(&wf_publisher, memory_order_acquire);

	return p ? p->messages() : 0;
}

#endif
