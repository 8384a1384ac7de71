/* weft/id.h - who: every thread and every process has an id, and the id is its address.
 *
 * 64 bits: job 12, process 20, generation 12, local 20. Inside itself a job is number 0; one that is attached
 * (weft_job_attach) has a number of this job's choice, and ids of its processes mean nothing elsewhere.
 * Processes are numbered from 1, by rank; local 0 is the process. An id means the same in every
 * process of the job, and may be sent in a message. The generation belongs to the local number: an id that has ended
 * is never mistaken for a later one. A thread joins by its first use of weft and leaves when
 * it ends.
 */
#ifndef WEFT_ID_H
#define WEFT_ID_H

#include <weft/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t weft_id;               /* 0: nobody */
#define WEFT_ANY UINT64_MAX             /* receive: from anyone */
#define WEFT_ALL UINT64_MAX             /* send: to every other member of the port */
#define WEFT_ID_TEXT 40                 /* room for an id as text */

struct weft_id_parts {
	uint32_t job, process, generation, local;
};

/* Member @index of the port used: an address like an id. */
static inline weft_id weft_at(uint32_t index)
{
	return UINT64_C(0xfff) << 52 | index;
}

weft_id weft_self(void);                /* [nb] this thread; its first use joins it. 0: failed, see weft_last_error */
weft_id weft_process(void);             /* [nb] this process, that is: its port. 0: not joined */

/* Join under a name, shown in state and found in the directory. -EALREADY: has joined already;
 * -EINVAL: empty or longer than 63 bytes. NULL: no name. */
int weft_thread_enter(const char *name);

/* Leave now; the thread's end does it too. Its pending operations are cancelled, its id ends.
 * The next use of weft joins anew, under a new id. -ENOTCONN: had not joined; -EDEADLK in a callback. */
int weft_thread_leave(void);

struct weft_id_parts weft_id_split(weft_id id);                 /* [nb] the four numbers in it */
char *weft_id_print(weft_id id, char *text, size_t n);          /* [nb] gives text back; cut off if n is short */
int weft_id_parse(const char *text, weft_id *ret_id);           /* [nb] what weft_id_print wrote; else -EINVAL */
int weft_id_distance(weft_id id);       /* [nb] 0 this thread, 1 this process, 2 this host, 3 farther or unknown */

#ifdef __cplusplus
}
#endif
#endif
