/* log.h - what weft cannot return, it logs. Quiet by default (errors only); WEFT_LOG=level or the
 * knob "log" opens it: 0 error, 1 warn, 2 info, 3 debug, 4 trace. */
#ifndef WF_BASE_LOG_H
#define WF_BASE_LOG_H

#include <stdatomic.h>

enum wf_level { WF_ERROR, WF_WARN, WF_INFO, WF_DEBUG, WF_TRACE };

extern _Atomic int wf_log_level;        /* relaxed: a stale level prints or drops a line, no more */

void wf_log_init(void (*sink)(int level, const char *line));    /* NULL: standard error. Reads WEFT_LOG */
int wf_log_parse(const char *text);     /* a name or a digit; -1 if neither */
void wf_log_write(enum wf_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define wf_log(level, ...)                                                                         \
	do {                                                                                       \
		if ((int)(level) <= atomic_load_explicit(&wf_log_level, memory_order_relaxed)) \
			wf_log_write(level, __VA_ARGS__);                                          \
	} while (0)

#endif
