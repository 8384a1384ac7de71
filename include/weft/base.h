/* weft/base.h - words, answers, time, and a process's life in a job.
 *
 * Every call answers 0, a documented positive result or a negative errno; the words for the
 * calling thread's last failure are in weft_last_error(). Outputs come last, are named ret_,
 * stay untouched on error and may be NULL where they are not wanted. What may wait takes an
 * absolute instant. Calls marked [nb] never wait. weft.7 tells the rules that hold for all.
 */
#ifndef WEFT_BASE_H
#define WEFT_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_TAKES      /* callee owns it from success on; on error, still yours */
#define WEFT_HOLDS      /* yours, but keep it alive and untouched until completion */
#define WEFT_GIVES      /* yours when the call succeeds; release as documented */

#define WEFT_DONE 1     /* answer of a _post call: finished on the spot, nothing more will come */

/* A pointer to an option struct with its size set: WEFT(op, .peer = id, .tag = 7). C only. */
#define WEFT(what, ...) (&(struct weft_##what){ .size = sizeof(struct weft_##what), __VA_ARGS__ })

typedef int64_t weft_time;              /* an instant: CLOCK_MONOTONIC in ns */
#define WEFT_NOW ((weft_time)0)         /* do not wait: -EAGAIN instead */
#define WEFT_FOREVER INT64_MAX          /* until completion or the peer's death */
#define WEFT_MS INT64_C(1000000)
#define WEFT_S (1000 * WEFT_MS)

struct weft_task_hooks;                 /* another thread package; not served yet */

struct weft_init_opts {
	uint32_t size, flags;           /* flags: none yet, 0 */
	const char *join, *key;         /* url of a job and file with its key; NULL: as the environment says, else a job of one */
	const char *name, *attrs;       /* of this process */
	const char *knobs;              /* "spin_ns=500 budget=1048576" */
	size_t budget;                  /* bytes for messages nobody asked for yet; 0: 64 MiB */
	void (*log)(int level, const char *line);       /* instead of standard error; any thread */
	const struct weft_task_hooks *tasks;
};

/**
 * weft_init - join the job: that of the agent that started this process (weft run), else that of
 * the processes that another launcher started with it (mpiexec, mpirun, srun), else one of this
 * process alone; counted, so that layers may each call it. Waits for the others only under another
 * launcher, and not longer than WEFT_START_S says.
 * @opts: NULL for all defaults. A second and later call ignores them.
 * Returns 0; -EINVAL for options that make no sense; -E2BIG for options of a newer weft;
 * -EOPNOTSUPP for a field not served yet; -ENOMEM; -ECHILD in a forked child. In a job of several:
 * -EACCES: refused, or this process has left before; -ECONNRESET: no agent answers; -ENOSYS, -EMFILE;
 * under another launcher -ETIMEDOUT: not all have come; -ENOENT, -ECONNREFUSED: no agent could be
 * started; -EPROTO and others: the launcher does not work.
 * Threads: any, concurrently.
 */
int weft_init(const struct weft_init_opts *opts);

/**
 * weft_fini - leave the job. The last of the counted calls drains what is under way until
 * @until, cancels the rest, closes every port and ends weft's own thread. What was done towards
 * other processes they still receive; for them this one is gone, and cannot come back.
 * Returns 0; -ETIMEDOUT (-EAGAIN with WEFT_NOW): left all the same, but something had to be cancelled;
 * -ENOTCONN: there was no weft_init; -EDEADLK in a callback.
 */
int weft_fini(weft_time until);

weft_time weft_now(void);               /* [nb] the present instant */
weft_time weft_in(int64_t ns);          /* [nb] now + ns, saturating; negative: an instant gone by */

/**
 * weft_poll - make progress until something was handled: messages taken from the mailboxes of this thread
 * and of the process, and of ports whose receives tell their end by callback or queue; callbacks run. Returns how much; -EAGAIN with WEFT_NOW and
 * -ETIMEDOUT past @until when there was nothing; -EDEADLK in a callback.
 */
int weft_poll(weft_time until);

const char *weft_version(void);         /* [nb] "1.2.0" */
const char *weft_last_error(void);      /* [nb] words for this thread's last failing call; "" if none */
const char *weft_strerror(int err);     /* [nb] a negative errno in weft's sense */

/* [nb] Returns err and keeps the words for weft_last_error: for layers and services. */
int weft_fail(int err, const char *fmt, ...)
#ifdef __GNUC__
	__attribute__((format(printf, 2, 3)))
#endif
	;

int weft_knob_set(const char *name, const char *value);         /* -ENOENT, -EINVAL, -ERANGE; -EROFS if fixed at init; -ENOTCONN before it */
int weft_knob_get(const char *name, char *ret_text, size_t n);  /* its length; written as far as it fits */

#ifdef __cplusplus
}
#endif
#endif
