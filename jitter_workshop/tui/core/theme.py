"""Show an app in the colours of a palette. There is a Textual theme for each palette."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.driver import Driver
from textual.theme import Theme

from jitter_workshop.model.palette import PALETTES, THEMES, Palette

_parsed: dict[str, Any] = {}
"""Theme → the parsed style sheet that an earlier app of this process has left (:meth:`PaintedApp.keep_parsed`)."""
_PREFIX = "workshop-"
"""The prefix of our themes' names. Without it our themes could replace themes of Textual."""


class PaintedApp(App[None]):
    """Show a calm app, without animation, in the colours of the palette named ``palette``."""

    def __init__(self, palette: str, driver: type[Driver] | None = None) -> None:
        super().__init__(driver_class=driver)
        # No timers of Textual's animator at any time.
        self.animation_level = "none"
        for name in THEMES:
            self.register_theme(_textual_theme(name))
        self.paint(palette)
        # The style sheet is parsed once, in these colours: Textual would parse it in its own, and then again.
        self.stylesheet.set_variables(self.get_css_variables())
        self._parsed_in = self.theme
        if self.theme in _parsed:
            self.stylesheet._parse_cache = _parsed.pop(self.theme)

    def refresh_css(self, animate: bool = True) -> None:
        """Parse the style sheet in the present colours, and apply it. The first call does nothing if the colours have
        not changed since the start, because the style sheet already has them.
        """
        parsed_in, self._parsed_in = self._parsed_in, ""
        if parsed_in != self.theme:
            super().refresh_css(animate)

    def keep_parsed(self) -> None:
        """Keep the parsed style sheet for the next app in the same colours. The next app may be in this process or in a
        fork of it. Call this method after the present app has ended."""
        _parsed[self.theme] = self.stylesheet._parse_cache

    @property
    def palette(self) -> Palette:
        """Return the palette that is used now."""
        return PALETTES[self.theme.removeprefix(_PREFIX)]

    @property
    def next_palette(self) -> str:
        """Return the name of the palette that follows the present one."""
        names = list(THEMES)
        return names[(names.index(self.palette.name) + 1) % len(names)]

    def paint(self, palette: str) -> None:
        """Use the palette with this name from now on."""
        self.theme = f"{_PREFIX}{palette}"


def _textual_theme(name: str) -> Theme:
    """Return the Textual theme for the palette with this name."""
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
        variables={
            "rule": p.rule,
            "dim": p.dim,
            "scrollbar": p.rule,
            "scrollbar-background": p.background,
            "block-cursor-foreground": p.text,
            "block-cursor-background": p.panel,
            "block-cursor-blurred-foreground": p.text,
            "block-cursor-blurred-background": p.panel,
        },
    )
