/* list.h - a doubly linked ring with its head in the owner; an element knows whether it is in one. */
#ifndef WF_BASE_LIST_H
#define WF_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct wf_node {
	struct wf_node *next, *prev;    /* next NULL: in no list */
};

#define wf_of(ptr, type, member) ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

static inline void wf_list_init(struct wf_node *head)
{
	head->next = head->prev = head;
}

static inline bool wf_list_empty(const struct wf_node *head)
{
	return head->next == head || !head->next;       /* NULL: zeroed, never used */
}

static inline bool wf_list_has(const struct wf_node *l)
{
	return l->next != NULL;
}

static inline void wf_list_add(struct wf_node *head, struct wf_node *l)
{
	if (!head->next)
		wf_list_init(head);
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

static inline void wf_list_del(struct wf_node *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	l->next = l->prev = NULL;
}

/* Takes the first out, or NULL. */
static inline struct wf_node *wf_list_pop(struct wf_node *head)
{
	struct wf_node *l = head->next;

	if (wf_list_empty(head))
		return NULL;
	wf_list_del(l);
	return l;
}

#endif
