/* spawn.c - processes started while the job runs, and signals to them. The agent of this host has them started (the agent's launch.c); threads are entry.c's.
 *
 * A launch is known here by a name until every process of it has been heard of: that it runs, or why it does not. One whose end is wanted is known until then. News come
 * from the listener. A caller that gives up marks his launch: what starts nevertheless is killed.
 */
#include "job/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/dir.h>
#include <weft/job.h>

#include "base/life.h"
#include "base/list.h"
#include "job/entry.h"
#include "job/frames.h"
#include "job/launch.h"
#include "job/link.h"
#include "mem/segment.h"
#include "port/op.h"
#include "port/request.h"
#include "port/self.h"
#include "port/table.h"
#include "port/tell.h"

#define HOSTS_MOST 256

struct launch {
	struct wf_node all;             /* under spawn_lock */
	uint32_t name, count, left;     /* left: not heard of yet */
	bool given_up;
	struct weft_req *heard;         /* completed when left is 0; given back by the caller */
	int err;                        /* of the first that did not start */
	char words[160];
	uint32_t ends_left;
	struct one {
		struct wf_source source;        /* of end */
		struct weft_req *end;   /* under wf_user_lock: NULL: not wanted, or over, by whomever: it is the program's */
		uint32_t process;       /* 0: it did not start */
		bool known, awaited;    /* awaited: its end is still to come */
	} one[];
};

static pthread_mutex_t spawn_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_node launches;
static uint32_t names;

/* [spawn_lock] */
static struct launch *find(uint32_t name)
{
	for (struct wf_node *n = launches.next; n && n != &launches; n = n->next)
		if (wf_of(n, struct launch, all)->name == name)
			return wf_of(n, struct launch, all);
	return NULL;
}

/* [spawn_lock] Nothing more is to come, and nobody looks at it. */
static void forget(struct launch *l)
{
	if (l->left || l->ends_left || l->heard)
		return;
	wf_list_del(&l->all);
	free(l);
}

static void end_over(struct wf_source *source)
{
	wf_of(source, struct one, source)->end = NULL;
}

/* [spawn_lock] */
static void tell_end(struct launch *l, uint32_t index, int err, int status)
{
	struct one *one = &l->one[index];

	if (!one->awaited)
		return;
	one->awaited = false;
	l->ends_left--;
	wf_lock(&wf_user_lock);
	if (one->end) {
		one->end->st.from = (weft_id)one->process << 32;
		one->end->st.len = (size_t)(unsigned)status;
		wf_req_end_locked(one->end, err);
	}
	wf_unlock(&wf_user_lock);
}

/* [spawn_lock] */
static void started(struct launch *l, uint32_t index, uint32_t process, int err, const char *words)
{
	if (l->one[index].known)
		return;
	l->one[index].known = true;
	l->one[index].process = err ? 0 : process;
	if (err && !l->err) {
		l->err = err;
		snprintf(l->words, sizeof(l->words), "%s%s%s", words ? words : "", words ? ": " : "", strerror(-err));
	}
	if (err)
		tell_end(l, index, err, 0);
	if (!err && l->given_up)
		weft_kill((weft_id)process << 32, SIGKILL);
	if (--l->left == 0 && l->heard)
		weft_req_complete(l->heard, NULL);
}

/* [spawn_lock] */
static void ended(struct launch *l, uint32_t index, int status)
{
	tell_end(l, index, status < 0 ? -ECONNRESET : status ? -ECHILD : 0, status < 0 ? 0 : status);
}

void wf_spawn_news(const void *bytes, size_t n)
{
	struct wf_body b = { .bytes = (uint8_t *)(uintptr_t)bytes, .n = n };
	uint32_t name = wf_body_get32(&b), index = wf_body_get32(&b), process = wf_body_get32(&b);
	int err = (int)wf_body_get32(&b);
	bool over = wf_body_get32(&b) != 0;
	const char *words = wf_body_get_text(&b);
	struct launch *l;

	if (!wf_body_whole(&b))
		return;
	pthread_mutex_lock(&spawn_lock);
	l = find(name);
	if (l && index < l->count) {
		if (!l->one[index].known)
			started(l, index, process, over && err < 0 ? err : over ? 0 : err, words);
		if (over)
			ended(l, index, err);
		forget(l);
	}
	pthread_mutex_unlock(&spawn_lock);
}

void wf_spawns_close(void)
{
	struct wf_node *n;

	pthread_mutex_lock(&spawn_lock);
	while (launches.next && (n = wf_list_pop(&launches)) != NULL) {
		struct launch *l = wf_of(n, struct launch, all);

		for (uint32_t i = 0; i < l->count; i++)
			tell_end(l, i, -ECANCELED, 0);
		if (l->heard) {
			l->left = 0;            /* its caller looks at it once more, and frees it */
			if (!l->err) {
				l->err = -ECANCELED;
				snprintf(l->words, sizeof(l->words), "this process is leaving, or its job has ended");
			}
			wf_list_init(&l->all);
			weft_req_complete(l->heard, NULL);
		} else {
			free(l);
		}
	}
	pthread_mutex_unlock(&spawn_lock);
}

/* What is asked for */

static int hosts_of(const char *where, weft_time until, struct wf_launch_part *part)
{
	char query[512];
	weft_id ids[HOSTS_MOST];
	int n;

	if (!where)
		return 0;
	if ((size_t)snprintf(query, sizeof(query), strchr(where, '=') || *where == '/' ? "%s" : "kind=host name=%s", where) >= sizeof(query))
		return weft_fail(-EINVAL, "spawn where: too long");
	n = weft_dir_find(query, 0, until, ids, HOSTS_MOST);
	if (n < 0)
		return n;
	part->hosts = calloc((size_t)n + 1, sizeof(*part->hosts));
	if (!part->hosts)
		return weft_fail(-ENOMEM, "no memory to spawn");
	for (int i = 0; i < n && i < HOSTS_MOST; i++)
		if (ids[i] >> 32 >= WF_AGENTS)
			part->hosts[part->hosts_count++] = (uint32_t)(ids[i] >> 32) - WF_AGENTS;
	return part->hosts_count ? 0 : weft_fail(-ENOENT, "no host of the job is '%s'", where);
}

static bool is_writable(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_PATH) && (flags & O_ACCMODE) != O_RDONLY;
}

static int part_of(const struct weft_spawn_opts *o, weft_time until, struct wf_launch_part *part)
{
	static char *nothing[1];

	if (o->flags & ~WEFT_SPAWN_OUTPUT)
		return weft_fail(-EINVAL, "spawn flags: %#x", o->flags);
	if (!o->prog || !*o->prog || o->entry || o->in)
		return weft_fail(-EINVAL, "spawn: either a program, or an entry of a process");
	part->count = o->count ? o->count : 1;
	part->prog = o->prog;
	part->dir = o->dir;
	part->attrs = o->attrs;
	part->argv = o->argv && o->argv[0] ? (char **)(uintptr_t)o->argv : NULL;
	part->env = o->env ? (char **)(uintptr_t)o->env : nothing;
	part->env_count = wf_list_count(part->env);
	part->output = o->flags & WEFT_SPAWN_OUTPUT;
	if (part->output && !is_writable(o->out_fd))
		return weft_fail(-EBADF, "spawn out_fd: %d cannot be written to", o->out_fd);
	return hosts_of(o->where, until, part);
}

/* What goes with a spec. */
struct beside {
	char *plain[WF_LAUNCH_PARTS][2];        /* argv of those whose caller gave none */
	int outs[WF_LAUNCH_PARTS];              /* where the output of parts goes that have it */
	unsigned out_count;
};

static int spec_make(const struct weft_spawn_opts *opts, weft_time until, struct wf_launch_spec *spec, struct beside *beside)
{
	for (const struct weft_spawn_opts *next = opts; next; next = next->next) {
		struct weft_spawn_opts o;
		struct wf_launch_part *part = &spec->part[spec->parts];
		int r = wf_opts_read(&o, sizeof(o), next, "spawn options");

		if (r == 0 && spec->parts == WF_LAUNCH_PARTS)
			r = weft_fail(-EINVAL, "spawn: more than %u programs", WF_LAUNCH_PARTS);
		if (r < 0)
			return r;
		spec->parts++;
		r = part_of(&o, until, part);
		if (r < 0)
			return r;
		if (!part->argv) {
			beside->plain[spec->parts - 1][0] = (char *)(uintptr_t)o.prog;
			part->argv = beside->plain[spec->parts - 1];
		}
		if (part->output)
			beside->outs[beside->out_count++] = o.out_fd;
		for (size_t i = 0; i < part->env_count; i++)
			if (part->env[i][0] == '=' || !strchr(part->env[i], '='))
				return weft_fail(-EINVAL, "spawn env: '%s' is not NAME=VALUE", part->env[i]);
		if (part->count >= WF_AGENTS - spec->count)
			return weft_fail(-EINVAL, "spawn: more processes than a job can have");
		spec->count += part->count;
	}
	return 0;
}

/* Asking */

static struct launch *launch_new(uint32_t count, bool ends)
{
	struct launch *l = calloc(1, sizeof(*l) + count * sizeof(l->one[0]));
	bool all = l && weft_req_new(NULL, NULL, NULL, &l->heard) == 0;

	for (uint32_t i = 0; all && ends && i < count; i++) {
		all = weft_req_new(NULL, NULL, NULL, &l->one[i].end) == 0;
		if (!all)
			break;
		l->one[i].awaited = true;
		l->one[i].source.ended = end_over;
		l->one[i].end->source = &l->one[i].source;
	}
	if (all) {
		l->count = l->left = count;
		l->ends_left = ends ? count : 0;
		return l;
	}
	for (uint32_t i = 0; l && i < count; i++)
		if (l->one[i].end)
			weft_req_free(l->one[i].end);
	if (l && l->heard)
		weft_req_free(l->heard);
	free(l);
	weft_fail(-ENOMEM, "no memory to spawn");
	return NULL;
}

static int ask(const struct wf_launch_spec *spec, const struct beside *beside, uint32_t name)
{
	struct wf_body b = { .bytes = malloc(WF_LAUNCH_BYTES), .n = WF_LAUNCH_BYTES };
	int r;

	if (!b.bytes)
		return weft_fail(-ENOMEM, "no memory to spawn");
	wf_launch_write(&b, spec);
	r = b.bad ? weft_fail(-E2BIG, "spawn: arguments and environment have more than %u bytes", WF_LAUNCH_BYTES) : wf_link_launch(name, b.bytes, b.at, beside->outs, beside->out_count);
	free(b.bytes);
	return r;
}

/* [spawn_lock] What the caller gets. */
static int collect(struct launch *l, weft_id *ret_ids, struct weft_req **ret_ends, struct weft_req **ends)
{
	int n = 0;

	for (uint32_t i = 0; i < l->count; i++) {
		bool runs = l->one[i].known && l->one[i].process;

		n += runs;
		if (ret_ids)
			ret_ids[i] = (weft_id)l->one[i].process << 32;
		if (ret_ends) {
			ret_ends[i] = runs ? ends[i] : NULL;
			if (!runs)
				weft_req_free(ends[i]);
		}
	}
	return n ? n : l->err ? weft_fail(l->err, "%s", l->words) : 0;
}

static int spawn(const struct wf_launch_spec *spec, const struct beside *beside, weft_time until, weft_id *ret_ids, struct weft_req **ret_ends)
{
	struct launch *l = launch_new(spec->count, spec->watched);
	struct weft_req *heard, **ends = NULL;
	int r = -ENOMEM;

	if (!l)
		return r;
	if (ret_ends) {
		ends = calloc(spec->count, sizeof(*ends));
		for (uint32_t i = 0; ends && i < spec->count; i++)
			ends[i] = l->one[i].end;
	}
	pthread_mutex_lock(&spawn_lock);
	if (!launches.next)
		wf_list_init(&launches);
	l->name = ++names;
	heard = l->heard;
	wf_list_add(&launches, &l->all);
	pthread_mutex_unlock(&spawn_lock);
	r = ret_ends && !ends ? weft_fail(-ENOMEM, "no memory to spawn") : ask(spec, beside, l->name);
	if (r == 0)
		r = weft_req_wait(&heard, until, NULL);
	pthread_mutex_lock(&spawn_lock);
	l->heard = NULL;
	if (heard)
		weft_req_free(heard);
	if (r == 0) {
		r = collect(l, ret_ids, ret_ends, ends);
	} else {
		l->given_up = true;
		for (uint32_t i = 0; i < l->count; i++) {
			if (l->one[i].known && l->one[i].process)
				weft_kill((weft_id)l->one[i].process << 32, SIGKILL);
			tell_end(l, i, r, 0);
			if (ends)
				weft_req_free(ends[i]);
		}
		if (r != -ETIMEDOUT && r != -EAGAIN)
			l->left = 0;    /* it was not asked for */
	}
	forget(l);
	pthread_mutex_unlock(&spawn_lock);
	free(ends);
	return r;
}

int weft_spawn(const struct weft_spawn_opts *opts, weft_time until, weft_id *ret_ids, struct weft_req **ret_ends)
{
	struct wf_launch_spec *spec;
	struct beside *beside;
	struct weft_spawn_opts first;
	int r, state;

	if (atomic_load_explicit(&wf_life, memory_order_acquire) != WF_IN)
		return wf_not_in();
	if (wf_self.in_callback)
		return weft_fail(-EDEADLK, "weft_spawn inside a callback");
	if (!opts)
		return weft_fail(-EINVAL, "spawn options: NULL");
	r = wf_opts_read(&first, sizeof(first), opts, "spawn options");
	if (r < 0)
		return r;
	if (first.entry)
		return first.next ? weft_fail(-EINVAL, "spawn: threads of one process at a time") : wf_entry_spawn(&first, until, ret_ids, ret_ends);
	if (wf_link_fd() < 0)
		return weft_fail(-ENOTCONN, "this job has no agent that could start processes (weft run)");
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);         /* nobody else would end what starts, nor forget it */
	spec = calloc(1, sizeof(*spec));
	beside = calloc(1, sizeof(*beside));
	r = spec && beside ? spec_make(opts, until, spec, beside) : weft_fail(-ENOMEM, "no memory to spawn");
	if (r == 0) {
		spec->watched = ret_ends != NULL;
		r = spawn(spec, beside, until, ret_ids, ret_ends);
	}
	for (uint32_t i = 0; spec && i < spec->parts; i++)
		free(spec->part[i].hosts);
	free(spec);
	free(beside);
	pthread_setcancelstate(state, NULL);
	return r;
}

int weft_kill(weft_id id, int sig)
{
	if (atomic_load_explicit(&wf_life, memory_order_acquire) != WF_IN)
		return wf_not_in();
	if (id >> 52 || !(id >> 32) || (uint32_t)id || sig < 0 || sig > SIGRTMAX)
		return weft_fail(-EINVAL, "%s", (uint32_t)id ? "signals go to processes and hosts" : sig < 0 || sig > SIGRTMAX ? "no such signal" : "nobody has that id");
	if (wf_link_fd() < 0)
		return weft_fail(-ENOTCONN, "this job has no agent");
	return wf_link_kill((uint32_t)(id >> 32), sig);
}
