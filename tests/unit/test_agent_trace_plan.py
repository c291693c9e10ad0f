"""Test the events to record on each kernel, and the switches with a kernel stack, by the letters of the kernel's own
thread states."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitter_workshop.agent.tracing.capture import of_own_threads
from jitter_workshop.agent.tracing.plan import (
    MOST_RANGES,
    WantedEvents,
    choose_events,
    own_filters,
    stack_trigger,
    wanted_of_program,
)
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.trace.format import EventFormat, parse_event
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.trace import TraceEvent
from tests import tracedpages


@pytest.mark.parametrize("name", tracedpages.NAMES)
def test_a_stack_is_taken_where_a_thread_loses_its_cpu_and_not_where_it_sleeps(name: str) -> None:
    switch = parse_event(tracedpages.recorded(name).formats["sched:sched_switch"])
    (sleeps,) = [state for state, letter in switch.symbols.items() if letter == "S"]
    assert stack_trigger([101, 102], switch) == (
        f"stacktrace if (prev_pid == 101 || prev_pid == 102) && prev_state != {sleeps}"
    )


@pytest.mark.parametrize("symbols", [{}, {2: "D"}, {1: "s", 2: "D"}])
def test_where_the_kernel_names_no_states_no_stack_is_taken(symbols: dict[int, str]) -> None:
    with pytest.raises(ValueError, match="does not say which values of prev_state mean sleep"):
        stack_trigger([1], EventFormat("sched_switch", 300, {}, symbols))


def test_of_a_program_the_calls_that_may_wait_are_recorded_of_its_own_and_of_newer_threads(tmp_path: Path) -> None:
    events = ("sched:sched_switch", "exceptions:page_fault_user")
    calls = tuple(f"syscalls:sys_{edge}_{name}" for edge in ("enter", "exit") for name in ("futex", "read", "getpid"))
    for event in (*events, *calls):
        (tmp_path / "tracing/events" / event.replace(":", "/")).mkdir(parents=True)
    found = wanted_of_program(HostRoot(tmp_path), "/tracing", [12, 10], 40)
    own = "(common_pid == 10 || common_pid == 12 || common_pid > 40)"
    assert found.hot == {"sched:sched_switch": ""}
    assert found.senders == {
        "exceptions:page_fault_user": own,
        "syscalls:sys_enter_read": own,
        "syscalls:sys_exit_read": own,
        # Of a futex only the calls that may wait, and not their end.
        "syscalls:sys_enter_futex": f"op != 1 && op != 129 && {own}",
    }


def test_many_threads_become_a_few_ranges_that_have_them_all() -> None:
    tids = [100 * n + extra for n in range(12) for extra in (0, 1)]
    (only,) = own_filters(["exceptions:page_fault_user"], tids, 5_000).values()
    assert only.count("||") == MOST_RANGES
    parts = only.strip("()").split(" || ")[:-1]
    ranges = [[int(word) for word in part.replace(")", "").split() if word.isdigit()] for part in parts]
    assert all(any(low <= tid <= high for low, high in ranges) for tid in tids)
    # The widest gaps stay out, and there is no filter once numbers begin again.
    assert only.startswith("((common_pid >= 0 && common_pid <= ")
    assert own_filters(["exceptions:page_fault_user"], tids, None) == {"exceptions:page_fault_user": ""}


def test_calls_and_faults_of_other_tasks_are_dropped() -> None:
    ours, child, other = 10, 11, 12
    events = [
        TraceEvent(1, 0, "call", ours, name="read"),
        TraceEvent(2, 0, "call", child, name="read"),
        TraceEvent(3, 0, "fork", ours, a=child),
        TraceEvent(4, 0, "fork", other, a=13),
        TraceEvent(5, 0, "call", child, name="read"),
        TraceEvent(6, 1, "fault", 13),
        TraceEvent(7, 1, "switch", other, a=13),
        TraceEvent(8, 0, "exit", child, a=child),
        TraceEvent(9, 0, "call_end", child, name="read"),
        TraceEvent(10, 0, "fault", ours),
    ]
    assert [event.ts for event in of_own_threads(events, [ours])] == [1, 3, 4, 5, 7, 8, 10]


def asked(root: Path, *events: str) -> WantedEvents:
    """Return what is wanted of a kernel that has these events."""
    for event in events:
        (root / "tracing/events" / event.replace(":", "/")).mkdir(parents=True)
    return choose_events(HostRoot(root), "/tracing", [101], CpuSet.of((1, 2)))


ARM = ("sched:sched_switch", "irq:irq_handler_entry", "ipi:ipi_entry", "ipi:ipi_exit", "ipi:ipi_raise")


def test_an_arm_kernel_tells_interrupts_between_cpus_by_events_of_its_own(tmp_path: Path) -> None:
    found = asked(tmp_path, *ARM)
    assert set(found.hot) == {"sched:sched_switch", "irq:irq_handler_entry", "ipi:ipi_entry", "ipi:ipi_exit"}
    assert set(found.senders) == {"ipi:ipi_raise"}
    assert "only x86 has these" in found.missing["irq_vectors:*"]
    assert "cannot show page faults" in found.missing["exceptions:page_fault_user"]
    assert not [title for title in found.missing if title.startswith("ipi:")]


def test_a_sender_is_not_told_twice(tmp_path: Path) -> None:
    """A newer kernel has both forms of the same event; one of them names the function, too."""
    found = asked(tmp_path, *ARM, "ipi:ipi_send_cpu", "ipi:ipi_send_cpumask")
    assert found.senders == {"ipi:ipi_send_cpu": "cpu == 1 || cpu == 2", "ipi:ipi_send_cpumask": "cpumask & CPUS{1-2}"}
    assert {"ipi:ipi_entry", "ipi:ipi_exit"} <= set(found.hot)
    x86 = asked(tmp_path, "irq_vectors:reschedule_entry", "irq_vectors:reschedule_exit", "irq_vectors:vector_setup")
    assert {"irq_vectors:reschedule_entry", "irq_vectors:reschedule_exit"} <= set(x86.hot)
    assert "ipi:ipi_entry" not in x86.hot
