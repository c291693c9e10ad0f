"""``lessons new`` and ``list`` as they are typed, and docs/writing-lessons.md followed to the letter."""

from __future__ import annotations

import json
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.cli import main
from jitter_workshop.course.lesson import ID_PATTERN
from jitter_workshop.course.loader import load_course
from jitter_workshop.flow.chapters.recorded import recorded_runs
from jitter_workshop.model import course as words
from jitter_workshop.model.noise import NOISE_KINDS
from jitter_workshop.model.spec import DUTIES, PRESETS
from jitter_workshop.tuning.tunables import registry
from tests.lessonverbs import DOCUMENT, REPOSITORY, blocks, folder_of, follow, found, lessons

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _one_cache(cache: Path, monkeypatch: pytest.MonkeyPatch, _own_world: None) -> None:
    """Recordings are unpacked once for this file."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


# new --------------------------------------------------------------------------------------------------------------


def test_new_chapters_work_as_they_stand(tmp_path: Path) -> None:
    course = tmp_path / "deep" / "My Course"
    for number, ident in enumerate(("first", "huge-pages", "z"), start=1):
        code, out, _ = lessons("new", ident, "--course", course, "--json")
        made = json.loads(out)
        assert (code, made["folder"], made["listed"]) == (0, f"0{number}-{ident}", True)
        assert made["new_course"] == (number == 1)
        assert found(course) == []
    loaded = load_course(course)
    assert [chapter.id for chapter in loaded.chapters] == ["first", "huge-pages", "z"]
    assert [chapter.title for chapter in loaded.chapters] == ["First", "Huge pages", "Z"]
    assert {len(chapter.steps) for chapter in loaded.chapters} == {len(words.STEPS)}
    assert loaded.id == "my-course", "a folder's name that is no id is not taken for one"
    assert not list(course.glob(".new-*"))


@pytest.mark.parametrize("ident", ["a", "abc-1", "x" * 40])
def test_any_id_makes_a_chapter(tmp_path: Path, ident: str) -> None:
    assert lessons("new", ident, "--course", tmp_path / "c")[0] == 0
    assert found(tmp_path / "c") == []


@pytest.mark.parametrize("ident", ["", "One", "1st", "../x", "a b", "a/b", "-x", "x" * 41, "a\x1b[2J"])
def test_new_refuses_an_invalid_chapter_id_and_makes_no_folder(tmp_path: Path, ident: str) -> None:
    code, out, err = lessons("new", "--course", tmp_path / "c", "--", ident)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "\x1b" not in err
    assert not (tmp_path / "c").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
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
def test_a_course_file_that_is_not_understood_is_left_alone(tmp_path: Path, text: str) -> None:
    top = tmp_path / "course.toml"
    top.write_bytes(text.encode("latin-1"))
    code, out, _ = lessons("new", "one", "--course", tmp_path)
    assert code == 0
    assert 'course.toml was not changed: add "01-one"' in out
    assert top.read_bytes() == text.encode("latin-1")
    assert (tmp_path / "01-one" / "lesson.md").is_file()


def test_a_link_to_a_course_file_is_not_followed(tmp_path: Path) -> None:
    course = tmp_path / "c"
    assert lessons("new", "one", "--course", course)[0] == 0
    away = (course / "course.toml").rename(tmp_path / "away.toml")
    (course / "course.toml").symlink_to(away)
    before = away.read_bytes()
    assert "was not changed" in lessons("new", "two", "--course", course)[1]
    assert away.read_bytes() == before


@pytest.mark.parametrize("there", [True, False])
def test_a_link_to_a_courses_folder_is_not_followed(tmp_path: Path, there: bool) -> None:
    away = tmp_path / "away"
    if there:
        away.mkdir()
    (tmp_path / "c").symlink_to(away)
    code, out, err = lessons("new", "one", "--course", tmp_path / "c")
    assert (code, out) == (2, "")
    assert "is a link" in err
    assert list(away.glob("*")) == []
    assert away.exists() == there


def test_the_rights_of_a_course_file_stay(tmp_path: Path) -> None:
    assert lessons("new", "one", "--course", tmp_path / "c")[0] == 0
    top = tmp_path / "c" / "course.toml"
    top.chmod(0o640)
    assert lessons("new", "two", "--course", tmp_path / "c")[0] == 0
    assert stat.S_IMODE(top.stat().st_mode) == 0o640


def test_new_is_refused_where_no_folder_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        code, out, err = lessons("new", "one", "--course", place)
        assert (code, out) == (2, "")
        assert "cannot make the folder" in err
    assert (tmp_path / "file").read_text() == "x"
    for typed, sentence in (
        (("new",), "the new chapter needs an id"),
        (("new", "one"), "the new chapter needs a course"),
    ):
        code, out, err = lessons(*typed)
        assert (code, out) == (2, "")
        assert sentence in err


def test_the_recorded_runs_of_the_document_are_those_of_its_chapter(tmp_path: Path) -> None:
    follow(tmp_path)
    ((name, text),) = blocks("json")
    (tmp_path / name).write_text(text)
    assert found(tmp_path / "my-course") == []
    chapter = load_course(tmp_path / "my-course").chapters[0]
    curves, source = recorded_runs(chapter, str(tmp_path / "my-course"), "my-course")
    assert [curve.label for curve in curves] == [m.label for m in chapter.measurements]
    assert source.startswith("measured on 2026-03-14")


# list -------------------------------------------------------------------------------------------------------------


def test_the_list_keeps_its_contract(host_tree: Callable[[str], Path]) -> None:
    code, out, _ = lessons("list", "--json", "--root", host_tree("guest"))
    listed: list[dict[str, Any]] = json.loads(out)["chapters"]
    assert code == 0
    chapters = {chapter.id: chapter for chapter in load_course().chapters}
    assert {line["id"] for line in listed} == set(chapters)
    for line in listed:
        assert {"id", "title", "minutes", "here", "setting", "curve"} <= set(line)
        assert isinstance(line["curve"], bool)
        assert (line["setting"] is None) == (not chapters[line["id"]].sets)
        assert ("setting" in line["notes"]) == (line["setting"] is None)
        assert line["here"] == "recorded", "a recorded host is measured nowhere"
        assert line["reason"]


# the document -----------------------------------------------------------------------------------------------------


def commands() -> Iterator[list[str]]:
    for _, text in blocks(""):
        for line in text.splitlines():
            typed = line.partition("#")[0].split()
            if typed and typed[0] in ("jitter-workshop", "mkdir", "mv"):
                yield typed


def test_the_documents_chapter_works(tmp_path: Path, capsys: Capture) -> None:
    follow(tmp_path)
    course = tmp_path / "my-course"
    assert lessons("check", "--course", course) == (0, "1 chapter, no mistakes\n", "")
    assert "`1 chapter, no mistakes`" in DOCUMENT
    code, out, _ = lessons("list", "--course", course)
    assert code == 0
    assert out.startswith("statistics  open    4 min  The statistics timer")
    assert main(["--plain", "--course", str(course)]) == 0
    assert "The statistics timer" in capsys.readouterr().out


def test_the_documents_commands_work(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert found(tmp_path / "my-course") == []
    shutil.rmtree(tmp_path / "my-course" / "recordings" / "desk-after")
    assert "there is no recording 'desk-after'" in found(tmp_path / "my-course")[0][2]


def test_the_document_names_every_word_and_field() -> None:
    named = set(re.findall(r"`+\{?([^`{}]+?)\}?`+", DOCUMENT))
    for known in (
        words.STEPS,
        words.LOOK_TOPICS,
        words.EVIDENCE,
        words.PLACEHOLDERS,
        NOISE_KINDS,
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
