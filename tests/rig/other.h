/* other.h - a program of two processes of two hosts, one thread of each of which knows the other's: what they are told on the command line, how they meet, and what one asks of its trunk to the other. */
#ifndef RIG_OTHER_H
#define RIG_OTHER_H

#include <stdbool.h>
#include <stdlib.h>

#include "expect.h"
#include "wire/trunk.h"

static weft_id other;

static inline void say(uint64_t tag, uint64_t number)
{
	EXPECT(weft_send(NULL, other, tag, &number, sizeof(number), SOON), 0);
}

/* Is all that we have sent acknowledged? And when was the other end asked last? */
static inline bool all_acknowledged(struct wf_trunk *t, weft_time *ret_asked)
{
	struct wf_out *out;
	bool all;

	wf_trunk_lock(t);
	out = t->remote.out[WF_STREAM_PLAIN];
	all = out && out->rt.acked == out->rt.tail;
	*ret_asked = out && out->lane ? out->lane->ping_at : 0;
	wf_unlock(&t->lock);
	return all;
}

/* Process 0 runs @zero and the other @one, with the number on the command line, which is called @what. The exit status. */
static inline int run_both(int argc, char **argv, const char *what, void (*zero)(uint64_t number), void (*one)(uint64_t number))
{
	uint64_t number = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	weft_id me;
	bool first;

	if (!number || weft_init(NULL) < 0) {
		fprintf(stderr, "%s: %s%s\n", program_invocation_short_name, number ? weft_last_error() : "usage: a number of ", number ? "" : what);
		return 1;
	}
	first = getenv("WEFT_RANK")[0] == '0';
	me = weft_self();
	EXPECT(weft_send(weft_port_world(), weft_at(first), 0, &me, sizeof(me), SOON), 0);
	EXPECT(weft_recv(weft_port_world(), weft_at(first), 0, &other, sizeof(other), SOON, NULL), 0);
	(first ? zero : one)(number);
	EXPECT(weft_fini(SOON), 0);
	return faults != 0;
}

#endif
