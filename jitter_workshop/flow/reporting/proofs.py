"""Draw the charts of proofs: all runs without a change added together, and all runs with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from jitter_workshop.errors import SessionError
from jitter_workshop.flow.reporting.subject import Subject
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.proof import Proof
from jitter_workshop.model.report import Overlay
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import clean, many, minute
from jitter_workshop.stats.curve import percentile_curve
from jitter_workshop.stats.histogram import add, new_histogram

MOST_RUNS = 80
"""Most histograms that these charts add up, those of the newest proofs: a report takes seconds, not minutes."""

_TEXT = (
    "All messages of each side's runs in one curve. It shows what was measured, and not how sure it is: runs differ "
    "among themselves, and the verdict is of the rounds."
)


def proof_charts(subject: Subject) -> Iterator[Overlay]:
    """Yield a chart for each proof with a round, oldest first; of many proofs the newest."""
    left, chosen = MOST_RUNS, list[tuple[Proof, list[Run], list[Run]]]()
    for proof in reversed(subject.proofs):
        without, with_it = _runs(subject, proof, "without"), _runs(subject, proof, "with_it")
        left -= len(without) + len(with_it)
        if left < 0:
            break
        if without and with_it:
            chosen.append((proof, without, with_it))
    for proof, without, with_it in reversed(chosen):
        try:
            curves = (_sum(subject, without, "without"), _sum(subject, with_it, "with"))
        except (SessionError, ValueError):
            # A run's file may be damaged or edited: the session reports that itself, and the verdict does not need it.
            continue
        yield Overlay(f"Proof of {clean(proof.subject, 60)}, {minute(proof.started_at)} UTC", _TEXT, curves)


def _runs(subject: Subject, proof: Proof, side: Literal["without", "with_it"]) -> list[Run]:
    return [run for one in proof.rounds if (run := subject.run(getattr(one, side))) is not None]


def _sum(subject: Subject, runs: Sequence[Run], side: str) -> PercentileCurve:
    whole = new_histogram()
    for run in runs:
        add(whole, subject.handle.histogram(run.id, run.main_histogram))
    maxima = [h.max for run in runs if (h := run.histograms.get(run.main_histogram)) is not None and h.max is not None]
    return percentile_curve(whole, f"{side} · {many(len(runs), 'run')}", max_ns=max(maxima, default=None))
