/* error_code.c - error classes and codes, and their words.
 *
 * The layer's own errors are plain classes. What the program adds is numbered from above MPI_ERR_LASTCODE on, classes
 * and codes from one counter; a number that was removed is given again only when it was the last one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inner.h"

static const struct {
	int class;
	const char *name, *words;
} classes[] = {
#define CLASS(x, words) { MPI_ERR_##x, "MPI_ERR_" #x, words }
	{ MPI_SUCCESS, "MPI_SUCCESS", "no error" },
	CLASS(BUFFER, "the buffer cannot be used"),
	CLASS(COUNT, "the count makes no sense"),
	CLASS(TYPE, "not a datatype, or one that was not committed"),
	CLASS(TAG, "the tag is out of range"),
	CLASS(COMM, "not a communicator that serves here"),
	CLASS(RANK, "no such rank"),
	CLASS(REQUEST, "not a request"),
	CLASS(ROOT, "the root is no rank of the communicator"),
	CLASS(GROUP, "not a group that serves here"),
	CLASS(OP, "not an operation, or not for this datatype"),
	CLASS(TOPOLOGY, "the communicator's topology is another or none"),
	CLASS(DIMS, "the dimensions make no sense"),
	CLASS(ARG, "an argument makes no sense"),
	CLASS(UNKNOWN, "an error of which nothing is known"),
	CLASS(TRUNCATE, "the message is longer than the receive"),
	CLASS(OTHER, "an error of no class of its own"),
	CLASS(INTERN, "a mistake inside the library"),
	CLASS(PENDING, "the operation is still under way"),
	CLASS(IN_STATUS, "the statuses tell which operations failed"),
	CLASS(ACCESS, "no permission"),
	CLASS(AMODE, "the access mode makes no sense"),
	CLASS(ASSERT, "the assertion makes no sense"),
	CLASS(BAD_FILE, "not a file name"),
	CLASS(BASE, "not memory from MPI_Alloc_mem"),
	CLASS(CONVERSION, "a conversion function failed"),
	CLASS(DISP, "the displacement makes no sense"),
	CLASS(DUP_DATAREP, "that data representation is there already"),
	CLASS(FILE_EXISTS, "the file exists"),
	CLASS(FILE_IN_USE, "the file is open somewhere"),
	CLASS(FILE, "not a file handle"),
	CLASS(INFO_KEY, "the key is empty or too long"),
	CLASS(INFO_NOKEY, "the info has no such key"),
	CLASS(INFO_VALUE, "the value is empty or too long"),
	CLASS(INFO, "not an info"),
	CLASS(IO, "reading or writing failed"),
	CLASS(KEYVAL, "not a keyval that serves here"),
	CLASS(LOCKTYPE, "no such kind of lock"),
	CLASS(NAME, "no service of that name is published"),
	CLASS(NO_MEM, "memory has run out"),
	CLASS(NOT_SAME, "an argument of a collective is not the same at all members"),
	CLASS(NO_SPACE, "no space is left"),
	CLASS(NO_SUCH_FILE, "the file does not exist"),
	CLASS(PORT, "not the name of a port"),
	CLASS(QUOTA, "a quota is used up"),
	CLASS(READ_ONLY, "only to be read"),
	CLASS(RMA_ATTACH, "the memory cannot be attached"),
	CLASS(RMA_CONFLICT, "accesses of a window conflict"),
	CLASS(RMA_RANGE, "outside the memory of the window"),
	CLASS(RMA_SHARED, "the memory cannot be shared"),
	CLASS(RMA_SYNC, "a window is synchronised the wrong way"),
	CLASS(SERVICE, "no such service was published"),
	CLASS(SIZE, "the size makes no sense"),
	CLASS(SPAWN, "processes could not be started"),
	CLASS(UNSUPPORTED_DATAREP, "no such data representation"),
	CLASS(UNSUPPORTED_OPERATION, "not there in this library"),
	CLASS(WIN, "not a window"),
	CLASS(RMA_FLAVOR, "a window of the wrong kind"),
	CLASS(PROC_ABORTED, "a process that took part has ended"),
	CLASS(VALUE_TOO_LARGE, "a number does not fit where it shall go"),
	CLASS(SESSION, "not a session"),
	CLASS(ERRHANDLER, "not an error handler that serves here"),
	CLASS(ABI, "another version of the ABI"),
	{ MPI_ERR_LASTCODE, "MPI_ERR_LASTCODE", "the last of the library's own error codes" },
#undef CLASS
#define CLASS(x, words) { MPI_T_ERR_##x, "MPI_T_ERR_" #x, words }
	CLASS(CANNOT_INIT, "the tools interface cannot be started"),
	CLASS(NOT_ACCESSIBLE, "the tools interface does not reach it"),
	CLASS(NOT_INITIALIZED, "the tools interface was not started"),
	CLASS(NOT_SUPPORTED, "the tools interface does not have it"),
	CLASS(MEMORY, "the tools interface has no memory left"),
	CLASS(INVALID, "an argument of the tools interface makes no sense"),
	CLASS(INVALID_INDEX, "nothing has that index in the tools interface"),
	CLASS(INVALID_ITEM, "no such item in that enumeration"),
	CLASS(INVALID_SESSION, "not a session of the tools interface"),
	CLASS(INVALID_HANDLE, "not a handle of the tools interface"),
	CLASS(INVALID_NAME, "nothing has that name in the tools interface"),
	CLASS(OUT_OF_HANDLES, "the tools interface has no handle left"),
	CLASS(OUT_OF_SESSIONS, "the tools interface has no session left"),
	CLASS(CVAR_SET_NOT_NOW, "the control variable cannot be set now"),
	CLASS(CVAR_SET_NEVER, "the control variable cannot be set"),
	CLASS(PVAR_NO_WRITE, "the performance variable cannot be written"),
	CLASS(PVAR_NO_STARTSTOP, "the performance variable cannot be started and stopped"),
	CLASS(PVAR_NO_ATOMIC, "the performance variable cannot be read and reset at once"),
#undef CLASS
};

/* What the program added */

struct added {
	bool used, is_class;
	int class;                      /* a code's; a class's own number */
	unsigned codes;                 /* of a class: codes in it */
	char *words;                    /* owned; NULL: none */
};

static struct {
	pthread_mutex_t lock;
	struct added *entry;            /* number MPI_ERR_LASTCODE + 1 + i */
	int count, room;
} extra = { .lock = PTHREAD_MUTEX_INITIALIZER };

#define FIRST_EXTRA (MPI_ERR_LASTCODE + 1)

static struct added *added_locked(int code)
{
	if (code < FIRST_EXTRA || code - FIRST_EXTRA >= extra.count)
		return NULL;
	return extra.entry[code - FIRST_EXTRA].used ? &extra.entry[code - FIRST_EXTRA] : NULL;
}

/* The place of one of the library's own, -1: none. */
static int own(int code)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++)
		if (classes[i].class == code)
			return (int)i;
	return -1;
}

int wm_lastusedcode(void)
{
	int last;

	pthread_mutex_lock(&extra.lock);
	last = MPI_ERR_LASTCODE + extra.count;
	pthread_mutex_unlock(&extra.lock);
	return last;
}

const char *wm_error_name(int code, char *text, size_t n)
{
	struct added *a;
	int i = own(code);

	if (i >= 0)
		return classes[i].name;
	pthread_mutex_lock(&extra.lock);
	a = added_locked(code);
	if (a && a->words)
		snprintf(text, n, "code %d: %s", code, a->words);
	else
		snprintf(text, n, "code %d", code);
	pthread_mutex_unlock(&extra.lock);
	return text;
}

int PMPI_Error_class(int errorcode, int *errorclass)
{
	struct added *a;
	int class = MPI_ERR_LASTCODE;

	if (!errorclass)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL as place of the class");
	if (own(errorcode) >= 0) {
		*errorclass = errorcode;
		return MPI_SUCCESS;
	}
	pthread_mutex_lock(&extra.lock);
	a = added_locked(errorcode);
	if (a)
		class = a->class;
	pthread_mutex_unlock(&extra.lock);
	if (!a)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "%d is no error code", errorcode);
	*errorclass = class;
	return MPI_SUCCESS;
}
MPI_DONE(Error_class);

int PMPI_Error_string(int errorcode, char *string, int *resultlen)
{
	int i = own(errorcode), n = -1;
	struct added *a;

	if (!string || !resultlen)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL as place of the words");
	if (i >= 0) {
		n = snprintf(string, MPI_MAX_ERROR_STRING, "%s: %s", classes[i].name, classes[i].words);
	} else {
		pthread_mutex_lock(&extra.lock);
		a = added_locked(errorcode);
		if (a)
			n = snprintf(string, MPI_MAX_ERROR_STRING, "%s", a->words ? a->words : "");
		pthread_mutex_unlock(&extra.lock);
	}
	if (n < 0)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "%d is no error code", errorcode);
	*resultlen = n < MPI_MAX_ERROR_STRING ? n : MPI_MAX_ERROR_STRING - 1;
	return MPI_SUCCESS;
}
MPI_DONE(Error_string);

/* A new number; 0: no memory. */
static int add_locked(bool is_class, int class)
{
	if (extra.count == extra.room) {
		int room = extra.room ? 2 * extra.room : 16;
		struct added *entry = realloc(extra.entry, (size_t)room * sizeof(*entry));

		if (!entry)
			return 0;
		extra.entry = entry;
		extra.room = room;
	}
	extra.entry[extra.count++] = (struct added){
		.used = true, .is_class = is_class, .class = is_class ? MPI_ERR_LASTCODE + extra.count : class
	};
	return MPI_ERR_LASTCODE + extra.count;
}

static void remove_locked(struct added *a)
{
	free(a->words);
	*a = (struct added){ .used = false };
	while (extra.count > 0 && !extra.entry[extra.count - 1].used)
		extra.count--;
}

int PMPI_Add_error_class(int *errorclass)
{
	int class;

	if (!errorclass)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL as place of the class");
	pthread_mutex_lock(&extra.lock);
	class = add_locked(true, 0);
	pthread_mutex_unlock(&extra.lock);
	if (!class)
		return wm_error(NULL, __func__, MPI_ERR_NO_MEM, "no memory for an error class");
	*errorclass = class;
	return MPI_SUCCESS;
}
MPI_DONE(Add_error_class);

int PMPI_Add_error_code(int errorclass, int *errorcode)
{
	struct added *a;
	bool known;
	int code = 0;

	if (!errorcode)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL as place of the code");
	pthread_mutex_lock(&extra.lock);
	a = added_locked(errorclass);
	known = a ? a->is_class : own(errorclass) >= 0;
	if (known)
		code = add_locked(false, errorclass);
	a = code ? added_locked(errorclass) : NULL;     /* may have moved */
	if (a)
		a->codes++;
	pthread_mutex_unlock(&extra.lock);
	if (!known)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "%d is no error class", errorclass);
	if (!code)
		return wm_error(NULL, __func__, MPI_ERR_NO_MEM, "no memory for an error code");
	*errorcode = code;
	return MPI_SUCCESS;
}
MPI_DONE(Add_error_code);

int PMPI_Add_error_string(int errorcode, const char *string)
{
	struct added *a;
	char *words;

	if (!string)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "NULL as words");
	words = strndup(string, MPI_MAX_ERROR_STRING - 1);
	if (!words)
		return wm_error(NULL, __func__, MPI_ERR_NO_MEM, "no memory for the words");
	pthread_mutex_lock(&extra.lock);
	a = added_locked(errorcode);
	if (a) {
		free(a->words);
		a->words = words;
	}
	pthread_mutex_unlock(&extra.lock);
	if (!a) {
		free(words);
		return wm_error(NULL, __func__, MPI_ERR_ARG, "%d is no error code of the program's own", errorcode);
	}
	return MPI_SUCCESS;
}
MPI_DONE(Add_error_string);

/* A class goes when no code of it is left. */
static int remove_number(const char *function, int number, bool is_class)
{
	struct added *a, *class;
	bool busy = false;

	pthread_mutex_lock(&extra.lock);
	a = added_locked(number);
	if (a && a->is_class != is_class)
		a = NULL;
	if (a && is_class)
		busy = a->codes > 0;
	if (a && !busy) {
		class = is_class ? NULL : added_locked(a->class);
		if (class)
			class->codes--;
		remove_locked(a);
	}
	pthread_mutex_unlock(&extra.lock);
	if (!a)
		return wm_error(NULL, function, MPI_ERR_ARG, "%d is no error %s of the program's own", number,
				is_class ? "class" : "code");
	if (busy)
		return wm_error(NULL, function, MPI_ERR_ARG, "error class %d still has codes", number);
	return MPI_SUCCESS;
}

int PMPI_Remove_error_class(int errorclass)
{
	return remove_number(__func__, errorclass, true);
}
MPI_DONE(Remove_error_class);

int PMPI_Remove_error_code(int errorcode)
{
	return remove_number(__func__, errorcode, false);
}
MPI_DONE(Remove_error_code);

int PMPI_Remove_error_string(int errorcode)
{
	struct added *a;
	bool had = false;

	pthread_mutex_lock(&extra.lock);
	a = added_locked(errorcode);
	if (a) {
		had = a->words != NULL;
		free(a->words);
		a->words = NULL;
	}
	pthread_mutex_unlock(&extra.lock);
	if (!had)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "%d is no error code with words of the program's own", errorcode);
	return MPI_SUCCESS;
}
MPI_DONE(Remove_error_string);
