/* url.h - where a job can be joined, as a text.
 *
 *   weft://HOST:PORT/JOB            over the network: HOST is a name, an address, or an IPv6 address in brackets; JOB its 32 hexadecimal digits
 *   weft+unix:///PATH               the socket of an agent of this host, of the same user
 *   weft+unix:@NAME                 likewise, one without a file
 *
 * There is no key in it: who has the text alone is nobody. Characters are those one can see, and nothing is decoded.
 */
#ifndef WF_JOB_URL_H
#define WF_JOB_URL_H

#include <stddef.h>
#include <stdint.h>

#define WF_URL_TEXT 320         /* the longest, with its end */

enum wf_url_kind { WF_URL_NET, WF_URL_PATH, WF_URL_NAME };

struct wf_url {
	enum wf_url_kind kind;
	char host[256];                 /* net: without brackets */
	uint16_t port;                  /* net: 1 or more */
	uint8_t job[16];                /* net */
	char path[108];                 /* path: absolute; name: without the @. Fits sun_path in either case */
};

/* 0; -EINVAL, and weft_last_error() says what is wrong with it. */
int wf_url_parse(const char *text, struct wf_url *ret_url);

/* The length of its text, which wf_url_parse takes; -EINVAL: it would not, or -ENOSPC: @n is too small. */
int wf_url_print(const struct wf_url *url, char *ret_text, size_t n);

#endif
