/* frames.h - what a process and the agent of its host say to each other, and how descriptors travel with it.
 *
 * The door is a SOCK_SEQPACKET socket that a started process inherits; WEFT_AGENT=FD:INODE:BASE names it, the inode so that a
 * number that means another socket by now is not mistaken for it; BASE is the number before that of rank 0. One frame goes through it,
 * wf_frame_join, with the four descriptors below. The agent answers it, as everything else that is asked, on the calls socket.
 *
 * Both ends are of one version (the join says so before anything else is looked at), so frames are plain structs in the
 * machine's own order. A frame has exactly its size and exactly its descriptors; anything else is nonsense.
 */
#ifndef WF_JOB_FRAMES_H
#define WF_JOB_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define WF_AGENT_ENV "WEFT_AGENT"
#define WF_BOARD_NAME "weft-board"      /* the memfd's: who has it mapped has not exec'ed */
#define WF_JOIN_MAGIC UINT64_C(0x6e696f6a74666577)
#define WF_JOIN_PROTOCOL 4u

/* The order of a join's descriptors. The first comes first in every version: a refusal goes there. */
enum { WF_JOIN_CALLS, WF_JOIN_NOTES, WF_JOIN_BOARD, WF_JOIN_EVENT, WF_JOIN_FDS };

/* magic, protocol and version lie where they do in every version. */
struct wf_frame_join {
	uint64_t magic;
	uint32_t protocol;
	uint32_t reserved;              /* 0 */
	char version[32];               /* ends with 0 */
	uint64_t board_bytes;
};

/* The answer to a join. */
struct wf_frame_welcome {
	int32_t result;                 /* 0, or -EACCES: refused */
	uint32_t process, base, count;
	unsigned char job[16];
	/* where it is to be reached from other hosts; hosts 0: the job is on one */
	uint32_t host, hosts;
	uint32_t ports, ports_last;
	char adapter[96];               /* address or name of one, or of several (wire/places.h); ends with 0 */
	unsigned char key[32];          /* the job's */
	char words[164];                /* why refused; ends with 0 */
};

enum { WF_CALL_MEET = 1, WF_CALL_TELL, WF_CALL_UNTELL, WF_CALL_GIVE, WF_CALL_ACTED, WF_CALL_BYE, WF_CALL_WHERE, WF_CALL_ABORT, WF_CALL_AT, WF_CALL_DIR, WF_CALL_LAUNCH, WF_CALL_KILL, WF_CALL_TREATY, WF_CALL_ENVOY,
       WF_CALL_GROW };

struct wf_frame_call {
	uint32_t what;
	uint32_t process;               /* MEET GIVE ACTED WHERE, TREATY: the alias; else 0 */
	uint32_t segment;               /* TELL UNTELL GIVE; else 0 */
};

#define WF_AT_TEXT 96           /* where a process is reached, as its driver writes it; ends with 0 */

/* WF_CALL_AT: this is where I am. */
struct wf_frame_at {
	uint32_t what, reserved;
	char at[WF_AT_TEXT];
};

#define WF_DIR_ROOM 32768u      /* of a message to or from the directory: dir/msg.h */

/* WF_CALL_DIR: as long as its message. */
struct wf_frame_dir {
	uint32_t what, reserved;
	unsigned char msg[WF_DIR_ROOM];
};

/* WF_CALL_LAUNCH: start something; as long as its spec (launch.h), and with a descriptor for each part whose output goes to one. Answered with -EMFILE nothing has happened. News of it comes as WF_NOTE_LAUNCH, with a body: u32 name, u32 index, u32 process, u32 err (0: it runs; over:
 * its wait status), u32 over, text words. */
struct wf_frame_launch {
	uint32_t what, name;            /* name: the caller's for it */
	unsigned char spec[61440];
};

/* WF_CALL_KILL: a signal for a process, or an agent's host. */
struct wf_frame_kill {
	uint32_t what, process;
	int32_t sig;
	uint32_t reserved;
};

#define WF_GROW_TEXT 61440u     /* bytes of a list of hosts, its end included */

/* WF_CALL_GROW: hosts that are to join the job; as long as the text, which ends with 0. What came of it is told by WF_NOTE_GROW, with a body: u32 name, u32 err, u32 count, u32 number of
 * each host that has joined, text why others have not. */
struct wf_frame_grow {
	uint32_t what, name;            /* name: the caller's for it */
	uint32_t ms, reserved;          /* ms: it has so long; UINT32_MAX: any time */
	char hosts[WF_GROW_TEXT];
};

/* The answer to WF_CALL_TREATY: what is known of another job (wire/treaty.h). */
struct wf_frame_treaty {
	uint32_t what;
	int32_t result;                 /* 0; -ESRCH: no such job is attached; -ECONNRESET: no longer */
	uint32_t alias, side;
	unsigned char id[16], key[32];
};

/* WF_CALL_ENVOY: a question about another job, or to it; as long as its message (envoy.h). Its answer comes as WF_NOTE_ENVOY: u32 alias, message. */
struct wf_frame_envoy {
	uint32_t what, alias;
	unsigned char msg[WF_DIR_ROOM];
};

/* Who was not started by an agent knocks at its socket, gets a seat, and joins through that same socket as if it were his door. */
#define WF_KNOCK_MAGIC UINT64_C(0x6b636f6e6b746677)
struct wf_frame_knock {
	uint64_t magic;
	uint32_t protocol;
	uint32_t rank;                  /* the place it wants, of those that a launcher of the site has started; UINT32_MAX: any */
	char version[32];
};
struct wf_frame_seat {
	int32_t result;                 /* 0, or -EACCES: refused */
	uint32_t process, base, count;
	char words[164];
};

/* The answer to WF_CALL_WHERE. */
struct wf_frame_where {
	uint32_t what;
	int32_t result;                 /* 0; -EAGAIN: it has not said where yet, NOTE_JOINED or NOTE_DEAD will come; -ESRCH: there is none of that number, or it is gone */
	uint32_t host;                  /* with 0 and -EAGAIN */
	uint32_t near;                  /* it is of this host */
	uint32_t last;                  /* with 0 and -EAGAIN: those up to this number are of the same */
	char at[WF_AT_TEXT];            /* with 0, unless it is near */
};

#define WF_ABORT_WORDS 256

/* WF_CALL_ABORT has a frame of its own, and no answer: who sends it is killed with the rest. */
struct wf_frame_abort {
	uint32_t what;
	int32_t code;
	char words[WF_ABORT_WORDS];     /* why; ends with 0 */
};

/* The exit code of a job that was aborted with @code: never success. */
static inline int wf_abort_code(int code)
{
	return code & 0xff ? code & 0xff : 1;
}

struct wf_frame_answer {
	uint32_t what;                  /* the call's */
	int32_t result;                 /* with descriptors where it is 0: MEET board and event, GIVE the segment */
};

/* A notice is a struct wf_note (link.h), with a message behind it if it is the directory's, of a launch, or of another job. */

#define WF_PARCEL_FDS 64        /* a launch may have so many: launch.h */

/* What came with a frame. */
struct wf_parcel {
	int fds[WF_PARCEL_FDS];         /* the receiver's to close (wf_parcel_drop) */
	unsigned count;
	bool cut;                       /* the frame was longer than the room for it */
	bool lost;                      /* descriptors were lost: more than WF_PARCEL_FDS, or this process may have no more */
	pid_t pid;                      /* of the sender, where the socket passes credentials; else 0 */
	uid_t uid;
};

/* [any] A frame and its descriptors, whole or not at all. 0, or a negative errno; @flags as sendmsg's. */
int wf_parcel_send(int sock, const void *frame, size_t bytes, const int *fds, unsigned count, int flags);

/* [any] The next frame: its bytes (0: the other end is closed), or a negative errno. A frame longer than @room is cut.
 * Descriptors are close-on-exec. */
ssize_t wf_parcel_recv(int sock, void *frame, size_t room, struct wf_parcel *ret_parcel, int flags);

/* [any] A notice and what goes with it, without waiting. 0, or a negative errno. */
struct wf_note;
int wf_letter_send(int sock, const struct wf_note *note, const void *bytes, size_t n);

void wf_parcel_drop(struct wf_parcel *parcel);

#endif
