/* test_unserved.c - the list of what the headers name and this version does not serve.
 *
 * Each answers -EOPNOTSUPP, says in weft_last_error which it was, leaves its outputs alone and does
 * nothing. A field that gets served leaves this list.
 */
#include <weft/weft.h>

#include "../test.h"

#define UNSERVED(what, call)                                                                       \
	do {                                                                                       \
		weft_fail(-EXDEV, "stale words");                                                  \
		CHECK_EQ(call, -EOPNOTSUPP);                                                       \
		if (!strstr(weft_last_error(), what)) {                                            \
			printf("# words: %s\n", weft_last_error());                                \
			test_check(false, __FILE__, __LINE__, "names " what, 0, 0, false);         \
		}                                                                                  \
	} while (0)

static int hooks; /* stands for a struct weft_task_hooks, which nobody reads */

TEST(joining_a_job_of_another_host_by_url_is_not_served)
{
	UNSERVED("join", weft_init(WEFT(init_opts, .join = "weft://somewhere:7700/00112233445566778899aabbccddeeff")));
	CHECK_EQ(weft_fini(WEFT_NOW), -ENOTCONN);
}

TEST(a_job_key_is_not_served)
{
	UNSERVED("key", weft_init(WEFT(init_opts, .key = "/tmp/key")));
	CHECK_EQ(weft_fini(WEFT_NOW), -ENOTCONN);
}

TEST(another_thread_package_is_not_served)
{
	UNSERVED("tasks", weft_init(WEFT(init_opts, .tasks = (void *)&hooks)));
	CHECK_EQ(weft_fini(WEFT_NOW), -ENOTCONN);
}

static struct weft_port *port;
static weft_id id;

static void setup(void)
{
	struct weft_port_info info = { .size = sizeof(info) };

	MUST_OK(weft_init(NULL));
	MUST_OK(weft_port_open(NULL, &port));
	MUST_OK(weft_port_stat(port, &info));
	id = info.id;
}

/* Nothing was sent, and a plain message still goes. */
static void teardown(void)
{
	int x = 5, y = 0;

	CHECK_EQ(weft_probe(port, WEFT(op, .peer = WEFT_ANY, .tag = WEFT_ANY_TAG), WEFT_NOW, NULL, NULL),
		 -EAGAIN);
	CHECK_OK(weft_send(port, id, 1, &x, sizeof(x), WEFT_FOREVER));
	CHECK_OK(weft_recv(port, id, 1, &y, sizeof(y), WEFT_FOREVER, NULL));
	CHECK_EQ(y, 5);
	CHECK_OK(weft_port_close(port, WEFT_FOREVER));
	CHECK_OK(weft_fini(WEFT_FOREVER));
}

TEST(sending_to_many_is_not_served)
{
	struct weft_req *req = NULL;
	struct weft_buf *buf;
	weft_id two[2];
	int x = 1;

	setup();
	two[0] = two[1] = id;
	UNSERVED("peers",
		 weft_send_post(port, WEFT(op, .peers = two, .npeers = 2, .data = &x, .len = sizeof(x)),
				&req));
	UNSERVED("peers",
		 weft_send_post(port, WEFT(op, .peer = id, .npeers = 1, .data = &x, .len = sizeof(x)), &req));
	UNSERVED(
		"peers",
		weft_send_post(port, WEFT(op, .peer = id, .peers = two, .data = &x, .len = sizeof(x)), &req));
	UNSERVED("WEFT_ALL",
		 weft_send_post(port, WEFT(op, .peer = WEFT_ALL, .data = &x, .len = sizeof(x)), &req));
	UNSERVED("WEFT_ALL", weft_send(port, WEFT_ALL, 1, &x, sizeof(x), WEFT_FOREVER));
	MUST_OK(weft_buf_get(8, 0, &buf));
	UNSERVED("WEFT_ALL", weft_buf_send(port, WEFT_ALL, 1, buf, WEFT_FOREVER));
	CHECK_OK(weft_buf_put(buf));            /* still mine */
	CHECK(!req);
	teardown();
}

TEST(choosing_a_rail_is_not_served)
{
	struct weft_port *other = NULL;
	struct weft_req *req = NULL;
	struct weft_buf *buf = NULL;

	setup();
	UNSERVED("rail", weft_send_post(port, WEFT(op, .peer = id, .rail = 1), &req));
	UNSERVED("rail", weft_recv_post(port, WEFT(op, .peer = id, .rail = 3), &req, NULL));
	UNSERVED("rail", weft_port_open(WEFT(port_opts, .rail = 1), &other));
	UNSERVED("rail", weft_buf_get(8, 2, &buf));
	UNSERVED("rail", weft_buf_get(8, -1, &buf));
	CHECK(!req && !other && !buf);
	MUST_OK(weft_buf_get(8, WEFT_RAIL_FASTEST, &buf));      /* these two are */
	CHECK_OK(weft_buf_put(buf));
	MUST_OK(weft_buf_get(8, WEFT_RAIL_ANY, &buf));
	CHECK_OK(weft_buf_put(buf));
	teardown();
}

TEST(groups_and_their_ways_to_cast_are_not_served)
{
	struct weft_port *other = NULL;

	setup();
	UNSERVED("cast", weft_port_open(WEFT(port_opts, .cast = "tree"), &other));
	UNSERVED("OBSERVE", weft_port_open(WEFT(port_opts, .flags = WEFT_PORT_OBSERVE), &other));
	CHECK(!other);
	teardown();
}

TEST_MAIN
