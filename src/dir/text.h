/* text.h - names, keys and values, and the words key=value in which they are written. Bounds of everything a client may say. */
#ifndef WF_DIR_TEXT_H
#define WF_DIR_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/id.h>

/* Most bytes, without the 0 that ends them here. */
#define WF_DIR_NAME 63
#define WF_DIR_KEY 31
#define WF_DIR_VALUE 255
#define WF_DIR_GROUP 127                /* path of a group */
#define WF_DIR_QUERY 1023
#define WF_DIR_PATH 511                 /* of an entity: more than its parts can have */
#define WF_DIR_ATTRS 32                 /* most attributes of an entity */
#define WF_DIR_ALL 20479                /* everything of an entity as words, every character of its attributes with a backslash */
#define WF_DIR_PARTS 8                  /* most parts of a path */

enum wf_dir_kind { WF_DIR_HOST = 1, WF_DIR_PROCESS, WF_DIR_THREAD, WF_DIR_PORT, WF_DIR_GROUPS, WF_DIR_KINDS };

/* Keys that every entity has. */
enum wf_dir_key {
	WF_KEY_OWN,                     /* none of them: an attribute */
	WF_KEY_KIND,
	WF_KEY_NAME,
	WF_KEY_INDEX,
	WF_KEY_PARENT,
	WF_KEY_HOST,
	WF_KEY_ID,
	WF_KEY_PATH,
	WF_KEY_GROUP,
	WF_KEY_MEMBER,
	WF_KEY_JOB,                     /* whose directory is asked: abroad.h */
	WF_KEYS
};

const char *wf_dir_kind_name(unsigned kind);            /* "" if there is none such */
const char *wf_dir_key_name(enum wf_dir_key key);
enum wf_dir_key wf_dir_key_of(const char *text);

/* Whether @n bytes are a name (no space / [ ] * ? \ "), a key (letters, digits and _ - .), a value (printable), the path of a group (/a/b). */
bool wf_dir_is_name(const char *text, size_t n);
bool wf_dir_is_key(const char *text, size_t n);
bool wf_dir_is_value(const char *text, size_t n);
bool wf_dir_is_group(const char *text, size_t n);

/* A name made of @text: what a name may not have becomes '_', what is too long is cut off; empty or NULL: @otherwise. */
void wf_dir_name_from(const char *text, const char *otherwise, char ret_name[WF_DIR_NAME + 1]);

struct wf_dir_word {
	char key[WF_DIR_KEY + 1];
	char value[2 * WF_DIR_VALUE + 1];       /* a pattern has a backslash before every sign that is none */
};

/* The next word of *@text, which moves behind it: 1, 0: no more, -EINVAL: *@ret_why. @pattern: backslashes stay. */
int wf_dir_next_word(const char **text, bool pattern, struct wf_dir_word *ret_word, const char **ret_why);

/* A text that grows in fixed room; what does not fit is only counted, as snprintf does. */
struct wf_dir_writer {
	char *text;
	size_t room, len;
};
void wf_dir_write(struct wf_dir_writer *w, const char *text, size_t n);
void wf_dir_write_number(struct wf_dir_writer *w, uint64_t n);
void wf_dir_write_word(struct wf_dir_writer *w, const char *key, const char *value);    /* with a space before it, in quotes where needed */
void wf_dir_write_step(struct wf_dir_writer *w, const char *name, uint32_t index);      /* "/name[3]", "/name" for 0 */
size_t wf_dir_write_end(struct wf_dir_writer *w);                                       /* the 0; how long it is, or would be */

/* Ids as text, without the words of weft_last_error. */
void wf_dir_id_print(weft_id id, char ret_text[WEFT_ID_TEXT]);
bool wf_dir_id_parse(const char *text, weft_id *ret_id);

/* Patterns: * any text, ? any character, [a-z] [!a-z] one of or none of these, \x the character x. Time: at most the product of both lengths. */
bool wf_glob(const char *pattern, const char *text);
/* The one text that @pattern matches, in at most its own length; false: it has signs. */
bool wf_glob_plain(const char *pattern, char *ret_text);

#endif
