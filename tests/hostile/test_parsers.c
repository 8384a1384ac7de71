/* test_parsers.c - everything that reads what another process wrote, fed with nonsense, in one process.
 *
 * The test is the other process: it gives weft a board and segments of "process 2" that it fills itself, and hands frames to
 * the dispatcher as if a control ring had brought them. So a hundred thousand lies a second go through the real readers, under
 * a sanitizer where the build has one. What must hold: nothing is read or written that is not there, every call comes back,
 * and between the lies this process's own messages and buffers are as they were.
 */
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <weft/weft.h>

#include "base/clock.h"
#include "mem/atlas.h"
#include "mem/buf.h"
#include "mem/ledger.h"
#include "mem/segment.h"
#include "mem/share.h"
#include "mem/word.h"
#include "port/host.h"
#include "port/inway.h"
#include "port/ticket.h"

#define ME 1u
#define LIAR 2u
#define CHUNK WF_SEGMENT_CHUNK
#define BOX_AT 0u                       /* in the liar's chunk */
#define CELLS_AT 4096u
#define TICKETS_AT (256u << 10)

static uint64_t random_state;
static int board_fd, ledger_fd, chunk_fd;
static char *liar_chunk;                /* as the liar sees it */
static struct wf_board *liar_board;
static const struct wf_peer_hooks *hooks;
static struct wf_peer *liar;
static uint32_t pos;                    /* of the ring to our port */

static uint64_t any(void)
{
	return test_random(&random_state);
}

static uint64_t nasty(void)
{
	static const uint64_t edges[] = {
		0, 1, 2, 63, 64, 95, 96, 97, 127, 128, 255, 256, 4096, 8191, 8192, 8193, 65535, 65536, 1 << 20, 1 << 25,
		0x7fffffff, 0x80000000, 0xffffffff, UINT64_C(0x100000000), UINT64_C(0x200000000),
		UINT64_C(0x7fffffffffffffff), UINT64_C(0x8000000000000000), UINT64_MAX,
	};

	switch (any() % 4) {
	case 0:
		return edges[any() % (sizeof(edges) / sizeof(edges[0]))];
	case 1:
		return any() % 300;
	case 2:
		return (1 + any() % 3) << 32 | any() % 4;
	default:
		return any();
	}
}

static int tell(uint32_t segment, int fd)
{
	(void)segment;
	(void)fd;
	return 0;
}

static int untell(uint32_t segment)
{
	(void)segment;
	return 0;
}

static int give(uint32_t process, uint32_t segment)
{
	if (process != LIAR)
		return -ESRCH;
	if (segment == WF_SEGMENT_LEDGER)
		return fcntl(ledger_fd, F_DUPFD_CLOEXEC, 0);
	return segment == CHUNK ? fcntl(chunk_fd, F_DUPFD_CLOEXEC, 0) : -ESRCH;
}

static int meet(uint32_t process, int *ret_board_fd, int *ret_event_fd)
{
	if (process != LIAR)
		return -ESRCH;
	*ret_board_fd = fcntl(board_fd, F_DUPFD_CLOEXEC, 0);
	*ret_event_fd = -1;
	return 0;
}

static void liar_make(void)
{
	board_fd = wf_segment_make("weft-board", sizeof(struct wf_board));
	ledger_fd = wf_segment_make("weft-ledger", WF_LEDGER_BYTES);
	chunk_fd = wf_segment_make("weft-buffers", WF_CHUNK_SEGMENT);
	MUST(board_fd >= 0 && ledger_fd >= 0 && chunk_fd >= 0);
	liar_board = wf_segment_map(board_fd, sizeof(*liar_board), NULL);
	liar_chunk = wf_segment_map(chunk_fd, WF_CHUNK_SEGMENT, NULL);
	MUST(liar_board && liar_chunk);
	liar_board->layout = WF_BOARD_LAYOUT;
	liar_board->process = LIAR;
	atomic_store(&liar_board->faces, 64);
	atomic_store(&liar_board->slots, 64);
	atomic_store(&liar_board->magic, WF_BOARD_MAGIC);
}

static void setup(void)
{
	static const struct wf_segment_hooks segments = { .tell = tell, .untell = untell, .give = give };
	static bool done;

	random_state = test_seed;
	if (done)
		return;
	done = true;
	wf_segments_share(ME, &segments);
	liar_make();
	MUST_OK(weft_init(NULL));
	hooks = wf_host_hooks(meet, NULL);
	MUST_OK(wf_peers_init(ME, 0, 2, hooks));
	MUST_OK(wf_peer_get(LIAR, &liar));
	weft_self();
}

/* What weft answered is read, and forgotten: its frames are not to pile up. */
static void liar_listens(void)
{
	atomic_store(&wf_board->control[LIAR].head, liar->out_pos);
	wf_peers_poll();
}

static void say(uint32_t what, const void *body, size_t len)
{
	unsigned char room[WF_FRAME_BYTES] = { 0 };

	memcpy(room, body, len);
	hooks->frame(liar, what, room);
}

/* Still well: a message and a buffer to oneself. */
static void still_well(void)
{
	struct weft_status st;
	struct weft_buf *b;
	uint64_t out = any(), in = 0;

	MUST_OK(weft_send(NULL, weft_self(), 77, &out, sizeof(out), weft_in(20 * WEFT_S)));
	MUST_OK(weft_recv(NULL, weft_self(), 77, &in, sizeof(in), weft_in(20 * WEFT_S), &st));
	CHECK(in == out);
	MUST_OK(weft_buf_get(5000, 0, &b));
	memset(b->data, 5, 5000);
	MUST_OK(weft_buf_send(NULL, weft_self(), 78, b, weft_in(20 * WEFT_S)));
	MUST_OK(weft_buf_recv(NULL, weft_self(), 78, weft_in(20 * WEFT_S), &b, &st));
	CHECK_EQ(((char *)b->data)[4999], 5);
	MUST_OK(weft_buf_put(b));
}

static void told(const char *what, uint64_t n, weft_time since)
{
	double s = (double)(weft_now() - since) / 1e9;

	printf("# %llu %s in %.1f s, %.0f a second\n", (unsigned long long)n, what, s, (double)n / s);
}

static void attach(uint32_t key)
{
	struct wf_f_ring f = { .key = key, .who = 1, .id = weft_self(), .box = { CHUNK, BOX_AT / 64 },
			       .cells = { CHUNK, CELLS_AT / 64 } };

	memset(liar_chunk + BOX_AT, 0, sizeof(struct wf_box));
	memset(liar_chunk + CELLS_AT, 0, WF_WAY_CELLS * sizeof(struct wf_cell));
	say(WF_F_RING, &f, sizeof(f));
	pos = 0;
}

static struct wf_flight some_flight(void)
{
	struct wf_flight f = {
		.maker = (uint32_t)(any() % 4 ? 1 + any() % 2 : nasty()),
		.segment = (uint32_t)(any() % 4 ? 1 + any() % 3 : nasty()),
		.offset = any() % 2 ? any() % 8192 * 256 : nasty(), .index = (uint32_t)(any() % 2 ? any() % 64 : nasty()),
		.class = (uint32_t)(any() % 4 ? 6 + any() % 26 : nasty()), .view = any() % 4 == 0 ? (uint32_t)nasty() : 0,
		.number = (uint32_t)(any() % 2 ? any() % 4 : nasty()),
	};

	/* Mostly what belongs to its place, as a taker looks at that (share.c). */
	if (any() % 4)
		f.index = (uint32_t)((f.offset >> 20) * 4096 + (f.class <= 20 ? f.offset % (1u << 20) >> f.class : 0));
	return f;
}

static void ticket_fill(struct wf_ticket *t, uint32_t serial)
{
	static const uint32_t states[] = { 0, WF_T_OPEN, WF_T_TAKEN, WF_T_DONE, WF_T_PIPED, WF_T_CANCELLED, WF_T_REFUSED, 255 };
	uint32_t state = any() % 4 ? WF_T_OPEN : states[any() % 8];

	atomic_store(&t->word, wf_ticket_word(any() % 8 ? serial : (uint32_t)nasty(), state, 0));
	atomic_store(&t->writer, (uint32_t)nasty());
	/* Not a pipe: bytes that never come are waited for until their sender dies. */
	if (any() % 2) {
		atomic_store(&t->ready, WF_READY_FLIGHT);
		t->flight = some_flight();
	} else {
		atomic_store(&t->ready, WF_READY_MEMORY);
		t->memory = (struct wf_memory_place){ .segment = any() % 4 ? CHUNK : (uint32_t)nasty(), .offset = any() % 2 ? any() % WF_CHUNK_BYTES : nasty() };
	}
}

/* An announcement whose ticket is there, so that it is followed. */
static void announcement_fill(struct wf_cell *c)
{
	uint32_t k = (uint32_t)(any() % 64), serial = (uint32_t)any() % 4;
	struct wf_announcement a = { .ticket = { CHUNK, (uint32_t)(TICKETS_AT / 64 + 2 * k) }, .serial = serial };

	a.len = any() % 2 ? any() % 4096 : nasty();
	a.with = (uint32_t)(any() % 3 ? any() % 2 ? a.len : WF_WITH_PIPE - any() % 2 * 2 : nasty());
	if (a.with == WF_WITH_PIPE || a.with == 0)
		a.with = WF_WITH_BUFFER;        /* a pipe nobody fills is waited for, which is right, and not asked here */
	ticket_fill((struct wf_ticket *)(void *)(liar_chunk + TICKETS_AT) + k, serial);
	memcpy(c->body, &a, sizeof(a));
}

static void cell_write(void)
{
	struct wf_cell *c = (struct wf_cell *)(void *)(liar_chunk + CELLS_AT) + pos % WF_WAY_CELLS;
	struct wf_flight f = some_flight();

	for (size_t i = 0; i < sizeof(c->body); i += 8) {
		uint64_t v = nasty();

		memcpy(c->body + i, &v, 8);
	}
	c->kind = (uint16_t)(any() % 8 ? any() % 12 : nasty());
	c->flags = (uint16_t)nasty();
	c->len = (uint32_t)nasty();
	c->index = (uint32_t)nasty();
	c->src = any() % 8 ? (uint64_t)LIAR << 32 | any() % 4 : nasty();
	c->tag = any() % 2 ? 1 : nasty();
	if (c->kind == WF_FAR)
		announcement_fill(c);
	else if (c->kind == WF_FLOWN)
		memcpy(c->body, &f, sizeof(f));
	atomic_store_explicit(&c->seq, ++pos, memory_order_release);
}

static void entry_lie(void)
{
	struct wf_entry *e = (struct wf_entry *)(void *)(liar_chunk + WF_CHUNK_BYTES) + any() % 4096;

	atomic_store(&e->holder, any() % 4 ? wf_flying(LIAR, ME) : nasty());
	atomic_store(&e->next, nasty());
}

static bool read_some(char *room)
{
	struct weft_status st = { .err = 0 };
	struct weft_buf *b = NULL;

	if (any() % 2) {
		return weft_recv(NULL, WEFT_ANY, WEFT_ANY_TAG, room, any() % 2 ? 16384 : any() % 128, WEFT_NOW, &st) == 0;
	} else if (weft_buf_recv(NULL, WEFT_ANY, WEFT_ANY_TAG, WEFT_NOW, &b, &st) == 0 && b) {
		volatile char *p = b->data;

		for (size_t i = 0; i < b->len; i += 256)
			(void)p[i];
		weft_buf_put(b);
		return true;
	}
	return false;
}

TEST(cells_of_a_liar_break_nothing)
{
	uint64_t n = test_scaled(300000), received = 0;
	char *room = malloc(16384);
	weft_time since;
	uint32_t key = 1;

	setup();
	since = weft_now();
	attach(key);
	for (uint64_t i = 0; i < n; i++) {
		if (i % 100000 == 99999)
			attach(++key);          /* a ring more at the same port, in the same memory: two readers of one lie */
		entry_lie();
		cell_write();
		received += read_some(room);
		if (i % 64 == 0) {
			liar_listens();
			wf_host_attend();
		}
		if (i % 1024 == 0) {
			while (weft_recv(NULL, WEFT_ANY, WEFT_ANY_TAG, room, 16384, WEFT_NOW, NULL) == 0)
				continue;
			still_well();
		}
	}
	told("cells", n, since);
	printf("# %llu of them made a message\n", (unsigned long long)received);
	CHECK(received > 0);
	free(room);
}

TEST(frames_of_a_liar_break_nothing)
{
	uint64_t n = test_scaled(300000);
	weft_time since;

	setup();
	since = weft_now();
	for (uint64_t i = 0; i < n; i++) {
		uint64_t word[WF_FRAME_BYTES / 8];
		struct wf_f_ring ring = { .key = (uint32_t)(any() % 16), .who = (uint32_t)(any() % 4),
					  .id = any() % 2 ? weft_self() : nasty(),
					  .context = any() % 4 ? 0 : nasty(), .box = { CHUNK, (uint32_t)(any() % 4096 * 2) },
					  .cells = { CHUNK, (uint32_t)(any() % 4096 * 2) }, .proto = any() % 4 ? 0 : nasty() };
		uint32_t what = (uint32_t)(any() % 16 ? 1 + any() % 12 : nasty());

		for (size_t k = 0; k < sizeof(word) / 8; k++)
			word[k] = nasty();
		if (what == WF_F_RING && any() % 16)
			continue;               /* each one stays; a few thousand will do */
		if (what == WF_F_RING && any() % 2)
			memcpy(word, &ring, sizeof(ring));
		else if (any() % 2)
			word[0] = (any() % 4) << 32 | any() % 16;       /* a way that there may be */
		hooks->frame(liar, what, (unsigned char *)word);
		if (i % 16 == 0)
			liar_listens();
		if (i % 4096 == 0)
			still_well();
	}
	told("frames", n, since);
}

/* Else the writer would write into what has become somebody's buffer. */
TEST(a_ring_said_to_be_gone_keeps_its_memory_while_a_cell_of_it_is_written)
{
	struct wf_f_attached attached = { .face = 3, .gate = UINT64_C(7) << 32 | WF_GATE_OPEN };
	weft_id id = (weft_id)LIAR << 32 | 1;
	struct wf_claimed c;
	struct wf_f_way f;
	struct wf_way *w;
	uint16_t who;

	setup();
	for (int round = 0; round < 3; round++) {
		atomic_store(&liar_board->slot[1], UINT64_C(4) << 12);
		atomic_store(&liar_board->face[3].gate, attached.gate);
		MUST_OK(wf_way_find(id, 0, NULL, &w, &who));
		f = (struct wf_f_way){ .key = attached.key = w->key, .who = attached.who = who };
		say(WF_F_ATTACHED, &attached, sizeof(attached));
		MUST_EQ(wf_way_claim(w, who, 0, 0, &c), WF_CLAIMED);
		f.pos = 0;
		say(WF_F_CLOSED, &f, sizeof(f));
		for (int i = 0; i < 3; i++) {
			say(WF_F_GONE, &f, sizeof(f));
			wf_host_attend();
			CHECK(w->box_buf && w->cells_buf);
		}
		memset(c.cell->body, 1, sizeof(c.cell->body));
		c.cell->kind = WF_VOID;
		wf_way_publish(w, &c);
		wf_host_attend();
		CHECK(!w->box_buf && !w->cells_buf);
		liar_listens();
		still_well();
	}
}

TEST(flights_of_a_liar_land_nowhere)
{
	uint64_t n = test_scaled(1000000), landed = 0;
	weft_time since;

	setup();
	since = weft_now();
	for (uint64_t i = 0; i < n; i++) {
		struct wf_flight f = some_flight();
		struct weft_buf *b;

		entry_lie();
		if (any() % 2) {
			wf_buf_refuse(LIAR, &f);
		} else if (wf_buf_land(LIAR, &f, nasty(), &b) == 0) {
			landed++;
			if (b->len)             /* the whole of it is there */
				*(volatile char *)b->data, ((volatile char *)b->data)[b->len - 1];
			MUST_OK(weft_buf_put(b));
		}
		if (i % 4096 == 0)
			still_well();
	}
	told("flights", n, since);
	printf("# %llu of them landed\n", (unsigned long long)landed);
	CHECK(landed > 0);
}

TEST_MAIN
