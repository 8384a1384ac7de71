/* attr.c - attributes: values under keys on communicators and datatypes, and the functions called when such a value
 * is copied or deleted. MPI's calls for it are in attr_call.c.
 *
 * A key's number stays taken while anything uses the key: the program until it frees it, and every value under it.
 * So a key may be freed first, or in a delete function, and its functions are still called for what is left.
 *
 * The program's functions run without a lock, so that they may call MPI. A value whose delete function runs is marked
 * leaving: it is still seen, but nobody deletes it a second time, and if its function fails it stays as it was.
 */
#include <stdlib.h>

#include "attr.h"

#define FIRST_KEY 0x1000        /* above every predefined one */

struct key {
	int number, refs;               /* under keys.lock */
	bool freed;                     /* by the program; under keys.lock */

	/* constant once made */
	uint32_t kind;                  /* WM_COMM, WM_TYPE, WM_WIN: what it is for */
	union wm_copy copy;
	union wm_delete delete;
	void *extra;
};

struct wm_attr {
	struct wm_attr *next;
	struct key *key;                /* a reference */
	void *value;
	bool leaving;
};

static struct {
	pthread_mutex_t lock;
	struct key **all;               /* by number - FIRST_KEY; NULL: free */
	int count;
} keys = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Keys */

static struct key *key_get_locked(int number)
{
	if (number < FIRST_KEY || number - FIRST_KEY >= keys.count)
		return NULL;
	return keys.all[number - FIRST_KEY];
}

/* A reference to the key for handles of @kind, or NULL: none. One that the program has freed is found for @freed_too. */
static struct key *key_get(int number, uint32_t kind, bool freed_too)
{
	struct key *k;

	pthread_mutex_lock(&keys.lock);
	k = key_get_locked(number);
	if (k && (k->kind != kind || (k->freed && !freed_too)))
		k = NULL;
	if (k)
		k->refs++;
	pthread_mutex_unlock(&keys.lock);
	return k;
}

static void key_put(struct key *k)
{
	pthread_mutex_lock(&keys.lock);
	if (--k->refs)
		k = NULL;
	else
		keys.all[k->number - FIRST_KEY] = NULL;
	pthread_mutex_unlock(&keys.lock);
	free(k);
}

static int key_number_locked(struct key *k)
{
	int i = 0;

	while (i < keys.count && keys.all[i])
		i++;
	if (i == keys.count) {
		int count = keys.count ? 2 * keys.count : 16;
		struct key **all = realloc(keys.all, (size_t)count * sizeof(*all));

		if (!all)
			return 0;
		for (int j = keys.count; j < count; j++)
			all[j] = NULL;
		keys.all = all;
		keys.count = count;
	}
	keys.all[i] = k;
	return i + FIRST_KEY;
}

int wm_key_new(const char *function, uint32_t kind, union wm_copy copy, union wm_delete delete, void *extra,
	       int *ret_number)
{
	struct key *k;

	if (!ret_number)
		return wm_error(NULL, function, MPI_ERR_ARG, "no place for the key");
	k = calloc(1, sizeof(*k));
	if (!k)
		return wm_error(NULL, function, MPI_ERR_NO_MEM, "no memory for a key");
	*k = (struct key){ .refs = 1, .kind = kind, .copy = copy, .delete = delete, .extra = extra };
	pthread_mutex_lock(&keys.lock);
	k->number = key_number_locked(k);
	pthread_mutex_unlock(&keys.lock);
	if (!k->number) {
		free(k);
		return wm_error(NULL, function, MPI_ERR_NO_MEM, "no memory for a key");
	}
	*ret_number = k->number;
	return MPI_SUCCESS;
}

/* Freeing one again while values still use it changes nothing: programs free a key in its own delete function. */
int wm_key_free(const char *function, uint32_t kind, int *number)
{
	struct key *k;
	bool first;

	if (!number)
		return wm_error(NULL, function, MPI_ERR_ARG, "no key");
	k = key_get(*number, kind, true);
	if (!k)
		return wm_error(NULL, function, MPI_ERR_KEYVAL, "%d is no key that can be freed", *number);
	pthread_mutex_lock(&keys.lock);
	first = !k->freed;
	k->freed = true;
	pthread_mutex_unlock(&keys.lock);
	if (first)
		key_put(k);
	key_put(k);
	*number = MPI_KEYVAL_INVALID;
	return MPI_SUCCESS;
}

/* Values of an object */

void wm_attrs_init(struct wm_attrs *attrs)
{
	pthread_mutex_init(&attrs->lock, NULL);
	attrs->first = NULL;
}

/* The newest under @key, NULL: any; of those that nobody is deleting, unless @leaving_too. */
static struct wm_attr *attr_find_locked(struct wm_attrs *attrs, const struct key *key, bool leaving_too)
{
	struct wm_attr *a = attrs->first;

	while (a && ((key && a->key != key) || (a->leaving && !leaving_too)))
		a = a->next;
	return a;
}

static void attr_unlink_locked(struct wm_attrs *attrs, struct wm_attr *attr)
{
	struct wm_attr **p = &attrs->first;

	while (*p != attr)
		p = &(*p)->next;
	*p = attr->next;
}

static void attr_push_locked(struct wm_attrs *attrs, struct wm_attr *attr)
{
	attr->next = attrs->first;
	attrs->first = attr;
}

static struct wm_attr *attr_new(struct key *key, void *value)
{
	struct wm_attr *a = malloc(sizeof(*a));

	if (a)
		*a = (struct wm_attr){ .key = key, .value = value };
	return a;
}

static void attr_free(struct wm_attr *attr)
{
	if (attr)
		key_put(attr->key);
	free(attr);
}

/* Marks the newest under @key (NULL: of all) as leaving and calls its delete function: its code, and then @attr stays;
 * MPI_SUCCESS with @ret_attr, unlinked and the caller's, or NULL: there was none. */
static int attr_take(struct wm_attrs *attrs, const struct key *key, void *handle, struct wm_attr **ret_attr)
{
	struct wm_attr *a;
	int r = MPI_SUCCESS;

	pthread_mutex_lock(&attrs->lock);
	a = attr_find_locked(attrs, key, false);
	if (a)
		a->leaving = true;
	pthread_mutex_unlock(&attrs->lock);
	*ret_attr = NULL;
	if (!a)
		return MPI_SUCCESS;
	if (a->key->kind == WM_COMM && a->key->delete.comm != MPI_COMM_NULL_DELETE_FN)
		r = a->key->delete.comm(handle, a->key->number, a->value, a->key->extra);
	else if (a->key->kind == WM_TYPE && a->key->delete.type != MPI_TYPE_NULL_DELETE_FN)
		r = a->key->delete.type(handle, a->key->number, a->value, a->key->extra);
	pthread_mutex_lock(&attrs->lock);
	a->leaving = false;
	if (r == MPI_SUCCESS)
		attr_unlink_locked(attrs, a);
	pthread_mutex_unlock(&attrs->lock);
	if (r == MPI_SUCCESS)
		*ret_attr = a;
	return r;
}

int wm_attrs_delete(struct wm_attrs *attrs, void *handle)
{
	struct wm_attr *a;
	int r;

	do {
		r = attr_take(attrs, NULL, handle, &a);
		attr_free(a);
	} while (a);
	return r;
}

/* The value that a copy of @attr has: MPI_SUCCESS with @ret_copy, NULL if it is not copied; else an error. */
static int attr_copy(const struct wm_attr *attr, void *handle, struct wm_attr **ret_copy)
{
	struct key *k = attr->key;
	void *value = attr->value;
	int flag = 0, r = MPI_SUCCESS;

	*ret_copy = NULL;
	if (k->kind == WM_COMM ? k->copy.comm == MPI_COMM_DUP_FN : k->copy.type == MPI_TYPE_DUP_FN)
		flag = 1;
	else if (k->kind == WM_COMM && k->copy.comm != MPI_COMM_NULL_COPY_FN)
		r = k->copy.comm(handle, k->number, k->extra, attr->value, &value, &flag);
	else if (k->kind == WM_TYPE && k->copy.type != MPI_TYPE_NULL_COPY_FN)
		r = k->copy.type(handle, k->number, k->extra, attr->value, &value, &flag);
	if (r != MPI_SUCCESS || !flag)
		return r;
	*ret_copy = attr_new(k, value);
	if (!*ret_copy)
		return MPI_ERR_NO_MEM;
	pthread_mutex_lock(&keys.lock);
	k->refs++;
	pthread_mutex_unlock(&keys.lock);
	return MPI_SUCCESS;
}

/* The values as they are now, oldest first: a list of the caller's own with references to the keys. */
static int attrs_snapshot(struct wm_attrs *attrs, struct wm_attr **ret_first)
{
	struct wm_attr *first = NULL;
	bool short_of = false;

	pthread_mutex_lock(&attrs->lock);
	for (struct wm_attr *a = attrs->first; a && !short_of; a = a->next) {
		struct wm_attr *mine = a->leaving ? NULL : attr_new(a->key, a->value);

		if (mine) {
			mine->next = first;
			first = mine;
			pthread_mutex_lock(&keys.lock);
			a->key->refs++;
			pthread_mutex_unlock(&keys.lock);
		}
		short_of = !mine && !a->leaving;
	}
	pthread_mutex_unlock(&attrs->lock);
	*ret_first = first;
	return short_of ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

int wm_attrs_copy(struct wm_attrs *to, struct wm_attrs *from, void *from_handle)
{
	struct wm_attr *a, *next, *copy;
	int r = attrs_snapshot(from, &a);

	for (; a; a = next) {
		next = a->next;
		copy = NULL;
		if (r == MPI_SUCCESS)
			r = attr_copy(a, from_handle, &copy);
		attr_free(a);
		if (!copy)
			continue;
		pthread_mutex_lock(&to->lock);
		attr_push_locked(to, copy);
		pthread_mutex_unlock(&to->lock);
	}
	return r;
}

/* What the calls do */

int wm_attr_set(struct MPI_ABI_Comm *comm, const char *function, struct wm_attrs *attrs, void *handle, uint32_t kind,
		int number, void *value)
{
	struct key *k = key_get(number, kind, false);
	struct wm_attr *fresh, *old;
	int r;

	if (!k)
		return wm_error(comm, function, MPI_ERR_KEYVAL, "%d is no key under which a value can be set here", number);
	fresh = attr_new(k, value);
	if (!fresh) {
		key_put(k);
		return wm_error(comm, function, MPI_ERR_NO_MEM, "no memory for an attribute");
	}
	for (;;) {
		pthread_mutex_lock(&attrs->lock);
		if (!attr_find_locked(attrs, k, false)) {
			attr_push_locked(attrs, fresh);
			pthread_mutex_unlock(&attrs->lock);
			return MPI_SUCCESS;
		}
		pthread_mutex_unlock(&attrs->lock);
		r = attr_take(attrs, k, handle, &old);
		attr_free(old);
		if (r != MPI_SUCCESS) {
			attr_free(fresh);
			return wm_error(comm, function, r, "the delete function of the old value answered %d", r);
		}
	}
}

int wm_attr_delete(struct MPI_ABI_Comm *comm, const char *function, struct wm_attrs *attrs, void *handle,
		   uint32_t kind, int number)
{
	struct key *k = key_get(number, kind, true);
	struct wm_attr *old;
	int r;

	if (!k)
		return wm_error(comm, function, MPI_ERR_KEYVAL, "%d is no key whose value can be deleted here", number);
	r = attr_take(attrs, k, handle, &old);
	attr_free(old);
	key_put(k);
	return r == MPI_SUCCESS ? r : wm_error(comm, function, r, "the delete function answered %d", r);
}

int wm_attr_get(struct MPI_ABI_Comm *comm, const char *function, struct wm_attrs *attrs, uint32_t kind, int number,
		void *ret_value, int *ret_flag)
{
	struct key *k = key_get(number, kind, true);
	struct wm_attr *a;

	if (!k)
		return wm_error(comm, function, MPI_ERR_KEYVAL, "%d is no key that can be used here", number);
	pthread_mutex_lock(&attrs->lock);
	a = attr_find_locked(attrs, k, true);
	if (a)
		*(void **)ret_value = a->value;
	*ret_flag = a != NULL;
	pthread_mutex_unlock(&attrs->lock);
	key_put(k);
	return MPI_SUCCESS;
}
