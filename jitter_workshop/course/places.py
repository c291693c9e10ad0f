"""Find the line of an entry in a lesson's file, for mistakes that show only once the chapter is read."""

from __future__ import annotations

from pathlib import Path

from jitter_workshop.course.files import read_source
from jitter_workshop.course.problems import Problems
from jitter_workshop.course.toml_lines import key_lines, line_of, line_of_word


class Places:
    """Hold the lines of ``base/folder/lesson.toml``. ``file``: its name as problems state it."""

    def __init__(self, base: Path, folder: str) -> None:
        self.file = f"{folder}/lesson.toml"
        source = read_source(base, self.file, Problems())
        self._text = source.text if source else ""
        self._lines = key_lines(self._text)

    def line(self, *path: str | int, word: str = "") -> int:
        """Return the line of a key, from 1, or of the quoted ``word`` in its value where that has its own line."""
        return line_of_word(self._text, self._lines, path, word) if word else line_of(self._lines, path)
