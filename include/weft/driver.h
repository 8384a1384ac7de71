/* weft/driver.h - what a network driver promises weft, and what weft promises a driver.
 *
 * A driver moves bytes or frames between two processes and knows nothing more: matching, order over several lanes, resending,
 * priorities between messages and security are weft's. What a lane carries is sealed and opened above; the first bytes of
 * an incoming lane come from a stranger.
 *
 *     driver   code for one kind of network: "tcp"
 *     rail     one opened adapter of it: "tcp:eth0". It has an address that other processes are told
 *     lane     one connection to a rail of another process. A stream lane carries bytes in order, a message lane
 *              whole frames; which of the two is a property of the driver
 *
 * Rules for all slots
 *   Answers    0 or a documented positive result, or a negative errno with words by weft_fail(). Outputs (ret_) are set on success only.
 *   Blocking   none waits for the network. lane_close and need_drop wait for an upcall that is running in another thread.
 *   Threads    [one]  at most one thread at a time in all the slots of a rail marked [one] or [lane]
 *              [lane] with WEFT_DRIVER_THREADS: at most one thread at a time for each lane, beside poll and beside other
 *                     lanes; without: as [one]. weft serialises accordingly, the driver needs no lock for it
 *              [poll] at most one thread at a time polls a rail (with WEFT_DRIVER_THREADS beside the other slots)
 *              [any]  any threads, at the same time
 *   Upcalls    are made by poll only, by the thread that called it, and with no lock of the driver held: from inside them every slot but
 *              poll and rail_close may be called, for the very lane too. weft calls no slot that may wait while it holds a lock that one of
 *              its upcalls takes.
 *   Memory     unmarked pointers are borrowed until the call returns. Rails and lanes are the driver's own memory, cookies are weft's.
 *   Growth     structs begin with a size and grow at their end only. What lies beyond a struct's size is 0: absent.
 *   Fork       descriptors are close-on-exec; a forked child never calls a driver.
 */
#ifndef WEFT_DRIVER_H
#define WEFT_DRIVER_H

#include <sys/types.h>
#include <sys/uio.h>
#include <weft/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_DRIVER_ABI 1u      /* changes when an existing slot changes its meaning */

/* How a driver is. */
enum {
	WEFT_DRIVER_STREAM = 1,         /* lanes carry bytes: take/placed. Else frames: provide/frame */
	WEFT_DRIVER_RELIABLE = 2,       /* what a lane carried arrived, in order, once, until down() */
	WEFT_DRIVER_THREADS = 4,        /* see Threads above */
	WEFT_DRIVER_PROGRESS = 8,       /* moves on by itself between polls; else what was sent may wait for the next poll */
	WEFT_DRIVER_LOCAL_MEM = 16,     /* memory of sends and rooms must be registered (@mem), and their handles given */
	WEFT_DRIVER_EPOLL = 32,         /* wait_fd is an epoll set: weft sleeps in it, and puts descriptors of its own there, with WEFT_EVENT_CORE, which poll passes over */
	WEFT_DRIVER_UNCANCELLED = 64    /* neither send nor a poll that spins is a place where a thread is cancelled (pthreads(7)), but for upcalls: weft need not keep it from that */
};

#define WEFT_EVENT_CORE (UINT64_MAX - 15)       /* epoll_data of what is weft's in such a set */

/* What a lane carries: a driver may treat them differently where its network can. */
enum { WEFT_LANE_CONTROL, WEFT_LANE_HEAD, WEFT_LANE_BULK };

enum { WEFT_SEND_MORE = 1 };            /* more follows at once: may be held back until then */
enum { WEFT_POLL_SPIN = 1 };            /* the next call comes within a microsecond or so: look where bytes are likely, elsewhere now and then */
enum { WEFT_FOUND_LOOP = 1 };           /* reaches this host only: used when asked for by name */

#define WEFT_NEED_PIECES 16
#define WEFT_ADDR_BYTES 60

/* Where a rail can be reached: bytes that weft hands to other processes unread. Same in every process, whatever its CPU. */
struct weft_addr {
	uint32_t len;
	unsigned char bytes[WEFT_ADDR_BYTES];
};

/* An adapter that probe found. */
struct weft_found {
	char name[32];                  /* what stands behind the colon: "eth0" */
	uint32_t flags, zero;           /* WEFT_FOUND_* */
	uint64_t rate;                  /* bytes/s, 0: not known */
};

struct weft_rail_conf {
	uint32_t size, zero;
	const char *adapter;            /* of a found adapter, or what else the driver understands ("10.1.0.0/16"); "": its choice */
	const char *options;            /* "tcp.ports=4000-4099 lossy.seed=7": a driver obeys those of its name, refuses unknown ones
					 * among them (-EINVAL) and leaves the others. NULL: none */
};

/* What a rail is like, told when it opens. */
struct weft_rail_info {
	uint32_t size, zero;
	struct weft_addr addr;
	uint64_t rate;                  /* hints: bytes/s and ns one way; 0: not known */
	int64_t latency;
	size_t frame;                   /* message lanes: largest frame. Stream lanes: 0 */
	size_t hold;                    /* stream lanes: how many bytes take() may leave; at least 64 KiB + 4 KiB */
	uint32_t pieces;                /* most pieces of one send */
	uint32_t rooms;                 /* message lanes: how many rooms it would like to have */
	int64_t poll_ns;                /* without wait_fd: poll at least this often while something is expected; else 0 */
};

struct weft_rail_stat {
	uint32_t size, lanes;           /* lanes there are now, strangers included */
	uint64_t sent, received;        /* bytes */
	uint64_t opened, accepted;      /* lanes begun here; lanes of others that weft took */
	uint64_t refused;               /* strangers that said nothing in time, were too many, or that weft refused */
};

/* Where the next bytes of a stream lane go, straight from the network. Zeroed by the driver before the upcall that may fill it. */
struct weft_need {
	struct iovec piece[WEFT_NEED_PIECES];
	uint32_t pieces;                /* 0: none: further bytes come by take() */
	uint32_t later;                 /* without pieces, a hint: who wants the bytes may be about to say where: no more is read there before poll() is called again */
	size_t min;                     /* placed() as soon as that many have come; 0: when all have */
	size_t want;                    /* without pieces: take() again when that many bytes are there, counted from the first not taken.
					 * 0: when there is one more. At most info.hold */
};

/* Memory for one frame, provided ahead. weft's own; the driver may use the link while it has it. */
struct weft_room {
	void *data;
	size_t len;                     /* at least info.frame */
	void *mem;                      /* handle of mem->add(); NULL if the driver asked for none */
	void *link;                     /* the driver's while it has the room */
};

/* What is to be sent. */
struct weft_out {
	const struct iovec *piece;
	void *const *mem;               /* a handle of mem->add() for each piece; NULL if the driver asked for none */
	void *token;                    /* message lanes: comes back by sent() if the memory is held */
	uint32_t pieces;                /* 1 .. info.pieces */
	uint32_t flags;                 /* WEFT_SEND_* */
};

/* What a driver calls, from poll only. @rail and @lane are weft's cookies. */
struct weft_upcalls {
	uint32_t size, zero;

	/* A lane that the other side opened and on which something has come (who only connects is no guest: the driver drops those that
	 * stay silent, and bounds their number). @from: whose it is: the same for all lanes of one host, as what weft says of strangers is
	 * bounded by that. 0: weft has it from now on, up() is not called. <0: refused; the driver ends it. */
	int (*incoming)(void *rail, void *driver_lane, const struct weft_addr *from, void **ret_lane);

	/* A lane opened here is there: send works. At most once, before everything else of that lane. */
	void (*up)(void *lane);

	/* A lane is over: exactly once for every lane, unless lane_close came first. @err 0: the other end closed it and all its bytes
	 * were told; else why. Nothing follows; weft calls lane_close some time later. */
	void (*down)(void *lane, int err);

	/* Stream lanes: @len bytes have come, in order; the first ones are those left last time. weft may change them. Returns how many were taken; the rest is
	 * told again with what comes behind it (see need.want). With need.pieces set the bytes behind those taken go there
	 * instead, those already here are copied. <0: weft gives the lane up, down(that) follows. */
	ssize_t (*take)(void *lane, void *bytes, size_t len, struct weft_need *need);

	/* Stream lanes: @got bytes are in the pieces that were needed, from the first on: need.min or more, or fewer if need_drop
	 * came between. Exactly once for each need, unless the lane ends. It may need again. <0 as of take. */
	int (*placed)(void *lane, size_t got, struct weft_need *need);

	/* Message lanes: a frame. The room is weft's again. @lane NULL: of no lane known, from @from (else @from is NULL). */
	void (*frame)(void *rail, void *lane, const struct weft_addr *from, struct weft_room *room, size_t len);

	/* After a send that was short or answered -EAGAIN: it may be tried again. Also without cause. */
	void (*writable)(void *lane);

	/* The memory of a send that was held, or of a put or get, is free again; @err as of down(). Exactly once, after the lane's end too,
	 * unless its rail was closed first. */
	void (*sent)(void *rail, void *token, int err);

	/* Stream lanes, optional, and asked before bytes are read where nothing was left by take() and nothing is needed: what comes next may be like what came last.
	 * Then as many bytes as this answers are read as always, and what comes behind them to @ret_piece, where it may belong. 0: not so. */
	size_t (*ahead)(void *lane, struct iovec *ret_piece);

	/* Stream lanes: such bytes: @front of them are at @bytes, @got, at least one, behind them in the piece, which is weft's again. 1: all are taken. 0: it was not so: weft has
	 * put those @got to @bytes + @front, where there has to be room for them, and take() gets all. <0 as of take. */
	int (*came_ahead)(void *lane, void *bytes, size_t front, size_t got);
};

/* Optional: other processes write into memory told to them by a token. */
struct weft_driver_land {
	/* [one] What comes for @token goes into @iov. The memory is held until unland. -ENOSPC: no more tokens now. */
	int (*land)(void *rail, uint64_t token, const struct iovec *iov, uint32_t pieces, void *const *mem);
	/* [one] When it returns nothing is written there any more, and nothing ever will be under that token. */
	void (*unland)(void *rail, uint64_t token);
};

/* Optional: memory must or may be registered. */
struct weft_driver_mem {
	/* [any] Registers; -ENOMEM: no more can be. @ret_key: what a remote put or get names it by; its length at most 64. */
	int (*add)(void *rail, void *base, size_t len, void **ret_mem WEFT_GIVES, void *ret_key, uint32_t *ret_key_len);
	/* [any] No transfer uses it any more, remote ones included. */
	void (*del)(void *rail, void *mem WEFT_TAKES);
};

/* Optional: writing and reading memory that the other process registered. 0: under way, sent(token) ends it. -EAGAIN: writable follows. */
struct weft_driver_remote {
	/* [lane] */
	int (*put)(void *lane, const struct weft_out *from, const void *key, uint32_t key_len, uint64_t at);
	int (*get)(void *lane, const struct weft_out *into, const void *key, uint32_t key_len, uint64_t at);
};

/**
 * struct weft_driver - the slots. Those not called optional must be there, and capabilities and slots must agree (weft_driver_add looks):
 * STREAM has need_drop and no provide; message drivers have provide; LOCAL_MEM has mem; a rail without wait_fd says poll_ns.
 */
struct weft_driver {
	uint32_t abi, size;             /* WEFT_DRIVER_ABI, sizeof(struct weft_driver) */
	const char *name;               /* [a-z][a-z0-9]*, at most 15 */
	uint32_t caps, zero;            /* WEFT_DRIVER_* */

	/* [any] Which adapters are there: fills at most @max, returns how many there are. 0: none on this machine, which is normal. */
	int (*probe)(const struct weft_driver *self, struct weft_found *ret_found, int max);

	/* [any] Opens one adapter. @up and @cookie hold until rail_close. On failure nothing is left behind.
	 * -ENODEV: no such adapter; -EINVAL: options; -EADDRINUSE, -EMFILE, -ENOMEM, ...
	 * @self is the struct that was registered: what a driver keeps beside it can be found. */
	int (*rail_open)(const struct weft_driver *self, const struct weft_rail_conf *conf, const struct weft_upcalls *up, void *cookie,
			 struct weft_rail_info *ret_info, void **ret_rail WEFT_GIVES);

	/* [one] Ends it; its lanes have been closed before, nobody polls. Rooms provided are weft's again, memory registered is forgotten,
	 * and sent() of what was held does not come. */
	void (*rail_close)(void *rail WEFT_TAKES);

	/* [one] Begins a lane to @to; up(@cookie) or down(@cookie) tells what became of it, soon: a driver bounds that itself.
	 * Fails only for what is known at once: -EINVAL: no address of this driver; -EAFNOSUPPORT: not from this rail; -EMFILE, -ENOMEM;
	 * also -EHOSTUNREACH and the like. @klass: WEFT_LANE_*. @ret_lane is set before the first upcall can come; weft
	 * does not close the lane before the call has returned. */
	int (*lane_open)(void *rail, const struct weft_addr *to, int klass, void *cookie, void **ret_lane WEFT_GIVES);

	/* [lane] Ends it, whatever its state. When it returns no upcall for it runs or will come (but the one it was called from), no memory
	 * needed is written and its cookie is forgotten. What was sent may or may not arrive; it is not waited for. */
	void (*lane_close)(void *lane WEFT_TAKES);

	/* [lane] What an incoming lane is for is known late. @unsent: bound for bytes accepted and not yet given to the network; 0: the
	 * driver's choice. A wish, no promise. Optional. */
	void (*lane_tune)(void *lane, int klass, size_t unsent);

	/* [lane] Stream lanes: how many bytes were taken, 1 .. all; their memory is free. Fewer than all, or -EAGAIN: writable follows.
	 *        Message lanes: 0: sent, the memory is free. 1: held until sent(token). -EAGAIN: nothing happened, writable follows. -EMSGSIZE.
	 * No bytes at all: 0, and nothing is sent. -EAGAIN also before up(). Any other error: the lane is over, down() comes or has come. */
	ssize_t (*send)(void *lane, const struct weft_out *out);

	/* [poll] Makes progress and calls up, for @budget events or so; returns how many there were. <0: the rail is of no use any more. */
	int (*poll)(void *rail, int budget, unsigned flags);

	/* [any] A descriptor that is readable while poll would find something, once armed; after that until a poll that spins. Constant. Optional: see info.poll_ns. */
	int (*wait_fd)(void *rail);

	/* [poll] Before sleeping on wait_fd. 0: sleep; 1: poll first. Optional. */
	int (*arm)(void *rail);

	/* [any] but beside lane_close. Stream lanes: takes the memory of an unfinished need back. When it returns nothing is written there
	 * any more; placed() tells how much had come, before the next bytes are told. Without a need nothing happens. If another need was
	 * given meanwhile it is that one: weft needs the rest again. */
	void (*need_drop)(void *lane);

	/* [one] Message lanes: rooms for frames to come. Held until frame() or rail_close. Returns how many it took, the first ones. */
	int (*provide)(void *rail, struct weft_room *const *rooms, int n);

	/* [any] Counters; set ret_stat->size. Optional. */
	int (*stat)(void *rail, struct weft_rail_stat *ret_stat);

	/* [any] An address as text ("10.0.0.1:4000") and back; print returns its length, as snprintf. Optional, but hosts are reached by a rail only if its
	 * driver has them and wait_fd, and its lanes are streams: else weft_init answers -EOPNOTSUPP. */
	int (*addr_print)(const struct weft_addr *addr, char *ret_text, size_t n);
	int (*addr_parse)(const char *text, struct weft_addr *ret_addr);

	/* Optional groups. */
	const struct weft_driver_land *land;
	const struct weft_driver_mem *mem;
	const struct weft_driver_remote *remote;
};

/* What a shared object exports under the name weft_driver_main: its driver, or NULL (then weft_last_error says why). */
typedef const struct weft_driver *(*weft_driver_main_fn)(void);

/**
 * weft_driver_add - make a driver known by its name; it must outlive the process's use of weft.
 * Returns 0; -EINVAL: a slot is missing or disagrees with a capability (the words say which); -EPROTO: of another WEFT_DRIVER_ABI;
 * -EEXIST: the name is taken; -ENOSPC: too many. Before or after weft_init. Threads: any.
 */
int weft_driver_add(const struct weft_driver *driver);

/**
 * weft_driver_load - load a shared object, ask its weft_driver_main for a driver, and add that.
 * Returns as weft_driver_add; -ENOENT: it cannot be loaded; -ENOSYS: it does not export weft_driver_main; -ENODEV: it gave none.
 */
int weft_driver_load(const char *path);

#ifdef __cplusplus
}
#endif
#endif
