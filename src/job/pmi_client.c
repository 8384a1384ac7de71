/* pmi_client.c - PMI-1 and PMI-2 over the socket PMI_FD: one question, one answer, never more under way.
 *
 * Both know only one heap of keys for the whole job, so the rank is part of the key. The socket is waited for with poll(2): whether it
 * blocks is the launcher's business. It becomes close-on-exec, so that no child keeps it open, and is the launcher's until open has succeeded.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "job/pmi_space.h"
#include "job/pmi_wire.h"

struct client {
	int fd, version;
	enum wf_pmi_form form;
	uint32_t rank;
	char job[WF_SPACE_JOB];
	size_t have;                    /* bytes in @in */
	char in[WF_PMI_MOST];
	struct wf_pmi_reply reply;      /* the last one */
};

static int nonsense(const char *asked)
{
	return weft_fail(-EPROTO, "the launcher answers '%s' with something else", asked);
}

/* Until the socket can be read or written. */
static int wait_for(const struct client *c, short events, weft_time until)
{
	for (;;) {
		struct pollfd p = { .fd = c->fd, .events = events };
		int64_t left = until == WEFT_FOREVER ? WEFT_S : until - wf_now();
		int n;

		if (left <= 0)
			return weft_fail(-ETIMEDOUT, "the launcher did not answer in time");
		n = poll(&p, 1, (int)(left > WEFT_S ? 1000 : left / WEFT_MS + 1));
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR && errno != EAGAIN && errno != ENOMEM)
			return weft_fail(-errno, "the launcher's socket: %s", strerror(errno));
	}
}

static int cannot(ssize_t n)
{
	if (n == 0 || errno == EPIPE || errno == ECONNRESET)
		return weft_fail(-ECONNRESET, "the launcher has closed its socket (PMI_FD)");
	return weft_fail(-errno, "the launcher's socket (PMI_FD): %s", strerror(errno));
}

static bool passes(void)
{
	return errno == EAGAIN || errno == EINTR || errno == ENOMEM || errno == ENOBUFS;
}

static int say(struct client *c, const char *bytes, size_t n, weft_time until)
{
	while (n) {
		ssize_t done = send(c->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		int r;

		if (done < 0 && !passes())
			return cannot(done);
		if (done > 0) {
			bytes += done;
			n -= (size_t)done;
			continue;
		}
		r = wait_for(c, POLLOUT, until);
		if (r < 0)
			return r;
	}
	return 0;
}

/* One message, and nothing after it: nothing more was asked for. */
static int hear(struct client *c, const char *asked, weft_time until)
{
	for (;;) {
		long whole = wf_pmi_whole(c->form, c->in, c->have);
		ssize_t n;
		int r;

		if (whole < 0 || (whole && (size_t)whole != c->have))
			return nonsense(asked);
		if (whole) {
			c->have = 0;
			return wf_pmi_read(c->form, c->in, (size_t)whole, &c->reply) < 0 ? nonsense(asked) : 0;
		}
		r = wait_for(c, POLLIN, until);
		if (r < 0)
			return r;
		n = recv(c->fd, c->in + c->have, sizeof(c->in) - c->have, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && !passes()))
			return cannot(n);
		if (n > 0)
			c->have += (size_t)n;
	}
}

/* Says @n bytes of @message, hears the answer called @answer. What it answers to a result that is not 0: 1, for the caller to look at. */
static int ask(struct client *c, const char *message, long n, const char *answer, weft_time until)
{
	const char *said;
	int r;

	if (n < 0)
		return weft_fail((int)n, "the launcher cannot be asked for '%s': a text that is too long or has odd characters", answer);
	r = say(c, message, (size_t)n, until);
	if (r == 0)
		r = hear(c, answer, until);
	if (r < 0)
		return r;
	said = wf_pmi_field(&c->reply, "cmd");
	if (!said || strcmp(said, answer) != 0)
		return nonsense(answer);
	said = wf_pmi_field(&c->reply, "rc");
	return said && strcmp(said, "0") != 0;
}

/* The same where every result but 0 is a failure. Its words were a stranger's, and are one line of characters by now. */
static int ask_well(struct client *c, const char *message, long n, const char *answer, weft_time until)
{
	int r = ask(c, message, n, answer, until);
	const char *why;

	if (r <= 0)
		return r;
	why = wf_pmi_field(&c->reply, c->version == 2 ? "errmsg" : "msg");
	return weft_fail(-EREMOTEIO, "the launcher refuses (%s): %.100s", answer, why ? why : "without a reason");
}

static void name_of(const char *key, uint32_t rank, char *ret, size_t n)
{
	snprintf(ret, n, "weft.%s.%u", key, rank);
}

static int client_put(void *state, const char *key, const char *value, weft_time until)
{
	struct client *c = state;
	char message[WF_PMI_ASK], name[WF_SPACE_KEY + 20];
	long n;

	name_of(key, c->rank, name, sizeof(name));
	if (c->version == 2) {
		n = wf_pmi_write(c->form, message, "kvs-put", "key", name, "value", value, NULL);
		return ask_well(c, message, n, "kvs-put-response", until);
	}
	n = wf_pmi_write(c->form, message, "put", "kvsname", c->job, "key", name, "value", value, NULL);
	return ask_well(c, message, n, "put_result", until);
}

/* PMI-1 has one result for everything that goes wrong. */
static int client_get(void *state, uint32_t rank, const char *key, char ret_value[WF_SPACE_VALUE],
		      weft_time until)
{
	struct client *c = state;
	char message[WF_PMI_ASK], name[WF_SPACE_KEY + 20];
	const char *found, *value;
	int r;

	name_of(key, rank, name, sizeof(name));
	if (c->version == 2)
		r = ask(c, message, wf_pmi_write(c->form, message, "kvs-get", "jobid", c->job, "srcid", "-1", "key", name, NULL),
			"kvs-get-response", until);
	else
		r = ask(c, message, wf_pmi_write(c->form, message, "get", "kvsname", c->job, "key", name, NULL), "get_result", until);
	if (r < 0)
		return r;
	found = wf_pmi_field(&c->reply, "found");
	if (r > 0 || (found && strcmp(found, "TRUE") != 0))
		return weft_fail(-ENOENT, "process %u has put no '%s' into the launcher's space", rank, key);
	value = wf_pmi_field(&c->reply, "value");
	if (!value || strlen(value) >= WF_SPACE_VALUE)
		return nonsense("get");
	memcpy(ret_value, value, strlen(value) + 1);
	return 0;
}

/* Hydra answers a fence of PMI-2 at once, and lets those wait that get something before all have come. So one thing is
 * got that nobody puts: only then has everybody been there. */
static int client_fence(void *state, weft_time until)
{
	struct client *c = state;
	char message[WF_PMI_ASK];
	int r;

	if (c->version == 1)
		return ask_well(c, message, wf_pmi_write(c->form, message, "barrier_in", NULL), "barrier_out", until);
	r = ask_well(c, message, wf_pmi_write(c->form, message, "kvs-fence", NULL), "kvs-fence-response", until);
	if (r < 0)
		return r;
	r = ask(c, message, wf_pmi_write(c->form, message, "kvs-get", "jobid", c->job, "srcid", "-1", "key", "weft.fence", NULL),
		"kvs-get-response", until);
	return r < 0 ? r : 0;
}

static int client_close(void *state, bool polite, weft_time until)
{
	struct client *c = state;
	char message[WF_PMI_ASK];
	int r = 0;

	if (polite)
		r = ask_well(c, message, wf_pmi_write(c->form, message, "finalize", NULL),
			     c->version == 2 ? "finalize-response" : "finalize_ack", until);
	close(c->fd);
	free(c);
	return r;
}

/* Opening */

static int find_socket(int *ret_fd)
{
	const char *text = getenv("PMI_FD");
	uint32_t fd;
	int type = 0;
	socklen_t len = sizeof(type);

	if (!text || wf_pmi_digits(text, INT_MAX, &fd) < 0)
		return weft_fail(-EBADF, "PMI_FD is no number of a descriptor");
	if (getsockopt((int)fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_STREAM)
		return weft_fail(-EBADF, "PMI_FD=%u is no socket here: it was for another process; unset it to run alone", fd);
	if (fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return weft_fail(-errno, "PMI_FD=%u: %s", fd, strerror(errno));
	*ret_fd = (int)fd;
	return 0;
}

static int take_job(struct client *c, struct wf_space *s, const char *field)
{
	const char *name = wf_pmi_field(&c->reply, field);

	if (!name || !*name || strlen(name) >= sizeof(s->job))
		return weft_fail(-EPROTO, "the launcher has no name for the job, or a very long one");
	memcpy(s->job, name, strlen(name) + 1);
	memcpy(c->job, s->job, sizeof(c->job));
	return 0;
}

/* The first line of both versions. */
static int agree(struct client *c, weft_time until)
{
	char message[WF_PMI_ASK];
	uint32_t version;
	long n = wf_pmi_write(WF_PMI_LINE, message, "init", "pmi_version", c->version == 2 ? "2" : "1", "pmi_subversion",
			      c->version == 2 ? "0" : "1", NULL);
	int r = ask_well(c, message, n, "response_to_init", until);

	if (r < 0)
		return r;
	if (wf_pmi_number(&c->reply, "pmi_version", 1000, &version) < 0 || (int)version != c->version)
		return weft_fail(-EPROTO, "the launcher does not speak PMI-%d", c->version);
	return 0;
}

static int env_number(const char *name, uint32_t *ret)
{
	const char *text = getenv(name);

	return text && wf_pmi_digits(text, WF_SPACE_RANKS, ret) == 0 ? 0 : weft_fail(-EPROTO, "%s is no number", name);
}

static int begin_1(struct client *c, struct wf_space *s, weft_time until)
{
	char message[WF_PMI_ASK];
	uint32_t key, value;
	int r = env_number("PMI_RANK", &s->rank);

	if (r == 0)
		r = env_number("PMI_SIZE", &s->size);
	if (r == 0)
		r = ask_well(c, message, wf_pmi_write(c->form, message, "get_maxes", NULL), "maxes", until);
	if (r < 0)
		return r;
	if (wf_pmi_number(&c->reply, "keylen_max", INT_MAX, &key) < 0 || wf_pmi_number(&c->reply, "vallen_max", INT_MAX, &value) < 0)
		return nonsense("get_maxes");
	if (key < WF_SPACE_KEY + 16 || value < WF_SPACE_VALUE)
		return weft_fail(-EOPNOTSUPP, "the launcher's space takes keys of %u and values of %u bytes: too short", key, value);
	r = ask_well(c, message, wf_pmi_write(c->form, message, "get_my_kvsname", NULL), "my_kvsname", until);
	return r < 0 ? r : take_job(c, s, "kvsname");
}

static int begin_2(struct client *c, struct wf_space *s, weft_time until)
{
	const char *job = getenv("PMI_JOBID"), *rank = getenv("PMI_RANK");
	char message[WF_PMI_ASK];
	int r;
	long n;

	c->form = WF_PMI_COUNTED;
	if (!rank)
		return weft_fail(-EPROTO, "PMI_FD without PMI_RANK");
	if (job)
		n = wf_pmi_write(c->form, message, "fullinit", "pmijobid", job, "pmirank", rank, "threaded", "FALSE", NULL);
	else
		n = wf_pmi_write(c->form, message, "fullinit", "pmirank", rank, "threaded", "FALSE", NULL);
	r = ask_well(c, message, n, "fullinit-response", until);
	if (r < 0)
		return r;
	if (wf_pmi_number(&c->reply, "rank", WF_SPACE_RANKS, &s->rank) < 0 || wf_pmi_number(&c->reply, "size", WF_SPACE_RANKS, &s->size) < 0)
		return nonsense("fullinit");
	r = ask_well(c, message, wf_pmi_write(c->form, message, "job-getid", NULL), "job-getid-response", until);
	return r < 0 ? r : take_job(c, s, "jobid");
}

int wf_space_open_pmi(struct wf_space *s, int version, weft_time until)
{
	static const struct wf_space_back back = { client_put, client_fence, client_get, client_close };
	struct client *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return weft_fail(-ENOMEM, "no memory for the launcher's answers");
	c->version = version;
	c->form = WF_PMI_LINE;
	r = find_socket(&c->fd);
	if (r == 0)
		r = agree(c, until);
	if (r == 0)
		r = version == 2 ? begin_2(c, s, until) : begin_1(c, s, until);
	if (r == 0)
		r = wf_space_vet(s);
	if (r < 0) {
		free(c);
		return r;
	}
	c->rank = s->rank;
	s->back = &back;
	s->state = c;
	return 0;
}
