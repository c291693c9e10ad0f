"""The kernel's binary pages: what is written into one is read from it, and whatever else is in one is refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.trace.format import after_a_loss, records
from tests import tracedpages as made

WORDS = st.integers(1, 40).flatmap(lambda words: st.binary(min_size=4 * words, max_size=4 * words))
SMALL = (1 << 27) - 1
ENTRIES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["record", "long", "discarded"]), st.integers(0, SMALL), WORDS),
        st.tuples(st.just("extend"), st.integers(0, (1 << 59) - 1), st.just(b"")),
        st.tuples(st.just("absolute"), st.integers(0, 1 << 40), st.just(b"")),
    ),
    max_size=60,
)


@given(stamp=st.integers(0, 1 << 62), entries=ENTRIES, size=st.sampled_from([1008, 4080, 16_368, 65_520]))
def test_written_events_are_read_back(stamp: int, entries: list[tuple[str, int, bytes]], size: int) -> None:
    packed, now, expected = b"", stamp, []
    for kind, delta, data in entries:
        if kind == "absolute":
            now += delta
            entry = made.absolute(now)
        elif kind == "extend":
            entry, now = made.extend(delta), now + delta
        elif kind == "discarded":
            # Its time counts for what follows, but for the 1 that stands for none.
            entry, now = made.discarded(delta or 1, data), now + (delta if delta > 1 else 0)
        elif kind == "long" or len(data) > 112:
            entry, now = made.long(delta, data), now + delta
        else:
            entry, now = made.small(delta, data), now + delta
        if len(packed) + len(entry) > size or now >= 1 << 64:
            break
        packed += entry
        if kind in ("record", "long"):
            expected.append((now, data))
    whole = made.page(stamp, packed, size)
    assert [(ts, whole[start:end]) for ts, start, end in records(whole, made.form(size))] == expected


def test_an_absolute_stamp_keeps_the_bits_that_do_not_fit() -> None:
    base = (5 << 59) + (1 << 59) - 10
    data = b"abcd"
    entries = made.absolute(base + 3) + made.small(0, data) + made.absolute(base + 20) + made.small(1, data)
    stamps = [ts for ts, _, _ in records(made.page(base, entries), made.form())]
    assert stamps == [base + 3, base + 21]


def test_the_filler_of_a_page_ends_it() -> None:
    whole = made.page(7, made.small(1, b"abcd") + made.FILL + made.small(1, b"efgh"))
    assert len(list(records(whole, made.form()))) == 1


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        (made.small(1, b"abcd" * 3)[:-4], "beyond its page"),
        (made.long(1, b"abcd" * 3)[:-4], "beyond its page"),
        (made.long(1, b"")[:4], "cut off"),
        (made.extend(1 << 30)[:4], "cut off"),
        (b"\x20\0\0\0" + b"\0\0\0\0", "length of 0 bytes"),
        (b"\x20\0\0\0" + b"\x07\0\0\0" + bytes(8), "length of 7 bytes"),
        (b"\x3d\0\0\0" + b"\xff\xff\xff\xff", "length of 4294967295 bytes"),
        (b"\x3d\0\0\0" + b"\xfc\xff\xff\xff", "beyond its page"),
        (made.extend((1 << 59) - 1) * 40, "64 bits"),
        (b"abc", "within a word"),
    ],
)
def test_damage_is_refused(entries: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        list(records(made.page((1 << 64) - (1 << 60), entries), made.form()))


def test_a_page_that_is_not_whole_is_refused() -> None:
    whole = made.page(7, made.small(1, b"abcd") * 20)
    for length in (0, 8, 15, 17, 100):
        with pytest.raises(ValueError, match="page"):
            list(records(whole[:length], made.form()))


def test_a_page_after_overwritten_events_is_read_as_any_other() -> None:
    entry = made.small(1, b"abcd")
    # The kernel puts flags above the length, and the number of lost events behind the data.
    assert len(list(records(made.page(7, entry, flags=1 << 31), made.form()))) == 1
    stored = made.page(7, entry, flags=3 << 30, behind=(77).to_bytes(8, "little"))
    assert len(list(records(stored, made.form()))) == 1
    told = [
        after_a_loss(page, made.form()) for page in (stored, made.page(7, entry), made.page(7, entry, flags=1 << 30))
    ]
    assert told == [True, False, False]


@given(st.binary(max_size=300))
def test_any_bytes_are_pages_or_refused(data: bytes) -> None:
    for whole in (data, made.page(0, data)):
        with contextlib.suppress(ValueError):
            assert all(16 <= start <= end <= len(whole) for _, start, end in records(whole, made.form()))
