/* grow.c - see grow.h. */
#include "grow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"

#define NEWS_ROOM (32 + 4 * HOSTLIST_HOSTS + CONTROL_LINE_ROOM)

static void refuse(struct agent *a, struct place *by, uint32_t name, int err, const char *words)
{
	uint8_t room[NEWS_ROOM];
	struct wf_body b = { .bytes = room, .n = sizeof(room) };

	wf_body_u32(&b, name);
	wf_body_u32(&b, (uint32_t)err);
	wf_body_u32(&b, 0);
	wf_body_text(&b, words);
	news_letter(a, by, WF_NOTE_GROW, room, b.at);
}

/* 0; or why these cannot be asked for, in words: from a job without such a launcher, too, one hears first that it is no list. */
static int judge(const struct agent *a, const char *hosts, char *words, size_t n)
{
	struct hostlist list;
	int r = hostlist_commas(hosts, &list, words, n);

	if (r < 0)
		return r;
	hostlist_free(&list);
	if (!a->run->meshed || a->run->hosted) {
		snprintf(words, n, "hosts can join only a job that weft run has started on several with one command (--hosts, --hostfile)");
		return -EOPNOTSUPP;
	}
	if (a->phase != WORKING) {
		snprintf(words, n, "the job is ending");
		return -ESHUTDOWN;
	}
	return 0;
}

static int ask(struct agent *a, const struct place *by, const struct wf_frame_grow *f)
{
	struct wf_body b = { .bytes = malloc(32 + WF_GROW_TEXT), .n = 32 + WF_GROW_TEXT };
	int r = -ENOMEM;

	if (!b.bytes)
		return r;
	wf_body_u32(&b, by->number);
	wf_body_u32(&b, f->name);
	wf_body_u32(&b, f->ms);
	wf_body_text(&b, f->hosts);
	r = control_send(a->control, CONTROL_GROW, b.bytes, b.at);
	free(b.bytes);
	return r;
}

void grow_asked(struct agent *a, struct place *by, const struct wf_frame_grow *f, size_t n)
{
	char words[256];
	int r;

	if (f->hosts[n - 1] || strlen(f->hosts) != n - 1 || f->reserved) {
		death_nonsense(a, by, "what is no list of hosts");
		return;
	}
	r = judge(a, f->hosts, words, sizeof(words));
	if (r == 0) {
		r = ask(a, by, f);
		snprintf(words, sizeof(words), "the launcher cannot be asked: %s", strerror(-r));
	}
	if (r < 0)
		refuse(a, by, f->name, r == -EAGAIN ? -EHOSTUNREACH : r, words);
}

/* To who has asked, as it came, but for his own number. */
void grow_told(struct agent *a, struct wf_body *b)
{
	uint32_t process = wf_body_get32(b);

	if (!b->bad && process < WF_AGENTS && a->numbered[process])
		news_letter(a, a->numbered[process], WF_NOTE_GROW, b->bytes + b->at, b->n - b->at);
}
