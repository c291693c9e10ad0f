"""``lessons check``: every chapter proved on recorded hosts, and every way in which one can fail that."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.cli import main
from jitter_workshop.course.loader import builtin_course, load_course
from jitter_workshop.course.pace import chapter_minutes
from jitter_workshop.flow.chapters import lessoncheck
from jitter_workshop.flow.chapters.tour import take_tour
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.host_ops.host_status import read_checks
from jitter_workshop.flow.host_ops.settings import look_at_settings
from jitter_workshop.host.root import HostRoot
from jitter_workshop.tuning.tunables import registry
from tests.lessonverbs import REPOSITORY, built_in_chapter, folder_of, follow, found, lessons


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _one_cache(cache: Path, monkeypatch: pytest.MonkeyPatch, _own_world: None) -> None:
    """Recordings are unpacked once for this file."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


def test_the_built_in_course_is_proved() -> None:
    chapters = load_course().chapters
    assert lessons("check") == (0, f"{len(chapters)} chapters, no mistakes\n", "")
    code, out, _ = lessons("check", "--json")
    assert (code, json.loads(out)) == (
        0,
        {"format_version": 1, "problems": [], "chapters": len(chapters), "unlisted": []},
    )
    assert sum(bool(chapter.tunables) for chapter in chapters) >= 5, "the recordings are asked about many tunables"


SPOILT = [
    ('["governor"', '["govenor"', "tunables =", "there is no tunable 'govenor'; did you mean 'governor'?"),
    ('["governor"', '["governor", "min-frequency=5", "ksm=9"', "tunables =", "ksm cannot be|ksm takes no value"),
    ('["governor"', '["governor=fast"', "tunables =", "governor cannot be 'fast' here"),
    ('"lab-stock"', '"lab-stok"', "recording =", "lab-stok: there is no recording 'lab-stok'"),
    ('"lab-stock"', '"lab-tuned"', 'tunable = "governor"', "'improve' before the change; on lab-tuned it is"),
    ('"lab-tuned"', '"lab-stock"', 'tunable = "governor"', "'ok' after the change; on lab-stock it is still"),
    ('changes = "tunables"', 'changes = "tunables"\nreboot = true', "reboot =", "but none of its tunables is"),
    ('slot = "again"\nplacement = "auto"', 'slot = "again"\nplacement = "none"', 'placement = "none"', "no learner"),
    ('workload = "spin"', 'workload = "spin"\nsched = "fifo:50"', "sched =", "sched must be 'other', or 'fifo:1'"),
    ('changes = "tunables"', 'changes = "tunables"\ntreats = ["bost"]', "treats =",
     "there is no tunable 'bost'; did you mean 'boost'?"),
    ('changes = "tunables"', 'changes = "tunables"\ntreats = ["smi", "smi"]', "treats =", "treats lists one"),
    ('changes = "tunables"', 'changes = "tunables"\ntreats = ["boost=off"]', "treats =", "'boost=off' is not the id"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "at", "what"), SPOILT)
def test_a_contradiction_with_a_recording_is_a_mistake_with_its_line(
    tmp_path: Path, old: str, new: str, at: str, what: str
) -> None:
    course = built_in_chapter("02-governor", tmp_path / "c")
    lesson = course / "02-governor" / "lesson.toml"
    text = lesson.read_text()
    assert found(course) == []
    before, here, after = re.sub(r"^treats = .*\n", "", text, flags=re.MULTILINE).partition(old)
    assert here
    spoilt = before + new + after
    lesson.write_text(spoilt)
    line = _line(spoilt, at)
    told = found(course)
    assert any(
        file == "02-governor/lesson.toml" and number == line and re.search(what, message)
        for file, number, message in told
    ), (line, told)


def _line(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.split("\n"), start=1) if line.startswith(part))


def test_a_page_without_its_source_is_a_mistake_and_the_course_loads(tmp_path: Path) -> None:
    course = built_in_chapter("05-isolation", tmp_path / "c")
    page = course / "05-isolation" / "lesson.md"
    text = page.read_text()
    page.write_text(text.replace("\nSource: man 5 proc (`nonvol", "\nSee man 5 proc (`nonvol"))
    line = _line(text, "## again")
    [(file, number, message)] = found(course)
    assert (file, number) == ("05-isolation/lesson.md", line)
    assert message.startswith("the page for 'again' names no source")
    page.write_text(re.sub(r"^Source:", "See", text, flags=re.MULTILINE))
    told = found(course)
    assert ["names no source" in message for _, _, message in told] == [True] * 8
    assert len(load_course(course).chapters) == 1


def test_a_chapter_that_loses_its_company_or_its_reason_is_a_mistake(tmp_path: Path) -> None:
    for name, lost in (("05-isolation", r"\[company\]\nnoise.*\nshown.*\n"), ("02-governor", "without_company.*\n")):
        course = built_in_chapter(name, tmp_path / name)
        lesson = course / name / "lesson.toml"
        lesson.write_text(re.sub(lost, "", lesson.read_text()))
        [(file, line, message)] = found(course)
        assert (file, line) == (f"{name}/lesson.toml", _line(lesson.read_text(), "changes ="))
        assert "has no [company]" in message
        assert len(load_course(course).chapters) == 1


def test_a_tunable_in_no_chapter_is_a_mistake_of_the_built_in_course_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(registry.find_tunable("perf-access")), "untaught", "")
    (problem,) = lessoncheck.check_course(None).problems
    assert problem.file == "course.toml"
    assert "the tunable perf-access" in problem.message
    assert found(built_in_chapter("05-isolation", tmp_path / "c")) == []


def test_a_slip_of_the_pen_in_the_tunables_is_one_mistake(tmp_path: Path) -> None:
    course = built_in_chapter("07-workqueues", tmp_path / "c")
    lesson = course / "07-workqueues" / "lesson.toml"
    before = lesson.read_text()
    lesson.write_text(before.replace('["workqueue-mask"]', '["workqueue-maskk"]', 1))
    assert before.count('tunable = "workqueue-mask"') == 1, "what is checked is typed well"
    [(_, _, message)] = found(course)
    assert "no tunable 'workqueue-maskk'" in message
    assert "did you mean 'workqueue-mask'?" in message


@pytest.mark.parametrize(
    ("tunables", "checked", "what"),
    [
        ('["stat-interval=10"]', "stat-interval", ""),
        ('["stat-interval=1"]', "stat-interval", "on lab-stock there is nothing to write for stat-interval=1"),
        ('["stat-interval=20"]', "stat-interval", "on lab-tuned stat-interval=20 would need 1 write"),
        ('["thp=madvise"]', "thp", ""),
        ('["boost=off"]', "boost", "boost cannot be checked: neither lab-stock nor lab-tuned has this tunable"),
        ('["timer-migration"]', "timer-migration", "on lab-stock there is nothing to do: 1"),
        ('["isolcpus"]', "isolcpus", "write reboot = true"),
        ('["swap"]', "swap", "'improve' before the change; on lab-stock it is 'ok' already: none"),
    ],
)
def test_a_value_is_proved_by_its_writes(tmp_path: Path, tunables: str, checked: str, what: str) -> None:
    course = tmp_path / "c"
    assert lessons("new", "mine", "--course", course)[0] == 0
    lesson = course / "01-mine" / "lesson.toml"
    text = lesson.read_text().replace('changes = "placement"', 'changes = "tunables"').replace(
        'mark = "setting"\nslot = "again"\nplacement = "auto"', f'mark = "setting"\ntunable = "{checked}"'
    )  # fmt: skip
    named = f'tunables = {tunables}\nrecording = "lab-stock"\nrecording_after = "lab-tuned"\n'
    lesson.write_text(text.replace('title = "Mine"', f'title = "Mine"\n{named}'))
    told = found(course)
    if what:
        assert any(what in message for _, _, message in told), told
        assert {file for file, _, _ in told} == {"01-mine/lesson.toml"}
    else:
        assert told == []


@pytest.mark.parametrize(
    ("steps", "missing"),
    [
        (["look"], "'apply'"),
        (["look", "apply"], ""),
        (["look", "plan"], ""),
        (["look", "plan", "apply"], ""),
    ],
)
def test_a_chapter_that_sets_tunables_has_to_let_them_be_applied(
    tmp_path: Path, steps: list[str], missing: str
) -> None:
    lesson = tmp_path / "one" / "lesson.toml"
    lesson.parent.mkdir()
    lesson.write_text(
        'format_version = 1\nid = "one"\ntitle = "One"\nsummary = "one"\nminutes = 1\nhot_cpus = 1\n'
        f'changes = "tunables"\nsteps = {json.dumps(steps)}\ntunables = ["governor"]\n'
        'recording = "lab-stock"\nrecording_after = "lab-tuned"\n[[check]]\nmark = "setting"\ntunable = "governor"\n'
    )
    pages = "".join(f"## {step}\n\nRead this.\n\nSource: this test\n" for step in steps)
    (lesson.parent / "lesson.md").write_text(pages)
    (tmp_path / "course.toml").write_text('format_version = 1\nid = "c"\ntitle = "C"\nchapters = ["one"]\n')
    said = f"this chapter sets tunables but has no step {missing} to apply them"
    assert found(tmp_path) == ([("one/lesson.toml", 8, said)] if missing else [])


def test_a_setting_that_this_tool_cannot_change_is_no_mark_of_a_chapter(tmp_path: Path) -> None:
    """Mains power can be better before and good after, and yet no plan brings it about."""
    course = built_in_chapter("02-governor", tmp_path / "c")
    for name, online in (("desk-before", 0), ("desk-after", 1)):
        supplies = course / "recordings" / name / "sys" / "class" / "power_supply"
        shutil.copytree(folder_of("lab-stock"), course / "recordings" / name)
        for supply, files in (
            ("AC", {"type": "Mains", "online": online}),
            ("BAT0", {"type": "Battery", "status": "Discharging"}),
        ):
            (supplies / supply).mkdir(parents=True)
            for file, text in files.items():
                (supplies / supply / file).write_text(f"{text}\n")
    lesson = course / "02-governor" / "lesson.toml"
    text = lesson.read_text().replace('tunables = ["governor"]', 'tunables = ["mains"]').replace(', "mains"]', "]")
    text = text.replace('tunable = "governor"', 'tunable = "mains"')
    lesson.write_text(text.replace('"lab-stock"', '"desk-before"').replace('"lab-tuned"', '"desk-after"'))
    line = _line(lesson.read_text(), 'tunable = "mains"')
    why = "this tool reports this setting and does not change it: Mains power"
    said = f"applying mains changes nothing on desk-before: {why}"
    assert found(course) == [("02-governor/lesson.toml", line, said)]


def test_a_tunable_that_no_recording_has_cannot_be_checked(tmp_path: Path) -> None:
    course = built_in_chapter("02-governor", tmp_path / "c")
    lesson = course / "02-governor" / "lesson.toml"
    text = re.sub(r"^treats = .*\n", "", lesson.read_text(), flags=re.MULTILINE)
    text = text.replace('["governor"]', '["governor", "epp"]').replace('tunable = "governor"', 'tunable = "epp"')
    lesson.write_text(text)
    line = _line(text, 'tunable = "epp"')
    assert any(
        number == line and "epp cannot be checked: neither lab-stock nor" in message
        for _, number, message in found(course)
    )


def test_a_value_that_no_host_takes_is_told_once(tmp_path: Path) -> None:
    course = built_in_chapter("02-governor", tmp_path / "c")
    lesson = course / "02-governor" / "lesson.toml"
    lesson.write_text(lesson.read_text().replace('["governor"', '["governor=fast"'))
    [(_, line, message)] = found(course)
    assert line == _line(lesson.read_text(), "tunables =")
    assert message.startswith("on lab-stock: governor cannot be 'fast'")
    assert message.endswith("userspace, conservative, powersave, ondemand, performance, schedutil")


def test_a_boot_chapter_needs_the_recording_that_was_booted_so(tmp_path: Path) -> None:
    folder = next(c.name for c in builtin_course().iterdir() if c.is_dir() and "reboot = true" in _toml(c))
    course = built_in_chapter(folder, tmp_path / "c")
    assert found(course) == []
    lesson = course / folder / "lesson.toml"
    lesson.write_text(lesson.read_text().replace('"lab-boot"', '"lab-stock"'))
    assert any("'ok' after the change; on lab-stock" in message for _, _, message in found(course))
    lesson.write_text(lesson.read_text().replace("reboot = true", "reboot = false"))
    assert any("write reboot = true" in message for _, _, message in found(course))


def _toml(folder: Path) -> str:
    lesson = folder / "lesson.toml"
    return lesson.read_text() if lesson.is_file() else ""


def damage_archive(place: Path) -> None:
    (place / "lab-stock.tar.xz").write_bytes(b"no archive at all")


def damage_empty(place: Path) -> None:
    (place / "lab-stock").mkdir()


def damage_link(place: Path) -> None:
    (place / "lab-stock").symlink_to("/")


def damage_archive_link(place: Path) -> None:
    outside = place.parent.parent / "outside.tar.xz"
    shutil.copyfile(REPOSITORY / "assets" / "recordings" / "lab-stock.tar.xz", outside)
    (place / "lab-stock.tar.xz").symlink_to(outside)


DAMAGES = [
    (damage_archive, "it is not a complete tar archive"),
    (damage_empty, "it has no CPU data that this tool can read"),
    (damage_link, "lies outside the course's folder"),
    (damage_archive_link, "lies outside the course's folder"),
]


@pytest.mark.parametrize(("damage", "what"), DAMAGES)
def test_a_recording_of_the_course_is_read_before_the_built_in_one(
    tmp_path: Path, damage: Callable[[Path], None], what: str
) -> None:
    course = built_in_chapter("02-governor", tmp_path / "c")
    (course / "recordings").mkdir()
    damage(course / "recordings")
    line = _line((course / "02-governor" / "lesson.toml").read_text(), "recording =")
    told = found(course)
    assert [(file, number) for file, number, _ in told] == [("02-governor/lesson.toml", line)]
    assert what in told[0][2]


@pytest.mark.parametrize(("damage", "what"), DAMAGES)
def test_a_chapter_whose_recording_cannot_be_shown_says_so_where_it_is_listed(
    tmp_path: Path, damage: Callable[[Path], None], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a host that lacks it, or a recorded one: there the chapter would be taught on it."""
    course = built_in_chapter("02-governor", tmp_path / "c")
    host = folder_of("lab-tuned")

    def listed() -> str:
        assert main(["lessons", "list", "--json", "--course", str(course), "--root", str(host)]) == 0
        (chapter,) = json.loads(capsys.readouterr().out)["chapters"]
        assert chapter["here"] == "recorded"
        return str(chapter["reason"])

    whole = listed()
    assert "recording" not in whole
    (course / "recordings").mkdir()
    damage(course / "recordings")
    broken = listed()
    assert broken.startswith("the recording ")
    assert what in broken
    assert broken.endswith(f"; {whole}")
    assert take_tour(course_dir=course, root=host).next_entry is None, "Enter does not lead to what cannot be shown"
    assert main(["lessons", "list", "--course", str(course), "--root", str(host)]) == 0
    assert what in capsys.readouterr().out


def test_a_recording_may_be_a_folder_of_the_course(tmp_path: Path) -> None:
    course = built_in_chapter("02-governor", tmp_path / "c")
    for name in ("lab-stock", "lab-tuned"):
        shutil.copytree(folder_of(name), course / "recordings" / f"{name}-copy")
    lesson = course / "02-governor" / "lesson.toml"
    lesson.write_text(re.sub(r'"(lab-\w+)"', r'"\1-copy"', lesson.read_text()))
    assert found(course) == []
    governor = next((course / "recordings" / "lab-tuned-copy").glob("sys/**/scaling_governor"))
    for path in governor.parent.parent.glob("*/scaling_governor"):
        path.write_text("powersave\n")
    told = found(course)
    assert len(told) == 1
    assert "governor must be 'ok' after" in told[0][2]
    assert "on lab-tuned-copy it is still" in told[0][2]


@pytest.mark.parametrize(("before", "after"), [("lab-stock", "lab-tuned"), ("lab-stock", "lab-boot")])
def test_every_tunable_is_judged_by_its_own_assessment(tmp_path: Path, before: str, after: str) -> None:
    """A check of it stands exactly where status says that it can be better before, and after that it cannot."""
    ids = [tunable.id for tunable in registry.tunables()]
    course = tmp_path / "c"
    at_most = 20
    chunks = [ids[n : n + at_most] for n in range(0, len(ids), at_most)]
    for number, some in enumerate(chunks):
        lesson = course / f"c{number}" / "lesson.toml"
        lesson.parent.mkdir(parents=True)
        checks = "".join(f'[[check]]\nmark = "setting"\ntunable = "{ident}"\n' for ident in some)
        lesson.write_text(
            f'format_version = 1\nid = "c{number}"\ntitle = "C"\nsummary = "c"\nminutes = 1\nhot_cpus = 1\n'
            f'changes = "tunables"\nsteps = ["look", "plan", "apply"]\ntunables = {json.dumps(some)}\n'
            f'recording = "{before}"\nrecording_after = "{after}"\n{checks}'
        )
        (lesson.parent / "lesson.md").write_text("## look\n\nSource: x\n## plan\n\nSource: x\n## apply\n\nAgree.\n")
    folders = json.dumps([f"c{number}" for number in range(len(chunks))])
    (course / "course.toml").write_text(f'format_version = 1\nid = "c"\ntitle = "C"\nchapters = {folders}\n')
    told = [(file, line) for file, line, message in found(course) if "reboot = true" not in message]
    refused = {(course / file).read_text().split("\n")[line - 1].split('"')[1] for file, line in told}
    states = [{c.id: c.state for c in read_checks(folder_of(name), [], None).checks} for name in (before, after)]
    stands = {i for i in ids if states[0][i] == "improve" and states[1][i] not in ("improve", "unavailable")}
    assert refused == set(ids) - stands
    assert stands


def test_one_chapter_with_a_mistake_does_not_hide_those_of_the_others(tmp_path: Path) -> None:
    course = built_in_chapter("02-governor", tmp_path / "c")
    assert lessons("new", "second", "--course", course)[0] == 0
    first, second = (course / name / "lesson.toml" for name in ("02-governor", "03-second"))
    first.write_text(first.read_text().replace('"lab-tuned"', '"lab-stock"'))
    second.write_text(second.read_text().replace("minutes = 4", "minutes = 0"))
    code, out, _ = lessons("check", "--course", course)
    assert code == 1
    assert re.search(r"^03-second/lesson.toml:\d+: minutes must be", out, re.MULTILINE)
    assert re.search(r"^02-governor/lesson.toml:\d+: governor must be 'ok'", out, re.MULTILINE)


@pytest.mark.parametrize("stated", [1, 60])
def test_minutes_far_from_the_computed_ones_are_a_mistake(tmp_path: Path, stated: int) -> None:
    course = built_in_chapter("02-governor", tmp_path / "c")
    lesson = course / "02-governor" / "lesson.toml"
    chapter = load_course(course).chapters[0]
    lesson.write_text(lesson.read_text().replace(f"minutes = {chapter.minutes}\n", f"minutes = {stated}\n"))
    [(file, line, message)] = found(course)
    assert (file, lesson.read_text().splitlines()[line - 1]) == ("02-governor/lesson.toml", f"minutes = {stated}")
    assert f"write minutes = {round(chapter_minutes(chapter))}" in message


def test_a_slow_step_is_a_mistake_in_the_built_in_course_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lessoncheck, "LONGEST_STEP_S", 20.0)
    slow = [problem.message for problem in lessoncheck.check_course(None).problems]
    assert any("'explain'" in message for message in slow)
    assert found(built_in_chapter("02-governor", tmp_path / "c")) == []


def test_a_draft_is_named_and_not_checked(tmp_path: Path) -> None:
    course = tmp_path / "c"
    assert lessons("new", "one", "--course", course)[0] == 0
    for name in ("draft", ".hidden"):
        (course / name).mkdir()
        (course / name / "lesson.toml").write_text("nothing")
    code, out, err = lessons("check", "--course", course)
    assert (code, err) == (0, "")
    counted, left_out = out.splitlines()
    assert counted == "1 chapter, no mistakes"
    assert left_out.startswith("not checked, ")
    assert left_out.endswith(": draft")


@pytest.mark.parametrize(
    ("tunables", "stock", "tuned"),
    [
        (("stat-interval",), ("available", {"stat-interval": False}), ("good", {"stat-interval": True})),
        (("stat-interval=10",), ("available", {"stat-interval": False}), ("good", {"stat-interval": True})),
        (("stat-interval=1",), ("good", {"stat-interval": True}), ("available", {"stat-interval": False})),
        (("thp=never",), ("available", {"thp": False}), ("available", {"thp": False})),
        (("timer-migration=0",), ("available", {"timer-migration": False}), ("available", {"timer-migration": False})),
        (("boost=off",), ("not_here", {}), ("not_here", {})),
        (("governor=fast",), ("not_here", {}), ("not_here", {})),
        (("boost=off", "ksm"), ("good", {"ksm": True}), ("good", {"ksm": True})),
    ],
)
def test_a_value_that_is_asked_for_is_settled_once_it_stands(
    tunables: tuple[str, ...], stock: tuple[str, dict[str, bool]], tuned: tuple[str, dict[str, bool]]
) -> None:
    """The lesson asks for its own value, even if the tunable itself finds another one better."""
    chapter = dataclasses.replace(load_course().chapters[0], changes="tunables", tunables=tunables)
    for name, (state, settled) in (("lab-stock", stock), ("lab-tuned", tuned)):
        seen = look_at_settings(HostRoot(folder_of(name)), chapter)
        assert (seen.state, seen.settled()) == (state, settled), name
        assert bool(seen.reason) == (state == "not_here")


@pytest.mark.parametrize(("word", "settled"), [("stat-interval=5", False), ("stat-interval=10", True)])
def test_a_setting_counts_as_settled_if_the_recording_shows_the_wanted_value(
    tmp_path: Path, word: str, settled: bool
) -> None:
    follow(tmp_path)
    lesson = tmp_path / "my-course" / "01-statistics" / "lesson.toml"
    lesson.write_text(lesson.read_text().replace('["stat-interval"]', f'["{word}"]'))
    workshop = Workshop.open(course_dir=tmp_path / "my-course", root=folder_of("lab-stock"))
    walk = workshop.walk("statistics")
    assert walk.host.rehearsed
    assert [(c.before, c.after, c.settled) for c in walk.host.compared()] == [("1", "10", settled)]
    workshop.close()


def test_a_workshop_with_a_tunable_that_there_is_not_says_which_chapter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = built_in_chapter("02-governor", tmp_path / "c")
    lesson = course / "02-governor" / "lesson.toml"
    lesson.write_text(
        lesson.read_text().replace('"governor"', '"govenor"').replace('id = "govenor"', 'id = "governor"')
    )
    for typed in (["lessons", "list"], ["--plain"]):
        assert main([*typed, "--course", str(course)]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert "the chapter 'governor': " in captured.err
        assert "no tunable 'govenor'" in captured.err
        assert "did you mean 'governor'?" in captured.err
        assert "lessons check" in captured.err
