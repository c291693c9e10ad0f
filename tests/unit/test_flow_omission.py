"""The curves of the chapter on coordinated omission, from made-up runs of which both histograms are known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jitter_workshop.flow.chapters.walk import ChapterSession
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cpu, Topology
from jitter_workshop.model.run import Run
from jitter_workshop.stats import histogram as hg
from jitter_workshop.stats.figures import INTENDED
from tests import madeup

SENT = [500] * 990 + [3_000_000] * 10
DUE = [500] * 980 + [5_000_000 * n for n in range(1, 21)]


@pytest.fixture
def walk() -> ChapterSession:
    """The chapter with its first run: 1,000 messages, of which 20 were due long before they were sent."""
    workshop = Workshop.open()
    workshop.topology = Topology(
        tuple(Cpu(i, 0, i, 0, online=True, allowed=True, smt_siblings=CpuSet((i,))) for i in range(4)), ()
    )
    walk = workshop.walk("coordinated-omission")
    walk.record("measure", _stored(workshop))
    return walk


def _stored(workshop: Workshop) -> Run:
    made, blocks = madeup.make_run([SENT], label="stopped for 100 ms")
    due, due_blocks = madeup.make_run([DUE], name=INTENDED)
    made = replace(made, histograms={**made.histograms, **due.histograms})
    both = zip(blocks, due_blocks, strict=True)
    workshop.handle.add_run(made, tuple(replace(a, histograms={**a.histograms, **b.histograms}) for a, b in both))
    return made


def test_the_further_curves_are_computed_once_for_a_run(walk: ChapterSession, monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []
    corrected = hg.corrected

    def counted(histogram: hg.HdrHistogram, interval_ns: int) -> hg.HdrHistogram:  # type: ignore[name-defined]
        computed.append(interval_ns)
        return corrected(histogram, interval_ns)

    monkeypatch.setattr(hg, "corrected", counted)
    first = walk.curves()
    assert len(first) == 3
    assert computed == [10_000]
    assert [curve.curve for curve in walk.curves()] == [curve.curve for curve in first]
    assert computed == [10_000]
