/* strip.h - the short way home: a ring of lines from a process that puts buffers (the holder) to the one that made them.
 *
 *   page of holder q in the maker's ledger   | taken |      unused      | line 0 | line 1 | ... | line 31 |
 *   a line                                   | 15 brief links (ledger.h), 0: none | turn |
 *
 * What goes this way touches no entry: the only line that goes from core to core is the strip's, one for 15 buffers. So only that may go this way whose entry says
 * nothing: what its holder got straight from its maker and has given to nobody. Everything else goes by the return list (home.c), and so does
 * what finds no strip, or no room on it.
 */
#ifndef WF_MEM_STRIP_H
#define WF_MEM_STRIP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cpu.h"
#include "base/lock.h"
#include "mem/depot.h"
#include "mem/ledger.h"

enum { WF_STRIP_LINES = 32 };

struct wf_strip_line {
	_Atomic uint64_t two[WF_BRIEFS / 2];    /* the first in the low half */
	_Atomic uint32_t last;
	_Atomic uint32_t turn;          /* it is there when this is one more than how many came before it on the strip */
};
_Static_assert(sizeof(struct wf_strip_line) == WF_LINE, "a line is a line");

struct wf_strip {
	_Atomic uint32_t taken;         /* the maker's: so many lines have been read, those before them may be written anew */
	char unused[WF_STRIP_BYTES / 2 - sizeof(uint32_t)];
	struct wf_strip_line line[WF_STRIP_LINES];
};
_Static_assert(sizeof(struct wf_strip) == WF_STRIP_BYTES, "a strip is a page");

/* [any] The holder: these of @maker's go home, 0: none, after that all are. False: there is no strip or no room; nothing happened. */
bool wf_strip_put(uint32_t maker, const uint32_t brief[WF_BRIEFS]);

/* The maker. Slots of strips that are open lie below wf_strips(); all but the look under home_lock. */
uint32_t wf_strips(void);
bool wf_strips_look(void);              /* [any] is there a line? An answer of a moment ago */
void wf_strip_open(uint32_t holder);    /* if it was not tried before */
bool wf_strip_opened(uint32_t holder);  /* [any] behind a light fence: if not, nothing of its was taken from a strip before the fence (F1) */
void wf_strip_close(uint32_t holder);   /* it is dead, and its lines have been taken */

/* The next line of @slot, if there is one, whose holder is *@ret_holder. What it says is anybody's. */
bool wf_strip_take(uint32_t slot, uint32_t *ret_holder, uint32_t ret_brief[WF_BRIEFS]);

/* Takes @l without order and acquires behind that (L1), for the same reason as a hot swap of a word (word.h): who is here has just sent or received. */
static inline void wf_lock_hot(struct wf_lock *l)
{
#if WF_TSAN
	wf_lock(l);
#else
	if (wf_likely(atomic_exchange_explicit(&l->held, 1, memory_order_relaxed) == 0))
		atomic_thread_fence(memory_order_acquire);
	else
		wf_lock_slow(l);
#endif
}

#endif
