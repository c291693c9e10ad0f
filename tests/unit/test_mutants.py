"""The mutants' data: each fault can still be put in where it says, and is a fault that Python accepts."""

from __future__ import annotations

import pytest

from tests.mutants import PACKAGE, REPOSITORY, Mutant, mutants_of, rooms, unit_tests

EVERY = [one for room in rooms() for one in mutants_of(room)]


@pytest.mark.parametrize("mutant", EVERY, ids=lambda one: one.name)
def test_a_mutant_is_one_change_of_the_product(mutant: Mutant) -> None:
    text = (REPOSITORY / PACKAGE / mutant.file).read_text()
    faulty = mutant.applied(text)
    assert faulty != text
    compile(faulty, mutant.file, "exec")
    assert mutant.file.split("/")[0] == mutant.room
    assert mutant.why


def test_every_room_has_unit_tests_and_those_of_the_file_come_first() -> None:
    assert {"agent", "bench", "evidence", "practice", "session", "stats", "tuning"} <= set(rooms())
    assert len(EVERY) >= 53
    assert unit_tests("tuning", "tuning/journal.py")[0] == "tests/unit/test_tuning_journal.py"
    assert all(unit_tests(room) for room in rooms())
