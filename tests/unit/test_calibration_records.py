"""The calibration's lines: exact, appended, read again after a kill, and missing ones found."""

from __future__ import annotations

import json
import lzma
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calibration.plan import NullPlan, PowerPlan
from tests.calibration.recording import missing
from tests.calibration.records import (
    Taken,
    Unreadable,
    Writer,
    line_of,
    pack,
    plain_side,
    plain_sitting,
    read,
    side_from,
)
from tests.maderounds import LAPTOP, make_side

SMALL = NullPlan(2)


def made(slot: int, seed: int = 1) -> Taken:
    side = side_from(plain_side(make_side(random.Random(seed), LAPTOP, 0.2)), f"{slot:05d}")
    return Taken(slot, 1_700_000_000_000 + 1_500 * slot, 12, 0, None, {1_000: side})


def written(path: Path, *runs: Taken, plan: NullPlan | PowerPlan = SMALL) -> Path:
    writer = Writer(path)
    writer.sitting(plain_sitting(plan, {"host": {}}, {}))
    for one in runs:
        writer.run(one)
    writer.close()
    return path


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_a_side_of_whole_numbers_is_the_same_again(seed: int, spread: float) -> None:
    once = side_from(plain_side(make_side(random.Random(seed), LAPTOP, spread)), "run")
    assert side_from(json.loads(json.dumps(plain_side(once))), "run") == once


def test_written_records_are_read_back(tmp_path: Path) -> None:
    path = written(tmp_path / "series" / "null.jsonl", made(0), made(1, 7))
    found = read(path)
    assert (found.plan, found.runs, found.torn, len(found.sittings)) == (SMALL, {0: made(0), 1: made(1, 7)}, False, 1)


def test_a_torn_line_is_said_and_then_cut_off(tmp_path: Path) -> None:
    path = written(tmp_path / "null.jsonl", made(0), made(1))
    whole = path.read_bytes()
    for cut in range(1, len(line_of(made(1))) - 1, 37):
        path.write_bytes(whole[:-cut])
        assert read(path).torn
        assert read(path).runs == {0: made(0)}
    written(path, made(1, 3))
    found = read(path)
    assert (found.torn, found.runs, len(found.sittings)) == (False, {0: made(0), 1: made(1, 3)}, 2)


def test_of_a_run_that_was_made_again_the_later_counts(tmp_path: Path) -> None:
    found = read(written(tmp_path / "null.jsonl", made(0), made(0, 9)))
    assert (found.runs[0], found.again) == (made(0, 9), 1)


def test_packed_is_the_same_and_a_broken_pack_is_said(tmp_path: Path) -> None:
    path = written(tmp_path / "null.jsonl", made(1), made(0), made(0, 9))
    into = tmp_path / "data" / "null.jsonl.xz"
    assert pack(path, into) == into.stat().st_size
    assert read(into).runs == read(path).runs
    into.write_bytes(into.read_bytes()[:-9])
    with pytest.raises(Unreadable, match="not whole"):
        read(into)
    into.write_bytes(b"no archive")
    with pytest.raises(Unreadable, match=r"null\.jsonl\.xz"):
        read(into)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"[]", "line 2"),
        (b"{}", "line 2"),
        (b"\xff", "line 2"),
        (b'{"n":1,"at":1,"load":0,"foreign":0,"steal":null,"sides":{"1000":[0,1,1,1,[[1,1,1]],{}]}}', "line 2"),
        (b'{"sitting":{"series":"null","comparisons":4,"rounds":10}}', "another plan"),
        (b'{"sitting":{"series":"other"}}', "null or power"),
    ],
)
def test_a_broken_series_is_named_by_its_line(line: bytes, said: str, tmp_path: Path) -> None:
    path = written(tmp_path / "null.jsonl")
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(Unreadable, match=said):
        read(path)


def test_a_run_that_was_not_planned_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="run 80 was not planned"):
        read(written(tmp_path / "null.jsonl", made(80)))
    bare = tmp_path / "bare.jsonl"
    bare.write_bytes(line_of(made(1)))
    with pytest.raises(Unreadable, match="before any sitting"):
        read(bare)
    (tmp_path / "empty.jsonl.xz").write_bytes(lzma.compress(b""))
    with pytest.raises(Unreadable, match="no sitting"):
        read(tmp_path / "empty.jsonl.xz")


def test_missing_runs_are_made_unit_by_unit(tmp_path: Path) -> None:
    assert [slot.number for slot in missing(SMALL, None)] == list(range(80))
    done = [made(n) for n in (*range(5), 20, 21)]
    left = [slot.number for slot in missing(SMALL, read(written(tmp_path / "null.jsonl", *done)))]
    # 4 was made without 5: the round is made again as a whole; 20 and on are single runs.
    assert left == [*range(4, 20), *range(22, 80)]
