/* test_info.c - info objects: values under keys, their order, their limits, and what the process says of itself. */
#include <string.h>

#include "mpitest.h"

static void set_get(void)
{
	char value[MPI_MAX_INFO_VAL + 1];
	int flag, len;
	MPI_Info info, copy;

	EXPECT_INT(MPI_Info_create(&info), MPI_SUCCESS);
	EXPECT_INT(MPI_Info_set(info, "colour", "green"), MPI_SUCCESS);
	EXPECT_INT(MPI_Info_set(info, "taste", "sour"), MPI_SUCCESS);
	EXPECT_INT(MPI_Info_set(info, "colour", "blue"), MPI_SUCCESS);
	EXPECT_INT(MPI_Info_get(info, "colour", MPI_MAX_INFO_VAL, value, &flag), MPI_SUCCESS);
	EXPECT(flag && !strcmp(value, "blue"));
	strcpy(value, "untouched");
	EXPECT_INT(MPI_Info_get(info, "smell", MPI_MAX_INFO_VAL, value, &flag), MPI_SUCCESS);
	EXPECT(!flag && !strcmp(value, "untouched"));
	EXPECT_INT(MPI_Info_get(info, "taste", 2, value, &flag), MPI_SUCCESS);
	EXPECT(flag && !strcmp(value, "so"));
	EXPECT_INT(MPI_Info_get_valuelen(info, "taste", &len, &flag), MPI_SUCCESS);
	EXPECT(flag && len == 4);
	EXPECT_INT(MPI_Info_get_valuelen(info, "smell", &len, &flag), MPI_SUCCESS);
	EXPECT(!flag && len == 4);
	EXPECT_INT(MPI_Info_dup(info, &copy), MPI_SUCCESS);
	EXPECT_INT(MPI_Info_set(info, "colour", "red"), MPI_SUCCESS);
	EXPECT_INT(MPI_Info_get(copy, "colour", MPI_MAX_INFO_VAL, value, &flag), MPI_SUCCESS);
	EXPECT(flag && !strcmp(value, "blue"));
	EXPECT_INT(MPI_Info_free(&copy), MPI_SUCCESS);
	EXPECT(copy == MPI_INFO_NULL);
	EXPECT_INT(MPI_Info_free(&info), MPI_SUCCESS);
	case_end("a value is set, replaced, read and copied");
}

static void get_string(void)
{
	char value[16] = "untouched";
	int flag, len = 0;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "taste", "sour");
	EXPECT_INT(MPI_Info_get_string(info, "taste", &len, value, &flag), MPI_SUCCESS);
	EXPECT(flag && len == 5 && !strcmp(value, "untouched"));
	len = 3;
	EXPECT_INT(MPI_Info_get_string(info, "taste", &len, value, &flag), MPI_SUCCESS);
	EXPECT(flag && len == 5 && !strcmp(value, "so"));
	EXPECT_INT(MPI_Info_get_string(info, "taste", &len, value, &flag), MPI_SUCCESS);
	EXPECT(flag && len == 5 && !strcmp(value, "sour"));
	len = 7;
	EXPECT_INT(MPI_Info_get_string(info, "smell", &len, value, &flag), MPI_SUCCESS);
	EXPECT(!flag && len == 7);
	MPI_Info_free(&info);
	case_end("a value is cut off where there is no room, and its size told");
}

static void order(void)
{
	char key[MPI_MAX_INFO_KEY];
	int n;
	MPI_Info info;

	MPI_Info_create(&info);
	for (int i = 0; i < 40; i++) {
		snprintf(key, sizeof(key), "key %d", (i * 7) % 40);
		EXPECT_INT(MPI_Info_set(info, key, key), MPI_SUCCESS);
	}
	MPI_Info_set(info, "key 7", "once more");
	EXPECT_INT(MPI_Info_delete(info, "key 14"), MPI_SUCCESS);
	EXPECT_INT(MPI_Info_delete(info, "key 14"), MPI_ERR_INFO_NOKEY);
	EXPECT_INT(MPI_Info_get_nkeys(info, &n), MPI_SUCCESS);
	EXPECT_INT(n, 39);
	for (int i = 0, at = 0; i < 40; i++) {
		char want[32];

		if (i == 2)
			continue;
		snprintf(want, sizeof(want), "key %d", (i * 7) % 40);
		EXPECT_INT(MPI_Info_get_nthkey(info, at++, key), MPI_SUCCESS);
		EXPECT(!strcmp(key, want));
	}
	EXPECT_INT(MPI_Info_get_nthkey(info, 39, key), MPI_ERR_ARG);
	EXPECT_INT(MPI_Info_get_nthkey(info, -1, key), MPI_ERR_ARG);
	MPI_Info_free(&info);
	case_end("keys are in the order in which they were first set");
}

static void limits(void)
{
	char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1], got[MPI_MAX_INFO_VAL + 1];
	int flag;
	MPI_Info info, stale;

	MPI_Info_create(&info);
	memset(key, 'k', sizeof(key));
	memset(value, 'v', sizeof(value));
	key[MPI_MAX_INFO_KEY] = value[MPI_MAX_INFO_VAL] = 0;
	EXPECT_INT(MPI_Info_set(info, key, "v"), MPI_ERR_INFO_KEY);
	EXPECT_INT(MPI_Info_set(info, "", "v"), MPI_ERR_INFO_KEY);
	EXPECT_INT(MPI_Info_set(info, "k", value), MPI_ERR_INFO_VALUE);
	EXPECT_INT(MPI_Info_get(info, key, 3, got, &flag), MPI_ERR_INFO_KEY);
	EXPECT_INT(MPI_Info_get(info, "k", -1, got, &flag), MPI_ERR_ARG);
	key[MPI_MAX_INFO_KEY - 1] = value[MPI_MAX_INFO_VAL - 1] = 0;
	EXPECT_INT(MPI_Info_set(info, key, value), MPI_SUCCESS);
	EXPECT_INT(MPI_Info_get(info, key, MPI_MAX_INFO_VAL, got, &flag), MPI_SUCCESS);
	EXPECT(flag && !strcmp(got, value));
	EXPECT_INT(MPI_Info_set(MPI_INFO_NULL, "k", "v"), MPI_ERR_INFO);
	stale = info;
	MPI_Info_free(&info);
	EXPECT_INT(MPI_Info_set(stale, "k", "v"), MPI_ERR_INFO);
	EXPECT_INT(MPI_Info_free(&info), MPI_ERR_INFO);
	case_end("keys and values that are too long, and handles of nothing, are refused");
}

static void environment(int size, char **argv)
{
	char value[MPI_MAX_INFO_VAL + 1];
	char prog[] = "prog", one[] = "one", two[] = "two", *args[] = { prog, one, two, NULL };
	int flag, n;
	MPI_Info info, env = MPI_INFO_ENV;

	EXPECT_INT(MPI_Info_get(MPI_INFO_ENV, "command", MPI_MAX_INFO_VAL, value, &flag), MPI_SUCCESS);
	EXPECT(flag && !strcmp(value, argv[0]));
	EXPECT_INT(MPI_Info_get(MPI_INFO_ENV, "maxprocs", MPI_MAX_INFO_VAL, value, &flag), MPI_SUCCESS);
	EXPECT(flag && atoi(value) == size);
	EXPECT_INT(MPI_Info_get(MPI_INFO_ENV, "wdir", MPI_MAX_INFO_VAL, value, &flag), MPI_SUCCESS);
	EXPECT(flag && value[0] == '/');
	EXPECT_INT(MPI_Info_set(MPI_INFO_ENV, "k", "v"), MPI_ERR_INFO);
	EXPECT_INT(MPI_Info_delete(MPI_INFO_ENV, "command"), MPI_ERR_INFO);
	EXPECT_INT(MPI_Info_free(&env), MPI_ERR_INFO);
	EXPECT_INT(MPI_Info_dup(MPI_INFO_ENV, &info), MPI_SUCCESS);
	EXPECT_INT(MPI_Info_get_nkeys(info, &n), MPI_SUCCESS);
	EXPECT(n >= 4);
	MPI_Info_free(&info);
	EXPECT_INT(MPI_Info_create_env(3, args, &info), MPI_SUCCESS);
	EXPECT_INT(MPI_Info_get(info, "argv", MPI_MAX_INFO_VAL, value, &flag), MPI_SUCCESS);
	EXPECT(flag && !strcmp(value, "one two"));
	EXPECT_INT(MPI_Info_set(info, "k", "v"), MPI_SUCCESS);
	MPI_Info_free(&info);
	case_end("MPI_INFO_ENV tells of the process and cannot be changed");
}

int main(int argc, char **argv)
{
	int size;
	MPI_Info before;

	if (MPI_Info_create(&before) != MPI_SUCCESS || MPI_Info_set(before, "k", "v") != MPI_SUCCESS ||
	    MPI_Info_free(&before) != MPI_SUCCESS)
		case_bad = 1;
	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	case_end("info objects work before MPI_Init");
	set_get();
	get_string();
	order();
	limits();
	environment(size, argv);
	return cases_end();
}
