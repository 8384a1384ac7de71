/* choose.h - which rails a process opens, from a text such as "tcp", "tcp:eth0,tcp:eth1" or "-tcp:lo".
 *
 * Words are separated by commas or blanks, later ones outweigh earlier ones:
 *
 *     tcp            every adapter of that driver but those that reach this host only
 *     tcp:eth0       that one, whatever it is; also one that probing did not find: its driver may know ("tcp:10.1.0.0/16")
 *     -tcp -tcp:eth0 none of that driver; not that one
 *
 * A text without a word that includes begins with the default: the first case, for every driver. A driver's name may have
 * wrappers in front: "lossy/tcp:lo". A rail found is named once.
 */
#ifndef WF_NET_CHOOSE_H
#define WF_NET_CHOOSE_H

#include "net/registry.h"

#define WF_RAIL_NAME (WF_DRIVER_NAME + 48)

struct wf_choice {
	const struct wf_driver *driver;
	char adapter[48];
	uint64_t rate;                  /* hint; 0: not known */
};

/* [any] Fills at most @max, returns how many there are. -ENODEV: a word names no driver; -EINVAL: it makes no sense. */
int wf_rails_choose(const char *text, struct wf_choice *ret_choices, int max);

#endif
