/* query.h - a query, taken apart: terms that must all hold, and at most one path. Says nothing of how it is answered (find.c). */
#ifndef WF_DIR_QUERY_H
#define WF_DIR_QUERY_H

#include "dir/text.h"

#define WF_DIR_TERMS 16
#define WF_DIR_INDEX_ANY UINT32_MAX

struct wf_dir_term {
	enum wf_dir_key what;
	bool plain;                     /* value is the text itself; else a pattern. Plain and empty: there must be none */
	const char *key, *value;        /* in the query's own memory */
};

struct wf_dir_part {
	const char *name;
	bool plain;
	uint32_t index;                 /* WF_DIR_INDEX_ANY */
};

struct wf_dir_query {
	uint32_t terms, parts;
	bool members_only;              /* the path is one in a group (member=) */
	weft_id id;                     /* a plain id=; 0: none */
	const char *group;              /* a plain group=, or NULL: answers are in its order */
	struct wf_dir_term term[WF_DIR_TERMS];
	struct wf_dir_part part[WF_DIR_PARTS];
	size_t bytes;                   /* of it all */
	char text[];
};

/* NULL: *@ret_err is -EINVAL or -ENOMEM, *@ret_why a constant text. free() releases it. */
struct wf_dir_query *wf_dir_query_new(const char *text, int *ret_err, const char **ret_why);

#endif
