"""Make a Textual theme of each palette."""

from __future__ import annotations

from textual.theme import Theme

from jitter_workshop.model.palette import PALETTES


def textual_theme(name: str) -> Theme:
    """Return the Textual theme of one of ``palette.THEMES``. Its name has a prefix, so that it hides none of
    Textual's."""
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
