/* wire.h - the frames two processes of different hosts exchange: every byte, in one table.
 *
 * A frame is an 8-byte aligned run of bytes: u8 type, u8 flags, u16 length, then fields, little-endian and aligned by nature. The length counts the
 * head and not the padding up to the next multiple of 8, which nobody looks at. A record of the secure layer carries whole frames, nothing else:
 *
 *     lane frames       about the lane they come on (ACK, PING, MOVE ...), and STREAM, which says whose the stream frames behind it are
 *     stream frames     numbered by their byte offset in the stream: control ones on stream 0, messages on the others
 *     the last frame    may be one with a body (CHUNK, MSG with WF_WIRE_BODY): the body is the second part of the record
 *
 * Contexts go as 64 bits: a handle agreed at first use would be state that both ends can lose. A type from 128 on that is not known is skipped;
 * any other unknown one, a wrong length, a flag or a field that is not 0 where it is to be, and bytes that are left over are errors of the one who
 * sent them. docs/wire.md tells the same to whoever writes another end.
 */
#ifndef WF_PEER_WIRE_H
#define WF_PEER_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

/* Which frames may stand where. */
enum wf_wire_class { WF_WIRE_LANE = 1, WF_WIRE_CONTROL, WF_WIRE_DATA };

/*        name      type fixed most   class   flags: those there may be; zero: it has 0 @4 */
#define WF_WIRE_FRAMES(X)                                                                                                                          \
	X(STREAM,     1,  16,    16, LANE,    255, 0)  /* flags stream; epoch @4; offset @8 of the first frame behind */                                  \
	X(ACK,        2,  16,    16, LANE,    255, 0)  /* flags stream; epoch @4; next @8: all before is there */                                         \
	X(MOVE,       3,  16,    16, LANE,    255, 0)  /* flags stream; epoch @4; the stream rides here from now on */                                    \
	X(RESUME,     4,  16,    16, LANE,    255, 0)  /* flags stream; epoch @4; next @8 expected: the answer to MOVE */                                 \
	X(CHUNKS,     5,  16,    16, LANE,      0, 0)  /* count @8: bytes of chunks this lane has brought since it is up */                               \
	X(PING,       6,  16,    16, LANE,      0, 1)  /* stamp @8, to be sent back */                                                                    \
	X(PONG,       7,  16,    16, LANE,      0, 1)  /* stamp @8 */                                                                                     \
	X(CHUNK,      8,  24,    24, LANE,      1, 0)  /* token @8, offset @16; the body follows the record's frames */                                   \
	X(LIMIT,      9,  16,    16, LANE,      0, 1)  /* limit @8: as CREDIT, on the way of something else */                                            \
	X(DONE,      10,  16,    16, LANE,      0, 1)  /* send @8: as ENDED, which follows, without an error */                                           \
	X(MSG,       16,  24, 65535, DATA,    255, 0)  /* to @4, from @8, index @12, tag @16; then as flagged; payload */                                 \
	X(ANNOUNCE,  17,  40,   512, DATA,    255, 0)  /* the same with WF_WIRE_SEND and WF_WIRE_LENGTH, without payload */                               \
	X(CANCEL,    18,  16,    16, DATA,      0, 1)  /* send @8: is to be taken back */                                                                 \
	X(VOID,      19,   8, 65535, DATA,      0, 0)  /* was taken back before it left */                                                                \
	X(ROW,       20,  40,  7712, DATA,    255, 0)  /* as MSG, and several payloads of the same length: as many messages */                            \
	X(GRANT,     32,  32,    32, CONTROL,   1, 1)  /* send @8, token @16, limit @24: bytes wanted */                                                  \
	X(ENDED,     33,  16,    16, CONTROL,   0, 0)  /* error @4, send @8 */                                                                            \
	X(LATE,      34,  16,    16, CONTROL,   0, 1)  /* send @8: cannot be taken back */                                                                \
	X(CREDIT,    35,  16,    16, CONTROL,   0, 1)  /* limit @8 */                                                                                     \
	X(BACKLOG,   36,  16,    16, CONTROL,   0, 0)  /* to @4, context @8: more waits at the source; ask */                                             \
	X(CLEAR,     37,  16,    16, CONTROL,   0, 0)  /* to @4, context @8: nothing waits any more */                                                    \
	X(SEEK,      38,  24,   512, CONTROL,   0, 0)  /* to @4, context @8, name of the receive @16, what it wants @24 */                                \
	X(INVITE,    39,  48,   112, CONTROL,   0, 0)  /* from @4, offset @8, token @16, limit @24, context @32, to @40, what is wanted @48 */            \
	X(REVOKE,    40,  16,    16, CONTROL,   0, 1)  /* token @8: the invitation holds no longer */                                                     \
	X(BYE,       41,   8,     8, CONTROL,   0, 0)  /* error @4: nothing will follow */                                                                \
	X(AGAIN,     42,  32,    32, CONTROL,   0, 1)  /* send @8, from @16, to @24: these bytes are to come once more */                                 \
	X(CLOG,      43,  16,    16, CONTROL,   1, 0)  /* flags 1 or 0; to @4, context @8: announce to that port, whatever the credit; or no longer */    \
	X(WATCH,     44,  16,    16, CONTROL,   0, 0)  /* id @4 of the one who reads this: its end is to be told */                                       \
	X(GONE,      45,  16,    16, CONTROL,   0, 0)  /* id @4 of the one who wrote this is not, or no more; 0: ask again for all */

#define WF_WIRE_PADDING 128u            /* a frame about the lane that says nothing, of any length: who does not know it skips it */

enum wf_wire_type {
#define X(name, type, fixed, most, class, flags, zero) WF_WIRE_##name = type,
	WF_WIRE_FRAMES(X)
#undef X
};

/* Flags of MSG and ANNOUNCE; what each adds stands in this order behind the fixed part. */
enum {
	WF_WIRE_CONTEXT = 1,            /* u64 context */
	WF_WIRE_SEND = 2,               /* u64 number of the send, by which it is answered and taken back */
	WF_WIRE_LENGTH = 4,             /* u64 length: of an announced message; of one whose payload is the record's body */
	WF_WIRE_SYNC = 16,              /* to be answered when matched */
	WF_WIRE_OFFER = 32,             /* ANNOUNCE: because asked for; u64 name of the receive, which takes it at once or it is refused */
	WF_WIRE_BODY = 64,              /* MSG: the payload is the body of this record */
	WF_WIRE_INVITED = 128,          /* ANNOUNCE: u64 token of the invitation its chunks go to */
	WF_WIRE_HEAD = 8,               /* the last of them: u8 length, header of a foreign protocol, padded to 8 together */
};

#define WF_WIRE_LED 1                   /* CHUNK: of the beginning of a send that is not granted yet, which it names instead of a token; GRANT: it has been there for it */
#define WF_WIRE_SKIPPABLE 128           /* types from here on may be skipped */
#define WF_WIRE_SMALL 65536u            /* bytes of frames in one record, at most */
#define WF_WIRE_BODY_MOST (1u << 20)    /* bytes of a body, at most */
#define WF_WIRE_HEAD_MOST 255u
#define WF_WIRE_PAD(n) (((n) + 7u) & ~(size_t)7)

struct wf_wire_shape {
	const char *name;
	uint16_t fixed, most;
	uint8_t type, class, flags;
	bool zero;
};

extern const struct wf_wire_shape wf_wire_shapes[WF_WIRE_SKIPPABLE];     /* by type; without a name: no such type */

/* A message's header, as it is in a frame. */
struct wf_rmsg {
	uint32_t to, from;              /* generation and local number of the ids; their processes are known */
	uint32_t index;
	uint32_t head_len;
	uint64_t tag, context;
	uint64_t send;                  /* number; 0: none */
	uint64_t len;                   /* of the payload */
	uint64_t token;                 /* WF_WIRE_INVITED, WF_WIRE_OFFER */
	const void *head;               /* in the record, or the sender's */
	const void *payload;            /* in the record; NULL: announced or a body */
	uint8_t flags, type;
};

static inline void wf_wire_head(unsigned char *p, uint8_t type, uint8_t flags, size_t len)
{
	p[0] = type;
	p[1] = flags;
	wf_put16(p + 2, (uint16_t)len);
}

/* A frame of 16 bytes: most are. */
static inline void wf_wire_put(unsigned char *p, uint8_t type, uint8_t flags, uint32_t a, uint64_t b)
{
	wf_wire_head(p, type, flags, 16);
	wf_put32(p + 4, a);
	wf_put64(p + 8, b);
}

/* Looks at the frame at @p with @left bytes behind: its length with padding, or -EPROTO. *ret_shape is NULL for one to be skipped. */
int wf_wire_next(const unsigned char *p, size_t left, const struct wf_wire_shape **ret_shape);

#define WF_WIRE_MSG_LEAST 24u           /* bytes of a MSG's header */

/* ROW: flags are WF_WIRE_CONTEXT or not, and above WF_WIRE_ROW_SHIFT how many words of 8 bytes each payload has. Two or more of them, WF_WIRE_ROW_MOST at most. */
#define WF_WIRE_ROW_SHIFT 4
#define WF_WIRE_ROW_EACH 120u           /* bytes of a payload, at most */
#define WF_WIRE_ROW_MOST 64u

/* How many messages the row of @all bytes at @p has, of how many bytes each, behind how many; 0: it is wrong. */
static inline uint32_t wf_wire_row(const unsigned char *p, size_t all, size_t *ret_head, size_t *ret_each)
{
	size_t head = WF_WIRE_MSG_LEAST + (p[1] & WF_WIRE_CONTEXT ? 8 : 0), each = (size_t)(p[1] >> WF_WIRE_ROW_SHIFT) * 8, n;

	if (p[1] & ((1u << WF_WIRE_ROW_SHIFT) - 1) & ~(unsigned)WF_WIRE_CONTEXT || !each || all < head + 2 * each)
		return 0;
	n = (all - head) / each;
	*ret_head = head;
	*ret_each = each;
	return n > WF_WIRE_ROW_MOST || n * each != all - head ? 0 : (uint32_t)n;
}

/* Writes the header of @m (payload or body come behind) into @p; its length. At most WF_WIRE_MSG_HEAD bytes. */
#define WF_WIRE_MSG_HEAD (24u + 4 * 8u + WF_WIRE_PAD(1 + WF_WIRE_HEAD_MOST))
size_t wf_wire_put_msg(unsigned char *p, const struct wf_rmsg *m, size_t payload);

/* Reads a MSG or ANNOUNCE that wf_wire_next has seen. 0 or -EPROTO; pointers lead into the frame. */
int wf_wire_get_msg(const unsigned char *p, struct wf_rmsg *ret_m);

#endif
