/* wire.c - the table of frames, and messages into frames and back. Pure functions; what is read is authenticated, and trusted in nothing else. */
#include "peer/wire.h"

#include <errno.h>

const struct wf_wire_shape wf_wire_shapes[WF_WIRE_SKIPPABLE] = {
#define X(name, type, fixed, most, class, flags, zero) [type] = { #name, fixed, most, type, WF_WIRE_##class, flags, zero },
	WF_WIRE_FRAMES(X)
#undef X
};

int wf_wire_next(const unsigned char *p, size_t left, const struct wf_wire_shape **ret_shape)
{
	const struct wf_wire_shape *shape;
	size_t len, padded;

	if (left < 8)
		return -EPROTO;
	shape = p[0] < WF_WIRE_SKIPPABLE ? &wf_wire_shapes[p[0]] : NULL;
	len = wf_get16(p + 2);
	padded = WF_WIRE_PAD(len);
	if (len < 8 || padded > left)
		return -EPROTO;
	if (shape && !shape->name)
		return -EPROTO;
	if (shape && (len < shape->fixed || len > shape->most))
		return -EPROTO;
	if (shape && (p[1] & ~(unsigned)shape->flags || (shape->zero && wf_get32(p + 4))))
		return -EPROTO;
	*ret_shape = shape;
	return (int)padded;
}

size_t wf_wire_put_msg(unsigned char *p, const struct wf_rmsg *m, size_t payload)
{
	size_t at = 24;

	wf_put32(p + 4, m->to);
	wf_put32(p + 8, m->from);
	wf_put32(p + 12, m->index);
	wf_put64(p + 16, m->tag);
	if (m->flags & WF_WIRE_CONTEXT)
		wf_put64(p + at, m->context), at += 8;
	if (m->flags & WF_WIRE_SEND)
		wf_put64(p + at, m->send), at += 8;
	if (m->flags & WF_WIRE_LENGTH)
		wf_put64(p + at, m->len), at += 8;
	if (m->flags & (WF_WIRE_INVITED | WF_WIRE_OFFER))
		wf_put64(p + at, m->token), at += 8;
	if (m->flags & WF_WIRE_HEAD) {
		size_t room = WF_WIRE_PAD(1 + m->head_len);

		memset(p + at, 0, room);
		p[at] = (unsigned char)m->head_len;
		memcpy(p + at + 1, m->head, m->head_len);
		at += room;
	}
	wf_wire_head(p, m->type, m->flags, at + payload);
	return at;
}

/* Takes 8 bytes more of the frame, if they are there. */
static bool take64(const unsigned char *p, size_t len, size_t *at, uint64_t *ret)
{
	if (len - *at < 8)
		return false;
	*ret = wf_get64(p + *at);
	*at += 8;
	return true;
}

int wf_wire_get_msg(const unsigned char *p, struct wf_rmsg *ret_m)
{
	size_t len = wf_get16(p + 2), at = 24;
	struct wf_rmsg m = { .type = p[0], .flags = p[1], .to = wf_get32(p + 4), .from = wf_get32(p + 8), .index = wf_get32(p + 12),
			     .tag = wf_get64(p + 16) };
	bool apart = m.type == WF_WIRE_ANNOUNCE || (m.flags & WF_WIRE_BODY);    /* from its payload */

	if (m.flags & WF_WIRE_CONTEXT && !take64(p, len, &at, &m.context))
		return -EPROTO;
	if (m.flags & WF_WIRE_SEND && !take64(p, len, &at, &m.send))
		return -EPROTO;
	if (m.flags & WF_WIRE_LENGTH && !take64(p, len, &at, &m.len))
		return -EPROTO;
	if (m.flags & (WF_WIRE_INVITED | WF_WIRE_OFFER) && !take64(p, len, &at, &m.token))
		return -EPROTO;
	if (m.flags & WF_WIRE_HEAD) {
		size_t room;

		if (at == len)
			return -EPROTO;
		m.head_len = p[at];
		room = WF_WIRE_PAD(1 + (size_t)m.head_len);
		if (room > len - at)
			return -EPROTO;
		m.head = p + at + 1;
		at += room;
	}
	if ((m.flags & (WF_WIRE_INVITED | WF_WIRE_OFFER)) == (WF_WIRE_INVITED | WF_WIRE_OFFER))
		return -EPROTO;
	if (!!(m.flags & WF_WIRE_LENGTH) != apart || (m.flags & WF_WIRE_SYNC && !m.send))
		return -EPROTO;
	if (apart && (at != len || !m.send))
		return -EPROTO;
	if (m.type == WF_WIRE_ANNOUNCE ? m.flags & WF_WIRE_BODY : m.flags & (WF_WIRE_OFFER | WF_WIRE_INVITED))
		return -EPROTO;
	if (!apart) {
		m.payload = p + at;
		m.len = len - at;
	}
	*ret_m = m;
	return 0;
}
