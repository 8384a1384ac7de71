/* grow.c - hosts that join the running job. The agent of this host asks the launcher (the agent's grow.c); the answer comes from the listener.
 *
 * What is asked for is known here by a name for as long as its caller waits. One that gives up need not say so: the launcher has been told how long he would wait, and
 * answers a little before that, with what it has got until then.
 */
#include "job/grow.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/job.h>

#include "base/life.h"
#include "base/list.h"
#include "job/body.h"
#include "job/frames.h"
#include "job/link.h"
#include "mem/segment.h"
#include "port/self.h"

#define HOSTS_MOST 256u
#define EARLIER (250 * WEFT_MS)         /* so much before the caller's deadline the launcher answers, or a tenth of what there is */

struct growth {
	struct wf_node all;             /* under grow_lock */
	uint32_t name;
	struct weft_req *heard;         /* completed by who puts it to NULL, under grow_lock */
	int err;
	uint32_t count, hosts[HOSTS_MOST];
	char words[256];                /* why others did not join */
};

static pthread_mutex_t grow_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_node growths;
static uint32_t names;

/* [grow_lock] */
static struct growth *find(uint32_t name)
{
	for (struct wf_node *n = growths.next; n && n != &growths; n = n->next)
		if (wf_of(n, struct growth, all)->name == name)
			return wf_of(n, struct growth, all);
	return NULL;
}

/* [grow_lock] */
static void over(struct growth *g, int err, const char *words)
{
	struct weft_req *heard = g->heard;

	if (!heard)
		return;
	g->err = err;
	snprintf(g->words, sizeof(g->words), "%s", words ? words : "");
	g->heard = NULL;
	weft_req_complete(heard, NULL);
}

void wf_grow_news(const void *bytes, size_t n)
{
	struct wf_body b = { .bytes = (uint8_t *)(uintptr_t)bytes, .n = n };
	uint32_t name = wf_body_get32(&b), err = wf_body_get32(&b), count = wf_body_get32(&b), hosts[HOSTS_MOST];
	const char *words;
	struct growth *g;

	if (b.bad || count > HOSTS_MOST)
		return;
	for (uint32_t i = 0; i < count; i++)
		hosts[i] = wf_body_get32(&b);
	words = wf_body_get_text(&b);
	if (!wf_body_whole(&b))
		return;
	pthread_mutex_lock(&grow_lock);
	g = find(name);
	if (g && g->heard) {
		g->count = count;
		memcpy(g->hosts, hosts, count * sizeof(*hosts));
		over(g, (int)err, words);
	}
	pthread_mutex_unlock(&grow_lock);
}

void wf_grows_close(void)
{
	pthread_mutex_lock(&grow_lock);
	for (struct wf_node *n = growths.next; n && n != &growths; n = n->next)
		over(wf_of(n, struct growth, all), -ECANCELED, "this process is leaving");
	pthread_mutex_unlock(&grow_lock);
}

static uint32_t ms_until(weft_time until)
{
	weft_time left = until - weft_now(), earlier = left / 10 < EARLIER ? left / 10 : EARLIER;

	if (until == WEFT_FOREVER || left / WEFT_MS >= UINT32_MAX)
		return UINT32_MAX;
	return left <= 0 ? 0 : (uint32_t)((left - earlier) / WEFT_MS);
}

static int check(const char *hosts, const weft_id *ret_ids, int max)
{
	if (!hosts || !*hosts)
		return weft_fail(-EINVAL, "grow: no hosts");
	if (max < 0 || (max > 0 && !ret_ids))
		return weft_fail(-EINVAL, "grow: no room for %d ids", max);
	if (strlen(hosts) >= WF_GROW_TEXT)
		return weft_fail(-EINVAL, "grow: a list of more than %u bytes", WF_GROW_TEXT - 1);
	return 0;
}

static int collect(const struct growth *g, weft_id *ret_ids, int max)
{
	if (g->err < 0)
		return weft_fail(g->err, "%s", g->words);
	if (g->words[0])
		weft_fail(-EHOSTUNREACH, "%s", g->words);
	for (int i = 0; i < (int)g->count && i < max; i++)
		ret_ids[i] = (weft_id)(WF_AGENTS + g->hosts[i]) << 32;
	return (int)g->count;
}

static int grow(const char *hosts, weft_time until, weft_id *ret_ids, int max)
{
	struct growth *g = calloc(1, sizeof(*g));
	struct weft_req *heard = NULL;
	int r = g ? weft_req_new(NULL, NULL, NULL, &heard) : weft_fail(-ENOMEM, "no memory to grow");

	if (r < 0) {
		free(g);
		return r;
	}
	pthread_mutex_lock(&grow_lock);
	if (!growths.next)
		wf_list_init(&growths);
	g->name = ++names;
	g->heard = heard;
	wf_list_add(&growths, &g->all);
	pthread_mutex_unlock(&grow_lock);
	r = wf_link_grow(g->name, ms_until(until), hosts);
	if (r == 0)
		r = weft_req_wait(&heard, until, NULL);
	pthread_mutex_lock(&grow_lock);
	if (!g->heard && (r == -ETIMEDOUT || r == -EAGAIN))
		r = 0;                  /* the answer came at the last moment */
	g->heard = NULL;
	wf_list_del(&g->all);
	pthread_mutex_unlock(&grow_lock);
	if (heard)
		weft_req_free(heard);
	if (r == 0)
		r = collect(g, ret_ids, max);
	free(g);
	return r;
}

int weft_job_grow(const char *hosts, weft_time until, weft_id *ret_ids, int max)
{
	int r, state;

	if (atomic_load_explicit(&wf_life, memory_order_acquire) != WF_IN)
		return wf_not_in();
	if (wf_self.in_callback)
		return weft_fail(-EDEADLK, "weft_job_grow inside a callback");
	r = check(hosts, ret_ids, max);
	if (r < 0)
		return r;
	if (wf_link_fd() < 0)
		return weft_fail(-ENOTCONN, "this job has no agent that could ask for hosts (weft run)");
	if (until == WEFT_NOW)
		return weft_fail(-EAGAIN, "no host joins at once");
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	r = grow(hosts, until, ret_ids, max);
	pthread_setcancelstate(state, NULL);
	return r;
}
