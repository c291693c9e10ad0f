"""Test what the league of queues says of its rounds."""

from __future__ import annotations

import pytest

from tests.bench import league
from tests.bench.league import LEFT_OUT, OURS, Row, figures, page, picture

RIVAL = league.RIVALS[0]


def turn(p50: float) -> dict[str, object]:
    values = {"min": p50 / 2, "p50": p50, "p90": p50, "p99": 2 * p50, "p99.9": 3 * p50, "p99.99": 4 * p50}
    return {"clock": "tsc", "count": league.MESSAGES, **values, "max": 5 * p50, "ping_pong_ns": 90.0}


@pytest.fixture
def rows() -> dict[str, Row]:
    ours = Row(league.Rival(OURS, "here", "this project's", "C", lambda _: lambda p, c: {}))
    ours.turns = [turn(100.0), turn(120.0), turn(110.0)]
    rival = Row(RIVAL, [turn(200.0), turn(200.0), turn(440.0)])
    return {OURS: ours, RIVAL.name: rival, "absent": Row(league.RIVALS[-1], why_not="mvn is not installed")}


def test_a_ratio_is_taken_within_its_round(rows: dict[str, Row]) -> None:
    own, against = figures(rows)
    assert (own.value, own.unit) == (110.0, "ns")
    # 0.5, 0.6 and 0.25
    assert against.value == pytest.approx(0.5)
    assert against.met


def test_the_page_begins_with_the_shortest_and_names_the_left_out_ones(rows: dict[str, Row]) -> None:
    told = page(rows, (2, 3))
    lines = [line for line in told.splitlines() if line.startswith("| ")]
    assert [line.split(" | ")[0] for line in lines] == ["| queue", f"| {OURS}", f"| {RIVAL.name}"]
    assert "| tsc | 110 | 220 | 330 |" in lines[1]
    assert f"Left out: {league.RIVALS[-1].name}: mvn is not installed." in told
    assert all(name in told for name in LEFT_OUT)
    assert "90 ns one way" in told


def test_each_queue_has_a_curve(rows: dict[str, Row]) -> None:
    drawn = picture(rows)
    assert RIVAL.name in drawn
    assert league.RIVALS[-1].name not in drawn


def test_a_missing_tool_is_a_reason() -> None:
    build = league._compiled("no-such-compiler", "plain.c")
    with pytest.raises(league.Missing, match="no-such-compiler is not installed"):
        build(league.HERE)
