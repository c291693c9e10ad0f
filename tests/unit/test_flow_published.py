"""Curves that were not measured here say so, and where they come from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jitter_workshop.course.loader import load_course
from jitter_workshop.flow.published import ORIGIN, RECORDED, published_curves, recorded_runs

NOT_MEASURED = ("tick", "hunt")
"""Boot parameters: the machine that the runs are from is given its kernel's line by somebody else. And what is hidden
in a hunt is not told by a recording either."""
MEASURED = [c.id for c in load_course().chapters if c.measurements and c.id not in NOT_MEASURED]


@pytest.mark.parametrize("ident", MEASURED)
def test_every_chapter_that_measures_has_curves_to_rehearse_with(ident: str) -> None:
    curves, source = recorded_runs(ident)
    assert len(curves) == 2
    assert source.startswith(("measured on 20", "published in 2015"))
    assert "guest" in source or "laptop" in source
    for one in curves:
        assert one.run is None, "nothing recorded is a run of one's own"
        assert one.curve.origin in (RECORDED, ORIGIN)
        assert one.curve.points
        if one.curve.origin == RECORDED:
            assert one.label.startswith("recorded: ")


def test_settings_chapters_were_measured_with_their_settings() -> None:
    asset = Path(__file__).parents[2] / "assets/recorded-runs.json"
    chapters = json.loads(asset.read_text())["chapters"]
    course = load_course()
    for ident, entry in chapters.items():
        chapter = course.chapter(ident)
        assert chapter is not None, ident
        assert entry["runs"]["measure"]["applied"] == [], ident
        labels = {m.slot: m.label for m in chapter.measurements}
        assert {slot: run["label"] for slot, run in entry["runs"].items()} == labels, ident


def test_an_unknown_chapter_has_none() -> None:
    assert recorded_runs("nothing-of-the-kind") == ((), "")
    assert len(published_curves()) == 3
