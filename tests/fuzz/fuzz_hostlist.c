/* fuzz_hostlist.c - a hostfile, or what follows --hosts, that anybody may have written.
 *
 * Input: one byte what to do, then the text. What must hold: it is refused in one line of words that a terminal can be shown, or it is a list within its
 * bounds, of names that are no options; such a list read again in the plainest spelling is the same; and processes can be laid over it.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/hostlist.h"
#include "cmd/run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(int truth)
{
	if (!truth)
		abort();
}

static void words_check(const char *words)
{
	must(*words != 0);
	for (; *words; words++)
		must(isprint((unsigned char)*words));
}

static void host_check(const struct host *h)
{
	must(memchr(h->name, 0, sizeof(h->name)) && memchr(h->address, 0, sizeof(h->address)));
	must(h->slots >= 1 && h->slots <= HOSTLIST_SLOTS && *h->name && *h->name != '-' && *h->name != '.');
	for (const char *c = h->name; *c; c++)
		must(isalnum((unsigned char)*c) || strchr(".-_:%", *c));
}

/* Written once more, and read once more. */
static void again(const struct hostlist *list)
{
	static char text[HOSTLIST_HOSTS * 400];
	struct hostlist other;
	char words[200];
	size_t len = 0;

	for (unsigned i = 0; i < list->count; i++) {
		const struct host *h = &list->hosts[i];
		const char *form = strchr(h->name, ':') ? "[%s]:%u%s%s\n" : "%s:%u%s%s\n";
		int named = *h->address && !strchr(h->address, '%');

		len += (size_t)snprintf(text + len, sizeof(text) - len, form, h->name, h->slots, named ? " address=" : "", named ? h->address : "");
	}
	must(hostlist_parse(text, len, &other, words, sizeof(words)) == 0);
	must(other.count == list->count && memcmp(other.hosts, list->hosts, list->count * sizeof(*list->hosts)) == 0);
	hostlist_free(&other);
}

static void lay(const struct hostlist *list, unsigned count, unsigned how)
{
	static unsigned hosts[RUN_MOST];
	static unsigned used[HOSTLIST_HOSTS];
	char words[200] = "";
	int r = hostlist_lay(list, count, how & 1 ? HOSTLIST_BY_NODE : HOSTLIST_BY_SLOT, how & 2, hosts, words, sizeof(words));

	if (r < 0) {
		words_check(words);
		must(count < 1 || count > RUN_MOST || (!(how & 2) && count > hostlist_slots(list)));
		return;
	}
	memset(used, 0, sizeof(used));
	for (unsigned i = 0; i < count; i++) {
		must(hosts[i] < list->count);
		used[hosts[i]]++;
	}
	for (unsigned i = 0; i < list->count; i++)
		must(how & 2 || used[i] <= list->hosts[i].slots);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct hostlist list = { 0 };
	char words[200] = "", *text;
	int r;

	if (n < 1)
		return 0;
	text = malloc(n);
	must(text != NULL);
	memcpy(text, data + 1, n - 1);
	text[n - 1] = 0;
	r = data[0] & 1 ? hostlist_commas(text, &list, words, sizeof(words)) : hostlist_parse(text, n - 1, &list, words, sizeof(words));
	free(text);
	if (r < 0) {
		words_check(words);
		must(!list.hosts && !list.count);
		return 0;
	}
	must(list.count >= 1 && list.count <= HOSTLIST_HOSTS);
	for (unsigned i = 0; i < list.count; i++)
		host_check(&list.hosts[i]);
	again(&list);
	lay(&list, data[0] * 5u, data[0] >> 1);
	hostlist_free(&list);
	return 0;
}
