/* registry.h - the drivers this process knows: built in, added by the program, or loaded.
 *
 * A driver once known stays. What is called is a copy whose missing slots are NULL; `self` is what was registered. A name such as
 * "lossy/tcp" asks for a wrapper around another driver: it is made when first asked for, and stays too.
 */
#ifndef WF_NET_REGISTRY_H
#define WF_NET_REGISTRY_H

#include <weft/driver.h>

#define WF_DRIVER_NAME 64       /* of a name with its wrappers, the end included */

struct wf_driver {
	struct weft_driver slots;       /* as far as its size said, then zeros */
	const struct weft_driver *self;
	char name[WF_DRIVER_NAME];
};

/* A driver around another: gives a struct of its own, to be freed with free(), whose slots call those of @inner. */
struct wf_wrapper {
	const char *name;
	int (*wrap)(const struct wf_driver *inner, struct weft_driver **ret_driver WEFT_GIVES);
};

/* [any] By name, wrappers in front: "tcp", "trace/lossy/tcp". -ENODEV: nobody is called that; -ENOMEM; or why a wrapper does not fit. */
int wf_driver_find(const char *name, const struct wf_driver **ret_driver);

/* [any] The @n-th driver known, without those that were made by wrapping; NULL: there are fewer. */
const struct wf_driver *wf_driver_at(int n);

#endif
