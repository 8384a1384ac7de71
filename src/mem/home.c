/* home.c - buffers on their way home: chains, the return list, and what the dead had. See share.h.
 *
 *   holder   chain of this thread, per maker     o-o-o      (up to 7, private but for the entries' next)
 *   maker    head in his ledger --> entry --> entry --> ...   links, through the entries' next
 *                                   slip                      beside the link of a wide one: up to 6 others
 *
 * Shape   A stack that anybody pushes whole chains onto (one CAS) and whose maker takes it whole (one exchange): no
 *         node is ever taken singly, so an old head that comes back means the same list or one whose next is written
 *         anew before the CAS. The maker follows links only into his own entries, and takes home only what his
 *         private words say is away. Who runs short takes a few home and leaves the rest of what was taken off the list for the next time (rest).
 *         What others may have written can make a walk end early, never long: it ends
 *         after STRANGE_MOST links that led to nothing.
 * Slip    Each line that a holder writes has to be fetched by the maker, one after another where a link is read out of the last: that cost more than all else
 *         on the way. So of the wide ones in a chain only one has its line written: the others stand in it, by brief links. A slip is written whole
 *         whenever its buffer is linked, before the push (W2): the maker never reads an old one.
 * Death   A chain, or a slip, that a dying process did not push is never read; what stood there is found by its words.
 *         A buffer that is away and HELD(dead), or was given to the dead and its word says 0, is taken back after the list
 *         was emptied: what he had pushed is then off the list. Walks and scans exclude one another by home_lock; otherwise a scan could take back what a
 *         walk has yet to reach, and the walk take back its next life.
 * Word    Whatever the entry said, it says 0 before the buffer is in the pool: its next life begins with that.
 * Edges   W1  see share.c.
 *         W2  release CAS of head (each push reads the one before: a release sequence) -> acquire exchange: the
 *             entries' next, and all that holders did to the memory, before its next life.
 * Locks   home_lock; under it everything that a buffer's way into the pool takes.
 * Tested  tests/unit/test_share.c, tests/stress/stress_share.c.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>

#include "base/life.h"
#include "mem/atlas.h"
#include "mem/depot.h"
#include "mem/ledger.h"
#include "mem/pool.h"
#include "mem/share.h"
#include "mem/word.h"

#define CHAIN_MOST (1 + WF_SLIP)
#define STRANGE_MOST 64
#define SOME (4 * CHAIN_MOST)           /* come home at a time: each has its line asked for while those before it go home */
#define ASKS_PER_SCAN 256
#define PUSH_TRIES 100000               /* only a maker who writes his head without end makes a push fail so often */

enum { ALIVE, DEAD, SETTLED };

static pthread_mutex_t home_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint8_t fate[WF_PROCESSES];
static atomic_bool any_dead;
static _Atomic uint64_t rest;           /* written under home_lock: of a list that was taken, the link where its walk goes on; 0: nowhere */
static _Atomic size_t views_here;       /* of other processes' buffers */

/* A forked child has the words but not the segments: nothing of it is its own. */
static bool is_child(void)
{
	return atomic_load_explicit(&wf_life, memory_order_relaxed) == WF_CHILD;
}

void wf_share_views(int more)
{
	atomic_fetch_add_explicit(&views_here, (size_t)more, memory_order_relaxed);     /* a figure */
}

/* A chain that cannot be pushed stays out until this process ends: its entries say HELD(me). */
static void push(uint32_t maker, uint64_t first, struct wf_entry *last)
{
	struct wf_ledger *l;
	uint64_t head;

	if (wf_atlas_ledger(maker, &l) < 0)
		return;
	head = atomic_load_explicit(l->head, memory_order_relaxed);             /* the CAS decides */
	for (int tries = 0; tries < PUSH_TRIES; tries++) {
		atomic_store_explicit(&last->next, head, memory_order_relaxed);
		if (atomic_compare_exchange_weak_explicit(l->head, &head, first, memory_order_release,  /* W2 */
							  memory_order_relaxed))
			return;
	}
}

/* Who stands on the slip, in the line that has the link. All of it, as it may say something old. */
static void slip_write(struct wf_chain *chain)
{
	while (chain->brief < WF_SLIP)
		chain->slip[chain->brief++] = 0;
	for (int i = 0; i < WF_SLIP / 2; i++)           /* W2 publishes it */
		atomic_store_explicit(&chain->wide[1 + i].next, (uint64_t)chain->slip[2 * i + 1] << 32 | chain->slip[2 * i], memory_order_relaxed);
}

static void chain_push(struct wf_cache *c, struct wf_chain *chain)
{
	if (wf_likely(chain->wide))
		slip_write(chain);
	push(chain->maker, chain->first, chain->last);
	c->chained--;
	chain->links = chain->brief = 0;
	chain->wide = NULL;
}

/* The chain for @maker's: his, or one that is empty, made so if need be. NULL: this thread may have none any more. */
static struct wf_chain *chain_for(uint32_t maker)
{
	struct wf_cache *c = wf_cache;
	struct wf_chain *empty = NULL;

	if (!c && !(c = wf_depot_cache()))
		return NULL;
	for (int i = 0; i < WF_CHAINS; i++) {
		if (c->chain[i].links && c->chain[i].maker == maker)
			return &c->chain[i];
		if (!c->chain[i].links && !empty)
			empty = &c->chain[i];
	}
	if (!empty) {
		empty = &c->chain[maker % WF_CHAINS];
		chain_push(c, empty);
	}
	empty->maker = maker;
	return empty;
}

/* The line of @e is to be here when its slip is written: its maker had it last. To aarch64 only a store says so; on x86-64 the next swap would wait for that. */
static inline void slip_ahead(struct wf_entry *e)
{
#if defined(__x86_64__)
	wf_want_line(e);
#else
	atomic_store_explicit(&e[1].next, 0, memory_order_relaxed);
#endif
}

/* One more in @chain, with a link of its own; @wide: on whose slip others may stand. */
static void chain_link(struct wf_chain *chain, struct wf_entry *entry, uint64_t link, bool wide)
{
	if (!chain->links) {
		wf_cache->chained++;
		chain->last = entry;
	} else {
		atomic_store_explicit(&entry->next, chain->first, memory_order_relaxed);        /* W2 publishes it */
	}
	chain->first = link;
	chain->links++;
	if (wide) {
		chain->wide = entry;
		slip_ahead(entry);
	}
}

static void chain_grown(struct wf_chain *chain)
{
	if (chain->links + chain->brief == CHAIN_MOST)
		chain_push(wf_cache, chain);
}

void wf_share_send_home(const struct wf_chunk *c, unsigned class, uint32_t index)
{
	bool wide = wf_class_wide(class);
	struct wf_chain *chain;
	struct wf_entry *entry;

	if (is_child())
		return;
	chain = chain_for(c->process);
	entry = wf_space_entry(c, class, index);
	if (wf_unlikely(!chain)) {
		struct wf_chain alone = { .wide = entry };

		if (wide)
			slip_write(&alone);
		push(c->process, wf_link_to(c->segment, index), entry);
		return;
	}
	if (wide && chain->wide)
		chain->slip[chain->brief++] = wf_brief_to(c->segment, index);
	else
		chain_link(chain, entry, wf_link_to(c->segment, index), wide);
	chain_grown(chain);
}

void wf_share_send_home_odd(uint32_t maker, struct wf_ledger *l, uint32_t slot)
{
	struct wf_chain *chain;

	if (is_child())
		return;
	chain = chain_for(maker);
	if (!chain) {
		push(maker, wf_link_to(WF_SEGMENT_LEDGER, slot), &l->entry[slot]);
		return;
	}
	chain_link(chain, &l->entry[slot], wf_link_to(WF_SEGMENT_LEDGER, slot), false);
	chain_grown(chain);
}

/* A view, or a buffer with a segment of its own. The handle of the latter stays with the segment. */
static void return_odd(struct wf_buf *b)
{
	struct wf_big *big = b->far.big;
	uint32_t maker = b->far.maker, slot = b->slot;
	struct wf_ledger *l;

	if (b->class == WF_CLASS_FAR) {
		wf_share_views(-1);
		wf_far_view_leaves(b);
		if (!big)
			atomic_fetch_sub_explicit(&wf_space_chunk_of(b)->views, 1, memory_order_relaxed);
		wf_depot_put(WF_DEPOT_HANDLE, &b->link);
	} else {
		wf_far_leaves(b);
	}
	if (is_child())
		return;
	/* At once: a lender looks whether it is back, and large ones are worth a push. */
	if (wf_atlas_ledger(maker, &l) == 0) {
		wf_share_send_home_odd(maker, l, slot);
		wf_share_flush();
	}
	if (big)
		wf_big_put(big);
}

void wf_share_return(struct wf_buf *b)
{
	unsigned class = wf_buf_class(b);       /* before it leaves */
	struct wf_chunk *c;
	uint32_t index;

	if (wf_unlikely(class - WF_CLASS_MIN > WF_CLASS_CHUNK - WF_CLASS_MIN)) {
		return_odd(b);
		return;
	}
	c = wf_space_chunk_of(b);
	index = wf_space_index_of(b);
	wf_far_leaves(b);
	wf_share_send_home(c, class, index);
}

void wf_share_flush(void)
{
	struct wf_cache *c = wf_cache;

	if (!c || !c->chained || is_child())
		return;
	for (int i = 0; i < WF_CHAINS; i++)
		if (c->chain[i].links)
			chain_push(c, &c->chain[i]);
}

/* @b, away until this moment, is ours again. */
static inline void came(struct wf_buf *b, struct wf_entry *e)
{
	wf_user_acquires(b);
	/* relaxed: who has put it writes here no more, and its next life begins behind this. Mostly it is 0: then the line is not taken from anybody. */
	if (wf_unlikely(atomic_load_explicit(&e->holder, memory_order_relaxed)))
		wf_entry_clear(e);
	if (wf_likely(b->class - 1u < WF_CLASS_CHUNK)) {
		b->slot++;
		wf_pool_home(b);
		return;
	}
	if (!b->class)
		wf_ledger_end(b->slot);
	wf_buf_home(b);
}

bool wf_share_came(struct wf_buf *b, struct wf_entry *e)
{
	uint64_t word = atomic_load_explicit(&b->word, memory_order_relaxed);   /* the swap decides */

	if (!wf_is_away(word) || !wf_word_swap(b, &word, WF_BUF_FREE, memory_order_acquire))    /* W1 */
		return false;
	came(b, e);
	return true;
}

void wf_share_unlend(struct wf_buf *v)
{
	pthread_mutex_lock(&home_lock);         /* wf_share_taken may be looking at it */
	wf_ledger_end(v->slot);
	if (v->phase == WF_PHASE_SENT)
		wf_view_move(v, WF_PHASE_SENDING);
	wf_word_set(v, WF_BUF_SENDING);
	pthread_mutex_unlock(&home_lock);
}

struct homing {                         /* a walk along the return list */
	int n, strange;                 /* came home; led to nothing that was away */
	uint32_t segment;               /* where the last one was; 0: nowhere yet */
	struct wf_chunk *chunk;
};

/* Buffer number @index of our chunk @segment, any numbers; NULL: there can be none. *@ret_wide: it may have a slip. */
static inline struct wf_buf *chunk_follow(struct homing *h, uint32_t segment, uint32_t index, struct wf_entry **ret_entry, bool *ret_wide)
{
	unsigned class;

	if (wf_unlikely(h->segment != segment)) {
		h->segment = segment;
		h->chunk = wf_atlas_own(segment);
	}
	if (wf_unlikely(!h->chunk || index >= WF_ENTRIES))
		return NULL;
	class = atomic_load_explicit(&h->chunk->class[index / WF_UNIT_HANDLES], memory_order_relaxed);  /* that of any of it that is away */
	*ret_entry = wf_space_entry(h->chunk, class, index);
	*ret_wide = wf_class_wide(class);
	return &h->chunk->handles[index];
}

/* What @link leads to among ours; NULL: nothing. */
static struct wf_buf *link_follow(struct homing *h, uint64_t link, struct wf_entry **ret_entry, bool *ret_wide)
{
	uint32_t segment = (uint32_t)(link >> WF_LINK_BITS), index = (uint32_t)link & ((1u << WF_LINK_BITS) - 1);
	struct wf_posting *rec;

	if (link >> (WF_LINK_BITS + 32))
		return NULL;
	if (segment != WF_SEGMENT_LEDGER)
		return chunk_follow(h, segment, index, ret_entry, ret_wide);
	rec = wf_ledger_posting(index);
	*ret_entry = &wf_ledger_mine()->entry[index];
	*ret_wide = false;
	return rec ? atomic_load_explicit(&rec->buf, memory_order_acquire) : NULL;
}

/* No acquire: what the word and the entry said before it was given away is behind W2, by way of the taker. */
static inline void home_one(struct homing *h, struct wf_buf *b, struct wf_entry *e)
{
	uint64_t word = atomic_load_explicit(&b->word, memory_order_relaxed);   /* the swap decides */

	do {
		if (wf_unlikely(!wf_is_away(word))) {
			h->strange++;
			return;
		}
	} while (wf_unlikely(!wf_word_swap_bare(b, &word, WF_BUF_FREE)));
	came(b, e);
	h->n++;
}

static inline void home_brief(struct homing *h, uint32_t brief)
{
	struct wf_entry *e;
	struct wf_buf *b;
	bool wide;

	if (!brief)
		return;
	b = chunk_follow(h, brief >> WF_BRIEF_BITS, brief & ((1u << WF_BRIEF_BITS) - 1), &e, &wide);
	if (b)
		home_one(h, b, e);
	else
		h->strange++;
}

/* All of the line before it is anybody else's. The next link. */
static inline uint64_t line_read(struct wf_entry *e, bool wide, uint64_t *slip)
{
	for (int i = 0; i < WF_SLIP / 2; i++)
		slip[i] = wide ? atomic_load_explicit(&e[1 + i].next, memory_order_relaxed) : 0;
	return atomic_load_explicit(&e->next, memory_order_relaxed);
}

/* Walks along @link until @most have come home: where to go on; 0: at the end. */
static uint64_t walk_locked(uint64_t link, int most, struct homing *h)
{
	struct wf_entry *e, *after;
	struct wf_buf *b;
	bool wide;

	b = link ? link_follow(h, link, &e, &wide) : NULL;
	while (b && h->n < most) {
		struct wf_buf *home = b;
		uint64_t slip[WF_SLIP / 2];

		if (h->strange >= STRANGE_MOST)
			return 0;
		link = line_read(e, wide, slip);
		after = e;
		b = link ? link_follow(h, link, &after, &wide) : NULL;
		if (b)
			__builtin_prefetch(after);      /* it comes from the core that wrote it, while what is here goes home */
		home_one(h, home, e);
		e = after;
		for (int i = 0; i < WF_SLIP / 2; i++) {
			home_brief(h, (uint32_t)slip[i]);
			home_brief(h, (uint32_t)(slip[i] >> 32));
		}
	}
	return b ? link : 0;
}

static int collect_locked(struct wf_ledger *l, int most)
{
	uint64_t link = atomic_load_explicit(&rest, memory_order_relaxed);      /* written under this lock */
	struct homing h = { .n = 0 };

	if (link)
		link = walk_locked(link, most, &h);
	if (!link && h.n < most) {
		h.strange = 0;
		link = walk_locked(atomic_exchange_explicit(l->head, 0, memory_order_acquire), most, &h);       /* W2 */
	}
	atomic_store_explicit(&rest, link, memory_order_relaxed);
	return h.n;
}

static int collect(int most)
{
	struct wf_ledger *l = wf_ledger_mine();
	int n;

	/* relaxed: what is pushed this moment is found next time. */
	if (!l || is_child() || !(atomic_load_explicit(&rest, memory_order_relaxed) | atomic_load_explicit(l->head, memory_order_relaxed)))
		return 0;
	pthread_mutex_lock(&home_lock);
	n = collect_locked(l, most);
	pthread_mutex_unlock(&home_lock);
	return n;
}

int wf_share_collect(void)
{
	return collect(INT_MAX);
}

int wf_share_collect_some(void)
{
	return collect(SOME);
}

static int fate_of(uint32_t process)
{
	return process < WF_PROCESSES ? atomic_load_explicit(&fate[process], memory_order_relaxed) : ALIVE;
}

bool wf_share_orphaned(uint64_t holder)
{
	uint32_t from = wf_holder_from(holder), to = wf_holder_to(holder);

	switch (holder & WF_HOLDER_KIND) {
	case WF_HOLDER_HELD:
		return fate_of(from) != ALIVE;
	case WF_HOLDER_FLYING:
		return fate_of(from) == SETTLED || fate_of(to) == SETTLED;
	default:
		return false;
	}
}

static void take_back(struct wf_buf *b, struct wf_entry *e, void *arg)
{
	uint64_t word = atomic_load_explicit(&b->word, memory_order_acquire), holder;   /* W1 */

	(void)arg;
	if (!wf_is_away(word))
		return;
	holder = atomic_load_explicit(&e->holder, memory_order_relaxed);
	/* What the dead one got from us, and gave to nobody, nobody will ever read, taken or not. */
	if (holder & WF_HOLDER_KIND ? wf_share_orphaned(holder) : fate_of(wf_away_to(word)) != ALIVE)
		wf_share_came(b, e);
}

static void scan(void)
{
	struct wf_ledger *l = wf_ledger_mine();

	if (!l || is_child())
		return;
	pthread_mutex_lock(&home_lock);
	collect_locked(l, INT_MAX);
	wf_atlas_each_own(take_back, NULL);
	pthread_mutex_unlock(&home_lock);
}

static void fate_set(uint32_t process, uint8_t what)
{
	if (process >= WF_PROCESSES)
		return;
	/* relaxed: read under home_lock, which the scan takes next, or a moment late. */
	atomic_store_explicit(&fate[process], what, memory_order_relaxed);
	atomic_store_explicit(&any_dead, true, memory_order_relaxed);
	scan();
}

void wf_share_dead(uint32_t process)
{
	fate_set(process, DEAD);
}

void wf_share_settled(uint32_t process)
{
	fate_set(process, SETTLED);
}

/* Everything the dead had was taken back when that was told. Should somebody have given a buffer to one of them later all the
 * same, it is found here; a scan looks at every buffer, so not each time. */
void wf_share_reclaim(void)
{
	static _Atomic unsigned asks;

	if (!wf_segments_shared())
		return;
	if (atomic_load_explicit(&any_dead, memory_order_relaxed) &&
	    atomic_fetch_add_explicit(&asks, 1, memory_order_relaxed) % ASKS_PER_SCAN == 0)
		scan();
	else
		wf_share_collect();
}

struct taken {
	const struct wf_buf *of;
	uint64_t n;
};

static void count_taken(struct wf_buf *b, struct wf_entry *e, void *arg)
{
	struct taken *t = arg;

	if (wf_is_away(atomic_load_explicit(&b->word, memory_order_acquire)) && !b->class && b->view.of == t->of &&  /* W1 */
	    (atomic_load_explicit(&e->holder, memory_order_relaxed) & WF_HOLDER_KIND) == WF_HOLDER_HELD)
		t->n++;
}

uint64_t wf_share_taken(const struct wf_buf *b)
{
	struct taken t = { b, 0 };

	if (is_child())
		return 0;
	pthread_mutex_lock(&home_lock);         /* views that are away stay so meanwhile */
	wf_atlas_each_lent(count_taken, &t);
	pthread_mutex_unlock(&home_lock);
	return t.n;
}

static void count_away(struct wf_buf *b, struct wf_entry *e, void *arg)
{
	(void)e;
	*(size_t *)arg += wf_is_away(atomic_load_explicit(&b->word, memory_order_relaxed));
}

static void count_here(struct wf_buf *b, void *arg)
{
	uint64_t state = atomic_load_explicit(&b->word, memory_order_relaxed) & WF_BUF_STATE;

	*(size_t *)arg += state != WF_BUF_NONE && state != WF_BUF_FREE;
}

void wf_share_count(size_t *ret_away, size_t *ret_here)
{
	size_t away = 0, here = atomic_load_explicit(&views_here, memory_order_relaxed);

	wf_atlas_each_own(count_away, &away);
	wf_atlas_each_far(count_here, &here);
	*ret_away = away;
	*ret_here = here;
}
