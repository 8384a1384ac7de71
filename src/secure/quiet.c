/* quiet.c - one line per source and minute. */
#include "secure/quiet.h"

#include <string.h>

/* Its entry; else one whose minute is over, or was never used; else NULL. */
static struct wf_quiet_source *entry_find(struct wf_quiet *q, const uint8_t source[WF_QUIET_NAME], weft_time now)
{
	struct wf_quiet_source *old = NULL;

	for (struct wf_quiet_source *s = q->sources; s < q->sources + WF_QUIET_SOURCES; s++) {
		if (s->used && memcmp(s->source, source, sizeof(s->source)) == 0)
			return s;
		if (!s->used || now - s->told >= WF_QUIET_TIME) {
			if (!old || !s->used || (old->used && s->told < old->told))
				old = s;
		}
	}
	if (old) {
		*old = (struct wf_quiet_source){ .told = now - WF_QUIET_TIME, .used = true };
		memcpy(old->source, source, sizeof(old->source));
	}
	return old;
}

bool wf_quiet_tell(struct wf_quiet *q, const uint8_t source[WF_QUIET_NAME], weft_time now, uint64_t *ret_since)
{
	struct wf_quiet_source *s = entry_find(q, source, now);

	q->all++;
	if (!s)
		return false;
	if (now - s->told < WF_QUIET_TIME) {
		s->since++;
		return false;
	}
	*ret_since = s->since;
	s->told = now;
	s->since = 0;
	q->told++;
	return true;
}
