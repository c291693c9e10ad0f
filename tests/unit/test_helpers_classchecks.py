"""The checks of a class's soaks find each fault that is there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jitter_workshop.model.turn import Process, Turn, TurnState, Waiting
from tests.classchecks import overlaps, still_measured, waits, wrong
from tests.classonatree import uid_of


def waiting(number: int, limit_s: float | None = 60.0) -> Waiting:
    process = Process(1000 + number, number)
    return Waiting(uid_of(number), (f"s{number:02d}",), process, process, 0.0, limit_s)


def turn(number: int, who: Waiting, *, returning: bool = False) -> Turn:
    return Turn(number, who.uid, who.people, who.agent, who.client, 0.0, 60.0, returning=returning)


A, B, C, TEACHER = waiting(0), waiting(1), waiting(2), waiting(3, None)
BEFORE = TurnState("b", 1, turn(1, A, returning=True), (B, C))


def test_the_checks_accept_a_turn_that_follows_the_rules() -> None:
    assert wrong(BEFORE, replace(BEFORE, number=2, turn=turn(2, B), queue=(C,))) == []
    assert wrong(BEFORE, replace(BEFORE, turn=None)) == []
    assert wrong(BEFORE, replace(BEFORE, queue=(B, C, A))) == []
    # A teacher stands before all students, and has the turn in a frozen class.
    first = replace(BEFORE, queue=(TEACHER, B, C), frozen_by="ada")
    assert wrong(BEFORE, first) == []
    assert wrong(first, replace(first, number=2, turn=turn(2, TEACHER), queue=(B, C))) == []


def test_each_breach_of_the_order_of_turns_is_found() -> None:
    passed = replace(BEFORE, number=2, turn=turn(2, C), queue=(B,))
    assert any("passed" in words for words in wrong(BEFORE, passed))
    early = replace(BEFORE, turn=turn(1, A))
    assert any("given back" in words for words in wrong(early, replace(early, number=2, turn=turn(2, B), queue=(C,))))
    assert any("did not wait" in words for words in wrong(BEFORE, replace(BEFORE, number=2, turn=turn(2, A))))
    frozen = replace(BEFORE, frozen_by="ada")
    assert any("that waits" in w for w in wrong(frozen, replace(frozen, number=2, turn=turn(2, B), queue=(C,))))
    assert wrong(BEFORE, replace(BEFORE, queue=(C, B))) == ["the queue changed its order"]
    assert wrong(BEFORE, replace(BEFORE, queue=(B, A, C))) == ["somebody came into the middle of the queue"]
    two = replace(waiting(1), agent=Process(7, 7))
    assert wrong(BEFORE, replace(BEFORE, queue=(B, C, two))) == ["somebody has two places"]
    assert wrong(BEFORE, replace(BEFORE, number=3)) == ["the number of turns went from 1 to 3"]
    taken = replace(turn(1, A), agent=Process(7, 7))
    assert wrong(early, replace(early, turn=taken)) == ["turn 1 went from one agent to another"]


def lines(*some: tuple[float, str, int, int, Any]) -> list[dict[str, Any]]:
    """(at, what, who, number of the turn, more)."""
    found = []
    for at, what, who, number, more in some:
        line = {"at": at, "what": what, "who": who, "uid": uid_of(who), "agent": who, "number": number}
        found.append(line | (more if isinstance(more, dict) else {}))
    return found


WHOLE = {"complete": True}


def test_measurements_that_overlap_are_found() -> None:
    one = [(0.0, "begins", 0, 1, None), (1.0, "measures", 0, 1, None), (2.0, "measured", 0, 1, WHOLE)]
    other = [(2.5, "begins", 1, 2, None), (3.0, "measures", 1, 2, None), (4.0, "measured", 1, 2, WHOLE)]
    assert overlaps(lines(*one, (2.1, "over", 0, 1, None), *other)) == []
    early = [(1.2, "begins", 1, 2, None), (1.5, "measures", 1, 2, None), (4.0, "measured", 1, 2, WHOLE)]
    assert len(overlaps(lines(*one, *early))) == 1
    late = [(0.0, "begins", 0, 1, None), (1.0, "over", 0, 1, None), (2.0, "measures", 0, 1, None)]
    assert overlaps(lines(*late)) == []
    assert len(overlaps(lines(*late, (3.0, "measured", 0, 1, WHOLE)))) == 1


def test_a_process_that_still_measures_as_the_next_turn_begins_is_found() -> None:
    next_one = (3.0, "begins", 1, 2, {"working": {"77": uid_of(0)}})
    measuring = (1.0, "measures", 0, 1, None)
    assert len(still_measured(lines(measuring, next_one))) == 1
    assert still_measured(lines(next_one)) == []
    assert still_measured(lines(measuring, (2.0, "measured", 0, 1, WHOLE), next_one)) == []
    assert still_measured(lines(measuring, (3.0, "begins", 1, 2, {"working": {}}))) == []


def test_a_wait_is_counted_in_turns() -> None:
    joined = (0.0, "joins", 5, 7, {"ahead": 2})
    assert waits(lines(joined, (4.0, "begins", 5, 10, None))) == [(2, 4.0, 2)]
