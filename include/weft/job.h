/* weft/job.h - the job as a whole: more processes and threads for it, and its end. */
#ifndef WEFT_JOB_H
#define WEFT_JOB_H

#include <weft/base.h>
#include <weft/id.h>
#include <weft/req.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A place in a program where threads may be begun from outside: @len bytes at @arg, which hold until it returns. */
typedef void (*weft_entry_fn)(const void *arg, size_t len);

enum { WEFT_SPAWN_OUTPUT = 1 };         /* their standard output and error go to out_fd instead of where the job's go */

struct weft_spawn_opts {
	uint32_t size, flags, count;    /* count 0: 1 */
	int out_fd;                     /* WEFT_SPAWN_OUTPUT: a pipe, file, socket, or whatever can be written to; borrowed: it may be closed after the call */
	const char *where;              /* hosts: "n*", or a query of the directory ("kind=host role=big"); NULL: spread over the job */
	const char *prog, *dir;         /* processes: a program, by PATH, and its directory (NULL: that of the job); or */
	char *const *argv, *const *env; /* argv[0] too; NULL: none. NAME=VALUE, beside what the job's processes have */
	const char *entry;              /* threads of process @in, at an entry that it has added, with @arg */
	weft_id in;
	const void *arg;
	size_t arg_len;
	const char *attrs;              /* published of each: weft/dir.h */
	const struct weft_spawn_opts *next;     /* another program of the same launch */
};

/**
 * weft_spawn - start processes, or threads in another process (or this one).
 * @ret_ids: room for as many as were asked for, over all @opts; NULL: not wanted. Ids of processes, or of threads; 0: that one did not start.
 * @ret_ends: likewise, a request each, which is done when that one has ended: its status has from: who, and err: 0, -ECHILD with len: the wait
 * status of a process that did not end with 0, -ECONNRESET: its process or host is gone. NULL: not wanted. NULL in it for one that did not start.
 * Processes spawned by one call are a world of their own (weft_port_world), and part of the job: it ends when all have.
 * Output: that of processes of other hosts comes to out_fd by way of the agents, as much at a time as is read there. When the end of a process is told, all it had printed was written,
 * unless nobody took anything of it for a second. If it cannot be written any more (-EPIPE, -ENOSPC) processes of other hosts do not notice. Who reads sees its end when all processes
 * have closed it, and the caller.
 * Returns how many started; the words say why others did not. When none did: -ENOENT: no such program, or no host fits; -EACCES, -E2BIG and what exec says; -EINVAL;
 * -ESRCH: process @in is gone; -ENOTCONN: this job has no agent; -ENOBUFS: the job has used up its numbers, or who prints does not keep up; -EBADF: out_fd is not open for writing; -EMFILE: an agent has no descriptors
 * left; -ETIMEDOUT (-EAGAIN with WEFT_NOW): not
 * answered by @until, and what starts nevertheless is ended; -ECANCELED: this process is leaving. Threads: any; not in a callback (-EDEADLK).
 */
int weft_spawn(const struct weft_spawn_opts *opts, weft_time until, weft_id *ret_ids, struct weft_req **ret_ends WEFT_GIVES);

/**
 * weft_entry_add - [nb] threads may be spawned at @fn in this process, by @name. A thread begun there joins and leaves weft by itself.
 * Returns 0; -EEXIST: that name means another function; -EINVAL: no name (as of weft/dir.h), or @fn is NULL; -ENOMEM, -ENOTCONN.
 */
int weft_entry_add(const char *name, weft_entry_fn fn);

/**
 * weft_kill - send signal @sig to a process of the job, or to all of a host (its agent's id); 0: is it there?
 * Returns 0: sent, or there; -ESRCH: it is gone or never was; -EINVAL: no signal, or the id of a thread or port; -EPERM; -ENOTCONN: this job has no agent.
 */
int weft_kill(weft_id id, int sig);

/**
 * weft_job_grow - more hosts join the running job. They are started as the first ones were, with the same launcher template, and have no processes until some are spawned there.
 * @hosts: as behind weft run --hosts: "c:4,d:4".
 * @ret_ids: room for @max ids of hosts, as weft_kill takes them and the directory lists them; NULL if @max is 0.
 * Returns how many hosts have joined, also if that is more than @max; where that is fewer than asked for, the words say why one has not. When none has: -EHOSTUNREACH, the words say why;
 * -ETIMEDOUT (-EAGAIN with WEFT_NOW, at once): not by @until. When nothing was tried: -EINVAL: no list of hosts, or no room for @max; -EEXIST: a host of that name is in the job;
 * -ENOSPC: more than 256 hosts in the job's life; -EOPNOTSUPP: the job was not started by one weft run over hosts; -ESHUTDOWN: it is ending; -ENOTCONN: it has no agent;
 * -ECANCELED: this process is leaving. A host that is not in by @until is given up; what goes wrong with it harms nobody. Threads: any; not in a callback (-EDEADLK).
 */
int weft_job_grow(const char *hosts, weft_time until, weft_id *ret_ids, int max);

/**
 * weft_job_abort - end the whole job now: every process of it on this host is killed, and weft run
 * ends with @code & 0xff, or with 1 where that is 0. Processes of other hosts see that these are gone.
 * @why: words for the user, one line; NULL: none.
 * Does not return: if nobody ends this process within a second it does so itself. Nothing is drained,
 * no exit handler runs. Of several calls, in any processes, the first counts.
 * Returns -ENOTCONN: there was no weft_init; -ECHILD in a forked child. Threads: any, also in a callback.
 */
int weft_job_abort(int code, const char *why);

#define WEFT_URL_TEXT 352               /* room for what weft_job_offer gives, with its end */

/**
 * weft_job_offer - let another job attach to this one, and see those of its processes, threads and ports that match @query.
 * *@ret_url is a capability: whoever has it may attach, and there is nothing else to be shown; so give it to the other job by a private way, and do not print it. The job's key is not in it.
 * What is offered is what matches at the moment somebody looks. To a process that holds any of it the other job may send, to all of its ports without a context; of others it is not told where they are.
 * The offer lasts until the calling process leaves or ends; who has attached by then stays attached.
 * @n: WEFT_URL_TEXT or more.
 * Returns its length; -EINVAL; -ENOSPC: @n is too small; -ENOTCONN: this job has no agent; -EOPNOTSUPP: it has no network (weft run --net, or several hosts);
 * -ENOBUFS: too many offers; -ENOMEM. Threads: any; not in a callback (-EDEADLK).
 */
int weft_job_offer(const char *query, char *ret_url, size_t n);

/**
 * weft_job_attach - attach this job to another one, by what that has offered: in all processes of this job, for as long as both last.
 * Returns this job's number for the other, 1 or more, and the same in all its processes. Ids with that job number then work like others: weft_dir_find("job=3 role=worker", ..) finds what
 * is offered, weft_dir_get tells of it, messages go there. The other job has a number of its own for this one, which it sees in status.from, and can answer; it cannot look around here unless
 * this job offers something as well. Numbers of jobs differ from job to job: in a message an id goes as text (weft_id_print), and whoever reads an id of the sender's own job, which begins with
 * "0.", has to put his number for that job there: weft_id_split(status.from).job. Attached again by the same url the number is the same; by another one it is another.
 * When the other job ends or is not heard for the time of weft run --silence, its ids end as those of dead processes do, and asking its directory is -ECONNRESET.
 * Returns also -EINVAL: no such url; -EACCES: refused; -ECONNREFUSED, -EHOSTUNREACH: nobody answers there, or none who knows the secret; -ETIMEDOUT (-EAGAIN with WEFT_NOW): not answered by
 * @until; -EDEADLK: it is this very job, or in a callback; -ENOSPC: too many are attached; -ENOTCONN, -EOPNOTSUPP as weft_job_offer. Threads: any.
 */
int weft_job_attach(const char *url, weft_time until);

#ifdef __cplusplus
}
#endif
#endif
