"""The audit: who changed what, and that nobody pushes it out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jitter_workshop.agent import audit
from jitter_workshop.agent.audit import CHANGES, REFUSALS, Audit


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Any]:
    state = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield SimpleNamespace(state=state)
    os.close(state)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_refusals_never_push_a_change_out_of_the_audit(
    folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MAX_BYTES", 2000)
    Audit(folder, "ada", 1000).changed("applied", tunable="thp", path="/sys/x", before="a", after="b")
    mallory = Audit(folder, "mallory", 1001)
    for number in range(200):
        mallory.refused("refused", f"number {number}")
    (kept,) = lines(tmp_path / CHANGES)
    assert (kept["user"], kept["what"], kept["before"]) == ("ada", "applied", "a")
    assert lines(tmp_path / REFUSALS)[-1]["why"] == "number 199"
    assert all(file.stat().st_size <= 2000 for file in tmp_path.iterdir())


def test_words_of_callers_stay_on_their_line(folder: Any, tmp_path: Path) -> None:
    Audit(folder, "ada", 1000).changed("turn", doing='\x1b[2J"}\n{"user":"root"')
    (kept,) = lines(tmp_path / CHANGES)
    assert kept["user"] == "ada"
    assert "\x1b" not in kept["doing"]


def test_a_log_that_cannot_be_written_keeps_nobody_from_giving_back(folder: Any, tmp_path: Path) -> None:
    (tmp_path / CHANGES).mkdir()
    (tmp_path / REFUSALS).symlink_to(tmp_path / "elsewhere")
    log = Audit(cast(Any, folder), "ada", 1000)
    log.changed("applied")
    log.refused("refused", "no")
    assert not (tmp_path / "elsewhere").exists()
