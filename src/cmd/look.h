/* look.h - `weft ps`, `weft ls`, `weft kill`, `weft grow`. */
#ifndef LOOK_H
#define LOOK_H

int ps_main(int argc, char **argv);
int ls_main(int argc, char **argv);
int kill_main(int argc, char **argv);
int grow_main(int argc, char **argv);

#endif
