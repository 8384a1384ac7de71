/* server.h - whoever serves the directory: entities, indexes, watches, and what each client has been told.
 *
 * Sans-I/O: no clock, no lock, no thread, no socket; one caller at a time. A client is a process of the job; what it says comes in by
 * wf_dir_server_take, what it is told goes out by the hook emit, in order. A host and who is on it are told by the caller, who knows. A client can only say of
 * itself what it likes: entities of its own process.
 *
 * A server begins ready (the job's first) or gathering (it takes over): then every client that joins is told MOVED, says again what it
 * owns (AGAIN, SET..., HELD); look-ups are answered -EAGAIN until the caller says wf_dir_server_gathered, and everybody is told READY. Who joins
 * one that has taken over after that is told both at once.
 */
#ifndef WF_DIR_SERVER_H
#define WF_DIR_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/id.h>

struct wf_dir_server;

/* Of one client: beyond it that client alone is refused (-ENOBUFS). Its library knows the same numbers and does not try. */
#define WF_DIR_MOST_ENTITIES 16384u
#define WF_DIR_MOST_BYTES (8u << 20)            /* of names and attributes, as they are kept */
#define WF_DIR_MOST_WATCHES 1024u               /* watches and finds that wait */
#define WF_DIR_MOST_KEPT 4096u                  /* answers it may keep: beyond it the oldest is called back */

struct wf_dir_hooks {
	/* @process, a client, is told @msg. Calls nothing of the server. */
	void (*emit)(void *ctx, weft_id process, const void *msg, size_t len);
	void *ctx;
};

/* @epoch grows with each takeover; the first is 1. NULL: no memory. */
struct wf_dir_server *wf_dir_server_new(const struct wf_dir_hooks *hooks, uint32_t epoch, bool gathering);
void wf_dir_server_free(struct wf_dir_server *s);

/* A host: @host is the process id of its agent, @attrs words as of weft_dir_set, or NULL. What a name may not have becomes '_'.
 * -EEXIST, -EINVAL, -ENOMEM. */
int wf_dir_server_host(struct wf_dir_server *s, weft_id host, const char *name, const char *attrs);

/* The host is gone, with all clients on it. */
void wf_dir_server_host_gone(struct wf_dir_server *s, weft_id host);

/* A process is there, on @host; from now on it may say something. -EEXIST, -ESRCH: no such host, -ENOMEM. */
int wf_dir_server_join(struct wf_dir_server *s, weft_id process, weft_id host);

/* It has left or is dead: its entities leave, and nothing more is emitted to it. */
void wf_dir_server_gone(struct wf_dir_server *s, weft_id process);

/* What a client says. -ESRCH: it has not joined; -EBADMSG: no message of a directory: it is out of its mind, and nothing has happened. */
int wf_dir_server_take(struct wf_dir_server *s, weft_id process, const void *msg, size_t len);

/* Gathering: how many of those who have joined have not said HELD. */
uint32_t wf_dir_server_missing(const struct wf_dir_server *s);
void wf_dir_server_gathered(struct wf_dir_server *s);

/* For whoever sits beside the server (weft ls, weft ps): fn(arg, id) of each that matches @query, in order; how many; -EINVAL: no query
 * (@ret_why, if not NULL: a constant text). -EAGAIN: gathering; -ENOMEM. */
int wf_dir_server_each(struct wf_dir_server *s, const char *query, void (*fn)(void *arg, weft_id id), void *arg, const char **ret_why);

/* Key of @id as weft_dir_get writes it; its length, -ESRCH, -ENOENT. */
int wf_dir_server_get(struct wf_dir_server *s, weft_id id, const char *key, char *ret_text, size_t n);

/* For another job that is attached to this one: what @offer, a query, matches, and nothing else. -EAGAIN: gathering; -EINVAL: no query; -ENOMEM. */
/* Those of them that match @query too: how many, the first @max in @ret_ids. */
int wf_dir_offered_find(struct wf_dir_server *s, const char *offer, const char *query, weft_id *ret_ids, uint32_t max);
/* As wf_dir_server_get; -ESRCH also of what is there and was not offered. */
int wf_dir_offered_get(struct wf_dir_server *s, const char *offer, weft_id id, const char *key, char *ret_text, size_t n);
/* Whether @process, or a thread or port of it, is among them: 1, 0. */
int wf_dir_offered_process(struct wf_dir_server *s, const char *offer, weft_id process);

struct wf_dir_figures {
	uint64_t clients, entities, tags, watches, kept;
	uint64_t bytes;                 /* all memory it has asked for */
};
struct wf_dir_figures wf_dir_server_figures(struct wf_dir_server *s);

#endif
