/* inner.h - what the files of the MPI layer know of each other.
 *
 * The layer translates: ranks to members of a port, MPI's tags to weft's, datatypes to layouts, statuses and errors
 * back. It holds no queue of messages and no network code; matching, order, rendezvous and progress are weft's.
 *
 * A communicator is two ports in contexts of their own, the same at every member: talk for point-to-point (WARY: who
 * receives from anyone is told of a member's end), coll (FRAGILE: that ends what is pending there) for collectives. weft_at(r) is rank r; in an
 * intercommunicator rank r of the other group. A third, like coll, comes with the first collective that is not waited for in its call.
 *
 * Handles are pointers to the structs below, whose tags are those of the ABI, except predefined ones, which are
 * small constants. The functions that look a handle up answer NULL for what is none; a freed object's memory is
 * only used for objects of its kind again (object.c), so that a stale handle is seen and not followed.
 *
 * Names: wm_ crosses files of this layer. A function PMPI_x is followed by MPI_DONE(x), which makes its weak twin
 * MPI_x and tells abi/generate that it is there. Where x differs from x_c in plain numbers alone only x_c is
 * written; the other is made.
 */
#ifndef WM_INNER_H
#define WM_INNER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>
#include <weft/weft.h>

#define MPI_DONE(x) extern __typeof__(PMPI_##x) MPI_##x __attribute__((weak, alias("PMPI_" #x)))
#define WM_LIKELY(x) __builtin_expect(!!(x), 1)
#define WM_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define WM_HERE __attribute__((visibility("hidden")))   /* of this library alone: reached without its table of addresses */

/* Objects (object.c) */

enum wm_kind {                          /* never 0: fresh and freed memory is no object */
	WM_COMM = 0x4d504901, WM_GROUP, WM_TYPE, WM_OP, WM_ERRHANDLER, WM_INFO, WM_REQUEST, WM_MESSAGE,
	WM_THREADS,                     /* of the extension library (src/mpix) */
	WM_KINDS
};

struct wm_object {
	_Atomic uint32_t kind;
	_Atomic uint32_t refs;          /* the handle's and those of objects and operations that use it */
};

void *wm_object_new(uint32_t kind, size_t size);        /* zeroed, one reference; NULL: no memory. One size per kind */
void wm_object_free(void *object);                      /* the memory; what it names was let go before */

static inline void wm_object_get(struct wm_object *o)
{
	atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}

/* Whether that was the last one. */
static inline bool wm_object_put(struct wm_object *o)
{
	return atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) == 1;
}

static inline bool wm_object_is(const void *object, uint32_t kind)
{
	return (uintptr_t)object >= 0x1000 && !((uintptr_t)object & 7) &&
	       atomic_load_explicit(&((const struct wm_object *)object)->kind, memory_order_relaxed) == kind;
}

/* Attributes (attr.c): of communicators and datatypes */

struct wm_attr;
struct wm_attrs {
	pthread_mutex_t lock;
	struct wm_attr *first;          /* under lock; the newest first */
};

void wm_attrs_init(struct wm_attrs *attrs);
/* Calls the copy functions of @from's and puts what they answer into @to; a failing one ends it with its code, and
 * what was put there before is for wm_attrs_delete. */
int wm_attrs_copy(struct wm_attrs *to, struct wm_attrs *from, void *from_handle);
/* Calls the delete functions; a failing one ends it with its code, and what is left stays. */
int wm_attrs_delete(struct wm_attrs *attrs, void *handle);

/* Groups (group.c): processes in order, or threads (src/mpix); constant once made */

struct MPI_ABI_Group {
	struct wm_object obj;
	int size, rank;                 /* rank: mine, or MPI_UNDEFINED; of threads: that of the thread that made it */
	weft_id *ids;                   /* owned */
};

extern struct MPI_ABI_Group wm_group_empty;

struct MPI_ABI_Group *wm_group(MPI_Group group);                        /* NULL: MPI_GROUP_NULL or none */
/* Copies @ids. NULL: no memory. The empty one is a reference to wm_group_empty. */
struct MPI_ABI_Group *wm_group_new(const weft_id *ids, int size);
struct MPI_ABI_Group *wm_group_get(struct MPI_ABI_Group *group);        /* one more reference */
void wm_group_put(struct MPI_ABI_Group *group);                         /* NULL is fine */
MPI_Group wm_group_handle(struct MPI_ABI_Group *group);                 /* MPI_GROUP_EMPTY for wm_group_empty */
/* Ranks of @from (NULL: its first @n) in @to. Both of these: 0 or MPI_ERR_NO_MEM. */
int wm_group_translate(const struct MPI_ABI_Group *from, int n, const int *ranks, const struct MPI_ABI_Group *to, int *ret_ranks);
int wm_group_compare(const struct MPI_ABI_Group *a, const struct MPI_ABI_Group *b, int *ret_result);

/* Error handlers and errors (error.c) */

struct MPI_ABI_Errhandler {
	struct wm_object obj;
	enum { WM_FATAL, WM_ABORT, WM_RETURN, WM_CALL } what;
	MPI_Comm_errhandler_function *call;     /* the four kinds of them have the same shape: a handle by pointer, a code */
};

struct MPI_ABI_Errhandler *wm_errhandler(MPI_Errhandler errhandler);    /* NULL: MPI_ERRHANDLER_NULL or none */
struct MPI_ABI_Errhandler *wm_errhandler_get(struct MPI_ABI_Comm *comm);        /* a reference to its; NULL: was never set */
void wm_errhandler_put(struct MPI_ABI_Errhandler *errhandler);                  /* NULL is fine */

/**
 * wm_error - an error of @function (__func__; the leading P and a trailing _c are not shown) on @comm, NULL: on no
 * communicator, which is MPI_COMM_SELF's. Calls its error handler, and answers @code for the caller to return.
 * The words are shown where the error is fatal, and kept for weft_last_error.
 */
int wm_error(struct MPI_ABI_Comm *comm, const char *function, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5), cold));

int wm_unsupported(MPI_Comm comm, const char *function) __attribute__((cold));  /* a function that is not there yet */

/* MPI's error class for weft's answer @r (negative); MPI_SUCCESS for others. */
int wm_class(int r) __attribute__((cold));

int wm_lastusedcode(void);      /* the value of MPI_LASTUSEDCODE */
const char *wm_error_name(int code, char *text, size_t n);      /* "MPI_ERR_RANK"; in @text for codes of the program's own */

/* weft's answer @r to what @function did, as an error of @comm with weft's own words. */
int wm_weft_error(struct MPI_ABI_Comm *comm, const char *function, int r) __attribute__((cold));

/* Info (info.c) */

struct MPI_ABI_Info;
struct MPI_ABI_Info *wm_info(MPI_Info info);            /* NULL: MPI_INFO_NULL or none */
struct MPI_ABI_Info *wm_info_dup(struct MPI_ABI_Info *info);    /* NULL for NULL or no memory */
void wm_info_free(struct MPI_ABI_Info *info);           /* NULL is fine */

/* Communicators (comm.c) */

struct wm_topo;                         /* topo.c */
struct MPI_ABI_Request;

struct wm_topo *wm_topo_copy(const struct wm_topo *topo);       /* NULL for NULL or no memory */
void wm_topo_free(struct wm_topo *topo);                        /* NULL is fine */

struct MPI_ABI_Comm {
	struct wm_object obj;

	/* constant once made */
	struct weft_port *talk, *coll;
	weft_id owner;                  /* of a communicator of threads: the thread whose ports these are, which alone may close them; else 0 */
	int rank, size;                 /* mine in the local group; its size */
	int peers;                      /* ranks that can be addressed: size, or the size of the other group */
	bool inter;
	struct MPI_ABI_Group *group, *remote;   /* remote: of an intercommunicator, else NULL */
	struct MPI_ABI_Comm *local;     /* of an intercommunicator: the local group's own, for collectives inside it; else NULL */
	struct wm_topo *topo;           /* or NULL */
	bool here;                      /* all members are processes of this host */

	/* any thread, atomic */
	_Atomic uint64_t round;         /* collectives begun: every member counts the same */
	_Atomic uint64_t copies;        /* MPI_Comm_idup's begun: likewise */
	_Atomic(struct MPI_ABI_Errhandler *) errhandler;

	struct wm_attrs attrs;

	pthread_mutex_t lock;           /* the rest */
	char name[MPI_MAX_OBJECT_NAME];
	struct MPI_ABI_Info *info;

	struct MPI_ABI_Comm *next, **link;      /* all that were made and have ports; under comm.c's lock */

	/* of collectives that nobody waits in (icoll.c); any thread, atomic */
	_Atomic(struct weft_port *) later;      /* their port; NULL until the first, which opens it under lock */
	_Atomic uint64_t later_round;           /* as round */
};

extern struct MPI_ABI_Comm wm_world WM_HERE, wm_self WM_HERE;

static inline struct MPI_ABI_Comm *wm_comm(MPI_Comm comm)       /* NULL: MPI_COMM_NULL or none */
{
	if (comm == MPI_COMM_WORLD)
		return wm_world.talk ? &wm_world : NULL;
	if (comm == MPI_COMM_SELF)
		return wm_self.talk ? &wm_self : NULL;
	return wm_object_is(comm, WM_COMM) ? comm : NULL;
}

MPI_Comm wm_comm_handle(struct MPI_ABI_Comm *comm);     /* MPI_COMM_WORLD for wm_world, ... */

/* Makes the two that are always there, over weft's world; and ends every communicator there still is. weft's answers. */
int wm_comms_open(void);
void wm_comms_close(void);

/* A reference less; the last one closes the ports. Attributes were deleted before. */
void wm_comm_put(struct MPI_ABI_Comm *comm);

/**
 * wm_comm_open - this member's part of a new communicator, in the contexts that all members were told.
 * @parent: whose error handler it inherits and, where the groups are the same, whose table of members it shares.
 * @remote: NULL, or the other group of an intercommunicator; its local one (->local) is then to be put in by the caller.
 * Answers weft's.
 */
int wm_comm_open(struct MPI_ABI_Comm *parent, struct MPI_ABI_Group *group, struct MPI_ABI_Group *remote, const weft_ctx ctx[2],
		 struct MPI_ABI_Comm **ret_comm);


/* Datatypes (type.c, layout.c) */

/* What a predefined type is to reductions. */
enum wm_base {
	WM_BASE_NONE,                                           /* not predefined, or nothing here computes with it */
	WM_BASE_I8, WM_BASE_I16, WM_BASE_I32, WM_BASE_I64, WM_BASE_I128,
	WM_BASE_U8, WM_BASE_U16, WM_BASE_U32, WM_BASE_U64,
	WM_BASE_F32, WM_BASE_F64, WM_BASE_LD,                   /* LD: long double */
	WM_BASE_C32, WM_BASE_C64, WM_BASE_CLD,                  /* complex of those */
	WM_BASE_BOOL,                                           /* C's, and C++'s */
	WM_BASE_LOGICAL, WM_BASE_LOGICAL1, WM_BASE_LOGICAL2, WM_BASE_LOGICAL8,  /* Fortran's; the first has 4 bytes */
	WM_BASE_BYTE,
	WM_BASE_CHAR,                                           /* text: no arithmetic */
	WM_BASE_FLOAT_INT, WM_BASE_DOUBLE_INT, WM_BASE_LONG_INT, WM_BASE_2INT, WM_BASE_SHORT_INT, WM_BASE_LDOUBLE_INT,
	WM_BASE_2REAL, WM_BASE_2DOUBLE, WM_BASE_2INTEGER        /* pairs of a value and an index */
};

struct wm_shape;                        /* where the bytes of one element are; layout.c */
struct wm_made;                         /* from what it was made, for MPI_Type_get_contents; type_made.c */

struct MPI_ABI_Datatype {
	struct wm_object obj;
	MPI_Count size;                 /* bytes in one element */
	MPI_Count lb, extent, true_lb, true_extent;
	bool plain;                     /* n elements are n * size bytes from their address on: no holes, lb 0, in order */
	bool committed, predefined;
	uint8_t base;                   /* what reductions need to know of a predefined one: enum wm_base */
	bool marked;                    /* lb and extent were said, by MPI_Type_create_resized or a like one inside */
	uint8_t align;                  /* of the basic types inside, the strictest */
	MPI_Count elements;             /* basic types in one element */
	_Atomic uint32_t handles;       /* the user's; the last one freed takes the attributes along */
	struct wm_shape *shape;         /* NULL if plain */
	struct wm_made *made;           /* NULL if predefined */
	char name[MPI_MAX_OBJECT_NAME];
	struct wm_attrs attrs;
};

extern struct MPI_ABI_Datatype wm_types[256] WM_HERE;   /* the predefined ones, by the last 8 bits of their handle */

static inline struct MPI_ABI_Datatype *wm_type(MPI_Datatype type)       /* NULL: MPI_DATATYPE_NULL or none */
{
	uintptr_t n = (uintptr_t)type;

	if (WM_LIKELY(n >> 8 == 2))
		return wm_types[n & 0xff].predefined ? &wm_types[n & 0xff] : NULL;
	return wm_object_is(type, WM_TYPE) ? type : NULL;
}

MPI_Datatype wm_type_handle(struct MPI_ABI_Datatype *type);     /* a number only of those in wm_types: Fortran's by precision are predefined too */

static inline struct MPI_ABI_Datatype *wm_type_get(struct MPI_ABI_Datatype *type)
{
	if (!type->predefined)
		wm_object_get(&type->obj);
	return type;
}

void wm_type_put(struct MPI_ABI_Datatype *type);

/* @count elements of a type at an address, as weft takes them. The type is referenced by whoever holds this. */
struct wm_layout {
	struct weft_layout weft;
	struct MPI_ABI_Datatype *type;
	char *base;                     /* the address of the first element */
	MPI_Count count;
};

/* layout.c: for a type that is not plain. The pieces of neighbouring elements are joined where they touch. */
void wm_layout_init(struct wm_layout *layout, const void *buf, MPI_Count count, struct MPI_ABI_Datatype *type);

/* Puts the memory of an operation into @op: plain memory, or through @room, which must live as long as the operation. */
static inline void wm_place(struct weft_op *op, struct wm_layout *room, const void *buf, MPI_Count count,
			    struct MPI_ABI_Datatype *type)
{
	if (WM_LIKELY(type->plain)) {
		op->data = (void *)(uintptr_t)buf;
		op->len = (size_t)(count * type->size);
	} else {
		wm_layout_init(room, buf, count, type);
		op->layout = &room->weft;
	}
}

/* layout.c: the bytes of @count elements at @buf, end to end, to or from @bytes: of them [at, at + n). */
void wm_type_pack(void *bytes, const void *buf, MPI_Count count, struct MPI_ABI_Datatype *type, MPI_Count at, MPI_Count n);
void wm_type_unpack(const void *bytes, void *buf, MPI_Count count, struct MPI_ABI_Datatype *type, MPI_Count at, MPI_Count n);

/* Checks that many calls need: 0 or an error class. */
static inline int wm_check_data(const void *buf, MPI_Count count, const struct MPI_ABI_Datatype *type)
{
	if (WM_UNLIKELY(count < 0))
		return MPI_ERR_COUNT;
	if (WM_UNLIKELY(!type || !type->committed))
		return MPI_ERR_TYPE;
	if (WM_UNLIKELY(!buf && type->plain && count && type->size))
		return MPI_ERR_BUFFER;
	return 0;
}

/* Operations (op.c) */

struct MPI_ABI_Op {
	struct wm_object obj;
	bool predefined, commutative, large;    /* large: call_c */
	union {
		MPI_User_function *call;
		MPI_User_function_c *call_c;
	};
};

struct MPI_ABI_Op *wm_op(MPI_Op op);                    /* NULL: MPI_OP_NULL or none */
void wm_op_put(struct MPI_ABI_Op *op);
bool wm_op_takes(const struct MPI_ABI_Op *op, const struct MPI_ABI_Datatype *type);     /* the pair is one that MPI allows */
/* inout = in op inout, element by element, in MPI's order of operands. */
void wm_op_apply(struct MPI_ABI_Op *op, const void *in, void *inout, MPI_Count count, MPI_Datatype type);

/* Collectives for the layer's own use (coll.c): plain bytes among the members of an intracommunicator; 0 or an error class. */
int wm_coll_barrier(struct MPI_ABI_Comm *comm);
int wm_coll_bcast(struct MPI_ABI_Comm *comm, int root, void *data, size_t len);
int wm_coll_allgather(struct MPI_ABI_Comm *comm, const void *mine, size_t len, void *ret_all);

/* Requests (request.c) and statuses (status.c) */

enum wm_what { WM_SEND, WM_RECV, WM_USER, WM_COLL };

/* MPI's status from weft's. MPI_internal: bytes in [0..1], cancelled in [2]. MPI_ERROR is not touched. NULL is fine. */
void wm_status_set(MPI_Status *ret_status, const struct weft_status *st);
void wm_status_empty(MPI_Status *ret_status);
void wm_status_proc_null(MPI_Status *ret_status);

static inline MPI_Count wm_status_bytes(const MPI_Status *status)
{
	return (MPI_Count)((uint64_t)(uint32_t)status->MPI_internal[0] | (uint64_t)(uint32_t)status->MPI_internal[1] << 32);
}

static inline void wm_status_put_bytes(MPI_Status *status, MPI_Count bytes)
{
	status->MPI_internal[0] = (int)(uint32_t)(uint64_t)bytes;
	status->MPI_internal[1] = (int)(uint32_t)((uint64_t)bytes >> 32);
}

/* The layer's life (env.c) */

bool wm_alive(void);            /* between MPI_Init and MPI_Finalize */

extern const char *const wm_missing[];  /* functions that are not there, ended by NULL; made by abi/generate */

#endif
