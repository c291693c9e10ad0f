"""A live ring: every message once and whole, also when the ring is full; clocks that convert without error."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.bench.native import ffi, lib, new_clock
from jitter_workshop.bench.workloads import Ring, huge_pages_note
from jitter_workshop.errors import HostError, MeasureError, UsageError
from jitter_workshop.model.spec import MemoryUse, Placement, RunSpec

pytestmark = pytest.mark.native

RECORDS = 64
JOURNAL = 4_096


class LiveRing:
    def __init__(self, *, cpu: int = -1, slots: int = 64, interval_ns: int = 2_000, pacing: int = 0) -> None:
        self.records = ffi.from_buffer(bytes((i * 37 + i // 251) % 256 for i in range(RECORDS * 64)))
        self.journal = bytearray(JOURNAL * 32)
        self._journal = ffi.from_buffer(self.journal, require_writable=True)
        config = ffi.new("jw_workload_config *", {"most": 5_000, "interval_ns": interval_ns, "cpu": [cpu] * 3})
        config.clock = new_clock(lib.JW_CLOCK_MONOTONIC, 10**9)[0]
        options = ffi.new("jw_ring_options *", {"slots": slots, "journaller": 1, "pacing": pacing})
        options.records, options.record_count = self.records, RECORDS
        options.journal, options.journal_count = self._journal, JOURNAL
        error = ffi.new("int *")
        self.ring = lib.jw_ring_new(config, options, error)
        assert self.ring != ffi.NULL, os.strerror(-error[0])
        assert lib.jw_workload_start(self.ring, error) == 0

    def block(self, messages: int, unrecorded: int = 20) -> Any:
        request = ffi.new("jw_block_request *", {"count": messages, "unrecorded": unrecorded})
        result = ffi.new("jw_block_result *")
        assert lib.jw_workload_block(self.ring, request, result) == 0
        return result

    def times(self, thread: int, count: int) -> list[int]:
        return list(ffi.unpack(lib.jw_workload_stamps(self.ring, thread), count + 1))

    def close(self) -> None:
        lib.jw_workload_free(self.ring)


@pytest.fixture
def free_ring() -> Iterator[LiveRing]:
    ring = LiveRing()
    yield ring
    ring.close()


def check_whole(ring: LiveRing, result: Any) -> None:
    sent = lib.jw_payload_sum(ring.records, RECORDS, result.ring.first_sequence + 1, result.count)
    assert list(result.ring.payload_sum) == [sent] * 3
    published = ring.times(lib.JW_PRODUCER, result.count)
    ready = ring.times(lib.JW_READY, result.count)
    # Each message is ready after the one before is sent, and published after it is copied.
    assert all(a <= b <= c for a, b, c in zip(published, ready[1:], published[1:], strict=False))
    for consumer in (lib.JW_ACCUMULATOR, lib.JW_JOURNALLER):
        received = ring.times(consumer, result.count)
        assert received == sorted(received)
        assert all(r >= p for p, r in zip(published, received, strict=True))


def test_every_message_once_and_whole_block_after_block(free_ring: LiveRing) -> None:
    last = 0
    for messages in (1, 999, 3_000):
        result = free_ring.block(messages)
        assert result.count == messages
        assert result.ring.first_sequence > last
        last = result.ring.first_sequence + result.count
        check_whole(free_ring, result)


def test_the_journal_has_the_times_and_the_number_of_each_message(free_ring: LiveRing) -> None:
    result = free_ring.block(1_000)
    ready = free_ring.times(lib.JW_READY, 1_000)
    received = free_ring.times(lib.JW_JOURNALLER, 1_000)
    for i in range(1, 1_001):
        sequence = result.ring.first_sequence + i
        record = free_ring.journal[sequence % JOURNAL * 32 :][:32]
        fields = [record[a:b] for a, b in ((0, 4), (4, 12), (12, 20), (20, 28), (28, 32))]
        assert [int.from_bytes(f, "big") for f in fields] == [
            0x55555555,
            ready[i],
            received[i],
            received[i] - ready[i],
            sequence % 2**32,
        ]


def test_a_full_ring_blocks_the_producer_and_loses_nothing() -> None:
    # All three on one CPU: no thread reads while the producer runs, so it fills sixteen slots at once.
    ring = LiveRing(cpu=min(os.sched_getaffinity(0)), slots=16, interval_ns=100)
    try:
        result = ring.block(200)
        assert result.ring.blocked > 0
        assert result.count == 200
        check_whole(ring, result)
    finally:
        ring.close()


def test_a_schedule_never_sends_early() -> None:
    ring = LiveRing(pacing=lib.JW_PACING_SCHEDULE, interval_ns=3_000)
    try:
        result = ring.block(2_000)
        published = ring.times(lib.JW_PRODUCER, result.count)
        assert all(p - published[0] >= i * 3_000 - 1 for i, p in enumerate(published))
    finally:
        ring.close()


@pytest.mark.parametrize("slots", [0, 8, 100, 1 << 30])
def test_a_senseless_ring_is_refused(slots: int) -> None:
    config = ffi.new("jw_workload_config *", {"most": 10})
    config.clock = new_clock(lib.JW_CLOCK_MONOTONIC, 10**9)[0]
    records = ffi.from_buffer(bytes(RECORDS * 64))
    options = ffi.new("jw_ring_options *", {"slots": slots, "records": records, "record_count": RECORDS})
    error = ffi.new("int *")
    assert lib.jw_ring_new(config, options, error) == ffi.NULL
    assert error[0] == -errno.EINVAL


@given(st.integers(1_000_000, 10**10), st.integers(0, 2**62))
def test_ticks_to_ns_and_back(rate_hz: int, ticks: int) -> None:
    clock = new_clock(lib.JW_CLOCK_MONOTONIC, rate_hz)
    ticks = min(ticks, rate_hz * 86_400 * 365)
    exact = ticks * 10**9 / rate_hz
    assert lib.jw_clock_ns(clock, ticks) == pytest.approx(exact, rel=1e-10, abs=1)
    seconds = ticks // rate_hz
    assert lib.jw_clock_ticks(clock, seconds * 10**9) == seconds * rate_hz


@pytest.mark.parametrize("rate_hz", [0, 999_999, 2**63])
def test_a_senseless_rate_is_refused(rate_hz: int) -> None:
    with pytest.raises(MeasureError):
        new_clock(lib.JW_CLOCK_MONOTONIC, rate_hz)


def test_threads_carry_their_names_for_ps_and_perf(free_ring: LiveRing) -> None:
    names = [
        Path(f"/proc/self/task/{lib.jw_workload_tid(free_ring.ring, i)}/comm").read_text().strip() for i in range(3)
    ]
    assert names == ["producer", "accumulator", "journaller"]


@pytest.mark.parametrize(
    ("got", "wanted", "words"),
    [
        (0, 0, ""),
        (1, 1, ""),
        (1, 2, "only 1 of 2 pages were huge"),
        (0, 1, "only 0 of 1 pages were huge"),
        (None, 1, "the kernel does not show which pages are huge"),
    ],
)
def test_pages_are_called_huge_only_if_they_were_read_as_such(got: int | None, wanted: int, words: str) -> None:
    said = huge_pages_note(got, wanted)
    assert words in said
    assert bool(words) == bool(said)


@pytest.mark.parametrize(
    ("number", "memory", "kind", "words"),
    [
        (errno.EACCES, "file", HostError, "this host forbids the file in memory (memfd_create): Permission denied"),
        (errno.EFBIG, "file", HostError, "the limit of a file's size is too small"),
        (errno.EACCES, "none", HostError, "the workload ring could not be made: Permission denied"),
        (errno.EINVAL, "file", UsageError, "a ring of 8192 slots cannot be made"),
    ],
)
def test_why_there_is_no_ring(number: int, memory: MemoryUse, kind: type[Exception], words: str) -> None:
    ring = Ring.__new__(Ring)
    ring._spec = RunSpec("ring", Placement("none"), blocks=1, block_ns=1_000_000, memory=memory)
    error = ring._not_made(number)
    assert isinstance(error, kind)
    assert words in error.sentence()
