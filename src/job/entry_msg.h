/* entry_msg.h - what who spawns threads and who has the entry say to each other, as bytes.
 *
 *      spawner                          process with the entry
 *         CALL     ticket                     ------>   name, count, attributes, argument
 *         ANSWER   ticket, index              <------   id, or why not; one per thread
 *         VERDICT  ticket, index              ------>   go on, or not: its function is called after that and no sooner
 *         ENDED    ticket, index              <------   nothing; only if the call asked for it
 *
 * All of it goes between ports of one context that belongs to weft. Kind, ticket (the spawner's number of the call) and index (of the thread) are the tag.
 */
#ifndef WF_JOB_ENTRY_MSG_H
#define WF_JOB_ENTRY_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/id.h>

#include "dir/text.h"

#define WF_ENTRY_COUNT 65536u           /* most threads of a call */
#define WF_ENTRY_ARG 1048576u           /* most bytes of an argument */
#define WF_ENTRY_WORDS 159u             /* of an error */
#define WF_ENTRY_CALL (64u + WF_DIR_NAME + WF_DIR_ALL + WF_ENTRY_ARG)   /* room for a call */
#define WF_ENTRY_ANSWER (32u + WF_ENTRY_WORDS)                          /* for an answer */

/* ANSWER and ENDED differ in one bit: one receive gets both. */
enum wf_entry_kind { WF_ENTRY_ANSWERS = 2, WF_ENTRY_ENDS = 3, WF_ENTRY_CALLS = 4, WF_ENTRY_VERDICTS = 6 };

#define WF_ENTRY_KIND_BIT (UINT64_C(1) << 60)   /* in which those two differ */
#define WF_ENTRY_INDEX_BITS UINT64_C(0xffff)
#define WF_ENTRY_TICKET_BITS (((UINT64_C(1) << 60) - 1) & ~WF_ENTRY_INDEX_BITS)

static inline uint64_t wf_entry_tag(enum wf_entry_kind kind, uint64_t ticket, uint32_t index)
{
	return (uint64_t)kind << 60 | (ticket << 16 & WF_ENTRY_TICKET_BITS) | index;
}

static inline enum wf_entry_kind wf_entry_tag_kind(uint64_t tag)
{
	return (enum wf_entry_kind)(tag >> 60);
}

static inline uint64_t wf_entry_tag_ticket(uint64_t tag)
{
	return (tag & WF_ENTRY_TICKET_BITS) >> 16;
}

static inline uint32_t wf_entry_tag_index(uint64_t tag)
{
	return (uint32_t)(tag & WF_ENTRY_INDEX_BITS);
}

struct wf_entry_call {
	uint32_t count;
	bool ends;                      /* the spawner is to be told when one has ended */
	const char *name, *attrs;       /* attrs NULL: none */
	const void *arg;
	size_t len;
};

struct wf_entry_answer {
	weft_id id;                     /* or */
	int err;                        /* why it did not start, */
	bool rest;                      /* nor did those behind it */
	const char *words;
};

/* How many bytes were written; 0: that is no call, or does not fit. */
size_t wf_entry_call_write(const struct wf_entry_call *c, void *ret, size_t room);
size_t wf_entry_answer_write(const struct wf_entry_answer *a, void *ret, size_t room);

/* Texts and argument lie in @bytes. False: nonsense. */
bool wf_entry_call_read(const void *bytes, size_t n, struct wf_entry_call *ret);
bool wf_entry_answer_read(const void *bytes, size_t n, struct wf_entry_answer *ret);

#endif
