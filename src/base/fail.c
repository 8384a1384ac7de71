/* fail.c - the words for a thread's last failing call. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <weft/base.h>

static _Thread_local char words[192];

int weft_fail(int err, const char *fmt, ...)
{
	va_list args;

	if (!fmt) {
		words[0] = 0;
		return err;
	}
	va_start(args, fmt);
	vsnprintf(words, sizeof(words), fmt, args);
	va_end(args);
	return err;
}

const char *weft_last_error(void)
{
	return words;
}

const char *weft_strerror(int err)
{
	static const struct {
		int err;
		const char *text;
	} ours[] = {
		{ 0, "success" },
		{ -ESRCH, "no such id, or it is gone" },
		{ -ECONNRESET, "the peer or its port ended under the operation" },
		{ -EHOSTUNREACH, "the peer lives as far as known, but no rail reaches it" },
		{ -ETIMEDOUT, "the deadline came first" },
		{ -ECANCELED, "cancelled: it did not and will not happen" },
		{ -EACCES, "key or permission refused" },
		{ -EMSGSIZE, "the message is longer than the receive" },
		{ -ENOBUFS, "too large: it will never fit" },
		{ -EBUSY, "in flight, or held by another" },
		{ -EBADMSG, "the pieces do not mirror each other" },
		{ -EAGAIN, "not now, nothing happened: try later" },
		{ -EOPNOTSUPP, "not served by this version of weft" },
		{ -ENOTCONN, "not joined" },
		{ -ECHILD, "weft does not work in a forked child" },
		{ -EDEADLK, "would wait inside a callback" },
		{ -EALREADY, "that has happened already" },
		{ -EPROTO, "the two ports speak different protocols" },
		{ -ESTALE, "that context was closed here before" },
		{ -E2BIG, "options of a newer weft" },
	};

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		if (ours[i].err == err)
			return ours[i].text;
	return err > 0 ? "not an error" : strerror(-err);
}
