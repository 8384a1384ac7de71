/* board.c - making this process's board, and mapping another's. See board.h. */
#include "net/local/board.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <weft/base.h>

#include "mem/bury.h"
#include "mem/segment.h"

#define PAGE 4096u
#define PIECE 65536u            /* slots and faces are reserved so many bytes at a time, as others look at them */

struct wf_board *wf_board;
int wf_board_fd = -1;
static bool blank;                      /* private memory in its place; a job joined later makes a new one */
static uint32_t parent_faces, parent_slots;     /* as on the board, which a child does not see */

static int reserve(size_t from, size_t bytes)
{
	return wf_board_fd < 0 ? 0 : wf_segment_reserve(wf_board_fd, from, bytes);
}

/* Memory that nobody else sees: a job of one goes on with that all the same. At @at, if that is not NULL. */
static void *map_private(void *at)
{
	void *m = mmap(at, sizeof(struct wf_board), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);

	if (m == MAP_FAILED)
		return NULL;
	(void)madvise(m, sizeof(struct wf_board), MADV_NOHUGEPAGE);
	return m;
}

static void close_own(void)
{
	if (wf_board_fd >= 0)
		close(wf_board_fd);
	wf_board_fd = -1;
}

int wf_board_make(void)
{
	uint32_t faces = 0, slots = 0;
	void *m = NULL;

	if (wf_board && !blank)
		return 0;
	if (wf_board) {
		faces = atomic_load_explicit(&wf_board->faces, memory_order_relaxed);
		slots = atomic_load_explicit(&wf_board->slots, memory_order_relaxed);
	}
	wf_board_fd = wf_segment_make("weft-board", sizeof(struct wf_board));
	if (wf_board_fd >= 0)
		m = wf_segment_map(wf_board_fd, sizeof(struct wf_board), wf_board);
	else
		m = wf_board ? wf_board : map_private(NULL);
	if (!m) {
		close_own();
		return weft_fail(-ENOMEM, "no memory for the board");
	}
	wf_board = m;           /* from here on wf_board_blank undoes it */
	if (reserve(0, PAGE) < 0)
		return weft_fail(-ENOMEM, "no memory for the board");
	blank = false;
	atomic_store_explicit(&wf_board->faces, 0, memory_order_relaxed);
	atomic_store_explicit(&wf_board->slots, 0, memory_order_relaxed);
	if (wf_board_faces(faces) < 0 || wf_board_slots(slots) < 0)
		return weft_fail(-ENOMEM, "no memory for the board");
	wf_board->layout = WF_BOARD_LAYOUT;
	strncpy(wf_board->version, weft_version(), sizeof(wf_board->version) - 1);
	return 0;
}

void wf_board_blank(void)
{
	uint32_t faces, slots;

	if (!wf_board)
		return;
	/* In a child what was here is the parent's, and not mapped. Ports of this process point into it: blank memory takes its place. */
	faces = parent_faces;
	slots = parent_slots;
	close_own();
	if (!map_private(wf_board))
		return;
	blank = true;
	atomic_store_explicit(&wf_board->faces, faces, memory_order_relaxed);
	atomic_store_explicit(&wf_board->slots, slots, memory_order_relaxed);
}

void wf_board_name(uint32_t process)
{
	wf_board->process = process;
	wf_board->strong = !wf_fence_global;
	/* release: the header, to who maps it. */
	atomic_store_explicit(&wf_board->magic, WF_BOARD_MAGIC, memory_order_release);
}

/* Elements of @size below @want become usable; *@have says how many are. */
static int grow(_Atomic uint32_t *have, uint32_t want, size_t base, size_t size, uint32_t most)
{
	uint32_t now = atomic_load_explicit(have, memory_order_relaxed);
	size_t from, to;
	int r;

	if (want <= now)
		return 0;
	if (want > most)
		return -ENOMEM;
	from = now * size / PAGE * PAGE;
	to = (want * size + PAGE - 1) / PAGE * PAGE;
	if (now)                        /* the first piece is small: an idle process has few ports */
		to = (to + PIECE - 1) / PIECE * PIECE;
	to = to > most * size ? most * size : to;
	r = reserve(base + from, to - from);
	if (r < 0)
		return r;
	/* release: the pages, to who looks at the elements. */
	atomic_store_explicit(have, (uint32_t)(to / size), memory_order_release);
	parent_faces = atomic_load_explicit(&wf_board->faces, memory_order_relaxed);
	parent_slots = atomic_load_explicit(&wf_board->slots, memory_order_relaxed);
	return 0;
}

int wf_board_slots(uint32_t slots)
{
	return grow(&wf_board->slots, slots, offsetof(struct wf_board, slot), sizeof(wf_board->slot[0]), WF_SLOTS);
}

int wf_board_faces(uint32_t faces)
{
	return grow(&wf_board->faces, faces, offsetof(struct wf_board, face), sizeof(wf_board->face[0]), WF_FACES);
}

int wf_board_control(uint32_t process)
{
	return reserve(offsetof(struct wf_board, control) + process * sizeof(struct wf_control), sizeof(struct wf_control));
}

void wf_board_bury(struct wf_board *b)
{
	if (b)
		(void)wf_blank(b, sizeof(*b));
}

struct wf_board *wf_board_map(int fd, uint32_t process)
{
	struct wf_board *b;

	if (wf_segment_check(fd, sizeof(*b)) != (int64_t)sizeof(*b)) {
		weft_fail(-EBADMSG, "process %u shows no board that can be trusted not to shrink", process);
		return NULL;
	}
	b = wf_segment_map(fd, sizeof(*b), NULL);
	if (!b) {
		weft_fail(-ENOMEM, "no memory to map the board of process %u", process);
		return NULL;
	}
	if (atomic_load_explicit(&b->magic, memory_order_acquire) != WF_BOARD_MAGIC || b->layout != WF_BOARD_LAYOUT) {
		weft_fail(-EPROTO, "process %u runs another weft (%.31s) than this one (%s)", process, b->version, weft_version());
		munmap(b, sizeof(*b));
		return NULL;
	}
	return b;
}
