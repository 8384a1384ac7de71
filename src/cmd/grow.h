/* grow.h - hosts that are to join the job, as the agent of who asks for them has it in hand: it passes on what is asked and what comes of it. The launcher does the rest (growth.h). */
#ifndef GROW_H
#define GROW_H

#include <stddef.h>

struct agent;
struct place;
struct wf_body;
struct wf_frame_grow;

void grow_asked(struct agent *a, struct place *by, const struct wf_frame_grow *f, size_t n);     /* @n: bytes of its text */
void grow_told(struct agent *a, struct wf_body *b);                     /* CONTROL_GROWN */

#endif
