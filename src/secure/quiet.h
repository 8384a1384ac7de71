/* quiet.h - how often weft complains of one source.
 *
 * A port that listens meets scans, wrong keys and worse, as often as somebody likes. One line per source and minute
 * is told, what comes in between is counted and said with the next line. The memory is fixed: 64 sources a minute are
 * remembered, so whoever invents sources gets 64 lines a minute at most, and the rest is counted. No clock in here,
 * and no lock: the caller brings the time, and one thread at a time.
 */
#ifndef WF_SECURE_QUIET_H
#define WF_SECURE_QUIET_H

#include <stdbool.h>
#include <stdint.h>
#include <weft/base.h>

#define WF_QUIET_SOURCES 64
#define WF_QUIET_TIME (60 * WEFT_S)
#define WF_QUIET_NAME 24                /* bytes of an address; of a longer one the first */

struct wf_quiet {
	struct wf_quiet_source {
		uint8_t source[WF_QUIET_NAME];
		weft_time told;         /* when its last line was written */
		uint64_t since;         /* how many were not, from then on */
		bool used;
	} sources[WF_QUIET_SOURCES];
	uint64_t all, told;             /* counted, and told */
};

/* Zeroed memory is an empty one.
 * One more from @source (an address, padded with zeros). True: write a line now, and say in it that @ret_since of this source were not told. */
bool wf_quiet_tell(struct wf_quiet *q, const uint8_t source[WF_QUIET_NAME], weft_time now, uint64_t *ret_since);

#endif
