/* others.c - see others.h. The listener calls notices(). */
#include "job/others.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <weft/base.h>

#include "base/fence.h"
#include "base/log.h"
#include "base/park.h"
#include "dir/link.h"
#include "job/attach.h"
#include "job/born.h"
#include "job/frames.h"
#include "job/grow.h"
#include "job/link.h"
#include "job/spawn.h"
#include "mem/segment.h"
#include "mem/share.h"
#include "net/local/board.h"
#include "port/host.h"
#include "port/listener.h"
#include "port/table.h"
#include "secure/chain.h"
#include "wire/treaty.h"
#include "wire/wire.h"

#define ACTED_TRIES 3

static int event_fd = -1;
static bool was_in;             /* a place is taken once */
static bool guest;              /* came to the job by itself, and does not end with it */
static const struct wf_wire_self *agent;        /* NULL: this process is none */
static char *agent_at;
static size_t agent_at_room;

static int number(const char *name, uint32_t least, uint32_t most, uint32_t *ret)
{
	const char *text = getenv(name);
	char *end;
	unsigned long v;

	if (!text || !*text)
		return -EINVAL;
	v = strtoul(text, &end, 10);
	if (*end || v < least || v > most)
		return -EINVAL;
	*ret = (uint32_t)v;
	return 0;
}

int wf_others_offered(const char *url, uint32_t *ret_process, uint32_t *ret_base, uint32_t *ret_count)
{
	uint32_t rank, base;

	if (agent) {
		*ret_process = agent->process;
		*ret_base = agent->process - 1;
		*ret_count = 1;
		return 1;
	}
	if (was_in)
		return weft_fail(-EACCES, "this process has left its job, and cannot come back");
	if (url) {
		int r = wf_link_visit(url, UINT32_MAX, ret_process, ret_base, ret_count);

		guest = r == 0;
		return r < 0 ? r : 1;
	}
	if (!wf_link_offered(&base))
		return wf_born(ret_process, ret_base, ret_count);
	if (base >= WF_AGENTS || number("WEFT_SIZE", 1, WF_AGENTS - 1 - base, ret_count) < 0 || number("WEFT_RANK", 0, *ret_count - 1, &rank) < 0)
		return weft_fail(-EACCES, "WEFT_AGENT is set, but WEFT_RANK and WEFT_SIZE make no sense");
	*ret_base = base;
	*ret_process = base + rank + 1;
	return 1;
}

static int near(uint32_t process)
{
	uint32_t last;

	return wf_link_near(process, &last);
}

/* Which of those it was started with are of this host. */
static int find_mates(uint32_t base, uint32_t count)
{
	for (uint32_t i = base + 1, last; i <= base + count; i = last + 1) {
		int r = wf_link_near(i, &last);

		if (r < 0 && r != -ESRCH)
			return r;
		if (r < 0 || last < i)
			last = i;       /* gone already */
		for (uint32_t n = i; r >= 0 && n <= last && n <= base + count; n++)
			atomic_store_explicit(&wf_whereabouts[n], r ? WF_ON_HOST : WF_OFF_HOST, memory_order_relaxed);
	}
	return 0;
}

/* The job is on several hosts. */
static int join_hosts(const struct wf_welcome *w)
{
	struct wf_wire_self self = {
		.process = w->process, .count = w->count, .key = &w->key, .adapter = w->adapter, .ports = w->ports, .ports_last = w->ports_last, .where = wf_link_where, .treaty = wf_link_treaty,
	};
	char at[WF_AT_TEXT];
	int r = wf_crypto_load();

	if (r == 0)
		r = wf_hkdf_expand(w->key.bytes, "weft job number", NULL, 0, self.job, sizeof(self.job));
	if (r == 0)
		r = wf_wire_join(&self, at, sizeof(at));
	if (r == 0)
		r = find_mates(w->base, w->count);
	return r < 0 ? r : wf_link_at(at);
}

void wf_others_agent(const struct wf_wire_self *self, char *ret_at, size_t n)
{
	agent = self;
	agent_at = ret_at;
	agent_at_room = n;
}

bool wf_others_listed(void)
{
	return !agent;
}

const struct wf_dir_link *wf_others_dir(void)
{
	static const struct wf_dir_link link = { .send = wf_link_dir };

	return &link;
}

static int agents_only(uint32_t process)
{
	return process >= WF_AGENTS ? 0 : -ESRCH;
}

static int meets_nobody(uint32_t process, int *ret_board_fd, int *ret_event_fd)
{
	(void)ret_board_fd;
	(void)ret_event_fd;
	return weft_fail(-ESRCH, "process %u is no agent", process);
}

static int join_agents(void)
{
	int r = wf_peers_init(agent->process, agent->process - 1, 1, wf_host_hooks(meets_nobody, agents_only));

	if (r == 0)
		r = wf_crypto_load();
	if (r == 0)
		r = wf_wire_join(agent, agent_at, agent_at_room);
	return r < 0 ? r : wf_listener_far(event_fd, -1, NULL);
}

int wf_others_prepare(uint32_t process)
{
	static const struct wf_segment_hooks hooks = { .tell = wf_link_tell, .untell = wf_link_untell, .give = wf_link_give };

	if (agent)
		return 0;
	if (wf_board_fd < 0)
		return weft_fail(-ENOSYS, "memory that other processes can map (memfd_create) is not to be had");
	wf_segments_share(process, &hooks);
	wf_fence_init_global();
	wf_park_far = true;
	return 0;
}

/* Unsaid, what flew between that process and others does not come home before this one ends. Each try takes its time. */
static void say_acted(uint32_t process)
{
	int tries = ACTED_TRIES;

	while (wf_link_acted(process) == -ENOMEM && --tries > 0)
		continue;
	if (!tries)
		wf_log(WF_WARN, "no memory to tell the agent that the end of process %u was acted on", process);
}

/* A guest's job is over: nobody of it is there any more. */
static void all_gone(void)
{
	wf_listener_unnoticed();
	wf_dir_lost();
	wf_spawns_close();
	wf_grows_close();
	wf_attach_close(-ECONNRESET);
	wf_wire_treaties_drop();
	for (uint32_t i = 1; i < WF_AGENTS; i++) {
		if (i == wf_process_id >> 32)
			continue;
		if (atomic_load_explicit(&wf_whereabouts[i], memory_order_relaxed) == WF_OFF_HOST)
			wf_wire_dead(i);
		else if (wf_peer_at(i))
			wf_host_dead(i);
	}
}

static void notices(void)
{
	struct wf_note note;
	const void *msg;
	size_t len;
	int r;

	while ((r = wf_link_next(&note, &msg, &len)) == 1) {
		switch (note.what) {
		case WF_NOTE_JOINED:
		case WF_NOTE_MEET:
			if (wf_peer_near(note.process))
				wf_host_joined(note.process);
			else
				wf_wire_joined(note.process);
			break;
		case WF_NOTE_DEAD:
			wf_log(WF_INFO, "process %u %s", note.process, note.left ? "has left" : "is dead");
			if (!wf_peer_near(note.process)) {
				wf_wire_dead(note.process);
				break;
			}
			wf_host_dead(note.process);
			say_acted(note.process);
			break;
		case WF_NOTE_SETTLED:
			wf_host_settled(note.process);
			break;
		case WF_NOTE_DIR:
			wf_dir_take(msg, len);
			break;
		case WF_NOTE_DIR_MOVING:
			wf_dir_moving();
			break;
		case WF_NOTE_DIR_LOST:
			wf_dir_lost();
			break;
		case WF_NOTE_LAUNCH:
			wf_spawn_news(msg, len);
			break;
		case WF_NOTE_GROW:
			wf_grow_news(msg, len);
			break;
		case WF_NOTE_TREATY:
			wf_attach_treaty(msg, len);
			break;
		case WF_NOTE_TREATY_OVER:
			wf_log(WF_INFO, "job %u is no longer attached", note.process);
			wf_wire_treaty_drop(note.process);
			wf_attach_over(note.process);
			break;
		case WF_NOTE_ENVOY:
			wf_attach_news(msg, len);
			break;
		default:
			break;
		}
	}
	if (r < 0 && guest) {
		wf_log(WF_WARN, "the job has ended, and this process is alone");
		all_gone();
		return;
	}
	/* Nothing of a job outlives its agent: without it nobody would know of deaths, nor clean up. */
	if (r < 0) {
		wf_log(WF_ERROR, "the agent of this job is gone: this process ends");
		kill(getpid(), SIGKILL);
	}
}

/* The agent has let this process in: what it said is put to use. */
static int welcomed(const struct wf_welcome *w, uint32_t process, uint32_t base, uint32_t count)
{
	if (w->process != process || w->base != base || w->count != count)
		return weft_fail(-EACCES, "the agent calls this process %u of %u, the environment %u of %u", w->process, w->count, process, count);
	if (w->hosts)
		return join_hosts(w);
	for (uint32_t i = base + 1; i <= base + count; i++)
		atomic_store_explicit(&wf_whereabouts[i], WF_ON_HOST, memory_order_relaxed);
	return 0;
}

int wf_others_join(uint32_t process, uint32_t base, uint32_t count)
{
	struct wf_welcome welcome;
	int r;

	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (event_fd < 0)
		return weft_fail(-errno, "no descriptor to be woken by");
	if (agent)
		return join_agents();
	r = wf_peers_init(process, base, count, wf_host_hooks(wf_link_meet, near));
	if (r == 0) {
		wf_board_name(process);
		r = wf_link_join(wf_board_fd, sizeof(struct wf_board), event_fd, &welcome);
	}
	if (r == 0) {
		r = welcomed(&welcome, process, base, count);
		wf_key_wipe(&welcome.key);
	}
	if (r == 0)
		r = wf_listener_far(event_fd, wf_link_fd(), notices);
	if (r < 0) {
		if (wf_link_fd() >= 0)
			wf_link_bye();  /* one that merely closed its link would be taken for broken, and killed */
		wf_link_close();
		close(event_fd);
		event_fd = -1;
		return r;
	}
	was_in = true;
	wf_attach_open();
	return 0;
}

bool wf_others_leave(weft_time until)
{
	bool drained;

	if (event_fd < 0)
		return true;
	drained = wf_wire_leave(until);
	wf_peers_poll();                /* last words */
	wf_link_bye();
	wf_link_close();
	wf_peers_close();
	close(event_fd);
	event_fd = -1;
	return drained;
}
