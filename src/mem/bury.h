/* bury.h - the memory of a process that is dead is given back, as soon as nobody has a buffer in it; and all of it when this one leaves.
 *
 * What is not used any more is not unmapped: blank private memory takes its place. Pointers into it may still be looked at (a ring that has left
 * its port, an entry at the end of a chain on its way home, any address asked for by weft_buf_of), and addresses must not come to mean something
 * else. Blank memory costs address space and no pages, and says what is right: cells that look old, entries in nobody's hands, a board without ports.
 *
 * When   A process is dead and that is settled: nothing of its own flies any more, and no buffer of its comes into being. Those that are left
 *        only change hands, or are put. Who has one stands in its entry: a living process, or one to whom a living one sends it. Who has one straight
 *        from its maker puts his name there when he hears of the death, before he says that he has acted on it (wf_bury_name). A chunk is
 *        blanked here when no entry of it says so any more and no handle of it is in hands here. Everybody clears his own name from entries
 *        of buffers that he has put, so all come to the same end, each by himself.
 *        A chunk of a dead process has its buffers land under the atlas's lock (chunk.dead; share.c), under which it is looked at: no buffer is
 *        between its entry and its handle then. Landings that began before the word of the death was there are over when the caller says so.
 *        What is put says so last of all (word.h), so that nobody reads a handle that is blank by then.
 * Lies   Whoever maps a chunk may write into its entries. He can keep it mapped, or have a buffer of a dead process lost on its way.
 * Tested tests/sweep/test_sweep_bury.c, tests/far/test_far_bury.c.
 */
#ifndef WF_MEM_BURY_H
#define WF_MEM_BURY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_buf;

/* [listener] @process is dead: its buffers land with care from now on. */
void wf_bury_begin(uint32_t process);

/* [listener] Likewise, and landings that were under way at wf_bury_begin are over: of its buffers that are in hands here, that stands in their entries. */
void wf_bury_name(uint32_t process);

/* [listener] @process is dead and settled, landings that were under way at wf_bury_begin are over, and nothing else here points into its memory but
 * what may find it blank. What nobody has is blanked: true: that was all. */
bool wf_bury(uint32_t process);

/* [one thread, after leaving] Nothing comes any more: blanks what is in nobody's hands here, of all processes and of this one, and closes the
 * descriptors of this one's. What a user still holds stays until the process ends. */
void wf_bury_all(void);

/* [its holder] A buffer that is weft's own and stands (or no longer) until this process leaves: a ring, a pipe, tickets. Nobody has it then. */
void wf_buf_stands(struct weft_buf *buf, bool stands);

/* Blank private memory in place of @bytes at @mem. False: no memory for the change; all is as before. */
bool wf_blank(void *mem, size_t bytes);

#endif
