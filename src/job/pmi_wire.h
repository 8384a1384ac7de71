/* pmi_wire.h - the texts of PMI-1 and PMI-2, without the socket.
 *
 *   PMI-1   cmd=put kvsname=NAME key=KEY value=VALUE\n               fields part at spaces, a message ends with its line
 *   PMI-2       36cmd=kvs-put;key=KEY;value=VALUE;                   six characters say how long the rest is; ";;" is a ';'
 *
 * Both begin with one line of the first kind, by which the version is agreed on.
 */
#ifndef WF_JOB_PMI_WIRE_H
#define WF_JOB_PMI_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define WF_PMI_MOST 4096        /* bytes of a message that is read; none that weft asks for comes near it */
#define WF_PMI_ASK 1024         /* of one that is written: what the oldest launchers read */
#define WF_PMI_FIELDS 24

enum wf_pmi_form { WF_PMI_LINE, WF_PMI_COUNTED };

struct wf_pmi_reply {
	unsigned count;
	struct {
		const char *name, *value;       /* in text */
	} field[WF_PMI_FIELDS];
	char text[WF_PMI_MOST + 1];
};

/* A command with its fields: pairs of texts, then NULL. Returns its bytes; -EINVAL: a text would be read as more than one; -EMSGSIZE. */
long wf_pmi_write(enum wf_pmi_form form, char ret[WF_PMI_ASK], const char *command, ...) __attribute__((sentinel));

/* How many of the @n bytes are the first message; 0: not all of it is there; -EPROTO: there will never be one. */
long wf_pmi_whole(enum wf_pmi_form form, const char *bytes, size_t n);

/* The message of exactly @n bytes that wf_pmi_whole found. -EPROTO: it is none. */
int wf_pmi_read(enum wf_pmi_form form, const char *bytes, size_t n, struct wf_pmi_reply *ret_reply);

/* A field's text, or NULL. Of several with one name the first counts. */
const char *wf_pmi_field(const struct wf_pmi_reply *reply, const char *name);

/* A field that is a number from 0 to @most, and nothing else; -EPROTO. */
int wf_pmi_number(const struct wf_pmi_reply *reply, const char *name, uint32_t most, uint32_t *ret);

/* A text of decimal digits, at most @most. */
int wf_pmi_digits(const char *text, uint32_t most, uint32_t *ret);

#endif
