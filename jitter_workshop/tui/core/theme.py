"""Show an app in the colours of a palette, with a Textual theme for each."""

from __future__ import annotations

from textual.app import App
from textual.driver import Driver
from textual.theme import Theme

from jitter_workshop.model.palette import PALETTES, THEMES, Palette

_PREFIX = "workshop-"
"""It begins the names of our themes, so that they hide none of Textual's."""


class PaintedApp(App[None]):
    """Show a calm app, without animation, in the colours of the palette with this name."""

    def __init__(self, palette: str, driver: type[Driver] | None = None) -> None:
        super().__init__(driver_class=driver)
        # No timers of Textual's animator at any time.
        self.animation_level = "none"
        for name in THEMES:
            self.register_theme(_textual_theme(name))
        self.paint(palette)

    @property
    def palette(self) -> Palette:
        """Return the colours in force."""
        return PALETTES[self.theme.removeprefix(_PREFIX)]

    @property
    def next_palette(self) -> str:
        """Return the name of the palette behind the one in force."""
        names = list(THEMES)
        return names[(names.index(self.palette.name) + 1) % len(names)]

    def paint(self, palette: str) -> None:
        """Put a palette in force."""
        self.theme = f"{_PREFIX}{palette}"


def _textual_theme(name: str) -> Theme:
    """Return the Textual theme of one of ``palette.THEMES``."""
    p = PALETTES[name]
    return Theme(
        name=f"{_PREFIX}{name}",
        primary=p.cool,
        secondary=p.dim,
        accent=p.accent,
        foreground=p.text,
        background=p.background,
        surface=p.surface,
        panel=p.panel,
        success=p.good,
        warning=p.accent,
        error=p.bad,
        dark=name != "light",
        variables={"faint": p.faint, "dim": p.dim, "scrollbar": p.panel, "scrollbar-background": p.background},
    )
