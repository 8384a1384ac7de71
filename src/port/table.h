/* table.h - pages for ports, and which local number is whose.
 *
 * Numbers are reused oldest first, each time with the next generation, and retired when the
 * generations are used up. Looking one up takes no lock: tables are only added, and a port found under a
 * stale number has another id (ring.h).
 */
#ifndef WF_PORT_TABLE_H
#define WF_PORT_TABLE_H

#include "base/roots.h"
#include "port/port.h"

#define WF_LOCAL_BITS 20
#define WF_GENERATION_BITS 12
#define WF_SLOTS_PER_TABLE 1024u

extern weft_id wf_process_id WF_HERE;   /* set at init, then constant */

/* A slot is one word: address of the port (41 bits, in units of 128) | generation of the id (12) | incarnation (11). */
struct wf_slot {
	_Atomic uint64_t word;          /* 0: nobody */
};
extern _Atomic(struct wf_slot *) wf_slots[1u << (WF_LOCAL_BITS - 10)] WF_HERE;

int wf_table_init(weft_id process);

/* The port whose face has this number, open or not; NULL: none was made yet. */
struct weft_port *wf_port_at(uint32_t number);
struct weft_port *wf_port_of_parker(const struct wf_parker *parker);

/* A closed port, its ring empty; NULL: no memory. */
struct weft_port *wf_port_new(void);
void wf_port_recycle(struct weft_port *p);

int wf_slot_take(weft_id *ret_id);              /* a number, nobody's yet; -ENOSPC, -ENOMEM */
void wf_slot_set(weft_id id, struct weft_port *p);
void wf_slot_hide(weft_id id);                  /* others do not find it any more */
void wf_slot_drop(weft_id id);

/* [any] The port without context that has this id, and its incarnation; NULL: none of this process. */
static inline struct weft_port *wf_port_find(weft_id id, uint16_t *ret_who)
{
	uint32_t local = (uint32_t)id & ((1u << WF_LOCAL_BITS) - 1);
	struct wf_slot *table;
	uint64_t word;

	if (wf_unlikely(id >> 32 != wf_process_id >> 32))
		return NULL;
	/* Each load depends on the one before it (R3): what is found was set before it could be. */
	table = atomic_load_explicit(&wf_slots[local / WF_SLOTS_PER_TABLE], WF_DEPENDS);
	if (wf_unlikely(!table))
		return NULL;
	word = atomic_load_explicit(&table[local % WF_SLOTS_PER_TABLE].word, WF_DEPENDS);
	if (wf_unlikely(!word || ((word >> 11) & 0xfff) != ((id >> WF_LOCAL_BITS) & 0xfff)))
		return NULL;
	*ret_who = (uint16_t)(word & WF_INCARNATIONS);
	return (struct weft_port *)(uintptr_t)(word >> 23 << 7);
}

static inline struct weft_port *wf_port_by_id(weft_id id)
{
	uint16_t who;

	return wf_port_find(id, &who);
}

/* Is (@id) open now? A hint, as everything about others is. */
static inline bool wf_id_lives(weft_id id)
{
	struct weft_port *p = wf_port_by_id(id);

	return p && atomic_load_explicit(&p->id, memory_order_acquire) == id;
}

/* What ports counted that have ended since. */
struct wf_gone {
	uint64_t lost, sent, received, bytes_sent, bytes_received, copies, wakes, ready_missed;
};
struct wf_gone wf_gone_read(void);
void wf_gone_lost(void);         /* a message was lost at a port that is closed already */

/* Every port that is open, under the table's lock: f(p, arg). For state, close and the end of members. */
void wf_port_each(void (*f)(struct weft_port *p, void *arg), void *arg);
void wf_port_listed(struct weft_port *p, bool in);
void wf_table_show(struct wf_roots *roots);

/* [any] id.c: says why nothing goes to @id, or why what was on its way there has ended. Answers @err. */
int wf_id_fail(int err, weft_id id);

#endif
