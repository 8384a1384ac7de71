/* pmi_space.c - which launcher there is, and what is checked whichever it is. See pmi_space.h. */
#include "job/pmi_space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/shield.h"

int64_t wf_space_patience = 30 * WEFT_S;

static bool opened;             /* by wf_space_open: the number in PMI_FD may mean something else since */

static bool is_text(const char *text, size_t room, const char *more)
{
	size_t n = 0;

	for (; n < room && text[n]; n++) {
		char c = text[n];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && !strchr(more, c))
			return false;
	}
	return n > 0 && n < room;
}

static bool is_key(const char *text)
{
	return is_text(text, WF_SPACE_KEY, "._-");
}

static bool is_value(const char *text)
{
	return is_text(text, WF_SPACE_VALUE, "._-:/@+,");
}

static weft_time soon(void)
{
	return wf_now() + wf_space_patience;
}

/* @r of a back end, kept if it spoils. */
static int keep(struct wf_space *s, int r)
{
	if (r < 0 && r != -ENOENT)
		s->spoilt = r;
	return r;
}

static int check(const struct wf_space *s)
{
	if (!s->state)
		return weft_fail(-ENOTCONN, "the launcher's space is not open");
	if (s->spoilt)
		return weft_fail(s->spoilt, "the launcher's space cannot be used any more: a call before failed");
	return 0;
}

int wf_space_vet(const struct wf_space *s)
{
	size_t n = strnlen(s->job, sizeof(s->job));

	if (s->size == 0 || s->size > WF_SPACE_RANKS || s->rank >= s->size)
		return weft_fail(-EPROTO, "the launcher says that this is process %u of %u", s->rank, s->size);
	if (n == 0 || n == sizeof(s->job))
		return weft_fail(-EPROTO, "the launcher has no name for the job, or a very long one");
	for (size_t i = 0; i < n; i++)
		if (s->job[i] <= ' ' || s->job[i] > '~')
			return weft_fail(-EPROTO, "the launcher's name of the job has characters that are none");
	return 0;
}

int wf_space_open_as(enum wf_space_kind kind, struct wf_space *ret_space)
{
	struct wf_space s = { .back = NULL };
	int r;

	wf_shield();
	r = kind == WF_SPACE_PMIX ? wf_space_open_pmix(&s, soon()) : wf_space_open_pmi(&s, kind == WF_SPACE_PMI2 ? 2 : 1, soon());
	wf_unshield();
	if (r < 0)
		return r;
	*ret_space = s;
	return 1;
}

static int open_once(enum wf_space_kind kind, struct wf_space *ret_space)
{
	int r;

	if (opened)
		return weft_fail(-EALREADY, "this process has been in the launcher's space before");
	r = wf_space_open_as(kind, ret_space);
	opened = r > 0;
	return r;
}

/* PMIx before the others: where a launcher offers both, it is the one that also works when another library of this process uses it. PMI_JOBID
 * is set by those that speak PMI-2. */
int wf_space_open(struct wf_space *ret_space)
{
	if (getenv("PMIX_NAMESPACE") && getenv("PMIX_RANK")) {
		int r = open_once(WF_SPACE_PMIX, ret_space);

		if (r != -ENOSYS || !getenv("PMI_FD"))
			return r;
	}
	if (getenv("PMI_FD"))
		return open_once(getenv("PMI_JOBID") ? WF_SPACE_PMI2 : WF_SPACE_PMI1, ret_space);
	if (getenv("PMI_PORT"))
		return weft_fail(-EOPNOTSUPP, "this launcher wants to be called back (PMI_PORT); weft needs it to hand down a socket (PMI_FD)");
	return 0;
}

int wf_space_put(struct wf_space *s, const char *key, const char *value)
{
	int r = check(s);

	if (r < 0)
		return r;
	if (!key || !value || !is_key(key) || !is_value(value))
		return weft_fail(-EINVAL, "a launcher's space does not take such a key or value");
	wf_shield();
	r = keep(s, s->back->put(s->state, key, value, soon()));
	wf_unshield();
	return r;
}

int wf_space_fence(struct wf_space *s, weft_time until)
{
	int r = check(s);

	if (r < 0)
		return r;
	if (wf_past(until))
		return wf_late(until);          /* before anybody was told that we are there */
	wf_shield();
	r = keep(s, s->back->fence(s->state, until));
	wf_unshield();
	return r;
}

int wf_space_get(struct wf_space *s, uint32_t rank, const char *key, char *ret_value, size_t n)
{
	char value[WF_SPACE_VALUE];
	int r = check(s);

	if (r < 0)
		return r;
	if (rank >= s->size || !key || !is_key(key))
		return weft_fail(-EINVAL, "no process %u in the launcher's job, or no such key", rank);
	wf_shield();
	r = keep(s, s->back->get(s->state, rank, key, value, soon()));
	wf_unshield();
	if (r < 0)
		return r;
	if (!is_value(value))
		return weft_fail(-EPROTO, "the launcher gives for '%s' of process %u what cannot have been put", key, rank);
	if (strlen(value) >= n)
		return weft_fail(-ENOSPC, "'%s' of process %u is longer than %zu bytes", key, rank, n);
	memcpy(ret_value, value, strlen(value) + 1);
	return 0;
}

int wf_space_close(struct wf_space *s)
{
	int r;

	if (!s->state)
		return weft_fail(-ENOTCONN, "the launcher's space is not open");
	wf_shield();
	r = s->back->close(s->state, s->spoilt == 0, soon());
	wf_unshield();
	s->state = NULL;
	return r;
}
