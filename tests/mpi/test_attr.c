/* test_attr.c - attributes of communicators and datatypes: what is copied, what is deleted, when and in which order. */
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "mpitest.h"

static int world_rank, world_size;

/* What the functions below were called with, and what they shall answer */

static struct {
	int copies, deletes, order[16];
	int fail_copy, fail_delete;
	void *extra;
	MPI_Comm comm;
	int key;
} seen;

static int copy_plus_one(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
	seen.copies++;
	seen.extra = extra;
	seen.comm = comm;
	seen.key = key;
	*(void **)out = (char *)in + 1;
	*flag = 1;
	return seen.fail_copy ? seen.fail_copy : MPI_SUCCESS;
}

static int copy_refused(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
	(void)comm;
	(void)key;
	(void)extra;
	(void)in;
	(void)out;
	seen.copies++;
	*flag = 0;
	return MPI_SUCCESS;
}

static int delete_noted(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)key;
	seen.extra = extra;
	seen.comm = comm;
	if (seen.deletes < 16)
		seen.order[seen.deletes] = (int)(intptr_t)value;
	seen.deletes++;
	return seen.fail_delete ? seen.fail_delete : MPI_SUCCESS;
}

static int delete_frees_key(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm;
	(void)value;
	(void)extra;
	seen.deletes++;
	return MPI_Comm_free_keyval(&key);
}

/* Sets, gets and deletes under another key of the same communicator. */
static int delete_calls_mpi(MPI_Comm comm, int key, void *value, void *extra)
{
	int other = *(int *)extra, flag = 0;
	void *got = NULL;

	(void)value;
	seen.deletes++;
	MPI_Comm_get_attr(comm, key, &got, &flag);
	MPI_Comm_delete_attr(comm, key);
	return MPI_Comm_set_attr(comm, other, (void *)77);
}

static void *value_of(MPI_Comm comm, int key)
{
	void *value = NULL;
	int flag = 0;

	EXPECT_INT(MPI_Comm_get_attr(comm, key, &value, &flag), MPI_SUCCESS);
	return flag ? value : (void *)-1;
}

static void predefined(void)
{
	int *value, flag, key;

	EXPECT_INT(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag), MPI_SUCCESS);
	EXPECT(flag && *value >= 32767);
	EXPECT_INT(MPI_Attr_get(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag), MPI_SUCCESS);
	EXPECT(flag && *value == world_size);
	EXPECT_INT(MPI_Comm_get_attr(MPI_COMM_SELF, MPI_HOST, &value, &flag), MPI_SUCCESS);
	EXPECT(flag && *value == MPI_PROC_NULL);
	EXPECT_INT(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag), MPI_SUCCESS);
	EXPECT(flag && (*value == MPI_ANY_SOURCE || (*value >= 0 && *value < world_size)));
	EXPECT_INT(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag), MPI_SUCCESS);
	EXPECT(flag && (*value == 0 || *value == 1));
	EXPECT_INT(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag), MPI_SUCCESS);
	EXPECT(flag && *value >= MPI_ERR_LASTCODE);
	EXPECT_INT(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL), MPI_ERR_KEYVAL);
	EXPECT_INT(MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_TAG_UB), MPI_ERR_KEYVAL);
	key = MPI_TAG_UB;
	EXPECT_INT(MPI_Comm_free_keyval(&key), MPI_ERR_KEYVAL);
	EXPECT_INT(key, MPI_TAG_UB);
	case_end("predefined attributes are there and cannot be changed");
}

static void set_get_delete(void)
{
	int key, flag, extra;
	void *value;

	memset(&seen, 0, sizeof(seen));
	EXPECT_INT(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_noted, &key, &extra), MPI_SUCCESS);
	EXPECT(value_of(MPI_COMM_WORLD, key) == (void *)-1);
	EXPECT_INT(MPI_Comm_set_attr(MPI_COMM_WORLD, key, (void *)1), MPI_SUCCESS);
	EXPECT(value_of(MPI_COMM_WORLD, key) == (void *)1);
	EXPECT(value_of(MPI_COMM_SELF, key) == (void *)-1);
	EXPECT_INT(MPI_Comm_set_attr(MPI_COMM_WORLD, key, (void *)2), MPI_SUCCESS);
	EXPECT_INT(seen.deletes, 1);
	EXPECT_INT(seen.order[0], 1);
	EXPECT(seen.extra == &extra && seen.comm == MPI_COMM_WORLD);
	EXPECT_INT(MPI_Comm_delete_attr(MPI_COMM_WORLD, key), MPI_SUCCESS);
	EXPECT_INT(seen.order[1], 2);
	EXPECT(value_of(MPI_COMM_WORLD, key) == (void *)-1);
	EXPECT_INT(MPI_Comm_free_keyval(&key), MPI_SUCCESS);
	EXPECT_INT(key, MPI_KEYVAL_INVALID);
	EXPECT_INT(MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL), MPI_ERR_KEYVAL);
	EXPECT_INT(MPI_Comm_get_attr(MPI_COMM_WORLD, 123456, &value, &flag), MPI_ERR_KEYVAL);
	EXPECT_INT(MPI_Comm_get_attr(MPI_COMM_NULL, MPI_TAG_UB, &value, &flag), MPI_ERR_COMM);
	case_end("a value is replaced and deleted through its delete function");
}

static void copied(void)
{
	int plus, dup, none, refused, extra;
	MPI_Comm comm;

	memset(&seen, 0, sizeof(seen));
	MPI_Comm_create_keyval(copy_plus_one, MPI_COMM_NULL_DELETE_FN, &plus, &extra);
	MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &dup, NULL);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_noted, &none, NULL);
	MPI_Comm_create_keyval(copy_refused, delete_noted, &refused, NULL);
	MPI_Comm_set_attr(MPI_COMM_WORLD, plus, (void *)10);
	MPI_Attr_put(MPI_COMM_WORLD, dup, (void *)20);
	MPI_Comm_set_attr(MPI_COMM_WORLD, none, (void *)30);
	MPI_Comm_set_attr(MPI_COMM_WORLD, refused, (void *)40);
	EXPECT_INT(MPI_Comm_dup(MPI_COMM_WORLD, &comm), MPI_SUCCESS);
	EXPECT(value_of(comm, plus) == (void *)11);
	EXPECT(value_of(comm, dup) == (void *)20);
	EXPECT(value_of(comm, none) == (void *)-1);
	EXPECT(value_of(comm, refused) == (void *)-1);
	EXPECT_INT(seen.copies, 2);
	EXPECT(seen.extra == &extra && seen.comm == MPI_COMM_WORLD && seen.key == plus);
	EXPECT_INT(MPI_Comm_free(&comm), MPI_SUCCESS);
	EXPECT_INT(seen.deletes, 0);
	MPI_Comm_delete_attr(MPI_COMM_WORLD, plus);
	MPI_Attr_delete(MPI_COMM_WORLD, dup);
	MPI_Comm_delete_attr(MPI_COMM_WORLD, none);
	MPI_Comm_delete_attr(MPI_COMM_WORLD, refused);
	EXPECT_INT(seen.deletes, 2);
	MPI_Comm_free_keyval(&plus);
	MPI_Keyval_free(&dup);
	MPI_Comm_free_keyval(&none);
	MPI_Comm_free_keyval(&refused);
	case_end("a duplicate has what the copy functions answer");
}

static void order(void)
{
	int key[4];
	MPI_Comm comm;

	memset(&seen, 0, sizeof(seen));
	MPI_Comm_split(MPI_COMM_SELF, 0, 0, &comm);
	for (int i = 0; i < 4; i++)
		MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_noted, &key[i], NULL);
	for (int i = 0; i < 4; i++)
		MPI_Comm_set_attr(comm, key[3 - i], (void *)(intptr_t)(i + 1));
	for (int i = 0; i < 4; i++)     /* freed while in use */
		EXPECT_INT(MPI_Comm_free_keyval(&key[i]), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_free(&comm), MPI_SUCCESS);
	EXPECT_INT(seen.deletes, 4);
	for (int i = 0; i < 4; i++)
		EXPECT_INT(seen.order[i], 4 - i);
	case_end("freeing a communicator deletes its attributes, the last set first, also under keys freed before");
}

static void failures(void)
{
	int first, second, r;
	MPI_Comm comm, copy = MPI_COMM_NULL;

	memset(&seen, 0, sizeof(seen));
	MPI_Comm_split(MPI_COMM_SELF, 0, 0, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete_noted, &first, NULL);
	MPI_Comm_create_keyval(copy_plus_one, delete_noted, &second, NULL);
	MPI_Comm_set_attr(comm, first, (void *)1);
	MPI_Comm_set_attr(comm, second, (void *)2);
	seen.fail_copy = MPI_ERR_OTHER;
	r = MPI_Comm_dup(comm, &copy);
	EXPECT_INT(r, MPI_ERR_OTHER);
	seen.fail_copy = 0;
	memset(&seen, 0, sizeof(seen));
	seen.fail_delete = MPI_ERR_INTERN;
	EXPECT_INT(MPI_Comm_delete_attr(comm, first), MPI_ERR_INTERN);
	EXPECT(value_of(comm, first) == (void *)1);
	EXPECT_INT(MPI_Comm_set_attr(comm, first, (void *)9), MPI_ERR_INTERN);
	EXPECT(value_of(comm, first) == (void *)1);
	EXPECT_INT(MPI_Comm_free(&comm), MPI_ERR_INTERN);
	EXPECT(comm != MPI_COMM_NULL);
	EXPECT(value_of(comm, first) == (void *)1);
	EXPECT(value_of(comm, second) == (void *)2);
	seen.fail_delete = 0;
	seen.deletes = 0;
	EXPECT_INT(MPI_Comm_free(&comm), MPI_SUCCESS);
	EXPECT_INT(seen.deletes, 2);
	MPI_Comm_free_keyval(&first);
	MPI_Comm_free_keyval(&second);
	case_end("a failing copy or delete function's code is answered, and everything stays as it was");
}

static void callbacks_call(void)
{
	int key, other, copy;
	MPI_Comm comm;

	memset(&seen, 0, sizeof(seen));
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_frees_key, &key, NULL);
	copy = key;
	MPI_Comm_split(MPI_COMM_SELF, 0, 0, &comm);
	MPI_Comm_set_attr(comm, key, NULL);
	MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
	EXPECT_INT(MPI_Comm_free(&comm), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_free_keyval(&copy), MPI_SUCCESS);   /* once more, while MPI_COMM_SELF's is there */
	EXPECT_INT(MPI_Comm_delete_attr(MPI_COMM_SELF, key), MPI_SUCCESS);
	EXPECT_INT(seen.deletes, 2);
	EXPECT_INT(MPI_Comm_delete_attr(MPI_COMM_SELF, key), MPI_ERR_KEYVAL);

	memset(&seen, 0, sizeof(seen));
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_noted, &other, NULL);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_calls_mpi, &key, &other);
	MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
	EXPECT_INT(MPI_Comm_delete_attr(MPI_COMM_SELF, key), MPI_SUCCESS);
	EXPECT_INT(seen.deletes, 1);
	EXPECT(value_of(MPI_COMM_SELF, key) == (void *)-1);
	EXPECT(value_of(MPI_COMM_SELF, other) == (void *)77);
	MPI_Comm_delete_attr(MPI_COMM_SELF, other);
	MPI_Comm_free_keyval(&key);
	MPI_Comm_free_keyval(&other);
	case_end("a delete function may free its key and use the communicator's attributes");
}

static int type_copies, type_deletes;

static int type_copy(MPI_Datatype type, int key, void *extra, void *in, void *out, int *flag)
{
	(void)type;
	(void)key;
	(void)extra;
	type_copies++;
	*(void **)out = in;
	*flag = 1;
	return MPI_SUCCESS;
}

static int type_delete(MPI_Datatype type, int key, void *value, void *extra)
{
	(void)type;
	(void)key;
	(void)value;
	(void)extra;
	type_deletes++;
	return MPI_SUCCESS;
}

static void types(void)
{
	MPI_Datatype type, copy;
	int key, comm_key, flag;
	void *value;

	MPI_Type_create_keyval(type_copy, type_delete, &key, NULL);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &comm_key, NULL);
	MPI_Type_contiguous(3, MPI_INT, &type);
	EXPECT_INT(MPI_Type_set_attr(type, key, (void *)5), MPI_SUCCESS);
	EXPECT_INT(MPI_Type_set_attr(type, comm_key, NULL), MPI_ERR_KEYVAL);
	EXPECT_INT(MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL), MPI_ERR_KEYVAL);
	EXPECT_INT(MPI_Type_get_attr(type, MPI_TAG_UB, &value, &flag), MPI_ERR_KEYVAL);
	EXPECT_INT(MPI_Type_dup(type, &copy), MPI_SUCCESS);
	EXPECT_INT(MPI_Type_get_attr(copy, key, &value, &flag), MPI_SUCCESS);
	EXPECT(flag && value == (void *)5);
	EXPECT_INT(type_copies, 1);
	MPI_Type_free(&type);
	EXPECT_INT(type_deletes, 1);
	EXPECT_INT(MPI_Type_delete_attr(copy, key), MPI_SUCCESS);
	EXPECT_INT(type_deletes, 2);
	MPI_Type_free(&copy);
	EXPECT_INT(type_deletes, 2);
	EXPECT_INT(MPI_Type_set_attr(MPI_INT, key, (void *)6), MPI_SUCCESS);
	EXPECT_INT(MPI_Type_get_attr(MPI_INT, key, &value, &flag), MPI_SUCCESS);
	EXPECT(flag && value == (void *)6);
	EXPECT_INT(MPI_Type_delete_attr(MPI_INT, key), MPI_SUCCESS);
	EXPECT_INT(MPI_Type_set_attr(MPI_DATATYPE_NULL, key, NULL), MPI_ERR_TYPE);
	MPI_Type_free_keyval(&key);
	MPI_Comm_free_keyval(&comm_key);
	case_end("datatypes have attributes of their own, also predefined ones");
}

/* Many threads at one key: every value that was set is deleted once. */

#define ROUNDS 2000
#define THREADS 4
static _Atomic int values_deleted;
static int shared_key;

static int delete_counted(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm;
	(void)key;
	(void)value;
	(void)extra;
	values_deleted++;
	return MPI_SUCCESS;
}

static void *setter(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Comm_set_attr(MPI_COMM_SELF, shared_key, arg);
		if (i % 3 == 0)
			MPI_Comm_delete_attr(MPI_COMM_SELF, shared_key);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];

	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_counted, &shared_key, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, setter, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	MPI_Comm_delete_attr(MPI_COMM_SELF, shared_key);
	EXPECT_INT(values_deleted, THREADS * ROUNDS);
	MPI_Comm_free_keyval(&shared_key);
	case_end("threads that set and delete under one key at once delete every value once");
}

/* Printed by the last value of MPI_COMM_SELF: a test that never gets there fails by what it does not print. */
static int delete_at_end(MPI_Comm comm, int key, void *value, void *extra)
{
	int finalized = -1;

	(void)key;
	(void)extra;
	MPI_Finalized(&finalized);
	*(int *)value = comm == MPI_COMM_SELF && !finalized;
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	static int ended;
	int provided, key, r;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &world_size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	predefined();
	set_get_delete();
	copied();
	order();
	failures();
	callbacks_call();
	types();
	threads();
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_at_end, &key, NULL);
	MPI_Comm_set_attr(MPI_COMM_SELF, key, &ended);
	r = cases_end();
	if (!ended)
		printf("not ok - MPI_Finalize deletes the attributes of MPI_COMM_SELF\n");
	return r || !ended;
}
