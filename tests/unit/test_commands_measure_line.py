"""The line of progress of the verb ``measure``."""

from __future__ import annotations

import dataclasses
import io

import pytest

from jitter_workshop.commands.measure import ProgressLine
from jitter_workshop.model.curve import CurvePoint, PercentileCurve
from jitter_workshop.model.run import Progress
from tests import madeup


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def curve(p999: int) -> PercentileCurve:
    points = (
        CurvePoint(50.0, 100, solid=True),
        CurvePoint(99.9, p999, solid=True),
        CurvePoint(100.0, 2 * p999, solid=True),
    )
    return PercentileCurve("mine", points, 10_000)


def test_the_line_has_the_latency_from_when_a_message_was_due(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    line = ProgressLine()
    now = Progress(madeup.make_run()[0].blocks[0], 10, 20, curve(16_000_000), 12.0, 1_000)
    line.block_done(now)
    line.block_done(dataclasses.replace(now, due=curve(169_000_000)))
    _, first, second = shown.getvalue().split("\r")
    assert "p99.9 16 ms · worst 32 ms · 12 s left" in first
    assert "p99.9 169 ms · worst 338 ms · 12 s left" in second
