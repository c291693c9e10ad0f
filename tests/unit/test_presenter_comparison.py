"""Test the words beside the table of two compared runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jitter_workshop.model.run import INTENDED, Run, of_transit
from jitter_workshop.presenter.runs.comparison import comparison_lines
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.stats.comparison import compare
from tests import madeup


def stopped(ident: str, sent: int) -> Run:
    """A run that sent so many of its 1,000 planned messages, because a thread was stopped in the other time."""
    made: Run = madeup.make_run([[100] * sent], block_s=0.01, run_id=f"20250101-000000-{ident}", label=ident)[0]
    due = madeup.make_run([[5_000] * 1_000], block_s=0.01, name=INTENDED)[0].histograms
    stalls = replace(made.stalls, stolen_ns_per_second=1e9 - sent * 1e6)
    return replace(made, stalls=stalls, histograms={**made.histograms, **due})


@pytest.mark.parametrize("width", [40, 80])
def test_a_table_of_transit_says_so_below_a_result_of_latency(width: int) -> None:
    a, b = stopped("aaaa", 400), stopped("bbbb", 1_000)
    text = " ".join(written(comparison_lines([compare(a, b)], a, [b], a.main_histogram, width, None)).split())
    assert "This table tells transit" in text
    due = compare(a, b, INTENDED)
    assert "tells transit" not in written(comparison_lines([due], a, [b], INTENDED, width, None))
    older = [of_transit(run) for run in (a, b)]
    lines = comparison_lines([compare(*older)], older[0], older[1:], a.main_histogram, width, None)
    assert "tells transit" not in " ".join(written(lines).split())
