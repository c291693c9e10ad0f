"""Test the lines that show a run's tail as requests to many hosts would meet it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jitter_workshop.model.run import Run, Stall
from jitter_workshop.presenter.runs.fanout import fan_out, two_digit_percent
from jitter_workshop.stats.scale import nice_ns
from tests import madeup

BLOCKS = [list(range(100, 3_100)), [*range(100, 3_080), *([900_000] * 20)]]
"""Enough messages for a p99.9, and a tail."""


def made(**fields: Any) -> Run:
    return madeup.make_run(BLOCKS, **fields)[0]


def shown(width: int = 70, **fields: Any) -> list[str]:
    run = made(**fields)
    return [line.plain for line in fan_out(run, width)]


@pytest.mark.parametrize("width", [30, 46, 60, 78])
def test_no_line_is_too_wide(width: int) -> None:
    assert max(map(len, shown(width))) <= width


def test_the_run_s_own_percentile_is_in_the_sentence_and_the_table() -> None:
    run = made()
    own = nice_ns(run.histograms[run.main_histogram].percentiles["99.9"])
    lines = shown()
    (row,) = (line for line in lines if line.startswith("p99.9 "))
    assert own in row
    assert row.endswith("63 %")
    assert "9.5 % of such requests" in " ".join(lines)
    assert f"{own} or more" in " ".join(lines)


def test_a_percentile_of_few_stalls_is_marked_wherever_it_is_told() -> None:
    run = madeup.make_run(BLOCKS * 3)[0]
    worst = tuple(Stall(0, "accumulator", None, n, n + 900_000, 10) for n in (0, 2_000_000))
    few = replace(run, stalls=replace(run.stalls, worst=worst, rates=()))
    said = " ".join(line.plain for line in fan_out(few, 100))
    own = f"~{nice_ns(run.histograms[run.main_histogram].percentiles['99.9'])}"
    assert said.count(own) == 2
    assert f"{own} or more" in said
    assert "fewer than ten distinct stalls" in said


def test_a_loop_without_messages_shows_shares_alone() -> None:
    lines = shown(workload="spin", name="spin_gap")
    assert "latency" not in lines[1]
    assert any(line.startswith("p99.9 ") and "9.5 %" in line for line in lines)


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0001, "0.01 %"), (0.000999, "0.1 %"), (0.0952, "9.5 %"), (0.99995, ">99 %"), (1.0, "100 %"), (0.99, "99 %")],
)
def test_a_share_is_never_rounded_to_all(share: float, said: str) -> None:
    assert two_digit_percent(share) == said
