"""Helpers for tests of what the screen does to a host."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.widgets.keybar import KeyBar
from tests.fakes import FakeWorkshop
from tests.livehost import give_agent
from tests.screens import settled

SIZES = [(80, 24), (160, 48)]
THP = "/sys/kernel/mm/transparent_hugepage/enabled"


def offered(app: WorkshopApp) -> dict[str, str]:
    return dict(app.screen.query_one(KeyBar).shown)


async def to_the_plans_end(pilot: Pilot[None]) -> None:
    """Press Enter as long as it shows more of the plan."""
    assert isinstance(pilot.app, WorkshopApp)
    while offered(pilot.app).get("chapter.enter") == "read on":
        await pilot.press("enter")
        await settled(pilot)


def applied(workshop: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apply the chapter ``pages`` with the real agent session."""
    give_agent(workshop, tree, monkeypatch)
    assert workshop.walk("pages").apply().applied == 2
