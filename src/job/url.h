/* url.h - where a job can be joined, as a text.
 *
 *   weft://HOST:PORT/JOB            over the network: HOST is a name, an address, or an IPv6 address in brackets; JOB its 32 hexadecimal digits
 *   weft://HOST:PORT/JOB#SECRET     likewise, what that job offers to others: SECRET is 32 hexadecimal digits
 *   weft+unix:///PATH               the socket of an agent of this host, of the same user
 *   weft+unix:@NAME                 likewise, one without a file
 *
 * The job's key is in none of them. Who has one without a secret alone is nobody; a secret is good for what was offered with it, and for whoever has it. Characters are those one can see, and nothing is decoded.
 */
#ifndef WF_JOB_URL_H
#define WF_JOB_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_URL_TEXT 352         /* the longest, with its end */

enum wf_url_kind { WF_URL_NET, WF_URL_PATH, WF_URL_NAME };

struct wf_url {
	enum wf_url_kind kind;
	char host[256];                 /* net: without brackets */
	uint16_t port;                  /* net: 1 or more */
	uint8_t job[16];                /* net */
	bool offered;                   /* net: it has a secret */
	uint8_t secret[16];             /* offered; else zeros */
	char path[108];                 /* path: absolute; name: without the @. Fits sun_path in either case */
};

/* 0; -EINVAL, and weft_last_error() says what is wrong with it. */
int wf_url_parse(const char *text, struct wf_url *ret_url);

/* The length of its text, which wf_url_parse takes; -EINVAL: it would not, or -ENOSPC: @n is too small. */
int wf_url_print(const struct wf_url *url, char *ret_text, size_t n);

#endif
