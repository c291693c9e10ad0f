"""Looking at a screen in a test."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakSet

import pytest
from textual._context import active_app, visible_screen_stack
from textual.app import App
from textual.css.stylesheet import Stylesheet
from textual.events import Key
from textual.pilot import Pilot
from textual.screen import Screen

from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen

STEP_S = 0.003
_rested = -1.0
"""The processor time of this process when it was last seen at rest."""
FRAME_S = 0.02
"""The time between two layouts of new widgets while a test waits for a run."""
ANYHOW_S = 0.5
"""The longest time that something new is not laid out. At each rest of an app it is at once: ``nothing_left``."""


async def nothing_left(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Wait until no callback is due, everything is painted, and this process, threads and all, has hardly worked for
    two steps of 3 ms.

    The pilot waits like this twice behind each key and once a pause. Its own way looks at the processor time alone, for
    20 ms each: most of what such a test took. The queue of callbacks tells sooner, and on a busy machine better, that
    everything is done. An app lays out its screen when it seems to rest, which may give it more to do. A screen is
    painted once when it is new, and then when a test looks at it (``text_of``), not at each frame of a terminal: that
    is a twentieth of the pictures.
    """
    global _rested
    loop: Any = asyncio.get_running_loop()
    begun = time.monotonic()
    # Nothing has worked since the last such wait: the pilot's second one behind a key.
    still = not loop._ready and time.process_time() - _rested < STEP_S / 10 and not _laid_out()
    quiet = 2 if still else 0
    while (quiet < 2 or time.monotonic() - begun < min_sleep) and time.monotonic() - begun < max_sleep:
        worked = time.process_time()
        await asyncio.sleep(STEP_S)
        idle = not loop._ready and time.process_time() - worked < STEP_S / 10
        quiet = quiet + 1 if idle and not _laid_out() else 0
        if quiet == 2 and _painted(new=True):
            quiet = 0
    _rested = time.process_time()


def _laid_out() -> bool:
    """Lay out a screen that is seen and has something new, also below a dialog; tell whether one had. Such a screen has
    set its timer going, which this stops. An app lets a change of its size wait for a timer, too."""
    app = active_app.get(None)
    if app is not None and app._resize_timer is not None:
        app._check_resize()
        return True
    seen = [*app._background_screens, app.screen] if app is not None and app.screen_stack else []
    new = [screen for screen in seen if screen._update_timer._active.is_set() or screen._callbacks]
    for screen in new:
        screen._on_timer_update()
    return bool(new)


_unpainted: WeakSet[Screen[Any]] = WeakSet()
_paint = Screen._compositor_refresh


_once_painted: WeakSet[Screen[Any]] = WeakSet()


def _painted(new: bool = False) -> bool:
    """Paint the screens that were laid out since they were painted, or of these only the new ones; tell whether there
    was one."""
    due = [screen for screen in _unpainted if screen.is_running and not (new and screen in _once_painted)]
    for screen in due:
        _unpainted.discard(screen)
        _once_painted.add(screen)
        _paint(screen)
    return bool(due)


async def _all_processed(_: Pilot[Any], timeout: float = 30.0) -> bool:
    """Do for the pilot what it does by a message to each widget and its answer: one of every two messages of a test. A
    widget with a message left is due in the loop. A thread that works may go on, however long."""
    limit = time.monotonic() + timeout
    loop: Any = asyncio.get_running_loop()
    await nothing_left()
    while (loop._ready or _laid_out() or _painted(new=True)) and time.monotonic() < limit:
        await asyncio.sleep(STEP_S)
    return True


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
for_good.setattr(Pilot, "_wait_for_screen", _all_processed)
for_good.setattr("textual.screen.UPDATE_PERIOD", ANYHOW_S)
for_good.setattr(Screen, "_compositor_refresh", lambda screen: _unpainted.add(screen))
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
        _laid_out()
    await over
    await pilot.pause()
    await pilot.pause()


async def read_on(pilot: Pilot[Any]) -> None:
    """Press Enter until it does more than turn the page: for a test about what comes after the page."""
    for _ in range(30):
        screen = pilot.app.screen
        turns = isinstance(screen, ChapterScreen) and screen._unread() is not None
        await pilot.press("enter")
        await settled(pilot)
        if not turns:
            return
    raise AssertionError("Enter does not get to the end of a page")


async def held(pilot: Pilot[Any], key: str, times: int) -> None:
    """Press a key that has no character so often, as a held key repeats: faster than the screen is painted."""
    driver = pilot.app._driver
    assert driver is not None
    for _ in range(times):
        driver.send_message(Key(key, None))
    await settled(pilot)


def text_of(app: App[Any]) -> str:
    """Return what the terminal shows, line by line, without styles."""
    _painted()
    # A dialog draws the page behind it from this list, and empties the list.
    visible_screen_stack.set(app._background_screens)
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)
