/* embassy.h - an agent and other jobs: what is offered to them, which are attached, and what is asked of them.
 *
 *     agents of this job          the agents that met first          agents of the other job
 *            a  <----mesh---->  embassy  <====weft, by a treaty====>  embassy  <----mesh---->  b
 *
 * An offer is a treaty that only its embassy knows, made of the url's secret: who has the url speaks by it once, and gets the treaty proper, which every agent is told, and every process by
 * its agent. For as long as the two jobs are attached the two embassies keep in touch, and carry questions: where a process is, who is in the directory (consul.c). If they lose each other, or the
 * host of either, the jobs are no longer attached.
 *
 * The launcher gives the numbers by which a job calls others, 1 to TREATY_ALIASES - 1; above are those of offers, and of urls that are tried out, which are each agent's own.
 */
#ifndef EMBASSY_H
#define EMBASSY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hostlist.h"
#include "job/body.h"
#include "job/envoy.h"
#include "job/frames.h"
#include "wire/treaty.h"

#define TREATY_ALIASES 1024u

struct agent;
struct place;
struct weft_status;

/* Where a process of the other job is, as far as it was asked. */
struct abode {
	char at[WF_AT_TEXT];            /* "": not known yet */
	int64_t ask;                    /* when to ask again; 0: not asked */
};

/* Another job. */
struct treaty {
	bool up;
	struct wf_treaty wire;
	uint32_t host;                  /* of this job's embassy for it */
	char *offer;                    /* what it may see, a query; NULL: nothing, it was this job that attached */
	uint8_t by[16];                 /* the id of the offer that it was made by */
	struct abode *abodes;           /* by process, WF_AGENTS of them; NULL: nobody has asked */
	unsigned asking;                /* abodes without an answer */
	/* at the embassy */
	uint32_t other;                 /* process number of the other embassy */
	int64_t heard;
};

/* Processes of this host. */
int embassy_asked(struct agent *a, struct place *p, uint32_t alias, const void *msg, size_t n);         /* 0: the answer comes later; -EBADMSG: nonsense; or why not */
void embassy_treaty(uint32_t alias, struct wf_frame_treaty *ret);
int embassy_where(struct agent *a, uint32_t process, char *ret_at);      /* of another job's: 0; -EAGAIN: WF_NOTE_JOINED or _DEAD will come; -ESRCH */
void embassy_joined(struct agent *a, struct place *p);                  /* is told of all treaties */
void embassy_gone(struct agent *a, uint32_t process);                   /* its offers end */

/* Agents: where one of another job is [any thread]; what one of this job says, what others say by weft; those that come and go. */
int embassy_place(uint32_t process, char *ret_at, size_t n);
void embassy_heard(struct agent *a, uint32_t host, struct wf_body *b);
void embassy_said(struct agent *a, const struct weft_status *st);
void embassy_host(struct agent *a, uint32_t host);
void embassy_host_gone(struct agent *a, uint32_t host);
uint32_t embassy_last(void);                            /* the highest number that another job has or had; 0: none */
bool embassy_number(struct agent *a, uint32_t ticket, uint32_t number); /* for another job; false: the ticket is none of these; number 0: there are no more */

void embassy_event(struct agent *a);                    /* something that was sent has arrived, or has not */
int64_t embassy_next(const struct agent *a);            /* when to look again; 0: never */
void embassy_look(struct agent *a, int64_t now);
void embassy_close(struct agent *a);                    /* the job ends: the others are told */

/* Between embassy.c, draft.c, courier.c and consul.c. */
enum embassy {
	EMBASSY_TREATY = 1,             /* u32 alias, u32 side, id, key under a pad, by, text what is offered */
	EMBASSY_KNOWN,                  /* u32 alias */
	EMBASSY_OVER,                   /* u32 alias */
	EMBASSY_ASK,                    /* u32 alias, a message: for the other job */
	EMBASSY_TELL,                   /* u32 alias, a message: an answer of the other job for this host; alias 0: of what became of ATTACH */
	EMBASSY_LOOK,                   /* u32 alias, text what is offered, a message: for who serves the directory */
	EMBASSY_SEEN,                   /* u32 alias, a message: its answer, for the embassy */
	EMBASSY_ATTACH,                 /* u32 0, a message: for who serves the directory, to attach */
};
struct treaty *embassy_find(uint32_t alias);            /* NULL: none, or no longer */
struct treaty *embassy_each(uint32_t *at);              /* from *at = 0 on; NULL: no more */
void embassy_mesh(struct agent *a, uint32_t host, enum embassy what, uint32_t alias, const char *offer, const struct wf_envoy *e);
void embassy_send(struct agent *a, struct treaty *t, const struct wf_envoy *e);         /* over the treaty; this is its embassy */
void embassy_answer(struct agent *a, uint32_t process, uint32_t alias, const struct wf_envoy *e);

void embassy_tell(struct agent *a, const struct wf_route *to, int err, uint32_t number, const char *text);      /* ANSWER to a process of any host */
struct treaty *embassy_make(struct agent *a, const struct wf_treaty *wire, uint32_t host, const uint8_t by[16], char *offer);    /* NULL: no room. Takes @offer in any case */
void embassy_over(struct agent *a, struct treaty *t);                                    /* no longer attached */
void embassy_spread(struct agent *a, uint32_t host, const struct treaty *t);           /* that agent is to know it */

/* courier.c */
#define DRAFTS 32u                      /* treaties in the making at a time */
bool courier_ready(struct agent *a);
void courier_place(uint32_t process, const char *at);   /* embassy_place finds it there; of treaties and drafts alone: there is room */
void courier_forget(uint32_t process);
int courier_say(struct agent *a, uint64_t to, const struct wf_envoy *e, uint32_t ticket, bool farewell);       /* ticket: draft_knocked is to tell when it was heard */
void courier_close(void);

/* draft.c */
void draft_offer(struct agent *a, const struct wf_route *by, const char *query);
void draft_attach(struct agent *a, const struct wf_route *by, const struct wf_envoy *e);
void draft_attach_here(struct agent *a, const struct wf_route *by, const char *text);
void draft_passed(struct agent *a, uint32_t host, const struct wf_envoy *e);
void draft_knocked(struct agent *a, uint32_t ticket, int err);
void draft_said(struct agent *a, uint64_t from, const struct wf_envoy *e);              /* by an offer, ours or theirs */
void draft_known(struct agent *a, uint32_t host, uint32_t alias);                       /* that agent knows it */
void draft_host_gone(struct agent *a, uint32_t host);
void draft_numbers_ask(struct agent *a);                /* again, those that have not come */
bool draft_busy(void);
void draft_look(struct agent *a, int64_t now);

/* consul.c */
int consul_ask(struct agent *a, struct treaty *t, struct wf_envoy *e);                  /* of this host, for the other job */
void consul_asked(struct agent *a, struct treaty *t, const struct wf_envoy *e);         /* [embassy] the other job asks, or answers */
void consul_told(struct agent *a, struct treaty *t, const struct wf_envoy *e);          /* an answer for this host */
void consul_look_up(struct agent *a, uint32_t host, uint32_t alias, const char *offer, const struct wf_envoy *e);  /* [who serves the directory] */
void consul_seen(struct agent *a, struct treaty *t, const struct wf_envoy *e);          /* [embassy] what that answers */
int consul_where(struct agent *a, struct treaty *t, uint32_t process, char *ret_at);
void consul_look(struct agent *a, struct treaty *t, int64_t now);                       /* asks again */

#endif
