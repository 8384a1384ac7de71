/* agent.h - the agent's state. One thread; nothing it does waits for a process. */
#ifndef AGENT_H
#define AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "job/launch.h"
#include "job/link.h"
#include "run.h"
#include "control.h"
#include "hostlist.h"
#include "where.h"

#define STATUS_UNKNOWN (-1)

struct segment {
	uint32_t number;
	int fd;
};

/* A notice on its way, and what goes with it. */
struct letter {
	struct wf_note note;
	void *bytes;                    /* NULL: nothing */
	size_t n;
};

enum stage {
	STAGE_EMPTY,            /* nobody has joined */
	STAGE_IN,
	STAGE_DYING,            /* its link broke or it sent nonsense: killed; its end is awaited */
	STAGE_LEFT,             /* said farewell, or exec'ed */
	STAGE_DEAD,
};

/* One process of the job: the program that was started, and who joined in its place, which may be a descendant of it. */
struct place {
	uint32_t number;                /* in the job */
	uint32_t index;                 /* here: 0 .. count - 1 */
	uint32_t rank, base, size;      /* in its world, whose first has number base + 1 */
	uint32_t app;                   /* which program of its launch */
	const struct part *part;
	const char *attrs;              /* to be published of it; NULL: none */
	bool launched;                  /* by weft_spawn */
	bool watched;                   /* who asked for it wants to know its end, which then is no failure of the job */
	bool guest;                     /* came by itself */
	int out, err;                   /* while a launched one is started: its standard output and error; -1: the agent's */
	int exec;                       /* says whether a launched one could be executed; -1: known */
	enum stage stage;

	pid_t main;                     /* what was started; 0: not started, or reaped */
	int exec_error;                 /* why it could not be executed, */
	const char *exec_what;          /* and what could not be: the program, or its directory */

	pid_t pid;                      /* who joined; may be main */
	int pidfd;                      /* of it, where it is not main; else -1 */
	int64_t stopped_since;          /* by --stop-limit; 0: it runs */

	int door, calls, notes;         /* -1: closed */
	int board, event;               /* kept to the job's end: a late one may meet a dead one's board */
	struct segment *segments;       /* sorted by number; kept until its death is settled */
	size_t segment_count, segment_room;

	/* What it was told or has said about each place: a bit each, so that nothing is queued twice and a queue is bounded. */
	unsigned char *marks;           /* by number */
	struct letter *queue;           /* not yet sent: from queue_first to queue_end */
	size_t queue_first, queue_end, queue_room;
	size_t dir_bytes;               /* of the directory's in it */
	bool dir_lost;                  /* they were too many: it is told so, and gets none any more */
	bool writing;                   /* the loop waits until notes can be written */

	int status;                     /* gone: as wait's, or STATUS_UNKNOWN */
	unsigned unacted;               /* gone: how many living ones have not acted on it yet */
	bool settled;
};

struct packet;

struct agent {
	const struct run *run;
	int control, signals, epoll, exec_errors;
	unsigned char job[16];
	cpu_set_t *cpus;                /* of each place, by its index; NULL: they are not bound */

	struct where where;
	struct place **places;
	unsigned count;
	struct place *numbered[WF_AGENTS];      /* by number; NULL: not of this host */
	unsigned running;               /* mains that have not ended */
	unsigned draining;              /* that have, and whose output is not written yet (relay.h) */
	uint32_t next_number;           /* the only agent's: the last one given out */
	uint32_t next_job;              /* likewise, of other jobs */
	char url[128];                  /* where guests come; "": nobody can */
	unsigned segments, segments_most;       /* descriptors kept for processes; the rest is for joining */
	int code;                       /* of the first that failed */
	bool failed, stopped;           /* stopped: the user stopped the job */
	bool aborted;                   /* a process has ended the job */
	bool begun;                     /* all agents are there: processes may be started */
	int64_t interrupted;            /* until then ends are no news: a signal was forwarded that ends programs */

	enum { WORKING, ENDING, KILLING } phase;
	int64_t deadline;               /* ENDING: when to kill; KILLING: when to look again */
	int64_t give_up;                /* KILLING: when to leave without the rest */
	int64_t timeout, stop_look;     /* 0: none */

	struct packet *packets, **packets_end;  /* for the launcher, which has no room for them now */
	unsigned line_count;            /* of those among them that are to be printed */
	bool packets_wait;              /* the loop waits for room */
};

/* What the loop waits for: a kind, and a place. */
enum source { FROM_CONTROL, FROM_SIGNALS, FROM_DOOR, FROM_CALLS, FROM_NOTES, FROM_PIDFD, FROM_MESH, FROM_EXEC, FROM_GUESTS, FROM_GUEST, FROM_RELAY, FROM_OUTLET };

/* agent.c */
void agent_say(struct agent *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void agent_remark(struct agent *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));     /* only with -v */
void agent_tell(struct agent *a, enum control kind, const void *body, size_t n);       /* the launcher hears it, be it later */
void agent_tell32(struct agent *a, enum control kind, uint32_t value);
void agent_end(struct agent *a, int code);              /* ends the job; the first code that is not 0 stays */
void agent_failed(struct agent *a, int code);           /* the first code counts */
void agent_idle(struct agent *a);                       /* whether any runs here has changed */
void agent_abort(struct agent *a, const struct place *by, int code, const char *why);       /* ends it at once: @by wants that */
int agent_watch(struct agent *a, int fd, enum source from, uint32_t number);
int agent_rewatch(struct agent *a, int fd, enum source from, uint32_t number);          /* it was watched as something else */
struct place *place_add(struct agent *a, uint32_t number, uint32_t base, uint32_t size);       /* NULL: no memory */
void numbers_ask(struct agent *a, uint32_t ticket, uint32_t count);      /* launch.c: launch_numbers tells */
void numbers_ask_again(struct agent *a);                 /* launch.c: all that have not come; another gives them out now */
uint32_t numbers_take(struct agent *a, uint32_t count);  /* launch.c, of who gives them out: the number before the first; 0: there are no more. For count 0: one for another job */
void fd_close(int *fd);

/* start.c */
bool start_all(struct agent *a);
const struct part *start_part(const struct run *run, uint32_t rank, uint32_t *ret_app);        /* the program of a rank */
void start_errors(struct agent *a);                     /* reads why programs could not be executed */
int start_place(struct agent *a, struct place *p);      /* one that was launched: 0, or a negative errno; launch_exec tells the rest */
void start_known(struct agent *a, struct place *p);     /* its exec has something to say */

/* desk.c: frames of processes */
void desk_door(struct agent *a, struct place *p);
void desk_call(struct agent *a, struct place *p);
void desk_last_words(struct agent *a, struct place *p); /* its link is about to be closed */

/* news.c: who is told what */
enum { MARK_ASKED = 16, MARK_ACTED = 32 };              /* besides a bit per kind of notice: 1 << kind - 1 */

void news_tell(struct agent *a, struct place *to, uint32_t what, const struct place *about);
void news_asked(struct place *p, uint32_t about);       /* wants to hear that process @about has joined */
void news_flush(struct agent *a, struct place *p);
void news_joined(struct agent *a, struct place *p);
void news_acted(struct agent *a, struct place *p, struct place *dead);
void news_gone(struct agent *a, struct place *p, int status, bool left);
void news_dir(struct agent *a, struct place *to, uint32_t what, const void *bytes, size_t n);     /* of the directory */
void news_letter(struct agent *a, struct place *to, uint32_t what, const void *bytes, size_t n);   /* that comes in any case */
void news_far(struct agent *a, uint32_t what, uint32_t process, int status, bool left);         /* JOINED or DEAD, of a process of another host */

void news_abroad(struct agent *a, struct place *to, uint32_t what, uint32_t number);            /* of another job, or a process of it */

/* death.c: what has become of a process */
void death_link(struct agent *a, struct place *p);                      /* its link is closed */
void death_nonsense(struct agent *a, struct place *p, const char *what);
void death_pidfd(struct agent *a, struct place *p);
void death_reaped(struct agent *a, pid_t pid, int status);
int death_signal(struct agent *a, uint32_t process, int sig);            /* of weft_kill: 0, or a negative errno */
void death_stopped(struct agent *a);                                    /* --stop-limit: looks at all */

#endif
