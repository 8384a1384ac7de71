"""witness.py - how the machine treated us while something was timed.

What took too long took too long only if the machine gave what was asked. A hypervisor that runs something else, or more who want to run than
there are cores, make late whatever is timed; of weft that says nothing. What a witness knows of an interval:

  stolen   what the hypervisor kept of one core while somebody here wanted to run (/proc/stat)
  late     by how much naps, one after the other on each core, were late: this sees a machine that stood still and does not say so
  crowded  how long somebody waited for a core (/proc/pressure/cpu), at most what others than we had of the last one: a job that crowds itself is
           not the machine's doing, nor is a neighbour that leaves it a core

Each is an estimate of the same thing, so the largest counts. What a job does to itself must show in none of them, or what makes it slow would
be its own excuse. (A host that gives a guest less than its cores steals from who uses them; that cannot be told apart, and fails with the tenth.)
"""
import os
import threading
import time

SHARE = 0.25            # of a bound: who took that much of it from us may be why it was missed
NAP = 0.01
LATE = 0.02             # the scheduler's turns, and ours in this interpreter, are shorter
LOOK = 10               # naps: reading /proc/stat takes a millisecond
CORES = 8               # are watched, of those that there are
TICK = os.sysconf("SC_CLK_TCK")


def of_cores():
    """For each core what was stolen, and what was used by all: seconds since the machine was started."""
    stolen, used = [], 0
    with open("/proc/stat", encoding="ascii") as file:
        next(file)
        for line in file:
            if not line.startswith("cpu"):
                break
            words = [int(word) / TICK for word in line.split()[1:9]]    # user nice system idle iowait irq softirq steal
            stolen.append(words[7])
            used += sum(words[:3]) + sum(words[5:7])
    return stolen, used


def pressure():
    """Seconds in which somebody waited for a core; 0 where the kernel does not say."""
    try:
        with open("/proc/pressure/cpu", encoding="ascii") as file:
            return int(file.readline().rsplit("total=", 1)[1]) / 1e6
    except (OSError, ValueError, IndexError):
        return 0


def used_by_us():
    """Seconds of the cores that this process has had, and all that stem from it: those who are there, and those who were waited for."""
    times, parents = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="latin-1") as file:
                    words = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(entry)], times[int(entry)] = int(words[1]), sum(map(int, words[11:15])) / TICK
    ours, more = set(), {os.getpid()}
    while more:
        ours |= more
        more = {pid for pid, parent in parents.items() if parent in more} - ours
    return sum(times.get(pid, 0) for pid in ours)


def overlap(some, since, until):
    return sum(max(0, min(to, until) - max(at, since)) for at, to in some)


class Witness:
    """Watches while it lasts."""

    def __enter__(self):
        self.over = False
        self.looks = []                 # (moment, stolen of each core, pressure)
        self.late = {core: [] for core in sorted(os.sched_getaffinity(0))[:CORES]}      # (due, awake)
        self.others = -self.used_by_others()
        self.began = time.monotonic()
        self.look()
        self.nappers = [threading.Thread(target=self.nap, args=(core, i == 0), daemon=True) for i, core in enumerate(self.late)]
        for napper in self.nappers:
            napper.start()
        return self

    def __exit__(self, *_):
        self.over = True
        for napper in self.nappers:
            napper.join()
        self.look()
        self.others = (self.others + self.used_by_others()) / (time.monotonic() - self.began)   # cores

    @staticmethod
    def used_by_others():
        return of_cores()[1] - used_by_us()

    def look(self):
        self.looks.append((time.monotonic(), of_cores()[0], pressure()))

    def nap(self, core, looks):
        os.sched_setaffinity(0, [core])         # of this thread
        naps = 0
        while not self.over:
            due = time.monotonic() + NAP
            time.sleep(NAP)
            awake = time.monotonic()
            if awake > due + LATE:
                self.late[core].append((due, awake))
            naps += 1
            if looks and naps % LOOK == 0:
                self.look()

    def around(self, since, until):
        """The last look before an interval, and the first one after it."""
        before = [look for look in self.looks if look[0] <= since][-1:] or self.looks[:1]
        after = [look for look in self.looks if look[0] >= until][:1] or self.looks[-1:]
        return before[0], after[0]

    def took(self, since, until):
        """Seconds of that interval, as far as it is watched, in which the machine kept from us what was asked: {how: seconds}."""
        (_, stolen, waited), (_, stolen_then, waited_then) = self.around(since, until)
        last_core = (self.others - len(stolen) + 1) * (until - since)
        return {"stolen": max(then - now for now, then in zip(stolen, stolen_then)),
                "late": max(overlap(some, since, until) for some in self.late.values()),
                "crowded": max(0, min(waited_then - waited, last_core))}

    def stood_still(self, seconds):
        """The most that it took within @seconds, whenever that was; who is stopped for a moment is not hindered by a crowd."""
        moments = {look[0] for look in self.looks} | {due for some in self.late.values() for due, _ in some}
        return max(max(took["stolen"], took["late"]) for took in (self.took(moment, moment + seconds) for moment in moments))

    def longest(self):
        """The longest that a core stood still at one go."""
        return max((awake - due for some in self.late.values() for due, awake in some), default=0)
