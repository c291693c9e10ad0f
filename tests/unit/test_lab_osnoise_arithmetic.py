"""Test the comparison of the kernel's osnoise tracer with our timeline, on made-up stretches of which all is known."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.evidence.timeline import build_timeline
from jitter_workshop.evidence.tracks import Timeline
from jitter_workshop.model.evidence import Rate
from jitter_workshop.model.trace import IN_IRQ, IN_SOFTIRQ, TraceEvent
from tests.lab import osnoise
from tests.lab.osnoise import Clock, Gap, Noise

CPU, OWN = 3, 500
TASKS = {17: "rcu_preempt", 45: "ksoftirqd/3", 90: "a task: [1]"}
VECTORS = ("local_timer", "reschedule", "irq_work")
CLOCK = Clock(0, 0, Rate())
END = 10**9


@dataclass(frozen=True)
class Interrupt:
    vector: str
    length: int
    timer: bool


@dataclass(frozen=True)
class Visit:
    """Of another thread: stretches of running with an interrupt behind each; ``softirq``: it runs one throughout."""

    pid: int
    runs: tuple[int, ...]
    interrupts: tuple[Interrupt, ...]
    softirq: bool


interrupts = st.builds(Interrupt, st.sampled_from(VECTORS), st.integers(4, 1000), st.booleans())
visits = st.lists(st.integers(4, 1000), min_size=1, max_size=3).flatmap(
    lambda runs: st.builds(
        Visit,
        st.sampled_from(sorted(TASKS)),
        st.just(tuple(runs)),
        st.lists(interrupts, min_size=len(runs) - 1, max_size=len(runs) - 1).map(tuple),
        st.booleans(),
    )
)
stretches = st.lists(st.tuples(st.integers(1, 500), interrupts | visits), min_size=1, max_size=12)


class Stretch:
    """Hold what both tracers would have recorded of it, ticks and ns being the same."""

    def __init__(self, what: list[tuple[int, Interrupt | Visit]]) -> None:
        self.now = 1000
        self.events: list[TraceEvent] = []
        self.noises: list[Noise] = []
        self.gaps: list[Gap] = []
        self._event("switch", 1, OWN, "osnoise/3", "before")
        for pause, one in what:
            self.now += pause
            began, before = self.now, len(self.noises)
            if isinstance(one, Interrupt):
                self._interrupt(OWN, one)
            else:
                self._visit(one)
            self.gaps.append(Gap(began, self.now - began, len(self.noises) - before, self.now + 1))
            self.now += 2
        self.now += 10
        self._event("vector_entry", OWN, 1, "reschedule", flags=IN_IRQ)  # the stretch ends within this one

    def _event(self, kind: str, pid: int, a: int = 0, name: str = "", other: str = "", flags: int = 0) -> None:
        self.events.append(TraceEvent(self.now, CPU, kind, pid, a, 1, 0, name, other, flags))

    def _interrupt(self, pid: int, one: Interrupt) -> None:
        began = self.now
        self._event("vector_entry", pid, 1, one.vector, flags=IN_IRQ)
        if one.timer:
            self.now += 1
            self._event("timer_entry", pid, 0, "tick_sched_timer", flags=IN_IRQ)
            self.now = began + one.length - 1
            self._event("timer_exit", pid, 0, "tick_sched_timer", flags=IN_IRQ)
        self.now = began + one.length
        self._event("vector_exit", pid, 1, one.vector, flags=IN_IRQ)
        self.noises.append(Noise(("irq", one.vector), began, one.length, self.now))

    def _visit(self, one: Visit) -> None:
        began, name = self.now, TASKS[one.pid]
        self._event("switch", OWN, one.pid, name, "osnoise/3")
        self.now += 1
        if one.softirq:
            self._event("softirq_entry", one.pid, 3, "NET_RX", flags=IN_SOFTIRQ)
        for place, run in enumerate(one.runs):
            # A timer's function in the softirq itself, which an interrupt may interrupt, is no part of the interrupt.
            self._event("timer_entry", one.pid, 0, "hrtimer_wakeup")
            self.now += run
            if place < len(one.interrupts):
                self._interrupt(one.pid, one.interrupts[place])
                self.now += 1
            self._event("timer_exit", one.pid, 0, "hrtimer_wakeup")
        if one.softirq:
            self._event("softirq_exit", one.pid, 3, "NET_RX", flags=IN_SOFTIRQ)
        self.now += 1
        self._event("switch", one.pid, OWN, "osnoise/3", name)
        taken = self.now - began - sum(interrupt.length for interrupt in one.interrupts)
        self.noises.append(Noise(("thread", name), began, taken, self.now))

    def timeline(self) -> Timeline:
        return build_timeline(self.events, [CPU], {osnoise.THREAD: OWN}, 0, self.now + 1)

    def text(self) -> str:
        """As the kernel prints it."""
        lines = ["# tracer: osnoise", "#           TASK-PID      CPU# |||||||   TIMESTAMP    IN US"]
        for noise in self.noises:
            kind, name = noise.cause
            at = f"{noise.start_ns // 10**9}.{noise.start_ns % 10**9:09}"
            said = f"{kind}_noise: {name:>8}:236 start {at} duration {noise.duration_ns} ns"
            lines.append(f"{'osnoise/3':>15}-{OWN}     [003] d..h1.. {noise.stamp}: {said}")
        for gap in self.gaps:
            at = f"{gap.start_ns // 10**9}.{gap.start_ns % 10**9:09}"
            said = f"sample_threshold: start {at} duration {gap.duration_ns} ns interference {gap.count}"
            lines.append(f"{'osnoise/3':>15}-{OWN}     [003] ....... {gap.stamp}: {said}")
        return "\n".join(lines)


@given(stretches)
def test_both_tracers_agree_exactly_on_the_same_noise(what: list[tuple[int, Interrupt | Visit]]) -> None:
    made = Stretch(what)
    noises, gaps = osnoise.read(made.text(), CPU)
    assert (noises, gaps) == (made.noises, made.gaps)
    timeline = made.timeline()
    assert timeline.unbalanced == 0
    stays = osnoise.stays(timeline.cpus[CPU].segments, OWN, Rate())
    rows = osnoise.one_by_one(stays, noises, CLOCK, 0, made.now, Rate())
    assert sum(len(row.pairs) for row in rows.values()) == len(noises)
    for row in rows.values():
        assert (row.only_ours, row.only_theirs) == ([], [])
        assert all(pair.ours_ns == pair.theirs_ns and pair.apart_ns == 0 and pair.near for pair in row.pairs)
        assert row.finer.total() == row.ours_ns == row.theirs_ns
        assert row.sums_agree
    split = osnoise.split_gaps(gaps, noises, stays, timeline, CPU, CLOCK)
    assert len(split) == len(gaps)
    assert all(gap.same and gap.near and gap.ours == gap.theirs for gap in split)


@given(stretches, st.data())
def test_noise_that_only_one_tracer_saw_is_found(
    what: list[tuple[int, Interrupt | Visit]], data: st.DataObject
) -> None:
    made = Stretch(what)
    gone = data.draw(st.sampled_from(made.noises))
    fewer = [noise for noise in made.noises if noise != gone]
    stays = osnoise.stays(made.timeline().cpus[CPU].segments, OWN, Rate())
    (mine,) = [stay for stay in stays if (stay.cause, stay.start) == (gone.cause, gone.start_ns)]
    rows = osnoise.one_by_one(stays, fewer, CLOCK, 0, made.now, Rate())
    assert [(cause, row.only_ours) for cause, row in rows.items() if row.only_ours] == [
        (gone.cause, [gone.duration_ns])
    ]
    assert not any(row.only_theirs for row in rows.values())
    others = [stay for stay in stays if stay is not mine]
    rows = osnoise.one_by_one(others, made.noises, CLOCK, 0, made.now, Rate())
    assert [(cause, row.only_theirs) for cause, row in rows.items() if row.only_theirs] == [
        (gone.cause, [gone.duration_ns])
    ]
    assert not any(row.only_ours for row in rows.values())
    split = osnoise.split_gaps(made.gaps, fewer, stays, made.timeline(), CPU, CLOCK)
    assert sum(gap.ours == gap.theirs for gap in split) == len(split) - 1


def test_another_name_for_the_same_time_is_no_agreement() -> None:
    made = Stretch([(10, Interrupt("local_timer", 100, True))])
    (noise,) = made.noises
    stays = osnoise.stays(made.timeline().cpus[CPU].segments, OWN, Rate())
    renamed = [noise._replace(cause=("irq", "reschedule"))]
    rows = osnoise.one_by_one(stays, renamed, CLOCK, 0, made.now, Rate())
    assert rows["irq", "local_timer"].only_ours == [100]
    assert rows["irq", "reschedule"].only_theirs == [100]
    assert rows["irq", "reschedule"].pairs == []
    (gap,) = osnoise.split_gaps(made.gaps, renamed, stays, made.timeline(), CPU, CLOCK)
    assert not gap.same


def test_an_nmi_is_one_though_each_of_its_handlers_is_told() -> None:
    """In an interrupt of its own, of which it is no part; the next NMI is another one."""
    events = [
        TraceEvent(100, CPU, "switch", 1, OWN, 1, 0, "osnoise/3", "before"),
        TraceEvent(1000, CPU, "vector_entry", OWN, 1, 0, 0, "local_timer", flags=IN_IRQ),
        TraceEvent(1500, CPU, "nmi", OWN, 100, name="one"),
        TraceEvent(1700, CPU, "nmi", OWN, 150, name="other"),
        TraceEvent(2000, CPU, "vector_exit", OWN, 1, 0, 0, "local_timer", flags=IN_IRQ),
        TraceEvent(50_000, CPU, "nmi", OWN, 100, name="one"),
    ]
    timeline = build_timeline(events, [CPU], {osnoise.THREAD: OWN}, 0, 60_000)
    found = osnoise.stays(timeline.cpus[CPU].segments, OWN, Rate())
    assert [(stay.cause, stay.start, stay.end, stay.taken) for stay in found if stay.start] == [
        (("irq", "local_timer"), 1000, 2000, 750),
        (("nmi", ""), 1400, 1700, 250),
        (("nmi", ""), 49_900, 50_000, 100),
    ]
    line = "    ktimers/3-44      [003] d..Z.12  2150: nmi_noise: start 0.000001350 duration 400 ns"
    ((noise,), _) = osnoise.read(line, CPU)
    assert noise == Noise(("nmi", ""), 1350, 400, 2150)
    rows = osnoise.one_by_one(found, [noise], CLOCK, 1, 60_000, Rate())
    assert rows["nmi", ""].pairs == [(250, 400, 450, True)]


def test_noise_across_an_edge_of_the_window_is_no_difference_of_the_tracers() -> None:
    made = Stretch([(10, Interrupt("local_timer", 100, False)), (10, Interrupt("local_timer", 50, False))])
    first, second = made.noises
    stays = osnoise.stays(made.timeline().cpus[CPU].segments, OWN, Rate())
    rows = osnoise.one_by_one(stays, made.noises, CLOCK, first.start_ns + 1, made.now, Rate())
    assert rows["irq", "local_timer"].pairs == [(50, 50, 0, False)]
    rows = osnoise.one_by_one(stays, made.noises, CLOCK, 0, second.stamp, Rate())
    assert rows["irq", "local_timer"].pairs == [(100, 100, 0, False)]
    assert all(not row.only_ours and not row.only_theirs for row in rows.values())


@pytest.mark.parametrize(
    ("began", "length", "told", "apart", "held"),
    [
        (1000, 30_000, 31_000, 0, False),
        (900, 30_000, 31_000, 100, False),
        (1000, 29_000, 30_500, 500, False),
        (1000, 15_000, 31_000, 15_000, True),  # held between its clock and its event
        (1000, 15_000, 16_000, 15_000, True),  # between its event and ours
        (-14_000, 45_000, 31_000, 15_000, True),  # at the beginning
    ],
)
def test_how_far_apart_the_clocks_were_read(began: int, length: int, told: int, apart: int, held: bool) -> None:
    cause = ("irq", "local_timer")
    stay = osnoise.Stay(cause, 1000, 31_000, 30_000)
    rows = osnoise.one_by_one([stay], [Noise(cause, began, length, told)], CLOCK, -20_000, 40_000, Rate())
    row = rows[cause]
    assert row.pairs == [(30_000, length, apart, False)]
    assert row.pairs[0].held is held
    assert (row.ours_ns, row.theirs_ns) == ((0, 0) if held else (30_000, length))


def test_nested_time_that_is_counted_twice_is_seen() -> None:
    cause = ("thread", "kworker/3:1")
    theirs = Noise(cause, 1000, 12_000, 31_000)
    twice = osnoise.Stay(cause, 1000, 31_000, 30_000)
    (pair,) = osnoise.one_by_one([twice], [theirs], CLOCK, 0, 40_000, Rate())[cause].pairs
    assert not pair.near
    stay = osnoise.Stay(cause, 1000, 31_000, 12_000)
    rows = osnoise.one_by_one([stay], [theirs], CLOCK, 0, 40_000, Rate())
    assert osnoise.Comparison(rows, []).nested == rows[cause].pairs
    assert rows[cause].pairs == [(12_000, 12_000, 0, True)]


@pytest.mark.parametrize(
    ("ours", "theirs", "number", "same"),
    [
        (100_000, 100_000, 1, True),
        (110_000, 100_000, 1, True),
        (110_001, 100_000, 1, False),
        (89_999, 100_000, 1, False),
        (1_050_000, 1_000_000, 1, True),
        (1_050_001, 1_000_000, 1, False),
        (0, 20_000, 2, True),
        (0, 20_001, 2, False),
    ],
)
def test_the_tolerance(ours: int, theirs: int, number: int, same: bool) -> None:
    assert osnoise.near(ours, theirs, number) is same


@given(st.integers(1, 4), st.integers(0, 10**12), st.lists(st.integers(0, 5000), min_size=10, max_size=40))
def test_two_clocks_are_laid_over_each_other(ticks: int, offset: int, late: list[int]) -> None:
    """Gaps that are stamped at once, or up to 5 µs later, give the clock within what the promptest were late."""
    late[0] = late[-1] = 0
    gaps = [
        Gap(offset + place * 10**6, 100, 0, ticks * (place * 10**6 + 100 + delay)) for place, delay in enumerate(late)
    ]
    clock = osnoise.scheduler_clock(gaps, Rate(ticks, 1))
    assert clock.rate.ticks == ticks * clock.rate.ns
    assert clock.ticks(offset) == 0
    assert clock.ticks(offset + 10**6) == ticks * 10**6


def test_too_few_gaps_are_no_clock() -> None:
    with pytest.raises(ValueError, match="5 gaps"):
        osnoise.scheduler_clock([Gap(0, 1, 0, 1)] * 5, Rate())


@pytest.mark.parametrize(
    "said",
    [
        "softirq_noise:    SCHED:7 start 3.000000001 duration 5 ns",
        "nmi_noise: start 3.000000001",
        "osnoise_sample: start 3.000000001 duration 5 ns",
        "irq_noise: local_timer start 3.000000001 duration 5 ns",
        "sample_threshold: start 3.1 duration 5 ns interference 0",
    ],
)
def test_an_event_that_is_not_understood_is_an_error(said: str) -> None:
    line = f"       osnoise/3-492     [003] d..h1..  65486130196: {said}"
    with pytest.raises(ValueError, match="not understood"):
        osnoise.read(line, CPU)
    assert osnoise.read(line, 2) == ([], [])


def test_the_kernels_own_lines() -> None:
    text = """\
# tracer: osnoise
#           TASK-PID      CPU# |||||||   TIMESTAMP    IN US       IN US  AVAILABLE
           timer-497     [003] d..h211 110816138173: irq_noise: local_timer:236 start 42.483579140 duration 407817 ns
           timer-497     [003] d...3.. 110816427865: thread_noise:    timer:497 start 42.483270321 duration 421185 ns
     osnoise/3-493   [003] ....... 110816469959: sample_threshold: start 42.478745362 duration 5369254 ns interference 4
"""
    noises, gaps = osnoise.read(text, CPU)
    assert noises == [
        Noise(("irq", "local_timer"), 42_483_579_140, 407_817, 110_816_138_173),
        Noise(("thread", "timer"), 42_483_270_321, 421_185, 110_816_427_865),
    ]
    assert gaps == [Gap(42_478_745_362, 5_369_254, 4, 110_816_469_959)]
