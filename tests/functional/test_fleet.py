"""``fleet compare``: its exit codes, its lines in every width, and its JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from jitter_workshop.cli import main
from jitter_workshop.model.fleet import FleetComparison
from jitter_workshop.presenter.text.lines import NARROWEST
from tests import reportschema
from tests.madefleet import run_of, status_of, write_answer, write_fleet

NAMES = [f"node{number:02}" for number in range(12)]


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Twelve hosts; one is slow, one has another governor, and one file is broken."""
    write_fleet(tmp_path, NAMES, slow={"node07": 4.0})
    write_answer(tmp_path / "node03", "status.json", status_of("node03", {"governor": "powersave"}))
    write_answer(tmp_path / "node05", "torn.json", '{"format_version": 1, "che')
    return tmp_path


def test_hosts_that_differ_are_named_and_the_code_is_one(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "compare", str(fleet)]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "2 of 12 hosts differ from the rest: node03, node07."
    (odd,) = (line for line in out.splitlines() if line.startswith("governor"))
    assert odd.split() == ["governor", "usual", "11", "of", "12", "powersave", "node03"]
    strips = [line for line in out.splitlines() if line.startswith("node07")]
    assert len(strips) >= 4
    assert all(re.search("[●▸].*×", line) for line in strips)
    assert "torn.json: it has no whole JSON object" in err


def test_alike_hosts_end_with_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "compare", str(write_fleet(tmp_path, NAMES[:6], runs=3)), "--metric", "p99"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("6 hosts: no host was found to differ.\n")
    assert "p50" not in out


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
def test_it_fits_its_width(
    fleet: Path, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_answer(fleet / ("x" * 90 + "\x1b[31m"), "status.json", status_of("x", {"thp": "\u202ey" * 200}))
    write_answer(fleet / ("x" * 90 + "\x1b[31m"), "run.json", run_of("x", 1, 40.0))
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["fleet", "compare", str(fleet)]) == 1
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= max(columns, NARROWEST)
    assert not {"\x1b", "\u202e"} & set(out)


def test_the_json_fits_its_schema(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "compare", str(fleet), "--json", "--fdr", "0.1"]) == 1
    plain = json.loads(capsys.readouterr().out)
    whole = reportschema.schema(FleetComparison)
    assert reportschema.problems(plain, whole, whole) == []
    assert plain["fdr"] == 0.1
    assert {row["host"] for row in plain["rows"] if row["different"]} == {"node07"}
    assert {"figure", "host", "value", "low", "high", "different"} <= set(plain["rows"][0])
    assert [Path(one["file"]).name for one in plain["left_out"]] == ["torn.json"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "'fleet' alone does nothing"),
        (["count"], "there is no 'fleet count'"),
        (["compare"], "'fleet compare' needs files or folders"),
        (["compare", "/nowhere"], "there is no /nowhere"),
        (["compare", "FLEET", "--metric", "p98"], "no run has the figure p98"),
        (["compare", "FLEET", "--fdr", "1"], "not between 0 and 1"),
        (["compare", "FLEET", "--fdr", "x"], "not a number"),
        (["compare", "FLEET/node01"], "not two hosts to compare"),
    ],
)
def test_words_that_make_no_sense_are_refused(
    fleet: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", *(word.replace("FLEET", str(fleet)) for word in words)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


def test_many_odd_hosts_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"n{number:03}" for number in range(100)]
    write_fleet(tmp_path, names, slow=dict.fromkeys(names[:25], 9.0))
    assert main(["fleet", "compare", str(tmp_path), "--metric", "p99"]) == 1
    out = capsys.readouterr().out
    out = " ".join(out.split())
    assert "25 of 100 hosts differ from the rest: n000, n001, n002, n003, n004, n005 and 19 more." in out
    assert "5 more hosts: --json has all." in out
