/* strip.c - both ends of a strip. See strip.h.
 *
 * Shape   A ring with one writing process and one reading one; a lock of each keeps its threads apart, so nothing is decided between processes and there is no
 *         read-modify-write on what they share. The writer counts for itself what it has written, the reader what it has read: taken only says it to
 *         the writer, who looks there when the ring seems full, and seldom changes (TELL_EVERY).
 * Opening The maker reserves the page and then says so in its ledger's header (open): to touch it is never to ask for memory. That is done when the
 *         first buffers come from a holder by the list, once; without memory there is no strip, and all goes by the list as before.
 * Lies    The reader believes the turn and then 15 numbers that home.c checks against its private words; it reads no more lines at a time than a strip has, as
 *         an honest one can have written no more. A writer that finds taken ahead of itself, or too far behind, finds the strip full. Whoever maps the ledger may write
 *         into any strip, as he may write any head or entry of it.
 * Death   A line whose turn is not stored is not there: what its writer had gathered is AWAY to a dead process by its maker's word. The lines that are there are taken
 *         before that is looked at (home.c).
 * Edges   W3  release store of turn -> acquire load: the briefs, and all that the holder did to the memory.
 *         W4  release store of taken -> acquire load: the line has been read.
 * Locks   home_lock for the maker; a holder's own for each maker (outs), in which nothing else is taken.
 * Tested  tests/models/strip.pml, tests/unit/test_strip.c, tests/stress/stress_share.c.
 */
#include "mem/strip.h"

#include <stdalign.h>

#include "base/atomic.h"
#include "mem/atlas.h"

#define TELL_EVERY 8                    /* lines */

static struct out {                     /* to one maker */
	alignas(WF_LINE) struct wf_lock lock;
	_Atomic(struct wf_strip *) strip;       /* any thread: found once, it stays; NULL: not yet */
	uint32_t written, taken;        /* under lock: lines; as it was last read */
} outs[WF_PROCESSES];

static struct in {                      /* from one holder; written under home_lock */
	_Atomic(struct wf_strip *) strip;       /* NULL: not used */
	_Atomic uint32_t read;                  /* lines */
	uint32_t holder;
} ins[WF_PROCESSES];
static _Atomic uint32_t slots;          /* written under home_lock */
static atomic_bool tried[WF_PROCESSES]; /* written under home_lock */

static struct wf_strip_line *line_of(struct wf_strip *s, uint32_t n)
{
	return &s->line[n % WF_STRIP_LINES];
}

static bool out_room(struct out *o, struct wf_strip *s)
{
	if (wf_likely(o->written - o->taken < WF_STRIP_LINES))
		return true;
	o->taken = wf_acquire32(&s->taken);                                     /* W4 */
	return o->written - o->taken < WF_STRIP_LINES;
}

static void line_write(struct wf_strip_line *line, uint32_t turn, const uint32_t brief[WF_BRIEFS])
{
	for (unsigned i = 0; i < WF_BRIEFS / 2; i++)
		atomic_store_explicit(&line->two[i], brief[2 * i] | (uint64_t)brief[2 * i + 1] << 32, memory_order_relaxed);
	atomic_store_explicit(&line->last, brief[WF_BRIEFS - 1], memory_order_relaxed);
	atomic_store_explicit(&line->turn, turn, memory_order_release);         /* W3 */
}

static void line_read(struct wf_strip_line *line, uint32_t ret_brief[WF_BRIEFS])
{
	for (unsigned i = 0; i < WF_BRIEFS / 2; i++) {
		uint64_t two = atomic_load_explicit(&line->two[i], memory_order_relaxed);

		ret_brief[2 * i] = (uint32_t)two;
		ret_brief[2 * i + 1] = (uint32_t)(two >> 32);
	}
	ret_brief[WF_BRIEFS - 1] = atomic_load_explicit(&line->last, memory_order_relaxed);
}

/* Where @maker has opened one for us; NULL: not so. */
static WF_SLOW struct wf_strip *out_find(struct out *o, uint32_t maker)
{
	uint32_t me = wf_segments.process;
	struct wf_ledger *l;

	if (wf_atlas_ledger(maker, &l) < 0 || !atomic_load_explicit(&l->open[me], memory_order_relaxed))
		return NULL;
	atomic_store_explicit(&o->strip, &l->strip[me], memory_order_relaxed);  /* mapped for good; of a dead maker blank in the end, and soon full */
	return &l->strip[me];
}

bool wf_strip_put(uint32_t maker, const uint32_t brief[WF_BRIEFS])
{
	struct out *o = &outs[maker];
	struct wf_strip *s = atomic_load_explicit(&o->strip, memory_order_relaxed);
	bool room;

	if (wf_unlikely(!s) && !(s = out_find(o, maker)))
		return false;
	wf_lock_hot(&o->lock);
	room = out_room(o, s);
	if (wf_likely(room)) {
		line_write(line_of(s, o->written), o->written + 1, brief);
		o->written++;
	}
	wf_unlock(&o->lock);
	return room;
}

uint32_t wf_strips(void)
{
	return atomic_load_explicit(&slots, memory_order_relaxed);
}

static bool in_look(struct in *in)
{
	/* relaxed: a guess; home_lock and W3 decide. */
	struct wf_strip *s = atomic_load_explicit(&in->strip, memory_order_relaxed);
	uint32_t n = atomic_load_explicit(&in->read, memory_order_relaxed);

	return s && atomic_load_explicit(&line_of(s, n)->turn, memory_order_relaxed) == n + 1;
}

bool wf_strips_look(void)
{
	for (uint32_t i = wf_strips(); i-- > 0;)
		if (in_look(&ins[i]))
			return true;
	return false;
}

bool wf_strip_take(uint32_t slot, uint32_t *ret_holder, uint32_t ret_brief[WF_BRIEFS])
{
	struct in *in = &ins[slot];
	struct wf_strip *s = atomic_load_explicit(&in->strip, memory_order_relaxed);    /* this and the next: written under this lock */
	uint32_t n = atomic_load_explicit(&in->read, memory_order_relaxed);
	struct wf_strip_line *line;

	if (!s)
		return false;
	line = line_of(s, n);
	if (wf_acquire32(&line->turn) != n + 1)                                 /* W3 */
		return false;
	line_read(line, ret_brief);
	__builtin_prefetch(line_of(s, n + 1));  /* it comes from the core that wrote it, while these go home */
	*ret_holder = in->holder;
	atomic_store_explicit(&in->read, ++n, memory_order_relaxed);
	if (n % TELL_EVERY == 0)
		atomic_store_explicit(&s->taken, n, memory_order_release);      /* W4 */
	return true;
}

/* A slot that is not used. */
static struct in *in_new(void)
{
	uint32_t n = wf_strips(), i = 0;

	while (i < n && atomic_load_explicit(&ins[i].strip, memory_order_relaxed))
		i++;
	if (i == n)
		atomic_store_explicit(&slots, n + 1, memory_order_relaxed);
	return &ins[i];
}

bool wf_strip_opened(uint32_t holder)
{
	return holder < WF_PROCESSES && atomic_load_explicit(&tried[holder], memory_order_relaxed);
}

void wf_strip_open(uint32_t holder)
{
	struct wf_ledger *l = wf_ledger_mine();
	struct in *in;

	if (holder >= WF_PROCESSES || wf_strip_opened(holder))
		return;
	atomic_store_explicit(&tried[holder], true, memory_order_relaxed);
	if (wf_ledger_strip(holder) < 0)
		return;
	wf_fence_heavy();                                                       /* F1: with wf_share_landed */
	in = in_new();
	in->holder = holder;
	atomic_store_explicit(&in->read, 0, memory_order_relaxed);
	atomic_store_explicit(&in->strip, &l->strip[holder], memory_order_relaxed);
	atomic_store_explicit(&l->open[holder], 1, memory_order_relaxed);       /* what it stands for, pages, is the kernel's; they are zeroes */
}

void wf_strip_close(uint32_t holder)
{
	struct wf_ledger *l = wf_ledger_mine();

	for (uint32_t i = wf_strips(); i-- > 0;)
		if (ins[i].holder == holder && atomic_load_explicit(&ins[i].strip, memory_order_relaxed)) {
			atomic_store_explicit(&l->open[holder], 0, memory_order_relaxed);
			atomic_store_explicit(&ins[i].strip, NULL, memory_order_relaxed);
			wf_ledger_unstrip(holder);
		}
}
