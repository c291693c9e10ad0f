"""Test the causes of stalls, shown line by line, in a chapter without a hidden noise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jitter_workshop.flow.chapters.measuring import ChapterMeasuring
from jitter_workshop.model.change import Change
from jitter_workshop.model.run import Stall
from tests import madeup
from tests.fakes import FakeWorkshop, open_workshop
from tests.madetrace import OTHER, TIDS, switch, trace_of
from tests.talking import talk

HOSTILE = "evil[red]\x1b[2J\nx"


def said(workshop: FakeWorkshop, answers: str) -> str:
    return " ".join(talk(workshop, answers, "baseline").split())


def to_explain(workshop: FakeWorkshop) -> None:
    """The chapter at its last step."""
    said(workshop, "|" * 11 + "q")
    workshop.walk("baseline").go("explain")


def test_without_a_run_there_is_nothing_to_explain() -> None:
    assert "Measure first: without a run" in said(open_workshop(), "v|q")


def test_one_more_run_is_offered_and_takes_no_place() -> None:
    workshop = open_workshop()
    to_explain(workshop)
    before, kept = workshop.measured, dict(workshop.walk("baseline").progress.runs)
    workshop.context.mount_command = "mount -t tracefs nodev /sys/kernel/tracing"
    assert f"As root: {workshop.context.mount_command} (then v looks again)" in said(workshop, "v|q")
    assert workshop.measured == before
    workshop.context.mount_command = ""
    text = said(workshop, "v|no|v||q")
    assert "v causes" in text
    assert text.count("Enter measures once more, with a trace") == 2
    assert workshop.measured == before + 1
    assert workshop.asked is not None
    assert workshop.asked.evidence
    assert workshop.context.runs.every()[-1].label.endswith(", traced")
    assert workshop.walk("baseline").progress.runs == kept
    assert "This run has no trace" in text


def test_a_write_before_the_traced_run_is_shown_before_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = open_workshop()
    to_explain(workshop)
    path = "/proc/irq/34/smp_affinity_list"
    sent = Change(1, "irq-here", path, "0-1", "1", "runtime", "low", "", kind="cpu-list")
    request = workshop.walk("baseline").measuring.traced_request()
    assert request is not None
    monkeypatch.setattr(ChapterMeasuring, "traced_request", lambda _: replace(request, arrival=sent))
    before = workshop.measured
    text = said(workshop, "v||q")
    assert workshop.measured == before + 1
    assert text.index(path) < text.index("Enter measures once more")


def test_the_causes_of_a_run_that_was_traced() -> None:
    workshop = open_workshop()
    to_explain(workshop)
    run, blocks = madeup.make_run(
        run_id="20270102-000000-bbbb", label="baseline, traced", name="spin_gap", workload="spin"
    )
    events = [
        switch(10_000, TIDS["sampler"], OTHER, stays=True, names=("", HOSTILE)),
        switch(30_000, OTHER, TIDS["sampler"], names=(HOSTILE, "")),
    ]
    workshop.context.handle.add_run(run, blocks, trace=trace_of(events, (Stall(0, "sampler", 1, 9_000, 31_000, 1),)))
    text = talk(workshop, "v|q", "baseline")
    assert "task evil[red] [2J x" in text
    assert "\x1b" not in text
    assert "THE SAME BY HAND" in text
