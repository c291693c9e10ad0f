"""Show the footer: at most seven keys. Each key has a tooltip and can be clicked. The help page lists all keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual import events
from textual.containers import Horizontal
from textual.widget import Widget

from jitter_workshop.tui.core.actions import BY_ID
from jitter_workshop.tui.core.theme import PaintedApp

MOST_KEYS = 7
READ_ON = "read on"
"""The label of a key that shows more of the page first. It has the key's own style: the key will do its work later."""
_PADDING = 1
"""Blanks on either side of a key, as in the style below."""

Shown = tuple[str, str]
"""An action's id and its present label. The label "" stands for the action's usual label. For the digit keys, a label
such as ``1–4 choose`` begins with the digits that act now."""


def fit_keys(keys: Sequence[Shown], width: int) -> tuple[Shown, ...]:
    """Return at most seven of ``keys``, as many as fit in ``width`` cells.

    The first keys and the last two (help and the way out) are the most important. So keys are dropped from the middle:
    first the third key from the end, then the fourth, and so on.
    """
    kept = list(keys)
    while len(kept) > 1 and (len(kept) > MOST_KEYS or sum(map(_cells, kept)) > width):
        del kept[-3 if len(kept) > 3 else -2]
    return tuple(kept)


def key_and_label(shown: Shown) -> tuple[str, str]:
    """Return the key's text and the label that the footer shows."""
    action, label = BY_ID[shown[0]], shown[1]
    digits, _, said = label.partition(" ")
    if action.name == "number" and digits[:1].isdigit() and said:
        return digits, said
    return action.shown, label or action.label


def _cells(key: Shown) -> int:
    return sum(map(cell_len, key_and_label(key))) + 1 + 2 * _PADDING


class KeyHint(Widget):
    """Show one key and what it does now."""

    DEFAULT_CSS = """
    KeyHint { width: auto; height: 1; padding: 0 1; color: $dim; }
    KeyHint:hover { background: $panel; }
    """

    def __init__(self, action_id: str, label: str) -> None:
        super().__init__()
        self._action = BY_ID[action_id]
        self._key, self._label = key_and_label((action_id, label))
        self.tooltip = self._action.tooltip

    def render(self) -> Text:
        key = Style(color=cast(PaintedApp, self.app).palette.cool, bold=True)
        label = (self._label, key) if self._label == READ_ON else self._label
        return Text.assemble((self._key, key), " ", label, no_wrap=True)

    async def on_click(self, event: events.Click) -> None:
        event.stop()
        namespace = self.app if self._action.scope == "app" else self.screen
        await self.app.run_action(self._action.run, default_namespace=namespace)


class KeyBar(Horizontal):
    """Show the footer's row of keys."""

    DEFAULT_CSS = "KeyBar { height: 1; width: 1fr; dock: bottom; background: $surface; }"

    def __init__(self) -> None:
        super().__init__()
        self._offered: tuple[Shown, ...] = ()
        self.shown: tuple[Shown, ...] = ()
        """The keys that are shown now."""

    async def show(self, keys: Sequence[Shown]) -> None:
        """Show these keys. Do nothing if the same keys are shown already."""
        self._offered = tuple(keys)
        # The bar is as wide as the terminal; before its first layout it has no width of its own.
        wanted = fit_keys(self._offered, self.app.size.width)
        if wanted == self.shown:
            return
        self.shown = wanted
        await self.remove_children()
        await self.mount_all([KeyHint(ident, label) for ident, label in wanted])

    def on_resize(self) -> None:
        self.call_next(self.show, self._offered)
