/* registry.c - the drivers this process knows. See registry.h.
 *
 * The array only grows, under a lock; an entry is never changed once `known` counts it, so reading needs none.
 *
 * Edges   D1  known release -> known acquire: the entries below it.
 */
#include "net/registry.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "net/tcp/tcp.h"
#include "net/wrap/wrap.h"

#define DRIVERS 64

static const struct weft_driver *const built_in[] = {
	&wf_tcp_driver,
};
static const struct wf_wrapper *const wrappers[] = {
	&wf_lossy_wrapper,
	&wf_trace_wrapper,
	&wf_mrstrict_wrapper,
};

static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct wf_driver *drivers[DRIVERS];      /* under adding; those below known are constant */
static _Atomic int known;

static bool name_is_plain(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	if (n < 1 || n > 15 || !islower((unsigned char)*name))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]))
			return false;
	return true;
}

/* What @d lacks or contradicts itself in; NULL: nothing. */
static const char *what_is_wrong(const struct weft_driver *d)
{
	bool stream = d->caps & WEFT_DRIVER_STREAM;

	if (!d->probe || !d->rail_open || !d->rail_close)
		return "probe, rail_open and rail_close must be there";
	if (!d->lane_open || !d->lane_close || !d->send || !d->poll)
		return "lane_open, lane_close, send and poll must be there";
	if (stream && (!d->need_drop || d->provide))
		return "lanes are streams: need_drop must be there, provide must not";
	if (!stream && (!d->provide || d->need_drop))
		return "lanes carry frames: provide must be there, need_drop must not";
	if (stream && !(d->caps & WEFT_DRIVER_RELIABLE))
		return "a stream is reliable, or it is none";
	if ((d->caps & WEFT_DRIVER_EPOLL) && !d->wait_fd)
		return "wait_fd is an epoll set, and is not there";
	if ((d->caps & WEFT_DRIVER_LOCAL_MEM) && !d->mem)
		return "memory must be registered, and mem is not there";
	if (d->mem && (!d->mem->add || !d->mem->del))
		return "mem needs add and del";
	if (d->land && (!d->land->land || !d->land->unland))
		return "land needs land and unland";
	if (d->remote && (!d->mem || !d->remote->put || !d->remote->get))
		return "remote needs put, get and mem";
	return NULL;
}

static struct wf_driver *look_up(const char *name)
{
	int n = atomic_load_explicit(&known, memory_order_acquire);     /* D1 */

	for (int i = 0; i < n; i++)
		if (!strcmp(drivers[i]->name, name))
			return drivers[i];
	return NULL;
}

/* Under `adding`: a checked driver becomes known by @name. */
static int add_locked(const struct weft_driver *driver, const char *name)
{
	int n = atomic_load_explicit(&known, memory_order_relaxed);     /* we are who writes it */
	size_t size = driver->size < sizeof(*driver) ? driver->size : sizeof(*driver);
	struct wf_driver *d;
	const char *wrong;

	if (look_up(name))
		return weft_fail(-EEXIST, "a driver called %s is there already", name);
	if (n == DRIVERS || strlen(name) >= sizeof(d->name))
		return weft_fail(-ENOSPC, "driver %s: no room for more than %d drivers", name, DRIVERS);
	d = calloc(1, sizeof(*d));
	if (!d)
		return weft_fail(-ENOMEM, "driver %s: out of memory", name);
	memcpy(&d->slots, driver, size);
	d->self = driver;
	strcpy(d->name, name);
	wrong = what_is_wrong(&d->slots);
	if (wrong) {
		free(d);
		return weft_fail(-EINVAL, "driver %s: %s", name, wrong);
	}
	drivers[n] = d;
	atomic_store_explicit(&known, n + 1, memory_order_release);     /* D1 */
	return 0;
}

static void add_built_in(void)
{
	pthread_mutex_lock(&adding);
	for (size_t i = 0; i < sizeof(built_in) / sizeof(*built_in); i++)
		add_locked(built_in[i], built_in[i]->name);
	pthread_mutex_unlock(&adding);
}

int weft_driver_add(const struct weft_driver *driver)
{
	int r;

	if (!driver)
		return weft_fail(-EINVAL, "driver is NULL");
	if (driver->abi != WEFT_DRIVER_ABI)
		return weft_fail(-EPROTO, "the driver is made for driver ABI %u, this weft has %u", driver->abi, WEFT_DRIVER_ABI);
	if (driver->size < offsetof(struct weft_driver, land))
		return weft_fail(-EINVAL, "the driver's size is %u, at least %zu are wanted", driver->size, offsetof(struct weft_driver, land));
	if (!name_is_plain(driver->name))
		return weft_fail(-EINVAL, "a driver's name is 1 to 15 of a-z and 0-9, a letter first");
	pthread_once(&once, add_built_in);
	pthread_mutex_lock(&adding);
	r = add_locked(driver, driver->name);
	pthread_mutex_unlock(&adding);
	return r;
}

int weft_driver_load(const char *path)
{
	const struct weft_driver *driver;
	weft_driver_main_fn entry;
	void *object, *symbol;
	int r;

	if (!path)
		return weft_fail(-EINVAL, "path is NULL");
	object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!object)
		return weft_fail(-ENOENT, "cannot load: %s", dlerror());
	symbol = dlsym(object, "weft_driver_main");
	if (!symbol) {
		dlclose(object);
		return weft_fail(-ENOSYS, "%s does not export weft_driver_main", path);
	}
	memcpy(&entry, &symbol, sizeof(entry));         /* ISO C has no cast from object to function pointers */
	weft_fail(0, NULL);
	driver = entry();
	if (!driver) {
		char why[100];

		strncpy(why, weft_last_error(), sizeof(why) - 1)[sizeof(why) - 1] = 0;
		dlclose(object);
		return weft_fail(-ENODEV, "%.80s gives no driver%s%s", path, *why ? ": " : "", why);
	}
	r = weft_driver_add(driver);
	if (r < 0)
		dlclose(object);        /* else it stays: its code may be called until the process ends */
	return r;
}

/* Under `adding`: @name, wrapped or not; the wrappers in front are made from the inside out. */
static int find_locked(const char *name, const struct wf_driver **ret_driver)
{
	struct weft_driver *made;
	const struct wf_driver *inner;
	const char *slash = strchr(name, '/');
	int r;

	*ret_driver = look_up(name);
	if (*ret_driver)
		return 0;
	for (size_t i = 0; slash && i < sizeof(wrappers) / sizeof(*wrappers); i++) {
		if (strlen(wrappers[i]->name) != (size_t)(slash - name) || strncmp(wrappers[i]->name, name, (size_t)(slash - name)))
			continue;
		r = find_locked(slash + 1, &inner);
		if (r == 0)
			r = wrappers[i]->wrap(inner, &made);
		if (r < 0)
			return r;
		r = add_locked(made, name);
		if (r < 0)
			free(made);
		else
			*ret_driver = look_up(name);
		return r;
	}
	return weft_fail(-ENODEV, "no driver is called '%.40s'", name);
}

int wf_driver_find(const char *name, const struct wf_driver **ret_driver)
{
	const struct wf_driver *found;
	int r;

	pthread_once(&once, add_built_in);
	pthread_mutex_lock(&adding);
	r = find_locked(name, &found);
	pthread_mutex_unlock(&adding);
	if (r == 0)
		*ret_driver = found;
	return r;
}

const struct wf_driver *wf_driver_at(int n)
{
	int all;

	pthread_once(&once, add_built_in);
	all = atomic_load_explicit(&known, memory_order_acquire);       /* D1 */
	for (int i = 0; i < all; i++)
		if (!strchr(drivers[i]->name, '/') && n-- == 0)
			return drivers[i];
	return NULL;
}
