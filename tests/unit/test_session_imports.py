"""Imported curves in a session: kept, found, drawn, and never taken for runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.cli import main
from jitter_workshop.errors import SessionError
from jitter_workshop.model.run import Run
from jitter_workshop.session import foreign
from jitter_workshop.session.store import SessionStore

SAMPLES = Path(__file__).parents[1] / "imports"
CYCLICTEST = str(SAMPLES / "cyclictest.json")
OSLAT = str(SAMPLES / "oslat.txt")
MakeRun = Callable[..., tuple[Any, Any]]


@pytest.fixture
def session(make_run: MakeRun) -> Path:
    """A session with one run, and both tools' curves imported; its folder."""
    with SessionStore().create("monday", "lab03") as opened:
        opened.add_run(*make_run([[100] * 1000 + [3_000_000] * 100], label="baseline"))
        folder = opened.folder
    assert main(["sessions", "import", CYCLICTEST, OSLAT]) == 0
    return folder


def test_they_are_kept_whole_and_are_no_runs(session: Path) -> None:
    with SessionStore().current() as opened:  # type: ignore[union-attr]
        cyclictest, oslat = opened.imports()
        assert [run.label for run in opened.runs()] == ["baseline"]
        assert len(opened.session.runs) == 1
        assert opened.find_any("cyclictest") == cyclictest
        assert opened.find_any(oslat.id) == oslat
        assert isinstance(opened.find_any("@1"), Run)
        with pytest.raises(SessionError, match="there is no run @2"):
            opened.find_any("@2")
        with pytest.raises(SessionError, match="there is no run cyclictest"):
            opened.find("cyclictest")
    (read,) = foreign.parse_foreign_file(foreign.content(Path(CYCLICTEST)), Path(CYCLICTEST).name)
    assert (cyclictest.bins, cyclictest.notes, cyclictest.origin) == (read.bins, read.notes, "by cyclictest 2.40")
    assert cyclictest.imported_at.endswith("Z")


def test_the_newest_of_a_label_is_meant(session: Path) -> None:
    assert main(["sessions", "import", OSLAT, "--label", "cyclictest"]) == 0
    with SessionStore().open("monday") as opened:
        assert opened.find_any("cyclictest").id == opened.imports()[-1].id


@pytest.mark.parametrize(
    "damage",
    [
        lambda v: v | {"bins": [[5, 9, 1], [3, 4, 1]]},
        lambda v: v | {"count": 7},
        lambda v: v | {"origin": ""},
        lambda v: v | {"bins": [], "points": []},
        lambda v: v | {"points": [[100.0, 3]]},
        lambda v: v | {"max_ns": None},
        lambda v: v | {"id": "other"},
        lambda v: [],
    ],
)
def test_a_damaged_import_is_set_aside(session: Path, damage: Callable[[dict[str, Any]], Any]) -> None:
    path = sorted((session / "imports").iterdir())[0]
    path.write_text(json.dumps(damage(json.loads(path.read_text()))))
    with SessionStore().open("monday") as opened:
        assert len(opened.imports()) == 1
        assert "is damaged" in opened.notices[-1]
    assert path.with_name(f"{path.name}.damaged-1").exists()
    with SessionStore().open("monday") as opened:
        assert len(opened.imports()) == 1
        assert opened.notices == []


def test_an_import_of_a_newer_version_is_left_alone(session: Path) -> None:
    path = sorted((session / "imports").iterdir())[0]
    path.write_text(json.dumps({"format_version": 2, "what": "ever"}))
    with SessionStore().open("monday") as opened:
        assert len(opened.imports()) == 1
        assert "newer version" in opened.notices[-1]
    assert path.exists()


def test_nothing_is_kept_where_one_of_the_files_is_wrong(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["sessions", "import", OSLAT, str(SAMPLES / "README.md")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "README.md has an unknown format" in captured.err
    assert captured.err.count("\n") == 1
    assert len(list((session / "imports").iterdir())) == 2


def test_into_a_first_session_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "import", CYCLICTEST, "--json", "--label", "theirs"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["format_version"] == 1
    (found,) = value["imported"]
    assert (found["label"], found["origin"], found["beyond"]) == ("theirs", "by cyclictest 2.40", 31)
    assert found["percentiles"]["50"] == 74_999
    assert found["percentiles"]["99"] is None
    assert [s["current"] for s in value["sessions"]] == [True]
    assert main(["sessions", "show", "@1", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [one["label"] for one in shown["imports"]] == ["theirs"]
    assert shown["run_list"] == []
    assert main(["chart", "theirs"]) == 0
    assert "by cyclictest 2.40" in capsys.readouterr().out


def test_drawn_beside_the_runs_and_marked(session: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["chart"]) == 0
    assert "cyclictest" not in capsys.readouterr().out
    assert main(["chart", "--imported"]) == 0
    captured = capsys.readouterr()
    assert "○ cyclictest  by cyclictest 2.40" in captured.out
    assert "□ oslat  by oslat 2.40" in captured.out
    assert "● baseline" in captured.out
    assert "note: of cyclictest: 31 of 3,000" in captured.err
    assert "samples lie beyond the histogram" in captured.err
    for kind in ("ccdf", "histogram"):
        assert main(["chart", "baseline", "oslat", "--kind", kind]) == 0
        assert "by oslat 2.40" in capsys.readouterr().out
    assert main(["chart", "--imported", "-o", str(tmp_path / "x.svg")]) == 0
    assert "by cyclictest 2.40" in (tmp_path / "x.svg").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["compare", "baseline", "oslat"], "was not measured here (by oslat 2.40), so it cannot be compared"),
        (["compare", "cyclictest", "baseline"], "draw both curves"),
        (["chart", "oslat", "--kind", "rates"], "was not measured here"),
        (["explain", "oslat"], "there is no run oslat"),
    ],
)
def test_an_imported_run_is_refused_where_a_measured_run_is_needed(
    session: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    capsys.readouterr()
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


def test_percentiles_alone_make_no_histogram(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "import", str(SAMPLES / "percentiles.hgrm"), "--unit", "us", "--label", "java"]) == 0
    assert main(["chart", "java"]) == 0
    assert "imported percentiles" in capsys.readouterr().out
    assert main(["chart", "java", "--kind", "histogram"]) == 2
    assert "has only percentiles" in capsys.readouterr().err


def test_one_curve_is_removed_and_nothing_else(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "import", CYCLICTEST]) == 0
    capsys.readouterr()
    before = {path.name: path.read_bytes() for path in (session / "imports").iterdir()}
    with SessionStore().open("monday") as opened:
        newest = f"{opened.find_any('cyclictest').id}.json"
    assert main(["sessions", "remove", "--import", "cyclictest", "--yes"]) == 0
    assert capsys.readouterr().out == "Removed cyclictest (by cyclictest 2.40) from monday.\n"
    left = {path.name: path.read_bytes() for path in (session / "imports").iterdir()}
    assert left == {name: content for name, content in before.items() if name != newest}
    assert main(["sessions", "remove", "--import", "oslat", "--yes", "--json", "--session", "monday"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert (value["removed"]["label"], [one["label"] for one in value["imports"]]) == ("oslat", ["cyclictest"])
    with SessionStore().open("monday") as opened:
        assert [run.label for run in opened.runs()] == ["baseline"]
        assert [run.label for run in opened.imports()] == ["cyclictest"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["remove", "--import", "cyclictest"], "--yes"),
        (["remove", "--import", "baseline", "--yes"], "there is no import baseline"),
        (["remove", "--import", "@1", "--yes"], "there is no import @1"),
        (["remove", "--import", "", "--yes"], "there is no import"),
        (["remove", "--import", "../session", "--yes"], "there is no import ../session"),
        (["remove", "monday", "--import", "cyclictest", "--yes"], "name the session with --session"),
        (["remove", "--import", "cyclictest", "--session", "nope", "--yes"], "there is no session nope"),
        (["list", "--import", "cyclictest"], "--import is only for 'sessions remove'"),
        (["import", OSLAT, "--import", "x"], "--import is only for 'sessions remove'"),
    ],
)
def test_a_wrong_removal_is_one_line(
    session: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["sessions", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert len(list((session / "imports").iterdir())) == 2


def test_a_session_that_another_process_writes_keeps_its_curves(
    session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with SessionStore().open("monday") as other:
        assert not other.read_only
        assert main(["sessions", "remove", "--import", "oslat", "--yes"]) == 2
        assert len(other.imports()) == 2
