/* describe.h - an entity as its server describes it (the message ENTITY), as text. */
#ifndef WF_DIR_DESCRIBE_H
#define WF_DIR_DESCRIBE_H

#include "dir/msg.h"

/* What weft_dir_get answers: the text of @key, or of NULL everything as words. Its length, cut off in @n bytes; -ENOENT. */
int wf_dir_describe(const struct wf_dir_msg *m, const char *key, char *ret_text, size_t n);

#endif
