"""Packed trace events are the events that were packed, and nothing else is taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.trace import KINDS, RECORD_BYTES, Strings, TraceEvent, pack_events, unpack_fields
from tests.madetrace import unpack

NUMBERS = st.integers(-(2**31), 2**31 - 1)
EVENTS = st.builds(
    TraceEvent,
    ts=st.integers(0, 2**64 - 1),
    cpu=st.integers(0, 65_535),
    kind=st.sampled_from(KINDS),
    pid=NUMBERS,
    a=NUMBERS,
    b=NUMBERS,
    c=NUMBERS,
    name=st.text(max_size=20),
    other=st.text(max_size=20),
    flags=st.integers(0, 255),
)


@given(st.lists(EVENTS, max_size=30))
def test_unpacked_events_are_the_packed_ones(events: list[TraceEvent]) -> None:
    strings = Strings()
    packed = pack_events(events, strings)
    assert len(packed) == len(events) * RECORD_BYTES
    assert list(unpack(packed, strings.all)) == events
    assert list(unpack_fields(packed, strings.all)) == [tuple(event) for event in events]


def test_a_table_goes_on_where_it_was() -> None:
    strings = Strings()
    first = pack_events([TraceEvent(1, 0, "nmi", 0, name="one")], strings)
    longer = Strings(strings.all)
    second = pack_events([TraceEvent(2, 0, "nmi", 0, name="two", other="one")], longer)
    assert longer.all == ["", "one", "two"]
    assert [e.name for e in unpack(first + second, longer.all)] == ["one", "two"]


@pytest.mark.parametrize("cut", [1, RECORD_BYTES - 1])
def test_a_cut_off_trace_is_refused(cut: int) -> None:
    strings = Strings()
    with pytest.raises(ValueError, match="cut off"):
        list(unpack(pack_events([TraceEvent(1, 0, "nmi", 0)], strings)[:-cut], strings.all))


def test_unknown_names_and_kinds_are_refused() -> None:
    strings = Strings()
    packed = pack_events([TraceEvent(1, 0, "nmi", 0, name="gone")], strings)
    with pytest.raises(ValueError, match="table"):
        list(unpack(packed, [""]))
    with pytest.raises(ValueError, match="table"):
        list(unpack(packed[:10] + bytes([250]) + packed[11:], strings.all))
