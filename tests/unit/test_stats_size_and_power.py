"""Test the rates of false claims and of missed effects of verdicts, with whole proofs on made-up hosts.

Fixed seeds, so that each is one fact and not a gamble.
"""

from __future__ import annotations

import pytest

from jitter_workshop.model.verdict import Verdict
from jitter_workshop.stats.verdicts import judge_change
from tests.maderounds import LAPTOP, NULLS, false_claims, false_no_change, make_even_rounds, make_rounds


@pytest.mark.parametrize("host", NULLS)
def test_the_same_on_both_sides_is_hardly_ever_a_change(host: str) -> None:
    assert false_claims(host, 200) <= 0.05


@pytest.mark.parametrize("ratio", [1.1001, 1 / 1.1001])
def test_a_change_larger_than_the_band_is_hardly_ever_no_change(ratio: float) -> None:
    # Nine independent lines, each at the end of the band: 2.5 % a line would be 20 % of the proofs.
    assert false_no_change(ratio, 200, spread=0.04) <= 0.05


def test_an_unchanged_figure_is_mostly_called_no_change() -> None:
    rows = [row.verdict for i in range(20) for row in judge_change(make_even_rounds(i, 1.0, spread=0.04)).rows]
    assert rows.count("no_change") >= 0.8 * len(rows)


@pytest.mark.parametrize(("ratio", "word"), [(2.0, "higher"), (0.5, "lower")])
def test_a_doubling_of_stalls_over_100_us_is_seen_in_ten_rounds(ratio: float, word: str) -> None:
    judged = [judge_change(make_rounds(5_000 + i, ratio=ratio, per_second=LAPTOP, spread=0.2)) for i in range(50)]
    seen = sum((j.headline.measure, j.headline.verdict) == ("stalls_per_second_over_100000_ns", word) for j in judged)
    assert seen >= 45

    def wrong(row: Verdict) -> bool:
        # Of these hosts p50 and p99 do not change, and nothing changes the other way.
        return row.verdict in ("lower", "higher") and (row.verdict != word or row.measure in ("p50", "p99"))

    assert sum(any(map(wrong, j.rows)) for j in judged) <= 2
