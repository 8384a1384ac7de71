/* here.c - see here.h and link.h.
 *
 * In a job of one the server is here, too: what the client sends is taken at once, and what the server emits lies in a list until the
 * client is not in the middle of something.
 */
#include "dir/here.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dir/link.h"
#include "dir/query.h"
#include "dir/server.h"
#include "port/publish.h"
#include "port/table.h"

#define HOST_ALONE ((weft_id)0xfffff << 32)     /* of a job of one: its host has no agent whose number it could have */

struct said {
	struct wf_node all;
	size_t len;
	uint8_t msg[];
};

static pthread_mutex_t dir_lock = PTHREAD_MUTEX_INITIALIZER;
/* under dir_lock */
static bool is_open;
static struct wf_dir_link link_out;
static struct wf_dir_client client;
static struct wf_dir_server *server;            /* a job of one; else NULL */
static struct wf_node inbox;                    /* what it has said */
/* any thread, atomic */
static _Atomic uint64_t messages;
static _Atomic uint64_t published;              /* threads and ports; relaxed: who ends has published before, if at all */

struct wf_dir_client *wf_dir_client(void)
{
	return &client;
}

bool wf_dir_alone(void)
{
	return server != NULL;
}

static int send_out(void *ctx, const void *msg, size_t len)
{
	(void)ctx;
	return link_out.send(msg, len);
}

static int send_here(void *ctx, const void *msg, size_t len)
{
	(void)ctx;
	return wf_dir_server_take(server, client.process, msg, len) < 0 ? -ECONNRESET : 0;
}

static void hear(void *ctx, weft_id process, const void *msg, size_t len)
{
	struct said *s = malloc(sizeof(*s) + len);

	(void)ctx;
	(void)process;
	if (!s) {
		client.broken = true;
		return;
	}
	s->len = len;
	memcpy(s->msg, msg, len);
	wf_list_add(&inbox, &s->all);
}

static void inbox_take(bool drop)
{
	struct wf_node *n;

	while ((n = wf_list_pop(&inbox)) != NULL) {
		struct said *s = wf_of(n, struct said, all);

		if (!drop)
			wf_dir_client_take(&client, s->msg, s->len);
		free(s);
	}
}

void wf_dir_pump(void)
{
	do {
		inbox_take(false);
		wf_dir_reap(&client);
		wf_dir_client_flush(&client);
	} while (!wf_list_empty(&inbox));
	/* relaxed: figures and a hint */
	atomic_store_explicit(&messages, client.messages, memory_order_relaxed);
	atomic_store_explicit(&published, client.mine.count - wf_dir_client_has(&client, client.process), memory_order_relaxed);
}

void wf_dir_enter_raw(void)
{
	pthread_mutex_lock(&dir_lock);
}

void wf_dir_leave(void)
{
	if (is_open)
		wf_dir_pump();
	else
		wf_dir_reap(NULL);
	pthread_mutex_unlock(&dir_lock);
}

int wf_dir_check(const char *query)
{
	const char *why;
	int r = 0;

	free(wf_dir_query_new(query, &r, &why));
	return r < 0 && why ? weft_fail(r, "the query: %s", why) : 0;
}

static int publish_self(const char *name, const char *attrs)
{
	const char *why;
	int r = wf_dir_client_set(&client, client.process, WF_DIR_PROCESS, name ? name : program_invocation_short_name, attrs, &why);

	return r < 0 ? weft_fail(r, "this process in the directory: %s", why) : 0;
}

int wf_dir_enter(void)
{
	int r = 0;

	pthread_mutex_lock(&dir_lock);
	if (!is_open)
		r = weft_fail(-ENOTCONN, "there is no directory");
	else if (!wf_dir_client_has(&client, client.process))
		r = publish_self(NULL, "");
	if (r < 0)
		pthread_mutex_unlock(&dir_lock);
	return r;
}

/* Threads and ports of this process */

static void named(weft_id id, bool thread, const char *name)
{
	const char *why;

	if (wf_dir_enter() < 0)
		return;
	if (wf_id_lives(id))
		wf_dir_client_set(&client, id, thread ? WF_DIR_THREAD : WF_DIR_PORT, name, "", &why);
	wf_dir_leave();
}

static void ended(weft_id id)
{
	if (id >> 32 != wf_process_id >> 32 || id == wf_process_id || !atomic_load_explicit(&published, memory_order_relaxed))
		return;
	pthread_mutex_lock(&dir_lock);
	if (is_open)
		wf_dir_client_drop(&client, id);
	wf_dir_leave();
}

static const struct wf_publisher publisher = { .named = named, .ended = ended, .messages = wf_dir_messages };

/* Opening */

static int serve_here(weft_id process)
{
	char name[WF_DIR_NAME + 1] = "";
	const char *told = getenv("WEFT_HOST");
	int r;

	if (!told && gethostname(name, sizeof(name) - 1) == 0)
		name[strcspn(name, ".")] = 0;
	server = wf_dir_server_new(&(struct wf_dir_hooks){ .emit = hear }, 1, false);
	if (!server)
		return -ENOMEM;
	r = wf_dir_server_host(server, HOST_ALONE, told ? told : name, NULL);
	return r < 0 ? r : wf_dir_server_join(server, process, HOST_ALONE);
}

static int open_locked(const struct wf_dir_link *link, weft_id process)
{
	struct wf_dir_client_hooks hooks = { .send = link ? send_out : send_here, .answered = wf_dir_answered, .orphan = wf_dir_answered_ahead,
					     .event = wf_dir_event,
					     .ended = wf_dir_watch_over };
	int r = 0;

	if (is_open)
		return weft_fail(-EALREADY, "the directory is open");
	wf_list_init(&inbox);
	if (link)
		link_out = *link;
	else
		r = serve_here(process);
	if (r == 0)
		r = wf_dir_client_init(&client, process, &hooks);
	if (r < 0) {
		wf_dir_server_free(server);
		server = NULL;
		return weft_fail(r, "no memory for the directory");
	}
	is_open = true;
	return 0;
}

int wf_dir_open(const struct wf_dir_link *link, weft_id process)
{
	int r;

	pthread_mutex_lock(&dir_lock);
	r = open_locked(link, process);
	pthread_mutex_unlock(&dir_lock);
	if (r == 0)
		atomic_store_explicit(&wf_publisher, &publisher, memory_order_release);
	return r;
}

int wf_dir_self(const char *name, const char *attrs)
{
	int r;

	pthread_mutex_lock(&dir_lock);
	r = is_open ? publish_self(name, attrs ? attrs : "") : weft_fail(-ENOTCONN, "there is no directory");
	wf_dir_leave();
	return r;
}

int wf_dir_take(const void *msg, size_t len)
{
	int r;

	pthread_mutex_lock(&dir_lock);
	r = is_open ? wf_dir_client_take(&client, msg, len) : 0;
	wf_dir_leave();
	return r;
}

void wf_dir_flush(void)
{
	pthread_mutex_lock(&dir_lock);
	wf_dir_leave();
}

void wf_dir_moving(void)
{
	pthread_mutex_lock(&dir_lock);
	if (is_open)
		wf_dir_client_moving(&client);
	wf_dir_leave();
}

void wf_dir_lost(void)
{
	pthread_mutex_lock(&dir_lock);
	if (is_open)
		wf_dir_client_lost(&client);
	wf_dir_leave();
}

void wf_dir_close(void)
{
	atomic_store_explicit(&wf_publisher, NULL, memory_order_release);
	pthread_mutex_lock(&dir_lock);
	if (is_open) {
		wf_dir_client_fini(&client);
		wf_dir_forget_ahead();
		wf_dir_reap(NULL);
		inbox_take(true);
		wf_dir_server_free(server);
		server = NULL;
		is_open = false;
	}
	pthread_mutex_unlock(&dir_lock);
}

uint64_t wf_dir_messages(void)
{
	return atomic_load_explicit(&messages, memory_order_relaxed);
}
