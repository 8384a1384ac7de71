/* test_dir_random.c - a server and several clients over links with delays, deaths and takeovers, at random, against a plain judge.
 *
 *     client --> queue --> server --> queue --> client        each queue in order, moved one message at a time, whenever chance says
 *
 * Along the way: no watch tells that somebody joined twice or left twice, nothing is answered twice. Now and then everything that is on its
 * way arrives; then the server, every watch, every look-up and everything kept must say what the model says, which is evaluated with
 * fnmatch(3), one entity after the other; and who has not moved has the path it had.
 */
#include <fnmatch.h>
#include <weft/req.h>

#include "dir/client.h"
#include "dir/describe.h"
#include "dir/server.h"
#include "test.h"

#define CLIENTS 6
#define LOCALS 5                        /* the process and its threads */
#define WATCHES 4                       /* of a client */
#define ASKS 6
#define DEAD 256

static const char *const queries[] = {
	"kind=thread", "role=worker", "kind=thread role=w*", "role=worker load=", "name=a", "host=h0", "group=/pool", "group=/pool name=b",
	"kind=process", "kind=group", "name=[ab] load=?", "role=*", "/pool/a", "/pool/*", "/h*/prog/a[*]", "/h0/prog[*]/b", "path=/h1/*/* role=boss",
	"member=/pool/a[1]", "kind=host", "id=0.3.0.1", "kind=thread role=", "group=/x/*",
};
#define QUERIES (sizeof(queries) / sizeof(queries[0]))

struct letter {
	struct letter *next;
	size_t len;
	uint8_t msg[];
};

struct queue {
	struct letter *first, **last;
	size_t n;
};

struct thing {                          /* the model: what its process has published */
	bool there;
	char name[8], role[8], load[4], group[8];
	char path[64], member[64];      /* when all was quiet last; path "": has moved since */
	bool regrouped;
};

struct eye {
	struct wf_dir_watching w;       /* first */
	bool open;
	size_t query;
	weft_id seen[512];
	size_t n;
};

struct question {
	struct wf_dir_ask ask;          /* first */
	bool open;
	size_t query;
};

struct member {
	bool alive;
	weft_id process;
	unsigned host;
	struct wf_dir_client c;
	struct queue out, in;
	struct thing things[LOCALS];
	struct eye eyes[WATCHES];
	struct question asks[ASKS];
};

static struct wf_dir_server *server;
static struct member members[CLIENTS];
static uint32_t epoch, next_process;
static uint64_t seed, events, answers, takeovers, compared;
static bool gathering;
static weft_id dead[DEAD];
static unsigned dead_n;

static uint64_t chance(uint64_t n)
{
	return test_random(&seed) % n;
}

static void queue_add(struct queue *q, const void *msg, size_t len)
{
	struct letter *l = malloc(sizeof(*l) + len);

	MUST(l != NULL);
	l->next = NULL;
	l->len = len;
	memcpy(l->msg, msg, len);
	if (!q->first)
		q->last = &q->first;
	*q->last = l;
	q->last = &l->next;
	q->n++;
}

static struct letter *queue_pop(struct queue *q)
{
	struct letter *l = q->first;

	if (l) {
		q->first = l->next;
		q->n--;
	}
	return l;
}

static void queue_clear(struct queue *q)
{
	struct letter *l;

	while ((l = queue_pop(q)) != NULL)
		free(l);
}

static weft_id host_id(unsigned h)
{
	return (weft_id)(1000 + h) << 32;
}

/* The hooks */

static struct member *member_of(weft_id process)
{
	for (int i = 0; i < CLIENTS; i++)
		if (members[i].alive && members[i].process == process)
			return &members[i];
	return NULL;
}

static void emit(void *ctx, weft_id process, const void *msg, size_t len)
{
	struct member *m = member_of(process);

	(void)ctx;
	MUST(m != NULL);
	queue_add(&m->in, msg, len);
}

static int send_on(void *ctx, const void *msg, size_t len)
{
	struct member *m = ctx;

	if (m->out.n > 4 && chance(4) == 0)
		return -EAGAIN;
	queue_add(&m->out, msg, len);
	return 0;
}

static void answered(void *ctx, struct wf_dir_ask *ask)
{
	struct question *q = (struct question *)(void *)ask;

	(void)ctx;
	MUST(q->open);
	q->open = false;
	answers++;
	if (ask->n.use == WF_DIR_USE_FIND && !ask->err)
		CHECK(ask->total >= ask->want && ask->got <= ask->total);
	free(ask->ids);
	ask->ids = NULL;
}

static void event(void *ctx, struct wf_dir_watching *w, int what, weft_id id)
{
	struct eye *e = (struct eye *)(void *)w;
	size_t at = 0;

	(void)ctx;
	MUST(e->open);
	events++;
	while (at < e->n && e->seen[at] != id)
		at++;
	CHECK((what == WEFT_JOINED) == (at == e->n));   /* nobody joins twice, changes or leaves without being there */
	if (what == WEFT_JOINED && at == e->n) {
		MUST(e->n < 512);
		e->seen[e->n++] = id;
	} else if (what == WEFT_LEFT && at < e->n) {
		e->seen[at] = e->seen[--e->n];
	}
}

static void ended(void *ctx, struct wf_dir_watching *w, int err)
{
	struct eye *e = (struct eye *)(void *)w;

	(void)ctx;
	CHECK_EQ(err, -ECANCELED);
	e->open = false;
}

/* What happens */

static void check_kept_words(const char *text, const struct thing *t)
{
	char word[64];

	snprintf(word, sizeof(word), "role=%s", t->role);
	CHECK(!t->role[0] == !strstr(text, "role="));
	CHECK(!t->role[0] || strstr(text, word));
	snprintf(word, sizeof(word), "group=%s", t->group);
	CHECK(!t->group[0] == !strstr(text, "group="));
	CHECK(!t->group[0] || strstr(text, word));
}

static void set(struct member *m)
{
	static const char *const words[] = { "role=worker", "role=boss", "role=", "load=1", "load=2", "load=", "group=/pool", "group=/x/y", "group=",
					     "name=a", "name=b" };
	uint64_t local = chance(LOCALS);
	struct thing *t = &m->things[local];
	const char *word = words[chance(local ? 11 : 9)], *why, *value = strchr(word, '=') + 1;
	int r = wf_dir_client_set(&m->c, m->process + local, local ? WF_DIR_THREAD : WF_DIR_PROCESS, local ? "a" : "prog", word, &why);

	if (r == -EAGAIN)
		return;
	MUST_OK(r);
	if (!t->there) {
		*t = (struct thing){ .there = true };
		strcpy(t->name, local ? "a" : "prog");
	}
	if (*word == 'n' && strcmp(t->name, value) != 0)
		t->path[0] = 0;
	if ((*word == 'n' && strcmp(t->name, value) != 0) || (*word == 'g' && strcmp(t->group, value) != 0))
		t->regrouped = true;
	strcpy(*word == 'r' ? t->role : *word == 'l' ? t->load : *word == 'g' ? t->group : t->name, value);
}

static void drop(struct member *m)
{
	uint64_t local = 1 + chance(LOCALS - 1);

	wf_dir_client_drop(&m->c, m->process + local);
	m->things[local].there = false;
}

static void start(struct member *m)
{
	struct wf_dir_client_hooks hooks = { .send = send_on, .answered = answered, .event = event, .ended = ended, .ctx = m };
	const char *why;

	memset(m, 0, sizeof(*m));
	m->alive = true;
	m->process = (weft_id)++next_process << 32;
	m->host = (unsigned)chance(2);
	MUST_OK(wf_dir_client_init(&m->c, m->process, &hooks));
	MUST_OK(wf_dir_server_join(server, m->process, host_id(m->host)));
	MUST_OK(wf_dir_client_set(&m->c, m->process, WF_DIR_PROCESS, "prog", "", &why));
	m->things[0].there = true;
	strcpy(m->things[0].name, "prog");
}

static void kill_member(struct member *m)
{
	for (int i = 0; i < LOCALS; i++)
		dead[dead_n++ % DEAD] = m->process + (weft_id)i;
	wf_dir_server_gone(server, m->process);
	wf_dir_client_fini(&m->c);
	for (int i = 0; i < WATCHES; i++)
		CHECK(!m->eyes[i].open);
	for (int i = 0; i < ASKS; i++)
		CHECK(!m->asks[i].open);
	queue_clear(&m->out);
	queue_clear(&m->in);
	m->alive = false;
}

static void watch(struct member *m)
{
	struct eye *e = &m->eyes[chance(WATCHES)];

	if (e->open) {
		wf_dir_client_unwatch(&m->c, &e->w);
		e->open = false;
		return;
	}
	memset(e, 0, sizeof(*e));
	e->query = chance(QUERIES);
	e->w.query = strdup(queries[e->query]);
	e->open = true;
	MUST_OK(wf_dir_client_watch(&m->c, &e->w));
}

static void look_up(struct member *m)
{
	struct question *q = &m->asks[chance(ASKS)];

	if (q->open) {
		wf_dir_client_unask(&m->c, &q->ask);
		free(q->ask.ids);
		q->open = false;
		return;
	}
	memset(q, 0, sizeof(*q));
	q->query = chance(QUERIES);
	if (chance(2)) {
		q->ask.n.use = WF_DIR_USE_GET;
		q->ask.id = (weft_id)(1 + chance(next_process)) << 32 | chance(LOCALS);
	} else {
		q->ask.n.use = WF_DIR_USE_FIND;
		q->ask.query = strdup(queries[q->query]);
		q->ask.want = (uint32_t)chance(6);
		q->ask.max = (uint32_t)chance(10);
	}
	q->open = true;
	MUST_OK(wf_dir_client_ask(&m->c, &q->ask));
}

/* The old server is gone with all that was on its way to it, or its successor gets that. */
static void take_over(void)
{
	wf_dir_server_free(server);
	server = wf_dir_server_new(&(struct wf_dir_hooks){ .emit = emit }, ++epoch, true);
	MUST(server != NULL);
	gathering = true;
	takeovers++;
	for (unsigned h = 0; h < 2; h++)
		MUST_OK(wf_dir_server_host(server, host_id(h), h ? "h1" : "h0", NULL));
	for (int i = 0; i < CLIENTS; i++) {
		struct member *m = &members[i];

		if (!m->alive)
			continue;
		if (chance(2))
			wf_dir_client_moving(&m->c);
		if (chance(2))
			queue_clear(&m->out);
		MUST_OK(wf_dir_server_join(server, m->process, host_id(m->host)));
	}
}

static void move_out(struct member *m)
{
	struct letter *l = queue_pop(&m->out);

	if (!l)
		return;
	MUST_OK(wf_dir_server_take(server, m->process, l->msg, l->len));
	free(l);
}

static void move_in(struct member *m)
{
	struct letter *l = queue_pop(&m->in);

	if (!l)
		return;
	MUST_OK(wf_dir_client_take(&m->c, l->msg, l->len));
	free(l);
}

static void gather(void)
{
	if (!gathering || wf_dir_server_missing(server))
		return;
	wf_dir_server_gathered(server);
	gathering = false;
}

static bool anything(void)
{
	for (int i = 0; i < CLIENTS; i++)
		if (members[i].alive && (members[i].out.n || members[i].in.n || members[i].c.outbox_bytes))
			return true;
	return gathering;
}

/* The judge */

static bool step_fits(const char *part, const char *name, unsigned index)
{
	char pattern[64];
	size_t n = strlen(part);
	unsigned wanted;

	strcpy(pattern, part);
	if (n > 3 && strcmp(part + n - 3, "[*]") == 0) {
		pattern[n - 3] = 0;
	} else if (strchr(part, '[') && sscanf(strchr(part, '['), "[%u]", &wanted) == 1) {
		*strchr(pattern, '[') = 0;
		if (wanted != index)
			return false;
	} else if (!strpbrk(part, "*?[") && index) {
		return false;
	}
	return fnmatch(pattern, name, 0) == 0;
}

/* "/a/b[3]" against a pattern of as many parts. */
static bool path_fits(const char *pattern, const char *path)
{
	char p[128], t[128], *ps, *ts, *a, *b;

	if (!*path)
		return false;
	strcpy(p, pattern);
	strcpy(t, path);
	a = strtok_r(p, "/", &ps);
	b = strtok_r(t, "/", &ts);
	for (; a && b; a = strtok_r(NULL, "/", &ps), b = strtok_r(NULL, "/", &ts)) {
		unsigned index = 0;
		char *bracket = strchr(b, '[');

		if (bracket) {
			sscanf(bracket, "[%u]", &index);
			*bracket = 0;
		}
		if (!step_fits(a, b, index))
			return false;
	}
	return !a && !b;
}

/* All that the judge needs of one, asked of the server only where the server decides: indexes. */
struct facts {
	weft_id id;
	char kind[8], name[16], host[8], role[8], load[4], group[16], path[64], member[64];
};

static bool fits(const char *query, const struct facts *f)
{
	char words[128], *save, id[WEFT_ID_TEXT];

	if (*query == '/')
		return path_fits(query, f->path) || path_fits(query, f->member);
	strcpy(words, query);
	for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		char *value = strchr(w, '=');
		const char *has = NULL;

		*value++ = 0;
		if (strcmp(w, "path") == 0) {
			if (!path_fits(value, f->path) && !path_fits(value, f->member))
				return false;
			continue;
		}
		if (strcmp(w, "member") == 0) {
			if (!path_fits(value, f->member))
				return false;
			continue;
		}
		wf_dir_id_print(f->id, id);
		has = strcmp(w, "kind") == 0 ? f->kind : strcmp(w, "name") == 0 ? f->name : strcmp(w, "host") == 0 ? f->host :
		      strcmp(w, "role") == 0 ? f->role : strcmp(w, "load") == 0 ? f->load : strcmp(w, "group") == 0 ? f->group : id;
		if (*value ? !*has || fnmatch(value, has, 0) != 0 : *has)
			return false;
	}
	return true;
}

static void ask_server(weft_id id, const char *key, char *value, size_t room)
{
	if (wf_dir_server_get(server, id, key, value, room) < 0)
		value[0] = 0;
}

static size_t all_facts(struct facts *f)
{
	size_t n = 0, things;

	for (unsigned h = 0; h < 2; h++) {
		f[n] = (struct facts){ .id = host_id(h), .kind = "host" };
		sprintf(f[n].name, "h%u", h);
		strcpy(f[n].host, f[n].name);
		sprintf(f[n++].path, "/h%u", h);
	}
	for (int i = 0; i < CLIENTS; i++)
		for (int k = 0; k < LOCALS; k++) {
			const struct thing *t = &members[i].things[k];

			if (!members[i].alive || !t->there)
				continue;
			f[n] = (struct facts){ .id = members[i].process + (weft_id)k };
			strcpy(f[n].kind, k ? "thread" : "process");
			strcpy(f[n].name, t->name);
			sprintf(f[n].host, "h%u", members[i].host);
			strcpy(f[n].role, t->role);
			strcpy(f[n].load, t->load);
			strcpy(f[n].group, t->group);
			ask_server(f[n].id, "path", f[n].path, sizeof(f[n].path));
			ask_server(f[n].id, "member", f[n].member, sizeof(f[n].member));
			n++;
		}
	things = n;
	for (size_t i = 0; i < things; i++) {
		bool new = f[i].group[0] != 0;

		for (size_t k = things; k < n; k++)
			new &= strcmp(f[k].path, f[i].group) != 0;
		if (!new)
			continue;
		f[n] = (struct facts){ .kind = "group" };
		strcpy(f[n].path, f[i].group);
		strcpy(f[n].name, strrchr(f[i].group, '/') + 1);
		n++;
	}
	return n;
}

struct ids {
	weft_id id[512];
	size_t n;
};

static void add_id(void *arg, weft_id id)
{
	struct ids *x = arg;

	x->id[x->n++] = id;
}

/* The groups' ids are the server's own affair. */
static void learn_groups(struct facts *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!f[i].id) {
			struct ids one = { .n = 0 };

			wf_dir_server_each(server, f[i].path, add_id, &one, NULL);
			for (size_t k = 0; k < one.n; k++)
				if (!(one.id[k] >> 32))
					f[i].id = one.id[k];
			CHECK(f[i].id);
		}
}

static bool has(const struct ids *x, weft_id id)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->id[i] == id)
			return true;
	return false;
}

static bool same_set(const struct ids *a, const weft_id *b, size_t n)
{
	if (a->n != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!has(a, b[i]))
			return false;
	return true;
}

static void compare_server(const struct facts *f, size_t n, struct ids *truth)
{
	for (size_t q = 0; q < QUERIES; q++) {
		struct ids got = { .n = 0 };

		truth[q].n = 0;
		for (size_t i = 0; i < n; i++)
			if (fits(queries[q], &f[i]))
				truth[q].id[truth[q].n++] = f[i].id;
		CHECK_EQ(wf_dir_server_each(server, queries[q], add_id, &got, NULL), truth[q].n);
		if (!same_set(&truth[q], got.id, got.n))
			printf("# %s: %zu and %zu\n", queries[q], got.n, truth[q].n);
		CHECK(same_set(&truth[q], got.id, got.n));
		compared++;
	}
	/* A path is one's own. */
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(f[i].path, f[k].path) != 0 && (!f[i].member[0] || strcmp(f[i].member, f[k].member) != 0));
}

static void compare_client(struct member *m, const struct ids *truth)
{
	struct wf_dir_msg kept;
	const weft_id *ids;
	uint32_t total;
	char text[1024];

	for (int i = 0; i < WATCHES; i++)
		if (m->eyes[i].open) {
			if (!same_set(&truth[m->eyes[i].query], m->eyes[i].seen, m->eyes[i].n))
				printf("# watch %s: %zu and %zu\n", queries[m->eyes[i].query], m->eyes[i].n, truth[m->eyes[i].query].n);
			CHECK(same_set(&truth[m->eyes[i].query], m->eyes[i].seen, m->eyes[i].n));
		}
	for (int i = 0; i < ASKS; i++)
		if (m->asks[i].open)            /* it waits with reason */
			CHECK(m->asks[i].ask.n.use == WF_DIR_USE_FIND && truth[m->asks[i].query].n < m->asks[i].ask.want);
	for (size_t q = 0; q < QUERIES; q++)
		if (wf_dir_client_kept_find(&m->c, queries[q], &ids, &total))
			CHECK(same_set(&truth[q], ids, total));
	for (int i = 0; i < CLIENTS; i++)
		for (unsigned k = 0; k < LOCALS && members[i].alive; k++)
			if (wf_dir_client_kept(&m->c, members[i].process + k, &kept)) {
				MUST(members[i].things[k].there);
				wf_dir_describe(&kept, NULL, text, sizeof(text));
				check_kept_words(text, &members[i].things[k]);
			}
	for (unsigned i = 0; i < DEAD && i < dead_n; i++)
		CHECK(!wf_dir_client_kept(&m->c, dead[i], &kept));
}

/* Who has not moved since all was quiet last has the place it had then. */
static void compare_paths(void)
{
	char now[64], member[64];

	for (int i = 0; i < CLIENTS; i++)
		for (unsigned k = 0; k < LOCALS && members[i].alive; k++) {
			struct thing *t = &members[i].things[k];

			if (!t->there) {
				t->path[0] = 0;
				continue;
			}
			ask_server(members[i].process + k, "path", now, sizeof(now));
			ask_server(members[i].process + k, "member", member, sizeof(member));
			if (t->path[0] && (strcmp(now, t->path) != 0 || (!t->regrouped && strcmp(member, t->member) != 0))) {
				printf("# %s %s was %s %s\n", now, member, t->path, t->member);
				CHECK(false);
			}
			strcpy(t->path, now);
			strcpy(t->member, member);
			t->regrouped = false;
		}
}

static void quiet(void)
{
	static struct ids truth[QUERIES];
	struct facts f[64];
	size_t n;

	for (int rounds = 0; anything(); rounds++) {
		MUST(rounds < 100000);
		for (int i = 0; i < CLIENTS; i++)
			if (members[i].alive) {
				move_out(&members[i]);
				move_in(&members[i]);
				wf_dir_client_flush(&members[i].c);
			}
		gather();
	}
	n = all_facts(f);
	learn_groups(f, n);
	compare_server(f, n, truth);
	for (int i = 0; i < CLIENTS; i++)
		if (members[i].alive)
			compare_client(&members[i], truth);
	compare_paths();
	CHECK_EQ(wf_dir_server_figures(server).entities, n);
}

/* Whatever is on its way: what a process has said itself it is answered with, if it is answered at once. */
static void check_own(struct member *m)
{
	struct wf_dir_msg kept;
	const weft_id *ids;
	uint32_t total;
	char text[1024];

	for (unsigned k = 0; k < LOCALS; k++)
		if (wf_dir_client_kept(&m->c, m->process + k, &kept)) {
			MUST(m->things[k].there);
			wf_dir_describe(&kept, NULL, text, sizeof(text));
			check_kept_words(text, &m->things[k]);
		}
	for (size_t q = 0; q < QUERIES; q++) {
		if (strchr(queries[q], '/') || !wf_dir_client_kept_find(&m->c, queries[q], &ids, &total))
			continue;
		for (unsigned k = 0; k < LOCALS; k++) {
			const struct thing *t = &m->things[k];
			struct facts f = { .id = m->process + k };
			struct ids all = { .n = total };

			strcpy(f.kind, k ? "thread" : "process");
			strcpy(f.name, t->name);
			sprintf(f.host, "h%u", m->host);
			strcpy(f.role, t->role);
			strcpy(f.load, t->load);
			memcpy(all.id, ids, total * sizeof(*ids));
			CHECK_EQ(has(&all, f.id), t->there && fits(queries[q], &f));
		}
	}
}

static void step(void)
{
	struct member *m = &members[chance(CLIENTS)];
	uint64_t what = chance(1000);

	if (!m->alive) {
		if (chance(10) == 0)
			start(m);
		return;
	}
	if (what < 250)
		move_out(m);
	else if (what < 500)
		move_in(m);
	else if (what < 700)
		set(m);
	else if (what < 730)
		drop(m);
	else if (what < 780)
		watch(m);
	else if (what < 900)
		look_up(m);
	else if (what < 905)
		kill_member(m);
	else if (what < 908)
		take_over();
	else
		gather();
	if (m->alive && chance(4) == 0)
		wf_dir_client_flush(&m->c);
	if (m->alive)
		check_own(m);
}

static void run(uint64_t steps)
{
	memset(members, 0, sizeof(members));
	next_process = dead_n = 0;
	epoch = 1;
	gathering = false;
	server = wf_dir_server_new(&(struct wf_dir_hooks){ .emit = emit }, epoch, false);
	MUST(server != NULL);
	for (unsigned h = 0; h < 2; h++)
		MUST_OK(wf_dir_server_host(server, host_id(h), h ? "h1" : "h0", NULL));
	for (uint64_t i = 0; i < steps; i++) {
		step();
		if (chance(300) == 0)
			quiet();
	}
	quiet();
	for (int i = 0; i < CLIENTS; i++)
		if (members[i].alive)
			kill_member(&members[i]);
	struct wf_dir_figures left = wf_dir_server_figures(server);
	CHECK(left.entities == 2 && left.clients == 0 && left.watches == 0 && left.kept == 0);
	wf_dir_server_free(server);
}

TEST(whatever_happens_everyone_is_told_the_truth)
{
	uint64_t runs = test_scaled(400);

	for (uint64_t i = 0; i < runs; i++) {
		seed = test_seed + i;
		run(4000);
		if (test_failures) {
			printf("# seed %llu\n", (unsigned long long)(test_seed + i));
			break;
		}
	}
	printf("# %llu events, %llu answers, %llu takeovers, %llu comparisons\n", (unsigned long long)events, (unsigned long long)answers,
	       (unsigned long long)takeovers, (unsigned long long)compared);
	CHECK(events && answers && compared);
}

TEST_MAIN
