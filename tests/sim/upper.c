/* upper.c - what stands for the ports: receives, arrivals, and what is true of every message.
 *
 * A receive wants a source process or any, and a class of tags or any. A match is checked against all messages there are: none of the same
 * channel (source port, destination port, priority) that was sent earlier, fits the same receive and may still come is passed over; none is
 * matched twice; the bytes are right.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mails.h"

/* What a SEEK carries. */
struct want {
	int32_t proc, class;
};

static bool fits(int want_proc, int want_class, const struct mail *m)
{
	return (want_proc < 0 || (uint32_t)want_proc == m->from_proc) && (want_class < 0 || (uint32_t)want_class == m->class);
}

/* ---- memory ---- */

static int pieces(uint8_t *mem, uint64_t len, uint64_t at, struct iovec *iov, int max)
{
	/* Two pieces, cut at an odd place, so that more than one is met. */
	uint64_t half = len / 3;

	if (at < half && max > 1) {
		iov[0] = (struct iovec){ mem + at, (size_t)(half - at) };
		iov[1] = (struct iovec){ mem + half, (size_t)(len - half) };
		return 2;
	}
	iov[0] = (struct iovec){ mem + at, (size_t)(len - at) };
	return 1;
}

static int send_pieces(const struct wf_rsend *s, uint64_t at, struct iovec *iov, int max)
{
	const struct mail *m = s->user;

	return pieces(m->mem, m->len, at, iov, max);
}

static int land_pieces(const struct wf_landing *l, uint64_t at, struct iovec *iov, int max)
{
	return pieces(l->user, l->len, at, iov, max);
}

static bool fits_want(const struct wf_rsend *s, const void *want, size_t len)
{
	struct want w;

	if (len != sizeof(w))
		return false;
	memcpy(&w, want, sizeof(w));
	return fits(w.proc, w.class, s->user);
}

const struct wf_remote_ops upper_ops = { send_pieces, land_pieces, fits_want };

/* ---- what is true of messages ---- */

static void check_match(struct world *w, struct post *post, struct mail *m)
{
	struct mail *e = w->channel[m->from_proc][m->from_port][m->to_proc][m->to_port][m->prio + 4];

	sim_note(w, 0x10000 + m->id);
	if (m->matched)
		sim_fail(w, "message %u came twice", m->id);
	if (m->dropped)
		sim_fail(w, "message %u was received after it had been taken back", m->id);
	for (; e != m; e = e->later)
		if (!e->matched && !e->dropped && !e->lost && fits(post->want_proc, post->want_class, e))
			sim_fail(w, "message %u overtook %u (%lu bytes, flags %u, state %u%s%s)", m->id, e->id, (unsigned long)e->len, e->s.flags,
				 e->s.state, e->cancel_asked ? ", to be taken back" : "", e->ended ? ", ended" : "");
	m->matched = true;
}

/* What @post gets of its message. */
static uint64_t bytes_of(const struct post *post)
{
	return post->mail->len < post->cap ? post->mail->len : post->cap;
}

/* Nothing writes into the memory that was told ahead any more. */
static void invite_closed(struct post *post)
{
	post->invite_closing = false;
	mail_shut(post->p->w, post->invite_buf, post->cap);
	post->invite_buf = NULL;
}

/* The receive is matched otherwise, or over: whatever comes for its invitation is dropped. */
static void uninvite(struct post *post)
{
	if (!post->invite_open)
		return;
	post->invite_open = false;
	if (wf_landing_close(post->p->remote[post->want_proc], &post->invite, 0))
		post->invite_closing = true;
	else
		invite_closed(post);
}

static void post_matches(struct post *post, struct mail *m)
{
	check_match(post->p->w, post, m);
	post->mail = m;
	uninvite(post);
	post->buf = mail_memory(bytes_of(post));
}

/* Does it wait for one process alone? */
static bool named(const struct post *post)
{
	return post->want_proc >= 0 && (uint32_t)post->want_proc != post->p->number;
}

static void post_over(struct post *post, int err)
{
	struct world *w = post->p->w;

	if (post->over)
		sim_fail(w, "a receive ended twice");
	post->over = true;
	uninvite(post);
	if (named(post))
		wf_remote_care(post->p->remote[post->want_proc], -1);
	post->err = err;
	if (post->mail && !err) {
		if (!mail_holds(post->buf, bytes_of(post), post->mail->id))
			sim_fail(w, "message %u has wrong bytes", post->mail->id);
		if (w->conf.answers && post->mail->len > w->conf.eager && !w->draining)
			sim_answer(post->p, post->mail->from_proc);
	}
	if (post->mail && err)
		post->mail->lost = true;
	sim_note(w, 0x20000 + (uint64_t)-err);
	if (post->buf)
		mail_shut(w, post->buf, bytes_of(post));
	post->buf = NULL;
}

/* ---- arrivals ---- */

/* A port that holds a quarter of the window is told about, until it holds an eighth. */
static void tell_clog(struct proc *p, uint32_t other, uint32_t port, uint64_t bytes)
{
	bool on = bytes > p->w->conf.window / (p->clogged[other][port] ? 8 : 4);

	if (on == p->clogged[other][port])
		return;
	p->clogged[other][port] = on;
	wf_remote_clog(p->remote[other], port, mail_context(port), on);
}

static void unexpected(struct arrival *a, int sign)
{
	struct proc *p = a->p;
	uint32_t other = a->mail->from_proc;

	if (a->kind == ANNOUNCED) {
		p->announcements[other] += (uint32_t)sign;
		if (p->announcements[other] > p->announcements_most)
			p->announcements_most = p->announcements[other];
		if (p->announcements[other] > p->w->conf.cap + SIM_PORTS * 2)
			sim_fail(p->w, "process %u holds %u announcements of %u", p->number, p->announcements[other], other);
		return;
	}
	p->unexpected[other] += sign > 0 ? a->cost : -a->cost;
	p->port_bytes[other][a->port] += sign > 0 ? a->cost : -a->cost;
	tell_clog(p, other, a->port, p->port_bytes[other][a->port]);
	if (p->unexpected[other] > p->unexpected_most)
		p->unexpected_most = p->unexpected[other];
	if (p->unexpected[other] > p->w->conf.window)
		sim_fail(p->w, "process %u holds %lu bytes of %u unasked", p->number, (unsigned long)p->unexpected[other], other);
	if (sign < 0)
		wf_remote_freed(a->r, a->cost);
}

/* Out of the queue, and no longer to be taken back. */
static void arrival_leave(struct arrival *a)
{
	wf_list_del(&a->node);
	if (a->held_on)
		wf_remote_release(a->r, &a->held);
	a->held_on = false;
}

static void arrival_free(struct arrival *a)
{
	if (a->copy)
		mail_shut(a->p->w, a->copy, a->mail->len);
	free(a);
}

static void take_announced(struct post *post, struct wf_remote *r, uint64_t send)
{
	post->r = r;
	post->landing = (struct wf_landing){ .len = bytes_of(post), .user = post->buf };
	if (wf_remote_take(r, send, &post->landing)) {
		post_over(post, r->err);
		return;
	}
	post->landing_open = true;
}

static void deliver_copy(struct post *post, struct arrival *a)
{
	memcpy(post->buf, a->copy, bytes_of(post));
	if (a->sync)
		wf_remote_answer(a->r, a->send, 0);
	unexpected(a, -1);
	arrival_free(a);
	post_over(post, 0);
}

static struct post *find_post(struct proc *p, uint32_t port, const struct mail *m)
{
	for (struct wf_node *l = p->posted[port].next; l != &p->posted[port]; l = l->next) {
		struct post *post = wf_of(l, struct post, node);

		if (fits(post->want_proc, post->want_class, m))
			return post;
	}
	return NULL;
}

static struct arrival *arrive(struct proc *p, struct wf_remote *r, struct mail *m, const struct wf_act *act, int kind)
{
	struct arrival *a = calloc(1, sizeof(*a));

	if (!a)
		abort();
	a->p = p;
	a->r = r;
	a->mail = m;
	a->port = m->to_port;
	a->kind = kind;
	a->cost = act->cost;
	a->send = act->msg.send;
	a->sync = act->msg.flags & WF_WIRE_SYNC;
	wf_list_add(&p->arrivals[m->to_port], &a->node);
	if (a->send) {
		a->held.send = a->send;
		wf_remote_hold(r, &a->held);
		a->held_on = true;
	}
	unexpected(a, 1);
	return a;
}

static void got_msg(struct proc *p, struct wf_remote *r, uint32_t other, const struct wf_act *act)
{
	struct mail *m = mail_of(p, other, &act->msg);
	struct post *post;
	struct arrival *a;

	if (!m)
		return;
	if (p->port_closed[m->to_port]) {
		m->lost = true;
		wf_remote_freed(r, act->cost);
		if (act->msg.flags & WF_WIRE_SYNC)
			wf_remote_answer(r, act->msg.send, -ESRCH);
		return;
	}
	post = find_post(p, m->to_port, m);
	if (!post) {
		a = arrive(p, r, m, act, COPY);
		a->copy = mail_memory(m->len);
		memcpy(a->copy, act->msg.payload, m->len);
		return;
	}
	wf_list_del(&post->node);
	post_matches(post, m);
	memcpy(post->buf, act->msg.payload, bytes_of(post));
	wf_remote_freed(r, act->cost);
	if (act->msg.flags & WF_WIRE_SYNC)
		wf_remote_answer(r, act->msg.send, 0);
	post_over(post, 0);
}

static void got_body(struct proc *p, struct wf_remote *r, uint32_t other, struct end *e, const struct wf_act *act)
{
	struct mail *m = mail_of(p, other, &act->msg);
	struct post *post = m ? find_post(p, m->to_port, m) : NULL;
	struct arrival *a;

	if (!m || p->port_closed[m->to_port]) {
		if (m)
			m->lost = true;
		wf_remote_freed(r, act->cost);
		if (act->msg.flags & WF_WIRE_SYNC)
			wf_remote_answer(r, act->msg.send, -ESRCH);
		wf_remote_body_into(r, e->lane, NULL);
		return;
	}
	if (post && post->cap >= m->len) {
		wf_list_del(&post->node);
		post_matches(post, m);
		post->r = r;
		post->landing = (struct wf_landing){ .len = m->len, .user = post->buf };
		post->landing_open = true;
		wf_remote_freed(r, act->cost);
		post->answer = act->msg.flags & WF_WIRE_SYNC ? act->msg.send : 0;
		wf_remote_body_into(r, e->lane, &post->landing);
		return;
	}
	a = arrive(p, r, m, act, FILLING);
	a->copy = mail_memory(m->len);
	a->landing = (struct wf_landing){ .len = m->len, .user = a->copy };
	wf_remote_body_into(r, e->lane, &a->landing);
	if (post) {                             /* too short for it: through the copy */
		wf_list_del(&post->node);
		post_matches(post, m);
		arrival_leave(a);
		a->post = post;
	}
}

/* The message @post has invited: its bytes are, or will be, where they were told to go. */
static bool take_invited(struct post *post, struct wf_remote *r, struct mail *m, const struct wf_act *act)
{
	uint8_t *mem = post->invite_buf;

	if (!post->invite_open || !(act->msg.flags & WF_WIRE_INVITED) || act->msg.token != post->invite.token)
		return false;
	if (wf_remote_take_invited(r, act->msg.send, &post->invite, m->len))
		return false;
	check_match(post->p->w, post, m);
	post->mail = m;
	post->r = r;
	post->by_invite = true;
	post->invite_open = false;
	post->buf = mem;
	post->invite_buf = NULL;
	post->landing_open = true;
	return true;
}

static void got_announce(struct proc *p, struct wf_remote *r, uint32_t other, const struct wf_act *act)
{
	struct mail *m = mail_of(p, other, &act->msg);
	struct post *post;

	if (!m)
		return;
	if (p->port_closed[m->to_port]) {
		m->lost = true;
		wf_remote_answer(r, act->msg.send, -ESRCH);
		return;
	}
	post = find_post(p, m->to_port, m);
	if (post && act->msg.flags & WF_WIRE_OFFER && post->name != act->msg.token)
		post = NULL;                    /* not the one that asked */
	if (post) {
		wf_list_del(&post->node);
		if (take_invited(post, r, m, act))
			return;
		post_matches(post, m);
		take_announced(post, r, act->msg.send);
	} else if (act->msg.flags & WF_WIRE_OFFER) {
		wf_remote_answer(r, act->msg.send, -EAGAIN);
	} else {
		arrive(p, r, m, act, ANNOUNCED);
	}
}

static void got_cancel(struct proc *p, struct wf_remote *r, uint64_t number)
{
	struct wf_held *h = wf_remote_held(r, number);
	struct arrival *a = h ? wf_of(h, struct arrival, held) : NULL;

	(void)p;
	if (!a || a->kind == FILLING) {
		wf_remote_late(r, number);
		return;
	}
	arrival_leave(a);
	a->mail->dropped = true;
	sim_note(p->w, 0x30000 + a->mail->id);
	unexpected(a, -1);
	wf_remote_answer(r, number, -ECANCELED);
	arrival_free(a);
}

/* ---- ends ---- */

static void got_sent(struct proc *p, struct mail *m, int err)
{
	struct world *w = p->w;

	if (m->ended || !m->accepted)
		sim_fail(w, "send %u ended twice, or never began", m->id);
	m->ended = true;
	m->err = err;
	sim_note(w, 0x40000 + m->id * 256 + (uint64_t)-err);
	if (err == -ECANCELED) {
		if (m->matched)
			sim_fail(w, "message %u was received and its send cancelled", m->id);
		if (!m->cancel_asked)
			sim_fail(w, "send %u cancelled by nobody", m->id);
		m->dropped = true;
	} else if (err) {
		m->lost = true;
		if (!p->over[m->to_proc] && !p->remote[m->to_proc]->err && !w->proc[m->to_proc].port_closed[m->to_port])
			sim_fail(w, "send %u ended with %d for no reason", m->id, err);
	} else if (m->s.flags & WF_SEND_SYNC && !m->matched) {
		sim_fail(w, "send %u was to be matched, and was not", m->id);
	}
	mail_shut(w, m->mem, m->len);
	m->mem = NULL;
}

static struct post *post_of(struct world *w, struct wf_landing *l)
{
	for (struct post *post = w->posts; post; post = post->all)
		if (&post->landing == l || &post->invite == l)
			return post;
	return NULL;
}

static struct wf_landing *landing_of(struct post *post)
{
	return post->by_invite ? &post->invite : &post->landing;
}

/* Nothing writes into @post's memory any more. */
static void post_closed(struct post *post)
{
	int err = post->aborted ? -ECONNRESET : landing_of(post)->err;

	post->landing_open = false;
	if (post->answer)
		wf_remote_answer(post->r, post->answer, err);
	post_over(post, err);
}

static void arrival_closed(struct arrival *a)
{
	struct post *post = a->post;

	if (a->landing.err || a->dropping) {
		unexpected(a, -1);
		a->mail->lost = true;
		if (wf_list_has(&a->node))
			arrival_leave(a);
		arrival_free(a);
		if (post)
			post_over(post, -ECONNRESET);
		return;
	}
	a->kind = COPY;
	if (post)
		deliver_copy(post, a);
}

static void got_landed(struct proc *p, struct wf_landing *l, bool closed)
{
	struct wf_remote *r;
	struct post *post = post_of(p->w, l);
	struct arrival *a = wf_of(l, struct arrival, landing);

	if (post && l == &post->invite && !post->by_invite) {
		/* Not matched: its source is gone, or it was taken back. */
		if (closed)
			invite_closed(post);
		else
			uninvite(post);
		return;
	}
	r = post ? post->r : a->r;
	if (!closed && wf_landing_close(r, l, l->err) == -EINPROGRESS) {
		if (post)
			post->closing = true;
		else
			a->closing = true;
		return;
	}
	if (post)
		post_closed(post);
	else
		arrival_closed(a);
}

/* ---- asking for what waits elsewhere ---- */

static void seek(struct proc *p, uint32_t other, uint32_t port, const struct post *post)
{
	struct want want = { post->want_proc, post->want_class };

	if (post->want_proc >= 0 && (uint32_t)post->want_proc != other)
		return;
	wf_remote_seek(p->remote[other], port, mail_context(port), post->name, &want, sizeof(want));
}

static void got_backlog(struct proc *p, uint32_t other, uint32_t port)
{
	for (uint32_t i = 1; i <= SIM_PORTS; i++) {
		if (port && i != port)
			continue;
		if (port)
			p->backlog[other][i] = true;
		for (struct wf_node *l = p->posted[i].next; l != &p->posted[i]; l = l->next)
			seek(p, other, i, wf_of(l, struct post, node));
	}
}

static void got_seek(struct proc *p, uint32_t other, const struct wf_act *act)
{
	struct wf_remote *r = p->remote[other];
	struct wf_rsend *s = NULL;
	struct want want;

	if (act->want_len != sizeof(want)) {
		sim_fail(p->w, "a want of %u bytes", act->want_len);
		return;
	}
	memcpy(&want, act->want, sizeof(want));
	while ((s = wf_remote_seek_next(r, act->to, act->context, s)))
		if (fits(want.proc, want.class, s->user)) {
			wf_remote_offer(r, s, act->name, p->w->now);
			return;
		}
	wf_remote_sought(r, act->to, act->context);
}

void upper_act(struct proc *p, uint32_t other, struct end *e, const struct wf_act *a)
{
	struct wf_remote *r = p->remote[other];

	sim_note(p->w, (uint64_t)a->kind << 8 | p->number);
	switch (a->kind) {
	case WF_ACT_MSG:
		got_msg(p, r, other, a);
		break;
	case WF_ACT_BODY:
		got_body(p, r, other, e, a);
		break;
	case WF_ACT_ANNOUNCE:
		got_announce(p, r, other, a);
		break;
	case WF_ACT_CANCEL:
		got_cancel(p, r, a->number);
		break;
	case WF_ACT_SEEK:
		got_seek(p, other, a);
		break;
	case WF_ACT_BACKLOG:
		got_backlog(p, other, a->err ? 0 : a->to);
		break;
	case WF_ACT_CLEAR:
		break;
	case WF_ACT_SENT:
		got_sent(p, a->send->user, a->err);
		break;
	case WF_ACT_LANDED:
		got_landed(p, a->landing, false);
		break;
	case WF_ACT_LAND_CLOSED:
		got_landed(p, a->landing, true);
		break;
	case WF_ACT_DEAD:
		p->over[other] = true;
		upper_lost(p, other);
		break;
	case WF_ACT_CLOSED:
		p->closed[other] = true;
		break;
	case WF_ACT_WATCH:
		p->watched[other]++;
		break;
	case WF_ACT_GONE:
		p->gone[other]++;
		p->last_gone = a->number;
		break;
	default:
		sim_fail(p->w, "act %u", a->kind);
	}
}

/* ---- what the program does ---- */

/* Tells the source where its message can go, unless another receive would have it. */
static void invite(struct proc *p, struct post *post)
{
	struct want want = { post->want_proc, post->want_class };

	for (struct wf_node *l = p->posted[post->port].next; l != &p->posted[post->port]; l = l->next) {
		const struct post *o = wf_of(l, struct post, node);

		if (o->want_proc < 0 || o->want_proc == post->want_proc)
			return;
	}
	post->invite_buf = mail_memory(post->cap);
	post->invite = (struct wf_landing){ .len = post->cap, .user = post->invite_buf };
	if (wf_remote_invite(p->remote[post->want_proc], &post->invite, 0, post->port, mail_context(post->port), &want, sizeof(want))) {
		free(post->invite_buf);
		post->invite_buf = NULL;
		return;
	}
	post->invite_open = true;
	shell_after(p, (uint32_t)post->want_proc);
}

struct post *upper_post(struct proc *p, uint32_t port, int want_proc, int want_class, uint64_t cap)
{
	struct world *w = p->w;
	struct post *post = calloc(1, sizeof(*post));
	struct arrival *a = NULL;

	if (!post)
		abort();
	*post = (struct post){ .p = p, .port = port, .want_proc = want_proc, .want_class = want_class, .cap = cap,
			       .name = w->nposts++, .all = w->posts };
	w->posts = post;
	if (named(post))
		wf_remote_care(p->remote[want_proc], 1);
	for (struct wf_node *l = p->arrivals[port].next; l != &p->arrivals[port] && !a; l = l->next) {
		a = wf_of(l, struct arrival, node);
		if (!fits(want_proc, want_class, a->mail))
			a = NULL;
	}
	if (!a && named(post) && p->over[want_proc]) {
		post_over(post, -ECONNRESET);
		return post;
	}
	if (!a) {
		if (named(post) && w->conf.invites)
			invite(p, post);
		wf_list_add(&p->posted[port], &post->node);
		for (uint32_t i = 1; i <= w->conf.procs; i++)
			if (p->remote[i] && p->backlog[i][port]) {
				seek(p, i, port, post);
				shell_after(p, i);
			}
		if (named(post))
			shell_after(p, (uint32_t)want_proc);    /* somebody there is waited for now */
		return post;
	}
	uint32_t other = a->mail->from_proc;

	post_matches(post, a->mail);
	arrival_leave(a);
	if (a->kind == COPY) {
		deliver_copy(post, a);
	} else if (a->kind == FILLING) {
		a->post = post;
	} else {
		unexpected(a, -1);
		take_announced(post, a->r, a->send);
		arrival_free(a);
	}
	shell_after(p, other);
	return post;
}

void upper_cancel(struct proc *p, struct mail *m)
{
	if (m->ended)
		return;
	m->cancel_asked = true;
	wf_remote_cancel(p->remote[m->to_proc], &m->s, p->w->now);
	shell_after(p, m->to_proc);
}

bool upper_unpost(struct proc *p, struct post *post)
{
	(void)p;
	if (post->over || !wf_list_has(&post->node))
		return false;
	wf_list_del(&post->node);
	post_over(post, -ECANCELED);
	if (named(post))
		shell_after(p, (uint32_t)post->want_proc);
	return true;
}

/* What of @from (0: of anybody) waits at @port goes. */
static void drop_arrivals(struct proc *p, uint32_t port, uint32_t from, int err)
{
	for (struct wf_node *l = p->arrivals[port].next, *next; l != &p->arrivals[port]; l = next) {
		struct arrival *a = wf_of(l, struct arrival, node);
		struct wf_remote *r = a->r;
		uint32_t other = a->mail->from_proc;

		next = l->next;
		if (from && other != from)
			continue;
		if (a->kind == COPY && from)
			continue;                       /* it is here: what its sender published is received */
		arrival_leave(a);
		a->mail->lost = true;
		if (a->kind == ANNOUNCED || a->sync)
			wf_remote_answer(r, a->send, err);
		if (a->kind == FILLING) {
			a->dropping = true;
			if (!a->closing && !wf_landing_close(r, &a->landing, err))
				arrival_closed(a);
		} else {
			unexpected(a, -1);
			arrival_free(a);
		}
		shell_after(p, other);
	}
}

void upper_close(struct proc *p, uint32_t port)
{
	struct world *w = p->w;

	p->port_closed[port] = true;
	for (struct post *post = w->posts; post; post = post->all) {
		if (post->p != p || post->port != port || post->over || post->aborted)
			continue;
		if (upper_unpost(p, post) || !post->landing_open || post->closing)
			continue;
		/* Matched, and its bytes are under way. */
		post->aborted = true;
		if (!wf_landing_close(post->r, landing_of(post), -ECONNRESET))
			post_closed(post);
		shell_after(p, post->mail->from_proc);
	}
	drop_arrivals(p, port, 0, -ECONNRESET);
}

void upper_lost(struct proc *p, uint32_t other)
{
	struct world *w = p->w;

	for (uint32_t i = 0; i < w->nmails; i++) {
		struct mail *m = w->mail[i];

		if ((m->from_proc == p->number && m->to_proc == other) || (m->from_proc == other && m->to_proc == p->number))
			m->lost = true;
	}
	for (uint32_t port = 1; port <= SIM_PORTS; port++)
		drop_arrivals(p, port, other, -ECONNRESET);
	for (struct post *post = w->posts; post; post = post->all)
		if (post->p == p && wf_list_has(&post->node) && post->want_proc == (int)other) {
			wf_list_del(&post->node);
			post_over(post, -ECONNRESET);
		}
}

void upper_free(struct world *w)
{
	for (uint32_t i = 1; i <= w->conf.procs; i++)
		for (uint32_t k = 1; k <= w->conf.procs; k++)
			if (w->proc[i].remote[k])
				wf_remote_gone(w->proc[i].remote[k], -ECANCELED, w->now);
	for (uint32_t i = 0; i < w->nshut; i++) {
		if (w->shut[i].len && (w->shut[i].mem[0] != 0xdd || memcmp(w->shut[i].mem, w->shut[i].mem + 1, w->shut[i].len - 1)))
			sim_fail(w, "memory was written to after its landing had been closed, or its send was over");
		free(w->shut[i].mem);
	}
	for (uint32_t n = 1; n <= w->conf.procs; n++)
		for (uint32_t port = 1; port <= SIM_PORTS; port++)
			while (!wf_list_empty(&w->proc[n].arrivals[port])) {
				struct arrival *a = wf_of(wf_list_pop(&w->proc[n].arrivals[port]), struct arrival, node);

				free(a->copy);
				free(a);
			}
	for (struct post *post = w->posts, *next; post; post = next) {
		next = post->all;
		free(post->invite_buf);
		free(post->buf);
		free(post);
	}
	for (uint32_t i = 0; i < w->nmails; i++) {
		free(w->mail[i]->mem);
		free(w->mail[i]);
	}
}
