"""Curves that were not measured here say so, and where they come from."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.course.files import Problems
from jitter_workshop.course.loader import builtin_course, load_course
from jitter_workshop.flow.chapters.lessoncheck import check_course
from jitter_workshop.flow.chapters.newlesson import new_lesson
from jitter_workshop.flow.chapters.recorded import FILE, read_recorded, recorded_in, recorded_runs, runs_without_chapter
from jitter_workshop.flow.host_ops.recordings import recorded_host
from jitter_workshop.flow.host_ops.settings import NOTHING_WRITTEN
from jitter_workshop.flow.measuring.curves import ORIGIN, RECORDED, published_curves
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.run import HANDOFF
from jitter_workshop.paths import assets
from jitter_workshop.presenter.course.chapter import nothing_measured
from jitter_workshop.stats.figures import as_said, counts_alone, figure_with_id, shows_on
from tests.bench import course_runs
from tests.fakes import open_workshop
from tests.talking import talk

HUNTS = ("first-hunt", "second-hunt", "hunt")
"""The hunts: a recording, too, keeps the hidden noise a secret."""
EMULATED = ("governor", "interrupts", "idle-states", "tick")
"""Chapters whose levers the machine lacks that the runs are from: an emulated one has the counts."""
COURSE = load_course()
RECORDED_ONES = [c.id for c in COURSE.chapters if c.measurements and c.id not in HUNTS]
WITH_CURVES = [ident for ident in RECORDED_ONES if ident not in ("interrupts", "idle-states", "tick")]


SOURCE = "measured on 2026-01-01: a desk machine, 8 CPUs"
CAUSE: dict[str, Any] = {"kind": "task", "name": "kswapd0", "count": 10, "total_ns": 900, "own_load": False}
SEEN: dict[str, Any] = {"causes": [CAUSE], "stalls": 10, "stalled_ns": 1000, "unknown_ns": 0, "others": 0}


def chapter(ident: str) -> Chapter:
    found = COURSE.chapter(ident)
    assert found is not None
    return found


@pytest.fixture
def own(tmp_path: Path) -> tuple[Path, Chapter]:
    """A course of one's own whose chapter has the id of a built-in one and measures something else."""
    folder = tmp_path / "c2"
    new_lesson("memory", folder)
    return folder, load_course(folder).chapters[0]


def write(folder: Path, runs: dict[str, Any], ident: str = "memory", **besides: Any) -> None:
    """``recorded-runs.json`` of a course."""
    entry = {"source": SOURCE, **besides, "runs": runs}
    (folder / FILE).write_text(json.dumps({"unit": "ns", "chapters": {ident: entry}}))


def run_of(chapter: Chapter, slot: str, **changed: Any) -> dict[str, Any]:
    asked = chapter.measurement(slot)
    assert asked is not None
    return {
        "label": asked.label,
        "workload": asked.workload,
        "applied": [],
        "count": 500_000,
        "min": 30,
        "max": 90_000,
        "p50": 80,
        "p99.9": 9_000,
        **changed,
    }


@pytest.mark.parametrize("ident", WITH_CURVES)
def test_every_chapter_whose_times_mean_something_has_curves_to_rehearse_with(ident: str) -> None:
    curves, source = recorded_runs(chapter(ident))
    assert len(curves) == 2
    assert source.startswith(("measured on 20", "published in 2015"))
    assert "guest" in source or "laptop" in source
    assert [one.curve.role for one in curves] == ["before", "after"]
    for one in curves:
        assert one.run is None, "nothing recorded is a run of one's own"
        assert one.curve.origin.startswith((RECORDED, ORIGIN))
        assert one.curve.points
        # A legend says where a curve is from beside its label, and would have to shorten one that says it, too.
        assert RECORDED not in one.label


@pytest.mark.parametrize(("ident", "told"), [("migration", True), ("pinning", False), ("isolation", False)])
def test_recorded_runs_of_another_length_say_so(ident: str, told: bool) -> None:
    source = recorded_runs(chapter(ident))[1]
    assert source.endswith("; each run took 10 s, and this chapter measures 20 s") is told
    assert told or "each run took" not in source


def test_settings_chapters_were_measured_with_their_settings() -> None:
    problems = Problems()
    recorded = read_recorded(assets(), problems)
    assert problems.found == []
    assert recorded.keys() == set(RECORDED_ONES)
    assert runs_without_chapter({c.id: c for c in load_course().chapters}, recorded) == []
    for ident, entry in recorded.items():
        tunables = {word.partition("=")[0] for word in chapter(ident).tunables}
        assert entry.runs["measure"].applied == frozenset()
        assert bool(entry.runs["again"].applied) is bool(tunables), ident
        assert entry.runs["again"].applied <= tunables
    assert {ident for ident, entry in recorded.items() if entry.emulated} == set(EMULATED)


@pytest.mark.parametrize("ident", [c.id for c in COURSE.chapters if c.shows is not None])
def test_a_recorded_pair_moves_the_chapters_figure_as_far_as_its_lesson_says(ident: str) -> None:
    entry = read_recorded(assets(), Problems())[ident]
    shows, before, after = shows_on(chapter(ident).shows, entry.emulated), entry.known("measure"), entry.known("again")
    assert shows is not None
    assert before is not None
    assert after is not None, "no run after the change was recorded"
    factor, shown = as_said(shows, before, after)
    assert shown, f"{shows.figure} moved by {factor}, and not by {shows.at_least}: {entry.source}"


@pytest.mark.parametrize("ident", EMULATED)
def test_runs_of_an_emulated_machine_have_no_time(ident: str) -> None:
    entry = read_recorded(assets(), Problems())[ident]
    first, second = entry.known("measure"), entry.known("again")
    assert first is not None
    assert second is not None
    for seen in (first, second):
        assert seen.emulated
        assert seen.run.histograms == {}
        assert all(counts_alone(figure_with_id(name)) for name in seen.recorded or {})
    for run in entry.runs.values():
        assert run.values == {}
        assert run.seen is not None
        assert [one.total_ns for one in run.seen.suspects if one.total_ns is not None] == []


def test_a_chapter_without_a_second_run_says_so_where_that_would_stand(own: tuple[Path, Chapter]) -> None:
    folder, mine = own
    write(folder, {"measure": run_of(mine, "measure")})
    for step in ("again", "compare"):
        curves, source = recorded_in(step, mine, str(folder), "c2")  # type: ignore[arg-type]
        assert [c.label for c in curves] == [mine.measurements[0].label]
        assert source.endswith("; no run after the change was recorded")
    assert "no run" not in recorded_in("measure", mine, str(folder), "c2")[1]
    assert recorded_in("look", mine, str(folder), "c2") == ((), "")


def test_a_recording_for_the_course_leaves_out_a_run_without_its_change(
    host_tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop = open_workshop(host_tree("guest"), course=None)
    walk = workshop.walk("pinning")
    measured: list[str] = []

    class Nothing:
        applied, needs_reboot, text = 0, False, ""

    monkeypatch.setattr(workshop, "walk", lambda ident: walk)
    monkeypatch.setattr(walk, "chapter", dataclasses.replace(walk.chapter, changes="tunables", tunables=("thp",)))
    monkeypatch.setattr(type(walk.measuring), "measures", lambda self, step: True)
    monkeypatch.setattr(walk, "apply", Nothing)
    monkeypatch.setattr(walk, "restore", lambda: None)
    monkeypatch.setattr(course_runs, "measure", lambda workshop, walk, slot, emulated: measured.append(slot) or {})
    assert course_runs.chapter(workshop, "pinning") == {"measure": {}}
    assert measured == ["measure"]
    monkeypatch.setattr(Nothing, "applied", 2)
    assert course_runs.chapter(workshop, "pinning") == {"measure": {}, "again": {}}
    workshop.close()


def test_pages_without_writes_and_curves_say_so_and_give_the_commands_by_hand() -> None:
    workshop = open_workshop(recorded_host("lab-stock").root, course=builtin_course())
    walk = workshop.walk("tick")
    plan = walk.plan()
    assert plan.changes == ()
    assert plan.text.startswith(NOTHING_WRITTEN)
    assert "The plan has no writes, either: " in plan.text
    for word in ("nohz_full=2-3", "rcu_nocbs=2-3"):
        assert any(f"this machine to add '{word}'" in one for one in plan.left_out)
    none = "The course has no such run from another machine."
    hunt, tick = (" ".join(talk(workshop, f"{n}|q", chapter=ident).split()) for ident, n in (("hunt", 2), ("tick", 3)))
    assert none in hunt
    assert none not in tick
    measured = "".join(line.plain for line in nothing_measured((), 200))
    assert "no run of this chapter on another" in measured
    measured = "".join(line.plain for line in nothing_measured((), 200, counted=True))
    assert "only its counts are shown" in measured


def test_another_courses_chapter_of_the_same_id_has_none_of_the_built_in_runs(own: tuple[Path, Chapter]) -> None:
    folder, mine = own
    assert len(recorded_runs(chapter("memory"))[0]) == 2
    assert recorded_runs(mine, str(folder), "c2") == ((), "")
    # Nor where it measures something else under the built-in course's own id.
    assert recorded_runs(mine, str(folder), "jitter") == ((), "")


def test_a_course_brings_recorded_runs_of_its_own(own: tuple[Path, Chapter]) -> None:
    folder, mine = own
    write(folder, {slot: run_of(mine, slot, transit_from="ready") for slot in ("measure", "again")})
    curves, source = recorded_runs(mine, str(folder), "c2")
    assert source == SOURCE
    assert [(c.label, c.curve.origin, c.run) for c in curves] == [(m.label, RECORDED, None) for m in mine.measurements]
    assert check_course(folder).problems == ()
    write(folder, {"measure": run_of(mine, "measure")})
    ((older,), _) = recorded_runs(mine, str(folder), "c2")
    assert older.curve.origin == f"{RECORDED}, {HANDOFF}", "its transit began at the publication"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"workload": "spin"}, "not '{label}' of spin"),
        ({"label": "something else"}, "not 'something else' of ring"),
        ({"applied": [{"id": "thp", "value": "never"}]}, "was made with thp applied"),
        ({"count": 0}, "count must be a whole number"),
        ({"count": True}, "count must be a whole number"),
        ({"p50": -1}, "p50 must be a time in ns"),
        ({"p50": 10_000}, "the percentiles must rise or"),
        ({"p50": None}, '"min", "p50" and "max" are needed'),
        ({"max": 1e99}, "max must be a time in ns"),
        ({"label": "a\x1b[2Jb"}, "label must be printable text"),
        ({"p42": 80}, "unknown key 'p42'"),
        ({"applied": ["thp"]}, '"applied" must be a list'),
        ({"noise": "disk"}, "must have the noise unbound, not disk"),
        ({"noise": "thunder"}, "unknown noise"),
        ({"transit_from": "here"}, 'unknown "transit_from"'),
        ({"noise": ["disk"]}, "unknown noise"),
        ({"duration_s": -1}, '"duration_s" must be a number'),
        ({"duration_s": 1e9}, '"duration_s" must be a number'),
        ({"counts": []}, '"counts" must be an object'),
        ({"counts": {"preemted": 1}}, "has the unknown figure 'preemted'"),
        ({"counts": {"preempted": -1}}, "preempted must be a number"),
        ({"counts": {"preempted": True}}, "preempted must be a number"),
        ({"seen": None}, "must have exactly causes, others, stalled_ns"),
        ({"seen": {**SEEN, "more": 1}}, "must have exactly causes, others, stalled_ns"),
        ({"seen": {**SEEN, "others": -1}}, "others must be a whole number"),
        ({"seen": {**SEEN, "causes": [CAUSE] * 10}}, "at most 9 causes"),
        ({"seen": {**SEEN, "causes": [CAUSE] * 2}}, "a cause twice"),
        ({"seen": {**SEEN, "causes": [{**CAUSE, "kind": "weather"}]}}, "unknown kind"),
        ({"seen": {**SEEN, "causes": [{**CAUSE, "kind": ["task"]}]}}, "unknown kind"),
        ({"seen": {**SEEN, "causes": [{**CAUSE, "name": "a\x1b[2J"}]}}, '"name" must be printable'),
        ({"seen": {**SEEN, "causes": [{**CAUSE, "kind": "irq", "own_load": True}]}}, "can be true only for a task"),
        ({"seen": {**SEEN, "causes": [{**CAUSE, "count": 11}]}}, "in more stalls than there were"),
        ({"seen": {**SEEN, "causes": [{**CAUSE, "total_ns": 1001}]}}, "took more time than all stalls"),
        ({"seen": {**SEEN, "causes": [{**CAUSE, "pid": 1}]}}, "a cause must have exactly count"),
    ],
)
def test_recorded_runs_that_are_none_of_the_chapters_are_mistakes_and_not_shown(
    own: tuple[Path, Chapter], changed: dict[str, Any], said: str
) -> None:
    folder, mine = own
    write(folder, {"measure": run_of(mine, "measure", **changed), "again": run_of(mine, "again")})
    (problem,) = check_course(folder).problems
    assert problem.file == FILE
    assert said.format(label=mine.measurements[0].label) in problem.message
    assert recorded_runs(mine, str(folder), "c2") == ((), "")


COUNTED: dict[str, Any] = {"min": None, "max": None, "p50": None, "p99.9": None, "counts": {"ticks": 3.0}}
TICKS: dict[str, Any] = {"kind": "tick", "name": "", "count": 3, "own_load": False}


def counted_run(mine: Chapter, slot: str, **changed: Any) -> dict[str, Any]:
    """A run of an emulated machine; a key with None is left out."""
    return {key: value for key, value in run_of(mine, slot, **{**COUNTED, **changed}).items() if value is not None}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"max": 90_000}, "runs of an emulated machine must not have times: max"),
        ({"transit_from": "ready"}, "runs of an emulated machine must not have times: transit_from"),
        (
            {"counts": {"ticks": 3.0, "interference": 5}},
            "runs of an emulated machine must not have times: interference",
        ),
        ({"counts": {"stalls-1ms": 1.0}}, "runs of an emulated machine must not have times: stalls-1ms"),
        ({"counts": {"core-hz": 1e9}}, "runs of an emulated machine must not have times: core-hz"),
        ({"counts": {}}, '"counts" is missing or empty'),
        ({"seen": SEEN}, "must have exactly causes, others"),
        (
            {"seen": {"causes": [{**TICKS, "total_ns": 1}], "others": 0}},
            "a cause must have exactly count, kind, name, own_load",
        ),
        ({"seen": {"causes": [{**TICKS, "kind": "steal"}], "others": 0}}, "unknown kind"),
        ({"seen": {"causes": [{**TICKS, "count": 0}], "others": 0}}, "count must be a whole number of at least 1"),
        ({"seen": {"causes": [{**TICKS, "own_load": True}], "others": 0}}, "can be true only for a task"),
    ],
)
def test_an_emulated_machine_has_counts_and_no_times(
    own: tuple[Path, Chapter], changed: dict[str, Any], said: str
) -> None:
    folder, mine = own
    seen = {"causes": [TICKS, {**TICKS, "kind": "tasks", "own_load": True}], "others": 1}
    write(folder, {"measure": counted_run(mine, "measure", seen=seen)}, emulated=True)
    assert check_course(folder).problems == ()
    assert recorded_runs(mine, str(folder), "c2") == ((), ""), "it has no curve"
    write(folder, {"measure": counted_run(mine, "measure", **changed)}, emulated=True)
    (problem,) = check_course(folder).problems
    assert said in problem.message
    # Said of a real machine, the same run lacks its times.
    write(folder, {"measure": counted_run(mine, "measure")}, emulated=False)
    assert '"min", "p50" and "max" are needed' in check_course(folder).problems[0].message
    write(folder, {"measure": counted_run(mine, "measure")}, emulated="yes")
    assert '"emulated" must be true or false' in check_course(folder).problems[0].message


def test_recorded_runs_of_no_chapter_are_a_mistake(own: tuple[Path, Chapter]) -> None:
    folder, mine = own
    write(folder, {"measure": run_of(mine, "measure")}, "memmory")
    (problem,) = check_course(folder).problems
    assert "there is no chapter 'memmory'" in problem.message


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "[" * 50_000, '{"unit": "s", "chapters": {}}', '{"unit": "ns", "chapters": {"a": NaN}}']
)
def test_a_file_of_recorded_runs_that_is_none_is_a_mistake_and_stops_nothing(
    own: tuple[Path, Chapter], text: str
) -> None:
    folder, mine = own
    (folder / FILE).write_text(text)
    assert recorded_runs(mine, str(folder), "c2") == ((), "")
    assert [p.file for p in check_course(folder).problems] == [FILE]


def test_an_unknown_chapter_has_none() -> None:
    assert recorded_runs(dataclasses.replace(chapter("memory"), id="nothing-of-the-kind")) == ((), "")
    assert len(published_curves()) == 3
