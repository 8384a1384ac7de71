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
}

void verdict_server(struct verdict *v, uint32_t host)
{
	v->server = host;
	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
		v->hosts[h].unheard = v->hosts[h].deaf = false;
}

/* Whom a word of @by about @host concerns: the one of the two that does not serve. HOSTLIST_HOSTS: it is no pair that listens to each other. */
static uint32_t concerned(const struct verdict *v, uint32_t by, uint32_t host)
{
	if (by >= HOSTLIST_HOSTS || host >= HOSTLIST_HOSTS || by == host || !v->hosts[by].in || !v->hosts[host].in)
		return HOSTLIST_HOSTS;
	return by == v->server ? host : host == v->server ? by : HOSTLIST_HOSTS;
}

void verdict_silent(struct verdict *v, uint32_t by, uint32_t host, int64_t now)
{
	uint32_t of = concerned(v, by, host);

	if (of == HOSTLIST_HOSTS)
		return;
	if (!is_apart(v, of))
		v->hosts[of].since = now;
	if (of == host)
		v->hosts[of].unheard = true;
	else
		v->hosts[of].deaf = true;
}

void verdict_heard(struct verdict *v, uint32_t by, uint32_t host)
{
	uint32_t of = concerned(v, by, host);

	if (of == HOSTLIST_HOSTS)
		return;
	if (of == host)
		v->hosts[of].unheard = false;
	else
		v->hosts[of].deaf = false;
}

static uint32_t first_apart(const struct verdict *v)
{
	uint32_t first = HOSTLIST_HOSTS;

	for (uint32_t h = 0; h < HOSTLIST_HOSTS; h++)
		if (h != v->server && is_apart(v, h) && (first == HOSTLIST_HOSTS || v->hosts[h].since < v->hosts[first].since))
			first = h;
	return first;
}

int64_t verdict_next(const struct verdict *v)
{
	uint32_t first = first_apart(v);

	return first == HOSTLIST_HOSTS ? 0 : v->hosts[first].since + v->put_off;
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
	*ret_host = v->hosts[v->server].in && is_servers_fault(v) ? v->server : first;
	/* Whoever is left has nothing against the next one that serves. */
	if (*ret_host == v->server)
		verdict_server(v, v->server);
	verdict_in(v, *ret_host, false);
	return true;
}
