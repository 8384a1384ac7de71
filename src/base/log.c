/* log.c - one line at a time, to standard error or to the program's own sink. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const names[] = { "error", "warn", "info", "debug", "trace" };
static _Atomic(void (*)(int, const char *)) log_sink;

_Atomic int wf_log_level = WF_ERROR;

int wf_log_parse(const char *text)
{
	for (int i = 0; i < 5; i++)
		if (!strcmp(text, names[i]) || (text[0] == '0' + i && !text[1]))
			return i;
	return -1;
}

void wf_log_init(void (*sink)(int level, const char *line))
{
	const char *text = getenv("WEFT_LOG");
	int level = text && *text ? wf_log_parse(text) : WF_ERROR;

	/* relaxed: set before threads use weft; later inits only change where lines go. */
	atomic_store_explicit(&log_sink, sink, memory_order_relaxed);
	atomic_store_explicit(&wf_log_level, level < 0 ? WF_ERROR : level, memory_order_relaxed);
	if (level < 0)
		wf_log(WF_ERROR, "WEFT_LOG=%.40s is none of error, warn, info, debug, trace", text);
}

void wf_log_write(enum wf_level level, const char *fmt, ...)
{
	void (*sink)(int, const char *) = atomic_load_explicit(&log_sink, memory_order_relaxed);
	char line[320];
	va_list args;
	int n = snprintf(line, sizeof(line), "weft %s: ", names[level]);

	va_start(args, fmt);
	vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, args);
	va_end(args);
	if (sink) {
		sink((int)level, line);
		return;
	}
	n = (int)strlen(line);
	line[n++] = '\n';
	syscall(SYS_write, STDERR_FILENO, line, (size_t)n);     /* not write(3): that is a cancellation point */
}
