/* table.c - see table.h. Everything here but look-ups is under one lock: opening is not hot. */
#include "port/table.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define CHUNK (1u << 20)                /* mapped at a time; pages are touched one by one as ports are first used */
#define PER_CHUNK (CHUNK / (uint32_t)sizeof(struct weft_port))
#define FREE_AT_LEAST 64                /* ports wait so long to be reused: a stale pointer stays stale longer */

weft_id wf_process_id;
static struct wf_gone gone;
_Atomic(struct wf_slot *) wf_slots[1u << (WF_LOCAL_BITS - 10)];

static struct wf_lock table_lock;
static struct wf_node free_ports;       /* oldest first */
static size_t free_count;
static struct wf_node all_ports;
static uint32_t fresh = 1;              /* local numbers never used begin here; 0 is the process */

/* Numbers given back, oldest first. */
static struct {
	uint32_t *local;
	uint16_t *generation;           /* by local number, the one to be used next */
	uint32_t head, count, room, generations;
} used;

static _Atomic(char *) chunks[WF_FACES / PER_CHUNK + 1];
static _Atomic uint32_t mapped;         /* ports made; their numbers are below */

struct weft_port *wf_port_at(uint32_t number)
{
	/* acquire: the chunk, and the port's first lines. */
	if (number >= atomic_load_explicit(&mapped, memory_order_acquire))
		return NULL;
	return (struct weft_port *)(void *)(atomic_load_explicit(&chunks[number / PER_CHUNK], memory_order_relaxed) +
					    number % PER_CHUNK * sizeof(struct weft_port));
}

struct weft_port *wf_port_of_parker(const struct wf_parker *parker)
{
	size_t at = (size_t)((const char *)parker - (const char *)wf_board->face);

	return wf_port_at((uint32_t)(at / sizeof(struct wf_face)));
}

static struct weft_port *map_port(void)
{
	uint32_t n = atomic_load_explicit(&mapped, memory_order_relaxed);
	struct weft_port *p;
	char *m;

	if (wf_board_faces(n + 1) < 0)
		return NULL;
	m = atomic_load_explicit(&chunks[n / PER_CHUNK], memory_order_relaxed);
	if (!m) {
		m = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (m == MAP_FAILED)
			return NULL;
		madvise(m, CHUNK, MADV_DONTDUMP);
		madvise(m, CHUNK, MADV_NOHUGEPAGE);     /* an idle process has few ports */
		atomic_store_explicit(&chunks[n / PER_CHUNK], m, memory_order_relaxed);         /* mapped publishes it */
	}
	p = (struct weft_port *)(void *)(m + n % PER_CHUNK * sizeof(*p));
	p->number = n;
	p->face = &wf_board->face[n];
	atomic_store_explicit(&mapped, n + 1, memory_order_release);
	return p;
}

struct weft_port *wf_port_new(void)
{
	struct wf_node *n;
	struct weft_port *p;

	wf_lock(&table_lock);
	n = free_count > FREE_AT_LEAST ? wf_list_pop(&free_ports) : NULL;
	p = n ? wf_of(n, struct weft_port, all) : map_port();
	if (!p && (n = wf_list_pop(&free_ports)) != NULL)       /* better reused early than none */
		p = wf_of(n, struct weft_port, all);
	free_count -= n != NULL;
	wf_unlock(&table_lock);
	if (!p)
		return NULL;
	wf_ring_use(&p->ring, p->cells, WF_CELLS_SMALL);
	return p;
}

void wf_port_recycle(struct weft_port *p)
{
	wf_lock(&table_lock);
	wf_list_add(&free_ports, &p->all);
	free_count++;
	wf_unlock(&table_lock);
}

void wf_port_listed(struct weft_port *p, bool in)
{
	wf_lock(&table_lock);
	if (in)
		wf_list_add(&all_ports, &p->all);
	else
		wf_list_del(&p->all);
	if (!in) {
		gone.lost += atomic_load_explicit(&p->lost, memory_order_relaxed);
		gone.sent += atomic_load_explicit(&p->sent, memory_order_relaxed) + atomic_load_explicit(&p->own_sent, memory_order_relaxed);
		gone.bytes_sent += atomic_load_explicit(&p->sent_bytes, memory_order_relaxed) + atomic_load_explicit(&p->own_sent_bytes, memory_order_relaxed);
		gone.received += p->received;
		gone.bytes_received += p->received_bytes;
		gone.copies += p->copies;
		gone.wakes += atomic_load_explicit(&p->wakes, memory_order_relaxed);
		gone.ready_missed += atomic_load_explicit(&p->ready_missed, memory_order_relaxed);
	}
	wf_unlock(&table_lock);
}

void wf_gone_lost(void)
{
	wf_lock(&table_lock);
	gone.lost++;
	wf_unlock(&table_lock);
}

struct wf_gone wf_gone_read(void)
{
	struct wf_gone g;

	wf_lock(&table_lock);
	g = gone;
	wf_unlock(&table_lock);
	return g;
}

void wf_port_each(void (*f)(struct weft_port *p, void *arg), void *arg)
{
	wf_lock(&table_lock);
	for (struct wf_node *n = all_ports.next; n && n != &all_ports; n = n->next)
		f(wf_of(n, struct weft_port, all), arg);
	wf_unlock(&table_lock);
}

static int grow(void)
{
	uint32_t room = used.room ? used.room * 2 : 1024;
	uint32_t *local = malloc(room * sizeof(*local));
	uint16_t *generation = realloc(used.generation, room * sizeof(*generation));

	if (generation)
		used.generation = generation;
	if (!local || !generation) {
		free(local);
		return weft_fail(-ENOMEM, "no memory for the table of local numbers");
	}
	for (uint32_t i = 0; i < used.count; i++)
		local[i] = used.local[(used.head + i) % used.room];
	for (uint32_t i = used.generations; i < room; i++)
		used.generation[i] = 1;
	free(used.local);
	used.local = local;
	used.head = 0;
	used.room = used.generations = room;
	return 0;
}

static int make_table(uint32_t local)
{
	struct wf_slot *table = atomic_load_explicit(&wf_slots[local / WF_SLOTS_PER_TABLE], memory_order_relaxed);

	if (local >= used.generations && grow() < 0)
		return -ENOMEM;
	if (wf_board_slots(local + 1) < 0)
		return weft_fail(-ENOMEM, "no memory for the table of local numbers");
	if (table)
		return 0;
	table = calloc(WF_SLOTS_PER_TABLE, sizeof(*table));
	if (!table)
		return weft_fail(-ENOMEM, "no memory for the table of local numbers");
	/* release: the zeroed slots, to wf_port_by_id. */
	atomic_store_explicit(&wf_slots[local / WF_SLOTS_PER_TABLE], table, memory_order_release);
	return 0;
}

int wf_table_init(weft_id process)
{
	int r;

	wf_lock(&table_lock);
	wf_process_id = process;
	r = make_table(0);
	wf_unlock(&table_lock);
	return r;
}

static int take_locked(weft_id *ret_id)
{
	uint32_t local;

	if (used.count) {
		local = used.local[used.head];
		used.head = (used.head + 1) % used.room;
		used.count--;
	} else if (fresh < 1u << WF_LOCAL_BITS) {
		if (make_table(fresh) < 0)
			return -ENOMEM;
		local = fresh++;
	} else {
		return weft_fail(-ENOSPC, "all 2^20 local numbers are in use or used up");
	}
	*ret_id = wf_process_id | (weft_id)used.generation[local] << WF_LOCAL_BITS | local;
	return 0;
}

int wf_slot_take(weft_id *ret_id)
{
	int r;

	wf_lock(&table_lock);
	r = take_locked(ret_id);
	wf_unlock(&table_lock);
	return r;
}

static uint64_t slot_word(weft_id id, const struct weft_port *p)
{
	uint64_t place = (uint64_t)(uintptr_t)p >> 7, generation = (id >> WF_LOCAL_BITS) & 0xfff;

	return place << 23 | generation << 11 | p->incarnation;
}

void wf_slot_set(weft_id id, struct weft_port *p)
{
	uint32_t local = (uint32_t)id & ((1u << WF_LOCAL_BITS) - 1);
	struct wf_slot *table = atomic_load_explicit(&wf_slots[local / WF_SLOTS_PER_TABLE], memory_order_relaxed);

	if (table)
		/* release: the open port. */
		atomic_store_explicit(&table[local % WF_SLOTS_PER_TABLE].word, p ? slot_word(id, p) : 0, memory_order_release);
	if (table)
		/* release: B2. For other processes. */
		atomic_store_explicit(&wf_board->slot[local], p ? (uint64_t)(p->number + 1) << 12 | ((id >> WF_LOCAL_BITS) & 0xfff) : 0,
				      memory_order_release);
}

void wf_slot_hide(weft_id id)
{
	atomic_store_explicit(&wf_board->slot[(uint32_t)id & ((1u << WF_LOCAL_BITS) - 1)], 0, memory_order_release);    /* B2 */
}

void wf_slot_drop(weft_id id)
{
	uint32_t local = (uint32_t)id & ((1u << WF_LOCAL_BITS) - 1);

	wf_slot_set(id, NULL);
	wf_lock(&table_lock);
	/* Generation 0 is the process's: a number that has used all the others is retired. */
	if (++used.generation[local] < 1u << WF_GENERATION_BITS)
		used.local[(used.head + used.count++) % used.room] = local;
	wf_unlock(&table_lock);
}

void wf_table_show(struct wf_roots *roots)
{
	roots->port_chunks = (uintptr_t)chunks;
	roots->ports = (uintptr_t)&mapped;
	roots->ports_per_chunk = PER_CHUNK;
}
