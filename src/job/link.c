/* link.c - this process's link to the agent of its host. See link.h; the frames are in frames.h.
 *
 * Any thread may call, one at a time (call_lock, a leaf): a call is a frame and its answer. Notices are read by the listener
 * alone. Every descriptor is close-on-exec, so that a program exec'ed in this place has left the job; a forked child closes
 * its copies.
 *
 * That the agent is gone says only a closed socket. Lack of memory passes: it is waited for, a second at most. Then a call that could not be
 * sent has failed, no more; one whose answer cannot be read has left the link out of step, and that is its end.
 */
#include "job/link.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <weft/base.h>

#include "base/clock.h"
#include "job/frames.h"
#include "job/url.h"
#include "mem/segment.h"
#include "wire/treaty.h"

#define MOST_TRIES 1000         /* of a frame that finds no memory, a millisecond apart */

static pthread_mutex_t call_lock = PTHREAD_MUTEX_INITIALIZER;
static int calls = -1, notes = -1;      /* set while joined */
static int seat_door = -1;              /* of who came by himself, until he has joined */
static uint32_t seat_base;

static int find_inherited(uint32_t *ret_base);

static int gone(void)
{
	return weft_fail(-ECONNRESET, "the agent of this host is gone");
}

static void close_at(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* It may be otherwise in a moment. EAGAIN: somebody has made the socket one that does not block. */
static bool passes(ssize_t err)
{
	return err == -ENOMEM || err == -ENOBUFS || err == -EAGAIN;
}

/* 0; -ENOMEM: there was no memory for it, and it was not sent; or what the socket says. */
static int send_patiently(int sock, const void *frame, size_t bytes, const int *fds, unsigned count)
{
	int r = -ENOMEM;

	for (int tries = 0; tries < MOST_TRIES; tries++) {
		r = wf_parcel_send(sock, frame, bytes, fds, count, 0);
		if (!passes(r))
			return r;
		wf_nap(WEFT_MS);
	}
	return -ENOMEM;
}

/* As wf_parcel_recv; for an answer it waits as long as it takes. */
static ssize_t recv_patiently(int sock, void *frame, size_t room, struct wf_parcel *ret_parcel)
{
	ssize_t n = -ENOMEM;

	for (int tries = 0; tries < MOST_TRIES; tries += n != -EAGAIN) {
		n = wf_parcel_recv(sock, frame, room, ret_parcel, 0);
		if (!passes(n))
			return n;
		wf_nap(WEFT_MS);
	}
	return n;
}

static bool is_gone(int err)
{
	return err == -EPIPE || err == -ECONNRESET || err == -ENOTCONN;
}

/* Why a frame to the agent was not sent. */
static int unsent(int err)
{
	if (is_gone(err))
		return gone();
	if (err == -ETOOMANYREFS)
		return weft_fail(-EMFILE, "too many descriptors of this user are on their way");
	return weft_fail(err, "the agent cannot be asked: %s", strerror(-err));
}

/* The door's descriptor, or -1. */
static int find_door(uint32_t *ret_base)
{
	if (seat_door >= 0) {
		*ret_base = seat_base;
		return seat_door;
	}
	return find_inherited(ret_base);
}

/* What an agent has left open for us. */
static int find_inherited(uint32_t *ret_base)
{
	const char *text = getenv(WF_AGENT_ENV);
	unsigned long long inode;
	struct stat st;
	int fd, end = 0, type = 0;
	socklen_t len = sizeof(type);
	unsigned base;

	if (!text || sscanf(text, "%d:%llu:%u%n", &fd, &inode, &base, &end) != 3 || text[end] || fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode) || (unsigned long long)st.st_ino != inode)
		return -1;
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_SEQPACKET)
		return -1;
	*ret_base = base;
	return fd;
}

bool wf_link_offered(uint32_t *ret_base)
{
	return calls < 0 && find_door(ret_base) >= 0;
}

static int seat_taken(int sock, uint32_t rank, struct wf_frame_seat *ret_seat)
{
	struct wf_frame_knock knock = { .magic = WF_KNOCK_MAGIC, .protocol = WF_JOIN_PROTOCOL, .rank = rank, .version = WF_VERSION };
	struct wf_parcel parcel;
	ssize_t n;
	int r = send_patiently(sock, &knock, sizeof(knock), NULL, 0);

	if (r < 0)
		return unsent(r);
	n = recv_patiently(sock, ret_seat, sizeof(*ret_seat), &parcel);
	wf_parcel_drop(&parcel);
	if (n != (ssize_t)sizeof(*ret_seat) || parcel.cut)
		return weft_fail(-ECONNRESET, "the agent did not answer");
	if (ret_seat->result < 0)
		return weft_fail(-EACCES, "%.*s", (int)strnlen(ret_seat->words, sizeof(ret_seat->words)), ret_seat->words);
	return 0;
}

int wf_link_visit(const char *text, uint32_t rank, uint32_t *ret_process, uint32_t *ret_base, uint32_t *ret_count)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct wf_frame_seat seat;
	struct wf_url url;
	struct ucred who;
	socklen_t len = sizeof(who);
	int sock, r = wf_url_parse(text, &url);

	if (r < 0)
		return r;
	if (url.kind == WF_URL_NET)
		return weft_fail(-EOPNOTSUPP, "init join: a job is joined at an agent of this host: let the host join it first (weft grow), or attach to what it offers (weft_job_attach)");
	memcpy(sa.sun_path + (url.kind == WF_URL_NAME), url.path, strlen(url.path));
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return weft_fail(-errno, "socket: %s", strerror(errno));
	do
		r = connect(sock, (struct sockaddr *)&sa, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(url.path) + 1));
	while (r < 0 && errno == EINTR);
	if (r < 0)
		r = weft_fail(-ECONNREFUSED, "no job is at %s: %s", text, strerror(errno));
	/* Whoever has the name may listen there: the key and everything else is for the same user alone. */
	if (r == 0 && (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 || who.uid != geteuid()))
		r = weft_fail(-EACCES, "who listens at %s is another user", text);
	if (r == 0)
		r = seat_taken(sock, rank, &seat);
	if (r < 0) {
		close(sock);
		return r;
	}
	seat_door = sock;
	seat_base = seat.base;
	*ret_process = seat.process;
	*ret_base = seat.base;
	*ret_count = seat.count;
	return 0;
}

static int read_welcome(int sock, struct wf_welcome *ret_welcome)
{
	struct wf_frame_welcome w;
	struct wf_parcel parcel;
	ssize_t n = recv_patiently(sock, &w, sizeof(w), &parcel);

	wf_parcel_drop(&parcel);
	if (n != (ssize_t)sizeof(w) || parcel.cut)
		return weft_fail(-ECONNRESET, "the agent of this host did not answer");
	if (w.result < 0)
		return weft_fail(-EACCES, "%.*s", (int)strnlen(w.words, sizeof(w.words)), w.words);
	ret_welcome->process = w.process;
	ret_welcome->base = w.base;
	ret_welcome->count = w.count;
	memcpy(ret_welcome->job, w.job, sizeof(w.job));
	ret_welcome->host = w.host;
	ret_welcome->hosts = w.hosts;
	ret_welcome->ports = w.ports;
	ret_welcome->ports_last = w.ports_last;
	snprintf(ret_welcome->adapter, sizeof(ret_welcome->adapter), "%.*s", (int)strnlen(w.adapter, sizeof(w.adapter)), w.adapter);
	memcpy(ret_welcome->key.bytes, w.key, sizeof(w.key));
	explicit_bzero(w.key, sizeof(w.key));
	return 0;
}

/* @mine: calls and notes as they stay here, @theirs: as they go. */
static int knock(int door, const int mine[2], const int theirs[2], int board_fd, size_t board_bytes, int event_fd,
		 struct wf_welcome *ret_welcome)
{
	struct wf_frame_join join = {
		.magic = WF_JOIN_MAGIC, .protocol = WF_JOIN_PROTOCOL, .version = WF_VERSION, .board_bytes = board_bytes,
	};
	const int fds[WF_JOIN_FDS] = { theirs[0], theirs[1], board_fd, event_fd };
	int r = send_patiently(door, &join, sizeof(join), fds, WF_JOIN_FDS);

	close(theirs[0]);       /* else an agent that dies would leave our own copy open, and the wait below without an end */
	close(theirs[1]);
	if (r < 0)
		return unsent(r);
	return read_welcome(mine[0], ret_welcome);
}

int wf_link_join(int board_fd, size_t board_bytes, int event_fd, struct wf_welcome *ret_welcome)
{
	uint32_t base;
	int door = find_door(&base), c[2], n[2], r;

	if (door < 0)
		return weft_fail(-ECONNRESET, "no agent's door is open here");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, c) < 0)
		return weft_fail(-errno, "socketpair: %s", strerror(errno));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, n) < 0) {
		r = weft_fail(-errno, "socketpair: %s", strerror(errno));
		close(c[0]);
		close(c[1]);
		return r;
	}
	r = knock(door, (int[]){ c[0], n[0] }, (int[]){ c[1], n[1] }, board_fd, board_bytes, event_fd, ret_welcome);
	if (r < 0) {
		close(c[0]);
		close(n[0]);
		return r;
	}
	calls = c[0];
	notes = n[0];
	close(door);
	seat_door = -1;
	return 0;
}

/* Without an answer the next call would read this one's: the link is of no use any more, and the listener is to see it. */
static int lost(void)
{
	shutdown(calls, SHUT_RDWR);
	shutdown(notes, SHUT_RDWR);
	return gone();
}

/* One call. @fd goes with it if it is not -1. Of a result 0 exactly @count descriptors come back in @ret_fds. */
static int call_locked(const struct wf_frame_call *call, int fd, int *ret_fds, unsigned count)
{
	struct wf_frame_answer answer;
	struct wf_parcel parcel = { .count = 0 };
	int r;

	if (calls < 0)
		return gone();
	r = send_patiently(calls, call, sizeof(*call), &fd, fd >= 0);
	if (r < 0)
		return unsent(r);
	if (recv_patiently(calls, &answer, sizeof(answer), &parcel) != (ssize_t)sizeof(answer) || answer.what != call->what) {
		wf_parcel_drop(&parcel);
		return lost();
	}
	if (answer.result == 0 && parcel.count == count) {
		for (unsigned i = 0; i < count; i++)
			ret_fds[i] = parcel.fds[i];
		return 0;
	}
	wf_parcel_drop(&parcel);
	if (answer.result == 0)
		return weft_fail(-EMFILE, "no descriptors left in this process");
	return weft_fail(answer.result, "the agent refused call %u for process %u, segment %u: %s", call->what, call->process,
			 call->segment, strerror(-answer.result));
}

static int call(uint32_t what, uint32_t process, uint32_t segment, int fd, int *ret_fds, unsigned count)
{
	struct wf_frame_call frame = { .what = what, .process = process, .segment = segment };
	int r;

	pthread_mutex_lock(&call_lock);
	r = call_locked(&frame, fd, ret_fds, count);
	pthread_mutex_unlock(&call_lock);
	return r;
}

int wf_link_meet(uint32_t process, int *ret_board_fd, int *ret_event_fd)
{
	int fds[2];
	int r = call(WF_CALL_MEET, process, 0, -1, fds, 2);

	if (r == 0) {
		*ret_board_fd = fds[0];
		*ret_event_fd = fds[1];
	}
	return r;
}

int wf_link_tell(uint32_t segment, int fd)
{
	return call(WF_CALL_TELL, 0, segment, fd, NULL, 0);
}

int wf_link_untell(uint32_t segment)
{
	return call(WF_CALL_UNTELL, 0, segment, -1, NULL, 0);
}

int wf_link_give(uint32_t process, uint32_t segment)
{
	int fd, r;

	/* Numbers out of another process's message: the agent would hold us to be the one that is out of its mind. */
	if (!process || process >= WF_AGENTS || !segment)
		return -ESRCH;
	r = call(WF_CALL_GIVE, process, segment, -1, &fd, 1);
	return r < 0 ? r : fd;
}

int wf_link_acted(uint32_t process)
{
	return call(WF_CALL_ACTED, process, 0, -1, NULL, 0);
}

/* One call with an answer of its own, of @bytes; descriptors go with it. */
static int call_with(const void *frame, size_t n, const int *fds, unsigned count, void *ret_answer, size_t bytes)
{
	struct wf_parcel parcel = { .count = 0 };
	ssize_t got;
	int r;

	pthread_mutex_lock(&call_lock);
	r = calls < 0 ? gone() : send_patiently(calls, frame, n, fds, count);
	if (r < 0 && calls >= 0)
		r = unsent(r);
	if (r == 0) {
		got = recv_patiently(calls, ret_answer, bytes, &parcel);
		wf_parcel_drop(&parcel);
		if (got != (ssize_t)bytes || memcmp(frame, ret_answer, sizeof(uint32_t)) != 0)
			r = lost();
	}
	pthread_mutex_unlock(&call_lock);
	return r;
}

static int call_apart(const void *frame, size_t n, void *ret_answer, size_t bytes)
{
	return call_with(frame, n, NULL, 0, ret_answer, bytes);
}

int wf_link_at(const char *at)
{
	struct wf_frame_at frame = { .what = WF_CALL_AT };
	struct wf_frame_answer answer;
	int r;

	snprintf(frame.at, sizeof(frame.at), "%s", at);
	r = call_apart(&frame, sizeof(frame), &answer, sizeof(answer));
	return r < 0 ? r : answer.result;
}

int wf_link_dir(const void *msg, size_t len)
{
	struct wf_frame_dir frame;      /* on the stack: any thread may be here */
	struct wf_frame_answer answer;
	int r;

	if (len > sizeof(frame.msg))
		return -EMSGSIZE;
	frame.what = WF_CALL_DIR;
	frame.reserved = 0;
	memcpy(frame.msg, msg, len);
	r = call_apart(&frame, offsetof(struct wf_frame_dir, msg) + len, &answer, sizeof(answer));
	return r < 0 ? r : answer.result;
}

int wf_link_launch(uint32_t name, const void *spec, size_t len, const int *fds, unsigned count)
{
	struct wf_frame_launch *frame = len <= sizeof(frame->spec) ? malloc(sizeof(*frame)) : NULL;
	struct wf_frame_answer answer;
	int r;

	if (!frame)
		return weft_fail(-ENOMEM, "no memory to ask the agent");
	frame->what = WF_CALL_LAUNCH;
	frame->name = name;
	memcpy(frame->spec, spec, len);
	r = call_with(frame, offsetof(struct wf_frame_launch, spec) + len, fds, count, &answer, sizeof(answer));
	free(frame);
	if (r == 0 && answer.result < 0)
		return weft_fail(answer.result, "the agent of this host has no descriptors left for the output");
	return r;
}

int wf_link_kill(uint32_t process, int sig)
{
	struct wf_frame_kill frame = { .what = WF_CALL_KILL, .process = process, .sig = sig };
	struct wf_frame_answer answer;
	int r = call_apart(&frame, sizeof(frame), &answer, sizeof(answer));

	if (r == 0 && answer.result < 0)
		return weft_fail(answer.result, "signal %d to process %u: %s", sig, process, strerror(-answer.result));
	return r;
}

int wf_link_grow(uint32_t name, uint32_t ms, const char *hosts)
{
	size_t len = strlen(hosts) + 1;
	struct wf_frame_grow *frame = malloc(sizeof(*frame));
	struct wf_frame_answer answer;
	int r;

	if (!frame || len > sizeof(frame->hosts)) {
		free(frame);
		return frame ? -E2BIG : weft_fail(-ENOMEM, "no memory to ask the agent");
	}
	frame->what = WF_CALL_GROW;
	frame->name = name;
	frame->ms = ms;
	frame->reserved = 0;
	memcpy(frame->hosts, hosts, len);
	r = call_apart(frame, offsetof(struct wf_frame_grow, hosts) + len, &answer, sizeof(answer));
	free(frame);
	return r < 0 ? r : answer.result;
}

int wf_link_treaty(uint32_t alias, struct wf_treaty *ret_treaty)
{
	struct wf_frame_call frame = { .what = WF_CALL_TREATY, .process = alias };
	struct wf_frame_treaty answer;
	int r = call_apart(&frame, sizeof(frame), &answer, sizeof(answer));

	if (r == 0)
		r = answer.result;
	if (r == 0) {
		*ret_treaty = (struct wf_treaty){ .alias = answer.alias, .side = answer.side };
		memcpy(ret_treaty->id, answer.id, sizeof(ret_treaty->id));
		memcpy(ret_treaty->key.bytes, answer.key, sizeof(ret_treaty->key.bytes));
	}
	explicit_bzero(&answer, sizeof(answer));
	return r;
}

int wf_link_envoy(uint32_t alias, const void *msg, size_t len)
{
	struct wf_frame_envoy frame;    /* on the stack: any thread may be here */
	struct wf_frame_answer answer;
	int r;

	if (len > sizeof(frame.msg))
		return -EMSGSIZE;
	frame.what = WF_CALL_ENVOY;
	frame.alias = alias;
	memcpy(frame.msg, msg, len);
	r = call_apart(&frame, offsetof(struct wf_frame_envoy, msg) + len, &answer, sizeof(answer));
	return r < 0 ? r : answer.result;
}

static int ask_where(uint32_t process, struct wf_frame_where *ret_where)
{
	struct wf_frame_call frame = { .what = WF_CALL_WHERE, .process = process };
	int r = process ? call_apart(&frame, sizeof(frame), ret_where, sizeof(*ret_where)) : -ESRCH;

	return r < 0 ? r : ret_where->result == -ESRCH ? weft_fail(-ESRCH, "the job has no process %u", process) : 0;
}

int wf_link_where(uint32_t process, char *ret_at, size_t n)
{
	struct wf_frame_where where;
	int r = ask_where(process, &where);

	if (r < 0 || where.near)
		return r < 0 ? r : 1;
	if (where.result == 0)
		snprintf(ret_at, n, "%.*s", (int)strnlen(where.at, sizeof(where.at)), where.at);
	return where.result;
}

int wf_link_near(uint32_t process, uint32_t *ret_last)
{
	struct wf_frame_where where;
	int r = ask_where(process, &where);

	if (r < 0)
		return r;
	*ret_last = where.last;
	return where.near != 0;
}

int wf_link_bye(void)
{
	return call(WF_CALL_BYE, 0, 0, -1, NULL, 0);
}

/* Not answered, so that nothing has to be read. The lock is only for the socket to stay open. */
int wf_link_abort(int code, const char *why, weft_time until)
{
	struct wf_frame_abort frame = { .what = WF_CALL_ABORT, .code = code };
	int r = -EAGAIN;

	strncpy(frame.words, why, sizeof(frame.words) - 1);
	while (pthread_mutex_trylock(&call_lock) != 0) {
		if (wf_past(until))
			return weft_fail(-ETIMEDOUT, "the agent of this host does not answer");
		wf_nap(WEFT_MS);
	}
	while (calls >= 0 && passes(r = wf_parcel_send(calls, &frame, sizeof(frame), NULL, 0, MSG_DONTWAIT)) && !wf_past(until))
		wf_nap(WEFT_MS);
	if (calls < 0)
		r = gone();
	else if (r < 0)
		unsent(r);
	pthread_mutex_unlock(&call_lock);
	return r;
}

int wf_link_fd(void)
{
	return notes;
}

int wf_link_next(struct wf_note *ret_note, const void **ret_msg, size_t *ret_len)
{
	static int tries;               /* [listener] in a row that found no memory */
	static struct {
		struct wf_note note;
		unsigned char msg[WF_DIR_ROOM];
	} letter;                       /* [listener] */
	struct wf_parcel parcel;
	ssize_t n;

	if (notes < 0)
		return gone();
	n = wf_parcel_recv(notes, &letter, sizeof(letter), &parcel, MSG_DONTWAIT);
	wf_parcel_drop(&parcel);
	tries = passes(n) && n != -EAGAIN ? tries + 1 : 0;
	if (tries)
		wf_nap(WEFT_MS);        /* it can be read all the same: who waits for that comes back at once */
	if (n == -EAGAIN || (tries && tries < MOST_TRIES))
		return 0;
	if (n < (ssize_t)sizeof(letter.note) || parcel.cut || (n > (ssize_t)sizeof(letter.note) && letter.note.what != WF_NOTE_DIR && letter.note.what != WF_NOTE_LAUNCH && letter.note.what != WF_NOTE_GROW &&
	    letter.note.what != WF_NOTE_TREATY && letter.note.what != WF_NOTE_ENVOY))
		return gone();
	*ret_note = letter.note;
	*ret_msg = letter.msg;
	*ret_len = (size_t)n - sizeof(letter.note);
	return 1;
}

void wf_link_close(void)
{
	pthread_mutex_lock(&call_lock);         /* an abort may be looking at it */
	close_at(&calls);
	close_at(&notes);
	pthread_mutex_unlock(&call_lock);
}
