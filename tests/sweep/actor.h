/* actor.h - what the two kinds of actors have in common: see actor.c. */
#ifndef SWEEP_ACTOR_H
#define SWEEP_ACTOR_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <weft/weft.h>

#include "script.h"

#define SMALL 8
#define MEDIUM 1000
#define LARGE 40000                     /* some chunks of a pipe */
#define SHARED 9000                     /* read where it lies; by a copy that steps byte by byte on some CPUs */
#define BUFFER 4096
#define BUFFERS 16                      /* one line of returns, and one */
#define CELLS 256                       /* of a mailbox */
#define BEFORE (CELLS - 32)             /* messages sent before the act that fills it */
#define MANY (CELLS + 16)
#define TAG 7
#define TAG_ANSWER 8
#define TAG_DEAD 9                      /* never received */
#define WEDGED (5 * WEFT_S)             /* survivors among themselves; and a victim that lives */
#define DEAD (1 * WEFT_S)               /* until everybody has acted on a death */
#define CHANNEL "sweep"
#define PROCESS(rank) ((weft_id)((rank) + 1) << 32)

extern unsigned rank;
extern struct order now;
extern struct answer say;
extern weft_id other, victim;           /* other: of a survivor; of the victim: FIRST */
extern struct weft_req *pending;        /* what a survivor has under way with the victim */
extern unsigned char bytes[LARGE], room[LARGE];
extern struct weft_buf *kept[BUFFERS];
extern atomic_int told;                 /* a callback was called */

/* The first thing that is wrong is what the answer says. */
void wrong(const char *file, int line, int result, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
int try_call(int r, const char *what, const char *file, int line);
void check_bytes(const unsigned char *p, size_t n, size_t want, unsigned seed, const char *file, int line);
#define WRONG(result, ...) wrong(__FILE__, __LINE__, result, __VA_ARGS__)
#define TRY(call) try_call((call), #call, __FILE__, __LINE__)
#define CHECK_BYTES(p, n, want, seed) check_bytes(p, n, want, seed, __FILE__, __LINE__)

void fill(unsigned char *p, size_t n, unsigned seed);
struct weft_buf *filled(size_t n, unsigned seed);

/* Does it come true within a second, while this thread makes progress? */
bool settles(bool (*holds)(void));
bool was_told(void);

/* survivor.c */
void survivor_begin(void);              /* before weft_init */
void survivor_talk(void);
void survivor_count(void);
void survivor_set(void);
void survivor_end(void);
void survivor_bury(void);
void survivor_leave(void);

/* victim.c */
void sweep_mark(void);                  /* a breakpoint and a return */
void victim_set(void);
void victim_act(void);

#endif
