"""``class present``: the page on the wall follows the instructor."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from jitter_workshop.classroom.client import SILENT
from jitter_workshop.errors import HostError
from jitter_workshop.flow.classes import presenting
from jitter_workshop.flow.classes.presenting import Presented, class_curves, outermost
from jitter_workshop.model.board import Banner, Board, BoardRow, Posted
from jitter_workshop.report.pictures.bigtext import big
from jitter_workshop.tui.screens.class_host import present
from jitter_workshop.tui.screens.class_host.present import PresentApp
from tests import madeboard
from tests.madeclass import MadeClass
from tests.screens import settled, text_of

SIZES = ((60, 16), (80, 24), (160, 48))
TITLES = {"pinning": "Pinning", "migration": "Who moves my threads?"}


def board(members: int, chapter: str = "pinning", step: str = "compare", text: str = "whose knee moved?") -> Board:
    rows = tuple(
        BoardRow(
            1000 + number,
            f"student{number:02d}",
            Posted("s", (), "pinning", "compare", (), (madeboard.run(f"r{number}", 5_000 * (number + 1)),)),
            (),
            "2026-11-22T09:00:00Z",
            5.0,
        )
        for number in range(members)
    )
    return Board("lab03", "2026-11-22T09:00:00Z", rows, Banner("ada", "2026-11-22T09:00:00Z", chapter, step, text))


class Answers:
    """Hold what the board answers: a board, or an error."""

    def __init__(self, board: Board) -> None:
        self.board_now: Board | HostError = board

    def __enter__(self) -> Answers:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def board(self) -> Board:
        if isinstance(self.board_now, HostError):
            raise self.board_now
        return self.board_now


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answers:
    made = MadeClass(tmp_path / "class", monkeypatch)
    made.busy()
    answering = Answers(board(40))
    monkeypatch.setattr(presenting, "connect_to_board", lambda: answering)
    return answering


def first() -> Presented:
    return presenting.presented(TITLES)


@pytest.mark.parametrize("size", SIZES)
async def test_the_chapter_in_large_letters_and_the_whole_class(answers: Answers, size: tuple[int, int]) -> None:
    app = PresentApp(first(), TITLES)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        text = text_of(app)
        letters = big("Pinning", size[0] - 4, max(size[1] // 6, 4)) if size[1] > 20 else ("Pinning",)
        for line in letters:
            assert line in text
        for place, who in (("lowest", "student00"), ("middle", "student19"), ("highest", "student39")):
            if size == SIZES[0] and place != "lowest":
                continue  # no room for three names
            assert re.search(rf"{place}[^:]*: {who}", text)
        assert "40 members: each member's newest run, as" in text
        assert "alan has the turn (Pinning ·" in " ".join(text.split())
        assert "pinned), at most 3 min more." in " ".join(text.split())
        if size != SIZES[-1]:
            assert "compare · whose knee moved?" in text


async def test_it_follows_and_an_error_changes_no_picture(answers: Answers) -> None:
    app = PresentApp(first(), TITLES)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        answers.board_now = HostError(SILENT, "try again later")
        app._look()
        await settled(pilot)
        text = text_of(app)
        assert SILENT in text
        assert "student00" in text
        answers.board_now = board(0, "migration", "look", "")
        app._look()
        await settled(pilot)
        text = text_of(app)
        assert "does not answer" not in text
        assert "No member has measured here yet." in text
        for line in big("Who moves my threads?", 76, 8):
            assert line in text


async def test_the_theme_changes_and_q_leaves(answers: Answers) -> None:
    app = PresentApp(first(), TITLES)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        before = app.theme
        await pilot.press("ctrl+t")
        await settled(pilot)
        assert app.theme != before
        await pilot.press("q")
    assert app.return_code == 0


async def test_hostile_words_stay_words(answers: Answers) -> None:
    evil = "[red]boo[/] \x1b[2J"
    answers.board_now = board(3, evil, evil, evil)
    app = PresentApp(first(), TITLES)
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        assert "\x1b" not in text_of(app)


def test_without_an_instructors_place_it_says_how_to_name_one() -> None:
    curves, why_none = class_curves(board(3), "", "")
    assert curves == ()
    assert "class present --chapter ID" in why_none
    curves, told = class_curves(board(3), "pinning", "measure")
    assert [one.label for one in curves] == ["student00", "student01", "student02"]
    assert "newest run before the change" in told
    assert outermost([one.curve for one in curves])[0] == []


def test_the_curve_before_the_change_is_a_run_from_before_the_change() -> None:
    """The order of the posts does not matter: of a chapter that was begun again only the second measurement may be
    left."""
    made = board(3)
    changed = replace(madeboard.run("late"), slot="again", at="2026-01-01T12:00:00Z")
    runs = ((changed, madeboard.run("r0")), (changed,), (madeboard.run("r2"),))
    rows = tuple(replace(row, posted=replace(row.posted, runs=own)) for row, own in zip(made.rows, runs, strict=True))
    made = replace(made, rows=rows)
    assert {one.key for one in class_curves(made, "pinning", "measure")[0]} == {"r0", "r2"}
    assert {one.key for one in class_curves(made, "pinning", "compare")[0]} == {"late", "r2"}


def test_run_present_shows_the_course(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[PresentApp] = []
    monkeypatch.setattr(PresentApp, "run", lambda self: shown.append(self))
    assert present.run_present() == 0
    assert shown[0]._shown.title == "Pinning"
