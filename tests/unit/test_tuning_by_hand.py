"""Test adopting writes that a user made by hand: the planned value, or another one that the user says is theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitter_workshop.host.root import HostRoot
from jitter_workshop.tuning import by_hand
from jitter_workshop.tuning.journal import Entry

INTERVAL = "proc/sys/vm/stat_interval"


class Recorded:
    """Note what was recorded as written."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str | None]] = []

    def written(self, n: int, read_back: str | None) -> None:
        self.found.append((n, read_back))


def announced(tree: Path, value: str) -> Entry:
    """Return the entry of a plan from 1 to 10, on a host whose setting has ``value``."""
    file = tree / INTERVAL
    file.parent.mkdir(parents=True)
    file.write_text(f"{value}\n")
    return Entry("j", 1, "stat-interval", f"/{INTERVAL}", "value", "1", "10", "runtime", False, "", None)


@pytest.mark.parametrize(
    ("value", "wrong", "taken"),
    [("10", False, True), ("77", False, False), ("77", True, True), ("1", True, False)],
)
def test_a_value_counts_as_typed_if_it_is_planned_or_the_user_says_so(
    tmp_path: Path, value: str, wrong: bool, taken: bool
) -> None:
    entry, recorded = announced(tmp_path, value), Recorded()
    applied, refused = by_hand.adopt(HostRoot(tmp_path), [entry], recorded, wrong=wrong)  # type: ignore[arg-type]
    assert recorded.found == ([(1, value)] if taken else [])
    assert ([one.read_back for one in applied], len(refused)) == (([value], 0) if taken else ([], 1))
    assert entry.state == ("written" if taken else "intent")


def test_another_value_that_is_typed_later_is_recorded_too(tmp_path: Path) -> None:
    """A restore leaves a value alone that is not in the journal."""
    entry, recorded = announced(tmp_path, "77"), Recorded()
    for value in ("77", "77", "78", "78"):
        (tmp_path / INTERVAL).write_text(f"{value}\n")
        applied, refused = by_hand.adopt(HostRoot(tmp_path), [entry], recorded, wrong=True)  # type: ignore[arg-type]
        assert ([one.read_back for one in applied], refused) == ([value], [])
        assert entry.read_back == value
    assert recorded.found == [(1, "77"), (1, "78")]
