"""Test the events to record on each kernel, and the switches with a kernel stack, by the letters of the kernel's own
thread states."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitter_workshop.agent.tracing.plan import Wanted, stack_trigger, wanted
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.trace.format import EventFormat, parse_event
from jitter_workshop.model.cpuset import CpuSet
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
    with pytest.raises(ValueError, match="does not say which threads sleep"):
        stack_trigger([1], EventFormat("sched_switch", 300, {}, symbols))


def asked(root: Path, *events: str) -> Wanted:
    """Return what is wanted of a kernel that has these events."""
    for event in events:
        (root / "tracing/events" / event.replace(":", "/")).mkdir(parents=True)
    return wanted(HostRoot(root), "/tracing", [101], CpuSet.of((1, 2)))


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
