/* test_types.c - datatypes: what they say of themselves, packed, sent between unlike ones, and what is refused. */
#include <limits.h>

#include "mpitest.h"
#include "typetree.h"

static int rank;

/* What they say */

static void test_predefined(void)
{
	static const struct {
		MPI_Datatype type;
		const char *name;
		int size, extent;
	} want[] = {
		{ MPI_INT, "MPI_INT", sizeof(int), sizeof(int) },
		{ MPI_LONG_DOUBLE, "MPI_LONG_DOUBLE", sizeof(long double), sizeof(long double) },
		{ MPI_DOUBLE_INT, "MPI_DOUBLE_INT", 12, 16 },
		{ MPI_SHORT_INT, "MPI_SHORT_INT", 6, 8 },
		{ MPI_LONG_DOUBLE_INT, "MPI_LONG_DOUBLE_INT", 20, 32 },
		{ MPI_2INT, "MPI_2INT", 8, 8 },
		{ MPI_PACKED, "MPI_PACKED", 1, 1 },
		{ MPI_DOUBLE_COMPLEX, "MPI_DOUBLE_COMPLEX", 16, 16 },
		{ MPI_COMPLEX32, "MPI_COMPLEX32", 32, 32 },
		{ MPI_COUNT, "MPI_COUNT", 8, 8 },
		{ MPI_LONG_LONG, "MPI_LONG_LONG_INT", 8, 8 },
	};

	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		char name[MPI_MAX_OBJECT_NAME];
		MPI_Aint lb, extent;
		int size, len, a, b, c, combiner;

		MPI_Type_size(want[i].type, &size);
		MPI_Type_get_extent(want[i].type, &lb, &extent);
		MPI_Type_get_name(want[i].type, name, &len);
		MPI_Type_get_envelope(want[i].type, &a, &b, &c, &combiner);
		EXPECT_INT(size, want[i].size);
		EXPECT_INT(lb, 0);
		EXPECT_INT(extent, want[i].extent);
		EXPECT(strcmp(name, want[i].name) == 0 && len == (int)strlen(name));
		EXPECT(a == 0 && b == 0 && c == 0 && combiner == MPI_COMBINER_NAMED);
	}
	case_end("predefined types have the sizes, extents and names of their kind");
}

static void test_names(void)
{
	char name[MPI_MAX_OBJECT_NAME];
	MPI_Datatype type;
	int len;

	MPI_Type_contiguous(3, MPI_INT, &type);
	MPI_Type_get_name(type, name, &len);
	EXPECT(len == 0 && name[0] == 0);
	MPI_Type_set_name(type, "three of them");
	MPI_Type_get_name(type, name, &len);
	EXPECT(len == 13 && strcmp(name, "three of them") == 0);
	MPI_Type_free(&type);
	EXPECT(type == MPI_DATATYPE_NULL);
	case_end("a type has the name that it was given, and none before");
}

static void test_huge(void)
{
	MPI_Count big = (MPI_Count)INT_MAX + 1000, n, lb;
	MPI_Datatype type, twice;
	MPI_Status status;
	int size, count;

	memset(&status, 0, sizeof(status));
	MPI_Type_contiguous_c(big, MPI_INT, &type);
	MPI_Type_vector_c(1 << 24, 1, 2, type, &twice);
	MPI_Type_size(type, &size);
	EXPECT_INT(size, MPI_UNDEFINED);
	MPI_Type_size_c(type, &n);
	EXPECT_INT(n, 4 * big);
	MPI_Type_get_extent_c(twice, &lb, &n);
	EXPECT_INT(lb, 0);
	EXPECT_INT(n, 4 * big * ((2 << 24) - 1));
	MPI_Status_set_elements_c(&status, type, big);
	MPI_Get_count(&status, type, &count);
	EXPECT_INT(count, 1);
	MPI_Get_count(&status, MPI_INT, &count);
	EXPECT_INT(count, MPI_UNDEFINED);
	MPI_Get_count_c(&status, MPI_INT, &n);
	EXPECT_INT(n, big);
	MPI_Get_elements(&status, type, &count);
	EXPECT_INT(count, MPI_UNDEFINED);
	MPI_Get_elements_x(&status, type, &n);
	EXPECT_INT(n, big);
	MPI_Pack_size(INT_MAX, MPI_DOUBLE, MPI_COMM_WORLD, &size);
	EXPECT_INT(size, MPI_UNDEFINED);
	EXPECT_INT(MPI_Type_contiguous_c(INT64_MAX / 2, twice, &twice), MPI_ERR_COUNT);
	MPI_Type_free(&twice);
	MPI_Type_free(&type);
	case_end("counts beyond an int are counted, and MPI_UNDEFINED where the result is an int");
}

static void test_refused(void)
{
	int len[2] = { 1, -1 }, disp[2] = { 0, 0 }, zero = 0, n;
	MPI_Datatype type = MPI_DATATYPE_NULL, made;

	EXPECT_INT(MPI_Type_contiguous(-1, MPI_INT, &type), MPI_ERR_COUNT);
	EXPECT_INT(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type), MPI_ERR_TYPE);
	EXPECT_INT(MPI_Type_vector(1, -1, 1, MPI_INT, &type), MPI_ERR_ARG);
	EXPECT_INT(MPI_Type_indexed(2, len, disp, MPI_INT, &type), MPI_ERR_ARG);
	EXPECT_INT(MPI_Type_indexed(2, NULL, disp, MPI_INT, &type), MPI_ERR_ARG);
	EXPECT_INT(MPI_Type_create_subarray(1, len, len, &len[1], MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG);
	EXPECT_INT(MPI_Type_create_subarray(0, len, len, &zero, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_DIMS);
	EXPECT_INT(MPI_Type_commit(&type), MPI_ERR_TYPE);
	EXPECT_INT(MPI_Type_free(&type), MPI_ERR_TYPE);
	type = MPI_INT;
	EXPECT_INT(MPI_Type_free(&type), MPI_ERR_TYPE);
	EXPECT_INT(MPI_Type_size(MPI_DATATYPE_NULL, &n), MPI_ERR_TYPE);
	EXPECT_INT(MPI_Type_size(MPI_INT, NULL), MPI_ERR_ARG);
	MPI_Type_contiguous(2, MPI_INT, &made);
	EXPECT_INT(MPI_Send(len, 1, made, MPI_PROC_NULL, 0, MPI_COMM_SELF), MPI_ERR_TYPE);
	n = 0;
	EXPECT_INT(MPI_Pack(len, 1, made, disp, 8, &n, MPI_COMM_SELF), MPI_ERR_TYPE);
	MPI_Type_commit(&made);
	EXPECT_INT(MPI_Pack(len, 1, made, disp, 7, &n, MPI_COMM_SELF), MPI_ERR_TRUNCATE);
	EXPECT_INT(n, 0);
	EXPECT_INT(MPI_Type_get_contents(made, 0, 0, 1, &n, NULL, &type), MPI_ERR_ARG);
	type = made;
	MPI_Type_free(&made);
	EXPECT_INT(MPI_Type_size(type, &n), MPI_ERR_TYPE);
	case_end("nonsense is answered with its class of error, a type that was freed too");
}

/* What they were made with */

static MPI_Datatype rebuilt(MPI_Datatype type);

/* The same call again with the contents of @type, whose parts are rebuilt first. */
static MPI_Datatype rebuild(int combiner, int *i, MPI_Aint *a, MPI_Count *c, int wide, MPI_Datatype *t, int types)
{
	MPI_Datatype made = MPI_DATATYPE_NULL, old = types ? t[0] : MPI_DATATYPE_NULL;

	switch (combiner) {
	case MPI_COMBINER_DUP:
		MPI_Type_dup(old, &made);
		break;
	case MPI_COMBINER_CONTIGUOUS:
		wide ? MPI_Type_contiguous_c(c[0], old, &made) : MPI_Type_contiguous(i[0], old, &made);
		break;
	case MPI_COMBINER_VECTOR:
		wide ? MPI_Type_vector_c(c[0], c[1], c[2], old, &made) : MPI_Type_vector(i[0], i[1], i[2], old, &made);
		break;
	case MPI_COMBINER_HVECTOR:
		wide ? MPI_Type_create_hvector_c(c[0], c[1], c[2], old, &made) : MPI_Type_create_hvector(i[0], i[1], a[0], old, &made);
		break;
	case MPI_COMBINER_INDEXED:
		wide ? MPI_Type_indexed_c(c[0], c + 1, c + 1 + c[0], old, &made) : MPI_Type_indexed(i[0], i + 1, i + 1 + i[0], old, &made);
		break;
	case MPI_COMBINER_HINDEXED:
		wide ? MPI_Type_create_hindexed_c(c[0], c + 1, c + 1 + c[0], old, &made) :
		       MPI_Type_create_hindexed(i[0], i + 1, a, old, &made);
		break;
	case MPI_COMBINER_INDEXED_BLOCK:
		wide ? MPI_Type_create_indexed_block_c(c[0], c[1], c + 2, old, &made) :
		       MPI_Type_create_indexed_block(i[0], i[1], i + 2, old, &made);
		break;
	case MPI_COMBINER_HINDEXED_BLOCK:
		wide ? MPI_Type_create_hindexed_block_c(c[0], c[1], c + 2, old, &made) :
		       MPI_Type_create_hindexed_block(i[0], i[1], a, old, &made);
		break;
	case MPI_COMBINER_STRUCT:
		wide ? MPI_Type_create_struct_c(c[0], c + 1, c + 1 + c[0], t, &made) : MPI_Type_create_struct(i[0], i + 1, a, t, &made);
		break;
	case MPI_COMBINER_SUBARRAY:
		wide ? MPI_Type_create_subarray_c(i[0], c, c + i[0], c + 2 * i[0], i[1], old, &made) :
		       MPI_Type_create_subarray(i[0], i + 1, i + 1 + i[0], i + 1 + 2 * i[0], i[1 + 3 * i[0]], old, &made);
		break;
	case MPI_COMBINER_DARRAY:
		wide ? MPI_Type_create_darray_c(i[0], i[1], i[2], c, i + 3, i + 3 + i[2], i + 3 + 2 * i[2], i[3 + 3 * i[2]], old, &made) :
		       MPI_Type_create_darray(i[0], i[1], i[2], i + 3, i + 3 + i[2], i + 3 + 2 * i[2], i + 3 + 3 * i[2],
					      i[3 + 4 * i[2]], old, &made);
		break;
	case MPI_COMBINER_RESIZED:
		wide ? MPI_Type_create_resized_c(old, c[0], c[1], &made) : MPI_Type_create_resized(old, a[0], a[1], &made);
		break;
	default:
		EXPECT(!"a combiner that is known");
	}
	return made;
}

static int is_named(MPI_Datatype type)
{
	MPI_Count a, b, c, d;
	int combiner;

	MPI_Type_get_envelope_c(type, &a, &b, &c, &d, &combiner);
	return combiner == MPI_COMBINER_NAMED;
}

static MPI_Datatype rebuilt(MPI_Datatype type)
{
	MPI_Count ints, addrs, counts, types, c[64];
	MPI_Datatype t[16], made;
	int combiner, i[64];
	MPI_Aint a[64];

	MPI_Type_get_envelope_c(type, &ints, &addrs, &counts, &types, &combiner);
	if (combiner == MPI_COMBINER_NAMED)
		return type;
	if (counts) {
		MPI_Type_get_contents_c(type, ints, addrs, counts, types, i, a, c, t);
	} else {
		int n, m, k, same;

		MPI_Type_get_envelope(type, &n, &m, &k, &same);
		EXPECT(n == ints && m == addrs && k == types && same == combiner);
		MPI_Type_get_contents(type, n, m, k, i, a, t);
	}
	for (int k = 0; k < types; k++) {
		MPI_Datatype part = rebuilt(t[k]);

		if (!is_named(t[k]))
			MPI_Type_free(&t[k]);
		t[k] = part;
	}
	made = rebuild(combiner, i, a, c, counts > 0, t, (int)types);
	for (int k = 0; k < types; k++)
		if (!is_named(t[k]))
			MPI_Type_free(&t[k]);
	return made;
}

/* Two elements of @type in memory, and what the type map says that their bytes are. */
struct scene {
	struct tree tree;
	int bytes;
	MPI_Aint low, high;
	char *mem, *base, *flat;
};

#define COUNT 2

static void scene_begin(struct scene *s, uint64_t seed)
{
	tree_seed = seed;
	tree_make(&s->tree, pick(1, 4));
	s->bytes = tree_span(&s->tree, COUNT, &s->low, &s->high);
	s->mem = malloc((size_t)(s->high - s->low) + 1);
	s->base = (char *)((uintptr_t)s->mem - (uintptr_t)s->low);
	s->flat = malloc((size_t)s->bytes + 1);
	tree_fill(s->mem, (size_t)(s->high - s->low));
	tree_pack(&s->tree, COUNT, s->base, s->flat);
	MPI_Type_commit(&s->tree.type);
}

static void scene_end(struct scene *s)
{
	free(s->mem);
	free(s->flat);
	tree_free(&s->tree);
}

static void test_rebuilt(void)
{
	for (int k = 0; k < 3000 && !case_bad; k++) {
		MPI_Count size, lb, extent, other_lb, other_extent;
		MPI_Datatype again;
		struct scene s;
		int at = 0;
		char *bytes;

		scene_begin(&s, 20000 + (uint64_t)k);
		bytes = calloc((size_t)s.bytes + 1, 1);
		again = rebuilt(s.tree.type);
		MPI_Type_commit(&again);
		MPI_Type_size_c(again, &size);
		EXPECT_INT(size * COUNT, s.bytes);
		MPI_Type_get_extent_c(s.tree.type, &lb, &extent);
		MPI_Type_get_extent_c(again, &other_lb, &other_extent);
		EXPECT(lb == other_lb && extent == other_extent);
		MPI_Pack(s.base, COUNT, again, bytes, s.bytes, &at, MPI_COMM_WORLD);
		EXPECT(at == s.bytes && memcmp(bytes, s.flat, (size_t)at) == 0);
		if (case_bad)
			printf("# seed %d\n", 20000 + k);
		if (!is_named(again))
			MPI_Type_free(&again);
		free(bytes);
		scene_end(&s);
	}
	case_end("a type made again from its envelope and contents is the same type");
}

/* Counting */

static void test_elements(void)
{
	for (int k = 0; k < 3000 && !case_bad; k++) {
		MPI_Status status;
		struct scene s;
		int want = 0, bytes, left, n;

		memset(&status, 0, sizeof(status));
		scene_begin(&s, 30000 + (uint64_t)k);
		bytes = left = pick(0, s.bytes);
		for (int i = 0; s.tree.n && left >= s.tree.map[i % s.tree.n].size; i++, want++)
			left -= s.tree.map[i % s.tree.n].size;
		MPI_Status_set_elements(&status, MPI_BYTE, bytes);
		MPI_Get_elements(&status, s.tree.type, &n);
		EXPECT_INT(n, left ? MPI_UNDEFINED : want);
		MPI_Get_count(&status, s.tree.type, &n);
		EXPECT_INT(n, !s.bytes ? 0 : bytes % (s.bytes / COUNT) ? MPI_UNDEFINED : bytes / (s.bytes / COUNT));
		if (s.tree.n) {
			want = pick(0, 3 * s.tree.n);
			MPI_Status_set_elements(&status, s.tree.type, want);
			MPI_Get_elements(&status, s.tree.type, &n);
			EXPECT_INT(n, want);
			MPI_Get_count(&status, MPI_BYTE, &n);
			for (int i = 0; i < want; i++)
				n -= s.tree.map[i % s.tree.n].size;
			EXPECT_INT(n, 0);
		}
		if (case_bad)
			printf("# seed %d\n", 30000 + k);
		scene_end(&s);
	}
	case_end("elements of a partial message are counted as the type map has them");
}

/* Packing */

static void test_pack(void)
{
	for (int k = 0; k < 3000 && !case_bad; k++) {
		int before, at, size;
		struct scene s;
		char *bytes;

		scene_begin(&s, 40000 + (uint64_t)k);
		before = at = pick(0, 5);
		bytes = calloc((size_t)(s.bytes + before) + 1, 1);
		MPI_Pack_size(COUNT, s.tree.type, MPI_COMM_WORLD, &size);
		EXPECT(size >= s.bytes);
		MPI_Pack(s.base, COUNT, s.tree.type, bytes, before + s.bytes, &at, MPI_COMM_WORLD);
		EXPECT_INT(at, before + s.bytes);
		EXPECT(memcmp(bytes + before, s.flat, (size_t)s.bytes) == 0);
		if (!tree_overlaps(&s.tree, COUNT)) {
			tree_fill(bytes, (size_t)(s.bytes + before));
			at = before;
			MPI_Unpack(bytes, before + s.bytes, &at, s.base, COUNT, s.tree.type, MPI_COMM_WORLD);
			EXPECT_INT(at, before + s.bytes);
			tree_pack(&s.tree, COUNT, s.base, s.flat);
			EXPECT(memcmp(bytes + before, s.flat, (size_t)s.bytes) == 0);
		}
		if (case_bad)
			printf("# seed %d\n", 40000 + k);
		free(bytes);
		scene_end(&s);
	}
	case_end("what is packed is the type map's, and unpacked it is where it was");
}

static void test_external(void)
{
	struct {
		int i;
		double d;
		long l;
		long double e;
		struct {
			short s;
			int i;
		} pair;
	} in = { 0x01020304, -1.5, -2, 3.25L, { 7, -8 } }, out;
	const int lens[] = { 1, 1, 1, 1, 1 };
	const MPI_Aint disps[] = { (char *)&in.i - (char *)&in, (char *)&in.d - (char *)&in, (char *)&in.l - (char *)&in,
				   (char *)&in.e - (char *)&in, (char *)&in.pair - (char *)&in };
	const MPI_Datatype types[] = { MPI_INT, MPI_DOUBLE, MPI_LONG, MPI_LONG_DOUBLE, MPI_SHORT_INT };
	static const unsigned char want[] = { 1, 2, 3, 4, 0xbf, 0xf8, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe,
					      0x40, 0, 0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xf8 };
	unsigned char bytes[64];
	MPI_Aint size, at = 0;
	MPI_Datatype type;

	memset(&out, 0, sizeof(out));
	MPI_Type_create_struct(5, lens, disps, types, &type);
	MPI_Type_commit(&type);
	MPI_Pack_external_size("external32", 1, type, &size);
	EXPECT_INT(size, sizeof(want));
	EXPECT_INT(MPI_Pack_external("external32", &in, 1, type, bytes, size, &at), MPI_SUCCESS);
	EXPECT_INT(at, size);
	EXPECT(memcmp(bytes, want, sizeof(want)) == 0);
	at = 0;
	EXPECT_INT(MPI_Unpack_external("external32", bytes, size, &at, &out, 1, type), MPI_SUCCESS);
	EXPECT(out.i == in.i && out.d == in.d && out.l == in.l && out.e == in.e && out.pair.s == 7 && out.pair.i == -8);
	at = 0;
	EXPECT_INT(MPI_Pack_external("native", &in, 1, type, bytes, size, &at), MPI_ERR_UNSUPPORTED_DATAREP);
	MPI_Type_free(&type);
	case_end("external32 has MPI's sizes and order of bytes");
}

/* Messages */

/* A type with the same basic elements in the same order at other places, made of them one by one; gaps of @gap bytes. */
static MPI_Datatype scattered(const struct tree *t, int gap, MPI_Aint *ret_size)
{
	int *lens = calloc((size_t)t->n + 1, sizeof(*lens));
	MPI_Aint *disps = calloc((size_t)t->n + 1, sizeof(*disps)), at = 0;
	MPI_Datatype *types = calloc((size_t)t->n + 1, sizeof(MPI_Datatype)), type, sized;

	for (int i = 0; i < t->n; i++) {
		lens[i] = 1;
		disps[i] = at;
		types[i] = t->map[i].type;
		at += t->map[i].size + gap;
	}
	MPI_Type_create_struct(t->n, lens, disps, types, &type);
	MPI_Type_create_resized(type, 0, at, &sized);
	MPI_Type_commit(&sized);
	MPI_Type_free(&type);
	free(lens);
	free(disps);
	free(types);
	*ret_size = at;
	return sized;
}

/* The elements of a scattered type, end to end. */
static void collect(const struct tree *t, int gap, const char *mem, char *bytes)
{
	for (int c = 0; c < COUNT; c++)
		for (int i = 0; i < t->n; i++) {
			memcpy(bytes, mem, (size_t)t->map[i].size);
			bytes += t->map[i].size;
			mem += t->map[i].size + gap;
		}
}

/* Rank 0 sends the tree, rank 1 receives it scattered and sends it back so; where it can be, it is received into the tree. */
static void exchange(struct scene *s, int seed)
{
	int gap = pick(0, 9), n, twice = tree_overlaps(&s->tree, COUNT);
	char *bytes = calloc((size_t)s->bytes + 1, 1), *mem;
	MPI_Aint size;
	MPI_Datatype other = scattered(&s->tree, gap, &size);
	MPI_Status status;

	mem = calloc((size_t)(COUNT * size) + 1, 1);
	if (rank == 0) {
		MPI_Send(s->base, COUNT, s->tree.type, 1, seed, MPI_COMM_WORLD);
		tree_fill(s->mem, (size_t)(s->high - s->low));
		if (!twice) {
			MPI_Recv(s->base, COUNT, s->tree.type, 1, seed, MPI_COMM_WORLD, &status);
			tree_pack(&s->tree, COUNT, s->base, bytes);
			EXPECT(memcmp(bytes, s->flat, (size_t)s->bytes) == 0);
		}
	} else if (rank == 1) {
		MPI_Recv(mem, COUNT, other, 0, seed, MPI_COMM_WORLD, &status);
		collect(&s->tree, gap, mem, bytes);
		EXPECT(memcmp(bytes, s->flat, (size_t)s->bytes) == 0);
		MPI_Get_count(&status, other, &n);
		EXPECT_INT(n, s->bytes ? COUNT : 0);
		MPI_Get_elements(&status, s->tree.type, &n);
		EXPECT_INT(n, COUNT * s->tree.n);
		if (!twice)
			MPI_Send(mem, COUNT, other, 0, seed, MPI_COMM_WORLD);
	}
	MPI_Type_free(&other);
	free(mem);
	free(bytes);
}

static void test_messages(void)
{
	for (int k = 0; k < 1000; k++) {
		int bad = case_bad;
		struct scene s;

		scene_begin(&s, 50000 + (uint64_t)k);
		exchange(&s, k);
		if (case_bad && !bad)
			printf("# rank %d, seed %d\n", rank, 50000 + k);
		scene_end(&s);
	}
	case_end("a message arrives whole between unlike types of the same signature");
}

/* Columns of a matrix of all sizes of messages: @n doubles each, @columns of them; received as rows. */
static void columns_to_rows(int n, int columns)
{
	double *matrix = calloc((size_t)n * 8, sizeof(*matrix)), *rows = calloc((size_t)n * 8, sizeof(*rows));
	MPI_Datatype column, many;
	int wrong = 0;

	MPI_Type_vector(n, 1, 8, MPI_DOUBLE, &column);
	MPI_Type_create_resized(column, 0, sizeof(double), &many);
	MPI_Type_commit(&many);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < 8; k++)
			matrix[i * 8 + k] = i + 0.125 * k;
	if (rank == 0) {
		MPI_Send(matrix, columns, many, 1, 1, MPI_COMM_WORLD);
		MPI_Send(matrix, columns * n, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD);
	} else if (rank == 1) {
		MPI_Recv(rows, columns * n, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int k = 0; k < columns; k++)
			for (int i = 0; i < n; i++)
				wrong += rows[k * n + i] != i + 0.125 * k;
		EXPECT_INT(wrong, 0);
		MPI_Recv(rows, columns, many, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int k = 0; k < columns; k++)
			for (int i = 0; i < n; i++)
				wrong += rows[i * 8 + k] != matrix[k * n + i];
		EXPECT_INT(wrong, 0);
	}
	MPI_Type_free(&column);
	MPI_Type_free(&many);
	free(matrix);
	free(rows);
}

static void test_columns(void)
{
	for (int n = 1; n <= 300000; n = n * 3 + 1)
		for (int columns = 1; columns <= 8; columns += 7)
			columns_to_rows(n, columns);
	case_end("columns of a matrix become rows and rows columns, in messages of any size");
}

/* Blocks long enough to be listed one by one. */
static void test_blocks(void)
{
	enum { BLOCK = 1000, STRIDE = 1500, BLOCKS = 2000 };
	char *mem = calloc(BLOCKS, STRIDE), *flat = calloc(BLOCKS, BLOCK);
	MPI_Datatype type;
	int wrong = 0;

	MPI_Type_vector(BLOCKS, BLOCK, STRIDE, MPI_CHAR, &type);
	MPI_Type_commit(&type);
	if (rank == 0) {
		for (int i = 0; i < BLOCKS * STRIDE; i++)
			mem[i] = (char)(i % 251);
		MPI_Send(mem, 1, type, 1, 0, MPI_COMM_WORLD);
		MPI_Send(mem, 1, type, 1, 0, MPI_COMM_WORLD);
	} else if (rank == 1) {
		MPI_Recv(flat, BLOCKS * BLOCK, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Recv(mem, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < BLOCKS; i++)
			for (int k = 0; k < BLOCK; k++) {
				wrong += flat[i * BLOCK + k] != (char)((i * STRIDE + k) % 251);
				wrong += mem[i * STRIDE + k] != flat[i * BLOCK + k];
			}
		for (int i = 0; i < BLOCKS; i++)
			wrong += mem[i * STRIDE + BLOCK] != 0;
		EXPECT_INT(wrong, 0);
	}
	MPI_Type_free(&type);
	free(mem);
	free(flat);
	case_end("long blocks with gaps arrive in plain memory and in blocks like them");
}

static void test_bottom(void)
{
	static int a[3];
	static double b;
	char c[5] = "";
	const int lens[] = { 3, 1, 5 };
	const MPI_Datatype types[] = { MPI_INT, MPI_DOUBLE, MPI_CHAR };
	MPI_Aint disps[3];
	MPI_Datatype type;

	MPI_Get_address(a, &disps[0]);
	MPI_Get_address(&b, &disps[1]);
	MPI_Get_address(c, &disps[2]);
	MPI_Type_create_struct(3, lens, disps, types, &type);
	MPI_Type_commit(&type);
	if (rank == 0) {
		a[0] = 1, a[1] = 2, a[2] = 3, b = 4.5;
		memcpy(c, "five", 5);
		MPI_Send(MPI_BOTTOM, 1, type, 1, 0, MPI_COMM_WORLD);
	} else if (rank == 1) {
		MPI_Recv(MPI_BOTTOM, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		EXPECT(a[0] == 1 && a[1] == 2 && a[2] == 3 && b == 4.5 && strcmp(c, "five") == 0);
	}
	MPI_Type_free(&type);
	case_end("MPI_BOTTOM with absolute addresses names the memory of a message");
}

/* A type may be freed while it is in use. */
static void test_freed(void)
{
	int in[4] = { 1, 2, 3, 4 }, out[4] = { 0 };
	MPI_Datatype pair, type;
	MPI_Request request;

	MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
	MPI_Type_contiguous(1, pair, &type);
	MPI_Type_commit(&type);
	MPI_Type_free(&pair);
	if (rank == 1)
		MPI_Irecv(out, 1, type, 0, 0, MPI_COMM_WORLD, &request);
	else if (rank == 0)
		MPI_Isend(in, 1, type, 1, 0, MPI_COMM_WORLD, &request);
	MPI_Type_free(&type);
	MPI_Type_vector(4, 1, 1, MPI_INT, &type);       /* in the same memory, if that was let go */
	if (rank < 2)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (rank == 1)
		EXPECT(out[0] == 1 && out[1] == 0 && out[2] == 3 && out[3] == 0);
	MPI_Type_free(&type);
	case_end("a type freed while messages and other types use it goes on working there");
}

static void test_found(void)
{
	MPI_Datatype type, again;
	int size, p[2], a, b, c, combiner;

	MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type);
	MPI_Type_size(type, &size);
	EXPECT_INT(size, 8);
	EXPECT_INT(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 5, &type), MPI_ERR_ARG);
	MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &type);
	EXPECT(type == MPI_DOUBLE_INT);
	MPI_Type_get_value_index(MPI_INT, MPI_DOUBLE, &type);
	EXPECT(type == MPI_DATATYPE_NULL);
	MPI_Type_create_f90_real(15, MPI_UNDEFINED, &type);
	MPI_Type_create_f90_real(15, MPI_UNDEFINED, &again);
	EXPECT(type == again);
	MPI_Type_size(type, &size);
	EXPECT_INT(size, 8);
	MPI_Type_get_envelope(type, &a, &b, &c, &combiner);
	EXPECT(a == 2 && b == 0 && c == 0 && combiner == MPI_COMBINER_F90_REAL);
	MPI_Type_get_contents(type, 2, 0, 0, p, NULL, NULL);
	EXPECT(p[0] == 15 && p[1] == MPI_UNDEFINED);
	EXPECT_INT(MPI_Type_free(&type), MPI_ERR_TYPE);
	EXPECT_INT(MPI_Type_create_f90_integer(99, &type), MPI_ERR_ARG);
	case_end("types are found by class and size, by the halves of a pair, by Fortran's precision");
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	test_predefined();
	test_names();
	test_huge();
	test_refused();
	test_rebuilt();
	test_elements();
	test_pack();
	test_external();
	test_found();
	test_messages();
	test_columns();
	test_blocks();
	test_bottom();
	test_freed();
	return cases_end();
}
