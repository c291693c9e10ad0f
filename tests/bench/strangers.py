"""Does ``explain --pid`` name what holds up programs of other authors? (As root, with tracefs.)

Four programs, where they are installed (nothing is installed here): a Redis server under its own benchmark, a JVM that
searches prime numbers (``keytool``), ``stress-ng --cpu 1``, and ``sox`` that makes a sound. Each is pinned to one CPU
and held up there in five ways: a task that takes 4 ms at a time, one that takes 0.3 ms, a real-time task, SIGSTOP, a
CPU quota. The planted time is read from the thief's own CPU clock, our own clock, or the group's counter. The figure is
the share of it that the report does not have under its kind and name, for the thread that ran most before.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.figures import Figure, keep
from tests.bench.program import found_of, of_all
from tests.bench.program_script import Claim, burn, called, child, claim

SECONDS, PLANT_S = 6, 4.0
INSTANCES = Path("/sys/kernel/tracing/instances")
GROUPS = Path("/sys/fs/cgroup/cpu")
PORT = "16379"
WORK = {
    "redis-server": ["redis-server", "--port", PORT, "--save", "", "--appendonly", "no", "--bind", "127.0.0.1"],
    "JVM (keytool)": [
        *("keytool", "-genkeypair", "-keyalg", "RSA", "-keysize", "16384", "-dname", "CN=x", "-alias", "x"),
        *("-keystore", "FOLDER/keys", "-storepass", "secret"),
    ],
    "stress-ng --cpu 1": ["stress-ng", "--quiet", "--cpu", "1", "--temp-path", "FOLDER"],
    "sox": ["sox", "-n", "-t", "raw", "/dev/null", "synth", "36000", "pinknoise"],
}
LOAD = {
    "redis-server": [
        *("nice", "-n", "-15", "redis-benchmark", "-p", PORT, "-c", "50", "-P", "16", "-n", "100000000", "-q"),
        *("eval", "local s = 0 for i = 1, 2000 do s = s + i end return s", "0"),
    ]
}
"""The work that keeps a server busy, on the other CPUs. A request costs the server much more than its benchmark. With
cheap requests, the server waits for the benchmark in a part of the time, and nothing holds it up there."""
VICTIM, OTHERS = max(os.sched_getaffinity(0)), sorted(os.sched_getaffinity(0))[:-1]


def below(pid: int) -> list[int]:
    """Return a process and all that it has started."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def wanted_cpu(task: Path) -> int:
    """Return how long a thread has run and waited for a CPU."""
    return sum(map(int, (task / "schedstat").read_text().split()[:2]))


def busiest(pid: int) -> tuple[int, int]:
    """Return the process and the thread that want the CPU most in half a second."""
    tasks = [task for one in below(pid) for task in Path(f"/proc/{one}/task").iterdir()]
    before = {task: wanted_cpu(task) for task in tasks}
    time.sleep(0.5)
    most = max(tasks, key=lambda task: wanted_cpu(task) - before[task])
    if wanted_cpu(most) - before[most] < 400_000_000:
        raise RuntimeError("it does not keep its CPU busy")
    return int(most.parent.parent.name), int(most.name)


def records(verb: int) -> bool:
    """Return True if a process of the verb records."""
    pids = {str(pid) for pid in below(verb)}
    mine = [one for one in INSTANCES.glob("jitter-workshop-*") if one.name.split("-")[2].split("@")[0] in pids]
    return len(mine) == 2 and all((one / "tracing_on").read_text() == "1\n" for one in mine)


def thief(burst_ns: int, pause_s: float, rounds: int, fifo: bool = False) -> Callable[[int, int, int], Claim]:
    def plant(root: int, pid: int, tid: int) -> Claim:
        told, tell = os.pipe()

        def steal() -> None:
            called("a thief")
            os.sched_setaffinity(0, {VICTIM})
            if fifo:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
            began = time.thread_time_ns()
            ends = time.monotonic() + PLANT_S
            for _ in range(rounds):
                if time.monotonic() > ends:
                    break
                burn(burst_ns)
                time.sleep(pause_s)
            os.write(tell, str(time.thread_time_ns() - began).encode())

        os.waitpid(child(steal), 0)
        return claim(tid, "causes", "task", "a thief", int(os.read(told, 32)))

    return plant


def stops(root: int, pid: int, tid: int) -> Claim:
    stopped = 0
    for _ in range(10):
        os.kill(pid, signal.SIGSTOP)
        began = time.monotonic_ns()
        time.sleep(0.1)
        stopped += time.monotonic_ns() - began
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.05)
    return claim(tid, "blocked_on", "stopped", "", stopped)


def quota(root: int, pid: int, tid: int) -> Claim:
    group = GROUPS / f"jw-bench-{os.getpid()}"
    group.mkdir(exist_ok=True)
    (group / "cpu.cfs_period_us").write_text("100000")
    (group / "cpu.cfs_quota_us").write_text("15000")
    for one in below(root):
        (group / "cgroup.procs").write_text(str(one))
    time.sleep(2)
    (group / "cpu.cfs_quota_us").write_text("-1")
    told = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    return claim(tid, "causes", "task", "throttled", int(told["throttled_time"]))


PLANTED: dict[str, Callable[[int, int, int], Claim]] = {
    "thief 4 ms": thief(4_000_000, 0.005, 60),
    "thief 300 us": thief(300_000, 0.002, 300),
    "real-time thief": thief(3_000_000, 0.006, 60, fifo=True),
    "stopped": stops,
    "quota 15 %": quota,
}


@contextlib.contextmanager
def started(name: str) -> Iterator[int]:
    """Start a program and what keeps it busy; end both with all that they started."""
    made: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as folder:
        words = [word.replace("FOLDER", folder) for word in WORK[name]]
        null = subprocess.DEVNULL
        try:
            made.append(subprocess.Popen(["taskset", "-c", str(VICTIM), *words], stdout=null, stderr=null))
            time.sleep(1.5)
            if name in LOAD:
                some = ",".join(map(str, OTHERS))
                made.append(subprocess.Popen(["taskset", "-c", some, *LOAD[name]], stdout=null, stderr=null))
                time.sleep(0.5)
            yield made[0].pid
        finally:
            for one in reversed(made):
                for pid in below(one.pid) if one.poll() is None else ():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                one.wait()
            group = GROUPS / f"jw-bench-{os.getpid()}"
            if group.exists():
                time.sleep(0.2)
                group.rmdir()


def case(name: str, plant: Callable[[int, int, int], Claim]) -> tuple[Claim, dict[str, object]]:
    """Plant while the program is explained. Raise RuntimeError if that was not possible."""
    with started(name) as root:
        pid, tid = busiest(root)
        words = [sys.executable, "-m", "jitter_workshop", "explain", "--json", "--pid", str(root)]
        with subprocess.Popen(
            [*words, "--duration", str(SECONDS)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as verb:
            ends = time.monotonic() + 60
            while not records(verb.pid):
                if time.monotonic() > ends or verb.poll() is not None:
                    raise RuntimeError("no trace began")
                time.sleep(0.05)
            began = time.monotonic()
            time.sleep(0.5)
            truth = plant(root, pid, tid)
            took = time.monotonic() - began
            told = verb.communicate(timeout=300)[0]
    if not truth["ns"]:
        raise RuntimeError("nothing was planted")
    if took > SECONDS - 0.3:
        raise RuntimeError(f"the planting took {took:.1f} s, longer than the program was explained")
    return truth, json.loads(told)


def run(folder: Path) -> list[Figure]:
    figures, raw = [], {}
    whole = named = 0.0
    for name, words in WORK.items():
        missing = [word for word in (words[0], "taskset") if shutil.which(word) is None]
        if missing:
            print(f"{name}: left out ({', '.join(missing)} is not installed)")
            continue
        for how, plant in PLANTED.items():
            title = f"{name}, {how}"
            try:
                truth, report = case(name, plant)
            except (RuntimeError, OSError, ValueError) as error:
                print(f"{title}: left out ({error})")
                continue
            found = found_of(truth, report)
            raw[title] = {"claim": truth, "found": found, "report": report}
            share = min(found, truth["ns"]) / truth["ns"]
            whole, named = whole + truth["ns"], named + share * truth["ns"]
            print(f"{title}: {100 * (1 - share):.2f} % not named", flush=True)
            told = f"planted {truth['ns'] / 1e6:.1f} ms, found {found / 1e6:.1f} ms; {report['events']:,} events"
            figures.append(Figure(f"{title}: not named", 100 * (1 - share), "%", 5, told))
    keep(folder, "strangers", raw)
    return [*figures, *of_all("all strangers", f"{len(raw)} cases", whole, named)]
