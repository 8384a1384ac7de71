/* test_pmi_x_fake.c - a libpmix that does what test_pmi_x wants: a job of two ranks in one process, and every way to misbehave.
 *
 * The second rank has put what the test says. The switches are set by the test before it calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "job/pmi_x_abi.h"
#include "test_pmi_x_fake.h"

#define DECLARE(name, type) extern __typeof__(*(type)0) name;
X_CALLS(DECLARE)
#undef DECLARE

extern struct fake_pmix fake;
struct fake_pmix fake = { .version = "OpenPMIx 4.2.2, fake" };

static char keys[8][64], values[8][1024];
static int count;

static void nap(int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l }, NULL);
}

static void hold(void)
{
	while (fake.hold)
		nap(1);
}

const char *PMIx_Get_version(void)
{
	return fake.version;
}

const char *PMIx_Error_string(int status)
{
	return status == -1 ? NULL : "FAKE";
}

int PMIx_Init(struct x_proc *ret_proc, struct x_info *info, size_t n)
{
	int answer;

	(void)info;
	(void)n;
	hold();
	memset(ret_proc, 0, sizeof(*ret_proc));
	if (fake.endless_name)
		memset(ret_proc->nspace, 'n', sizeof(ret_proc->nspace));
	else
		strcpy(ret_proc->nspace, "fake");
	ret_proc->rank = fake.rank;
	count = 0;
	answer = fake.init;
	fake.inits++;
	return answer;
}

int PMIx_Finalize(const struct x_info *info, size_t n)
{
	(void)info;
	(void)n;
	hold();
	fake.finalized++;
	return 0;
}

int PMIx_Put(uint8_t scope, const char *key, struct x_value *value)
{
	if (scope != X_GLOBAL || value->type != X_STRING || count == 8)
		return -1;
	strcpy(keys[count], key);
	strcpy(values[count++], value->data.string);
	return fake.put;
}

int PMIx_Commit(void)
{
	return 0;
}

int PMIx_Fence(const struct x_proc *who, size_t n, const struct x_info *info, size_t infos)
{
	int answer;

	nap(fake.fence_ms);
	hold();
	answer = fake.fence;
	if (n != 1 || who->rank != X_WHOLE_JOB || infos != 1 || strcmp(info->key, X_COLLECT) != 0 || info->value.type != X_BOOL || !info->value.data.flag)
		answer = -1;
	fake.fences++;
	return answer;
}

static struct x_value *value_new(uint16_t type)
{
	struct x_value *v = calloc(1, sizeof(*v));

	v->type = type;
	return v;
}

int PMIx_Get(const struct x_proc *who, const char *key, const struct x_info *info, size_t n, struct x_value **ret_value)
{
	(void)info;
	(void)n;
	if (who->rank == X_WHOLE_JOB) {
		*ret_value = value_new(fake.size_type ? fake.size_type : X_UINT32);
		(*ret_value)->data.uint32 = 2;
		return 0;
	}
	if (who->rank == 1) {
		if (fake.get)
			return fake.get;
		*ret_value = value_new(fake.value_type ? fake.value_type : X_STRING);
		if ((*ret_value)->type == X_STRING && fake.value)
			(*ret_value)->data.string = strdup(fake.value);
		return 0;
	}
	for (int i = 0; i < count; i++)
		if (strcmp(keys[i], key) == 0) {
			*ret_value = value_new(X_STRING);
			(*ret_value)->data.string = strdup(values[i]);
			return 0;
		}
	return X_NOT_FOUND;
}
