/* sim.h - processes of several hosts in one program: virtual time, a network that fails as told, one seed.
 *
 *     world.c   time, events, faults, the checks of a whole run
 *     wire.c    connections: latency, rate, stalls, breaks at a byte
 *     shell.c   what drives a struct wf_remote: lanes over connections, records, slices
 *     mails.c   messages: their bytes, and the ways they are sent
 *     like.c    those that are as the last one
 *     upper.c   what stands for the ports: posted receives, arrivals, budgets, every message known
 *
 * Nothing but the seed decides: the same seed gives the same trace hash.
 */
#ifndef SIM_H
#define SIM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "peer/remote.h"

#define SIM_PROCS 4
#define SIM_PORTS 2             /* of a process, numbered from 1 */
#define SIM_MAILS 1024
#define SIM_CLASSES 3           /* of tags */
#define SIM_QUEUE 65536u        /* bytes a connection takes ahead */

struct world;
struct proc;
struct wire;
struct parcel;

/* A message, known to everybody. */
struct mail {
	uint32_t id, from_proc, from_port, to_proc, to_port, class;
	int8_t prio;
	uint64_t len, at;               /* at: which of its channel */
	uint8_t *mem;                   /* the sender's, until its end */
	struct wf_rsend s;
	bool accepted, ended, cancel_asked;
	bool alike;                     /* nothing but its bytes tells it from others, or, if it goes with a body: */
	uint64_t number;                /* by which it went */
	bool matched, lost, dropped;    /* lost: may never arrive, and if, not twice; dropped: must not arrive any more */
	int err;
	struct mail *later;             /* in its channel */
};

struct post {                           /* a receive */
	struct wf_node node;
	struct proc *p;
	uint32_t port;
	int want_proc, want_class;      /* -1: any */
	uint64_t cap;
	uint8_t *buf;
	struct mail *mail;              /* matched */
	struct wf_remote *r;
	struct wf_landing landing;
	bool landing_open, closing, over, aborted;
	struct wf_landing invite;       /* memory told ahead of the message */
	uint8_t *invite_buf;
	bool invite_open, invite_closing, by_invite;
	uint64_t answer;                /* to whom, when all is there; 0: nobody */
	int err;
	uint32_t name;
	struct post *all;
};

struct arrival {
	struct wf_node node;
	struct proc *p;
	struct wf_remote *r;
	struct mail *mail;
	uint32_t port;
	enum { COPY, FILLING, ANNOUNCED } kind;
	bool held_on, sync, dropping, closing;
	struct wf_held held;
	struct wf_landing landing;
	uint8_t *copy;
	uint64_t cost, send;
	struct post *post;              /* FILLING: who gets it */
};

#define LIKE_MOST 256

/* One end of a connection. */
struct end {
	struct wire *w;
	struct proc *p;
	uint32_t other;                 /* process */
	struct wf_lane *lane;
	bool up, closed;
	int side;
	/* reading */
	uint8_t *rx;
	uint32_t rx_len, rx_size;
	uint32_t small_len, body_len, body_got;
	enum { READ_HEAD, READ_SMALL, READ_BODY } reading;
	bool slice, slice_drop, retry, again;
	bool whole;                     /* the body was read with its frames */
	struct iovec iov[4];
	int niov;
	struct {                        /* the last record of one message that was read by a short way: like.c */
		size_t n;               /* 0: there was none, or none that another can be like */
		uint32_t body_len;
		unsigned char bytes[LIKE_MOST];
	} came;
	/* writing */
	struct wf_fill fill;
	unsigned char flat[1024];
	struct {                        /* the last record of one message that lies in it */
		size_t n;
		bool body;
		struct wf_brisk msg;
	} left;
	bool has, is_flat;              /* the record lies flat: nobody is told when it is written */
	uint32_t wrote;                 /* bytes of the record, with its head of 8 */
};

struct way {                            /* one direction */
	uint64_t queued;                /* bytes on their way */
	weft_time free_at;              /* the line is busy until */
	weft_time last;                 /* when the last bytes arrive */
	weft_time stall;                /* nothing arrives before */
	int64_t cut;                    /* bytes until it breaks; -1: never */
	struct parcel *first, **end;    /* bytes on their way, in order */
};

struct wire {
	struct end end[2];
	struct way way[2];              /* from side 0, from side 1 */
	uint32_t slot, gen;
	bool broken, done;
	weft_time latency;
	uint64_t rate;
	struct wire *next;
};

struct proc {
	struct world *w;
	uint32_t number;                /* from 1; process number in the job is 10 * number */
	bool dead;
	weft_time paused;               /* does nothing before */
	struct wf_remote *remote[SIM_PROCS + 1];
	bool over[SIM_PROCS + 1];       /* DEAD was told */
	bool closed[SIM_PROCS + 1];     /* CLOSED was told */
	bool busy[SIM_PROCS + 1];
	weft_time tick[SIM_PROCS + 1];
	bool backlog[SIM_PROCS + 1][SIM_PORTS + 1];
	uint64_t unexpected[SIM_PROCS + 1], unexpected_most;
	uint64_t port_bytes[SIM_PROCS + 1][SIM_PORTS + 1];
	bool clogged[SIM_PROCS + 1][SIM_PORTS + 1];
	uint32_t announcements[SIM_PROCS + 1], announcements_most;
	struct wf_node posted[SIM_PORTS + 1], arrivals[SIM_PORTS + 1];
	bool port_closed[SIM_PORTS + 1];
	uint32_t watched[SIM_PROCS + 1], gone[SIM_PROCS + 1];   /* WATCH and GONE that came */
	uint64_t last_gone;             /* the id */
};

struct sim_conf {
	uint64_t seed;
	uint32_t procs, rails, mails;
	weft_time deadline, span;       /* span: the program runs as long */
	uint64_t eager, eager_most, window;
	uint32_t cap, retain, moments, chunk;
	bool faults, pauses, deaths, cuts_off, closes, cancels, bursts, invites, answers, dull;   /* cuts_off: silence longer than the deadline; dull: most messages are as the last */
	bool quiet;
};

struct event {
	weft_time at;
	uint64_t order;
	void (*fn)(struct world *w, void *a, uint64_t b);
	void *a;
	uint64_t b;
};

struct world {
	struct sim_conf conf;
	weft_time now;
	uint64_t random, hash, order;
	struct event *heap;
	uint32_t nheap, heap_size;
	struct proc proc[SIM_PROCS + 1];
	struct wire *wires;
	weft_time silent[SIM_PROCS + 1][SIM_PROCS + 1];         /* from, to: nothing arrives before */
	struct mail *mail[SIM_MAILS];
	uint32_t nmails;
	struct mail *channel[SIM_PROCS + 1][SIM_PORTS + 1][SIM_PROCS + 1][SIM_PORTS + 1][8];
	struct mail *channel_last[SIM_PROCS + 1][SIM_PORTS + 1][SIM_PROCS + 1][SIM_PORTS + 1][8];
	struct post *posts;
	uint32_t nposts;
	struct { uint8_t *mem; uint64_t len; } shut[4 * SIM_MAILS];     /* memory of closed landings: not to change any more */
	uint32_t nshut;
	bool failed, draining;
	char why[256];
	uint64_t lanes_up, breaks, connects;
	uint64_t bytes;
};

/* world.c */
struct world *sim_new(const struct sim_conf *conf);
void sim_free(struct world *w);                         /* with the last checks */
void sim_run(struct world *w, weft_time until);
bool sim_until(struct world *w, bool (*done)(struct world *w), weft_time most);         /* false: not by then */
void sim_at(struct world *w, weft_time at, void (*fn)(struct world *, void *, uint64_t), void *a, uint64_t b);
uint64_t sim_random(struct world *w, uint64_t below);
void sim_fail(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_note(struct world *w, uint64_t what);          /* into the hash */
bool sim_play(const struct sim_conf *conf, uint64_t *ret_hash, char *ret_why);          /* a whole random run; false: a check failed */

void sim_answer(struct proc *p, uint32_t to);           /* a long message came: one goes back, soon */
void sim_answer_alike(struct proc *p, uint32_t to);     /* one came that is as the last: another such one goes back, soon */

/* wire.c */
struct wire *wire_open(struct world *w, uint32_t from, uint32_t to, uint32_t slot, uint32_t gen);
uint32_t wire_put(struct world *w, struct end *e, const void *bytes, uint32_t n);       /* how many it took */
void wire_break(struct world *w, struct wire *wire);
void wire_close(struct world *w, struct end *e);        /* this end is done; the other will see */
void wires_free(struct world *w);

/* shell.c */
void shell_connect(struct world *w, struct proc *p, uint32_t other, uint32_t slot, uint32_t gen);
void shell_bytes(struct world *w, struct end *e);       /* something arrived */
void shell_awake(struct world *w, struct proc *p);      /* a pause is over */
bool shell_body(struct proc *p, uint32_t to, struct wf_rsend *s);               /* the same for one with a body */
bool shell_brisk(struct proc *p, uint32_t to, const struct wf_brisk *b);        /* sent by the shortest way; false: nothing happened */
void shell_room(struct world *w, struct end *e);        /* the connection takes bytes again */
void shell_lost(struct world *w, struct end *e);        /* it is broken */
void shell_after(struct proc *p, uint32_t other);       /* after every call of the remote's: what is to be done */
struct wf_lane *shell_up(struct end *e, bool mine);

/* mails.c */
void mail_alike(struct proc *p, uint32_t to, uint64_t len);     /* from port 1 to port 1: nothing but its bytes tells it from the last one */
void mail_row(struct proc *p, uint32_t port, uint32_t to, uint32_t to_port, uint64_t len, uint32_t count, uint32_t class);      /* short ones, one upon the other, which only their bytes tell apart; at least 8 */
struct mail *mail_send(struct proc *p, uint32_t port, uint32_t to, uint32_t to_port, uint64_t len, int flags, int prio, uint32_t class);

/* upper.c */
void upper_act(struct proc *p, uint32_t other, struct end *e, const struct wf_act *a);
struct post *upper_post(struct proc *p, uint32_t port, int want_proc, int want_class, uint64_t cap);
void upper_cancel(struct proc *p, struct mail *m);
bool upper_unpost(struct proc *p, struct post *post);
void upper_close(struct proc *p, uint32_t port);
void upper_lost(struct proc *p, uint32_t other);        /* the session is over, at this end */
void upper_free(struct world *w);
extern const struct wf_remote_ops upper_ops;

/* like.c: as wf_remote_brisk_flat, wf_remote_body_flat, wf_remote_record_row, by the ways for what is like the last, if they take it. */
size_t like_short(struct end *e, struct wf_remote *r, const struct wf_brisk *b);
size_t like_body(struct end *e, struct wf_remote *r, struct wf_rsend *s);
bool like_row(struct end *e, struct wf_row *ret_row);
bool like_read(struct end *e);                          /* the record at rx, all of which is there: told to the remote. False: nothing happened */
void like_came(struct end *e);                          /* another was: the next may be like it */
extern uint64_t like_sent[2], like_got[2];              /* how often they did: short ones, and with a body */

#endif
