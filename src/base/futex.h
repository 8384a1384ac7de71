/* futex.h - sleep on a word, wake who sleeps there. In a step test both go to its scheduler. */
#ifndef WF_BASE_FUTEX_H
#define WF_BASE_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>
#include <weft/base.h>

/* 0: woken, or the word differs, or for no reason at all; -ETIMEDOUT: @until has come. */
int wf_futex_wait(_Atomic uint32_t *word, uint32_t while_equal, weft_time until);
void wf_futex_wake(_Atomic uint32_t *word, int how_many);

/* The same on a word in memory that other processes share. */
int wf_futex_wait_far(_Atomic uint32_t *word, uint32_t while_equal, weft_time until);
void wf_futex_wake_far(_Atomic uint32_t *word, int how_many);

#endif
