"""Test the words beside the table of two compared runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jitter_workshop.model.run import Run
from jitter_workshop.presenter.runs.comparison import comparison_lines
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.stats.comparison import compare
from jitter_workshop.stats.figures import INTENDED
from tests import madeup


def stopped(ident: str, sent: int) -> Run:
    """A run that sent so many of its 1,000 planned messages, because a thread was stopped in the other time."""
    made: Run = madeup.make_run([[100] * sent], block_s=0.01, run_id=f"20250101-000000-{ident}", label=ident)[0]
    due = madeup.make_run([[5_000] * 1_000], block_s=0.01, name=INTENDED)[0].histograms
    stalls = replace(made.stalls, stolen_ns_per_second=1e9 - sent * 1e6)
    return replace(made, stalls=stalls, histograms={**made.histograms, **due})


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize(("first", "second", "said"), [(400, 1_000, True), (1_000, 400, True), (1_000, 1_000, False)])
def test_a_table_without_the_waits_says_so_below_a_result_with_them(
    first: int, second: int, said: bool, width: int
) -> None:
    a, b = stopped("aaaa", first), stopped("bbbb", second)
    text = " ".join(written(comparison_lines([compare(a, b)], a, [b], a.main_histogram, width, None)).split())
    assert ("percentiles of this table are without the waits" in text) is said
    # A table of latencies from the due time has the waits.
    due = compare(a, b, INTENDED)
    assert "without the waits" not in written(comparison_lines([due], a, [b], INTENDED, width, None))
