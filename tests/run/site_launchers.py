"""site_launchers.py - the launchers that sites have, for tests: MPICH's Hydra speaks PMI-1 and PMI-2, Open MPI's mpirun PMIx. What is not installed is skipped."""
import os
import re
import shutil
import signal
import subprocess
import time
import uuid

from job import GONE, LIMIT, MARK, Skipped, check, marked, wait_for

SLOWER = float(os.environ.get("TEST_SLOWER") or 1)
HYDRA, OPENMPI = shutil.which("mpiexec.hydra"), shutil.which("mpirun.openmpi")
NOT_OURS = re.compile("PMI|HYD|OMPI|PRTE|SLURM|WEFT_AGENT")        # a launcher that started the tests is not the one under test

WAYS = {
    "pmi1": (HYDRA, []),
    "pmi2": (HYDRA, []),
    "pmix": (OPENMPI, ["--oversubscribe"]),
}
GOING_ON = {            # though one has died
    "pmi1": ["-disable-auto-cleanup"],
    "pmi2": ["-disable-auto-cleanup"],
    "pmix": ["--mca", "orte_enable_recovery", "1", "--mca", "orte_abort_on_non_zero_status", "0"],
}


def environment(mark):
    ours = {name: value for name, value in os.environ.items() if not NOT_OURS.match(name)}
    return {**ours, MARK: mark, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_plm_rsh_agent": "ssh" if shutil.which("ssh") else "false"}   # it looks for one, though nothing is started elsewhere


def site_command(way, count, *command, options=()):
    launcher, usual = WAYS[way]
    if not launcher:
        raise Skipped("no " + ("mpirun.openmpi" if way == "pmix" else "mpiexec.hydra"))
    return [launcher, *usual, *options, "-n", str(count), *map(str, command)]


def site_launch(way, count, *command, options=(), variables=None, meanwhile=None):
    """(exit code, output, seconds) of @count processes under the launcher of @way; nothing of it is left. @meanwhile is called with the mark while they run."""
    words = site_command(way, count, *command, options=options)
    mark, start = uuid.uuid4().hex, time.monotonic()
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", env={**environment(mark), **(variables or {})}) as process:
        try:
            if meanwhile:
                meanwhile(mark)
            out, _ = process.communicate(timeout=LIMIT * SLOWER)
        except subprocess.TimeoutExpired:
            for pid in marked(mark):
                os.kill(pid, signal.SIGKILL)
            out, _ = process.communicate()
            check(False, "no end", words, out[-2000:])
    seconds = time.monotonic() - start
    if not check(wait_for(lambda: not marked(mark), GONE), "left behind", words):
        for pid in marked(mark):
            os.kill(pid, signal.SIGKILL)
    return process.returncode, out, seconds
