"""``lessons check``, ``new`` and ``list`` as they are typed, and docs/writing-lessons.md followed to the letter."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import stat
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop import paths
from jitter_workshop.cli import main
from jitter_workshop.course.lesson import ID_PATTERN
from jitter_workshop.course.listing import with_chapter
from jitter_workshop.course.loader import load_course
from jitter_workshop.course.locate import builtin_course
from jitter_workshop.flow.settings import look_at_settings
from jitter_workshop.flow.workshop import Workshop
from jitter_workshop.host.packed import unpacked
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model import course as words
from jitter_workshop.model.spec import DUTIES, PRESETS
from jitter_workshop.tuning import registry

Capture = pytest.CaptureFixture[str]
Lessons = Callable[..., tuple[int, str, str]]
REPOSITORY = Path(__file__).parents[2]
DOCUMENT = (REPOSITORY / "docs" / "writing-lessons.md").read_text(encoding="utf-8")


@pytest.fixture
def lessons(capsys: Capture) -> Lessons:
    def asked(*typed: object) -> tuple[int, str, str]:
        code = main(["lessons", *map(str, typed)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return asked


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _one_cache(cache: Path, monkeypatch: pytest.MonkeyPatch, _own_home: None) -> None:
    """Recordings are unpacked once for this file."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


def folder_of(recording: str) -> Path:
    """Where a recording that comes with the project is unpacked."""
    return unpacked(REPOSITORY / "assets" / "recordings" / f"{recording}.tar.xz", paths.cache_dir() / "recordings")


def built_in_chapter(folder: str, into: Path) -> Path:
    """A course with one of the built-in chapters, to be spoilt."""
    into.mkdir()
    shutil.copytree(builtin_course() / folder, into / folder)
    (into / "course.toml").write_text(f'format_version = 1\nid = "c"\ntitle = "C"\nchapters = ["{folder}"]\n')
    return into


def found(lessons: Lessons, course: Path) -> list[tuple[str, int, str]]:
    code, out, err = lessons("check", "--course", course, "--json")
    assert err == ""
    said = json.loads(out)
    assert said["format_version"] == 1
    assert code == (1 if said["problems"] else 0)
    return [(p["file"], p["line"], p["message"]) for p in said["problems"]]


# check ------------------------------------------------------------------------------------------------------------


def test_the_built_in_course_is_proved(lessons: Lessons) -> None:
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
    ('"min-frequency"', '"min-frequency=5", "ksm=9"', "tunables =", "ksm cannot be|ksm takes no value"),
    ('["governor"', '["governor=fast"', "tunables =", "governor cannot be 'fast' here"),
    ('"lab-stock"', '"lab-stok"', "recording =", "lab-stok: there is no recording 'lab-stok'"),
    ('"lab-stock"', '"lab-tuned"', 'tunable = "governor"', "must be to improve before the change; on lab-tuned it is"),
    ('"lab-tuned"', '"lab-stock"', 'tunable = "governor"', "must be good after the change; on lab-stock it is still"),
    ('tunable = "governor"', 'tunable = "epp"', 'tunable = "epp"', "epp cannot be checked: neither lab-stock nor"),
    ('changes = "tunables"', 'changes = "tunables"\nreboot = true', "reboot =", "none of the chapter's tunables is"),
    ('slot = "again"\nplacement = "auto"', 'slot = "again"\nplacement = "none"', 'placement = "none"', "never be"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "at", "what"), SPOILT)
def test_what_a_recording_contradicts_is_a_mistake_with_its_line(
    tmp_path: Path, lessons: Lessons, old: str, new: str, at: str, what: str
) -> None:
    course = built_in_chapter("02-governor", tmp_path / "c")
    lesson = course / "02-governor" / "lesson.toml"
    text = lesson.read_text()
    assert found(lessons, course) == []
    before, here, after = text.partition(old)
    assert here
    spoilt = before + new + after
    lesson.write_text(spoilt)
    line = _line(spoilt, at)
    told = found(lessons, course)
    assert any(
        file == "02-governor/lesson.toml" and number == line and re.search(what, message)
        for file, number, message in told
    ), (line, told)


def _line(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.split("\n"), start=1) if line.startswith(part))


@pytest.mark.parametrize(
    ("tunables", "checked", "what"),
    [
        ('["stat-interval=10"]', "stat-interval", ""),
        ('["stat-interval=1"]', "stat-interval", "on lab-stock nothing is to be written for stat-interval=1"),
        ('["stat-interval=20"]', "stat-interval", "on lab-tuned 1 writes would be needed for stat-interval=20"),
        ('["thp=madvise"]', "thp", ""),
        ('["boost=off"]', "boost", "boost cannot be checked: neither lab-stock nor lab-tuned has it"),
        ('["timer-migration"]', "timer-migration", "on lab-stock there is nothing to do: 1"),
        ('["isolcpus"]', "isolcpus", "say reboot = true"),
        ('["swap"]', "swap", "must be to improve before the change; on lab-stock it is good already: none"),
    ],
)
def test_a_value_is_proved_by_what_would_be_written(
    tmp_path: Path, lessons: Lessons, tunables: str, checked: str, what: str
) -> None:
    course = tmp_path / "c"
    assert lessons("new", "mine", "--course", course)[0] == 0
    lesson = course / "01-mine" / "lesson.toml"
    text = lesson.read_text().replace('changes = "placement"', 'changes = "tunables"').replace(
        'mark = "setting"\nslot = "again"\nplacement = "auto"', f'mark = "setting"\ntunable = "{checked}"'
    )  # fmt: skip
    named = f'tunables = {tunables}\nrecording = "lab-stock"\nrecording_after = "lab-tuned"\n'
    lesson.write_text(text.replace('title = "Mine"', f'title = "Mine"\n{named}'))
    told = found(lessons, course)
    if what:
        assert any(what in message for _, _, message in told), told
        assert {file for file, _, _ in told} == {"01-mine/lesson.toml"}
    else:
        assert told == []


def test_a_boot_chapter_needs_the_recording_that_was_booted_so(tmp_path: Path, lessons: Lessons) -> None:
    folder = next(c.name for c in builtin_course().iterdir() if c.is_dir() and "reboot = true" in _toml(c))
    course = built_in_chapter(folder, tmp_path / "c")
    assert found(lessons, course) == []
    lesson = course / folder / "lesson.toml"
    lesson.write_text(lesson.read_text().replace('"lab-boot"', '"lab-stock"'))
    assert any("must be good after the change; on lab-stock" in message for _, _, message in found(lessons, course))
    lesson.write_text(lesson.read_text().replace("reboot = true", "reboot = false"))
    assert any("say reboot = true" in message for _, _, message in found(lessons, course))


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


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (damage_archive, "it is no whole tar archive"),
        (damage_empty, "no CPU of it can be read"),
        (damage_link, "lies outside the course's folder"),
        (damage_archive_link, "lies outside the course's folder"),
    ],
)
def test_a_recording_of_the_course_is_read_before_the_built_in_one(
    tmp_path: Path, lessons: Lessons, damage: Callable[[Path], None], what: str
) -> None:
    course = built_in_chapter("02-governor", tmp_path / "c")
    (course / "recordings").mkdir()
    damage(course / "recordings")
    line = _line((course / "02-governor" / "lesson.toml").read_text(), "recording =")
    told = found(lessons, course)
    assert [(file, number) for file, number, _ in told] == [("02-governor/lesson.toml", line)]
    assert what in told[0][2]


def test_a_recording_may_be_a_folder_of_the_course(tmp_path: Path, lessons: Lessons) -> None:
    course = built_in_chapter("02-governor", tmp_path / "c")
    for name in ("lab-stock", "lab-tuned"):
        shutil.copytree(folder_of(name), course / "recordings" / f"{name}-copy")
    lesson = course / "02-governor" / "lesson.toml"
    lesson.write_text(re.sub(r'"(lab-\w+)"', r'"\1-copy"', lesson.read_text()))
    assert found(lessons, course) == []
    governor = next((course / "recordings" / "lab-tuned-copy").glob("sys/**/scaling_governor"))
    for path in governor.parent.parent.glob("*/scaling_governor"):
        path.write_text("powersave\n")
    told = found(lessons, course)
    assert len(told) == 1
    assert "governor must be good after the change; on lab-tuned-copy it is still to improve" in told[0][2]


def test_one_chapter_with_a_mistake_does_not_hide_those_of_the_others(tmp_path: Path, lessons: Lessons) -> None:
    course = built_in_chapter("02-governor", tmp_path / "c")
    assert lessons("new", "second", "--course", course)[0] == 0
    first, second = (course / name / "lesson.toml" for name in ("02-governor", "03-second"))
    first.write_text(first.read_text().replace('"lab-tuned"', '"lab-stock"'))
    second.write_text(second.read_text().replace("minutes = 5", "minutes = 0"))
    code, out, _ = lessons("check", "--course", course)
    assert code == 1
    assert re.search(r"^03-second/lesson.toml:\d+: minutes must be", out, re.MULTILINE)
    assert re.search(r"^02-governor/lesson.toml:\d+: governor must be good", out, re.MULTILINE)


def test_a_draft_is_named_and_not_checked(tmp_path: Path, lessons: Lessons) -> None:
    course = tmp_path / "c"
    assert lessons("new", "one", "--course", course)[0] == 0
    for name in ("draft", ".hidden"):
        (course / name).mkdir()
        (course / name / "lesson.toml").write_text("nothing")
    assert lessons("check", "--course", course) == (
        0,
        "1 chapter, no mistakes\nnot checked, because course.toml does not list it: draft\n",
        "",
    )


# new --------------------------------------------------------------------------------------------------------------


def test_new_chapters_work_as_they_stand(tmp_path: Path, lessons: Lessons) -> None:
    course = tmp_path / "deep" / "My Course"
    for number, ident in enumerate(("first", "huge-pages", "z"), start=1):
        code, out, _ = lessons("new", ident, "--course", course, "--json")
        made = json.loads(out)
        assert (code, made["folder"], made["listed"]) == (0, f"0{number}-{ident}", True)
        assert made["new_course"] == (number == 1)
        assert found(lessons, course) == []
    loaded = load_course(course)
    assert [chapter.id for chapter in loaded.chapters] == ["first", "huge-pages", "z"]
    assert [chapter.title for chapter in loaded.chapters] == ["First", "Huge pages", "Z"]
    assert {len(chapter.steps) for chapter in loaded.chapters} == {len(words.STEPS)}
    assert loaded.id == "my-course", "a folder's name that is no id is not taken for one"
    assert not list(course.glob(".new-*"))


@pytest.mark.parametrize("ident", ["a", "abc-1", "x" * 40])
def test_any_id_makes_a_chapter(tmp_path: Path, lessons: Lessons, ident: str) -> None:
    assert lessons("new", ident, "--course", tmp_path / "c")[0] == 0
    assert found(lessons, tmp_path / "c") == []


@pytest.mark.parametrize("ident", ["", "One", "1st", "../x", "a b", "a/b", "-x", "x" * 41, "a\x1b[2J"])
def test_what_is_no_id_makes_nothing(tmp_path: Path, lessons: Lessons, ident: str) -> None:
    code, out, err = lessons("new", "--course", tmp_path / "c", "--", ident)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "\x1b" not in err
    assert not (tmp_path / "c").exists()


def test_nothing_is_overwritten(tmp_path: Path, lessons: Lessons) -> None:
    course = tmp_path / "c"
    assert lessons("new", "one", "--course", course)[0] == 0
    lesson = course / "01-one" / "lesson.toml"
    lesson.write_text(lesson.read_text().replace('id = "one"', 'id = "other"'))
    kept = {path: path.read_bytes() for path in course.rglob("*") if path.is_file()}
    for ident in ("one", "other"):
        code, out, err = lessons("new", ident, "--course", course)
        assert (code, out) == (2, "")
        assert f"has a chapter '{ident}' already, in 01-one" in err
    assert {path: path.read_bytes() for path in course.rglob("*") if path.is_file()} == kept
    (course / "07-left").mkdir()
    assert json.loads(lessons("new", "two", "--course", course, "--json")[1])["folder"] == "08-two"


@pytest.mark.parametrize(
    "text",
    [
        "this is no TOML = [",
        'format_version = 1\nid = "c"\ntitle = "C"\n',
        'format_version = 1\nid = "c"\ntitle = "C"\nchapters = "none"\n',
        "\xff",
    ],
)
def test_a_course_file_that_is_not_understood_is_left_alone(tmp_path: Path, lessons: Lessons, text: str) -> None:
    top = tmp_path / "course.toml"
    top.write_bytes(text.encode("latin-1"))
    code, out, _ = lessons("new", "one", "--course", tmp_path)
    assert code == 0
    assert 'course.toml is left alone: add "01-one" to its chapters' in out
    assert top.read_bytes() == text.encode("latin-1")
    assert (tmp_path / "01-one" / "lesson.md").is_file()


def test_a_link_to_a_course_file_is_not_followed(tmp_path: Path, lessons: Lessons) -> None:
    course = tmp_path / "c"
    assert lessons("new", "one", "--course", course)[0] == 0
    away = (course / "course.toml").rename(tmp_path / "away.toml")
    (course / "course.toml").symlink_to(away)
    before = away.read_bytes()
    assert "is left alone" in lessons("new", "two", "--course", course)[1]
    assert away.read_bytes() == before


def test_the_rights_of_a_course_file_stay(tmp_path: Path, lessons: Lessons) -> None:
    assert lessons("new", "one", "--course", tmp_path / "c")[0] == 0
    top = tmp_path / "c" / "course.toml"
    top.chmod(0o640)
    assert lessons("new", "two", "--course", tmp_path / "c")[0] == 0
    assert stat.S_IMODE(top.stat().st_mode) == 0o640


def test_where_nothing_can_be_made(tmp_path: Path, lessons: Lessons) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        code, out, err = lessons("new", "one", "--course", place)
        assert (code, out) == (2, "")
        assert "cannot make the folder" in err
    assert (tmp_path / "file").read_text() == "x"
    for typed, sentence in ((("new",), "which chapter?"), (("new", "one"), "in which course?")):
        code, out, err = lessons(*typed)
        assert (code, out) == (2, "")
        assert sentence in err


LISTS = [
    ("chapters = []\n", 'chapters = ["new"]\n'),
    ('chapters = ["a"]\n', 'chapters = ["a", "new"]\n'),
    ("chapters = ['a', ]  # b\n", "chapters = ['a', \"new\", ]  # b\n"),
    ('chapters = [\n    "a",\n]\n', 'chapters = [\n    "a",\n    "new",\n]\n'),
    ('chapters = [\n  "a"\n]\n', 'chapters = [\n  "a",\n  "new"\n]\n'),
    ('chapters = [\n  "a",  # of "a" ]\n]\n', 'chapters = [\n  "a",  # of "a" ]\n  "new",\n]\n'),
    ('chapters = [\n  "a"  # last\n]\n', 'chapters = [\n  "a",  # last\n  "new"\n]\n'),
    ('chapters = [\r\n  "a",\r\n]\r\n', 'chapters = [\r\n  "a",\r\n  "new",\r\n]\r\n'),
    ('chapters = [ # none yet\n]\nx = "]"\n', 'chapters = ["new", # none yet\n]\nx = "]"\n'),
    ('chapters = ["a]b", "c#d"]\n', 'chapters = ["a]b", "c#d", "new"]\n'),
]


@pytest.mark.parametrize(("text", "changed"), LISTS)
def test_a_name_is_added_to_a_list(text: str, changed: str) -> None:
    assert with_chapter(text, "new") == changed
    assert tomllib.loads(changed)["chapters"][-1] == "new"


@pytest.mark.parametrize(
    "text",
    [
        'chapters = ["new"]\n',
        'title = """\nchapters = ["x"]\n"""\nchapters = ["a"]\n',
        '"chapters" = ["a"]\n',
        "chapters = {}\n",
        "[course]\nchapters = []\n",
        "chapters = [",
        "",
    ],
)
def test_what_cannot_be_added_safely_is_not(text: str) -> None:
    assert with_chapter(text, "new") is None


NAMES = st.lists(st.text("ab#]\"'\\, é", max_size=6), max_size=5)


@given(NAMES, st.sampled_from([", ", ",\n  ", " ,  # it's \"]\n\t", "\n,\n"]), st.booleans(), st.booleans())
def test_adding_changes_the_list_and_nothing_else(names: list[str], between: str, broken: bool, comma: bool) -> None:
    quoted = [json.dumps(name, ensure_ascii=False) for name in names]
    edge = "\n" if broken else ""
    text = f'a = 1\nchapters = [{edge}{between.join(quoted)}{"," if comma and names else ""}{edge}] # end\nb = "x"\n'
    changed = with_chapter(text, "new")
    assert changed is not None
    assert tomllib.loads(changed) == {"a": 1, "chapters": [*names, "new"], "b": "x"}
    assert changed.startswith("a = 1\nchapters = [")
    assert changed.endswith('] # end\nb = "x"\n')


@given(st.text(max_size=80))
def test_any_text_is_survived(text: str) -> None:
    for given_text in (text, f"chapters = [{text}"):
        changed = with_chapter(given_text, "new")
        assert changed is None or tomllib.loads(changed)["chapters"][-1] == "new"


# list -------------------------------------------------------------------------------------------------------------


def test_the_list_keeps_its_contract(lessons: Lessons, host_tree: Callable[[str], Path]) -> None:
    code, out, _ = lessons("list", "--json", "--root", host_tree("guest"))
    listed: list[dict[str, Any]] = json.loads(out)["chapters"]
    assert code == 0
    chapters = {chapter.id: chapter for chapter in load_course().chapters}
    assert {line["id"] for line in listed} == set(chapters)
    for line in listed:
        assert {"id", "title", "minutes", "here", "setting", "curve"} <= set(line)
        assert isinstance(line["curve"], bool)
        assert (line["setting"] is None) == (chapters[line["id"]].changes == "nothing")
        assert ("setting" in line["notes"]) == (line["setting"] is None)
        assert line["here"] == "recorded", "a recorded host is measured nowhere"
        assert line["reason"]


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
    """Whatever the tunable itself thinks better: the lesson asks for its own value."""
    chapter = dataclasses.replace(load_course().chapters[0], changes="tunables", tunables=tunables)
    for name, (state, settled) in (("lab-stock", stock), ("lab-tuned", tuned)):
        seen = look_at_settings(HostRoot(folder_of(name)), chapter)
        assert (seen.state, seen.settled()) == (state, settled), name
        assert bool(seen.reason) == (state == "not_here")


@pytest.mark.parametrize(("word", "settled"), [("stat-interval=5", False), ("stat-interval=10", True)])
def test_what_a_recording_shows_as_settled_is_the_value_that_was_asked_for(
    tmp_path: Path, word: str, settled: bool
) -> None:
    follow(tmp_path)
    lesson = tmp_path / "my-course" / "01-statistics" / "lesson.toml"
    lesson.write_text(lesson.read_text().replace('["stat-interval"]', f'["{word}"]'))
    workshop = Workshop.open(course_dir=tmp_path / "my-course", root=folder_of("lab-stock"))
    walk = workshop.walk("statistics")
    assert walk.rehearsed
    assert [(c.before, c.after, c.settled) for c in walk.settings_compared()] == [("1", "10", settled)]
    workshop.close()


def test_a_workshop_with_a_tunable_that_there_is_not_says_which_chapter(
    tmp_path: Path, capsys: Capture, lessons: Lessons
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
        assert "the chapter 'governor': there is no tunable 'govenor'; did you mean 'governor'?" in captured.err
        assert "lessons check" in captured.err


# the document -----------------------------------------------------------------------------------------------------


def blocks(kind: str) -> list[tuple[str, str]]:
    """(what stands in backticks on the line before, text) of the document's code blocks."""
    found = re.findall(r"(?:^`([^`\n]+)`\n\n|^)```(\w*)\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    return [(name, text) for name, language, text in found if language == kind]


def commands() -> Iterator[list[str]]:
    for _, text in blocks(""):
        for line in text.splitlines():
            typed = line.partition("#")[0].split()
            if typed and typed[0] in ("jitter-workshop", "mkdir", "mv"):
                yield typed


def follow(folder: Path) -> None:
    """Make the files of the worked chapter, as the document has them."""
    made = [(name, text) for kind in ("toml", "markdown") for name, text in blocks(kind) if name]
    assert [name for name, _ in made] == [
        "my-course/course.toml", "my-course/01-statistics/lesson.toml", "my-course/01-statistics/lesson.md",
    ]  # fmt: skip
    for name, text in made:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_the_documents_chapter_works(tmp_path: Path, lessons: Lessons, capsys: Capture) -> None:
    follow(tmp_path)
    course = tmp_path / "my-course"
    assert lessons("check", "--course", course) == (0, "1 chapter, no mistakes\n", "")
    assert "`1 chapter, no mistakes`" in DOCUMENT
    code, out, _ = lessons("list", "--course", course)
    assert code == 0
    assert out.startswith("statistics  open    4 min  The statistics timer")
    assert main(["--plain", "--course", str(course)]) == 0
    assert "The statistics timer" in capsys.readouterr().out


def test_the_documents_commands_work(
    tmp_path: Path, lessons: Lessons, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In their order, in an empty folder; what would change this host stands for the recordings of the lab machine."""
    monkeypatch.chdir(tmp_path)
    host = folder_of("lab-stock")
    done = []
    for typed in commands():
        if typed[:3] == ["jitter-workshop", "record-host", "before"]:
            follow(tmp_path)
        if typed[0] == "mkdir":
            (tmp_path / typed[-1]).mkdir(parents=True, exist_ok=True)
        elif typed[0] == "mv":
            (tmp_path / typed[1]).rename(tmp_path / typed[2])
        elif typed[1] == "apply":
            host = folder_of("lab-tuned")
        elif typed[1] == "restore":
            host = folder_of("lab-stock")
        elif typed[1] == "record-host":
            assert main([*typed[1:], "--root", str(host)]) == 0
        elif typed[1] == "--course":
            assert main(["--plain", *typed[1:]]) == 0
        else:
            assert main(typed[1:]) == 0, typed
        done.append(typed[1])
    assert done == ["lessons", "lessons", "lessons", "--course", "--plain", "record-host", "apply", "record-host",
                    "restore", "-p", "before", "after"]  # fmt: skip
    lesson = tmp_path / "my-course" / "01-statistics" / "lesson.toml"
    named = next(text for name, text in blocks("toml") if not name)
    for line in named.splitlines():
        key = line.partition(" =")[0]
        lesson.write_text(re.sub(rf"^{key} = .*$", line, lesson.read_text(), flags=re.MULTILINE))
    assert 'recording_after = "desk-after"' in lesson.read_text()
    capsys.readouterr()
    assert found(lessons, tmp_path / "my-course") == []
    shutil.rmtree(tmp_path / "my-course" / "recordings" / "desk-after")
    assert "there is no recording 'desk-after'" in found(lessons, tmp_path / "my-course")[0][2]


def test_the_document_names_every_word_and_field() -> None:
    named = set(re.findall(r"`+\{?([^`{}]+?)\}?`+", DOCUMENT))
    for known in (
        words.STEPS,
        words.LOOK_TOPICS,
        words.EVIDENCE,
        words.PLACEHOLDERS,
        words.NOISE_KINDS,
        tuple(PRESETS),
    ):
        assert set(known) <= named, set(known) - named
    assert ", ".join(map(str, DUTIES[:-1])) + f" or {DUTIES[-1]}" in DOCUMENT
    source = (REPOSITORY / "jitter_workshop" / "course" / "lesson.py").read_text()
    fields = set(re.findall(r'(?:table|inner)\.\w+\(\s*"(\w+)"', source)) - {"measurement", "prediction", "answer"}
    assert len(fields) > 30
    missing = {field for field in fields if not re.search(rf"`[^`]*\b{field}\b[^`]*`", DOCUMENT)}
    assert not missing


def test_ids_of_tunables_can_be_named_by_lessons() -> None:
    assert all(ID_PATTERN.fullmatch(tunable.id) for tunable in registry.tunables())
