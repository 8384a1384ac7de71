/* hosts.c - see hosts.h. */
#include "wire/hosts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/base.h>

#include "wire/places.h"

/* One host of the list, up to @end. */
static int parse_one(const char *text, const char *end, struct wf_hosts_host *h)
{
	const char *close = *text == '[' ? memchr(text, ']', (size_t)(end - text)) : NULL, *colon = close ? close + 1 : NULL, *from = text;
	char *rest;
	unsigned long n;

	if (*text == '[')
		from++;
	else
		for (const char *c = text; c < end; c++)
			if (*c == ':')
				colon = c;
	if (!colon || colon >= end || *colon != ':' || (!close && memchr(text, ':', (size_t)(colon - text))))
		return weft_fail(-EINVAL, "hosts: '%.*s' is not ADDRESS:COUNT or [ADDRESS]:COUNT", (int)(end - text), text);
	n = (size_t)((close ? close : colon) - from);
	if (n == 0 || n >= sizeof(h->address))
		return weft_fail(-EINVAL, "hosts: '%.*s' has no address, or a very long one", (int)(end - text), text);
	memcpy(h->address, from, n);
	h->address[n] = '\0';
	n = strtoul(colon + 1, &rest, 10);
	if (rest != end || n == 0 || n > 4096 || colon[1] < '0' || colon[1] > '9')
		return weft_fail(-EINVAL, "hosts: '%.*s' has no number of processes", (int)(end - text), text);
	h->count = (uint32_t)n;
	return 0;
}

int wf_hosts_parse(const char *text, uint32_t base, struct wf_hosts_map *ret_map)
{
	uint32_t next = 1;

	memset(ret_map, 0, sizeof(*ret_map));
	ret_map->base = base;
	while (*text) {
		const char *end = strchrnul(text, ',');
		struct wf_hosts_host *h = &ret_map->host[ret_map->hosts];
		int r;

		if (ret_map->hosts == WF_HOSTS_MOST)
			return weft_fail(-EINVAL, "hosts: more than %u", WF_HOSTS_MOST);
		r = parse_one(text, end, h);
		if (r < 0)
			return r;
		if (h->count > 65535 - base)
			return weft_fail(-EINVAL, "hosts: no port numbers for %u processes from %u on", h->count, base);
		h->first = next;
		next += h->count;
		ret_map->hosts++;
		text = *end ? end + 1 : end;
	}
	return ret_map->hosts ? 0 : weft_fail(-EINVAL, "hosts: none");
}

uint32_t wf_hosts_count(const struct wf_hosts_map *map)
{
	return map->hosts ? map->host[map->hosts - 1].first + map->host[map->hosts - 1].count - 1 : 0;
}

static const struct wf_hosts_host *host_of(const struct wf_hosts_map *map, uint32_t process)
{
	for (uint32_t i = 0; i < map->hosts; i++)
		if (process - map->host[i].first < map->host[i].count)
			return &map->host[i];
	return NULL;
}

uint32_t wf_hosts_port(const struct wf_hosts_map *map, uint32_t process)
{
	const struct wf_hosts_host *h = host_of(map, process);

	return h ? map->base + process - h->first : 0;
}

int wf_hosts_place(const struct wf_hosts_map *map, uint32_t process, char *ret_text, size_t n)
{
	const struct wf_hosts_host *h = host_of(map, process);

	if (!h)
		return weft_fail(-ESRCH, "the job has no process %u", process);
	for (uint32_t i = 0; i < wf_places_count(h->address); i++) {
		char address[sizeof(h->address)] = "", place[sizeof(h->address) + 8] = "";
		int r;

		if (wf_places_nth(h->address, i, address, sizeof(address)) == 0)
			snprintf(place, sizeof(place), strchr(address, ':') ? "[%s]:%u" : "%s:%u", address, wf_hosts_port(map, process));
		r = wf_places_add(ret_text, n, i, place);
		if (r < 0)
			return r;
	}
	return 0;
}

const char *wf_hosts_adapter(const struct wf_hosts_map *map, uint32_t process)
{
	const struct wf_hosts_host *h = host_of(map, process);

	return h ? h->address : "";
}
