/* fuzz_pmi.c - what a launcher says, and what others have put into its space.
 *
 * Input: a byte that says what the rest is: a stream of PMI-1 or of PMI-2, a host, a map, a card, or a sealed key (as it is, or laid over one that
 * was sealed well). What must hold: it comes back, reads only what is there, a field lies within its message, what was read as a card or a host is
 * written as the very same text, and nothing is opened but what was sealed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "job/pact.h"
#include "job/pmi_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(int truth)
{
	if (!truth)
		abort();
}

/* Message after message, as far as there are whole ones. */
static void stream(enum wf_pmi_form form, const char *bytes, size_t n)
{
	static struct wf_pmi_reply reply;
	uint32_t number;
	long whole;

	while ((whole = wf_pmi_whole(form, bytes, n)) > 0) {
		must((size_t)whole <= n && whole <= WF_PMI_MOST);
		if (wf_pmi_read(form, bytes, (size_t)whole, &reply) == 0) {
			must(reply.count <= WF_PMI_FIELDS);
			for (unsigned i = 0; i < reply.count; i++) {
				const char *name = reply.field[i].name, *value = reply.field[i].value;

				must(name >= reply.text && value > name && value + strlen(value) < reply.text + sizeof(reply.text));
				must(wf_pmi_field(&reply, name) != NULL);
				must(wf_pmi_number(&reply, name, 1000, &number) < 0 || number <= 1000);
			}
			must(!wf_pmi_field(&reply, "nobody says this"));
		}
		bytes += whole;
		n -= (size_t)whole;
	}
	must(whole == 0 || whole < 0);
}

static void host(const char *text)
{
	char hosts[2][WF_PACT_HOST] = { "01234567-89ab-cdef-0123-456789abcdef.1.2" };
	struct wf_pact_place places[2];
	int is = wf_pact_host_check(text) == 0;

	must(!is || strlen(text) < WF_PACT_HOST);
	strncpy(hosts[1], text, WF_PACT_HOST);
	if (is)
		must(wf_pact_group((const char (*)[WF_PACT_HOST])hosts, 2, places) == 1 + (strcmp(hosts[0], hosts[1]) != 0));
}

static void map(const char *text)
{
	struct wf_pact_place places[9], again[9];
	char other[WF_PACT_MAP];
	long next = wf_pact_map_read(text, 9, 0, places);

	must(next < 0 || (next > 0 && next <= 9));
	if (next != 9)
		return;
	for (int i = 0; i < 9; i++)
		must(places[i].first <= (uint32_t)i && places[places[i].first].host == places[i].host && places[i].index < places[i].count);
	must(wf_pact_map_write(places, 9, 0, other) == 9 && wf_pact_map_read(other, 9, 0, again) == 9);
	must(memcmp(places, again, sizeof(places)) == 0);
}

static void card(const char *text)
{
	struct wf_pact_card c;
	char again[WF_PACT_CARD];

	if (wf_pact_card_read(text, &c) == 0)
		must(wf_pact_card_write(&c, again) == 0 && strcmp(again, text) == 0);
}

/* Two agents and a job, made once. */
static struct wf_pact_keys keys[2];
static struct wf_pact_card cards[2] = { { .address = "a" }, { .address = "b", .door = "d" } };
static struct wf_pact_job job = { .number = { 1 }, .key = { { 2 } } };
static struct wf_pact_ends ends = { "job", 2, 0, 1, &cards[0], &cards[1] };
static char good[WF_PACT_SEALED];

static int same_bytes(void *user, void *ret, size_t n)
{
	(void)user;
	memset(ret, 0x5a, n);
	return 0;
}

static void stage(void)
{
	const struct wf_random random = { same_bytes, NULL };

	if (good[0])
		return;
	for (int i = 0; i < 2; i++) {
		must(wf_pact_keys_make(&random, &keys[i]) == 0);
		memcpy(cards[i].public, keys[i].public, WF_SECRET);
	}
	must(wf_pact_seal(&ends, &keys[0], &random, &job, good) == 0);
}

static void sealed(const char *text)
{
	struct wf_pact_job got;

	stage();
	if (wf_pact_open(&ends, &keys[1], text, &got) == 0)
		must(strcmp(text, good) == 0 && memcmp(&got, &job, sizeof(job)) == 0);
}

static void laid_over(const uint8_t *data, size_t n)
{
	char text[WF_PACT_SEALED];

	stage();
	memcpy(text, good, sizeof(text));
	for (size_t i = 0; i < n && i < sizeof(text) - 1; i++)
		text[i] = (char)(text[i] ^ data[i]);
	sealed(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text;

	if (n < 1)
		return 0;
	text = malloc(n);                       /* what follows the first byte, and an end */
	must(text != NULL);
	memcpy(text, data + 1, n - 1);
	text[n - 1] = '\0';
	switch (data[0] % 7) {
	case 0:
	case 1: {
		char *exact = malloc(n > 1 ? n - 1 : 1);        /* without the end: a stream has none */

		must(exact != NULL);
		memcpy(exact, data + 1, n - 1);
		stream(data[0] % 7 ? WF_PMI_COUNTED : WF_PMI_LINE, exact, n - 1);
		free(exact);
		break;
	}
	case 2:
		host(text);
		break;
	case 3:
		card(text);
		break;
	case 4:
		map(text);
		break;
	case 5:
		sealed(text);
		break;
	default:
		laid_over(data + 1, n - 1);
	}
	free(text);
	return 0;
}
