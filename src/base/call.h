/* call.h - a system call where it stands. syscall(3) is a jump into another library, whose lines nobody else needs meanwhile, and moves every argument twice; behind a system call both cost more
 * than they look. Not a cancellation point, as little as that is.
 */
#ifndef WF_BASE_CALL_H
#define WF_BASE_CALL_H

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

/* What the kernel answers: -E if it failed; errno stays as it is. */
static inline long wf_call(long number, intptr_t a, intptr_t b, intptr_t c, intptr_t d, intptr_t e, intptr_t f)
{
#if defined(__aarch64__)
	register intptr_t x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
	register long x8 __asm__("x8") = number;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory", "cc");
	return x0;
#elif defined(__x86_64__) && !defined(__ILP32__)
	register intptr_t r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long answer;

	__asm__ volatile("syscall" : "=a"(answer) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory", "cc");
	return answer;
#else
	int before = errno;
	long answer = syscall(number, a, b, c, d, e, f);

	answer = answer < 0 ? -errno : answer;
	errno = before;
	return answer;
#endif
}

#endif
