/* mails.c - messages: their bytes, by which they are known again, and the ways they are sent. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mails.h"

uint64_t mail_context(uint32_t port)
{
	return port == 2 ? 77 : 0;
}

#define ALIKE UINT32_MAX         /* in tag and index: see struct mail */

static void pattern(uint8_t *mem, uint64_t len, uint32_t id)
{
	uint64_t x = id * UINT64_C(0x9e3779b97f4a7c15) + 1;
	uint64_t i = 0;

	for (; i + 8 <= len; i += 8, x += UINT64_C(0x2545f4914f6cdd1d))
		memcpy(mem + i, &x, 8);
	for (; i < len; i++)
		mem[i] = (uint8_t)(x >> 8 * (i & 7));
}

/* Whose they are, by the first 8 of them. */
static uint32_t pattern_of(const void *bytes)
{
	uint64_t x;

	memcpy(&x, bytes, 8);
	return (uint32_t)((x - 1) * UINT64_C(0xf1de83e19937733d));
}

bool mail_holds(const uint8_t *mem, uint64_t len, uint32_t id)
{
	uint64_t x = id * UINT64_C(0x9e3779b97f4a7c15) + 1;
	uint64_t i = 0, y;

	for (; i + 8 <= len; i += 8, x += UINT64_C(0x2545f4914f6cdd1d)) {
		memcpy(&y, mem + i, 8);
		if (x != y)
			return false;
	}
	for (; i < len; i++)
		if (mem[i] != (uint8_t)(x >> 8 * (i & 7)))
			return false;
	return true;
}

/* Memory nobody may write to any more: looked at when the world ends. */
void mail_shut(struct world *w, uint8_t *mem, uint64_t len)
{
	memset(mem, 0xdd, len);
	if (w->nshut == sizeof(w->shut) / sizeof(w->shut[0]))
		abort();
	w->shut[w->nshut].mem = mem;
	w->shut[w->nshut++].len = len;
}

uint8_t *mail_memory(uint64_t len)
{
	uint8_t *mem = malloc(len ? len : 1);

	if (!mem)
		abort();
	return mem;
}

/* The one that is send @number of @from to @to; ALIKE: none. */
static uint32_t id_of(const struct world *w, uint32_t from, uint32_t to, uint64_t number)
{
	for (uint32_t i = 0; i < w->nmails; i++)
		if (w->mail[i]->alike && w->mail[i]->from_proc == from && w->mail[i]->to_proc == to && (w->mail[i]->number == number || w->mail[i]->s.number == number))
			return i;
	return ALIKE;
}

struct mail *mail_of(struct proc *p, uint32_t other, const struct wf_rmsg *m)
{
	struct world *w = p->w;
	bool alike = (uint32_t)m->tag == ALIKE && m->len >= 8;
	uint32_t id = !alike ? (uint32_t)m->tag : m->send ? id_of(w, other, p->number, m->send) : pattern_of(m->payload), index = alike ? ALIKE : id * 3, head = alike ? 0 : id % 5;
	struct mail *mail = id < w->nmails ? w->mail[id] : NULL;

	if (!mail || mail->alike != alike || mail->from_proc != other || mail->to_proc != p->number || mail->to_port != m->to || mail->from_port != m->from ||
	    mail->len != m->len || m->tag >> 32 != mail->class || m->index != index || m->context != mail_context(m->to) ||
	    m->head_len != head || (m->head_len && memcmp(m->head, "head", m->head_len))) {
		sim_fail(w, "process %u: a header from %u that nobody sent (message %u)", p->number, other, id);
		return NULL;
	}
	if (alike && w->conf.dull)
		sim_answer_alike(p, other);
	return mail;
}

/* By the short way, which knows short messages of one kind. */
static bool sent_briskly(struct proc *p, uint32_t to, const struct mail *m, struct world *w)
{
	const struct wf_rsend *s = &m->s;
	struct wf_brisk b = { .to = s->to, .from = s->from, .index = s->index, .tag = s->tag, .context = s->context, .payload = m->mem, .len = s->len };

	if (s->prio || s->head_len || s->flags & ~WF_SEND_NOW || s->len > WF_INLINE_MOST)
		return false;
	switch (sim_random(w, 4)) {
	case 0:
		return false;
	case 1:
	case 2:
		if (shell_brisk(p, to, &b))
			return true;
	}
	return wf_remote_brisk(p->remote[to], &b);
}

/* The same for one with a body. */
static bool body_sent_briskly(struct proc *p, uint32_t to, struct mail *m, struct world *w)
{
	const struct wf_rsend *s = &m->s;

	return !s->prio && !s->head_len && !s->flags && s->len > WF_INLINE_MOST && sim_random(w, 2) && shell_body(p, to, &m->s);
}

/* One that is about to be sent; NULL: there are enough. */
static struct mail *mail_new(struct proc *p, uint32_t port, uint32_t to, uint32_t to_port, uint64_t len, int flags, int prio, uint32_t class)
{
	struct world *w = p->w;
	struct mail *m, **last = &w->channel_last[p->number][port][to][to_port][prio + 4];

	if (w->nmails == SIM_MAILS || p->dead)
		return NULL;
	m = calloc(1, sizeof(*m));
	if (!m)
		abort();
	*m = (struct mail){ .id = w->nmails, .from_proc = p->number, .from_port = port, .to_proc = to, .to_port = to_port, .class = class,
			    .prio = (int8_t)prio, .len = len, .mem = mail_memory(len) };
	w->mail[w->nmails++] = m;
	pattern(m->mem, len, m->id);
	m->s = (struct wf_rsend){ .to = to_port, .from = port, .index = m->id * 3, .flags = (uint16_t)flags, .prio = (int8_t)prio,
				  .tag = (uint64_t)class << 32 | m->id, .context = mail_context(to_port), .len = len, .head = "head",
				  .head_len = m->id % 5, .user = m };
	/* In its channel before the call: it may arrive in it. */
	if (*last)
		(*last)->later = m;
	else
		w->channel[p->number][port][to][to_port][prio + 4] = m;
	*last = m;
	m->accepted = true;
	return m;
}

/* It was sent, and this is what the call answered. */
static void mail_sent(struct proc *p, uint32_t to, struct mail *m, int rc)
{
	struct world *w = p->w;

	sim_note(w, 0x50000 + (uint64_t)(rc + 1000));
	if (!rc && p->remote[to]->err)
		sim_fail(w, "a send was accepted after the session's end");
	if (rc == WEFT_DONE || rc < 0) {
		m->ended = true;
		m->err = rc < 0 ? rc : 0;
		m->dropped = rc < 0;
		mail_shut(w, m->mem, m->len);
		m->mem = NULL;
	}
	if (rc < 0 && !p->remote[to]->err && !(rc == -EAGAIN && m->s.flags & WF_SEND_NOW) && !p->remote[to]->closing)
		sim_fail(w, "send %u refused with %d", m->id, rc);
}

/* Only by the short ways, where it is known at once by what number it goes; else it is like any. */
void mail_alike(struct proc *p, uint32_t to, uint64_t len)
{
	struct mail *m = mail_new(p, 1, to, 1, len, 0, 0, 0);
	struct world *w = p->w;
	struct wf_rsend any;
	int rc = WEFT_DONE;

	if (!m)
		return;
	any = m->s;
	m->alike = true;
	m->s.index = ALIKE;
	m->s.tag = ALIKE;
	m->s.head_len = 0;
	if (body_sent_briskly(p, to, m, w)) {
		m->number = m->s.number;
		rc = 0;
	} else if (!sent_briskly(p, to, m, w)) {
		m->alike = false;
		m->s = any;
		rc = wf_remote_send(p->remote[to], &m->s, w->now);
	}
	mail_sent(p, to, m, rc);
	shell_after(p, to);
}

void mail_row(struct proc *p, uint32_t port, uint32_t to, uint32_t to_port, uint64_t len, uint32_t count, uint32_t class)
{
	struct mail *m;

	while (count-- && (m = mail_new(p, port, to, to_port, len, 0, 0, class)) != NULL) {
		const struct wf_rsend *s = &m->s;

		m->alike = wf_remote_brisk(p->remote[to], &(struct wf_brisk){ .to = s->to, .from = s->from, .index = ALIKE, .tag = (uint64_t)class << 32 | ALIKE, .context = s->context,
									      .payload = m->mem, .len = len });
		mail_sent(p, to, m, m->alike ? WEFT_DONE : wf_remote_send(p->remote[to], &m->s, p->w->now));
	}
	shell_after(p, to);
}

struct mail *mail_send(struct proc *p, uint32_t port, uint32_t to, uint32_t to_port, uint64_t len, int flags, int prio, uint32_t class)
{
	struct mail *m = mail_new(p, port, to, to_port, len, flags, prio, class);
	struct world *w = p->w;

	if (!m)
		return NULL;
	mail_sent(p, to, m, sent_briskly(p, to, m, w) ? WEFT_DONE : body_sent_briskly(p, to, m, w) ? 0 : wf_remote_send(p->remote[to], &m->s, w->now));
	shell_after(p, to);
	return m;
}
