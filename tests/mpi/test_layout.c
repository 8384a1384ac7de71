/* test_layout.c - layouts of random datatypes, piece by piece and moved, from any byte on, against the expanded type map.
 *
 * Looks inside: the layer's own header, and its objects linked in.
 */
#include <stdio.h>
#include <time.h>

#include "inner.h"
#include "shape.h"
#include "typetree.h"

static int case_number, failed, bad;

#define EXPECT(x)                                                                                               \
	do {                                                                                                    \
		if (!(x) && !bad++)                                                                             \
			printf("# %s:%d, seed %llu: not so: %s\n", __FILE__, __LINE__, (unsigned long long)seed, #x); \
	} while (0)

static uint64_t seed;

static void case_end(const char *sentence)
{
	printf("%s %d - %s\n", bad ? "not ok" : "ok", ++case_number, sentence);
	fflush(stdout);
	failed += !!bad;
	bad = 0;
}

/* Memory with a few elements in it. */
struct scene {
	struct tree tree;
	int count, bytes;
	MPI_Aint low, high;
	char *mem, *base, *flat;
	struct wm_layout layout;
};

static void scene_begin(struct scene *s, int depth)
{
	tree_make(&s->tree, depth);
	s->count = s->tree.n < 20 && pick(0, 4) == 0 ? pick(0, 200) : pick(0, 4);
	s->bytes = tree_span(&s->tree, s->count, &s->low, &s->high);
	s->mem = malloc((size_t)(s->high - s->low) + 1);
	s->base = (char *)((uintptr_t)s->mem - (uintptr_t)s->low);
	s->flat = malloc((size_t)s->bytes + 1);
	tree_fill(s->mem, (size_t)(s->high - s->low));
	tree_pack(&s->tree, s->count, s->base, s->flat);
	MPI_Type_commit(&s->tree.type);
	if (!wm_type(s->tree.type)->plain)
		wm_layout_init(&s->layout, s->base, s->count, wm_type(s->tree.type));
}

static void scene_end(struct scene *s)
{
	free(s->mem);
	free(s->flat);
	tree_free(&s->tree);
}

static void test_bounds(void)
{
	for (int i = 0; i < 20000; i++) {
		MPI_Aint low = 0, high = 0, lb, extent;
		MPI_Count size;
		struct tree t;
		int n = 0;

		tree_seed = seed = 1000 + (uint64_t)i * 7919;
		tree_make(&t, pick(1, 4));
		for (int k = 0; k < t.n; k++) {
			low = k == 0 || t.map[k].at < low ? t.map[k].at : low;
			high = k == 0 || t.map[k].at + t.map[k].size > high ? t.map[k].at + t.map[k].size : high;
			n += t.map[k].size;
		}
		MPI_Type_size_c(t.type, &size);
		EXPECT(size == n);
		EXPECT(wm_type(t.type)->elements == t.n);
		MPI_Type_get_extent(t.type, &lb, &extent);
		EXPECT(extent == tree_extent(&t));
		EXPECT(lb == (t.bounds ? t.lb : 0));
		MPI_Type_get_true_extent(t.type, &lb, &extent);
		EXPECT(lb == low && extent == high - low);
		tree_free(&t);
	}
	case_end("size, bounds and true bounds follow from the type map");
}

static void test_plain(void)
{
	long elements = 0;
	int plain = 0;

	for (int i = 0; i < 20000; i++) {
		MPI_Aint at = 0;
		struct tree t;
		int in_order = 1;

		tree_seed = seed = 1000 + (uint64_t)i * 7919;
		tree_make(&t, pick(1, 4));
		for (int k = 0; k < t.n; k++) {
			in_order &= t.map[k].at == at;
			at += t.map[k].size;
		}
		in_order = at == 0 || (in_order && t.lb == 0 && tree_extent(&t) == at);
		EXPECT(wm_type(t.type)->plain == in_order);
		plain += wm_type(t.type)->plain;
		elements += t.n;
		tree_free(&t);
	}
	printf("# %d of 20000 types are plain; %.1f basic elements in one\n", plain, (double)elements / 20000);
	case_end("a type is plain exactly if its bytes are dense and in order");
}

static void test_pieces(void)
{
	for (int i = 0; i < 20000; i++) {
		struct iovec iov[7];
		struct scene s;

		tree_seed = seed = 5000 + (uint64_t)i * 7919;
		scene_begin(&s, pick(1, 4));
		if (!wm_type(s.tree.type)->plain) {
			size_t at = s.bytes ? (size_t)pick(0, s.bytes - 1) : 0;
			int max = pick(1, 7), n;

			EXPECT(s.layout.weft.len == (size_t)s.bytes);
			while (at < s.layout.weft.len && !bad) {
				n = s.layout.weft.pieces(&s.layout.weft, at, iov, max);
				EXPECT(n >= 1 && n <= max);
				for (int k = 0; k < n && !bad; k++) {
					EXPECT(iov[k].iov_len > 0 && at + iov[k].iov_len <= s.layout.weft.len);
					EXPECT(!bad && memcmp(iov[k].iov_base, s.flat + at, iov[k].iov_len) == 0);
					EXPECT(k == 0 || (char *)iov[k - 1].iov_base + iov[k - 1].iov_len != iov[k].iov_base);
					at += iov[k].iov_len;
				}
			}
			EXPECT(s.layout.weft.pieces(&s.layout.weft, s.layout.weft.len, iov, 7) == 0);
		}
		scene_end(&s);
	}
	case_end("pieces from any byte on are the type map's, none empty, and no two touch");
}

static void test_move_out(void)
{
	for (int i = 0; i < 20000; i++) {
		struct scene s;
		char *bytes;

		tree_seed = seed = 9000 + (uint64_t)i * 7919;
		scene_begin(&s, pick(1, 4));
		bytes = malloc((size_t)s.bytes + 1);
		for (int k = 0; k < 5; k++) {
			int at = pick(0, s.bytes), n = pick(0, s.bytes - at);

			memset(bytes, 0, (size_t)s.bytes + 1);
			wm_type_pack(bytes, s.base, s.count, wm_type(s.tree.type), at, n);
			EXPECT(memcmp(bytes, s.flat + at, (size_t)n) == 0 && bytes[n] == 0);
			if (n && s.layout.weft.move && !wm_type(s.tree.type)->plain) {
				memset(bytes, 0, (size_t)n);
				s.layout.weft.move(&s.layout.weft, (size_t)at, bytes, (size_t)n, 0);
				EXPECT(memcmp(bytes, s.flat + at, (size_t)n) == 0 && bytes[n] == 0);
			}
		}
		free(bytes);
		scene_end(&s);
	}
	case_end("any part moved out is the type map's, overlapping entries included");
}

static void test_move_in(void)
{
	for (int i = 0; i < 20000; i++) {
		struct scene s;
		char *want;

		tree_seed = seed = 13000 + (uint64_t)i * 7919;
		scene_begin(&s, pick(1, 4));
		want = malloc((size_t)s.bytes + 1);
		if (!tree_overlaps(&s.tree, s.count)) {
			char *copy = malloc((size_t)(s.high - s.low) + 1), *check = malloc((size_t)s.bytes + 1);
			int at = pick(0, s.bytes), n = pick(0, s.bytes - at), same = 0, total = (int)(s.high - s.low), touched = 0;

			memcpy(want, s.flat, (size_t)s.bytes);
			tree_fill(want + at, (size_t)n);
			memcpy(copy, s.mem, (size_t)total);
			wm_type_unpack(want + at, s.base, s.count, wm_type(s.tree.type), at, n);
			tree_pack(&s.tree, s.count, s.base, check);
			EXPECT(memcmp(check, want, (size_t)s.bytes) == 0);
			for (int k = 0; k < total; k++)         /* what is between the elements stays */
				same += copy[k] == s.mem[k];
			for (int k = 0; k < n; k++)
				touched += want[at + k] != s.flat[at + k];
			EXPECT(same == total - touched);
			free(copy);
			free(check);
		}
		free(want);
		scene_end(&s);
	}
	case_end("any part moved in arrives at its place, and nothing else changes");
}

/* Speed of the move of a column against the loop that a program would write. */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double best_of(void (*go)(void *), void *arg)
{
	double best = 1e9;

	for (int i = 0; i < 40; i++) {
		double t = now();

		go(arg);
		t = now() - t;
		best = t < best ? t : best;
	}
	return best;
}

struct column {
	double *matrix, *flat;
	int rows, columns;
	struct wm_layout layout;
};

static void column_loop(void *arg)
{
	struct column *c = arg;

	for (int k = 0; k < 20; k++) {
		for (int i = 0; i < c->rows; i++)
			c->flat[i] = c->matrix[(size_t)i * (size_t)c->columns];
		__asm__ volatile("" ::: "memory");
	}
}

static void column_move(void *arg)
{
	struct column *c = arg;

	for (int k = 0; k < 20; k++)
		c->layout.weft.move(&c->layout.weft, 0, c->flat, c->layout.weft.len, 0);
}

static void test_speed(void)
{
	static const int shapes[][2] = { { 100, 100 }, { 1000, 8 }, { 1000, 1000 } };

	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		struct column c = { .rows = shapes[i][0], .columns = shapes[i][1] };
		double loop, moved;
		MPI_Datatype type;

		c.matrix = calloc((size_t)c.rows * (size_t)c.columns, sizeof(double));
		c.flat = calloc((size_t)c.rows, sizeof(double));
		for (int k = 0; k < c.rows * c.columns; k++)
			c.matrix[k] = k;
		MPI_Type_vector(c.rows, 1, c.columns, MPI_DOUBLE, &type);
		MPI_Type_commit(&type);
		wm_layout_init(&c.layout, c.matrix, 1, wm_type(type));
		loop = best_of(column_loop, &c);
		moved = best_of(column_move, &c);
		printf("# column of %d x %d doubles: loop %.2f, move %.2f ns an element\n", c.rows, c.columns,
		       loop * 1e9 / c.rows / 20, moved * 1e9 / c.rows / 20);
		MPI_Type_free(&type);
		free(c.matrix);
		free(c.flat);
	}
}

int main(void)
{
	test_bounds();
	test_plain();
	test_pieces();
	test_move_out();
	test_move_in();
	test_speed();
	printf("1..%d\n", case_number);
	return failed != 0;
}
