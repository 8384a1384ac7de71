/* wire.h - what the files of this room ask of one another, and what the job asks of it. */
#ifndef WF_WIRE_WIRE_H
#define WF_WIRE_WIRE_H

#include "port/route.h"
#include "wire/trunk.h"

struct wf_act;

#define WF_WIRE_AT 96u                  /* room for where a process is, as text */
#define WF_WIRE_PROTO 8u                /* bytes before a foreign header: which protocol it is of */

/* What the job tells this room. */
struct wf_wire_self {
	uint32_t process, count;                /* this one; about how many there will be */
	const struct wf_key *key;               /* the job's */
	uint8_t job[16];
	const char *adapter;                    /* an address of this host, where others reach it; the knob rails overrides it */
	uint32_t ports, ports_last;             /* where to listen */
	int (*where)(uint32_t process, char *ret_at, size_t n); /* as wf_link_where; under any lock */
	int (*treaty)(uint32_t alias, struct wf_treaty *ret);   /* what the agent knows of another job: 0, -ESRCH; under any lock. NULL: only what is told (treaty.h) */
};

/* [one thread] This process is to be reached by those of other hosts. *@ret_at: where it is. 0, or why not. */
int wf_wire_join(const struct wf_wire_self *self, char *ret_at, size_t n);
bool wf_wire_leave(weft_time until);                     /* [one thread] false: what was sent and not acknowledged then is lost */

/* [no lock] What the agents say of a process of another host. */
void wf_wire_joined(uint32_t process);                   /* it says where it is, now */
void wf_wire_dead(uint32_t process);                     /* it is dead, or has left */

/* [any] Its acts are to be carried out soon, by whoever polls. */
void wf_trunk_kick(struct wf_trunk *t);

/* depart.c, for the table of route.h */
int wf_depart_lives(weft_id id);
bool wf_depart_brisk(struct weft_port *from, weft_id to, uint64_t tag, const void *data, size_t len);
int wf_depart_now(struct outgoing *o);
int wf_depart(struct outgoing *o, struct weft_req *r);
int wf_depart_cancel_locked(struct weft_req *r, int err);
void wf_depart_sought(struct wf_trunk *t, const struct wf_act *a);

/* watch.c, likewise */
int wf_watch_abroad(weft_id id);
void wf_watch_ended(weft_id id);

/* arrive.c, arrive_land.c, arrive_kept.c, likewise */
void wf_arrive_fetch(struct weft_port *p, struct weft_req *r);
int wf_arrive_pull(struct weft_port *p, struct weft_req *send, const struct wf_target *t);
void wf_arrive_answer(struct weft_req *send, int err);
uint64_t wf_arrive_offered(struct weft_req *send);
void wf_arrive_seek_locked(struct weft_port *p, const struct weft_match_entry *e);
uint32_t wf_arrive_keepers(weft_id id, weft_ctx context);
void wf_arrive_abort(struct weft_port *p);
void wf_arrive_dead(uint32_t process, int err);          /* [no lock] what it announced is gone */

#endif
