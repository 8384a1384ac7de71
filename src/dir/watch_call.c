/* watch_call.c - weft_dir_watch: a request that is told again and again, and the client's watch behind it.
 *
 * The request may end at any time and by any thread (weft_req_cancel), under wf_user_lock alone; the watch is then taken back by whoever is inside
 * next (wf_dir_reap).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <weft/dir.h>

#include "dir/abroad.h"
#include "dir/here.h"
#include "port/op.h"
#include "port/request.h"
#include "port/tell.h"

struct watch {
	struct wf_dir_watching w;
	struct wf_source source;
	bool over;                      /* the client has no more to do with it. Under the directory's lock */
	/* under wf_user_lock */
	struct weft_req *req;           /* NULL: has ended, and is among those to be reaped */
	struct watch *next_ended;
};

static struct watch *ended;             /* under wf_user_lock */

static void watch_ended(struct wf_source *s)
{
	struct watch *w = wf_of(s, struct watch, source);

	w->req = NULL;
	w->next_ended = ended;
	ended = w;
}

void wf_dir_reap(struct wf_dir_client *c)
{
	struct watch *w, *next;

	wf_lock(&wf_user_lock);
	w = ended;
	ended = NULL;
	wf_unlock(&wf_user_lock);
	for (; w; w = next) {
		next = w->next_ended;
		if (!w->over && c)
			wf_dir_client_unwatch(c, &w->w);
		free(w);
	}
}

void wf_dir_event(void *ctx, struct wf_dir_watching *x, int what, weft_id id)
{
	struct watch *w = wf_of(x, struct watch, w);
	struct weft_status st = { .from = id, .tag = (uint64_t)what, .flags = WEFT_ST_MORE, .index = WEFT_NOBODY, .user = x->user };

	(void)ctx;
	wf_lock(&wf_user_lock);
	if (w->req && !wf_req_repeat_locked(w->req, &st, false))
		wf_req_end_locked(w->req, -ENOMEM);
	wf_unlock(&wf_user_lock);
}

void wf_dir_watch_over(void *ctx, struct wf_dir_watching *x, int err)
{
	struct watch *w = wf_of(x, struct watch, w);

	(void)ctx;
	w->over = true;
	wf_lock(&wf_user_lock);
	if (w->req)
		wf_req_end_locked(w->req, err);
	wf_unlock(&wf_user_lock);
}

static int read_how(const struct weft_op *how, struct weft_op *ret_op)
{
	int r = wf_opts_read(ret_op, sizeof(*ret_op), how, "how");
	struct weft_op used = { .size = sizeof(used) };

	if (r < 0)
		return r;
	if (!ret_op->done == !ret_op->queue)
		return weft_fail(-EINVAL, ret_op->done ? "how: done and queue" : "how: neither done nor queue");
	used.done = ret_op->done;
	used.queue = ret_op->queue;
	used.user = ret_op->user;
	used.size = ret_op->size;
	if (ret_op->expires)
		return weft_fail(-EOPNOTSUPP, "how.expires is not served yet");
	if (memcmp(&used, ret_op, sizeof(used)) != 0)
		return weft_fail(-EINVAL, "how: only done or queue, and user");
	ret_op->flags = WEFT_REPEAT;
	return 0;
}

/* The lock is held. @w is the client's on success. */
static int begin_watch(struct watch *w, const struct weft_op *op, bool handle, struct weft_req **ret_req)
{
	struct weft_req *r = wf_req_new(WF_USER);
	int err;

	if (!r)
		return -ENOMEM;
	err = wf_req_observe(r, op, handle, NULL);
	if (err < 0) {
		wf_req_put(r);
		return err;
	}
	w->source.ended = watch_ended;
	w->req = r;
	r->source = &w->source;
	w->w.user = op->user;
	err = wf_dir_client_watch(wf_dir_client(), &w->w);
	if (err < 0) {
		r->source = NULL;
		wf_req_unobserve(r);
		return err == -ENOBUFS ? weft_fail(err, "this process has as many watches and waiting finds as it may") :
		       err == -ECONNRESET ? weft_fail(err, "whoever serves the directory is gone") : weft_fail(err, "no memory for a watch");
	}
	*ret_req = r;
	return 0;
}

int weft_dir_watch(const char *query, const struct weft_op *how, struct weft_req **ret_req)
{
	char here[WF_DIR_QUERY + 1];
	struct weft_req *req = NULL;
	struct weft_op op;
	struct watch *w;
	uint32_t job = 0;
	int r = wf_enter();

	if (r < 0)
		return r;
	if (!query)
		return weft_fail(-EINVAL, "query is NULL");
	r = read_how(how, &op);
	if (r == 0 && strstr(query, "job=")) {
		r = wf_dir_job_of(query, &job, here);
		query = here;
	}
	if (r == 0)
		r = job ? weft_fail(-EOPNOTSUPP, "another job's directory can be asked, but not watched") : wf_dir_check(query);
	if (r < 0)
		return r;
	w = calloc(1, sizeof(*w));
	if (w)
		w->w.query = strdup(query);
	if (!w || !w->w.query) {
		free(w);
		return weft_fail(-ENOMEM, "no memory for a watch");
	}
	r = wf_dir_enter();
	if (r == 0) {
		wf_dir_pump();                  /* watches that were cancelled make room */
		r = begin_watch(w, &op, ret_req != NULL, &req);
		if (r == 0 && ret_req)
			*ret_req = req;
		wf_dir_leave();
	}
	if (r < 0) {
		free(w->w.query);
		free(w);
	}
	return r;
}
