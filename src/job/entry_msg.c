/* entry_msg.c - see entry_msg.h. */
#include "job/entry_msg.h"

#include <string.h>

#include "job/body.h"

#define VERSION 1u
#define ERRNO_MOST 4095u

enum { ENDS = 1 };              /* flags of a call */
enum { REST = 1 };              /* of an answer */

size_t wf_entry_call_write(const struct wf_entry_call *c, void *ret, size_t room)
{
	struct wf_body b = { .bytes = ret, .n = room };

	wf_body_u32(&b, VERSION);
	wf_body_u32(&b, c->ends ? ENDS : 0);
	wf_body_u32(&b, c->count);
	wf_body_text(&b, c->name);
	wf_body_text(&b, c->attrs);
	wf_body_u32(&b, (uint32_t)c->len);
	wf_body_bytes(&b, c->arg, c->len);
	return b.bad ? 0 : b.at;
}

bool wf_entry_call_read(const void *bytes, size_t n, struct wf_entry_call *ret)
{
	struct wf_body b = { .bytes = (uint8_t *)(uintptr_t)bytes, .n = n };
	uint32_t version = wf_body_get32(&b), flags = wf_body_get32(&b);

	ret->count = wf_body_get32(&b);
	ret->name = wf_body_get_text(&b);
	ret->attrs = wf_body_get_text(&b);
	ret->len = wf_body_get32(&b);
	if (b.bad || version != VERSION || flags & ~(uint32_t)ENDS || !ret->count || ret->count > WF_ENTRY_COUNT)
		return false;
	if (!ret->name || !wf_dir_is_name(ret->name, strlen(ret->name)) || ret->len > WF_ENTRY_ARG)
		return false;
	if (ret->attrs && strlen(ret->attrs) > WF_DIR_ALL)
		return false;
	ret->ends = flags & ENDS;
	ret->arg = wf_body_get_bytes(&b, ret->len);
	return wf_body_whole(&b);
}

size_t wf_entry_answer_write(const struct wf_entry_answer *a, void *ret, size_t room)
{
	struct wf_body b = { .bytes = ret, .n = room };
	char words[WF_ENTRY_WORDS + 1] = "";

	if (a->words)
		strncpy(words, a->words, WF_ENTRY_WORDS);
	wf_body_u32(&b, (uint32_t)a->id);
	wf_body_u32(&b, (uint32_t)(a->id >> 32));
	wf_body_u32(&b, (uint32_t)-a->err);
	wf_body_u32(&b, a->rest ? REST : 0);
	wf_body_text(&b, words);
	return b.bad ? 0 : b.at;
}

bool wf_entry_answer_read(const void *bytes, size_t n, struct wf_entry_answer *ret)
{
	struct wf_body b = { .bytes = (uint8_t *)(uintptr_t)bytes, .n = n };
	uint32_t err, flags;

	ret->id = wf_body_get32(&b);
	ret->id |= (weft_id)wf_body_get32(&b) << 32;
	err = wf_body_get32(&b);
	flags = wf_body_get32(&b);
	ret->words = wf_body_get_text(&b);
	if (!wf_body_whole(&b) || !ret->words || strlen(ret->words) > WF_ENTRY_WORDS || err > ERRNO_MOST || flags & ~(uint32_t)REST)
		return false;
	ret->err = -(int)err;
	ret->rest = flags & REST;
	/* An id, or an error: one of the two. */
	return (ret->id != 0) == (err == 0) && !(ret->id && ret->rest);
}
