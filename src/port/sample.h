/* sample.h - a sample of what goes on in a process: items, whoever took it.
 *
 * state.c takes one of this process, state_far.c of another.
 */
#ifndef WF_PORT_SAMPLE_H
#define WF_PORT_SAMPLE_H

#include <weft/state.h>

#include "base/roots.h"
#include "port/port.h"

struct wf_remote;

struct weft_state {
	size_t count, room, next;
	size_t port;                            /* where the items of the port begin that is looked at */
	bool short_of_memory;
	struct weft_state_item *items;
};

void wf_sample_add(struct weft_state *s, uint32_t kind, weft_id who, weft_id whom, uint64_t tag, uint64_t len, const char *text);

/* A port; what it has queued: @a is a message, or the want of a receive of @len bytes. */
void wf_sample_port(struct weft_state *s, const struct weft_port *p, weft_id id, weft_id process);
void wf_sample_queued(struct weft_state *s, weft_id id, int side, bool foreign, const struct wf_arrival *a, size_t len);

/* Thread @who sleeps until @r ends, a send or a receive at port @at. Of a receive by a foreign header nobody knows whom it wants: nothing. */
void wf_sample_awaited(struct weft_state *s, weft_id who, weft_id at, bool foreign, const struct weft_req *r);

/* Thread @who sleeps at port @at, the one that is looked at: for none of the receives that were shown, or they tell it already. */
void wf_sample_waiter(struct weft_state *s, weft_id who, weft_id at);

/* Thread @who sleeps at port @at in @w, a probe for @want, a struct wf_head (NULL: by a foreign header, or it cannot be read), or a receive that looks as if it were posted. */
void wf_sample_looker(struct weft_state *s, weft_id who, weft_id at, const struct wf_waiter *w, const void *want);

/* How memory is read: @n bytes at @at into @to. False: there is nothing. */
struct wf_memory {
	bool (*read)(void *arg, uint64_t at, void *to, size_t n);
	void *arg;
};

/* What is no port's: budget and buffers, the other processes, what waits to be written to them. @roots were checked. */
void wf_sample_process(struct weft_state *s, const struct wf_roots *roots, const struct wf_memory *mem);

/* state_abroad.c: process @process of another host, of the job that @roots are of; what the remote of it said when it was read, if there is one. */
void wf_sample_strangers(struct weft_state *s, const struct wf_roots *roots, const struct wf_memory *mem);      /* how many were refused, if any */
void wf_sample_abroad(struct weft_state *s, const struct wf_roots *roots, const struct wf_memory *mem, uint32_t process);
void wf_sample_foreign(struct weft_state *s, const struct wf_roots *roots, const struct wf_memory *mem);        /* all processes of other jobs that were spoken to */
bool wf_sample_remote(const struct wf_roots *roots, const struct wf_memory *mem, uint32_t process, struct wf_remote *ret_remote);
bool wf_sample_near(const struct wf_roots *roots, const struct wf_memory *mem, uint32_t process);

/* A sample of process @pid, another one: 0; -ESRCH; -EPERM; -ENOENT: no weft in it; -EPROTO: of another make; -ENOMEM.
 * Needs no weft_init. */
int wf_sample_far(pid_t pid, struct weft_state **ret_state);

/* [one thread, at init] Others may look from now on. */
void wf_state_show(void);

#endif
