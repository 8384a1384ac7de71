/* handle.c - handles as ints, for languages whose handles are ints.
 *
 * Predefined handles are their own numbers. An object's is its place in a table, given when first asked for and kept
 * for ever: the memory of an object is only used for objects of its kind again (object.c), so that the table is never
 * longer than the most objects there were at one time.
 */
#include <stdlib.h>

#include "inner.h"

#define FIRST 0x10000           /* above all predefined handles */
#define PREDEFINED 0x1000       /* no object's address is below */

static struct {
	pthread_mutex_t lock;
	void **object;                  /* by number - FIRST */
	int count, room;
	int *slot;                      /* 2 * room of them, by hash of the object: its place + 1; 0: free */
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The place of @object in the hash table, or the free one where it belongs. */
static int *slot_of(int *slots, int n, const void *object)
{
	uint64_t h = (uint64_t)(uintptr_t)object * UINT64_C(0x9e3779b97f4a7c15);
	int mask = n - 1;

	for (int i = (int)(h >> 33) & mask;; i = (i + 1) & mask)
		if (!slots[i] || table.object[slots[i] - 1] == object)
			return &slots[i];
}

static bool grow_locked(void)
{
	int room = table.room ? 2 * table.room : 64, *slots;
	void **objects;

	if (table.count < table.room)
		return true;
	if (room > (INT32_MAX - FIRST) / 2)
		return false;
	slots = calloc(2 * (size_t)room, sizeof(*slots));
	objects = realloc(table.object, (size_t)room * sizeof(*objects));
	if (objects)
		table.object = objects;
	if (!slots || !objects) {
		free(slots);
		return false;
	}
	for (int i = 0; i < table.count; i++)
		*slot_of(slots, 2 * room, table.object[i]) = i + 1;
	free(table.slot);
	table.slot = slots;
	table.room = room;
	return true;
}

/* Of a handle for which no number is left: 0, which is no handle's. */
static int number_of(void *object)
{
	int *slot, number = 0;

	if ((uintptr_t)object < PREDEFINED)
		return (int)(uintptr_t)object;
	pthread_mutex_lock(&table.lock);
	if (grow_locked()) {
		slot = slot_of(table.slot, 2 * table.room, object);
		if (!*slot) {
			table.object[table.count++] = object;
			*slot = table.count;
		}
		number = FIRST + *slot - 1;
	}
	pthread_mutex_unlock(&table.lock);
	return number;
}

/* Numbers that were never given are handles of nothing, as they are. */
static void *object_of(int number)
{
	void *object = (void *)(uintptr_t)(number >= 0 && number < PREDEFINED ? number : 0);

	pthread_mutex_lock(&table.lock);
	if (number >= FIRST && number - FIRST < table.count)
		object = table.object[number - FIRST];
	pthread_mutex_unlock(&table.lock);
	return object;
}

#define BOTH_WAYS(name, type)                   \
	int PMPI_##name##_toint(type handle)    \
	{                                       \
		return number_of(handle);       \
	}                                       \
	type PMPI_##name##_fromint(int number)  \
	{                                       \
		return (type)object_of(number); \
	}

BOTH_WAYS(Comm, MPI_Comm)
MPI_DONE(Comm_toint);
MPI_DONE(Comm_fromint);
BOTH_WAYS(Errhandler, MPI_Errhandler)
MPI_DONE(Errhandler_toint);
MPI_DONE(Errhandler_fromint);
BOTH_WAYS(File, MPI_File)
MPI_DONE(File_toint);
MPI_DONE(File_fromint);
BOTH_WAYS(Group, MPI_Group)
MPI_DONE(Group_toint);
MPI_DONE(Group_fromint);
BOTH_WAYS(Info, MPI_Info)
MPI_DONE(Info_toint);
MPI_DONE(Info_fromint);
BOTH_WAYS(Message, MPI_Message)
MPI_DONE(Message_toint);
MPI_DONE(Message_fromint);
BOTH_WAYS(Op, MPI_Op)
MPI_DONE(Op_toint);
MPI_DONE(Op_fromint);
BOTH_WAYS(Request, MPI_Request)
MPI_DONE(Request_toint);
MPI_DONE(Request_fromint);
BOTH_WAYS(Session, MPI_Session)
MPI_DONE(Session_toint);
MPI_DONE(Session_fromint);
BOTH_WAYS(Type, MPI_Datatype)
MPI_DONE(Type_toint);
MPI_DONE(Type_fromint);
BOTH_WAYS(Win, MPI_Win)
MPI_DONE(Win_toint);
MPI_DONE(Win_fromint);
#undef BOTH_WAYS
