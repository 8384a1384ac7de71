/* self.h - the calling thread: its port, and what it is in the middle of. */
#ifndef WF_PORT_SELF_H
#define WF_PORT_SELF_H

#include "base/life.h"
#include "port/port.h"

struct wf_expect;
struct wf_routes;
struct wf_way_cache;

struct wf_self {
	struct weft_port *port;         /* NULL: has not joined */
	weft_id id;                     /* its port's; differs from the port's own word when that has closed */
	struct wf_expect *expects;      /* while it looks at the rails; NULL: nothing */
	struct wf_routes *routes;       /* where context ports are that it sent to */
	struct wf_way_cache *ways;      /* and ports of other processes; the last of them: */
	weft_id last_to;
	struct wf_way *last_way;
	uint16_t last_who;
	struct {                        /* the same for the member of a context's port it last sent to */
		const struct weft_port *from;
		weft_ctx context;       /* the port's then: never another's */
		weft_id to;             /* weft_at(i) */
		struct wf_way *way;
		uint16_t who;
	} last_at;
	struct {                        /* the id of another process it last asked to be told of, and by what it knows that it lives */
		weft_id id;
		struct wf_peer *peer;
		struct wf_board *board;
		uint64_t word;
	} watch;
	uint32_t claims;                /* of cells of other processes, by CAS */
	uint32_t owns;                  /* ports it has opened OWNED */
	uint32_t cold;                  /* receives left until its name is taken out of its own mailbox; 0: is not there */
	bool in_callback;
	bool spun;                      /* the hot path of this call has spun in vain */
	uint8_t abroad;                 /* a look at the rails found something: for so many waits they are looked at first, and nobody spins in memory */
	bool waiting;                   /* in a call that runs callbacks before it returns */
};

extern _Thread_local struct wf_self wf_self;

int wf_join(void);                      /* the slow way of wf_enter */
int wf_join_as(const char *name);

/* [one thread] The process leaves: from now on threads that end do not close their ports; those that are at it have done. False: it may be joined again. */
void wf_selves_leave(bool begin);

/* Whether the door of @p is this thread's: its own port, or one that it opened. relaxed: nobody sets it to our id but we. A thread that has not
 * joined has id 0, and is nobody's keeper. */
static inline bool wf_port_mine(struct weft_port *p)
{
	uint32_t keeper;

	if (wf_likely(p == wf_self.port))
		return true;
	keeper = atomic_load_explicit(&p->door.keeper, memory_order_relaxed);
	return keeper && keeper == (uint32_t)wf_self.id;
}

/* In and out of a port: what is grouped "under door" in it. */
static inline void wf_port_enter(struct weft_port *p)
{
	if (wf_likely(wf_port_mine(p)))
		wf_door_enter_owner(&p->door);
	else
		wf_door_enter_other(&p->door);
}

static inline void wf_port_leave(struct weft_port *p)
{
	if (wf_likely(wf_port_mine(p)))
		wf_door_leave_owner(&p->door);
	else
		wf_door_leave_other(&p->door);
}

/* The same for the hot paths, which ask once whether the door is theirs (@owner), or know it. */
static inline void wf_port_enter_hot(struct weft_port *p, bool owner)
{
	if (wf_likely(owner))
		wf_door_enter_owner(&p->door);
	else
		wf_door_enter_other(&p->door);
}

static inline void wf_port_leave_hot(struct weft_port *p, bool owner)
{
	if (wf_likely(owner))
		wf_door_leave_owner(&p->door);
	else
		wf_door_leave_other(&p->door);
}

/* [inside] Somebody waits to come in. */
static inline bool wf_port_wanted(struct weft_port *p, bool owner)
{
	if (wf_likely(owner))
		return wf_door_wanted(&p->door);
	return atomic_load_explicit(&p->door.others.wanted, memory_order_relaxed) != 0;
}

static inline void wf_assert_inside(struct weft_port *p)
{
	assert(atomic_load_explicit(&p->door.in, memory_order_relaxed) ||
	       atomic_load_explicit(&p->door.others.held, memory_order_relaxed));
	(void)p;
}

/* Every call that needs a thread begins with this: 0, and wf_self.port is open. */
static inline int wf_enter(void)
{
	struct weft_port *p = wf_self.port;

	/* relaxed: only this thread opens its port, and who closes it from outside is weft_fini. */
	if (wf_likely(p && atomic_load_explicit(&p->id, memory_order_relaxed) == wf_self.id))
		return 0;
	return wf_join();
}

/* Is that so already? */
static inline bool wf_entered(void)
{
	struct weft_port *p = wf_self.port;

	return wf_likely(p && atomic_load_explicit(&p->id, memory_order_relaxed) == wf_self.id);
}

#endif
