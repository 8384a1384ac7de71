/* failing.h - see failing.c. */
#ifndef FAILING_H
#define FAILING_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

void fail_arm(void);                    /* from here on calls are counted, and fail as FAIL says */
void fail_disarm(void);
void fail_print(unsigned rank);         /* how often each was called, and how many failed */

/* The test's own threads and memory are not weft's. */
void *__real_malloc(size_t n);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);

#endif
