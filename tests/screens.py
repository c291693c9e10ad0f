"""Looking at a screen in a test."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual._context import active_app
from textual.app import App
from textual.pilot import Pilot

from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.tui.app import WorkshopApp

STEP_S = 0.003


async def nothing_left(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Wait until no callback is due and this process, threads and all, has hardly worked for two steps of 3 ms; for
    longer than a frame where a screen says that it has something to paint.

    The pilot waits like this twice behind each key and once a pause. Its own way looks at the processor time alone, for
    20 ms each: most of what such a test took. The queue of callbacks tells sooner, and on a busy machine better, that
    everything is done.
    """
    loop: Any = asyncio.get_running_loop()
    begun = time.monotonic()
    quiet = 0
    while (quiet < _steps() or time.monotonic() - begun < min_sleep) and time.monotonic() - begun < max_sleep:
        worked = time.process_time()
        await asyncio.sleep(STEP_S)
        idle = not loop._ready and time.process_time() - worked < STEP_S / 10
        quiet = quiet + 1 if idle else 0


def _steps() -> int:
    """A screen lays out and paints at its next frame, up to 17 ms later."""
    app = active_app.get(None)
    screen = app.screen if app is not None and app.screen_stack else None
    return 7 if screen is not None and (screen._layout_required or screen._dirty_widgets) else 2


for where in ("textual.app", "textual.pilot"):
    pytest.MonkeyPatch().setattr(f"{where}.wait_for_idle", nothing_left)


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
    """Return what the terminal shows, line by line, without styles."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)
