/* variables.h - which variables named WEFT_... there are, and what is in the environment besides.
 *
 * A knob that is misspelt sets nothing, and says nothing either; so whoever has read the environment asks here who is a stranger.
 */
#ifndef WF_BASE_VARIABLES_H
#define WF_BASE_VARIABLES_H

#include <stddef.h>

#define WF_VARIABLE 48          /* of a name, with its end; what is longer is told cut off */
#define WF_STRANGERS 8          /* so many are told, the rest is only counted */

/* "WEFT_SPIN_NS", for the knob spin_ns. */
void wf_variable_name(const char *knob, char ret_name[WF_VARIABLE]);

/* How many variables begin with WEFT_ and are neither a knob nor set by weft itself. @tell gets each, with characters that cannot be shown as ?, and the
 * name that was probably meant; NULL: none is like it. */
unsigned wf_variable_strangers(void (*tell)(const char *name, const char *meant));

#endif
