/* url.c - see url.h. */
#include "job/url.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <weft/base.h>

#define NET "weft://"
#define PATH "weft+unix://"
#define NAME "weft+unix:@"

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* An IPv6 address, with a zone or without; @host ends. */
static bool is_v6(const char *host)
{
	unsigned char bytes[16];
	char bare[64];
	size_t len = strcspn(host, "%");

	if (len >= sizeof(bare))
		return false;
	memcpy(bare, host, len);
	bare[len] = 0;
	for (const char *c = host + len + (host[len] == '%'); *c; c++)
		if (!is_plain(*c) && !strchr(".-_", *c))
			return false;
	return inet_pton(AF_INET6, bare, bytes) == 1 && (!host[len] || host[len + 1]);
}

/* What can be given to a resolver, and to a program as an argument. */
static bool is_name(const char *host)
{
	if (!*host || *host == '-' || *host == '.')
		return false;
	for (; *host; host++)
		if (!is_plain(*host) && !strchr(".-_", *host))
			return false;
	return true;
}

/* Characters one can see; nothing goes up in a path. */
static bool is_visible(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text >= 127)
			return false;
	return true;
}

static bool goes_up(const char *path)
{
	for (const char *c = path; (c = strstr(c, "/..")); c++)
		if (!c[3] || c[3] == '/')
			return true;
	return false;
}

static int path_check(const struct wf_url *url)
{
	if (memchr(url->path, 0, sizeof(url->path)) == NULL)
		return weft_fail(-EINVAL, "url: the path does not end");
	if (!is_visible(url->path))
		return weft_fail(-EINVAL, "url: blanks and characters that are not ASCII cannot be in a path");
	if (url->kind == WF_URL_NAME)
		return url->path[0] ? 0 : weft_fail(-EINVAL, "url: there is no name behind the @");
	if (url->path[0] != '/' || !url->path[1] || url->path[strlen(url->path) - 1] == '/')
		return weft_fail(-EINVAL, "url: a socket's path begins with a / and does not end with one");
	return goes_up(url->path) ? weft_fail(-EINVAL, "url: a path with /../ in it") : 0;
}

static int net_check(const struct wf_url *url)
{
	if (memchr(url->host, 0, sizeof(url->host)) == NULL)
		return weft_fail(-EINVAL, "url: the host does not end");
	if (strchr(url->host, ':') ? !is_v6(url->host) : !is_name(url->host))
		return weft_fail(-EINVAL, "url: the host is neither a name nor an address");
	return url->port ? 0 : weft_fail(-EINVAL, "url: port 0 is none");
}

/* Exactly 32 digits; what follows them, NULL: they are not. */
static const char *hex_read(const char *text, uint8_t ret[16])
{
	for (size_t i = 0; i < 32; i++, text++) {
		if (hex(*text) < 0)
			return NULL;
		ret[i / 2] = (uint8_t)(ret[i / 2] << 4 | hex(*text));
	}
	return text;
}

/* 1 to 65535, up to a slash, without signs or zeros ahead; the slash, NULL: it is not. */
static const char *port_read(const char *text, uint16_t *ret_port)
{
	uint32_t v = 0;

	for (; *text >= '0' && *text <= '9'; text++) {
		v = 10 * v + (uint32_t)(*text - '0');
		if (v == 0 || v > 65535)
			return NULL;
	}
	*ret_port = (uint16_t)v;
	return v && *text == '/' ? text : NULL;
}

static int net_parse(const char *text, struct wf_url *url)
{
	bool bracketed = *text == '[';
	const char *from = text + bracketed, *end = strchr(from, bracketed ? ']' : ':');
	size_t len = end ? (size_t)(end - from) : 0;

	url->kind = WF_URL_NET;
	if (len == 0 || len >= sizeof(url->host))
		return weft_fail(-EINVAL, "url: not weft://HOST:PORT/JOB");
	memcpy(url->host, from, len);
	end += bracketed;
	if (bracketed && !strchr(url->host, ':'))
		return weft_fail(-EINVAL, "url: what stands in brackets is no IPv6 address");
	text = *end == ':' ? port_read(end + 1, &url->port) : NULL;
	if (!text)
		return weft_fail(-EINVAL, "url: behind the host comes a colon, a port from 1 to 65535, and a /");
	text++;
	text = hex_read(text, url->job);
	if (!text)
		return weft_fail(-EINVAL, "url: a job is 32 hexadecimal digits");
	url->offered = *text == '#';
	if (url->offered)
		text = hex_read(text + 1, url->secret);
	if (!text)
		return weft_fail(-EINVAL, "url: a secret is 32 hexadecimal digits");
	return *text ? weft_fail(-EINVAL, "url: something follows the job") : net_check(url);
}

static int path_parse(const char *text, enum wf_url_kind kind, struct wf_url *url)
{
	size_t len = strlen(text);

	url->kind = kind;
	if (len >= sizeof(url->path))
		return weft_fail(-EINVAL, "url: a socket's path or name has %zu characters at most", sizeof(url->path) - 1);
	memcpy(url->path, text, len);
	return path_check(url);
}

int wf_url_parse(const char *text, struct wf_url *ret_url)
{
	struct wf_url url;
	int r;

	memset(&url, 0, sizeof(url));
	if (!strncmp(text, NET, strlen(NET)))
		r = net_parse(text + strlen(NET), &url);
	else if (!strncmp(text, PATH, strlen(PATH)))
		r = path_parse(text + strlen(PATH), WF_URL_PATH, &url);
	else if (!strncmp(text, NAME, strlen(NAME)))
		r = path_parse(text + strlen(NAME), WF_URL_NAME, &url);
	else
		return weft_fail(-EINVAL, "url: begins with none of " NET ", " PATH ", " NAME);
	if (r == 0)
		*ret_url = url;
	return r;
}

static void hex_print(const uint8_t bytes[16], char ret_text[33])
{
	for (size_t i = 0; i < 16; i++)
		snprintf(ret_text + 2 * i, 3, "%02x", bytes[i]);
}

static int net_print(const struct wf_url *url, char *ret_text, size_t n)
{
	char job[33], secret[33] = "";

	hex_print(url->job, job);
	if (url->offered)
		hex_print(url->secret, secret);
	return snprintf(ret_text, n, strchr(url->host, ':') ? NET "[%s]:%u/%s%s%s" : NET "%s:%u/%s%s%s", url->host, url->port, job, url->offered ? "#" : "", secret);
}

int wf_url_print(const struct wf_url *url, char *ret_text, size_t n)
{
	char text[WF_URL_TEXT];
	int len, r;

	if (url->kind != WF_URL_NET && url->kind != WF_URL_PATH && url->kind != WF_URL_NAME)
		return weft_fail(-EINVAL, "url: of no kind");
	r = url->kind == WF_URL_NET ? net_check(url) : path_check(url);
	if (r < 0)
		return r;
	if (url->kind == WF_URL_NET)
		len = net_print(url, text, sizeof(text));
	else
		len = snprintf(text, sizeof(text), "%s%s", url->kind == WF_URL_PATH ? PATH : NAME, url->path);
	if ((size_t)len >= n)
		return weft_fail(-ENOSPC, "url: %d characters, and there is room for %zu", len, n);
	memcpy(ret_text, text, (size_t)len + 1);
	return len;
}
