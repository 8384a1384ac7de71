/* choose.c - from a text to rails. See choose.h. */
#include "net/choose.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define ADAPTERS 64             /* of one driver; further ones can be named, not found */
#define RAILS 256               /* of one text */
#define BLANKS " \t\n,"

struct set {
	struct wf_choice rail[RAILS];
	int n;
};

static void remove_rails(struct set *set, const struct wf_driver *driver, const char *adapter)
{
	int kept = 0;

	for (int i = 0; i < set->n; i++)
		if (set->rail[i].driver != driver || (adapter && strcmp(set->rail[i].adapter, adapter)))
			set->rail[kept++] = set->rail[i];
	set->n = kept;
}

static int add_rail(struct set *set, const struct wf_driver *driver, const char *adapter, uint64_t rate)
{
	struct wf_choice *c;

	remove_rails(set, driver, adapter);
	c = &set->rail[set->n];
	if (set->n == RAILS)
		return weft_fail(-E2BIG, "more than %d rails", RAILS);
	c->driver = driver;
	c->rate = rate;
	snprintf(c->adapter, sizeof(c->adapter), "%s", adapter);
	set->n++;
	return 0;
}

/* Every adapter of @driver, or the hint for the one called @only. */
static int add_found(struct set *set, const struct wf_driver *driver, const char *only)
{
	struct weft_found found[ADAPTERS];
	int n = driver->slots.probe(driver->self, found, ADAPTERS), r = 0;

	for (int i = 0; i < n && i < ADAPTERS && r == 0; i++) {
		found[i].name[sizeof(found[i].name) - 1] = 0;
		if (only ? !strcmp(found[i].name, only) : !(found[i].flags & WEFT_FOUND_LOOP))
			r = add_rail(set, driver, found[i].name, found[i].rate);
	}
	return n < 0 ? n : r;
}

static int obey(struct set *set, const char *word, size_t len)
{
	const struct wf_driver *driver;
	char text[WF_RAIL_NAME], *adapter;
	bool out = *word == '-';
	int r, before = set->n;

	word += out;
	len -= out;
	if (len == 0 || len >= sizeof(text))
		return weft_fail(-EINVAL, "rails: '%.*s' is no name", len > 40 ? 40 : (int)len, word);
	memcpy(text, word, len);
	text[len] = 0;
	adapter = strchr(text, ':');
	if (adapter)
		*adapter++ = 0;
	if (adapter && (!*adapter || strlen(adapter) >= sizeof(set->rail[0].adapter)))
		return weft_fail(-EINVAL, "rails: '%.60s:%.60s' names no adapter", text, adapter);
	r = wf_driver_find(text, &driver);
	if (r < 0)
		return r;
	if (out) {
		remove_rails(set, driver, adapter);
		return 0;
	}
	r = add_found(set, driver, adapter);
	if (r == 0 && adapter && set->n == before)      /* neither found nor there before: its driver may know */
		r = add_rail(set, driver, adapter, 0);
	return r;
}

static bool includes(const char *text)
{
	for (; *(text += strspn(text, BLANKS)); text += strcspn(text, BLANKS))
		if (*text != '-')
			return true;
	return false;
}

int wf_rails_choose(const char *text, struct wf_choice *ret_choices, int max)
{
	static const struct set nothing;
	const struct wf_driver *driver;
	struct set set = nothing;
	int r = 0;

	if (!text)
		text = "";
	for (int i = 0; !includes(text) && r == 0 && (driver = wf_driver_at(i)); i++)
		r = add_found(&set, driver, NULL);
	for (; r == 0 && *(text += strspn(text, BLANKS)); text += strcspn(text, BLANKS))
		r = obey(&set, text, strcspn(text, BLANKS));
	if (r < 0)
		return r;
	for (int i = 0; i < set.n && i < max; i++)
		ret_choices[i] = set.rail[i];
	return set.n;
}
