/* template.h - the command that starts something on another host: `ssh -o BatchMode=yes {host}`, and what to start.
 *
 * A template is split into words as a shell would: blanks part them, "..." and '...' and a backslash keep what they hold together. Nothing else
 * means anything: no variables, no pipes, no patterns. {host} becomes the name of the host, wherever it stands. Behind it comes the command: word
 * by word; if the template's program is called ssh or rsh as one text, quoted, because those give it to a shell over there.
 */
#ifndef TEMPLATE_H
#define TEMPLATE_H

#include <stddef.h>

#define TEMPLATE_SSH "ssh -o BatchMode=yes {host}"
#define TEMPLATE_BYTES 4096u            /* of a template */

/* 0: *@ret_argv are words with a NULL behind them, in one piece of memory: free(*ret_argv). -EINVAL: the template makes no sense, -ENOMEM; @words
 * say why in one line. @text NULL: TEMPLATE_SSH. */
int template_make(const char *text, const char *host, char *const *command, char ***ret_argv, char *words, size_t n);

/* 0, or -EINVAL and @words: whether template_make would have anything to say against @text. */
int template_check(const char *text, char *words, size_t n);

#endif
