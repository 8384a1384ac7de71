/* calls.c - the public calls. Whoever waits here waits for a request of its own, as everywhere; the answer ends it. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <weft/dir.h>

#include "base/clock.h"
#include "dir/abroad.h"
#include "dir/describe.h"
#include "dir/here.h"
#include "port/request.h"
#include "port/table.h"

/* Publishing */

int weft_dir_set(weft_id id, const char *attrs)
{
	const char *why = "";
	struct weft_port *p;
	int r = wf_enter();

	if (r < 0)
		return r;
	if (!attrs || !id)
		return weft_fail(-EINVAL, attrs ? "id 0 is nobody" : "attrs is NULL");
	if (id >> 32 != wf_process_id >> 32)
		return weft_fail(-EPERM, "that id is another process's");
	r = wf_dir_enter();
	if (r < 0)
		return r;
	/* Who ends comes to the lock after it is out of the table: either it is not found here, or it finds what is set here. */
	p = wf_port_by_id(id);
	if (!p || !wf_id_lives(id))
		r = weft_fail(-ESRCH, "nobody of that id is there");
	else
		r = wf_dir_client_set(wf_dir_client(), id, id == wf_process_id ? WF_DIR_PROCESS : p->thread_port ? WF_DIR_THREAD : WF_DIR_PORT,
				      p->name, attrs, &why);
	wf_dir_leave();
	return r < 0 && *why ? weft_fail(r, "%s", why) : r;
}

/* Looking up */

struct lookup {
	struct wf_dir_ask ask;
	struct weft_req *req;           /* what its caller waits for */
	bool answered;
	/* get */
	const char *key;
	char *text;
	size_t room;
	int len;
};

void wf_dir_answered(void *ctx, struct wf_dir_ask *ask)
{
	struct lookup *l = ask->user;

	(void)ctx;
	l->answered = true;
	if (ask->entity)
		l->len = wf_dir_describe(ask->entity, l->key, l->text, l->room);
	wf_lock(&wf_user_lock);
	wf_req_end_locked(l->req, 0);
	wf_unlock(&wf_user_lock);
}

/* Its caller does not wait any more: by its deadline, or because the thread is being cancelled. */
static void give_up(void *arg)
{
	struct lookup *l = arg;

	wf_dir_enter_raw();
	if (!l->answered)
		wf_dir_client_unask(wf_dir_client(), &l->ask);
	wf_dir_leave();
	if (l->req) {
		weft_req_complete(l->req, NULL);        /* -EALREADY: it was answered */
		weft_req_free(l->req);
	}
}

static void clean_up(void *arg)
{
	struct lookup *l = arg;

	give_up(l);
	free(l->ask.ids);
}

/* 0: answered. The lock is not held. */
static int await(struct lookup *l, weft_time until)
{
	bool moving;
	int r;

	pthread_cleanup_push(clean_up, l);
	r = weft_req_wait(&l->req, until, NULL);
	pthread_cleanup_pop(0);
	if (r == 0)
		return 0;
	wf_dir_enter_raw();
	moving = wf_dir_client()->moving;
	wf_dir_leave();
	give_up(l);
	if (l->answered)
		return 0;
	return moving && (r == -ETIMEDOUT || r == -EAGAIN) ? weft_fail(-EAGAIN, "the directory is moving to another host") : r;
}

/* 0: the answer is there. */
static int ask_ahead(struct lookup *l, const char *query)
{
	struct wf_dir_ask *a = malloc(sizeof(*a));

	if (!a)
		return weft_fail(-ENOMEM, "no memory for a look-up");
	*a = l->ask;
	a->query = query ? strdup(query) : NULL;
	a->want = 0;
	a->orphan = true;
	if (query && !a->query) {
		free(a);
		return weft_fail(-ENOMEM, "no memory for a query");
	}
	if (wf_dir_take_ahead(a)) {
		l->ask.err = a->err;
		l->ask.ids = a->ids;
		l->ask.total = a->total;
		a->ids = NULL;
		wf_dir_orphan_free(a);
		return 0;
	}
	if (wf_dir_client_asked(wf_dir_client(), a) || wf_dir_client_ask(wf_dir_client(), a) < 0)
		wf_dir_orphan_free(a);
	return wf_late(WEFT_NOW);
}

/* Asks and waits: 0, and the answer is in @l. The lock is held, and is not afterwards. */
static int ask(struct lookup *l, const char *query, weft_time until)
{
	int r;

	l->ask.user = l;
	if (until == WEFT_NOW && !wf_dir_alone()) {
		r = ask_ahead(l, query);
		wf_dir_leave();
		return r;
	}
	l->req = wf_req_new(WF_USER);
	l->ask.query = query ? strdup(query) : NULL;
	r = !l->req ? -ENOMEM : query && !l->ask.query ? weft_fail(-ENOMEM, "no memory for a query") : 0;
	if (r == 0)
		r = wf_dir_client_ask(wf_dir_client(), &l->ask);
	if (r < 0) {
		free(l->ask.query);
		if (l->req)
			wf_req_put(l->req);
		wf_dir_leave();
		return r == -ENOBUFS ? weft_fail(r, "too many look-ups of this process are waiting") :
		       r == -ECONNRESET ? weft_fail(r, "whoever serves the directory is gone") : r;
	}
	wf_dir_leave();
	return await(l, until);
}

static int fail_lookup(int err)
{
	switch (err) {
	case -ESRCH:
		return weft_fail(err, "nobody of that id is in the directory");
	case -ENOBUFS:
		return weft_fail(err, "too many look-ups of this process are waiting");
	case -ECANCELED:
		return weft_fail(err, "this process is leaving the job");
	case -ECONNRESET:
		return weft_fail(err, "whoever serves the directory is gone");
	default:
		return weft_fail(err, "the directory answers: %s", strerror(-err));
	}
}

static int no_key(int r, const char *key)
{
	return r == -ENOENT ? weft_fail(r, "it has no %s", key) : r;
}

int weft_dir_get(weft_id id, const char *key, weft_time until, char *ret_text, size_t n)
{
	struct lookup l = { .ask = { .n.use = WF_DIR_USE_GET, .id = id }, .key = key, .text = ret_text, .room = n };
	struct wf_dir_msg kept;
	int r = wf_enter();

	if (r < 0)
		return r;
	if (!id || (!ret_text && n) || (key && !wf_dir_is_key(key, strlen(key))))
		return weft_fail(-EINVAL, "%s", !id ? "id 0 is nobody" : !ret_text && n ? "ret_text is NULL" : "a key has 1 to 31 letters, digits, _, - and .");
	if (id >> 52)
		return wf_dir_abroad_get(id, key, until, ret_text, n);
	r = wf_dir_enter();
	if (r < 0)
		return r;
	if (wf_dir_client_kept(wf_dir_client(), id, &kept)) {
		r = wf_dir_describe(&kept, key, ret_text, n);
		wf_dir_leave();
		return no_key(r, key);
	}
	r = ask(&l, NULL, until);
	if (r < 0)
		return r;
	return l.ask.err ? fail_lookup(l.ask.err) : no_key(l.len, key);
}

static int give_ids(const weft_id *ids, uint32_t total, int want, weft_id *ret_ids, int max, weft_time until)
{
	uint32_t n = total < (uint32_t)max ? total : (uint32_t)max;

	if (total < (uint32_t)want)
		return wf_late(until);
	if (n)
		memcpy(ret_ids, ids, n * sizeof(*ids));
	return total < INT_MAX ? (int)total : INT_MAX;
}

int weft_dir_find(const char *query, int want, weft_time until, weft_id *ret_ids, int max)
{
	struct lookup l = { .ask = { .n.use = WF_DIR_USE_FIND } };
	char here[WF_DIR_QUERY + 1];
	const weft_id *kept;
	uint32_t total, job;
	int r = wf_enter();

	if (r < 0)
		return r;
	if (!query || want < 0 || max < 0 || (!ret_ids && max))
		return weft_fail(-EINVAL, "%s", !query ? "query is NULL" : want < 0 ? "want is negative" : max < 0 ? "max is negative" : "ret_ids is NULL");
	if (strstr(query, "job=")) {
		r = wf_dir_job_of(query, &job, here);
		if (r < 0)
			return r;
		if (job)
			return wf_dir_abroad_find(job, here, want, until, ret_ids, max);
		query = here;
	}
	r = wf_dir_enter();
	if (r < 0)
		return r;
	if (wf_dir_client_kept_find(wf_dir_client(), query, &kept, &total) && (total >= (uint32_t)want || until == WEFT_NOW)) {
		r = give_ids(kept, total, want, ret_ids, max, until);
		wf_dir_leave();
		return r;
	}
	r = wf_dir_check(query);
	if (r < 0) {
		wf_dir_leave();
		return r;
	}
	l.ask.want = until == WEFT_NOW ? 0 : (uint32_t)want;
	l.ask.max = (uint32_t)max;
	r = ask(&l, query, until);
	if (r == 0)
		r = l.ask.err ? fail_lookup(l.ask.err) : give_ids(l.ask.ids, l.ask.total, want, ret_ids, max, until);
	free(l.ask.ids);
	return r;
}
