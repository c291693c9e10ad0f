"""The short hunts on this machine: each seed's load is seen by a real trace, and gone once its process is ended."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator

import psutil
import pytest

from jitter_workshop.agent.client import connect_to_agent
from jitter_workshop.agent.tracing import instances
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.errors import HostError
from jitter_workshop.flow.chapters import cure
from jitter_workshop.flow.chapters import hunt as hunting
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.host_ops import agent_connection
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.evidence import EvidenceReport
from jitter_workshop.model.run import SilentObserver
from jitter_workshop.model.session import Weighed
from tests.shorthunts import solved

SECONDS = 2.0


def _why_not() -> str:
    if os.geteuid() != 0 or len(os.sched_getaffinity(0)) < 2:
        return "it needs root and two CPUs"
    try:
        instances.trace_folder(HostRoot())
    except HostError as error:
        return error.sentence()
    return ""


pytestmark = [pytest.mark.host, pytest.mark.skipif(bool(WHY := _why_not()), reason=WHY or "it can")]


@pytest.fixture
def workshop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    # Only the trace is asked for: no setting of this host is written.
    monkeypatch.setattr(agent_connection, "connect_to_agent", connect_to_agent)
    made = Workshop.open("short hunts")
    yield made
    made.close()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("ident", ["first-hunt", "second-hunt"])
def test_a_seeds_load_is_named_by_its_trace_and_ends_with_its_process(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, ident: str, seed: int
) -> None:
    monkeypatch.setattr(hunting.secrets, "randbits", lambda bits: seed)
    walk = workshop.walk(ident)
    request = dataclasses.replace(walk.measuring.request("again"), duration_s=SECONDS)
    hunt = workshop.hunts.begin(walk)
    beside = workshop.measure(request, SilentObserver(), CancelToken())
    report = workshop.context.runs.causes(beside)
    assert isinstance(report, EvidenceReport), beside.counters
    took = hunt.took(report)
    assert took
    assert not cure.gone(Weighed(took, took))
    # As a learner does: end the process that the threads called 'thief' belong to.
    psutil.Process(hunt._noise.pid).kill()
    treated = workshop.measure(request, SilentObserver(), CancelToken())
    workshop.hunts.weigh(beside, treated)
    assert hunt.cured
    answer = solved(hunt.suspects, report)
    assert answer == hunt._kind, [(c.kind, c.name, round(c.ns_per_second)) for c in report.causes[:12]]
    assert workshop.hunts.answer(answer).right
