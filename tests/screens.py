"""Looking at a screen in a test."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.pilot import Pilot


async def settled(pilot: Pilot[Any]) -> None:
    """Wait until a run under way is over and everything is painted. Not for a run that a gate holds."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.pause()


def text_of(app: App[Any]) -> str:
    """What the terminal shows, line by line, without styles."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)
