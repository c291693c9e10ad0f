"""A run's trace comes back as it was written; anything else is refused in a sentence."""

from __future__ import annotations

import contextlib
import io
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.errors import SessionError
from jitter_workshop.model.run import Stall
from jitter_workshop.model.trace import RECORD_BYTES, TraceInfo
from jitter_workshop.session.traces import RunTrace, TracedBlock, read_run_trace, write_run_trace

INFO = TraceInfo("x86-tsc", (0, 1), ("sched:sched_switch",), {"csd:csd_function_entry": "not in this kernel"}, 8192)


def block(index: int, events: bytes, stalls: tuple[Stall, ...] = ()) -> TracedBlock:
    return TracedBlock(
        index, index * 10, index * 10 + 9, index * 1000, index * 1000 + 999, stalls, {"1": 3}, events, 2, 7
    )


def written(trace: RunTrace) -> bytes:
    file = io.BytesIO()
    write_run_trace(file, trace)
    return file.getvalue()


SMALL = RunTrace(
    INFO,
    {"sampler": 7},
    ("", "evil\x1b[2J\n"),
    (block(0, b"x" * RECORD_BYTES, (Stall(0, "sampler", None, 1, 5, 2),)), block(1, b"")),
)


def test_a_trace_comes_back() -> None:
    assert read_run_trace(io.BytesIO(written(SMALL))) == SMALL


@given(st.lists(st.binary(max_size=400), max_size=5))
def test_events_come_back_to_the_byte(parts: list[bytes]) -> None:
    blocks = tuple(block(n, (part * RECORD_BYTES)[: len(part) * RECORD_BYTES]) for n, part in enumerate(parts))
    trace = RunTrace(INFO, {}, ("",), blocks)
    assert read_run_trace(io.BytesIO(written(trace))) == trace


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=3))
def test_damage_is_refused_or_gives_a_trace(at: int, change: bytes) -> None:
    whole = bytearray(written(SMALL))
    at %= len(whole)
    whole[at : at + len(change)] = change
    with contextlib.suppress(SessionError):
        assert isinstance(read_run_trace(io.BytesIO(bytes(whole))), RunTrace)


def test_a_block_without_a_number_is_refused() -> None:
    with pytest.raises(SessionError, match="damaged"):
        read_run_trace(io.BytesIO(written(RunTrace(INFO, {}, ("",), (block(-100, b""),)))))


@given(st.integers(0, 400))
def test_a_cut_off_trace_is_refused(keep: int) -> None:
    whole = written(SMALL)
    cut = whole[: min(keep, len(whole) - 8)]
    with pytest.raises(SessionError):
        read_run_trace(io.BytesIO(cut))


def test_a_header_of_any_length_is_not_believed() -> None:
    bomb = b"jitter-workshop trace 1\n" + zlib.compress((2**32 - 1).to_bytes(4, "little") + bytes(1000))
    with pytest.raises(SessionError, match="is too long"):
        read_run_trace(io.BytesIO(bomb))
