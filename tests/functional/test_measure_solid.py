"""measure says how far it will reach, is made as long as a percentile needs, and says what its own stand on."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from jitter_workshop.bench import lock
from jitter_workshop.cli import main
from jitter_workshop.commands import measure
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.measuring.run_length import TOO_LONG
from jitter_workshop.model.run import PERCENTILES
from tests.ownturn import turn_of

pytestmark = pytest.mark.host


@pytest.mark.native
def test_a_run_as_long_as_a_percentile_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "--for-percentile", "p99", "--placement", "none", "--wait", "120", "--json"]) == 0
    captured = capsys.readouterr()
    run = json.loads(captured.out)
    # A program that waits for the turn is told behind which one before that.
    told = r"p99 needs 1,000 messages, which take 1 s: .*\. With its start .*"
    assert any(re.fullmatch(told, line) for line in captured.err.splitlines())
    assert [s["percentile"] for s in run["standings"]] == list(PERCENTILES)
    by_name = {s["percentile"]: s for s in run["standings"]}
    assert by_name["99"]["solid"] is True
    assert by_name["99"]["value_ns"] == run["histograms"]["accumulator_transit"]["percentiles"]["99"]
    assert by_name["99.9999"] == {
        "percentile": "99.9999",
        "value_ns": None,
        "samples_beyond": by_name["99.9999"]["samples_beyond"],
        "stalls_beyond": 0,
        "solid": False,
        "proof": False,
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--for-percentile", "95"], "choose one of 50, 90"),
        (["--for-percentile", ""], "choose one of 50, 90"),
        (["--for-percentile", "99", "--messages", "10"], "leave out --messages and --duration"),
        (["--for-percentile", "99", "--workload", "spin"], "measure once without --for-percentile"),
        (["--for-percentile", "99.999", "--interval-us", "1000000"], TOO_LONG),
    ],
)
def test_a_percentile_that_cannot_be_reached_is_refused_in_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["measure", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err.splitlines()[-1]


def test_on_a_terminal_one_line_says_how_far_a_preset_reaches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = MeasureRequest()
    assert measure._told(request, None, None) == (request, "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    told, said = measure._told(request, None, None)
    assert told == request
    assert said.startswith("5 s of measuring, about 500,000 messages: ")
    assert "With its start and pauses" in said


def test_of_a_run_that_is_not_made_nothing_is_foretold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(lock.TURN_VARIABLE, turn_of(tmp_path))
    with lock.host_turn():
        assert main(["measure", "--for-percentile", "99", "--placement", "none"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len([line for line in said if not line.startswith("New session")]) == 1, said
    assert "--wait SECONDS" in said[-1]
