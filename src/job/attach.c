/* attach.c - see attach.h. The agent of this host does it all (the agent's embassy.c); here is who waits for its answers.
 *
 * A question has a ticket, and is in the list until it was answered or its caller has given up; an answer that finds nobody is dropped. It has to come from the job
 * that was asked. Answers come by the listener.
 */
#include "job/attach.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/dir.h>
#include <weft/job.h>

#include "base/clock.h"
#include "base/life.h"
#include "base/list.h"
#include "base/log.h"
#include "dir/abroad.h"
#include "dir/here.h"
#include "job/body.h"
#include "job/envoy.h"
#include "job/link.h"
#include "job/url.h"
#include "port/self.h"
#include "wire/treaty.h"

#define LOOK_FIRST (10 * WEFT_MS)       /* how long to wait before a query that found too few is asked again; then twice as long, */
#define LOOK_MOST (320 * WEFT_MS)       /* and not longer than this */
#define ASK_LOST (2 * WEFT_S)           /* after which a question to another job counts as lost: an agent on its way may have ended */

struct ask {
	struct wf_node all;             /* under asks_lock, while it is listed */
	bool listed;
	uint32_t ticket, alias;
	enum wf_envoy_kind answer;      /* what it is to be */
	struct weft_req *heard;         /* ended by who answers */
	/* the answer; read by the caller when it has come */
	int error;
	uint32_t number, count;
	char *text;
	weft_id *ids;
};

static pthread_mutex_t asks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_node asks;
static uint32_t tickets;

/* [asks_lock] */
static void answered(struct ask *a)
{
	wf_list_del(&a->all);
	a->listed = false;
	weft_req_complete(a->heard, NULL);
}

/* [asks_lock] Ids of that job become ours. */
static int take_ids(struct ask *a, const struct wf_envoy *e)
{
	a->ids = calloc((size_t)e->count + 1, sizeof(*a->ids));
	if (!a->ids)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->count; i++) {
		weft_id id = wf_envoy_id(e, i);

		if (id >> 52 || !id)
			return -EPROTO;
		a->ids[i] = id | (weft_id)a->alias << 52;
	}
	a->count = e->count;
	return e->count <= e->number ? 0 : -EPROTO;
}

static void take(struct ask *a, const struct wf_envoy *e)
{
	a->error = e->error;
	a->number = e->number;
	a->text = strdup(e->text ? e->text : "");
	if (!a->text)
		a->error = -ENOMEM;
	if (!a->error && e->kind == WF_ENVOY_FOUND)
		a->error = take_ids(a, e);
	answered(a);
}

void wf_attach_news(const void *bytes, size_t n)
{
	struct wf_body b = { .bytes = (uint8_t *)(uintptr_t)bytes, .n = n };
	uint32_t alias = wf_body_get32(&b);
	struct wf_envoy e;

	if (b.bad || wf_envoy_read(b.bytes + b.at, n - b.at, &e) < 0)
		return;
	pthread_mutex_lock(&asks_lock);
	for (struct wf_node *at = asks.next; at && at != &asks; at = at->next) {
		struct ask *a = wf_of(at, struct ask, all);

		if (a->ticket == e.route.ticket && a->alias == alias && a->answer == e.kind) {
			take(a, &e);
			break;
		}
	}
	pthread_mutex_unlock(&asks_lock);
}

/* [any] @all: of whichever job. */
static void end_asks(uint32_t alias, bool all, int err)
{
	struct wf_node *at, *next;

	pthread_mutex_lock(&asks_lock);
	for (at = asks.next; at && at != &asks; at = next) {
		struct ask *a = wf_of(at, struct ask, all);

		next = at->next;
		if (all || (alias && a->alias == alias)) {
			a->error = err;
			answered(a);
		}
	}
	pthread_mutex_unlock(&asks_lock);
}

void wf_attach_over(uint32_t alias)
{
	end_asks(alias, false, -ECONNRESET);
}

void wf_attach_treaty(const void *bytes, size_t n)
{
	struct wf_body b = { .bytes = (uint8_t *)(uintptr_t)bytes, .n = n };
	struct wf_treaty t = { .alias = wf_body_get32(&b) };
	const void *id, *key;

	t.side = wf_body_get32(&b);
	id = wf_body_get_bytes(&b, sizeof(t.id));
	key = wf_body_get_bytes(&b, sizeof(t.key.bytes));
	if (!wf_body_whole(&b))
		return;
	memcpy(t.id, id, sizeof(t.id));
	memcpy(t.key.bytes, key, sizeof(t.key.bytes));
	if (wf_wire_treaty_add(&t) < 0)
		wf_log(WF_WARN, "job %u cannot be reached from here: %s", t.alias, weft_last_error());
	wf_key_wipe(&t.key);
}

/* Asking */

static void give_up(void *arg)
{
	struct ask *a = arg;

	pthread_mutex_lock(&asks_lock);
	if (a->listed)
		wf_list_del(&a->all);
	a->listed = false;
	pthread_mutex_unlock(&asks_lock);
	if (a->heard)
		weft_req_free(a->heard);
	free(a->text);
	free(a->ids);
	a->heard = NULL;
}

static int send(struct ask *a, struct wf_envoy *e)
{
	uint8_t *room = malloc(WF_ENVOY_BYTES);
	size_t n;
	int r;

	if (!room)
		return weft_fail(-ENOMEM, "no memory to ask");
	e->route.ticket = a->ticket;
	n = wf_envoy_write(e, room, WF_ENVOY_BYTES);
	r = n ? wf_link_envoy(a->alias, room, n) : weft_fail(-E2BIG, "too long to be asked");
	free(room);
	return r;
}

static int why(const struct ask *a, int err)
{
	switch (err) {
	case -ESRCH:
		return weft_fail(err, a->answer == WF_ENVOY_GOT ? "nobody of that id is offered by job %u, or no such job is attached" : "no job is attached as number %u", a->alias);
	case -ECONNRESET:
		return weft_fail(err, a->alias ? "job %u is no longer attached" : "the agent of this host is gone", a->alias);
	case -EOPNOTSUPP:
		return weft_fail(err, "this job has no network: weft run --net gives it one");
	case -ECANCELED:
		return weft_fail(err, "this process is leaving the job");
	default:
		return weft_fail(err, "%s", a->text && *a->text ? a->text : strerror(-err));
	}
}

/* A question that may be asked twice is, if no answer comes: under the same ticket, so that whichever comes first is the answer. */
static int ask_until(struct ask *a, struct wf_envoy *e, weft_time until)
{
	bool again = a->answer == WF_ENVOY_FOUND || a->answer == WF_ENVOY_GOT;
	int r;

	do {
		weft_time lost = weft_in(ASK_LOST);

		r = send(a, e);
		if (r == 0)
			r = weft_req_wait(&a->heard, again && lost < until ? lost : until, NULL);
	} while (r == -ETIMEDOUT && again && !wf_past(until));
	return r;
}

/* Fills in @a, which is cleared otherwise, and waits. 0: answered, and the caller gives it up when it has read the answer; else it is given up. */
static int ask(struct ask *a, struct wf_envoy *e, weft_time until)
{
	int r = weft_req_new(NULL, NULL, NULL, &a->heard);

	if (r < 0)
		return r;
	pthread_mutex_lock(&asks_lock);
	if (!asks.next)
		wf_list_init(&asks);
	a->ticket = ++tickets;
	wf_list_add(&asks, &a->all);
	a->listed = true;
	pthread_mutex_unlock(&asks_lock);
	pthread_cleanup_push(give_up, a);
	r = ask_until(a, e, until);
	pthread_cleanup_pop(0);
	if (r == -ESRCH || r == -ECONNRESET || r == -EOPNOTSUPP)
		why(a, r);
	if (r == 0 && a->error)
		r = why(a, a->error);
	if (r < 0)
		give_up(a);
	return r;
}

/* Waiting a little, as one waits for anything: what comes meanwhile is taken. */
static int linger(weft_time until)
{
	struct weft_req *never;
	int r = weft_req_new(NULL, NULL, NULL, &never);

	if (r < 0)
		return r;
	r = weft_req_wait(&never, until, NULL);
	if (never)
		weft_req_free(never);
	return r == -ETIMEDOUT || r == -EAGAIN ? 0 : r;
}

/* The directory of another job */

static int give_ids(const struct ask *a, weft_id *ret_ids, int max)
{
	uint32_t n = a->count < (uint32_t)max ? a->count : (uint32_t)max;

	if (n)
		memcpy(ret_ids, a->ids, n * sizeof(*ret_ids));
	/* No more are counted than could be given: who has room for all is not told of others. */
	return (int)(a->count == WF_ENVOY_IDS && max > (int)WF_ENVOY_IDS ? a->count : a->number < INT_MAX ? a->number : INT_MAX);
}

static int find(uint32_t job, const char *query, int want, weft_time until, weft_id *ret_ids, int max)
{
	int64_t pause = LOOK_FIRST;
	int r;

	if (until == WEFT_NOW)
		return weft_fail(-EAGAIN, "another job's directory does not answer at once");
	for (;;) {
		struct wf_envoy e = { .kind = WF_ENVOY_FIND, .number = (uint32_t)max < WF_ENVOY_IDS ? (uint32_t)max : WF_ENVOY_IDS, .text = query };
		struct ask a = { .alias = job, .answer = WF_ENVOY_FOUND };
		bool few;

		r = ask(&a, &e, until);
		if (r < 0 && r != -EAGAIN)
			return r;
		few = r < 0 || a.number < (uint32_t)want;
		if (!few)
			r = give_ids(&a, ret_ids, max);
		if (r == 0 || !few)
			give_up(&a);
		if (!few || wf_past(until))
			return few ? wf_late(until) : r;
		r = linger(until == WEFT_FOREVER || until - wf_now() > pause ? wf_now() + pause : until);
		if (r < 0)
			return r;
		pause = pause < LOOK_MOST ? 2 * pause : LOOK_MOST;
	}
}

static int get(weft_id id, const char *key, weft_time until, char *ret_text, size_t n)
{
	struct wf_envoy e = { .kind = WF_ENVOY_GET, .id = id << 12 >> 12, .text = key };
	struct ask a = { .alias = (uint32_t)(id >> 52), .answer = WF_ENVOY_GOT };
	int r;

	if (until == WEFT_NOW)
		return weft_fail(-EAGAIN, "another job's directory does not answer at once");
	r = ask(&a, &e, until);
	if (r == -ENOENT)
		return weft_fail(r, "it has no %s", key ? key : "attributes");
	if (r < 0)
		return r;
	r = (int)strlen(a.text);
	if (n)
		snprintf(ret_text, n, "%s", a.text);
	give_up(&a);
	return r;
}

void wf_attach_open(void)
{
	static const struct wf_dir_abroad abroad = { .find = find, .get = get };

	wf_dir_abroad_open(&abroad);
}

void wf_attach_close(int err)
{
	wf_dir_abroad_open(NULL);
	end_asks(0, true, err);
}

/* The public calls */

static int enter(const char *call)
{
	if (atomic_load_explicit(&wf_life, memory_order_acquire) != WF_IN)
		return wf_not_in();
	if (wf_self.in_callback)
		return weft_fail(-EDEADLK, "%s inside a callback", call);
	return 0;
}

static int has_agent(void)
{
	return wf_link_fd() < 0 ? weft_fail(-ENOTCONN, "this job has no agent (weft run)") : 0;
}

int weft_job_offer(const char *query, char *ret_url, size_t n)
{
	struct wf_envoy e = { .kind = WF_ENVOY_OFFER, .text = query };
	struct ask a = { .answer = WF_ENVOY_ANSWER };
	char rest[WF_DIR_QUERY + 1];
	uint32_t job;
	int r = enter("weft_job_offer");

	if (r < 0)
		return r;
	if (!query || (!ret_url && n))
		return weft_fail(-EINVAL, "%s is NULL", query ? "ret_url" : "query");
	r = wf_dir_job_of(query, &job, rest);
	if (r == 0 && job)
		r = weft_fail(-EINVAL, "the query: another job's are not ours to offer");
	if (r == 0)
		r = wf_dir_check(rest);
	if (r == 0)
		r = has_agent();
	/* An offer whose url nobody has is worth nothing: it is not even made. */
	if (r == 0 && n < WEFT_URL_TEXT)
		r = weft_fail(-ENOSPC, "ret_url: room for %zu, and a url may have %d", n, WEFT_URL_TEXT);
	if (r < 0)
		return r;
	e.text = rest;
	r = ask(&a, &e, WEFT_FOREVER);
	if (r < 0)
		return r;
	r = snprintf(ret_url, n, "%s", a.text);
	give_up(&a);
	return r;
}

int weft_job_attach(const char *text, weft_time until)
{
	struct wf_envoy e = { .kind = WF_ENVOY_ATTACH, .text = text };
	struct ask a = { .answer = WF_ENVOY_ANSWER };
	struct wf_url url;
	int r = enter("weft_job_attach");

	if (r < 0)
		return r;
	if (!text)
		return weft_fail(-EINVAL, "url is NULL");
	r = wf_url_parse(text, &url);
	if (r == 0 && (url.kind != WF_URL_NET || !url.offered))
		r = weft_fail(-EINVAL, "url: there is nothing in it that a job has offered (weft_job_offer)");
	explicit_bzero(&url, sizeof(url));
	if (r == 0)
		r = has_agent();
	if (r == 0)
		r = ask(&a, &e, until);
	if (r < 0)
		return r;
	r = (int)a.number;
	give_up(&a);
	return r;
}
