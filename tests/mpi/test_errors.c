/* test_errors.c - error handlers of every kind, classes, codes and their words. Two ranks; fatal ones are asked for by tests/mpi/ends. */
#include <string.h>
#include <unistd.h>

#include "mpitest.h"

static struct {
	int calls, code;
	MPI_Comm comm;
} seen;

static void handler(MPI_Comm *comm, int *code, ...)
{
	seen.calls++;
	seen.comm = *comm;
	seen.code = *code;
}

static void other(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
	seen.calls += 1000;
}

static void predefined(void)
{
	MPI_Errhandler h;
	int n;

	MPI_Comm_get_errhandler(MPI_COMM_WORLD, &h);
	EXPECT(h == MPI_ERRORS_ARE_FATAL);
	MPI_Comm_get_errhandler(MPI_COMM_SELF, &h);
	EXPECT(h == MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ABORT);
	MPI_Comm_get_errhandler(MPI_COMM_SELF, &h);
	EXPECT(h == MPI_ERRORS_ABORT);
	EXPECT_INT(MPI_Errhandler_free(&h), MPI_SUCCESS);
	EXPECT(h == MPI_ERRHANDLER_NULL);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	EXPECT_INT(MPI_Comm_rank(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
	EXPECT_INT(MPI_Comm_rank(MPI_COMM_NULL, &n), MPI_ERR_COMM);
	EXPECT_INT(MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER), MPI_SUCCESS);
	case_end("the default is fatal, and MPI_ERRORS_RETURN returns the code");
}

static void own_handlers(void)
{
	MPI_Comm dup, dup2;
	MPI_Errhandler h, h2, got;
	int n;

	EXPECT_INT(MPI_Comm_create_errhandler(handler, &h), MPI_SUCCESS);
	EXPECT_INT(MPI_Comm_create_errhandler(other, &h2), MPI_SUCCESS);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	EXPECT_INT(MPI_Comm_set_errhandler(dup, h), MPI_SUCCESS);
	MPI_Comm_get_errhandler(dup, &got);
	EXPECT(got == h);
	MPI_Errhandler_free(&got);
	MPI_Errhandler_free(&h);
	EXPECT(h == MPI_ERRHANDLER_NULL);

	memset(&seen, 0, sizeof(seen));
	EXPECT_INT(MPI_Comm_rank(dup, NULL), MPI_ERR_ARG);
	EXPECT_INT(seen.calls, 1);
	EXPECT_INT(seen.code, MPI_ERR_ARG);
	EXPECT(seen.comm == dup);
	EXPECT_INT(MPI_Comm_call_errhandler(dup, MPI_ERR_IO), MPI_SUCCESS);
	EXPECT_INT(seen.calls, 2);
	EXPECT_INT(seen.code, MPI_ERR_IO);
	EXPECT_INT(MPI_Comm_rank(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
	EXPECT_INT(seen.calls, 2);
	case_end("a handler of the program's own is called with the communicator's handle and the code");

	MPI_Comm_dup(dup, &dup2);
	MPI_Comm_get_errhandler(dup2, &got);
	EXPECT_INT(MPI_Comm_size(dup2, NULL), MPI_ERR_ARG);
	EXPECT_INT(seen.calls, 3);
	EXPECT(seen.comm == dup2);
	MPI_Comm_set_errhandler(dup2, h2);
	MPI_Comm_size(dup2, NULL);
	EXPECT_INT(seen.calls, 1003);
	MPI_Comm_size(dup, NULL);
	EXPECT_INT(seen.calls, 1004);
	MPI_Errhandler_free(&got);
	MPI_Errhandler_free(&h2);
	MPI_Comm_free(&dup2);
	MPI_Comm_free(&dup);
	case_end("a new communicator inherits its parent's handler, and may have another");

	MPI_Comm_create_errhandler(handler, &h);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, h);
	EXPECT_INT(MPI_Comm_rank(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
	EXPECT(seen.comm == MPI_COMM_WORLD);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, h);
	EXPECT_INT(MPI_Comm_rank(MPI_COMM_NULL, &n), MPI_ERR_COMM);
	EXPECT(seen.comm == MPI_COMM_SELF);
	EXPECT_INT(seen.code, MPI_ERR_COMM);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Errhandler_free(&h);
	case_end("an error on no communicator goes to MPI_COMM_SELF's handler");
}

static void nonsense(void)
{
	MPI_Errhandler h = MPI_ERRHANDLER_NULL;

	EXPECT_INT(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER);
	EXPECT_INT(MPI_Comm_set_errhandler(MPI_COMM_NULL, MPI_ERRORS_RETURN), MPI_ERR_COMM);
	EXPECT_INT(MPI_Comm_get_errhandler(MPI_COMM_NULL, &h), MPI_ERR_COMM);
	EXPECT_INT(MPI_Comm_get_errhandler(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
	EXPECT_INT(MPI_Errhandler_free(&h), MPI_ERR_ERRHANDLER);
	EXPECT_INT(MPI_Comm_create_errhandler(NULL, &h), MPI_ERR_ARG);
	EXPECT_INT(MPI_Comm_create_errhandler(handler, NULL), MPI_ERR_ARG);
	EXPECT_INT(MPI_Comm_call_errhandler(MPI_COMM_NULL, 1), MPI_ERR_COMM);
	EXPECT(h == MPI_ERRHANDLER_NULL);
	case_end("a handler that is none is refused");
}

static void words(void)
{
	char text[MPI_MAX_ERROR_STRING], last[MPI_MAX_ERROR_STRING] = "";
	int len, class;

	for (int code = MPI_SUCCESS; code <= MPI_ERR_ABI; code++) {
		len = -1;
		EXPECT_INT(MPI_Error_string(code, text, &len), MPI_SUCCESS);
		EXPECT(len > 0 && len == (int)strlen(text) && strcmp(text, last));
		strcpy(last, text);
		EXPECT_INT(MPI_Error_class(code, &class), MPI_SUCCESS);
		EXPECT_INT(class, code);
	}
	EXPECT_INT(MPI_Error_string(MPI_ERR_RANK, text, &len), MPI_SUCCESS);
	EXPECT(strstr(text, "MPI_ERR_RANK") != NULL);
	EXPECT_INT(MPI_Error_string(-5, text, &len), MPI_ERR_ARG);
	EXPECT_INT(MPI_Error_string(MPI_ERR_LASTCODE + 1, text, &len), MPI_ERR_ARG);
	EXPECT_INT(MPI_Error_class(MPI_ERR_LASTCODE + 1, &class), MPI_ERR_ARG);
	EXPECT_INT(MPI_Error_class(1, NULL), MPI_ERR_ARG);
	EXPECT_INT(MPI_Error_string(1, NULL, &len), MPI_ERR_ARG);
	case_end("every class has words of its own");
}

static int last_used(void)
{
	int *value, flag = 0;

	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
	return flag ? *value : -1;
}

static void added(void)
{
	char text[MPI_MAX_ERROR_STRING];
	int class, code, second, got, len = -1, before = last_used();

	EXPECT(before >= MPI_ERR_LASTCODE);
	EXPECT_INT(MPI_Add_error_class(&class), MPI_SUCCESS);
	EXPECT(class > MPI_ERR_LASTCODE);
	EXPECT_INT(last_used(), class);
	EXPECT_INT(MPI_Add_error_code(class, &code), MPI_SUCCESS);
	EXPECT_INT(MPI_Add_error_code(MPI_ERR_IO, &second), MPI_SUCCESS);
	EXPECT(code > class && second > code);
	EXPECT_INT(last_used(), second);
	MPI_Error_class(class, &got);
	EXPECT_INT(got, class);
	MPI_Error_class(code, &got);
	EXPECT_INT(got, class);
	MPI_Error_class(second, &got);
	EXPECT_INT(got, MPI_ERR_IO);
	EXPECT_INT(MPI_Error_string(code, text, &len), MPI_SUCCESS);
	EXPECT_INT(len, 0);
	EXPECT_INT(MPI_Add_error_string(code, "the soup is cold"), MPI_SUCCESS);
	MPI_Error_string(code, text, &len);
	EXPECT(!strcmp(text, "the soup is cold") && len == 16);
	EXPECT_INT(MPI_Add_error_string(code, "and late"), MPI_SUCCESS);
	MPI_Error_string(code, text, &len);
	EXPECT(!strcmp(text, "and late"));
	EXPECT_INT(MPI_Add_error_string(MPI_ERR_IO, "mine now"), MPI_ERR_ARG);
	EXPECT_INT(MPI_Add_error_code(code, &got), MPI_ERR_ARG);
	EXPECT_INT(MPI_Add_error_code(second + 1, &got), MPI_ERR_ARG);
	case_end("the program adds classes, codes and words");

	EXPECT_INT(MPI_Remove_error_string(code), MPI_SUCCESS);
	EXPECT_INT(MPI_Remove_error_string(code), MPI_ERR_ARG);
	EXPECT_INT(MPI_Remove_error_class(class), MPI_ERR_ARG);
	EXPECT_INT(MPI_Remove_error_class(code), MPI_ERR_ARG);
	EXPECT_INT(MPI_Remove_error_code(class), MPI_ERR_ARG);
	EXPECT_INT(MPI_Remove_error_code(MPI_ERR_IO), MPI_ERR_ARG);
	EXPECT_INT(MPI_Remove_error_code(code), MPI_SUCCESS);
	EXPECT_INT(MPI_Error_class(code, &got), MPI_ERR_ARG);
	EXPECT_INT(MPI_Remove_error_class(class), MPI_SUCCESS);
	EXPECT_INT(MPI_Remove_error_code(second), MPI_SUCCESS);
	EXPECT_INT(last_used(), before);
	case_end("and removes them, a class after its codes");
}

static void through_user_code(void)
{
	MPI_Errhandler h;
	int class, code;

	MPI_Add_error_class(&class);
	MPI_Add_error_code(class, &code);
	MPI_Comm_create_errhandler(handler, &h);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, h);
	MPI_Comm_call_errhandler(MPI_COMM_WORLD, code);
	EXPECT_INT(seen.code, code);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Errhandler_free(&h);
	MPI_Remove_error_code(code);
	MPI_Remove_error_class(class);
	case_end("a code of the program's own reaches its handler");
}

static void unsupported(void)
{
	MPI_Win win;

	EXPECT_INT(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_UNSUPPORTED_OPERATION);
	case_end("a function that is not there says so");
}

/* Each kills the job, so that only one can be asked for. */
static int fatal(const char *what)
{
	static MPI_Request request;
	int n, rank;
	MPI_Comm dup;

	if (!strcmp(what, "before"))
		return MPI_Comm_rank(MPI_COMM_WORLD, &n);
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!strcmp(what, "after")) {
		MPI_Finalize();
		return MPI_Comm_rank(MPI_COMM_WORLD, &n);
	}
	if (!strncmp(what, "pending", 7)) {
		MPI_Comm_dup(MPI_COMM_WORLD, &dup);
		if (rank == 0 || !strcmp(what, "pending-both"))
			MPI_Ibarrier(rank ? dup : MPI_COMM_WORLD, &request);
		if (!strcmp(what, "pending-late"))
			usleep(100000);         /* its thread waits by then */
		MPI_Finalize();
		return 0;
	}
	if (!strcmp(what, "abort"))
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ABORT);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	if (rank == 1 && !strcmp(what, "own")) {
		MPI_Add_error_class(&n);
		MPI_Add_error_string(n, "the soup is cold");
		MPI_Comm_call_errhandler(dup, n);
	}
	if (rank == 1)
		MPI_Send(&n, 1, MPI_INT, 99, 0, dup);
	MPI_Recv(&n, 1, MPI_INT, 1 - rank, 0, dup, MPI_STATUS_IGNORE);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return fatal(argv[1]);
	MPI_Init(&argc, &argv);
	predefined();
	own_handlers();
	nonsense();
	words();
	added();
	through_user_code();
	unsupported();
	return cases_end();
}
