/* weft/dir.h - who is there: entities with kind, name, parent, path, host and attributes of their own.
 *
 * An entity is a host, a process, a thread or port that has published something, or a group. It has an id, a name, a place in the tree of
 * the job (/host/process/thread) and attributes, key=value. A thread costs nothing here until it has a name (weft_thread_enter)
 * or sets an attribute; a port is here if it was opened with a name and without a context. Who ends is out of the directory.
 *
 * Attributes and queries are words with spaces between them, key=text. A text with spaces stands in quotes, key="a b"; a backslash
 * takes what follows it as it is. Keys that every entity has: kind (host process thread port group), name, index, parent, host, id,
 * path, group and member. Of these name (of a thread) and group can be set, the others follow.
 *
 * A query is such words, all of which must hold, their texts with * ? [a-z] [!a-z]; key= holds where there is no such attribute. Or it
 * is a path, /pool/w[3]: parts with the same signs, each followed by an index or [*]. Without one it is [0], or any if the part has signs.
 * job=3 in a query asks the directory of another job, which this one calls 3 (weft_job_attach). weft_dir.3 tells all of it.
 */
#ifndef WEFT_DIR_H
#define WEFT_DIR_H

#include <weft/base.h>
#include <weft/id.h>
#include <weft/msg.h>
#include <weft/req.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * weft_dir_set - [nb] publish @attrs of @id: "role=worker load=". An empty text removes; other attributes stay as they are.
 * @id: this process, or a thread or port of it; its first attribute makes it an entity. group=/pool makes it a member there.
 * The others learn of it by and by; whoever asks from here is answered with it.
 * Returns 0; -EINVAL: no such words, or too long; -EPERM: another process's id, or a key that is not to be set;
 * -ESRCH: that one has ended; -ENOBUFS: more than a process may have in the directory; -EAGAIN: no room now on the way there, nothing
 * happened; -ENOMEM, -ENOTCONN, -ECONNRESET. Threads: any, concurrently.
 */
int weft_dir_set(weft_id id, const char *attrs);

/**
 * weft_dir_get - the text of @key of @id, also of one that every entity has; NULL: all of it, as words, in quotes where needed.
 * Cut off if @n is short, ended by 0. Asked once, the answer is kept until it changes; it is not given for longer than a second after @id has ended.
 * Returns its length, also if it was cut off; -ENOENT: no such attribute; -ESRCH: not in the directory; -ETIMEDOUT; -EAGAIN:
 * WEFT_NOW, and the answer is not here yet (it was asked for), or the directory is moving to another host; -EINVAL; -EDEADLK in a callback unless WEFT_NOW.
 */
int weft_dir_get(weft_id id, const char *key, weft_time until, char *ret_text, size_t n);

/**
 * weft_dir_find - who matches @query: ids, in ascending order, those of one group by their place in it. Waits until @want match.
 * @ret_ids: room for @max; may be NULL if @max is 0.
 * Returns how many match, be it more than @max; -ETIMEDOUT: fewer than @want; -EAGAIN, -EINVAL, -EDEADLK as weft_dir_get;
 * -ENOBUFS: too many finds of this process are waiting.
 */
int weft_dir_find(const char *query, int want, weft_time until, weft_id *ret_ids, int max);

/**
 * weft_dir_watch - [nb] tell how->done or how->queue of everyone who matches @query, until cancelled: first those already there.
 * Each event has from: who, tag: WEFT_JOINED, WEFT_CHANGED or WEFT_LEFT, flags: WEFT_ST_MORE. Who no longer matches has left. Events of
 * one watch come in order, and no two in a row of one id say joined, or left. When the request ends, -ECANCELED is told last, without MORE.
 * @how: done or queue, and user; nothing else of it is used. @ret_req: NULL: it is never cancelled.
 * Returns 0; -EINVAL, -E2BIG; -ENOBUFS: too many watches of this process; -ENOMEM, -ENOTCONN. It may end by itself with -ECONNRESET or -ENOBUFS.
 */
int weft_dir_watch(const char *query, const struct weft_op *how, struct weft_req **ret_req WEFT_GIVES);

#ifdef __cplusplus
}
#endif
#endif
