"""A trace that has no room for a run's events, for proofs and screenings by the time held up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.proving import command_meter


def at_run(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Have the trace of one run (its number, from 0) lose events; the others held a thread up for 1 µs."""
    runs = iter(range(1_000))

    def observe(root: Any, found: Any, follower: Any, *, command: Any, progress: Any) -> Any:
        command.release()
        command.wait(60.0)
        lost = int(next(runs) == number)
        return SimpleNamespace(all_threads=SimpleNamespace(waited_ns=1_000), lost_events=lost, notes={})

    monkeypatch.setattr(command_meter, "observe_program", observe)
    monkeypatch.setattr(AgentConnection, "tracer", lambda self: None)
