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
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.tui.app import WorkshopApp

STEP_S = 0.003
_rested = -1.0
"""The processor time of this process when it was last seen at rest."""
FRAME_S = 0.1
"""How often is painted what is new while a test waits for a run."""
ANYHOW_S = 0.5
"""The longest time that something new stays unpainted. Each rest of an app is painted at once: ``nothing_left``."""


async def nothing_left(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Wait until no callback is due, everything is painted, and this process, threads and all, has hardly worked for
    two steps of 3 ms.

    The pilot waits like this twice behind each key and once a pause. Its own way looks at the processor time alone, for
    20 ms each: most of what such a test took. The queue of callbacks tells sooner, and on a busy machine better, that
    everything is done. An app paints once it rests, not at each frame of a terminal: that is fewer pictures.
    """
    global _rested
    loop: Any = asyncio.get_running_loop()
    begun = time.monotonic()
    # Nothing has worked since the last such wait: the pilot's second one behind a key.
    still = not loop._ready and time.process_time() - _rested < STEP_S / 10 and not _painted()
    quiet = 2 if still else 0
    while (quiet < 2 or time.monotonic() - begun < min_sleep) and time.monotonic() - begun < max_sleep:
        worked = time.process_time()
        await asyncio.sleep(STEP_S)
        idle = not loop._ready and time.process_time() - worked < STEP_S / 10
        quiet = quiet + 1 if idle and not _painted() else 0
    _rested = time.process_time()


def _painted() -> bool:
    """Paint now where a screen that is seen has something new, also below a dialog; tell whether one had. Such a screen
    has set its timer going, which painting stops."""
    app = active_app.get(None)
    seen = [*app._background_screens, app.screen] if app is not None and app.screen_stack else []
    new = [screen for screen in seen if screen._update_timer._active.is_set() or screen._callbacks]
    for screen in new:
        screen._on_timer_update()
    return bool(new)


def _parsed_once() -> None:
    """Share among all apps what Textual reads of its style sheets: the rules of a sheet with the same variables."""
    read = Stylesheet._parse_rules
    kept: dict[Any, Any] = {}

    def parse_rules(sheet: Stylesheet, *what: Any, **more: Any) -> Any:
        key = (tuple(sheet._variables.items()), what, tuple(more.items()))
        if key not in kept:
            kept[key] = read(sheet, *what, **more)
        return kept[key]

    for_good.setattr(Stylesheet, "_parse_rules", parse_rules)


for_good = pytest.MonkeyPatch()
for where in ("textual.app", "textual.pilot"):
    for_good.setattr(f"{where}.wait_for_idle", nothing_left)
for_good.setattr("textual.screen.UPDATE_PERIOD", ANYHOW_S)
_parsed_once()


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
    over = asyncio.ensure_future(pilot.app.workers.wait_for_complete())
    while not (await asyncio.wait({over}, timeout=FRAME_S))[0]:
        _painted()
    await over
    await pilot.pause()
    await pilot.pause()


def text_of(app: App[Any]) -> str:
    """Return what the terminal shows, line by line, without styles."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)
