/* step.h - points between which a test may switch, stop or kill a thread.
 *
 * In a normal build wf_step() is nothing. A test that defines WF_STEP_TEST compiles the lock-free
 * parts anew; wf_step() then calls its scheduler, which runs one thread at a time and decides by a
 * seed who goes on (tests/unit/test_steps.c).
 */
#ifndef WF_BASE_STEP_H
#define WF_BASE_STEP_H

#ifdef WF_STEP_TEST
void wf_step(const char *where);
#else
#define wf_step(where) ((void)0)
#endif

#endif
