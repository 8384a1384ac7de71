"""job.py - what the tests of `weft run` have in common.

   TEST WEFT PLAYER OTHER_PLAYER [WORD...]

Every case is a sentence. After each one nothing may be left: no process that was started by it (each carries a mark in its
environment), and no descriptor here. TEST_SCALE multiplies counts; words select cases by what they contain.

A time measured while the machine itself stood still says nothing: within() and steady() void it, and the case is played again. Too late on a
machine that gave what was asked is a failure at once, and so is a case that is void each time: it has not shown what it says, and a weft that is slow each
time is likelier than a machine that spoils ten attempts where one would do.
"""
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import uuid

from witness import SHARE, Witness

# Whoever started the tests in the background may have had these ignored; what is tested here is how they arrive.
for _name in ("SIGINT", "SIGQUIT", "SIGHUP", "SIGTERM", "SIGTSTP", "SIGTTIN", "SIGTTOU"):
    if signal.getsignal(getattr(signal, _name)) == signal.SIG_IGN:
        signal.signal(getattr(signal, _name), signal.SIG_DFL)

WEFT, PLAYER, OTHER = (os.path.abspath(path) for path in sys.argv[1:4])
SCALE = float(os.environ.get("TEST_SCALE") or 1)
LIMIT = 60              # seconds a job may take before it counts as hung
GONE = 5                # seconds within which everything is gone after a kill
MARK = "WEFT_TEST_MARK"
TRIES = 10              # of a case that is void
TRIED = 60              # seconds after which it is not tried again

cases = []
wrong = []
voids = []              # why this attempt does not count


class Skipped(Exception):
    pass


class Void(Exception):
    """This attempt goes no further, and does not count."""


def case(function):
    cases.append(function)
    return function


def told(line, *about):
    return f"line {line}: {' '.join(repr(thing) for thing in about)}"


def check(what, *about):
    if not what:
        wrong.append(told(sys._getframe(1).f_lineno, *about))
    return what


class within:
    """with within(seconds): what takes no longer, if the machine lets it. Who knows better when that began or ended sets it."""

    def __init__(self, bound, *about):
        self.bound, self.about, self.line = bound, about, sys._getframe(1).f_lineno
        self.witness = Witness()

    def __enter__(self):
        self.witness.__enter__()
        self.began, self.ended = time.monotonic(), None
        return self

    def __exit__(self, broken, *_):
        ended = self.ended or time.monotonic()
        self.witness.__exit__()
        if broken or ended - self.began < self.bound:
            return
        took = self.witness.took(self.began, ended)
        line = told(self.line, *self.about, f"took {ended - self.began:.2f} s of {self.bound:g}", machine(took))
        (voids if max(took.values()) >= SHARE * self.bound else wrong).append(line)


class steady(contextlib.ContextDecorator):
    """with steady(seconds), or @steady(seconds): for what has deadlines of its own, and does rightly another thing after a standstill of @seconds.
    What is wrong in there is void if the machine came near that."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __enter__(self):
        self.before, self.witness = len(wrong), Witness()
        self.witness.__enter__()

    def __exit__(self, kind, *_):
        self.witness.__exit__()
        if kind and not issubclass(kind, Exception) or kind in (Skipped, Void):
            return
        bad = wrong[self.before:] + (traceback.format_exc().splitlines()[-1:] if kind else [])
        still = self.witness.stood_still(self.seconds)
        if bad and still >= SHARE * self.seconds:
            del wrong[self.before:]
            voids.extend(f"the machine stood still for {still:.2f} of {self.seconds:g} s: {line}" for line in bad)
            if kind:
                raise Void


def machine(took):
    return "of which the machine: " + ", ".join(f"{how} {seconds:.2f}" for how, seconds in took.items())


def scaled(count):
    return max(1, int(count * SCALE))


def marked(mark):
    """pids of the processes that carry @mark, zombies not counted."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if f"{MARK}={mark}".encode() in file.read().split(b"\0"):
                        found.append(int(entry))
            except OSError:
                pass
    return found


def wait_for(condition, seconds=LIMIT):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


class Job:
    """A job under way: `weft run` with the output read beside it."""

    def __init__(self, *command, stdin=subprocess.DEVNULL, environment=None, **how):
        self.mark = uuid.uuid4().hex
        self.out, self.err = b"", b""
        self.process = subprocess.Popen([WEFT, "run", *map(str, command)], stdin=stdin, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, MARK: self.mark, **(environment or {})},
                                        **how)
        self.readers = [threading.Thread(target=self.read, args=name, daemon=True)
                        for name in (("out", self.process.stdout), ("err", self.process.stderr))]
        for reader in self.readers:
            reader.start()

    def read(self, name, stream):
        while data := os.read(stream.fileno(), 65536):
            setattr(self, name, getattr(self, name) + data)

    def lines(self):
        return self.out.decode().splitlines()

    def says(self, *lines):
        """Waits until all @lines were printed."""
        return check(wait_for(lambda: all(line in self.lines() for line in lines)), lines, self.out, self.err)

    def agent(self):
        """The agent's pid, once it is there: the launcher's child."""
        def children():
            return [pid for pid in marked(self.mark) if parent_of(pid) == self.process.pid]
        wait_for(children)
        return children()[0]

    def end(self, seconds=LIMIT):
        """The exit code; None: it had to be killed."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
            check(False, "no end", self.out[-2000:], self.err[-2000:])
            for pid in marked(self.mark):
                os.kill(pid, signal.SIGKILL)
            self.process.wait()
        self.nothing_left()
        for reader in self.readers:
            reader.join(LIMIT)
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def nothing_left(self):
        if not wait_for(lambda: not marked(self.mark), GONE):
            left = marked(self.mark)
            check(False, "left behind", [(pid, command_of(pid)) for pid in left])
            for pid in left:
                os.kill(pid, signal.SIGKILL)


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return None


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return None


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode()
    except OSError:
        return "?"


def run(*command, **how):
    """(exit code, output, errors) of a job, as text."""
    job = Job(*command, **how)
    code = job.end()
    return code, job.out.decode(), job.err.decode()


def play(count, *ops, **how):
    return run("-n", count, PLAYER, *ops, **how)


def descriptors():
    return sorted(fd for fd in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{fd}"))


def attempt(function):
    """Plays a case; why it was skipped."""
    before, skipped = descriptors(), ""
    wrong.clear()
    voids.clear()
    try:
        function()
    except Skipped as why:
        skipped = f" # SKIP {why}"
    except Void:
        pass
    except Exception:       # a case that breaks has failed, and the next is run
        wrong.extend(traceback.format_exc().splitlines())
    after = descriptors()
    if len(after) > len(before):
        wrong.append(f"descriptors left: {after} where {before} were")
    return skipped


def play_case(function):
    """Plays it until it counts; why it was skipped."""
    began = time.monotonic()
    for tries in range(1, TRIES + 1):
        skipped = attempt(function)
        for line in voids[:20]:
            print(f"# void: {function.__name__}: {line}", flush=True)
        if wrong or not voids:
            return skipped
        if time.monotonic() - began > TRIED:
            break
    wrong.append(f"the machine was never quiet enough: void {tries} times")
    return ""


def main():
    words, failed = sys.argv[4:], 0
    chosen = [function for function in cases if not words or any(word in function.__name__ for word in words)]
    for number, function in enumerate(chosen, 1):
        skipped = play_case(function)
        for line in wrong[:20]:
            print("#", line)
        failed += bool(wrong)
        print("not ok" if wrong else "ok", f"{number} - {function.__name__}{skipped}", flush=True)
    print(f"1..{len(chosen)}")
    return 1 if failed else 0
