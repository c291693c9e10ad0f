"""Frequency, temperature and throttling as a line of text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.run import Block, bare_run
from jitter_workshop.presenter.runs.run import CORE, core_compared, now_told, sparkline, trace_lines


def block(index: int, hz: int | None, celsius: float | None, events: int | None) -> Block:
    return Block(index, 0, 1, 1, 1, 1, 1, 1, 0, core_hz=hz, temperature_celsius=celsius, throttle_events=events)


def test_each_reading_has_a_line_and_a_missing_reading_has_none() -> None:
    blocks = [block(0, 3_000_000_000, 50.0, 7), block(1, 2_000_000_000, 70.0, 9)]
    assert trace_lines(blocks, 80) == [
        "core GHz    █▆  2.00 to 3.00",
        "hottest °C  ▆█  50 to 70",
        "throttled   ·█  2",
    ]
    assert trace_lines([block(0, None, None, None)], 80) == []
    assert now_told(blocks[0]).split(" · ") == ["core 3.00 GHz", "50 °C", "7 throttle events since boot"]
    assert now_told(block(0, None, None, None)) == ""


def test_a_steady_frequency_is_a_level_line() -> None:
    """The heights began at the lowest value, so 2 % filled all of them."""
    blocks = [block(n, hz, None, 0) for n, hz in enumerate((4_270_000_000, 4_350_000_000, 4_310_000_000))]
    assert trace_lines(blocks, 80) == ["core GHz    ███  4.27 to 4.35", "throttled   ·▁▁  0"]


def test_two_runs_have_one_scale_and_the_hypervisors_time() -> None:
    slow = [block(0, 2_000_000_000, None, None), block(1, 2_000_000_000, None, None)]
    fast = [block(0, 3_000_000_000, None, None), block(1, 2_500_000_000, None, None)]
    before = bare_run(workload="spin", blocks=tuple(slow), steal_ns=20_000_000)
    after = bare_run(workload="spin", blocks=tuple(fast))
    assert [line.plain for line in core_compared(before, after, 80)] == [
        CORE,
        "core GHz    first  ▆▆  2.00",
        "            second █▇  2.50 to 3.00",
        "steal       first  20 ms, second not known",
    ]
    assert core_compared(bare_run(workload="ring"), bare_run(workload="ring"), 80) == []


@given(st.lists(st.none() | st.floats(-1e12, 1e12), max_size=200), st.integers(1, 80))
def test_a_sparkline_fits_and_shows_the_extremes(values: list[float | None], room: int) -> None:
    drawn = sparkline(values, room)
    assert len(drawn) == min(len(values), room)
    known = [v for v in values if v is not None]
    if len(values) <= room and known and max(known) > min(known):
        assert drawn[values.index(max(known))] == "█"
        assert drawn[values.index(min(known))] == "▁"


@given(st.integers(20, 200))
def test_no_line_is_wider_than_asked(width: int) -> None:
    blocks = [block(i, 10**9 * (i + 1), float(i), i * i) for i in range(30)]
    assert all(len(line) <= width for line in trace_lines(blocks, width))
