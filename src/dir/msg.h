/* msg.h - what clients and the server of the directory say to each other. docs/directory.md has the bytes.
 *
 * A message is read into one struct whose texts and lists point into it: they are checked, but for what only who reads them can know. What
 * is wrong in any way is -EBADMSG as a whole.
 */
#ifndef WF_DIR_MSG_H
#define WF_DIR_MSG_H

#include "base/bytes.h"
#include "dir/text.h"

#define WF_DIR_VERSION 1
#define WF_DIR_MESSAGE 32768u           /* most bytes */
#define WF_DIR_PAGE 4000u               /* most ids of one FOUND */
#define WF_DIR_BATCH 2000u              /* most events of one EVENTS */
#define WF_DIR_MOST_IDS (1u << 20)      /* most ids of one answer, in all its pages */
#define WF_DIR_KEPT_IDS 256u            /* most ids of an answer that is kept */
#define WF_DIR_NOWHERE UINT32_MAX

enum wf_dir_type {
	/* of a client */
	WF_DIR_SET = 1,         /* an entity of mine is like this */
	WF_DIR_DROP,            /* it has left */
	WF_DIR_GET,             /* what do you know of this id? -> ENTITY */
	WF_DIR_FIND,            /* who matches? -> FOUND, when enough do */
	WF_DIR_WATCH,           /* tell me of those who match -> EVENTS */
	WF_DIR_CANCEL,          /* no more of that: a find, a kept answer, or a watch */
	WF_DIR_AGAIN,           /* after MOVED: forget what you have heard of mine, here it comes */
	WF_DIR_HELD,            /* and this was all of it */
	/* of the server */
	WF_DIR_ENTITY = 64,
	WF_DIR_FOUND,
	WF_DIR_EVENTS,
	WF_DIR_INVALID,         /* what I said of this id is no longer true */
	WF_DIR_STALE,           /* what I said to this find is no longer true */
	WF_DIR_ENDED,           /* a watch ends: refused */
	WF_DIR_REFUSED,         /* an entity of yours is not as you have set it */
	WF_DIR_PLACED,          /* its indexes are these: say them with it where another serves */
	WF_DIR_MOVED,           /* another serves now: say again what is yours */
	WF_DIR_READY            /* ask again */
};

enum { WF_DIR_KEEP = 1 /* ENTITY, FOUND: it may be kept until INVALID, STALE. FIND: I would keep it */, WF_DIR_MORE = 2 /* FOUND: another page follows */,
       WF_DIR_FIRST = 4 /* EVENTS: one of those who were there before. FIRST without MORE: the last of them */ };

struct wf_dir_text {
	const char *at;                 /* no 0 behind it */
	size_t n;
};

struct wf_dir_msg {
	enum wf_dir_type type;
	uint32_t number;                /* of a look-up or watch: its client's */
	weft_id id, parent;
	uint32_t version;               /* of an entity: its owner's, grows with each SET */
	uint32_t epoch;
	int32_t err;
	uint32_t flags;                 /* WF_DIR_KEEP, _MORE, _FIRST */
	uint32_t kind;
	uint32_t index, member_index;   /* under its parent, in its group; WF_DIR_NOWHERE: not known, or in none */
	uint32_t want, max, total;
	uint32_t count;                 /* of attributes, ids or events in list */
	struct wf_dir_text name, host, path, group, query;
	const uint8_t *list;
	size_t list_bytes;
};

/* What an entity counts against its client's WF_DIR_MOST_BYTES. */
static inline size_t wf_dir_cost(size_t name, size_t list_bytes)
{
	return 512 + name + 2 * list_bytes;
}

/* @from_server: which of the two halves may come. -EBADMSG. */
int wf_dir_read(const void *msg, size_t len, bool from_server, struct wf_dir_msg *ret_msg);

/* The bytes of @m in @room of WF_DIR_MESSAGE. Lists are written before (below), texts are within their bounds. */
size_t wf_dir_put(const struct wf_dir_msg *m, uint8_t *room);

/* Attributes: u8 length of the key, u8 of the value, key, value. Events: u8 what, u8[3] zero, u32 version, u64 id. */
struct wf_dir_attr {
	struct wf_dir_text key, value;
};
void wf_dir_attr_next(const uint8_t **list, struct wf_dir_attr *ret_attr);      /* of a list that was read: it is sound */
size_t wf_dir_attr_put(uint8_t *at, const char *key, const char *value);
struct wf_dir_text wf_dir_list_group(const struct wf_dir_msg *m);        /* the value of group in a list of attributes; n 0: none */

#define WF_DIR_EVENT_BYTES 16u
struct wf_dir_event {
	uint8_t what;                   /* WEFT_JOINED, ... */
	uint32_t version;
	weft_id id;
};
struct wf_dir_event wf_dir_event_at(const struct wf_dir_msg *m, uint32_t i);
void wf_dir_event_put(uint8_t *at, const struct wf_dir_event *e);

#endif
