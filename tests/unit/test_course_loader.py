"""Courses: the built-in one, every kind of mistake with its file and line, and hostile files."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jitter_workshop.course.files import MAX_BYTES, Problems, SourceText
from jitter_workshop.course.lesson import read_pages
from jitter_workshop.course.loader import builtin_course, load_course, read_course
from jitter_workshop.course.table import parse_table
from jitter_workshop.errors import LessonError
from jitter_workshop.model.course import STEPS
from jitter_workshop.model.noise import NOISES

COURSE = """\
format_version = 1
id = "mine"
title = "My course"
chapters = ["one"]
"""

LESSON = """\
format_version = 1
id = "first"
title = "First"
summary = "What it is about."
minutes = 3
hot_cpus = 2
changes = "nothing"
steps = ["look", "measure"]
look = ["system"]
hints = ["Think."]

[[measurement]]
slot = "measure"
label = "base"
workload = "ring"
placement = "none"
preset = "quick"

[[by_hand]]
command = "perf stat -C {cpus}"
why = "to see"
"""

PAGES = "# First\n\n## look\n\nLook here.\n\n## measure\n\nMeasure this.\n"

PREDICTION = """\

[prediction]
kind = "mark"
question = "How long?"
slot = "measure"
percentile = "99.9"

[[prediction.answer]]
id = "short"
text = "short"
up_to_ns = 1000
explanation = "Because."

[[prediction.answer]]
id = "long"
text = "long"
explanation = "Because not."
"""


def course(folder: Path, lesson: str = LESSON, pages: str = PAGES, top: str = COURSE) -> Path:
    (folder / "one").mkdir(parents=True, exist_ok=True)
    (folder / "course.toml").write_text(top, encoding="utf-8")
    (folder / "one" / "lesson.toml").write_text(lesson, encoding="utf-8")
    (folder / "one" / "lesson.md").write_text(pages, encoding="utf-8")
    return folder


def sentences(folder: Path) -> list[str]:
    return [problem.sentence() for problem in read_course(folder).problems.found]


def test_a_small_course_loads(tmp_path: Path) -> None:
    chapter = load_course(course(tmp_path)).chapters[0]
    assert (chapter.id, chapter.steps, chapter.look) == ("first", ("look", "measure"), ("system",))
    assert chapter.pages == {"look": "Look here.", "measure": "Measure this."}
    measurement = chapter.measurement("measure")
    assert measurement is not None
    assert (measurement.workload, measurement.placement, measurement.noise) == ("ring", "none", None)


def test_the_built_in_course_has_no_mistakes_and_short_pages() -> None:
    assert read_course().problems.found == []
    loaded = load_course()
    assert [c.id for c in loaded.chapters][:4] == ["baseline", "governor", "migration", "pinning"]
    assert len(loaded.chapters) == 25
    for chapter in loaded.chapters:
        assert chapter.by_hand
        assert chapter.learnt
        # In a hunt the thief is what is guessed. A chapter without a run has nothing that could decide a guess.
        asks = chapter.prediction is not None or chapter.hunt
        assert asks is chapter.measures
        assert len(chapter.hints) in ((2, 3, 4) if asks else (0,))
        for step, page in chapter.pages.items():
            lines = page.split("\n")
            assert max(map(len, lines)) <= 76, (chapter.id, step)
            assert len(lines) <= 24, (chapter.id, step, len(lines))


def test_every_noise_is_company_a_hunts_secret_or_a_run_by_hand_of_a_chapter() -> None:
    met: set[str | None] = set()
    for chapter in load_course().chapters:
        loads = [chapter.company, chapter.company.if_fixed] if chapter.company else []
        met |= {*(one.noise for one in loads if one is not None), *chapter.suspects}
        met |= {one.noise for one in chapter.measurements}
        met |= {one.command.partition("--noise ")[2].partition(" ")[0] for one in chapter.by_hand}
    assert {one.id for one in NOISES} - met == set()


@pytest.mark.parametrize(
    ("chapter_id", "listed", "read"),
    [
        (
            "migration",
            "241      accumulator 26588 [000]",
            ["a count", "the thread's name", "its number", "in brackets"],
        ),
        ("isolation", "60 kworker/1:2", ["`java`", "`rngd`", "`rcu_sched`", "interrupt 39", "`/1`", "`swapper`"]),
    ],
)
def test_a_listing_of_the_original_tools_is_read_column_by_column(
    chapter_id: str, listed: str, read: list[str]
) -> None:
    chapter = load_course().chapter(chapter_id)
    assert chapter is not None
    _, listing, reading = chapter.pages["explain"].split("```")
    assert listed in listing
    assert [one for one in read if one not in " ".join(reading.split())] == []
    # The page says that the third command made the list.
    assert "sched_stat_runtime" in chapter.by_hand[2].command
    named = re.search(r"perf script -F (?:trace:)?(\S+)", chapter.by_hand[2].command)
    assert named is not None
    assert "comm" in named[1].split(","), "the list has the threads' names"


def test_services_that_are_stopped_by_hand_are_written_down_even_if_one_does_not_stop(tmp_path: Path) -> None:
    chapter = load_course().chapter("isolation")
    assert chapter is not None
    written = tmp_path / "stopped"
    (stop,) = (one.command for one in chapter.by_hand if "systemctl stop" in one.command)
    made_up = """sudo() { "$@"; }; systemctl() { case "$*" in *docker.socket | stop*) return 1;; esac; }; """
    script = made_up + stop.replace("/run/stopped-services", str(written))
    lines = ["# stopped by hand", "kubelet", "docker", "containerd"]
    for calls in (1, 2):
        ended = subprocess.run(["bash", "-c", script], check=False, capture_output=True, text=True, timeout=20)
        assert (ended.returncode, ended.stderr) == (1, "")
        assert written.read_text().splitlines() == lines * calls, "a second call keeps what the first one wrote"


def test_every_page_of_the_built_in_course_names_its_source() -> None:
    assert [
        (c.id, step) for c in load_course().chapters for step, page in c.pages.items() if "Source: " not in page
    ] == []


def test_the_levers_of_the_host_come_before_the_recipe_and_the_program_after_it() -> None:
    ids = [chapter.id for chapter in load_course().chapters]
    assert ids[-6:] == ["caches", "make-it-last", "own-part", "system-calls", "locks", "your-program"]
    folders = tomllib.loads((builtin_course() / "course.toml").read_text())["chapters"]
    assert folders == sorted(folders), "the folders' numbers are the order"


def test_no_source_of_a_page_is_code_of_this_project() -> None:
    sources = (
        (c.id, step, page.partition("Source: ")[2]) for c in load_course().chapters for step, page in c.pages.items()
    )
    assert not [(chapter, step) for chapter, step, told in sources if "jitter_workshop/" in told or "native/" in told]


def test_no_page_has_only_this_project_as_its_source() -> None:
    own = re.compile(r"docs/[\w.-]+(?:\s+\([^)]*\))?|computed in this course")
    pages = [
        (c.id, step, page.partition("Source: ")[2]) for c in load_course().chapters for step, page in c.pages.items()
    ]
    assert [(ident, step) for ident, step, source in pages if not own.sub("", source).strip(" ;,.\n")] == []


def test_the_first_chapter_compares_the_host_with_itself() -> None:
    chapter = load_course().chapters[0]
    first, second = chapter.measurement("measure"), chapter.measurement("again")
    assert first is not None
    assert second is not None
    assert (first.workload, first.placement, first.preset, first.noise) == (
        second.workload,
        second.placement,
        second.preset,
        second.noise,
    )
    assert "apply" not in chapter.steps


@pytest.mark.parametrize(
    ("old", "new", "where", "what"),
    [
        ("minutes = 3", "minutes = ", "one/lesson.toml:5:", "not TOML"),
        ("minutes = 3", 'minutes = "3"', "one/lesson.toml:5:", "whole number"),
        ("minutes = 3", "minutes = true", "one/lesson.toml:5:", "whole number"),
        ("minutes = 3", "minuets = 3", "one/lesson.toml:5:", "did you mean 'minutes'?"),
        ("format_version = 1", "format_version = 2", "one/lesson.toml:1:", "this workshop reads only 1"),
        ('title = "First"', 'title = ""', "one/lesson.toml:3:", "empty"),
        ('title = "First"', 'title = "a\\u001b[31m"', "one/lesson.toml:3:", "control"),
        ('title = "First"', f'title = "{"x" * 41}"', "one/lesson.toml:3:", "longer than 40"),
        ('id = "first"', 'id = "../x"', "one/lesson.toml:2:", "an id begins"),
        ('changes = "nothing"', 'changes = "placment"', "one/lesson.toml:7:", "did you mean 'placement'?"),
        ('steps = ["look", "measure"]', 'steps = ["look", "mesure"]', "one/lesson.toml:8:", "did you mean 'measure'?"),
        ('steps = ["look", "measure"]', 'steps = ["measure", "look"]', "one/lesson.toml:8:", "must be in this order"),
        ('steps = ["look", "measure"]', 'steps = ["look", "look"]', "one/lesson.toml:8:", "twice"),
        ('steps = ["look", "measure"]', "steps = []", "one/lesson.toml:8:", "steps is empty"),
        ('steps = ["look", "measure"]', 'steps = ["look", "predict", "measure"]', "one/lesson.toml:8:", "[prediction]"),
        ('steps = ["look", "measure"]', 'steps = ["look", "measure", "again"]', "one/lesson.toml:8:", "'again'"),
        ('look = ["system"]', 'look = ["sistem"]', "one/lesson.toml:9:", "did you mean 'system'?"),
        ('hints = ["Think."]', 'hints = "Think."', "one/lesson.toml:10:", "list of at most"),
        ('slot = "measure"', 'slot = "again"', "one/lesson.toml:13:", "not a step of this chapter"),
        ('workload = "ring"', 'workload = "rnig"', "one/lesson.toml:15:", "did you mean 'ring'?"),
        ('preset = "quick"', 'preset = "quik"', "one/lesson.toml:17:", "did you mean 'quick'?"),
        ('preset = "quick"', 'preset = "quick"\nnoise = "spiners"', "one/lesson.toml:18:", "did you mean 'spinners'?"),
        ("{cpus}", "{cpuss}", "one/lesson.toml:20:", "did you mean 'cpus'?"),
        ("-C {cpus}", "$1=={cpus}", "one/lesson.toml:20:", "use {cpu} here"),
        ("-C {cpus}", "-C '{cpus}'", "one/lesson.toml:20:", "use {cpu} here"),
        ('command = "perf stat -C {cpus}"', "command = 3", "one/lesson.toml:20:", "text in quotes"),
        ('why = "to see"', "", "one/lesson.toml:19:", "why is missing"),
        ("[[by_hand]]", "[by_hand]", "one/lesson.toml:19:", "of the form [[by_hand]]"),
    ],
)
def test_a_mistake_in_a_lesson_names_its_line(tmp_path: Path, old: str, new: str, where: str, what: str) -> None:
    assert LESSON.count(old) >= 1
    found = sentences(course(tmp_path, lesson=LESSON.replace(old, new, 1)))
    assert any(s.startswith(where) and what in s for s in found), found
    with pytest.raises(LessonError) as caught:
        load_course(tmp_path)
    assert caught.value.message == found[0]


@pytest.mark.parametrize(
    ("pages", "where", "what"),
    [
        (PAGES.replace("## look", "## lok"), "one/lesson.md:3:", "did you mean 'look'?"),
        (PAGES.replace("## measure", "## look"), "one/lesson.md:7:", "the first is on line 3"),
        (PAGES.replace("## measure\n\nMeasure this.\n", ""), "one/lesson.md:1:", "'measure' is missing"),
        (PAGES.replace("Measure this.", ""), "one/lesson.md:7:", "missing or empty"),
        (PAGES + "\n## explain\n\nmore\n", "one/lesson.md:11:", "not a step of this chapter"),
        (PAGES.replace("Look here.", "[a](file:///etc)"), "one/lesson.md:5:", "https://"),
        (PAGES.replace("Look here.", "[a](javascript:x)"), "one/lesson.md:5:", "https://"),
        (PAGES.replace("Look here.", "[a]: ftp://x"), "one/lesson.md:5:", "https://"),
        (PAGES.replace("Look here.", "![a](https://x/y.png)"), "one/lesson.md:5:", "picture"),
        (PAGES.replace("Look here.", "<script>x</script>"), "one/lesson.md:5:", "HTML"),
        (PAGES.replace("Look here.", "a\x1b[2Jb"), "one/lesson.md:5:", "U+001B"),
        (PAGES.replace("Look here.", "a\u202eb"), "one/lesson.md:5:", "U+202E"),
        (PAGES.replace("Look here.", "```\nopen"), "one/lesson.md:5:", "no closing ```"),
        (PAGES.replace("Look here.", "x\n" * 61), "one/lesson.md:3:", "longer than 60 lines"),
        ("stray\n" + PAGES, "one/lesson.md:1:", "before the first page"),
    ],
)
def test_a_mistake_in_the_pages_names_its_line(tmp_path: Path, pages: str, where: str, what: str) -> None:
    found = sentences(course(tmp_path, pages=pages))
    assert any(s.startswith(where) and what in s for s in found), found


def test_markup_inside_code_is_accepted_as_text(tmp_path: Path) -> None:
    pages = PAGES.replace(
        "Look here.", "Use `a <b> ![c]` or\n\n```\n## look\n<html>\n```\n\nhttps: <https://kernel.org/x>"
    )
    assert sentences(course(tmp_path, pages=pages)) == []


@pytest.mark.parametrize("scheme", ["https://", "http://"])
def test_a_link_may_begin_as_the_document_says(tmp_path: Path, scheme: str) -> None:
    pages = PAGES.replace("Look here.", f"See [it]({scheme}kernel.org/x).")
    assert sentences(course(tmp_path, pages=pages)) == []
    said = (Path(__file__).parents[2] / "docs" / "writing-lessons.md").read_text(encoding="utf-8")
    assert f"`{scheme}`" in next(line for line in said.split("\n") if "A link begins with" in line)


@pytest.mark.parametrize(
    ("top", "what"),
    [
        (COURSE.replace('["one"]', '["../one"]'), "plain name"),
        (COURSE.replace('["one"]', '["/etc"]'), "plain name"),
        (COURSE.replace('["one"]', '[".."]'), "plain name"),
        (COURSE.replace('["one"]', '["one", "one"]'), "twice"),
        (COURSE.replace('["one"]', "[]"), "at least one folder"),
        (COURSE.replace('chapters = ["one"]', ""), "at least one folder"),
    ],
)
def test_chapters_are_plain_folders_of_the_course(tmp_path: Path, top: str, what: str) -> None:
    found = sentences(course(tmp_path, top=top))
    assert any(s.startswith("course.toml:") and what in s for s in found), found


def test_two_chapters_with_one_id(tmp_path: Path) -> None:
    course(tmp_path, top=COURSE.replace('["one"]', '["one", "two"]'))
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    (said,) = sentences(tmp_path)
    assert said.startswith("two/lesson.toml:2: ")
    assert said.endswith("another chapter already has the id 'first'")


@pytest.mark.parametrize("order", [("1000", "1000"), ("5000", "1000")])
def test_the_ranges_of_a_mark_must_grow(tmp_path: Path, order: tuple[str, str]) -> None:
    lesson = LESSON.replace('["look", "measure"]', '["look", "predict", "measure"]')
    pages = PAGES.replace("## measure", "## predict\n\nGuess.\n\n## measure")
    assert sentences(course(tmp_path, lesson=lesson + PREDICTION, pages=pages)) == []
    extra = PREDICTION.replace("up_to_ns = 1000", f"up_to_ns = {order[0]}").replace(
        '[[prediction.answer]]\nid = "long"',
        f'[[prediction.answer]]\nid = "middle"\ntext = "m"\nup_to_ns = {order[1]}\nexplanation = "e"\n\n'
        '[[prediction.answer]]\nid = "long"',
    )
    assert any("a larger up_to_ns" in s for s in sentences(course(tmp_path, lesson=lesson + extra, pages=pages)))


def test_files_that_are_not_files(tmp_path: Path) -> None:
    course(tmp_path)
    page = tmp_path / "one" / "lesson.md"
    page.unlink()
    os.mkfifo(page)
    (said,) = (s for s in sentences(tmp_path) if "one/lesson.md:1: cannot be read:" in s)
    assert said.endswith("not a regular file")
    page.unlink()
    outside = tmp_path.parent / f"{tmp_path.name}-outside.md"
    outside.write_text(PAGES)
    page.symlink_to(outside)
    assert any("outside the course's folder" in s for s in sentences(tmp_path))
    page.unlink()
    page.symlink_to(page.name)
    assert any("one/lesson.md:1: cannot be read" in s for s in sentences(tmp_path))
    page.unlink()
    assert any("one/lesson.md:1: this file is missing" in s for s in sentences(tmp_path))
    page.write_text("x" * (MAX_BYTES + 1))
    assert any("larger than" in s for s in sentences(tmp_path))
    page.write_bytes(b"## look\n\n\xff\n")
    assert any("one/lesson.md:3: not UTF-8" in s for s in sentences(tmp_path))


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(LessonError, match="there is no folder"):
        load_course(tmp_path / "nowhere")
    with pytest.raises(LessonError, match=r"course\.toml:1: this file is missing"):
        load_course(tmp_path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), which=st.integers(0, 8))
def test_a_damaged_lesson_gives_a_course_or_a_lesson_error(tmp_path: Path, seed: int, which: int) -> None:
    folder = tmp_path / "course"
    if not folder.exists():
        first_chapters(folder, 4)
        assert not read_course(folder).problems.found
    paths = sorted(p for p in folder.rglob("*") if p.suffix in (".toml", ".md"))
    path = paths[which % len(paths)]
    original = path.read_bytes()
    try:
        path.write_bytes(damaged(original, random.Random(seed)))
        problems = read_course(folder).problems.found
        if problems:
            assert all(p.file.endswith((".toml", ".md")) and p.line >= 1 for p in problems)
            with pytest.raises(LessonError):
                load_course(folder)
        else:
            assert all(set(c.steps) <= set(STEPS) for c in load_course(folder).chapters)
    finally:
        path.write_bytes(original)


def first_chapters(folder: Path, count: int) -> None:
    """The course that comes with the tool, cut short: each example reads every file of it."""
    top = (builtin_course() / "course.toml").read_text()
    names = tomllib.loads(top)["chapters"]
    folder.mkdir()
    (folder / "course.toml").write_text(
        "".join(li for li in top.splitlines(True) if not any(n in li for n in names[count:]))
    )
    for name in names[:count]:
        shutil.copytree(builtin_course() / name, folder / name)


def damaged(data: bytes, made: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(made.randint(1, 6)):
        at = made.randrange(len(out))
        kind = made.randrange(4)
        if kind == 0:
            out[at] = made.randrange(256)
        elif kind == 1:
            del out[at : at + made.randint(1, 40)]
        elif kind == 2:
            out[at:at] = made.choice([b'"', b"[[", b"]", b"=", b"\n## ", b"{x}", b"'''", b"\x00", b"9" * 30])
        else:
            other = made.randrange(len(out))
            out[at:at] = out[other : other + 60]
    return bytes(out)


@given(st.text(max_size=300))
def test_any_text_as_toml_or_pages_is_survived(text: str) -> None:
    problems = Problems()
    table = parse_table(SourceText("a.toml", text), problems)
    assert (table is None) == bool(problems.found)
    pages, starts = read_pages(SourceText("a.md", text), Problems())
    assert set(pages) == set(starts) <= set(STEPS)
