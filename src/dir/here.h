/* here.h - the directory as this process has it: one client, one lock. Between here.c and the calls.
 *
 * dir_lock covers the client and, in a job of one, the server. Below it: wf_user_lock (requests), and what link.send takes.
 */
#ifndef WF_DIR_HERE_H
#define WF_DIR_HERE_H

#include "dir/client.h"
#include "port/port.h"

/* [any] In: the lock is held, and the process itself is published. -ENOTCONN: there is no directory; -ENOMEM. */
int wf_dir_enter(void);
void wf_dir_pump(void);         /* [inside] what can come without waiting has come */
void wf_dir_leave(void);        /* pumps first */
void wf_dir_enter_raw(void);    /* for who has something open here: in any case */
bool wf_dir_alone(void);        /* [inside] a job of one: whatever is asked is answered by wf_dir_pump */
struct wf_dir_client *wf_dir_client(void);

int wf_dir_check(const char *query);            /* [any] 0, or why it is none, with words */

/* calls.c */
void wf_dir_answered(void *ctx, struct wf_dir_ask *ask);

/* [inside] ahead.c */
void wf_dir_answered_ahead(void *ctx, struct wf_dir_ask *ask);
bool wf_dir_take_ahead(struct wf_dir_ask *ask); /* moves an answer that came meanwhile to it, once */
void wf_dir_forget_ahead(void);

/* watch_call.c */
void wf_dir_event(void *ctx, struct wf_dir_watching *w, int what, weft_id id);
void wf_dir_watch_over(void *ctx, struct wf_dir_watching *w, int err);
void wf_dir_reap(struct wf_dir_client *c);      /* [inside] watches whose requests have ended; NULL: the client is gone */

#endif
