/* villain.c - a process of the job that writes nonsense: over everything it shares with the others, field by field, in a
 * sequence that its seed decides.
 *
 * It does not attack weft from outside but as weft: with the inner headers it knows where everything lies, and that a lie is
 * worth telling only where somebody will look. One thread keeps up ordinary traffic, so that there is something to lie about;
 * the other lies. What becomes of the villain itself does not matter.
 */
#include "stage.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mem/atlas.h"
#include "mem/ledger.h"
#include "mem/segment.h"
#include "mem/word.h"
#include "port/inway.h"
#include "port/table.h"
#include "port/ticket.h"

static uint64_t random_state;
static uint64_t targets[HONEST];        /* threads of the honest that expect messages */

static uint64_t any(void)
{
	return roll(&random_state);
}

/* Numbers worth trying. */
static uint64_t nasty(void)
{
	static const uint64_t edges[] = {
		0, 1, 2, 7, 63, 64, 95, 96, 97, 255, 256, 4095, 4096, 8192, 8193, 65535, 65536,
		0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff,
		UINT64_C(0x100000000), UINT64_C(0x7fffffffffffffff), UINT64_C(0x8000000000000000), UINT64_MAX, UINT64_MAX - 1,
	};

	switch (any() % 4) {
	case 0:
		return edges[any() % (sizeof(edges) / sizeof(edges[0]))];
	case 1:
		return any() % 64;
	case 2:
		return (uint64_t)(1 + any() % 4) << 32 | any() % 16;    /* looks like an id, or a serial with a state */
	default:
		return any();
	}
}

/* One field of @bytes at @mem, whole, or a bit of it. Whose memory it is by now does not matter: a sanitizer is not asked. */
__attribute__((no_sanitize("address", "undefined", "thread"))) static void scribble(volatile void *mem, size_t bytes)
{
	volatile unsigned char *p = mem;
	uint64_t v = nasty();
	size_t at = any() % bytes;

	switch (any() % 4) {
	case 0:
		p[at] = (unsigned char)v;
		break;
	case 1:
		p[at] ^= (unsigned char)(1u << any() % 8);
		break;
	case 2:
		at &= ~(size_t)3;
		if (at + 4 <= bytes)
			*(volatile uint32_t *)(volatile void *)(p + at) = (uint32_t)v;
		break;
	default:
		at &= ~(size_t)7;
		if (at + 8 <= bytes)
			*(volatile uint64_t *)(volatile void *)(p + at) = v;
	}
}

static struct wf_f_place some_place(void)
{
	return (struct wf_f_place){ .segment = (uint32_t)(any() % 3 ? any() % 8 : nasty()), .at = (uint32_t)nasty() };
}

static struct wf_flight some_flight(void)
{
	return (struct wf_flight){
		.maker = (uint32_t)(any() % 4 ? 1 + any() % 3 : nasty()), .segment = (uint32_t)(any() % 4 ? any() % 6 : nasty()),
		.offset = any() % 2 ? any() % 4096 * 256 : nasty(), .index = (uint32_t)(any() % 2 ? any() % 64 : nasty()),
		.class = (uint32_t)(any() % 4 ? 8 + any() % 24 : nasty()), .view = (uint32_t)(any() % 4 == 0 ? nasty() : 0),
	};
}

static struct wf_way *way_to_honest(uint16_t *ret_who)
{
	uint32_t i = (uint32_t)(any() % HONEST);
	weft_id id = any() % 4 ? targets[i] : (weft_id)(i + 1) << 32;
	struct wf_way *w;

	return id && wf_way_find(id, 0, NULL, &w, ret_who) == 0 ? w : NULL;
}

/* A message with lies in every field, in a ring that is read. */
static void forge_cell(void)
{
	uint16_t who;
	struct wf_way *w = way_to_honest(&who);
	struct wf_announcement a = { .ticket = some_place(), .serial = (uint32_t)nasty(), .len = nasty(),
				     .waits = (uint32_t)any() % 8 };
	struct wf_flight f = some_flight();
	struct wf_claimed c;

	if (!w || wf_way_claim(w, who, 0, UINT64_MAX, &c) != WF_CLAIMED)
		return;
	a.with = (uint32_t)(any() % 2 ? WF_WITH_BUFFER - any() % 3 : nasty());
	for (size_t i = 0; i < sizeof(c.cell->body); i += 8) {
		uint64_t v = nasty();

		memcpy(c.cell->body + i, &v, 8);
	}
	c.cell->kind = (uint16_t)(any() % 8 ? any() % 12 : nasty());
	c.cell->flags = (uint16_t)(any() % 2 ? 0 : nasty());
	c.cell->len = (uint32_t)nasty();
	c.cell->index = (uint32_t)nasty();
	c.cell->src = any() % 4 ? wf_self.id : nasty();
	c.cell->tag = nasty();
	if (any() % 3 == 0) {
		c.cell->kind = WF_FAR;
		memcpy(c.cell->body, &a, sizeof(a));
	} else if (any() % 2) {
		c.cell->kind = WF_FLOWN;
		memcpy(c.cell->body, &f, sizeof(f));
	}
	wf_way_publish(w, &c);
}

/* What it wrote before, changed under the reader's eyes. */
static void spoil_ring(void)
{
	uint16_t who;
	struct wf_way *w = way_to_honest(&who);

	if (!w)
		return;
	if (any() % 8 == 0)
		scribble(w->box, sizeof(*w->box));
	else
		scribble(&w->cells[any() % WF_WAY_CELLS], sizeof(struct wf_cell));
}

static void forge_frame(void)
{
	struct wf_peer *peer = wf_peer_at(1 + (uint32_t)(any() % HONEST));
	union {
		unsigned char body[WF_FRAME_BYTES];
		uint64_t word[WF_FRAME_BYTES / 8];
		struct wf_f_ring ring;
		struct wf_f_attached attached;
		struct wf_f_way way;
		struct wf_f_lost lost;
	} f;
	uint32_t what = (uint32_t)(any() % 16 ? any() % 14 : nasty());

	if (!peer || atomic_load(&peer->state) != WF_PEER_MET)
		return;
	for (size_t i = 0; i < sizeof(f.word) / 8; i++)
		f.word[i] = nasty();
	if (what == WF_F_RING && any() % 2)
		f.ring = (struct wf_f_ring){ .key = (uint32_t)any() % 16, .who = (uint32_t)any() % 4,
					     .id = any() % 2 ? targets[any() % HONEST] : nasty(),
					     .context = any() % 2 ? 0 : nasty(),
					     .box = some_place(), .cells = some_place(), .proto = any() % 2 ? 0 : nasty() };
	else if (what == WF_F_LOST && any() % 2)
		f.lost = (struct wf_f_lost){ .src = targets[any() % HONEST], .by = wf_self.id, .len = nasty() };
	else if (any() % 2) {
		f.way.key = (uint32_t)any() % 16;       /* ways of the honest to this process are numbered like that */
		f.way.who = (uint32_t)any() % 8;
	}
	wf_frame_send(peer, what, f.body, sizeof(f.body));
}

static void spoil_own_board(void)
{
	struct wf_control *c = &wf_board->control[1 + any() % HONEST];

	switch (any() % 6) {
	case 0:
		scribble(&wf_board->slot[any() % 64], 8);
		break;
	case 1:
		scribble(&wf_board->face[any() % 16], sizeof(struct wf_face));
		break;
	case 2:
		scribble(&wf_board->slots, 8);          /* and faces */
		break;
	case 3:
		scribble(&c->frame[any() % WF_FRAMES], sizeof(struct wf_frame));
		break;
	case 4:
		scribble(wf_board->version, sizeof(wf_board->version));
		break;
	default:
		scribble(&wf_board->strong, 4);
	}
}

/* Words on others' boards that everybody may write. */
static void spoil_their_board(void)
{
	struct wf_peer *peer = wf_peer_at(1 + (uint32_t)(any() % HONEST));
	struct wf_face *face;

	if (!peer || !peer->board)
		return;
	face = &peer->board->face[any() % 16];
	switch (any() % 4) {
	case 0:
		scribble(&face->parker.word, 4);
		break;
	case 1:
		scribble(&face->watched, 4);
		break;
	case 2:
		scribble(&peer->board->bell.word, 4);
		break;
	default:
		scribble(&peer->board->control[HONEST + 1].head, 4);
	}
}

static struct wf_ticket *ticket_of(const struct wf_cell *c, uint32_t process)
{
	struct wf_announcement a;
	struct wf_place p;

	if (c->kind != WF_FAR)
		return NULL;
	memcpy(&a, c->body, sizeof(a));
	p = (struct wf_place){ .process = process, .segment = a.ticket.segment, .offset = (uint64_t)a.ticket.at * 64 };
	return wf_place_map(&p, sizeof(struct wf_ticket));
}

static void spoil_pipe(const struct wf_ticket *t, uint32_t process, bool own)
{
	struct wf_f_place at = t->pipe.head;
	struct wf_place p = { .process = process, .segment = at.segment, .offset = (uint64_t)at.at * 64 };
	struct wf_pipe_head *h = wf_place_map(&p, sizeof(*h));

	if (h)
		scribble(h, own ? sizeof(*h) : 4);      /* of another's: what has been read */
}

/* Announcements of its own: tickets and pipes the others look into. */
static void spoil_own_ticket(void)
{
	uint16_t who;
	struct wf_way *w = way_to_honest(&who);
	struct wf_ticket *t = w ? ticket_of(&w->cells[any() % WF_WAY_CELLS], HONEST + 1) : NULL;

	if (t && any() % 2)
		scribble(t, sizeof(*t));
	else if (t)
		spoil_pipe(t, HONEST + 1, true);
}

/* Where the honest write to it: what a reader has to say, and their tickets. */
static void spoil_inway(void)
{
	struct weft_port *p = any() % 2 ? wf_self.port : wf_port_by_id(stage->villain);
	struct wf_reader *r = p ? atomic_load(&p->ring.reader.next) : NULL;
	struct wf_inway *w;
	struct wf_ticket *t;

	for (uint64_t skip = any() % 4; r && skip; skip--)
		r = atomic_load(&r->next);
	if (!r || !r->starved)
		return;
	w = wf_inway_of(r);
	if (stage->mode == VILLAIN_LIES || any() % 2) {
		scribble(w->box, sizeof(*w->box));
		return;
	}
	/* A ticket serves whoever comes next: by now it may be between the honest. */
	t = ticket_of(&atomic_load(&r->cells)[any() % WF_WAY_CELLS], r->process);
	if (t && any() % 2)
		scribble(t, 16);        /* its word and the names */
	else if (t)
		spoil_pipe(t, r->process, false);
}

static void spoil_returns(void)
{
	struct wf_ledger *l;

	if (wf_atlas_ledger(1 + (uint32_t)(any() % (HONEST + 1)), &l) == 0)
		scribble(l->head, 8);
}

/* Rage: anything of others that is mapped. (In its own memory it would soon have killed itself.) */
static void rage(void)
{
	uint32_t process = 1 + (uint32_t)(any() % HONEST);
	struct wf_peer *peer = wf_peer_at(process);
	struct wf_ledger *l;
	struct wf_chunk *c;

	switch (any() % 6) {
	case 0:
		if (peer && peer->board)
			scribble(&peer->board->face[any() % 16], sizeof(struct wf_face));
		break;
	case 1:
		if (peer && peer->board)
			scribble(&peer->board->control[any() % (HONEST + 2)].frame[any() % WF_FRAMES], sizeof(struct wf_frame));
		break;
	case 2:
		if (wf_atlas_ledger(process, &l) == 0)
			scribble(&l->entry[any() % 64], sizeof(struct wf_entry));
		break;
	case 3:
		if (wf_atlas_chunk(process, WF_SEGMENT_CHUNK + (uint32_t)(any() % 2), &c) == 0 && c->entries)
			scribble(&c->entries[any() % 4096], sizeof(struct wf_entry));
		break;
	case 4:
		if (peer && peer->board)
			scribble(&peer->board->slot[any() % 64], 8);
		break;
	default:
		/* The rings, tickets and pipes of everybody lie here. */
		if (wf_atlas_chunk(process, WF_SEGMENT_CHUNK + (uint32_t)(any() % 2), &c) == 0)
			for (int i = 0; i < 64; i++)
				scribble(c->data + any() % (4u << 20) / 64 * 64, 64);
	}
}

static void (*const deeds[])(void) = {
	forge_cell, spoil_ring, forge_frame, spoil_own_board, spoil_their_board, spoil_own_ticket, spoil_inway,
	spoil_returns, rage,
};

static void *lie(void *arg)
{
	const char *text = getenv("HOSTILE_WITHOUT");   /* bits of deeds to leave out: which one was it? */
	unsigned long without = text ? strtoul(text, NULL, 0) : 0;

	random_state = stage->seed * 7 + 1;
	weft_self();
	for (;;) {
		size_t i = any() % (sizeof(deeds) / sizeof(deeds[0]));

		for (uint32_t k = 0; k < HONEST; k++)
			targets[k] = atomic_load(&stage->row[k].duty);
		if ((deeds[i] == rage && stage->mode != VILLAIN_RAGES) || without >> i & 1)
			continue;
		deeds[i]();
		atomic_fetch_add(&stage->deeds[i], 1);
		if (any() % 64 == 0)
			usleep(100);
	}
	return arg;
}

/* Ordinary traffic, so that rings, tickets, pipes and buffers of every kind exist. */
static void traffic(uint64_t random, char *room)
{
	weft_id to = atomic_load(&stage->row[roll(&random) % HONEST].duty);
	struct weft_req *req = NULL;
	struct weft_status st;
	struct weft_buf *b;
	size_t len = roll(&random) % ((size_t)1 << roll(&random) % 20);

	switch (to ? roll(&random) % 6 : 5) {
	case 0:
		weft_send(NULL, to, 1, room, len, weft_in(WEFT_MS));
		break;
	case 1:
		if (weft_buf_get(len, 0, &b) == 0 && weft_buf_send(NULL, to, 1, b, weft_in(WEFT_MS)) < 0)
			weft_buf_put(b);
		break;
	case 2:
		if (weft_send_post(NULL, WEFT(op, .peer = to, .data = room, .len = len, .expires = weft_in(2 * WEFT_MS)),
				   &req) == 0)
			weft_req_wait(&req, weft_in(3 * WEFT_MS), &st);
		break;
	case 3:
		if (weft_buf_recv(NULL, WEFT_ANY, WEFT_ANY_TAG, weft_in(WEFT_MS), &b, &st) == 0)
			weft_buf_put(b);
		break;
	case 4:                         /* read where it lies */
		if (weft_buf_get(len, 0, &b) == 0) {
			weft_send(NULL, to, 1, b->data, len, weft_in(WEFT_MS));
			weft_buf_put(b);
		}
		break;
	default:
		weft_recv(NULL, WEFT_ANY, WEFT_ANY_TAG, room, 1 << 20, weft_in(WEFT_MS), &st);
	}
}

static void die(int sig)
{
	(void)sig;
	_exit(0);
}

void villain_run(void)
{
	static const int fatal[] = { SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGALRM };
	weft_time until = weft_in((stage->ms + 2000) * WEFT_MS);
	char *room = malloc(1 << 20);
	uint64_t random = stage->seed;
	pthread_t thread;

	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		signal(fatal[i], die);
	if (!getenv("HOSTILE_LOUD"))
		close(2);               /* what a sanitizer says of the villain interests nobody */
	alarm((stage->ms + 2999) / 1000);       /* it may well hang by its own lies */
	memset(room, 7, 1 << 20);
	atomic_store(&stage->villain, weft_self());
	if (pthread_create(&thread, NULL, lie, NULL))
		_exit(1);
	while (weft_now() < until && !(stage->row[0].over && stage->row[1].over))
		traffic(roll(&random), room);
	_exit(0);
}
