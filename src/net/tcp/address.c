/* address.c - interfaces and subnets, options, and the bytes of an address. Any thread.
 *
 *     address   u8 version (1), u8 family (4 or 6), u16 port little-endian, 4 or 16 bytes of IP
 *
 * A link-local address of IPv6 means nothing without an interface: whoever connects takes that of his own rail.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/tcp/tcp.h"

#define VERSION 1

static const void *ip_of(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET ? (const void *)&((const struct sockaddr_in *)(const void *)sa)->sin_addr :
					  (const void *)&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
}

static bool is_link_local(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)ip_of(sa));
}

static bool usable(const struct ifaddrs *i)
{
	return i->ifa_addr && i->ifa_name && (i->ifa_flags & IFF_UP) && (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6);
}

uint64_t wf_tcp_rate(uint32_t scope)
{
	char name[IF_NAMESIZE], path[64 + IF_NAMESIZE];
	long long mbit = 0;
	FILE *file;

	if (!if_indextoname(scope, name))
		return 0;
	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%lld", &mbit) != 1 || mbit < 0)       /* -1: the interface does not know */
		mbit = 0;
	fclose(file);
	return (uint64_t)mbit * 125000;
}

int wf_tcp_probe(const struct weft_driver *self, struct weft_found *ret_found, int max)
{
	struct ifaddrs *all;
	int n = 0;

	(void)self;
	if (getifaddrs(&all) < 0)
		return weft_fail(-errno, "tcp: cannot list the interfaces");
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		bool known = !usable(i);

		for (int k = 0; k < n && k < max && !known; k++)
			known = !strcmp(ret_found[k].name, i->ifa_name);
		if (known)
			continue;
		if (n < max) {
			memset(&ret_found[n], 0, sizeof(ret_found[n]));
			snprintf(ret_found[n].name, sizeof(ret_found[n].name), "%s", i->ifa_name);
			ret_found[n].flags = i->ifa_flags & IFF_LOOPBACK ? WEFT_FOUND_LOOP : 0;
			ret_found[n].rate = wf_tcp_rate(if_nametoindex(i->ifa_name));
		}
		n++;
	}
	freeifaddrs(all);
	return n;
}

/* A subnet such as 10.1.0.0/16: its family, address and bits. */
static int parse_subnet(const char *text, unsigned char *ret_ip, int *ret_bits)
{
	char ip[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	int family, most;
	char *end;
	long bits;

	if (n >= sizeof(ip))
		return -1;
	memcpy(ip, text, n);
	ip[n] = 0;
	family = strchr(ip, ':') ? AF_INET6 : AF_INET;
	most = family == AF_INET ? 32 : 128;
	if (inet_pton(family, ip, ret_ip) != 1)
		return -1;
	bits = slash ? strtol(slash + 1, &end, 10) : most;
	if (slash && (end == slash + 1 || *end || bits < 0 || bits > most))
		return -1;
	*ret_bits = (int)bits;
	return family;
}

static bool in_subnet(const struct sockaddr *sa, int family, const unsigned char *ip, int bits)
{
	const unsigned char *own = ip_of(sa);

	if (sa->sa_family != family || memcmp(own, ip, (size_t)bits / 8))
		return false;
	return bits % 8 == 0 || (own[bits / 8] ^ ip[bits / 8]) >> (8 - bits % 8) == 0;
}

/* The lower the better; -1: not this one. */
static int rank(const struct ifaddrs *i, const char *adapter, int family, int net_family, const unsigned char *ip, int bits)
{
	const struct sockaddr *sa = i->ifa_addr;
	int r = 0;

	if (!usable(i) || (family && sa->sa_family != family))
		return -1;
	if (*adapter && strcmp(i->ifa_name, adapter) && (net_family < 0 || !in_subnet(sa, net_family, ip, bits)))
		return -1;
	r += sa->sa_family == AF_INET6 ? 1 : 0;
	r += is_link_local(sa) ? 2 : 0;
	r += !*adapter && (i->ifa_flags & IFF_LOOPBACK) ? 4 : 0;
	return r;
}

/* An address that no interface lists may still be this host's, as all of 127.0.0.0/8 is: who can be bound to it has it. */
static bool bindable(struct tcp_rail *rail, int family, const unsigned char *ip)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&rail->here;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP), r;

	if (fd < 0)
		return false;
	memset(&rail->here, 0, sizeof(rail->here));
	rail->here.sin6_family = (sa_family_t)family;
	memcpy(family == AF_INET ? (void *)&v4->sin_addr : (void *)&rail->here.sin6_addr, ip, family == AF_INET ? 4 : 16);
	rail->here_len = family == AF_INET ? sizeof(*v4) : sizeof(rail->here);
	r = bind(fd, (struct sockaddr *)&rail->here, rail->here_len);
	close(fd);
	return r == 0;
}

int wf_tcp_here(struct tcp_rail *rail, const char *adapter)
{
	struct ifaddrs *all, *best = NULL;
	unsigned char ip[16];
	int bits = 0, net_family = parse_subnet(adapter, ip, &bits), best_rank = -1;

	if (getifaddrs(&all) < 0)
		return weft_fail(-errno, "tcp: cannot list the interfaces");
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		int r = rank(i, adapter, rail->opt.family, net_family, ip, bits);

		if (r >= 0 && (!best || r < best_rank)) {
			best = i;
			best_rank = r;
		}
	}
	if (best) {
		rail->here_len = best->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
		memcpy(&rail->here, best->ifa_addr, rail->here_len);
		rail->scope = if_nametoindex(best->ifa_name);
	}
	freeifaddrs(all);
	if (!best && net_family >= 0 && bits == (net_family == AF_INET ? 32 : 128) && (!rail->opt.family || rail->opt.family == net_family) &&
	    bindable(rail, net_family, ip))
		return 0;
	return best ? 0 : weft_fail(-ENODEV, "tcp: no address on '%.40s'", adapter);
}

void wf_tcp_addr_of(const struct sockaddr_in6 *sa, struct weft_addr *ret_addr)
{
	const struct sockaddr *any = (const struct sockaddr *)(const void *)sa;
	size_t n = any->sa_family == AF_INET ? 4 : 16;
	unsigned port = ntohs(sa->sin6_port);                   /* at the same place in both */
	const unsigned char *ip = ip_of(any);

	memset(ret_addr, 0, sizeof(*ret_addr));
	if (any->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&sa->sin6_addr)) {
		ip += 12;
		n = 4;
	}
	ret_addr->len = (uint32_t)(4 + n);
	ret_addr->bytes[0] = VERSION;
	ret_addr->bytes[1] = n == 4 ? 4 : 6;
	ret_addr->bytes[2] = (unsigned char)port;
	ret_addr->bytes[3] = (unsigned char)(port >> 8);
	memcpy(ret_addr->bytes + 4, ip, n);
}

static int ip_len(const struct weft_addr *addr)
{
	if (addr->len >= 8 && addr->bytes[0] == VERSION && addr->bytes[1] == 4 && addr->len == 8)
		return 4;
	if (addr->len == 20 && addr->bytes[0] == VERSION && addr->bytes[1] == 6)
		return 16;
	return weft_fail(-EINVAL, "tcp: not an address of this driver");
}

int wf_tcp_addr_to(const struct tcp_rail *rail, const struct weft_addr *addr, struct sockaddr_in6 *ret_sa, socklen_t *ret_len)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)ret_sa;
	int n = ip_len(addr);
	uint16_t port;

	if (n < 0)
		return n;
	port = htons((uint16_t)(addr->bytes[2] | addr->bytes[3] << 8));
	if (!port)
		return weft_fail(-EINVAL, "tcp: an address without port");
	if (rail->here.sin6_family != (n == 4 ? AF_INET : AF_INET6))
		return weft_fail(-EAFNOSUPPORT, "tcp: an address of IPv%d, and the rail has none", n == 4 ? 4 : 6);
	memset(ret_sa, 0, sizeof(*ret_sa));
	ret_sa->sin6_family = rail->here.sin6_family;
	ret_sa->sin6_port = port;
	memcpy(n == 4 ? (void *)&v4->sin_addr : (void *)&ret_sa->sin6_addr, addr->bytes + 4, (size_t)n);
	if (n == 16 && IN6_IS_ADDR_LINKLOCAL(&ret_sa->sin6_addr))
		ret_sa->sin6_scope_id = rail->scope;
	*ret_len = n == 4 ? sizeof(*v4) : sizeof(*ret_sa);
	return 0;
}

int wf_tcp_addr_print(const struct weft_addr *addr, char *ret_text, size_t n)
{
	char ip[INET6_ADDRSTRLEN];
	int len = ip_len(addr);

	if (len < 0)
		return len;
	inet_ntop(len == 4 ? AF_INET : AF_INET6, addr->bytes + 4, ip, sizeof(ip));
	if (!addr->bytes[2] && !addr->bytes[3])
		return snprintf(ret_text, n, "%s", ip);
	return snprintf(ret_text, n, len == 4 ? "%s:%u" : "[%s]:%u", ip, (unsigned)(addr->bytes[2] | addr->bytes[3] << 8));
}

int wf_tcp_addr_parse(const char *text, struct weft_addr *ret_addr)
{
	const char *colon = strrchr(text, ':'), *first = text + (*text == '[');
	struct sockaddr_in6 sa = { .sin6_family = *text == '[' ? AF_INET6 : AF_INET };
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&sa;
	char ip[INET6_ADDRSTRLEN], *end;
	size_t n = colon ? (size_t)(colon - first) : 0;
	long port = colon ? strtol(colon + 1, &end, 10) : 0;

	if (*text == '[' && (n == 0 || first[--n] != ']'))
		n = 0;
	if (n == 0 || n >= sizeof(ip) || end == colon + 1 || *end || port < 1 || port > 65535)
		return weft_fail(-EINVAL, "tcp: '%.60s' is no ip:port", text);
	memcpy(ip, first, n);
	ip[n] = 0;
	if (inet_pton(sa.sin6_family, ip, *text == '[' ? (void *)&sa.sin6_addr : (void *)&v4->sin_addr) != 1)
		return weft_fail(-EINVAL, "tcp: '%.60s' is no ip:port", text);
	sa.sin6_port = htons((uint16_t)port);
	wf_tcp_addr_of(&sa, ret_addr);
	return 0;
}
