/* test_pmi_x_fake.h - the switches of the libpmix that is none. */
#ifndef TEST_PMI_X_FAKE_H
#define TEST_PMI_X_FAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Atomic, and counted as the last thing a call does: a call that was left alone may still be under way when the test looks. */
struct fake_pmix {
	_Atomic(const char *) version;
	_Atomic uint32_t rank;
	_Atomic int init, put, fence, get;              /* what those answer */
	_Atomic int fence_ms;                           /* and after how long */
	_Atomic bool hold;                              /* while set none comes back */
	_Atomic bool endless_name;
	_Atomic uint16_t size_type, value_type;         /* 0: as it should be */
	_Atomic(const char *) value;                    /* of rank 1 */
	_Atomic int inits, fences, finalized;           /* how often they came to an end */
};

#endif
