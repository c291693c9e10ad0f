"""Test the time of a program's threads, from made events: the parts sum to the whole, and each is what it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.agent.tracing.plan import CALLS
from jitter_workshop.evidence import program
from jitter_workshop.evidence.lives import follow
from jitter_workshop.evidence.program import ProgramTimes, explain_program
from jitter_workshop.model.evidence import CAUSE_KINDS
from jitter_workshop.model.program import CALLS_THAT_WAIT, NOT_WOKEN, WAIT_KINDS, ThreadTimes, Wait, Waker
from jitter_workshop.model.trace import TraceEvent
from tests.madetrace import ANY_EVENTS

OURS, THIEF, WAKER, FAR = 10, 20, 30, 40
NAMES = {0: "swapper", OURS: "ours", THIEF: "thief", WAKER: "waker", FAR: "far"}
END = 10_000


def event(ts: int, kind: str, name: str = "", *, cpu: int = 0, pid: int = OURS, **rest: int) -> TraceEvent:
    return TraceEvent(ts, cpu, kind, pid, name=name, **rest)


def switch(ts: int, out: int, into: int, state: str = "R", cpu: int = 0, priority: int = 120) -> TraceEvent:
    """``out`` leaves the CPU to ``into``; ``state``: the kernel's letter, R if it could go on running. ``priority``: of
    ``into``."""
    ready = state == "R"
    names = {"name": NAMES.get(into, f"t{into}"), "other": NAMES.get(out, f"t{out}")}
    return TraceEvent(
        ts, cpu, "switch", out, a=into, b=int(ready), c=(0 if ready else ord(state)) + 256 * priority, **names
    )


def waking(ts: int, who: int, whom: int = OURS, *, cpu: int = 1, to: int = 0, flags: int = 0) -> TraceEvent:
    return event(ts, "waking", NAMES.get(whom, ""), cpu=cpu, pid=who, a=whom, b=to, flags=flags)


def explain(events: Iterable[TraceEvent], tids: dict[int, str] | None = None, **rest: object) -> ProgramTimes:
    return explain_program(events, (0, 1), {OURS: "R"} if tids is None else tids, 0, END, **rest)  # type: ignore[arg-type]


def one(events: Iterable[TraceEvent], tids: dict[int, str] | None = None, **rest: object) -> ThreadTimes:
    return explain(events, tids, **rest).threads[0]


def times(thread: ThreadTimes) -> tuple[int | None, ...]:
    return thread.ran_ns, thread.waited_ns, thread.slept_ns, thread.blocked_ns, thread.unknown_ns


def sums(thread: ThreadTimes) -> dict[tuple[str, str], int]:
    return {(cause.kind, cause.name): cause.total_ns for cause in thread.causes or ()}


def test_time_that_others_had_is_waited_and_named() -> None:
    events = [
        event(100, "irq_entry", "nic", a=5, flags=1),
        event(200, "irq_exit", "nic", a=5, flags=1),
        switch(1_000, OURS, THIEF),
        event(1_500, "irq_entry", "nic", pid=THIEF, a=5, flags=1),
        event(1_600, "irq_exit", "nic", pid=THIEF, a=5, flags=1),
        switch(3_000, THIEF, OURS),
    ]
    found = explain(events)
    (thread,) = found.threads
    assert times(thread) == (7_900, 2_100, 0, 0, 0)
    assert (thread.name, thread.preempted, thread.interrupted_ns) == ("ours", 1, 100)
    assert sums(thread) == {("task", "thief"): 1_900, ("irq", "nic"): 200}
    # The hold-up by the thief has its interrupt inside, so it is one and has two causes.
    (stall,) = found.worst
    assert (found.stalls, stall.at_ns, stall.duration_ns, stall.cpu) == (1, 1_000, 2_000, 0)
    assert [(part.name, part.ns) for part in stall.parts] == [("thief", 1_900), ("nic", 100)]
    assert {(c.name, c.count, c.worst_ns) for c in found.causes} == {("thief", 1, 1_900), ("nic", 2, 100)}


def test_a_wait_for_a_futex_names_its_wakers_chain() -> None:
    events = [
        event(3_500, "call", "futex"),
        switch(4_000, OURS, 0, "S"),
        waking(4_100, FAR, THIEF),
        waking(4_500, THIEF, WAKER),
        waking(4_900, WAKER, THIEF),
        waking(5_000, WAKER),
        switch(5_100, 0, OURS),
        event(5_110, "call_end", "futex"),
    ]
    thread = one([*events, switch(9_000, WAKER, THIEF, "S", cpu=1), switch(9_500, THIEF, FAR, "S", cpu=1)])
    assert times(thread) == (8_900, 100, 0, 1_000, 0)
    assert sums(thread) == {("task", "idle"): 100}
    chain = tuple(Waker("task", name) for name in ("waker", "thief", "far"))
    assert thread.blocked_on == (Wait("futex", "futex", chain, 1, 1_000, 1_000),)


def test_one_begin_of_a_futex_counts_for_one_sleep() -> None:
    # The trace has no end of a futex: what the thread sleeps in afterwards is another call, which is not traced.
    events = [
        event(1_000, "call", "futex"),
        switch(2_000, OURS, 0, "S"),
        waking(3_000, WAKER),
        switch(3_100, 0, OURS),
        switch(4_000, OURS, 0, "S"),
        waking(6_000, WAKER),
        switch(6_100, 0, OURS),
    ]
    assert {(wait.kind, wait.name): wait.total_ns for wait in one(events).blocked_on or ()} == {
        ("futex", "futex"): 1_000,
        ("kernel", ""): 2_000,
    }
    # A preemption does not end the call, a page fault of the program's own code does.
    preempted = [event(1_000, "call", "futex"), switch(1_500, OURS, THIEF), switch(1_600, THIEF, OURS), *events[1:4]]
    assert [wait.name for wait in one(preempted).blocked_on or ()] == ["futex"]
    fault = [event(1_000, "call", "futex"), event(1_200, "fault", a=1, b=4), *events[1:4]]
    assert [(wait.kind, wait.name) for wait in one(fault).blocked_on or ()] == [("kernel", "")]


def test_a_thread_that_was_in_a_futex_before_the_trace_is_told_so_for_this_sleep() -> None:
    events = [waking(1_000, WAKER), switch(1_100, 0, OURS), switch(2_000, OURS, 0, "S"), waking(5_000, WAKER)]
    found = explain([*events, switch(5_100, 0, OURS)], {OURS: "S"}, in_futex=[OURS]).threads[0]
    assert {(wait.kind, wait.name): wait.total_ns for wait in found.blocked_on or ()} == {
        ("futex", "futex"): 1_000,
        ("kernel", ""): 3_000,
    }


def test_a_page_fault_is_told_by_those_that_the_next_one_followed_at_once() -> None:
    def faults(first: int, count: int, apart: int) -> list[TraceEvent]:
        return [event(first + n * apart, "fault", a=1, b=4) for n in range(count)]

    # Twenty pairs 100 ns apart, a preemption, and one more fault.
    burst = faults(100, 21, 100)
    away = [switch(2_150, OURS, THIEF), switch(9_000, THIEF, OURS), event(9_500, "fault", a=1, b=4)]
    found = explain([*burst, *away]).faults
    assert (found.count, found.waited, found.sampled, found.typical_ns, found.ran_ns) == (22, 0, 20, 100, 2_200)
    assert explain([*burst[1:], *away]).faults.typical_ns is None
    # A fault that sleeps waits for a disk: its time is known, and is not in the estimate.
    disk = [event(2_200, "fault", a=1, b=4), switch(2_250, OURS, 0, "D"), waking(3_250, WAKER), switch(3_300, 0, OURS)]
    found = explain([*burst, *disk]).faults
    assert (found.count, found.waited, found.waited_ns) == (22, 1, 1_000)
    assert found.ran_ns == 21 * 100
    # The estimate is no longer than the threads ran.
    uneven = explain([*faults(100, 41, 100), *faults(4_101, 39, 1), switch(4_300, OURS, 0, "S")]).faults
    assert (uneven.count, uneven.typical_ns, uneven.ran_ns) == (80, 100, 4_300)


@pytest.mark.parametrize(
    ("per_cpu", "limits"),
    [
        ({0: 0, 1: 500}, (0, 0)),
        # It ran for 7,000 of 10,000 ns on this CPU: of 5,000 that the hypervisor took at least 2,000 were its own.
        ({0: 5_000}, (1_900, 5_100)),
        ({0: 9_000}, (5_900, 7_000)),
        ({0: 200}, (0, 300)),
    ],
)
def test_the_hypervisors_part_of_a_threads_time_has_limits(per_cpu: dict[int, int], limits: tuple[int, int]) -> None:
    events = [switch(1_000, OURS, THIEF), switch(4_000, THIEF, OURS)]
    assert one(events, steal=program.StealTimes(per_cpu, 100, END)).stolen_ns == limits
    assert one(events).stolen_ns is None


def test_own_events_and_the_time_of_this_tool_are_told() -> None:
    events = [event(500, "fault", a=1), switch(1_000, OURS, FAR), switch(3_000, FAR, OURS), waking(3_500, WAKER, THIEF)]
    found = explain(events, itself={FAR: "this tool"})
    assert (found.own_events, found.tool_ran_ns) == (3, 2_000)


def test_a_chain_ends_where_a_waker_was_awake_all_the_time_and_where_an_interrupt_woke() -> None:
    before = [waking(3_900, FAR, WAKER), event(3_500, "call", "read"), switch(4_000, OURS, 0, "S")]
    thread = one([*before, waking(5_000, WAKER), switch(5_100, 0, OURS), switch(9_000, WAKER, 0, "S", cpu=1)])
    assert [wait.wakers for wait in thread.blocked_on or ()] == [(Waker("task", "waker"),)]
    timer = [
        event(4_990, "timer_entry", "hrtimer_wakeup", cpu=1, pid=THIEF, flags=1),
        waking(5_000, THIEF, flags=1),
        event(5_010, "timer_exit", "hrtimer_wakeup", cpu=1, pid=THIEF, flags=1),
        switch(5_100, 0, OURS),
    ]
    thread = one([event(3_500, "call", "clock_nanosleep"), switch(4_000, OURS, 0, "S"), *timer])
    assert thread.slept_in == (Wait("sleep", "clock_nanosleep", (Waker("timer", "hrtimer_wakeup"),), 1, 1_000, 1_000),)
    assert times(thread) == (8_900, 100, 1_000, 0, 0)


WAITED_FOR = [
    ("S", "read", ("io", "read")),
    ("D", "read", ("io", "read")),
    ("S", "wait4", ("child", "wait4")),
    ("S", "flock", ("lock", "flock")),
    ("D", "ftruncate", ("io", "ftruncate")),
    ("D", "munmap", ("kernel", "munmap")),
    ("S", "epoll_wait", ("sleep", "epoll_wait")),
    ("D", "", ("kernel", "")),
    ("S", "", ("kernel", "")),
    ("T", "read", ("stopped", "")),
]


@pytest.mark.parametrize(("letter", "call", "what"), WAITED_FOR)
def test_a_wait_of_a_thread_is_told_by_its_call_and_its_state(letter: str, call: str, what: tuple[str, str]) -> None:
    calls = [event(10, "call", call or "read"), *([] if call else [event(20, "call_end", "read")])]
    thread = one([*calls, switch(1_000, OURS, 0, letter), waking(2_000, WAKER), switch(2_000, 0, OURS)])
    waits = (*(thread.blocked_on or ()), *(thread.slept_in or ()))
    assert [(wait.kind, wait.name, wait.total_ns) for wait in waits] == [(*what, 1_000)]


def test_a_sleep_in_a_page_fault_is_one_of_the_fault() -> None:
    fault = [event(900, "fault", a=1, b=4), switch(1_000, OURS, 0, "D"), waking(2_000, 0), switch(2_000, 0, OURS)]
    # A later sleep of the same kind, after the thread ran again, is not the fault's.
    later = [switch(3_000, OURS, 0, "D"), waking(4_000, 0), switch(4_000, 0, OURS)]
    thread = one([*fault, *later])
    assert [(w.kind, w.name, w.total_ns) for w in thread.blocked_on or ()] == [
        ("kernel", "", 1_000),
        ("page_fault", "user", 1_000),
    ]
    assert thread.page_faults == 1


def test_a_call_that_began_before_the_trace_is_named_by_its_end() -> None:
    thread = one([waking(3_000, WAKER), switch(3_100, 0, OURS), event(3_110, "call_end", "futex")], {OURS: "S"})
    assert times(thread) == (6_900, 100, 0, 3_000, 0)
    assert [(w.kind, w.name) for w in thread.blocked_on or ()] == [("futex", "futex")]


@pytest.mark.parametrize(
    ("letter", "parts", "name"),
    [("S", (0, 0, END, 0, 0), NOT_WOKEN), ("D", (0, 0, 0, END, 0), ""), ("R", (0, 0, 0, 0, END), None)],
)
def test_a_thread_without_an_event_stayed_as_it_was(letter: str, parts: tuple[int, ...], name: str | None) -> None:
    thread = one([switch(5_000, THIEF, FAR)], {OURS: letter})
    assert times(thread) == parts
    assert [w.name for w in (*(thread.slept_in or ()), *(thread.blocked_on or ()))] == ([] if name is None else [name])


def test_a_thread_that_comes_on_without_being_woken_waited_before() -> None:
    thread = one([switch(4_000, THIEF, OURS)])
    assert times(thread) == (6_000, 4_000, 0, 0, 0)
    assert sums(thread) == {("task", "thief"): 4_000}


def test_threads_that_come_and_go_are_followed() -> None:
    events = [
        event(6_000, "fork", "child", a=50),
        switch(6_500, OURS, 50),
        event(6_700, "fork", "grandchild", pid=50, a=51),
        event(6_800, "exit", "child", pid=50, a=50),
        switch(6_900, 50, OURS, "Z"),
        switch(8_000, OURS, 51),
        switch(9_000, 51, OURS),
    ]
    found = {thread.tid: thread for thread in explain(events).threads}
    assert {tid: (t.began_ns, t.observed_ns) for tid, t in found.items()} == {
        OURS: (0, END),
        50: (6_000, 900),
        51: (6_700, 3_300),
    }
    assert times(found[50]) == (400, 500, 0, 0, 0)
    assert times(found[51]) == (1_000, 2_300, 0, 0, 0)
    assert sums(found[51]) == {("task", "ours"): 2_100, ("task", "t50"): 200}
    assert [thread.tid for thread in explain(events, children=False).threads] == [OURS]


def test_a_number_that_is_used_again_is_another_thread() -> None:
    events = [
        event(1_000, "fork", "first", a=50),
        switch(1_500, OURS, 50),
        event(1_600, "exit", "first", pid=50, a=50),
        switch(2_000, 50, OURS, "X"),
        event(5_000, "fork", "second", a=50),
        switch(5_500, OURS, 50),
    ]
    lives = follow(events, [OURS], 0, END).lives
    assert [(life.tid, life.start, life.end) for life in lives] == [
        (OURS, 0, END),
        (50, 1_000, 2_000),
        (50, 5_000, END),
    ]


def test_a_number_that_is_used_again_after_an_end_that_was_lost_is_another_thread() -> None:
    events = [event(1_000, "fork", "first", a=50), switch(1_500, OURS, 50), event(5_000, "fork", "second", a=50)]
    lives = follow(events, [OURS], 0, END).lives
    assert [(life.tid, life.start, life.end) for life in lives] == [
        (OURS, 0, END),
        (50, 1_000, 5_000),
        (50, 5_000, END),
    ]


def test_a_storm_of_threads_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitter_workshop.evidence.lives.MOST_LIVES", 5)
    monkeypatch.setattr(program, "MOST_THREADS", 3)
    found = explain([event(ts, "fork", "child", a=100 + ts) for ts in range(1, 50)])
    assert (len(found.threads), found.left_out, found.cut) == (3, 2, True)
    # Threads that are not listed are in the sums.
    assert found.all_threads.observed_ns == END + sum(END - ts for ts in range(1, 5))


def test_a_moved_thread_waits_for_the_task_that_has_its_new_cpu() -> None:
    events = [
        switch(50, 0, THIEF, cpu=1),
        switch(1_000, OURS, 0),
        event(1_000, "migrate", "ours", pid=WAKER, cpu=1, a=OURS, b=0, c=1),
        switch(4_000, THIEF, 0, "S", cpu=1),
        switch(4_200, 0, OURS, cpu=1),
    ]
    thread = one(events)
    assert times(thread) == (6_800, 3_200, 0, 0, 0)
    assert sums(thread) == {("task", "thief"): 3_000, ("migration", "thread 30"): 200}


def test_a_free_cpu_that_a_ready_thread_may_not_use_is_throttling() -> None:
    kept = [switch(1_000, OURS, 0), switch(4_000, 0, OURS)]
    assert sums(one(kept)) == {("task", "throttled"): 3_000}
    woken = [event(1, "call", "read"), switch(1_000, OURS, 0, "S"), waking(2_000, WAKER), switch(9_000, 0, OURS)]
    assert sums(one(woken)) == {("task", "idle"): 7_000}
    far = [*woken[:3], switch(2_000 + 2_000_000, 0, OURS)]
    found = explain_program(far, (0, 1), {OURS: "R"}, 0, 3_000_000, quota=(1_000, MS))
    assert sums(found.threads[0]) == {("task", "throttled"): 2_000_000}
    found = explain_program(far, (0, 1), {OURS: "R"}, 0, 3_000_000)
    assert sums(found.threads[0]) == {("task", "idle"): 2_000_000}


MS = 1_000_000


def period(ms: int) -> list[TraceEvent]:
    """The timer that begins a group's next period, on the other CPU."""
    name = "sched_cfs_period_timer"
    edges = (("timer_entry", 0), ("timer_exit", 1))
    return [event(ms * MS + at, kind, name, cpu=1, pid=0, flags=1) for kind, at in edges]


@pytest.mark.parametrize(("quota", "throttled"), [(20, 72), (40, 0)])
def test_a_wait_of_a_group_that_used_up_its_quota_is_throttling_until_its_timer(quota: int, throttled: int) -> None:
    events = [*period(1), switch(26 * MS, OURS, THIEF), *period(98), switch(103 * MS, THIEF, OURS), *period(201)]
    found = explain_program(events, (0, 1), {OURS: "R"}, 0, 110 * MS, quota=(quota * MS, 100 * MS))
    (thread,) = found.threads
    expected = {("task", "throttled"): throttled * MS, ("task", "thief"): (77 - throttled) * MS}
    assert sums(thread) == {key: ns for key, ns in expected.items() if ns}
    (stall,) = found.worst
    assert (stall.duration_ns, sum(part.ns for part in stall.parts)) == (77 * MS, 77 * MS)


def test_a_thread_that_was_preempted_with_quota_left_waits_for_the_task() -> None:
    events = [*period(1), switch(6 * MS, OURS, THIEF), *period(9), switch(12 * MS, THIEF, OURS)]
    found = explain_program(events, (0, 1), {OURS: "R"}, 0, 20 * MS, quota=(20 * MS, 100 * MS))
    assert sums(found.threads[0]) == {("task", "thief"): 6 * MS}
    # Without a timer before the wait, the period began one period before the next timer.
    for quota, period_ms, stopped in ((3, 7, 3), (5, 5, 0)):
        found = explain_program(events[2:], (0, 1), {OURS: "R"}, 0, 20 * MS, quota=(quota * MS, period_ms * MS))
        expected = {("task", "throttled"): stopped * MS, ("task", "thief"): (6 - stopped) * MS}
        assert sums(found.threads[0]) == {key: ns for key, ns in expected.items() if ns}


def test_the_threads_of_a_group_share_its_quota() -> None:
    second = [switch(2 * MS, 0, FAR, cpu=1), switch(24 * MS, FAR, 0, cpu=1)]
    events = [*period(1), *second, switch(16 * MS, OURS, THIEF), *period(98), switch(103 * MS, THIEF, OURS)]
    tids = {OURS: "R", FAR: "R"}
    found = explain_program(events, (0, 1), tids, 0, 110 * MS, quota=(38 * MS, 100 * MS))
    ours = next(thread for thread in found.threads if thread.tid == OURS)
    # Both had run for 15 + 14 ms, and two CPUs may hold back 5 ms each.
    assert sums(ours) == {("task", "throttled"): 82 * MS, ("task", "thief"): 5 * MS}
    found = explain_program(events, (0, 1), {OURS: "R"}, 0, 110 * MS, quota=(38 * MS, 100 * MS))
    assert sums(found.threads[0]) == {("task", "thief"): 87 * MS}


def test_a_real_time_thread_on_a_free_cpu_is_throttled_too() -> None:
    events = [switch(MS, OURS, 0), switch(6 * MS, 0, OURS, priority=49)]
    found = explain_program(events, (0, 1), {OURS: "R"}, 0, 10 * MS)
    assert sums(found.threads[0]) == {("task", "real-time throttling"): 5 * MS}


@pytest.mark.parametrize(
    ("mine", "theirs", "name"),
    [(49, 120, "real-time throttling"), (49, 19, "thief"), (120, 120, "thief"), (120, 49, "thief")],
)
def test_an_ordinary_task_on_a_real_time_threads_cpu_is_real_time_throttling(mine: int, theirs: int, name: str) -> None:
    first = switch(MS, OURS, THIEF, priority=theirs)
    events = [first, switch(6 * MS, THIEF, OURS, priority=mine)]
    found = explain_program(events, (0, 1), {OURS: "R"}, 0, 10 * MS)
    assert sums(found.threads[0]) == {("task", name): 5 * MS}
    # The switch away from a thread has its priority, too.
    found = explain_program([first._replace(c=first.c | mine << 16)], (0, 1), {OURS: "R"}, 0, 6 * MS)
    assert sums(found.threads[0]) == {("task", name): 5 * MS}


def test_without_system_calls_in_the_trace_a_plain_sleep_is_the_threads_own() -> None:
    events = [switch(1_000, OURS, 0, "S"), waking(2_000, WAKER), switch(2_000, 0, OURS)]
    assert times(one(events, calls=False)) == (9_000, 0, 1_000, 0, 0)
    assert times(one(events)) == (9_000, 0, 0, 1_000, 0)


def test_time_behind_lost_events_is_unknown() -> None:
    thread = one([switch(1_000, OURS, THIEF), switch(2_000, THIEF, OURS)], lost={0: 3})
    assert thread.unknown_ns == END - 2_000
    assert times(thread)[:2] == (1_000, 1_000)
    assert [cause.total_ns for cause in thread.unknown_in or ()] == [END - 2_000]


def test_this_program_is_told_by_its_own_name() -> None:
    found = explain([switch(1_000, OURS, THIEF), switch(2_000, THIEF, OURS)], itself={THIEF: "this tool"})
    assert [(cause.kind, cause.name) for cause in found.causes] == [("task", "this tool")]


def test_every_recorded_call_has_its_kind() -> None:
    every = [call for calls in CALLS_THAT_WAIT.values() for call in calls]
    assert set(every) == set(CALLS)
    assert len(set(every)) == len(every)
    assert set(CALLS_THAT_WAIT) | {"page_fault", "stopped"} == set(WAIT_KINDS)


@given(
    ANY_EVENTS,
    st.dictionaries(st.integers(1, 4), st.sampled_from(["R", "S", "D", ""]), max_size=3),
    st.dictionaries(st.integers(0, 3), st.integers(0, 5), max_size=2),
    st.booleans(),
    st.none() | st.tuples(st.integers(1, 20), st.integers(1, 30)),
)
def test_the_parts_of_a_threads_time_add_up_for_any_trace(
    events: list[TraceEvent], tids: dict[int, str], lost: dict[int, int], children: bool, quota: tuple[int, int] | None
) -> None:
    found = explain_program(events, (0, 1, 2), tids, 3, 50, lost=lost, children=children, quota=quota)
    assert found.left_out == 0
    for thread in found.threads:
        assert sum(part or 0 for part in times(thread)) == thread.observed_ns
        assert 0 <= thread.began_ns < thread.began_ns + thread.observed_ns <= 47
        for part, rows in (
            (thread.waited_ns, thread.causes),
            (thread.blocked_ns, thread.blocked_on),
            (thread.slept_ns, thread.slept_in),
            (thread.unknown_ns, thread.unknown_in),
        ):
            assert sum(row.total_ns for row in rows or ()) == part
        assert {cause.kind for cause in thread.causes or ()} <= set(CAUSE_KINDS) - {"no_event", "around"}
        assert {wait.kind for wait in thread.blocked_on or ()} <= set(WAIT_KINDS) - {"sleep"}
        assert all(len(wait.wakers) <= 3 for wait in (*(thread.blocked_on or ()), *(thread.slept_in or ())))
    assert sum(cause.total_ns for cause in found.causes) == found.all_threads.waited_ns
    for stall in found.worst:
        assert sum(part.ns for part in stall.parts) == stall.duration_ns


@given(st.data())
def test_a_simulated_scheduler_is_told_tick_by_tick(data: st.DataObject) -> None:
    """Two CPUs and three threads, simulated tick by tick, with the events that a kernel would make."""
    tids = (1, 2, 3)
    running: dict[int, int] = {0: 1, 1: 0}
    home = {1: 0, 2: 0, 3: 1}
    asleep: dict[int, str] = {2: "pause", 3: "pause"}
    irq: set[int] = set()
    truth: Counter[tuple[int, str]] = Counter()
    # An interrupt shows the task that runs at the beginning.
    events = [
        event(0, f"irq_{edge}", "nic", cpu=cpu, pid=running[cpu], a=1, flags=1)
        for cpu in (0, 1)
        for edge in ("entry", "exit")
    ]
    length = data.draw(st.integers(1, 60))
    for now in range(1, length):
        cpu = data.draw(st.integers(0, 1))
        doing = data.draw(st.sampled_from(["preempt", "sleep", "wake", "irq", "rest"]))
        current = running[cpu]
        queue = [t for t in tids if t not in asleep and t not in running.values() and home[t] == cpu]
        into = queue[0] if queue else 0
        if doing == "irq":
            edge = "exit" if cpu in irq else "entry"
            irq ^= {cpu}
            events.append(event(now, f"irq_{edge}", "nic", cpu=cpu, pid=current, a=1, flags=1))
        elif doing == "wake" and asleep and cpu not in irq:
            whom = data.draw(st.sampled_from(sorted(asleep)))
            del asleep[whom]
            events.append(waking(now, current, whom, cpu=cpu, to=home[whom]))
        elif doing == "sleep" and current and cpu not in irq:
            asleep[current] = data.draw(st.sampled_from(["read", "pause"]))
            events.append(event(now, "call", asleep[current], cpu=cpu, pid=current))
            events.append(switch(now, current, into, "S", cpu))
            running[cpu] = into
        elif doing == "preempt" and into and cpu not in irq:
            events.append(switch(now, current, into, "R", cpu))
            running[cpu] = into
        for tid in tids:
            on = next((c for c in running if running[c] == tid), None)
            if tid in asleep:
                truth[tid, "blocked" if asleep[tid] == "read" else "slept"] += 1
            else:
                truth[tid, "ran" if on is not None and on not in irq else "waited"] += 1
    found = explain_program(events, (0, 1), {1: "R", 2: "S", 3: "S"}, 1, length)
    for thread in found.threads:
        told = dict(zip(("ran", "waited", "slept", "blocked", "unknown"), times(thread), strict=True))
        expected = {part: truth[thread.tid, part] for part in told}
        if thread.tid != 1:
            # These sleep from the beginning, in a call that no event tells: both kinds of sleep are compared as one.
            for sides in (told, expected):
                sides["slept"] = (sides["slept"] or 0) + (sides.pop("blocked") or 0)
        assert told == expected
