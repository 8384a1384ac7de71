/* mini_mpi_demo.c - what a small MPI program looks like when its ranks are threads: mini_mpi_demo [ranks]
 *
 * A token goes round, everybody helps to find pi, and odd and even ranks count themselves apart.
 */
#include <stdio.h>
#include <stdlib.h>

#include "mini_mpi.h"

/* Once round: every rank adds its number to the token and passes it on. */
static int ring(struct mm_comm *world)
{
	int next = (world->rank + 1) % world->size, token = 0, r;
	struct mm_status st;

	if (world->rank == 0) {
		r = mm_send(&token, 1, MM_INT, next, 1, world);
		if (r == 0)
			r = mm_recv(&token, 1, MM_INT, world->size - 1, 1, world, &st);
		if (r == 0)
			printf("ring: %d came back from rank %d\n", token, st.source);
		return r;
	}
	r = mm_recv(&token, 1, MM_INT, MM_ANY_SOURCE, MM_ANY_TAG, world, &st);
	token += world->rank;
	return r < 0 ? r : mm_send(&token, 1, MM_INT, next, st.tag, world);
}

/* The area under 4 / (1 + x^2) from 0 to 1, in strips dealt out like cards. */
static int pi(struct mm_comm *world)
{
	enum { STRIPS = 1000000 };
	double mine = 0, all;
	int r;

	for (int i = world->rank; i < STRIPS; i += world->size) {
		double x = (i + 0.5) / STRIPS;

		mine += 4 / (1 + x * x) / STRIPS;
	}
	r = mm_allreduce(&mine, &all, 1, MM_DOUBLE, MM_SUM, world);
	if (r == 0 && world->rank == 0)
		printf("pi: %.12f\n", all);
	return r;
}

static int apart(struct mm_comm *world)
{
	struct mm_comm *half;
	int sum, end, r = mm_comm_split(world, world->rank % 2, world->rank, &half);

	if (r < 0)
		return r;
	r = mm_allreduce(&world->rank, &sum, 1, MM_INT, MM_SUM, half);
	if (r == 0 && half->rank == 0)
		printf("%s: %d ranks, sum %d\n", world->rank ? "odd" : "even", half->size, sum);
	end = mm_comm_free(half);
	return r ? r : end;
}

static int rank_main(struct mm_comm *world, void *arg)
{
	int r;

	(void)arg;
	r = world->size > 1 ? ring(world) : 0;
	if (r == 0)
		r = pi(world);
	if (r == 0)
		r = mm_barrier(world);
	if (r == 0)
		r = apart(world);
	if (r < 0)
		fprintf(stderr, "rank %d: %s\n", world->rank, weft_last_error());
	return r;
}

int main(int argc, char **argv)
{
	int r = mm_run(argc > 1 ? atoi(argv[1]) : 4, rank_main, NULL);

	if (r < 0)
		fprintf(stderr, "%s\n", weft_strerror(r));
	return r != 0;
}
