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
#include "job/link.h"
#include "mem/segment.h"
#include "mem/share.h"
#include "net/local/board.h"
#include "port/host.h"
#include "port/listener.h"
#include "secure/chain.h"
#include "wire/wire.h"

#define ACTED_TRIES 3

static int event_fd = -1;
static bool was_in;             /* a place is taken once */

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

int wf_others_offered(uint32_t *ret_process, uint32_t *ret_count)
{
	uint32_t rank;

	if (was_in)
		return weft_fail(-EACCES, "this process has left its job, and cannot come back");
	if (!wf_link_offered())
		return 0;
	if (number("WEFT_SIZE", 1, WF_PROCESSES - 1, ret_count) < 0 || number("WEFT_RANK", 0, *ret_count - 1, &rank) < 0)
		return weft_fail(-EACCES, "WEFT_AGENT is set, but WEFT_RANK and WEFT_SIZE make no sense");
	*ret_process = rank + 1;
	return 1;
}

/* The hosts of the job, if there are several: WEFT_HOSTS, WEFT_PORTS, WEFT_KEY. */
static int join_hosts(uint32_t process)
{
	const char *hosts = getenv("WEFT_HOSTS"), *path = getenv("WEFT_KEY");
	struct wf_key key;
	uint8_t job[16];
	uint32_t base;
	int r;

	if (!hosts)
		return 0;
	if (!path)
		return weft_fail(-EACCES, "WEFT_HOSTS is set, and WEFT_KEY is not");
	if (number("WEFT_PORTS", 1, 65535, &base) < 0)
		return weft_fail(-EINVAL, "WEFT_PORTS is no port number");
	r = wf_key_read(path, &key);
	if (r == 0)
		r = wf_crypto_load();
	if (r == 0)
		r = wf_hkdf_expand(key.bytes, "weft job number", NULL, 0, job, sizeof(job));
	if (r == 0)
		r = wf_wire_join(process, hosts, base, &key, job);
	wf_key_wipe(&key);
	return r;
}

int wf_others_prepare(uint32_t process)
{
	static const struct wf_segment_hooks hooks = { .tell = wf_link_tell, .untell = wf_link_untell, .give = wf_link_give };

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

static void notices(void)
{
	struct wf_note note;
	int r;

	while ((r = wf_link_next(&note)) == 1) {
		switch (note.what) {
		case WF_NOTE_JOINED:
		case WF_NOTE_MEET:
			wf_host_joined(note.process);
			break;
		case WF_NOTE_DEAD:
			wf_log(WF_INFO, "process %u %s", note.process, note.left ? "has left" : "is dead");
			wf_host_dead(note.process);
			say_acted(note.process);
			break;
		case WF_NOTE_SETTLED:
			wf_host_settled(note.process);
			break;
		default:
			break;
		}
	}
	/* Nothing of a job outlives its agent: without it nobody would know of deaths, nor clean up. */
	if (r < 0) {
		wf_log(WF_ERROR, "the agent of this job is gone: this process ends");
		kill(getpid(), SIGKILL);
	}
}

int wf_others_join(uint32_t process, uint32_t count)
{
	struct wf_welcome welcome;
	int r;

	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (event_fd < 0)
		return weft_fail(-errno, "no descriptor to be woken by");
	r = wf_peers_init(process, count, wf_host_hooks(wf_link_meet));
	if (r == 0)
		r = join_hosts(process);
	if (r == 0) {
		wf_board_name(process);
		r = wf_link_join(wf_board_fd, sizeof(struct wf_board), event_fd, &welcome);
	}
	if (r == 0 && (welcome.process != process || welcome.count != count))
		r = weft_fail(-EACCES, "the agent calls this process %u of %u, the environment %u of %u", welcome.process,
			      welcome.count, process, count);
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
