/* verdict.c - see verdict.h. */
#include "verdict.h"

static bool is_apart(const struct verdict *v, uint32_t host)
{
	return v->hosts[host].in && (v->hosts[host].unheard || v->hosts[host].deaf);
}

void verdict_in(struct verdict *v, uint32_t host, bool in)
{
	v->hosts[host].in = in;
	v->hosts[host].unheard = v->hosts[host].deaf = false;
	v->hosts[host].heard = v->hosts[host].hears = INT64_MIN;
}

void verdict_server(struct verdict *v, uint32_t host)
{
	v->server = host;
	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++) {
		v->hosts[h].unheard = v->hosts[h].deaf = false;
		v->hosts[h].heard = v->hosts[h].hears = INT64_MIN;
	}
}

/* Whom a word of @by about @host concerns: the one of the two that does not serve. HOSTLIST_HOSTS: it is no pair that listens to each other. */
static uint32_t concerned(const struct verdict *v, uint32_t by, uint32_t host)
{
	if (by >= HOSTLIST_HOSTS || host >= HOSTLIST_HOSTS || by == host || !v->hosts[by].in || !v->hosts[host].in)
		return HOSTLIST_HOSTS;
	return by == v->server ? host : host == v->server ? by : HOSTLIST_HOSTS;
}

bool verdict_silent(struct verdict *v, uint32_t by, uint32_t host, int64_t now)
{
	uint32_t of = concerned(v, by, host);
	bool first;

	if (of == HOSTLIST_HOSTS)
		return false;
	first = !is_apart(v, of);
	if (first)
		v->hosts[of].since = now;
	if (of == host)
		v->hosts[of].unheard = true;
	else
		v->hosts[of].deaf = true;
	return first;
}

void verdict_heard(struct verdict *v, uint32_t by, uint32_t host, int64_t now)
{
	uint32_t of = concerned(v, by, host);

	if (of == HOSTLIST_HOSTS)
		return;
	if (of == host) {
		v->hosts[of].unheard = false;
		v->hosts[of].heard = now;
	} else {
		v->hosts[of].deaf = false;
		v->hosts[of].hears = now;
	}
}

static uint32_t first_apart(const struct verdict *v)
{
	uint32_t first = HOSTLIST_HOSTS;

	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
		if (h != v->server && is_apart(v, h) && (first == HOSTLIST_HOSTS || v->hosts[h].since < v->hosts[first].since))
			first = h;
	return first;
}

/* The one that serves is not cut off: since @host was complained of it and another have heard each other. Or there is no other. */
static bool is_vouched_for(const struct verdict *v, uint32_t host)
{
	int64_t since = v->hosts[host].since;
	unsigned others = 0;

	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++) {
		if (h == host || h == v->server || !v->hosts[h].in)
			continue;
		others++;
		if (!is_apart(v, h) && v->hosts[h].heard > since && v->hosts[h].hears > since)
			return true;
	}
	return !others;
}

int64_t verdict_next(const struct verdict *v, int64_t now)
{
	uint32_t first = first_apart(v);
	int64_t at = first == HOSTLIST_HOSTS ? 0 : v->hosts[first].since + v->put_off;

	return at && at <= now && !is_vouched_for(v, first) ? v->hosts[first].since + VERDICT_UNVOUCHED * v->put_off : at;
}

/* If the one that serves gets on with none of the others it is the one that is cut off, or stopped. Of two hosts that is so only if it has nothing to say
 * against the other: one that is stopped says nothing. */
static bool is_servers_fault(const struct verdict *v)
{
	unsigned others = 0, apart = 0;
	bool unheard = false;

	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
		if (h != v->server && v->hosts[h].in) {
			others++;
			apart += is_apart(v, h);
			unheard |= v->hosts[h].unheard;
		}
	return apart == others && (others > 1 || !unheard);
}

bool verdict_look(struct verdict *v, int64_t now, uint32_t *ret_host)
{
	uint32_t first = first_apart(v);

	if (first == HOSTLIST_HOSTS || now < v->hosts[first].since + v->put_off)
		return false;
	if (v->hosts[v->server].in && is_servers_fault(v))
		*ret_host = v->server;
	else if (is_vouched_for(v, first) || now >= v->hosts[first].since + VERDICT_UNVOUCHED * v->put_off)
		*ret_host = first;
	else
		return false;
	/* Whoever is left has nothing against the next one that serves. */
	if (*ret_host == v->server)
		verdict_server(v, v->server);
	verdict_in(v, *ret_host, false);
	return true;
}
