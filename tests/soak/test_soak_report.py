"""A report of a session of 500 runs: in time, with every run in it, and brought back whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.madesessions import make_session

RUNS = 500
MOST_CPU_S = 3.0
"""Of processor time: what else the machine does is no part of it."""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with one session of 500 runs, real ones in shape and size."""
    folder = tmp_path_factory.mktemp("state")
    make_session(folder / "jitter-workshop" / "sessions", RUNS).close()
    return folder


def reported(state: Path, output: Path, *more: str) -> float:
    """Write the report; seconds of processor time that it took."""
    command = [sys.executable, "-m", "jitter_workshop", "report", "-o", str(output), *more]
    child = subprocess.Popen(command, env={**os.environ, "XDG_STATE_HOME": str(state)}, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    child.returncode = 0
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("ending", ["html", "md", "json"])
def test_it_is_made_in_time_and_has_every_run(state: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"report.{ending}"
    assert reported(state, path) < MOST_CPU_S
    (session,) = (state / "jitter-workshop" / "sessions").glob("*/session.json")
    ids = json.loads(session.read_text())["runs"]
    assert len(ids) == RUNS
    text = path.read_text()
    if ending == "json":
        assert [run["id"] for run in json.loads(text)["runs"]] == ids
    elif ending == "html":
        assert all(ident in text for ident in ids)
    else:
        assert all(label in text for label in ("baseline", "pinned", "pinned 249"))


def test_for_others_it_takes_no_longer_and_names_no_host(state: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert reported(state, path, "--private") < MOST_CPU_S
    text = path.read_text()
    assert "lab03" not in text
    assert "backup-agent" not in text
    assert path.stat().st_size < 3_000_000


def test_its_page_brings_all_of_the_session_back(state: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    reported(state, path)
    other = tmp_path / "other"
    command = [sys.executable, "-m", "jitter_workshop", "sessions", "import", str(path)]
    subprocess.run(command, env={**os.environ, "XDG_STATE_HOME": str(other)}, check=True, stdout=subprocess.DEVNULL)
    (was,) = (state / "jitter-workshop" / "sessions").glob("*/runs")
    (now,) = (other / "jitter-workshop" / "sessions").glob("*/runs")
    merged = sorted(p.relative_to(was) for p in was.glob("*/merged.hlog"))
    assert len(merged) == RUNS
    for one in merged:
        assert (now / one).read_bytes() == (was / one).read_bytes()
        beside = one.with_name("run.json")
        assert (now / beside).read_bytes() == (was / beside).read_bytes()
