/* test_comm.c - communicators: what can be asked of them, how they are made, that they do not mix, and that nothing is left. Four ranks. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "mpitest.h"

static int me;

static int compare(MPI_Comm a, MPI_Comm b)
{
	int result = -1;

	MPI_Comm_compare(a, b, &result);
	return result;
}

/* My rank in @comm times 100 and its size: whether it is the expected one at a glance. */
static int seat(MPI_Comm comm)
{
	int rank = -1, size = -1;

	if (comm == MPI_COMM_NULL)
		return -1;
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	return rank * 100 + size;
}

/* A number goes round the ring of @comm; everybody has to be there. */
static int ring_works(MPI_Comm comm)
{
	int rank, size, token = -1, sum = 0;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (int i = 0; i < size; i++) {
		MPI_Request req;

		MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, i, comm, &req);
		if (MPI_Recv(&token, 1, MPI_INT, (rank + size - 1) % size, i, comm, MPI_STATUS_IGNORE))
			return 0;
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		sum += token == (rank + size - 1) % size;
	}
	return sum == size;
}

static void basics(void)
{
	char name[MPI_MAX_OBJECT_NAME], longer[3 * MPI_MAX_OBJECT_NAME];
	MPI_Comm parent, dup;
	int flag = -1, len;

	EXPECT_INT(seat(MPI_COMM_SELF), 1);
	EXPECT_INT(seat(MPI_COMM_WORLD), me * 100 + 4);
	MPI_Comm_test_inter(MPI_COMM_WORLD, &flag);
	EXPECT_INT(flag, 0);
	MPI_Comm_get_parent(&parent);
	EXPECT(parent == MPI_COMM_NULL);
	MPI_Comm_get_name(MPI_COMM_WORLD, name, &len);
	EXPECT(!strcmp(name, "MPI_COMM_WORLD") && len == 14);
	MPI_Comm_get_name(MPI_COMM_SELF, name, &len);
	EXPECT(!strcmp(name, "MPI_COMM_SELF"));
	MPI_Comm_get_name(MPI_COMM_NULL, name, &len);
	EXPECT(!strcmp(name, "MPI_COMM_NULL"));
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Comm_get_name(dup, name, &len);
	EXPECT(len == 0 && !*name);
	MPI_Comm_set_name(dup, "a name");
	MPI_Comm_get_name(dup, name, &len);
	EXPECT(!strcmp(name, "a name") && len == 6);
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = 0;
	MPI_Comm_set_name(dup, longer);
	MPI_Comm_get_name(dup, name, &len);
	EXPECT_INT(len, MPI_MAX_OBJECT_NAME - 1);
	MPI_Comm_free(&dup);
	EXPECT(dup == MPI_COMM_NULL);
	case_end("world and self have their ranks, sizes and names");
}

static void comparisons(void)
{
	MPI_Comm dup, reversed, half;

	EXPECT_INT(compare(MPI_COMM_WORLD, MPI_COMM_WORLD), MPI_IDENT);
	EXPECT_INT(compare(MPI_COMM_WORLD, MPI_COMM_SELF), MPI_UNEQUAL);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	EXPECT_INT(compare(MPI_COMM_WORLD, dup), MPI_CONGRUENT);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &reversed);
	EXPECT_INT(compare(MPI_COMM_WORLD, reversed), MPI_SIMILAR);
	EXPECT_INT(seat(reversed), (3 - me) * 100 + 4);
	MPI_Comm_split(MPI_COMM_WORLD, me / 2, 0, &half);
	EXPECT_INT(compare(dup, half), MPI_UNEQUAL);
	MPI_Comm_free(&dup);
	MPI_Comm_free(&reversed);
	MPI_Comm_free(&half);
	case_end("communicators are identical, congruent, similar or unequal");
}

static void contexts_apart(void)
{
	int in_copy = 100 + me, in_first = 200 + me, got = -1, flag;
	MPI_Request reqs[2];
	MPI_Status st;
	MPI_Comm first, copy;

	MPI_Comm_dup(MPI_COMM_WORLD, &first);   /* in which nobody else sends */
	MPI_Comm_dup(first, &copy);
	MPI_Isend(&in_copy, 1, MPI_INT, (me + 1) % 4, 5, copy, &reqs[0]);
	MPI_Isend(&in_first, 1, MPI_INT, (me + 1) % 4, 5, first, &reqs[1]);
	MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, first, &st);
	EXPECT_INT(got, 200 + (me + 3) % 4);
	EXPECT_INT(st.MPI_SOURCE, (me + 3) % 4);
	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, first, &flag, MPI_STATUS_IGNORE);
	EXPECT_INT(flag, 0);
	MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, copy, &st);
	EXPECT_INT(got, 100 + (me + 3) % 4);
	MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE);
	MPI_Comm_free(&copy);
	MPI_Comm_free(&first);
	case_end("a message sent in a copy is not received in the original");
}

static void splits(void)
{
	MPI_Comm c;

	MPI_Comm_split(MPI_COMM_WORLD, me % 2, 0, &c);
	EXPECT_INT(seat(c), me / 2 * 100 + 2);
	EXPECT(ring_works(c));
	MPI_Comm_free(&c);
	MPI_Comm_split(MPI_COMM_WORLD, 7, me == 2 ? -1 : 3, &c);        /* 2, then 0 1 3 by their ranks */
	EXPECT_INT(seat(c), (me == 2 ? 0 : me < 2 ? me + 1 : 3) * 100 + 4);
	EXPECT(ring_works(c));
	MPI_Comm_free(&c);
	MPI_Comm_split(MPI_COMM_WORLD, me == 1 ? MPI_UNDEFINED : 0, me, &c);
	EXPECT_INT(seat(c), me == 1 ? -1 : (me ? me - 1 : 0) * 100 + 3);
	EXPECT(me == 1 || ring_works(c));
	if (me != 1)
		MPI_Comm_free(&c);
	MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &c);
	EXPECT(c == MPI_COMM_NULL);
	MPI_Comm_split(MPI_COMM_WORLD, 2147483647 - me, 2147483647, &c);
	EXPECT_INT(seat(c), 1);
	MPI_Comm_free(&c);
	case_end("a split orders by key, then by rank, and leaves out MPI_UNDEFINED");
}

/* One host of four ranks, or two of two. */
static void split_types(void)
{
	MPI_Comm c;
	MPI_Info info;
	int n = 0, first;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -me, MPI_INFO_NULL, &c);
	MPI_Comm_size(c, &n);
	EXPECT(n == 4 || n == 2);
	first = me / n * n;
	EXPECT_INT(seat(c), (n - 1 - (me - first)) * 100 + n);
	EXPECT(ring_works(c));
	MPI_Comm_free(&c);
	MPI_Comm_split_type(MPI_COMM_WORLD, me ? MPI_COMM_TYPE_SHARED : MPI_UNDEFINED, 0, MPI_INFO_NULL, &c);
	EXPECT_INT(seat(c), me == 0 ? -1 : first == 0 ? (me - 1) * 100 + n - 1 : (me - first) * 100 + n);
	if (me)
		MPI_Comm_free(&c);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &c);
	EXPECT_INT(seat(c), n == 4 ? -1 : (me - first) * 100 + n);
	if (c != MPI_COMM_NULL)
		MPI_Comm_free(&c);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, MPI_INFO_NULL, &c);
	EXPECT(c == MPI_COMM_NULL);
	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory");
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &c);
	EXPECT_INT(seat(c), (me - first) * 100 + n);
	MPI_Comm_free(&c);
	MPI_Info_free(&info);
	case_end("a split by type knows what shares memory");
}

static void created(void)
{
	MPI_Group world, g;
	MPI_Comm c;
	int low[] = { 1, 0 }, high[] = { 2, 3 }, three[] = { 3, 0, 2 };

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 3, three, &g);
	MPI_Comm_create(MPI_COMM_WORLD, g, &c);
	EXPECT_INT(seat(c), me == 1 ? -1 : (me == 3 ? 0 : me == 0 ? 1 : 2) * 100 + 3);
	if (me != 1) {
		EXPECT(ring_works(c));
		MPI_Comm_free(&c);
	}
	MPI_Group_free(&g);
	MPI_Group_incl(world, 2, me < 2 ? low : high, &g);      /* two at once */
	MPI_Comm_create(MPI_COMM_WORLD, g, &c);
	EXPECT_INT(seat(c), (me < 2 ? 1 - me : me - 2) * 100 + 2);
	EXPECT(ring_works(c));
	MPI_Comm_free(&c);
	MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &c);
	EXPECT(c == MPI_COMM_NULL);
	MPI_Group_free(&g);
	MPI_Group_free(&world);
	case_end("groups without a common member are made communicators at the same time");
}

static void created_by_groups(void)
{
	MPI_Group world, g, three;
	MPI_Comm c, d;
	int pair[] = { me ^ 1, me }, some[] = { 3, 2, 0 };

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	if (me & 1)
		MPI_Group_incl(world, 2, (int[]){ me, me - 1 }, &g);
	else
		MPI_Group_incl(world, 2, pair, &g);
	EXPECT_INT(MPI_Comm_create_group(MPI_COMM_WORLD, g, 77, &c), MPI_SUCCESS);
	EXPECT_INT(seat(c), (me & 1 ? 0 : 1) * 100 + 2);
	EXPECT(ring_works(c));
	MPI_Group_incl(world, 3, some, &three);
	d = MPI_COMM_NULL;
	if (me != 1) {
		EXPECT_INT(MPI_Comm_create_group(MPI_COMM_WORLD, three, 77, &d), MPI_SUCCESS);
		EXPECT_INT(seat(d), (me == 3 ? 0 : me == 2 ? 1 : 2) * 100 + 3);
		EXPECT(ring_works(d));
		MPI_Comm_free(&d);
	}
	MPI_Comm_free(&c);
	EXPECT_INT(MPI_Comm_create_group(MPI_COMM_WORLD, MPI_GROUP_EMPTY, 0, &c), MPI_SUCCESS);
	EXPECT(c == MPI_COMM_NULL);
	MPI_Group_free(&g);
	MPI_Group_free(&three);
	MPI_Group_free(&world);
	case_end("subsets make communicators of their own, without the others");
}

static void hidden_tags(void)
{
	MPI_Group world, pair;
	MPI_Request req;
	MPI_Comm parent, c, apart;
	int got = -1, flag = -1;

	MPI_Comm_dup(MPI_COMM_WORLD, &parent);  /* in which nobody else sends */
	MPI_Comm_group(parent, &world);
	MPI_Group_incl(world, 2, me < 2 ? (int[]){ 0, 1 } : (int[]){ 2, 3 }, &pair);
	MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, parent, &req);
	MPI_Comm_create_group(parent, pair, 3, &c);
	MPI_Intercomm_create(MPI_COMM_SELF, 0, parent, me ^ 1, 3, &apart);
	EXPECT(ring_works(c));
	MPI_Test(&req, &flag, MPI_STATUS_IGNORE);
	EXPECT_INT(flag, 0);
	EXPECT(ring_works(c));
	MPI_Send(&me, 1, MPI_INT, me ^ 1, 3, parent);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	EXPECT_INT(got, me ^ 1);
	MPI_Comm_free(&apart);
	MPI_Comm_free(&c);
	MPI_Comm_free(&parent);
	MPI_Group_free(&pair);
	MPI_Group_free(&world);
	case_end("a receive of anything from anyone does not catch the layer's own messages");
}

static void hints(void)
{
	MPI_Info info, got;
	MPI_Comm c;
	char value[64];
	int flag = 0, len = sizeof(value), keys = -1;

	MPI_Info_create(&info);
	MPI_Info_set(info, "colour", "blue");
	EXPECT_INT(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &c), MPI_SUCCESS);
	MPI_Info_free(&info);
	EXPECT_INT(MPI_Comm_get_info(c, &got), MPI_SUCCESS);
	MPI_Info_get_string(got, "colour", &len, value, &flag);
	EXPECT(flag && !strcmp(value, "blue"));
	MPI_Comm_set_info(c, MPI_INFO_NULL);
	MPI_Info_free(&got);
	EXPECT_INT(MPI_Comm_get_info(c, &got), MPI_SUCCESS);
	MPI_Info_get_nkeys(got, &keys);
	EXPECT_INT(keys, 0);
	EXPECT_INT(MPI_Comm_set_info(c, got), MPI_SUCCESS);
	MPI_Info_free(&got);
	MPI_Comm_free(&c);
	case_end("a communicator keeps hints");
}

static int copied, deleted;

static int copy_attr(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
	(void)comm;
	(void)keyval;
	if (extra)
		return MPI_ERR_NAME;
	*(void **)out = (char *)in + 1;
	*flag = 1;
	copied++;
	return MPI_SUCCESS;
}

static int delete_attr(MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)comm;
	(void)keyval;
	(void)value;
	(void)extra;
	deleted++;
	return MPI_SUCCESS;
}

static void attributes(void)
{
	MPI_Comm c, d;
	int key, bad, flag = 0;
	char base, *value = NULL;

	MPI_Comm_create_keyval(copy_attr, delete_attr, &key, NULL);
	MPI_Comm_create_keyval(copy_attr, delete_attr, &bad, &base);
	MPI_Comm_dup(MPI_COMM_WORLD, &c);
	MPI_Comm_set_attr(c, key, &base);
	EXPECT_INT(MPI_Comm_dup(c, &d), MPI_SUCCESS);
	MPI_Comm_get_attr(d, key, &value, &flag);
	EXPECT(flag && value == &base + 1);
	EXPECT_INT(copied, 1);
	MPI_Comm_free(&d);
	EXPECT_INT(deleted, 1);
	MPI_Comm_split(c, 0, 0, &d);
	MPI_Comm_get_attr(d, key, &value, &flag);
	EXPECT_INT(flag, 0);
	MPI_Comm_free(&d);
	MPI_Comm_set_attr(c, bad, &base);
	EXPECT_INT(MPI_Comm_dup(c, &d), MPI_ERR_NAME);
	EXPECT(d == MPI_COMM_NULL);
	MPI_Comm_free(&c);
	EXPECT(deleted >= 3);
	MPI_Comm_free_keyval(&key);
	MPI_Comm_free_keyval(&bad);
	case_end("a copy has the attributes that their copy functions give, or is not made");
}

/* Ranks 0 2 against 1 3, led by the last of each. */
static MPI_Comm inter(MPI_Comm *ret_half)
{
	MPI_Comm c = MPI_COMM_NULL;

	MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, ret_half);
	EXPECT_INT(MPI_Intercomm_create(*ret_half, 1, MPI_COMM_WORLD, me % 2 ? 2 : 3, 9, &c), MPI_SUCCESS);
	return c;
}

static int talks_across(MPI_Comm c)
{
	int rank, size, remote, got = -1, sum = 0, flag = 0;
	MPI_Request req;

	MPI_Comm_test_inter(c, &flag);
	MPI_Comm_rank(c, &rank);
	MPI_Comm_size(c, &size);
	MPI_Comm_remote_size(c, &remote);
	for (int i = 0; i < remote; i++) {
		MPI_Status st;
		int mine = me * 10 + i;

		MPI_Isend(&mine, 1, MPI_INT, i, 4, c, &req);
		MPI_Recv(&got, 1, MPI_INT, i, 4, c, &st);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		sum += got % 10 == rank && (got / 10) % 2 != me % 2 && st.MPI_SOURCE == i;
	}
	return flag && sum == remote;
}

static void inters(void)
{
	MPI_Comm half, c, d, e;
	MPI_Group g, mine;
	int size = -1, rank = -1;

	c = inter(&half);
	EXPECT_INT(seat(c), me / 2 * 100 + 2);
	MPI_Comm_remote_size(c, &size);
	EXPECT_INT(size, 2);
	MPI_Comm_remote_group(c, &g);
	MPI_Group_rank(g, &rank);
	EXPECT_INT(rank, MPI_UNDEFINED);
	MPI_Group_free(&g);
	EXPECT(talks_across(c));
	EXPECT_INT(compare(c, half), MPI_UNEQUAL);
	case_end("an intercommunicator talks to the other group");

	EXPECT_INT(MPI_Comm_dup(c, &d), MPI_SUCCESS);
	EXPECT_INT(compare(c, d), MPI_CONGRUENT);
	EXPECT(talks_across(d));
	MPI_Comm_free(&d);
	MPI_Comm_split(c, 0, -me, &d);
	EXPECT_INT(compare(c, d), MPI_SIMILAR);
	EXPECT_INT(seat(d), (1 - me / 2) * 100 + 2);
	EXPECT(talks_across(d));
	MPI_Comm_free(&d);
	MPI_Comm_split(c, me / 2, 0, &d);       /* 0 1 and 2 3 */
	EXPECT_INT(seat(d), 1);
	EXPECT(talks_across(d));
	MPI_Comm_free(&d);
	MPI_Comm_split(c, me == 1 ? MPI_UNDEFINED : me / 2, 0, &d);     /* 0 has no other side */
	EXPECT(me < 2 ? d == MPI_COMM_NULL : talks_across(d));
	if (me >= 2)
		MPI_Comm_free(&d);
	MPI_Comm_group(c, &g);
	MPI_Group_incl(g, 1, (int[]){ 1 }, &mine);
	MPI_Comm_create(c, mine, &e);
	EXPECT(me < 2 ? e == MPI_COMM_NULL : talks_across(e));
	if (me >= 2)
		MPI_Comm_free(&e);
	MPI_Group_free(&g);
	MPI_Group_free(&mine);
	case_end("an intercommunicator is copied, split and cut on both sides at once");

	MPI_Intercomm_merge(c, me % 2, &d);
	EXPECT_INT(seat(d), (me % 2 * 2 + me / 2) * 100 + 4);
	EXPECT(ring_works(d));
	MPI_Comm_free(&d);
	MPI_Intercomm_merge(c, me % 2 == 0, &d);
	EXPECT_INT(seat(d), (2 - me % 2 * 2 + me / 2) * 100 + 4);
	MPI_Comm_free(&d);
	MPI_Intercomm_merge(c, 1, &d);
	EXPECT_INT(seat(d) % 100, 4);
	EXPECT(ring_works(d));
	EXPECT_INT(MPI_Comm_disconnect(&d), MPI_SUCCESS);
	EXPECT(d == MPI_COMM_NULL);
	EXPECT_INT(MPI_Comm_disconnect(&c), MPI_SUCCESS);
	MPI_Comm_free(&half);
	case_end("an intercommunicator is merged in the order asked for");
}

static void copies_at_once(void)
{
	MPI_Comm c, d, e, half, across;
	MPI_Request req[3];
	MPI_Info info;
	int got = -1;

	/* Rank 1 copies only after rank 0 has: nobody may wait for it. */
	if (me == 1)
		MPI_Recv(&got, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Info_create(&info);
	MPI_Info_set(info, "colour", "red");
	EXPECT_INT(MPI_Comm_idup(MPI_COMM_WORLD, &c, &req[0]), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &d, &req[1]), MPI_SUCCESS);
	if (me == 0)
		MPI_Send(&me, 1, MPI_INT, 1, 8, MPI_COMM_WORLD);
	MPI_Info_free(&info);
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	EXPECT(req[0] == MPI_REQUEST_NULL);
	EXPECT_INT(MPI_Comm_idup(c, &e, &req[2]), MPI_SUCCESS);
	MPI_Wait(&req[2], MPI_STATUS_IGNORE);
	EXPECT_INT(compare(MPI_COMM_WORLD, d), MPI_CONGRUENT);
	EXPECT(ring_works(c));
	EXPECT(ring_works(e));
	EXPECT(ring_works(d));
	got = 10;
	if (me == 0)    /* each to its own */
		for (int i = 0; i < 3; i++)
			MPI_Send(&i, 1, MPI_INT, 3, 0, i == 0 ? c : i == 1 ? d : e);
	if (me == 3) {
		MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, e, MPI_STATUS_IGNORE);
		EXPECT_INT(got, 2);
		MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, d, MPI_STATUS_IGNORE);
		EXPECT_INT(got, 1);
		MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, c, MPI_STATUS_IGNORE);
		EXPECT_INT(got, 0);
	}
	MPI_Comm_free(&c);
	MPI_Comm_free(&d);
	MPI_Comm_free(&e);
	across = inter(&half);
	MPI_Comm_idup(across, &c, &req[0]);
	MPI_Wait(&req[0], MPI_STATUS_IGNORE);
	EXPECT(talks_across(c));
	MPI_Intercomm_merge(c, 0, &d);
	EXPECT(ring_works(d));
	MPI_Comm_free(&d);
	MPI_Comm_free(&c);
	MPI_Comm_free(&across);
	MPI_Comm_free(&half);
	case_end("an immediate copy waits for nobody");
}

static void nonsense(void)
{
	MPI_Comm c = MPI_COMM_NULL, dup, stale, world = MPI_COMM_WORLD, self = MPI_COMM_SELF;
	MPI_Group g, one;
	int n = -7;

	EXPECT_INT(MPI_Comm_rank(MPI_COMM_NULL, &n), MPI_ERR_COMM);
	EXPECT_INT(MPI_Comm_rank((MPI_Comm)MPI_GROUP_EMPTY, &n), MPI_ERR_COMM);
	EXPECT_INT(MPI_Comm_size(MPI_COMM_NULL, &n), MPI_ERR_COMM);
	EXPECT_INT(MPI_Comm_size(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
	EXPECT_INT(MPI_Comm_remote_size(MPI_COMM_WORLD, &n), MPI_ERR_COMM);
	EXPECT_INT(MPI_Comm_remote_group(MPI_COMM_WORLD, &g), MPI_ERR_COMM);
	EXPECT_INT(MPI_Comm_test_inter(MPI_COMM_NULL, &n), MPI_ERR_COMM);
	EXPECT_INT(MPI_Comm_group(MPI_COMM_NULL, &g), MPI_ERR_COMM);
	EXPECT_INT(MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_NULL, &n), MPI_ERR_COMM);
	EXPECT_INT(MPI_Comm_set_name(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
	EXPECT_INT(MPI_Comm_dup(MPI_COMM_NULL, &c), MPI_ERR_COMM);
	EXPECT_INT(MPI_Comm_dup(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
	EXPECT_INT(MPI_Comm_split(MPI_COMM_WORLD, -1, 0, &c), MPI_ERR_ARG);
	EXPECT_INT(MPI_Comm_split(MPI_COMM_NULL, 0, 0, &c), MPI_ERR_COMM);
	EXPECT_INT(MPI_Comm_split_type(MPI_COMM_WORLD, 12345, 0, MPI_INFO_NULL, &c), MPI_ERR_ARG);
	EXPECT_INT(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &c), MPI_ERR_GROUP);
	EXPECT_INT(MPI_Comm_create_group(MPI_COMM_WORLD, MPI_GROUP_NULL, 0, &c), MPI_ERR_GROUP);
	MPI_Comm_group(MPI_COMM_WORLD, &g);
	EXPECT_INT(MPI_Comm_create(MPI_COMM_SELF, g, &c), MPI_ERR_GROUP);
	EXPECT_INT(MPI_Comm_create_group(MPI_COMM_SELF, g, 0, &c), MPI_ERR_GROUP);
	MPI_Group_incl(g, 1, &me, &one);
	EXPECT_INT(MPI_Comm_create_group(MPI_COMM_SELF, one, -1, &c), MPI_ERR_TAG);
	MPI_Group_free(&one);
	MPI_Group_free(&g);
	EXPECT_INT(MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &c), MPI_ERR_COMM);
	EXPECT_INT(MPI_Intercomm_create(MPI_COMM_NULL, 0, MPI_COMM_WORLD, 0, 0, &c), MPI_ERR_COMM);
	EXPECT_INT(MPI_Intercomm_create(MPI_COMM_SELF, 1, MPI_COMM_WORLD, 0, 0, &c), MPI_ERR_RANK);
	EXPECT_INT(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_NULL, 0, 0, &c), MPI_ERR_COMM);
	EXPECT_INT(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 4, 0, &c), MPI_ERR_RANK);
	EXPECT_INT(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 0, -1, &c), MPI_ERR_TAG);
	EXPECT_INT(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, me, 0, &c), MPI_ERR_COMM);   /* with itself */
	EXPECT_INT(MPI_Comm_free(&world), MPI_ERR_COMM);
	EXPECT_INT(MPI_Comm_free(&self), MPI_ERR_COMM);
	EXPECT_INT(MPI_Comm_disconnect(&world), MPI_ERR_COMM);
	EXPECT_INT(MPI_Comm_free(&c), MPI_ERR_COMM);
	MPI_Comm_dup(MPI_COMM_SELF, &dup);
	stale = dup;
	EXPECT_INT(MPI_Comm_free(&dup), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_rank(stale, &n), MPI_ERR_COMM);
	EXPECT_INT(n, -7);
	EXPECT(c == MPI_COMM_NULL);
	case_end("what makes no sense is answered by its class, and nothing is made");
}

/* A leader's mistake is known to its group. */
static void leader_fails(void)
{
	MPI_Comm c;

	EXPECT_INT(MPI_Intercomm_create(MPI_COMM_WORLD, 2, me == 2 ? MPI_COMM_NULL : MPI_COMM_WORLD, 0, 0, &c), MPI_ERR_COMM);
	EXPECT(c == MPI_COMM_NULL);
	case_end("where a leader fails its whole group is told");
}

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static long resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long total = 0, pages = 0;

	if (!f || fscanf(f, "%ld %ld", &total, &pages) != 2)
		pages = -1;
	if (f)
		fclose(f);
	return pages * 4096;
}

static void many(void)
{
	int fds = 0;
	long bytes = 0;
	MPI_Comm c;

	for (int i = 0; i < 1100; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &c);
		if (i % 100 == 0)
			EXPECT(ring_works(c));
		MPI_Comm_free(&c);
		if (i == 100) {
			fds = descriptors();
			bytes = resident();
		}
	}
	EXPECT_INT(descriptors(), fds);
	if (resident() - bytes > 2 << 20)
		printf("# rank %d: %ld bytes more\n", me, resident() - bytes);
	EXPECT(resident() - bytes < 4 << 20);
	case_end("a thousand copies come and go, and leave nothing");
}

static void alive_together(void)
{
	enum { COUNT = 200 };
	MPI_Comm c[COUNT];
	MPI_Request reqs[COUNT];
	int got, out[COUNT];

	for (int i = 0; i < COUNT; i++)
		MPI_Comm_split(i ? c[i - 1] : MPI_COMM_WORLD, 0, i % 2 ? me : -me, &c[i]);
	EXPECT(ring_works(c[COUNT - 1]));
	for (int i = 0; i < COUNT; i++) {
		out[i] = i;
		MPI_Isend(&out[i], 1, MPI_INT, 3 - i % 4, 0, c[i], &reqs[i]);
	}
	for (int i = 0; i < COUNT; i++) {
		int rank;

		MPI_Comm_rank(c[i], &rank);
		if (rank != 3 - i % 4)
			continue;
		for (int k = 0; k < 4; k++) {
			MPI_Recv(&got, 1, MPI_INT, k, 0, c[i], MPI_STATUS_IGNORE);
			EXPECT_INT(got, i);
		}
	}
	MPI_Waitall(COUNT, reqs, MPI_STATUSES_IGNORE);
	for (int i = 0; i < COUNT; i++)
		MPI_Comm_free(&c[i]);
	case_end("two hundred are there at the same time, each made of the one before");
}

static void early_free(void)
{
	enum { BYTES = 1 << 20 };
	char *out = calloc(1, BYTES), *in = calloc(1, BYTES);
	MPI_Request req[2];
	MPI_Comm c;

	for (int i = 0; i < 20; i++) {
		out[BYTES - 1] = (char)(me + i);
		MPI_Comm_dup(MPI_COMM_WORLD, &c);
		MPI_Irecv(in, BYTES, MPI_BYTE, (me + 3) % 4, 1, c, &req[0]);
		MPI_Isend(out, BYTES, MPI_BYTE, (me + 1) % 4, 1, c, &req[1]);
		MPI_Comm_free(&c);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		EXPECT_INT(in[BYTES - 1], (me + 3) % 4 + i);
	}
	free(out);
	free(in);
	case_end("what is under way when a communicator is freed is finished");
}

static MPI_Comm parents[4];
static int thread_bad[4];

static void *maker(void *arg)
{
	int n = (int)(long)arg, rank, size;
	MPI_Comm c, d;

	for (int i = 0; i < 50; i++) {
		MPI_Comm_dup(parents[n], &c);
		MPI_Comm_split(c, me % 2, -me, &d);
		MPI_Comm_rank(d, &rank);
		MPI_Comm_size(d, &size);
		thread_bad[n] |= size != 2 || rank != 1 - me / 2;
		thread_bad[n] |= !ring_works(d);
		MPI_Comm_free(&c);
		MPI_Comm_free(&d);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];

	for (long i = 0; i < 4; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &parents[i]);
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, maker, (void *)i);
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		EXPECT_INT(thread_bad[i], 0);
		MPI_Comm_free(&parents[i]);
	}
	case_end("threads make communicators of different parents at the same time");
}

static void *grouper(void *arg)
{
	int tag = (int)(long)arg;
	MPI_Group world;
	MPI_Comm c;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	for (int i = 0; i < 50; i++) {
		thread_bad[tag] |= MPI_Comm_create_group(MPI_COMM_WORLD, world, tag, &c);
		thread_bad[tag] |= !ring_works(c);
		MPI_Comm_free(&c);
	}
	MPI_Group_free(&world);
	return NULL;
}

static void threads_by_tag(void)
{
	pthread_t t[4];

	for (long i = 0; i < 4; i++) {
		thread_bad[i] = 0;
		pthread_create(&t[i], NULL, grouper, (void *)i);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		EXPECT_INT(thread_bad[i], 0);
	}
	case_end("threads make communicators of one parent, kept apart by tag");
}

static void ints(void)
{
	MPI_Comm c;

	MPI_Comm_dup(MPI_COMM_WORLD, &c);
	EXPECT(MPI_Comm_fromint(MPI_Comm_toint(c)) == c);
	EXPECT(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
	EXPECT(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_NULL)) == MPI_COMM_NULL);
	EXPECT(MPI_Errhandler_fromint(MPI_Errhandler_toint(MPI_ERRORS_RETURN)) == MPI_ERRORS_RETURN);
	EXPECT(MPI_Type_fromint(MPI_Type_toint(MPI_INT)) == MPI_INT);
	EXPECT(MPI_Op_fromint(MPI_Op_toint(MPI_SUM)) == MPI_SUM);
	MPI_Comm_free(&c);
	case_end("a handle goes through an int and back");
}

/* Rank 3 dies: what needs it fails at all others, what does not is made, and nobody waits for ever. Asked for by tests/mpi/ends. */
static int survive(void)
{
	MPI_Group world, rest, with;
	MPI_Comm c, pair;
	int r;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_excl(world, 1, (int[]){ 3 }, &rest);
	MPI_Group_incl(world, 2, (int[]){ 3, me }, &with);
	EXPECT(ring_works(MPI_COMM_WORLD));
	if (me == 3)
		raise(SIGKILL);
	EXPECT_INT(MPI_Comm_create_group(MPI_COMM_WORLD, with, 0, &c), MPI_ERR_PROC_ABORTED);
	EXPECT(c == MPI_COMM_NULL);
	EXPECT_INT(MPI_Comm_dup(MPI_COMM_WORLD, &c), MPI_ERR_PROC_ABORTED);
	EXPECT(c == MPI_COMM_NULL);
	EXPECT_INT(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &c), MPI_ERR_PROC_ABORTED);
	EXPECT_INT(MPI_Comm_create(MPI_COMM_WORLD, rest, &c), MPI_ERR_PROC_ABORTED);
	EXPECT_INT(MPI_Comm_create_group(MPI_COMM_WORLD, rest, 0, &c), MPI_SUCCESS);
	EXPECT(ring_works(c));
	EXPECT_INT(MPI_Intercomm_create(c, 1, MPI_COMM_WORLD, 3, 0, &pair), MPI_ERR_PROC_ABORTED);
	EXPECT_INT(MPI_Comm_dup(c, &pair), MPI_SUCCESS);
	EXPECT(ring_works(pair));
	MPI_Comm_free(&pair);
	MPI_Comm_free(&c);
	MPI_Group_free(&world);
	MPI_Group_free(&rest);
	MPI_Group_free(&with);
	r = MPI_Finalize();
	printf("rank %d %s\n", me, r || case_bad ? "is lost" : "lives on");
	return r || case_bad;
}

static int ended;

static int at_end(MPI_Comm comm, int keyval, void *value, void *extra)
{
	int rank = -1;

	(void)keyval;
	(void)extra;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	/* the one set last comes first */
	if (comm != MPI_COMM_SELF || rank != me || ended != (int)(long)value) {
		printf("not ok - attributes of MPI_COMM_SELF are deleted at the end, the last first\n");
		exit(1);
	}
	ended++;
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	int provided, keys[3], bad;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	if (argc > 1)
		return survive();
	basics();
	comparisons();
	contexts_apart();
	splits();
	split_types();
	created();
	created_by_groups();
	hidden_tags();
	hints();
	attributes();
	inters();
	copies_at_once();
	nonsense();
	leader_fails();
	many();
	alive_together();
	early_free();
	threads();
	threads_by_tag();
	ints();
	for (long i = 0; i < 3; i++) {
		MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &keys[i], NULL);
		MPI_Comm_set_attr(MPI_COMM_SELF, keys[i], (void *)(2 - i));
	}
	bad = cases_end();
	return bad || ended != 3;
}
