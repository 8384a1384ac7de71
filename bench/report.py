#!/usr/bin/env python3
"""report.py - from samples to marks, a table in CSV and a plot.

usage: report.py SAMPLES --csv FILE --svg FILE --commit TEXT --names NAME...

Samples are the lines the programs of bench/ print, `SERIES METRIC SIZE VALUE`, and `skip NAME REASON`.
The k-th sample of weft is held against the k-th sample of its raw limit, which was taken just before or after it
in the same program; a mark's value is the median of these ratios, its spread the distance between their quartiles.
Lines printed: `mark NAME VALUE LIMIT RAW VERDICT`, where RAW is the median of what it is measured against and
VERDICT is ok, short or skip (the reason on an `info` line before), and `info ...` for all else.
Exit status: 0, or 1 if a mark that was asked for has neither samples nor a reason.
"""
import argparse
import csv
import html
import math
import os
import platform
import statistics
import subprocess
import sys

MIB = 1 << 20
UNITS = {"lat": "ns", "rate": "thousand/s", "bw": "MB/s"}
NETWORKS = ("tcp", "veth-tcp")

# What a series is held against where it is not a mark: (series, metric) -> series.
RAW_OF = {
    ("weft/send", "lat"): "raw/ring", ("weft/posted", "lat"): "raw/ring-again", ("weft/buf", "lat"): "raw/touch",
    ("weft/send", "rate"): "raw/ring", ("weft/posted", "rate"): "raw/ring-again",
    ("weft/pairs-500", "lat"): "raw/futex-500", ("weft/pairs-500-other", "lat"): "raw/futex-500-other",
    ("weft/park", "lat"): "raw/futex", ("weft/park-turn", "lat"): "raw/futex-turn",
    ("weft/park-default", "lat"): "raw/futex-turn",
    ("weft/send-1of8", "rate"): "raw/ring-1of8", ("weft/send-8pairs", "rate"): "raw/ring-8pairs",
    ("weft/posted", "ends"): "weft/send", ("weft/queue", "ends"): "weft/send",
    ("weft/callback", "ends"): "weft/send", ("weft/handoff", "ends"): "weft/send",
    ("weft/senders-2", "rate"): "weft/senders-1", ("weft/senders-4", "rate"): "weft/senders-1",
    ("weft/senders-8", "rate"): "weft/senders-1",
    ("weft/proc-send", "lat"): "raw/proc-ring", ("weft/proc-posted", "lat"): "raw/proc-ring-again",
    ("weft/proc-buf", "lat"): "raw/proc-touch", ("weft/proc-cold", "lat"): "raw/proc-cold",
    ("weft/proc-send", "rate"): "raw/proc-ring", ("weft/proc-posted", "rate"): "raw/proc-ring-again",
    ("weft/pairs-4", "rate"): "weft/pairs-1", ("weft/pairs-16", "rate"): "weft/pairs-1",
    ("weft/procs-8", "lat"): "raw/futex-8", ("weft/procs-8-fifo", "lat"): "raw/futex-8-fifo",
    ("weft/idle", "bytes"): "raw/process", ("weft/joined", "bytes"): "raw/process",
}
for _net in NETWORKS:
    RAW_OF.update({
        (f"weft/{_net}-send", "lat"): f"raw/{_net}", (f"weft/{_net}-block", "lat"): f"raw/{_net}-block",
        (f"weft/{_net}-send", "rate"): f"raw/{_net}-packed", (f"weft/{_net}-posted", "rate"): f"raw/{_net}-packed-again",
        (f"weft/{_net}-posted", "bw"): f"raw/{_net}", (f"weft/{_net}-secure", "bw"): f"raw/{_net}-clear",
        (f"weft/{_net}-default", "lat"): f"raw/{_net}-block", (f"raw/{_net}-epoll", "lat"): f"raw/{_net}-asleep",
        **{(f"raw/{_net}-{what}", "lat"): f"raw/{_net}-plain" for what in ("head", "kept", "code")},
    })


class Samples:
    def __init__(self, path):
        self.values, self.skips = {}, {}
        with open(path) as lines:
            for line in lines:
                word = line.split()
                if word[:1] == ["skip"] and len(word) > 2:
                    self.skips[word[1]] = " ".join(word[2:])
                elif len(word) == 4:
                    self.values.setdefault((word[0], word[1], int(word[2])), []).append(float(word[3]))

    def get(self, series, metric, size):
        return self.values.get((series, metric, size), [])


def spread(values):
    """Distance between the quartiles as a share of the median."""
    if len(values) < 2 or not statistics.median(values):
        return 0.0
    q = statistics.quantiles(values, n=4, method="inclusive")
    return (q[2] - q[0]) / abs(statistics.median(values))


class Mark:
    """One mark: ratios (or plain figures) in pairs with what they are measured against.

    @doubt: why it does not count in this run; @fault: what else it asks for and has not got.
    """

    def __init__(self, name, limit, values, raws, note="", doubt=None, fault=None):
        self.name, self.limit, self.values, self.note, self.doubt = name, limit, values, note, doubt
        self.fault = fault
        self.value = statistics.median(values) if values else None
        self.raw = statistics.median(raws) if raws else None
        self.spread = spread(values)

    def met(self):
        bound = float(self.limit[2:])
        if self.fault:
            return False
        return self.value <= bound if self.limit.startswith("<=") else self.value >= bound

    def verdict(self):
        if self.value is None:
            return "skip"
        if not self.met():
            return "short"
        return "skip" if self.doubt else "ok"


def number(v):
    return "-" if v is None else f"{v:.0f}" if abs(v) >= 1000 else f"{v:.1f}" if abs(v) >= 100 else f"{v:.2f}"


def ratios(own, raw):
    pairs = list(zip(own, raw))
    return [a / b for a, b in pairs], [b for _, b in pairs]


def ratio_mark(s, name, limit, own, raw, metric, doubt=None, size=8):
    a, b = s.get(own, metric, size), s.get(raw, metric, size)
    note = f"weft {number(statistics.median(a))}, raw {number(statistics.median(b))} {UNITS[metric]}" if a and b else ""
    return Mark(name, limit, *ratios(a, b), note, doubt)


def handover_mark(s, name, lat8, where=""):
    """Against weft's own 8 B and the raw reads: what touching the pages adds to a raw ring."""
    own, send = s.get(f"weft/{where}buf", "lat", MIB), s.get(f"weft/{where}send", "lat", 8)
    touch, ring = s.get(f"raw/{where}touch", "lat", MIB), s.get(f"raw/{where}ring", "lat", 8)
    base = [w + t - r for w, t, r in zip(send, touch, ring)]
    note = ""
    if own and base:
        note = f"weft {number(statistics.median(own))} ns; weft's 8 B and raw reads {number(statistics.median(base))} ns"
    return Mark(name, "<=1.5", *ratios(own, base), note, own_doubt(lat8))


def own_doubt(mark):
    """A mark against weft's own figure counts only where that figure meets its own."""
    return None if mark.verdict() == "ok" else f"weft's own figure, which it is measured against, is short of {mark.name}"


def match_mark(s, say):
    """The worst of the eight kinds counts."""
    worst = Mark("match-100k", "<=2.0", [], [])
    for series in sorted({k[0] for k in s.values if k[1] == "match"}):
        few, many = s.get(series, "match", 10), s.get(series, "match", 100000)
        values, raws = ratios(many, few)
        if not values:
            continue
        note = f"worst is {series[6:]}: {number(statistics.median(many))} ns, with 10: {number(statistics.median(few))} ns"
        m = Mark("match-100k", "<=2.0", values, raws, note)
        say(f"info match-100k {series[6:]}: {m.value:.2f} ({number(statistics.median(many))} ns with 100,000, "
            f"{number(statistics.median(few))} ns with 10, spread {100 * m.spread:.0f} %)")
        if worst.value is None or m.value > worst.value:
            worst = m
    return worst


def awake_doubt(s, series):
    """A mark of sleeping receivers counts only where they slept."""
    sleeps = s.get(series, "sleeps", 8)
    if sleeps and statistics.median(sleeps) < 0.9:
        return f"not every receiver slept: {statistics.median(sleeps):.2f} of them"
    return None


def park_mark(s):
    return ratio_mark(s, "park-8", "<=1.1", "weft/park", "raw/futex", "lat", awake_doubt(s, "weft/park"))


def scale_mark(s):
    one, _ = ratios(s.get("weft/send-1of8", "rate", 8), s.get("raw/ring-1of8", "rate", 8))
    raw = s.get("raw/ring-8pairs", "rate", 8)
    eight, _ = ratios(s.get("weft/send-8pairs", "rate", 8), raw)
    doubt = "one pair alone is short of thread-rate-8" if one and statistics.median(one) < 0.5 else None
    note = ""
    if one and eight:
        note = f"weft/raw with one pair {statistics.median(one):.2f}, with eight {statistics.median(eight):.2f}"
    return Mark("scale-16", ">=0.85", [e / o for e, o in zip(eight, one)], raw, note, doubt)


def stream_mark(s, rate8):
    own, base = s.get("weft/stream", "rate", 65536), s.get("weft/proc-send", "rate", 8)
    note = ""
    if own and base:
        note = f"{number(statistics.median(own))} thousand/s of 64 KiB, 8 B messages {number(statistics.median(base))}"
    return Mark("handover-stream", ">=0.6", *ratios(own, base), note, own_doubt(rate8))


def pairs_mark(s, rate8):
    one, many = s.get("weft/pairs-1", "rate", 8), s.get("weft/pairs-16", "rate", 8)
    fault = f"spread {100 * spread(many):.0f} %, more than 20" if spread(many) > 0.2 else None
    note = ""
    if one and many:
        note = (f"{number(statistics.median(many))} thousand/s over 16 pairs, spread {100 * spread(many):.0f} %; "
                f"one pair {number(statistics.median(one))}")
    return Mark("pairs-16", ">=0.8", *ratios(many, one), note, own_doubt(rate8), fault)


def over_mark(s):
    late = s.get("weft/procs-8", "p999", 8)
    fault = None
    if late and statistics.median(late) > 1e6:
        fault = f"p99.9 of a turn is {number(statistics.median(late) / 1e6)} ms, more than 1"
    m = ratio_mark(s, "over-8", "<=0.3", "weft/procs-8", "raw/futex-8", "lat")
    m.fault = fault
    if late:
        m.note += f"; p99.9 of a turn {number(statistics.median(late) / 1000)} us"
    return m


def process_marks(s):
    lat8 = ratio_mark(s, "proc-lat-8", "<=1.20", "weft/proc-send", "raw/proc-ring", "lat")
    rate8 = ratio_mark(s, "rate-8", ">=0.5", "weft/proc-send", "raw/proc-ring", "rate")
    sizes = [("64", 64, "1.15"), ("256", 256, "1.15"), ("4k", 4096, "1.15"), ("64k", 65536, "1.10"), ("1m", MIB, "1.10")]
    idle = [v / MIB for v in s.get("weft/idle", "bytes", 0)]
    bare = [v / MIB for v in s.get("raw/process", "bytes", 0)]
    return [
        lat8,
        ratio_mark(s, "proc-lat-8-posted", "<=1.35", "weft/proc-posted", "raw/proc-ring-again", "lat"),
        *[ratio_mark(s, f"proc-lat-{name}", f"<={limit}", "weft/proc-send", "raw/proc-ring", "lat", size=size)
          for name, size, limit in sizes],
        rate8,
        ratio_mark(s, "rate-8-window", ">=0.4", "weft/proc-posted", "raw/proc-ring-again", "rate"),
        handover_mark(s, "handover-1m-procs", lat8, "proc-"),
        stream_mark(s, rate8),
        ratio_mark(s, "handover-64m-cold", "<=1", "weft/proc-cold", "raw/proc-cold", "lat", size=64 * MIB),
        pairs_mark(s, rate8),
        over_mark(s),
        Mark("rss-idle", "<=4", idle, bare, "MiB, the program itself and libc included"),
    ]


def tcp_lat_mark(s, name, limit, series, raw, size, doubt=None):
    """That the bytes went over TCP was asserted in the run; how many they were is told."""
    m = ratio_mark(s, name, f"<={limit}", series, raw, "lat", doubt, size)
    wire = s.get(series, "wire", size)
    if wire:
        m.note += f"; {number(statistics.median(wire))} B on its TCP connections for each message"
    return m


def secure_mark(s, net):
    """One core encrypts, then sends: as if the times of both added up."""
    own = s.get(f"weft/{net}-secure", "bw", MIB)
    tcp, aes = s.get(f"raw/{net}-clear", "bw", MIB), s.get(f"raw/{net}-aes-gcm", "bw", MIB)
    base = [1 / (1 / t + 1 / a) for t, a in zip(tcp, aes)]
    note = ""
    if own and base:
        note = (f"weft {number(statistics.median(own))} MB/s, raw {number(statistics.median(base))} MB/s, of raw TCP "
                f"{number(statistics.median(tcp))} and AES-GCM {number(statistics.median(aes))}")
    return Mark(f"{net}-secure-1m", ">=0.85", *ratios(own, base), note)


def tcp_marks(s, net):
    sizes = [("8", 8, "1.06"), ("16k", 16384, "1.08"), ("64k", 65536, "1.06")]
    return [
        *[tcp_lat_mark(s, f"{net}-lat-{name}", limit, f"weft/{net}-send", f"raw/{net}", size) for name, size, limit in sizes],
        tcp_lat_mark(s, f"{net}-block-8", "1.15", f"weft/{net}-block", f"raw/{net}-block", 8, awake_doubt(s, f"weft/{net}-block")),
        ratio_mark(s, f"{net}-bw-1m", ">=0.98", f"weft/{net}-posted", f"raw/{net}", "bw", size=MIB),
        ratio_mark(s, f"{net}-rate-8", ">=0.6", f"weft/{net}-send", f"raw/{net}-packed", "rate"),
        secure_mark(s, net),
    ]


def all_marks(s, say):
    lat8 = ratio_mark(s, "thread-lat-8", "<=1.20", "weft/send", "raw/ring", "lat")
    idle, port = s.get("weft/idle", "cpu", 0), s.get("weft/port", "bytes", 10000)
    return [
        lat8,
        ratio_mark(s, "thread-lat-8-posted", "<=1.35", "weft/posted", "raw/ring-again", "lat"),
        ratio_mark(s, "thread-rate-8", ">=0.5", "weft/send", "raw/ring", "rate"),
        ratio_mark(s, "thread-rate-8-window", ">=0.4", "weft/posted", "raw/ring-again", "rate"),
        handover_mark(s, "handover-1m", lat8),
        match_mark(s, say),
        ratio_mark(s, "over-1000", "<=0.6", "weft/pairs-500", "raw/futex-500", "lat"),
        park_mark(s),
        Mark("idle-cpu", "<=1", idle, [100.0] if idle else [], "% of a core"),
        Mark("port-memory", "<=4096", port, s.get("raw/thread", "bytes", 10000), "B more than a bare thread, each"),
        scale_mark(s),
        *process_marks(s),
        *[m for net in NETWORKS for m in tcp_marks(s, net)],
    ]


def print_marks(s, marks, names, say):
    broken = 0
    count = {"ok": 0, "short": 0, "skip": 0}
    for m in marks:
        if m.name not in names:
            continue
        if m.value is None:
            reason = s.skips.get(m.name)
            broken += reason is None
            say(f"info {m.name}: {reason or 'no samples, its program broke'}")
        else:
            say(f"info {m.name}: {m.note}; spread {100 * m.spread:.1f} % over {len(m.values)}")
            if m.fault:
                say(f"info {m.name}: {m.fault}")
            if m.verdict() == "skip":
                say(f"info {m.name}: does not count in this run: {m.doubt}")
        count[m.verdict()] += 1
        say(f"mark {m.name} {number(m.value)} {m.limit} {number(m.raw)} {m.verdict()}")
    say(f"info marks: {count['ok']} ok, {count['short']} short, {count['skip']} skipped")
    return broken


def print_beside(s, names, say):
    """What is no mark but is told beside them."""
    def median(series, metric, size):
        v = s.get(series, metric, size)
        return statistics.median(v) if v else None

    def share(series, metric, size, unit):
        own, base = median(series, metric, size), median(RAW_OF[series, metric], metric, size)
        if own is not None and base:
            say(f"info {series} {metric}: {number(own)} {unit}, {own / base:.2f} of {RAW_OF[series, metric]}")

    def table(title, where, columns, over="   send/ring  buf/touch"):
        """Latency over size; the columns in which weft stands beside its limit, and their ratios, under @over."""
        series = [c.replace("/", f"/{where}") for c in columns]
        beside = [(i, series.index(RAW_OF[c, "lat"])) for i, c in enumerate(series) if (c, "lat") in RAW_OF]
        say(f"info {title}, ns: {'size':>9} " + " ".join(f"{c:>12}" for c in columns) + over)
        for size in sorted({k[2] for k in s.values if k[1] == "lat" and k[0] in series}):
            v = [median(c, "lat", size) for c in series]
            q = [v[a] / v[b] if v[a] and v[b] else None for a, b in beside]
            say(f"info {title}, ns: {size:>9} " + " ".join(f"{number(x):>12}" for x in v) +
                "   " + "  ".join(f"{number(x):>9}" for x in q))

    def floor(net):
        """What bare sockets take for what weft has to do: shares of what they take without."""
        def beside(what, size):
            own = s.get(f"raw/{net}-{what}", "lat", size)
            r, _ = ratios(own, s.get(RAW_OF[f"raw/{net}-{what}", "lat"], "lat", size))
            return statistics.median(r) if r else None
        for size in (8, 16384, 65536):
            if beside("head", size):
                say(f"info {net}-floor, bare sockets with {size_text(size)}: with a head {beside('head', size):.2f}, and copies {beside('kept', size):.2f}, "
                    f"or {number(median(f'raw/{net}-code', 'alone', 8))} ns of code {beside('code', size):.2f}")
        if beside("epoll", 8):
            say(f"info {net}-floor, bare sockets that sleep: in epoll {beside('epoll', 8):.2f}")

    if "sizes" in names:
        table("threads", "", ["raw/ring", "raw/one-copy", "weft/send", "raw/touch", "weft/buf"])
    if "proc-sizes" in names:
        table("processes", "proc-", ["raw/ring", "weft/send", "raw/touch", "weft/buf"])
    if "tcp-sizes" in names:
        table("hosts", "", ["raw/tcp", "weft/tcp-send"], over="    send/tcp")
    for net in NETWORKS:
        if f"{net}-block-8" in names:
            share(f"weft/{net}-default", "lat", 8, "ns")
        if f"{net}-rate-8" in names:
            share(f"weft/{net}-posted", "rate", 8, "thousand/s")
        if f"{net}-floor" in names:
            floor(net)
    if "over-1000" in names:
        share("weft/pairs-500-other", "lat", 8, "ns")
    if "park-8" in names:
        share("weft/park-turn", "lat", 8, "ns")
        share("weft/park-default", "lat", 8, "ns")
    if "port-memory" in names and s.get("weft/port-joined", "bytes", 10000):
        say(f"info port-memory of threads that joined and wait outside of weft: "
            f"{number(median('weft/port-joined', 'bytes', 10000))} B each")
    if "handover-stream" in names:
        for size in (4096, 65536, MIB):
            if median("weft/stream", "rate", size):
                say(f"info handover-stream of {size_text(size)}: {number(median('weft/stream', 'rate', size))} thousand/s")
    if "pairs-16" in names:
        share("weft/pairs-4", "rate", 8, "thousand/s")
    if "over-8" in names:
        share("weft/procs-8-fifo", "lat", 8, "ns")
        for series in ("raw/futex-8-procs", "weft/procs-8", "weft/procs-8-fifo"):
            if median(series, "p50", 8):
                say(f"info over-8 {series}: half a turn over the run {number(median(series, 'lat', 8))} ns; of single turns "
                    f"p50 {number(median(series, 'p50', 8))}, p99.9 {number(median(series, 'p999', 8))} ns")
    if "rss-idle" in names:
        for series in ("raw/process", "weft/joined", "weft/idle", "weft/idle-pss"):
            if median(series, "bytes", 0):
                say(f"info rss-idle {series}: {median(series, 'bytes', 0) / MIB:.2f} MiB")
    if "directory" in names:
        for metric, what in (("register/s", "registrations"), ("get/s", "look-ups by id"), ("name/s", "by name"), ("path/s", "by path"), ("group/s", "by place in a group"),
                             ("query/s", "queries with 100 hits"), ("event/s", "events to watchers"), ("leave/s", "leavings")):
            if median("dir", metric, 100000):
                say(f"info directory, {what}: {number(median('dir', metric, 1000) / 1000)} thousand/s with 1,000 threads in it, "
                    f"{number(median('dir', metric, 100000) / 1000)} with 100,000")
        if median("dir", "bytes", 100000):
            say(f"info directory, memory: {number(median('dir', 'bytes', 100000))} B for each of 100,000")
    if "senders" in names:
        for n in (2, 4, 8):
            share(f"weft/senders-{n}", "rate", 8, "thousand/s")
    if "ends" in names:
        for way in ("posted", "queue", "callback", "handoff"):
            share(f"weft/{way}", "ends", 8, "ns")


def machine():
    """Processor, how many and how they are joined, kernel."""
    model = ""
    try:
        text = subprocess.run(["lscpu"], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout
        model = next((x.split(":", 1)[1].strip() for x in text.splitlines() if x.startswith("Model name:")), "")
    except OSError:
        pass
    cpus = sorted(os.sched_getaffinity(0))
    joined = {"sockets": set(), "cores": set()}
    for cpu in cpus:
        at = f"/sys/devices/system/cpu/cpu{cpu}/topology/"
        try:
            with open(at + "physical_package_id") as f:
                package = f.read().strip()
            with open(at + "core_id") as f:
                joined["cores"].add((package, f.read().strip()))
            joined["sockets"].add(package)
        except OSError:
            pass
    topology = f"{len(cpus)} cpus"
    if joined["cores"]:
        topology += f", cores: {len(joined['cores'])}, sockets: {len(joined['sockets'])}"
    return f"{platform.machine()} {model}; {topology}; Linux {platform.release()}"


def write_csv(path, s, marks, commit):
    where = machine()
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["bench", "size", "metric", "value", "spread", "raw", "ratio", "machine", "commit"])
        for (series, metric, size), values in sorted(s.values.items()):
            base = s.get(RAW_OF.get((series, metric), ""), metric, size)
            if metric == "match" and size > 10:
                base = s.get(series, metric, 10)
            r, _ = ratios(values, base)
            out.writerow([series, size, metric, f"{statistics.median(values):.2f}", f"{spread(values):.4f}",
                          f"{statistics.median(base):.2f}" if base else "", f"{statistics.median(r):.4f}" if r else "",
                          where, commit])
        for m in marks:
            if m.value is not None:
                out.writerow([m.name, "", f"mark {m.limit} {m.verdict()}", f"{m.value:.4f}", f"{m.spread:.4f}",
                              number(m.raw), f"{m.value:.4f}", where, commit])


def size_text(n):
    return f"{n >> 20} MiB" if n >= MIB else f"{n >> 10} KiB" if n >= 1024 else f"{n} B"


def time_text(e):
    """10^e ns."""
    return f"{10 ** (e - 6)} ms" if e >= 6 else f"{10 ** (e - 3)} us" if e >= 3 else f"{10 ** e} ns"


def write_svg(path, s):
    """Latency over size, both in powers; drawn by hand so that no plotting program is needed."""
    lines = [
        ("raw/ring", "raw ring (two copies)", "#888888", "6 3"),
        ("raw/one-copy", "raw one copy", "#bbbbbb", "2 3"),
        ("weft/send", "weft, plain memory", "#c0392b", ""),
        ("raw/touch", "raw hand-over, a line of every page", "#7fb3d5", "6 3"),
        ("weft/buf", "weft buffer, a line of every page", "#1f618d", ""),
    ]
    curve = {c: sorted((k[2], statistics.median(v)) for k, v in s.values.items() if k[:2] == (c, "lat")) for c, *_ in lines}
    points = [p for c in curve.values() for p in c]
    if not points:
        return
    x0, x1 = 0, math.log2(max(p[0] for p in points)) or 1
    y0, y1 = math.floor(math.log10(min(p[1] for p in points))), math.ceil(math.log10(max(p[1] for p in points)))
    width, height, left, top, right, bottom = 880, 520, 80, 50, 40, 60

    def x(n):
        return left + (math.log2(n) - x0) / (x1 - x0) * (width - left - right)

    def y(ns):
        return height - bottom - (math.log10(ns) - y0) / (y1 - y0) * (height - top - bottom)

    title = "Half a round trip between two threads on two cores, over message size"
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"',
           ' font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{left}" y="24" font-size="15">{title}</text>']
    for e in range(y0, y1 + 1):
        at = y(10 ** e)
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{at:.1f}" y2="{at:.1f}" stroke="#dddddd"/>')
        out.append(f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{time_text(e)}</text>')
    for n in sorted({p[0] for p in points}):
        at, low = x(n), height - bottom
        out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{top}" y2="{low}" stroke="#eeeeee"/>')
        out.append(f'<text x="{at:.1f}" y="{low + 18}" text-anchor="middle">{size_text(n)}</text>')
    for i, (series, name, colour, dash) in enumerate(lines):
        if not curve[series]:
            continue
        path_points = " ".join(f"{x(n):.1f},{y(ns):.1f}" for n, ns in curve[series])
        style = f'stroke="{colour}" stroke-width="2"' + (f' stroke-dasharray="{dash}"' if dash else "")
        out.append(f'<polyline points="{path_points}" fill="none" {style}/>')
        ly = top + 12 + 18 * i
        out.append(f'<line x1="{left + 14}" x2="{left + 44}" y1="{ly}" y2="{ly}" {style}/>')
        out.append(f'<text x="{left + 52}" y="{ly + 4}">{name}</text>')
    out.append(f'<text x="{width / 2}" y="{height - 14}" text-anchor="middle">{html.escape(machine())}</text></svg>')
    with open(path, "w") as f:
        f.write("\n".join(out) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("samples")
    parser.add_argument("--csv", required=True)
    parser.add_argument("--svg", required=True)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--names", nargs="+", required=True)
    args = parser.parse_args()
    s = Samples(args.samples)
    print(f"info {machine()}; commit {args.commit}")
    print_beside(s, args.names, print)
    marks = all_marks(s, print)
    write_csv(args.csv, s, marks, args.commit)
    write_svg(args.svg, s)
    print(f"info written: {args.csv} {args.svg}")
    broken = print_marks(s, marks, args.names, print)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
