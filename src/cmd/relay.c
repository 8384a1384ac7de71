/* relay.c - see relay.h. */
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "agent.h"
#include "launch.h"
#include "mesh.h"

#define RELAY_PATIENCE SECOND           /* for a reader, when the process has ended */

struct relay {
	struct relay *next;
	uint32_t process, host;
	int fd;                         /* -1: all was read */
	bool watched;                   /* the loop waits for something to read */
	bool lost;                      /* that host is gone: what is read is thrown away */
	size_t unwritten;               /* bytes on their way */
	bool ended;                     /* the process has, and who asked does not know: */
	int status;
	size_t owed;                    /* bytes to be written before he does */
	int64_t since;                  /* when the last of them were */
};

static struct relay *relays;

static struct relay *relay_of(uint32_t process)
{
	struct relay *r = relays;

	while (r && r->process != process)
		r = r->next;
	return r;
}

static void say(struct agent *a, uint32_t process, uint32_t host, const void *bytes, size_t n)
{
	static uint8_t room[4 + RELAY_PIECE];
	struct wf_body b = { .bytes = room, .n = sizeof(room) };

	wf_body_u32(&b, process);
	wf_body_bytes(&b, bytes, n);
	mesh_launch(a, host, MESH_LAUNCH_OUTPUT, room, b.at);
}

static void watch(struct agent *a, struct relay *r, bool wanted)
{
	wanted &= r->fd >= 0;
	if (wanted == r->watched)
		return;
	if (!wanted)
		epoll_ctl(a->epoll, EPOLL_CTL_DEL, r->fd, NULL);
	else if (agent_watch(a, r->fd, FROM_RELAY, r->process) < 0)
		return;         /* no memory: it is tried again when something was written, or the process ends */
	r->watched = wanted;
}

static void forget(struct relay *r)
{
	struct relay **at = &relays;

	if (r->fd >= 0 || r->unwritten || r->ended)
		return;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	free(r);
}

void relay_none(struct agent *a, uint32_t process, uint32_t host)
{
	say(a, process, host, "", 0);
}

static void all_read(struct agent *a, struct relay *r)
{
	watch(a, r, false);
	fd_close(&r->fd);
	if (!r->lost)
		say(a, r->process, r->host, "", 0);
}

int relay_open(struct agent *a, struct place *p, uint32_t host)
{
	struct relay *r = calloc(1, sizeof(*r));
	int pair[2], err = -ENOMEM;

	if (!r || pipe2(pair, O_CLOEXEC) < 0) {
		err = r ? -errno : err;
		free(r);
		relay_none(a, p->number, host);
		return err;
	}
	*r = (struct relay){ .next = relays, .process = p->number, .host = host, .fd = pair[0] };
	relays = r;
	fcntl(r->fd, F_SETFL, O_NONBLOCK);
	watch(a, r, true);
	p->out = pair[1];
	p->err = fcntl(pair[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (r->watched && p->err >= 0)
		return 0;
	err = -errno;
	all_read(a, r);
	forget(r);
	return err;
}

void relay_ready(struct agent *a, uint32_t process)
{
	static uint8_t piece[RELAY_PIECE];
	struct relay *r = relay_of(process);
	ssize_t n;

	if (!r || r->fd < 0 || r->unwritten + RELAY_PIECE > RELAY_WAY)
		return;
	n = read(r->fd, piece, sizeof(piece));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		all_read(a, r);
	} else if (!r->lost) {
		say(a, process, r->host, piece, (size_t)n);
		r->unwritten += (size_t)n;
		watch(a, r, r->unwritten + RELAY_PIECE <= RELAY_WAY);
	}
	forget(r);
}

static void tell(struct agent *a, struct relay *r)
{
	r->ended = false;
	a->draining--;
	launch_over(a, r->process, r->status);
	if (!a->running && !a->draining)
		agent_idle(a);
}

bool relay_ended(struct agent *a, const struct place *p, int status)
{
	struct relay *r = relay_of(p->number);
	int there = 0;

	if (!r || r->lost || r->ended)
		return false;
	/* What others print who have inherited its output is none of its own. */
	if (r->fd >= 0 && ioctl(r->fd, FIONREAD, &there) < 0)
		there = 0;
	r->owed = r->unwritten + (size_t)there;
	if (!r->owed)
		return false;
	r->ended = true;
	r->status = status;
	r->since = now_ns();
	a->draining++;
	watch(a, r, r->unwritten + RELAY_PIECE <= RELAY_WAY);
	return true;
}

void relay_heard(struct agent *a, uint32_t host, struct wf_body *b)
{
	uint32_t process = wf_body_get32(b), n = wf_body_get32(b);
	struct relay *r = relay_of(process);

	if (!wf_body_whole(b) || !r || r->host != host || n > r->unwritten)
		return;
	r->unwritten -= n;
	if (r->ended) {
		r->owed -= n < r->owed ? n : r->owed;
		r->since = now_ns();
		if (!r->owed)
			tell(a, r);
	}
	watch(a, r, r->unwritten + RELAY_PIECE <= RELAY_WAY);
	forget(r);
}

void relay_host_gone(struct agent *a, uint32_t host)
{
	for (struct relay *r = relays, *next; r; r = next) {
		next = r->next;
		if (r->host != host)
			continue;
		r->lost = true;
		r->unwritten = 0;
		if (r->ended)
			tell(a, r);
		watch(a, r, true);
		forget(r);
	}
}

int64_t relay_next(const struct agent *a)
{
	int64_t until = 0;

	for (struct relay *r = relays; a->draining && r; r = r->next)
		if (r->ended && (!until || r->since + RELAY_PATIENCE < until))
			until = r->since + RELAY_PATIENCE;
	return until;
}

void relay_look(struct agent *a, int64_t now)
{
	for (struct relay *r = relays; a->draining && r; r = r->next)
		if (r->ended && now - r->since >= RELAY_PATIENCE)
			tell(a, r);
}
