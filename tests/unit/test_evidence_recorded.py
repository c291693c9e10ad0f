"""Timelines of what real kernels recorded: one of them runs its softirqs in tasks (PREEMPT_RT)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from jitter_workshop.evidence.timeline import build_timeline
from jitter_workshop.evidence.tracks import Timeline
from jitter_workshop.model.trace import TraceEvent
from tests import tracedpages

ENTRIES = {"softirq": "softirq_entry", "irq": "irq_entry", "timer": "timer_entry", "workqueue": "work_start"}


def events_of(name: str) -> list[TraceEvent]:
    record = tracedpages.recorded(name)
    decoder = record.decoder()
    return [event for cpu, pages in record.pages.items() for page in pages for event in decoder.events(page, cpu)]


def timeline_of(events: list[TraceEvent]) -> Timeline:
    cpus = {event.cpu for event in events}
    tids = {"busiest": max((e.pid for e in events if e.pid), key=lambda pid: sum(e.pid == pid for e in events))}
    return build_timeline(events, cpus, tids, min(e.ts for e in events), max(e.ts for e in events))


@pytest.mark.parametrize("name", tracedpages.NAMES)
def test_a_real_trace_fits_together(name: str) -> None:
    events = events_of(name)
    timeline = timeline_of(events)
    assert timeline.unbalanced == 0
    assert timeline.events == len(events)
    for track in timeline.cpus.values():
        assert all(a.end == b.start for a, b in pairwise(track.segments))
        assert all(s.kind != "unknown" for s in track.segments)


@pytest.mark.parametrize("name", tracedpages.NAMES)
def test_everything_that_was_entered_has_a_time(name: str) -> None:
    events = events_of(name)
    timeline = timeline_of(events)
    for kind, entry in ENTRIES.items():
        entered = [(e.cpu, e.name) for e in events if e.kind == entry]
        ran = {
            (cpu, s.name, s.serial) for cpu, track in timeline.cpus.items() for s in track.segments if s.kind == kind
        }
        # One of a CPU may have been open when the trace began.
        assert len(entered) <= len(ran) <= len(entered) + len(timeline.cpus)
        assert {(cpu, name) for cpu, name, _ in ran} >= set(entered)


@pytest.mark.parametrize("name", tracedpages.NAMES)
def test_each_switch_begins_a_stay_of_the_task_that_it_names(name: str) -> None:
    events = events_of(name)
    timeline = timeline_of(events)
    for event in events:
        if event.kind == "switch":
            after = next(iter(timeline.cpus[event.cpu].between(event.ts, event.ts + 1)), None)
            assert after is None or after.pid == event.a


def test_on_a_real_time_kernel_softirqs_run_in_tasks() -> None:
    """Never in the idle task: in threads of their own, or in the thread that asked for them."""
    timeline = timeline_of(events_of("linux-6.1-rt"))
    segments = [segment for track in timeline.cpus.values() for segment in track.segments]
    names = {s.pid: s.name for s in segments if s.kind == "task"}
    hosts = {names.get(s.pid, "") for s in segments if s.kind == "softirq"}
    assert "idle" not in hosts
    assert any(host.startswith("ktimers/") for host in hosts)
    assert any(host.startswith("ksoftirqd/") for host in hosts)
