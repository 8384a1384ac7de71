/* pipe.c - see pipe.h. */
#include "port/pipe.h"

#include <stdlib.h>
#include <string.h>

#include "mem/buf.h"
#include "mem/bury.h"
#include "net/local/peer.h"
#include "port/request.h"

#define EARLY 2                 /* pipes to one process that hold what nobody has taken yet */
#define PIPES 8                 /* pipes to one process in all */

static struct wf_pipe *free_pipes[WF_PROCESSES];        /* under wf_user_lock; 0: of dead ones, for anybody */
static struct { uint16_t all, early; } pipes_to[WF_PROCESSES];

static struct wf_pipe *pipe_new(void)
{
	struct wf_pipe *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	if (wf_buf_alloc(sizeof(struct wf_pipe_head), &p->head_buf) < 0)
		goto undo;
	if (wf_buf_alloc(WF_CHUNKS * WF_CHUNK, &p->data_buf) < 0) {
		wf_buf_release(p->head_buf);
		goto undo;
	}
	wf_buf_stands(p->head_buf, true);
	wf_buf_stands(p->data_buf, true);
	p->head = p->head_buf->data;
	p->data = p->data_buf->data;
	memset(p->head, 0, sizeof(*p->head));
	return p;
undo:
	free(p);
	return NULL;
}

struct wf_pipe *wf_pipe_get_locked(uint32_t process, bool taken, bool *ret_never)
{
	struct wf_pipe *p = NULL;

	*ret_never = false;
	if (pipes_to[process].all < PIPES && (taken || pipes_to[process].early < EARLY)) {
		struct wf_pipe **from = free_pipes[process] ? &free_pipes[process] : &free_pipes[0];

		p = *from;
		if (p)
			*from = p->next;
		else
			p = pipe_new();
		*ret_never = !p && !pipes_to[process].all;
	}
	if (p) {
		pipes_to[process].all++;
		pipes_to[process].early += !taken;
	}
	return p;
}

void wf_pipe_put_locked(struct wf_pipe *p, uint32_t process, bool early)
{
	pipes_to[process].all--;
	pipes_to[process].early -= early;
	/* relaxed: nobody reads it now; the next message goes on from here. */
	atomic_store_explicit(&p->head->read, p->written, memory_order_relaxed);
	p->read = p->written;
	if (wf_peer_died(process))
		process = 0;
	p->next = free_pipes[process];
	free_pipes[process] = p;
}

struct wf_pipe *wf_pipe_keep_locked(void)
{
	struct wf_pipe *p = free_pipes[0];

	if (p)
		free_pipes[0] = p->next;
	return p ? p : pipe_new();
}

void wf_pipe_drop_locked(struct wf_pipe *p)
{
	atomic_store_explicit(&p->head->read, p->written, memory_order_relaxed);        /* as above */
	p->read = p->written;
	p->next = free_pipes[0];
	free_pipes[0] = p;
}

void wf_pipes_dead(uint32_t process)
{
	struct wf_pipe *p;

	wf_lock(&wf_user_lock);
	while ((p = free_pipes[process]) != NULL) {
		free_pipes[process] = p->next;
		p->next = free_pipes[0];
		free_pipes[0] = p;
	}
	wf_unlock(&wf_user_lock);
}

struct wf_pipe_place wf_pipe_place(const struct wf_pipe *p, uint32_t base)
{
	return (struct wf_pipe_place){ .head = wf_f_place_of(p->head), .data = wf_f_place_of(p->data), .base = base };
}

char *wf_pipe_chunk(struct wf_pipe *p)
{
	if (p->written - p->read >= WF_CHUNKS) {
		uint32_t read = atomic_load_explicit(&p->head->read, memory_order_acquire);    /* K4 */

		if (p->written - read >= WF_CHUNKS)     /* full, or a lie */
			return NULL;
		p->read = read;
	}
	return p->data + p->written % WF_CHUNKS * WF_CHUNK;
}

void wf_pipe_filled(struct wf_pipe *p)
{
	atomic_store_explicit(&p->head->chunk[p->written % WF_CHUNKS].seq, p->written + 1, memory_order_release);      /* K3 */
	p->written++;
}

void wf_pipe_insist(struct wf_pipe *p, uint32_t base)
{
	uint32_t n = p->written - base;

	for (uint32_t i = p->written - (n < WF_CHUNKS ? n : WF_CHUNKS); i != p->written; i++)
		atomic_store_explicit(&p->head->chunk[i % WF_CHUNKS].seq, i + 1, memory_order_release);        /* K3, as before */
}
