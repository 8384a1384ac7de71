/* client.h - one process's side of the directory: what it has published, what it has asked, what it keeps of the answers, what it watches.
 *
 * Sans-I/O, as server.h: no lock, no clock; one caller at a time. Messages go out by the hook send; what does not go now waits in the
 * outbox. When another serves (MOVED) everything published is said again, and what is open is asked again; a watch then tells the differences.
 *
 * An answer that the server lets it keep is used until INVALID or STALE comes. What this process has set itself is never answered from
 * before that: entities have versions, and finds are not kept across a set of our own.
 */
#ifndef WF_DIR_CLIENT_H
#define WF_DIR_CLIENT_H

#include "base/list.h"
#include "dir/hash.h"
#include "dir/msg.h"

enum wf_dir_use { WF_DIR_USE_GET, WF_DIR_USE_FIND, WF_DIR_USE_KEPT, WF_DIR_USE_WATCH };

/* Whatever has a number: what the server says of it is found by that. */
struct wf_dir_numbered {
	struct wf_hnode by;
	struct wf_node all;             /* of its use */
	uint32_t number;
	enum wf_dir_use use;
	bool sent;                      /* the present server knows it */
};

/* A look-up under way. The caller's, in the client's hands until it is answered or taken back. */
struct wf_dir_ask {
	struct wf_dir_numbered n;
	bool orphan;                    /* nobody waits: malloc'ed, for the sake of the answer that may be kept */
	weft_id id;                     /* get */
	char *query;                    /* find: malloc'ed, the client's from then on */
	uint32_t want, max;
	uint64_t sets;                  /* those of our own before it was sent */
	void *user;
	/* the answer */
	int err;
	const struct wf_dir_msg *entity;        /* until answered returns */
	weft_id *ids;                   /* malloc'ed, whoever has the ask frees it */
	uint32_t got, total;
};

struct wf_dir_watching {
	struct wf_dir_numbered n;
	char *query;                    /* malloc'ed, the client's */
	struct wf_hash known;           /* whom it has told as there */
	uint32_t round;                 /* grows with each server asked */
	void *user;
};

struct wf_dir_client_hooks {
	int (*send)(void *ctx, const void *msg, size_t len);                                    /* as struct wf_dir_link's */
	/* The client may be called from neither. */
	void (*answered)(void *ctx, struct wf_dir_ask *ask);                                    /* it is the caller's again, without query */
	void (*orphan)(void *ctx, struct wf_dir_ask *ask);      /* answered, and not kept: the caller's, with its query. NULL: it is dropped */
	void (*event)(void *ctx, struct wf_dir_watching *w, int what, weft_id id);
	void (*ended)(void *ctx, struct wf_dir_watching *w, int err);                           /* it is the caller's again, without query */
	void *ctx;
};

struct wf_dir_client {
	struct wf_dir_client_hooks hooks;
	weft_id process;
	uint32_t epoch;
	bool moving, broken, lost;      /* broken: the link is, and the next flush ends what is open */
	uint32_t last_number, last_version;
	uint64_t messages, sets;
	struct wf_hash mine;            /* what is published, by id */
	struct wf_node mine_order;      /* as it was published: the process first */
	size_t mine_bytes;
	struct wf_hash kept;            /* entities, by id; oldest use first: */
	struct wf_node kept_order;
	struct wf_hash kept_finds;      /* by query */
	struct wf_hash numbers;
	struct wf_node uses[WF_DIR_USE_WATCH + 1];
	uint32_t orphans, watches, waits;
	struct wf_node outbox;
	size_t outbox_bytes;
	/* Rooms that would be much for the stack of a thread: of a message on its way out, and of attributes being changed. */
	uint8_t out[WF_DIR_MESSAGE];
	uint8_t list[WF_DIR_ATTRS * (2 + WF_DIR_KEY + WF_DIR_VALUE)];
};

int wf_dir_client_init(struct wf_dir_client *c, weft_id process, const struct wf_dir_client_hooks *hooks);      /* -ENOMEM */
void wf_dir_client_fini(struct wf_dir_client *c);       /* asks are answered, watches ended: -ECANCELED */

/* @attrs of @id, words; @name: if it is new. -EINVAL, -EPERM: *@ret_why; -ENOBUFS, -EAGAIN (the outbox is full), -ENOMEM. */
int wf_dir_client_set(struct wf_dir_client *c, weft_id id, unsigned kind, const char *name, const char *attrs, const char **ret_why);
bool wf_dir_client_has(const struct wf_dir_client *c, weft_id id);
void wf_dir_client_drop(struct wf_dir_client *c, weft_id id);

/* From what it keeps: true, and the answer is in *@ret_msg (texts until the next call) or in *@ret_ids, *@ret_total. */
bool wf_dir_client_kept(struct wf_dir_client *c, weft_id id, struct wf_dir_msg *ret_msg);
bool wf_dir_client_kept_find(struct wf_dir_client *c, const char *query, const weft_id **ret_ids, uint32_t *ret_total);

/* Asks; n.use, id or query (which is sound), want, max and user are set. The answer comes with a take.
 * -ENOBUFS: too many are waiting; -ECONNRESET. */
int wf_dir_client_ask(struct wf_dir_client *c, struct wf_dir_ask *ask);
void wf_dir_client_unask(struct wf_dir_client *c, struct wf_dir_ask *ask);      /* not answered: the caller's again */
void wf_dir_orphan_free(struct wf_dir_ask *ask);
bool wf_dir_client_asked(struct wf_dir_client *c, const struct wf_dir_ask *like);       /* is one on its way that nobody waits for? */

int wf_dir_client_watch(struct wf_dir_client *c, struct wf_dir_watching *w);    /* -ENOBUFS, -ENOMEM, -ECONNRESET */
void wf_dir_client_unwatch(struct wf_dir_client *c, struct wf_dir_watching *w);

int wf_dir_client_take(struct wf_dir_client *c, const void *msg, size_t len);   /* -EBADMSG */
void wf_dir_client_flush(struct wf_dir_client *c);       /* after every call, and when there is room again */
void wf_dir_client_moving(struct wf_dir_client *c);
void wf_dir_client_lost(struct wf_dir_client *c);

/* Between its files. */
struct wf_dir_mine {
	struct wf_hnode by;
	struct wf_node order;
	weft_id id;
	uint32_t version, index, member_index;
	uint32_t named, grouped;        /* the versions that gave it its name, and that in this group: what is said of older places is past */
	uint8_t kind;
	uint32_t count;
	size_t list_bytes;
	char name[WF_DIR_NAME + 1];
	uint8_t list[];
};
void wf_dir_client_send(struct wf_dir_client *c, const struct wf_dir_msg *m);
void wf_dir_client_say_all(struct wf_dir_client *c);    /* what is published, between AGAIN and HELD */
void wf_dir_client_placed(struct wf_dir_client *c, const struct wf_dir_msg *m);
void wf_dir_client_refused(struct wf_dir_client *c, const struct wf_dir_msg *m);
struct wf_dir_mine *wf_dir_client_mine(const struct wf_dir_client *c, weft_id id);
void wf_dir_client_mine_fini(struct wf_dir_client *c);

void wf_dir_keep_entity(struct wf_dir_client *c, const struct wf_dir_msg *m, const void *msg, size_t len);
void wf_dir_keep_find(struct wf_dir_client *c, const struct wf_dir_ask *ask, uint32_t number);   /* which was the ask's */
void wf_dir_kept_invalid(struct wf_dir_client *c, weft_id id);
void wf_dir_kept_stale(struct wf_dir_client *c, struct wf_dir_numbered *n);
void wf_dir_kept_finds_forget(struct wf_dir_client *c, bool tell);
void wf_dir_kept_forget(struct wf_dir_client *c);       /* all of it, telling nobody */

void wf_dir_number_give(struct wf_dir_client *c, struct wf_dir_numbered *n, enum wf_dir_use use);
void wf_dir_number_take(struct wf_dir_client *c, struct wf_dir_numbered *n);
void wf_dir_say_number(struct wf_dir_client *c, enum wf_dir_type type, uint32_t number);
void wf_dir_watch_events(struct wf_dir_client *c, struct wf_dir_watching *w, const struct wf_dir_msg *m);
void wf_dir_watch_say(struct wf_dir_client *c, struct wf_dir_watching *w);
void wf_dir_watch_end(struct wf_dir_client *c, struct wf_dir_watching *w, int err);

#endif
