"""Every rule by which a window's time is given to a cause."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.evidence.attribution import AROUND_NS, ARRIVAL_NS, split
from jitter_workshop.evidence.explain import explain_block, windows_of
from jitter_workshop.evidence.timeline import build_timeline
from jitter_workshop.model.evidence import CAUSE_KINDS, BlockSpan, Rate, Window
from jitter_workshop.model.run import Stall
from jitter_workshop.model.trace import KINDS, TraceEvent
from tests.madetrace import MEASURED, OTHER, TIDS, event, pair, switch, tick

LONG = 100_000


def parts(
    events: list[TraceEvent],
    window: Window,
    *,
    cpus: tuple[int, ...] = (1,),
    tids: dict[str, int] = TIDS,
    **rest: object,
) -> list[tuple[str, str, int]]:
    timeline = build_timeline(events, cpus, tids, 0, 10 * LONG, **rest)  # type: ignore[arg-type]
    return [(piece.kind, piece.name, piece.ticks) for piece in split(window, timeline)]


def sampler(start: int, end: int, **rest: object) -> Window:
    return Window(start, end, 1, "sampler", **rest)  # type: ignore[arg-type]


def test_an_interrupt_and_the_time_around_it_are_told_apart() -> None:
    assert parts(tick(1_000, 500), sampler(800, 1_700)) == [
        ("around", "local_timer", 200),
        ("vector", "local_timer", 1),
        ("timer", "tick_nohz_handler", 498),
        ("vector", "local_timer", 1),
        ("around", "local_timer", 200),
    ]


def test_a_gap_without_an_event_has_no_cause() -> None:
    assert parts(tick(50_000, 500), sampler(1_000, 5_000)) == [("no_event", "", 4_000)]
    assert parts([], sampler(1_000, 5_000)) == [("no_event", "", 4_000)]


def test_a_gap_that_touches_an_event_and_is_too_long_is_nobodys() -> None:
    events = pair(10_000, 12_000, "irq", "nic0")
    assert parts(events, sampler(10_000, 12_000 + AROUND_NS)) == [("irq", "nic0", 2_000), ("around", "nic0", AROUND_NS)]
    assert parts(events, sampler(10_000, 12_001 + AROUND_NS)) == [
        ("irq", "nic0", 2_000),
        ("no_event", "", AROUND_NS + 1),
    ]


def test_an_interrupt_may_be_on_its_way_for_longer() -> None:
    """Before it, where the hypervisor brings it; behind it, and before anything else, that time has no cause."""
    events = pair(50_000, 52_000, "irq", "nic0")
    gap = ARRIVAL_NS
    assert parts(events, sampler(50_000 - gap, 52_000)) == [("around", "nic0", gap), ("irq", "nic0", 2_000)]
    assert parts(events, sampler(49_999 - gap, 52_000))[0] == ("no_event", "", gap + 1)
    assert parts(events, sampler(50_000, 52_000 + gap))[1] == ("no_event", "", gap)
    later = pair(50_000, 52_000, "softirq", "NET_RX", number=3)
    assert parts(later, sampler(50_000 - gap, 52_000))[0] == ("no_event", "", gap)


def test_between_two_causes_it_is_around_the_longer_one() -> None:
    events = [*pair(1_000, 1_100, "irq", "nic0"), *pair(1_150, 1_900, "softirq", "NET_RX", number=3)]
    assert parts(events, sampler(1_000, 1_900))[1] == ("around", "NET_RX", 50)


def test_an_nmi_in_an_irq_in_a_softirq_in_a_task() -> None:
    events = [
        switch(100, MEASURED, OTHER, stays=True),
        *pair(200, 600, "softirq", "NET_RX", pid=OTHER, number=3),
        *pair(300, 500, "irq", "nic0", pid=OTHER, number=24),
        event(420, "nmi", "perf_event_nmi_handler", pid=OTHER, a=20),
        switch(700, OTHER, MEASURED),
    ]
    assert parts(events, sampler(90, 720)) == [
        ("around", "other", 10),
        ("task", "other", 100),
        ("softirq", "NET_RX", 100),
        ("irq", "nic0", 100),
        ("vector", "NMI perf_event_nmi_handler", 20),
        ("irq", "nic0", 80),
        ("softirq", "NET_RX", 100),
        ("task", "other", 100),
        ("around", "other", 20),
    ]


def test_preempted_twice() -> None:
    events = [
        switch(100, MEASURED, OTHER, stays=True),
        switch(200, OTHER, MEASURED),
        switch(250, MEASURED, 300, stays=True),
        *pair(300, 340, "work", "vmstat_update", pid=300),
        switch(400, 300, MEASURED),
    ]
    assert parts(events, sampler(100, 400)) == [
        ("task", "other", 100),
        ("around", "other", 50),
        ("task", "task300", 50),
        ("workqueue", "vmstat_update", 40),
        ("task", "task300", 60),
    ]


def test_sleep_is_nobodys_until_the_thread_is_woken() -> None:
    events = [
        switch(100, MEASURED, 0),
        event(300, "waking", cpu=0, pid=OTHER, a=MEASURED, b=1),
        switch(350, 0, OTHER),
        switch(500, OTHER, MEASURED),
    ]
    assert parts(events, sampler(100, 500)) == [
        ("no_event", "asleep", 200),
        ("task", "idle", 50),
        ("task", "other", 150),
    ]


def test_a_thread_that_was_due_waits_for_the_task_that_has_its_cpu() -> None:
    events = [
        switch(100, MEASURED, 0),
        event(300, "vector_entry", "local_timer", pid=0, a=236),
        event(310, "waking", pid=0, a=MEASURED, b=1),
        event(320, "vector_exit", "local_timer", pid=0, a=236),
        switch(350, 0, MEASURED),
    ]
    assert parts(events, sampler(250, 360, due=True)) == [
        ("task", "idle", 50),
        ("vector", "local_timer", 20),
        ("task", "idle", 30),
        ("around", "idle", 10),
    ]


def test_a_thread_that_could_run_on_an_idle_cpu_is_throttled() -> None:
    events = [switch(100, MEASURED, 0, stays=True), switch(400, 0, MEASURED)]
    assert parts(events, sampler(100, 400)) == [("task", "throttled", 300)]


def test_a_task_named_like_an_idle_cpu_is_told_apart() -> None:
    for name in ("idle", "throttled"):
        events = [switch(100, MEASURED, OTHER, stays=True, names=("", name)), switch(400, OTHER, MEASURED)]
        assert parts(events, sampler(100, 400)) == [("task", f"{name} (thread {OTHER})", 300)]


def test_the_time_of_a_migration_belongs_to_the_task_that_moved_the_thread() -> None:
    events = [
        switch(100, MEASURED, 20, stays=True, names=("", "migration/1")),
        event(120, "migrate", pid=20, a=MEASURED, b=1, c=2),
        switch(200, 0, MEASURED, cpu=2),
        *pair(300, 400, "irq", "nic0", cpu=2),
    ]
    assert parts(events, sampler(100, 420), cpus=(1, 2)) == [
        ("task", "migration/1", 20),
        ("migration", "migration/1", 80),
        ("around", "nic0", 100),
        ("irq", "nic0", 100),
        ("around", "nic0", 20),
    ]


def test_a_moved_thread_waits_for_the_task_that_has_its_new_cpu() -> None:
    events = [
        switch(50, 0, OTHER, cpu=2),
        switch(100, MEASURED, 20, stays=True, names=("", "migration/1")),
        event(120, "migrate", pid=20, a=MEASURED, b=1, c=2),
        *pair(300, 400, "irq", "nic0", cpu=2, pid=OTHER),
        switch(900, OTHER, 0, cpu=2),
        switch(950, 0, MEASURED, cpu=2),
    ]
    assert parts(events, sampler(100, 950), cpus=(1, 2)) == [
        ("task", "migration/1", 20),
        ("task", "other", 180),
        ("irq", "nic0", 100),
        ("task", "other", 500),
        ("migration", "migration/1", 50),
    ]


def test_on_a_cpu_that_is_not_traced_nothing_is_known_but_that_it_was_sent_there() -> None:
    """It was on its way at most until it read its clock, which ended the window that it was sent away in."""
    events = [event(100, "migrate", cpu=0, pid=OTHER, a=MEASURED, b=1, c=9)]
    assert parts(events, sampler(50, 150)) == [("around", "thread 200", 50), ("migration", "thread 200", 50)]
    assert parts(events, sampler(160, 190)) == [("no_event", "CPU not traced", 30)]
    assert parts(events, sampler(50, 150, messages=2))[1] == ("no_event", "CPU not traced", 50)
    assert parts([], Window(50, 150, 9, "sampler")) == [("no_event", "CPU not traced", 100)]


def test_a_fault_takes_the_gap_behind_it() -> None:
    assert parts([event(150, "fault", a=1)], sampler(100, 60_000)) == [
        ("around", "page_fault", 50),
        ("page_fault", "user", 59_850),
    ]
    assert parts([event(100, "fault", a=0)], sampler(100, 200)) == [("page_fault", "kernel", 100)]
    another = [event(150, "fault", cpu=2, a=1, pid=OTHER), event(90_000, "fault", a=1)]
    assert parts(another, sampler(100, 60_000), cpus=(1, 2)) == [("no_event", "", 59_900)]


@given(st.integers(0, 5_000_000), st.integers(0, 5_000_000))
def test_a_page_fault_gets_no_time_from_before_it(before: int, behind: int) -> None:
    """Something stopped the thread, and when it went on it touched a fresh page."""
    found = parts([event(1_000 + before, "fault", a=1)], sampler(1_000, 1_000 + before + behind))
    assert [p for p in found if p[0] == "page_fault"] == ([("page_fault", "user", behind)] if behind else [])
    earlier = [p for p in found if p[0] != "page_fault"]
    close = before <= AROUND_NS and behind > 0
    assert earlier == ([("around", "page_fault", before) if close else ("no_event", "", before)] if before else [])


def test_a_fault_that_has_to_wait_for_the_disk_owns_the_sleep() -> None:
    events = [
        event(150, "fault", a=1),
        switch(200, MEASURED, 0),
        *pair(400, 450, "irq", "disk0", pid=0),
        event(440, "waking", pid=0, a=MEASURED, b=1),
        switch(500, 0, MEASURED),
    ]
    found = parts(events, sampler(100, 600))
    assert found == [
        ("around", "page_fault", 50),
        ("page_fault", "user", 290),
        ("irq", "disk0", 10),
        ("task", "idle", 50),
        ("around", "idle", 100),
    ]


def test_a_gap_after_lost_events_has_no_cause() -> None:
    events = [*tick(1_000, 500), switch(2_000, MEASURED, OTHER, stays=True)]
    assert parts(events, sampler(1_990, 3_000), lost={1: 12}) == [
        ("no_event", "", 10),
        ("no_event", "events lost", 1_000),
    ]
    assert parts(events, sampler(1_990, 3_000)) == [("around", "other", 10), ("task", "other", 1_000)]


def test_a_missing_switch_blames_no_task_and_claims_no_loss() -> None:
    """Another thread got the CPU, and the next event finds the measured one there: who else ran is not known."""
    events = [switch(1_000, MEASURED, OTHER, stays=True), *pair(2_000, 2_500, "irq", "nic0")]
    assert parts(events, sampler(990, 2_600)) == [
        ("no_event", "", 10),
        ("no_event", "event missing", 1_000),
        ("irq", "nic0", 500),
        ("around", "nic0", 100),
    ]


RING = {"producer": 101, "accumulator": 102}


def consumer(start: int, end: int, publish: int | None) -> Window:
    return Window(start, end, 2, "accumulator", 1, publish=publish, start_seen=publish is None)


def test_a_consumer_without_a_reason_has_its_producers() -> None:
    events = pair(10_300, 19_000, "irq", "nic0", cpu=1, pid=101)
    assert parts(events, consumer(10_000, 19_500, 10_000), cpus=(1, 2), tids=RING) == [
        ("around", "nic0", 300),
        ("irq", "nic0", 8_700),
        ("around", "nic0", 500),
    ]


@pytest.mark.parametrize(
    ("publish", "events"),
    [
        (None, pair(10_300, 19_000, "irq", "nic0", cpu=1, pid=101)),
        (10_000, pair(60_300, 64_000, "irq", "nic0", cpu=1, pid=101)),
        (10_000, pair(5_000, 9_990, "irq", "nic0", cpu=1, pid=101)),
    ],
)
def test_a_producer_that_was_not_stopped_at_the_stamp_is_no_reason(
    publish: int | None, events: list[TraceEvent]
) -> None:
    window = consumer(10_000, 65_000, publish)
    assert parts(events, window, cpus=(1, 2), tids=RING) == [("no_event", "", 55_000)]


def test_a_consumer_that_runs_and_sees_nothing_waits_for_its_producer() -> None:
    """Its own interrupt is its own; the rest is the producer's, which was stopped all the time."""
    events = [
        switch(10_050, 101, OTHER, stays=True, cpu=1),
        *pair(30_000, 31_000, "irq", "nic0", cpu=2, pid=102),
        switch(90_000, OTHER, 101, cpu=1),
    ]
    assert parts(events, consumer(10_060, 60_000, 10_040), cpus=(1, 2), tids=RING) == [
        ("task", "other", 19_940),
        ("irq", "nic0", 1_000),
        ("task", "other", 29_000),
    ]
    back_before = [*events[:-1], switch(50_000, OTHER, 101, cpu=1)]
    assert parts(back_before, consumer(10_060, 60_000, 10_040), cpus=(1, 2), tids=RING)[2] == ("no_event", "", 29_000)


def test_a_consumer_catches_up_with_waiting_messages() -> None:
    events = [switch(10_000, 102, OTHER, stays=True, cpu=2), switch(500_000, OTHER, 102, cpu=2)]
    window = Window(10_000, 515_000, 2, "accumulator", 90, publish=10_000, start_seen=False)
    assert parts(events, window, cpus=(1, 2), tids=RING)[-1] == ("no_event", "catching up", 15_000)
    few = Window(10_000, 515_000, 2, "accumulator", 70, publish=10_000, start_seen=False)
    assert parts(events, few, cpus=(1, 2), tids=RING)[-1] == ("no_event", "", 15_000)


def test_a_consumer_with_a_reason_of_its_own_keeps_it() -> None:
    own = pair(10_500, 18_000, "softirq", "RCU", cpu=2, pid=102)
    events = [*own, *pair(10_300, 19_000, "irq", "nic0", cpu=1, pid=101)]
    assert ("softirq", "RCU", 7_500) in parts(events, consumer(10_000, 19_500, 10_000), cpus=(1, 2), tids=RING)


def test_an_interrupt_that_ended_just_before_a_message_may_still_hold_its_consumer() -> None:
    events = pair(2_000, 9_900, "irq", "nic0", cpu=2, pid=102)
    assert parts(events, consumer(10_000, 12_000, 10_000), cpus=(1, 2), tids=RING) == [("around", "nic0", 2_000)]
    seen = Window(10_000, 12_000, 2, "accumulator")
    assert parts(events, seen, cpus=(1, 2), tids=RING) == [("no_event", "", 2_000)]
    assert parts(events, consumer(10_000, 20_001, 10_000), cpus=(1, 2), tids=RING) == [("no_event", "", 10_001)]


def test_a_thread_that_the_trace_does_not_know_has_only_its_interrupts() -> None:
    events = [switch(100, MEASURED, OTHER, stays=True), *pair(300, 400, "irq", "nic0", pid=OTHER)]
    assert parts(events, Window(200, 500, 1, "receiver")) == [
        ("around", "nic0", 100),
        ("irq", "nic0", 100),
        ("around", "nic0", 100),
    ]


def test_an_empty_window_has_no_pieces() -> None:
    assert parts([], sampler(5, 5)) == []
    assert parts([], sampler(5, 4)) == []


def test_stalls_become_windows_of_the_traces_clock() -> None:
    span = BlockSpan(0, 1_000, 1_000 + 2_600, 7_000, 1_000)
    late = Stall(0, "accumulator", 2, 7_100, 7_200, 3)
    window = windows_of([late], span, "ring")[0]
    assert (window.start, window.end, window.publish, window.messages) == (1_260, 1_520, 1_260, 3)
    assert not window.start_seen
    assert windows_of([replace_thread(late, "producer")], span, "ring")[0].publish is None
    assert windows_of([replace_thread(late, "sampler")], span, "spin")[0].start_seen
    assert windows_of([replace_thread(late, "sleeper")], span, "wakeup")[0].due


def test_stalls_that_no_benchmark_lists_are_left_out() -> None:
    span = BlockSpan(0, 0, 10_000, 0, 10_000)
    stalls = [Stall(0, "sampler", 1, start, end, 1) for start, end in [(9, 8), (50, 90), (10, 60), (60, 70)]]
    assert [(w.start, w.end) for w in windows_of(stalls, span, "spin")] == [(10, 60), (60, 70)]
    many = [Stall(0, f"thread{n}", 1, 10, 9_000, 1) for n in range(1_000)]
    assert len(windows_of(many, span, "spin")) == 16


def replace_thread(stall: Stall, thread: str) -> Stall:
    return Stall(stall.block, thread, None, stall.start_ns, stall.end_ns, stall.messages)


THREADS = {"producer": 1, "accumulator": 2}
EVENTS = st.lists(
    st.builds(
        TraceEvent,
        ts=st.integers(0, 60),
        cpu=st.integers(0, 3),
        kind=st.sampled_from(KINDS),
        pid=st.sampled_from([-1, 0, 1, 2, 3, 4]),
        a=st.sampled_from([-1, 0, 1, 2, 3, 4]),
        b=st.integers(-1, 3),
        c=st.integers(-1, 3),
        name=st.sampled_from(["", "one", "two", "idle", "\x1b[2J\nirq 5: [task]"]),
        other=st.sampled_from(["", "three"]),
        flags=st.integers(0, 3),
    ),
    max_size=60,
)
WINDOWS = st.builds(
    Window,
    start=st.integers(0, 60),
    end=st.integers(0, 80),
    cpu=st.integers(-1, 3),
    thread=st.sampled_from(["producer", "accumulator", "nobody"]),
    messages=st.integers(1, 3),
    publish=st.none() | st.integers(0, 60),
    start_seen=st.booleans(),
    due=st.booleans(),
    duration_ns=st.none() | st.integers(0, 10_000),
)
LOST = st.dictionaries(st.integers(0, 3), st.integers(0, 5), max_size=2)


@given(EVENTS, st.lists(WINDOWS, max_size=6), LOST, st.sampled_from([1, 7, 1_000]), st.sampled_from([1, 3, 2_600]))
def test_the_parts_of_a_stall_add_up_for_any_trace(
    events: list[TraceEvent], windows: list[Window], lost: dict[int, int], ns: int, ticks: int
) -> None:
    timeline = build_timeline(events, (0, 1, 2), THREADS, 5, 70, Rate(ticks, ns), lost)
    assert timeline.unbalanced >= 0
    for track in timeline.cpus.values():
        edges = [(s.start, s.end) for s in track.segments]
        assert all(start < end for start, end in edges)
        assert all(a[1] == b[0] for a, b in pairwise(edges))
    for thread in timeline.threads.values():
        stretches = [(s.start, s.end) for s in thread.stretches]
        assert all(start < end for start, end in stretches)
        assert all(a[1] == b[0] for a, b in pairwise(stretches))
    for window in windows:
        pieces = split(window, timeline)
        assert sum(piece.ticks for piece in pieces) == max(window.end - window.start, 0)
        assert all(piece.kind in CAUSE_KINDS and piece.ticks > 0 for piece in pieces)
        at = window.start
        for piece in pieces:
            assert piece.start == at
            at = piece.end


@given(EVENTS, st.lists(WINDOWS, max_size=6), st.integers(1, 5_000))
def test_parts_in_ns_sum_to_the_stall(events: list[TraceEvent], windows: list[Window], ns: int) -> None:
    span = BlockSpan(0, 5, 70, 0, ns)
    block = explain_block(span, windows, events, (0, 1, 2), THREADS)
    assert len(block.stalls) == sum(window.end > window.start for window in windows)
    for stall in block.stalls:
        found = stall.parts()
        assert sum(found.values()) == stall.duration_ns
        assert all(took > 0 for took in found.values())
        if stall.window.duration_ns is not None:
            assert stall.duration_ns == stall.window.duration_ns


@given(EVENTS, WINDOWS)
def test_no_cause_is_blamed_for_a_moment_at_which_it_did_not_run(events: list[TraceEvent], window: Window) -> None:
    timeline = build_timeline(events, (0, 1, 2), THREADS, 5, 70)
    for piece in split(window, timeline):
        if piece.kind in ("task", "irq", "softirq", "timer", "vector", "workqueue"):
            name = "idle" if piece.name == "throttled" else piece.name
            for moment in range(piece.start, piece.end):
                running = [s for track in timeline.cpus.values() for s in track.between(moment, moment + 1)]
                assert any((s.kind, s.name) == (piece.kind, name) for s in running)


@given(st.data())
def test_a_trace_without_mistakes_gives_the_owner_of_each_tick(data: st.DataObject) -> None:
    """A CPU that is simulated tick by tick, with its events and the owner of every tick."""
    events: list[TraceEvent] = []
    owners: list[tuple[str, str]] = []
    irqs: list[str] = []
    stacks: dict[int, list[str]] = {1: [], 2: [], 3: []}
    names = {1: "one", 2: "two", 3: "three"}
    current = 1
    for now in range(data.draw(st.integers(1, 60))):
        stack = irqs or stacks[current]
        doing = data.draw(st.sampled_from(["run", "vector", "irq", "timer", "softirq", "leave", "switch", "run"]))
        if doing in ("irq", "timer") and len(irqs) < 3 and (irqs or doing == "irq"):
            irqs.append(doing)
            events.append(TraceEvent(now, 1, f"{doing}_entry", current, name=doing, flags=1))
        elif doing == "vector" and not irqs:
            irqs.append(doing)
            events.append(TraceEvent(now, 1, "vector_entry", current, name=doing, flags=1))
        elif doing == "softirq" and not irqs and not stacks[current]:
            stacks[current].append(doing)
            events.append(TraceEvent(now, 1, "softirq_entry", current, name=doing))
        elif doing == "leave" and stack:
            what = stack.pop()
            events.append(TraceEvent(now, 1, f"{what}_exit", current, name=what, flags=1 if what != "softirq" else 0))
        elif doing == "switch" and not irqs:
            into = data.draw(st.sampled_from([1, 2, 3]))
            events.append(TraceEvent(now, 1, "switch", current, a=into, b=1, name=names[into], other=names[current]))
            current = into
        top = (irqs or stacks[current] or [""])[-1]
        owners.append((top, top) if top else ("task", names[current]))
    timeline = build_timeline(events, (1,), {"one": 1}, 0, len(owners))
    assert timeline.unbalanced == 0
    if not events:
        assert timeline.cpus == {}
        return
    segments = timeline.cpus[1].segments
    assert [(s.kind, s.name) for s in segments for _ in range(s.start, s.end)] == owners
