"""Looking at a screen in a test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from textual.app import App
from textual.pilot import Pilot

from jitter_workshop.flow.workshop import Workshop
from jitter_workshop.tui.app import WorkshopApp


@asynccontextmanager
async def opened(
    workshop: Workshop, size: tuple[int, int], *keys: str
) -> AsyncIterator[tuple[WorkshopApp, Pilot[None]]]:
    """The workshop on a terminal of this size, settled, after these keys settled again."""
    app = WorkshopApp(workshop)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        if keys:
            await pilot.press(*keys)
            await settled(pilot)
        yield app, pilot


async def settled(pilot: Pilot[Any]) -> None:
    """Wait until a run under way is over and everything is painted. Not for a run that a gate holds."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.pause()


def text_of(app: App[Any]) -> str:
    """What the terminal shows, line by line, without styles."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)
