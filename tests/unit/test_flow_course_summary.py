"""The course from first to last: which runs stand for it, how they are divided, and what is said to be open."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.errors import HostError
from jitter_workshop.flow.chapters.course_summary import (
    MEASURES,
    Bought,
    CourseSummary,
    sum_up,
    words_of,
)
from jitter_workshop.flow.chapters.path import all_done_here
from jitter_workshop.flow.host_ops.host_status import Findings
from jitter_workshop.model.run import HUNTED, Run, ThreadRecord
from jitter_workshop.model.session import Guess
from jitter_workshop.plain.talk import Talk
from jitter_workshop.plain.walkthrough import tell_summary
from jitter_workshop.presenter.course import summary as words
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.stats.sample_size import FEW_SAMPLES, FEW_STALLS, FEW_TOLD
from jitter_workshop.stats.scale import ratio_text
from tests import madeup
from tests.fakes import FakeContext, FakeWorkshop, open_workshop

BASE = (100, 110, 120, 5_000)


def summary_lines(summary: CourseSummary, width: int) -> list[str]:
    told: list[str] = []
    tell_summary(summary, Talk(write=told.append, width=width + 1))
    return "".join(told).splitlines()


def kept(workshop: FakeWorkshop, chapter: str, slot: Any, values: Sequence[int], **changed: Any) -> Run:
    """A made-up run in a chapter's slot, as if it had been measured there."""
    number = len(workshop.context.runs.every())
    fields = {
        "run_id": f"20260101-{number:06d}-aaaa",
        "label": f"{chapter} {slot}",
        "started_at": f"2026-01-01T00:{number:02d}:00.000Z",
    }
    run, blocks = madeup.make_run((tuple(values), tuple(values)), **{**fields, **changed})
    workshop.context.handle.add_run(run, blocks)
    workshop.walk(chapter).record(slot, run)
    return run


def done(workshop: FakeWorkshop, *chapters: str) -> None:
    for chapter in chapters:
        progress = workshop.walk(chapter).progress
        workshop.context.save_progress(chapter, dataclasses.replace(progress, done=True))


@pytest.fixture
def guest(host_tree: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> FakeWorkshop:
    """The fake on a made guest of two CPUs, taken for the host itself, so that its chapters can be done."""
    workshop = open_workshop(host_tree("guest"))
    monkeypatch.setattr(workshop.context.root, "recorded", False)
    monkeypatch.setattr(FakeContext, "standing", lambda self: ({"id": "thp", "value": "never"}, {"id": "ksm"}))
    monkeypatch.setattr(FakeWorkshop, "written", lambda self: ("thp", "ksm", "ksm"))
    return workshop


def test_a_summary_without_runs_has_no_steps_and_lists_the_open_chapters(guest: FakeWorkshop) -> None:
    summary = sum_up(guest)
    assert summary.steps == ()
    assert [e.chapter_id for e in summary.open_here] == ["baseline", "migration", "pinning"]
    assert (summary.done, summary.chapters) == (0, 3)
    assert summary.standing == ("thp=never", "ksm")
    assert words.applied_lines(summary) == ["Applied now: 2 settings, 3 writes.", "thp=never", "ksm"]
    assert {f.check.state for f in summary.improvable} == {"improve"}
    assert summary.unjudged == 3
    assert words.NO_STEPS.split(":")[0] in " ".join(summary_lines(summary, 80))


def test_the_stack_begins_with_the_first_run_and_later_chapters_take_part_with_their_second(
    guest: FakeWorkshop,
) -> None:
    kept(guest, "pinning", "measure", BASE)
    last = kept(guest, "pinning", "again", (50, 55, 60, 2_500))
    first = kept(guest, "baseline", "measure", BASE)
    kept(guest, "baseline", "again", BASE)
    before = kept(guest, "migration", "measure", (200, 220, 240, 20_000))
    summary = sum_up(guest)
    assert [s.run.id for s in summary.steps] == [s.shown.key for s in summary.steps] == [first.id, last.id]
    assert before.id not in {s.run.id for s in summary.steps}
    assert summary.half == ("Who moves my threads?",)
    said = " ".join(" ".join(summary_lines(summary, 80)).split())
    assert "These chapters have no second run yet" in said
    assert "be compared: Who moves my threads?." in said


def test_a_run_with_something_applied_does_not_begin_the_stack_where_another_has_nothing(guest: FakeWorkshop) -> None:
    set_then = kept(guest, "baseline", "measure", BASE, applied=({"id": "thp", "value": "never"},))
    bare = kept(guest, "pinning", "measure", BASE)
    after = kept(guest, "pinning", "again", BASE)
    summary = sum_up(guest)
    assert [s.run.id for s in summary.steps] == [bare.id, after.id]
    assert summary.half == ("Why so slow?",)
    assert set_then.id not in {s.run.id for s in summary.steps}


def test_the_second_run_of_a_chapter_that_changes_nothing_begins_before_any_later_chapter(guest: FakeWorkshop) -> None:
    kept(guest, "baseline", "measure", BASE, applied=({"id": "thp", "value": "never"},))
    bare = kept(guest, "baseline", "again", BASE)
    kept(guest, "migration", "measure", BASE)
    moved = kept(guest, "migration", "again", BASE)
    assert [s.run.id for s in sum_up(guest).steps] == [bare.id, moved.id]


def test_a_single_measured_chapter_shows_both_its_runs(guest: FakeWorkshop) -> None:
    first = kept(guest, "migration", "measure", BASE)
    again = kept(guest, "migration", "again", BASE)
    assert [s.run.id for s in sum_up(guest).steps] == [first.id, again.id]


def test_two_curves_of_one_chapter_are_named_with_their_labels(guest: FakeWorkshop) -> None:
    kept(guest, "pinning", "measure", BASE, label="free")
    kept(guest, "pinning", "again", BASE, label="pinned")
    steps = sum_up(guest).steps
    named = [words.step_rows(step, n)[0][0] for n, step in enumerate(steps, 1)]
    assert named == ["1 Pinning: free", "2 Pinning: pinned"]
    kept(guest, "baseline", "measure", BASE)
    assert [step.name for step in sum_up(guest).steps] == ["Why so slow?", "Pinning"]


def test_a_value_that_rests_on_few_stalls_keeps_its_mark_in_the_table(
    guest: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(guest, "baseline", "measure", BASE)
    (step,) = sum_up(guest).steps
    monkeypatch.setattr(words, "of_curve", lambda shown: {"50": "", "99": FEW_SAMPLES, "99.9": FEW_STALLS})
    signs = [value[0] for value in words.step_rows(step, 1)[0][1:]]
    assert [sign == FEW_STALLS for sign in signs] == [False, False, True, False]
    assert FEW_TOLD in written(words.summary_notes(sum_up(guest), 100))


def test_ratios_are_to_the_one_before_and_to_the_first(guest: FakeWorkshop) -> None:
    kept(guest, "baseline", "measure", [1_000] * 50 + [100_000])
    kept(guest, "migration", "again", [2_000] * 50 + [400_000])
    kept(guest, "pinning", "again", [500] * 50 + [10_000])
    first, second, third = sum_up(guest).steps
    assert first.values[0] == pytest.approx(1_000, rel=0.01)
    assert first.values[-1] == 100_000
    assert first.to_first == first.to_before == (None,) * len(MEASURES)
    at = MEASURES.index("p50"), MEASURES.index("max")
    assert [second.to_first[i] for i in at] == pytest.approx([2.0, 4.0], rel=0.01)
    assert second.to_before == second.to_first
    assert [third.to_before[i] for i in at] == pytest.approx([0.25, 0.025], rel=0.01)
    assert [third.to_first[i] for i in at] == pytest.approx([0.5, 0.1], rel=0.01)
    said = [row for number, step in enumerate((first, second, third), 1) for row in words.step_rows(step, number)]
    assert [row[0] for row in said] == [
        "1 Why so slow?",
        "2 Who moves my threads?",
        "  ÷ row 1",
        "3 Pinning",
        "  ÷ row 2",
        "  ÷ row 1",
    ]
    assert said[4][1] == "1/4"
    assert said[4][-1] == "1/40"


def test_the_summary_compares_a_run_only_with_runs_measured_the_same_way(guest: FakeWorkshop) -> None:
    kept(guest, "baseline", "measure", BASE)
    spin = kept(guest, "migration", "again", (30, 40), workload="spin", name="spin_gap", noise="spinners")
    third = kept(
        guest, "pinning", "again", BASE, applied=({"id": "governor", "value": ""}, {"id": "thp", "value": "never"})
    )
    steps = sum_up(guest).steps
    assert "workload: ring against spin" in steps[1].unlike
    assert steps[1].to_before == steps[1].to_first == (None,) * len(MEASURES)
    assert words.step_rows(steps[1], 2) == [words.step_rows(steps[1], 2)[0]]
    assert steps[2].to_before[0] == 1
    assert words.step_rows(steps[2], 3)[1][1] == "≈"
    assert "Not comparable with the first: workload:" in words.describe_step_run(steps[1])
    assert "workload: ring against spin" in words.describe_step_run(steps[1])
    assert "spinners awake" in words.describe_step_run(steps[1])
    assert steps[2].to_before == steps[2].to_first
    assert (steps[2].to_first[0], steps[2].to_first[-1]) == (1.0, 1.0)
    assert steps[2].applied == ("governor", "thp=never")
    assert "set then: governor, thp=never" in words.describe_step_run(steps[2])
    assert words.comparable_curves(steps, 1) == (0, 2)
    assert {spin.id, third.id} == {steps[1].run.id, steps[2].run.id}


def test_a_row_of_ratios_names_the_row_by_which_it_divides(guest: FakeWorkshop) -> None:
    """The row above is of another workload, so the nearest comparable one is named."""
    kept(guest, "baseline", "measure", [1_000] * 50)
    kept(guest, "migration", "again", (30, 40), workload="spin", name="spin_gap")
    kept(guest, "pinning", "again", [500] * 50)
    step = sum_up(guest).steps[2]
    assert step.before == 0
    assert [row[0] for row in words.step_rows(step, 3)] == ["3 Pinning", "  ÷ row 1"]


def test_a_run_with_a_hidden_noise_divides_nothing_and_is_divided_by_nothing(guest: FakeWorkshop) -> None:
    kept(guest, "baseline", "measure", BASE)
    kept(guest, "migration", "again", (200, 220, 240, 20_000), notes={HUNTED: "a hidden noise ran"})
    kept(guest, "pinning", "again", BASE)
    hunted, last = sum_up(guest).steps[1:]
    assert hunted.unlike == ("load: no noise against a hidden noise",)
    assert hunted.to_before == hunted.to_first == (None,) * len(MEASURES)
    assert (hunted.before, last.before) == (None, 0)
    assert words.step_rows(hunted, 2)[0][0] == "2 Who moves my threads?, beside a hidden noise"
    assert "a hidden noise awake" in words.describe_step_run(hunted)


def test_each_step_shows_its_chapters_own_figure_before_and_after(guest: FakeWorkshop) -> None:
    """The percentiles say nothing of a change that is judged by a count."""
    kept(guest, "baseline", "measure", BASE)
    kept(guest, "pinning", "measure", BASE, threads=(ThreadRecord("accumulator", {}, migrations=300),))
    kept(guest, "pinning", "again", BASE, threads=(ThreadRecord("accumulator", {}, migrations=0),))
    first, last = sum_up(guest).steps
    assert first.changed is None
    assert last.changed is not None
    assert last.changed.name == "threads moved to another CPU"
    lines = [(number, line.plain) for number, line in words.step_table(sum_up(guest), 100)]
    told = [line for number, line in lines if number == 2]
    assert told[0].startswith("2 Pinning")
    assert told[1].startswith("  Threads moved to another CPU: ")
    assert told[1].endswith("→ 0 a second, none in the second run")
    assert told[2].startswith("  ÷ row 1")


def test_a_chapter_that_repeats_its_run_shows_no_change(guest: FakeWorkshop) -> None:
    kept(guest, "baseline", "measure", BASE)
    kept(guest, "baseline", "again", (200, 220, 240, 20_000))
    assert [step.changed for step in sum_up(guest).steps] == [None, None]


def test_guesses_are_counted_as_they_came_out(guest: FakeWorkshop) -> None:
    walk = guest.walk("baseline")
    task = walk.chapter.prediction
    assert task is not None
    assert task.kind == "mark"
    walk.guess.predict(Guess(value_ns=1_000))
    kept(guest, "baseline", "measure", [1_000] * 2_000)
    summary = sum_up(guest)
    assert summary.near == (walk.chapter.title,)
    assert f"Right: 1 ({walk.chapter.title})" in words.guesses(summary)
    assert summary.far == ()
    assert summary.unjudged == 2
    walk.restart()
    walk.guess.predict(Guess(value_ns=1_000_000))
    kept(guest, "baseline", "measure", [1_000] * 2_000)
    assert sum_up(guest).far == (walk.chapter.title,)
    assert "Wrong: 1 (Why so slow?)" in words.guesses(sum_up(guest))


def test_a_host_that_cannot_be_read_is_said_and_the_rest_stands(
    guest: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(self: FakeWorkshop) -> Findings:
        raise HostError("no CPU is shown", "look at /sys")

    kept(guest, "baseline", "measure", BASE)
    monkeypatch.setattr(FakeWorkshop, "findings", refuses)
    summary = sum_up(guest)
    assert len(summary.steps) == 1
    assert "no CPU is shown" in summary.unread
    assert "host could not be read:" in words.open_checks(summary)[0]
    assert ": no CPU is shown" in words.open_checks(summary)[0]


def test_it_is_offered_when_all_is_done_that_can_be_done_here(guest: FakeWorkshop) -> None:
    assert not all_done_here(guest.path())
    assert not all_done_here(())
    done(guest, "baseline", "migration")
    assert not all_done_here(guest.path())
    done(guest, "pinning")
    assert all_done_here(guest.path())
    assert words.open_chapters(sum_up(guest)) == ["All 3 chapters are done."]


def test_chapters_that_were_begun_say_where_they_stand(guest: FakeWorkshop) -> None:
    done(guest, "baseline")
    guest.walk("pinning").go("predict")
    assert words.open_chapters(sum_up(guest)) == ["Pinning: at predict", "Not begun: Who moves my threads?"]


def test_a_recorded_host_has_nothing_set_and_is_never_done(host_tree: Callable[[str], Path]) -> None:
    workshop = open_workshop(host_tree("guest"))
    summary = sum_up(workshop)
    assert summary.recorded
    assert summary.standing == ()
    assert "recorded host" in words.applied_lines(summary)[0]
    assert summary.open_here == ()
    assert len(summary.open_elsewhere) == 3
    assert not all_done_here(workshop.path())


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100])
def test_plain_lines_fit_and_say_everything(guest: FakeWorkshop, width: int) -> None:
    kept(guest, "baseline", "measure", BASE, label="\x1b[31mred")
    kept(guest, "migration", "again", (200, 220, 240, 9_000))
    kept(guest, "pinning", "again", (10, 20, 30, 400))
    done(guest, "baseline")
    summary = sum_up(guest)
    lines = summary_lines(summary, width)
    assert max(map(len, lines)) <= width
    assert "\x1b" not in "".join(lines)
    text = " ".join(" ".join(lines).split())
    for said in (
        "APPLIED ON THIS HOST NOW • Applied now: 2 settings, 3 writes. • thp=never • ksm",
        "CHAPTERS: 1 OF 3 DONE",
        "Single runs are described",
    ):
        assert said in text
    if width >= 60:
        assert "÷ row 2" in text
        for title in ("1 Why so slow?", "2 Who moves my", "3 Pinning"):
            assert title in text
        for finding in summary.improvable:
            assert f"• {finding.check.id}" in text


def steps_alike(flags: Sequence[bool], made: Bought) -> list[Bought]:
    return [dataclasses.replace(made, unlike=() if alike else ("workload",)) for alike in flags]


@given(flags=st.lists(st.booleans(), min_size=0, max_size=30), under=st.integers(0, 40))
def test_at_most_six_comparable_curves_are_drawn_in_order(flags: list[bool], under: int) -> None:
    run, _ = madeup.make_run()
    nothing: Any = None
    made = Bought("c", "C", nothing, run, (), (), (), (), ())
    shown = words.comparable_curves(steps_alike(flags, made), under)
    alike = [n for n, flag in enumerate(flags) if flag]
    assert list(shown) == sorted(set(shown))
    assert set(shown) <= set(alike)
    assert len(shown) == min(len(alike), words.MOST_DRAWN)
    if alike:
        assert (shown[0], shown[-1]) == (alike[0], alike[-1])
    assert (under in shown) == (under in alike) or under not in alike


@given(st.floats(min_value=1e-6, max_value=1e6))
def test_ratios_are_figures_without_a_verdict(ratio: float) -> None:
    said = ratio_text(ratio)
    if said.startswith("1/"):
        assert 1 / float(said[2:].replace(",", "")) == pytest.approx(ratio, rel=0.06)
    else:
        assert float(said.rstrip("×").replace(",", "")) == pytest.approx(ratio, rel=0.06)


def test_words_of_a_stack() -> None:
    stack = ({"id": "governor", "value": ""}, {"id": "boost", "value": "off"})
    assert list(words_of(stack)) == ["governor", "boost=off"]
    assert ratio_text(None) == "–"
    assert ratio_text(0.0) == "0"


def test_no_word_of_the_summary_judges(guest: FakeWorkshop) -> None:
    kept(guest, "baseline", "measure", BASE)
    kept(guest, "pinning", "again", (10, 20, 30, 400))
    summary: CourseSummary = dataclasses.replace(sum_up(guest), improvable=())
    text = " ".join(summary_lines(summary, 100)).lower().replace("what could still be better", "")
    text = text.replace("no check of this host could be better", "")
    # The axis of the chart names the share of faster messages.
    text = text.replace("faster 0%", "")
    for verdict in ("better", "worse", "improve", "faster", "slower", "thanks to", "because"):
        assert verdict not in text
