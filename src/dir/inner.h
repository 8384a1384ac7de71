/* inner.h - the server's own structs, and what its files call of each other.
 *
 *     client ---- entities ----> entity ---- links ----> tag (key, value) ---- links ----> all entities that have it
 *            ---- watches -----> watch  -- at most one -> tag             ---- watches --> all watches that wait for it
 *            ---- kept --------> entity, and finds whose answers it keeps
 *
 * Whatever an entity says of itself is a tag: its kind, name, host, parent and group, and its attributes. A tag lies in a hash table by key and
 * value, once for all who have it; a query begins with the rarest tag it names. Where an entity is in the tree is a place: (family, index), a family
 * being all of one name in one domain; places and families are hashed, too. An entity has one place under its parent and one in its group.
 *
 * A change of an entity is told in this order: who might care is gathered (touch), each says whether it matched before, the change is made,
 * each says whether it matches now.
 */
#ifndef WF_DIR_INNER_H
#define WF_DIR_INNER_H

#include "base/list.h"
#include "dir/hash.h"
#include "dir/msg.h"
#include "dir/query.h"
#include "dir/server.h"

struct tag {
	struct wf_hnode by;
	struct wf_node links, watches;
	uint64_t count;                 /* of links */
	uint64_t refs;                  /* links, also of an entity that is still being made, and watches */
	const char *value;              /* in text */
	size_t bytes;
	char text[];                    /* key, 0, value, 0 */
};

struct link {
	struct wf_node in;
	struct tag *tag;
	struct entity *of;
};

struct family {
	struct wf_hnode by;
	const void *domain;             /* the parent or the group; the server itself: no parent */
	uint64_t count;
	uint32_t low;                   /* no index below it is free */
	char name[];
};

struct place {
	struct wf_hnode by;
	struct family *family;          /* NULL: nowhere */
	uint32_t index;
	bool member;                    /* of its group; else under its parent */
};

struct entity {
	struct wf_hnode by_id, by_path; /* by_path: of a group only */
	weft_id id;
	uint32_t version;
	uint8_t kind;
	bool doubted;                   /* its owner says again what it has, and has not said this yet */
	uint16_t nlinks;
	struct link *links;             /* kind and name first */
	struct client *owner;           /* NULL: a host or a group */
	struct entity *parent, *group;
	struct place under, in;
	struct wf_node mine;            /* among its owner's, or the server's hosts */
	struct wf_node kept;            /* clients that keep what they were told of it */
	struct wf_node clients;         /* of a host */
	uint64_t members;               /* of a group */
	size_t cost;                    /* to its owner */
	char path[];                    /* of a group */
};

struct client {
	struct wf_hnode by;
	weft_id id;
	struct entity *host, *self;
	struct wf_node on_host;
	struct wf_node entities, watches, kept, kept_finds, later;
	uint32_t entity_count, watch_count, kept_count, kept_find_count;
	size_t bytes;
	bool held;
};

/* A client keeps what it was told of an entity. */
struct kept {
	struct wf_hnode by;
	struct wf_node of_entity, of_client;
	struct entity *e;
	struct client *c;
};

enum mode { MODE_WATCH, MODE_WAIT /* a find, until enough match */, MODE_KEPT /* a find that was answered */ };

struct watch {
	struct wf_hnode by;
	struct client *c;
	uint32_t number;
	enum mode mode;
	uint32_t want, max, flags;      /* of a find */
	uint64_t count;                 /* MODE_WAIT: who matches now */
	struct wf_dir_query *query;
	struct tag *tag;                /* whatever it waits for has this; NULL: no such thing is known */
	struct wf_node in_tag, mine;
	uint64_t touched;               /* the change that may concern it */
	bool before;
	struct watch *next_touched;
};

/* A message that waits for the end of gathering: who has no index yet lets those go first who have. */
struct later {
	struct wf_node mine;
	weft_id id;                     /* of whom it speaks */
	size_t len;
	uint8_t msg[];
};

struct wf_dir_server {
	struct wf_dir_hooks hooks;
	uint32_t epoch;
	bool gathering;
	struct wf_hash entities, groups, tags, families, places, clients, watches, kept;
	struct wf_node hosts;
	struct wf_node general;         /* watches without a tag */
	struct watch *touched;
	uint64_t changes;
	uint64_t bytes;
	uint8_t out[WF_DIR_MESSAGE];    /* a message on its way to emit */
	uint8_t page[WF_DIR_MESSAGE];   /* ids or events of such a message */
	char path[WF_DIR_PATH + 1];     /* its texts and attributes */
	uint8_t list[WF_DIR_ATTRS * (2 + WF_DIR_KEY + WF_DIR_VALUE)];
};

/* server.c */
void *wf_dir_alloc(struct wf_dir_server *s, size_t n);     /* zeroed */
void wf_dir_free(struct wf_dir_server *s, void *p, size_t n);
void wf_dir_emit(struct wf_dir_server *s, struct client *c, const struct wf_dir_msg *m);
struct entity *wf_dir_entity(const struct wf_dir_server *s, weft_id id);

/* tags.c */
struct tag *wf_dir_tag_find(const struct wf_dir_server *s, const char *key, const char *value);
struct tag *wf_dir_tag_get(struct wf_dir_server *s, const char *key, size_t key_n, const char *value, size_t value_n);  /* a reference; NULL: no memory */
void wf_dir_tag_put(struct wf_dir_server *s, struct tag *t);
void wf_dir_links_join(struct entity *e);
void wf_dir_links_leave(struct wf_dir_server *s, struct entity *e);        /* frees them, too */
const char *wf_dir_value(const struct entity *e, const char *key);         /* of a tag it has; NULL: none */
static inline const char *wf_dir_name(const struct entity *e)
{
	return e->links[1].tag->value;
}

/* places.c */
/* From where it was, if anywhere, to the place @wish of that name, or the lowest that is free. -ENOMEM: it is where it was. */
int wf_dir_place_take(struct wf_dir_server *s, struct place *p, const void *domain, const char *name, uint32_t wish);
void wf_dir_place_leave(struct wf_dir_server *s, struct place *p);
struct entity *wf_dir_place_find(const struct wf_dir_server *s, const void *domain, const char *name, uint32_t index);
struct entity *wf_dir_group_find(const struct wf_dir_server *s, const char *path, size_t n);
void wf_dir_path(const struct entity *e, struct wf_dir_writer *w);

/* entity.c */
struct wf_dir_wish {
	const void *list;               /* attributes */
	uint32_t count, version, index, member_index;
	size_t cost;
};
int wf_dir_entity_set(struct wf_dir_server *s, struct client *owner, weft_id id, unsigned kind, struct wf_dir_text name, const struct wf_dir_wish *w);
void wf_dir_entity_gone(struct wf_dir_server *s, struct entity *e);

/* find.c */
struct found {
	struct found_one {
		uint32_t order, version;
		weft_id id;
	} *all;
	size_t n, room;
};
bool wf_dir_matches(const struct wf_dir_query *q, const struct entity *e);
int wf_dir_find(struct wf_dir_server *s, const struct wf_dir_query *q, struct found *ret_found);  /* free(all); -ENOMEM */

/* watch.c */
void wf_dir_touch_begin(struct wf_dir_server *s);
void wf_dir_touch(struct wf_dir_server *s, const struct link *links, uint32_t n);
void wf_dir_touch_before(struct wf_dir_server *s, const struct entity *e);         /* NULL: it is not there */
void wf_dir_touch_after(struct wf_dir_server *s, const struct entity *e, bool there);
void wf_dir_take_find(struct wf_dir_server *s, struct client *c, const struct wf_dir_msg *m);
void wf_dir_take_watch(struct wf_dir_server *s, struct client *c, const struct wf_dir_msg *m);
void wf_dir_take_cancel(struct wf_dir_server *s, struct client *c, uint32_t number);
bool wf_dir_number_used(const struct wf_dir_server *s, const struct client *c, uint32_t number);
void wf_dir_watches_drop(struct wf_dir_server *s, struct client *c);

/* keep.c */
void wf_dir_take_get(struct wf_dir_server *s, struct client *c, const struct wf_dir_msg *m);
void wf_dir_call_back(struct wf_dir_server *s, struct entity *e);          /* who keeps it is told INVALID */
void wf_dir_kept_drop(struct wf_dir_server *s, struct client *c);
void wf_dir_show(struct wf_dir_server *s, const struct entity *e, struct wf_dir_msg *ret_msg);        /* as ENTITY; until the next */

#endif
