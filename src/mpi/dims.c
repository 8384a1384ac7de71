/* dims.c - MPI_Dims_create: a number as a product of so many factors that lie as close together as they can.
 *
 * Close means: the largest and the smallest differ least; among such, the smallest is as large as it can be, then the
 * second smallest, and so on. The search chooses the factors from the smallest to the largest, each among the divisors
 * (at most 1600) from the largest possible on: no more than the root of what is left, no less than the one before. The
 * largest factor will be no less than the root of what is left then, nor than the largest prime, which tells how far
 * apart the best below this choice is: that grows as the choice gets smaller, so a choice that cannot win ends the loop.
 * As soon as there is a good answer, little is left to look at.
 */
#include <stdlib.h>
#include <string.h>

#include "inner.h"

#define PRIMES 31               /* of a positive int, at most, each as often as it divides it */
#define DIVISORS 1600

struct search {
	int divisors[DIVISORS], ndivisors;      /* ascending */
	int count;                      /* of factors */
	int prime;                      /* the largest: one of the factors is no smaller */
	int apart;                      /* the largest and the smallest of best; INT_MAX at first */
	int now[PRIMES], best[PRIMES];  /* ascending */
};

/* The largest x with x^k <= n. */
static int root(int n, int k)
{
	int low = 1, high = n;

	while (low < high) {
		int x = low + (high - low + 1) / 2;
		int64_t power = 1;

		for (int i = 0; i < k && power <= n; i++)
			power *= x;
		if (power <= n)
			low = x;
		else
			high = x - 1;
	}
	return low;
}

/* The least x with x^k >= n. */
static int root_up(int n, int k)
{
	return n > 1 ? root(n - 1, k) + 1 : 1;
}

/* The primes of @n, the largest first; how many. */
static int primes_of(int n, int primes[PRIMES])
{
	int count = 0;

	for (int p = 2; (int64_t)p * p <= n; p++)
		for (; n % p == 0; n /= p)
			primes[count++] = p;
	if (n > 1)
		primes[count++] = n;
	for (int i = 0; i < count / 2; i++) {
		int p = primes[i];

		primes[i] = primes[count - 1 - i];
		primes[count - 1 - i] = p;
	}
	return count;
}

static int ascending(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static void divisors_of(struct search *s, const int *primes, int nprimes)
{
	int block = 1;                  /* those that the equal primes before this one doubled from */

	s->divisors[0] = s->ndivisors = 1;
	for (int i = 0; i < nprimes; i++) {
		if (i == 0 || primes[i] != primes[i - 1])
			block = s->ndivisors;
		for (int j = s->ndivisors - block, end = s->ndivisors; j < end; j++)
			s->divisors[s->ndivisors++] = s->divisors[j] * primes[i];
	}
	qsort(s->divisors, (size_t)s->ndivisors, sizeof(int), ascending);
}

/* The last divisor that is at most @n: its place. */
static int divisor_to(const struct search *s, int n)
{
	int low = 0, high = s->ndivisors - 1;

	while (low < high) {
		int middle = (low + high + 1) / 2;

		if (s->divisors[middle] > n)
			high = middle - 1;
		else
			low = middle;
	}
	return low;
}

/* @n as the factors from @at on, none smaller than @least. */
static void look(struct search *s, int at, int n, int least)
{
	int left = s->count - at, largest;

	if (left == 1) {
		s->now[at] = n;
		if (n < least || n - s->now[0] >= s->apart)
			return;
		s->apart = n - s->now[0];
		memcpy(s->best, s->now, sizeof(s->best));
		return;
	}
	for (int i = divisor_to(s, root(n, left)); i >= 0 && s->divisors[i] >= least; i--) {
		int d = s->divisors[i];

		if (n % d)
			continue;
		s->now[at] = d;
		largest = root_up(n / d, left - 1);
		if ((largest > s->prime ? largest : s->prime) - s->now[0] >= s->apart)
			break;
		look(s, at + 1, n / d, d);
	}
}

/* Factors of @n in descending order into those of dims that are 0. False: no memory. */
static bool fill(int n, int ndims, int free_dims, int dims[])
{
	int factors[PRIMES], count = primes_of(n, factors), next = 0;
	struct search *s = NULL;

	if (free_dims < count) {        /* else every prime has a dimension of its own: nothing is closer */
		s = malloc(sizeof(*s));
		if (!s)
			return false;
		divisors_of(s, factors, count);
		s->count = free_dims;
		s->prime = factors[0];
		s->apart = INT32_MAX;
		look(s, 0, n, 1);
		count = free_dims;
		for (int i = 0; i < free_dims; i++)
			factors[i] = s->best[free_dims - 1 - i];
	}
	for (int i = 0; i < ndims; i++)
		if (!dims[i])
			dims[i] = next < count ? factors[next++] : 1;
	free(s);
	return true;
}

int PMPI_Dims_create(int nnodes, int ndims, int dims[])
{
	int64_t fixed = 1;
	int free_dims = 0;

	if (nnodes < 1)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "%d nodes", nnodes);
	if (ndims < 0 || (ndims && !dims))
		return wm_error(NULL, __func__, MPI_ERR_DIMS, "%d dimensions", ndims);
	for (int i = 0; i < ndims; i++) {
		if (dims[i] < 0)
			return wm_error(NULL, __func__, MPI_ERR_DIMS, "dimension %d is %d", i, dims[i]);
		if (!dims[i])
			free_dims++;
		else if (fixed <= nnodes)
			fixed *= dims[i];
	}
	if (nnodes % fixed || (!free_dims && ndims && fixed != nnodes))
		return wm_error(NULL, __func__, MPI_ERR_DIMS, "the fixed dimensions do not divide %d nodes", nnodes);
	if (free_dims && !fill((int)(nnodes / fixed), ndims, free_dims, dims))
		return wm_error(NULL, __func__, MPI_ERR_NO_MEM, "no memory for the divisors");
	return MPI_SUCCESS;
}
MPI_DONE(Dims_create);
