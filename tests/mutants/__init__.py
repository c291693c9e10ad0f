"""Faults put into the product on purpose, each of which the unit tests of its own room have to find.

A mutant is data, in ``tests/mutants/ROOM.toml``::

    [[mutant]]
    file = "stats/sample_size.py"             # below jitter_workshop
    before = "math.ceil(fewest)"         # stands there exactly once
    after = "math.floor(fewest)"
    why = "one round too few is advised"
    survives = "…"                       # only where no test can find it: the reason

``python -m tests.mutants`` tries them (``make mutants``).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
PACKAGE = "jitter_workshop"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault. ``survives``: why no test of the room finds it, "" where one has to."""

    room: str
    file: str
    before: str
    after: str
    why: str
    survives: str = ""

    @property
    def name(self) -> str:
        """Return the mutant's file and the first line of what it changes."""
        return f"{self.file}: {self.before.strip().splitlines()[0][:60]}"

    def applied(self, text: str) -> str:
        """Return a file's text with the fault in it. Raise ValueError where ``before`` does not stand there once."""
        if text.count(self.before) != 1:
            raise ValueError(f"{self.name}: 'before' stands there {text.count(self.before)} times, not once")
        return text.replace(self.before, self.after)


def rooms() -> tuple[str, ...]:
    """Return the rooms that have mutants."""
    return tuple(sorted(path.stem for path in HERE.glob("*.toml")))


def mutants_of(room: str) -> tuple[Mutant, ...]:
    """Return the mutants of one room, in the order of its file. Raise TypeError for a field that is not known."""
    found = tomllib.loads((HERE / f"{room}.toml").read_text())["mutant"]
    return tuple(Mutant(room=room, **one) for one in found)


def unit_tests(room: str, file: str = "") -> list[str]:
    """Return the room's unit tests as paths in the repository, those named like ``file`` first."""
    paths = sorted((REPOSITORY / "tests" / "unit").glob(f"test_{room}_*.py"))
    stem = Path(file).stem
    paths.sort(key=lambda path: stem not in path.stem if stem else False)
    return [str(path.relative_to(REPOSITORY)) for path in paths]
