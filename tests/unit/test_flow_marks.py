"""Test a chapter's marks: they depend on the state in which a run was measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.course.checks import NOT_SET, chapter_marks, without_change
from jitter_workshop.course.loader import load_course
from jitter_workshop.errors import UsageError
from jitter_workshop.flow.chapters import session_context as desks
from jitter_workshop.flow.chapters.chapter_host import ChapterHost
from jitter_workshop.flow.chapters.guess import WITHOUT_CHANGE
from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.flow.measuring.comparing import other_changed_settings, relation, same_state, strayed_settings
from jitter_workshop.flow.measuring.measure import changed_meanwhile
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.host import Topology
from jitter_workshop.model.run import UNSTEADY, Run, ThreadRecord
from jitter_workshop.model.session import Guess
from jitter_workshop.model.spec import Placement
from jitter_workshop.presenter.runs.run import run_result_lines
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.session.store import SessionStore
from jitter_workshop.tuning.journal import applied_tunables, encode_record
from tests.fakes import FakeWorkshop, walk_with

GOVERNOR = ({"id": "governor", "value": "performance"},)


def chapter(ident: str) -> Chapter:
    found = load_course().chapter(ident)
    assert found is not None
    return found


@pytest.fixture
def runs(make_run: Callable[..., tuple[Any, Any]]) -> dict[str, Run]:
    placed = Placement("auto", 0, 1, None, None, (0, 1), (), "")
    run = dataclasses.replace(make_run()[0], workload="spin", duty=10, placement=placed, complete=True)
    return {"measure": run, "again": run}


@pytest.mark.parametrize(
    ("applied", "settled", "earned"),
    [
        ((), {"governor": False}, False),
        (GOVERNOR, {"governor": False}, True),
        # The host has it without this tool, or somebody else set it: the run was made in the state that is meant.
        ((), {"governor": True}, True),
        ((), {}, False),
        ((), None, False),
    ],
)
def test_a_curve_counts_only_in_the_state_that_the_chapter_means(
    runs: dict[str, Run], applied: Any, settled: Any, earned: bool
) -> None:
    runs["again"] = dataclasses.replace(runs["again"], applied=applied)
    assert chapter_marks(chapter("governor"), runs, settled)["curve"] is earned
    assert chapter_marks(chapter("pinning"), runs)["curve"] in (True, False)


def test_a_run_that_began_without_the_settings_earns_no_curve_later(runs: dict[str, Run]) -> None:
    """The learner may apply the settings after this run, but the run stays one without them."""
    second = dataclasses.replace(runs["again"], label=f"set{NOT_SET}")
    assert chapter_marks(chapter("governor"), {**runs, "again": second}, {"governor": True})["curve"] is False
    assert without_change(chapter("governor"), second)
    assert not without_change(chapter("governor"), dataclasses.replace(second, applied=GOVERNOR))
    assert not without_change(chapter("governor"), runs["again"])
    assert not without_change(chapter("pinning"), second)


def chapters_that_set() -> list[Chapter]:
    return [one for one in load_course().chapters if one.changes == "tunables"]


@pytest.mark.parametrize("ident", [one.id for one in chapters_that_set()])
def test_a_guess_about_a_change_is_not_judged_without_the_change(
    ident: str, make_run: Callable[..., tuple[Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChapterHost, "rehearsed", False)
    workshop = FakeWorkshop.open(course_dir=Path(__file__).parents[2] / "lessons")
    try:
        walk = workshop.walk(ident)
        task, measured = walk.chapter.prediction, walk.chapter.measurement("again")
        assert task is not None
        assert task.slot == "again"
        assert measured is not None
        ids = [word.partition("=")[0] for word in walk.chapter.tunables]
        walk.guess.predict(Guess(choice=task.answers[0].id))
        for number, (slot, label, applied) in enumerate(
            (("measure", "before", ()), ("again", f"after{NOT_SET}", ()), ("again", "after", ({"id": ids[0]},)))
        ):
            made, blocks = make_run(run_id=f"20260101-{number:06d}-aaaa", label=label)
            made = dataclasses.replace(made, workload=measured.workload, applied=applied)
            workshop.context.handle.add_run(made, blocks)
            walk.record(slot, made)
            found = walk.guess.outcome()
            if number == 0:
                assert found is None
                continue
            assert found is not None
            assert (found.text == WITHOUT_CHANGE) is (number == 1)
            assert walk.hints_are_over is (number == 2)
            if number == 1:
                assert (found.near, found.explanation) == (None, "")
                assert not walk.guess.measured
                # This run does not show the answer, so the guess may still change.
                walk.guess.predict(Guess(choice=task.answers[-1].id))
                entry = next(one for one in workshop.path() if one.chapter_id == ident)
                assert (entry.guess, entry.curve) == (None, False)
    finally:
        workshop.close()


def test_a_skipped_change_leaves_its_step_open(
    make_run: Callable[..., tuple[Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChapterHost, "rehearsed", False)
    monkeypatch.setattr(ChapterHost, "applied", False)
    monkeypatch.setattr(ChapterHost, "state", "available")
    workshop = FakeWorkshop.open(course_dir=Path(__file__).parents[2] / "lessons")
    try:
        walk = workshop.walk("interrupts")

        def step() -> str:
            return next(one.state for one in walk.steps() if one.name == "apply")

        seen = ("look", "predict", "measure", "diagnose", "apply")
        workshop.context.save_progress("interrupts", dataclasses.replace(walk.progress, step="again", seen=seen))
        assert step() == "open"
        monkeypatch.setattr(ChapterHost, "applied", True)
        assert step() == "done"
        monkeypatch.setattr(ChapterHost, "applied", False)
        monkeypatch.setattr(ChapterHost, "state", "good")
        assert step() == "done", "nothing was left to change"
        monkeypatch.setattr(ChapterHost, "state", "available")
        for number, (label, applied, state) in enumerate(
            ((f"after{NOT_SET}", (), "open"), ("after", ({"id": walk.host.ids[0]},), "done"))
        ):
            made, blocks = make_run(run_id=f"20260101-{number:06d}-aaaa", label=label)
            made = dataclasses.replace(made, applied=applied)
            workshop.context.handle.add_run(made, blocks)
            walk.record("again", made)
            assert step() == state, "a change that was restored since was made in this run"
    finally:
        workshop.close()


def test_a_host_that_another_program_changed_is_not_the_same(runs: dict[str, Run]) -> None:
    first, second = runs["measure"], runs["again"]
    assert same_state(first, second)
    for fact, value in (("governors", ["performance"]), ("isolated", [1]), ("boot_id", "other"), ("kernel", "9.9")):
        assert not same_state(first, dataclasses.replace(second, host={**second.host, fact: value})), fact


def test_an_answer_that_no_run_decides_is_given_once() -> None:
    workshop = FakeWorkshop.open(course_dir=Path(__file__).parents[2] / "lessons")
    try:
        found = workshop.course.chapter("hypervisor")
        assert found is not None
        assert found.prediction is not None
        task = dataclasses.replace(found.prediction, slot=None, by=None)
        walk = walk_with(workshop.walk("hypervisor"), prediction=task)
        walk.guess.predict(Guess(choice=task.answers[0].id))
        assert walk.guess.outcome() is not None
        with pytest.raises(UsageError, match="this question is answered already"):
            walk.guess.predict(Guess(choice=task.answers[-1].id))
    finally:
        workshop.close()


def test_waking_a_thief_takes_the_marks_with_the_runs() -> None:
    workshop = FakeWorkshop.open()
    try:
        walk = workshop.walk("pinning")
        progress = dataclasses.replace(walk.progress, marks={"curve": True, "setting": True}, runs={"measure": "x"})
        workshop.context.save_progress("pinning", progress)
        walk.noise.switch()
        assert (walk.progress.runs, walk.progress.marks) == ({}, {})
    finally:
        workshop.close()


def test_applied_settings_of_a_session_are_not_forgotten_by_the_next_chapter(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions")
    with store.create("one", "host") as handle:
        root = HostRoot(tmp_path)
        context = SessionContext(handle, root, None, None)  # type: ignore[arg-type]  # only the session is looked at
        had = ({"id": "thp", "value": "madvise"}, {"id": "writeback", "value": ""})
        context.save(dataclasses.replace(context.session, stack=had))
        context.note_stack()
        assert context.session.stack == had
        context.note_stack(restored=["thp"])
        assert [one["id"] for one in context.session.stack] == ["writeback"]
        context.note_stack(restored=None)
        assert context.session.stack == ()


def test_a_rehearsal_does_not_become_the_session_in_use(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions")
    store.create("mine", "host").close()
    mine = store.current_id()
    store.open_or_create("recorded", "host", recorded=True).close()
    assert store.current_id() == mine
    empty = SessionStore(tmp_path / "empty")
    empty.open_or_create("recorded", "host", recorded=True).close()
    assert empty.current_id() is None


def test_a_change_that_waits_for_a_boot_is_not_in_effect(tmp_path: Path) -> None:
    boot = "11111111-2222-3333-4444-555555555555"
    header = {
        "record": "header", "format": 1, "id": "000001-x", "boot_id": boot, "uid": 0, "time": "", "hot_cpus": [1],
        "wanted": ["thp", "nohz-full"],
    }  # fmt: skip
    entries = [
        {
            "record": "intent", "n": n, "tunable": tunable, "path": path, "kind": kind, "before": "", "after": "x",
            "when": "runtime", "lease": False, "then": "", "boot_id": boot,
        }
        for n, (tunable, path, kind) in enumerate(
            [("thp", "/sys/x", "choice"), ("nohz-full", "/etc/default/grub.d/x.cfg", "grub")], start=1
        )
    ]  # fmt: skip
    written = [{"record": "written", "n": n, "read_back": "x"} for n in (1, 2)]
    folder = tmp_path / "var/lib/jitter-workshop/journal"
    folder.mkdir(parents=True)
    (folder / "000001-x.jsonl").write_bytes(b"".join(map(encode_record, [header, *entries, *written])))
    random = tmp_path / "proc/sys/kernel/random"
    random.mkdir(parents=True)
    (random / "boot_id").write_text(f"{boot}\n")
    root = HostRoot(tmp_path)
    assert [one["id"] for one in applied_tunables(root)] == ["thp", "nohz-full"]
    assert [one["id"] for one in applied_tunables(root, in_effect=True)] == ["thp"]


def test_the_host_is_read_again_after_a_restore_by_another_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host_tree: Callable[[str], Path]
) -> None:
    stands: list[dict[str, str]] = [{"id": "isolation", "value": ""}]
    monkeypatch.setattr(desks, "applied_tunables", lambda root: tuple(stands))
    with SessionStore(tmp_path / "sessions").create("one", "host") as handle:
        root = HostRoot(host_tree("server64"))
        monkeypatch.setattr(root, "recorded", False)
        topology, host = desks.look_at(root)
        context = SessionContext(handle, root, host, Topology((), ()))
        assert context.standing() == ({"id": "isolation", "value": ""},)
        assert (len(context.topology.cpus), context.room.cpus) == (0, 0)
        stands.clear()
        assert context.standing() == ()
        assert (context.topology, context.room.cpus) == (topology, len(topology.allowed))


def test_a_thread_that_was_moved_was_not_bound(runs: dict[str, Run]) -> None:
    pinning, second = chapter("pinning"), runs["again"]
    for moved, earned in ((0, True), (1, False), (None, True)):
        threads = (
            ThreadRecord("producer", {"0": 9}, migrations=0),
            ThreadRecord("accumulator", {"1": 9}, migrations=moved),
        )
        assert (
            chapter_marks(pinning, {**runs, "again": dataclasses.replace(second, threads=threads)})["setting"] is earned
        )


def test_a_deep_idle_state_in_the_second_run_shows_that_the_limit_does_not_hold(runs: dict[str, Run]) -> None:
    """The files may say that the deep states are off, while the hot CPU still enters one of them."""
    settled = {"idle-states": True}
    second = dataclasses.replace(runs["again"], workload="wakeup", duty=100, idle_entries=1_000)
    for exit_us, earned in ((1_980, True), (70_000, False), (None, True)):
        seen = dataclasses.replace(second, idle_exit_us=exit_us)
        assert chapter_marks(chapter("idle-states"), {**runs, "again": seen}, settled)["setting"] is earned
    assert chapter_marks(chapter("idle-states"), {}, settled)["setting"] is False


def test_a_run_during_which_settings_changed_earns_no_mark_and_is_told(runs: dict[str, Run]) -> None:
    pinning = chapter("pinning")
    second = runs["again"]
    first = runs["measure"] = dataclasses.replace(second, placement=dataclasses.replace(second.placement, mode="none"))
    assert chapter_marks(pinning, runs)["curve"]
    said = changed_meanwhile(({"id": "thp", "value": ""},), ({"id": "thp", "value": ""}, *GOVERNOR))
    assert said.startswith("governor changed during this run:")
    assert changed_meanwhile(GOVERNOR, GOVERNOR) == ""
    unsteady = dataclasses.replace(second, notes={UNSTEADY: said})
    assert not chapter_marks(pinning, {**runs, "again": unsteady})["curve"]
    assert strayed_settings(pinning, first, unsteady) == ()
    assert other_changed_settings(pinning, first, unsteady) == ""
    assert relation(first, unsteady) == relation(unsteady, first) == "unsteady"
    assert same_state(first, first)
    assert not same_state(unsteady, unsteady)
    assert said in " ".join(written(run_result_lines(unsteady, 80)).split())
