/* wrap.h - drivers around drivers: what they share.
 *
 * A wrapper is a driver whose rails and lanes hold those of another one. This room's base passes everything through, down and up; a wrapper
 * fills in a struct wf_wrap, puts its own slots and upcalls where it wants to interfere, and calls the base for the rest.
 *
 *     core  --slots-->  wrapper's slot  --wf_wrap_send(...)-->  inner driver
 *     core  <--upcalls--  wrapper's upcall  <----------------  inner driver
 *
 * A lane that is closed inside one of its upcalls stays until that upcall has returned: `busy` counts them. They all run in
 * the polling thread, and who closes from another thread has waited for them, so it needs no lock.
 */
#ifndef WF_NET_WRAP_WRAP_H
#define WF_NET_WRAP_WRAP_H

#include <stdbool.h>
#include <stdio.h>

#include "net/registry.h"

struct wf_wrap;

struct wf_wrap_rail {
	const struct weft_driver *in;   /* the inner driver's slots */
	const struct wf_wrap *wrap;
	void *state;                    /* the inner rail */
	const struct weft_upcalls *up;  /* the core's */
	void *cookie;
	struct weft_rail_info info;
};

struct wf_wrap_lane {
	struct wf_wrap_rail *rail;
	void *state;                    /* the inner lane; NULL: ended by the wrapper */
	void *cookie;
	int busy;                       /* upcalls of it under way */
	bool closed;                    /* goes when they are over */
};

struct wf_wrap {
	struct weft_driver slots;       /* first: found again from `self` */
	struct weft_upcalls ups;
	const struct wf_driver *inner;
	size_t rail_size, lane_size;    /* of what begins with the structs above; zeroed */
	int (*rail_init)(struct wf_wrap_rail *rail, const struct weft_rail_conf *conf);         /* NULL: nothing to do */
	void (*rail_fini)(struct wf_wrap_rail *rail);
	void (*lane_init)(struct wf_wrap_lane *lane);           /* before anything of it is told */
	void (*lane_fini)(struct wf_wrap_lane *lane);           /* when nothing more will be */
};

extern const struct wf_wrapper wf_lossy_wrapper, wf_trace_wrapper, wf_mrstrict_wrapper;

/* [any] A wrapper that passes everything through, called @name; NULL: out of memory. */
struct wf_wrap *wf_wrap_new(const struct wf_driver *inner, const char *name, size_t rail_size, size_t lane_size);

/* The base's slots and upcalls, for wrappers that did their part. */
int wf_wrap_lane_open(void *rail, const struct weft_addr *to, int klass, void *cookie, void **ret_lane);
void wf_wrap_lane_close(void *lane);
ssize_t wf_wrap_send(void *lane, const struct weft_out *out);
int wf_wrap_poll(void *rail, int budget, unsigned flags);
int wf_wrap_provide(void *rail, struct weft_room *const *rooms, int n);

int wf_wrap_incoming(void *rail, void *driver_lane, const struct weft_addr *from, void **ret_lane);
void wf_wrap_up(void *lane);
void wf_wrap_down(void *lane, int err);
ssize_t wf_wrap_take(void *lane, void *bytes, size_t len, struct weft_need *need);
int wf_wrap_placed(void *lane, size_t got, struct weft_need *need);
void wf_wrap_frame(void *rail, void *lane, const struct weft_addr *from, struct weft_room *room, size_t len);
void wf_wrap_writable(void *lane);
void wf_wrap_sent(void *rail, void *token, int err);

/* Around an upcall of @lane. The second tells whether the lane is still there: if not, it may be gone from memory. */
static inline void wf_wrap_enter(struct wf_wrap_lane *lane)
{
	lane->busy++;
}
bool wf_wrap_leave(struct wf_wrap_lane *lane);

/* "name.key=number" for each of @n keys of @name's options. Those not there keep their value. -EINVAL: an unknown key, no number. */
struct wf_wrap_option {
	const char *key;
	uint64_t *value;
};
int wf_wrap_options(const char *text, const char *name, const struct wf_wrap_option *options, size_t n);

/* The events of a rail of the trace wrapper, oldest first. */
void wf_trace_print(const void *rail, FILE *to);

#endif
