"""explain with a program on this machine's own kernel, as root: planted thieves are named, and waits have their wakers.

Left out, with the reason, where root's rights or the kernel's trace are not to be had.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import livetrace, reportschema

INSTANCES = Path("/sys/kernel/tracing/instances")
THIEF = """\
import ctypes, os, signal, sys, time
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
victim = os.fork()
while not victim:
    pass
ctypes.CDLL(None).prctl(15, b"the thief", 0, 0, 0)
began = time.thread_time_ns()
for _ in range(100):
    ends = time.thread_time_ns() + 4_000_000
    while time.thread_time_ns() < ends:
        pass
    time.sleep(0.005)
open(sys.argv[1], "w").write(f"{victim} {time.thread_time_ns() - began}")
os.kill(victim, signal.SIGKILL)
os.waitpid(victim, 0)
"""
PING = """\
import os, sys, threading, time
there, back = os.pipe(), os.pipe()
if os.fork() == 0:
    os.close(there[1])
    while os.read(there[0], 1):
        time.sleep(0.002)
        os.write(back[1], b"!")
    os._exit(0)
os.close(there[0])
for _ in range(50):
    os.write(there[1], b"!")
    os.read(back[0], 1)
os.close(there[1])
os.wait()
"""
CONVOY = """\
import threading, time
lock = threading.Lock()
def hold():
    for _ in range(20):
        with lock:
            time.sleep(0.01)
        time.sleep(0.001)
threads = [threading.Thread(target=hold) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
TOUCH = """\
import mmap
fresh = mmap.mmap(-1, 80 << 20)
fresh.madvise(mmap.MADV_NOHUGEPAGE)
for page in range(0, 80 << 20, 4096):
    fresh[page] = 1
"""


pytestmark = [pytest.mark.host, pytest.mark.skipif(bool(WHY := livetrace.why_not()), reason=WHY or "it can be had")]


def explained(*words: str, code: int = 0) -> dict[str, Any]:
    verb = subprocess.run(
        [sys.executable, "-m", "jitter_workshop", "explain", "--json", *words], stdout=subprocess.PIPE, timeout=300
    )
    assert verb.returncode == code
    said: dict[str, Any] = json.loads(verb.stdout)
    whole = json.loads(reportschema.PROGRAM.read_text(encoding="utf-8"))
    assert reportschema.problems(said, whole, whole) == []
    assert said["evidence"] == "trace", said["notes"]
    for thread in said["threads"]:
        parts = ("ran_ns", "waited_ns", "slept_ns", "blocked_ns", "unknown_ns")
        assert sum(thread[part] for part in parts) == thread["observed_ns"]
    return said


def in_all(rows: list[dict[str, Any]], *, kind: str, name: str) -> int:
    return sum(row["total_ns"] for row in rows if (row["kind"], row["name"]) == (kind, name))


def test_a_planted_thief_is_named_with_the_time_that_it_took(tmp_path: Path) -> None:
    told = tmp_path / "took"
    said = explained("--", sys.executable, "-c", THIEF, str(told))
    victim, took = map(int, told.read_text().split())
    (thread,) = [thread for thread in said["threads"] if thread["tid"] == victim]
    named = in_all(thread["causes"], kind="task", name="the thief")
    # The thief takes a little more before its first reading and after its last one.
    assert 0.95 * took < named < 1.1 * took
    assert thread["preempted"] >= 50
    assert {cause["name"] for cause in said["causes"]} >= {"the thief"}


def test_a_sleeper_sleeps_by_its_own_wish() -> None:
    said = explained("--", "sleep", "0.5")
    (thread,) = said["threads"]
    assert thread["slept_ns"] > 0.45e9
    (wait,) = [wait for wait in thread["slept_in"] if wait["total_ns"] > 0.4e9]
    assert wait["name"] in ("clock_nanosleep", "nanosleep")
    assert wait["wakers"] == [{"kind": "timer", "name": "hrtimer_wakeup"}]


def test_a_ping_pong_names_the_answering_thread_and_its_delay() -> None:
    said = explained("--", sys.executable, "-c", PING, code=0)
    assert len(said["threads"]) == 2
    asks = min(said["threads"], key=lambda thread: thread["began_ns"])
    reads = [wait for wait in asks["blocked_on"] if (wait["kind"], wait["name"]) == ("io", "read")]
    assert sum(wait["count"] for wait in reads) >= 45
    # The other one was asleep meanwhile, so the chain goes on to the timer that woke it.
    assert [w["kind"] for w in reads[0]["wakers"]][:2] == ["task", "timer"]


def test_a_convoy_waits_for_a_futex_that_its_own_threads_hold() -> None:
    said = explained("--", sys.executable, "-c", CONVOY)
    assert len(said["threads"]) == 4
    futexes = [wait for thread in said["threads"] for wait in thread["blocked_on"] if wait["kind"] == "futex"]
    assert sum(wait["total_ns"] for wait in futexes) > 0.5e9
    assert any(wait["wakers"] and wait["wakers"][0]["kind"] == "task" for wait in futexes)


def test_threads_and_children_that_come_and_go_are_followed() -> None:
    said = explained("--", "sh", "-c", "for i in 1 2 3 4 5; do sleep 0.02; done; exit 4", code=4)
    names = [thread["name"] for thread in said["threads"]]
    assert names.count("sleep") == 5
    shell = next(thread for thread in said["threads"] if thread["name"] == "sh")
    assert in_all(shell["blocked_on"], kind="child", name="wait4") > 0.05e9
    assert said["exit_code"] == 4


def test_page_faults_have_a_length_and_the_observation_a_cost() -> None:
    said = explained("--", sys.executable, "-c", TOUCH)
    faults, cost, ran = said["faults"], said["cost"], said["all_threads"]["ran_ns"]
    assert faults["count"] >= 80 << 8
    assert faults["sampled"] > 0.5 * faults["count"]
    # A fault takes longer than a tenth of a µs on any machine, and all of them no longer than the program ran.
    assert 100 * faults["count"] < faults["ran_ns"] < ran
    assert cost["events"] >= faults["count"]
    assert cost["event_ns"] is None or 10 < cost["event_ns"] < 20_000


def test_nothing_is_left_in_the_kernel() -> None:
    before = sorted(INSTANCES.iterdir())
    explained("--", "true")
    missing = [sys.executable, "-m", "jitter_workshop", "explain", "--", "/no/such/command"]
    assert subprocess.run(missing, stderr=subprocess.DEVNULL).returncode == 2
    assert sorted(INSTANCES.iterdir()) == before


def test_a_fork_storm_is_bounded() -> None:
    storm = "i=0; while [ $i -lt 400 ]; do /bin/true & i=$((i+1)); done; wait"
    said = explained("--duration", "3", "--", "sh", "-c", storm)
    assert len(said["threads"]) + said["left_out"] > 100
    assert sum(thread["unknown_ns"] for thread in said["threads"]) < 0.2 * said["all_threads"]["observed_ns"]
