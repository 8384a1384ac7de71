/* info.c - info objects: keys and values, both words, in the order in which the keys were first set.
 *
 * A handful of entries each, so that looking one up is a walk. MPI_INFO_ENV is made on first use, from what the
 * process knows of itself, and cannot be changed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "inner.h"

struct entry {
	char *key, *value;
};

struct MPI_ABI_Info {
	struct wm_object obj;
	bool fixed;                     /* MPI_INFO_ENV */

	pthread_mutex_t lock;           /* the rest */
	int count, room;
	struct entry *entries;
};

/* Objects; _locked expects the object's lock, or an object that nobody else knows yet */

static struct entry *find_locked(struct MPI_ABI_Info *info, const char *key)
{
	for (int i = 0; i < info->count; i++)
		if (!strcmp(info->entries[i].key, key))
			return &info->entries[i];
	return NULL;
}

/* Whether there was memory for it. */
static bool set_locked(struct MPI_ABI_Info *info, const char *key, const char *value)
{
	struct entry *e = find_locked(info, key), fresh = { .value = strdup(value) };

	if (!fresh.value)
		return false;
	if (e) {
		free(e->value);
		e->value = fresh.value;
		return true;
	}
	fresh.key = strdup(key);
	if (fresh.key && info->count == info->room) {
		int room = info->room ? 2 * info->room : 8;

		e = realloc(info->entries, (size_t)room * sizeof(*e));
		if (e) {
			info->entries = e;
			info->room = room;
		}
	}
	if (!fresh.key || info->count == info->room) {
		free(fresh.key);
		free(fresh.value);
		return false;
	}
	info->entries[info->count++] = fresh;
	return true;
}

static struct MPI_ABI_Info *info_new(void)
{
	struct MPI_ABI_Info *info = wm_object_new(WM_INFO, sizeof(*info));

	if (info)
		pthread_mutex_init(&info->lock, NULL);
	return info;
}

void wm_info_free(struct MPI_ABI_Info *info)
{
	if (!info || info->fixed)
		return;
	for (int i = 0; i < info->count; i++) {
		free(info->entries[i].key);
		free(info->entries[i].value);
	}
	free(info->entries);
	pthread_mutex_destroy(&info->lock);
	wm_object_free(info);
}

struct MPI_ABI_Info *wm_info_dup(struct MPI_ABI_Info *info)
{
	struct MPI_ABI_Info *copy = info ? info_new() : NULL;
	bool ok = true;

	if (!copy)
		return NULL;
	pthread_mutex_lock(&info->lock);
	for (int i = 0; ok && i < info->count; i++)
		ok = set_locked(copy, info->entries[i].key, info->entries[i].value);
	pthread_mutex_unlock(&info->lock);
	if (ok)
		return copy;
	wm_info_free(copy);
	return NULL;
}

/* What the process knows of itself */

static struct MPI_ABI_Info env = { .obj = { .kind = WM_INFO, .refs = 1 }, .fixed = true,
				   .lock = PTHREAD_MUTEX_INITIALIZER };

/* Cut off at MPI's limit. */
static bool env_set_locked(struct MPI_ABI_Info *info, const char *key, const char *value)
{
	char text[MPI_MAX_INFO_VAL];

	snprintf(text, sizeof(text), "%s", value);
	return set_locked(info, key, text);
}

/* The command and its arguments, end to end with blanks. */
static bool env_command_locked(struct MPI_ABI_Info *info, int argc, char *const argv[])
{
	char text[MPI_MAX_INFO_VAL] = "";
	size_t at = 0;

	if (argc < 1 || !argv || !argv[0])
		return true;
	for (int i = 1; i < argc && argv[i] && at < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i > 1 ? " " : "", argv[i]);
	return env_set_locked(info, "command", argv[0]) && (!*text || env_set_locked(info, "argv", text));
}

/* The kernel's view of the command line: it is there before MPI_Init too. */
static bool env_own_command_locked(struct MPI_ABI_Info *info)
{
	char text[2 * MPI_MAX_INFO_VAL], *argv[MPI_MAX_INFO_VAL];
	FILE *f = fopen("/proc/self/cmdline", "re");
	size_t len = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	int argc = 0;

	if (f)
		fclose(f);
	text[len] = 0;
	for (size_t at = 0; at < len && argc < MPI_MAX_INFO_VAL; at += strlen(text + at) + 1)
		argv[argc++] = text + at;
	return env_command_locked(info, argc, argv);
}

static bool env_place_locked(struct MPI_ABI_Info *info)
{
	const char *size = getenv("WEFT_SIZE");         /* what the world's will be; without it this is a job of one */
	char text[MPI_MAX_INFO_VAL];
	struct utsname u;

	if (!env_set_locked(info, "maxprocs", size ? size : "1"))
		return false;
	if (uname(&u) == 0 && !env_set_locked(info, "arch", u.machine))
		return false;
	return !getcwd(text, sizeof(text)) || env_set_locked(info, "wdir", text);
}

/* Where the process works stays as first seen. */
static struct MPI_ABI_Info *env_get(void)
{
	pthread_mutex_lock(&env.lock);
	if (!env.count) {
		env_own_command_locked(&env);
		env_place_locked(&env);
	}
	pthread_mutex_unlock(&env.lock);
	return &env;
}

struct MPI_ABI_Info *wm_info(MPI_Info info)
{
	if (info == MPI_INFO_ENV)
		return env_get();
	return wm_object_is(info, WM_INFO) ? info : NULL;
}

/* The calls */

/* A key that may be looked up: 0 or an error class. */
static int check_key(const char *key)
{
	if (!key)
		return MPI_ERR_ARG;
	return *key && strlen(key) < MPI_MAX_INFO_KEY ? 0 : MPI_ERR_INFO_KEY;
}

/* The object behind a handle and a key, both found good, or NULL: *ret_err was raised. */
static struct MPI_ABI_Info *info_and_key(const char *function, MPI_Info info, const char *key, int *ret_err)
{
	struct MPI_ABI_Info *i = wm_info(info);
	int r = i ? check_key(key) : MPI_ERR_INFO;

	if (!r)
		return i;
	*ret_err = wm_error(NULL, function, r, r == MPI_ERR_INFO ? "no info object" : "a key has 1 to %d characters",
			    MPI_MAX_INFO_KEY - 1);
	return NULL;
}

int PMPI_Info_create(MPI_Info *info)
{
	struct MPI_ABI_Info *i;

	if (!info)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "no place for the handle");
	i = info_new();
	if (!i)
		return wm_error(NULL, __func__, MPI_ERR_NO_MEM, "no memory for an info object");
	*info = i;
	return MPI_SUCCESS;
}
MPI_DONE(Info_create);

int PMPI_Info_create_env(int argc, char *argv[], MPI_Info *info)
{
	struct MPI_ABI_Info *i;

	if (!info)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "no place for the handle");
	i = info_new();
	if (!i || !(argc > 0 && argv ? env_command_locked(i, argc, argv) : env_own_command_locked(i)) ||
	    !env_place_locked(i)) {
		wm_info_free(i);
		return wm_error(NULL, __func__, MPI_ERR_NO_MEM, "no memory for an info object");
	}
	*info = i;
	return MPI_SUCCESS;
}
MPI_DONE(Info_create_env);

int PMPI_Info_dup(MPI_Info info, MPI_Info *newinfo)
{
	struct MPI_ABI_Info *i = wm_info(info), *copy;

	if (!i)
		return wm_error(NULL, __func__, MPI_ERR_INFO, "no info object");
	if (!newinfo)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "no place for the handle");
	copy = wm_info_dup(i);
	if (!copy)
		return wm_error(NULL, __func__, MPI_ERR_NO_MEM, "no memory for an info object");
	*newinfo = copy;
	return MPI_SUCCESS;
}
MPI_DONE(Info_dup);

int PMPI_Info_free(MPI_Info *info)
{
	struct MPI_ABI_Info *i = info ? wm_info(*info) : NULL;

	if (!i || i->fixed)
		return wm_error(NULL, __func__, MPI_ERR_INFO, i ? "MPI_INFO_ENV stays" : "no info object");
	wm_info_free(i);
	*info = MPI_INFO_NULL;
	return MPI_SUCCESS;
}
MPI_DONE(Info_free);

int PMPI_Info_set(MPI_Info info, const char *key, const char *value)
{
	struct MPI_ABI_Info *i;
	bool ok;
	int r;

	i = info_and_key(__func__, info, key, &r);
	if (!i)
		return r;
	if (i->fixed)
		return wm_error(NULL, __func__, MPI_ERR_INFO, "MPI_INFO_ENV cannot be changed");
	if (!value || strlen(value) >= MPI_MAX_INFO_VAL)
		return wm_error(NULL, __func__, MPI_ERR_INFO_VALUE, "a value has at most %d characters", MPI_MAX_INFO_VAL - 1);
	pthread_mutex_lock(&i->lock);
	ok = set_locked(i, key, value);
	pthread_mutex_unlock(&i->lock);
	return ok ? MPI_SUCCESS : wm_error(NULL, __func__, MPI_ERR_NO_MEM, "no memory for a value");
}
MPI_DONE(Info_set);

int PMPI_Info_delete(MPI_Info info, const char *key)
{
	struct MPI_ABI_Info *i;
	struct entry *e;
	int r;

	i = info_and_key(__func__, info, key, &r);
	if (!i)
		return r;
	if (i->fixed)
		return wm_error(NULL, __func__, MPI_ERR_INFO, "MPI_INFO_ENV cannot be changed");
	pthread_mutex_lock(&i->lock);
	e = find_locked(i, key);
	if (e) {
		free(e->key);
		free(e->value);
		memmove(e, e + 1, (size_t)(i->entries + i->count-- - (e + 1)) * sizeof(*e));
	}
	pthread_mutex_unlock(&i->lock);
	return e ? MPI_SUCCESS : wm_error(NULL, __func__, MPI_ERR_INFO_NOKEY, "there is no key \"%s\"", key);
}
MPI_DONE(Info_delete);

/* The value under @key, cut off so that it fits @room bytes with the 0 that ends it; room 0: nothing is written.
 * Answers its whole length, -1: there is no such key. */
static int value_get(struct MPI_ABI_Info *info, const char *key, char *value, int room)
{
	struct entry *e;
	int len = -1;

	pthread_mutex_lock(&info->lock);
	e = find_locked(info, key);
	if (e) {
		len = (int)strlen(e->value);
		if (room > 0)
			snprintf(value, (size_t)room, "%s", e->value);
	}
	pthread_mutex_unlock(&info->lock);
	return len;
}

int PMPI_Info_get(MPI_Info info, const char *key, int valuelen, char *value, int *flag)
{
	struct MPI_ABI_Info *i;
	int r;

	i = info_and_key(__func__, info, key, &r);
	if (!i)
		return r;
	if (valuelen < 0 || !value || !flag)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "no place for the value or the flag");
	if (valuelen > MPI_MAX_INFO_VAL)        /* no value is longer, and one more than that would not overflow */
		valuelen = MPI_MAX_INFO_VAL;
	*flag = value_get(i, key, value, valuelen + 1) >= 0;
	return MPI_SUCCESS;
}
MPI_DONE(Info_get);

int PMPI_Info_get_string(MPI_Info info, const char *key, int *buflen, char *value, int *flag)
{
	struct MPI_ABI_Info *i;
	int r;

	i = info_and_key(__func__, info, key, &r);
	if (!i)
		return r;
	if (!buflen || *buflen < 0 || (!value && *buflen) || !flag)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "no place for the value, its length or the flag");
	r = value_get(i, key, value, *buflen);
	*flag = r >= 0;
	if (*flag)
		*buflen = r + 1;
	return MPI_SUCCESS;
}
MPI_DONE(Info_get_string);

int PMPI_Info_get_valuelen(MPI_Info info, const char *key, int *valuelen, int *flag)
{
	struct MPI_ABI_Info *i;
	int r;

	i = info_and_key(__func__, info, key, &r);
	if (!i)
		return r;
	if (!valuelen || !flag)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "no place for the length or the flag");
	r = value_get(i, key, NULL, 0);
	*flag = r >= 0;
	if (*flag)
		*valuelen = r;
	return MPI_SUCCESS;
}
MPI_DONE(Info_get_valuelen);

int PMPI_Info_get_nkeys(MPI_Info info, int *nkeys)
{
	struct MPI_ABI_Info *i = wm_info(info);

	if (!i)
		return wm_error(NULL, __func__, MPI_ERR_INFO, "no info object");
	if (!nkeys)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "no place for the number");
	pthread_mutex_lock(&i->lock);
	*nkeys = i->count;
	pthread_mutex_unlock(&i->lock);
	return MPI_SUCCESS;
}
MPI_DONE(Info_get_nkeys);

int PMPI_Info_get_nthkey(MPI_Info info, int n, char *key)
{
	struct MPI_ABI_Info *i = wm_info(info);
	int count;

	if (!i)
		return wm_error(NULL, __func__, MPI_ERR_INFO, "no info object");
	if (!key)
		return wm_error(NULL, __func__, MPI_ERR_ARG, "no place for the key");
	pthread_mutex_lock(&i->lock);
	count = i->count;
	if (n >= 0 && n < count)
		strcpy(key, i->entries[n].key);
	pthread_mutex_unlock(&i->lock);
	return n >= 0 && n < count ? MPI_SUCCESS :
	       wm_error(NULL, __func__, MPI_ERR_ARG, "key %d of %d", n, count);
}
MPI_DONE(Info_get_nthkey);
