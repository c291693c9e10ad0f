"""Posting: the whole state of a session each time, soon after a step, never while something is measured, and no other
session's work waits for a board."""

from __future__ import annotations

import dataclasses
import json
import os
import select
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.classroom.client import SILENT
from jitter_workshop.classroom.store import checked
from jitter_workshop.errors import HostError, WaitStopped
from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.flow.classes import posting
from jitter_workshop.flow.classes.posting import Poster, posted
from jitter_workshop.flow.measuring import background_gate
from jitter_workshop.flow.scenarios import playing
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.board import MAX_CHAPTERS, Posted
from jitter_workshop.model.session import ChapterProgress, Guess
from jitter_workshop.model.turn import Process, Turn, TurnState
from jitter_workshop.practice import running
from jitter_workshop.session.store import OpenSession, SessionStore
from tests import madeup

LIMIT_S = 20.0


@pytest.fixture
def session(tmp_path: Path) -> Iterator[OpenSession]:
    with SessionStore(tmp_path / "sessions").create("grace's afternoon", "lab01") as handle:
        yield handle


def add(session: OpenSession, number: int, label: str = "a run", **changed: Any) -> str:
    run_id = f"20260101-00000{number}-aaaa"
    values = ([100] * 900, [100] * 90 + [50_000] * 10)
    run, done = madeup.make_run(values, run_id, label, started_at=f"2026-01-01T00:00:0{number}.000Z", **changed)
    session.add_run(run, done)
    return run_id


def put(session: OpenSession, **chapters: ChapterProgress) -> None:
    state = session.session
    session.save(
        dataclasses.replace(state, chapters={**state.chapters, **chapters}, current_chapter=next(iter(chapters)))
    )


# Contents of a post --------------------------------------------------------------------------------------------------


def test_a_session_is_posted_with_marks_guesses_and_curves(session: OpenSession) -> None:
    first, second = add(session, 1), add(session, 2)
    guess = Guess(percentile="99.9", value_ns=7)
    put(
        session,
        pinning=ChapterProgress("compare", guess, 2, {"measure": first, "again": second}, {"curve": True}),
        baseline=ChapterProgress(step="explain", done=True, marks={"curve": True, "setting": True}),
    )
    found = posted(session, ("grace", "alan"))
    assert (found.session, found.people, found.chapter, found.step) == (
        "grace's afternoon",
        ("grace", "alan"),
        "pinning",
        "compare",
    )
    pinning, baseline = found.chapters
    assert (pinning.curve, pinning.setting, pinning.done, pinning.hints, pinning.prediction) == (
        True,
        False,
        False,
        2,
        guess,
    )
    assert (baseline.curve, baseline.setting, baseline.done) == (True, True, True)
    assert [(run.id, run.chapter, run.slot) for run in found.runs] == [
        (first, "pinning", "measure"),
        (second, "pinning", "again"),
    ]
    # Ten samples lie beyond 99 %, and none beyond that stands on as many.
    assert found.runs[0].points[-1] == (99.0, 100)
    assert all(a[0] < b[0] for a, b in zip(found.runs[0].points, found.runs[0].points[1:], strict=False))


def test_the_scenarios_that_were_solved_on_this_host_are_posted_each_once(
    session: OpenSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert posted(session).scenarios == ()
    for shape, solved in (("bare", ["crowd", "crowd"]), ("laptop", ["quota", "e\x1b[2J"])):
        kept = running.kept_folder(shape)
        kept.mkdir(parents=True)
        said = [{"scenario": one, "seed": 1, "at": 1.0, "hints": 0} for one in solved]
        (kept / playing.SOLVED).write_text(json.dumps({"solved": said}))
    found = posted(session).scenarios
    assert sorted(found)[:1] == ["crowd"]
    assert len(found) == 3
    assert all(one.isprintable() for one in found)
    assert checked(posted(session)).scenarios == found


def test_a_post_of_a_session_passes_the_check_of_the_board(session: OpenSession) -> None:
    put(session, **{"p\x1b[1m": ChapterProgress(step="look", runs={"measure": add(session, 1, label="\x1b[31m")})})
    work = posted(session)
    assert checked(work) == work


def test_the_two_newest_runs_of_no_chapter_are_posted_and_none_of_a_proof(session: OpenSession) -> None:
    """A pair: the class compares its two runs without a change (docs/teaching.md, exercise 1)."""
    add(session, 1)
    pair = [add(session, 2), add(session, 3)]
    add(session, 4, proof="20260101-000009-bbbb")
    assert [(run.id, run.chapter) for run in posted(session).runs] == [(ident, "") for ident in pair]


def test_all_three_runs_of_a_hunt_are_posted(session: OpenSession) -> None:
    runs = {slot: add(session, n) for n, slot in enumerate(("measure", "again", "treated"))}
    put(session, hunt=ChapterProgress(runs=runs))
    assert {run.slot for run in posted(session).runs} == {"measure", "again", "treated"}


def test_a_chapter_of_another_course_is_the_current_one_under_its_own_name(session: OpenSession) -> None:
    put(session, **{"other/pinning": ChapterProgress(step="plan"), "pinning": ChapterProgress(step="look")})
    session.save(dataclasses.replace(session.session, course="other", current_chapter="pinning"))
    assert (posted(session).chapter, posted(session).step) == ("other/pinning", "plan")


def test_nothing_yet_and_far_too_much_are_posted_too(session: OpenSession) -> None:
    assert checked(posted(session)) == Posted("grace's afternoon")
    put(session, **{f"c{n}": ChapterProgress(hints=1000) for n in range(MAX_CHAPTERS + 5)})
    assert len(checked(posted(session)).chapters) == MAX_CHAPTERS


def test_a_run_that_cannot_be_read_is_left_out(session: OpenSession) -> None:
    ident = add(session, 1)
    for file in (session.folder / "runs" / ident).glob("*.hlog"):
        file.write_bytes(b"\xff")
    assert posted(session).runs[0].points  # the run's table stands in
    (session.folder / "runs" / ident / "run.json").write_text("{")
    with SessionStore(session.folder.parent).open(session.session.id) as again:
        assert posted(again).runs == ()


# When it is posted ---------------------------------------------------------------------------------------------------


class Board:
    """A board that takes what it is sent; ``gate`` keeps it from answering."""

    def __init__(self) -> None:
        self.came: list[Posted] = []
        self.error: Exception | None = None
        self.deaf = False
        self.gate = threading.Event()
        self.gate.set()
        self.begun = threading.Semaphore(0)
        self.taken = threading.Semaphore(0)
        self.interrupted = 0

    def send(self, work: Posted, stop: int) -> None:
        self.begun.release()
        while not self.gate.is_set():
            if select.select([] if self.deaf else [stop], [], [], 0.01)[0]:
                self.interrupted += 1
                raise WaitStopped("stopped")
        if self.error is not None:
            raise self.error
        self.came.append(work)
        self.taken.release()


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
def here() -> background_gate.BackgroundGate:
    return background_gate.BackgroundGate()


@pytest.fixture
def poster(
    session: OpenSession, board: Board, here: background_gate.BackgroundGate, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Poster]:
    monkeypatch.setattr(posting, "SOON_S", 0.0)
    monkeypatch.setattr(posting, "AGAIN_S", 600.0)
    monkeypatch.setattr(posting, "STILL_HERE_S", 600.0)
    made = Poster(session, board.send, here)
    yield made
    board.gate.set()
    made.close(LIMIT_S)


def made_turn(people: tuple[str, ...]) -> Turn:
    return Turn(1, os.geteuid(), people, Process(1, 1), Process(1, 1), 0.0, None)


def in_time(one: threading.Semaphore) -> None:
    assert one.acquire(timeout=LIMIT_S)


def test_a_step_is_posted_and_the_next_one_after_it(poster: Poster, board: Board, session: OpenSession) -> None:
    poster.wanted()
    in_time(board.taken)
    put(session, pinning=ChapterProgress(step="plan"))
    poster.wanted()
    in_time(board.taken)
    assert [work.step for work in board.came] == ["", "plan"]
    assert poster.close() == ""
    assert len(board.came) == 2


def test_a_post_that_failed_is_made_good_by_the_next(poster: Poster, board: Board, session: OpenSession) -> None:
    board.error = HostError(SILENT)
    put(session, pinning=ChapterProgress(step="plan"))
    poster.wanted()
    in_time(board.begun)
    board.error = None
    put(session, isolation=ChapterProgress(step="look"))
    poster.wanted()
    in_time(board.taken)
    assert [chapter.id for chapter in board.came[-1].chapters] == ["pinning", "isolation"]
    assert poster.close() == ""


def test_a_post_that_failed_is_tried_again_without_a_step(
    poster: Poster, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posting, "AGAIN_S", 0.0)
    board.error = HostError(SILENT)
    poster.wanted()
    in_time(board.begun)
    in_time(board.begun)
    board.error = None
    in_time(board.taken)


def test_an_idle_member_is_still_posted_as_present(
    poster: Poster, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posting, "STILL_HERE_S", 0.01)
    poster.wanted()
    for _ in range(3):
        in_time(board.taken)


def test_nothing_is_posted_while_something_is_measured(
    poster: Poster, board: Board, here: background_gate.BackgroundGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posting, "STILL_HERE_S", 0.01)
    with here.measuring():
        poster.wanted()
        with here.measuring():
            pass
        time.sleep(0.1)  # nothing is to happen: there is no event to wait for
        assert not board.begun.acquire(blocking=False)
    in_time(board.taken)


def test_a_measurement_stops_a_post_that_waits_and_it_is_made_afterwards(
    poster: Poster, board: Board, here: background_gate.BackgroundGate
) -> None:
    board.gate.clear()
    poster.wanted()
    in_time(board.begun)
    with here.measuring():
        assert board.interrupted == 1
        assert board.came == []
        board.gate.set()
    in_time(board.taken)
    assert poster.trouble == ""


def test_a_board_that_hangs_holds_up_neither_measuring_nor_leaving(
    poster: Poster, board: Board, here: background_gate.BackgroundGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_gate, "LONGEST_S", 0.05)
    board.gate.clear()
    board.deaf = True
    poster.wanted()
    in_time(board.begun)
    began = time.monotonic()
    with here.measuring():
        poster.wanted()
    assert poster.close(0.05) == "the board does not answer"
    assert time.monotonic() - began < LIMIT_S / 2


def test_leaving_brings_the_last_step_and_says_where_it_did_not(poster: Poster, board: Board) -> None:
    board.error = HostError("the board's service does not run")
    poster.wanted()
    in_time(board.begun)
    assert poster.close(LIMIT_S) == "the board's service does not run"


def test_leaving_waits_for_the_last_step(
    session: OpenSession, board: Board, here: background_gate.BackgroundGate
) -> None:
    poster = Poster(session, board.send, here)  # with its real patience: it does not wait for that
    began = time.monotonic()
    poster.wanted()
    assert poster.close(LIMIT_S) == ""
    assert len(board.came) == 1
    assert time.monotonic() - began < LIMIT_S / 2


def test_a_poster_that_was_never_asked_starts_no_thread(poster: Poster, board: Board) -> None:
    assert poster.close() == ""
    assert poster._thread is None


def test_a_team_is_posted_also_after_its_turn(poster: Poster, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    state = TurnState("boot", turn=made_turn(("grace", "alan\x1b[2J")))
    monkeypatch.setattr(posting, "read_turns", lambda: state)
    poster.wanted()
    in_time(board.taken)
    monkeypatch.setattr(posting, "read_turns", lambda: TurnState("boot"))
    poster.wanted()
    in_time(board.taken)
    assert board.came[-1].people == ("grace", "alan [2J")


def test_a_turn_of_another_member_is_not_the_own_turn(
    poster: Poster, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = TurnState("boot", turn=dataclasses.replace(made_turn(("grace", "alan")), uid=4_000_000))
    monkeypatch.setattr(posting, "read_turns", lambda: state)
    poster.wanted()
    in_time(board.taken)
    assert board.came[-1].people == ()


def test_the_workshop_posts_each_step_and_run_and_the_rest_at_the_end(
    session: OpenSession, poster: Poster, board: Board, tmp_path: Path
) -> None:
    context = SessionContext(session, HostRoot(tmp_path), None, None, poster=poster)  # type: ignore[arg-type]  # only the session is used
    context.save_progress("pinning", ChapterProgress(step="predict"))
    in_time(board.taken)
    assert board.came[-1].step == "predict"
    run, done = madeup.make_run(run_id="20260101-000001-aaaa")
    session.add_run(run, done)
    context.remember(run)
    in_time(board.taken)
    assert [one.id for one in board.came[-1].runs] == [run.id]
    board.gate.clear()
    context.tell_board()
    in_time(board.begun)
    context.save_progress("pinning", ChapterProgress(step="measure"))
    board.gate.set()
    context.leave()
    assert board.came[-1].step == "measure"
