"""Test the timeline of CPUs and threads, from made events."""

from __future__ import annotations

from jitter_workshop.evidence import timeline as timelines
from jitter_workshop.evidence.tracks import ASLEEP, ELSEWHERE, MOVING, READY, RUNS, UNKNOWN, UNSEEN, Timeline
from jitter_workshop.model.evidence import LOST, MISSING, Rate
from jitter_workshop.model.trace import TraceEvent
from tests.madetrace import MEASURED, OTHER, TIDS, event, pair, switch, tick


def build(events: list[TraceEvent], end: int = 1_000, **rest: object) -> Timeline:
    return timelines.build_timeline(events, rest.pop("cpus", (1,)), TIDS, 0, end, **rest)  # type: ignore[arg-type]


def segments(timeline: Timeline, cpu: int = 1) -> list[tuple[int, int, str, str]]:
    return [(s.start, s.end, s.kind, s.name) for s in timeline.cpus[cpu].segments]


def states(timeline: Timeline) -> list[tuple[int, int, str]]:
    return [(s.start, s.end, s.state) for s in timeline.threads["sampler"].stretches]


def test_the_innermost_owns_the_time() -> None:
    events = [
        switch(100, MEASURED, OTHER, stays=True),
        *pair(200, 600, "softirq", "NET_RX", pid=OTHER, number=3),
        *pair(300, 500, "irq", "nic0", pid=OTHER, number=24),
        event(420, "nmi", "perf_event_nmi_handler", pid=OTHER, a=20),
        switch(700, OTHER, MEASURED),
    ]
    timeline = build(events)
    assert segments(timeline) == [
        (0, 100, "task", "measured"),
        (100, 200, "task", "other"),
        (200, 300, "softirq", "NET_RX"),
        (300, 400, "irq", "nic0"),
        (400, 420, "vector", "NMI perf_event_nmi_handler"),
        (420, 500, "irq", "nic0"),
        (500, 600, "softirq", "NET_RX"),
        (600, 700, "task", "other"),
        (700, 1_000, "task", "measured"),
    ]
    assert timeline.unbalanced == 0
    assert states(timeline) == [(0, 100, RUNS), (100, 700, READY), (700, 1_000, RUNS)]


def test_a_vector_has_its_handlers_timers_and_calls_inside() -> None:
    events = [
        *tick(100, 50),
        event(200, "vector_entry", "call_function_single", a=251),
        *pair(210, 240, "csd", "flush_tlb_func", number=0),
        event(250, "vector_exit", "call_function_single", a=251),
    ]
    assert [s[2:] for s in segments(build(events))] == [
        ("task", "sampler"),
        ("vector", "local_timer"),
        ("timer", "tick_nohz_handler"),
        ("vector", "local_timer"),
        ("task", "sampler"),
        ("vector", "call_function_single"),
        ("vector", "flush_tlb_func"),
        ("vector", "call_function_single"),
        ("task", "sampler"),
    ]


def test_pieces_of_one_execution_have_one_number() -> None:
    events = [*pair(100, 500, "softirq", "RCU", number=9), *pair(200, 300, "irq", "nic0")]
    found = build(events).cpus[1].segments
    numbers = {s.name: {other.serial for other in found if other.name == s.name} for s in found}
    assert all(len(some) == 1 for some in numbers.values())
    assert len(set.union(*numbers.values())) == 3


def test_a_softirq_that_is_switched_out_goes_on_later() -> None:
    """PREEMPT_RT: softirqs run in tasks, which can be preempted in the middle of one."""
    events = [
        switch(100, MEASURED, OTHER, stays=True),
        event(150, "softirq_entry", "NET_RX", pid=OTHER, a=3),
        switch(200, OTHER, MEASURED, stays=True),
        switch(300, MEASURED, OTHER, stays=True),
        event(350, "softirq_exit", "NET_RX", pid=OTHER, a=3),
        switch(400, OTHER, MEASURED),
    ]
    timeline = build(events)
    assert segments(timeline)[2:6] == [
        (150, 200, "softirq", "NET_RX"),
        (200, 300, "task", "measured"),
        (300, 350, "softirq", "NET_RX"),
        (350, 400, "task", "other"),
    ]
    assert timeline.unbalanced == 0


def test_work_that_goes_on_on_another_cpu_keeps_its_name() -> None:
    worker = 300
    events = [
        switch(100, 0, worker, cpu=1),
        event(110, "work_start", "wb_workfn", pid=worker),
        switch(200, worker, 0, cpu=1),
        switch(300, 0, worker, cpu=2),
        event(400, "work_end", "wb_workfn", cpu=2, pid=worker),
    ]
    timeline = build(events, cpus=(1, 2))
    assert (300, 400, "workqueue", "wb_workfn") in segments(timeline, 2)
    assert timeline.unbalanced == 0


def test_idle_tasks_of_two_cpus_have_stacks_of_their_own() -> None:
    """The idle loop runs calls of other CPUs without an interrupt: their number, 0, is the same everywhere."""
    events = [
        event(100, "csd_entry", "remote_function", cpu=1, pid=0),
        switch(150, 0, OTHER, cpu=2),
        switch(180, OTHER, 0, cpu=2),
        event(200, "csd_exit", "remote_function", cpu=1, pid=0),
    ]
    timeline = build(events, cpus=(1, 2))
    assert segments(timeline, 1)[1] == (100, 200, "vector", "remote_function")
    assert segments(timeline, 2)[-1] == (180, 1_000, "task", "idle")


def test_a_task_that_calls_itself_idle_is_told_apart() -> None:
    assert segments(build([switch(100, 0, OTHER, names=("", "idle"))]))[-1][3] == f"idle (thread {OTHER})"


def test_sleeping_waking_and_running_again() -> None:
    events = [
        switch(100, MEASURED, 0),
        event(300, "waking", "measured", cpu=0, pid=OTHER, a=MEASURED, b=1),
        switch(350, 0, MEASURED),
    ]
    timeline = build(events)
    assert states(timeline) == [(0, 100, RUNS), (100, 300, ASLEEP), (300, 350, READY), (350, 1_000, RUNS)]
    assert [(deed.what, deed.of) for deed in timeline.deeds] == [("wake", "sampler")]


def test_a_waker_that_is_stamped_before_its_sleeper_has_left() -> None:
    events = [
        event(99, "waking", "measured", cpu=0, pid=OTHER, a=MEASURED, b=1),
        switch(100, MEASURED, OTHER),
        switch(200, OTHER, MEASURED),
        switch(300, MEASURED, OTHER),
        switch(400, OTHER, MEASURED),
    ]
    assert states(build(events)) == [
        (0, 100, RUNS),
        (100, 200, READY),
        (200, 300, RUNS),
        (300, 400, ASLEEP),
        (400, 1_000, RUNS),
    ]


def test_moving_is_from_the_move_to_running_on_the_new_cpu() -> None:
    stopper = 20
    events = [
        switch(100, MEASURED, stopper, stays=True, names=("measured", "migration/1")),
        event(120, "migrate", "measured", pid=stopper, a=MEASURED, b=1, c=2),
        switch(140, stopper, 0, names=("migration/1", "")),
        switch(200, 0, MEASURED, cpu=2),
    ]
    timeline = build(events, cpus=(1, 2))
    assert states(timeline) == [(0, 100, RUNS), (100, 120, READY), (120, 200, MOVING), (200, 1_000, RUNS)]
    moving = timeline.threads["sampler"].stretches[2]
    assert (moving.cpu, moving.detail) == (2, "migration/1")


def test_a_place_chosen_at_waking_is_no_migration() -> None:
    events = [
        switch(100, MEASURED, 0),
        event(300, "waking", "measured", cpu=0, pid=0, a=MEASURED, b=1),
        event(301, "migrate", "measured", cpu=0, pid=0, a=MEASURED, b=1, c=2),
        switch(330, 0, MEASURED, cpu=2),
    ]
    timeline = build(events, cpus=(1, 2))
    assert states(timeline)[1:] == [(100, 300, ASLEEP), (300, 301, READY), (301, 330, READY), (330, 1_000, RUNS)]
    assert timeline.threads["sampler"].stretches[3].cpu == 2


def test_a_cpu_that_is_not_traced_is_elsewhere() -> None:
    events = [
        switch(100, MEASURED, OTHER, stays=True),
        event(120, "migrate", "measured", pid=OTHER, a=MEASURED, b=1, c=5),
        switch(150, OTHER, 0, cpu=5),
    ]
    timeline = build(events)
    assert states(timeline)[-1] == (120, 1_000, ELSEWHERE)
    assert set(timeline.cpus) == {1}


def test_an_event_that_was_open_when_tracing_began_is_named_by_its_exit() -> None:
    assert segments(build([event(100, "irq_exit", "nic0", a=24)])) == [
        (0, 100, "irq", "nic0"),
        (100, 1_000, "task", "sampler"),
    ]
    interrupted = [
        event(100, "irq_entry", "nic0", a=24, flags=3),
        event(150, "irq_exit", "nic0", a=24, flags=3),
        event(200, "softirq_exit", "BLOCK", a=4, flags=2),
    ]
    timeline = build(interrupted)
    assert segments(timeline) == [
        (0, 100, "softirq", "BLOCK"),
        (100, 150, "irq", "nic0"),
        (150, 200, "softirq", "BLOCK"),
        (200, 1_000, "task", "sampler"),
    ]
    assert timeline.unbalanced == 0


def test_an_interrupt_without_an_exit_lasts_to_the_end_of_the_trace() -> None:
    timeline = build([event(900, "irq_entry", "nic0", a=24)])
    assert segments(timeline)[-1] == (900, 1_000, "irq", "nic0")
    assert timeline.unbalanced == 0


def test_a_switch_that_is_missing_outside_of_the_block_is_no_gap_of_it() -> None:
    def missing(*times: int) -> int:
        later = event(times[1], "irq_entry", "nic0", pid=MEASURED, a=24)
        timeline = build([switch(times[0], MEASURED, 0), later])
        assert timeline.unreported.total() == timeline.unbalanced
        return timeline.unbalanced

    assert (missing(800, 900), missing(800, 1_200), missing(-300, -100)) == (1, 1, 0)
    assert missing(1_100, 1_200) == 0


def test_an_exit_without_an_entry_is_counted_and_changes_nothing() -> None:
    events = [switch(50, OTHER, MEASURED), event(100, "softirq_exit", "RCU", a=9), event(120, "irq_exit", "x", a=1)]
    timeline = build(events)
    assert timeline.unbalanced == 2
    assert {s[2] for s in segments(timeline)} == {"task"}


def test_the_time_after_a_missing_exit_is_blamed_on_no_task() -> None:
    events = [switch(50, OTHER, MEASURED), event(100, "irq_entry", "nic0", a=24), switch(500, MEASURED, OTHER)]
    timeline = build(events)
    assert segments(timeline)[2:] == [(100, 500, UNKNOWN, MISSING), (500, 1_000, "task", "other")]
    assert timeline.unbalanced == 1
    again = build([*tick(100, 20)[:-1], *tick(500, 20)])
    assert (119, 500, UNKNOWN, MISSING) in segments(again)
    assert again.unbalanced == 1


def test_user_mode_ends_all_that_was_open() -> None:
    events = [event(100, "softirq_entry", "RCU", a=9), event(200, "fault", a=1), event(300, "softirq_exit", "RCU", a=9)]
    timeline = build(events)
    assert segments(timeline) == [
        (0, 100, "task", "sampler"),
        (100, 200, UNKNOWN, MISSING),
        (200, 1_000, "task", "sampler"),
    ]
    assert timeline.unbalanced == 2


def test_a_switch_that_is_missing_makes_the_time_before_unknown() -> None:
    events = [switch(100, OTHER, MEASURED), event(400, "softirq_entry", "RCU", pid=OTHER, a=9)]
    timeline = build(events)
    assert segments(timeline)[1] == (100, 400, UNKNOWN, MISSING)
    assert states(timeline) == [(0, 100, UNSEEN), (100, 1_000, UNSEEN)]
    back = build([switch(100, MEASURED, OTHER), event(400, "softirq_entry", "RCU", a=9)])
    assert states(back) == [(0, 100, RUNS), (100, 400, ASLEEP), (400, 1_000, RUNS)]


def test_nothing_is_known_after_the_last_event_of_a_full_buffer() -> None:
    events = [*tick(100, 20), *tick(300, 20)]
    timeline = build(events, lost={1: 7})
    assert segments(timeline)[-1] == (320, 1_000, UNKNOWN, LOST)
    assert states(timeline) == [(0, 320, RUNS), (320, 1_000, UNSEEN)]
    assert segments(build([], lost={1: 1})) == [(0, 1_000, UNKNOWN, LOST)]
    assert build([], lost={1: 0}).cpus == {}
    # An event that only another instance records says nothing about this one's buffer.
    later = [*events, event(700, "waking", cpu=1, a=MEASURED, b=1), event(800, "frequency", a=1, b=1)]
    assert segments(build(later, lost={1: 7}))[-1] == (320, 1_000, UNKNOWN, LOST)


def test_a_length_in_ns_is_turned_into_ticks_and_stays_behind_the_event_before() -> None:
    timeline = build([event(500, "nmi", a=100), event(520, "nmi", a=100)], rate=Rate(3, 1))
    assert segments(timeline)[1:3] == [(200, 500, "vector", "NMI"), (500, 520, "vector", "NMI")]


def test_events_that_do_not_change_the_running_task_are_kept_beside_the_segments() -> None:
    events = [
        *tick(100, 20),
        event(120, "stack", "a+0x1;b;c"),
        event(130, "frequency", pid=OTHER, cpu=0, a=2_000_000, b=1),
        event(140, "tick_stop", "SCHED", a=0),
        event(150, "tick_stop", a=1),
        event(160, "ipi_send", "flush_tlb_func", cpu=0, pid=OTHER, a=1),
    ]
    timeline = build(events)
    assert timeline.stacks == {1: [(120, "vector_exit", "a+0x1;b;c")]}
    assert timeline.frequencies == [(130, 1, 2_000_000)]
    assert timeline.ticks_kept == {(1, "SCHED"): 1}
    assert [(deed.what, deed.who, deed.cpu) for deed in timeline.deeds] == [("ipi", f"thread {OTHER}", 1)]


def test_the_stack_of_a_switch_belongs_to_the_leaving_thread() -> None:
    timeline = build([switch(100, MEASURED, OTHER, stays=True), event(101, "stack", "__schedule;schedule")])
    assert timeline.unbalanced == 0
    assert segments(timeline)[-1] == (100, 1_000, "task", "other")
    assert timeline.stacks == {1: [(101, "switch", "__schedule;schedule")]}


def test_events_that_are_not_known_are_counted() -> None:
    assert build([event(10, "reserved")]).unbalanced == 1
