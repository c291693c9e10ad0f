"""Control a noise that has a process of its own, from the parent's side: start it, aim it, read its log, end it."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from jitter_workshop.bench import launch
from jitter_workshop.bench.noiseorder import NoiseOrder, write_order
from jitter_workshop.bench.protocol import NoiseLog, read_as
from jitter_workshop.errors import HostError, MeasureError
from jitter_workshop.model.codec import CodecError
from jitter_workshop.model.noise import MOST_BURSTS, Bursts, noise, unpack_bursts
from jitter_workshop.model.text import clean

_ANSWER_WITHIN_S = 60.0
_LARGEST_LOG = 64 * MOST_BURSTS


class NoiseChild:
    """Run a noise from construction on. Start it on a thread that lives as long as the noise (see ``launch``). As a
    context manager it is always ended. Raise HostError where it refused, MeasureError where it failed."""

    def __init__(self, order: NoiseOrder) -> None:
        self._order = order
        self._gone: MeasureError | None = None
        self._child = launch.Child(launch.command(launch.NOISE))
        try:
            self._child.send(write_order(order))
            self._answer("ready")
        except BaseException:
            self.end()
            raise

    @property
    def pid(self) -> int:
        return self._child.pid

    def aim(self, tids: Mapping[str, int]) -> None:
        """Send the measured threads to a noise that needs them. Raise like the constructor."""
        if noise(self._order.kind).aimed:
            # All histograms are about the receiving thread.
            name = next((name for name in ("accumulator", "receiver") if name in tids), next(iter(tids)))
            self._child.send(json.dumps({"aim": [tids[name]]}).encode() + b"\n")
            self._answer("ready")

    def gone(self) -> MeasureError | None:
        """Return why it has ended by itself; None while it is at work."""
        if self._gone is None and self._child.wait(timeout_s=0).kind == "end":
            self._gone = launch.ended("the noise process", self._child)
        return self._gone

    def finish(self) -> Bursts:
        """End it and return its log. Raise MeasureError where it does not give one."""
        if (gone := self.gone()) is not None:
            raise gone
        self._child.send(b'{"stop": true}\n')
        said = self._answer("log")
        self._child.end()
        try:
            log = read_as(NoiseLog, said)
        except CodecError as error:
            raise MeasureError(f"the noise's log cannot be read: {error}") from error
        return read_log(self._order.kind, self._order.name, log)

    def stop(self) -> None:
        """Freeze it (Ctrl-Z); :meth:`resume` continues it."""
        self._child.stop()

    def resume(self) -> None:
        self._child.resume()

    def end(self) -> None:
        self._child.__exit__(None, None, None)

    def __enter__(self) -> NoiseChild:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def _answer(self, wanted: str) -> Any:
        event = self._child.wait(timeout_s=_ANSWER_WITHIN_S)
        if event.kind == "end":
            raise launch.ended("the noise process", self._child)
        if event.kind != "line":
            raise MeasureError(f"the noise process did not answer within {_ANSWER_WITHIN_S:g} s")
        try:
            said = json.loads(event.line)
            if "refused" in said:
                raise HostError(clean(str(said["refused"]), 300), clean(str(said.get("advice", "")), 300))
            return said[wanted]
        except (ValueError, KeyError, TypeError) as error:
            raise MeasureError("the noise process broke the protocol") from error


def read_log(kind: str, name: str, log: NoiseLog) -> Bursts:
    """Return the log from a pipe, of a noise whose threads are called ``name``. Raise MeasureError for an invalid
    log."""
    try:
        unzip = zlib.decompressobj()
        records = unzip.decompress(base64.b64decode(log.records, validate=True), _LARGEST_LOG)
        return unpack_bursts(kind, name, records, log.unlogged)
    except (ValueError, zlib.error) as error:
        raise MeasureError(f"the noise's log cannot be read: {error}") from error
