"""rig.py - several hosts on one machine, for tests: network namespaces on a bridge, and jobs on them.

      host 0          host 1          host 2 ...
   10.77.0.1/24    10.77.0.2/24    10.77.0.3/24       also fd77::1/64 ...
        |               |               |
        +------------ bridge -----------+             in a namespace of its own

networks(n) gives them further ones: on network 1 host 0 is 10.78.0.1, by eth1, and so on.

   TEST WEFT PROGRAM OTHER_PROGRAM [WORD...]          as in tests/run/job.py, whose cases and checks are used here

Everything is named after this process and taken away at the end. A test that was killed cannot do that: what it left is taken away by the
next one. Jobs end with whoever started them.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "run"))
from job import GONE, OTHER, PLAYER, SCALE, WEFT, Skipped, case, check, command_of, steady, wait_for  # noqa: E402,F401
from job import main as run_cases  # noqa: E402

MARK = f"weft{os.getpid()}"
PORTS = 7700
HOSTS = 4
# Where a sanitizer makes all slow, and many threads share few cores, five seconds of silence are nothing.
PATIENCE = {"WEFT_SILENCE_MS": str(int(5000 * float(os.environ["TEST_SLOWER"])))} if "TEST_SLOWER" in os.environ else {}
FULL = SCALE >= 5       # check-long: nothing else runs, so times may be judged
made = []


def scaled(most, least):
    return max(least, int(most * SCALE))


def long():
    """What waits for seconds has no room in a check of minutes."""
    if SCALE < 1:
        raise Skipped("takes longer than its share of time: check-long runs it")


def timed():
    """What is measured is judged only where both cores are the rig's own."""
    if not FULL:
        raise Skipped("measured, so only at full counts: check-long runs it")
    with Busy() as others:
        time.sleep(1)
    if max(others.cores) > 20:
        raise Skipped(f"void: others use the cores, {others.cores} % of them")


def ip(*words, of=None):
    return subprocess.run(["ip", *(["-n", of] if of else []), *words], capture_output=True, text=True)


def must(done):
    if done.returncode != 0:
        raise Skipped(f"no network namespaces here: {' '.join(done.args)}: {done.stderr.strip()}")


def host(i):
    return f"{MARK}h{i}"


def address(i, network=0):
    return f"10.{77 + network}.0.{i + 1}"


def cable(i, network=0):
    """The end of host @i's adapter that lies in the switch."""
    return f"v{i}" if network == 0 else f"v{i}n{network}"


def link(i, state, network=0):
    ip("link", "set", cable(i, network), state, of=MARK + "b")


def hardware(i):
    return f"02:77:00:00:{i // 256:02x}:{i % 256:02x}"


def in_host(i, *command):
    return ["ip", "netns", "exec", host(i), *command]


def add_host(i):
    must(ip("netns", "add", host(i)))
    made.append(host(i))
    must(ip("link", "set", "lo", "up", of=host(i)))
    must(ip("link", "add", "eth0", "netns", host(i), "type", "veth", "peer", "name", f"v{i}", "netns", MARK + "b"))
    must(ip("link", "set", f"v{i}", "master", "bridge0", "up", of=MARK + "b"))
    must(ip("link", "set", "eth0", "address", hardware(i), of=host(i)))
    must(ip("addr", "add", f"{address(i)}/24", "dev", "eth0", of=host(i)))
    must(ip("addr", "add", f"fd77::{i + 1}/64", "dev", "eth0", "nodad", of=host(i)))
    must(ip("link", "set", "eth0", "up", of=host(i)))


def networks(n, hosts=2):
    """The first @hosts are on @n networks; each is made once."""
    rig(hosts)
    for k in range(1, n):
        if ip("link", "show", f"bridge{k}", of=MARK + "b").returncode == 0:
            continue
        must(ip("link", "add", "name", f"bridge{k}", "type", "bridge", of=MARK + "b"))
        must(ip("link", "set", f"bridge{k}", "up", of=MARK + "b"))
        for i in range(hosts):
            must(ip("link", "add", f"eth{k}", "netns", host(i), "type", "veth", "peer", "name", cable(i, k), "netns", MARK + "b"))
            must(ip("link", "set", cable(i, k), "master", f"bridge{k}", "up", of=MARK + "b"))
            must(ip("addr", "add", f"{address(i, k)}/24", "dev", f"eth{k}", of=host(i)))
            must(ip("link", "set", f"eth{k}", "up", of=host(i)))


def introduce(hosts):
    """All know all others' hardware addresses: what the kernel finds out itself it keeps for a thousand pairs, in all namespaces together."""
    for i in range(hosts):
        lines = "".join(f"neigh replace {address(j)} lladdr {hardware(j)} dev eth0 nud permanent\n" for j in range(hosts) if j != i)
        must(subprocess.run(["ip", "-n", host(i), "-batch", "-"], input=lines, capture_output=True, text=True, check=False))


def rig(hosts=HOSTS):
    """The hosts, each made once."""
    if len(made) > max(hosts, HOSTS):
        return
    if os.getuid() != 0 or not shutil.which("ip"):
        raise Skipped("needs root and ip")
    try:
        if not made:
            sweep()
            must(ip("netns", "add", MARK + "b"))
            made.append(MARK + "b")
            must(ip("link", "set", "lo", "up", of=MARK + "b"))
            must(ip("link", "add", "name", "bridge0", "type", "bridge", of=MARK + "b"))
            must(ip("link", "set", "bridge0", "up", of=MARK + "b"))
        for i in range(len(made) - 1, max(hosts, HOSTS)):
            add_host(i)
        if hosts > 16:
            introduce(hosts)
    except Skipped:
        unmake()
        raise


def remove(name):
    for pid in ip("netns", "pids", name).stdout.split():
        kill(int(pid), signal.SIGKILL)
    ip("netns", "del", name)


def unmake():
    for name in made:
        remove(name)
    made.clear()


def sweep():
    """What tests have left that are not there any more."""
    for name in ip("netns", "list").stdout.split():
        of = re.fullmatch(r"weft(\d+)(b|h\d+)", name)
        if of and not os.path.exists(f"/proc/{of[1]}"):
            remove(name)
    for name in os.listdir(tempfile.gettempdir()):
        of = re.fullmatch(r"weft(\d+)[a-z0-9_]{8}", name)
        if of and not os.path.exists(f"/proc/{of[1]}"):
            shutil.rmtree(os.path.join(tempfile.gettempdir(), name), ignore_errors=True)


def kill(pid, sig):
    try:
        os.kill(pid, sig)
        return True
    except ProcessLookupError:
        return False


def pids(i, program=None):
    """Processes of host @i; those that run @program."""
    found = [int(pid) for pid in ip("netns", "pids", host(i)).stdout.split()]
    return [pid for pid in found if not program or os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(program)]


def write_key(path, digits="5a" * 32, mode=0o600):
    with open(path, "w", encoding="ascii") as file:
        file.write(digits + "\n")
    os.chmod(path, mode)


def sent_bytes(i, network=0):
    """Bytes that host @i has sent over its adapter."""
    done = subprocess.run(in_host(i, "cat", f"/sys/class/net/eth{network}/statistics/tx_bytes"), capture_output=True, text=True)
    return int(done.stdout or 0)


def tc(name, *words):
    if not shutil.which("tc"):
        raise Skipped("no tc")
    done = subprocess.run(["ip", "netns", "exec", name, "tc", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise Skipped(f"no shaping here: tc {' '.join(words)}: {done.stderr.strip()}")


class Shaped:
    """While it lasts each of @hosts gets no more than @rate, as from a switch, and with @out sends no more."""

    def __init__(self, rate, hosts, out=False, network=0):
        rig()
        self.places = [(MARK + "b", cable(i, network)) for i in hosts] + [(host(i), f"eth{network}") for i in hosts if out]
        self.rate = rate

    def change(self, rate):
        for name, device in self.places:
            tc(name, "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", "256kb", "limit", "1mb")

    def __enter__(self):
        self.change(self.rate)
        return self

    def __exit__(self, *_):
        for name, device in self.places:
            subprocess.run(["ip", "netns", "exec", name, "tc", "qdisc", "del", "dev", device, "root"], capture_output=True)


class Busy:
    """How much of each core was used between the beginning and the end, in per cent, by whomever."""

    def __enter__(self):
        self.before = self.look()
        return self

    def __exit__(self, *_):
        self.cores = [round(100 * (1 - (idle - was_idle) / max(1, total - was)))
                      for (total, idle), (was, was_idle) in zip(self.look(), self.before)]

    @staticmethod
    def look():
        with open("/proc/stat", encoding="ascii") as file:
            lines = [[int(n) for n in line.split()[1:9]] for line in file if re.match(r"cpu\d", line)]
        return [(sum(line), line[3] + line[4]) for line in lines]


class Job:
    """One `weft run` on each host, and what became of them."""

    under_way = []      # one, or none; a case that broke has left its own

    def __init__(self, program, hosts=2, each=1, six=False, key=None, environment=None, options=(), nets=1, second=None):
        networks(nets, hosts)
        for job in self.under_way[:]:
            job.end(0)
        self.under_way.append(self)
        self.files = tempfile.TemporaryDirectory(prefix=MARK)
        self.hosts = hosts
        text = ",".join(f"[fd77::{i + 1}]:{each}" if six else "+".join([address(i, k) for k in range(nets)] + ([second] if second else [])) + f":{each}" for i in range(hosts))
        self.runs = [self.start(i, text, program, key[i] if key else "5a" * 32, options, environment or {}) for i in range(hosts)]

    def path(self, name):
        return os.path.join(self.files.name, name)

    def start(self, i, text, program, key, options, environment):
        write_key(self.path(f"key{i}"), key)
        os.mkdir(self.path(f"tmp{i}"))
        command = in_host(i, "setpriv", "--pdeathsig", "KILL", WEFT, "run", "--hosts", text, "--host", str(i), "--ports", str(PORTS),
                          "--key", self.path(f"key{i}"), *options, *program)
        with open(self.path(f"out{i}"), "wb") as out, open(self.path(f"err{i}"), "wb") as err:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, process_group=0,
                                    env={**os.environ, **PATIENCE, "TMPDIR": self.path(f"tmp{i}"), **environment})

    def said(self, name):
        with open(self.path(name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def processes(self, i, program=PLAYER):
        return pids(i, program)

    def met(self):
        """Waits until host 0 has a connection with another."""
        def connected():
            return subprocess.run(in_host(0, "ss", "-tnH", "state", "established"), capture_output=True, text=True).stdout
        if not shutil.which("ss"):
            raise Skipped("no ss")
        return check(wait_for(connected, 20), "no connection", self.said("err0"))

    def over(self):
        return all(run.poll() is not None for run in self.runs)

    def end(self, seconds=60):
        """[(exit code, out, err)] of each host; nothing of the job is there any more."""
        self.under_way.remove(self)
        ends, until = [], time.monotonic() + seconds
        for i, run in enumerate(self.runs):
            try:
                code = run.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                run.kill()                              # its agent ends the rest
                run.wait()
                code = "no end"
            ends.append((code, self.said(f"out{i}"), self.said(f"err{i}")))
        self.nothing_left()
        return ends

    def nothing_left(self):
        for i in range(self.hosts):
            check(wait_for(lambda i=i: not pids(i), GONE), f"left on host {i}", [command_of(pid) for pid in pids(i)])
            for pid in pids(i):
                kill(pid, signal.SIGKILL)
            check(not os.listdir(self.path(f"tmp{i}")), f"files left by host {i}", os.listdir(self.path(f"tmp{i}")))
        self.files.cleanup()


def talked(ends, each):
    """All said what they had to say: how many messages there were."""
    for code, out, err in ends:
        check(code == 0 and len(re.findall(r"^talk: \d+ sent, \d+ bytes, fini 0$", out, re.M)) == each, ends)
    return sum(int(n) for _, out, _ in ends for n in re.findall(r"(\d+) sent", out))


def ended(sig, _frame):
    sys.exit(128 + sig)         # by way of main's finally


def main():
    signal.signal(signal.SIGTERM, ended)
    try:
        code = run_cases()
    finally:
        unmake()
    sys.exit(code)
