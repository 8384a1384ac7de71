/* gauge.h - a process of a job whose times, memory or processor are measured: see gauge.c. */
#ifndef RIG_GAUGE_H
#define RIG_GAUGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/weft.h>

#define THREADS 2u              /* of each process */
#define PROCESSES 8u

extern uint32_t rank, size;
extern weft_id ids[PROCESSES][THREADS];
extern int64_t period;          /* ns */
extern int arg;
extern weft_time began;

/* `gauge RANK: ...` to standard output. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Ends the process with what went wrong, unless @r is 0 or more. */
void must(int r, const char *what);

/* The value of which so many per cent of @n are not larger; sorts them. */
double part_of(double *of, size_t n, double percent);

/* What each thread of each process does. */
void gauge_stream(uint32_t thread);
void gauge_stuck(uint32_t thread);
void gauge_urgent(uint32_t thread);
void gauge_idle(uint32_t thread);
void gauge_overlap(uint32_t thread);
void gauge_left(uint32_t thread);

#endif
