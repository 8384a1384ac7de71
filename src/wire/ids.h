/* ids.h - a set of ids of one process, each with a word about it. One lock around it, the caller's. Those that are over go when it grows. */
#ifndef WF_WIRE_IDS_H
#define WF_WIRE_IDS_H

#include <stdbool.h>
#include <stdint.h>

enum { WF_ID_NONE, WF_ID_ASKED, WF_ID_OVER };

/* Of receives that ask, each by its number (arrive_kept.c). */
struct wf_turn {
	uint64_t asked;                         /* those up to here have; the rest is due, */
	uint64_t end;                           /* ... up to here, unless @on; and with it those from the first to here once more */
	bool due, on;
};

struct wf_ids {
	struct wf_ids_slot {
		uint32_t id;            /* 0: free */
		uint32_t word;          /* WF_ID_* */
		struct wf_turn turn;    /* begins with each word that is put */
	} *slot;
	uint32_t size, used;
};

int wf_ids_get(const struct wf_ids *s, uint32_t id);                    /* WF_ID_* */
struct wf_turn *wf_ids_turn(const struct wf_ids *s, uint32_t id);       /* of one that is ASKED; NULL: it is not */
int wf_ids_put(struct wf_ids *s, uint32_t id, uint32_t word);           /* 0, -ENOMEM */
void wf_ids_fini(struct wf_ids *s);

#endif
