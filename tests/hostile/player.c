/* player.c - a process of a job with a villain in it: weft run -n 3 hostile_player STAGEFILE */
#include "stage.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct stage *stage;
struct stage_row *mine;
uint32_t rank;

void fault(const char *fmt, ...)
{
	char text[sizeof(mine->fault)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "rank %u: %s\n", rank, text);
	if (atomic_fetch_add(&mine->faults, 1) == 0)
		memcpy(mine->fault, text, sizeof(text));
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1, r;
	const char *text = getenv("WEFT_RANK");

	stage = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (stage == MAP_FAILED || !text || (rank = (uint32_t)atoi(text)) > HONEST)
		return fprintf(stderr, "usage: weft run -n 3 hostile_player STAGEFILE\n"), 2;
	close(fd);
	mine = &stage->row[rank];
	atomic_store(&mine->pid, getpid());
	r = weft_init(NULL);
	if (r < 0) {
		fault("weft_init: %d %s", r, weft_last_error());
		return 1;
	}
	if (rank == HONEST)
		villain_run();          /* does not return */
	honest_run();
	r = weft_fini(weft_in(2 * WEFT_S));
	if (r < 0 && stage->mode == VILLAIN_LIES && r != -110)
		fault("weft_fini: %d %s", r, weft_last_error());
	atomic_store(&mine->over, 1);
	return 0;
}
