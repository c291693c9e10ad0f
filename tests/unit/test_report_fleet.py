"""Many machines side by side, and the board in text: what is silent is said, what is untrusted stays on its line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.board import Board, BoardRow
from jitter_workshop.report.board_text import board_text
from jitter_workshop.report.fleet_text import fleet, fleet_text
from tests.madeboard import run, work


def status(**states: str) -> dict[str, object]:
    return {"checks": [{"id": ident, "state": state} for ident, state in states.items()]}


def row(user: str, idle_s: float = 0.0, stuck: bool = False, people: tuple[str, ...] = ()) -> BoardRow:
    return BoardRow(
        1001, user, work(run(), people=people), (run("best", 9_000),), "2026-01-01T10:00:00Z", idle_s, stuck
    )


def test_what_differs_is_shown_and_what_is_the_same_is_counted() -> None:
    rows = fleet(
        [
            ("lab01", status(governor="ok", thp="improve", ksm="ok"), ""),
            ("lab02", status(governor="improve", thp="improve", ksm="ok"), ""),
            ("lab03", None, "status.json is missing"),
        ]
    )
    assert [one.well for one in rows] == [False, False, False]
    text = fleet_text(rows[:2])
    assert "governor" in text
    assert "thp" in text
    assert "ksm" not in text
    assert "1 check says the same on every machine" in text
    assert "lab03: status.json is missing" in fleet_text(rows)


def test_a_machine_with_nothing_to_improve_is_well() -> None:
    (one,) = fleet([("lab01", status(governor="ok", thp="info", smt="unavailable"), "")])
    assert one.well
    assert one.plain()["well"] is True
    (late,) = fleet([("lab01", status(governor="ok"), "board.json is missing")])
    assert not late.well


def test_a_board_names_the_stuck_and_the_silent() -> None:
    here = Board("lab01", "2026-01-01T10:00:00Z", (row("grace", 900.0, True), row("alan", people=("alan", "edsger"))))
    text = board_text([("lab01", here, ""), ("lab02", None, "board.json is missing")])
    lines = text.splitlines()
    assert "stuck for 15 min" in lines[1]
    assert "alan + edsger" in lines[2]
    assert "p99.9 50 µs, best 9" in lines[1]
    assert lines[-1] == "lab02: silent (board.json is missing)"
    assert board_text([("lab01", Board("lab01", ""), "")]) == "lab01: nobody has posted anything yet\n"


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_untrusted_names_stay_on_their_line(host: str, user: str, check: str) -> None:
    board = Board(host, "2026-01-01T10:00:00Z", (row(user),), notes={user: check})
    for text in (board_text([(host, board, "")]), fleet_text(fleet([(host, status(**{check: "improve"}), user)]))):
        assert all(line.isprintable() for line in text.splitlines())


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_json_is_a_row(found: object) -> None:
    fleet_text(fleet([("lab01", {"checks": found}, "")]))
