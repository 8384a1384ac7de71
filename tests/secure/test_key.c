/* test_key.c - a job's key is read from a file that is private to its owner and holds a key, and from no other. */
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <weft/weft.h>

#include "secure/key.h"

#define DIGITS "00112233445566778899aabbccddeeffFFEEDDCCBBAA99887766554433221100"

static char folder[64], path[128];

static void make(const char *text, size_t n, mode_t mode)
{
	int fd;

	if (!folder[0]) {
		strcpy(folder, "/tmp/weft-key-XXXXXX");
		MUST(mkdtemp(folder));
		snprintf(path, sizeof(path), "%s/key", folder);
	}
	unlink(path);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	MUST(fd >= 0);
	MUST(write(fd, text, n) == (ssize_t)n);
	MUST_OK(fchmod(fd, mode));
	close(fd);
}

/* The words must hold what is wrong, and the file's name. */
static void check_refused(int err, const char *words)
{
	struct wf_key key;

	memset(&key, 1, sizeof(key));
	CHECK_EQ(wf_key_read(path, &key), err);
	CHECK(strstr(weft_last_error(), path));
	if (!strstr(weft_last_error(), words)) {
		printf("# \"%s\" does not say \"%s\"\n", weft_last_error(), words);
		CHECK(false);
	}
	CHECK(key.bytes[0] == 1 && key.bytes[31] == 1);         /* untouched */
}

TEST(a_private_file_with_64_digits_is_a_key)
{
	struct wf_key key;

	make(DIGITS "\n", 65, 0600);
	MUST_OK(wf_key_read(path, &key));
	for (int i = 0; i < 16; i++) {
		CHECK_EQ(key.bytes[i], i * 17);
		CHECK_EQ(key.bytes[31 - i], i * 17);
	}
	wf_key_wipe(&key);
	for (int i = 0; i < 32; i++)
		CHECK_EQ(key.bytes[i], 0);
	make(DIGITS "\n", 65, 0400);
	CHECK_OK(wf_key_read(path, &key));
}

TEST(a_file_others_may_touch_is_refused)
{
	static const mode_t modes[] = { 0640, 0604, 0620, 0602, 0610, 0601, 0644, 0660, 0666, 0700, 0500, 04600, 02600, 01600, 0777 };

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct stat st;

		make(DIGITS "\n", 65, modes[i]);
		MUST_OK(stat(path, &st));
		if ((st.st_mode & 07777) == modes[i])           /* some systems keep no sticky bit on files */
			check_refused(-EACCES, "private to its owner");
	}
}

TEST(a_link_a_folder_and_a_fifo_are_refused)
{
	char real[160];

	make(DIGITS "\n", 65, 0600);
	snprintf(real, sizeof(real), "%s-real", path);
	MUST_OK(rename(path, real));
	MUST_OK(symlink(real, path));
	check_refused(-EACCES, "a symbolic link");
	unlink(path);
	unlink(real);
	MUST_OK(mkdir(path, 0700));
	check_refused(-EACCES, "not a regular file");
	MUST_OK(rmdir(path));
	MUST_OK(mkfifo(path, 0600));
	check_refused(-EACCES, "not a regular file");
	unlink(path);
	check_refused(-ENOENT, strerror(ENOENT));
}

TEST(a_file_of_another_user_is_refused)
{
	make(DIGITS "\n", 65, 0600);
	if (chown(path, 12345, (gid_t)-1) < 0)
		SKIP("only root can give a file to another user");
	check_refused(-EACCES, "belongs to user 12345");
}

TEST(what_is_no_key_is_refused)
{
	char text[66] = DIGITS "\n";

	make(DIGITS, 64, 0600);
	check_refused(-EINVAL, "64 bytes");
	make(DIGITS "\n\n", 66, 0600);
	check_refused(-EINVAL, "66 bytes");
	make("", 0, 0600);
	check_refused(-EINVAL, "0 bytes");
	make(DIGITS " ", 65, 0600);
	check_refused(-EINVAL, "not 64 hexadecimal digits");
	for (int i = 0; i < 64; i++) {
		static const char bad[] = "/:@G`g \n";
		char c = text[i];

		text[i] = bad[i % 9];           /* the last of them is the 0 that ends the string */
		make(text, 65, 0600);
		check_refused(-EINVAL, "not 64 hexadecimal digits");
		text[i] = (char)0xb0;
		make(text, 65, 0600);
		check_refused(-EINVAL, "not 64 hexadecimal digits");
		text[i] = c;
	}
	memset(text, '0', 64);
	make(text, 65, 0600);
	check_refused(-EINVAL, "that is no key");
	unlink(path);
	rmdir(folder);
	folder[0] = 0;
}

TEST_MAIN
