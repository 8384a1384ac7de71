/* envoy.c - see envoy.h. */
#include "job/envoy.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "job/body.h"

enum { ROUTE = 1, ERROR = 2, NUMBER = 4, PROCESS = 8, ID = 16, JOB = 32, TREATY = 64, TEXT = 128, IDS = 256 };

static const unsigned fields[WF_ENVOY_KINDS] = {
	[WF_ENVOY_OFFER] = ROUTE | TEXT,
	[WF_ENVOY_ATTACH] = ROUTE | TEXT,
	[WF_ENVOY_ANSWER] = ROUTE | ERROR | NUMBER | TEXT,
	[WF_ENVOY_KNOCK] = NUMBER | PROCESS | JOB | TEXT,
	[WF_ENVOY_WELCOME] = PROCESS | JOB | TREATY,
	[WF_ENVOY_REFUSED] = ERROR | TEXT,
	[WF_ENVOY_WHERE] = ROUTE | PROCESS,
	[WF_ENVOY_AT] = ROUTE | ERROR | PROCESS | TEXT,
	[WF_ENVOY_FIND] = ROUTE | NUMBER | TEXT,
	[WF_ENVOY_FOUND] = ROUTE | ERROR | NUMBER | IDS,
	[WF_ENVOY_GET] = ROUTE | ID | TEXT,
	[WF_ENVOY_GOT] = ROUTE | ERROR | ID | TEXT,
};

static void get_bytes(struct wf_body *b, uint8_t *ret, size_t n)
{
	const void *at = wf_body_get_bytes(b, n);

	if (at)
		memcpy(ret, at, n);
}

static uint64_t get64(struct wf_body *b)
{
	uint64_t low = wf_body_get32(b);

	return low | (uint64_t)wf_body_get32(b) << 32;
}

static void read_fields(struct wf_body *b, unsigned has, struct wf_envoy *e)
{
	if (has & ROUTE) {
		e->route.host = wf_body_get32(b);
		e->route.process = wf_body_get32(b);
		e->route.ticket = wf_body_get32(b);
	}
	if (has & ERROR)
		e->error = (int32_t)wf_body_get32(b);
	if (has & NUMBER)
		e->number = wf_body_get32(b);
	if (has & PROCESS)
		e->process = wf_body_get32(b);
	if (has & ID)
		e->id = get64(b);
	if (has & JOB)
		get_bytes(b, e->job, sizeof(e->job));
	if (has & TREATY)
		get_bytes(b, e->treaty, sizeof(e->treaty));
	if (has & TEXT)
		e->text = wf_body_get_text(b);
	if (has & IDS) {
		e->count = wf_body_get32(b);
		e->ids = e->count <= WF_ENVOY_IDS ? wf_body_get_bytes(b, (size_t)e->count * 8) : NULL;
	}
}

static bool is_sound(const struct wf_envoy *e, unsigned has)
{
	if ((has & ERROR) && (e->error > 0 || e->error < -4095))
		return false;
	if ((has & TEXT) && (!e->text || strlen(e->text) >= WF_ENVOY_TEXT))
		return false;
	return !(has & IDS) || e->ids;
}

int wf_envoy_read(const void *bytes, size_t n, struct wf_envoy *ret_envoy)
{
	struct wf_body b = { .bytes = (uint8_t *)(uintptr_t)bytes, .n = n };
	struct wf_envoy e = { .error = 0 };
	uint32_t kind;

	if (n > WF_ENVOY_BYTES)
		return -EBADMSG;
	kind = wf_body_get32(&b);
	if (b.bad || kind == 0 || kind >= WF_ENVOY_KINDS)
		return -EBADMSG;
	e.kind = (enum wf_envoy_kind)kind;
	read_fields(&b, fields[kind], &e);
	if (!wf_body_whole(&b) || !is_sound(&e, fields[kind]))
		return -EBADMSG;
	*ret_envoy = e;
	return 0;
}

static void write_fields(struct wf_body *b, unsigned has, const struct wf_envoy *e)
{
	if (has & ROUTE) {
		wf_body_u32(b, e->route.host);
		wf_body_u32(b, e->route.process);
		wf_body_u32(b, e->route.ticket);
	}
	if (has & ERROR)
		wf_body_u32(b, (uint32_t)e->error);
	if (has & NUMBER)
		wf_body_u32(b, e->number);
	if (has & PROCESS)
		wf_body_u32(b, e->process);
	if (has & ID) {
		wf_body_u32(b, (uint32_t)e->id);
		wf_body_u32(b, (uint32_t)(e->id >> 32));
	}
	if (has & JOB)
		wf_body_bytes(b, e->job, sizeof(e->job));
	if (has & TREATY)
		wf_body_bytes(b, e->treaty, sizeof(e->treaty));
	if (has & TEXT)
		wf_body_text(b, e->text ? e->text : "");
	if (has & IDS) {
		wf_body_u32(b, e->count);
		wf_body_bytes(b, e->ids, (size_t)e->count * 8);
	}
}

size_t wf_envoy_write(const struct wf_envoy *envoy, void *room, size_t n)
{
	struct wf_body b = { .bytes = room, .n = n < WF_ENVOY_BYTES ? n : WF_ENVOY_BYTES };

	if ((envoy->text && strlen(envoy->text) >= WF_ENVOY_TEXT) || envoy->count > WF_ENVOY_IDS)
		return 0;
	wf_body_u32(&b, envoy->kind);
	write_fields(&b, fields[envoy->kind], envoy);
	return b.bad ? 0 : b.at;
}

uint64_t wf_envoy_id(const struct wf_envoy *envoy, uint32_t index)
{
	return wf_get64(envoy->ids + 8 * (size_t)index);
}
