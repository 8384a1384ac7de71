/* mesh.c - see mesh.h.
 *
 * A message is its tag and a body (control.h). What is told of a process comes from the agent of its host alone, in order, so a death is never
 * overtaken by where the dead one was.
 *
 * Silence: every agent says something to the one that serves, and that one to all, ten times within the time after which a host counts as dead. Who has
 * not heard the other for three fifths of it tells the launcher, and when it hears it again, too; the launcher decides (verdict.h): it has another way to each host.
 *
 * Threads  The agent is one thread; weft's listener is the other and asks where() for addresses, under members_lock.
 */
#include "mesh.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#include "agent.h"
#include "control.h"
#include "early.h"
#include "embassy.h"
#include "hosted.h"
#include "job/others.h"
#include "launch.h"
#include "outlet.h"
#include "post.h"
#include "relay.h"
#include "secure/chain.h"
#include "verdict.h"
#include "wire/wire.h"

#define MESSAGE 256u
#define ENDS 16
#define FAREWELL WEFT_S

struct member {
	bool in;
	bool lost;                      /* [agent's thread] for good */
	char at[WF_AT_TEXT];
	char name[64];                  /* [agent's thread] */
	uint32_t slots;                 /* [agent's thread] */
	int64_t heard;                  /* [agent's thread] */
	bool silent;                    /* [agent's thread] the launcher was told */
	bool asked;                     /* [agent's thread] it is to be told when it is heard next */
	bool met, owed;                 /* [agent's thread] it was heard once; the launcher is to be told so */
};

static pthread_mutex_t members_lock = PTHREAD_MUTEX_INITIALIZER;
static struct member members[HOSTLIST_HOSTS];           /* in, at: under members_lock */
static struct weft_queue *queue;
static uint32_t server;
static int64_t next_beat, next_look, every, patience;
static char own_at[WF_AT_TEXT];

static int where(uint32_t process, char *ret_at, size_t n)
{
	uint32_t host = process - WF_AGENTS;
	int r = -ESRCH;

	if (wf_foreign(process))
		return embassy_place(process, ret_at, n);
	if (host >= HOSTLIST_HOSTS)
		return r;
	pthread_mutex_lock(&members_lock);
	if (members[host].in) {
		snprintf(ret_at, n, "%s", members[host].at);
		r = 0;
	}
	pthread_mutex_unlock(&members_lock);
	return r;
}

static bool is_in(uint32_t host)
{
	return host < HOSTLIST_HOSTS && members[host].in;      /* only this thread changes it */
}

/* Sending */

static void send_split(uint32_t host, uint64_t tag, const struct wf_body *b, const void *bytes, size_t n)
{
	char *copy = malloc(b->at + n + 1);
	int r = -ENOMEM;

	if (copy) {
		if (b->at)
			memcpy(copy, b->bytes, b->at);
		if (n)
			memcpy(copy + b->at, bytes, n);
		r = weft_send_post(weft_port_world(), WEFT(op, .peer = (weft_id)(WF_AGENTS + host) << 32, .tag = tag, .data = copy, .len = b->at + n, .queue = queue, .user = copy), NULL);
	}
	if (r < 0)
		free(copy);
}

static void send_to(uint32_t host, uint64_t tag, const struct wf_body *b)
{
	send_split(host, tag, b, NULL, 0);
}

static void send_all(const struct agent *a, uint64_t tag, const struct wf_body *b)
{
	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
		if (is_in(h) && h != a->run->host)
			send_to(h, tag, b);
}

static void body_begin(struct wf_body *b, uint8_t *room)
{
	*b = (struct wf_body){ .bytes = room, .n = MESSAGE };
}

static bool here_body(struct agent *a, uint32_t process, struct wf_body *b, uint8_t *room)
{
	struct spot *s = where_spot(&a->where, process);

	if (!s || s->gone)
		return false;
	body_begin(b, room);
	wf_body_u32(b, process);
	wf_body_text(b, s->at);
	return true;
}

static void gone_body(struct wf_body *b, uint8_t *room, uint32_t process, int status, bool left)
{
	body_begin(b, room);
	wf_body_u32(b, process);
	wf_body_u32(b, (uint32_t)status);
	wf_body_u32(b, left);
}

void mesh_here(struct agent *a, uint32_t process)
{
	uint8_t room[MESSAGE];
	struct wf_body b;

	if (a->run->meshed && here_body(a, process, &b, room))
		send_all(a, MESH_HERE, &b);
}

void mesh_gone(struct agent *a, uint32_t process, int status, bool left)
{
	struct spot *s = where_spot(&a->where, process);
	uint8_t room[MESSAGE];
	struct wf_body b;

	s->gone = true;
	if (!a->run->meshed)
		return;
	gone_body(&b, room, process, status, left);
	send_all(a, MESH_GONE, &b);
}

/* The directory's */

static void send_of(uint32_t host, uint64_t tag, uint32_t process, const void *bytes, size_t n)
{
	uint8_t room[MESSAGE];
	struct wf_body b;

	if (!is_in(host))
		return;
	body_begin(&b, room);
	if (process)
		wf_body_u32(&b, process);
	send_split(host, tag, &b, bytes, n);
}

void mesh_joined(struct agent *a, uint32_t host, uint32_t process)
{
	(void)a;
	send_of(host, MESH_JOINED, process, NULL, 0);
}

void mesh_all(struct agent *a, uint32_t host)
{
	(void)a;
	send_of(host, MESH_ALL, 0, NULL, 0);
}

void mesh_ask_all(struct agent *a)
{
	struct wf_body nothing = { 0 };

	send_all(a, MESH_WHO, &nothing);
}

void mesh_said(struct agent *a, uint32_t host, uint32_t process, const void *msg, size_t len)
{
	(void)a;
	send_of(host, MESH_SAID, process, msg, len);
}

void mesh_told(struct agent *a, uint32_t host, uint32_t process, const void *msg, size_t len)
{
	(void)a;
	send_of(host, MESH_TOLD, process, msg, len);
}

/* Launches, signals */

void mesh_launch(struct agent *a, uint32_t host, enum mesh what, const void *bytes, size_t n)
{
	(void)a;
	send_of(host, what, 0, bytes, n);
}

int mesh_kill(struct agent *a, uint32_t host, uint32_t process, int sig)
{
	uint8_t room[MESSAGE];
	struct wf_body b;

	if (!a->run->meshed || !is_in(host))
		return -ESRCH;
	if (sig == 0)
		return 0;
	body_begin(&b, room);
	wf_body_u32(&b, (uint32_t)sig);
	send_of(host, MESH_KILL, process, room, b.at);
	return 0;
}

/* What a new one has to know of this host. */
static void tell_all_to(struct agent *a, uint32_t host)
{
	uint8_t room[MESSAGE];
	struct wf_body b;

	for (unsigned i = 0; i < a->count; i++) {
		struct place *p = a->places[i];
		struct spot *s = where_spot(&a->where, p->number);

		if (s->gone) {
			gone_body(&b, room, p->number, p->status, p->stage == STAGE_LEFT);
			send_to(host, MESH_GONE, &b);
		} else if ((s->at[0] || a->begun) && here_body(a, p->number, &b, room)) {
			send_to(host, MESH_HERE, &b);
		}
	}
	launch_host_new(a, host);
}

/* Members */

const char *mesh_name(const struct agent *a, uint32_t host)
{
	static char own[64];

	if (a->run->meshed)
		return is_in(host) ? members[host].name : NULL;
	if (host != a->run->host)
		return NULL;
	if (!own[0] && getenv("WEFT_HOST"))
		snprintf(own, sizeof(own), "%s", getenv("WEFT_HOST"));
	if (!own[0] && (gethostname(own, sizeof(own) - 1) < 0 || !own[0]))
		snprintf(own, sizeof(own), "localhost");
	return own;
}

bool mesh_is_lost(uint32_t host)
{
	return host < HOSTLIST_HOSTS && members[host].lost;
}

uint32_t mesh_slots(const struct agent *a, uint32_t host)
{
	return a->run->meshed && is_in(host) && members[host].slots ? members[host].slots : 1;
}

static void take(struct agent *a, uint32_t host, uint64_t tag, struct wf_body *b);

static void take_early(struct agent *a, uint32_t host)
{
	struct early *e;

	while ((e = early_take(host)) != NULL) {
		take(a, host, e->tag, &(struct wf_body){ .bytes = e->bytes, .n = e->n });
		free(e);
	}
}

/* A new host is known when it has been heard: one that cannot be reached does not come in. It says something to all for that. */
static void know(struct agent *a, uint32_t host)
{
	struct wf_body nothing = { 0 };

	if (host >= HOSTLIST_HOSTS || a->run->hosted)
		return;
	if (host == a->run->host)
		send_all(a, MESH_BEAT, &nothing);
	members[host].owed = host != a->run->host && !members[host].met;
	if (!members[host].owed)
		agent_tell32(a, CONTROL_KNOWN, host);
}

void mesh_members(struct agent *a, struct wf_body *b)
{
	uint32_t n = wf_body_get32(b), host = HOSTLIST_HOSTS;

	for (uint32_t i = 0; i < n && !b->bad; i++) {
		const char *at, *name;
		uint32_t slots;

		host = wf_body_get32(b);
		at = wf_body_get_text(b);
		name = wf_body_get_text(b);
		slots = wf_body_get32(b);
		if (host >= HOSTLIST_HOSTS || !at || !name || is_in(host))
			continue;
		pthread_mutex_lock(&members_lock);
		snprintf(members[host].at, sizeof(members[host].at), "%s", at);
		members[host].in = true;
		pthread_mutex_unlock(&members_lock);
		members[host].heard = now_ns();
		members[host].slots = slots;
		snprintf(members[host].name, sizeof(members[host].name), "%s", name);
		post_host(a, host);
		if (host != a->run->host) {
			tell_all_to(a, host);
			embassy_host(a, host);
		}
	}
	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
		if (is_in(h))
			take_early(a, h);
	know(a, host);
}

static void spot_gone(struct agent *a, uint32_t process, int status, bool left)
{
	struct spot *s = where_spot(&a->where, process);

	if (!s || !s->known || s->gone)
		return;
	s->gone = true;
	post_gone(a, process);
	news_far(a, WF_NOTE_DEAD, process, status, left);
}

void mesh_lost(struct agent *a, uint32_t host)
{
	if (host >= HOSTLIST_HOSTS || host == a->run->host)
		return;
	pthread_mutex_lock(&members_lock);
	members[host].in = false;
	pthread_mutex_unlock(&members_lock);
	members[host].lost = true;
	for (struct early *e; (e = early_take(host)) != NULL;)
		free(e);
	for (uint32_t i = 1; i < WF_AGENTS; i++)
		if (a->where.spots[i].known && a->where.spots[i].host == host)
			spot_gone(a, i, STATUS_UNKNOWN, false);
	post_host_gone(a, host);
	launch_host_gone(a, host);
	embassy_host_gone(a, host);
}

void mesh_server(struct agent *a, struct wf_body *b)
{
	uint32_t host = wf_body_get32(b), epoch = wf_body_get32(b);
	int64_t now = now_ns();

	if (!wf_body_whole(b) || host >= HOSTLIST_HOSTS)
		return;
	server = host;
	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++) {
		members[h].heard = now;
		members[h].silent = false;      /* whom the one before did not hear is nothing to this one, and the launcher has forgotten it */
	}
	post_server(a, host, epoch);
}

/* What comes */

static void take(struct agent *a, uint32_t host, uint64_t tag, struct wf_body *b)
{
	uint32_t process = tag == MESH_BEAT || tag == MESH_ALL || tag >= MESH_LAUNCH_PLAN ? 0 : wf_body_get32(b);
	struct spot *s = where_spot(&a->where, process);
	const char *at;
	int status;
	bool left;

	switch (tag) {
	case MESH_HERE:
		at = wf_body_get_text(b);
		if (!wf_body_whole(b) || !at || !s || !process || s->gone || (s->known && s->host != host))
			break;
		s->known = true;
		s->host = host;
		snprintf(s->at, sizeof(s->at), "%s", at);
		if (!at[0])
			break;
		news_far(a, WF_NOTE_JOINED, process, 0, false);
		break;
	case MESH_GONE:
		status = (int)wf_body_get32(b);
		left = wf_body_get32(b) != 0;
		if (!wf_body_whole(b) || !s || (s->known && s->host != host))
			break;
		/* Who has joined later may hear of an end before he hears of the beginning. */
		if (!s->known)
			*s = (struct spot){ .gone = true, .host = host };
		spot_gone(a, process, status, left);
		break;
	case MESH_JOINED:
		post_far_joined(a, host, process);
		break;
	case MESH_ALL:
		post_far_all(a, host);
		break;
	case MESH_SAID:
		post_far_said(a, host, process, b->bytes + b->at, b->n - b->at);
		break;
	case MESH_KILL:
		status = (int)wf_body_get32(b);
		if (wf_body_whole(b))
			death_signal(a, process, status);
		break;
	case MESH_LAUNCH_PLAN:
		launch_planned(a, host, b);
		break;
	case MESH_LAUNCH_KNOWN:
		launch_plan_known(a, host, wf_body_get32(b));
		break;
	case MESH_LAUNCH_START:
		launch_start(a, host, b);
		break;
	case MESH_LAUNCH_NEWS:
		launch_news(a, host, b);
		break;
	case MESH_LAUNCH_OUTPUT:
		outlet_heard(a, host, b);
		break;
	case MESH_LAUNCH_WRITTEN:
		relay_heard(a, host, b);
		break;
	case MESH_TOLD:
		if (host == server)
			post_told(a, process, b->bytes + b->at, b->n - b->at);
		break;
	case MESH_EMBASSY:
		embassy_heard(a, host, b);
		break;
	case MESH_WHO:
		post_asked(a, host);
		if (a->run->hosted)
			hosted_asked(a, host);
		break;
	default:
		if (a->run->hosted)
			hosted_heard(a, host, tag, b);
		break;
	}
}

static void ended(struct agent *a, const struct weft_status *st)
{
	uint32_t host = (uint32_t)(st->from >> 32) - WF_AGENTS;
	struct wf_body b;

	if (st->user) {                 /* a send is over: whatever became of it */
		free(st->user);
		return;
	}
	if (!st->buf)
		return;
	if (wf_foreign((uint32_t)(st->from >> 32)))
		embassy_said(a, st);
	/* One that begins a little earlier may be heard before the launcher's word of it: then it is not to be answered yet. */
	if (host < HOSTLIST_HOSTS && !members[host].lost) {
		members[host].heard = now_ns();
		if ((members[host].silent || members[host].asked) && control_send32(a->control, CONTROL_HEARD, host) == 0)
			members[host].silent = members[host].asked = false;
		members[host].met = true;
		if (members[host].owed)
			know(a, host);
		b = (struct wf_body){ .bytes = st->buf->data, .n = st->len };
		if (is_in(host))
			take(a, host, st->tag, &b);
		else
			early_keep(host, st->tag, b.bytes, b.n);
	}
	weft_buf_put(st->buf);
}

void mesh_event(struct agent *a)
{
	struct weft_status st[ENDS];
	int n = queue ? weft_queue_next(queue, WEFT_NOW, st, ENDS) : 0;

	for (int i = 0; i < n; i++)
		ended(a, &st[i]);
	embassy_event(a);
}

/* Silence */

void mesh_listen(const struct agent *a)
{
	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
		members[h].asked = h != a->run->host && (server == a->run->host || h == server);
}

int64_t mesh_next(const struct agent *a)
{
	return a->run->meshed && queue ? next_look : 0;
}

/* When it has been silent for too long, unless it is heard before; 0: nobody waits for that. */
static int64_t due(const struct agent *a, uint32_t host)
{
	return is_in(host) && host != a->run->host && !members[host].silent ? members[host].heard + patience : 0;
}

static void listen_for(struct agent *a, uint32_t host, int64_t now)
{
	if (!due(a, host) || now < due(a, host))
		return;
	if (a->run->hosted)
		hosted_silent(a, host);
	else
		members[host].silent = control_send32(a->control, CONTROL_SILENT, host) == 0;
}

static void beat(struct agent *a)
{
	struct wf_body nothing = { 0 };

	if (server == a->run->host)
		send_all(a, MESH_BEAT, &nothing);
	else if (is_in(server))
		send_to(server, MESH_BEAT, &nothing);
}

void mesh_look(struct agent *a, int64_t now)
{
	bool serves = server == a->run->host;
	uint32_t first = serves ? 0 : server, last = serves ? HOSTLIST_HOSTS - 1 : server;
	int64_t late = now - next_look;

	if (!a->run->meshed || !queue || late < 0)
		return;
	/* Who was stopped himself has heard nobody; and who has not begun is not known to all yet. */
	for (uint32_t h = 0; (late > every || !a->begun) && h < HOSTLIST_HOSTS; h++)
		members[h].heard = a->begun ? members[h].heard + late : now;
	if (now >= next_beat) {
		beat(a);
		next_beat = now + every;
	}
	next_look = next_beat;
	for (uint32_t h = first; h <= last; h++) {
		listen_for(a, h, now);
		if (due(a, h) > now && due(a, h) < next_look)
			next_look = due(a, h);
	}
}

/* The beginning */

static int begin(struct agent *a, char *at, size_t n)
{
	static struct wf_wire_self self;
	struct weft_req *req = NULL;
	struct weft_status st;
	int r = wf_crypto_load();

	self = (struct wf_wire_self){
		.process = WF_AGENTS + a->run->host, .count = a->run->hosts_count, .key = &a->run->key, .adapter = a->run->adapter,
		.ports = a->run->ports, .ports_last = a->run->ports_last, .where = where,
	};
	if (r == 0)
		r = wf_hkdf_expand(a->run->key.bytes, "weft job number", NULL, 0, self.job, sizeof(self.job));
	wf_others_agent(&self, at, n);
	if (r == 0)
		r = weft_init(NULL);
	if (r == 0)
		r = weft_queue_open(&queue);
	if (r == 0)
		r = weft_recv_post(weft_port_world(), WEFT(op, .peer = WEFT_ANY, .tag = WEFT_ANY_TAG, .flags = WEFT_ALLOC | WEFT_REPEAT, .queue = queue), &req, &st);
	if (r == 0)
		r = agent_watch(a, weft_queue_fd(queue), FROM_MESH, 0) < 0 ? -errno : 0;
	return r;
}

const char *mesh_at(void)
{
	return own_at;
}

int mesh_open(struct agent *a)
{

	if (begin(a, own_at, sizeof(own_at)) < 0) {
		agent_say(a, "the agent cannot be reached by others: %s", weft_last_error());
		return -1;
	}
	every = VERDICT_BEAT(a->run->silence_ms * MS);
	patience = a->run->hosted ? VERDICT_ALONE(a->run->silence_ms * MS) : VERDICT_COMPLAIN(a->run->silence_ms * MS);
	next_beat = next_look = now_ns() + every;
	if (a->run->hosted)
		return hosted_reached(a, own_at);
	return control_send(a->control, CONTROL_AT, own_at, strlen(own_at)) < 0 ? -1 : 0;
}

void mesh_close(void)
{
	weft_fini(weft_in(FAREWELL));
	queue = NULL;
}
