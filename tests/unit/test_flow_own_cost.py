"""Test the process that tells what an event of the trace costs: it answers, and it ends."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from jitter_workshop.errors import HostError
from jitter_workshop.flow.programs import own_cost
from jitter_workshop.flow.programs.own_cost import EVENTS, Probe


def ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_calls_are_measured_and_the_process_ends() -> None:
    probe = Probe()
    probe.without()
    plain = probe._plain_ns
    assert plain is not None
    assert 20 < plain < 50_000
    assert not ended(probe.pid)
    probe.close()
    assert ended(probe.pid)


@pytest.mark.parametrize(
    ("without", "with_it", "told"),
    [(300.0, 520.0, 110), (300.0, 300.0, None), (300.0, None, None), (None, 300.0, None)],
)
def test_an_event_costs_the_additional_time_of_a_traced_call(
    monkeypatch: pytest.MonkeyPatch, without: float | None, with_it: float | None, told: int | None
) -> None:
    probe = Probe()
    answers = iter((without, with_it))
    monkeypatch.setattr(probe, "_measure", lambda: next(answers))
    probe.without()
    assert probe.event_ns() == told
    assert EVENTS == 2
    probe.close()


def test_a_process_that_was_killed_is_no_fault() -> None:
    probe = Probe()
    os.kill(probe.pid, 9)
    probe.without()
    assert probe.event_ns() is None
    probe.close()


def test_where_no_process_can_be_started_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(own_cost.os, "fork", refuse)
    # Else files that other tests left to the collector are closed in between.
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(HostError, match="no process can be started: Resource temporarily"):
        Probe()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
