"""Test which runs of a series are named in its notes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from jitter_workshop.flow.proving.meters import Taken
from jitter_workshop.flow.proving.series import RunSeries
from tests import madeup


def test_disturbed_runs_and_runs_with_few_messages_are_noted() -> None:
    quiet = cast("Any", SimpleNamespace(notes=lambda: ()))
    series = RunSeries(quiet, quiet, quiet, quiet, quiet, quiet)
    made = madeup.make_run([[100] * 87], block_s=0.01)[0]
    few = replace(made, stalls=replace(made.stalls, stolen_ns_per_second=0.92e9))
    series.note_run("1 with", Taken(quiet, (), disturbed="qemu, 40 %", run=few))
    series.note_run("1 without", Taken(quiet, (), run=made))
    series.note_run("2 with", Taken(quiet, ()))
    disturbed, omitted = series.notes("round")
    assert series.disturbed == 1
    assert disturbed.endswith(": round 1 with (qemu, 40 %)")
    assert omitted.endswith(": round 1 with (9 %)")
