/* envoy.h - what is said of other jobs: between a process and its agent, among the agents of a job, and between two jobs that are attached to each other.
 *
 *     process --ask--> agent --> the agent that has the other job (the embassy) ==weft==> the embassy there --> the agent that serves its directory
 *             <------ answers go back by the route that the question carried: nobody on the way keeps anything of it -----------------------
 *
 * One form for all of them; each kind has some of the fields, in one order. The other job is another party: whatever it says is read here as from anywhere, and who
 * reads it decides what it may be good for. Ids are as the job calls them that has the entities: their job part is 0, who hears it puts his own number there.
 */
#ifndef WF_JOB_ENVOY_H
#define WF_JOB_ENVOY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_ENVOY_VERSION 1u
#define WF_ENVOY_BYTES 32512u           /* of one, at most */
#define WF_ENVOY_IDS 3900u              /* of one, at most */
#define WF_ENVOY_TEXT 24576u            /* of one, at most, with its end */

enum wf_envoy_kind {
	/* of a process to its agent */
	WF_ENVOY_OFFER = 1,             /* text: a query -> ANSWER, its text the url */
	WF_ENVOY_ATTACH,                /* text: a url -> ANSWER, its number the alias */
	WF_ENVOY_ANSWER,                /* to the process; with an error the text says why */
	/* between embassies, over what was offered: */
	WF_ENVOY_KNOCK,                 /* number: version, process: of the embassy, job, text: where it is */
	WF_ENVOY_WELCOME,               /* process: of the embassy, job, treaty: from now on we know each other by this */
	WF_ENVOY_REFUSED,               /* error, text: why */
	/* over the treaty: */
	WF_ENVOY_BEAT,
	WF_ENVOY_BYE,                   /* this job ends */
	WF_ENVOY_WHERE,                 /* process -> AT, also of a process to its agent */
	WF_ENVOY_AT,                    /* process, error, text: where it is */
	WF_ENVOY_FIND,                  /* number: how many are wanted, text: a query -> FOUND */
	WF_ENVOY_FOUND,                 /* error, number: how many there are, ids */
	WF_ENVOY_GET,                   /* id, text: a key, "": all -> GOT */
	WF_ENVOY_GOT,                   /* id, error, text */
	WF_ENVOY_KINDS
};

/* Who asked: meant for the job that did, and only given back by the other. */
struct wf_route {
	uint32_t host, process, ticket;
};

struct wf_envoy {
	enum wf_envoy_kind kind;
	struct wf_route route;          /* of whatever is asked or answered */
	int32_t error;                  /* 0, or a negative errno from 1 to 4095 */
	uint32_t number, process;
	uint64_t id;
	uint8_t job[16], treaty[16];
	const char *text;               /* read: in the bytes, ends with 0 */
	const uint8_t *ids;             /* count of them, 8 bytes each, little-endian */
	uint32_t count;
};

/* 0; -EBADMSG: it is none. */
int wf_envoy_read(const void *bytes, size_t n, struct wf_envoy *ret_envoy);
/* How many bytes it has; 0: it does not fit into @n, or its text or ids are too many. */
size_t wf_envoy_write(const struct wf_envoy *envoy, void *room, size_t n);

uint64_t wf_envoy_id(const struct wf_envoy *envoy, uint32_t index);

#endif
