"""Test a chapter on an emulated machine: counts decide its result, its guess, its diagnosis and its trial."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.course.loader import builtin_course
from jitter_workshop.flow.chapters.trying import Trial, try_in
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.proving.chapter_proof import why_no_proof
from jitter_workshop.model.host import EMULATED, NO_VERDICT
from jitter_workshop.model.run import Run, SilentObserver, ThreadRecord
from jitter_workshop.model.session import Guess
from jitter_workshop.presenter.course.diagnosis import diagnosis_question
from jitter_workshop.presenter.runs import effect, large_figure
from jitter_workshop.presenter.text.lines import written
from tests import madeup
from tests.fakes import FakeWorkshop

COUNTED = """
[shows]
figure = "max"
at_least = 1.3

[shows.counted]
figure = "slept"
at_least = 3.0
rises = true
"""


@pytest.fixture
def workshop(tmp_path: Path) -> FakeWorkshop:
    """A workshop on an emulated machine. Its chapter on micro jitter shows a time and, in its place, a count."""
    course = shutil.copytree(builtin_course(), tmp_path / "course")
    lesson = course / "15-micro-jitter" / "lesson.toml"
    before, _, rest = lesson.read_text().partition("\n[shows]\n")
    lesson.write_text(f"{before}{COUNTED}\n[prediction]{rest.partition('[prediction]')[2]}")
    made = FakeWorkshop.open(course_dir=course)
    assert isinstance(made, FakeWorkshop)
    made.context.host = dataclasses.replace(made.context.host, emulated=True, accelerator="tcg", hypervisor="QEMU")
    return made


def a_run(number: int, name: str, slept: int = 0, moved: int = 0, **fields: Any) -> Run:
    """A run of one second on an emulated machine, with these counts of its main thread."""
    main, histogram = {"spin": ("sampler", "spin_gap"), "ring": ("accumulator", "accumulator_transit")}[name]
    ident = f"20260101-{number:06d}-aaaa"
    made = madeup.make_run([[100] * 90 + [200_000]], run_id=ident, name=histogram)[0]
    thread = ThreadRecord(main, {"1": 1}, voluntary_switches=slept, involuntary_switches=7, migrations=moved)
    fields = {"workload": name, "duration_s": 1.0, "threads": (thread,), "host": {"emulated": True}, **fields}
    return dataclasses.replace(made, **fields)


def both(workshop: FakeWorkshop, chapter: str, first: Run, second: Run) -> ChapterWalk:
    walk = workshop.walk(chapter)
    for slot, run in (("measure", first), ("again", second)):
        workshop.context.remember(run)
        walk.record(slot, run)  # type: ignore[arg-type]
    return walk


def test_the_result_is_the_counted_figure_and_the_guess_about_a_time_is_not_judged(workshop: FakeWorkshop) -> None:
    workshop.walk("micro-jitter").guess.predict(Guess(choice="fewer"))
    walk = both(workshop, "micro-jitter", a_run(1, "spin", slept=2), a_run(2, "spin", slept=800, sched="fifo:1"))
    assert walk.runs.emulated
    assert walk.runs.shows is not None
    assert walk.runs.shows.figure == "slept"
    pair = walk.runs.before_and_after()
    view = walk.comparison.view()
    assert pair is not None
    assert view is not None
    assert view.effects is not None
    assert view.effects.lead is None
    assert view.judgement is not None
    told = written(effect.result_of_two_runs(view.judgement, pair, 100).lines)
    assert "the thread gave its CPU up 2/s 800/s 400× more" in " ".join(told.split())
    assert told.startswith(f"{EMULATED}: ")
    assert "better" not in told
    assert large_figure.large_factor(view.judgement) == ("400×", "accent"), "neither better nor worse"
    assert large_figure.large_value(pair[0]) == ("", "")
    found = walk.guess.outcome()
    assert found is not None
    assert found.near is None
    assert found.text.startswith("Your guess is not judged: the answer depends on times")
    assert found.text.endswith("The thread gave its CPU up: 2 → 800 a second.")


def test_a_guess_about_counts_is_judged(workshop: FakeWorkshop) -> None:
    workshop.walk("pinning").guess.predict(Guess(choice="moves"))
    walk = both(workshop, "pinning", a_run(1, "ring", moved=90), a_run(2, "ring", moved=1))
    found = walk.guess.outcome()
    assert found is not None
    assert found.near is True
    assert "threads moved to another CPU: 90 → 1 a second" in found.text.lower().replace("cpu", "CPU")


def test_a_chapter_without_a_counted_figure_says_why(workshop: FakeWorkshop) -> None:
    walk = both(workshop, "caches", a_run(1, "spin", memory="far"), a_run(2, "spin", memory="near"))
    assert walk.runs.shows is None
    assert "an emulator has no caches" in walk.runs.unshown
    view = walk.comparison.view()
    assert view is not None
    assert walk.runs.unshown in view.headline
    pair = walk.runs.before_and_after()
    assert pair is not None
    assert view.effects is not None
    assert effect.result_of_two_runs(view.judgement, pair, 100).lines == []


def test_a_real_machine_keeps_the_chapters_own_figure(workshop: FakeWorkshop) -> None:
    workshop.context.host = dataclasses.replace(workshop.context.host, emulated=False)
    walk = workshop.walk("micro-jitter")
    assert walk.runs.shows == walk.chapter.shows
    assert walk.runs.unshown == ""
    assert workshop.walk("caches").runs.unshown == ""


def tried(workshop: FakeWorkshop, chapter: str, counts: list[tuple[int, int]], workload: str) -> Any:
    asked: list[MeasureRequest] = []

    def measure(request: MeasureRequest, *_: Any) -> Run:
        asked.append(request)
        slept, moved = counts[len(asked) - 1]
        return a_run(len(asked), workload, slept=slept, moved=moved, label=request.label)

    workshop.measure = measure  # type: ignore[method-assign]
    trial = Trial(lambda view: None, lambda *round_: None, SilentObserver(), lambda _: None)
    return try_in(workshop, chapter, len(counts) // 2 or 1, trial, CancelToken()), asked


@pytest.mark.parametrize(("second", "shown"), [(900, True), (6, False)])
def test_a_trial_judges_the_counted_figure(workshop: FakeWorkshop, second: int, shown: bool) -> None:
    found, asked = tried(workshop, "micro-jitter", [(4, 0), (second, 0)], "spin")
    assert (found.figure, found.rises, found.shown, len(asked)) == ("slept", True, shown, 2)
    assert (found.before, found.after) == (4, second)


def test_a_trial_without_a_counted_figure_measures_nothing(workshop: FakeWorkshop) -> None:
    found, asked = tried(workshop, "caches", [], "spin")
    assert (found.shown, found.rounds, asked) == (False, 0, [])
    assert "an emulator has no caches" in found.why


def test_a_diagnosis_asks_for_the_most_frequent_cause(workshop: FakeWorkshop) -> None:
    run = a_run(1, "spin", label="baseline")
    workshop.context.remember(run)
    walk = workshop.walk("baseline")
    walk.record("measure", run)
    seen = walk.diagnosis.read()
    assert seen is not None
    assert seen.emulated
    assert all(one.total_ns is None for one in seen.suspects)
    assert (seen.stalled_ns, seen.recorded) == (0, "")
    assert seen.quiet or diagnosis_question(seen).startswith("This machine is emulated")


def test_a_change_is_not_proven_here(workshop: FakeWorkshop) -> None:
    assert why_no_proof(workshop, workshop.walk("pinning")) == NO_VERDICT
