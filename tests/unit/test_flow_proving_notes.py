"""Test the note of a proof on the chapter's figure: the cause without and with the change, and never a verdict."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.flow.proving import notes
from jitter_workshop.flow.proving.notes import cause_figure, cause_note, omission_note
from jitter_workshop.model.run import Run, ThreadRecord
from tests.madeup import make_run


def moved(times: int | None) -> Run:
    threads = (ThreadRecord("accumulator", {"1": 9}, migrations=times),)
    return dataclasses.replace(make_run(block_s=1.0)[0], threads=threads)


def test_a_count_of_a_cause_is_told_as_the_mean_of_each_side() -> None:
    pairs = [
        (cause_figure("migrations", moved(before)), cause_figure("migrations", moved(after)))
        for before, after in ((20, 0), (40, 2), (None, 8))
    ]
    assert pairs == [(10, 0), (20, 1), (None, 4)]
    assert cause_note("migrations", pairs) == (
        "threads moved to another CPU: 15 a second without the change, 0.5 a second with it "
        "(mean of the runs; a cause gets no verdict)",
    )


@pytest.mark.parametrize("shows", ["", "99.9", "stalls-10us", "interference", "intended-99", "work-items"])
def test_a_figure_that_is_judged_or_unknown_has_no_note(shows: str) -> None:
    found = cause_figure(shows, moved(3))
    assert found is None
    assert cause_note(shows, [(found, found)]) == ()


def test_a_command_has_no_run_and_so_no_note() -> None:
    assert cause_figure("migrations", None) is None
    assert cause_note("migrations", []) == ()


def test_a_frequency_is_a_cause_too() -> None:
    run = dataclasses.replace(moved(0), cpu_hz=2e9)
    assert cause_figure("cpu-hz", run) == 2e9


@pytest.mark.parametrize(("shows", "known"), [("faults", False), ("write-calls", False), ("migrations", True)])
def test_a_count_by_message_of_a_run_that_sent_few_messages_is_left_out(
    monkeypatch: pytest.MonkeyPatch, shows: str, known: bool
) -> None:
    run = dataclasses.replace(
        moved(3), threads=(ThreadRecord("accumulator", {"1": 9}, migrations=3, minor_faults=4, write_calls=5),)
    )
    assert cause_figure(shows, run) is not None
    monkeypatch.setattr(notes, "sent_share", lambda seen: 0.09)
    assert (cause_figure(shows, run) is not None) == known


def test_runs_that_sent_few_messages_are_named_and_three_at_most() -> None:
    assert omission_note([], "round") == ()
    few = [f"{number} with (9 %)" for number in range(1, 6)]
    assert omission_note(few, "round") == (
        "a thread was stopped for long in 5 runs, so only a part of the planned messages was sent, and the transit "
        "leaves out these waits: round 1 with (9 %), 2 with (9 %), 3 with (9 %) and 2 more",
    )
