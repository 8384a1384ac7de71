/* pool.c - making buffers, and finding memory for them at the limit. See pool.h.
 *
 * A miss makes several at once, the more the more of that class exist already, and gives them
 * pages before anybody sees them. At the limit, memory that is free in other classes is
 * turned over: first big mappings, then pieces all of whose buffers lie in the depot. Buffers in other
 * threads' caches cannot be had, so those may hold a quarter of the limit in all (wf_depot_quota).
 *
 * Locks, outermost first: (home.c's,) a class's (carving, sifting), big_lock, a depot's, the space lock.
 */
#include "mem/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <weft/base.h>

#include "base/life.h"
#include "mem/buf.h"
#include "mem/poison.h"
#include "mem/segment.h"
#include "mem/share.h"
#include "mem/word.h"

#define LIMIT_DEFAULT ((size_t)1 << 30)
#define AHEAD_BYTES ((size_t)65536)     /* pages are asked for at least this many bytes at a time */
#define CACHED_BYTES ((size_t)2 << 20)  /* a batch of a class is at most this */
#define BATCH_MOST 32
#define ASKS_PER_SIFT 64

_Static_assert(1 << WF_CLASS_MIN == WF_BUF_SMALLEST, "the smallest class");
_Static_assert(WF_CLASS_CHUNK - WF_CLASS_MIN + 1 == WF_DEPOT_BUFS, "a depot per class");

static struct class {
	pthread_mutex_t lock;
	struct wf_piece *piece;         /* under lock: being carved */
	size_t made;                    /* under lock: buffers that exist */
	size_t sifted;                  /* under lock: free ones left by the last sift */
	unsigned asks;                  /* under lock: since the last sift */
	unsigned pass;                  /* under lock: number of the last sift */
} classes[WF_CLASS_CHUNK + 1];

static pthread_mutex_t big_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_link *big_free[WF_CLASS_MAX + 1];      /* under big_lock */
static size_t big_kept;                                 /* under big_lock: bytes in big_free */

_Atomic size_t wf_pool_bound;
static _Atomic size_t limit;
static _Atomic size_t taken;            /* bytes of all buffers that exist */

/* Room for up to @n buffers of @bytes: how many. relaxed, here and in room_give: a count that guards
 * no memory; what a buffer holds is ordered by how it changes hands. */
static unsigned room_take(unsigned n, size_t bytes)
{
	size_t most = atomic_load_explicit(&limit, memory_order_relaxed);
	size_t now = atomic_load_explicit(&taken, memory_order_relaxed);
	size_t fits;

	do {
		fits = now < most ? (most - now) / bytes : 0;
		if (fits > n)
			fits = n;
		if (!fits)
			return 0;
	} while (!atomic_compare_exchange_weak_explicit(&taken, &now, now + fits * bytes,
							memory_order_relaxed, memory_order_relaxed));
	return (unsigned)fits;
}

static void room_give(size_t bytes)
{
	atomic_fetch_sub_explicit(&taken, bytes, memory_order_relaxed);
}

static bool room_for(size_t bytes)
{
	size_t now = atomic_load_explicit(&taken, memory_order_relaxed);
	size_t most = atomic_load_explicit(&limit, memory_order_relaxed);

	return now < most && bytes <= most - now;
}

/* Unmaps free big buffers until the bytes kept are at most @keep. */
static void big_trim(size_t keep)
{
	for (;;) {
		struct wf_link *l = NULL;
		struct wf_buf *b;

		pthread_mutex_lock(&big_lock);
		for (int c = WF_CLASS_MAX; c > WF_CLASS_CHUNK && !l && big_kept > keep; c--)
			if ((l = big_free[c])) {
				big_free[c] = l->next;
				big_kept -= (size_t)1 << c;
			}
		pthread_mutex_unlock(&big_lock);
		if (!l)
			return;
		b = wf_pool_buf(l);
		wf_space_big_unmap(b);
		room_give((size_t)1 << b->class);
		wf_depot_put(WF_DEPOT_HANDLE, l);
	}
}

/* Sifting: sift_see counts the free buffers of each piece, sift_drop takes out those whose piece is
 * wholly free. The class's lock keeps carving and other sifts away. */
struct sift {
	unsigned pass;                  /* never 0, differs from the last one: old counts do not count */
	struct wf_piece *found;
};

static void sift_see(struct wf_link *l, void *arg)
{
	struct wf_piece *p = wf_space_piece_of(wf_pool_buf(l));
	const struct sift *s = arg;

	if (p->pass != s->pass) {
		p->pass = s->pass;
		p->idle = 0;
	}
	p->idle++;
}

static bool sift_drop(struct wf_link *l, void *arg)
{
	struct wf_piece *p = wf_space_piece_of(wf_pool_buf(l));
	struct sift *s = arg;

	if (p->pass && p->idle == p->carved) {
		p->next = s->found;
		s->found = p;
		p->pass = 0;            /* found: its other buffers go too */
	}
	return p->pass == 0;
}

/* Gives back the pieces of a class that are wholly free. */
static void class_sift_locked(unsigned class)
{
	struct class *c = &classes[class];
	int which = WF_DEPOT_BUF + (int)class - WF_CLASS_MIN;
	struct sift s = { .found = NULL };
	struct wf_piece *p, *next;
	size_t n;

	if (!++c->pass)
		c->pass = 1;
	s.pass = c->pass;
	n = wf_depot_sift(which, sift_see, sift_drop, &s);
	c->made -= n;
	c->sifted = wf_depot_free(which);
	c->asks = 0;
	for (p = s.found; p; p = next) {
		next = p->next;
		if (c->piece == p)
			c->piece = NULL;
		wf_space_piece_free(p);
	}
	room_give(n << class);
}

/* Is looking for free pieces likely worth it? A sift walks all free buffers of the class: when all are
 * free, when there is an eighth more than the last one left, and now and then (so that a single
 * free piece among many is found though nothing else changes). */
static bool class_promises_locked(unsigned class)
{
	struct class *c = &classes[class];
	size_t n = wf_depot_free(WF_DEPOT_BUF + (int)class - WF_CLASS_MIN);

	if (!n)
		return false;
	if (n < c->sifted)
		c->sifted = n;
	return n == c->made || n > c->sifted + c->sifted / 8 || ++c->asks >= ASKS_PER_SIFT;
}

/* Makes room for one buffer of @class at the cost of what is free in other classes. */
static bool pool_reclaim(unsigned class)
{
	size_t bytes = (size_t)1 << class;

	wf_share_reclaim();
	wf_depot_flush();
	big_trim(0);
	for (unsigned k = WF_CLASS_CHUNK; k >= WF_CLASS_MIN && !room_for(bytes); k--) {
		if (k == class)
			continue;
		pthread_mutex_lock(&classes[k].lock);
		if (class_promises_locked(k))
			class_sift_locked(k);
		pthread_mutex_unlock(&classes[k].lock);
	}
	return room_for(bytes);
}

static unsigned class_batch(unsigned class)
{
	size_t n = CACHED_BYTES >> class;

	return n < 1 ? 0 : n > BATCH_MOST ? BATCH_MOST : (unsigned)n;
}

/* How many bytes to ask pages for, beyond those populated, that buffers [@first, @first + @n) have theirs. */
static size_t piece_ahead(const struct wf_piece *p, unsigned first, unsigned n)
{
	size_t end = (size_t)(first + n) << p->class, all = (size_t)p->n << p->class;

	if (end <= p->populated)
		return 0;
	end = (end + AHEAD_BYTES - 1) & ~(AHEAD_BYTES - 1);
	return (end > all ? all : end) - p->populated;
}

/* Buffers number *@ret_first on of *@ret_piece are the caller's to make: how many. */
static int class_carve(unsigned class, unsigned max, struct wf_piece **ret_piece, unsigned *ret_first)
{
	struct class *c = &classes[class];
	size_t ahead = AHEAD_BYTES >> class, bytes;
	struct wf_piece *p;
	unsigned n;
	char *from;
	int r;

	pthread_mutex_lock(&c->lock);
	if (ahead < c->made)
		ahead = c->made;
	if (max > ahead)
		max = ahead ? (unsigned)ahead : 1;
	n = room_take(max, (size_t)1 << class);
	if (!n) {
		pthread_mutex_unlock(&c->lock);
		return 0;
	}
	if (!c->piece || c->piece->carved == c->piece->n) {
		r = wf_space_piece_new(class, &c->piece);
		if (r < 0) {
			room_give((size_t)n << class);
			pthread_mutex_unlock(&c->lock);
			return r;
		}
	}
	p = c->piece;
	if (n > p->n - p->carved) {
		room_give((size_t)(n - (p->n - p->carved)) << class);
		n = p->n - p->carved;
	}
	bytes = piece_ahead(p, p->carved, n);
	r = wf_space_piece_reserve(p, p->populated, bytes, p->carved, n);
	if (r < 0) {
		room_give((size_t)n << class);
		pthread_mutex_unlock(&c->lock);
		return r;
	}
	*ret_piece = p;
	*ret_first = p->carved;
	p->carved += n;
	c->made += n;
	from = (char *)wf_space_data(p, 0) + p->populated;
	p->populated += bytes;
	pthread_mutex_unlock(&c->lock);

	/* Outside the lock: it takes long. Others who carve meanwhile may be given buffers whose pages are
	 * still coming, which costs them a fault and nothing else. */
	if (bytes)
		wf_space_populate(from, bytes, class >= WF_CLASS_HUGE);
	return (int)n;
}

/* fill of the depots of buffers. */
static int pool_fill(int which, unsigned max, struct wf_link **ret_list)
{
	unsigned class = (unsigned)(which - WF_DEPOT_BUF + WF_CLASS_MIN), first;
	struct wf_link *list = NULL;
	struct wf_piece *p;
	int n;

	/* What others have given back comes before anything new. */
	while (wf_segments_shared() && wf_share_collect_some() > 0)
		if (wf_depot_take(which, ret_list)) {
			(*ret_list)->next = NULL;
			return 1;
		}
	n = class_carve(class, max, &p, &first);
	if (n == 0 && pool_reclaim(class))
		n = class_carve(class, max, &p, &first);
	if (n == 0)
		return weft_fail(-EAGAIN, "the buffer pool is at its limit of %zu bytes",
				 atomic_load_explicit(&limit, memory_order_relaxed));
	if (n < 0)
		return weft_fail(-ENOMEM, "no memory for buffers of %zu bytes: %s", (size_t)1 << class, strerror(-n));
	for (unsigned i = first + (unsigned)n; i-- > first;) {
		struct wf_buf *b = wf_space_buf(p, i);

		b->home = wf_space_data(p, i);
		b->class = (uint8_t)class;
		b->link.next = list;
		list = &b->link;
	}
	*ret_list = list;
	return n;
}

static struct wf_link *big_take(unsigned class)
{
	struct wf_link *l;

	pthread_mutex_lock(&big_lock);
	l = big_free[class];
	if (l) {
		big_free[class] = l->next;
		big_kept -= (size_t)1 << class;
	}
	pthread_mutex_unlock(&big_lock);
	return l;
}

int wf_pool_take_big(unsigned class, struct wf_buf **ret_buf)
{
	size_t bytes = (size_t)1 << class;
	struct wf_link *l = big_take(class);
	struct wf_buf *b;
	int r;

	if (!l && wf_segments_shared() && wf_share_collect() > 0)
		l = big_take(class);
	if (l) {
		*ret_buf = wf_pool_buf(l);
		return 0;
	}
	if (!room_take(1, bytes) && !(pool_reclaim(class) && room_take(1, bytes)))
		return weft_fail(-EAGAIN, "the buffer pool is at its limit of %zu bytes",
				 atomic_load_explicit(&limit, memory_order_relaxed));
	r = wf_depot_get(WF_DEPOT_HANDLE, &l);
	if (r < 0)
		goto undo_room;
	b = wf_pool_buf(l);
	r = wf_space_big_map(b, class);
	if (r < 0)
		goto undo_handle;
	wf_space_populate(b->home, bytes, true);
	*ret_buf = b;
	return 0;

undo_handle:
	wf_depot_put(WF_DEPOT_HANDLE, l);
undo_room:
	room_give(bytes);
	return weft_fail(-ENOMEM, "no memory for a buffer of %zu bytes: %s", bytes, strerror(-r));
}

/* Half of the limit may lie in free big mappings; with the pool closed, none. That is so in a forked child, too, but its parent has this segment, and the link to the agent. */
void wf_pool_home_big(struct wf_buf *b)
{
	size_t most = atomic_load_explicit(&limit, memory_order_relaxed);

	if (wf_is_child())
		return;
	pthread_mutex_lock(&big_lock);
	b->link.next = big_free[b->class];
	big_free[b->class] = &b->link;
	big_kept += (size_t)1 << b->class;
	pthread_mutex_unlock(&big_lock);
	big_trim(atomic_load_explicit(&wf_pool_bound, memory_order_relaxed) ? most / 2 : 0);
}

int wf_pool_refuse(size_t len)
{
	size_t bound = atomic_load_explicit(&wf_pool_bound, memory_order_relaxed);

	if (!bound)
		return wf_not_in();
	return weft_fail(-ENOBUFS, "a buffer of %zu bytes: the largest is %zu", len, bound - 1);
}

static int pool_setup(void)
{
	static const struct wf_depot_kind handles = { .batch = BATCH_MOST, .fill = wf_space_fill_handles };
	static bool done;
	int r;

	if (done)
		return 0;
	wf_poison_init();
	r = wf_depot_setup(WF_DEPOT_HANDLE, &handles);
	for (unsigned k = WF_CLASS_MIN; k <= WF_CLASS_CHUNK && r == 0; k++) {
		struct wf_depot_kind bufs = { class_batch(k), (size_t)1 << k, pool_fill };

		r = -pthread_mutex_init(&classes[k].lock, NULL);
		if (r == 0)
			r = wf_depot_setup(WF_DEPOT_BUF + (int)(k - WF_CLASS_MIN), &bufs);
	}
	done = r == 0;
	return r;
}

int wf_pool_init(size_t bytes)
{
	size_t largest = (size_t)1 << WF_CLASS_MAX;
	int r = pool_setup();

	if (r < 0)
		return weft_fail(r, "cannot set up the buffer pool");
	if (!bytes)
		bytes = LIMIT_DEFAULT;
	while (largest > bytes)
		largest /= 2;
	wf_depot_quota(bytes / 4);
	atomic_store_explicit(&limit, bytes, memory_order_relaxed);
	/* A limit below the smallest class leaves an open pool that has nothing: bound 1 lets only length 0
	 * past, which then finds no room. */
	largest = largest < WF_BUF_SMALLEST ? 0 : largest;
	atomic_store_explicit(&wf_pool_bound, largest + 1, memory_order_relaxed);
	return 0;
}

void wf_pool_fini(void)
{
	if (!atomic_exchange_explicit(&wf_pool_bound, 0, memory_order_relaxed))
		return;
	wf_depot_flush();
	big_trim(0);
	for (unsigned k = WF_CLASS_MIN; k <= WF_CLASS_CHUNK; k++) {
		pthread_mutex_lock(&classes[k].lock);
		class_sift_locked(k);
		pthread_mutex_unlock(&classes[k].lock);
	}
}
