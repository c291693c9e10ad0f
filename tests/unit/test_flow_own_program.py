"""A chapter on the learner's program: commands, what is kept of an observation, the guess, the marks, the lines that
make a change last."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

from jitter_workshop.course.guesses import by_program
from jitter_workshop.course.loader import builtin_course, load_course, read_course
from jitter_workshop.errors import UsageError
from jitter_workshop.flow.chapters.own_program import SAMPLES, parse_command, sample_of, summed
from jitter_workshop.flow.chapters.path import blocked, entry, views
from jitter_workshop.flow.measuring.isolated_set import CpuBudget
from jitter_workshop.flow.proving import chapter_proof
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.proof import PLACEMENT
from jitter_workshop.model.session import ChapterProgress, Guess, ObservedProgram, ProgramWork
from jitter_workshop.presenter.course import own_program as words
from jitter_workshop.presenter.text.lines import written
from tests.fakes import open_workshop
from tests.unit.test_presenter_program import COUNTED, EVIL, TRACED

CHAPTER = load_course().chapter("your-program")
assert CHAPTER is not None
SEEN = ObservedProgram("2026-03-02T09:30:00Z", "trace", 100, 40, 10, 20, 30, ("task", EVIL), f"p99=3 us {EVIL}")
ROOM = CpuBudget(2, CpuSet(), reduced=False)
COMMAND = ("./server", "a b", EVIL)


def test_a_command_is_cut_as_a_shell_would() -> None:
    assert parse_command("./test 'a b' \"c\"") == ("./test", "a b", "c")
    for text in ("", "  ", "''", "'open", "x " * 200, "x" * 5_000, "a\0b"):
        with pytest.raises(UsageError):
            parse_command(text)


def test_a_small_program_is_known_in_every_environment() -> None:
    assert [sample_of(one.words) for one in SAMPLES] == list(SAMPLES)
    assert sample_of(("/elsewhere/python", *SAMPLES[1].words[1:])) is SAMPLES[1]
    assert sample_of(("/elsewhere/python", *SAMPLES[1].words[1:], "9")) is None
    assert sample_of(()) is None


def test_the_parts_of_a_report_that_are_kept() -> None:
    kept = summed(TRACED, "it said")
    assert TRACED.all_threads is not None
    assert kept.blocked_ns == TRACED.all_threads.blocked_ns
    assert (kept.evidence, kept.held_by, kept.said) == ("trace", ("task", EVIL), "it said")
    counted = summed(COUNTED, "")
    (thread,) = COUNTED.threads
    assert (counted.ran_ns, counted.waited_ns) == (thread.ran_ns, thread.waited_ns)
    assert (counted.slept_ns, counted.blocked_ns, counted.held_by) == (None, None, ())


@pytest.mark.parametrize(
    ("parts", "choice", "near", "said"),
    [
        ({"waited": 10, "slept": 20, "blocked": 70}, "blocked", True, "That is right."),
        ({"waited": 10, "slept": 20, "blocked": 70}, "slept", False, "Right is: blocked"),
        ({"waited": 10, "slept": 45, "blocked": 45}, "slept", True, "Both answers are right here: slept: "),
        ({"waited": 10, "slept": None, "blocked": None}, "slept", None, "only a trace"),
        ({"waited": 0, "slept": 0, "blocked": 0}, "slept", None, "threads ran all the time"),
        ({"waited": 1, "slept": 0, "blocked": 0}, "gone", None, "no longer in the lesson"),
    ],
)
def test_the_longest_part_decides_the_guess(
    parts: dict[str, int | None], choice: str, near: bool | None, said: str
) -> None:
    task = CHAPTER.prediction
    assert task is not None
    told = by_program(task, Guess(choice=choice), parts)
    assert told.near is near
    assert said in told.text
    if near is not None:
        shares = ", ".join(f"{name} {ns} ns ({ns} %)" for name, ns in parts.items())
        assert f"did not run for this long: {shares}." in told.text


def test_its_steps_wait_for_an_observation_and_its_marks_are_on_the_path() -> None:
    fresh = ChapterProgress()
    seen = ChapterProgress(program=ProgramWork(COMMAND, observed=SEEN), marks={"curve": True})
    assert blocked(CHAPTER, fresh, "compare") == "observe your program first"
    assert blocked(CHAPTER, ChapterProgress(program=ProgramWork(COMMAND)), "compare")
    assert blocked(CHAPTER, seen, "compare") == ""
    states = {one.name: one.state for one in views(CHAPTER, seen)}
    assert (states["measure"], states["compare"], states["again"]) == ("done", "open", "left_out")
    shown = entry(CHAPTER, seen, None, ROOM, False)
    assert (shown.setting, shown.curve, shown.measures, shown.chance) == (False, True, True, "measures")


def test_the_choice_of_another_program_forgets_the_observed_run_and_keeps_the_marks() -> None:
    workshop = open_workshop(course=builtin_course())
    walk = workshop.walk("your-program")
    assert walk.program.work.words == SAMPLES[0].words
    walk.program.keep(SEEN)
    assert walk.progress.marks == {"curve": True}
    walk.program.choose(SAMPLES[0].words)
    assert walk.program.work.observed == SEEN
    walk.program.choose(COMMAND)
    assert walk.program.work == ProgramWork(COMMAND)
    assert walk.progress.marks == {"curve": True}
    # A guess may change until the program was observed, and not afterwards.
    walk.guess.predict(Guess(choice="slept"))
    walk.guess.predict(Guess(choice="blocked"))
    walk.program.keep(SEEN)
    outcome = walk.guess.outcome()
    assert outcome is not None
    assert outcome.near is True
    with pytest.raises(UsageError):
        walk.guess.predict(Guess(choice="slept"))
    # Progress with a program is read again as it was written.
    again = open_workshop(course=builtin_course())
    assert again.walk("your-program").program.work == ProgramWork(COMMAND, observed=SEEN)


def test_the_placement_and_settings_that_can_be_better_at_run_time_can_be_proven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = ["governor", "cpu-max", "nohz-full", "thp"]
    found = SimpleNamespace(improvable=[SimpleNamespace(check=SimpleNamespace(id=one)) for one in ids])
    workshop = open_workshop()
    monkeypatch.setattr(type(workshop), "findings", lambda self: found)
    # A setting that is only reported, or needs a boot, cannot be changed in a round.
    assert chapter_proof.provable_changes(workshop) == (PLACEMENT, "governor", "thp")


@pytest.mark.parametrize("width", [30, 76, 150])
def test_no_line_is_too_wide_and_no_name_reaches_the_terminal(width: int) -> None:
    work = ProgramWork(COMMAND, observed=SEEN)
    pages = (
        words.program_choice_lines(work, width, "/"),
        words.seen(work, width),
        words.change_choice_lines(work, (PLACEMENT, "thp=never"), width),
        words.lasting(work, None, "2-3", width),
        words.lasting(dataclasses.replace(work, change="thp"), None, "", width),
    )
    for page in pages:
        assert all(line.cell_len <= width for line in page)
        assert "\x1b" not in written(page)


def lasting(verdict: str, change: str = PLACEMENT) -> str:
    judged = SimpleNamespace(headline=SimpleNamespace(verdict=verdict, text="told"))
    proof = SimpleNamespace(judgement=judged, rounds=(), ended_at="", started_at="", complete=True, stopped="")
    work = ProgramWork(SAMPLES[2].words, change)
    return " ".join(written(words.lasting(work, proof, "2-3", 150)).split())  # type: ignore[arg-type]


def test_only_a_change_that_a_proof_calls_better_is_to_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words.proofs, "earlier_proof_text", lambda proof: "told")
    assert "CPUAffinity=2-3" in lasting("lower")
    assert "taskset -c 2-3" in lasting("cannot_tell")
    for verdict in ("higher", "no_change"):
        said = lasting(verdict)
        assert "do not use" in said
        assert "taskset" not in said
    assert "jitter-workshop apply thp" in lasting("lower", "thp")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('id = "waited"', 'id = "waiting"', "each answer has one of the ids"),
        ("program = true", "", "has no [[measurement]]"),
        ('by = "program"', 'by = "program"\nslot = "measure"', "a prediction without a slot"),
        ('"compare", ', "", "needs the steps 'measure' and 'compare'"),
    ],
)
def test_mistakes_in_such_a_lesson_are_named(tmp_path: Path, before: str, after: str, said: str) -> None:
    base = builtin_course() / "21-your-program"
    folder = tmp_path / "21-your-program"
    folder.mkdir()
    text = (base / "lesson.toml").read_text()
    assert before in text
    (folder / "lesson.toml").write_text(text.replace(before, after, 1))
    (folder / "lesson.md").write_text((base / "lesson.md").read_text())
    (tmp_path / "course.toml").write_text(
        'format_version = 1\nid = "own"\ntitle = "Own"\nchapters = ["21-your-program"]\n'
    )
    assert any(said in problem.message for problem in read_course(tmp_path).problems.found)
