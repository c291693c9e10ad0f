"""A program that is held up in a known way: ``python -m tests.bench.program_script CASE FILE`` writes to FILE what it
planted, as a list of claims. It knows nothing of the trace.

A claim: ``tid`` of the thread that was held up; ``part``, ``kind`` and ``name`` under which the time should be found;
``waker``: the task that should have ended the wait ("" for any); ``ns``: the planted time.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Claim = dict[str, Any]
ROUNDS = 40
now = time.monotonic_ns


def claim(tid: int, part: str, kind: str, name: str, ns: int, waker: str = "") -> Claim:
    return {"tid": tid, "part": part, "kind": kind, "name": name, "ns": ns, "waker": waker}


def called(name: str) -> None:
    """Name this thread (PR_SET_NAME)."""
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)


def burn(ns: int) -> None:
    """Use ``ns`` of CPU time."""
    ends = time.thread_time_ns() + ns
    while time.thread_time_ns() < ends:
        pass


def child(work: Callable[[], None]) -> int:
    """Start a process that does ``work``, and ends."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return pid


def spin() -> None:
    called("victim")
    while True:
        pass


def steal(names: tuple[str, ...], burst_ns: int, pause_s: float, rounds: int, fifo: bool = False) -> list[Claim]:
    """One task after the other takes a CPU from a victim that never sleeps."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    victim = child(spin)
    found = []
    try:
        if fifo:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        for name in names:
            called(name)
            before = time.thread_time_ns()
            for _ in range(rounds):
                burn(burst_ns)
                time.sleep(pause_s)
            found.append(claim(victim, "causes", "task", name, time.thread_time_ns() - before))
    finally:
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
    return found


def sleeps(ns: int) -> list[Claim]:
    for _ in range(ROUNDS):
        time.sleep(ns / 1e9)
    return [claim(os.getpid(), "slept_in", "sleep", "clock_nanosleep", ns * ROUNDS)]


def polls(ns: int) -> list[Claim]:
    poll = select.poll()
    for _ in range(ROUNDS):
        poll.poll(ns / 1e6)
    return [claim(os.getpid(), "slept_in", "sleep", "poll", ns * ROUNDS)]


def locks(ns: int, busy: bool) -> list[Claim]:
    """Another thread holds a lock for ``ns``, asleep or busy, while this one waits."""
    lock, taken, done = threading.Lock(), threading.Semaphore(0), threading.Semaphore(0)
    waited, held = [], []

    def hold() -> None:
        called("holder")
        for _ in range(ROUNDS):
            with lock:
                taken.release()
                time.sleep(0.002)
                began = now()
                _wait(ns, busy)
                held.append((began, now()))
            done.acquire()

    holder = threading.Thread(target=hold)
    holder.start()
    for _ in range(ROUNDS):
        taken.acquire()
        began = now()
        with lock:
            waited.append((began, now()))
        done.release()
    holder.join()
    both = [min(a[1], b[1]) - max(a[0], b[0]) for a, b in zip(waited, held, strict=True)]
    return [claim(threading.get_native_id(), "blocked_on", "futex", "futex", sum(n for n in both if n > 0), "holder")]


def _wait(ns: int, busy: bool) -> None:
    if busy:
        # In native code without the interpreter's lock, so that the other thread can go and wait.
        ends = now() + ns
        while now() < ends:
            sum(range(20_000))
    else:
        time.sleep(ns / 1e9)


def answers(ns: int, busy: bool, sockets: bool) -> list[Claim]:
    """A process answers after ``ns``, asleep or busy, over a pipe or a socket."""
    if sockets:
        ours, theirs = socket.socketpair()
        asked, told, ask, get = theirs.fileno(), theirs.fileno(), ours.fileno(), ours.fileno()
    else:
        (asked, ask), (get, told) = os.pipe(), os.pipe()

    def answer() -> None:
        called("answerer")
        for _ in range(ROUNDS):
            os.read(asked, 1)
            burn(ns) if busy else time.sleep(ns / 1e9)
            os.write(told, b"!")

    pid = child(answer)
    for _ in range(ROUNDS):
        os.write(ask, b"?")
        os.read(get, 1)
    os.waitpid(pid, 0)
    return [claim(os.getpid(), "blocked_on", "io", "read", ns * ROUNDS, "answerer")]


def children() -> list[Claim]:
    for _ in range(4):
        subprocess.run(["sleep", "0.1"], check=True)
    return [claim(os.getpid(), "blocked_on", "child", "wait4", 400_000_000, "sleep")]


def file_locks(ns: int) -> list[Claim]:
    with tempfile.NamedTemporaryFile() as file:
        (ready, told), (go, say) = os.pipe(), os.pipe()

        def hold() -> None:
            called("filelocker")
            with Path(file.name).open("r+") as mine:
                for _ in range(ROUNDS):
                    fcntl.flock(mine, fcntl.LOCK_EX)
                    os.write(told, b"!")
                    time.sleep(ns / 1e9 + 0.002)
                    fcntl.flock(mine, fcntl.LOCK_UN)
                    os.read(go, 1)

        pid = child(hold)
        for _ in range(ROUNDS):
            os.read(ready, 1)
            fcntl.flock(file, fcntl.LOCK_EX)
            fcntl.flock(file, fcntl.LOCK_UN)
            os.write(say, b"!")
        os.waitpid(pid, 0)
    return [claim(os.getpid(), "blocked_on", "lock", "flock", ns * ROUNDS, "filelocker")]


def stops() -> list[Claim]:
    victim = child(spin)
    for _ in range(5):
        time.sleep(0.02)
        os.kill(victim, signal.SIGSTOP)
        time.sleep(0.1)
        os.kill(victim, signal.SIGCONT)
    os.kill(victim, signal.SIGKILL)
    os.waitpid(victim, 0)
    return [claim(victim, "blocked_on", "stopped", "", 500_000_000)]


def quota(ms: int) -> list[Claim]:
    """A group of version 1 with ``ms`` of CPU time in 100 ms; its own counter tells how long it was stopped."""
    group = Path(f"/sys/fs/cgroup/cpu/jw-bench-{os.getpid()}")
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text("100000")
        (group / "cpu.cfs_quota_us").write_text(str(ms * 1000))
        (group / "cgroup.procs").write_text(str(os.getpid()))
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        ends = now() + 2_000_000_000
        while now() < ends:
            pass
        told = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
        return [claim(os.getpid(), "causes", "task", "throttled", int(told["throttled_time"]))]
    finally:
        Path("/sys/fs/cgroup/cpu/cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


CASES: dict[str, Callable[[], list[Claim]]] = {
    "thief 4 ms": lambda: steal(("thief",), 4_000_000, 0.005, 60),
    "thief 300 us": lambda: steal(("thief",), 300_000, 0.002, 300),
    "thief 40 ms": lambda: steal(("thief",), 40_000_000, 0.02, 10),
    "three thieves": lambda: steal(("thief a", "thief b", "thief c"), 3_000_000, 0.004, 25),
    "real-time thief": lambda: steal(("fifo thief",), 3_000_000, 0.006, 60, fifo=True),
    "sleep 1 ms": lambda: sleeps(1_000_000),
    "sleep 10 ms": lambda: sleeps(10_000_000),
    "poll 5 ms": lambda: polls(5_000_000),
    "lock, holder asleep 5 ms": lambda: locks(5_000_000, busy=False),
    "lock, holder asleep 20 ms": lambda: locks(20_000_000, busy=False),
    "lock, holder busy 5 ms": lambda: locks(5_000_000, busy=True),
    "pipe, answerer asleep 2 ms": lambda: answers(2_000_000, busy=False, sockets=False),
    "pipe, answerer asleep 10 ms": lambda: answers(10_000_000, busy=False, sockets=False),
    "pipe, answerer busy 5 ms": lambda: answers(5_000_000, busy=True, sockets=False),
    "socket, answerer asleep 5 ms": lambda: answers(5_000_000, busy=False, sockets=True),
    "children": children,
    "file lock 10 ms": lambda: file_locks(10_000_000),
    "stopped": stops,
    "quota 20 %": lambda: quota(20),
    "quota 50 %": lambda: quota(50),
}

if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(CASES[sys.argv[1]]()))
