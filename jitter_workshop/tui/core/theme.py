"""Three looks: dark, light and high contrast. Colour supports meaning here and never carries it alone."""

from __future__ import annotations

from dataclasses import dataclass

from textual.theme import Theme


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of text that we style ourselves. ``chart``: the name of the theme for ``canvas.render``."""

    chart: str
    text: str
    dim: str
    faint: str
    accent: str
    good: str
    bad: str
    cool: str
    code: str
    background: str
    surface: str
    panel: str


PALETTES: dict[str, Palette] = {
    "dark": Palette(
        chart="dark",
        text="#d6dde8",
        dim="#8f9bad",
        faint="#4a5566",
        accent="#e5b567",
        good="#86c793",
        bad="#ec8a7e",
        cool="#7db7e8",
        code="#c4b5f0",
        background="#12161c",
        surface="#181d25",
        panel="#232b36",
    ),
    "light": Palette(
        chart="light",
        text="#22272f",
        dim="#5c6878",
        faint="#b4bac4",
        accent="#96540a",
        good="#23713a",
        bad="#b3261e",
        cool="#1b5e9e",
        code="#6741a0",
        background="#fbfaf7",
        surface="#f3f1ec",
        panel="#e4e1d9",
    ),
    "high-contrast": Palette(
        chart="high-contrast",
        text="#ffffff",
        dim="#e0e0e0",
        faint="#a0a0a0",
        accent="#ffd500",
        good="#6bff8a",
        bad="#ff9a90",
        cool="#7fd4ff",
        code="#e0c8ff",
        background="#000000",
        surface="#000000",
        panel="#333333",
    ),
}

THEMES: tuple[str, ...] = tuple(PALETTES)


def textual_theme(name: str) -> Theme:
    """The Textual theme for one of ``THEMES``; its name carries a prefix so that it hides none of Textual's."""
    p = PALETTES[name]
    return Theme(
        name=f"workshop-{name}",
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
