/* rails_open.c - which rails this process has, and what each is told. See rails.h.
 *
 * Without the knob rails the adapters that the job says, mostly one; else those that it means. Of several those that this host has not are named in a line of the log; one has to be there.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/log.h"
#include "net/choose.h"
#include "wire/places.h"
#include "wire/rails.h"

/* One for each adapter in the job's list. Without any: whatever there is. */
static int listed(const char *adapters, struct wf_choice ret_choices[WF_RAILS])
{
	const struct wf_driver *driver = wf_driver_at(0);       /* the first built in is the one that every machine has */
	uint32_t n = wf_places_count(adapters);

	if (n > WF_RAILS)
		return weft_fail(-EINVAL, "'%s' are %u adapters, and a process uses %u at most", adapters, n, WF_RAILS);
	ret_choices[0] = (struct wf_choice){ .driver = driver };
	for (uint32_t i = 0; i < n; i++) {
		struct wf_choice *c = &ret_choices[i];
		int r = wf_places_nth(adapters, i, c->adapter, sizeof(c->adapter));

		if (r == -ENAMETOOLONG)
			return weft_fail(-EINVAL, "'%s': no adapter has a name as long as that", adapters);
		c->driver = r < 0 ? NULL : driver;
	}
	return n ? (int)n : 1;
}

/* By number; returns how many. Those without a driver are not of this host. */
static int choose(const struct wf_wire_self *self, struct wf_choice ret_choices[WF_RAILS])
{
	const char *text = wf_knob_text(WF_KNOB_RAILS);
	int n;

	if (!*text)
		return listed(self->adapter, ret_choices);
	n = wf_rails_choose(text, ret_choices, WF_RAILS);
	if (n == 0)
		return weft_fail(-EINVAL, "knob rails: '%s' means no adapter of this host", text);
	return n <= (int)WF_RAILS ? n : weft_fail(-EINVAL, "knob rails: '%s' means %d adapters, and a process uses %u at most: name them", text, n, WF_RAILS);
}

/* What each of them is told. */
static int options_of(const struct wf_wire_self *self, char *ret_options, size_t n)
{
	const char *driver = wf_driver_at(0)->name, *congestion = wf_knob_text(WF_KNOB_CONGESTION);
	char ports[32] = "";
	int r;

	if (congestion[strcspn(congestion, " \t\n,")])
		return weft_fail(-EINVAL, "knob congestion: '%.40s' is no name", congestion);
	if (self->ports)
		snprintf(ports, sizeof(ports), "%u-%u", self->ports, self->ports_last);
	r = snprintf(ret_options, n, "%s%s%s%s %s%s%s%s", self->ports ? driver : "", self->ports ? ".ports" : "", self->ports ? "=" : "", ports,
		     *congestion ? driver : "", *congestion ? ".congestion" : "", *congestion ? "=" : "", congestion);
	return r < (int)n ? 0 : weft_fail(-EINVAL, "knob congestion: '%.40s...' is too long", congestion);
}

/* Hosts are reached by streams (line.h); their addresses go as text, and who waits sleeps on the rail. Of several one thread may be in one and write to another. */
static int check_rail(const struct wf_rail *rail, bool several)
{
	const struct weft_driver *d = &rail->driver->slots;

	if (!(d->caps & WEFT_DRIVER_STREAM))
		return weft_fail(-EOPNOTSUPP, "rail %s: its lanes carry frames, and this version reaches hosts over streams only", rail->name);
	if (!d->addr_print || !d->addr_parse || rail->fd < 0)
		return weft_fail(-EOPNOTSUPP, "rail %s: its driver has no addr_print, addr_parse or wait_fd, and hosts are reached by those that have", rail->name);
	if (several && rail->serial)
		return weft_fail(-EOPNOTSUPP, "rail %s: its driver is for one thread at a time, and one of several rails is not", rail->name);
	return 0;
}

/* As number @i. *@ret_place: its address; @cookie of its upcalls: where it stands. */
static int open_one(struct wf_rails *rails, uint32_t i, const struct wf_choice *choice, const char *options, char *ret_place, size_t n)
{
	char name[160];
	int r;

	if (!choice->driver)
		return -EADDRNOTAVAIL;
	snprintf(name, sizeof(name), "%s:%s", choice->driver->name, choice->adapter);
	r = wf_rail_open(name, options, &wf_line_upcalls, wf_lines_retry, &rails->at[i], &rails->at[i]);
	if (r < 0)
		return r;
	r = check_rail(rails->at[i], rails->n > 1);
	if (r == 0) {
		rails->at[i]->driver->slots.addr_print(&rails->at[i]->info.addr, ret_place, n);
		return 0;
	}
	wf_rail_close(rails->at[i]);
	rails->at[i] = NULL;
	return r;
}

/* One descriptor to sleep on, of all. */
static int gather(struct wf_rails *rails)
{
	struct epoll_event ev = { .events = EPOLLIN };

	rails->fd = rails->first->fd;
	rails->epoll = rails->first->driver->slots.caps & WEFT_DRIVER_EPOLL;
	if (rails->n == 1)
		return 0;
	rails->set = epoll_create1(EPOLL_CLOEXEC);
	if (rails->set < 0)
		return weft_fail(-errno, "no descriptor for %u rails", rails->n);
	for (uint32_t i = 0; i < rails->n; i++)
		if (rails->at[i] && epoll_ctl(rails->set, EPOLL_CTL_ADD, rails->at[i]->fd, &ev) < 0)
			return weft_fail(-errno, "rail %s cannot be slept on beside others", rails->at[i]->name);
	rails->fd = rails->set;
	rails->epoll = true;
	return 0;
}

int wf_rails_open(const struct wf_wire_self *self, struct wf_rails *ret_rails, char *ret_at, size_t n)
{
	struct wf_choice choices[WF_RAILS];
	char options[160];
	int r = options_of(self, options, sizeof(options)), some = r < 0 ? r : choose(self, choices), why = 0;

	if (some < 0)
		return some;
	*ret_rails = (struct wf_rails){ .n = (uint32_t)some, .set = -1, .fd = -1, .uncancelled = true };
	*ret_at = '\0';
	for (uint32_t i = 0; i < ret_rails->n && r >= 0; i++) {
		char place[WF_WIRE_AT] = "";
		int err = open_one(ret_rails, i, &choices[i], options, place, sizeof(place));

		if (err < 0) {
			why = err;
			if (ret_rails->n > 1 && choices[i].driver)
				wf_log(WF_WARN, "rail %u is left out: %s", i, weft_last_error());
		} else {
			ret_rails->first = ret_rails->first ? ret_rails->first : ret_rails->at[i];
			ret_rails->uncancelled &= !!(ret_rails->at[i]->driver->slots.caps & WEFT_DRIVER_UNCANCELLED);
		}
		r = wf_places_add(ret_at, n, i, place);
	}
	if (r >= 0)
		r = ret_rails->first ? gather(ret_rails) : why;
	if (r < 0)
		wf_rails_close(ret_rails);
	return r;
}

void wf_rails_close(struct wf_rails *rails)
{
	for (uint32_t i = 0; i < rails->n; i++)
		wf_rail_close(rails->at[i]);
	if (rails->set >= 0)
		close(rails->set);
	*rails = (struct wf_rails){ .set = -1, .fd = -1 };
}
