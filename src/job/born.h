/* born.h - processes that a launcher of the site has started (mpiexec, mpirun, srun) become a job. */
#ifndef WF_JOB_BORN_H
#define WF_JOB_BORN_H

#include <stdint.h>

/* [one thread] 1: there is a launcher, and this process has a seat at the agent of its host, as after wf_link_visit: it is number *@ret_process, one of *@ret_count above *@ret_base. 0: there is none, it has started
 * this process alone, or WEFT_PMI=off. Negative: there is one, and the words say why it does not become a job; -ETIMEDOUT: somebody has not come. */
int wf_born(uint32_t *ret_process, uint32_t *ret_base, uint32_t *ret_count);

#endif
