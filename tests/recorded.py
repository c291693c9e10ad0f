"""The recorded lab machine, a watch over what a walk on it may not do, and whether curves that were not measured here
say so."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

from jitter_workshop.errors import HostError
from jitter_workshop.model.course import Chapter
from jitter_workshop.paths import assets

RECORDINGS = assets() / "recordings"

_OWN, _FOREIGN = "●■◆▲▼★", "○□◇△▬"
"""The marks of curves that were measured here, and of all others."""
_ELSEWHERE = re.compile(r"\b(?:recorded|published|laptop)\b")
"""The words that name a curve of another machine: the published ones are a laptop's."""


def contents(root: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(p): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file() and not p.is_symlink()}


def in_a_line(said: str) -> str:
    """A text without its line breaks."""
    return " ".join(said.split())


def recorded_runs(chapter: Chapter) -> tuple[list[str], str]:
    """Of a chapter's runs on another machine, as the file has them: how many messages each had, as a table writes it,
    and what machine that was; ([], "") without any. A second run to which nothing was applied is none of a chapter that
    is about what is applied, and the runs of an emulated machine have no curves."""
    found: dict[str, Any] = json.loads((assets() / "recorded-runs.json").read_text())["chapters"].get(chapter.id, {})
    if found.get("emulated"):
        return [], ""
    runs = dict(found.get("runs", {}))
    if chapter.tunables and not runs.get("again", {}).get("applied"):
        runs.pop("again", None)
    return [f"{figures['count']:,}" for figures in runs.values()], found.get("source", "")


@contextmanager
def nothing_touched(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing may be written below ``root``, no agent asked for, no run made, no process started."""
    tried: list[str] = []

    def refuse(what: str) -> Any:
        def never(*args: object, **how: object) -> NoReturn:
            tried.append(what)
            raise HostError(f"{what}, on a recording")

        return never

    monkeypatch.setattr(
        "jitter_workshop.flow.host_ops.agent_connection.connect_to_agent", refuse("an agent was asked for")
    )
    monkeypatch.setattr("jitter_workshop.flow.measuring.measure.measure_run", refuse("a run was begun"))
    monkeypatch.setattr(subprocess, "Popen", refuse("a process was started"))
    before = contents(root)
    yield
    assert tried == []
    assert contents(root) == before


def legend_of(picture: str) -> list[str]:
    """The lines of a chart's text that name its curves."""
    return [line for line in picture.split("\n") if line[:1] and line[0] in _OWN + _FOREIGN and line[1:2] == " "]


def curves_in(page: str) -> list[str]:
    """Return what names a chart's curves: its legend, or where there is no room for a chart, a line a curve and the one
    below it that says where it is from."""
    figures = re.findall(r"^(\S.* p99\.9 [\d.,]+ .?s)(\n  \(.*\))?$", page, re.M)
    return legend_of(page) or ["".join(both) for both in figures]


def tables_of(page: str) -> list[tuple[str, list[str]]]:
    """The tables of percentiles in a page: what stands above their values, and the row of how many there were."""
    lines = page.split("\n")
    found = []
    for last in (n for n, line in enumerate(lines) if re.match(r" *count +\d", line)):
        first = max((n for n in range(last) if re.match(r" *p50 +\d", lines[n])), default=None)
        if first is None:  # a line of text that begins with "count 9"
            continue
        head = list(itertools.takewhile(lambda line: line.startswith("   ") and line.strip(), reversed(lines[:first])))
        found.append(("\n".join(reversed(head)), lines[last].split()[1:]))
    return found


def passes_for_measured(page: str, *, cut: bool = False) -> list[str]:
    """Return which names of curves in a page, all of them of other machines, do not say so, or say the contrary: []
    where all do. ``cut``: a table may lose its right end."""
    wrong = [
        line for line in curves_in(page) if line[0] in _OWN or "measured" in line.lower() or not _ELSEWHERE.search(line)
    ]
    for head, values in tables_of(page):
        told = any(len(_ELSEWHERE.findall(row)) == len(values) for row in head.split("\n"))
        if "measured" in head.lower() or not (told or cut):
            wrong.append(head)
    return wrong
