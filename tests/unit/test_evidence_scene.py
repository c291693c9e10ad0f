"""Test the tracks of a traced time, read back from their Perfetto file: whatever the trace says, the sums by cause are
those of the report, no text from outside is dangerous, and each flow has both its ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("perfetto", reason="the extra 'perfetto' is not installed")

from jitter_workshop.evidence.explain import ExplainedBlock, explain_block, windows_of
from jitter_workshop.evidence.program import ProgramTimes, explain_program
from jitter_workshop.evidence.scene import (
    BLOCKED,
    HELD_UP,
    INTERRUPTED,
    PART,
    RAN,
    SLEEPING,
    STALL,
    TAKEN,
    UNSURE,
    WAITING,
    ProgramScene,
    Scene,
    of_block,
)
from jitter_workshop.evidence.summary import summarise_run
from jitter_workshop.model.evidence import BlockSpan, EvidenceReport
from jitter_workshop.model.run import Stall
from jitter_workshop.model.text import clean
from jitter_workshop.model.trace import TraceEvent
from jitter_workshop.report.formats.perfetto import FileClock, Writer
from tests.madetrace import ANY_EVENTS, MEASURED, OTHER, event, pair, switch, tick
from tests.perfettoread import Read, read

ZERO = 1_767_225_600_000_000_000
HOSTILE = "evil\x1b[2J\u202e\nforged \U000e0001" + "x" * 300


def shown(scene: Scene, *, monotonic: bool = False) -> Read:
    writer = Writer(FileClock(monotonic, ZERO, ZERO), "what it is about")
    writer.add(scene)
    return read(writer.whole())


def of_run(
    events: Iterable[TraceEvent], stalls: Iterable[Stall], span: BlockSpan, tids: dict[str, int]
) -> ExplainedBlock:
    return explain_block(span, windows_of(stalls, span, "spin"), events, (0, 1, 2), tids)


def told(block: ExplainedBlock) -> EvidenceReport:
    return summarise_run([block], run="r", threshold_ns=1, clock="mono", main_thread="sampler", top=1_000)


def drawn(block: ExplainedBlock) -> Read:
    scene = Scene()
    of_block(scene, block, ZERO)
    for rank, stall in enumerate(told(block).worst, 1):
        at = ZERO + stall.at_ns
        scene.mark_worst(rank, at, stall.duration_ns, stall.thread, stall.cpu, stall.parts)
    return shown(scene)


def sums(rows: Iterable[object]) -> dict[tuple[str, str], int]:
    """The sums by cause of a report, with the names as they are shown."""
    found: Counter[tuple[str, str]] = Counter()
    for row in rows:
        found[row.kind, clean(row.name)] += row.total_ns  # type: ignore[attr-defined]
    return {key: ns for key, ns in found.items() if ns}


def state_ns(found: Read, *states: str) -> int:
    return sum(one.ns for one in found.slices("Threads") if one.args["state"] in states)


STALLS = st.lists(
    st.builds(
        lambda thread, start, ns, messages: Stall(0, thread, 1, start, start + ns, messages),
        st.sampled_from(["sampler", "two"]),
        st.integers(0, 5_000),
        st.integers(0, 3_000),
        st.integers(1, 3),
    ),
    max_size=8,
)


@given(ANY_EVENTS, STALLS, st.integers(1, 5_000), st.integers(0, 10_000))
def test_of_any_run_the_sums_by_cause_are_those_of_the_report(
    events: list[TraceEvent], stalls: list[Stall], ns: int, at: int
) -> None:
    moved = [Stall(s.block, s.thread, s.cpu, at + s.start_ns, at + s.end_ns, s.messages) for s in stalls]
    block = of_run(events, moved, BlockSpan(0, 5, 50, at, ns), {"sampler": 1, "two": 2})
    found, report = drawn(block), told(block)
    assert found.sums("Stalls", PART) == sums(report.causes)
    whole = [one for one in found.slices("Stalls") if one.args["state"] == STALL]
    assert sorted((one.start - ZERO, one.ns) for one in whole) == sorted(
        (stall.at_ns, stall.duration_ns) for stall in report.worst if stall.duration_ns
    )
    # The marks are at the stalls, in order of length.
    marks = found.marks("Worst stalls")
    assert [(one.start - ZERO, one.args["ns"]) for one in marks] == [(s.at_ns, s.duration_ns) for s in report.worst]
    # A thread's slices fill the block without gaps, but for what is shorter than a ns.
    for track in found.group("Threads"):
        assert sum(one.ns for one in track.slices) in (0, ns)
    begun, ended = found.flows()
    assert begun == ended
    assert set(begun.values()) <= {1}
    assert all(text == clean(text, 400) for text in found.texts())


@given(
    ANY_EVENTS,
    st.dictionaries(st.integers(1, 4), st.sampled_from(["R", "S", "D", ""]), max_size=3),
    st.booleans(),
    st.none() | st.tuples(st.integers(1, 20), st.integers(1, 30)),
)
def test_of_any_program_the_sums_by_cause_are_those_of_the_report(
    events: list[TraceEvent], tids: dict[int, str], children: bool, quota: tuple[int, int] | None
) -> None:
    scene = ProgramScene()
    report = explain_program(events, (0, 1, 2), tids, 3, 50, children=children, quota=quota, scene=scene)
    assert report == explain_program(events, (0, 1, 2), tids, 3, 50, children=children, quota=quota)
    found = shown(scene, monotonic=True)
    compare(found, report)
    assert all(text == clean(text, 400) for text in found.texts())


def compare(found: Read, report: ProgramTimes) -> None:
    every = report.all_threads
    assert state_ns(found, RAN) == every.ran_ns
    assert state_ns(found, WAITING, INTERRUPTED) == every.waited_ns
    assert state_ns(found, INTERRUPTED) == every.interrupted_ns
    assert found.sums("Threads", WAITING, INTERRUPTED) == sums(report.causes)
    for state, rows in (
        (SLEEPING, [row for thread in report.threads for row in thread.slept_in or ()]),
        (BLOCKED, [row for thread in report.threads for row in thread.blocked_on or ()]),
        (UNSURE, [row for thread in report.threads for row in thread.unknown_in or ()]),
    ):
        assert found.sums("Threads", state) == sums(rows)
    assert sum(one.args["state"] == HELD_UP for one in found.slices("Threads")) == report.stalls
    begun, ended = found.flows()
    assert ended.keys() <= begun.keys()  # a thread may have no slice after it was woken
    assert set(begun.values()) <= {1}


def test_a_program_is_drawn_with_its_wakers() -> None:
    ours, waker = 10, 30
    names = {ours: "ours", waker: HOSTILE, 0: "swapper"}

    def switched(ts: int, out: int, into: int, letter: str, cpu: int) -> TraceEvent:
        said = {"name": names[into], "other": names[out]}
        return TraceEvent(ts, cpu, "switch", out, a=into, b=int(letter == "R"), c=ord(letter) % 82, **said)

    events = [
        switched(500, 0, waker, "R", 1),
        event(1_000, "call", "futex", cpu=0, pid=ours),
        switched(2_000, ours, 0, "S", 0),
        event(5_000, "waking", "ours", cpu=1, pid=waker, a=ours, b=0),
        switched(7_000, 0, ours, "R", 0),
        *pair(8_000, 9_500, "irq", "nic", cpu=0, pid=ours),
    ]
    scene = ProgramScene()
    report = explain_program(events, (0, 1), {ours: "R"}, 0, 10_000, scene=scene)
    found = shown(scene, monotonic=True)
    compare(found, report)
    (thread,) = found.group("Threads")[1:]
    assert thread.name == "ours 10"
    assert [(one.start, one.ns, one.depth, one.name) for one in thread.slices] == [
        (0, 2_000, 0, "running"),
        (2_000, 3_000, 0, "blocked: futex"),
        (5_000, 2_000, 0, "held up"),
        (5_000, 2_000, 1, "waits: idle"),
        (7_000, 1_000, 0, "running"),
        (8_000, 1_500, 0, "held up"),
        (8_000, 1_500, 1, "interrupted: nic"),
        (9_500, 500, 0, "running"),
    ]
    assert thread.slices[1].args["wakers"] == clean(HOSTILE)
    cpus = {track.name: track for track in found.group("CPUs")}
    (mark,) = cpus["CPU 1"].marks
    assert (mark.start, mark.name) == (5_000, f"{clean(HOSTILE)} wakes ours 10")
    assert thread.slices[2].ends == mark.begins
    assert [(one.start, one.ns, one.name) for one in cpus["CPU 0"].slices] == [
        (0, 2_000, "ours"),
        (7_000, 3_000, "ours"),
    ]
    assert [(one.ns, one.args["kind"]) for one in cpus["CPU 0 interrupts"].slices] == [(1_500, "irq")]
    assert found.clocks == {3: ZERO, 1: ZERO}
    assert found.primary == 3


def test_a_waker_that_is_the_programs_own_thread_has_the_mark_on_its_track() -> None:
    events = [
        switch(1_000, 0, 11, cpu=1),
        event(1_500, "call", "futex", cpu=0, pid=10),
        switch(2_000, 10, 0, cpu=0),
        event(4_000, "waking", "task10", cpu=1, pid=11, a=10, b=0),
        switch(4_000, 0, 10, cpu=0),
    ]
    scene = ProgramScene()
    explain_program(events, (0, 1), {10: "R", 11: "S"}, 0, 10_000, scene=scene)
    tracks = {track.name: track for track in shown(scene).group("Threads")}
    (mark,) = tracks["task11 11"].marks
    assert (mark.start, mark.name) == (4_000, "task11 wakes task10 10")
    # It came onto its CPU at once: the flow ends where it runs.
    assert [one.ends for one in tracks["task10 10"].slices if one.name == "running"] == [(), mark.begins]


def test_a_run_is_drawn_with_its_stalls_and_the_tasks_on_the_cpu() -> None:
    names = ("", HOSTILE)
    events = [
        *tick(500, 100),
        switch(10_000, MEASURED, OTHER, stays=True, names=names),
        *pair(15_000, 16_000, "irq", "nic", pid=OTHER),
        switch(30_000, OTHER, MEASURED, names=(HOSTILE, "")),
        switch(60_000, MEASURED, 0),
        event(70_000, "waking", "measured", cpu=2, pid=OTHER, a=MEASURED, b=1),
        switch(70_500, 0, MEASURED),
    ]
    block = of_run(
        events, [Stall(0, "sampler", 1, 9_000, 31_000, 1)], BlockSpan(0, 0, 100_000, 0, 100_000), {"sampler": MEASURED}
    )
    found = drawn(block)
    evil = clean(HOSTILE)
    stall, *parts = found.slices("Stalls")
    assert (stall.name, stall.ns, stall.args["messages"]) == ("stall", 22_000, 1)
    assert {(one.name, one.ns, one.depth) for one in parts} == {
        (evil, 5_000, 1),
        ("nic", 1_000, 1),
        (evil, 14_000, 1),
        (f"around {evil}", 1_000, 1),
    }
    (mark,) = found.marks("Worst stalls")
    assert mark.name.startswith("#1: 22 µs of sampler on CPU 1, most of it task evil [2J forged")
    sampler = found.group("Threads")[1]
    assert [one.args["state"] for one in sampler.slices if one.start >= ZERO + 30_000] == [
        *("running", "sleeping", "waiting", "running"),
    ]
    cpus = {track.name: track for track in found.group("CPUs")}
    assert [(one.start - ZERO, one.ns, one.name) for one in cpus["CPU 1"].slices] == [
        (0, 10_000, "measured"),
        (10_000, 20_000, evil),
        (30_000, 30_000, "measured"),
        (70_500, 29_500, "measured"),
    ]
    assert sum(one.ns for one in cpus["CPU 1 interrupts"].slices if one.args["state"] == TAKEN) == 1_100
    (waking,) = cpus["CPU 2"].marks
    assert waking.begins == next(one.ends for one in sampler.slices if one.start == ZERO + 70_000)
    assert found.clocks == {1: ZERO}


def test_names_for_others_are_the_scenes_to_choose() -> None:
    scene = Scene(lambda kind, name: "X" if kind in ("task", "around") else name)
    events = [switch(10, MEASURED, OTHER, stays=True), switch(30, OTHER, MEASURED)]
    of_block(
        scene,
        of_run(events, [Stall(0, "sampler", 1, 5, 50, 1)], BlockSpan(0, 0, 100, 0, 100), {"sampler": MEASURED}),
        0,
    )
    texts = shown(scene).texts()
    assert "X" in texts
    assert not {"other", "measured"} & set(texts)
