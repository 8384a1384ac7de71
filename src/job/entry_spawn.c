/* entry_spawn.c - who spawns threads at an entry. entry.c is the other end, entry_msg.h says what they tell each other.
 *
 * A spawn has one receive, repeating, that names the process: answers and ends come to it, and the end of that process. It lives until every thread has
 * answered and, where that is wanted, ended; the caller may have gone long before. A thread goes on when its answer is taken in time: that is when it
 * has started, for both ends. Everything here is under the room's lock; the ends, which belong to the program, are looked at under wf_user_lock.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "job/entry.h"
#include "job/entry_room.h"
#include "port/request.h"
#include "port/table.h"
#include "port/tell.h"

enum state { WAITING, STARTED, NEVER, ENDED };

struct thread {
	struct wf_source source;        /* of end */
	struct weft_req *end;           /* under wf_user_lock: until it is over, by whomever */
	struct weft_req *given;         /* the same, for the caller */
	weft_id id;
	enum state state;
};

struct spawn {
	unsigned refs;                  /* caller, receive, call on its way */
	weft_id in;
	uint64_t ticket;
	uint32_t count, waiting, started, running;      /* running: whose end is waited for */
	bool ends, late;                /* late: the caller has gone */
	struct weft_req *heard;         /* what the caller waits for; NULL: not any more */
	struct weft_req *receive;       /* until it is over */
	void *call;                     /* on its way */
	int err;                        /* of the first that did not start, */
	char words[WF_ENTRY_WORDS + 1]; /* and why */
	uint8_t inbox[WF_ENTRY_ANSWER];
	struct thread thread[];
};

static void put_locked(struct spawn *s)
{
	if (--s->refs)
		return;
	free(s->call);
	free(s);
	wf_entry_idle_locked();
}

/* Ends, which the program has */

static void end_over(struct wf_source *source)
{
	wf_of(source, struct thread, source)->end = NULL;
}

static int end_new(struct thread *t)
{
	int r = weft_req_new(NULL, NULL, NULL, &t->given);

	if (r < 0)
		return r;
	t->source.ended = end_over;
	t->given->source = &t->source;
	t->end = t->given;
	return 0;
}

static void end_tell(struct thread *t, int err)
{
	wf_lock(&wf_user_lock);
	if (t->end) {
		t->end->st.from = t->id;
		wf_req_end_locked(t->end, err);
	}
	wf_unlock(&wf_user_lock);
}

/* What becomes of the threads */

static void never_locked(struct spawn *s, uint32_t index, int err, const char *words)
{
	if (s->thread[index].state != WAITING)
		return;
	s->thread[index].state = NEVER;
	s->waiting--;
	if (s->err)
		return;
	s->err = err;
	snprintf(s->words, sizeof(s->words), "%s", words);
}

/* Thread @index is there, and waits for a word. */
static void answered_locked(struct spawn *s, uint32_t index, weft_id id)
{
	struct thread *t = &s->thread[index];
	uint64_t tag = wf_entry_tag(WF_ENTRY_VERDICTS, s->ticket, index);
	uint32_t go_on = !s->late;
	int r = go_on && s->ends ? end_new(t) : 0;

	if (r < 0)
		go_on = 0;
	t->id = id;
	if (wf_entry_tell_locked(s->in, tag, &go_on, sizeof(go_on)) < 0)
		r = -ESRCH;             /* it is gone, or we are: the receive ends, too */
	if (go_on && r == 0) {
		t->state = STARTED;
		s->waiting--;
		s->started++;
		s->running += s->ends;
		return;
	}
	if (t->given) {
		end_tell(t, r);
		weft_req_free(t->given);
		t->given = NULL;
	}
	never_locked(s, index, r ? r : -ETIMEDOUT, weft_last_error());
}

static void heard_locked(struct spawn *s, const struct weft_status *st)
{
	uint32_t index = wf_entry_tag_index(st->tag);
	struct wf_entry_answer a;

	if (index >= s->count)
		return;
	if (wf_entry_tag_kind(st->tag) == WF_ENTRY_ENDS) {
		if (s->thread[index].state == STARTED && s->ends) {
			s->thread[index].state = ENDED;
			s->running--;
			end_tell(&s->thread[index], 0);
		}
		return;
	}
	if (s->thread[index].state != WAITING || !wf_entry_answer_read(s->inbox, st->len, &a))
		return;
	if (a.err == 0 && a.id >> 32 == s->in >> 32)
		answered_locked(s, index, a.id);
	else if (a.err)
		for (uint32_t i = index; i < (a.rest ? s->count : index + 1); i++)
			never_locked(s, i, a.err, a.words);
}

/* Nothing more is heard of any. */
static void over_locked(struct spawn *s, int err, const char *words)
{
	for (uint32_t i = 0; i < s->count; i++) {
		never_locked(s, i, err, words);
		if (s->thread[i].state == STARTED && s->ends) {
			s->thread[i].state = ENDED;
			end_tell(&s->thread[i], err == -ECANCELED ? err : -ECONNRESET);
		}
	}
	s->running = 0;
}

/* After every change. */
static void settle_locked(struct spawn *s)
{
	if (s->waiting == 0 && s->heard) {
		weft_req_complete(s->heard, NULL);
		s->heard = NULL;
	}
	if (s->waiting == 0 && s->running == 0 && s->receive)
		weft_req_cancel(s->receive);    /* its end is told all the same, and releases it */
}

static void gone_locked(struct spawn *s, int err)
{
	char words[80];

	if (err == -ECANCELED)
		snprintf(words, sizeof(words), "this process is leaving the job");
	else if (err == -ENOMEM)
		snprintf(words, sizeof(words), "no memory to hear of spawned threads");
	else
		snprintf(words, sizeof(words), "process %u is gone", (unsigned)(s->in >> 32));
	over_locked(s, err == -ECANCELED || err == -ENOMEM ? err : -ESRCH, words);
}

static void heard(const struct weft_status *st)
{
	struct spawn *s = st->user;

	wf_entry_lock();
	if (st->flags & WEFT_ST_MORE) {
		if (st->err == 0)
			heard_locked(s, st);
		settle_locked(s);
	} else {
		weft_req_free(s->receive);
		s->receive = NULL;
		gone_locked(s, st->err ? st->err : -ENOMEM);
		settle_locked(s);
		put_locked(s);
	}
	wf_entry_unlock();
}

static void call_over(const struct weft_status *st)
{
	struct spawn *s = st->user;

	wf_entry_lock();
	if (st->err < 0)
		gone_locked(s, st->err);        /* also taken back: nobody has seen it */
	settle_locked(s);
	put_locked(s);
	wf_entry_unlock();
}

/* The call */

static int check(const struct weft_spawn_opts *o)
{
	struct wf_dir_word word;
	const char *attrs = o->attrs, *why = "";
	int r = 1;

	if (o->flags)
		return weft_fail(-EINVAL, "spawn flags: %#x, with an entry", o->flags);
	if (o->prog || o->dir || o->argv || o->env || o->where)
		return weft_fail(-EINVAL, "spawn: either a program, or an entry of a process");
	if (!o->entry || !wf_dir_is_name(o->entry, strlen(o->entry)))
		return weft_fail(-EINVAL, "spawn entry: no name");
	if (o->in >> 52 || (uint32_t)o->in)
		return weft_fail(-EINVAL, "spawn in: not the id of a process");
	if (o->count > WF_ENTRY_COUNT)
		return weft_fail(-EINVAL, "spawn count: %u is more than %u", o->count, WF_ENTRY_COUNT);
	if (!o->arg && o->arg_len)
		return weft_fail(-EINVAL, "spawn arg: NULL with a length");
	if (o->arg_len > WF_ENTRY_ARG)
		return weft_fail(-E2BIG, "spawn arg: %zu bytes are more than %u", o->arg_len, WF_ENTRY_ARG);
	if (attrs && strlen(attrs) > WF_DIR_ALL)
		return weft_fail(-EINVAL, "spawn attrs: more than %u bytes", WF_DIR_ALL);
	while (attrs && r == 1)
		r = wf_dir_next_word(&attrs, false, &word, &why);
	return attrs && r < 0 ? weft_fail(r, "spawn attrs: %s", why) : 0;
}

static struct spawn *spawn_new(const struct weft_spawn_opts *o, bool ends, size_t *ret_len)
{
	static _Atomic uint64_t tickets;
	uint32_t count = o->count ? o->count : 1;
	struct wf_entry_call call = { .count = count, .ends = ends, .name = o->entry, .attrs = o->attrs, .arg = o->arg, .len = o->arg_len };
	size_t room = 64 + strlen(o->entry) + (o->attrs ? strlen(o->attrs) : 0) + o->arg_len;
	struct spawn *s = calloc(1, sizeof(*s) + count * sizeof(s->thread[0]));

	if (!s)
		return NULL;
	s->call = malloc(room);
	if (!s->call || weft_req_new(NULL, NULL, NULL, &s->heard) < 0) {
		free(s->call);
		free(s);
		return NULL;
	}
	*ret_len = wf_entry_call_write(&call, s->call, room);
	s->in = o->in ? o->in : wf_process_id;
	s->count = s->waiting = count;
	s->ends = ends;
	s->refs = 1;
	/* relaxed: only that no two are the same. */
	s->ticket = atomic_fetch_add_explicit(&tickets, 1, memory_order_relaxed);
	return s;
}

/* Posts the receive and the call. What fails here is heard of like everything else. */
static void start_locked(struct spawn *s, size_t len, struct weft_req **ret_call)
{
	struct weft_port *port;
	int r = wf_entry_port_locked(&port);

	if (r == 0) {
		r = weft_recv_post(port, WEFT(op, .flags = WEFT_REPEAT | WEFT_TRUNCATE, .peer = s->in, .tag = wf_entry_tag(WF_ENTRY_ANSWERS, s->ticket, 0),
						.ignore = WF_ENTRY_KIND_BIT | WF_ENTRY_INDEX_BITS, .data = s->inbox, .len = sizeof(s->inbox),
						.done = heard, .user = s), &s->receive, NULL);
		s->refs += r == 0;
	}
	/* SYNC: done when it is taken there, and not before: what is not can be taken back. */
	if (r == 0) {
		r = weft_send_post(port, WEFT(op, .flags = WEFT_SYNC, .peer = s->in, .tag = wf_entry_tag(WF_ENTRY_CALLS, s->ticket, 0), .data = s->call,
						.len = len, .done = call_over, .user = s), ret_call);
		s->refs += r == 0;
	}
	if (r < 0)
		gone_locked(s, r);
	settle_locked(s);
}

/* [locked] What the caller gets. */
static int collect(struct spawn *s, weft_id *ret_ids, struct weft_req **ret_ends)
{
	if (!s->started && s->waiting)
		return weft_fail(-ETIMEDOUT, "process %u has not answered in time", (unsigned)(s->in >> 32));
	if (s->started < s->count)
		weft_fail(s->waiting ? -ETIMEDOUT : s->err, "%s", s->waiting ? "the others have not answered in time" : s->words);
	if (!s->started)
		return s->err;
	for (uint32_t i = 0; i < s->count; i++) {
		bool runs = s->thread[i].state == STARTED || s->thread[i].state == ENDED;

		if (ret_ids)
			ret_ids[i] = runs ? s->thread[i].id : 0;
		if (ret_ends)
			ret_ends[i] = runs ? s->thread[i].given : NULL;
	}
	return (int)s->started;
}

int wf_entry_spawn(const struct weft_spawn_opts *o, weft_time until, weft_id *ret_ids, struct weft_req **ret_ends)
{
	struct weft_req *waits, *call = NULL;
	struct spawn *s;
	size_t len;
	int state, r = wf_enter();

	if (r == 0)
		r = wf_self.in_callback ? weft_fail(-EDEADLK, "weft_spawn inside a callback") : check(o);
	if (r < 0)
		return r;
	if (wf_past(until))
		return wf_late(until);          /* nobody can have answered */
	s = spawn_new(o, ret_ends, &len);
	if (!s)
		return weft_fail(-ENOMEM, "no memory to spawn");
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	wf_entry_lock();
	wf_entry_busy_locked();
	waits = s->heard;
	start_locked(s, len, &call);
	wf_entry_unlock();
	weft_req_wait(&waits, until, NULL);
	wf_entry_lock();
	s->late = true;
	s->heard = NULL;
	if (waits)
		weft_req_complete(waits, NULL);
	if (s->waiting && call)
		weft_req_cancel(call);
	weft_req_free(waits);
	weft_req_free(call);
	r = collect(s, ret_ids, ret_ends);       /* the last to have words */
	put_locked(s);
	wf_entry_unlock();
	if (r == -ECANCELED)
		wf_entry_outlast();
	pthread_setcancelstate(state, NULL);
	return r;
}
