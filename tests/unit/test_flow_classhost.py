"""Test a member's place on a class host, in words and as JSON."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.errors import UsageError
from jitter_workshop.flow.turns import classhost
from jitter_workshop.model.turn import Process, Turn, TurnState, Waiting

AGENT, CLIENT = Process(1, 1), Process(2, 2)
TURN = Turn(7, 1001, ("grace",), AGENT, CLIENT, 0.0, 240.0, "pinning")


def waits(uid: int, limit_s: float | None = 240.0) -> Waiting:
    return Waiting(uid, (f"user{uid}",), Process(uid, 1), Process(uid + 1, 1), 0.0, limit_s)


def test_the_holder_of_the_turn_and_the_place_in_the_queue_are_told() -> None:
    state = TurnState("boot", 7, TURN, (waits(1002), waits(1003)))
    assert classhost.describe_turn(state, 1001, 60.0) == "You have the turn, 3 min left."
    said = classhost.describe_turn(state, 1003, 60.0)
    assert said == "grace has the turn (pinning), at most 3 min more. 2 turns before yours, at most 7 min."
    assert classhost.describe_turn(state, 1002, 60.0).endswith("1 turn before yours, at most 3 min.")
    assert classhost.describe_turn(TurnState("boot"), 1001, 0.0) == "No one has the turn."


def test_the_queue_has_one_line_for_each_place() -> None:
    state = TurnState("boot", 7, TURN, (waits(1002), waits(1003, None), waits(1004)))
    rows = classhost.queue_rows(state, 1003, 60.0)
    assert [row.line for row in rows] == ["1. user1002  at most 3 min", "2. you  at most 7 min", "3. user1004"]
    assert [row.own for row in rows] == [False, True, False]
    assert classhost.left_s(state, 1001, 60.0) == 180.0
    assert classhost.left_s(state, 1002, 60.0) is None
    assert classhost.left_s(TurnState("boot"), 1002, 60.0) is None


def test_an_unknown_end_of_a_turn_promises_no_time() -> None:
    held = TurnState("boot", 7, replace(TURN, ends_s=None), (waits(1002),))
    assert classhost.queue_place(held, 1002, 0.0) == classhost.QueuePlace(1, None)
    frozen = TurnState("boot", 7, TURN, (waits(1002),), frozen_by="ada")
    assert classhost.queue_place(frozen, 1002, 0.0) == classhost.QueuePlace(1, None)
    assert "ada does not let new turns begin." in classhost.describe_turn(frozen, 1002, 0.0)
    trouble = TurnState("boot", 7, None, (waits(1002),), trouble="thp: it says never")
    said = classhost.describe_turn(trouble, 1002, 0.0)
    assert "machine was not restored completely" in said
    assert f": {trouble.trouble}." in said
    behind = TurnState("boot", 7, TURN, (waits(1004, None), waits(1002)))
    assert classhost.queue_place(behind, 1002, 0.0) == classhost.QueuePlace(2, None)


@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=200))
def test_untrusted_words_stay_on_their_line(people: str, doing: str, trouble: str) -> None:
    state = TurnState("boot", 1, replace(TURN, people=(people,), doing=doing), (), people, trouble)
    assert classhost.describe_turn(state, 5, 0.0).isprintable()
    for value in classhost.turn_json(state, 0.0).values():
        assert not isinstance(value, str) or value.isprintable()


def test_the_json_of_a_turn() -> None:
    told = classhost.turn_json(TurnState("boot", 7, TURN, (waits(1002),)), 30.0)
    assert (told["holder"], told["people"], told["doing"], told["frozen"]) == ("grace", ["grace"], "pinning", False)
    assert told["queue"] == [{"user": "user1002", "wait_s": 30.0}]
    assert told["ends_at"].endswith("Z")
    nobody = classhost.turn_json(TurnState("boot"), 0.0)
    assert nobody["holder"] is None
    assert set(nobody["notes"]) == {"holder", "doing", "ends_at"}
    held = classhost.turn_json(TurnState("boot", 7, replace(TURN, ends_s=None)), 0.0)
    assert held["ends_at"] is None
    assert "instructor" in held["notes"]["ends_at"]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-5.0, "0 s"), (0.2, "1 s"), (89.0, "89 s"), (90.0, "2 min"), (180.0, "3 min"), (181.0, "4 min")],
)
def test_times_are_rounded_up(seconds: float, said: str) -> None:
    assert classhost.rounded_duration(seconds) == said


def test_a_host_without_a_class_file_is_none(tmp_path: Path) -> None:
    assert classhost.class_host(str(tmp_path / "class.toml")) is None
    (tmp_path / "class.toml").write_text('name = "x"\nhot_cpus = "1"\n')
    found = classhost.class_host(str(tmp_path / "class.toml"))
    assert found is not None
    assert found.described.name == "x"
    (tmp_path / "class.toml").write_text("name = 7")
    with pytest.raises(UsageError):
        classhost.class_host(str(tmp_path / "class.toml"))


def test_nobodys_turn_where_nothing_is_written_down(tmp_path: Path) -> None:
    assert classhost.read_turns(str(tmp_path)).turn is None
    (tmp_path / "turns.json").write_bytes(b"\xff{")
    assert classhost.read_turns(str(tmp_path)).turn is None


@pytest.mark.parametrize(
    ("uid", "advice"),
    [(1001, "tell the instructor, who can correct the file as root"), (0, "use one of name, hot_cpus, ")],
)
def test_a_broken_class_file_is_the_instructors_to_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, advice: str
) -> None:
    (tmp_path / "class.toml").write_text('name = "x"\nhot_cpu = "2-3"\n')
    monkeypatch.setattr(classhost.os, "geteuid", lambda: uid)
    with pytest.raises(UsageError, match="unknown key 'hot_cpu'") as refused:
        classhost.class_host(str(tmp_path / "class.toml"))
    assert refused.value.advice.startswith(advice)
