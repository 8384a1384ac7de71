/* bulk.c - granted sends: cutting chunks, when a lane has room for one.
 *
 * A chunk is cut when a bulk lane is to be filled and it is worth while (stripe.h); 1 ms of the lane's rate, 32 - 512 KiB. What a lane is
 * given ahead of its acknowledgements is bounded: a round trip and 2 ms more of the measured rate (at least 64 KiB), so that something urgent
 * waits no longer than that behind bulk, and a long line is still filled. A lane that goes down or is suspected gives its chunks back, and the
 * same spans are cut again. Of one send at most WF_CHUNKS_OUT chunks are under way: so the receiver's set of filled spans is bounded, too.
 *
 * Lead    While nothing else goes, the beginning of a send follows its announcement unasked, the first chunk in the same record: if a receive is posted for it the line is busy while the
 *         GRANT is on its way. If none is the bytes are dropped, the GRANT does not say that it has them, and all is sent as if they had never been; after that some announcements go
 *         without, twice as many each time. 64 KiB, and twice as much after each that was met, up to what a lane carries in a moment: what comes behind it on the lane waits as long,
 *         and where a lane is slower, or nothing is known of it yet, none is sent.
 *         It costs the receiver no memory, and so no credit. It is named by its send, as there is no token yet. All of it goes by the lane of the announcement, on which the receiver
 *         remembers whether the first chunk was met: if that lane breaks, or has no room, no more of it goes, and what is missing follows the GRANT.
 */
#include <errno.h>
#include <stdlib.h>

#include "peer/inner.h"
#include "peer/stripe.h"

#define CHUNK_LEAST (32u << 10)
#define AHEAD_LEAST (64u << 10)
#define AHEAD (2 * WEFT_MS)
#define NO_MEMORY_WAIT (10 * WEFT_MS)
#define MANY (UINT64_C(1) << 30)        /* more than any lane carries in a moment */
#define LEAD_LEAST (64u << 10)
#define LEAD_MOST (1u << 20)            /* all of a send, or one chunk: behind that the GRANT has come */
#define LEAD_MISSES 8u                  /* in a row, beyond which no more announcements go without: 255 */

/* Is @lane one that chunks ride on? Head lanes stand in while no bulk lane does. */
static bool carries(const struct wf_remote *r, const struct wf_lane *lane)
{
	if (!wf_lane_good(lane) || lane->kind == WF_LANE_CONTROL)
		return false;
	if (lane->kind == WF_LANE_BULK)
		return true;
	for (unsigned slot = 2; slot < 1 + 2 * r->conf.rails; slot += 2)
		if (wf_lane_good(r->slots[slot].lane))
			return false;
	return true;
}

void wf_bulk_kick(struct wf_remote *r)
{
	if (wf_list_empty(&r->granted))
		return;
	for (unsigned slot = 1; slot < 1 + 2 * r->conf.rails; slot++)
		if (carries(r, r->slots[slot].lane))
			wf_lane_wake(r, r->slots[slot].lane);
}

void wf_bulk_add(struct wf_remote *r, struct wf_rsend *s)
{
	wf_list_add(&r->granted, &s->node);
	r->dirty = true;
	wf_bulk_kick(r);
}

/* A lead was met by a receive, or it was not. */
static void lead_told(struct wf_remote *r, bool met)
{
	if (met) {
		r->lead_misses = 0;
		r->lead_len = r->lead_len < LEAD_LEAST ? 2 * LEAD_LEAST : r->lead_len < LEAD_MOST / 2 ? 2 * r->lead_len : LEAD_MOST;
	} else {
		r->lead_misses += r->lead_misses < LEAD_MISSES;
		r->lead_len = LEAD_LEAST;
	}
	r->lead_rest = (1u << r->lead_misses) - 1;
}

uint64_t wf_bulk_moment(const struct wf_remote *r)
{
	uint64_t rate = 0;

	for (const struct wf_lane *lane = r->lanes; lane < r->lanes + WF_LANES; lane++)
		if (lane->up && lane->rate > rate)
			rate = lane->rate;
	return rate / r->conf.moments;
}

/* How much of @s goes unasked. 0: nothing. */
static uint64_t lead_of(const struct wf_remote *r, const struct wf_rsend *s)
{
	uint64_t moment = wf_bulk_moment(r), n = r->lead_len > LEAD_LEAST ? r->lead_len : LEAD_LEAST;

	if (moment < LEAD_LEAST)
		return 0;
	n = n < moment ? n : moment;
	return s->len <= n ? s->len : n < r->conf.chunk ? n : r->conf.chunk;
}

/* Was the beginning of @s sent, and nothing else? */
static bool leads(const struct wf_rsend *s)
{
	return s->state == WF_S_INVITED && !s->token;
}

int wf_bulk_grant(struct wf_remote *r, uint64_t number, uint64_t token, uint64_t limit, bool led)
{
	struct wf_rsend *s = wf_numbers_find(&r->sends, number);

	if (!s)
		return 0;               /* over meanwhile */
	if ((s->state != WF_S_ANNOUNCED && s->state != WF_S_OFFERED && s->state != WF_S_INVITED) || limit > s->len || !token)
		return -EPROTO;
	if (led && (!leads(s) || limit < s->limit))
		return -EPROTO;
	if (r->lead == s)
		wf_bulk_lead_over(r);
	if (wf_list_has(&s->ask))
		wf_list_del(&s->ask);
	if (s->state == WF_S_OFFERED)
		wf_dest_unqueue(r, s);
	else
		wf_dest_answered(r, s);
	if (leads(s))
		lead_told(r, led);
	if (led)
		wf_list_del(&s->node);
	else if (s->state == WF_S_INVITED)
		wf_bulk_forget(r, s);           /* they went to another receive, or to none: once more */
	s->state = WF_S_GRANTED;
	s->token = token;
	s->limit = limit;
	wf_bulk_add(r, s);
	return 0;
}

void wf_bulk_ended(struct wf_remote *r, const struct wf_rsend *s, int err)
{
	if (leads(s) && !err)
		lead_told(r, true);             /* its GRANT is still on its way: nobody waits for that */
}

static uint64_t ahead(const struct wf_lane *lane)
{
	weft_time t = lane->rtt_least + (lane->rtt_least > AHEAD ? lane->rtt_least : AHEAD);
	uint64_t bytes = (uint64_t)((double)lane->rate * (double)t / 1e9);

	return bytes > AHEAD_LEAST ? bytes : AHEAD_LEAST;
}

/* Bytes of granted sends that no lane has yet; or many. */
static uint64_t left(const struct wf_remote *r)
{
	uint64_t sum = 0;

	for (struct wf_node *l = r->granted.next; l != &r->granted && sum < MANY; l = l->next) {
		const struct wf_rsend *s = wf_of(l, struct wf_rsend, node);
		const struct wf_bulk *b = s->bulk;

		sum += s->limit - (b ? b->cut : 0);
		for (uint32_t i = 0; b && i < b->nagain; i++)
			sum += b->again[i].to - b->again[i].from;
	}
	return sum;
}

/* Of one lane always. */
static bool worth_while(const struct wf_remote *r, const struct wf_lane *lane, uint64_t bytes)
{
	struct wf_stripe_load load[2 * WF_RAILS];
	int n = 0, me = -1;

	for (unsigned slot = 1; slot < 1 + 2 * r->conf.rails; slot++) {
		const struct wf_lane *l = r->slots[slot].lane;

		if (!carries(r, l))
			continue;
		if (l == lane)
			me = n;
		load[n++] = (struct wf_stripe_load){ l->chunk_sent - l->chunk_acked, l->rate, l->rtt };
	}
	return me >= 0 && (n == 1 || wf_stripe_worth(load, n, me, bytes, left(r)));
}

static struct wf_bulk *bulk_of(struct wf_remote *r, struct wf_rsend *s)
{
	if (s->bulk)
		return s->bulk;
	s->bulk = r->bulk_free;
	if (s->bulk)
		r->bulk_free = s->bulk->next;
	else
		s->bulk = malloc(sizeof(*s->bulk));
	if (s->bulk)
		*s->bulk = (struct wf_bulk){ 0 };
	return s->bulk;
}

/* The next span of @s, at most @most bytes; false: none now. */
static bool cut(struct wf_rsend *s, uint64_t most, struct wf_span *ret)
{
	struct wf_bulk *b = s->bulk;

	if (b->nagain) {
		*ret = b->again[--b->nagain];
	} else if (b->cut < s->limit && b->nout + b->nagain < WF_CHUNKS_OUT) {
		ret->from = b->cut;
		ret->to = s->limit - b->cut > most ? b->cut + most : s->limit;
		b->cut = ret->to;
	} else {
		return false;
	}
	b->nout++;
	return true;
}

static bool memory_for(struct wf_remote *r, struct wf_lane *lane)
{
	if (!lane->flying)
		lane->flying = malloc(WF_FLYING * sizeof(*lane->flying));
	if (!lane->flying)
		wf_arm(r, r->now + NO_MEMORY_WAIT);
	return lane->flying;
}

/* @span of @s goes on @lane. */
static void fly(struct wf_remote *r, struct wf_lane *lane, struct wf_rsend *s, struct wf_span span, struct wf_flying *ret_chunk)
{
	if (lane->chunk_sent == lane->chunk_acked)
		lane->acked_at = r->now;
	lane->chunk_sent += span.to - span.from;
	*ret_chunk = (struct wf_flying){ s, span, lane->chunk_sent, lane->chunk_acked, lane->acked_at, r->now };
	lane->flying[(lane->fly_first + lane->fly_count++) % WF_FLYING] = *ret_chunk;
}

void wf_bulk_may_lead(struct wf_remote *r, struct wf_rsend *s)
{
	if (r->lead || wf_bulk_wanted(r))
		return;
	if (r->lead_rest)
		r->lead_rest--;
	else
		r->lead = s;
}

/* Its announcement is on @lane, which may have room for what goes unasked: it begins. */
static bool lead_begin(struct wf_remote *r, struct wf_lane *lane, struct wf_rsend *s)
{
	uint64_t n = lead_of(r, s);

	if (!n || !memory_for(r, lane) || !bulk_of(r, s))
		return false;
	s->state = WF_S_INVITED;
	s->token = 0;
	s->limit = n;
	wf_list_add(&r->leading, &s->node);
	r->lead_on = lane;
	r->counted_led++;
	return true;
}

/* Is there room on @lane for the next chunk of @n bytes that go unasked? */
static bool lead_fits(const struct wf_remote *r, const struct wf_lane *lane, uint64_t n)
{
	uint64_t flying = lane->chunk_sent - lane->chunk_acked;

	return lane->fly_count < WF_FLYING && (!flying || flying + (n < r->conf.chunk ? n : r->conf.chunk) <= ahead(lane));
}

bool wf_bulk_lead(struct wf_remote *r, struct wf_lane *lane, struct wf_flying *ret_chunk)
{
	struct wf_rsend *s = r->lead;
	const struct wf_out *out = s ? r->out[wf_stream_of(s)] : NULL;
	struct wf_span span;

	if (!s || (r->lead_on ? r->lead_on != lane : out->lane != lane || out->waits || out->rt.sent < s->end))
		return false;
	if (!lead_fits(r, lane, r->lead_on ? s->limit - s->bulk->cut : lead_of(r, s)) || (!r->lead_on && !lead_begin(r, lane, s)) || s->bulk->nagain || !cut(s, r->conf.chunk, &span)) {
		wf_bulk_lead_over(r);
		return false;
	}
	fly(r, lane, s, span, ret_chunk);
	if (s->bulk->cut == s->limit)
		wf_bulk_lead_over(r);
	return true;
}

bool wf_bulk_cut(struct wf_remote *r, struct wf_lane *lane, struct wf_flying *ret_chunk)
{
	uint64_t out = lane->chunk_sent - lane->chunk_acked, most = lane->rate / 1000;
	struct wf_span span;

	if (wf_list_empty(&r->granted) || !carries(r, lane) || lane->fly_count == WF_FLYING || !memory_for(r, lane))
		return false;
	most = most < CHUNK_LEAST ? CHUNK_LEAST : most > r->conf.chunk ? r->conf.chunk : most;
	if ((out && out + most > ahead(lane)) || !worth_while(r, lane, most))
		return false;
	for (struct wf_node *l = r->granted.next; l != &r->granted; l = l->next) {
		struct wf_rsend *s = wf_of(l, struct wf_rsend, node);

		if (!bulk_of(r, s)) {
			wf_arm(r, r->now + NO_MEMORY_WAIT);
			return false;
		}
		if (!cut(s, most, &span))
			continue;
		wf_list_del(&s->node);                  /* the others have their turn */
		wf_list_add(&r->granted, &s->node);
		fly(r, lane, s, span, ret_chunk);
		return true;
	}
	return false;
}

/* @f is there. What was acknowledged since it left came since the last before that was: several that left one behind the other and are told of at once make no lane faster than it is. */
static void measure(struct wf_lane *lane, const struct wf_flying *f, weft_time now)
{
	weft_time t = now - f->at, since = now - f->acked_at;
	uint64_t rate;

	if (t <= 0 || since <= 0)
		return;
	rate = (uint64_t)((double)(lane->chunk_acked - f->acked) * 1e9 / (double)since);
	lane->rate = rate > lane->rate ? rate : lane->rate - (lane->rate - rate) / 16;
	if (!lane->rtt_least || t < lane->rtt_least)
		lane->rtt_least = t;
}

int wf_bulk_acked(struct wf_remote *r, struct wf_lane *lane, uint64_t count, weft_time waited)
{
	if (count < lane->chunk_acked || count > lane->chunk_sent)
		return -EPROTO;
	lane->chunk_acked = count;
	while (lane->fly_count && lane->flying[lane->fly_first].end <= count) {
		struct wf_flying *f = &lane->flying[lane->fly_first];

		if (f->send)
			f->send->bulk->nout--;
		measure(lane, f, r->now - waited);
		lane->fly_first = (lane->fly_first + 1) % WF_FLYING;
		lane->fly_count--;
	}
	lane->acked_at = r->now - waited;
	wf_lane_moved(r, lane);
	wf_bulk_kick(r);
	return 0;
}

void wf_bulk_again(struct wf_remote *r, struct wf_lane *lane)
{
	if (r->lead && r->lead_on == lane)
		wf_bulk_lead_over(r);
	for (uint32_t i = 0; i < lane->fly_count; i++) {
		struct wf_flying *f = &lane->flying[(lane->fly_first + i) % WF_FLYING];

		if (!f->send)
			continue;
		f->send->bulk->nout--;
		f->send->bulk->again[f->send->bulk->nagain++] = f->span;
		f->send = NULL;                         /* an acknowledgement that still comes counts for the lane alone */
		r->counted_chunks_again++;
	}
	wf_bulk_kick(r);
	r->dirty = true;
}

int wf_bulk_asked(struct wf_remote *r, uint64_t number, uint64_t from, uint64_t to)
{
	struct wf_rsend *s = wf_numbers_find(&r->sends, number);
	struct wf_bulk *b = s && (s->state == WF_S_GRANTED || s->state == WF_S_INVITED) ? s->bulk : NULL;

	if (!b)
		return 0;
	if (from >= to || to > b->cut || b->nagain + b->nout >= WF_CHUNKS_OUT + WF_LANES)
		return -EPROTO;
	b->again[b->nagain++] = (struct wf_span){ from, to };
	r->counted_chunks_again++;
	wf_bulk_kick(r);
	return 0;
}

void wf_bulk_forget(struct wf_remote *r, struct wf_rsend *s)
{
	wf_list_del(&s->node);
	for (struct wf_lane *lane = r->lanes; lane < r->lanes + WF_LANES; lane++)
		for (uint32_t i = 0; i < lane->fly_count; i++) {
			struct wf_flying *f = &lane->flying[(lane->fly_first + i) % WF_FLYING];

			if (f->send == s)
				f->send = NULL;
		}
	if (!s->bulk)
		return;
	s->bulk->next = r->bulk_free;
	r->bulk_free = s->bulk;
	s->bulk = NULL;
}

void wf_bulk_fini(struct wf_remote *r)
{
	for (struct wf_bulk *b = r->bulk_free, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	r->bulk_free = NULL;
	for (struct wf_lane *lane = r->lanes; lane < r->lanes + WF_LANES; lane++) {
		free(lane->flying);
		lane->flying = NULL;
	}
}
