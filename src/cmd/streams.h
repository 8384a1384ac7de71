/* streams.h - the launcher's side of standard input, output and error. Nothing here blocks the launcher. */
#ifndef STREAMS_H
#define STREAMS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "run.h"

struct streams;

/* Makes the pipes @run asks for and sets its descriptors. NULL: errno says why. Before the agent is forked. */
struct streams *streams_open(struct run *run);

/* After the fork. In the launcher: closes what is the processes'. In the agent: closes what is the launcher's. */
void streams_split(struct streams *s, struct run *run);
void streams_leave(struct streams *s);

/* A line for standard error, printed when there is room. False: not now, come again. */
bool streams_line(struct streams *s, const char *text);

/* What to poll for: sets up to streams_polls() entries, returns how many. @ret_ms: set if it is to come again by itself. */
size_t streams_polls(const struct streams *s);
size_t streams_fill(struct streams *s, struct pollfd *polls, int *ret_ms);

/* Does what can be done now. */
void streams_act(struct streams *s, const struct pollfd *polls, size_t count);

/* Everything that was written has been printed. @last: nobody can write any more, what is not there now will not come. */
bool streams_done(struct streams *s, bool last);

/* Labels: a process that was started while the job runs. Takes what its standard output and error are read from. -1: no memory, and what it prints is lost. There may be more to poll for from now on. */
int streams_add(struct streams *s, uint32_t rank, const int fds[2]);

/* What other hosts send: @stream is 1 or 2. How many bytes there was room for; and that was all of it: false: there was no room yet for its last line. */
struct streams *streams_carried(const struct run *run);
size_t streams_take(struct streams *s, uint32_t rank, uint32_t stream, const char *bytes, size_t n);
bool streams_over(struct streams *s, uint32_t rank, uint32_t stream);
void streams_end(struct streams *s);            /* no more will come: lines without an end are printed, too */

/* Input for rank 0 on another host: the descriptor to poll for reading, -1: not now, come again after *@ret_ms. */
int streams_input(struct streams *s, int *ret_ms);

#endif
