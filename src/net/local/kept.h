/* kept.h - frames for one peer that found its ring full: kept in order until there is room, and never more of them than there is to say.
 *
 * A peer may read nothing for hours: stopped, or its listener in a callback that does not return. What is said to it meanwhile again and again
 * becomes one frame. Each kind of frame has a rule:
 *
 *     same   so many bytes at the beginning of the body say what it is about. A frame of that kind about the same takes the place of the one
 *            that is kept (the later truth at the earlier place);
 *     add    where in the body a count is, which is added up then; 0: none;
 *     most   so many of that kind are kept, and no more; 0: as many as there are things to speak of.
 *
 * So what is kept is bounded by what frames are about (ways, faces, receives asked for), where the user of this file sees to it that those are.
 *
 * Shape   A list in order, and chains of the same frames by hash, in the same order: the first of the list is the first of its chain.
 * Locks   none: the peer's out_lock is held.
 * Tested  tests/unit/test_kept.c, tests/far/test_far_stopped.c.
 */
#ifndef WF_NET_LOCAL_KEPT_H
#define WF_NET_LOCAL_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/local/board.h"

#define WF_FRAME_KINDS 16u

struct wf_frame_rule {
	uint32_t same, add, most;
};

struct wf_kept_frame {
	struct wf_kept_frame *next, *chain;
	uint32_t what, hash;
	_Alignas(8) unsigned char body[WF_FRAME_BYTES];
};

struct wf_kept;                         /* made when first needed: *@kept is NULL before */

/* False: no memory, or enough of that kind. The rest of the body is zeroes. @what is below WF_FRAME_KINDS. */
bool wf_kept_add(struct wf_kept **kept, const struct wf_frame_rule *rule, uint32_t what, const void *body, size_t len);

const struct wf_kept_frame *wf_kept_first(const struct wf_kept *kept);         /* NULL: none */
void wf_kept_drop(struct wf_kept *kept);                                        /* the first */
uint32_t wf_kept_free(struct wf_kept **kept);                                   /* all: how many */

#endif
