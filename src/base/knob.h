/* knob.h - settings for which two values are each right for someone and weft cannot tell which.
 *
 * One table here; each row is a number any thread may read (relaxed: a stale value is an old
 * setting for a moment), or a text. Set by the environment (WEFT_SPIN_NS=0), by weft_init's knobs string, or
 * by weft_knob_set; rows marked fixed only until weft_init has returned.
 */
#ifndef WF_BASE_KNOB_H
#define WF_BASE_KNOB_H

#include <stdatomic.h>
#include <stdint.h>

enum wf_knob {
	WF_KNOB_SPIN_NS,        /* how long a waiter looks before it asks whether others want the core */
	WF_KNOB_ALONE_NS,       /* how long it goes on looking when nobody does */
	WF_KNOB_YIELDS,         /* how often it yields when somebody does */
	WF_KNOB_EAGER,          /* up to this size a send is copied and done */
	WF_KNOB_BUDGET,         /* bytes for messages nobody asked for yet */
	WF_KNOB_POOL,           /* bytes of buffers the pool may grow to */
	WF_KNOB_MEMBARRIER,     /* use membarrier(2) */
	WF_KNOB_LOG,            /* log level */
	WF_KNOB_SECURE,         /* 0 full, 1 auth, 2 sum: in the order of enum wf_mode (secure/handshake.h) */
	WF_KNOB_RAILS,          /* a text: net/choose.h */
	WF_KNOB_CONGESTION,     /* a text: a name, "system", or empty; for the first driver built in */
	WF_KNOB_SILENCE,        /* ms after which a process of another host counts as gone */
	WF_KNOBS
};

extern _Atomic int64_t wf_knob_value[WF_KNOBS];

static inline int64_t wf_knob(enum wf_knob k)
{
	return atomic_load_explicit(&wf_knob_value[k], memory_order_relaxed);
}

#define WF_KNOB_TEXT 128                /* with its end */
const char *wf_knob_name(enum wf_knob k);
const char *wf_knob_text(enum wf_knob k);       /* of one whose value is a text: "" if it is not set */

/* Defaults, then the environment, then @text. Variables that look like weft's and are not are told in the log, the first time. */
int wf_knob_init(const char *text);
void wf_knob_fix(int fixed);            /* from now on (or no more) the fixed ones answer -EROFS */

/* All there is to say about one. */
enum wf_origin { WF_BY_DEFAULT, WF_BY_ENVIRONMENT, WF_BY_CALL };
struct wf_knob_view {
	const char *name, *unit, *what;
	const char *choices;            /* the words it can be, with blanks between them; NULL: it is a number, or a text */
	int fixed;
	enum wf_origin origin;
	char value[WF_KNOB_TEXT], otherwise[WF_KNOB_TEXT];      /* as they could be set */
};
void wf_knob_view(enum wf_knob k, struct wf_knob_view *ret_view);

#endif
