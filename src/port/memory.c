/* memory.c - walks two memories side by side and copies the pieces they have in common. See memory.h. */
#include "port/memory.h"

#include <errno.h>
#include <string.h>

#define BOUNCE 4096             /* between two layouts that only know how to move */

int wf_mem_of(const struct weft_op *op, struct wf_mem *ret_mem)
{
	int ways = (op->data || op->len) + (op->iov || op->niov) + (op->layout != NULL);
	size_t len = 0;

	if (ways > 1)
		return weft_fail(-EINVAL, "op: more than one of data, iov and layout");
	if (op->layout) {
		if (!op->layout->pieces && !op->layout->move && op->layout->len)
			return weft_fail(-EINVAL, "op.layout: neither pieces nor move");
		*ret_mem = (struct wf_mem){ .len = op->layout->len, .layout = op->layout, .kind = WF_MEM_LAYOUT };
		return 0;
	}
	if (op->iov || op->niov) {
		if (!op->iov)
			return weft_fail(-EINVAL, "op.iov is NULL with niov %u", op->niov);
		for (uint32_t i = 0; i < op->niov; i++) {
			if (!op->iov[i].iov_base && op->iov[i].iov_len)
				return weft_fail(-EINVAL, "op.iov[%u]: NULL with a length", i);
			if (__builtin_add_overflow(len, op->iov[i].iov_len, &len))
				return weft_fail(-EINVAL, "op.iov: lengths add up to more than memory");
		}
		*ret_mem = (struct wf_mem){ .len = len, .list = op->iov, .count = op->niov, .kind = WF_MEM_LIST };
		return 0;
	}
	if (!op->data && op->len)
		return weft_fail(-EINVAL, "op.data is NULL with len %zu", op->len);
	*ret_mem = wf_mem_plain(op->data, op->len);
	return 0;
}

/* The next piece that is not empty; false: there is none. */
static bool walk_on(struct wf_walk *w)
{
	const struct wf_mem *m = w->mem;

	for (;;) {
		const struct iovec *v;

		if (m->kind == WF_MEM_PLAIN) {
			w->piece = (char *)m->plain + w->at;
			w->len = m->len - w->at;
			return w->len > 0;
		}
		if (m->kind == WF_MEM_LIST) {
			if (w->next == m->count)
				return false;
			v = &m->list[w->next++];
		} else {
			if (w->at >= m->len)
				return false;
			if (m->layout->move) {
				w->piece = NULL;
				w->len = m->len - w->at;
				return true;
			}
			if (w->next == w->have) {
				int n = m->layout->pieces(m->layout, w->at, w->ahead, WF_WALK_AHEAD);

				if (n <= 0 || n > WF_WALK_AHEAD)
					return false;
				w->have = (uint32_t)n;
				w->next = 0;
			}
			v = &w->ahead[w->next++];
			if (v->iov_len == 0)
				return false;   /* promised not to; an endless loop otherwise */
		}
		if (v->iov_len) {
			w->piece = v->iov_base;
			w->len = v->iov_len;
			return true;
		}
	}
}

static void move(struct wf_walk *w, void *bytes, size_t n, int in)
{
	w->mem->layout->move(w->mem->layout, w->at, bytes, n, in);
}

static size_t move_piece(struct wf_walk *to, struct wf_walk *from, size_t n)
{
	char bounce[BOUNCE];

	if (to->piece && from->piece) {
		memcpy(to->piece, from->piece, n);
	} else if (from->piece) {
		move(to, from->piece, n, 1);
	} else if (to->piece) {
		move(from, to->piece, n, 0);
	} else {
		n = n < sizeof(bounce) ? n : sizeof(bounce);
		move(from, bounce, n, 0);
		move(to, bounce, n, 1);
	}
	return n;
}

static void walk_by(struct wf_walk *w, size_t n)
{
	w->at += n;
	w->len -= n;
	if (w->piece)
		w->piece += n;
}

void wf_walk_begin(struct wf_walk *w, const struct wf_mem *mem)
{
	w->mem = mem;
	w->at = w->len = 0;
	w->next = w->have = 0;
}

/* The next @n bytes between @w and the flat @bytes: @in, or out. */
static bool walk_flat(struct wf_walk *w, char *bytes, size_t n, int in)
{
	while (n) {
		size_t part;

		if (w->len == 0 && !walk_on(w))
			return false;
		part = n < w->len ? n : w->len;
		if (!w->piece)
			move(w, bytes, part, in);
		else if (in)
			memcpy(w->piece, bytes, part);
		else
			memcpy(bytes, w->piece, part);
		walk_by(w, part);
		bytes += part;
		n -= part;
	}
	return true;
}

bool wf_walk_out(struct wf_walk *w, void *bytes, size_t n)
{
	return walk_flat(w, bytes, n, 0);
}

bool wf_walk_in(struct wf_walk *w, const void *bytes, size_t n)
{
	char *from;

	memcpy(&from, &bytes, sizeof(from));    /* only read */
	return walk_flat(w, from, n, 1);
}

bool wf_mem_copy(const struct wf_mem *to, const struct wf_mem *from, size_t n)
{
	struct wf_walk t, f;

	if (n == 0)
		return true;
	if (to->kind == WF_MEM_PLAIN && from->kind == WF_MEM_PLAIN) {
		memcpy(to->plain, from->plain, n);
		return true;
	}
	wf_walk_begin(&t, to);
	wf_walk_begin(&f, from);
	while (n) {
		size_t part = n;

		if ((t.len == 0 && !walk_on(&t)) || (f.len == 0 && !walk_on(&f)))
			return false;
		part = part < t.len ? part : t.len;
		part = part < f.len ? part : f.len;
		part = move_piece(&t, &f, part);
		walk_by(&t, part);
		walk_by(&f, part);
		n -= part;
	}
	return true;
}
