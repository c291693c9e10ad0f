"""The load that will show in every lesson: when it is told, and in which words."""

from __future__ import annotations

import dataclasses
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.flow.measuring import host_load
from jitter_workshop.flow.measuring.background_gate import HERE
from jitter_workshop.host.cpu.stat import CpuStat, CpuTimes
from jitter_workshop.model.host_load import HostLoad
from jitter_workshop.model.run import ForeignLoad
from jitter_workshop.presenter.host import host_load as words

QEMU = ForeignLoad(1, "qemu-system-x86", 0, 87.2)
BUSY = HostLoad(4.9, 2, 47.0, 0.0, (QEMU,), True)


def stat(*cpus: CpuTimes, steal: bool | None = None) -> CpuStat:
    return CpuStat(dict(enumerate(cpus)), 100, steal)


NOTHING = CpuTimes()


@pytest.mark.parametrize(
    ("cpus", "taken", "drowns"),
    [(2, 49, False), (2, 50, True), (64, 87, False), (64, 1_600, True)],
    ids=[
        "half of one CPU of two, nearly",
        "half of one of two",
        "one task on a large host",
        "a quarter of a large host",
    ],
)
def test_a_quarter_of_all_cpus_drowns_every_lesson(cpus: int, taken: int, drowns: bool) -> None:
    """``taken``: ticks of a second of 100."""
    shares = [CpuTimes(user=min(max(taken - 100 * n, 0), 100)) for n in range(cpus)]
    later = stat(*(dataclasses.replace(one, idle=100 - one.user) for one in shares))
    load = host_load.load_between(0.1, stat(*[NOTHING] * cpus), later, (), 0.0)
    assert load is not None
    assert (load.drowns, load.busy_percent, load.cpus) == (drowns, round(100 * taken / (100 * cpus), 1), cpus)


def test_our_own_work_is_no_load_and_a_small_task_is_not_named() -> None:
    later = stat(CpuTimes(user=60, system=20, idle=120), CpuTimes(idle=200))
    small = dataclasses.replace(QEMU, name="small", cpu_percent=9.9)
    load = host_load.load_between(None, stat(NOTHING, NOTHING), later, (QEMU, small), 0.8)
    assert load is not None
    assert (load.busy_percent, load.drowns, load.tasks) == (0.0, False, (QEMU,))


@pytest.mark.parametrize(("stolen", "drowns"), [(1, False), (2, True)])
def test_a_hundredth_of_stolen_time_drowns_every_lesson(stolen: int, drowns: bool) -> None:
    later = stat(CpuTimes(idle=100 - stolen, steal=stolen), CpuTimes(idle=100), steal=True)
    load = host_load.load_between(0.0, stat(NOTHING, NOTHING, steal=True), later, (), 0.0)
    assert load is not None
    assert (load.drowns, load.steal_percent) == (drowns, stolen / 2)


def test_readings_that_tell_nothing_are_no_load() -> None:
    assert host_load.load_between(9.0, stat(NOTHING), stat(NOTHING), (), 0.0) is None
    assert host_load.load_between(9.0, CpuStat(), CpuStat(), (), 0.0) is None


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0, 100))
def test_shares_are_between_nothing_and_all(user: int, idle: int, steal: int, own_s: float) -> None:
    load = host_load.load_between(
        1.0, stat(NOTHING), stat(CpuTimes(user=user, idle=idle, steal=steal), steal=True), (), own_s
    )
    assert (load is None) == (user + idle + steal == 0)
    if load is not None:
        assert 0 <= load.busy_percent <= 100
        assert load.steal_percent is not None
        assert 0 <= load.steal_percent <= 100


def test_a_measurement_ends_the_look_which_then_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(host_load.VARIABLE)
    monkeypatch.setattr(host_load, "WINDOW_S", 60.0)
    looking, found = threading.Event(), []
    readings = [stat(NOTHING), stat(CpuTimes(user=100))]

    def read(_: object) -> CpuStat:
        looking.set()
        return readings.pop(0)

    monkeypatch.setattr(host_load, "read_stat", read)
    look = threading.Thread(target=lambda: found.append(host_load.at_start()))
    look.start()
    assert looking.wait(30)
    with HERE.measuring():
        look.join(30)
    assert found == [None]
    monkeypatch.setenv(host_load.VARIABLE, "off")
    assert host_load.at_start() is None


def test_the_words_name_the_tasks_that_take_the_cpus() -> None:
    assert words.load_told(BUSY) == f"Load 4.9 on 2 CPUs; qemu-system-x86 takes 87 % of one CPU. {words.ALL_THE_SAME}"
    assert words.load_told(None) == words.UNKNOWN
    stolen = HostLoad(None, 1, 3.0, 2.5, (), True)
    assert words.load_sentence(stolen) == "Other tasks take 3 % of the CPU; the hypervisor takes 2.5 %."
    quiet = HostLoad(0.04, 8, 1.0, 0.0, (), False)
    assert words.load_told(quiet) == "Load 0.0 on 8 CPUs; other tasks take 1 % of the 8 CPUs."
    two = dataclasses.replace(BUSY, busy_percent=90.0, tasks=(QEMU, QEMU, dataclasses.replace(QEMU, name="cc1")))
    assert words.load_sentence(two) == "Load 4.9 on 2 CPUs; 2 × qemu-system-x86 take 174 %; cc1 takes 87 % of one CPU."
    short = dataclasses.replace(BUSY, busy_percent=90.0, tasks=(dataclasses.replace(QEMU, cpu_percent=20.0),))
    assert words.load_sentence(short).endswith("takes 20 % of one CPU; in all, other tasks take 90 % of the 2 CPUs.")
    other = dataclasses.replace(BUSY, tasks=(ForeignLoad(1, "jitter-workshop", 0, 99.0),))
    assert "jitter-workshop (another workshop) takes" in words.load_sentence(other)
    evil = dataclasses.replace(BUSY, tasks=(ForeignLoad(1, "\x1b[31mx", 0, 99.0),))
    assert "\x1b" not in words.load_told(evil) + words.load_in_short(evil)
    assert all(len(line.plain) <= 40 for line in words.told(BUSY, 40))


def test_before_a_run_a_load_is_one_row_that_names_the_largest_task() -> None:
    assert words.load_in_short(BUSY) == "Load 4.9 on 2 CPUs, most from qemu-system-x86: the run will show it."
    small = dataclasses.replace(BUSY, average=None, tasks=(dataclasses.replace(QEMU, cpu_percent=20.0),))
    assert words.load_in_short(small) == "Other tasks take 47 % of 2 CPUs: the run will show it."
