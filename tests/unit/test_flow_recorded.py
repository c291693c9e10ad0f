"""A rehearsal with recorded runs: figures, counts and causes, which are called recorded wherever they are shown."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.files import Problems
from jitter_workshop.course.loader import builtin_course, load_course
from jitter_workshop.errors import UsageError
from jitter_workshop.flow.chapters.chapter_host import _begun_with
from jitter_workshop.flow.chapters.commands import HandCommands
from jitter_workshop.flow.chapters.guess import BY_EMULATED, BY_RECORDED
from jitter_workshop.flow.chapters.recorded import (
    FILE,
    RecordedChapter,
    read_recorded,
    recorded_chapter,
    runs_without_chapter,
)
from jitter_workshop.flow.chapters.suspects import judge_diagnosis
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.host_ops.recordings import recorded_host
from jitter_workshop.flow.measuring.unchanged import UNCHANGED
from jitter_workshop.flow.reporting.anonymizer import is_private
from jitter_workshop.flow.reporting.build import build_report
from jitter_workshop.flow.reporting.subject import subject_of
from jitter_workshop.model.change import Change
from jitter_workshop.model.session import Guess
from jitter_workshop.model.text import cleaned_sentence
from jitter_workshop.paths import assets
from jitter_workshop.presenter.course import chapter as chapter_view
from jitter_workshop.presenter.course import diagnosis as words
from jitter_workshop.presenter.runs import effect, effect_table, one_run, verdict
from jitter_workshop.presenter.runs.result_table import CAN_END
from jitter_workshop.presenter.text.lines import Lines
from jitter_workshop.report.cause_words import ANOTHER_TASK
from jitter_workshop.report.diagnosis_words import acts_on
from jitter_workshop.report.markdown import markdown_text
from jitter_workshop.stats.effect import count_effects
from jitter_workshop.stats.figures import KnownRun, figure_with_id
from tests.bench.course_runs import without_names
from tests.fakes import FakeWorkshop, open_workshop
from tests.talking import talk

ENTRY: dict[str, Any] = {
    "source": "measured on 2026-01-01: a desk machine",
    "runs": {
        "measure": {
            "label": "before",
            "workload": "spin",
            "applied": [{"id": "thp", "value": "never"}],
            "count": 500,
            "min": 1,
            "mean": 2.5,
            "max": 900,
            "p50": 2,
            "p99.9999": 700,
            "noise": "disk",
            "duration_s": 5.0,
            "counts": {"preempted": 1.5, "work:vmstat_update": 0.0},
            "seen": {
                "causes": [{"kind": "task", "name": "kswapd0", "count": 2, "total_ns": 30, "own_load": False}],
                "stalls": 3,
                "stalled_ns": 40,
                "unknown_ns": 5,
                "others": 0,
            },
        }
    },
}
FIRST = ENTRY["runs"]["measure"]
EMULATED = {
    "source": "measured on 2026-01-01: an emulator",
    "emulated": True,
    "runs": {
        "measure": {
            **{key: FIRST[key] for key in ("label", "workload", "applied", "count")},
            "counts": {"preempted": 1.5},
            "seen": {"causes": [{"kind": "tick", "name": "", "count": 2, "own_load": False}], "others": 0},
        }
    },
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture
def workshop() -> Iterator[FakeWorkshop]:
    opened = open_workshop(recorded_host("lab-stock").root, course=builtin_course())
    yield opened
    opened.close()


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to each part of a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(path for key, part in inside for path in paths(part, (*here, key)))]


def plain(lines: Any) -> str:
    return "\n".join(line.plain for line in lines)


# -- the file ----------------------------------------------------------------------------------------------------------


@given(path=st.sampled_from([*paths(ENTRY), *(("emulated", *path) for path in paths(EMULATED))]), value=JSON)
def test_any_part_of_the_file_may_be_anything(path: tuple[Any, ...], value: Any) -> None:
    """A file that comes from anyone is read or refused, and what was read can be shown."""
    emulated = bool(path) and path[0] == "emulated"
    document = {"unit": "ns", "chapters": {"c": deepcopy(EMULATED if emulated else ENTRY)}}
    path = path[1:] if emulated else path
    part: Any = document["chapters"]
    for key in ("c", *path)[:-1]:
        part = part[key]
    part[("c", *path)[-1]] = value
    problems = Problems()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / FILE).write_text(json.dumps(document))
        found = read_recorded(Path(folder), problems)
    assert bool(found) != bool(problems.found)
    for entry in found.values():
        seen = entry.known("measure")
        assert seen is not None
        told = plain(one_run.result_of_one_run(seen, 80))
        assert told.startswith("recorded: ") or emulated or "p99.9999" in path
        assert not (emulated and told), "without a chapter's figure nothing of an emulated run is told"
        assert entry.runs["measure"].seen is None or words.diagnosis_page(entry.runs["measure"].seen, 0, None, 80)


def test_no_name_of_anybodys_task_is_among_the_assets() -> None:
    kept = read_recorded(assets(), Problems())
    runs = [run for entry in kept.values() for run in entry.runs.values()]
    tasks = [one for run in runs if run.seen is not None for one in run.seen.suspects if one.kind == "task"]
    named = {one.name for one in tasks if not one.own_load and not one.name.startswith("kworker/")}
    assert {name for name in named if is_private(name)} == {ANOTHER_TASK}


def test_tasks_of_others_become_one_when_runs_are_recorded() -> None:
    def cause(name: str, count: int, own: bool = False, kind: str = "task") -> dict[str, Any]:
        return {"kind": kind, "name": name, "count": count, "total_ns": 10 * count, "own_load": own}

    kept = [cause("kworker/1", 3), cause("unbound", 7, own=True), cause("vi", 2, kind="softirq")]
    merged = without_names([cause("vi", 4), *kept, cause("gcc", 5)], stalls=8)
    assert merged == [*kept, {**cause(ANOTHER_TASK, 8), "total_ns": 90}]
    assert without_names(kept, stalls=8) == kept


# -- figures -----------------------------------------------------------------------------------------------------------


def of_recorded(walk: ChapterWalk, width: int) -> Lines:
    """Return the result of a chapter's two recorded runs."""
    both = walk.runs.before_and_after()
    judged = walk.comparison.of_recordings()
    return effect.result_of_two_runs(judged, both, width).lines if both and judged is not None else []


def test_a_recorded_run_has_the_recorded_figures_and_no_other(workshop: FakeWorkshop) -> None:
    walk = workshop.walk("isolation")
    both = walk.runs.before_and_after()
    assert both is not None
    assert [len(seen.recorded or ()) > 10 for seen in both] == [True, True]
    assert walk.chapter.shows is not None
    counts = count_effects(*both, walk.chapter.shows)
    assert counts[0].name == "the thread preempted"
    assert walk.comparison.of_recordings().found.shown == counts[0]
    assert "faults" in (both[0].recorded or {})
    assert "intended-99" not in (both[0].recorded or {})
    result = plain(of_recorded(walk, 80))
    assert result.startswith("recorded: Looks better: 16× fewer stalls of 100 µs and more.")
    assert "the thread preempted 73.4/s 3.7/s" in " ".join(result.split())
    assert f"{CAN_END} 81.5 ms/s <" in " ".join(result.split()), "it lists only the largest causes"
    assert "RECORDED COUNTS" in plain(effect_table.two_run_table(counts, 80, one_run.origin_of(both[0])))


def test_question_plan_and_comparison_follow_the_settings_of_the_first_recorded_run(workshop: FakeWorkshop) -> None:
    walk = workshop.walk("governor")
    first = "The first recorded run was made with governor = powersave."
    task = walk.chapter.prediction
    assert task is not None
    assert chapter_view.decided_on_recording(task, True, walk.host.recorded).endswith(f"decide this. {first}")
    begun = walk.host.plan()
    assert begun.changes
    assert {one.before for one in begun.changes} == {"powersave"}
    assert f"{first} The plan begins with the values of that run" in begun.text
    assert [(one.before, one.after) for one in walk.host.compared()] == [("powersave", "performance")]
    other = workshop.walk("idle-states")
    assert other.host.recorded is not None
    assert other.host.recorded.first_told() == ""


def test_a_value_of_the_first_run_that_the_chapter_does_not_set_is_a_finding_and_is_not_told(tmp_path: Path) -> None:
    kept = {**deepcopy(ENTRY), "first": {"governor": "powersave", "thp": "never"}}
    kept["runs"]["measure"] |= {"applied": [], "noise": None}
    (tmp_path / FILE).write_text(json.dumps({"unit": "ns", "chapters": {"governor": kept}}))
    (chapter,) = (one for one in load_course(builtin_course()).chapters if one.id == "governor")
    found = runs_without_chapter({"governor": chapter}, read_recorded(tmp_path, Problems()))
    assert [why for _, why in found] == ["'governor': \"first\" has thp, which the chapter does not set"]
    shown = recorded_chapter(chapter, str(tmp_path))
    assert shown is not None
    assert shown.first == {"governor": "powersave"}


def test_writes_whose_settings_differ_now_do_not_begin_with_one_value() -> None:
    rows = (
        *(Change(n, "governor", f"/{n}", "schedutil", "performance", "runtime", "low", "") for n in (1, 2)),
        *(Change(n, "irq-affinity", f"/{n}", str(n), "0", "runtime", "low", "") for n in (3, 4)),
    )
    begun = _begun_with({"governor": "powersave", "irq-affinity": "0-3"}, rows)
    assert [one.before for one in begun] == ["powersave", "powersave", "3", "4"]


def test_runs_that_were_made_alike_differ_without_a_change_on_a_recording_too(workshop: FakeWorkshop) -> None:
    assert workshop.walk("baseline").runs.repeats
    assert plain(of_recorded(workshop.walk("baseline"), 80)).startswith(f"recorded: {UNCHANGED}")
    assert not workshop.walk("migration").runs.repeats  # its second run is made beside a load
    assert of_recorded(workshop.walk("hunt"), 80) == []


def test_the_figure_of_the_guess_comes_first_where_a_chapter_names_no_other(workshop: FakeWorkshop) -> None:
    """The lesson on heat says that the frequency is read first, so the table of a rehearsal begins with it."""
    walk = workshop.walk("temperature")
    both = walk.runs.before_and_after()
    assert both is not None
    counts = count_effects(*both, walk.runs.shows, walk.runs.guessed_figures)
    assert [one.name for one in counts[:2]] == ["fastest block ÷ slowest block", "frequency of the hot CPU"]
    causes = walk.comparison.of_recordings().found.causes
    told = plain(effect_table.two_run_table(counts, 80, one_run.origin_of(both[0]), "alike", causes))
    assert told.index("fastest block") < told.index("TIME BY CAUSE, PER SECOND") < told.index("COUNTS, PER SECOND")
    assert told.startswith("RECORDED THE CHAPTER'S FIGURES")
    assert workshop.walk("isolation").runs.guessed_figures == ()
    assert workshop.walk("ack-intervals").runs.guessed_figures == ()


@pytest.mark.parametrize("ident", ["pinning", "isolation", "governor"])
def test_explain_on_a_recording_begins_with_the_conclusion_as_on_the_host(workshop: FakeWorkshop, ident: str) -> None:
    walk = workshop.walk(ident)
    page = plain(chapter_view.explain_page(walk, HandCommands(walk).listed(), walk.chapter.learnt, 80))
    assert page.startswith("WHAT YOU LEARNT")
    assert page.count("WHAT YOU LEARNT") == 1
    assert "THE SAME BY HAND" in page


def test_a_choice_by_figures_is_judged_by_the_recorded_ones_once_they_were_seen(workshop: FakeWorkshop) -> None:
    walk = workshop.walk("isolation")
    assert walk.guess.decided_by_recording
    walk.guess.predict(Guess(choice="most"))
    assert walk.guess.outcome() is None  # the learner has not seen them yet
    walk.go("again")
    outcome = walk.guess.outcome()
    assert outcome is not None
    assert outcome.near is True
    assert outcome.text.endswith(BY_RECORDED)
    with pytest.raises(UsageError):
        walk.guess.predict(Guess(choice="same"))


def test_a_choice_stays_open_where_its_figure_was_not_recorded(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = RecordedChapter.known

    def lacking(entry: RecordedChapter, slot: str) -> KnownRun | None:
        found = known(entry, slot)
        if found is None or found.recorded is None:
            return found
        return replace(found, recorded={n: v for n, v in found.recorded.items() if n != "core-hz-spread"})

    assert workshop.walk("temperature").guess.decided_by_recording
    monkeypatch.setattr(RecordedChapter, "known", lacking)
    walk = workshop.walk("temperature")
    assert walk.runs.known("measure") is not None
    assert not walk.guess.decided_by_recording
    walk.guess.predict(Guess(choice="steady"))
    walk.go("measure")
    assert walk.guess.outcome() is None


# -- an emulated machine -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ident", ["governor", "interrupts", "idle-states", "tick"])
def test_the_counts_of_an_emulated_machine_are_called_so_wherever_they_are_shown(
    workshop: FakeWorkshop, ident: str
) -> None:
    walk = workshop.walk(ident)
    both, shows = walk.runs.before_and_after(), walk.chapter.shows
    assert both is not None
    assert shows is not None
    for step, seen in zip(("measure", "again"), both, strict=True):
        told = plain(one_run.result_of_one_run(seen, 100, shows))
        assert told.startswith(f"recorded, emulated: {figure_with_id(shows.figure).title}: ")
        assert "QEMU" in walk.runs.counted_elsewhere(step)  # type: ignore[arg-type]
    told = plain(of_recorded(walk, 100))
    assert told.startswith("recorded, emulated: ")
    assert f", {verdict.AS_EXPECTED}.\n" in told, "it has no times, so no cause is known"
    assert "change in latency" not in told, "its times mean nothing"
    found = count_effects(*both, shows)
    told = [line.plain for line in effect_table.two_run_table(found, 100, one_run.origin_of(both[0]))]
    heads = [line for line in told if "COUNTS, PER SECOND" in line or "THE CHAPTER'S FIGURE" in line]
    assert heads
    assert all(head.startswith("RECORDED, EMULATED ") for head in heads)
    assert walk.runs.counted_elsewhere("look") == ""
    assert workshop.walk("isolation").runs.counted_elsewhere("compare") == ""


@pytest.mark.parametrize("chapter", read_recorded(assets(), Problems()))
def test_the_guess_of_every_recorded_chapter_is_judged_in_a_rehearsal(workshop: FakeWorkshop, chapter: str) -> None:
    walk = workshop.walk(chapter)
    task = walk.chapter.prediction
    assert task is not None
    assert task.slot is not None
    assert walk.guess.decided_by_recording, "the recorded runs have what decides the guess"
    walk.guess.predict(Guess(value_ns=10_000) if task.kind == "mark" else Guess(choice=task.answers[0].id))
    walk.go(task.slot)
    outcome = walk.guess.outcome()
    assert outcome is not None
    assert outcome.near is not None, outcome.text


def test_a_guess_is_judged_by_the_counts_of_an_emulated_machine(workshop: FakeWorkshop) -> None:
    walk = workshop.walk("tick")
    walk.guess.predict(Guess(choice="stopped"))
    walk.go("again")
    outcome = walk.guess.outcome()
    assert outcome is not None
    assert outcome.near is True
    assert outcome.text.endswith(BY_EMULATED)


def test_the_most_frequent_cause_is_asked_without_its_number_and_told_with_it(workshop: FakeWorkshop) -> None:
    walk = workshop.walk("tick")
    walk.go("diagnose")
    assert walk.diagnosis.asks
    seen = walk.diagnosis.read()
    assert seen is not None
    assert "emulated machine, where times mean nothing" in words.diagnosis_question(seen)
    assert words.diagnosis_question(seen).endswith("came most often?")
    most = max(seen.suspects, key=lambda one: one.count or 0)
    number = f"{most.count:,}"
    before = plain(words.diagnosis_page(seen, 0, None, 100))
    assert number not in before
    assert "times" not in plain(words.suspect_lines(seen, 0, None, 100))
    assert words.seen_often(seen, most) == ""
    found = walk.diagnosis.answer(most.id)
    assert found.right is True
    after = plain(words.diagnosis_page(seen, -1, found, 100))
    assert number in after
    assert " ns" not in after
    assert "in all" not in after
    said = words.judged_diagnosis(found, seen, walk.chapter, workshop.course)
    assert said.startswith(f"✓ Right. {cleaned_sentence(most.label)[:-1]} came most often. The machine was emulated")
    assert said.endswith(words.NOT_HERE)


def test_a_skipped_question_about_an_emulated_run_asks_for_no_time_in_the_report(workshop: FakeWorkshop) -> None:
    walk = workshop.walk("tick")
    walk.go("diagnose")
    walk.diagnosis.read()
    walk.go("again")
    document = build_report(subject_of(workshop))
    told = next(one for one in document.chapters if one.id == "tick")
    assert (told.skipped, told.emulated) == (True, True)
    for emulated, asked in ((True, "Which cause came most often"), (False, "Who took most of the time")):
        changed = tuple(replace(one, emulated=emulated) for one in document.chapters)
        assert asked in markdown_text(replace(document, chapters=changed), {})


def test_a_cause_that_came_less_often_is_not_it(workshop: FakeWorkshop) -> None:
    walk = workshop.walk("tick")
    walk.go("diagnose")
    seen = walk.diagnosis.read()
    assert seen is not None
    least = min(seen.suspects, key=lambda one: one.count or 0)
    found = walk.diagnosis.answer(least.id)
    assert found.right is False
    assert f"; {least.label} came less often." in words.judged_diagnosis(found, seen, walk.chapter, workshop.course)
    text = markdown_text(build_report(subject_of(workshop)), {})
    for told in ("The recorded counters", "came most often", "Which cause came most often", "QEMU"):
        assert told in text
    equal = replace(seen, suspects=tuple(replace(one, count=7) for one in seen.suspects))
    for one in equal.suspects:
        judged = judge_diagnosis(equal, one.id)
        assert judged is not None
        assert (judged.right, judged.most) == (True, one)


def test_line_by_line_an_emulated_machine_is_named_and_asked_about() -> None:
    opened = open_workshop(recorded_host("lab-stock").root, course=builtin_course())
    said = " ".join(talk(opened, "|||1|||||q", chapter="tick").split())
    for told in (
        "recorded, emulated: timer interrupts:",
        "That machine is emulated: times measured there mean nothing and are not shown.",
        "Which of them came most often?",
        "RECORDED, EMULATED COUNTS, PER SECOND",
        "there are no curves to compare",
    ):
        assert told in said
    assert "The course has no such run" not in said


# -- the diagnosis -----------------------------------------------------------------------------------------------------


def test_the_recorded_causes_are_asked_about_and_judge_the_answer(workshop: FakeWorkshop) -> None:
    walk = workshop.walk("isolation")
    walk.go("diagnose")
    assert walk.diagnosis.asks
    seen = walk.diagnosis.read()
    assert seen is not None
    assert seen.recorded.startswith("measured on")
    assert words.diagnosis_question(seen).startswith("Recorded, not measured here")
    named = seen.suspect("task:unbound")
    assert named is not None
    assert named.own_load
    found = walk.diagnosis.answer(named.id)
    assert found.right is True
    assert words.judged_diagnosis(found, seen, walk.chapter, workshop.course).endswith(words.NOT_HERE)
    assert walk.diagnosis.known() == (walk.progress.diagnosis, seen, found)
    assert not walk.diagnosis.asks
    assert not workshop.context.runs.every()


def test_a_report_of_a_rehearsal_calls_the_evidence_recorded(workshop: FakeWorkshop) -> None:
    walk = workshop.walk("isolation")
    walk.guess.predict(Guess(choice="most"))
    walk.go("diagnose")
    walk.diagnosis.answer("task:unbound")
    walk.go("compare")
    document = build_report(subject_of(workshop))
    (chapter,) = document.chapters
    assert chapter.diagnosis is not None
    assert chapter.diagnosis.recorded.startswith("measured on")
    text = markdown_text(document, {})
    for told in ("The recorded trace", "The first run was not made here", "Recorded"):
        assert told in text
    assert "**Measured**" not in text


def test_a_report_has_the_question_of_the_causes_that_the_change_ends(workshop: FakeWorkshop) -> None:
    walk = workshop.walk("workqueues")
    walk.go("diagnose")
    assert walk.diagnosis.read() is not None
    walk.go("apply")
    asked = "Which causes of the stalls can the chapter's change end?"
    assert asked in markdown_text(build_report(subject_of(workshop)), {})
    found = walk.diagnosis.answer("workqueue:flush_to_ldisc")
    assert found.right is True
    document = build_report(subject_of(workshop))
    told = next(one.diagnosis for one in document.chapters if one.id == "workqueues")
    assert told is not None
    assert (told.asks, told.right) == ("ends", True)
    assert 0 < told.ended_ns < told.stalled_ns
    text = markdown_text(document, {}).replace("\\", "")
    assert asked in text
    assert f"{acts_on('', True)} This change can end 27 ms of the 569 ms of stalls." in text


def test_a_run_of_ones_own_is_asked_about_anew_after_a_recorded_one(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = workshop.walk("isolation")
    walk.go("diagnose")
    walk.diagnosis.answer("task:unbound")
    monkeypatch.setattr(type(walk.host), "rehearsed", property(lambda _: False))
    assert walk.diagnosis.answered() is None
    assert not walk.diagnosis.open


def test_line_by_line_the_recorded_runs_are_told_and_asked_about() -> None:
    opened = open_workshop(recorded_host("lab-stock").root, course=builtin_course())
    said = " ".join(talk(opened, "|4||3|||||q", chapter="isolation").split())
    result = "recorded: stalls of 100 µs and more: "
    for told in (result, "Recorded, not measured here:", words.NOT_HERE, "RECORDED COUNTS, PER SECOND"):
        assert told in said
