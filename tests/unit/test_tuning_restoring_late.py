"""A setting that the kernel takes up a moment after the write: nothing of ours stays behind, whenever the kill came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Change
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.applying import apply_changes
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.journal import Entry, EntryState, Journal
from jitter_workshop.tuning.planning import plan_changes
from jitter_workshop.tuning.restoring import restore_journals
from jitter_workshop.tuning.setting_types.cpu import FrequencyLimit
from jitter_workshop.tuning.tunables.registry import parse_wanted
from jitter_workshop.tuning.writer import HostWriter
from tests import hosttrees

LIMIT = f"/{hosttrees.CPU}/cpufreq/policy1/scaling_min_freq"


class Late(HostWriter):
    """Takes up the last value of a file at the ``looks``-th look at it after the write."""

    def __init__(self, root: Path, looks: int = 3) -> None:
        super().__init__(root)
        self.pending: tuple[str, str] | None = None
        self.written: list[str] = []
        self._looks, self._left = looks, 0

    def write(self, path: str, text: str) -> None:
        self.pending, self._left = (path, text), self._looks
        self.written.append(text)

    @property
    def reader(self) -> HostRoot:
        self._left -= 1
        if self._left <= 0:
            self.take_up()
        return super().reader

    def take_up(self) -> None:
        if self.pending:
            super().write(self.pending[0], f"{self.pending[1]}\n")
        self.pending = None


class NoBook:
    """A journal that is not read again."""

    def __getattr__(self, name: str) -> Any:
        return lambda *told: None


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    hosttrees.small(tmp_path, 2)
    return hosttrees.write(
        tmp_path,
        hosttrees.policy(1, cpus="1", driver="acpi-cpufreq", governor="powersave", low_khz=800_000, high_khz=2_400_000),
    )


def changes(tree: Path) -> tuple[Change, ...]:
    return plan_changes(Host(HostRoot(tree), CpuSet.parse_list("1")), parse_wanted(["min-frequency"])).changes


def journal(state: EntryState) -> Journal:
    entry = Entry(
        "1", 1, "min-frequency", LIMIT, "frequency-limit", "800000", "2400000", "runtime", False, "", "boot", state
    )
    return Journal("1", "boot", entries={1: entry})


def text(tree: Path) -> str:
    return (tree / LIMIT[1:]).read_text().strip()


def test_the_write_is_waited_for(tree: Path) -> None:
    done = apply_changes(HostRoot(tree), Late(tree), changes(tree), NoBook())
    assert [one.read_back for one in done.applied] == ["2400000"]
    assert done.refused == ()


def test_a_write_that_is_not_taken_up_in_time_is_taken_back(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FrequencyLimit, "patience_s", 0.01)
    writer = Late(tree, looks=1_000)
    done = apply_changes(HostRoot(tree), writer, changes(tree), NoBook())
    assert len(done.refused) == 1
    writer.take_up()
    assert text(tree) == "800000"


def test_a_kill_right_behind_the_write_leaves_nothing(tree: Path) -> None:
    writer = Late(tree)
    writer.write(LIMIT, "2400000")
    assert text(tree) == "800000"
    done = restore_journals(HostRoot(tree), writer, [(journal("intent"), NoBook())], "boot")
    writer.take_up()
    assert text(tree) == "800000"
    assert done.left_alone == ()


def test_a_written_value_that_stands_as_before_is_not_written_again(tree: Path) -> None:
    writer = Late(tree)
    restore_journals(HostRoot(tree), writer, [(journal("written"), NoBook())], "boot")
    assert writer.written == []
