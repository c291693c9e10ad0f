"""Many machines side by side, and the board in text: what is silent is said, what is untrusted stays on its line."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from jitter_workshop.flow.classes.classboard import BoardColumn, ClassTable, CourseJudge
from jitter_workshop.model.board import Board, BoardRow, MemberGroup, Posted, PostedChapter, PostedRun
from jitter_workshop.presenter.classes.board import Near, Row, boards, checks, fleet
from jitter_workshop.presenter.text.lines import in_cells, written
from tests.madeboard import run, work

WIDTHS = st.integers(60, 160)
COLUMNS = tuple(BoardColumn(n, f"c{n}", f"Chapter {n}", n != 1) for n in range(1, 18))
PINNING = (BoardColumn(4, "pinning", "Pinning", True),)


def board_text(machines: Sequence[ClassTable], columns: Sequence[BoardColumn], near: Near, width: int = 100) -> str:
    return written(boards(machines, columns, near, width))


def fleet_text(rows: Sequence[Row], width: int = 100) -> str:
    return written(checks(rows, width))


def status(**states: str) -> dict[str, object]:
    return {"checks": [{"id": ident, "state": state} for ident, state in states.items()]}


def row(
    user: str,
    idle_s: float = 0.0,
    group: MemberGroup = "at work",
    people: tuple[str, ...] = (),
    posted: Posted | None = None,
    best: tuple[PostedRun, ...] = (run("best", 9_000),),
) -> BoardRow:
    posted = posted if posted is not None else work(run(), people=people)
    return BoardRow(1001, user, posted, best, "2026-01-01T10:00:00Z", idle_s, group)


def board(
    *rows: BoardRow, columns: tuple[BoardColumn, ...] = PINNING, near: bool | None = None, width: int = 100
) -> str:
    here = ClassTable("lab01", Board("lab01", "2026-01-01T10:00:00Z", rows))
    return board_text([here], columns, lambda *_: near, width)


def line_of(text: str, word: str) -> str:
    return next(line for line in text.splitlines() if word in line)


def test_a_chapter_to_read_fills_its_cell_when_it_is_read_to_its_end() -> None:
    columns = CourseJudge().columns
    (last,) = (column for column in columns if column.reads)
    assert (last.id, last.sets) == ("make-it-last", False)
    for done, sign in ((False, "○"), (True, "●")):
        chapter = PostedChapter("make-it-last", "explain", done, False, False)
        text = board(row("ada", posted=Posted("lab", (), "make-it-last", "explain", (chapter,), ())), columns=columns)
        assert line_of(text, "ada").split()[1] == sign


# The fleet -----------------------------------------------------------------------------------------------------------


def test_differences_are_shown_and_equal_checks_are_counted() -> None:
    rows = fleet(
        [
            ("lab01", status(governor="ok", thp="improve", ksm="ok"), ""),
            ("lab02", status(governor="improve", thp="improve", ksm="ok"), ""),
            ("lab03", None, "status.json is missing"),
        ]
    )
    assert [one.well for one in rows] == [False, False, False]
    text = fleet_text(rows)
    assert text.startswith("Nothing to improve on 0 of 3 machines\nlab03: silent (status.json is missing)\n")
    assert line_of(text, "governor").split() == ["governor", "✓", "▲", "?"]
    assert line_of(text, "thp").split() == ["thp", "▲", "▲", "?"]
    assert "ksm" not in text
    assert "1 check says the same on every machine that answered" in text


def test_a_machine_with_nothing_to_improve_is_well() -> None:
    (one,) = fleet([("lab01", status(governor="ok", thp="info", smt="unavailable"), "")])
    assert one.well
    assert one.plain()["well"] is True
    (late,) = fleet([("lab01", status(governor="ok"), "board.json is missing")])
    assert not late.well
    (empty,) = fleet([("lab01", {"checks": []}, "")])
    assert not empty.well
    assert empty.plain()["notes"]["checks"] == "status.json holds no checks"


@given(WIDTHS, st.integers(1, 40))
def test_any_number_of_machines_fits_its_terminal(width: int, count: int) -> None:
    machines = [(f"machine-{n}-of-the-lab", status(governor="improve" if n % 3 else "ok"), "") for n in range(count)]
    text = fleet_text(fleet(machines), width)
    assert all(cell_len(line) <= width for line in text.splitlines())
    told = " ".join(line for line in text.splitlines() if line.startswith("governor"))
    assert (told.count("▲"), told.count("✓")) == (count - (count + 2) // 3, (count + 2) // 3 if count > 1 else 0)


def test_machines_of_one_domain_are_called_without_it() -> None:
    made = [(f"lab0{n}.example.org", status(thp="improve"), "") for n in range(3)]
    assert line_of(fleet_text(fleet(made)), "lab00").split() == ["lab00", "lab01", "lab02"]
    twice = [("a.one", status(thp="improve"), ""), ("a.two", status(thp="improve"), "")]
    assert line_of(fleet_text(fleet(twice)), "a.one").split() == ["a.one", "a.two"]


# The board -----------------------------------------------------------------------------------------------------------


def test_the_stuck_come_first_and_once_more_at_the_end() -> None:
    text = board(
        row("grace", 900.0, "stuck"),
        row("edsger", 700.0, "stuck"),
        row("alan"),
        row("ilse", 800.0, "waiting"),
        row("barbara", 900.0, "done"),
        row("zoe", 50.0, "away"),
    )
    words = ("STUCK", "grace", "edsger", "AT WORK", "alan", "WAITING", "ilse", "DONE", "barbara", "AWAY", "zoe")
    order = [text.index(word) for word in (*words, "Stuck: ")]
    assert order == sorted(order)
    assert "6 members: 2 stuck · 1 at work · 1 waiting · 1 done · 1 away" in text
    assert text.endswith("Stuck: grace (15 min), edsger (11 min)\n")


def test_marks_and_guesses_stand_below_their_chapters() -> None:
    chapters = (
        PostedChapter("c1", "explain", True, False, True),
        PostedChapter("c3", "explain", True, True, True),
        PostedChapter("c4", "plan", False, False, True),
        PostedChapter("c5", "look", False, False, False),
    )
    text = board(row("grace", posted=Posted("s", (), "c5", "look", chapters)), columns=COLUMNS, near=True)
    heads, line = line_of(text, "now"), line_of(text, "grace")
    for number, cell in (("1", "●✓"), ("3", "●✓"), ("4", "◐✓"), ("5", "○✓")):
        at = heads.index(f" {number} ")
        assert line[at : at + 2] == cell
    assert " 5 look" in line
    assert "1 Chapter 1 · 3 Chapter 3" in text
    assert "Chapter 2" not in text
    far = board(row("grace"), near=False)
    assert "◐✗" in line_of(far, "grace")
    unknown = board(row("grace"), near=None)
    assert "◐ " in line_of(unknown, "grace")


def test_the_last_and_the_best_curve_are_of_one_chapter_and_workload() -> None:
    best = (run("b", 9_000), run("o", 5_000, chapter="isolation"))
    assert line_of(board(row("grace", best=best)), "grace").split()[-2:] == ["9", "µs"]
    spin = (dataclasses.replace(run("s", 4_000), workload="spin"),)
    assert line_of(board(row("grace", best=spin)), "grace").split()[-4:] == ["50", "µs", "50", "µs"]
    nothing = row("grace", posted=work(), best=())
    assert "µs" not in line_of(board(nothing), "grace")


def test_a_curve_that_does_not_reach_so_far_has_no_value() -> None:
    short = dataclasses.replace(run(), points=((50.0, 1),))
    assert line_of(board(row("grace", posted=work(short), best=())), "grace").rstrip().endswith("–")


def test_a_silent_machine_is_told_first() -> None:
    here = ClassTable("lab01", Board("lab01", "2026-01-01T10:00:00Z", (row("grace"),)))
    text = board_text([here, ClassTable("lab02", None, error="board.json is missing")], PINNING, lambda *_: None)
    silent, blank, told = text.split("\n")[:3]
    assert (silent, blank) == ("lab02: silent (board.json is missing)", "")
    assert told.split("  ") == ["lab01", "2026-01-01 10:00 UTC", "1 member: 1 at work"]
    empty = board_text([ClassTable("lab01", Board("lab01", "2026-01-01T10:00:00Z"))], PINNING, lambda *_: None)
    assert empty.split("  ") == ["lab01", "2026-01-01 10:00 UTC", "no results have been sent yet\n"]


def test_columns_without_room_are_told() -> None:
    chapters = tuple(PostedChapter(c.id, "look", False, False, False) for c in COLUMNS)
    posted = Posted("s", (), "c17", "look", (*chapters, PostedChapter("mine/own", "look", False, False, False)))
    text = board(row("grace", posted=posted), columns=COLUMNS, width=80)
    assert "17 look" in line_of(text, "grace")
    assert "earlier chapters left out" in text
    assert "Not shown: 1 chapter of other courses" in text


@given(
    WIDTHS,
    st.lists(st.text(max_size=30), min_size=1, max_size=6),
    st.integers(0, 17),
    st.floats(0, 1e6),
    st.lists(st.sampled_from(get_args(MemberGroup)), min_size=6, max_size=6),
)
def test_every_line_fits_for_all_names(
    width: int, names: list[str], begun: int, idle_s: float, groups: list[MemberGroup]
) -> None:
    chapters = tuple(PostedChapter(c.id, "measure", False, True, False) for c in COLUMNS[:begun])
    posted = Posted("s", tuple(names), chapters[-1].id if chapters else None, "measure", chapters, (run(chapter="c1"),))
    rows = [row(name, idle_s, group, posted=posted) for name, group in zip(names, groups, strict=False)]
    text = board(*rows, columns=COLUMNS, width=width)
    everybody = board(*(row("x", idle_s, group) for group in get_args(MemberGroup) for _ in range(12)), width=width)
    assert all(cell_len(line) <= width for line in everybody.splitlines())
    told = text.partition("\nStuck: ")[0]  # a sentence, which breaks at blanks
    assert all(cell_len(line) <= width and line.isprintable() for line in told.splitlines())


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_untrusted_names_stay_on_their_line(host: str, user: str, check: str) -> None:
    made = Board(host, "2026-01-01T10:00:00Z", (row(user),), notes={user: check})
    for text in (
        board_text([ClassTable(host, made), ClassTable(user, None, error=check)], PINNING, lambda *_: None),
        fleet_text(fleet([(host, status(**{check: "improve"}), user), (host, None, check)])),
    ):
        assert all(line.isprintable() for line in text.splitlines())


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_json_is_a_row(found: object) -> None:
    for said in (found, [found], [{"id": "governor", "state": found}], [{"id": found, "state": "ok"}]):
        fleet_text(fleet([("lab01", {"checks": said}, "")]))


def test_columns_of_a_terminal() -> None:
    assert cell_len("田中e\u0301") == 5
    assert in_cells("田中花子", 5) == "田中…"
    assert in_cells("田中花子", 4) == "田… "
    assert in_cells("ab", 4) == "ab  "
