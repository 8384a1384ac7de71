/* comm_query.c - what can be asked of a communicator, and what the program may write on it: its name and its hints. */
#include <stdio.h>
#include <string.h>

#include "inner.h"

static int no_comm(const char *function)
{
	return wm_error(NULL, function, MPI_ERR_COMM, "not a communicator");
}

static int no_place(struct MPI_ABI_Comm *c, const char *function)
{
	return wm_error(c, function, MPI_ERR_ARG, "NULL as place of the result");
}

int PMPI_Comm_rank(MPI_Comm comm, int *rank)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);

	if (!c)
		return no_comm(__func__);
	if (!rank)
		return no_place(c, __func__);
	*rank = c->rank;
	return MPI_SUCCESS;
}
MPI_DONE(Comm_rank);

int PMPI_Comm_size(MPI_Comm comm, int *size)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);

	if (!c)
		return no_comm(__func__);
	if (!size)
		return no_place(c, __func__);
	*size = c->size;
	return MPI_SUCCESS;
}
MPI_DONE(Comm_size);

int PMPI_Comm_remote_size(MPI_Comm comm, int *size)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);

	if (!c)
		return no_comm(__func__);
	if (!c->inter)
		return wm_error(c, __func__, MPI_ERR_COMM, "not an intercommunicator");
	if (!size)
		return no_place(c, __func__);
	*size = c->peers;
	return MPI_SUCCESS;
}
MPI_DONE(Comm_remote_size);

int PMPI_Comm_test_inter(MPI_Comm comm, int *flag)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);

	if (!c)
		return no_comm(__func__);
	if (!flag)
		return no_place(c, __func__);
	*flag = c->inter;
	return MPI_SUCCESS;
}
MPI_DONE(Comm_test_inter);

int PMPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);

	if (!c)
		return no_comm(__func__);
	if (!group)
		return no_place(c, __func__);
	*group = wm_group_handle(wm_group_get(c->group));
	return MPI_SUCCESS;
}
MPI_DONE(Comm_group);

int PMPI_Comm_remote_group(MPI_Comm comm, MPI_Group *group)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);

	if (!c)
		return no_comm(__func__);
	if (!c->inter)
		return wm_error(c, __func__, MPI_ERR_COMM, "not an intercommunicator");
	if (!group)
		return no_place(c, __func__);
	*group = wm_group_handle(wm_group_get(c->remote));
	return MPI_SUCCESS;
}
MPI_DONE(Comm_remote_group);

/* The same groups are not the same communicator: congruent. */
int PMPI_Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int *result)
{
	struct MPI_ABI_Comm *a = wm_comm(comm1), *b = wm_comm(comm2);
	int same = MPI_IDENT, far = MPI_IDENT, r;

	if (!a || !b)
		return no_comm(__func__);
	if (!result)
		return no_place(a, __func__);
	if (a == b) {
		*result = MPI_IDENT;
		return MPI_SUCCESS;
	}
	if (a->inter != b->inter) {
		*result = MPI_UNEQUAL;
		return MPI_SUCCESS;
	}
	r = wm_group_compare(a->group, b->group, &same);
	if (!r && a->inter)
		r = wm_group_compare(a->remote, b->remote, &far);
	if (r)
		return wm_error(a, __func__, r, "no memory to compare groups");
	if (far == MPI_UNEQUAL || (far == MPI_SIMILAR && same == MPI_IDENT))
		same = far;
	*result = same == MPI_IDENT ? MPI_CONGRUENT : same;
	return MPI_SUCCESS;
}
MPI_DONE(Comm_compare);

int PMPI_Comm_get_parent(MPI_Comm *parent)
{
	if (!wm_alive())
		return no_comm(__func__);
	if (!parent)
		return no_place(NULL, __func__);
	*parent = MPI_COMM_NULL;
	return MPI_SUCCESS;
}
MPI_DONE(Comm_get_parent);

/* Names and hints */

int PMPI_Comm_set_name(MPI_Comm comm, const char *comm_name)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);

	if (!c)
		return no_comm(__func__);
	if (!comm_name)
		return wm_error(c, __func__, MPI_ERR_ARG, "NULL as name");
	pthread_mutex_lock(&c->lock);
	snprintf(c->name, sizeof(c->name), "%s", comm_name);
	pthread_mutex_unlock(&c->lock);
	return MPI_SUCCESS;
}
MPI_DONE(Comm_set_name);

int PMPI_Comm_get_name(MPI_Comm comm, char *comm_name, int *resultlen)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);

	if (!c && comm != MPI_COMM_NULL)
		return no_comm(__func__);
	if (!comm_name || !resultlen)
		return no_place(c, __func__);
	if (!c) {
		strcpy(comm_name, "MPI_COMM_NULL");
	} else {
		pthread_mutex_lock(&c->lock);
		strcpy(comm_name, c->name);
		pthread_mutex_unlock(&c->lock);
	}
	*resultlen = (int)strlen(comm_name);
	return MPI_SUCCESS;
}
MPI_DONE(Comm_get_name);

int PMPI_Comm_set_info(MPI_Comm comm, MPI_Info info)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);
	struct MPI_ABI_Info *given = wm_info(info), *copy, *old;

	if (!c)
		return no_comm(__func__);
	if (!given && info != MPI_INFO_NULL)
		return wm_error(c, __func__, MPI_ERR_INFO, "not an info");
	copy = wm_info_dup(given);
	if (given && !copy)
		return wm_error(c, __func__, MPI_ERR_NO_MEM, "no memory for the hints");
	pthread_mutex_lock(&c->lock);
	old = c->info;
	c->info = copy;
	pthread_mutex_unlock(&c->lock);
	wm_info_free(old);
	return MPI_SUCCESS;
}
MPI_DONE(Comm_set_info);

int PMPI_Comm_get_info(MPI_Comm comm, MPI_Info *info_used)
{
	struct MPI_ABI_Comm *c = wm_comm(comm);
	struct MPI_ABI_Info *copy;

	if (!c)
		return no_comm(__func__);
	if (!info_used)
		return no_place(c, __func__);
	pthread_mutex_lock(&c->lock);
	copy = wm_info_dup(c->info);
	pthread_mutex_unlock(&c->lock);
	if (!copy)
		return PMPI_Info_create(info_used);
	*info_used = copy;
	return MPI_SUCCESS;
}
MPI_DONE(Comm_get_info);
