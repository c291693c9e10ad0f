"""Control a noise process from its parent: start it, name the thread to move, read its log, and end it."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import TypeVar

from jitter_workshop.bench import launch, protocol
from jitter_workshop.bench.noiseorder import NoiseOrder
from jitter_workshop.bench.protocol import NoiseLog
from jitter_workshop.errors import HostError, MeasureError
from jitter_workshop.model.noise import MOST_BURSTS, Bursts, noise, unpack_bursts

M = TypeVar("M")

_ANSWER_WITHIN_S = 60.0
_LARGEST_LOG = 64 * MOST_BURSTS


class NoiseChild(launch.Child):
    """Run a noise process, from the construction of this object until the end of a ``with`` block.

    Construct the object on a thread that lives as long as the noise (see ``launch``). Raise HostError if this host
    cannot make the noise. Raise MeasureError if the child failed.
    """

    def __init__(self, order: NoiseOrder) -> None:
        super().__init__(launch.command(launch.NOISE), launch.NOISY, HostError)
        self._order = order
        self._gone: MeasureError | None = None
        try:
            self.send(protocol.message_line("order", order))
            self._answer("aimed", object)
        except BaseException:
            self.kill()
            raise

    def aim(self, tids: Mapping[str, int]) -> None:
        """Tell the noise process which measured thread to move. Do nothing if the noise moves no thread.

        ``tids``: thread name → kernel thread id. Raise HostError if this host cannot make the noise. Raise MeasureError
        if the child failed.
        """
        if noise(self._order.kind).aimed:
            # All histograms are about the receiving thread.
            name = next((name for name in ("accumulator", "receiver") if name in tids), next(iter(tids)))
            self.send(protocol.message_line("aim", tids[name]))
            self._answer("aimed", object)

    def gone(self) -> MeasureError | None:
        """Return the error if the noise process has ended by itself; None while it runs."""
        if self._gone is None and self.wait(timeout_s=0).kind == "end":
            self._gone = self.ended()
        return self._gone

    def finish(self) -> Bursts:
        """End the noise and return its log. Raise MeasureError if the noise process gives no log."""
        if (gone := self.gone()) is not None:
            raise gone
        self.send(protocol.message_line("noise"))
        log = self._answer("noise", NoiseLog)
        self.end()
        return read_log(self._order.kind, self._order.name, log)

    def _answer(self, wanted: str, message: type[M]) -> M:
        event = self.wait(timeout_s=_ANSWER_WITHIN_S)
        if event.kind == "timeout":
            raise MeasureError(f"{launch.NOISY} did not answer within {_ANSWER_WITHIN_S:g} s")
        return self.message(event, wanted, message)


def read_log(kind: str, name: str, log: NoiseLog) -> Bursts:
    """Return the bursts in ``log``, which came through the pipe. Raise MeasureError if the log is invalid.

    ``kind``, ``name``: the kind of the noise, and the name of its threads.
    """
    try:
        unzip = zlib.decompressobj()
        records = unzip.decompress(base64.b64decode(log.records, validate=True), _LARGEST_LOG)
        return unpack_bursts(kind, name, records, log.unlogged)
    except (ValueError, zlib.error) as error:
        raise MeasureError(f"the noise's log cannot be read: {error}") from error
