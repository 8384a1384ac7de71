/* bench_proc_rss.c - memory of an idle process in a job of two, bytes (rss-idle).
 * usage: weft run -n 2 bench_proc_rss
 *
 *   raw/process    this program before it joins
 *   weft/joined    joined, and has met nobody
 *   weft/idle      the mark: joined, and has exchanged a message with the other process, so that each has
 *                  mapped the other's memory
 * The whole of it counts: anonymous memory, pages of mapped files (the program, libc, libweft) though others may
 * share them, and of every piece of shared memory mapped here all that exists, touched or reserved, whosever it
 * is. So the two processes together are charged with less than the sum of both figures. PSS, which
 * divides what is shared and knows nothing of what is reserved, is told beside it.
 */
#include "charged.h"
#include "proc.h"

static double all_bytes(void)
{
	return private_bytes() + status_bytes("RssFile:");
}

static double after_rest(void)
{
	usleep(100000);
	return all_bytes();
}

int main(void)
{
	double bare = all_bytes(), joined, talked;
	struct procs p = procs_start(2);

	joined = after_rest();
	procs_meet(&p);
	talked = after_rest();
	if (p.rank == 0) {
		sample("raw/process", "bytes", 0, bare);
		sample("weft/joined", "bytes", 0, joined);
		sample("weft/idle", "bytes", 0, talked);
		sample("weft/idle-pss", "bytes", 0, proc_bytes("/proc/self/smaps_rollup", "Pss:"));
	}
	procs_end(&p);
	return 0;
}
