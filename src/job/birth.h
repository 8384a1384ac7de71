/* birth.h - what the first process of a host and the agent it has started say to each other, until the processes that a launcher started are a job.
 *
 *   first                                        agent
 *     starts it -------------------------------->
 *     <------------------------------------------ HELLO
 *     TASK ------------------------------------->
 *     several hosts:
 *       <---------------------------------------- CARD        the first puts it in the launcher's space
 *       rank 0: SEAL ---------------------------->            for each other first, whose card is there
 *       <---------------------------------------- SEALED      put as well
 *       others: OPEN ---------------------------->
 *     BEGIN ------------------------------------>
 *     <------------------------------------------ DOOR        put
 *     several hosts:
 *       MEMBER ... START ------------------------>
 *       <---------------------------------------- STARTED
 *
 * A packet of a SOCK_SEQPACKET socket is a kind (u32) and its body (body.h). Both ends are of one version: HELLO says which. FAILED may come in the place of any answer.
 * Secrets stay in the agent: what goes through here is what is put, or was got.
 */
#ifndef WF_JOB_BIRTH_H
#define WF_JOB_BIRTH_H

#include <stdint.h>
#include <weft/base.h>

#include "job/body.h"

#define WF_BIRTH_ROOM 8192u             /* bytes of a body, at most */
#define WF_BIRTH_LIMIT 60               /* seconds until all have come: WEFT_START_S */

enum wf_birth {
	/* from the agent */
	WF_BIRTH_FAILED = 1,            /* u32 errno, text why; NULL: it could not be executed */
	WF_BIRTH_HELLO,                 /* text version */
	WF_BIRTH_CARD,                  /* text, as wf_pact_card_write's */
	WF_BIRTH_SEALED,                /* text, as wf_pact_seal's */
	WF_BIRTH_DOOR,                  /* text: the card once more, with the door and where other agents reach this one */
	WF_BIRTH_STARTED,

	/* to the agent */
	WF_BIRTH_TASK,                  /* u32 rank of the first, text the launcher's name of the job, u32 size, u32 host of each rank */
	WF_BIRTH_SEAL,                  /* u32 rank, text its card */
	WF_BIRTH_OPEN,                  /* text card of rank 0's agent, text what was sealed */
	WF_BIRTH_BEGIN,
	WF_BIRTH_MEMBER,                /* u32 rank of a first, text what it has put as its door */
	WF_BIRTH_START,                 /* all members were told */
};

/* [any] 0; -ECONNRESET: the other end is gone. @body NULL: there is none. */
int wf_birth_say(int sock, enum wf_birth kind, const struct wf_body *body);

/* [any] The next packet, its body in @room. 0; -ECONNRESET: the other end is gone, or has sent nonsense; -ETIMEDOUT; -EAGAIN: nothing is there (WEFT_NOW). */
int wf_birth_hear(int sock, weft_time until, enum wf_birth *ret_kind, struct wf_body *ret_body, uint8_t room[WF_BIRTH_ROOM]);

/* [any] In ns: how long processes wait for one another. -EINVAL: WEFT_START_S makes no sense. */
int64_t wf_birth_limit(void);

#endif
