/* places.h - one thing for each of several rails in a text, by their numbers: addresses of a host, as "10.1.0.1+10.2.0.1", or where a process is reached, as "10.1.0.1:7000+10.2.0.1:7000". Where there is
 * none of a number nothing stands: "+10.2.0.1:7000". */
#ifndef WF_WIRE_PLACES_H
#define WF_WIRE_PLACES_H

#include <stddef.h>
#include <stdint.h>

uint32_t wf_places_count(const char *text);             /* numbers that there are; 0: the text is empty */

/* That of number @n. 0; -EADDRNOTAVAIL: there is none; -ENAMETOOLONG: it does not fit. */
int wf_places_nth(const char *text, uint32_t n, char *ret_place, size_t room);

/* The first there is. -EADDRNOTAVAIL: none. */
int wf_places_first(const char *text, char *ret_place, size_t room);

/* One more behind those in @text, which are @n; "": none. -ENAMETOOLONG, with words: @text is as it was. */
int wf_places_add(char *text, size_t room, uint32_t n, const char *place);

#endif
