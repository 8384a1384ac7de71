/* desk.c - what processes send the agent: joins through their doors, and calls.
 *
 * Every byte and descriptor is a stranger's: a frame has exactly its size and its descriptors, numbers are in range, or it is
 * nonsense, and who sends that through a link is killed. One frame is taken per turn of the loop, so that nobody
 * who calls without end keeps the others waiting. Every call is answered before the next frame is looked at.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "embassy.h"
#include "grow.h"
#include "job/frames.h"
#include "launch.h"
#include "mesh.h"
#include "post.h"
#include "wire/hosts.h"

#define REPLY_TRIES 1000        /* of an answer that finds no memory, a millisecond apart */
#define LAST_FRAMES 1024        /* more than a socket holds */

/* The loop comes again. */
static bool try_again(ssize_t n)
{
	return n == -EAGAIN || n == -ENOMEM || n == -ENOBUFS;
}

static struct place *place_of(struct agent *a, uint32_t number)
{
	return number < WF_AGENTS ? a->numbered[number] : NULL;
}

/* Segments */

/* Where @number is, or belongs. */
static size_t segment_index(const struct place *p, uint32_t number)
{
	size_t low = 0, high = p->segment_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (p->segments[mid].number < number)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct segment *segment_find(struct place *p, uint32_t number)
{
	size_t i = segment_index(p, number);

	return i < p->segment_count && p->segments[i].number == number ? &p->segments[i] : NULL;
}

/* Takes @fd on success. */
static int segment_add(struct place *p, uint32_t number, int fd)
{
	size_t i = segment_index(p, number);

	if (segment_find(p, number))
		return -EEXIST;
	if (p->segment_count == p->segment_room) {
		size_t room = p->segment_room ? 2 * p->segment_room : 16;
		struct segment *all = realloc(p->segments, room * sizeof(*all));

		if (!all)
			return -ENOMEM;
		p->segments = all;
		p->segment_room = room;
	}
	memmove(&p->segments[i + 1], &p->segments[i], (p->segment_count - i) * sizeof(*p->segments));
	p->segments[i] = (struct segment){ .number = number, .fd = fd };
	p->segment_count++;
	return 0;
}

static int segment_drop(struct place *p, uint32_t number)
{
	struct segment *s = segment_find(p, number);

	if (!s)
		return -ESRCH;
	close(s->fd);
	memmove(s, s + 1, (size_t)(&p->segments[--p->segment_count] - s) * sizeof(*s));
	return 0;
}

/* Joining */

static bool is_packet_socket(int fd)
{
	int type = 0, domain = 0;
	socklen_t len = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET &&
	       getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX;
}

/* Others will map and write them: that they are what they should be is known before anybody else sees them. Seals are
 * asked for first: a file that has them has no file system behind it that could keep the agent waiting. */
static bool are_board_and_event(int board, int event, uint64_t board_bytes)
{
	char path[64], name[64];
	struct stat st;
	int seals = fcntl(board, F_GET_SEALS);
	ssize_t n;

	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return false;
	if (fstat(board, &st) < 0 || st.st_size < 0 || (uint64_t)st.st_size < board_bytes)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", event);
	n = readlink(path, name, sizeof(name) - 1);
	if (n < 0)
		return access("/proc/self/fd", F_OK) < 0;       /* nobody can tell */
	name[n] = 0;
	return strstr(name, "[eventfd]") != NULL;
}

static void refuse(struct wf_parcel *parcel, const char *words)
{
	struct wf_frame_welcome w = { .result = -EACCES };

	strncpy(w.words, words, sizeof(w.words) - 1);
	if (parcel->count && is_packet_socket(parcel->fds[WF_JOIN_CALLS]))
		wf_parcel_send(parcel->fds[WF_JOIN_CALLS], &w, sizeof(w), NULL, 0, MSG_DONTWAIT);
	wf_parcel_drop(parcel);
}

static void no_descriptors(struct agent *a, const struct place *p, struct wf_parcel *parcel)
{
	refuse(parcel, "the agent has no descriptors left");
	agent_say(a, "process %u cannot join: no descriptors left (ulimit -n)", p->number);
	agent_end(a, CODE_FAULT);
}

static bool is_closed(int sock)
{
	struct pollfd p = { .fd = sock };
	int n;

	do
		n = poll(&p, 1, 0);
	while (n < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOMEM));
	return n != 0;
}

/* Why @join is refused, in words; or an empty text. What a stranger calls its version may end up on a terminal. */
static void judge(const struct place *p, const struct wf_frame_join *join, const struct wf_parcel *parcel, char *words,
		  size_t room)
{
	char version[sizeof(join->version) + 1] = "";

	for (size_t i = 0; i < sizeof(join->version) && join->version[i]; i++)
		version[i] = join->version[i] > ' ' && join->version[i] < 127 ? join->version[i] : '?';
	words[0] = 0;
	if (join->protocol != WF_JOIN_PROTOCOL || strcmp(version, WF_VERSION) != 0)
		snprintf(words, room, "the job runs weft %s (protocol %u), this program has weft %s (protocol %u)", WF_VERSION,
			 WF_JOIN_PROTOCOL, version, join->protocol);
	else if (parcel->uid != geteuid())
		snprintf(words, room, "the job is user %u's, this process is user %u's", (unsigned)geteuid(),
			 (unsigned)parcel->uid);
	else if (p->stage != STAGE_EMPTY)
		snprintf(words, room, "process %u of the job %s pid %d", p->number, p->stage == STAGE_IN ? "is" : "was",
			 (int)p->pid);
}

/* Who gets no answer would wait for it for ever, so one that cannot be answered is killed. False: it can, but not with
 * descriptors now. */
static bool reply(struct agent *a, struct place *p, const void *frame, size_t bytes, const int *fds, unsigned count)
{
	int r;

	for (int tries = 0; tries < REPLY_TRIES; tries++) {
		r = wf_parcel_send(p->calls, frame, bytes, fds, count, MSG_DONTWAIT);
		if (r != -ENOMEM && r != -ENOBUFS)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	if (r == 0 || r == -EPIPE || r == -ECONNRESET)  /* closed: the loop hears of that as well */
		return true;
	if (r == -ETOOMANYREFS && count)
		return false;
	death_nonsense(a, p, r == -EAGAIN ? "calls without reading the answers" : "a call that cannot be answered");
	return true;
}

/* Takes the descriptors; they are what they should be. */
static void admit(struct agent *a, struct place *p, struct wf_parcel *parcel, int pidfd)
{
	struct wf_frame_welcome w = { .process = p->number, .base = p->base, .count = p->size };

	if (a->run->map) {
		w.host = a->run->host;
		w.hosts = a->run->map->hosts;
		w.ports = w.ports_last = wf_hosts_port(a->run->map, p->number);
		strncpy(w.adapter, wf_hosts_adapter(a->run->map, p->number), sizeof(w.adapter) - 1);
		memcpy(w.key, a->run->key.bytes, sizeof(w.key));
	} else if (a->run->meshed) {
		w.host = a->run->host;
		w.hosts = a->run->hosts_count;
		w.ports = a->run->ports;
		w.ports_last = a->run->ports_last;
		strncpy(w.adapter, a->run->adapter, sizeof(w.adapter) - 1);
		memcpy(w.key, a->run->key.bytes, sizeof(w.key));
	}

	p->pid = parcel->pid;
	p->pidfd = pidfd;
	p->calls = parcel->fds[WF_JOIN_CALLS];
	p->notes = parcel->fds[WF_JOIN_NOTES];
	p->board = parcel->fds[WF_JOIN_BOARD];
	p->event = parcel->fds[WF_JOIN_EVENT];
	p->stage = STAGE_IN;
	if (agent_watch(a, p->calls, FROM_CALLS, p->number) < 0 || agent_watch(a, p->notes, FROM_NOTES, p->number) < 0 ||
	    (pidfd >= 0 && agent_watch(a, pidfd, FROM_PIDFD, p->number) < 0)) {
		agent_say(a, "cannot watch process %u: %s", p->number, strerror(errno));
		agent_end(a, CODE_FAULT);
	}
	memcpy(w.job, a->job, sizeof(w.job));
	agent_remark(a, "process %u (pid %d) has joined", p->number, (int)p->pid);
	news_joined(a, p);
	embassy_joined(a, p);
	reply(a, p, &w, sizeof(w), NULL, 0);
	post_joined(a, p->number);
}

static void join(struct agent *a, struct place *p, const struct wf_frame_join *join, struct wf_parcel *parcel)
{
	char words[sizeof(((struct wf_frame_welcome *)NULL)->words)];
	int pidfd = -1;

	judge(p, join, parcel, words, sizeof(words));
	if (words[0]) {
		agent_remark(a, "pid %d was refused as process %u: %s", (int)parcel->pid, p->number, words);
		refuse(parcel, words);
		return;
	}
	if (parcel->lost && parcel->count < WF_JOIN_FDS) {
		no_descriptors(a, p, parcel);
		return;
	}
	if (parcel->lost || parcel->count != WF_JOIN_FDS || join->reserved || !is_packet_socket(parcel->fds[WF_JOIN_CALLS]) ||
	    !is_packet_socket(parcel->fds[WF_JOIN_NOTES]) ||
	    !are_board_and_event(parcel->fds[WF_JOIN_BOARD], parcel->fds[WF_JOIN_EVENT], join->board_bytes)) {
		agent_say(a, "pid %d sent nonsense to join as process %u", (int)parcel->pid, p->number);
		refuse(parcel, "that was no join");
		return;
	}
	if (parcel->pid != p->main) {
		/* It waits for the answer: if it still does afterwards, what was opened is the sender and nobody who got
		 * its number. */
		pidfd = (int)syscall(SYS_pidfd_open, parcel->pid, 0);
		if (pidfd < 0 && (errno == EMFILE || errno == ENFILE)) {
			no_descriptors(a, p, parcel);
			return;
		}
		if (is_closed(parcel->fds[WF_JOIN_CALLS])) {
			fd_close(&pidfd);
			wf_parcel_drop(parcel);
			return;
		}
	}
	admit(a, p, parcel, pidfd);
}

void desk_door(struct agent *a, struct place *p)
{
	struct wf_frame_join frame;
	struct wf_parcel parcel;
	ssize_t n = wf_parcel_recv(p->door, &frame, sizeof(frame), &parcel, MSG_DONTWAIT);

	if (try_again(n))
		return;
	if (n >= (ssize_t)offsetof(struct wf_frame_join, board_bytes) && frame.magic == WF_JOIN_MAGIC &&
	    ((n == sizeof(frame) && !parcel.cut) || frame.protocol != WF_JOIN_PROTOCOL)) {
		join(a, p, &frame, &parcel);
		return;
	}
	wf_parcel_drop(&parcel);
	if (n > 0)
		agent_say(a, "pid %d sent nonsense through the door of process %u, which is closed now", (int)parcel.pid,
			  p->number);
	fd_close(&p->door);
	if (p->guest && p->stage == STAGE_EMPTY)
		news_gone(a, p, 0, true);       /* went without having joined */
}

/* Calls */

static void answer(struct agent *a, struct place *p, uint32_t what, int result, const int *fds, unsigned count)
{
	struct wf_frame_answer frame = { .what = what, .result = result };

	if (!reply(a, p, &frame, sizeof(frame), fds, count)) {
		frame.result = -EMFILE;
		reply(a, p, &frame, sizeof(frame), NULL, 0);
	}
}

static void call_meet(struct agent *a, struct place *p, struct place *other)
{
	if (other->board >= 0) {
		answer(a, p, WF_CALL_MEET, 0, (int[]){ other->board, other->event }, 2);
		news_tell(a, other, WF_NOTE_MEET, p);
	} else if (other->stage == STAGE_EMPTY) {
		news_asked(p, other->number);
		answer(a, p, WF_CALL_MEET, -EAGAIN, NULL, 0);
	} else {
		answer(a, p, WF_CALL_MEET, -ESRCH, NULL, 0);
	}
}

static void call_give(struct agent *a, struct place *p, struct place *other, uint32_t number)
{
	struct segment *s = segment_find(other, number);

	answer(a, p, WF_CALL_GIVE, s ? 0 : -ESRCH, s ? &s->fd : NULL, s ? 1 : 0);
}

static void call_tell(struct agent *a, struct place *p, uint32_t number, struct wf_parcel *parcel)
{
	int r = -EMFILE;        /* it was lost on the way, or there is no room for it here */

	if (parcel->count == 1 && a->segments < a->segments_most) {
		r = segment_add(p, number, parcel->fds[0]);
		if (r == 0) {
			parcel->count = 0;
			a->segments++;
		}
	}
	answer(a, p, WF_CALL_TELL, r, NULL, 0);
}

static void call_untell(struct agent *a, struct place *p, uint32_t number)
{
	int r = segment_drop(p, number);

	if (r == 0)
		a->segments--;
	answer(a, p, WF_CALL_UNTELL, r, NULL, 0);
}

static void call_bye(struct agent *a, struct place *p)
{
	answer(a, p, WF_CALL_BYE, 0, NULL, 0);
	if (p->stage != STAGE_IN)
		return;
	agent_remark(a, "process %u (pid %d) has left", p->number, (int)p->pid);
	news_gone(a, p, 0, true);
}

static void call_where(struct agent *a, struct place *p, uint32_t process)
{
	struct wf_frame_where where;

	if (wf_foreign(process)) {
		memset(&where, 0, sizeof(where));
		where.what = WF_CALL_WHERE;
		where.result = embassy_where(a, process, where.at);
		reply(a, p, &where, sizeof(where), NULL, 0);
		return;
	}
	where_answer(&a->where, process, &where);
	if (where.result == -EAGAIN)
		news_asked(p, process);
	reply(a, p, &where, sizeof(where), NULL, 0);
}

/* True: it has said where it is. */
static bool at_taken(struct agent *a, struct place *p, const struct wf_frame_at *f, ssize_t n)
{
	struct spot *s = where_spot(&a->where, p->number);

	if (n != (ssize_t)sizeof(*f) || f->what != WF_CALL_AT)
		return false;
	for (size_t i = 0; i < sizeof(s->at) - 1; i++)
		s->at[i] = f->at[i] > ' ' && f->at[i] < 127 ? f->at[i] : 0;
	answer(a, p, WF_CALL_AT, 0, NULL, 0);
	mesh_here(a, p->number);
	return true;
}

/* True: it was an abort, and that was it. The words are a stranger's and go to a terminal. */
static bool abort_taken(struct agent *a, const struct place *p, const struct wf_frame_abort *f, ssize_t n)
{
	char words[WF_ABORT_WORDS];
	size_t i;

	if (n != (ssize_t)sizeof(*f) || f->what != WF_CALL_ABORT)
		return false;
	for (i = 0; i < sizeof(words) - 1 && f->words[i]; i++)
		words[i] = iscntrl((unsigned char)f->words[i]) ? '?' : f->words[i];
	words[i] = 0;
	agent_abort(a, p, wf_abort_code(f->code), words);
	return true;
}

/* NULL, or what is wrong with @c. */
static const char *wrong(const struct wf_frame_call *c, const struct wf_parcel *parcel)
{
	bool process = c->what == WF_CALL_MEET || c->what == WF_CALL_GIVE || c->what == WF_CALL_ACTED || c->what == WF_CALL_WHERE;
	bool segment = c->what == WF_CALL_TELL || c->what == WF_CALL_UNTELL || c->what == WF_CALL_GIVE;
	bool lost = parcel->lost && parcel->count == 0; /* there was a descriptor, and no room for it here */

	if (c->what < WF_CALL_MEET || c->what > WF_CALL_WHERE)
		return "an unknown call";
	if (process ? c->process == 0 || (c->process >= WF_PROCESSES && !(c->what == WF_CALL_WHERE && wf_foreign(c->process))) : c->process != 0)
		return "a process out of range";
	if (segment != (c->segment != 0))
		return "a segment out of range";
	if (c->what == WF_CALL_TELL ? !lost && (parcel->lost || parcel->count != 1) : parcel->lost || parcel->count)
		return "other descriptors than the call has";
	return NULL;
}

static void serve(struct agent *a, struct place *p, const struct wf_frame_call *c, struct wf_parcel *parcel)
{
	struct place *other = place_of(a, c->process);

	if (!other && (c->what == WF_CALL_MEET || c->what == WF_CALL_GIVE || c->what == WF_CALL_ACTED)) {
		answer(a, p, c->what, -ESRCH, NULL, 0);
		return;
	}
	switch (c->what) {
	case WF_CALL_MEET:
		call_meet(a, p, other);
		break;
	case WF_CALL_TELL:
		call_tell(a, p, c->segment, parcel);
		break;
	case WF_CALL_UNTELL:
		call_untell(a, p, c->segment);
		break;
	case WF_CALL_GIVE:
		call_give(a, p, other, c->segment);
		break;
	case WF_CALL_ACTED:
		if (other->stage != STAGE_LEFT && other->stage != STAGE_DEAD) {
			death_nonsense(a, p, "word of having acted on the death of a living process");
			break;
		}
		answer(a, p, c->what, 0, NULL, 0);
		news_acted(a, p, other);
		break;
	case WF_CALL_BYE:
		call_bye(a, p);
		break;
	case WF_CALL_WHERE:
		call_where(a, p, c->process);
		break;
	}
}

union frame {
	struct wf_frame_call call;
	struct wf_frame_abort abort;
	struct wf_frame_at at;
	struct wf_frame_dir dir;
	struct wf_frame_launch launch;
	struct wf_frame_kill kill;
	struct wf_frame_grow grow;
	struct wf_frame_envoy envoy;
};

/* True: it has something to say to the directory. */
static bool dir_taken(struct agent *a, struct place *p, const struct wf_frame_dir *f, ssize_t n)
{
	if (n <= (ssize_t)offsetof(struct wf_frame_dir, msg) || f->what != WF_CALL_DIR)
		return false;
	answer(a, p, WF_CALL_DIR, 0, NULL, 0);
	post_said(a, p, f->msg, (size_t)n - offsetof(struct wf_frame_dir, msg));
	return true;
}

/* Comes with descriptors of its own. */
static bool launch_taken(struct agent *a, struct place *p, const struct wf_frame_launch *f, ssize_t n, struct wf_parcel *parcel)
{
	if (n <= (ssize_t)offsetof(struct wf_frame_launch, spec) || f->what != WF_CALL_LAUNCH)
		return false;
	answer(a, p, WF_CALL_LAUNCH, parcel->lost ? -EMFILE : 0, NULL, 0);
	if (parcel->lost)
		wf_parcel_drop(parcel);         /* nothing has happened */
	else
		launch_asked(a, p, f->name, f->spec, (size_t)n - offsetof(struct wf_frame_launch, spec), parcel);
	return true;
}

static bool kill_taken(struct agent *a, struct place *p, const struct wf_frame_kill *f, ssize_t n)
{
	if (n != (ssize_t)sizeof(*f) || f->what != WF_CALL_KILL)
		return false;
	answer(a, p, WF_CALL_KILL, death_signal(a, f->process, f->sig), NULL, 0);
	return true;
}

static bool grow_taken(struct agent *a, struct place *p, const struct wf_frame_grow *f, ssize_t n)
{
	if (n <= (ssize_t)offsetof(struct wf_frame_grow, hosts) || f->what != WF_CALL_GROW)
		return false;
	answer(a, p, WF_CALL_GROW, 0, NULL, 0);
	grow_asked(a, p, f, (size_t)n - offsetof(struct wf_frame_grow, hosts));
	return true;
}

static bool treaty_taken(struct agent *a, struct place *p, const struct wf_frame_call *f, ssize_t n)
{
	struct wf_frame_treaty treaty;

	if (n != (ssize_t)sizeof(*f) || f->what != WF_CALL_TREATY)
		return false;
	embassy_treaty(f->process, &treaty);
	reply(a, p, &treaty, sizeof(treaty), NULL, 0);
	explicit_bzero(&treaty, sizeof(treaty));
	return true;
}

static bool envoy_taken(struct agent *a, struct place *p, const struct wf_frame_envoy *f, ssize_t n)
{
	int r;

	if (n <= (ssize_t)offsetof(struct wf_frame_envoy, msg) || f->what != WF_CALL_ENVOY)
		return false;
	r = embassy_asked(a, p, f->alias, f->msg, (size_t)n - offsetof(struct wf_frame_envoy, msg));
	if (r == -EBADMSG)
		death_nonsense(a, p, "what is no question to another job");
	else
		answer(a, p, WF_CALL_ENVOY, r, NULL, 0);
	return true;
}

/* Frames of their own. */
static bool taken_apart(struct agent *a, struct place *p, const union frame *f, ssize_t n)
{
	return abort_taken(a, p, &f->abort, n) || at_taken(a, p, &f->at, n) || dir_taken(a, p, &f->dir, n) || kill_taken(a, p, &f->kill, n) || grow_taken(a, p, &f->grow, n) ||
	       treaty_taken(a, p, &f->call, n) || envoy_taken(a, p, &f->envoy, n);
}

/* Who aborted the job and was not killed for a second has ended by itself: its word still counts. */
void desk_last_words(struct agent *a, struct place *p)
{
	union frame frame;
	struct wf_parcel parcel;
	ssize_t n = 1;

	for (unsigned i = 0; i < LAST_FRAMES && n > 0 && p->calls >= 0; i++) {
		n = wf_parcel_recv(p->calls, &frame, sizeof(frame), &parcel, MSG_DONTWAIT);
		wf_parcel_drop(&parcel);
		if (!parcel.cut)
			abort_taken(a, p, &frame.abort, n);
	}
}

void desk_call(struct agent *a, struct place *p)
{
	static union frame frame;
	struct wf_parcel parcel;
	ssize_t n = wf_parcel_recv(p->calls, &frame, sizeof(frame), &parcel, MSG_DONTWAIT);
	const char *what;

	if (try_again(n))
		return;
	if (n <= 0 || p->stage != STAGE_IN) {
		wf_parcel_drop(&parcel);
		death_link(a, p);
		return;
	}
	if (!parcel.cut && launch_taken(a, p, &frame.launch, n, &parcel))
		return;
	if (!parcel.cut && !parcel.count && !parcel.lost && taken_apart(a, p, &frame, n))
		return;
	what = n != (ssize_t)sizeof(frame.call) || parcel.cut ? "a frame of another size" : wrong(&frame.call, &parcel);
	if (what)
		death_nonsense(a, p, what);
	else
		serve(a, p, &frame.call, &parcel);
	wf_parcel_drop(&parcel);
}
