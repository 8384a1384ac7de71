/* test_match_proto.c - protocols as objects: made at run time, compared, freed; the one without heads; a wrong one. */
#include "unit/heads.h"

/* Less than or equal: a likely mistake. What is found then is up to chance, but nothing breaks. */
static int wrong_less(const void *a, const void *b)
{
	return !plain_less(b, a);
}

TEST(a_wrong_less_than_loses_matches_but_breaks_nothing)
{
	struct weft_match_fns fns = { .size = sizeof(fns), .head_len = sizeof(struct plain_head),
				      .equal = plain_equal, .shape = plain_shape, .less = wrong_less };
	struct weft_match_entry entries[200], spare = { 0 }, *e;
	const struct weft_proto *proto;
	uint64_t seed = test_seed, held = 0;
	struct plain_head want;
	void *m;

	memset(entries, 0, sizeof(entries));
	MUST_OK(weft_proto_new("wrong", &fns, &proto));
	m = malloc(proto->match_size);
	MUST(m);
	proto->init(m, proto->ctx);
	for (uint64_t i = 0; i < test_scaled(20000); i++) {
		e = &entries[test_random(&seed) % 200];
		plain_got(&seed, 20, &want);
		if (proto->look(m, &want) && proto->want(m, &want, &spare))
			held--;
		if (proto->remove(m, e)) {
			held--;
		} else {
			proto->add_arrival(m, &want, e);
			held++;
		}
		MUST_EQ(proto->count(m, WEFT_MATCH_ARRIVALS), held);
	}
	proto->fini(m);
	free(m);
	MUST_OK(weft_proto_free(proto));
}

TEST(raw_gives_what_arrived_first_to_whoever_asks_first)
{
	const struct weft_proto *raw = &weft_proto_raw;
	struct weft_match_entry e[6];
	void *m = malloc(raw->match_size);

	MUST(m);
	memset(e, 0, sizeof(e));
	CHECK_OK(wf_proto_check(raw));
	CHECK_EQ(raw->head_len, 0);
	raw->init(m, raw->ctx);
	for (int i = 0; i < 3; i++)
		CHECK(!raw->arrive(m, NULL, &e[i]));
	CHECK(raw->look(m, NULL) == &e[0]);
	CHECK(raw->remove(m, &e[1]));
	CHECK(raw->want(m, NULL, &e[3]) == &e[0]);
	CHECK(raw->want(m, NULL, &e[3]) == &e[2]);
	for (int i = 3; i < 6; i++)
		CHECK(!raw->want(m, NULL, &e[i]));
	CHECK(raw->find_want(m, NULL) == &e[3]);
	for (int i = 3; i < 6; i++)
		CHECK(raw->arrive(m, NULL, &e[0]) == &e[i]);
	raw->fini(m);
	free(m);
}

TEST(weft_proto_new_refuses_nonsense)
{
	const struct weft_match_fns good = { .size = sizeof(good), .head_len = 24, .equal = plain_equal,
					     .shape = plain_shape, .hash = plain_hash };
	const struct weft_proto *proto = NULL;
	struct weft_match_fns fns = good;
	struct {
		struct weft_match_fns fns;
		uint64_t more;
	} newer = { good, 0 };

	CHECK_EQ(weft_proto_new(NULL, &good, &proto), -EINVAL);
	CHECK_EQ(weft_proto_new("", &good, &proto), -EINVAL);
	CHECK_EQ(weft_proto_new("x", NULL, &proto), -EINVAL);
	CHECK_EQ(weft_proto_new("x", &good, NULL), -EINVAL);
	fns.equal = NULL;
	CHECK_EQ(weft_proto_new("x", &fns, &proto), -EINVAL);
	fns = good, fns.shape = NULL;
	CHECK_EQ(weft_proto_new("x", &fns, &proto), -EINVAL);
	fns = good, fns.hash = NULL;
	CHECK_EQ(weft_proto_new("x", &fns, &proto), -EINVAL);
	fns = good, fns.less = plain_less;
	CHECK_EQ(weft_proto_new("x", &fns, &proto), -EINVAL);
	fns = good, fns.head_len = 0;
	CHECK_EQ(weft_proto_new("x", &fns, &proto), -EINVAL);
	fns = good, fns.head_len = 33;
	CHECK_EQ(weft_proto_new("x", &fns, &proto), -EINVAL);
	fns = good, fns.size = 0;
	CHECK_EQ(weft_proto_new("x", &fns, &proto), -EINVAL);
	newer.fns.size = sizeof(newer);
	newer.more = 1;
	CHECK_EQ(weft_proto_new("x", &newer.fns, &proto), -E2BIG);
	CHECK(!proto);
	newer.more = 0;
	CHECK_OK(weft_proto_new("x", &newer.fns, &proto));
	CHECK(proto && !strcmp(proto->name, "x") && proto->head_len == 24);
	CHECK_OK(wf_proto_check(proto));
	CHECK_OK(weft_proto_free(proto));
}

TEST(a_protocol_cannot_be_freed_while_a_port_speaks_it)
{
	const struct weft_match_fns fns = { .size = sizeof(fns), .head_len = 24, .equal = plain_equal,
					    .shape = plain_shape, .less = plain_less };
	const struct weft_proto *proto;

	MUST_OK(weft_proto_new("spoken", &fns, &proto));
	wf_proto_ref(proto);
	wf_proto_ref(proto);
	CHECK_EQ(weft_proto_free(proto), -EBUSY);
	wf_proto_unref(proto);
	CHECK_EQ(weft_proto_free(proto), -EBUSY);
	wf_proto_unref(proto);
	CHECK_OK(weft_proto_free(proto));
	CHECK_OK(weft_proto_free(NULL));
	wf_proto_ref(&plain_proto);
	wf_proto_unref(&plain_proto);
	CHECK_EQ(weft_proto_free(&plain_proto), -EINVAL);
	CHECK_EQ(weft_proto_free(&weft_proto_raw), -EINVAL);
}

TEST(protocols_are_the_same_by_name_and_head_length)
{
	struct weft_proto a = plain_proto, b = plain_proto;
	char name[] = "plain";

	CHECK_OK(wf_proto_check(&a));
	b.name = name;
	CHECK(wf_proto_same(&a, &b));
	b.head_len = 16;
	CHECK(!wf_proto_same(&a, &b));
	b = a, b.name = "plainer";
	CHECK(!wf_proto_same(&a, &b));
	CHECK(wf_proto_same(NULL, NULL) && !wf_proto_same(&a, NULL) && !wf_proto_same(NULL, &a));
	b = a, b.look = NULL;
	CHECK_EQ(wf_proto_check(&b), -EINVAL);
	b = a, b.entry_size++;
	CHECK_EQ(wf_proto_check(&b), -EINVAL);
	b = a, b.size = 8;
	CHECK_EQ(wf_proto_check(&b), -EINVAL);
}

TEST_MAIN
