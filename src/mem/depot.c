/* depot.c - the shared half of free objects, and the life of a thread's cache. See depot.h.
 *
 * Locks: a depot's own lock, held for a few stores; nothing is called under it but sift's callbacks.
 */
#include "mem/depot.h"

#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/life.h"
#include "mem/share.h"

struct depot {
	alignas(WF_PAIR) pthread_mutex_t lock;
	struct wf_link *chains;         /* under lock; of kind.batch objects each */
	struct wf_link *loose;          /* under lock; fewer than kind.batch, or all when that is 0 */
	unsigned nloose;
	_Atomic size_t nfree;           /* written under lock, read by anyone */
	struct wf_depot_kind kind;      /* set at setup, then constant */
	_Atomic uint32_t ready;
};

_Thread_local struct wf_cache *wf_cache;
static _Thread_local bool thread_ended; /* its cache has been emptied for good */

static struct depot depots[WF_DEPOTS];
static pthread_mutex_t setup_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t end_key;           /* set under setup_lock before any depot is ready */
static bool end_key_made;
static _Atomic size_t quota, granted;   /* bytes that caches may hold, and that they may by now */

static void cache_end(void *cache);

int wf_depot_setup(int which, const struct wf_depot_kind *kind)
{
	struct depot *d = &depots[which];
	int r = 0;

	pthread_mutex_lock(&setup_lock);
	/* relaxed: written under setup_lock only. */
	if (atomic_load_explicit(&d->ready, memory_order_relaxed))
		goto out;
	if (!end_key_made) {
		r = -pthread_key_create(&end_key, cache_end);
		if (r < 0)
			goto out;
		end_key_made = true;
	}
	r = -pthread_mutex_init(&d->lock, NULL);
	if (r < 0)
		goto out;
	d->kind = *kind;
	atomic_store_explicit(&d->ready, 1, memory_order_release);   /* R1: key, lock and kind */
out:
	pthread_mutex_unlock(&setup_lock);
	return r;
}

void wf_depot_quota(size_t bytes)
{
	/* relaxed: a bound that may be old by a call; grants given before it stay. */
	atomic_store_explicit(&quota, bytes, memory_order_relaxed);
}

size_t wf_depot_free(int which)
{
	return atomic_load_explicit(&depots[which].nfree, memory_order_relaxed);        /* a guess */
}

/* relaxed: written under the lock, and its readers want no more than a guess. */
static void count_locked(struct depot *d, size_t more)
{
	size_t n = atomic_load_explicit(&d->nfree, memory_order_relaxed);

	atomic_store_explicit(&d->nfree, n + more, memory_order_relaxed);
}

static void put_chain_locked(struct depot *d, struct wf_link *chain)
{
	chain->chain = d->chains;
	d->chains = chain;
	count_locked(d, d->kind.batch);
}

static void put_one_locked(struct depot *d, struct wf_link *l)
{
	l->next = d->loose;
	d->loose = l;
	d->nloose++;
	count_locked(d, 1);
	if (d->nloose != d->kind.batch)
		return;
	l->chain = d->chains;
	d->chains = l;
	d->loose = NULL;
	d->nloose = 0;
}

static struct wf_link *take_chain_locked(struct depot *d)
{
	struct wf_link *l = d->chains;

	if (l) {
		d->chains = l->chain;
		count_locked(d, -(size_t)d->kind.batch);
	}
	return l;
}

static struct wf_link *take_one_locked(struct depot *d)
{
	struct wf_link *l;

	if (!d->loose && d->chains) {
		d->loose = d->chains;
		d->nloose = d->kind.batch;
		d->chains = d->chains->chain;
	}
	l = d->loose;
	if (l) {
		d->loose = l->next;
		d->nloose--;
		count_locked(d, -(size_t)1);
	}
	return l;
}

struct wf_cache *wf_depot_cache(void)
{
	struct wf_cache *c = wf_cache;

	if (c || thread_ended)
		return c;
	c = calloc(1, sizeof(*c));
	if (c && pthread_setspecific(end_key, c) != 0) {
		free(c);
		c = NULL;
	}
	wf_cache = c;
	return c;
}

/* A magazine of a counted kind may fill only within what caches together may hold: otherwise the
 * idle caches of many threads could keep all there is from the one thread that needs it. */
static void mag_grant(const struct depot *d, struct wf_mag *m)
{
	size_t bytes = 2 * d->kind.batch * d->kind.bytes;

	if (m->batch || !d->kind.batch)
		return;
	/* relaxed: two counters of permission; what they permit is guarded by other means. */
	if (bytes && atomic_fetch_add_explicit(&granted, bytes, memory_order_relaxed) + bytes >
			     atomic_load_explicit(&quota, memory_order_relaxed))
		atomic_fetch_sub_explicit(&granted, bytes, memory_order_relaxed);
	else
		m->batch = d->kind.batch;
}

static void mag_empty(struct depot *d, struct wf_mag *m)
{
	struct wf_link *l, *next;

	if ((!m->top && !m->spare) || wf_is_child())
		return;
	pthread_mutex_lock(&d->lock);
	if (m->spare)
		put_chain_locked(d, m->spare);
	for (l = m->top; l; l = next) {
		next = l->next;
		put_one_locked(d, l);
	}
	pthread_mutex_unlock(&d->lock);
	m->top = m->spare = NULL;
	m->n = 0;
}

void wf_depot_flush(void)
{
	if (!wf_cache)
		return;
	for (int i = 0; i < WF_DEPOTS; i++)
		mag_empty(&depots[i], &wf_cache->mag[i]);
}

/* The thread ends: the key's destructor. */
static void cache_end(void *cache)
{
	struct wf_cache *c = cache;

	wf_share_flush();
	wf_depot_flush();
	for (int i = 0; i < WF_DEPOTS; i++)
		if (c->mag[i].batch)
			atomic_fetch_sub_explicit(&granted, 2 * depots[i].kind.batch * depots[i].kind.bytes,
						  memory_order_relaxed);
	wf_cache = NULL;
	thread_ended = true;
	free(c);
}

static struct wf_link *mag_pop(struct wf_mag *m)
{
	struct wf_link *l = m->top;

	m->top = l->next;
	m->n--;
	return l;
}

/* From the depot: for a thread that may keep some a batch (or the loose ones), else one. */
static struct wf_link *refill(struct depot *d, struct wf_mag *m)
{
	struct wf_link *l = NULL;

	/* relaxed: a thread that sees 0 though something was just put makes a new object instead. */
	if (!atomic_load_explicit(&d->nfree, memory_order_relaxed))
		return NULL;
	pthread_mutex_lock(&d->lock);
	if (!m || !m->batch) {
		l = take_one_locked(d);
		pthread_mutex_unlock(&d->lock);
		return l;
	}
	m->top = take_chain_locked(d);
	if (m->top) {
		m->n = m->batch;
	} else {
		m->top = d->loose;
		m->n = d->nloose;
		count_locked(d, -(size_t)d->nloose);
		d->loose = NULL;
		d->nloose = 0;
	}
	pthread_mutex_unlock(&d->lock);
	return m->top ? mag_pop(m) : NULL;
}

bool wf_depot_take(int which, struct wf_link **ret_link)
{
	struct depot *d = &depots[which];
	struct wf_cache *c = wf_depot_cache();
	struct wf_mag *m = c ? &c->mag[which] : NULL;

	if (m && !m->top && m->spare) {
		m->top = m->spare;
		m->spare = NULL;
		m->n = m->batch;
	}
	if (m && m->top) {
		*ret_link = mag_pop(m);
		return true;
	}
	if (m)
		mag_grant(d, m);
	*ret_link = refill(d, m);
	return *ret_link;
}

int wf_depot_get_slow(int which, struct wf_link **ret_link)
{
	struct depot *d = &depots[which];
	struct wf_link *l, *list;
	struct wf_cache *c;
	struct wf_mag *m;
	int n;

	if (!wf_acquire32(&d->ready))           /* R1 */
		return -ENOTCONN;
	if (wf_depot_take(which, ret_link))
		return 0;
	n = d->kind.fill(which, d->kind.batch ? d->kind.batch : 1, &list);
	if (n < 0)
		return n;
	l = list;
	c = wf_depot_cache();
	m = c ? &c->mag[which] : NULL;
	if (m && m->batch && !m->top) {
		m->top = l->next;
		m->n = (unsigned)n - 1;
	} else {
		for (list = l->next; n > 1; n--) {
			struct wf_link *next = list->next;

			wf_depot_put_slow(which, list);
			list = next;
		}
	}
	*ret_link = l;
	return 0;
}

void wf_depot_put_slow(int which, struct wf_link *l)
{
	struct depot *d = &depots[which];
	struct wf_cache *c = wf_depot_cache();
	struct wf_mag *m = c ? &c->mag[which] : NULL;

	if (wf_is_child())              /* a thread it does not have may hold the lock; and nobody takes anything there */
		return;
	if (m)
		mag_grant(d, m);
	if (!m || !m->batch) {
		pthread_mutex_lock(&d->lock);
		put_one_locked(d, l);
		pthread_mutex_unlock(&d->lock);
		return;
	}
	if (m->n == m->batch) {
		if (m->spare) {
			pthread_mutex_lock(&d->lock);
			put_chain_locked(d, m->spare);
			pthread_mutex_unlock(&d->lock);
		}
		m->spare = m->top;
		m->top = NULL;
		m->n = 0;
	}
	l->next = m->top;
	m->top = l;
	m->n++;
}

static size_t sift_list_locked(struct depot *d, struct wf_link *l, bool (*drop)(struct wf_link *l, void *arg),
			       void *arg)
{
	struct wf_link *next;
	size_t dropped = 0;

	for (; l; l = next) {
		next = l->next;
		if (drop(l, arg))
			dropped++;
		else
			put_one_locked(d, l);
	}
	return dropped;
}

size_t wf_depot_sift(int which, void (*see)(struct wf_link *l, void *arg),
		     bool (*drop)(struct wf_link *l, void *arg), void *arg)
{
	struct depot *d = &depots[which];
	struct wf_link *chain, *loose, *next;
	size_t dropped = 0;

	pthread_mutex_lock(&d->lock);
	for (chain = d->chains; chain; chain = chain->chain)
		for (struct wf_link *l = chain; l; l = l->next)
			see(l, arg);
	for (struct wf_link *l = d->loose; l; l = l->next)
		see(l, arg);
	chain = d->chains;
	loose = d->loose;
	d->chains = d->loose = NULL;
	d->nloose = 0;
	atomic_store_explicit(&d->nfree, 0, memory_order_relaxed);
	for (; chain; chain = next) {
		next = chain->chain;            /* before putting it back reuses the word */
		dropped += sift_list_locked(d, chain, drop, arg);
	}
	dropped += sift_list_locked(d, loose, drop, arg);
	pthread_mutex_unlock(&d->lock);
	return dropped;
}
