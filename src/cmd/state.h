/* state.h - `weft state PID`. */
#ifndef STATE_H
#define STATE_H

int state_main(int argc, char **argv);

#endif
