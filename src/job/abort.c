/* abort.c - ending the whole job from inside: the agent is told and kills; without one it is this process that ends.
 *
 * No lock is waited for beyond its time: who calls may be the last that still moves.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>
#include <weft/job.h>

#include "base/clock.h"
#include "base/life.h"
#include "job/frames.h"
#include "job/link.h"
#include "port/table.h"

#define PATIENCE WEFT_S         /* for the agent to take the word and act */

/* What the agent would have printed. */
static void say(int code, const char *why)
{
	char line[WF_ABORT_WORDS + 80];
	int n = snprintf(line, sizeof(line), "weft: rank %u ended the job with %d%s%.*s\n", (unsigned)(wf_process_id >> 32) - 1, code,
			 *why ? ": " : "", WF_ABORT_WORDS, why);

	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;         /* nobody is left to be told of that */
}

int weft_job_abort(int code, const char *why)
{
	static _Atomic bool begun;
	weft_time until = weft_in(PATIENCE);
	int state;

	if (atomic_load_explicit(&wf_life, memory_order_acquire) != WF_IN)
		return wf_not_in();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	while (atomic_exchange_explicit(&begun, true, memory_order_relaxed))
		wf_nap(WEFT_S);         /* another thread does it; none comes back from there */
	code = wf_abort_code(code);
	if (wf_link_abort(code, why ? why : "", until) < 0)
		say(code, why ? why : "");
	else
		while (!wf_past(until))
			wf_nap(10 * WEFT_MS);
	_exit(code);
}
