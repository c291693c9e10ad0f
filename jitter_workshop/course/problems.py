"""Collect mistakes in lesson files, so that a check lists them all, each with its file and line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field

from jitter_workshop.errors import LessonError

MAX_PROBLEMS = 200


@dataclass(frozen=True, slots=True)
class Problem:
    """Hold one mistake. ``file`` is relative to the course's folder, ``line`` counts from 1."""

    file: str
    line: int
    message: str

    def sentence(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass(slots=True)
class Problems:
    """Hold the mistakes found so far, at most ``MAX_PROBLEMS``."""

    found: list[Problem] = field(default_factory=list)

    def add(self, file: str, line: int, message: str) -> None:
        if len(self.found) < MAX_PROBLEMS:
            self.found.append(Problem(file, max(1, line), message))

    def error(self) -> LessonError:
        """Return the first mistake as an error that says how many more there are."""
        first = self.found[0]
        more = len(self.found) - 1
        advice = f"{more} more: `jitter-workshop lessons check` lists them all" if more else ""
        return LessonError(first.sentence(), advice)


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for a near miss, else the list of known words."""
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(names)}" if names else ""
