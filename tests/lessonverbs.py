"""The ``lessons`` verbs as they are typed, for tests of courses."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
from pathlib import Path

from jitter_workshop import paths
from jitter_workshop.cli import main
from jitter_workshop.course.loader import builtin_course
from jitter_workshop.host.recording.packed import unpacked

REPOSITORY = Path(__file__).parents[1]
DOCUMENT = (REPOSITORY / "docs" / "writing-lessons.md").read_text(encoding="utf-8")


def lessons(*typed: object) -> tuple[int, str, str]:
    """Exit code, standard output and error of ``jitter-workshop lessons …``."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(["lessons", *map(str, typed)])
    return code, out.getvalue(), err.getvalue()


def found(course: Path) -> list[tuple[str, int, str]]:
    """File, line and message of each mistake that ``lessons check`` finds."""
    code, out, err = lessons("check", "--course", course, "--json")
    assert err == ""
    said = json.loads(out)
    assert said["format_version"] == 1
    assert code == (1 if said["problems"] else 0)
    return [(p["file"], p["line"], p["message"]) for p in said["problems"]]


def folder_of(recording: str) -> Path:
    """Return where a recording that comes with the project is unpacked."""
    return unpacked(REPOSITORY / "assets" / "recordings" / f"{recording}.tar.xz", paths.cache_dir() / "recordings")


def built_in_chapter(folder: str, into: Path) -> Path:
    """A course with one of the built-in chapters, to be spoilt."""
    into.mkdir()
    shutil.copytree(builtin_course() / folder, into / folder)
    (into / "course.toml").write_text(f'format_version = 1\nid = "c"\ntitle = "C"\nchapters = ["{folder}"]\n')
    return into


def blocks(kind: str) -> list[tuple[str, str]]:
    """(what stands in backticks on the line before, text) of the code blocks in docs/writing-lessons.md."""
    listed = re.findall(r"(?:^`([^`\n]+)`\n\n|^)```([\w-]*)\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    return [(name, text) for name, language, text in listed if language == kind]


def follow(folder: Path) -> None:
    """Make the files of the worked chapter, as docs/writing-lessons.md has them."""
    made = [(name, text) for kind in ("toml", "markdown") for name, text in blocks(kind) if name]
    assert [name for name, _ in made] == [
        "my-course/course.toml", "my-course/01-statistics/lesson.toml", "my-course/01-statistics/lesson.md",
    ]  # fmt: skip
    for name, text in made:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
