"""Keep a run's trace on disk, in one file of the run's folder. The size of a trace is limited when it is read, because
a session may come from a stranger.

The file has four parts: a line with the name of the format, the length of a JSON header, this header, and the
compressed events of each block.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import BinaryIO

from jitter_workshop.errors import SessionError
from jitter_workshop.model.codec import CodecError, from_plain, to_plain
from jitter_workshop.model.record import dataclass, made_of
from jitter_workshop.model.run import Stall
from jitter_workshop.model.trace import RECORD_BYTES, TraceInfo

TRACE_FILE = "trace.bin"
MOST_BYTES = 256 << 20
"""The largest size in bytes of a run's packed events (seven million events)."""

_MAGIC = b"jitter-workshop trace 1\n"
_LENGTH = struct.Struct("<I")
_MOST_HEADER = 64 << 20


@dataclass(frozen=True, slots=True)
class TracedBlock:
    """Hold the kernel's trace of one block.

    ``start_ns``, ``end_ns``: ns since the run began. ``start_ticks``, ``end_ticks``: ticks of the trace's clock.
    ``stalls``: stalls, whose times count from the run's start. ``unlisted``: the number of stalls that are not in
    ``stalls``. ``events``: the packed events. ``lost``: measured CPU → number of events that were lost, because the
    kernel's buffer was full. ``lost_elsewhere``: the number of lost events of the second trace. The second trace covers
    all CPUs, but has only moves, wakes and interrupts. ``whole_from``: a tick; the trace is complete from this tick on.
    Events before this tick are not used.
    """

    index: int
    start_ns: int
    end_ns: int
    start_ticks: int
    end_ticks: int
    stalls: tuple[Stall, ...]
    lost: dict[str, int]
    events: bytes
    lost_elsewhere: int = 0
    unlisted: int = 0
    whole_from: int = 0


@dataclass(frozen=True, slots=True)
class RunTrace:
    """Hold the whole trace of a run. ``tids``: measured thread → kernel thread id. ``strings``: the table of names.
    ``own``: the thread ids of the workshop's measuring process and of its child process; () in older traces.
    ``children``: used only in the trace of a user's program. True if the trace also covers the threads and child
    processes that the program started.
    """

    info: TraceInfo
    tids: dict[str, int]
    strings: tuple[str, ...]
    blocks: tuple[TracedBlock, ...]
    own: tuple[int, ...] = ()
    children: bool = True


@dataclass(frozen=True, slots=True)
class _Header:
    info: TraceInfo
    tids: dict[str, int]
    strings: tuple[str, ...]
    blocks: tuple[_BlockHeader, ...]
    own: tuple[int, ...] = ()
    children: bool = True


@dataclass(frozen=True, slots=True)
class _BlockHeader:
    index: int
    start_ns: int
    end_ns: int
    start_ticks: int
    end_ticks: int
    stalls: tuple[tuple[str, int | None, int, int, int], ...]
    lost: dict[str, int]
    event_bytes: int
    lost_elsewhere: int
    unlisted: int = 0
    whole_from: int = 0


def write_run_trace(file: BinaryIO, trace: RunTrace) -> None:
    """Write a run's trace. Raise OSError if the file cannot be written."""
    blocks = tuple(
        made_of(
            _BlockHeader,
            block,
            stalls=tuple((s.thread, s.cpu, s.start_ns, s.end_ns, s.messages) for s in block.stalls),
            event_bytes=len(block.events),
        )
        for block in trace.blocks
    )
    header = _Header(trace.info, trace.tids, trace.strings, blocks, trace.own, trace.children)
    plain = json.dumps(to_plain(header), separators=(",", ":")).encode()
    file.write(_MAGIC)
    packer = zlib.compressobj(6)
    file.write(packer.compress(_LENGTH.pack(len(plain)) + plain))
    for block in trace.blocks:
        file.write(packer.compress(block.events))
    file.write(packer.flush())


def read_run_trace(file: BinaryIO) -> RunTrace:
    """Read a run's trace. Raise SessionError for a damaged file."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise SessionError("the file is not a trace, or another version wrote it")
    source = _Unpacked(file)
    try:
        (length,) = _LENGTH.unpack(source.take(_LENGTH.size))
        if length > _MOST_HEADER:
            raise SessionError("the trace's header is too long")
        header = from_plain(_Header, json.loads(source.take(length)))
        blocks = tuple(_block(b, source) for b in header.blocks)
    except (ValueError, CodecError, zlib.error, struct.error, RecursionError) as error:
        raise SessionError("the trace is damaged", "measure again with --evidence") from error
    return RunTrace(header.info, header.tids, header.strings, blocks, header.own, header.children)


def _block(header: _BlockHeader, source: _Unpacked) -> TracedBlock:
    if min(header.index, header.unlisted) < 0:
        raise ValueError("a block has a negative number")
    if header.event_bytes < 0 or header.event_bytes % RECORD_BYTES:
        raise ValueError("a block's events are cut off")
    stalls = tuple(Stall(header.index, *fields) for fields in header.stalls)
    return made_of(TracedBlock, header, stalls=stalls, events=source.take(header.event_bytes))


class _Unpacked:
    """Decompress at most MOST_BYTES plus the size of a header from a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._inflate = zlib.decompressobj()
        self._left = MOST_BYTES + _MOST_HEADER

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes. Raise ValueError if there are fewer."""
        if size > self._left:
            raise ValueError("the trace is too large")
        self._left -= size
        parts: list[bytes] = []
        while size:
            packed = self._inflate.unconsumed_tail or self._file.read(65_536)
            if self._inflate.eof or not packed:
                raise ValueError("cut off")
            part = self._inflate.decompress(packed, size)
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
