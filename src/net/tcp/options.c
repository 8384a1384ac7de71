/* options.c - what can be set for a rail: "tcp.ports=4000-4099 tcp.family=6". Any thread. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net/tcp/tcp.h"

#define BLANKS " \t\n,"

static const struct {
	const char *name;
	size_t field;
	long min, max;
} numbers[] = {
	{ "connect_ms", offsetof(struct tcp_options, connect_ms), 1, 600000 },
	{ "silent_ms", offsetof(struct tcp_options, silent_ms), 1, 600000 },
	{ "strangers", offsetof(struct tcp_options, strangers), 1, 1 << 20 },
};

/* A number in [min, max] at *@text, which is moved behind it. */
static int number(const char **text, long min, long max, long *ret_v)
{
	char *end;
	long v = strtol(*text, &end, 10);

	if (end == *text || v < min || v > max)
		return -EINVAL;
	*text = end;
	*ret_v = v;
	return 0;
}

static int set_ports(const char *text, struct tcp_options *opt)
{
	long first, last;

	if (number(&text, 1, 65535, &first) < 0)
		return -EINVAL;
	last = first;
	if (*text == '-' && (text++, number(&text, first, 65535, &last) < 0))
		return -EINVAL;
	opt->port_first = (uint16_t)first;
	opt->port_last = (uint16_t)last;
	return *text ? -EINVAL : 0;
}

static int set(char *name, struct tcp_options *opt)
{
	char *value = strchr(name, '=');
	const char *rest;
	long v;

	if (!value)
		return -EINVAL;
	*value++ = 0;
	rest = value;
	if (!strcmp(name, "ports"))
		return set_ports(value, opt);
	if (!strcmp(name, "congestion")) {
		if (!*value || strlen(value) >= sizeof(opt->congestion))
			return -EINVAL;
		strcpy(opt->congestion, value);
		return 0;
	}
	if (!strcmp(name, "family")) {
		if (strcmp(value, "4") && strcmp(value, "6"))
			return -EINVAL;
		opt->family = *value == '4' ? AF_INET : AF_INET6;
		return 0;
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!strcmp(name, numbers[i].name)) {
			if (number(&rest, numbers[i].min, numbers[i].max, &v) < 0 || *rest)
				return -EINVAL;
			*(int *)(void *)((char *)opt + numbers[i].field) = (int)v;
			return 0;
		}
	return -EINVAL;
}

int wf_tcp_options(const char *text, struct tcp_options *ret_opt)
{
	struct tcp_options opt = { .connect_ms = 3000, .silent_ms = 5000, .strangers = 1024 };

	for (; text && *(text += strspn(text, BLANKS)); text += strcspn(text, BLANKS)) {
		size_t n = strcspn(text, BLANKS);
		char word[64];

		if (strncmp(text, "tcp.", 4))
			continue;
		if (n >= sizeof(word))
			return weft_fail(-EINVAL, "tcp: '%.40s...' is too long", text);
		memcpy(word, text + 4, n - 4);
		word[n - 4] = 0;
		if (set(word, &opt) < 0)
			return weft_fail(-EINVAL, "tcp: '%.*s' cannot be set", (int)n, text);
	}
	*ret_opt = opt;
	return 0;
}
