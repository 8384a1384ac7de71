/* hello.c - one thread greets another. A thread's id is its address: whoever knows it can send. */
#include <pthread.h>
#include <stdio.h>
#include <weft/weft.h>

static void *greeter(void *to)
{
	weft_send(NULL, *(weft_id *)to, 7, "hello", 6, WEFT_FOREVER);
	return NULL;
}

int main(void)
{
	char text[16], who[WEFT_ID_TEXT];
	struct weft_status st;
	pthread_t thread;

	if (weft_init(NULL) < 0)
		return fprintf(stderr, "%s\n", weft_last_error()), 1;
	weft_id me = weft_self();
	pthread_create(&thread, NULL, greeter, &me);
	if (weft_recv(NULL, WEFT_ANY, 7, text, sizeof(text), WEFT_FOREVER, &st) == 0)
		printf("%s from %s\n", text, weft_id_print(st.from, who, sizeof(who)));
	pthread_join(thread, NULL);
	return weft_fini(WEFT_FOREVER) < 0;
}
