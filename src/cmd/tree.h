/* tree.h - who descends from whom. All but tree_parent: of this process, which must be a child subreaper. */
#ifndef TREE_H
#define TREE_H

#include <stdbool.h>
#include <sys/types.h>

pid_t tree_parent(pid_t pid);           /* as /proc says, or -1 */

/* Sends @sig to every descendant that /proc shows now. */
void tree_signal(int sig);

/* Kills every descendant, again and again until none is left or @ms have passed. Reaps them. True: none is left. */
bool tree_kill(int ms);

#endif
