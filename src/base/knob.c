/* knob.c - the table of settings, and how they are set. See knob.h. */
#include "base/knob.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/base.h>

#include "base/life.h"
#include "base/log.h"
#include "base/park.h"
#include "base/variables.h"

/* Two threads that run at once should not give up on each other while other threads want their cores: then every answer costs a switch. On a Xeon a line takes twice as long to the other core
 * as on a Neoverse-V1: 16 pairs on two of its cores fell to 0.7 of one pair's rate with 500, and keep 0.9 with 1500. */
#if defined(__x86_64__)
#define SPIN_NS 1500
#else
#define SPIN_NS 500
#endif

static const struct row {
	const char *name, *unit;
	int64_t min, max, otherwise;
	int fixed;
	const char *what;
} rows[WF_KNOBS] = {
	[WF_KNOB_SPIN_NS] = { "spin_ns", "ns", 0, 1000000, SPIN_NS, 0, "how long a waiter looks before anything else; 0: sleep at once" },
	[WF_KNOB_ALONE_NS] = { "alone_ns", "ns", 0, 10000000, 100000, 0, "how long it goes on looking when no other thread wants the core" },
	[WF_KNOB_YIELDS] = { "yields", "", 0, 1000, 4, 0, "how often it yields when another does" },
	[WF_KNOB_EAGER] = { "eager", "bytes", 0, 65536, 8192, 1, "up to this size a send is copied and done" },
	[WF_KNOB_BUDGET] = { "budget", "bytes", 65536, INT64_MAX / 2, 64 << 20, 1, "for messages nobody asked for yet" },
	[WF_KNOB_POOL] = { "pool", "bytes", 1 << 20, INT64_MAX / 2, 1 << 30, 1, "the buffer pool may grow to this" },
	[WF_KNOB_MEMBARRIER] = { "membarrier", "", 0, 1, 1, 1, "use membarrier(2) where the kernel grants it" },
	[WF_KNOB_LOG] = { "log", "", 0, 4, 0, 0, "0 error, 1 warn, 2 info, 3 debug, 4 trace" },
	[WF_KNOB_SECURE] = { "secure", "", 0, 2, 0, 1, "what happens to messages between hosts" },
	[WF_KNOB_RAILS] = { "rails", "", 0, 0, 0, 1, "which adapters messages between hosts use; empty: those of the listed addresses" },
	[WF_KNOB_CONGESTION] = { "congestion", "", 0, 0, 0, 1, "the kernel's congestion control between hosts; empty: the system's, unless that paces and the address is a loopback one" },
	[WF_KNOB_SILENCE] = { "silence_ms", "ms", 500, 3600000, 5000, 1, "a process of another host of which nothing was heard for so long, though something is expected of it, is gone" },
};

/* Of a row whose values are words: these, numbered from 0. */
static const char *const words[WF_KNOBS] = { [WF_KNOB_SECURE] = "full auth sum" };

/* Of a row whose value is a text: where it is kept. Such a row is fixed, so nobody reads it while it is set. */
static char rails_text[WF_KNOB_TEXT], congestion_text[WF_KNOB_TEXT];
static char *const texts[WF_KNOBS] = { [WF_KNOB_RAILS] = rails_text, [WF_KNOB_CONGESTION] = congestion_text };

_Atomic int64_t wf_knob_value[WF_KNOBS];
static _Atomic unsigned char origins[WF_KNOBS];         /* relaxed: for who wants to know, beside the value */
static _Atomic int all_fixed;

const char *wf_knob_name(enum wf_knob k)
{
	return rows[k].name;
}

static int find(const char *name, size_t n)
{
	for (int i = 0; i < WF_KNOBS; i++)
		if (strlen(rows[i].name) == n && !memcmp(rows[i].name, name, n))
			return i;
	return -1;
}

static void store(int k, int64_t v)
{
	atomic_store_explicit(&wf_knob_value[k], v, memory_order_relaxed);
	if (k == WF_KNOB_LOG)
		atomic_store_explicit(&wf_log_level, (int)v, memory_order_relaxed);
	if (k == WF_KNOB_SPIN_NS)
		wf_park_tune(v);
}

#define SHOWN 41                /* with its end */

/* As much of @text as words have room for; what a terminal would obey is not in it. */
static const char *shown(const char *text, size_t n, char ret_text[SHOWN])
{
	size_t i;

	for (i = 0; i < n && i < SHOWN - 1; i++)
		ret_text[i] = iscntrl((unsigned char)text[i]) ? '?' : text[i];
	ret_text[i] = 0;
	return ret_text;
}

/* A whole number in [min, max], with k, m or g for 2^10, 2^20, 2^30 behind it. */
static int parse(const struct row *row, const char *text, size_t n, int64_t *ret_v)
{
	char digits[32], text_shown[SHOWN], *end;
	long long v;
	int shift = 0;

	if (n == 0 || n >= sizeof(digits))
		return weft_fail(-EINVAL, "knob %s: not a number", row->name);
	memcpy(digits, text, n);
	digits[n] = 0;
	errno = 0;
	v = strtoll(digits, &end, 10);
	if (end != digits && *end && !end[1])
		shift = *end == 'k' ? 10 : *end == 'm' ? 20 : *end == 'g' ? 30 : 0;
	if (end == digits || (*end && !shift))
		return weft_fail(-EINVAL, "knob %s: '%s' is not a number", row->name, shown(text, n, text_shown));
	if (errno || v < row->min >> shift || v > row->max >> shift || v << shift < row->min)
		return weft_fail(-ERANGE, "knob %s: %s is not between %lld and %lld %s", row->name, shown(text, n, text_shown),
				 (long long)row->min, (long long)row->max, row->unit);
	*ret_v = v << shift;
	return 0;
}

/* The number of @text among the knob's words. */
static int parse_word(int k, const char *text, size_t n, int64_t *ret_v)
{
	const char *word = words[k];
	char text_shown[SHOWN];

	for (int64_t v = 0; *word; v++) {
		size_t len = strcspn(word, " ");

		if (len == n && !memcmp(word, text, n)) {
			*ret_v = v;
			return 0;
		}
		word += len + strspn(word + len, " ");
	}
	return weft_fail(-EINVAL, "knob %s: '%s' is none of: %s", rows[k].name, shown(text, n, text_shown), words[k]);
}

static int set_text(int k, const char *text, size_t n)
{
	if (n >= WF_KNOB_TEXT)
		return weft_fail(-ERANGE, "knob %s: longer than %d characters", rows[k].name, WF_KNOB_TEXT - 1);
	memcpy(texts[k], text, n);
	texts[k][n] = 0;
	return 0;
}

static int set(const char *name, size_t nn, const char *value, size_t vn, enum wf_origin origin)
{
	char name_shown[SHOWN];
	int64_t v = 0;
	int k = find(name, nn), r;

	if (k < 0)
		return weft_fail(-ENOENT, "no knob is called '%s'", shown(name, nn, name_shown));
	if (rows[k].fixed && atomic_load_explicit(&all_fixed, memory_order_relaxed))
		return weft_fail(-EROFS, "knob %s is fixed once weft_init has returned", rows[k].name);
	if (texts[k]) {
		r = set_text(k, value, vn);
	} else {
		r = words[k] ? parse_word(k, value, vn, &v) : parse(&rows[k], value, vn, &v);
		if (r == 0)
			store(k, v);
	}
	if (r == 0)
		atomic_store_explicit(&origins[k], (unsigned char)origin, memory_order_relaxed);
	return r;
}

static int set_environment(void)
{
	for (int i = 0; i < WF_KNOBS; i++) {
		char name[WF_VARIABLE];
		const char *v;
		int r;

		wf_variable_name(rows[i].name, name);
		v = getenv(name);
		if (!v || !*v)
			continue;
		if (i == WF_KNOB_LOG) {         /* WEFT_LOG also takes names, and was read before: log.c */
			if (wf_log_parse(v) >= 0)
				atomic_store_explicit(&origins[i], WF_BY_ENVIRONMENT, memory_order_relaxed);
			continue;
		}
		r = set(rows[i].name, strlen(rows[i].name), v, strlen(v), WF_BY_ENVIRONMENT);
		if (r < 0)
			return r;
	}
	return 0;
}

static void tell_stranger(const char *name, const char *meant)
{
	wf_log(WF_WARN, "nothing is set by %s%s%s%s", name, meant ? " (is " : "", meant ? meant : "", meant ? " meant?)" : "");
}

static void tell_strangers(void)
{
	static _Atomic int told;
	unsigned n;

	/* relaxed: it guards nothing but that it is said once. */
	if (atomic_exchange_explicit(&told, 1, memory_order_relaxed))
		return;
	n = wf_variable_strangers(tell_stranger);
	if (n > WF_STRANGERS)
		wf_log(WF_WARN, "nor by %u more that begin with WEFT_", n - WF_STRANGERS);
}

int wf_knob_init(const char *text)
{
	char word_shown[SHOWN];
	int r;

	for (int i = 0; i < WF_KNOBS; i++) {
		if (i != WF_KNOB_LOG)
			store(i, rows[i].otherwise);
		if (texts[i])
			*texts[i] = 0;
		atomic_store_explicit(&origins[i], WF_BY_DEFAULT, memory_order_relaxed);
	}
	store(WF_KNOB_LOG, atomic_load_explicit(&wf_log_level, memory_order_relaxed));
	r = set_environment();
	while (r == 0 && text && *(text += strspn(text, " \t,"))) {
		size_t n = strcspn(text, " \t,"), name = strcspn(text, "= \t,");

		if (name >= n)
			return weft_fail(-EINVAL, "knobs: '%s' has no value", shown(text, n, word_shown));
		r = set(text, name, text + name + 1, n - name - 1, WF_BY_CALL);
		text += n;
	}
	if (r == 0)
		tell_strangers();
	return r;
}

void wf_knob_fix(int fixed)
{
	atomic_store_explicit(&all_fixed, fixed, memory_order_relaxed);
}

int weft_knob_set(const char *name, const char *value)
{
	if (!name || !value)
		return weft_fail(-EINVAL, "knob: %s is NULL", name ? "value" : "name");
	if (atomic_load_explicit(&wf_life, memory_order_relaxed) != WF_IN)
		return wf_not_in();     /* weft_init would undo it: give it the knobs instead */
	return set(name, strlen(name), value, strlen(value), WF_BY_CALL);
}

const char *wf_knob_text(enum wf_knob k)
{
	return texts[k];
}

/* The value @v of @k, as it could be set. */
static int print(int k, int64_t v, char *ret_text, size_t n)
{
	const char *word = words[k];

	if (!word)
		return snprintf(ret_text, n, "%lld", (long long)v);
	for (; v > 0; v--)
		word += strcspn(word, " ") + 1;
	return snprintf(ret_text, n, "%.*s", (int)strcspn(word, " "), word);
}

static int print_now(int k, char *ret_text, size_t n)
{
	return texts[k] ? snprintf(ret_text, n, "%s", texts[k]) : print(k, wf_knob((enum wf_knob)k), ret_text, n);
}

void wf_knob_view(enum wf_knob k, struct wf_knob_view *ret_view)
{
	*ret_view = (struct wf_knob_view){
		.name = rows[k].name,
		.unit = rows[k].unit,
		.what = rows[k].what,
		.choices = words[k],
		.fixed = rows[k].fixed,
		.origin = (enum wf_origin)atomic_load_explicit(&origins[k], memory_order_relaxed),
	};
	print_now(k, ret_view->value, sizeof(ret_view->value));
	if (!texts[k])
		print(k, rows[k].otherwise, ret_view->otherwise, sizeof(ret_view->otherwise));
}

int weft_knob_get(const char *name, char *ret_text, size_t n)
{
	int k;

	if (!name || (!ret_text && n))
		return weft_fail(-EINVAL, "knob: %s is NULL", name ? "ret_text" : "name");
	k = find(name, strlen(name));
	if (k < 0)
		return weft_fail(-ENOENT, "no knob is called '%.40s'", name);
	return print_now(k, ret_text, n);
}
