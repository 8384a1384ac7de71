/* wire.h - what the files of this room ask of one another, and what the job asks of it. */
#ifndef WF_WIRE_WIRE_H
#define WF_WIRE_WIRE_H

#include "port/route.h"
#include "wire/trunk.h"

struct wf_act;

#define WF_WIRE_PROTO 8u                /* bytes before a foreign header: which protocol it is of */

/* [one thread] This process, @process of the job, is to be reached by those of other hosts. @hosts: "10.0.0.1:2,10.0.0.2:2", processes by host, numbered from 1 on; @base: the first
 * port number on each; @key: the job's. 0, or why not. */
int wf_wire_join(uint32_t process, const char *hosts, uint32_t base, const struct wf_key *key, const uint8_t job[16]);
bool wf_wire_leave(weft_time until);                     /* [one thread] false: what was sent and not acknowledged then is lost */

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

/* arrive.c, likewise */
void wf_arrive_fetch(struct weft_port *p, struct weft_req *r);
int wf_arrive_pull(struct weft_port *p, struct weft_req *send, const struct wf_target *t);
void wf_arrive_answer(struct weft_req *send, int err);
uint64_t wf_arrive_offered(struct weft_req *send);
void wf_arrive_seek_locked(struct weft_port *p, const void *want);
void wf_arrive_abort(struct weft_port *p);
void wf_arrive_dead(uint32_t process, int err);          /* [no lock] what it announced is gone */

#endif
