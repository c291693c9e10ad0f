"""The kernel's own switches on a real kernel: applied, seen in what the kernel then does, and given back."""

from __future__ import annotations

import pytest

from tests.lab import placing
from tests.lab.machine import Machine
from tests.lab.placing import do

pytestmark = pytest.mark.lab

HOT = "2-3"
EVERYTHING = (
    "rt-throttling=-1",
    "timer-migration=0",
    "rcu-expedite=never",
    "preempt-mode=full",
    "watchdogs",
    "nmi-watchdog",
    "mce-interval=0",
    "perf-sample-rate=1000",
    "stat-interval=60",
    "writeback=interval:6000,expire:9000,background:67108864,limit:50%",
    "thp=never",
    "ksm=1",
    "numa-balancing",
    "zone-reclaim=1",
    "swap=1",
    "compaction",
    "pcie-aspm=performance",
)
"""Each with a value that a fresh kernel does not have."""


def traced(event: str, words: str, seconds: float) -> list[int]:
    """(In the guest) how often the event came on each CPU with these words in its line."""
    import os
    import time

    folder = "/sys/kernel/tracing/instances/lab"
    os.mkdir(folder)
    try:
        with open(f"{folder}/events/{event}/enable", "w") as file:
            file.write("1")
        time.sleep(seconds)
        with open(f"{folder}/events/{event}/enable", "w") as file:
            file.write("0")
        counts = [0] * (os.cpu_count() or 1)
        with open(f"{folder}/trace") as file:
            for line in file:
                if words in line and "[" in line:
                    counts[int(line.split("[", 1)[1].split("]", 1)[0])] += 1
        return counts
    finally:
        os.rmdir(folder)


def foldings(wanted: int, seconds: float) -> int:
    """(In the guest) how often the statistics were folded until that was ``wanted`` times, or the time was over."""
    import os
    import time

    folder = "/sys/kernel/tracing/instances/lab"
    os.mkdir(folder)
    try:
        with open(f"{folder}/events/workqueue/workqueue_execute_start/enable", "w") as file:
            file.write("1")
        ends = time.monotonic() + seconds
        while True:
            time.sleep(0.25)
            with open(f"{folder}/trace") as file:
                count = sum("vmstat_shepherd" in line for line in file)
            if count >= wanted or time.monotonic() > ends:
                return count
    finally:
        os.rmdir(folder)


def huge_kib() -> int:
    """(In the guest) KiB in huge pages of a fresh process that touched 16 MiB without asking for any."""
    import mmap

    area = mmap.mmap(-1, 16 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for offset in range(0, 16 << 20, 4096):
        area[offset] = 1
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("AnonHugePages:"))


def test_statistics_are_folded_as_seldom_as_asked(lab: Machine) -> None:
    # First in this file: an interval that has begun is waited for, whatever is written meanwhile.
    with lab.unchanged():
        assert lab.call(foldings, 2, 30.0) == 2
        made = do(lab, placing.apply, HOT, ["stat-interval=120"])
        # The one that was under way already may still come.
        assert lab.call(foldings, 2, 4.0) <= 1
        assert do(lab, placing.undo, made["changes"]) == []


def test_everything_that_this_kernel_shows_is_applied_and_given_back(lab: Machine) -> None:
    ids = [wanted.partition("=")[0] for wanted in EVERYTHING]
    with lab.unchanged():
        made = do(lab, placing.apply, HOT, list(EVERYTHING))
        assert made["refused"] == {}
        assert all(change["same"] for change in made["changes"]), made["changes"]
        done = {change["tunable"] for change in made["changes"]}
        # A stock kernel in this machine is sure to have these.
        assert {
            "rt-throttling",
            "timer-migration",
            "rcu-expedite",
            "watchdogs",
            "mce-interval",
            "perf-sample-rate",
            "stat-interval",
            "writeback",
            "thp",
            "ksm",
            "swap",
            "compaction",
        } <= done, made["skipped"]
        assert set(ids) - done <= set(made["skipped"]), "neither done nor told why not"
        for name, (state, reason) in do(lab, placing.assess, HOT, ids).items():
            if name not in ("zone-reclaim", "ksm"):
                assert state != "improve", f"{name}: {reason}"
        assert do(lab, placing.undo, made["changes"]) == []


def test_the_detectors_leave_the_hot_cpus(lab: Machine) -> None:
    with lab.unchanged():
        lab.write("/proc/sys/kernel/watchdog_thresh", "1")
        try:
            before = lab.call(traced, "timer/hrtimer_expire_entry", "watchdog_timer_fn", 2.0)
            assert all(before), before
            made = do(lab, placing.apply, HOT, ["watchdogs"])
            after = lab.call(traced, "timer/hrtimer_expire_entry", "watchdog_timer_fn", 2.0)
            assert all(after[:2]), after
            assert after[2:] == [0, 0]
            assert do(lab, placing.undo, made["changes"]) == []
            again = lab.call(traced, "timer/hrtimer_expire_entry", "watchdog_timer_fn", 2.0)
            assert all(again), again
        finally:
            lab.write("/proc/sys/kernel/watchdog_thresh", "10")


def test_detectors_that_were_off_come_back_though_their_switches_were_read(lab: Machine) -> None:
    with lab.unchanged():
        made = do(lab, placing.apply, HOT, ["watchdogs=off"])
        assert [change["after"] for change in made["changes"]] == ["soft=0 nmi=0"]
        for name in ("watchdog", "soft_watchdog", "nmi_watchdog"):
            assert lab.read(f"/proc/sys/kernel/{name}") == "0"
        assert do(lab, placing.undo, made["changes"]) == []
        assert lab.read("/proc/sys/kernel/soft_watchdog") == "1"


@pytest.mark.soak
def test_huge_pages_come_only_where_they_are_asked_for(lab: Machine) -> None:
    path = "/sys/kernel/mm/transparent_hugepage/enabled"
    stood = next(word.strip("[]") for word in lab.read(path).split() if word.startswith("["))
    with lab.unchanged():
        lab.write(path, "always")
        assert lab.call(huge_kib) > 0
        made = do(lab, placing.apply, HOT, ["thp"])
        assert lab.call(huge_kib) == 0
        assert do(lab, placing.undo, made["changes"]) == []
        assert "[always]" in lab.read(path)
        lab.write(path, stood)


@pytest.mark.soak
def test_tracing_ends(lab: Machine) -> None:
    folder = "/sys/kernel/tracing"
    with lab.unchanged():
        lab.write(f"{folder}/events/sched/sched_switch/enable", "1")
        try:
            assert do(lab, placing.assess, HOT, ["tracing"])["tracing"][0] == "improve"
            made = do(lab, placing.apply, HOT, ["tracing"])
            assert lab.read(f"{folder}/tracing_on") == "0"
            assert do(lab, placing.undo, made["changes"]) == []
            assert lab.read(f"{folder}/tracing_on") == "1"
        finally:
            lab.write(f"{folder}/events/sched/sched_switch/enable", "0")


@pytest.mark.soak
def test_the_real_time_kernel(lab_rt: Machine) -> None:
    assert do(lab_rt, placing.assess, HOT, ["kernel-flavour"])["kernel-flavour"][0] == "ok"
    with lab_rt.unchanged():
        made = do(lab_rt, placing.apply, HOT, list(EVERYTHING))
        assert made["refused"] == {}
        assert do(lab_rt, placing.undo, made["changes"]) == []
