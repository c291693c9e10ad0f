"""The busiest second of a run, from its trace."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.evidence.explain import explain_block
from jitter_workshop.evidence.seconds import CELLS, MOST_LANES, Seconds
from jitter_workshop.model.evidence import BlockSpan, CpuSecond, EvidenceReport
from jitter_workshop.model.trace import TraceEvent
from jitter_workshop.presenter.runs.causes import busiest_second
from tests.madetrace import TIDS, pair

MS = 1_000_000


def busiest(*blocks: tuple[int, list[TraceEvent]], length: int = 500 * MS) -> CpuSecond | None:
    """``blocks``: the start of each in ns, and its events."""
    seconds = Seconds()
    for index, (at_ns, events) in enumerate(blocks):
        span = BlockSpan(index, 0, length, at_ns, length)
        seconds.add(explain_block(span, [], events, (1,), TIDS, {}).timeline, at_ns)
    return seconds.busiest()


def test_the_second_in_which_others_took_most_wins_with_all_its_blocks() -> None:
    found = busiest(
        (0, pair(10 * MS, 30 * MS, "irq", "nic0")),
        (1_000 * MS, pair(0, 20 * MS, "softirq", "RCU")),
        (1_500 * MS, [*pair(100 * MS, 104 * MS, "irq", "nic0"), *pair(200 * MS, 202 * MS, "softirq", "RCU")]),
    )
    assert found is not None
    assert (found.cpu, found.at_ns, found.traced_ns, found.taken_ns) == (1, 1_000 * MS, 1_000 * MS, 26 * MS)
    assert [(one.who.name, one.who.count, one.who.total_ns, one.who.worst_ns) for one in found.lanes] == [
        ("RCU", 2, 22 * MS, 20 * MS),
        ("nic0", 1, 4 * MS, 4 * MS),
    ]
    cells = found.lanes[0].cells
    assert (cells[0], cells[35], sum(cells)) == (20 * MS, 2 * MS, 22 * MS)
    assert found.lanes[1].cells[30] == 4 * MS
    assert sum(found.ours) == found.traced_ns - found.taken_ns


def test_an_event_across_the_end_of_a_second_counts_in_both_and_an_empty_trace_has_no_second() -> None:
    found = busiest((700 * MS, pair(290 * MS, 320 * MS, "irq", "nic0")))
    assert found is not None
    assert (found.at_ns, found.taken_ns, found.traced_ns) == (1_000 * MS, 20 * MS, 200 * MS)
    assert busiest((0, [])) is None


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(1, 90)), max_size=30), st.integers(0, 3_000))
def test_no_second_has_more_than_a_second_and_the_parts_sum_up(found: list[tuple[int, int]], at_ms: int) -> None:
    events: list[TraceEvent] = []
    end = 0
    for start, length in sorted(found):
        if start >= end:
            end = start + length
            events += pair(start * MS, min(end, 1_000) * MS, "irq", f"nic{start % 12}")
    second = busiest((at_ms * MS, events), length=1_000 * MS)
    assert (second is None) == (not events)
    if second is not None:
        assert second.taken_ns + sum(second.ours) == second.traced_ns <= 1_000 * MS
        assert len(second.lanes) <= MOST_LANES
        assert all(sum(one.cells) == one.who.total_ns and len(one.cells) == CELLS for one in second.lanes)


def test_each_line_of_the_second_stands_where_it_was_with_its_knee() -> None:
    second = busiest((0, pair(250 * MS, 260 * MS, "irq", "nic0")), length=1_000 * MS)
    assert second is not None
    report = EvidenceReport(1, "r", "trace", 1_000, "mono", 0, 0, (), (), 1_000 * MS, messages=100_000)
    title, *told, head, lane, ours = (line.plain for line in busiest_second(second, report, 90))
    assert "NUMBER 1" in title
    assert "10 ms of CPU 1" in " ".join(told)
    assert head.split()[-1] == "knee"
    drawn = lane.split("▏")[1]
    assert drawn.strip() in ("│", "█")
    assert 0.22 < drawn.index(drawn.strip()) / len(drawn) < 0.28
    assert lane.endswith("1 × 10 ms  p99")
    assert set(ours.split("▏")[1]) <= {"─", " "}
    unknown = [
        line.plain for line in busiest_second(second, EvidenceReport(1, "r", "trace", 1, "m", 0, 0, (), (), 1), 90)
    ]
    assert "knee" not in unknown[2]
    assert all(line.cell_len <= 40 for line in busiest_second(second, report, 40))
