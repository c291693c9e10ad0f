"""Test that the name of each file of unit tests begins with the room that it tests, and goes on with its subject."""

from __future__ import annotations

from pathlib import Path

UNIT = Path(__file__).parent
PACKAGE = UNIT.parents[1] / "jitter_workshop"
OTHERS = {"benchmarks", "calibration", "docs", "helpers", "house", "lab", "mutants", "prose"}
"""Subjects of unit tests that are no rooms. ``benchmarks``: ``tests/bench``. ``helpers``: modules of ``tests``."""


def test_a_unit_test_is_named_after_the_room_that_it_tests() -> None:
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    names = sorted(path.stem for path in UNIT.glob("test_*.py"))
    assert [name for name in names if name.split("_")[1] not in rooms | OTHERS] == []


def test_the_name_of_a_rooms_unit_test_has_a_second_word() -> None:
    """``test_ROOM_*.py``, by which the tests of a room are run, matches no ``test_ROOM.py``."""
    without = {path.stem.removeprefix("test_") for path in UNIT.glob("test_*.py")} - OTHERS
    assert [name for name in sorted(without) if "_" not in name] == []
