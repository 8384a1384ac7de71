/* hosted.c - see hosted.h.
 *
 * First it answers its first process, one packet after the other, until it knows all; then it is an agent like any other (agent.c), which asks here where `weft run` would have something to say.
 * Nobody's silence lasts: it ends by itself if its first goes before the beginning, or the time that processes have to come is over.
 */
#include "hosted.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/weft.h>

#include "agent.h"
#include "embassy.h"
#include "guest.h"
#include "job/birth.h"
#include "job/pact.h"
#include "launch.h"
#include "mesh.h"
#include "verdict.h"

#define SILENCE_MS 5000
#define ABORT_GRACE (1500 * MS)         /* who aborts the job ends by itself within a second, and its code is the one to be seen */

static struct {
	struct run run;
	int sock;
	uint32_t first;                 /* rank of who has started this agent */
	char job_name[256];
	char name[64];                  /* of this host */
	char kind[48];                  /* what all hosts have to have in common, as long as unlike ones are not supported */
	struct wf_pact_keys keys;
	struct wf_pact_card card;
	int64_t limit, deadline;        /* until all processes of this host have come */
	int64_t kill_at;                /* what is left then is killed; 0: nobody has aborted the job */

	/* several hosts */
	uint32_t serving, epoch;
	bool idle, told, over;          /* all here are gone; who serves knows; all everywhere are */
	bool idle_there[HOSTLIST_HOSTS];
} hosted;

/* Until the beginning */

static int say_text(enum wf_birth kind, const char *text)
{
	uint8_t room[WF_PACT_CARD + WF_PACT_SEALED + 64];
	struct wf_body b = { .bytes = room, .n = sizeof(room) };

	if (text)
		wf_body_text(&b, text);
	return wf_birth_say(hosted.sock, kind, &b);
}

static int failed(int err)
{
	uint8_t room[1024];
	struct wf_body b = { .bytes = room, .n = sizeof(room) };

	wf_body_u32(&b, (uint32_t)-err);
	wf_body_text(&b, weft_last_error());
	wf_birth_say(hosted.sock, WF_BIRTH_FAILED, &b);
	return CODE_FAULT;
}

/* What was the first's alone: what is started here is none of the launcher's processes. */
static void forget_launcher(void)
{
	static const char *const names[] = { "PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_JOBID", "PMIX_NAMESPACE", "PMIX_RANK" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unsetenv(names[i]);
}

/* What a person would call this host, in letters that go into a card; and what it is like. */
static void find_name(void)
{
	const char *told = getenv("WEFT_HOST");
	const uint16_t one = 1;

	snprintf(hosted.kind, sizeof(hosted.kind), WF_VERSION "-%s-%ld", *(const uint8_t *)&one ? "little" : "big", sysconf(_SC_PAGESIZE));
	if (told && *told)
		snprintf(hosted.name, sizeof(hosted.name), "%s", told);
	else if (gethostname(hosted.name, sizeof(hosted.name) - 1) < 0 || !hosted.name[0])
		snprintf(hosted.name, sizeof(hosted.name), "localhost");
	for (char *c = hosted.name; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '/')
			*c = '-';
}

static int say_card(enum wf_birth kind, const char *at, const char *door)
{
	char text[WF_PACT_CARD];
	int r;

	snprintf(hosted.card.address, sizeof(hosted.card.address), "%s/%s/%s", hosted.name, hosted.kind, at);
	snprintf(hosted.card.door, sizeof(hosted.card.door), "%s", door);
	r = wf_pact_card_write(&hosted.card, text);
	return r < 0 ? r : say_text(kind, text);
}

static int on_several_hosts(struct run *run)
{
	static char adapter[64];
	struct wf_pact_job job;
	int r = wf_pact_keys_make(&(struct wf_random){ NULL, NULL }, &hosted.keys);

	if (r == 0 && run->host == 0) {
		r = wf_pact_job_make(&(struct wf_random){ NULL, NULL }, &job);
		memcpy(run->job, job.number, sizeof(run->job));
		run->key = job.key;
		wf_pact_job_wipe(&job);
	}
	if (r < 0)
		return r;
	run->meshed = true;
	run->silence_ms = SILENCE_MS;
	station_adapter(adapter, sizeof(adapter));
	run->adapter = adapter;
	memcpy(hosted.card.public, hosted.keys.public, sizeof(hosted.card.public));
	return say_card(WF_BIRTH_CARD, "", "");
}

static int on_task(struct wf_body *b)
{
	struct run *run = &hosted.run;
	const char *name;
	uint32_t last = 0;

	hosted.first = wf_body_get32(b);
	name = wf_body_get_text(b);
	run->total = wf_body_get32(b);
	if (b->bad || !name || strlen(name) >= sizeof(hosted.job_name) || run->total < 2 || run->total >= WF_AGENTS || hosted.first >= run->total || run->host_of)
		return weft_fail(-EPROTO, "a job that makes no sense");
	snprintf(hosted.job_name, sizeof(hosted.job_name), "%s", name);
	run->host_of = calloc(run->total, sizeof(*run->host_of));
	run->ranks = calloc(run->total, sizeof(*run->ranks));
	if (!run->host_of || !run->ranks)
		return weft_fail(-ENOMEM, "no memory");
	for (uint32_t i = 0; i < run->total; i++) {
		run->host_of[i] = wf_body_get32(b);
		last = run->host_of[i] > last ? run->host_of[i] : last;
	}
	if (!wf_body_whole(b))
		return weft_fail(-EPROTO, "a job that makes no sense");
	if (last >= HOSTLIST_HOSTS)
		return weft_fail(-E2BIG, "the launcher's job is on %u hosts, and one of weft on %u at most", last + 1, HOSTLIST_HOSTS);
	run->host = run->host_of[hosted.first];
	for (uint32_t i = 0; i < run->total; i++)
		if (run->host_of[i] == run->host)
			run->ranks[run->count++] = i;
	run->hosts_count = last ? last + 1 : 0;
	return last ? on_several_hosts(run) : 0;
}

static int on_seal(struct wf_body *b)
{
	uint32_t rank = wf_body_get32(b);
	const char *text = wf_body_get_text(b);
	char sealed[WF_PACT_SEALED];
	struct wf_pact_card other;
	struct wf_pact_ends ends = { hosted.job_name, hosted.run.total, hosted.first, rank, &hosted.card, &other };
	struct wf_pact_job job = { .key = hosted.run.key };
	int r;

	if (!wf_body_whole(b) || !text || hosted.first != 0 || !hosted.run.meshed)
		return weft_fail(-EPROTO, "a card that makes no sense");
	memcpy(job.number, hosted.run.job, sizeof(job.number));
	r = wf_pact_card_read(text, &other);
	if (r == 0)
		r = wf_pact_seal(&ends, &hosted.keys, &(struct wf_random){ NULL, NULL }, &job, sealed);
	wf_pact_job_wipe(&job);
	return r < 0 ? r : say_text(WF_BIRTH_SEALED, sealed);
}

static int on_open(struct wf_body *b)
{
	const char *text = wf_body_get_text(b), *sealed = wf_body_get_text(b);
	struct wf_pact_card root;
	struct wf_pact_ends ends = { hosted.job_name, hosted.run.total, 0, hosted.first, &root, &hosted.card };
	struct wf_pact_job job;
	int r;

	if (!wf_body_whole(b) || !text || !sealed || hosted.first == 0 || !hosted.run.meshed)
		return weft_fail(-EPROTO, "what was sealed makes no sense");
	r = wf_pact_card_read(text, &root);
	if (r == 0)
		r = wf_pact_open(&ends, &hosted.keys, sealed, &job);
	if (r < 0)
		return r;
	memcpy(hosted.run.job, job.number, sizeof(job.number));
	hosted.run.key = job.key;
	wf_pact_job_wipe(&job);
	return 0;
}

/* 1: the beginning. */
static int on_packet(enum wf_birth kind, struct wf_body *b)
{
	switch (kind) {
	case WF_BIRTH_TASK:
		return on_task(b);
	case WF_BIRTH_SEAL:
		return on_seal(b);
	case WF_BIRTH_OPEN:
		return on_open(b);
	case WF_BIRTH_BEGIN:
		return hosted.run.host_of ? 1 : weft_fail(-EPROTO, "it was not told which job");
	default:
		return weft_fail(-EPROTO, "packet %u was not expected", (unsigned)kind);
	}
}

static int take_streams(void)
{
	int type = 0, null = open("/dev/null", O_RDWR | O_CLOEXEC);
	socklen_t n = sizeof(type);

	if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &n) < 0 || type != SOCK_SEQPACKET) {
		fprintf(stderr, "weft agent: --pact is for programs that a launcher has started: weft_init does that\n");
		return CODE_USAGE;
	}
	hosted.sock = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (null < 0 || hosted.sock < 0 || dup2(null, STDIN_FILENO) < 0)
		return CODE_FAULT;
	close(null);
	return 0;
}

int hosted_main(void)
{
	static uint8_t room[WF_BIRTH_ROOM];
	enum wf_birth kind;
	struct wf_body b;
	int signals, r = run_descriptors() < 0 ? CODE_FAULT : take_streams();

	if (r)
		return r;
	if (run_signals(&hosted.run, false, &signals) < 0)
		return failed(weft_fail(-errno, "%s", strerror(errno)));
	close(signals);
	files_raise(&hosted.run.files);
	hosted.limit = wf_birth_limit();
	if (hosted.limit < 0)
		return failed((int)hosted.limit);
	hosted.deadline = now_ns() + hosted.limit;
	find_name();
	forget_launcher();
	r = say_text(WF_BIRTH_HELLO, WF_VERSION);
	while (r == 0) {
		r = wf_birth_hear(hosted.sock, hosted.deadline, &kind, &b, room);
		if (r < 0)
			return CODE_FAULT;      /* its first is gone, or says nothing */
		r = on_packet(kind, &b);
	}
	wf_pact_keys_wipe(&hosted.keys);
	if (r < 0)
		return failed(r);
	hosted.run.hosted = true;
	hosted.run.control = hosted.sock;
	agent_main(&hosted.run);
}

/* The beginning */

void hosted_begin(struct agent *a)
{
	int r = a->url[0] ? 0 : weft_fail(-ENOBUFS, "the agent can have no door: %s", strerror(errno));

	if (r == 0)
		r = a->run->meshed ? mesh_open(a) : hosted_reached(a, "");
	a->begun = r == 0 && !a->run->meshed;
	if (r < 0)
		_exit(failed(-EHOSTUNREACH));
}

int hosted_reached(struct agent *a, const char *at)
{
	const char *door = strchr(a->url, '@');

	return say_card(WF_BIRTH_DOOR, at, door ? door + 1 : "") < 0 ? -1 : 0;
}

static void serve(struct agent *a, uint32_t host)
{
	uint8_t room[8];
	struct wf_body b = { .bytes = room, .n = sizeof(room) };

	hosted.serving = host;
	hosted.told = false;
	wf_body_u32(&b, host);
	wf_body_u32(&b, ++hosted.epoch);
	b = (struct wf_body){ .bytes = room, .n = b.at };
	mesh_server(a, &b);
}

/* As CONTROL_MEMBERS, of one. */
static int on_member(struct agent *a, struct wf_body *told)
{
	uint32_t rank = wf_body_get32(told);
	const char *text = wf_body_get_text(told), *name, *kind;
	uint8_t room[2 * WF_PACT_ADDRESS];
	struct wf_body b = { .bytes = room, .n = sizeof(room) };
	struct wf_pact_card card;
	char *at = card.address;
	int r = wf_body_whole(told) && text && rank < a->run->total ? wf_pact_card_read(text, &card) : weft_fail(-EPROTO, "a member that makes no sense");

	if (r < 0)
		return r;
	name = strsep(&at, "/");
	kind = strsep(&at, "/");
	if (!at)
		return weft_fail(-EPROTO, "a member that makes no sense");
	if (strcmp(kind, hosted.kind) != 0)
		return weft_fail(-EOPNOTSUPP, "%s is of the kind %s (weft, byte order, page size), %s %s: hosts that are not alike are not supported yet", name, kind, hosted.name, hosted.kind);
	wf_body_u32(&b, 1);
	wf_body_u32(&b, a->run->host_of[rank]);
	wf_body_text(&b, at);
	wf_body_text(&b, name);
	wf_body_u32(&b, 1);
	b = (struct wf_body){ .bytes = room, .n = b.at };
	mesh_members(a, &b);
	return 0;
}

static int on_start(struct agent *a)
{
	serve(a, 0);
	a->begun = true;
	launch_begun(a);
	hosted.deadline = now_ns() + hosted.limit;
	return say_text(WF_BIRTH_STARTED, NULL);
}

void hosted_control(struct agent *a)
{
	static uint8_t room[WF_BIRTH_ROOM];
	enum wf_birth kind;
	struct wf_body b;
	int r = wf_birth_hear(a->control, WEFT_NOW, &kind, &b, room);

	if (r == -EAGAIN)
		return;
	if (r < 0 && !a->begun)
		_exit(CODE_FAULT);
	if (r < 0 || a->begun) {
		fd_close(&a->control);          /* it needs no launcher any more */
		return;
	}
	if (kind == WF_BIRTH_MEMBER)
		r = on_member(a, &b);
	else
		r = kind == WF_BIRTH_START ? on_start(a) : weft_fail(-EPROTO, "packet %u was not expected", (unsigned)kind);
	if (r < 0)
		_exit(failed(r));
}

struct place *hosted_place(struct agent *a, uint32_t rank)
{
	struct place *p = rank < a->run->total ? a->numbered[rank + 1] : NULL;

	return p && p->stage == STAGE_EMPTY && p->door < 0 ? p : NULL;
}

/* The end */

/* Whether all who belong here are gone; who has not come in time is not waited for. */
static bool is_idle(struct agent *a, int64_t now)
{
	bool all = true;

	for (unsigned i = 0; i < a->run->count; i++) {
		struct place *p = a->places[i];

		if (p->stage == STAGE_EMPTY && (now >= hosted.deadline || hosted.kill_at)) {
			if (!hosted.kill_at)
				agent_say(a, "rank %u has not come within %d s", p->rank, (int)(hosted.limit / SECOND));
			fd_close(&p->door);
			news_gone(a, p, STATUS_UNKNOWN, false);
		}
		all &= p->stage == STAGE_LEFT || p->stage == STAGE_DEAD;
	}
	return all && a->running == 0 && a->draining == 0;
}

static void tell(struct agent *a, uint32_t host, enum mesh what, uint32_t value, uint32_t more)
{
	uint8_t room[8];
	struct wf_body b = { .bytes = room, .n = sizeof(room) };

	wf_body_u32(&b, value);
	wf_body_u32(&b, more);
	mesh_launch(a, host, what, room, b.at);
}

static void tell_all(struct agent *a, enum mesh what, uint32_t value)
{
	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
		if (h != a->run->host && mesh_name(a, h))
			tell(a, h, what, value, 0);
}

/* Of several hosts none goes before all are done: who serves hears of each, and tells them. */
static bool is_over(struct agent *a)
{
	if (!a->run->meshed || hosted.over)
		return hosted.idle;
	if (!hosted.told && hosted.serving != a->run->host)
		tell(a, hosted.serving, MESH_IDLE, hosted.idle, 0);
	hosted.told = true;
	if (hosted.serving != a->run->host || !hosted.idle)
		return false;
	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
		if (h != a->run->host && mesh_name(a, h) && !hosted.idle_there[h])
			return false;
	tell_all(a, MESH_OVER, 0);
	return true;
}

static void kill_all(struct agent *a)
{
	hosted.kill_at = INT64_MAX;
	for (unsigned i = 0; i < a->count; i++)
		death_signal(a, a->places[i]->number, SIGKILL);
}

void hosted_abort(struct agent *a)
{
	hosted.kill_at = now_ns() + ABORT_GRACE;
	if (a->run->meshed)
		tell_all(a, MESH_ABORT, 0);
}

int64_t hosted_next(const struct agent *a)
{
	int64_t next = 0;

	if (!a->run->hosted)
		return 0;
	if (hosted.deadline > now_ns())
		next = hosted.deadline;
	if (hosted.kill_at && hosted.kill_at != INT64_MAX && (!next || hosted.kill_at < next))
		next = hosted.kill_at;
	return next;
}

void hosted_look(struct agent *a, int64_t now)
{
	bool idle;

	if (!a->begun && now >= hosted.deadline)
		_exit(CODE_FAULT);
	if (!a->begun || a->phase != WORKING)
		return;
	if (hosted.kill_at && now >= hosted.kill_at)
		kill_all(a);
	idle = is_idle(a, now);
	hosted.told &= idle == hosted.idle;
	hosted.idle = idle;
	if (!is_over(a))
		return;
	if (a->run->meshed) {
		embassy_close(a);
		mesh_close();
	}
	agent_end(a, 0);
}

/* Other agents */

/* Who serves says who is lost; if that is the one, each finds out by itself, and all know who is next. */
void hosted_silent(struct agent *a, uint32_t host)
{
	uint32_t next = 0;

	agent_say(a, "host %u (%s) was not heard for %d ms and is given up", host, mesh_name(a, host), VERDICT_ALONE(a->run->silence_ms));
	mesh_lost(a, host);
	if (hosted.serving == a->run->host)
		tell_all(a, MESH_LOST, host);
	if (host != hosted.serving)
		return;
	while (next < HOSTLIST_HOSTS - 1 && !mesh_name(a, next))
		next++;
	for (a->next_number = WF_AGENTS - 1; !a->where.spots[a->next_number].known; a->next_number--)
		continue;
	a->next_job = embassy_last();
	serve(a, next);
	numbers_ask_again(a);
}

/* What it was told before it served it has not taken, nor has the one before it answered. */
void hosted_asked(struct agent *a, uint32_t host)
{
	if (host != hosted.serving || host == a->run->host)
		return;
	hosted.told = false;
	numbers_ask_again(a);
}

void hosted_numbers(struct agent *a, uint32_t ticket, uint32_t count)
{
	if (hosted.serving == a->run->host)
		launch_numbers(a, ticket, numbers_take(a, count));
	else
		tell(a, hosted.serving, MESH_NUMBERS, ticket, count);
}

void hosted_heard(struct agent *a, uint32_t host, uint64_t tag, struct wf_body *b)
{
	uint32_t value = wf_body_get32(b), more = wf_body_get32(b);
	bool serves = hosted.serving == a->run->host, served = hosted.serving == host;

	if (!wf_body_whole(b))
		return;
	if (tag == MESH_IDLE)
		hosted.idle_there[host] = value != 0;
	else if (tag == MESH_OVER && served)
		hosted.over = true;
	else if (tag == MESH_LOST && served && value != a->run->host)
		mesh_lost(a, value);
	else if (tag == MESH_LOST && served)
		_exit(CODE_FAULT);      /* given up by the rest: its processes end with it */
	else if (tag == MESH_ABORT && !hosted.kill_at)
		hosted.kill_at = now_ns() + ABORT_GRACE;
	else if (tag == MESH_NUMBERS && serves)
		tell(a, host, MESH_NUMBERED, value, numbers_take(a, more));
	else if (tag == MESH_NUMBERED && served)
		launch_numbers(a, value, more);
}
