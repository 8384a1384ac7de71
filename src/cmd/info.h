/* info.h - `weft info`. */
#ifndef INFO_H
#define INFO_H

int info_main(int argc, char **argv);

#endif
