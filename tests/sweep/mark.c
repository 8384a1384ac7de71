/* mark.c - void sweep_mark(void): a breakpoint and a return, where a tracer stops (trace.h). */
__asm__(".text\n.globl sweep_mark\n.type sweep_mark, %function\nsweep_mark:\n"
#if defined(__aarch64__)
	"brk #0x5e\n"
#elif defined(__x86_64__)
	"int3\n"
#endif
	"ret\n.size sweep_mark, . - sweep_mark\n");
