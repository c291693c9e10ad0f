"""Warn of a load that will disturb every chapter, once when the workshop starts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable

from textual import events

from jitter_workshop.model.host_load import HostLoad
from jitter_workshop.presenter.host import host_load as words
from jitter_workshop.presenter.text.lines import wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.background import aside
from jitter_workshop.tui.core import actions
from jitter_workshop.tui.screens.common.base import Page


class LoadPage(Page, scope="load"):
    """Show the load on this host. Enter closes the page, and r measures the load again.

    ``look``: a function that measures the load for a second or two; it returns None if the load is unknown. ``tell``: a
    function that names the load in a sentence on the screen.

    The page opens by itself, not because the user pressed a key. So a key pressed within the first TYPED_AHEAD_S
    seconds was meant for the screen below: it closes the page, the screen below handles it, and ``tell`` is called.
    """

    _opened = math.inf
    """The time at which the page was painted, by the monotonic clock; infinity before."""

    def __init__(self, load: HostLoad, look: Callable[[], HostLoad | None], tell: Callable[[HostLoad], None]) -> None:
        super().__init__()
        self._found = load
        self._load: HostLoad | None = load
        self._look = look
        self._tell = tell
        self._looking = False

    def on_mount(self) -> None:
        self.call_after_refresh(self._painted)

    def _painted(self) -> None:
        self._opened = time.monotonic()

    def on_key(self, event: events.Key) -> None:
        if time.monotonic() - self._opened >= actions.TYPED_AHEAD_S:
            return
        event.stop()
        event.prevent_default()
        app = self.app
        app.pop_screen()
        app.post_message(events.Key(event.key, event.character))
        # The key goes from the app to the screen and back to the app; the sentence follows it on the same way.
        app.call_later(app.screen.call_later, app.call_later, self._tell, self._found)

    def lines(self, width: int) -> Iterable[Text]:
        yield Text()
        yield Text("This host is not quiet", "bold text")
        yield Text()
        if self._looking:
            yield Text(words.LOOKING, "dim")
        elif self._load is not None and self._load.drowns:
            yield from wrap(Text(words.load_sentence(self._load), "text"), width)
            yield from wrap(Text(words.EVERYWHERE, "bold accent"), width)
            yield from wrap(Text(words.ALL_THE_SAME, "text"), width)
        else:
            yield from wrap(Text(words.GONE if self._load is not None else words.UNKNOWN, "good"), width)

    def key_words(self) -> str:
        return words.KEYS

    async def action_again(self) -> None:
        if not self._looking:
            self.run_worker(self._look_again(), group="load")

    async def _look_again(self) -> None:
        self._looking = True
        self.redraw()
        try:
            self._load = await aside(self._look)
        finally:
            self._looking = False
        if self.is_attached:
            self.redraw()
