"""The board's database: what was posted comes back, bounded, and a later post takes the place of the one before."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.classroom.store import AWAY_S, DAMAGED, FILE, STUCK_S, BoardStore, checked
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.flow.classes.posting import STILL_HERE_S
from jitter_workshop.model.board import MAX_CHAPTERS, MAX_POINTS, MAX_TEXT, Banner, Posted, PostedChapter, PostedRun
from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.session import Guess
from jitter_workshop.model.text import clean
from jitter_workshop.model.turn import Process, Turn, TurnState, Waiting
from tests.madeboard import run, work


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def test_a_post_comes_back_as_it_was(folder: Path) -> None:
    with BoardStore(folder) as store:
        store.post(1001, "grace", work(run()), 1_000.0)
        (row,) = store.board("lab01", 1_060.0).rows
    assert (row.uid, row.user, row.posted) == (1001, "grace", work(run()))
    assert row.seen_at == "1970-01-01T00:16:40Z"
    assert row.idle_s == 60.0
    assert row.group == "at work"


def test_the_last_post_counts_and_the_best_curve_stays(folder: Path) -> None:
    with BoardStore(folder) as store:
        store.post(1001, "grace", work(run("slow", 90_000)), 0.0)
        store.post(1001, "grace", work(run("fast", 10_000)), 1.0)
        store.post(1001, "grace", work(run("middle", 50_000)), 2.0)
        (row,) = store.board("lab01", 3.0).rows
    assert [one.id for one in row.posted.runs] == ["middle"]
    assert [one.id for one in row.best] == ["fast"]


def test_a_member_that_posts_the_same_again_is_there_but_does_not_go_on(folder: Path) -> None:
    with BoardStore(folder) as store:
        store.post(1001, "grace", work(), 0.0)
        store.post(1001, "grace", work(), STUCK_S)
        store.post(1002, "alan", work(step="measure"), STUCK_S)
        store.post(1003, "edsger", work(done=True), 0.0)
        rows = store.board("lab01", STUCK_S).rows
    assert [(row.user, row.group) for row in rows] == [("grace", "stuck"), ("alan", "at work"), ("edsger", "away")]


def test_a_member_that_has_left_is_away_and_not_stuck(folder: Path) -> None:
    with BoardStore(folder) as store:
        store.post(1001, "grace", work(), 0.0)
        store.post(1001, "grace", work(), STUCK_S - AWAY_S)
        store.post(1002, "alan", work(), 0.0)
        store.post(1002, "alan", work(), STUCK_S - AWAY_S + 1.0)
        store.post(1003, "edsger", work(done=True), 0.0)
        store.post(1003, "edsger", work(done=True), STUCK_S)
        rows = store.board("lab01", STUCK_S).rows
    assert [(row.user, row.group) for row in rows] == [("alan", "stuck"), ("edsger", "done"), ("grace", "away")]
    assert AWAY_S > 2 * STILL_HERE_S
    assert AWAY_S <= STUCK_S / 2


def test_a_member_with_the_turn_or_in_the_queue_is_not_stuck(folder: Path) -> None:
    """Also their team; and no member is, while the class keeps turns from beginning."""
    root, own = Process(1, 1), Process(2, 2)
    turn = Turn(1, 1001, ("grace", "ilse"), root, own, 0.0, 240.0)
    state = TurnState("boot", 1, turn, (Waiting(1003, ("edsger",), root, own, 0.0, 240.0),))
    with BoardStore(folder) as store:
        for uid, user in enumerate(("grace", "ilse", "edsger", "alan", "ada"), 1001):
            store.post(uid, user, work(), 0.0)
        store.post(1004, "alan", work(), STUCK_S)
        found = {
            name: {row.user: row.group for row in store.board("lab01", STUCK_S, turns=one).rows}
            for name, one in (("", state), ("frozen", replace(state, frozen_by="ada")))
        }
    assert found[""] == {"alan": "stuck", "grace": "at work", "ilse": "at work", "edsger": "waiting", "ada": "away"}
    assert found["frozen"] == {**found[""], "alan": "waiting"}


def test_curves_of_different_workloads_are_not_measured_by_each_other(folder: Path) -> None:
    with BoardStore(folder) as store:
        store.post(1001, "grace", work(run("ring", 90_000)), 0.0)
        store.post(1001, "grace", work(replace(run("spin", 5_000), workload="spin")), 1.0)
        (row,) = store.board("lab01", 3.0).rows
    assert {one.id for one in row.best} == {"ring", "spin"}


def test_a_user_number_that_is_given_to_another_user_brings_nothing_along(folder: Path) -> None:
    with BoardStore(folder) as store:
        store.post(1001, "grace", work(run("hers", 4_000)), 0.0)
        store.post(1001, "alan", work(run("his", 90_000)), 5.0)
        (row,) = store.board("lab01", 5.0).rows
    assert (row.user, row.idle_s) == ("alan", 0.0)
    assert [one.id for one in row.best] == ["his"]


def test_one_members_row_and_forgetting(folder: Path) -> None:
    with BoardStore(folder) as store:
        store.post(1001, "grace", work(run()), 0.0)
        store.post(1002, "alan", work(run()), 0.0)
        assert [row.user for row in store.board("lab01", 1.0, only=1002).rows] == ["alan"]
        assert store.forget("alan") == 1
        assert store.forget("alan") == 0
        assert [row.user for row in store.board("lab01", 1.0).rows] == ["grace"]
        assert store.forget(None) == 1
        assert store.board("lab01", 1.0).rows == ()


def test_the_banner(folder: Path) -> None:
    with BoardStore(folder) as store:
        assert store.banner() is None
        said = Banner("ada", "2026-01-01T00:00:00Z", "pinning", "compare", "look here")
        store.say(said)
        assert store.banner() == said
        store.say(None)
        assert store.banner() is None


def in_threads(what: Callable[[int], None], numbers: range) -> None:
    """Each number on a thread of its own; raises what one of them raised."""
    with ThreadPoolExecutor(len(numbers)) as pool:
        for one in [pool.submit(what, number) for number in numbers]:
            one.result()


TEXTS = st.text(st.characters(), max_size=MAX_TEXT + 5)
RUNS = st.builds(
    PostedRun,
    TEXTS,
    TEXTS,
    TEXTS,
    TEXTS,
    TEXTS,
    TEXTS,
    st.lists(st.tuples(st.floats(), st.integers()), max_size=4).map(tuple),
    st.none() | st.floats(),
)
GUESSES = st.builds(Guess, st.none() | TEXTS, st.none() | TEXTS, st.none() | st.integers())
CHAPTERS = st.builds(
    PostedChapter, TEXTS, TEXTS, st.booleans(), st.booleans(), st.booleans(), st.integers(-5, 120), st.none() | GUESSES
)
everything = st.builds(
    Posted,
    TEXTS,
    st.lists(TEXTS, max_size=9).map(tuple),
    st.none() | TEXTS,
    TEXTS,
    st.lists(CHAPTERS, max_size=3).map(tuple),
    st.lists(RUNS, max_size=3).map(tuple),
)
MANY = tuple(PostedChapter(str(n), "", False, False, False) for n in range(MAX_CHAPTERS + 1))


@pytest.mark.parametrize(
    "posted",
    [
        replace(work(), chapters=MANY),
        replace(work(), chapters=work().chapters * 2),
        replace(work(), chapters=(replace(work().chapters[0], hints=101),)),
        replace(work(), chapters=(replace(work().chapters[0], prediction=Guess(value_ns=-1)),)),
        replace(work(), people=("x",) * 9),
        replace(work(), session="x" * 201),
        work(replace(run(), points=((50.0, 10),) * 2)),
        work(replace(run(), points=((50.0, 10), (99.0, 9)))),
        work(replace(run(), points=((float("nan"), 10),))),
        work(replace(run(), points=((-1.0, 10),))),
        work(replace(run(), points=((50.0, -1),))),
        work(replace(run(), points=((50.0, 1 << 62),))),
        work(replace(run(), points=tuple((n / 2, n) for n in range(MAX_POINTS + 1)))),
        work(replace(run(), stolen_ns_per_second=float("nan"))),
        work(replace(run(), stolen_ns_per_second=-1.0)),
    ],
)
def test_an_unfit_post_is_refused_and_changes_nothing(folder: Path, posted: Posted) -> None:
    with BoardStore(folder) as store:
        store.post(1001, "grace", work(), 0.0)
        with pytest.raises(UsageError):
            store.post(1001, "grace", posted, 1.0)
        (row,) = store.board("lab01", 1.0).rows
    assert row.posted == work()


def test_the_stored_data_of_a_member_are_bounded(folder: Path) -> None:
    with BoardStore(folder) as store:
        for n in range(3 * MAX_CHAPTERS):
            store.post(1001, "grace", work(run(chapter=f"chapter {n}")), float(n))
        (row,) = store.board("lab01", 1e6).rows
    assert len(row.best) <= MAX_CHAPTERS


def test_writers_wait_for_each_other_and_lose_nothing(folder: Path) -> None:
    BoardStore(folder).__exit__()

    def many(uid: int) -> None:
        for n in range(20):
            with BoardStore(folder) as store:
                store.post(uid, f"user{uid}", work(run(f"{n}", 10_000 * (20 - n))), float(n))

    in_threads(many, range(4))
    with BoardStore(folder) as store:
        rows = store.board("lab01", 0.0).rows
    assert {row.uid: row.best[0].id for row in rows} == dict.fromkeys(range(4), "19")


def test_the_removal_of_a_journal_is_synced_before_a_post_is_answered(folder: Path) -> None:
    """With less a power cut of the lab machine lost a post that had been answered (tests/lab/test_lab_class_cuts)."""
    with BoardStore(folder) as store:
        assert store._base.execute("pragma synchronous").fetchone() == (3,)


def test_forgotten_data_are_in_no_file_any_more(folder: Path) -> None:
    """Posts of changing length, so that pages are split, moved and freed."""
    with BoardStore(folder) as store:
        for n in range(60):
            for uid, user in ((1001, "graceHOPPER"), (1002, "alanTURING")):
                step = f"{user}-{n}-" + "x" * (n * 37 % 190)
                store.post(
                    uid, user, work(*(run(f"{step}"[:150], chapter=f"c{i}") for i in range(n % 7)), step=step[:190]), n
                )
        assert b"graceHOPPER" in b"".join(file.read_bytes() for file in folder.iterdir())
        assert store.forget("graceHOPPER") == 1
        assert [row.user for row in store.board("lab01", 0.0).rows] == ["alanTURING"]
    left = b"".join(file.read_bytes() for file in folder.iterdir())
    assert b"graceHOPPER" not in left
    assert b"alanTURING" in left


def test_data_replaced_by_a_post_are_in_no_file_any_more(folder: Path) -> None:
    before = work(*(run(f"of before {n}", chapter=f"c{n}") for n in range(60)))
    with BoardStore(folder) as store:
        store.post(1001, "grace", replace(before, runs=tuple(replace(r, points=()) for r in before.runs)), 0.0)
        store.post(1001, "grace", work(step="now"), 1.0)
    assert b"of before" not in (folder / FILE).read_bytes()


def test_a_newer_database_is_left_alone(folder: Path) -> None:
    with sqlite3.connect(folder / FILE) as base:
        base.execute("pragma user_version = 99")
    with pytest.raises(HostError, match="newer version"):
        BoardStore(folder)
    assert not (folder / DAMAGED).exists()


def damage_whole(file: Path) -> None:
    file.write_bytes(b"no database at all" * 1000)


def damage_a_page(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[4096 : 2 * 4096] = b"\xff" * 4096
    file.write_bytes(data)


def damage_by_cutting(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:6000])


@pytest.mark.parametrize("damage", [damage_whole, damage_a_page, damage_by_cutting])
def test_a_damaged_database_is_set_aside_and_told_and_the_next_posts_bring_all_back(
    folder: Path, damage: Callable[[Path], None]
) -> None:
    with BoardStore(folder) as store:
        store.post(1001, "graceHOPPER", work(run()), 0.0)
    damage(folder / FILE)
    damaged = (folder / FILE).read_bytes()
    with BoardStore(folder) as store:
        told = store.board("lab01", 1.0)
        assert told.rows == ()
        assert DAMAGED in told.notes["the board"]
        store.post(1001, "graceHOPPER", work(run()), 2.0)
        assert [row.user for row in store.board("lab01", 2.0).rows] == ["graceHOPPER"]
        assert (folder / DAMAGED).read_bytes() == damaged
        store.forget("graceHOPPER")
        assert store.board("lab01", 2.0).notes == {}
    assert not (folder / DAMAGED).exists()


def test_many_that_find_it_damaged_at_once_set_it_aside_once(folder: Path) -> None:
    damage_whole(folder / FILE)
    go = threading.Barrier(6)

    def post(uid: int) -> None:
        go.wait()
        with BoardStore(folder) as store:
            store.post(uid, f"user{uid}", work(), 0.0)

    in_threads(post, range(6))
    with BoardStore(folder) as store:
        assert {row.uid for row in store.board("lab01", 0.0).rows} == set(range(6))


def test_a_full_disk_loses_nothing_that_was_there(folder: Path) -> None:
    with BoardStore(folder) as store:
        store.post(1001, "grace", work(), 0.0)
        pages = store._base.execute("pragma page_count").fetchone()[0]
        store._base.execute(f"pragma max_page_count = {pages}")
        with pytest.raises(HostError, match="cannot be written: database or disk is full") as told:
            store.post(1001, "grace", work(*(run(f"r{n}", chapter=f"c{n}") for n in range(60))), 1.0)
        assert "the next post sends the new results again" in told.value.advice
        (row,) = store.board("lab01", 1.0).rows
        assert row.posted == work()
        store._base.execute(f"pragma max_page_count = {pages + 100}")
        store.post(1001, "grace", work(run("later")), 2.0)
        assert store.board("lab01", 2.0).rows[0].posted.runs[0].id == "later"


@given(everything)
def test_any_post_is_kept_fit_to_be_shown_or_refused(posted: Posted) -> None:
    try:
        kept = checked(posted)
    except UsageError:
        return
    assert checked(kept) == kept
    assert json.dumps(to_plain(kept), allow_nan=False).isprintable()
    words = [kept.session, kept.step, *kept.people, *(run.label for run in kept.runs)]
    assert all(clean(word, MAX_TEXT) == word for word in words)


def test_a_row_that_cannot_be_read_is_named_and_the_others_are_shown(folder: Path) -> None:
    with BoardStore(folder) as store:
        store.post(1001, "grace", work(), 0.0)
        store.post(1002, "alan", work(), 0.0)
    with sqlite3.connect(folder / FILE) as base:
        base.execute("update member set posted = ? where uid = 1001", (json.dumps({"session": 7}),))
    with BoardStore(folder) as store:
        board = store.board("lab01", 0.0)
    assert [row.user for row in board.rows] == ["alan"]
    assert "cannot be read" in board.notes["grace"]


def test_a_value_beyond_the_curve_is_not_known() -> None:
    assert run(p999=7_000).value_at() == 7_000
    assert replace(run(), points=((50.0, 1),)).value_at() is None
