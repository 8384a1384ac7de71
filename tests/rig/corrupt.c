/* corrupt.c - a network that changes bytes: a program for the kernel, which network puts where a host's packets come in.
 *
 * One long TCP packet in EVERY has one bit of its payload flipped. The kernel's own sum does not see that: between two virtual adapters it is
 * not looked at. So what is wrong reaches weft.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#ifndef EVERY
#define EVERY 3000
#endif
#define LONG 400u                       /* so that the byte is never of a header */

static __u32 (*const random_number)(void) = (void *)BPF_FUNC_get_prandom_u32;
static long (*const load_bytes)(const void *skb, __u32 at, void *to, __u32 len) = (void *)BPF_FUNC_skb_load_bytes;
static long (*const store_bytes)(void *skb, __u32 at, const void *from, __u32 len, __u64 flags) = (void *)BPF_FUNC_skb_store_bytes;

__attribute__((section("classifier"), used)) int corrupt(struct __sk_buff *skb)
{
	__u32 at = LONG / 2 + random_number() % (LONG / 2 - 1);
	__u8 byte;

	if (skb->len < LONG || random_number() % EVERY)
		return TC_ACT_OK;
	if (load_bytes(skb, at, &byte, 1) < 0)
		return TC_ACT_OK;
	byte ^= 1 << random_number() % 8;
	store_bytes(skb, at, &byte, 1, 0);
	return TC_ACT_OK;
}
