/* machine.h - the part of `weft info` that is about the machine. */
#ifndef MACHINE_H
#define MACHINE_H

void machine_print(void);       /* to standard output */

#endif
