/* rails.c - the rails of this process, who looks at them, and where the others are.
 *
 * One rail now, on the address by which the host is listed. Each process listens on the port that its place in the list gives it, so nobody has to be asked
 * where it is.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "secure/key.h"
#include "port/lead.h"
#include "port/listener.h"
#include "wire/hosts.h"
#include "wire/wire.h"

#define BUDGET 64                       /* events of one look */
#define LOOK WEFT_S                     /* how often handshakes are looked at */

struct wf_endpoint wf_endpoint;
static struct wf_hosts_map map;
static struct wf_rail *rail;
static _Atomic weft_time next_look;

struct wf_rail *wf_rail_to(const struct wf_trunk *t, uint32_t n)
{
	(void)t;
	return n == 0 ? rail : NULL;
}

int wf_host_addr(uint32_t process, struct weft_addr *ret_addr)
{
	char text[96];
	int r = wf_hosts_place(&map, process, text, sizeof(text));

	return r < 0 ? r : rail->driver->slots.addr_parse(text, ret_addr);
}

static int poll(bool spins)
{
	weft_time now;
	int n, r, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);        /* drivers call what threads are cancelled in */
	r = wf_rail_poll(rail, BUDGET, spins ? WEFT_POLL_SPIN : 0);
	now = wf_now();
	wf_trunks_turn(now);
	n = wf_lines_bury();            /* after it: who ends a line sets the time that it clears */
	if (now > atomic_load_explicit(&next_look, memory_order_relaxed)) {
		atomic_store_explicit(&next_look, now + LOOK, memory_order_relaxed);
		wf_lines_look(now);
	}
	pthread_setcancelstate(cancel, NULL);
	return n + (r > 0 ? r : 0);
}

static int arm(void)
{
	return wf_rail_arm(rail);
}

static struct wf_route_ops ops = {
	.lives = wf_depart_lives,
	.send = wf_depart_now,
	.start = wf_depart,
	.cancel_locked = wf_depart_cancel_locked,
	.fetch = wf_arrive_fetch,
	.pull = wf_arrive_pull,
	.answer = wf_arrive_answer,
	.offered = wf_arrive_offered,
	.seek_locked = wf_arrive_seek_locked,
	.abort = wf_arrive_abort,
	.poll = poll,
	.arm = arm,
	.next = wf_trunks_next,
};

static enum wf_mode mode(void)
{
	const char *text = getenv("WEFT_SECURE");

	if (text && !strcmp(text, "auth"))
		return WF_MODE_AUTH;
	if (text && !strcmp(text, "sum"))
		return WF_MODE_SUM;
	return WF_MODE_FULL;
}

int wf_wire_join(uint32_t process, const char *hosts, uint32_t base, const struct wf_key *key, const uint8_t job[16])
{
	struct wf_identity self = { .process = process };
	char name[160], options[160], text[96];
	uint32_t first, last;
	int r = wf_hosts_parse(hosts, base, &map);

	if (r == 0)
		r = wf_hosts_place(&map, process, text, sizeof(text));
	if (r < 0)
		return r;
	r = wf_random_fill(&(struct wf_random){ 0 }, self.incarnation, sizeof(self.incarnation));
	if (r < 0)
		return r;
	r = wf_endpoint_init(&wf_endpoint, key, job, &self, mode());
	if (r < 0)
		return r;
	wf_hosts_near(&map, process, &first, &last);
	wf_peers_near(first, last);
	/* The first driver built in is the one that every machine has. */
	snprintf(name, sizeof(name), "%s:%s", wf_driver_at(0)->name, wf_hosts_adapter(&map, process));
	snprintf(options, sizeof(options), "%s.ports=%u-%u", wf_driver_at(0)->name, wf_hosts_port(&map, process), wf_hosts_port(&map, process));
	r = wf_rail_open(name, options, &wf_line_upcalls, NULL, NULL, &rail);
	if (r < 0)
		return r;
	r = wf_lead_init();
	if (r < 0) {
		wf_rail_close(rail);
		return r;
	}
	ops.fd = rail->fd;
	wf_hosts = &ops;
	wf_log(WF_INFO, "process %u is reached at %s", process, text);
	return 0;
}

bool wf_wire_leave(weft_time until)
{
	bool all = true;

	if (!wf_hosts)
		return true;
	for (bool begin = true; !(all = wf_trunks_close(begin)) && !wf_past(until); begin = false)
		if (poll(false) == 0)
			wf_nap(100000);
	while (wf_lines_end_all())
		if (poll(false) == 0)
			wf_nap(100000);
	wf_hosts = NULL;
	wf_trunks_free();
	wf_rail_close(rail);
	rail = NULL;
	wf_lead_fini();
	wf_endpoint_fini(&wf_endpoint);
	wf_peers_near(1, UINT32_MAX);
	return all;
}
