/* launch.c - see launch.h. */
#include "job/launch.h"

#include <stdlib.h>
#include <string.h>

#include "mem/segment.h"

void wf_launch_write(struct wf_body *b, const struct wf_launch_spec *spec)
{
	wf_body_u32(b, spec->watched);
	wf_body_u32(b, spec->parts);
	for (uint32_t i = 0; i < spec->parts; i++) {
		const struct wf_launch_part *p = &spec->part[i];

		wf_body_u32(b, p->count);
		wf_body_u32(b, p->hosts_count);
		for (uint32_t h = 0; h < p->hosts_count; h++)
			wf_body_u32(b, p->hosts[h]);
		wf_body_text(b, p->prog);
		wf_body_text(b, p->dir);
		wf_body_text(b, p->attrs);
		wf_body_list(b, p->argv, wf_list_count(p->argv));
		wf_body_list(b, p->env, p->env_count);
		wf_body_u32(b, p->output);
	}
}

static void part_free(struct wf_launch_part *p)
{
	free(p->hosts);
	free(p->argv);
	free(p->env);
}

void wf_launch_free(struct wf_launch_spec *spec)
{
	for (uint32_t i = 0; i < WF_LAUNCH_PARTS; i++)
		part_free(&spec->part[i]);
}

static void part_read(struct wf_body *b, struct wf_launch_part *p)
{
	size_t words = 0;
	uint32_t output;

	p->count = wf_body_get32(b);
	p->hosts_count = wf_body_get32(b);
	if (b->bad || p->hosts_count > (b->n - b->at) / 4) {
		b->bad = true;
		return;
	}
	p->hosts = calloc((size_t)p->hosts_count + 1, sizeof(*p->hosts));
	b->bad |= !p->hosts;
	for (uint32_t h = 0; !b->bad && h < p->hosts_count; h++)
		p->hosts[h] = wf_body_get32(b);
	p->prog = wf_body_get_text(b);
	p->dir = wf_body_get_text(b);
	p->attrs = wf_body_get_text(b);
	p->argv = wf_body_get_list(b, &words);
	p->env = wf_body_get_list(b, &p->env_count);
	output = wf_body_get32(b);
	p->output = output == 1;
	b->bad |= output > 1 || !p->prog || !words || !p->count || p->count >= WF_AGENTS;
	for (size_t i = 0; !b->bad && i < p->env_count; i++)
		b->bad |= p->env[i][0] == '=' || !strchr(p->env[i], '=');
}

bool wf_launch_read(struct wf_body *b, struct wf_launch_spec *ret_spec)
{
	memset(ret_spec, 0, sizeof(*ret_spec));
	ret_spec->watched = wf_body_get32(b) != 0;
	ret_spec->parts = wf_body_get32(b);
	b->bad |= !ret_spec->parts || ret_spec->parts > WF_LAUNCH_PARTS;
	for (uint32_t i = 0; !b->bad && i < ret_spec->parts; i++) {
		part_read(b, &ret_spec->part[i]);
		ret_spec->count += ret_spec->part[i].count;
	}
	if (wf_body_whole(b) && ret_spec->count < WF_AGENTS)
		return true;
	wf_launch_free(ret_spec);
	return false;
}
