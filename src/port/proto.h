/* proto.h - what ports need of protocols beyond weft/match.h: is it sound, is it the same, who speaks it. */
#ifndef WF_PORT_PROTO_H
#define WF_PORT_PROTO_H

#include <stdbool.h>
#include <weft/match.h>

/* Can a port speak it? 0; -EINVAL: incomplete, or compiled against entries of another weft. */
int wf_proto_check(const struct weft_proto *proto);

/* Do two ends understand each other? By name and head length, as the two may be in different programs.
 * NULL is weft's own protocol. */
bool wf_proto_same(const struct weft_proto *a, const struct weft_proto *b);

/* [any] A port that speaks a protocol refers to it from opening to closing. Nothing is counted for one that
 * weft_proto_new did not make: it lives as long as its program. */
void wf_proto_ref(const struct weft_proto *proto);
void wf_proto_unref(const struct weft_proto *proto);

#endif
