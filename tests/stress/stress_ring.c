/* stress_ring.c - many threads write into one mailbox: what one of them sent arrives once, whole and in its order,
 * through laps, fullness, changes of cells and changes of the one whose mailbox it is.
 *
 * struct wf_ring is used directly: what is seen here is ring.h alone.
 */
#include "test.h"

#include <sched.h>

#include "port/ring.h"

enum { SENDERS = 3 };

struct sent {
	uint32_t sender;
	uint32_t who;                   /* the incarnation it is meant for */
	uint64_t number;
};

static struct {
	struct wf_ring ring;
	struct wf_cell small[WF_CELLS_SMALL], big[WF_CELLS_BIG];
} m;
static uint64_t per_sender;
static _Atomic uint64_t fulls, refused;
static _Atomic uint32_t incarnation;

static void ring_open(uint16_t who)
{
	uint32_t pos = UINT32_MAX - 100;                /* positions wrap around in every run */

	memset(&m, 0, sizeof(m));
	for (uint32_t i = 0; i < WF_CELLS_SMALL; i++)
		atomic_store_explicit(&m.small[i].seq, pos, memory_order_relaxed);
	atomic_store_explicit(&m.ring.head, pos, memory_order_relaxed);
	atomic_store_explicit(&m.ring.reader.pos, pos, memory_order_relaxed);
	atomic_store_explicit(&m.ring.seen, pos, memory_order_relaxed);
	wf_ring_use(&m.ring, m.small, WF_CELLS_SMALL);
	atomic_store(&incarnation, who);
	atomic_store(&m.ring.tail, (uint64_t)who << 32 | pos);
	atomic_store(&fulls, 0);
	atomic_store(&refused, 0);
}

static void fill(struct wf_cell *c, const struct sent *s)
{
	c->kind = (uint16_t)s->number;
	c->flags = (uint16_t)s->sender;
	c->len = WF_BODY;
	c->src = s->sender;
	c->tag = s->number;
	memset(c->body, (int)(s->number * 7 + s->sender), WF_BODY);
	memcpy(c->body, s, sizeof(*s));
}

static void check_cell(const struct wf_cell *c, uint64_t *next)
{
	struct sent s;

	memcpy(&s, c->body, sizeof(s));
	MUST(s.sender < SENDERS);
	MUST_EQ(s.number, next[s.sender]);
	MUST_EQ(s.who, WF_TAIL_INCARNATION(atomic_load(&m.ring.tail)));
	MUST_EQ(c->src, s.sender);
	MUST_EQ(c->tag, s.number);
	MUST_EQ(c->kind, (uint16_t)s.number);
	for (uint32_t i = sizeof(s); i < WF_BODY; i++)
		MUST_EQ(c->body[i], (unsigned char)(s.number * 7 + s.sender));
	next[s.sender]++;
}

/* One look of the reader: did it read something? */
static bool read_one(uint64_t *next)
{
	struct wf_cell *c = wf_ring_next(&m.ring.reader);

	if (!c)
		return false;
	check_cell(c, next);
	wf_ring_advance(&m.ring.reader);
	return true;
}

static void read_until_drained(uint64_t *next)
{
	while (!wf_ring_drained(&m.ring))
		if (!read_one(next))
			sched_yield();
}

/* One by the call of most senders, more by that for rows. */
static enum wf_claim claim(uint16_t who, uint32_t most, struct wf_claim_row *ret_row)
{
	struct wf_cell *c;
	enum wf_claim claimed;

	if (most > 1)
		return wf_ring_claim_row(&m.ring, who, 0, most, ret_row);
	claimed = wf_ring_claim(&m.ring, who, 0, &ret_row->pos, &c);
	if (claimed == WF_CLAIMED) {
		ret_row->cells = c;
		ret_row->n = 1;
		ret_row->mask = 0;
	}
	return claimed;
}

static void *sender_main(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg;
	uint64_t random = test_seed + me, i = 0;

	while (i < per_sender) {
		uint16_t who = (uint16_t)atomic_load(&incarnation);
		uint64_t left = per_sender - i, most = 1 + test_random(&random) % (2 * WF_CELLS_SMALL);
		struct wf_claim_row row = { .n = 0 };

		if (test_random(&random) % 2)
			most = 1;               /* as most do */
		switch (claim(who, (uint32_t)(most < left ? most : left), &row)) {
		case WF_CLAIMED:
			for (uint32_t k = 0; k < row.n; k++, i++) {
				struct sent s = { .sender = me, .who = who, .number = i };
				struct wf_cell *c = &row.cells[(row.pos + k) & row.mask];

				if (test_random(&random) % 64 == 0)
					sched_yield();  /* claimed and not published */
				fill(c, &s);
				wf_ring_publish(c, row.pos + k);
			}
			break;
		case WF_CLAIM_FULL:
			atomic_fetch_add(&fulls, 1);
			sched_yield();
			break;
		default:
			atomic_fetch_add(&refused, 1);
			sched_yield();
		}
	}
	return NULL;
}

static void senders_start(pthread_t *t, uint64_t count)
{
	per_sender = count;
	for (uintptr_t i = 0; i < SENDERS; i++)
		MUST_OK(pthread_create(&t[i], NULL, sender_main, (void *)i));
}

static void senders_join(pthread_t *t, const uint64_t *next)
{
	for (int i = 0; i < SENDERS; i++)
		MUST_OK(pthread_join(t[i], NULL));
	CHECK(wf_ring_drained(&m.ring));
	CHECK(wf_ring_next(&m.ring.reader) == NULL);
	for (int i = 0; i < SENDERS; i++)
		CHECK_EQ(next[i], per_sender);
	printf("# %llu messages, full %llu times, refused %llu times\n", (unsigned long long)(SENDERS * per_sender),
	       (unsigned long long)atomic_load(&fulls), (unsigned long long)atomic_load(&refused));
}

static bool all_read(const uint64_t *next)
{
	uint64_t n = 0;

	for (int i = 0; i < SENDERS; i++)
		n += next[i];
	return n == SENDERS * per_sender;
}

TEST(what_each_sender_sent_arrives_whole_and_in_its_order_through_laps_and_full_rings)
{
	uint64_t next[SENDERS] = { 0 }, random = test_seed;
	pthread_t t[SENDERS];

	ring_open(1);
	senders_start(t, test_scaled(100000));
	while (!atomic_load(&fulls) && per_sender > WF_CELLS_SMALL)
		sched_yield();                          /* full at least once */
	while (!all_read(next))
		if (!read_one(next) || test_random(&random) % 256 == 0)
			sched_yield();
	senders_join(t, next);
}

/* As a port's owner does: frozen, emptied, other cells, thawed. */
static void change_cells(uint64_t *next)
{
	bool small = atomic_load_explicit(&m.ring.reader.mask, memory_order_relaxed) == WF_CELLS_SMALL - 1;
	uint32_t count = small ? WF_CELLS_BIG : WF_CELLS_SMALL, pos;
	struct wf_cell *cells = small ? m.big : m.small;

	atomic_fetch_or_explicit(&m.ring.tail, WF_TAIL_FROZEN, memory_order_acquire);
	read_until_drained(next);
	pos = atomic_load_explicit(&m.ring.reader.pos, memory_order_relaxed);
	for (uint32_t i = 0; i < count; i++)
		atomic_store_explicit(&cells[i].seq, pos, memory_order_relaxed);
	wf_ring_use(&m.ring, cells, count);
	atomic_store_explicit(&m.ring.head, pos, memory_order_release);
	atomic_fetch_xor_explicit(&m.ring.tail, WF_TAIL_FROZEN | WF_TAIL_BIG, memory_order_release);
}

TEST(nothing_is_lost_or_doubled_when_the_cells_are_changed_under_the_traffic)
{
	uint64_t next[SENDERS] = { 0 }, random = test_seed, changes = 0;
	pthread_t t[SENDERS];

	ring_open(1);
	senders_start(t, test_scaled(50000));
	while (!all_read(next)) {
		if (!read_one(next)) {
			sched_yield();
		} else if (test_random(&random) % 128 == 0) {
			change_cells(next);
			changes++;
		}
	}
	senders_join(t, next);
	printf("# %llu changes of cells\n", (unsigned long long)changes);
}

/* As close and open do: nothing enters, emptied, the next incarnation. */
static void change_owner(uint64_t *next)
{
	uint16_t who = (uint16_t)((atomic_load(&incarnation) + 1) & WF_INCARNATIONS);
	uint32_t pos;

	atomic_fetch_or_explicit(&m.ring.tail, WF_TAIL_CLOSED, memory_order_acq_rel);
	read_until_drained(next);
	pos = atomic_load_explicit(&m.ring.reader.pos, memory_order_relaxed);
	for (uint32_t i = 0; i < WF_CELLS_SMALL; i++)
		atomic_store_explicit(&m.small[i].seq, pos, memory_order_relaxed);
	atomic_store_explicit(&m.ring.head, pos, memory_order_relaxed);
	atomic_store_explicit(&m.ring.seen, pos, memory_order_relaxed);
	atomic_store_explicit(&m.ring.tail, (uint64_t)who << 32 | pos, memory_order_release);
	sched_yield();                          /* senders that know only the old one */
	atomic_store(&incarnation, who);
}

TEST(a_message_reaches_only_the_incarnation_it_was_meant_for)
{
	uint64_t next[SENDERS] = { 0 }, random = test_seed, changes = 0;
	pthread_t t[SENDERS];

	ring_open(WF_INCARNATIONS - 10);       /* they wrap around too */
	senders_start(t, test_scaled(50000));
	while (!all_read(next)) {
		if (!read_one(next)) {
			sched_yield();
		} else if (test_random(&random) % 64 == 0) {
			change_owner(next);
			changes++;
		}
	}
	senders_join(t, next);
	printf("# %llu incarnations\n", (unsigned long long)changes);
}

TEST_MAIN
