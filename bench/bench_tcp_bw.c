/* bench_tcp_bw.c - 1 MiB messages one way between processes of two hosts (tcp-bw-1m, tcp-secure-1m; on another network veth-tcp-...).
 * usage: [WEFT_SECURE=full] bench/hosts [-v] BUILD_DIR bench_tcp_bw
 *
 * Windows of 4 and an answer, MB/s; both sides spin. Sent four times from one place, received into four:
 *   raw/tcp           send and recv                weft/tcp-posted   4 requests, one wait for all
 * and where weft encrypts (WEFT_SECURE=full):
 *   raw/tcp-clear     the same raw TCP             weft/tcp-secure   the same requests
 *   raw/tcp-aes-gcm   AES-256-GCM by one core, in memory
 */
#include "aes.h"
#include "tcp.h"

#define BW_BYTES ((size_t)1 << 20)
#define BW_WINDOW 4

static const char *const clear_marks[] = { "-bw-1m" }, *const secure_marks[] = { "-secure-1m" };

/* ---- windows of four ---- */

static void raw_send_window(struct link *l, void *mem, size_t n)
{
	for (size_t i = 0; i < BW_WINDOW; i++)
		tcp_send(l, mem, n);
}

static void raw_recv_window(struct link *l, void *mem, size_t n)
{
	for (size_t i = 0; i < BW_WINDOW; i++)
		tcp_recv(l, (char *)mem + i * n, n);
}

static void weft_send_window(struct link *l, void *mem, size_t n)
{
	struct weft_link *k = (struct weft_link *)l;
	struct weft_req *req[BW_WINDOW] = { NULL };

	for (size_t i = 0; i < BW_WINDOW; i++)
		must(weft_send_post(NULL, WEFT(op, .peer = k->peer, .tag = LINK_TAG, .data = mem, .len = n), &req[i]), "weft_send_post");
	must(weft_req_wait_some(req, BW_WINDOW, BW_WINDOW, BW_WINDOW, WEFT_FOREVER, NULL, NULL), "weft_req_wait_some");
}

static void weft_recv_window(struct link *l, void *mem, size_t n)
{
	struct weft_link *k = (struct weft_link *)l;
	struct weft_req *req[BW_WINDOW] = { NULL };

	for (size_t i = 0; i < BW_WINDOW; i++)
		must(weft_recv_post(NULL, WEFT(op, .peer = k->peer, .tag = LINK_TAG, .data = (char *)mem + i * n, .len = n), &req[i], NULL),
		     "weft_recv_post");
	must(weft_req_wait_some(req, BW_WINDOW, BW_WINDOW, BW_WINDOW, WEFT_FOREVER, NULL, NULL), "weft_req_wait_some");
}

static unsigned char bw_byte(size_t i)
{
	i %= BW_BYTES;
	return (unsigned char)(i * 7 + (i >> 12));
}

/* One window, and every byte of it is looked at. */
static void bw_check(struct link *l, int side, unsigned char *mem)
{
	size_t wrong = 0;

	for (size_t i = 0; i < BW_WINDOW * BW_BYTES; i++)
		mem[i] = side == 0 ? bw_byte(i) : 0;
	window_steps(l, side, mem, BW_BYTES, 1);
	for (size_t i = 0; i < BW_WINDOW * BW_BYTES; i++)
		wrong += mem[i] != bw_byte(i);
	if (wrong)
		die("side %d: %zu bytes of a window arrived wrong", side, wrong);
}

static double bw_measure(struct link *l, int side, void *mem)
{
	bw_check(l, side, mem);
	return BW_WINDOW * BW_BYTES * 1e3 / measure(l, side, mem, BW_BYTES, true);
}

static void raw_bw_sample(struct tcp_pair *t, struct tcp_link *k, void *mem, const char *series)
{
	double v = bw_measure(&k->l, t->side, mem);

	if (t->side == 0)
		sample(series, "bw", BW_BYTES, v);
}

static void rail_bw_sample(struct tcp_pair *t, struct rail_link *k, void *mem, const char *series)
{
	double v;

	rail_begin(t, k);
	v = bw_measure(&k->w.l, t->side, mem);
	rail_end(t, k);
	if (t->side == 0)
		sample(series, "bw", BW_BYTES, v);
}

/* Side 0 alone; the other one waits for it. */
static void aes_sample(struct tcp_pair *t, struct aes *a)
{
	if (t->side == 0)
		sample(tcp_series("raw", "-aes-gcm").name, "bw", AES_BYTES, AES_BYTES * 1e3 / measure_alone(aes_seal, a));
	procs_meet(&t->p);
}

/* weft encrypts unless it was told not to. */
static bool secure(void)
{
	const char *mode = getenv("WEFT_SECURE");

	return !mode || (strcmp(mode, "auth") != 0 && strcmp(mode, "sum") != 0);
}

int main(void)
{
	struct tcp_pair t = tcp_start();
	struct tcp_link raw = tcp_link(&t, true);
	struct weft_link four = weft_link_blocking(t.peer);
	struct rail_link posted;
	void *mem = page_memory(BW_WINDOW * BW_BYTES);
	struct aes a = { 0 };

	if (tcp_skip(&t.p, secure() ? secure_marks : clear_marks, 1))
		return 0;
	raw.l.send_window = raw_send_window;
	raw.l.recv_window = raw_recv_window;
	four.l.send_window = weft_send_window;
	four.l.recv_window = weft_recv_window;
	four.l.window = BW_WINDOW;
	posted = rail_link(four);
	cpu_pin(t.side);
	tcp_spin();
	if (secure() && t.side == 0)
		a = aes_start();
	for (int r = 0; r < repeats(); r++) {
		if (secure())
			aes_sample(&t, &a);
		raw_bw_sample(&t, &raw, mem, tcp_series("raw", secure() ? "-clear" : "").name);
		rail_bw_sample(&t, &posted, mem, tcp_series("weft", secure() ? "-secure" : "-posted").name);
	}
	tcp_end(&t);
	return 0;
}
