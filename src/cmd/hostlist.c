/* hostlist.c - see hostlist.h. */
#include "hostlist.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer/remote.h"
#include "run.h"
#include "wire/places.h"

/* A list while it is read: what comes from where, for the words. */
struct reader {
	struct hostlist list;           /* room for HOSTLIST_HOSTS */
	const char *file;               /* NULL: not read from one */
	const char *unit;               /* a line, or a host between commas, */
	unsigned number;                /* the so-manieth; 0: the whole */
	char *words;
	size_t n;
};

/* From @at to before @end. */
struct span {
	const char *at, *end;
};

__attribute__((format(printf, 2, 3)))
static int wrong(const struct reader *r, const char *fmt, ...)
{
	char where[300] = "";
	va_list args;
	int used = 0;

	if (r->file)
		used = snprintf(where, sizeof(where), "%.200s: ", r->file);
	if (r->number)
		snprintf(where + used, sizeof(where) - (size_t)used, "%s %u: ", r->unit, r->number);
	used = snprintf(r->words, r->n, "%s", where);
	va_start(args, fmt);
	if ((size_t)used < r->n)
		vsnprintf(r->words + used, r->n - (size_t)used, fmt, args);
	va_end(args);
	return -EINVAL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct span *s)
{
	while (s->at < s->end && is_blank(*s->at))
		s->at++;
}

static struct span trimmed(struct span s)
{
	skip_blanks(&s);
	while (s.end > s.at && is_blank(s.end[-1]))
		s.end--;
	return s;
}

/* What comes before a blank, or before one of @also; @s goes on behind it. */
static struct span take_word(struct span *s, const char *also)
{
	struct span word = { s->at, s->at };

	while (word.end < s->end && !is_blank(*word.end) && (!*word.end || !strchr(also, *word.end)))
		word.end++;
	s->at = word.end;
	return word;
}

static bool is(struct span s, const char *text)
{
	size_t len = (size_t)(s.end - s.at);

	return strlen(text) == len && !memcmp(s.at, text, len);
}

/* 1 to HOSTLIST_SLOTS; 0: it is not. */
static unsigned slots_read(struct span s)
{
	unsigned v = 0;

	for (; s.at < s.end && isdigit((unsigned char)*s.at) && v <= HOSTLIST_SLOTS; s.at++)
		v = 10 * v + (unsigned)(*s.at - '0');
	return s.at == s.end && v <= HOSTLIST_SLOTS ? v : 0;
}

/* Numbers of the usual kinds; a zone, as in fe80::1%eth0, may follow. */
static bool is_address(const char *text)
{
	unsigned char bytes[16];
	char bare[64];
	size_t len = strcspn(text, "%");

	if (len >= sizeof(bare))
		return false;
	memcpy(bare, text, len);
	bare[len] = 0;
	return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, bare, bytes) == 1;
}

static int name_read(const struct reader *r, struct span s, bool bracketed, struct host *h)
{
	size_t len = (size_t)(s.end - s.at);

	if (len == 0)
		return wrong(r, "there is no name");
	if (len >= sizeof(h->name))
		return wrong(r, "a name of %zu characters, and the longest are %zu", len, sizeof(h->name) - 1);
	for (const char *c = s.at; c < s.end; c++) {
		unsigned char byte = (unsigned char)*c;

		if (byte < 128 && (isalnum(byte) || (byte && strchr(bracketed ? ".-_:%" : ".-_", byte))))
			continue;
		return byte > ' ' && byte < 127 ? wrong(r, "'%c' cannot be in a name", byte) : wrong(r, "byte 0x%02x cannot be in a name", byte);
	}
	if (*s.at == '-' || *s.at == '.')
		return wrong(r, "a name does not begin with '%c'", *s.at);
	memcpy(h->name, s.at, len);
	h->name[len] = 0;
	if (len < sizeof(h->address) && is_address(h->name))
		memcpy(h->address, h->name, len + 1);
	if (bracketed && !strchr(h->address, ':'))
		return wrong(r, "what stands in brackets is no IPv6 address");
	return 0;
}

/* NAME, NAME:SLOTS, [ADDRESS] or [ADDRESS]:SLOTS. Slots that are not said stay 0. */
static int host_read(const struct reader *r, struct span s, struct host *h)
{
	bool bracketed = s.at < s.end && *s.at == '[';
	struct span name = { s.at + bracketed, NULL }, slots;
	int result;

	memset(h, 0, sizeof(*h));
	name.end = name.at < s.end ? memchr(name.at, bracketed ? ']' : ':', (size_t)(s.end - name.at)) : NULL;
	if (bracketed && !name.end)
		return wrong(r, "there is no ] to the [");
	if (!name.end)
		name.end = s.end;
	slots = (struct span){ name.end + bracketed, s.end };
	result = name_read(r, name, bracketed, h);
	if (result < 0 || slots.at == slots.end)
		return result;
	if (*slots.at != ':')
		return wrong(r, "behind the ] comes nothing, or a colon and the slots");
	slots.at++;
	if (memchr(slots.at, ':', (size_t)(slots.end - slots.at)))
		return wrong(r, "a second colon: an IPv6 address stands in brackets");
	h->slots = slots_read(slots);
	return h->slots ? 0 : wrong(r, "what follows the colon is not 1 to %u slots", HOSTLIST_SLOTS);
}

/* As many as WF_RAILS, with + between. */
static bool are_addresses(const char *text)
{
	uint32_t n = wf_places_count(text);
	char one[64];

	for (uint32_t i = 0; i < n; i++)
		if (wf_places_nth(text, i, one, sizeof(one)) < 0 || !is_address(one))
			return false;
	return n && n <= WF_RAILS;
}

static int address_read(const struct reader *r, struct span s, struct host *h)
{
	size_t len;
	char text[sizeof(h->address)] = "";

	if (s.end - s.at > 2 && *s.at == '[' && s.end[-1] == ']')
		s = (struct span){ s.at + 1, s.end - 1 };
	len = (size_t)(s.end - s.at);
	if (len < sizeof(text))
		memcpy(text, s.at, len);
	if (len >= sizeof(text) || memchr(s.at, 0, len) || memchr(s.at, '%', len) || !are_addresses(text))
		return wrong(r, "address= wants an IPv4 or IPv6 address, or up to %u with + between", WF_RAILS);
	memcpy(h->address, text, sizeof(text));
	return 0;
}

/* What may follow a host on its line: NAME=VALUE, any number of them. */
static int settings_read(const struct reader *r, struct span s, struct host *h)
{
	bool addressed = false;
	int result = 0;

	for (skip_blanks(&s); result == 0 && s.at < s.end; skip_blanks(&s)) {
		struct span key = take_word(&s, "="), value;

		skip_blanks(&s);
		if (s.at == s.end || *s.at != '=')
			return wrong(r, "what follows a host has the form NAME=VALUE");
		s.at++;
		skip_blanks(&s);
		value = take_word(&s, "");
		if (is(key, "address")) {
			if (addressed)
				return wrong(r, "the address is said twice");
			addressed = true;
			result = address_read(r, value, h);
		} else if (is(key, "slots") || is(key, "count") || is(key, "cpus")) {
			if (h->slots)
				return wrong(r, "the slots are said twice");
			h->slots = slots_read(value);
			if (!h->slots)
				return wrong(r, "what follows the = is not 1 to %u slots", HOSTLIST_SLOTS);
		} else {
			return wrong(r, "only slots= and address= can follow a host");
		}
	}
	return result;
}

static int host_add(struct reader *r, struct host *h)
{
	struct hostlist *list = &r->list;
	struct host *old = list->hosts;

	if (!h->slots)
		h->slots = 1;
	while (old < list->hosts + list->count && strcmp(old->name, h->name))
		old++;
	if (old == list->hosts + HOSTLIST_HOSTS)
		return wrong(r, "more than %u hosts", HOSTLIST_HOSTS);
	if (old == list->hosts + list->count) {
		list->hosts[list->count++] = *h;
		return 0;
	}
	if (old->slots + h->slots > HOSTLIST_SLOTS)
		return wrong(r, "with those before, %s has more than %u slots", h->name, HOSTLIST_SLOTS);
	if (*h->address && *old->address && strcmp(h->address, old->address))
		return wrong(r, "%s had another address before", h->name);
	if (*h->address)
		memcpy(old->address, h->address, sizeof(h->address));
	old->slots += h->slots;
	return 0;
}

static int line_read(struct reader *r, struct span line)
{
	const char *comment;
	struct span name;
	struct host h;
	int result;

	if (line.end - line.at > (long)HOSTLIST_LINE)
		return wrong(r, "longer than %u bytes", HOSTLIST_LINE);
	comment = memchr(line.at, '#', (size_t)(line.end - line.at));
	if (comment)
		line.end = comment;
	line = trimmed(line);
	if (line.at == line.end)
		return 0;
	name = take_word(&line, "");
	result = host_read(r, name, &h);
	if (result == 0)
		result = settings_read(r, line, &h);
	return result == 0 ? host_add(r, &h) : result;
}

static int reader_init(struct reader *r)
{
	r->list.hosts = calloc(HOSTLIST_HOSTS, sizeof(*r->list.hosts));
	if (r->list.hosts)
		return 0;
	wrong(r, "no memory");
	return -ENOMEM;
}

/* @result is how the reading went. */
static int reader_end(struct reader *r, int result, struct hostlist *ret_list)
{
	r->number = 0;
	if (result == 0 && !r->list.count)
		result = wrong(r, "there is no host in it");
	if (result == 0)
		*ret_list = r->list;
	else
		hostlist_free(&r->list);
	return result;
}

static int lines_read(struct reader *r, struct span text, struct hostlist *ret_list)
{
	int result = reader_init(r);

	while (result == 0 && text.at < text.end) {
		const char *newline = memchr(text.at, '\n', (size_t)(text.end - text.at));
		struct span line = { text.at, newline ? newline : text.end };

		r->number++;
		result = line_read(r, line);
		text.at = newline ? newline + 1 : text.end;
	}
	return reader_end(r, result, ret_list);
}

int hostlist_parse(const char *text, size_t len, struct hostlist *ret_list, char *words, size_t n)
{
	struct reader r = { .unit = "line", .words = words, .n = n };

	return lines_read(&r, (struct span){ text, text + len }, ret_list);
}

int hostlist_read(const char *path, struct hostlist *ret_list, char *words, size_t n)
{
	struct reader r = { .file = path, .unit = "line", .words = words, .n = n };
	char *text = malloc(HOSTLIST_FILE + 1);
	FILE *file = fopen(path, "re");
	size_t len = 0;
	int result = -EINVAL;

	if (file && text)
		len = fread(text, 1, HOSTLIST_FILE + 1, file);
	if (!file || !text || ferror(file)) {
		result = errno ? -errno : -EIO;
		wrong(&r, "%s", strerror(-result));
	} else if (len > HOSTLIST_FILE) {
		wrong(&r, "longer than %u bytes", HOSTLIST_FILE);
	} else {
		result = lines_read(&r, (struct span){ text, text + len }, ret_list);
	}
	free(text);
	if (file)
		fclose(file);
	return result;
}

int hostlist_commas(const char *text, struct hostlist *ret_list, char *words, size_t n)
{
	struct reader r = { .unit = "host", .words = words, .n = n };
	struct host h;
	int result = reader_init(&r);
	bool more = *text;

	while (result == 0 && more) {
		const char *comma = strchrnul(text, ',');

		r.number++;
		result = host_read(&r, trimmed((struct span){ text, comma }), &h);
		if (result == 0)
			result = host_add(&r, &h);
		more = *comma;
		text = comma + 1;
	}
	return reader_end(&r, result, ret_list);
}

void hostlist_free(struct hostlist *list)
{
	free(list->hosts);
	*list = (struct hostlist){ 0 };
}

unsigned hostlist_slots(const struct hostlist *list)
{
	unsigned slots = 0;

	for (unsigned i = 0; i < list->count; i++)
		slots += list->hosts[i].slots;
	return slots;
}

/* Host after host, each with its slots. */
static void lay_by_slot(const struct hostlist *list, unsigned count, unsigned *ret_hosts)
{
	unsigned rank = 0;

	for (unsigned i = 0; rank < count; i++)
		for (unsigned k = 0; rank < count && k < list->hosts[i].slots; k++)
			ret_hosts[rank++] = i;
}

/* A host has its slots as often as all of them are full. Of the rest each goes where it makes least of a crowd: where there are then fewest to a slot. */
static void lay_over_slots(const struct hostlist *list, unsigned count, unsigned slots, unsigned *ret_hosts)
{
	unsigned on[HOSTLIST_HOSTS], rank = 0;

	for (unsigned i = 0; i < list->count; i++)
		on[i] = count / slots * list->hosts[i].slots;
	for (unsigned rest = count % slots; rest; rest--) {
		unsigned best = 0;

		for (unsigned i = 1; i < list->count; i++)
			if ((on[i] + 1) * list->hosts[best].slots < (on[best] + 1) * list->hosts[i].slots)
				best = i;
		on[best]++;
	}
	for (unsigned i = 0; i < list->count; i++)
		for (unsigned k = 0; k < on[i]; k++)
			ret_hosts[rank++] = i;
}

static void lay_by_node(const struct hostlist *list, unsigned count, unsigned *ret_hosts)
{
	unsigned rank = 0;

	/* Each host in the k-th turn, if it has so many slots; beyond the largest it begins anew. */
	while (rank < count) {
		bool any = true;

		for (unsigned k = 0; any && rank < count; k++) {
			any = false;
			for (unsigned i = 0; i < list->count && rank < count; i++)
				if (list->hosts[i].slots > k) {
					ret_hosts[rank++] = i;
					any = true;
				}
		}
	}
}

int hostlist_lay(const struct hostlist *list, unsigned count, enum hostlist_by by, bool oversubscribe, unsigned *ret_hosts, char *words, size_t n)
{
	struct reader r = { .words = words, .n = n };
	unsigned slots = hostlist_slots(list);

	if (count < 1 || count > RUN_MOST)
		return wrong(&r, "%u processes, and a job has 1 to %u", count, (unsigned)RUN_MOST);
	if (!slots)
		return wrong(&r, "there are no hosts");
	if (count > slots && !oversubscribe)
		return wrong(&r, "%u processes, and the hosts have %u slots (--oversubscribe puts more on them)", count, slots);
	if (by == HOSTLIST_BY_NODE)
		lay_by_node(list, count, ret_hosts);
	else if (count <= slots)
		lay_by_slot(list, count, ret_hosts);
	else
		lay_over_slots(list, count, slots, ret_hosts);
	return 0;
}
