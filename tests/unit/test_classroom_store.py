"""The board's database: what was posted comes back, bounded, and a later post takes the place of the one before."""

from __future__ import annotations

import json
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from jitter_workshop.classroom.store import FILE, STUCK_S, BoardStore, value_at
from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.model.board import MAX_CHAPTERS, MAX_POINTS, Banner, Posted, PostedChapter
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
    assert not row.stuck


def test_the_last_post_counts_and_the_best_curve_stays(folder: Path) -> None:
    with BoardStore(folder) as store:
        store.post(1001, "grace", work(run("slow", 90_000)), 0.0)
        store.post(1001, "grace", work(run("fast", 10_000)), 1.0)
        store.post(1001, "grace", work(run("middle", 50_000)), 2.0)
        (row,) = store.board("lab01", 3.0).rows
    assert [one.id for one in row.posted.runs] == ["middle"]
    assert [one.id for one in row.best] == ["fast"]


def test_who_posts_the_same_again_is_there_but_does_not_go_on(folder: Path) -> None:
    with BoardStore(folder) as store:
        store.post(1001, "grace", work(), 0.0)
        store.post(1001, "grace", work(), STUCK_S)
        store.post(1002, "alan", work(step="measure"), STUCK_S)
        store.post(1003, "edsger", work(done=True), 0.0)
        rows = store.board("lab01", STUCK_S).rows
    assert [(row.user, row.stuck) for row in rows] == [("grace", True), ("alan", False), ("edsger", False)]


def test_one_members_row_and_forgetting(folder: Path) -> None:
    with BoardStore(folder) as store:
        store.post(1001, "grace", work(run()), 0.0)
        store.post(1002, "alan", work(run()), 0.0)
        assert [row.user for row in store.board("lab01", 1.0, only=1002).rows] == ["alan"]
        assert store.forget(1002) == 1
        assert store.forget(1002) == 0
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


MANY = tuple(PostedChapter(str(n), "", False, False, False) for n in range(MAX_CHAPTERS + 1))


@pytest.mark.parametrize(
    "posted",
    [
        replace(work(), chapters=MANY),
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
def test_what_makes_no_sense_is_refused_and_changes_nothing(folder: Path, posted: Posted) -> None:
    with BoardStore(folder) as store:
        store.post(1001, "grace", work(), 0.0)
        with pytest.raises(UsageError):
            store.post(1001, "grace", posted, 1.0)
        (row,) = store.board("lab01", 1.0).rows
    assert row.posted == work()


def test_what_a_member_can_store_is_bounded(folder: Path) -> None:
    with BoardStore(folder) as store:
        for n in range(3 * MAX_CHAPTERS):
            store.post(1001, "grace", work(run(chapter=f"chapter {n}")), float(n))
        (row,) = store.board("lab01", 1e6).rows
    assert len(row.best) <= MAX_CHAPTERS


def test_writers_wait_for_each_other_and_lose_nothing(folder: Path) -> None:
    BoardStore(folder).__exit__()
    failures: list[WorkshopError] = []

    def many(uid: int) -> None:
        try:
            for n in range(20):
                with BoardStore(folder) as store:
                    store.post(uid, f"user{uid}", work(run(f"{n}", 10_000 * (20 - n))), float(n))
        except WorkshopError as error:
            failures.append(error)

    threads = [threading.Thread(target=many, args=(uid,)) for uid in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failures
    with BoardStore(folder) as store:
        rows = store.board("lab01", 0.0).rows
    assert {row.uid: row.best[0].id for row in rows} == dict.fromkeys(range(4), "19")


def test_a_damaged_or_newer_database_is_an_answer(folder: Path) -> None:
    (folder / FILE).write_bytes(b"no database at all" * 100)
    with pytest.raises(HostError, match="cannot be opened"):
        BoardStore(folder)
    (folder / FILE).unlink()
    with sqlite3.connect(folder / FILE) as base:
        base.execute("pragma user_version = 99")
    with pytest.raises(HostError, match="newer version"):
        BoardStore(folder)


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
    assert value_at(run(p999=7_000), 99.9) == 7_000
    assert value_at(replace(run(), points=((50.0, 1),)), 99.9) is None
