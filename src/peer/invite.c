/* invite.c - receiver first: the memory of a receive is told to its source before the message is sent.
 *
 * An invitation saves the way back: the header of an invited message is followed by its chunks at once. It names the token, what the receive
 * wants, and how far the receiver had come in the plain stream (priority 0, any rail). The sender keeps it only if nothing was sent to that port
 * behind that; the next send to the port from the invited source uses it or drops it. All this only avoids waste. What makes it right is at the
 * receiver: the header is matched like any other, and the chunks count only if it matched that very receive. A receive that was matched with
 * something else, cancelled or ended closes its landing first, and late chunks are dropped; a header that found another receive, or none, is an
 * announcement like any other, and its GRANT sends the chunks once more.
 */
#include <errno.h>
#include <string.h>

#include "peer/inner.h"

/* ---- the receiving end ---- */

int wf_remote_invite(struct wf_remote *r, struct wf_landing *l, uint32_t from, uint32_t to, uint64_t context, const void *want, size_t len)
{
	unsigned char frame[48 + WF_WANT_MOST] = { 0 };
	struct wf_out *out = r->out[0];
	int rc;

	if (wf_ends(r) || r->closing || len > WF_WANT_MOST || !l->len)
		return r->err ? r->err : -EAGAIN;
	if (out && out->rt.tail - out->rt.acked > WF_RETAIN_MOST / 4)
		return -EAGAIN;
	wf_landing_open(r, l);
	rc = wf_numbers_add(&r->tokens, l, &l->token);
	if (rc) {
		wf_list_del(&l->node);
		return rc;
	}
	l->invited = true;
	wf_wire_head(frame, WF_WIRE_INVITE, 0, 48 + len);
	wf_put32(frame + 4, from);
	wf_put64(frame + 8, r->in[WF_STREAM_PLAIN].next);
	wf_put64(frame + 16, l->token);
	wf_put64(frame + 24, l->len);
	wf_put64(frame + 32, context);
	wf_put32(frame + 40, to);
	memcpy(frame + 48, want, len);
	wf_control_put(r, frame, 48 + len);
	return 0;
}

/* ---- the sending end ---- */

_Static_assert(48 + WF_WANT_MOST == 112, "what an INVITE wants is as long as its type allows");

WF_HOT uint64_t *wf_invite_at(struct wf_remote *r, uint32_t to, uint64_t context)
{
	uint64_t h = (to ^ context * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);

	return &r->last_to[h >> 58];    /* two that share a place are strict with each other, and that is all */
}

WF_HOT void wf_invite_last(struct wf_remote *r, uint32_t to, uint64_t context, uint64_t end)
{
	*wf_invite_at(r, to, context) = end;
}

int wf_invite_got(struct wf_remote *r, const unsigned char *p)
{
	struct wf_invite i = { .token = wf_get64(p + 16), .limit = wf_get64(p + 24), .context = wf_get64(p + 32), .from = wf_get32(p + 4),
			       .to = wf_get32(p + 40), .want_len = wf_get16(p + 2) - 48u };
	struct wf_out *out = r->out[WF_STREAM_PLAIN];
	struct wf_rdest *d = wf_dest_find(r, i.to, i.context);
	struct wf_invite *place = &r->invites[r->invite_next];

	if (!i.token || wf_get32(p + 44))
		return -EPROTO;
	if (!r->conf.ops->fits || *wf_invite_at(r, i.to, i.context) > wf_get64(p + 8))
		return 0;
	if ((out && !wf_list_empty(&out->waiting)) || (d && d->count))
		return 0;
	memcpy(i.want, p + 48, i.want_len);
	r->ninvites += !place->token;           /* else the oldest goes */
	*place = i;
	r->invite_next = (r->invite_next + 1) % WF_INVITES;
	return 0;
}

void wf_invite_revoked(struct wf_remote *r, uint64_t token)
{
	for (unsigned i = 0; i < WF_INVITES; i++)
		if (token && r->invites[i].token == token) {
			r->invites[i].token = 0;
			r->ninvites--;
		}
}

bool wf_invite_used(struct wf_remote *r, struct wf_rsend *s)
{
	bool used = false;

	for (unsigned k = 0; k < WF_INVITES; k++) {
		struct wf_invite *i = &r->invites[k];

		if (!i->token || i->to != s->to || i->context != s->context || (i->from && i->from != s->from))
			continue;
		if (!used && wf_stream_of(s) == WF_STREAM_PLAIN && s->len > r->conf.eager && s->len <= i->limit && r->conf.ops->fits(s, i->want, i->want_len)) {
			used = true;
			s->token = i->token;
		}
		i->token = 0;
		r->ninvites--;
	}
	return used;
}
