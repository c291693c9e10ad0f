"""compare of many runs: one table, who is not compared, and a gate that says which run failed and by how much."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from jitter_workshop.cli import main
from jitter_workshop.session.store import SessionStore
from jitter_workshop.stats.sample_size import FEW_SAMPLES, LEGEND

MakeRun = Callable[..., tuple[Any, Any]]


@pytest.fixture
def runs(make_run: MakeRun) -> list[str]:
    """Seven runs, each slower than the one before; the sixth is of another interval."""
    ids = [f"r{n}" for n in range(7)]
    with SessionStore().create("monday", "lab03") as opened:
        for n, ident in enumerate(ids):
            values = [100] * 4_000 + [1_000 * (n + 1)] * 100 + [200_000 * n + 50] * 3
            label = ("baseline", "<b>\x1b[31m" + "x" * 90, "", "quiet", "noise", "other", "last")[n]
            interval = {"interval_ns": 50_000} if n == 5 else {}
            opened.add_run(*make_run([values], run_id=ident, label=label, **interval))
    return ids


@pytest.mark.parametrize("others", [1, 2, 4])
def test_forty_columns_are_enough(
    runs: list[str], others: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    main(["compare", *runs[: others + 1], "--gate", "99.9"])
    lines = capsys.readouterr().out.splitlines()
    assert not [line for line in lines if len(line) > 40]
    assert any("p99.9" in line for line in lines)


@pytest.mark.parametrize("many", [2, 3, 4, 6])
def test_many_runs_are_one_table_of_eighty_columns(
    runs: list[str], many: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *runs[: many + 1]]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert "A   baseline · r0" in text
    assert "B2  r2" in text
    assert text.count("Single runs prove nothing") == 1
    assert ("interval: 10 µs against 50 µs" in text) is (many == 6)


def test_columns_hold_every_measure_with_its_ratio(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *runs[:4]]) == 0
    lines = capsys.readouterr().out.splitlines()
    head = next(line for line in lines if "B1/A" in line)
    assert head.split() == ["A", "B1", "B1/A", "B2", "B2/A", "B3", "B3/A"]
    assert re.split(r"\s{2,}", next(line for line in lines if line.startswith("p99 ")).strip()) == [
        "p99", "1 µs", "2 µs", "2×", "3 µs", "3×", "4 µs", "4×",
    ]  # fmt: skip
    named = [line.split("  ")[0] for line in lines]
    at = [named.index(name) for name in ("stalls over 1 ms", "time in stalls", "mean", "p50", "p99", "worst seen")]
    assert at == sorted(at)


@pytest.mark.parametrize("others", [1, 2, 4])
def test_compare_marks_percentiles_of_few_samples(
    runs: list[str], others: int, capsys: pytest.CaptureFixture[str]
) -> None:
    # 4,103 messages: four of them beyond p99.9, 41 beyond p99.
    assert main(["compare", "r0", *runs[1 : 1 + others]]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"{FEW_SAMPLES}  {LEGEND[FEW_SAMPLES]}" in lines
    if others <= 3:
        assert next(line for line in lines if line.startswith("p99.9 ")).count("·") == others + 1
        assert "·" not in next(line for line in lines if line.startswith("p99 "))
    assert max(map(len, lines)) <= 80


def test_lines_hold_a_run_each_where_columns_do_not_fit(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *runs, "--gate", "p90"]) == 2
    assert "interval" in capsys.readouterr().err
    assert main(["compare", *runs[:5], runs[6], "--gate", "p90"]) == 0
    lines = capsys.readouterr().out.splitlines()
    head = next(line for line in lines if "worst" in line)
    assert head.split()[-3:] == ["p90", "/A", "worst"]
    above = lines[lines.index(head) - 1]
    assert (above.strip(), above.index("time in") + len("time in")) == ("time in", head.index("stalls") + len("stalls"))
    assert [line[:3].strip() for line in lines[lines.index(head) + 1 :][:6]] == ["A", "B1", "B2", "B3", "B4", "B5"]


def test_runs_that_are_all_unlike_have_no_table(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    with SessionStore().create("monday", "lab03") as opened:
        for n, interval in enumerate((10_000, 20_000, 50_000)):
            opened.add_run(*make_run(run_id=f"r{n}", interval_ns=interval))
    assert main(["compare", "r0", "r1", "r2"]) == 0
    text = capsys.readouterr().out
    assert text.count("not compared") == 2
    assert "p50" not in text


def test_a_gate_names_the_failed_run_and_its_ratio(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "r0", "r1", "r3", "--gate", "99", "--tolerance", "250"]) == 1
    text = capsys.readouterr().out
    assert "gate p99 not passed: 1 of" in text
    assert "of 2 runs is higher than A" in text
    assert "more than 250 %" in text
    assert "  quiet: 4 µs against 1 µs, 4×" in text
    assert main(["compare", "r0", "r1", "r3", "--gate", "99", "--tolerance", "301"]) == 0
    out = capsys.readouterr().out
    assert "gate p99 passed: no run is higher" in out
    assert "than A by more than 301 %" in out


def test_a_gate_as_json(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "r0", "r1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["gate"] is None
    assert main(["compare", "r0", "r1", "r3", "--gate", "p99.9", "--json"]) == 1
    gate = json.loads(capsys.readouterr().out)["gate"]
    assert (gate["measure"], gate["passed"], gate["tolerance_percent"]) == ("p99.9", False, 0)
    assert [h["run"] for h in gate["higher"]] == ["r1", "r3"]
    assert gate["higher"][0]["b"] > gate["higher"][0]["a"]
    assert gate["higher"][0]["stalls_beyond"] < 10


def test_a_gate_on_stalls_and_on_stolen_time(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "r0", "r1", "--gate", "stalls:100us"]) == 1
    text = capsys.readouterr().out
    assert "gate stalls over 100 µs not passed" in text
    assert "chance alone can cause" in text
    assert main(["compare", "r1", "r0", "--gate", "stalls:100µs"]) == 0
    assert main(["compare", "r0", "r1", "--gate", "stolen"]) == 1
    capsys.readouterr()
    for wrong in ("stalls:3us", "stalls:7", "stalls:", "steal", "stalls:99999999999us"):
        assert main(["compare", "r0", "r1", "--gate", wrong]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    "words", [["--tolerance", "5"], *(["--gate", "99", "--tolerance", wrong] for wrong in ("nan", "-1", "x"))]
)
def test_a_tolerance_is_a_percentage_of_a_gate(runs: list[str], words: list[str]) -> None:
    assert main(["compare", "r0", "r1", *words]) == 2


def test_each_null_of_compare_has_a_reason_in_the_json(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *runs[:2], "--gate", "stalls:100us", "--json"]) == 1
    value = json.loads(capsys.readouterr().out)
    rows = [row for one in value["comparisons"] for row in one["rows"]]
    assert any(row["ratio"] is None for row in rows)
    assert "comparisons.rows.ratio" in value["notes"]
    (higher,) = value["gate"]["higher"]
    empty = {f"gate.higher.{name}" for name, found in higher.items() if found is None}
    assert "gate.higher.ratio" in empty
    assert empty <= value["notes"].keys()
    assert main(["compare", *runs[:2], "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert (value["gate"], value["notes"]["gate"]) == (None, "no gate was asked for")
