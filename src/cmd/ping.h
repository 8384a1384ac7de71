/* ping.h - `weft ping`. */
#ifndef PING_H
#define PING_H

int ping_main(int argc, char **argv);

#endif
