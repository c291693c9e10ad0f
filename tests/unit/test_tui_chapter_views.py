"""What the last step of a chapter shows of a run, on the screen and line by line."""

from __future__ import annotations

import dataclasses

from jitter_workshop.model.walk import Explanation, ThreadEvidence
from jitter_workshop.tui import plain_views
from jitter_workshop.tui.screens.chapter_views import amount, explanation
from jitter_workshop.tui.theme import PALETTES
from tests import madeup

DARK = PALETTES["dark"]


def shown(view: Explanation, width: int = 60) -> list[str]:
    return [line.plain for line in explanation(view, (view,), (), width, DARK)]


def explained(**changed: object) -> Explanation:
    run, _ = madeup.make_run()
    threads = (ThreadEvidence("accumulator", 1, 2, 0, ((1, 327_651_123, 0.9999), (0, 30_123, 0.0001))),)
    view = Explanation(run, threads, (("LOC", 1, 38_870, 7_774.0),), (("NET_RX", 1, 6_300, 1_260.4),), (), (), ())
    return dataclasses.replace(view, **changed)  # type: ignore[arg-type]


def test_rates_are_plain_numbers() -> None:
    for lines in (shown(explained()), plain_views.explain_lines(explained(), 60)):
        text = "\n".join(lines)
        assert "7,774" in text
        assert "1,260" in text
        assert "e+0" not in text
    assert amount("stalls_per_second_over_1000_ns", 999.7) == "1,000"
