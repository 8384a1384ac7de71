/* launchers_member.c - a process that some launcher has started, and what it does in the launcher's space.
 *
 *   launchers_member WAY space             puts, fences, gets of all, several rounds
 *   launchers_member WAY dead RANK HOW MS DIR      RANK dies before the fence (HOW: exit, kill) or sleeps through it (sleep); the others have MS,
 *                                          and write how it went to DIR/rank: a launcher may lose what is printed when somebody dies
 *   launchers_member WAY pact HOSTS        as if on so many hosts: agrees on a job key
 *   launchers_member WAY open              says what opening answers, and in words
 *
 * WAY is auto, pmix, pmi2 or pmi1. Each says one line; the exit status is 0 if everything was as it should be.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "job/pact.h"
#include "job/pmi_space.h"

#define PATIENCE (30 * WEFT_S)

static struct wf_space space;

static void fail(const char *what, int answer)
{
	printf("rank %u: %s: %d (%s)\n", space.rank, what, answer, weft_last_error());
	exit(1);
}

static void must(const char *what, int answer)
{
	if (answer < 0)
		fail(what, answer);
}

static int open_by(const char *way)
{
	if (strcmp(way, "pmix") == 0)
		return wf_space_open_as(WF_SPACE_PMIX, &space);
	if (strcmp(way, "pmi2") == 0)
		return wf_space_open_as(WF_SPACE_PMI2, &space);
	if (strcmp(way, "pmi1") == 0)
		return wf_space_open_as(WF_SPACE_PMI1, &space);
	return wf_space_open(&space);
}

static void fence(void)
{
	must("fence", wf_space_fence(&space, wf_now() + PATIENCE));
}

/* A value of the greatest length that says whose it is. */
static void value_of(uint32_t rank, int round, char ret[WF_SPACE_VALUE])
{
	int n = snprintf(ret, WF_SPACE_VALUE, "rank:%u/round+%d@", rank, round);

	memset(ret + n, 'a' + (int)(rank % 26), (size_t)(WF_SPACE_VALUE - 1 - n));
	ret[WF_SPACE_VALUE - 1] = '\0';
}

static void play_space(void)
{
	char key[WF_SPACE_KEY], value[WF_SPACE_VALUE], got[WF_SPACE_VALUE];
	int r;

	for (int round = 0; round < 3; round++) {
		snprintf(key, sizeof(key), "a-key_that.is-as-long-as-keys-may-be.%02u", (unsigned)round % 100u);
		value_of(space.rank, round, value);
		must("put", wf_space_put(&space, key, value));
		fence();
		for (uint32_t rank = 0; rank < space.size; rank++) {
			value_of(rank, round, value);
			must("get", wf_space_get(&space, rank, key, got, sizeof(got)));
			if (strcmp(value, got) != 0)
				fail("got what another has put", (int)rank);
		}
	}
	r = wf_space_get(&space, space.size - 1, "nobody", got, sizeof(got));
	if (r != -ENOENT)
		fail("get of what nobody has put", r);
	fence();                /* and it still works */
	printf("rank %u of %u in %s: well\n", space.rank, space.size, space.job);
}

static void play_dead(uint32_t victim, const char *how, int64_t ms, const char *dir)
{
	char path[4096];
	weft_time start;
	FILE *file;
	int r;

	must("put", wf_space_put(&space, "there", "yes"));
	fence();
	if (space.rank == victim && strcmp(how, "exit") == 0)
		_exit(0);
	if (space.rank == victim && strcmp(how, "kill") == 0)
		kill(getpid(), SIGKILL);
	if (space.rank == victim)
		wf_nap(2 * ms * WEFT_MS);
	start = wf_now();
	r = wf_space_fence(&space, start + ms * WEFT_MS);
	snprintf(path, sizeof(path), "%s/%u", dir, space.rank);
	file = fopen(path, "w");
	if (!file)
		fail(path, -errno);
	fprintf(file, "%d %lld %d\n", r, (long long)((wf_now() - start) / WEFT_MS), wf_space_put(&space, "more", "x"));
	fclose(file);
	wf_space_close(&space);
	exit(0);
}

/* The host this process pretends to be on: the digits of the boot id say which. */
static void pretend(uint32_t hosts, char text[WF_PACT_HOST])
{
	char digits[9];

	must("host", wf_pact_host_here(text));
	snprintf(digits, sizeof(digits), "%08x", space.rank % hosts);
	memcpy(text, digits, 8);
}

static void check_hidden(const struct wf_pact_job *job, const char *text)
{
	char hex[2 * WF_KEY_BYTES + 1];

	for (int i = 0; i < WF_KEY_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", job->key.bytes[i]);
	if (strstr(text, hex))
		fail("the key is in the launcher's space", 0);
}

static void put_sealed(const struct wf_pact_keys *keys, const struct wf_pact_card *card, const struct wf_pact_place *places, const struct wf_pact_job *job)
{
	char key[WF_SPACE_KEY], text[WF_SPACE_VALUE];

	for (uint32_t rank = 1; rank < space.size; rank++) {
		struct wf_pact_card other;
		struct wf_pact_ends ends = { space.job, space.size, 0, rank, card, &other };

		if (places[rank].first != rank)
			continue;
		must("get card", wf_space_get(&space, rank, "card", text, sizeof(text)));
		must("card", wf_pact_card_read(text, &other));
		must("seal", wf_pact_seal(&ends, keys, &(struct wf_random){ NULL, NULL }, job, text));
		check_hidden(job, text);
		snprintf(key, sizeof(key), "sealed.%u", rank);
		must("put sealed", wf_space_put(&space, key, text));
	}
}

static void get_sealed(const struct wf_pact_keys *keys, const struct wf_pact_card *card, struct wf_pact_job *ret_job)
{
	char key[WF_SPACE_KEY], text[WF_SPACE_VALUE];
	struct wf_pact_card root;
	struct wf_pact_ends ends = { space.job, space.size, 0, space.rank, &root, card };

	must("get card of 0", wf_space_get(&space, 0, "card", text, sizeof(text)));
	must("card of 0", wf_pact_card_read(text, &root));
	snprintf(key, sizeof(key), "sealed.%u", space.rank);
	must("get sealed", wf_space_get(&space, 0, key, text, sizeof(text)));
	must("open", wf_pact_open(&ends, keys, text, ret_job));
}

/* Of rank 0: who is where, put for all. */
static void put_map(struct wf_pact_place *places)
{
	char (*texts)[WF_PACT_HOST] = calloc(space.size, sizeof(*texts));
	char key[WF_SPACE_KEY], text[WF_PACT_MAP];
	uint32_t next = 0;

	for (uint32_t rank = 0; rank < space.size; rank++)
		must("get host", wf_space_get(&space, rank, "host", texts[rank], sizeof(texts[rank])));
	must("group", (int)wf_pact_group((const char (*)[WF_PACT_HOST])texts, space.size, places));
	for (int part = 0; next < space.size; part++) {
		next = wf_pact_map_write(places, space.size, next, text);
		snprintf(key, sizeof(key), "map.%d", part);
		must("put map", wf_space_put(&space, key, text));
	}
	free(texts);
}

/* Returns how many hosts there are. */
static uint32_t get_map(struct wf_pact_place *places)
{
	char key[WF_SPACE_KEY], text[WF_PACT_MAP];
	uint32_t hosts = 0;
	long next = 0;

	for (int part = 0; next < space.size; part++) {
		snprintf(key, sizeof(key), "map.%d", part);
		must("get map", wf_space_get(&space, 0, key, text, sizeof(text)));
		next = wf_pact_map_read(text, space.size, (uint32_t)next, places);
		must("map", (int)next);
	}
	for (uint32_t rank = 0; rank < space.size; rank++)
		hosts += places[rank].first == rank;
	return hosts;
}

static void play_pact(uint32_t hosts)
{
	struct wf_pact_place *places = calloc(space.size, sizeof(*places)), *here = &places[space.rank];
	struct wf_pact_keys keys;
	struct wf_pact_card card = { .door = "door" };
	struct wf_pact_job job = { .number = { 0 } };
	char host[WF_PACT_HOST], text[WF_SPACE_VALUE];
	uint32_t count;
	bool first;

	pretend(hosts, host);
	must("put host", wf_space_put(&space, "host", host));
	fence();
	if (space.rank == 0)
		put_map(places);
	fence();
	count = get_map(places);

	first = here->first == space.rank;
	if (first) {
		must("keys", wf_pact_keys_make(&(struct wf_random){ NULL, NULL }, &keys));
		memcpy(card.public, keys.public, sizeof(card.public));
		snprintf(card.address, sizeof(card.address), "host%u:4000", here->host);
		must("write card", wf_pact_card_write(&card, text));
		must("put card", wf_space_put(&space, "card", text));
	}
	fence();
	if (space.rank == 0) {
		must("job", wf_pact_job_make(&(struct wf_random){ NULL, NULL }, &job));
		put_sealed(&keys, &card, places, &job);
	}
	fence();
	if (first && space.rank != 0)
		get_sealed(&keys, &card, &job);
	printf("rank %u of %u: host %u of %u, %u of %u there, key ", space.rank, space.size, here->host, count, here->index, here->count);
	for (int i = 0; i < 8 && first; i++)    /* a test's key may be shown */
		printf("%02x", job.key.bytes[i]);
	printf("%s\n", first ? "" : "-");
	free(places);
}

int main(int argc, char **argv)
{
	const char *way = argc > 2 ? argv[1] : "", *what = argc > 2 ? argv[2] : "";
	int r = open_by(way);

	if (strcmp(what, "open") == 0)
		return printf("%d %s\n", r, r < 0 ? weft_last_error() : ""), 0;
	if (r != 1)
		fail("open", r);
	signal(SIGUSR1, SIG_IGN);               /* by this Hydra tells of the dead, where it does not end all */
	setvbuf(stdout, NULL, _IOFBF, 4096);
	if (strcmp(what, "space") == 0)
		play_space();
	else if (strcmp(what, "dead") == 0 && argc == 7)
		play_dead((uint32_t)atoi(argv[3]), argv[4], atoi(argv[5]), argv[6]);
	else if (strcmp(what, "pact") == 0 && argc == 4)
		play_pact((uint32_t)atoi(argv[3]));
	else
		fail(what, -EINVAL);
	must("close", wf_space_close(&space));
	return 0;
}
