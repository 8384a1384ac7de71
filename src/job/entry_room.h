/* entry_room.h - where spawners and entries of the job's processes talk: one port per process, of a context of weft's own, so that nothing of it
 * is ever seen at a port of the program's. And who is at work there: nobody, when wf_entries_close returns.
 *
 * One lock for everything that is about entries and spawned threads. It is the outermost: calls of weft that never wait are made under it. Whoever
 * waits posts his receive inside and waits outside; the port may be closed meanwhile, and the receive has ended then.
 */
#ifndef WF_JOB_ENTRY_ROOM_H
#define WF_JOB_ENTRY_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/msg.h>

#include "job/entry_msg.h"

#define WF_ENTRY_CHANNEL "weft: entries and who spawns threads there"

void wf_entry_lock(void);
void wf_entry_unlock(void);

/* [locked] The port, opened if need be. -ECANCELED: this process is leaving; and as weft_port_open. */
int wf_entry_port_locked(struct weft_port **ret_port);

/* [locked] Which life of this process in a job this is: what was begun in another is none of this one's business. */
uint64_t wf_entry_life_locked(void);

/* [locked] One more is at work: wf_entries_close waits for him. */
void wf_entry_busy_locked(void);
void wf_entry_idle_locked(void);

/* [locked] Sends @n bytes to process @to, and does not wait. */
int wf_entry_tell_locked(weft_id to, uint64_t tag, const void *bytes, size_t n);

/* [locked; entry.c] This process leaves: no entry counts any more. */
void wf_entries_forget_locked(void);

/* This process is leaving, and weft_fini closes the port of the calling thread: waits for that, a moment, so that the thread's own end does not
 * close it at the same time. */
void wf_entry_outlast(void);

/* The calling thread, spawned, ends now: the next that ends waits for it, or who closes. Ends its being busy. */
void wf_entry_thread_over(void);

#endif
