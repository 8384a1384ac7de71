/* share.h - buffers in other processes' hands.
 *
 * Shape   For every buffer of a segment its maker's segment has one word (beside the buffers, never among what users
 *         write): HELD(p): process p has it; FLYING(p to q): p has given it to q, who has not taken it yet. The giver
 *         stores it before the message is published, the taker when he takes it. The maker keeps class, size and
 *         state in private memory and believes of the shared words only what fits: a word can delay a buffer's return
 *         or give it back early to a process that lies about itself, never break memory.
 *         A buffer of a chunk that its maker gives away needs no such word: the maker knows to whom (word.h), and the word
 *         says 0 until that one gives it on. Its line would have to go there with each buffer, and back. The taker
 *         believes its maker without it: it is his memory, and he could have written any word there. So that one flight
 *         is not taken for two it has a number, which the taker's handle keeps; it comes round after 2^32 flights (word.h).
 *         A buffer comes home by its holder's strip at its maker (strip.h), up to 15 to a line, or through the maker's return list: a stack of links with its head in the maker's ledger
 *         (ledger.h), pushed by whoever puts it, in chains of up to 7 by one CAS each, taken whole by the maker
 *         (home.c). What a dying process did not publish is found by its words.
 * Death   The maker takes back HELD(dead), and what it gave to the dead if the word says 0: a living one would have it by a
 *         word. FLYING(p to q) when the agent says that p's or q's death is settled: everybody alive has acted on it, so
 *         that what was published has been taken.
 */
#ifndef WF_MEM_SHARE_H
#define WF_MEM_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/buf.h>

/* What a cell carries of a buffer: 32 bytes of numbers, all hostile to the taker. */
struct wf_flight {
	uint32_t maker;                 /* process whose memory it is, and to whom it goes home */
	uint32_t segment;
	uint64_t offset;                /* of its first byte */
	uint32_t index;                 /* of its entry; of a view and of a big one: in the ledger */
	uint32_t class;                 /* log2 of its bytes */
	uint32_t view;                  /* 1: a read-only view, lent by its maker */
	uint32_t number;                /* by its maker, of a buffer in a chunk: differs from that of its last flight */
};

/* Out of a cell, where others may write at any time: each word once, and word by word. What is stored by 16 bytes and loaded in parts cannot be read
 * until the store has left the core. */
static inline void wf_flight_get(const void *cell, struct wf_flight *ret_flight)
{
	const volatile struct wf_flight *from = cell;

	ret_flight->maker = from->maker;
	ret_flight->segment = from->segment;
	ret_flight->offset = from->offset;
	ret_flight->index = from->index;
	ret_flight->class = from->class;
	ret_flight->view = from->view;
	ret_flight->number = from->number;
}

/* Into one. Word by word, so that what was put together in registers is not written twice. */
static inline void wf_flight_put(void *cell, const struct wf_flight *f)
{
	struct wf_flight *to = cell;

	to->maker = f->maker;
	to->segment = f->segment;
	to->offset = f->offset;
	to->index = f->index;
	to->class = f->class;
	to->view = f->view;
	to->number = f->number;
}

/**
 * wf_buf_fly - [any] @carry (between wf_buf_send_begin and wf_buf_sent, as buf.h) is about to be published to process
 * @to. It is on its way there from now on, and *@ret_flight is to be put into the message.
 * Returns 0; -EXDEV: it cannot travel as it is (not in shared memory; a view of another process's buffer): the
 * payload has to be copied; -ENOMEM.
 * After a publication @carry is gone for this process, as after wf_buf_sent: if it was made here its handle is marked
 * as away; if it was another's its handle is free.
 * Whoever tells the agent that this process has acted on the death of @to has seen to it that no thread is between
 * this call and flown or unfly to it: the maker may take the buffer back from then on.
 */
int wf_buf_fly(struct weft_buf *carry, uint32_t to, struct wf_flight *ret_flight);

/* [any] It was not published: as before wf_buf_fly, and wf_buf_send_undo may follow. Not of one of ours if it was to go to a process that may have died: it is
 * taken back. */
void wf_buf_unfly(struct weft_buf *carry);

/* [any] It was published: the giver's side is over. The carry itself is not named: it may be home, or here again, by now. */
void wf_buf_flown(const struct wf_flight *flight);

/**
 * wf_buf_land - [any] takes what @from published for this process.
 * @flight:  the caller's copy, not what others can write to.
 * @ret_buf: a buffer in this process's hands, state as after wf_buf_delivered; WEFT_ST_SHARED if wf_buf_is_shared.
 * Returns 0; -EBADMSG: nonsense (nothing happened); -ENOMEM: it can be tried again.
 */
int wf_buf_land(uint32_t from, const struct wf_flight *flight, size_t len, struct weft_buf **ret_buf);

/* [any] Nobody here wants it: goes home without being mapped. Nonsense is ignored. */
void wf_buf_refuse(uint32_t from, const struct wf_flight *flight);

/* [any] Chains not yet full are pushed: before this thread sleeps, and when it ends. Cheap when there are none. */
void wf_share_flush(void);

/* [any] My buffers that have come home go to the pool: how many. Also done by the pool when it runs short. */
int wf_share_collect(void);

/* [any] Likewise a few of them, if there are: who runs short is not to stop until all are home, as long as others wait for what it does with the first. */
int wf_share_collect_some(void);

/* [listener] @process is dead / everybody has acted on its death. */
void wf_share_dead(uint32_t process);
void wf_share_settled(uint32_t process);

/* [any] Has a holder's word (word.h) lost its meaning with somebody's death? */
bool wf_share_orphaned(uint64_t holder);

/* Counts for state and tests: my buffers that others have, others' that I have. */
void wf_share_count(size_t *ret_away, size_t *ret_here);

#endif
