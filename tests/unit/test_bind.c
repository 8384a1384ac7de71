/* test_bind.c - CPUs shared out over machines that are made up, and over this one. */
#include "cmd/bind.h"

#include <sys/wait.h>

#include "cmd/cores.h"
#include "test.h"

#define MOST 64

static struct cores machine;
static cpu_set_t sets[MOST];
static char words[256];

/* So many of each in the next larger one; CPUs are numbered as usual: first threads of all cores, then the second ones. */
static void make(unsigned sockets, unsigned nodes, unsigned cores, unsigned threads)
{
	unsigned all = sockets * nodes * cores;

	machine.count = 0;
	for (unsigned i = 0; i < all * threads; i++)
		machine.cpus[machine.count++] = (struct cpu){
			.cpu = i, .core = i % all, .numa = i % all / cores, .socket = i % all / cores / nodes };
	cores_sort(&machine);
}

/* Takes away what a mask would. */
static void without(unsigned cpu)
{
	unsigned n = 0;

	for (unsigned i = 0; i < machine.count; i++)
		if (machine.cpus[i].cpu != cpu)
			machine.cpus[n++] = machine.cpus[i];
	machine.count = n;
}

/* The sets with blanks between them, or what was wrong. */
static const char *shared(enum bind how, unsigned count)
{
	static char text[4096];
	size_t n = 0;
	int r = bind_share(&machine, how, count, sets, words, sizeof(words));

	text[0] = 0;
	if (r < 0) {
		CHECK_EQ(r, -EINVAL);
		return words;
	}
	for (unsigned i = 0; i < count; i++) {
		n += (size_t)sprintf(text + n, i ? " " : "");
		n += (size_t)cpulist_print(&sets[i], text + n, sizeof(text) - n);
	}
	return text;
}

#define CHECK_TEXT(got, want)                                                                      \
	do {                                                                                       \
		const char *text_got = (got);                                                      \
		if (strcmp(text_got, want))                                                        \
			printf("# got '%s', want '%s'\n", text_got, want);                         \
		CHECK(!strcmp(text_got, want));                                                    \
	} while (0)

TEST(sets_of_cpus_are_read_and_written_as_the_kernel_does)
{
	static const char *const good[] = { "", "0", "0-3", "0,2,4", "0-3,8,10-11", "1023" }, *const bad[] = { "-1", "0-", "0,", "a", "0 1", "0,,1", "0-3x" };
	char text[64];
	cpu_set_t set;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		CHECK(cpulist_parse(good[i], &set));
		CHECK_EQ(cpulist_print(&set, text, sizeof(text)), strlen(good[i]));
		CHECK_TEXT(text, good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK(!cpulist_parse(bad[i], &set));
		CHECK_EQ(CPU_COUNT(&set), 0);
	}
	CHECK(cpulist_parse("1022-99999999999999999999\n", &set));
	CHECK_EQ(CPU_COUNT(&set), 2);
	CHECK(cpulist_parse("3-1", &set) && CPU_COUNT(&set) == 0);
	CHECK(cpulist_parse("0,2,4,6", &set));
	CHECK_EQ(cpulist_print(&set, text, 4), 7);
	CHECK_TEXT(text, "0,2");
	CHECK_EQ(cpulist_print(&set, NULL, 0), 7);
}

TEST(each_process_gets_whole_cores_and_as_many_as_the_others)
{
	make(1, 1, 4, 1);
	CHECK_TEXT(shared(BIND_CORE, 1), "0-3");
	CHECK_TEXT(shared(BIND_CORE, 2), "0-1 2-3");
	CHECK_TEXT(shared(BIND_CORE, 3), "0 1 2-3");
	CHECK_TEXT(shared(BIND_CORE, 4), "0 1 2 3");
	CHECK_TEXT(shared(BIND_CORE, 5), "--bind core: 5 processes on a host, and 4 cores to share out");
	make(2, 1, 2, 2);       /* threads 0,4 1,5 | 2,6 3,7 */
	CHECK_TEXT(shared(BIND_CORE, 4), "0,4 1,5 2,6 3,7");
	CHECK_TEXT(shared(BIND_CORE, 2), "0-1,4-5 2-3,6-7");
}

TEST(a_share_of_cores_does_not_cross_nodes_where_it_need_not)
{
	make(2, 1, 5, 1);
	CHECK_TEXT(shared(BIND_CORE, 4), "0-1 2-4 5-6 7-9");
	CHECK_TEXT(shared(BIND_CORE, 2), "0-4 5-9");
}

TEST(a_process_has_the_node_or_the_socket_it_falls_to)
{
	make(2, 2, 2, 1);       /* nodes 0-1 2-3 | 4-5 6-7 */
	CHECK_TEXT(shared(BIND_NUMA, 4), "0-1 2-3 4-5 6-7");
	CHECK_TEXT(shared(BIND_NUMA, 2), "0-1 4-5");
	CHECK_TEXT(shared(BIND_NUMA, 6), "0-1 0-1 2-3 4-5 4-5 6-7");
	CHECK_TEXT(shared(BIND_SOCKET, 3), "0-3 0-3 4-7");
	CHECK_TEXT(shared(BIND_SOCKET, 1), "0-3");
	CHECK_TEXT(shared(BIND_NUMA, 12), "0-1 0-1 0-1 2-3 2-3 2-3 4-5 4-5 4-5 6-7 6-7 6-7");
	CHECK_TEXT(shared(BIND_NONE, 2), "0-7 0-7");
}

TEST(what_may_not_be_used_is_not_given_out)
{
	make(2, 1, 2, 2);
	without(4);             /* a thread of the first core */
	without(1);
	without(5);             /* the whole second one */
	CHECK_TEXT(shared(BIND_CORE, 3), "0 2,6 3,7");
	CHECK_TEXT(shared(BIND_SOCKET, 3), "0 2-3,6-7 2-3,6-7");
	CHECK_TEXT(shared(BIND_NONE, 1), "0,2-3,6-7");
	machine.count = 0;
	CHECK_TEXT(shared(BIND_CORE, 1), "there is no CPU to bind to");
}

TEST(what_is_counted_are_different_ones)
{
	struct cores_sum sum;

	make(2, 2, 3, 2);
	sum = cores_count(&machine);
	CHECK_EQ(sum.cpus, 24);
	CHECK_EQ(sum.cores, 12);
	CHECK_EQ(sum.nodes, 4);
	CHECK_EQ(sum.sockets, 2);
}

TEST(only_the_four_ways_have_names)
{
	enum bind how = BIND_CORE;

	CHECK(bind_read("none", &how) && how == BIND_NONE);
	CHECK(bind_read("core", &how) && how == BIND_CORE);
	CHECK(bind_read("numa", &how) && how == BIND_NUMA);
	CHECK(bind_read("socket", &how) && how == BIND_SOCKET);
	CHECK(!bind_read("", &how) && !bind_read("cores", &how) && !bind_read("Core", &how) && how == BIND_SOCKET);
}

TEST(on_this_machine_every_way_gives_cpus_that_may_be_used)
{
	cpu_set_t may, both;
	char line[256];

	MUST_OK(sched_getaffinity(0, sizeof(may), &may));
	for (int how = BIND_NONE; how <= BIND_SOCKET; how++) {
		MUST_OK(bind_plan((enum bind)how, 1, sets, words, sizeof(words)));
		CPU_AND(&both, &may, &sets[0]);
		CHECK(CPU_COUNT(&both) > 0 && CPU_EQUAL(&both, &sets[0]));
		CHECK_OK(sched_setaffinity(0, sizeof(sets[0]), &sets[0]));
		CHECK_OK(sched_setaffinity(0, sizeof(may), &may));
	}
	CHECK(bind_line(3, "node1", &may, line, sizeof(line)) > 0);
	CHECK(strstr(line, "rank 3") && strstr(line, "node1") && strstr(line, "cpus 0") && strstr(line, "numa"));
	CHECK_EQ(bind_plan(BIND_CORE, CPU_SETSIZE + 1, sets, words, sizeof(words)), -EINVAL);
}

TEST(a_mask_that_leaves_one_cpu_leaves_one_core)
{
	cpu_set_t may, one;
	unsigned first = 0;

	MUST_OK(sched_getaffinity(0, sizeof(may), &may));
	while (!CPU_ISSET(first, &may))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	MUST_OK(sched_setaffinity(0, sizeof(one), &one));
	CHECK_OK(bind_plan(BIND_CORE, 1, sets, words, sizeof(words)));
	CHECK(CPU_EQUAL(&one, &sets[0]));
	CHECK_EQ(bind_plan(BIND_CORE, 2, sets, words, sizeof(words)), -EINVAL);
	CHECK(strstr(words, "1 core to share out"));
	CHECK_OK(sched_setaffinity(0, sizeof(may), &may));
}

/* hwloc is asked of machines that it is told of; a process for each, since it remembers. */
static int asked(const char *synthetic, unsigned cores, unsigned nodes, unsigned sockets)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		struct cores_sum sum;
		cpu_set_t may;

		CPU_ZERO(&may);
		for (unsigned i = 0; i < 8; i++)
			CPU_SET(i, &may);
		setenv("HWLOC_SYNTHETIC", synthetic, 1);
		setenv("HWLOC_COMPONENTS", "synthetic,stop", 1);
		if (!cores_hwloc(&may, &machine))
			_exit(77);
		cores_sort(&machine);
		sum = cores_count(&machine);
		_exit(sum.cpus == 8 && sum.cores == cores && sum.nodes == nodes && sum.sockets == sockets ? 0 : 1);
	}
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(hwloc_and_the_kernel_say_the_same_and_hwloc_is_believed)
{
	static struct cores other;
	cpu_set_t may;
	char was[32];

	MUST_OK(sched_getaffinity(0, sizeof(may), &may));
	if (!cores_hwloc(&may, &machine))
		SKIP("no hwloc here");
	cores_sort(&machine);
	MUST_OK(cores_plain(&other, words, sizeof(words)));
	snprintf(was, sizeof(was), "%s", machine.by);
	CHECK(!strncmp(was, "hwloc 2.", 8) && !strcmp(other.by, "/sys"));
	CHECK_EQ(machine.count, other.count);
	CHECK(!memcmp(machine.cpus, other.cpus, machine.count * sizeof(*machine.cpus)));
	CHECK_EQ(asked("pack:2 [numa] core:2 pu:2", 4, 2, 2), 0);
	CHECK_EQ(asked("pack:1 [numa] core:8 pu:1", 8, 1, 1), 0);
	CHECK_EQ(asked("pack:2 die:2 [numa] core:1 pu:2", 4, 4, 2), 0);
	CHECK_EQ(asked("pack:1 core:2 pu:2", 0, 0, 0), 77);      /* it does not know the other four */
}

TEST_MAIN
