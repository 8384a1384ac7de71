/* refusal.c - a refused handshake in words: what is wrong, and what both ends are where they differ. */
#include <errno.h>
#include <weft/base.h>

#include "secure/handshake.h"

int wf_handshake_fail(const struct wf_handshake *h)
{
	static const char *const modes[] = { "?", "full", "auth", "sum" };
	const char *other = h->other_mode <= WF_MODE_SUM ? modes[h->other_mode] : "?";

	switch (h->refusal) {
	case WF_REFUSED_NOT:
		return 0;
	case WF_REFUSED_VERSION:
		return weft_fail(-EPROTO, "the other end speaks versions %u to %u of the wire, this weft %u to %u", h->other_oldest, h->other_newest,
				 h->me->oldest, h->me->newest);
	case WF_REFUSED_FEATURE:
		return weft_fail(-EPROTO, "a feature one end requires is not known to the other");
	case WF_REFUSED_MODE:
		return weft_fail(-EACCES, "the other end is set to secure=%s, this one to secure=%s", other, modes[h->me->mode]);
	case WF_REFUSED_AEAD:
		return weft_fail(-EACCES, "the two ends have no cipher in common");
	case WF_REFUSED_SELF:
		return weft_fail(-EACCES, "the other end has this process's own number or incarnation");
	case WF_REFUSED_PROCESS:
		return weft_fail(-ESRCH, "another process answers there than process %u", h->claim.wanted.process);
	case WF_REFUSED_SESSION:
		return weft_fail(-ESTALE, "the session is not known to the other end");
	case WF_REFUSED_LANE:
		return weft_fail(-EEXIST, "the other end has incarnation %llu of that lane", (unsigned long long)h->detail);
	case WF_REFUSED_DEAD:
		return weft_fail(-ECONNRESET, "one end is dead for the other");
	case WF_REFUSED_LATER:
		return weft_fail(-EAGAIN, "the other end takes no lanes now");
	case WF_REFUSED_MAGIC:
		return weft_fail(-EPROTO, "the other end does not speak weft");
	case WF_REFUSED_KEY:
		return weft_fail(-EACCES, "the other end has another job key");
	case WF_REFUSED_JOB:
		return weft_fail(-EACCES, "the other end is of another job");
	case WF_REFUSED_FORGED:
		return weft_fail(-EACCES, "a frame was changed, replayed, or made without the job key");
	case WF_REFUSED_NONSENSE:
		return weft_fail(-EPROTO, "the other end says what this version does not");
	case WF_REFUSED_BROKEN:
		return weft_last_error()[0] ? -EIO : weft_fail(-EIO, "no randomness or no cryptography");
	}
	return weft_fail(-EACCES, "refused by the other end for reason %d", (int)h->refusal);
}
