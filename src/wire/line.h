/* line.h - one lane over a rail: a handshake, then records. What the files of a line have in common; what others call is in trunk.h.
 *
 *     line.c          made, over, buried; the driver's upcalls
 *     line_shake.c    the handshake
 *     line_in.c       bytes that come: frames and bodies            [reader]: the one thread that polls the rail
 *     line_like.c     a record like the last one                     [reader]
 *     line_ahead.c    the same, where it is guessed before it comes  [reader]
 *     line_out.c      records that go                               [writing]: who holds the line's lock of that name
 */
#ifndef WF_WIRE_LINE_H
#define WF_WIRE_LINE_H

#include "wire/trunk.h"

extern _Atomic uint32_t wf_strangers;                           /* handshakes begun by others; a hint */
extern _Atomic uint32_t wf_silent;                              /* of those, that have not said yet who they are; a hint */

int wf_line_shake(struct wf_line *l);                           /* [reader] goes on after bytes came: 0, or why the line ends */
void wf_line_shaken(struct wf_line *l);                         /* [reader, or buried] its handshake is over, if there is one: forgotten */
bool wf_line_say_locked(struct wf_line *l);                     /* [writing] handshake bytes, before all others. False: the rail takes no more now */
ssize_t wf_line_bytes(void *line, void *bytes, size_t len, struct weft_need *need);     /* [reader] the driver's take: */
ssize_t wf_line_records(struct wf_line *l, uint8_t *p, size_t len, struct weft_need *need);     /* [reader] by this, if it is not a record like the last */
int wf_line_placed(void *line, size_t got, struct weft_need *need);     /* [reader] the driver's placed: bytes are where they belong, and opened there */
void wf_line_see_to(struct wf_line *l);                         /* [reader, no lock] all that was here has been read: what that has left to do */
void wf_line_liked(struct wf_line *l, const uint8_t *record, uint32_t frames);  /* [reader] this one was a short message, for which its reader waited: the next may be alike */
void wf_line_bodied(struct wf_line *l, const struct wf_whole *w, size_t front);         /* [reader] a record with a body has come, which begins behind so many bytes */
size_t wf_line_ahead(void *line, struct iovec *ret_piece);      /* [reader] the driver's ahead */
int wf_line_came_ahead(void *line, void *bytes, size_t front, size_t got);      /* [reader] the driver's came_ahead */
void wf_line_body_came(struct wf_line *l, size_t n);            /* [reader, or buried] @n bytes are in the pieces; they are the landing's own again */

#endif
