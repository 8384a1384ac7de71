/* test_frames.c - frames with descriptors: whole, or known not to be. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "job/frames.h"
#include "test.h"

static void pair(int sock[2])
{
	MUST_OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock));
}

static int count_open(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	MUST(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

TEST(a_frame_arrives_whole_with_its_descriptors_closed_on_exec)
{
	int before = count_open(), sock[2], fds[WF_PARCEL_FDS] = { 0, 1, 2, 0 };
	char text[16] = "";
	struct wf_parcel parcel;

	pair(sock);
	CHECK_OK(wf_parcel_send(sock[0], "hello", 6, fds, WF_PARCEL_FDS, 0));
	CHECK_EQ(wf_parcel_recv(sock[1], text, sizeof(text), &parcel, 0), 6);
	CHECK(!strcmp(text, "hello") && !parcel.cut && !parcel.lost);
	CHECK_EQ(parcel.pid, 0);
	MUST_EQ(parcel.count, WF_PARCEL_FDS);
	for (unsigned i = 0; i < parcel.count; i++)
		CHECK(fcntl(parcel.fds[i], F_GETFD) & FD_CLOEXEC);
	wf_parcel_drop(&parcel);
	CHECK_EQ(parcel.count, 0);
	close(sock[0]);
	CHECK_EQ(wf_parcel_recv(sock[1], text, sizeof(text), &parcel, 0), 0);
	CHECK_EQ(wf_parcel_send(sock[1], "x", 1, NULL, 0, 0), -EPIPE);
	close(sock[1]);
	CHECK_EQ(count_open(), before);
}

TEST(a_frame_that_is_too_long_is_known_to_be_cut)
{
	char text[4];
	struct wf_parcel parcel;
	int sock[2];

	pair(sock);
	CHECK_OK(wf_parcel_send(sock[0], "hello", 6, NULL, 0, 0));
	CHECK_EQ(wf_parcel_recv(sock[1], text, sizeof(text), &parcel, 0), 4);
	CHECK(parcel.cut && !parcel.lost);
	CHECK_EQ(wf_parcel_recv(sock[1], text, sizeof(text), &parcel, MSG_DONTWAIT), -EAGAIN);
	close(sock[0]);
	close(sock[1]);
}

/* Sent by hand: wf_parcel_send has no room for so many. */
static void send_many(int sock, int count)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(100 * sizeof(int))];
	} control = { 0 };
	struct iovec piece = { .iov_base = &(char){ 'x' }, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.room };
	struct cmsghdr *c;

	m.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
	c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
	memset(CMSG_DATA(c), 0, (size_t)count * sizeof(int));
	MUST_EQ(sendmsg(sock, &m, 0), 1);
}

TEST(descriptors_beyond_the_room_are_lost_and_not_left_open)
{
	for (int count = 1; count <= 100; count++) {
		int before, sock[2];
		char text[4];
		struct wf_parcel parcel;

		pair(sock);
		before = count_open();
		send_many(sock[0], count);
		CHECK_EQ(wf_parcel_recv(sock[1], text, sizeof(text), &parcel, 0), 1);
		CHECK_EQ(parcel.count, count < WF_PARCEL_FDS ? count : WF_PARCEL_FDS);
		CHECK_EQ(parcel.lost, count > WF_PARCEL_FDS);
		wf_parcel_drop(&parcel);
		CHECK_EQ(count_open(), before);
		close(sock[0]);
		close(sock[1]);
	}
}

TEST(with_credentials_the_room_is_the_same)
{
	int sock[2], one = 1;
	char text[4];
	struct wf_parcel parcel;

	pair(sock);
	MUST_OK(setsockopt(sock[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)));
	for (int count = 1; count <= 80; count++) {
		send_many(sock[0], count);
		CHECK_EQ(wf_parcel_recv(sock[1], text, sizeof(text), &parcel, 0), 1);
		CHECK_EQ(parcel.pid, getpid());
		CHECK_EQ(parcel.uid, geteuid());
		CHECK_EQ(parcel.count, count < WF_PARCEL_FDS ? count : WF_PARCEL_FDS);
		CHECK_EQ(parcel.lost, count > WF_PARCEL_FDS);
		wf_parcel_drop(&parcel);
	}
	close(sock[0]);
	close(sock[1]);
}

TEST(descriptors_this_process_may_not_have_are_lost)
{
	struct rlimit was, none;
	int sock[2], fds[WF_PARCEL_FDS] = { 0, 0, 0, 0 };
	char text[4];
	struct wf_parcel parcel;

	pair(sock);
	MUST_OK(getrlimit(RLIMIT_NOFILE, &was));
	for (rlim_t left = 0; left <= 4; left++) {      /* behind the next few numbers may be something that was open before */
		int free_fd = dup(0);

		close(free_fd);
		none = was;
		none.rlim_cur = (rlim_t)free_fd + left;
		CHECK_OK(wf_parcel_send(sock[0], "x", 1, fds, WF_PARCEL_FDS, 0));
		MUST_OK(setrlimit(RLIMIT_NOFILE, &none));
		CHECK_EQ(wf_parcel_recv(sock[1], text, sizeof(text), &parcel, 0), 1);
		MUST_OK(setrlimit(RLIMIT_NOFILE, &was));
		CHECK_EQ(parcel.count, left);
		CHECK_EQ(parcel.lost, left < WF_PARCEL_FDS);
		wf_parcel_drop(&parcel);
	}
	close(sock[0]);
	close(sock[1]);
}

TEST_MAIN
