"""Test the search for the segments in a stretch of a track, cut to the stretch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.evidence.tracks import READY, TASK, CpuTrack, Segment, Stretch, ThreadTrack

LENGTHS = st.lists(st.integers(1, 20), max_size=12)


def track(lengths: list[int]) -> CpuTrack:
    at, segments = 100, []
    for number, length in enumerate(lengths):
        segments.append(Segment(at, at + length, TASK, f"task{number}", number, number))
        at += length
    return CpuTrack(segments)


@given(LENGTHS, st.integers(80, 400), st.integers(0, 100))
def test_every_segment_that_overlaps_is_found_and_cut_to_the_stretch(
    lengths: list[int], start: int, length: int
) -> None:
    line, end = track(lengths), start + length
    before = list(line.segments)
    overlap = [s for s in before if s.start < end and s.end > start]
    assert line.between(start, end) == overlap
    assert line.cut(start, end) == [s._replace(start=max(s.start, start), end=min(s.end, end)) for s in overlap]
    assert line.segments == before, "the track itself is not cut"


@given(LENGTHS, st.integers(80, 400), st.integers(0, 100))
def test_every_stretch_of_a_thread_that_overlaps_is_found(lengths: list[int], start: int, length: int) -> None:
    stretches = [Stretch(s.start, s.end, READY, 1, "") for s in track(lengths).segments]
    found = ThreadTrack("worker", 7, stretches).between(start, start + length)
    assert found == [s for s in stretches if s.start < start + length and s.end > start]
