"""The hunt line by line, with a noise that makes none."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitter_workshop.errors import MeasureError
from jitter_workshop.flow.chapters.hunt import NO_NAMED_NOISE, NO_NOISE_HIDDEN
from jitter_workshop.model.noise import noise
from jitter_workshop.model.run import Stall
from jitter_workshop.plain.walkthrough import PlainWalk
from jitter_workshop.presenter.course.hunt import ENOUGH, R_MEASURES, RESTORED_FOR_HUNT, kept_away, quiet_run_without
from jitter_workshop.presenter.host.changes import OTHERS_MAY_MEASURE
from jitter_workshop.presenter.runs.causes import MEASURE_FIRST, NO_TRACE
from jitter_workshop.tuning.journal import AppliedBy
from tests import fakes, madeup
from tests.fakes import FakeWorkshop, open_workshop
from tests.isolated_hunt import isolate
from tests.madetrace import OTHER, TIDS, switch, trace_of
from tests.talking import Talk, talk


@pytest.fixture
def workshop(tmp_path: Path) -> FakeWorkshop:
    return open_workshop(course=fakes.hunt_course(tmp_path / "course"))


def said(workshop: FakeWorkshop, answers: str, width: int = 80) -> str:
    return " ".join(talk(workshop, answers, "hunt", width).split())


def test_the_whole_hunt(workshop: FakeWorkshop) -> None:
    # look, measure, again; Enter there asks first, and hides, and measures.
    text = said(workshop, "||||||name spinners|name nonsense|name greedy|q")
    for part in (
        "start · b back",
        "Enter hide a noise",
        "you are not told which",
        "greedy     A greedy thread",
        "after 30 minutes. The",
        "is running now. Find out which, and name it",
        "! A hidden noise is running.",
        "name KIND · give up",
        f"✗ Not: Spinners. The noise that you named has these signs: {noise('spinners').found_as}",
        "! the answer is not one of the suspects",
        "✓ Found: A greedy thread, at try 2.",
        f"What it does: {noise('greedy').what}",
        f"What helps: {noise('greedy').treatment}",
    ):
        assert " ".join(part.split()) in text, part
    assert workshop.measured == 2
    assert workshop.context.runs.every()[-1].notes["hunt"]
    assert workshop.starts.made[0].ended == 1
    assert workshop.hunts.hunt is None


def test_start_name_and_give_up_by_words(workshop: FakeWorkshop) -> None:
    text = said(workshop, "give up|start|v||||start|no|name greedy|start||start|give up|?|q")
    assert text.count(f"! {NO_NOISE_HIDDEN}") == 2
    assert "First measure while the host is quiet" in text
    assert "Nothing is hidden." in text
    assert "A hidden noise runs already" in text
    assert f"greedy thread. What it does: {noise('greedy').what}" in text
    assert MEASURE_FIRST in text
    assert "give up give up, and see which noise" in text


def test_applied_isolation_is_said_first_and_restore_lets_noises_in(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = isolate(workshop, monkeypatch)
    with monkeypatch.context() as none:
        none.setattr("jitter_workshop.flow.chapters.hunt.suspected_noises", lambda *_: ())
        text = said(workshop, "||k|start|restore|restore|q")
    kept = kept_away(("isolation",), "type restore")
    first, *_ = text.split(kept)
    # At the first page, and again when nothing can be hidden.
    assert text.count(kept) >= 2
    assert "ON THIS HOST" not in first
    assert agent.calls[:1] == [("restore", "isolation")]
    assert f"Restored: 1 setting, 1 write (isolation). {RESTORED_FOR_HUNT}" in text
    assert "so there is nothing to restore" in text


@pytest.mark.parametrize(("answer", "runs", "restored"), [("", 1, True), ("k", 1, False), ("no", 0, False)])
def test_before_the_quiet_run_the_learner_decides_about_isolation(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch, answer: str, runs: int, restored: bool
) -> None:
    agent = isolate(workshop, monkeypatch)
    text = said(workshop, f"||{answer}|q")
    assert quiet_run_without(("isolation",)) in text
    assert "k measures with them" in text
    assert (workshop.measured, ("restore", "isolation") in agent.calls) == (runs, restored)
    assert ("Nothing was measured." in text) == (runs == 0)


def test_a_restore_during_a_hunt_advises_no_new_quiet_run(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = isolate(workshop, monkeypatch)
    text = said(workshop, "||k|||||restore|q")
    assert agent.calls[:1] == [("restore", "isolation")]
    assert "Restored: 1 setting, 1 write (isolation)." in text
    assert RESTORED_FOR_HUNT not in text


@pytest.mark.parametrize(("answer", "restored"), [("", True), ("no", False)])
def test_restore_asks_before_it_restores_the_isolation_of_another_workshop(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch, answer: str, restored: bool
) -> None:
    agent = isolate(workshop, monkeypatch)
    theirs = {one: AppliedBy("a", "2026-01-02T03:04:05Z", 4242, running=True) for one in ("governor", "isolation")}
    monkeypatch.setattr(workshop, "of_others", lambda: theirs)
    text = said(workshop, f"||k|restore|{answer}|q")
    assert "Not yours: isolation, applied" in text
    assert OTHERS_MAY_MEASURE in text
    assert (("restore", "isolation") in agent.calls) is restored
    assert ("Nothing was restored." in text) is not restored


def test_after_a_change_the_outcome_of_the_hunt_is_said_before_the_applied_isolation(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolate(workshop, monkeypatch)
    text = said(workshop, "||k|||||name greedy|enough||q")
    outcome = text.rindex("1 of 1 hidden noise found: A greedy thread")
    assert outcome < text.rindex(f"! {kept_away(('isolation',), 'type restore')}")


def test_no_noise_is_hidden_without_yes_and_nothing_measured(workshop: FakeWorkshop) -> None:
    text = said(workshop, "||||no|v|q")
    assert "Nothing is hidden." in text
    assert NO_TRACE in text
    assert workshop.measured == 1
    assert workshop.hunts.hunt is None


@pytest.mark.parametrize("last", ["p|q", "q", ""])
def test_leaving_ends_it(workshop: FakeWorkshop, last: str) -> None:
    text = said(workshop, f"||||{last}" if last == "" else f"||||||{last}")
    assert ("The hidden noise ended with this chapter." in text) == (workshop.measured == 2)
    assert workshop.starts.made[0].ended == 1
    assert workshop.hunts.hunt is None


def test_a_noise_hidden_at_the_last_step_is_measured_beside(workshop: FakeWorkshop) -> None:
    # Caught, on to the last page, and one more: Enter measures beside it, and does not leave.
    text = said(workshop, "||||||give up||start|||q")
    assert "EXPLAIN" in text
    assert workshop.measured == 3
    assert workshop.context.runs.every()[-1].notes["hunt"]
    assert "is done" not in text


def test_that_a_noise_was_ended_is_said_once(workshop: FakeWorkshop) -> None:
    talked = Talk(workshop, "")
    steps = iter(["", "", "", "", "", "", "?", "t", "t", "q"])

    def read(prompt: str) -> str:
        talked.said.append(prompt + "\n")
        answer = next(steps)
        if answer == "?":  # From another terminal, while the help is read.
            workshop.starts.made[0].death = MeasureError("killed")
        return answer

    walk = PlainWalk(workshop, read, talked.said.append, 80)
    assert walk.run("hunt") == 0
    text = " ".join(talked.text.split())
    assert text.count("has ended, so no time is") == text.count(R_MEASURES) == 1
    assert "ended with this chapter" not in text


def test_a_noise_that_was_named_goes_on_until_its_cure_was_measured(workshop: FakeWorkshop) -> None:
    text = said(workshop, "enough|||||||name greedy|name timer|cure here|enough|q")
    assert "r lists cures" in text
    assert "enough · start" in text
    assert text.count(f"! {NO_NAMED_NOISE}") == 2, "before it is named, and after the cure"
    assert f"! {NO_NOISE_HIDDEN}" in text
    run = workshop.context.runs.every()[-1]
    assert (run.label, "hunt" in run.notes) == ("with the cure", True)
    assert workshop.starts.made[0].ended == 1


def test_the_word_enough_ends_a_noise_that_was_named(workshop: FakeWorkshop) -> None:
    text = said(workshop, "||||||name greedy|enough|cure here|q")
    assert ENOUGH in text
    assert "To try a cure" in text
    assert workshop.measured == 2


def test_with_a_cure_the_causes_are_those_of_its_run(workshop: FakeWorkshop) -> None:
    said(workshop, "|||||cure here|q")
    walk = workshop.walk("hunt")
    assert walk.current == "compare"
    shown = walk.runs.traced_run()
    assert shown is not None
    assert shown.label == "with the cure"


def test_the_evidence_is_of_the_newest_run_with_a_cure_too(workshop: FakeWorkshop) -> None:
    text = said(workshop, "|||||cure here||q")
    assert "run 1: before the hunt" in text
    assert "run 3: with the cure" in text


def test_r_is_the_cure_and_another_word_begins_anew(workshop: FakeWorkshop) -> None:
    text = said(workshop, "||||||r|r 0|?|anew|q")
    assert "cure 0 Measure on CPU 0" in text
    assert workshop.context.runs.every()[-1].label == "with the cure"
    assert "anew begin this chapter anew" in text
    assert workshop.walk("hunt").progress.runs == {}


def test_other_chapters_know_no_hunt() -> None:
    text = " ".join(talk(open_workshop(), "start|give up|?|q", "baseline").split())
    assert "Unknown command 'start'" in text
    assert "see which noise it was" not in text


@pytest.mark.parametrize("width", [30, 60])
def test_no_line_is_wider_than_the_terminal(workshop: FakeWorkshop, width: int) -> None:
    text = talk(workshop, "||||||name greedy|?|q", "hunt", width)
    wide = [line for line in text.split("\n") if len(line) > width and not line.startswith("    ")]
    assert wide == []


def test_the_causes_of_the_traced_run_are_told(workshop: FakeWorkshop) -> None:
    run, blocks = madeup.make_run(run_id="20260102-000000-bbbb", label="beside", name="spin_gap", workload="spin")
    events = [
        switch(10_000, TIDS["sampler"], OTHER, stays=True, names=("", "thief")),
        switch(30_000, OTHER, TIDS["sampler"], names=("thief", "")),
    ]
    stalls = (Stall(0, "sampler", 1, 9_000, 31_000, 1),)
    workshop.context.handle.add_run(run, blocks, trace=trace_of(events, stalls))
    workshop.walk("hunt").record("measure", run)
    text = said(workshop, "v|q")
    assert "task thief" in text
    assert "THE SAME BY HAND" in text


def test_a_cure_line_by_line(workshop: FakeWorkshop) -> None:
    text = said(workshop, "cure|||||||cure|cure 99|cure nowhere|cure here|name greedy|cure|q")
    for part in (
        "type start to hide a noise",
        "taskset -apc 0 PID",
        "cure here Measure here",
        "cure 0 Measure on CPU 0",
        "'99' is not the number of a CPU",
        "'nowhere' is not the number of a CPU",
        "The time in stalls per second is",
        "quiet beside the noise with the cure",
    ):
        assert part.removeprefix("! ") in text, part
    assert workshop.measured == 3
    assert workshop.context.runs.every()[-1].label == "with the cure"
    assert text.count("To try a cure, type start") == 2


def test_how_it_came_out_is_said_when_the_session_is_opened_again(workshop: FakeWorkshop) -> None:
    said(workshop, "||||||name greedy||q")
    workshop.close()
    reopened = open_workshop(session=workshop.context.session.name, course=Path(workshop.course.source))
    text = said(reopened, "q")
    assert "1 of 1 hidden noise found: A greedy" in text
    assert "thread (named at the first try)." in text


def test_where_nothing_is_hidden_the_page_does_not_say_so(workshop: FakeWorkshop) -> None:
    said(workshop, "|||||q")
    reopened = open_workshop(session=workshop.context.session.name, course=Path(workshop.course.source))
    text = said(reopened, "q")
    assert "The workshop hides a noise." in text
    assert "Now a noise is hidden" not in text
    assert "A hidden noise runs" not in text


def test_the_status_is_within_reach_while_a_noise_runs(workshop: FakeWorkshop) -> None:
    text = said(workshop, "||||||status|q")
    assert "can be better" in text
    assert workshop.starts.made[0].ended == 1
