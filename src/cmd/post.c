/* post.c - see post.h.
 *
 * When another agent begins to serve, every agent says to it who is on its host, and that these were all; the processes are told by the new server itself, and say
 * again what they have published. As the word of who serves does not come to all at the same time, the new one asks them for it, too: what was said before it serves
 * was said to nobody. It answers look-ups when all have, or GATHER_LIMIT after it began: a process that is stopped does not keep the others
 * from looking, and is found again when it goes on.
 */
#include "post.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"
#include "dir/msg.h"
#include "dir/server.h"
#include "mesh.h"

#define GATHER_LIMIT (500 * MS)
#define GATHER_LOOK (10 * MS)

static struct wf_dir_server *server;            /* NULL: another agent serves */
static uint32_t serving, epoch;
static bool gathering;
static int64_t began;
static bool heard_all[HOSTLIST_HOSTS];          /* gathering: who has said who is on its host */

static weft_id id_of(uint32_t process)
{
	return (weft_id)process << 32;
}

static void emit(void *ctx, weft_id process, const void *msg, size_t len)
{
	struct agent *a = ctx;
	uint32_t number = (uint32_t)(process >> 32);
	struct spot *s = where_spot(&a->where, number);

	if (s && s->known && s->host == a->run->host)
		post_told(a, number, msg, len);
	else if (s && s->known)
		mesh_told(a, s->host, number, msg, len);
}

/* Serving */

static void serve_host(struct agent *a, uint32_t host)
{
	const char *name = mesh_name(a, host);

	if (name)
		wf_dir_server_host(server, id_of(WF_AGENTS + host), name, NULL);
}

static int serve(struct agent *a, bool gathers)
{
	server = wf_dir_server_new(&(struct wf_dir_hooks){ .emit = emit, .ctx = a }, epoch, gathers);
	if (!server)
		return -1;
	gathering = gathers;
	began = now_ns();
	memset(heard_all, 0, sizeof(heard_all));
	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
		serve_host(a, h);
	return 0;
}

int post_open(struct agent *a)
{
	if (a->run->meshed)
		return 0;
	epoch = 1;
	serving = a->run->host;
	return serve(a, false);
}

void post_host(struct agent *a, uint32_t host)
{
	if (server)
		serve_host(a, host);
}

void post_host_gone(struct agent *a, uint32_t host)
{
	(void)a;
	if (server)
		wf_dir_server_host_gone(server, id_of(WF_AGENTS + host));
}

static void say_all(struct agent *a)
{
	for (unsigned i = 0; i < a->count; i++)
		if (a->places[i]->stage == STAGE_IN)
			post_joined(a, a->places[i]->number);
	if (server)
		heard_all[a->run->host] = true;
	else
		mesh_all(a, serving);
}

void post_asked(struct agent *a, uint32_t host)
{
	if (host == serving && !server)
		say_all(a);
}

void post_server(struct agent *a, uint32_t host, uint32_t number)
{
	bool first = epoch == 0;

	if (number <= epoch)
		return;
	epoch = number;
	serving = host;
	wf_dir_server_free(server);
	server = NULL;
	gathering = false;
	if (!first)
		for (unsigned i = 0; i < a->count; i++)
			news_dir(a, a->places[i], WF_NOTE_DIR_MOVING, NULL, 0);
	if (host == a->run->host && serve(a, !first) < 0) {
		agent_say(a, "no memory for the directory");
		agent_end(a, CODE_FAULT);
		return;
	}
	if (gathering)
		mesh_ask_all(a);
	say_all(a);
}

/* Processes of this host */

void post_joined(struct agent *a, uint32_t process)
{
	if (server)
		wf_dir_server_join(server, id_of(process), id_of(WF_AGENTS + a->run->host));
	else
		mesh_joined(a, serving, process);
}

void post_said(struct agent *a, struct place *p, const void *msg, size_t len)
{
	if (!server)
		mesh_said(a, serving, p->number, msg, len);
	else if (wf_dir_server_take(server, id_of(p->number), msg, len) == -EBADMSG)
		death_nonsense(a, p, "what is no message to the directory");
}

void post_gone(struct agent *a, uint32_t process)
{
	(void)a;
	if (server)
		wf_dir_server_gone(server, id_of(process));     /* the others hear of it by mesh_gone */
}

void post_told(struct agent *a, uint32_t process, const void *msg, size_t len)
{
	if (process < WF_AGENTS && a->numbered[process])
		news_dir(a, a->numbered[process], WF_NOTE_DIR, msg, len);
}

/* Other agents: what they say of processes that are not theirs is not taken. */

static bool is_of(struct agent *a, uint32_t host, uint32_t process)
{
	struct spot *s = where_spot(&a->where, process);

	return server && s && s->known && !s->gone && s->host == host;
}

void post_far_joined(struct agent *a, uint32_t host, uint32_t process)
{
	if (is_of(a, host, process))
		wf_dir_server_join(server, id_of(process), id_of(WF_AGENTS + host));
}

void post_far_said(struct agent *a, uint32_t host, uint32_t process, const void *msg, size_t len)
{
	if (is_of(a, host, process))
		wf_dir_server_take(server, id_of(process), msg, len);
}

void post_far_all(struct agent *a, uint32_t host)
{
	(void)a;
	heard_all[host] = true;
}

struct wf_dir_server *post_serves(void)
{
	return server;
}

uint32_t post_serving(void)
{
	return serving;
}

/* Gathering */

int64_t post_next(const struct agent *a)
{
	(void)a;
	return gathering ? now_ns() + GATHER_LOOK : 0;
}

void post_look(struct agent *a, int64_t now)
{
	bool all = true;

	if (!gathering || !server)
		return;
	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
		all &= !mesh_name(a, h) || heard_all[h];
	if ((!all || wf_dir_server_missing(server)) && now - began < GATHER_LIMIT)
		return;
	gathering = false;
	wf_dir_server_gathered(server);
}
