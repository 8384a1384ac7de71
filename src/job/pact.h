/* pact.h - how the processes that a launcher started agree on a job key that never is in the launcher's space.
 *
 *   every process   puts where it is (a host identity)                            -- fence --
 *   rank 0          groups the ranks by host, and puts the map of that            -- fence --
 *   all             get the map; the lowest rank of a host is its first, and starts the host's agent
 *   firsts          put their agent's card: public value, host                    -- fence --
 *   rank 0          its agent makes number and key of the job, and seals them for each other agent    -- fence --
 *   firsts          take what was sealed for their agent, which opens it; put its card again, with address and door      -- fence --
 *
 * With one host there is no key, and of the cards only the last. born.c does all this.
 *
 * Sealed for one: key = Expand(Extract(C, X25519), "weft pact", C), where C is a hash over everything both ends know: the launcher's name of
 * the job, its size, both ranks, both cards as they were put, and 16 random bytes that come along. Somebody who was told another card, another
 * rank or another job has another key, and opens nothing. A key seals once: the random bytes make it new.
 *
 * What that is worth: whoever only reads the launcher's space learns nothing of the key. Who can write there can put his own card in the place of
 * an agent's and be given the key: the launcher, and all it lets in, are trusted (docs/launchers.md).
 *
 * No socket, no clock, no space in here: texts go out and come in. Every text is a stranger's and is checked whole; what is not as written here
 * is -EPROTO. All of them are of letters, digits and .-:, . Threads: any.
 */
#ifndef WF_JOB_PACT_H
#define WF_JOB_PACT_H

#include <stdint.h>

#include "secure/chain.h"
#include "secure/key.h"
#include "secure/random.h"

/* Hosts. Two processes are on one host if they can reach each other through sockets of its kernel and trust each other: same boot,
 * same network namespace, same user. */

#define WF_PACT_HOST 80         /* with its end */

int wf_pact_host_here(char ret_text[WF_PACT_HOST]);
int wf_pact_host_check(const char *text);

struct wf_pact_place {
	uint32_t host;                  /* hosts are numbered in the order of their firsts; that of rank 0 is 0 */
	uint32_t first;                 /* the lowest rank there */
	uint32_t index, count;          /* which of the host's processes, by rank, and of how many */
};

/* Where each of @n ranks is. Returns the number of hosts; -EPROTO: a text is no host's; -ENOMEM. */
long wf_pact_group(const char (*hosts)[WF_PACT_HOST], uint32_t n, struct wf_pact_place *ret_places);

/* The same as texts, so that not everybody has to get what everybody has put: that would be as many questions as the job has pairs. Runs of ranks
 * on one host, "HOST" or "HOST:COUNT" with commas between, as many texts as it takes. */
#define WF_PACT_MAP 641         /* with its end */

/* Of the ranks from @from on as many as fit. Returns the rank to go on with; @n: that was the last. */
uint32_t wf_pact_map_write(const struct wf_pact_place *places, uint32_t n, uint32_t from, char ret_text[WF_PACT_MAP]);

/* Begins with @from 0 and goes on with what it returns, text by text, until that is @n: then all of @places is set. Or -EPROTO, -ENOMEM. */
long wf_pact_map_read(const char *text, uint32_t n, uint32_t from, struct wf_pact_place *places);

/* Cards */

#define WF_PACT_ADDRESS 192     /* with their ends */
#define WF_PACT_DOOR 64
#define WF_PACT_CARD (2 * (3 + WF_SECRET + WF_PACT_ADDRESS - 1 + WF_PACT_DOOR - 1) + 1)

/* Of an agent. Address and door are characters one can see, without blanks; what they mean the agents know. */
struct wf_pact_card {
	uint8_t public[WF_SECRET];
	char address[WF_PACT_ADDRESS];  /* of which host it is, and where agents of other hosts reach it */
	char door[WF_PACT_DOOR];        /* where processes of its own host do; may be empty */
};

/* -EINVAL: an address or door that does not fit or has odd characters. */
int wf_pact_card_write(const struct wf_pact_card *card, char ret_text[WF_PACT_CARD]);
int wf_pact_card_read(const char *text, struct wf_pact_card *ret_card);

/* Keys. These load libcrypto. */

struct wf_pact_keys {
	uint8_t secret[WF_SECRET], public[WF_SECRET];
};

struct wf_pact_job {
	uint8_t number[WF_JOB_BYTES];
	struct wf_key key;
};

int wf_pact_keys_make(const struct wf_random *random, struct wf_pact_keys *ret_keys);
void wf_pact_keys_wipe(struct wf_pact_keys *keys);
int wf_pact_job_make(const struct wf_random *random, struct wf_pact_job *ret_job);
void wf_pact_job_wipe(struct wf_pact_job *job);

/* Who seals for whom. */
struct wf_pact_ends {
	const char *job;                /* the launcher's name of it, at most 255 characters */
	uint32_t size;
	uint32_t from, to;              /* ranks of the two firsts */
	const struct wf_pact_card *from_card, *to_card;
};

#define WF_PACT_SEALED (2 * (2 + 16 + WF_JOB_BYTES + WF_KEY_BYTES + WF_AEAD_TAG) + 1)

/* @mine: of @ends->from. */
int wf_pact_seal(const struct wf_pact_ends *ends, const struct wf_pact_keys *mine, const struct wf_random *random,
		 const struct wf_pact_job *job, char ret_text[WF_PACT_SEALED]);

/* @mine: of @ends->to. -EACCES: not sealed for these ends, or changed on the way. */
int wf_pact_open(const struct wf_pact_ends *ends, const struct wf_pact_keys *mine, const char *text, struct wf_pact_job *ret_job);

#endif
