/* id.c - what an id says by itself. Text form: job.process.generation.local, decimal. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/id.h>

#include "net/local/peer.h"
#include "port/route.h"
#include "port/self.h"
#include "port/table.h"
#include "port/way.h"

struct weft_id_parts weft_id_split(weft_id id)
{
	return (struct weft_id_parts){ .job = (uint32_t)(id >> 52),
				       .process = (uint32_t)(id >> 32) & 0xfffff,
				       .generation = (uint32_t)(id >> 20) & 0xfff,
				       .local = (uint32_t)id & 0xfffff };
}

char *weft_id_print(weft_id id, char *text, size_t n)
{
	struct weft_id_parts p = weft_id_split(id);

	if (text && n)
		snprintf(text, n, "%" PRIu32 ".%" PRIu32 ".%" PRIu32 ".%" PRIu32, p.job, p.process, p.generation, p.local);
	return text;
}

/* A number without sign, space or leading zeros, below @limit; *text moves behind it. */
static int number(const char **text, uint32_t limit, uint32_t *ret)
{
	const char *c = *text;
	uint64_t v = 0;

	if (*c < '0' || *c > '9' || (*c == '0' && c[1] >= '0' && c[1] <= '9'))
		return -EINVAL;
	for (; *c >= '0' && *c <= '9'; c++) {
		v = v * 10 + (uint64_t)(*c - '0');
		if (v >= limit)
			return -EINVAL;
	}
	*text = c;
	*ret = (uint32_t)v;
	return 0;
}

int weft_id_parse(const char *text, weft_id *ret_id)
{
	static const uint32_t limit[4] = { 1u << 12, 1u << 20, 1u << 12, 1u << 20 };
	uint32_t part[4];

	if (!text)
		return weft_fail(-EINVAL, "text is NULL");
	for (int i = 0; i < 4; i++) {
		if ((i && *text++ != '.') || number(&text, limit[i], &part[i]) < 0)
			return weft_fail(-EINVAL, "an id is four numbers: job.process.generation.local");
	}
	if (*text)
		return weft_fail(-EINVAL, "something follows the id");
	if (ret_id)
		*ret_id = (weft_id)part[0] << 52 | (weft_id)part[1] << 32 | (weft_id)part[2] << 20 | part[3];
	return 0;
}

int wf_id_fail(int err, weft_id id)
{
	uint32_t process = weft_id_split(id).process;
	bool far = id >> 32 != wf_process_id >> 32;
	char text[64];

	weft_id_print(id, text, sizeof(text));
	switch (err) {
	case -ESRCH:
	case -ECONNRESET:
		if (id >> 52)
			return weft_fail(err, "%s: nobody of that id is there, or its job is not attached", text);
		if (far && !wf_peer_at(process))
			return weft_fail(err, "%s: the job has no process %u", text, process);
		if (far && wf_peer_died(process))
			return weft_fail(err, "%s: process %u is gone", text, process);
		if (far ? wf_far_lives(id) : wf_id_lives(id))
			return weft_fail(err, "%s: its port was closed", text);
		return weft_fail(err, "%s: nobody of that id is there", text);
	case -EPROTO:
		return weft_fail(err, "%s: the port there speaks another protocol", text);
	case -ENOMEM:
		return far ? weft_fail(err, "%s: process %u has no memory for a mailbox from here", text, process) : err;
	default:
		return err;
	}
}

int weft_id_distance(weft_id id)
{
	if (wf_self.id && id == wf_self.id)
		return 0;
	if (wf_process_id && id >> 32 == wf_process_id >> 32)
		return 1;
	if (wf_abroad(id))
		return 3;
	return id && !(id >> 52) && wf_peer_at((uint32_t)(id >> 32)) ? 2 : 3;
}
