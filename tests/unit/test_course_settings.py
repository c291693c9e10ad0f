"""Chapters that set tunables: what their files may say, every mistake on its line, and marks that can be earned."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.checks import Flaw, chapter_marks, finished_run, flaws
from jitter_workshop.course.loader import load_course, read_course
from jitter_workshop.course.table import KeyLines
from jitter_workshop.flow.host_ops.host_status import treating
from jitter_workshop.model.course import (
    EVIDENCE,
    STEPS,
    Chapter,
    Check,
    CommandByHand,
    Course,
    Measurement,
    PageWhen,
    Shows,
    StepName,
)
from jitter_workshop.model.spec import DUTIES

COURSE = 'format_version = 1\nid = "mine"\ntitle = "My course"\nchapters = ["one"]\n'

LESSON = '''\
format_version = 1
id = "clock"
title = "The clock"
summary = "What it is about."
minutes = 3
hot_cpus = 1
changes = "tunables"
tunables = [
    "governor",
    "stat-interval=5",
]
recording = "lab-stock"
recording_after = "lab-tuned"
reboot = false
treats = ["smi", "boost"]
evidence = ["frequency", "tick"]
steps = ["look", "predict", "measure", "plan", "apply"]

[[measurement]]
slot = "measure"
label = "base"
workload = "spin"
placement = "auto"
preset = "quick"
sched = "fifo:10"
duration_s = 0.5
duty = 50

[prediction]
kind = "choice"
question = "Who sets it?"

[[prediction.answer]]
id = "kernel"
text = "the kernel"
right = true
explanation = "So it is."

[[prediction.answer]]
id = "nobody"
text = "nobody"
explanation = "Not so."

[[check]]
mark = "setting"
tunable = "governor"

[[check]]
mark = "curve"
slot = "measure"
placement = "auto"

[[page_when]]
step = "look"
when = "not_here"
text = """
**Not here.**
A second line.
"""
'''
PAGES = "# Clock\n\n" + "".join(f"## {step}\n\nText.\n\n" for step in ("look", "predict", "measure", "plan", "apply"))
RING = 'workload = "ring"\nplacement = "auto"\npreset = "quick"\npacing = "schedule"\n'


def written(folder: Path, lesson: str = LESSON) -> Path:
    (folder / "one").mkdir(parents=True, exist_ok=True)
    (folder / "course.toml").write_text(COURSE, encoding="utf-8")
    (folder / "one" / "lesson.toml").write_text(lesson, encoding="utf-8")
    (folder / "one" / "lesson.md").write_text(PAGES, encoding="utf-8")
    return folder


def loaded(folder: Path, lesson: str = LESSON) -> Chapter:
    return load_course(written(folder, lesson)).chapters[0]


def flaws_of_marks(chapter: Chapter) -> tuple[Flaw, ...]:
    """All flaws but that of the guess: LESSON has one as older courses have it, and no run decides it."""
    return tuple(flaw for flaw in flaws(chapter) if flaw.where != ("prediction", "question"))


def line_with(lesson: str, part: str) -> int:
    """The only line of ``lesson`` that holds ``part``."""
    found = [n for n, line in enumerate(lesson.split("\n"), start=1) if part in line]
    assert len(found) == 1, (part, found)
    return found[0]


def test_every_field_of_a_chapter_that_sets_something(tmp_path: Path) -> None:
    chapter = loaded(tmp_path)
    assert chapter.tunables == ("governor", "stat-interval=5")
    assert (chapter.recording, chapter.recording_after, chapter.reboot) == ("lab-stock", "lab-tuned", False)
    assert chapter.evidence == ("frequency", "tick")
    assert chapter.treats == ("smi", "boost")
    assert chapter.page_when == (PageWhen("look", "not_here", "**Not here.**\nA second line."),)
    assert chapter.checks == (Check("setting", None, None, "governor"), Check("curve", "measure", "auto"))
    assert chapter.measurements == (Measurement("measure", "base", "spin", "auto", "quick", None, 10, None, 0.5, 50),)
    assert chapter.prediction is not None
    assert (chapter.prediction.slot, chapter.prediction.kind) == (None, "choice")
    assert [a.right for a in chapter.prediction.answers] == [True, None]


def test_settings_that_a_lesson_leaves_out_have_their_defaults(tmp_path: Path) -> None:
    lesson = LESSON.replace('sched = "fifo:10"\nduration_s = 0.5\nduty = 50\n', "").replace("reboot = false\n", "")
    chapter = loaded(tmp_path, lesson)
    measured = chapter.measurements[0]
    assert (measured.sched_priority, measured.pacing, measured.duration_s, measured.duty) == (0, None, None, 100)
    assert chapter.reboot is False


@pytest.mark.parametrize(("sched", "priority"), [("other", 0), ("fifo:1", 1), ("fifo:9", 9), ("fifo:49", 49)])
def test_classes_and_their_priorities(tmp_path: Path, sched: str, priority: int) -> None:
    assert loaded(tmp_path, LESSON.replace("fifo:10", sched)).measurements[0].sched_priority == priority


@pytest.mark.parametrize("duration", ["0.5", "1", "59.99", "60"])
def test_how_long_a_run_may_last(tmp_path: Path, duration: str) -> None:
    chapter = loaded(tmp_path, LESSON.replace("duration_s = 0.5", f"duration_s = {duration}"))
    assert chapter.measurements[0].duration_s == float(duration)


@pytest.mark.parametrize("duty", DUTIES)
def test_shares_of_time(tmp_path: Path, duty: int) -> None:
    assert loaded(tmp_path, LESSON.replace("duty = 50", f"duty = {duty}")).measurements[0].duty == duty


def test_a_ring_is_paced(tmp_path: Path) -> None:
    lesson = LESSON.replace('workload = "spin"\nplacement = "auto"\npreset = "quick"\n', RING).replace(
        "duty = 50\n", ""
    )
    assert loaded(tmp_path, lesson).measurements[0].pacing == "schedule"


@pytest.mark.parametrize("word", EVIDENCE)
def test_every_word_of_evidence(tmp_path: Path, word: str) -> None:
    assert loaded(tmp_path, LESSON.replace('["frequency", "tick"]', f'["{word}"]')).evidence == (word,)


@pytest.mark.parametrize(
    ("old", "new", "at", "what"),
    [
        ('    "governor",', '    "../x",', '"../x"', "'../x' is neither ID nor ID=VALUE"),
        ('    "governor",', '    "Governor",', '"Governor"', "'Governor' is neither ID nor ID=VALUE"),
        ('    "governor",', '    "stat-interval",\n    "governor",', "tunables = [", "lists one tunable twice"),
        ('    "governor",', "    3,", "tunables = [", "list of at most 20 texts"),
        ('changes = "tunables"', 'changes = "nothing"', "tunables = [", "so it cannot have tunables"),
        ('changes = "tunables"', 'changes = "placement"', "tunables = [", "so it cannot have tunables"),
        ('recording = "lab-stock"', 'recording = "../lab"', "../lab", "small letters, digits and hyphens"),
        ('recording = "lab-stock"', 'recording = "/etc"', "/etc", "small letters, digits and hyphens"),
        ('recording = "lab-stock"', "recording = 3", "recording = 3", "text in quotes"),
        ('recording_after = "lab-tuned"', 'recording_after = "a/b"', "a/b", "small letters, digits and hyphens"),
        ('recording = "lab-stock"\n', "", "tunables = [", "needs the keys 'recording'"),
        ('recording_after = "lab-tuned"\n', "", "tunables = [", "needs the keys 'recording'"),
        ("reboot = false", 'reboot = "no"', "reboot =", "true or false"),
        ("reboot = false", "reboots = false", "reboots =", "did you mean 'reboot'?"),
        ('"frequency", "tick"', '"frequncy"', "evidence =", "did you mean 'frequency'?"),
        ('"frequency", "tick"', '"tick", "tick"', "evidence =", "lists tick twice"),
        ('sched = "fifo:10"', 'sched = "fifo:50"', "fifo:50", "'fifo:1' to 'fifo:49'"),
        ('sched = "fifo:10"', 'sched = "fifo:0"', "fifo:0", "'fifo:1' to 'fifo:49'"),
        ('sched = "fifo:10"', 'sched = "rr:10"', "rr:10", "'fifo:1' to 'fifo:49'"),
        ('sched = "fifo:10"', "sched = 10", "sched =", "text in quotes"),
        ("duration_s = 0.5", "duration_s = 0.4", "duration_s =", "from 0.5 to 60"),
        ("duration_s = 0.5", "duration_s = 60.1", "duration_s =", "from 0.5 to 60"),
        ("duration_s = 0.5", "duration_s = nan", "duration_s =", "from 0.5 to 60"),
        ("duration_s = 0.5", "duration_s = inf", "duration_s =", "from 0.5 to 60"),
        ("duration_s = 0.5", "duration_s = true", "duration_s =", "from 0.5 to 60"),
        ("duration_s = 0.5", 'duration_s = "5"', "duration_s =", "from 0.5 to 60"),
        ("duty = 50", "duty = 51", "duty =", "100, 50, 10"),
        ("duty = 50", "duty = 0", "duty =", "from 1 to 100"),
        ('workload = "spin"', 'workload = "ring"', "duty =", "only the workload spin has a duty"),
        ("duty = 50", 'pacing = "schedule"', "pacing =", "only the workload ring has a pacing"),
        ("duty = 50", 'pacing = "scedule"', "pacing =", "did you mean 'schedule'?"),
        ('kind = "choice"', 'kind = "mark"', "[prediction]", "slot is missing"),
        ('kind = "choice"', 'kind = "choice"\nslot = "again"', 'slot = "again"', "no step measures this slot"),
        ("right = true\n", "", "[prediction]", "one answer needs right = true"),
        ("right = true", 'right = "yes"', "right =", "true or false"),
        ('tunable = "governor"', 'tunable = "govenor"', 'tunable = "govenor"', "did you mean 'governor'?"),
        ('tunable = "governor"', 'tunable = "thp"', 'tunable = "thp"', "not among the chapter's tunables"),
        ('tunable = "governor"', 'tunable = "governor"\nslot = "measure"', 'tunable = "governor"', "and no slot"),
        ('mark = "setting"', 'mark = "curve"', 'tunable = "governor"', "have the mark 'setting'"),
        ('[[check]]\nmark = "setting"\ntunable = "governor"\n', "", "tunables = [", "needs a [[check]] with a tunable"),
        ('placement = "auto"\n\n[[page', 'placement = "free"\n\n[[page', '"free"', "unknown placement 'free'"),
        ('step = "look"', 'step = "lok"', 'step = "lok"', "did you mean 'look'?"),
        ('step = "look"', 'step = "compare"', 'step = "compare"', "this text is for 'compare'"),
        ('when = "not_here"', 'when = "absent"', 'when = "absent"', "unknown when 'absent'"),
        ("**Not here.**", "<b>Not here.</b>", "<b>", "have HTML tags"),
        ("A second line.", "![x](https://a/b.png)", "![x]", "have pictures"),
        ("A second line.", "[x](file:///etc/passwd)", "[x]", "not 'file:///etc/passwd'"),
        ("A second line.", "```\nopen", "```", "no closing ```"),
        ("**Not here.**\nA second line.", "", 'text = """', "text is empty"),
    ],
)  # fmt: skip
def test_a_mistake_names_its_line(tmp_path: Path, old: str, new: str, at: str, what: str) -> None:
    assert LESSON.count(old) == 1
    lesson = LESSON.replace(old, new)
    found = [problem.sentence() for problem in read_course(written(tmp_path, lesson)).problems.found]
    line = next(n for n, text in enumerate(lesson.split("\n"), start=1) if at in text)
    assert any(s.startswith(f"one/lesson.toml:{line}: ") and what in s for s in found), (line, found)


@pytest.mark.parametrize("steps", [("look", "plan", "apply"), ("look", "predict", "plan", "apply", "explain")])
def test_a_chapter_may_measure_nothing(tmp_path: Path, steps: tuple[StepName, ...]) -> None:
    measured = LESSON[LESSON.index("[[measurement]]") : LESSON.index("[prediction]")]
    checked = LESSON[LESSON.index('[[check]]\nmark = "curve"') : LESSON.index("[[page_when]]")]
    lesson = LESSON.replace(measured, "").replace(checked, "")
    lesson = lesson.replace('["look", "predict", "measure", "plan", "apply"]', str(list(steps)).replace("'", '"'))
    written(tmp_path, lesson)
    (tmp_path / "one" / "lesson.md").write_text("".join(f"## {step}\n\nText.\n\n" for step in steps))
    chapter = load_course(tmp_path).chapters[0]
    assert chapter.measurements == ()
    assert flaws_of_marks(chapter) == ()
    assert chapter_marks(chapter, {}, {"governor": True}) == {"setting": True, "curve": False}


def test_an_older_lessons_plan_is_read_as_the_beginning_of_apply(tmp_path: Path) -> None:
    written(tmp_path, LESSON.replace('step = "look"', 'step = "plan"'))
    pages = "".join(f"## {step}\n\nThe page of {step}.\n\n" for step in ("look", "predict", "measure", "plan", "apply"))
    (tmp_path / "one" / "lesson.md").write_text(pages)
    chapter = load_course(tmp_path).chapters[0]
    assert chapter.steps == ("look", "predict", "measure", "apply")
    assert chapter.pages["apply"] == "The page of plan.\n\nThe page of apply."
    assert "plan" not in chapter.pages
    assert {one.step for one in chapter.page_when} == {"apply"}


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("masks.txt", ""),
        ("./masks.txt", ""),
        ("sub/more.txt", ""),
        ("https://kernel.org/doc", ""),
        ("none.txt", "there is no 'none.txt' in the chapter's folder"),
        ("sub", "there is no 'sub' in the chapter's folder"),
        ("../course.toml", "'../course.toml' lies outside"),
        ("sub/../../course.toml", "lies outside"),
        ("away.txt", "'away.txt' lies outside"),
        ("/etc/passwd", "not '/etc/passwd'"),
        ("//kernel.org/x", "not '//kernel.org/x'"),
        ("javascript:x", "not 'javascript:x'"),
        ("mailto:a@b", "not 'mailto:a@b'"),
        ("#explain", "not '#explain'"),
        ("?q=1", "not '?q=1'"),
        ("https:masks.txt", "not 'https:masks.txt'"),
        ("https://user@evil/x", ""),
        ("", "not ''"),
    ],
)
def test_links_lead_to_the_web_or_into_the_folder(tmp_path: Path, target: str, what: str) -> None:
    folder = written(tmp_path / "course") / "one"
    (folder / "masks.txt").write_text("f\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "more.txt").write_text("f\n")
    (tmp_path / "away.txt").write_text("f\n")
    (folder / "away.txt").symlink_to(tmp_path / "away.txt")
    (folder / "lesson.md").write_text(PAGES.replace("Text.", f"See [it]({target}).", 1))
    found = [p.sentence() for p in read_course(tmp_path / "course").problems.found]
    if what:
        assert len(found) == 1
        assert found[0].startswith("one/lesson.md:5: a link must begin with https://")
        assert what in found[0]
    else:
        assert found == []


def test_a_course_with_a_mistake_still_gives_its_other_chapters(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "course.toml").write_text(COURSE.replace('["one"]', '["one", "two"]'))
    (tmp_path / "two").mkdir()
    reading = read_course(tmp_path)
    assert reading.course is None
    assert [(folder, chapter.id) for folder, chapter in reading.chapters] == [("one", "clock")]
    assert {p.file for p in reading.problems.found} == {"two/lesson.toml", "two/lesson.md"}


def test_tunables_that_there_are_not(tmp_path: Path) -> None:
    """A course that is read without the tunables' ids takes any id. With them, the nearest id is named, on the word's
    own line."""
    written(
        tmp_path, LESSON.replace('"governor",', '"govenor",').replace('tunable = "governor"', 'tunable = "govenor"')
    )
    assert read_course(tmp_path).problems.found == []
    known = ("governor", "stat-interval", "smi", "boost")
    (told,) = (problem.sentence() for problem in read_course(tmp_path, known).problems.found)
    assert told.startswith("one/lesson.toml:9:")
    assert "no tunable 'govenor'" in told
    assert told.endswith("did you mean 'governor'?")
    far = read_course(written(tmp_path, LESSON.replace("stat-interval=5", "zzz=5")), known).problems.found
    (told,) = (problem.sentence() for problem in far)
    assert told.startswith("one/lesson.toml:10:")
    assert "no tunable 'zzz'" in told
    assert told.endswith("; 'jitter-workshop status' lists them")


def test_a_finding_leads_to_the_chapter_that_sets_it_before_one_that_treats_it(tmp_path: Path) -> None:
    setting = loaded(tmp_path)
    speaking = dataclasses.replace(setting, id="talk", title="Talk", tunables=(), treats=("governor", "smi", "swap"))
    assert treating(Course("c", "C", (speaking, setting))) == {
        "governor": ("clock", "The clock"),
        "stat-interval": ("clock", "The clock"),
        "smi": ("talk", "Talk"),
        "swap": ("talk", "Talk"),
        "boost": ("clock", "The clock"),
    }


def test_where_a_word_of_a_long_list_stands(tmp_path: Path) -> None:
    places = KeyLines(written(tmp_path), "one")
    assert places.line("tunables") == 8
    assert places.line("tunables", word="governor") == 9
    assert places.line("tunables", word="stat-interval=5") == 10
    assert places.line("tunables", word="lab-stock") == 8, "not a line of the next key"
    assert places.line("check", 1, "slot") == line_with(LESSON, "[[page_when]]") - 3
    assert places.line("check", 1, "tunable") == line_with(LESSON, "[[page_when]]") - 5, (
        "the table, where no such key is"
    )
    assert KeyLines(tmp_path, "none").line("id", word="x") == 1


def test_marks_that_work_have_no_flaw(tmp_path: Path) -> None:
    assert flaws_of_marks(loaded(tmp_path)) == ()
    assert all(flaws(chapter) == () for chapter in load_course().chapters)


@pytest.mark.parametrize(
    ("changes", "checks", "where", "what"),
    [
        ("placement", (Check("curve", "measure"),), ("changes",), "no [[check]] has the mark 'setting'"),
        ("tunables", (Check("curve", "measure"),), ("changes",), "no [[check]] has the mark 'setting'"),
        ("nothing", (Check("setting", "measure"),), ("check", 0, "mark"), "changes nothing"),
        (
            "placement",
            (Check("curve", "measure"), Check("setting", "measure", "none")),
            ("check", 1, "placement"),
            "asks for placement 'none', but 'measure' is measured with 'auto'",
        ),
    ],
)
def test_a_mark_that_cannot_work_is_a_flaw(
    tmp_path: Path, changes: str, checks: tuple[Check, ...], where: tuple[object, ...], what: str
) -> None:
    chapter = dataclasses.replace(loaded(tmp_path), changes=changes, checks=checks)  # type: ignore[arg-type]
    found = flaws_of_marks(chapter)
    assert len(found) == 1
    assert found[0].where == where
    assert what in found[0].message


PLACEMENTS = st.sampled_from(["none", "auto"])
CHECKS = st.builds(
    Check, st.sampled_from(["curve", "setting"]), st.sampled_from(["measure", "again"]), st.none() | PLACEMENTS
)


@given(st.lists(CHECKS, max_size=5), PLACEMENTS, PLACEMENTS)
def test_without_flaws_the_runs_of_the_lesson_earn_every_mark_and_fewer_do_not(
    checks: list[Check], first: str, second: str
) -> None:
    chapter = Chapter(
        "x", "x", "x", 1, 1, "placement", STEPS, {},
        (Measurement("measure", "a", "ring", first, "quick"), Measurement("again", "b", "ring", second, "quick")),
        None, (), (), tuple(checks), shows=Shows("preempted", 3.0), without_company="Nothing runs here.",
    )  # fmt: skip
    runs = {m.slot: finished_run(m) for m in chapter.measurements}
    possible = all(c.placement in (None, first if c.slot == "measure" else second) for c in checks)
    complete = possible and any(c.mark == "setting" for c in checks)
    assert (flaws(chapter) == ()) == complete
    if complete:
        assert chapter_marks(chapter, dict(runs)) == {"setting": True, "curve": True}
        for check in checks:
            kept = {slot: run for slot, run in runs.items() if slot != check.slot}
            assert not chapter_marks(chapter, dict(kept))[check.mark]
        cut = {slot: dataclasses.replace(run, complete=False) for slot, run in runs.items()}
        assert not any(chapter_marks(chapter, dict(cut)).values())


@pytest.mark.parametrize(
    ("seen", "refused"),
    [({}, True), ({"reads": True}, False), ({"check": "gone:/a"}, False), ({"unchecked": "Nothing shows it."}, False)],
)
def test_a_by_hand_command_names_its_visible_effect(seen: dict[str, object], refused: bool) -> None:
    command = CommandByHand("true", "It does nothing.", **seen)  # type: ignore[arg-type]
    chapter = dataclasses.replace(load_course().chapters[0], by_hand=(CommandByHand("true", "", reads=True), command))
    assert [flaw.where for flaw in flaws(chapter)] == ([("by_hand", 1, "command")] if refused else [])


@pytest.mark.parametrize(("check", "refused"), [("stat-interval", True), ("file:/etc/sysctl.d/a.conf", False)])
def test_a_file_below_etc_is_not_checked_by_the_value_in_effect(check: str, refused: bool, tmp_path: Path) -> None:
    typed = "echo 'vm.stat_interval = 60' | sudo tee /etc/sysctl.d/a.conf && sysctl --system"
    kept = CommandByHand(typed, "It lasts.", check)
    chapter = dataclasses.replace(load_course().chapters[0], by_hand=(kept,))
    assert [flaw.where for flaw in flaws(chapter)] == ([("by_hand", 0, "check")] if refused else [])
    command = f'[[by_hand]]\ncommand = "{typed}"\nwhy = "It lasts."\ncheck = "{check}"\n'
    assert loaded(tmp_path, f"{LESSON}\n{command}").by_hand[-1].check == check, "an older lesson still loads"
