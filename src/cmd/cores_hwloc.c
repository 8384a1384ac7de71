/* cores_hwloc.c - the same by hwloc, if it is on this machine.
 *
 * weft is not built with it: it is loaded when it is asked for. Its topology is taken as the text it writes itself, so that no layout of
 * its structs has to be known:
 *
 *   <object type="Core" os_index="0" cpuset="0x00000003" ...>
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cores.h"

/* What is used of libhwloc.so.15, that is of every version 2. */
struct hwloc {
	unsigned (*get_api_version)(void);
	int (*topology_init)(void **ret_topology);
	int (*topology_load)(void *topology);
	void (*topology_destroy)(void *topology);
	int (*topology_export_xmlbuffer)(void *topology, char **ret_text, int *ret_len, unsigned long flags);
	void (*free_xmlbuffer)(void *topology, char *text);
	void *(*bitmap_alloc)(void);
	int (*bitmap_sscanf)(void *bitmap, const char *text);
	int (*bitmap_isset)(const void *bitmap, unsigned id);
	int (*bitmap_first)(const void *bitmap);
	void (*bitmap_free)(void *bitmap);
};

static bool find(void *library, const char *name, void *ret_call)
{
	void *call = dlsym(library, name);

	memcpy(ret_call, &call, sizeof(call));
	return call != NULL;
}

/* False: it is not there, or it is another one. It stays. */
static bool load(struct hwloc *h)
{
	void *library = dlopen("libhwloc.so.15", RTLD_LAZY | RTLD_LOCAL);
	bool all = library != NULL;

#define FIND(name) (all = all && find(library, "hwloc_" #name, &h->name))
	FIND(get_api_version);
	FIND(topology_init);
	FIND(topology_load);
	FIND(topology_destroy);
	FIND(topology_export_xmlbuffer);
	FIND(free_xmlbuffer);
	FIND(bitmap_alloc);
	FIND(bitmap_sscanf);
	FIND(bitmap_isset);
	FIND(bitmap_first);
	FIND(bitmap_free);
#undef FIND
	return all && h->get_api_version() >> 16 == 2;
}

/* The value of @name in the tag that ends at @end; false: it has none, or a very long one. */
static bool attribute(const char *tag, const char *end, const char *name, char *ret_value, size_t n)
{
	const char *at = strstr(tag, name);
	size_t len;

	if (!at || at >= end)
		return false;
	at += strlen(name);
	len = strcspn(at, "\"");
	if (len >= n)
		return false;
	memcpy(ret_value, at, len);
	ret_value[len] = 0;
	return true;
}

/* A topology while it is read. */
struct reading {
	const struct hwloc *h;
	struct cores *c;
	void *bitmap;                   /* of the object at hand */
	unsigned known;                 /* CPUs that have been told */
	bool has_node[CPU_SETSIZE];     /* by place in the table */
};

static void cpu_take(struct reading *r, unsigned place, const char *type, unsigned number)
{
	struct cpu *cpu = &r->c->cpus[place];

	if (!strcmp(type, "PU")) {
		r->known++;
	} else if (!strcmp(type, "Core")) {
		cpu->core = (unsigned)r->h->bitmap_first(r->bitmap);
	} else if (!strcmp(type, "Package")) {
		cpu->socket = number;
	} else if (!strcmp(type, "NUMANode") && !r->has_node[place]) {
		cpu->numa = number;
		r->has_node[place] = true;      /* memory of a second kind may be told as a second node of the same CPUs */
	}
}

/* One object, from @tag to @end, for all CPUs that it has. */
static void object_take(struct reading *r, const char *tag, const char *end)
{
	char type[32], number[32] = "0", set[8192];

	if (!attribute(tag, end, " type=\"", type, sizeof(type)) || !attribute(tag, end, " cpuset=\"", set, sizeof(set)) ||
	    r->h->bitmap_sscanf(r->bitmap, set) < 0)
		return;
	attribute(tag, end, " os_index=\"", number, sizeof(number));
	for (unsigned i = 0; i < r->c->count; i++)
		if (r->h->bitmap_isset(r->bitmap, r->c->cpus[i].cpu))
			cpu_take(r, i, type, (unsigned)strtoul(number, NULL, 10));
}

/* True: it knows all the CPUs. */
static bool text_take(const struct hwloc *h, const char *text, struct cores *c)
{
	struct reading r = { .h = h, .c = c, .bitmap = h->bitmap_alloc() };
	const char *tag = text, *end;

	while (r.bitmap && (tag = strstr(tag, "<object ")) && (end = strchr(tag, '>'))) {
		object_take(&r, tag, end);
		tag = end;
	}
	if (r.bitmap)
		h->bitmap_free(r.bitmap);
	return r.known == c->count;
}

bool cores_hwloc(const cpu_set_t *may, struct cores *ret_cores)
{
	struct hwloc h;
	void *topology;
	char *text;
	int len;
	bool known = false;

	if (!load(&h) || h.topology_init(&topology) < 0)
		return false;
	ret_cores->count = 0;
	for (unsigned i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, may))
			ret_cores->cpus[ret_cores->count++] = (struct cpu){ .cpu = i, .core = i };
	if (h.topology_load(topology) == 0 && h.topology_export_xmlbuffer(topology, &text, &len, 0) == 0) {
		known = text_take(&h, text, ret_cores);
		h.free_xmlbuffer(topology, text);
	}
	h.topology_destroy(topology);
	snprintf(ret_cores->by, sizeof(ret_cores->by), "hwloc %u.%u", h.get_api_version() >> 16, h.get_api_version() >> 8 & 255);
	return known;
}
