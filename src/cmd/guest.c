/* guest.c - see guest.h.
 *
 * The socket has a name in the kernel's own space of names, so nothing is left of it: weft/USER/JOB/HOST. Who connects says what he speaks, is looked at (he has to be the
 * user whose job it is), gets a number, and from then on his socket is the door of a place like any other; but the agent did not start him, and does not
 * end with him.
 */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent.h"
#include "hosted.h"
#include "job/frames.h"
#include "launch.h"
#include "mesh.h"

#define GUESTS 64u                      /* that have come and have no place yet */
#define TICKET 0x80000000u              /* or'ed to a guest's slot: launches have tickets of their own */

static struct {
	int fd;                         /* -1: nobody */
	uint32_t turn;                  /* so that a number that comes late is not another's */
	bool knocked;
} guests[GUESTS];
static int listener = -1;
static int spare = -1;                  /* a descriptor for who comes when there is none left: who is not taken in keeps the loop from sleeping, and waits himself */

static uint32_t ticket_of(uint32_t slot)
{
	return TICKET | (guests[slot].turn << 8 & 0x7fffff00u) | slot;
}

int guest_open(struct agent *a)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int n = 0;

	for (uint32_t i = 0; i < GUESTS; i++)
		guests[i].fd = -1;
	spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	n += snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, "weft/%u/", (unsigned)geteuid());
	for (unsigned i = 0; i < sizeof(a->job); i++)
		n += snprintf(sa.sun_path + 1 + n, sizeof(sa.sun_path) - 1 - (size_t)n, "%02x", a->job[i]);
	n += snprintf(sa.sun_path + 1 + n, sizeof(sa.sun_path) - 1 - (size_t)n, "/%u", a->run->host);
	snprintf(a->url, sizeof(a->url), "weft+unix:@%s", sa.sun_path + 1);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&sa, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) < 0 || listen(listener, 64) < 0 ||
	    agent_watch(a, listener, FROM_GUESTS, 0) < 0) {
		fd_close(&listener);
		a->url[0] = 0;
		return -1;
	}
	return 0;
}

static void refuse(int fd, const char *words)
{
	struct wf_frame_seat seat = { .result = -EACCES };

	snprintf(seat.words, sizeof(seat.words), "%s", words);
	wf_parcel_send(fd, &seat, sizeof(seat), NULL, 0, MSG_DONTWAIT);
	close(fd);
}

static void refuse_one(void)
{
	int fd;

	fd_close(&spare);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		refuse(fd, "the agent has no descriptors left");
	spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void guest_arrives(struct agent *a)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), one = 1;
	struct ucred who;
	socklen_t len = sizeof(who);
	uint32_t slot = 0;

	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		refuse_one();
	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 || who.uid != geteuid()) {
		refuse(fd, "the job is another user's");
		return;
	}
	while (slot < GUESTS && guests[slot].fd >= 0)
		slot++;
	if (slot == GUESTS || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) < 0 || agent_watch(a, fd, FROM_GUEST, slot) < 0) {
		refuse(fd, "too many come at a time");
		return;
	}
	guests[slot].fd = fd;
	guests[slot].turn++;
	guests[slot].knocked = false;
}

static void send_away(uint32_t slot, const char *words)
{
	refuse(guests[slot].fd, words);
	guests[slot].fd = -1;
}

/* False: it went wrong, and @p is as it was. */
static bool sit(struct agent *a, uint32_t slot, struct place *p)
{
	struct wf_frame_seat seat = { .process = p->number, .base = p->base, .count = p->size };
	int fd = guests[slot].fd;

	if (agent_rewatch(a, fd, FROM_DOOR, p->number) < 0) {
		send_away(slot, "no memory");
		return false;
	}
	guests[slot].fd = -1;
	p->guest = true;
	p->door = fd;
	if (wf_parcel_send(fd, &seat, sizeof(seat), NULL, 0, MSG_DONTWAIT) < 0)
		shutdown(fd, SHUT_RDWR);        /* the loop hears of that */
	return true;
}

void guest_knocks(struct agent *a, uint32_t slot)
{
	struct wf_frame_knock knock;
	struct wf_parcel parcel;
	char words[128];
	ssize_t n;

	if (slot >= GUESTS || guests[slot].fd < 0)
		return;
	n = wf_parcel_recv(guests[slot].fd, &knock, sizeof(knock), &parcel, MSG_DONTWAIT);
	wf_parcel_drop(&parcel);
	if (n == -EAGAIN || n == -ENOMEM || n == -ENOBUFS)
		return;
	if (n != (ssize_t)sizeof(knock) || knock.magic != WF_KNOCK_MAGIC || guests[slot].knocked) {
		close(guests[slot].fd);
		guests[slot].fd = -1;
		return;
	}
	knock.version[sizeof(knock.version) - 1] = 0;
	if (knock.protocol != WF_JOIN_PROTOCOL || strcmp(knock.version, WF_VERSION) != 0) {
		snprintf(words, sizeof(words), "the job runs weft %s, this program has another version", WF_VERSION);
		send_away(slot, words);
		return;
	}
	if (a->phase != WORKING || (a->run->meshed && !a->begun)) {
		send_away(slot, a->phase != WORKING ? "the job is ending" : "the job has not begun");
		return;
	}
	if (knock.rank != UINT32_MAX) {
		struct place *p = a->run->hosted ? hosted_place(a, knock.rank) : NULL;

		if (p)
			sit(a, slot, p);
		else
			send_away(slot, "that rank is not of this host, or it is there already");
		return;
	}
	guests[slot].knocked = true;
	launch_guest(a, ticket_of(slot));
}

void guest_number(struct agent *a, uint32_t ticket, uint32_t base)
{
	uint32_t slot = ticket & 0xffu;
	struct place *p;

	if (slot >= GUESTS || guests[slot].fd < 0 || ticket != ticket_of(slot)) {
		if (base)
			mesh_gone(a, base + 1, STATUS_UNKNOWN, true);   /* it went before: the agents know the number already */
		return;
	}
	if (!base) {
		send_away(slot, "the job has used up its numbers of processes");
		return;
	}
	p = place_add(a, base + 1, base, 1);
	if (!p) {
		send_away(slot, "no memory");
		mesh_gone(a, base + 1, STATUS_UNKNOWN, true);
		return;
	}
	if (!sit(a, slot, p))
		news_gone(a, p, STATUS_UNKNOWN, false);
}
