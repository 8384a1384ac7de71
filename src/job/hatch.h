/* hatch.h - starts the agent of this host from inside a program that a launcher has started. */
#ifndef WF_JOB_HATCH_H
#define WF_JOB_HATCH_H

/* [one thread] Starts `weft agent --pact`. *@ret_sock: what it is spoken with through (birth.h); the caller's to close. The agent is no child of this process: nobody here is told of its
 * end, or has to wait for it. 0; -ENOENT: there is no weft command; that it could not be executed is the first thing the socket says. */
int wf_hatch(int *ret_sock);

#endif
