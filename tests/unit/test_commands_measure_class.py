"""'measure' on a class host: those who wait read what the turn is used for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.cli import main
from jitter_workshop.errors import MeasureError
from jitter_workshop.flow.measuring import measure
from jitter_workshop.flow.measuring.measure import TakeTurn
from tests.madeclass import MadeClass


@pytest.mark.parametrize(
    ("words", "doing"),
    [((), "measuring ring"), (("--workload", "spin"), "measuring spin"), (("--label", "pinned"), "measuring pinned")],
)
def test_the_turn_names_the_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], doing: str
) -> None:
    made = MadeClass(tmp_path / "class", monkeypatch)

    def fake(
        _request: Any, _session: Any, _observer: Any, token: Any, *, turn: TakeTurn, **_: Callable[..., Any]
    ) -> None:
        with turn(0.0, token, lambda sentence: None):
            raise MeasureError("that was all")

    monkeypatch.setattr(measure, "measure_run", fake)
    assert main(["measure", *words]) == 2
    assert made.doing == [doing]
