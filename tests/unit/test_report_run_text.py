"""What the report of a run says of how it was made."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.model.run import Run
from jitter_workshop.report.text import remark, render
from tests import madeup

OUTSIDE = "the isolated CPUs were not used: sudo asks for a \x1b[1mpassword"


def made(mode: str = "auto", **changed: object) -> Run:
    run, _ = madeup.make_run()
    return dataclasses.replace(run, placement=dataclasses.replace(run.placement, mode=mode), **changed)


def flat(run: Run) -> str:
    return " ".join(render(run).split())


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (made(notes={"isolation": OUTSIDE}), "note the isolated CPUs were not used: sudo asks for a [1mpassword"),
        (made(noise="stall", notes={"noise": "stopped on purpose"}), "note stopped on purpose"),
        (made(workload="spin", duty=50, notes={"duty": "busy for 5 ms"}), "note busy for 5 ms"),
        (made(workload="spin", duty=50), "busy 50 % of the time"),
        (made(noise="stall"), "with stall"),
    ],
)
def test_a_report_says_what_changes_how_it_is_read(run: Run, said: str) -> None:
    assert said in flat(run)


def test_a_report_does_not_say_what_was_not_asked_for() -> None:
    text = flat(made(notes={"noise": "none was asked for"}))
    assert "none was asked for" not in text
    assert "busy" not in text


def test_who_asked_for_a_run_is_told_at_once() -> None:
    assert remark(made()) == ""
    notes = {"suspended": "the run was suspended once", "isolation": OUTSIDE, "noise": "none was asked for"}
    said = "The isolated CPUs were not used: sudo asks for a [1mpassword."
    assert remark(made(notes=notes)) == f"The run was suspended once. {said}"
    # Who asked for no CPUs did not ask for isolated ones.
    assert remark(made("none", notes=notes)) == "The run was suspended once."
