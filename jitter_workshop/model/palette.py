"""Hold all colours of the screen, of the plain walk and of the pictures in reports: one palette for each theme.

No meaning depends on colour alone: each curve also has a mark, and each sentence is clear without its colour.
"""

from __future__ import annotations

from jitter_workshop.model.record import dataclass


@dataclass(frozen=True, slots=True)
class Palette:
    """Name the colours of a theme, each as ``#rrggbb``; "" leaves the terminal's own colour.

    ``grid``: the lines of a chart in a terminal; ``fine_grid``: those of a picture, which are thinner. ``curves``: the
    measured curves in their order; ``references``: published and recorded curves. ``cause_…``: what took the time of a
    stall; none of them is ``good`` or ``bad``, because a cause is neither.
    """

    name: str
    background: str = ""
    text: str = ""
    dim: str = ""
    faint: str = ""
    accent: str = ""
    good: str = ""
    bad: str = ""
    cool: str = ""
    code: str = ""
    surface: str = ""
    panel: str = ""
    grid: str = ""
    fine_grid: str = ""
    mark: str = ""
    cause_task: str = ""
    cause_irq: str = ""
    cause_softirq: str = ""
    cause_timer: str = ""
    cause_work: str = ""
    cause_move: str = ""
    cause_fault: str = ""
    curves: tuple[str, ...] = ("",)
    references: tuple[str, ...] = ("",)


PALETTES: dict[str, Palette] = {
    "dark": Palette(
        name="dark",
        background="#12161c",
        text="#d6dde8",
        dim="#8f9bad",
        faint="#4a5566",
        accent="#e5b567",
        good="#86c793",
        bad="#ec8a7e",
        cool="#7db7e8",
        code="#c4b5f0",
        surface="#181d25",
        panel="#232b36",
        grid="#343d4b",
        fine_grid="#262e39",
        mark="#ff8ad8",
        cause_task="#7db7e8",
        cause_irq="#e5b567",
        cause_softirq="#e0936a",
        cause_timer="#6fd0c5",
        cause_work="#c4b5f0",
        cause_move="#ec9ccb",
        cause_fault="#b9c46a",
        curves=("#7db7e8", "#e5b567", "#86c793", "#c4b5f0", "#ec8a7e", "#6fd0c5"),
        references=("#98a2b3", "#7d8798", "#677183"),
    ),
    "light": Palette(
        name="light",
        background="#fbfaf7",
        text="#22272f",
        dim="#5c6878",
        faint="#b4bac4",
        accent="#96540a",
        good="#23713a",
        bad="#b3261e",
        cool="#1b5e9e",
        code="#6741a0",
        surface="#f3f1ec",
        panel="#e4e1d9",
        grid="#d5d3cb",
        fine_grid="#e2dfd7",
        mark="#b0127f",
        cause_task="#1b5e9e",
        cause_irq="#96540a",
        cause_softirq="#a8441a",
        cause_timer="#00706a",
        cause_work="#6741a0",
        cause_move="#a0297a",
        cause_fault="#5c6b00",
        curves=("#1b5e9e", "#b06a00", "#23713a", "#6741a0", "#b3261e", "#00706a"),
        references=("#7a838f", "#8c949f", "#9aa1ab"),
    ),
    "high-contrast": Palette(
        name="high-contrast",
        background="#000000",
        text="#ffffff",
        dim="#e0e0e0",
        faint="#a0a0a0",
        accent="#ffd500",
        good="#6bff8a",
        bad="#ff9a90",
        cool="#7fd4ff",
        code="#e0c8ff",
        surface="#000000",
        panel="#333333",
        grid="#6a6a6a",
        fine_grid="#6a6a6a",
        mark="#ff7ae0",
        cause_task="#7fd4ff",
        cause_irq="#ffd500",
        cause_softirq="#ffa05c",
        cause_timer="#5ff5e6",
        cause_work="#d0b8ff",
        cause_move="#ff9ae0",
        cause_fault="#d6e85a",
        curves=("#7fd4ff", "#ffd500", "#6bff8a", "#e0c8ff", "#ff9a90", "#5ff5e6"),
        references=("#9a9a9a", "#8a8a8a", "#7c7c7c"),
    ),
}

CAUSES: dict[str, str] = {
    "task": "cause_task",
    "irq": "cause_irq",
    "vector": "cause_irq",
    "softirq": "cause_softirq",
    "timer": "cause_timer",
    "workqueue": "cause_work",
    "migration": "cause_move",
    "page_fault": "cause_fault",
}
"""Kind of a cause → its colour, the same wherever it is shown; any other kind (a gap without an event) is faint."""

MONO = Palette("mono")
"""No colours at all, for NO_COLOR."""

THEMES: tuple[str, ...] = tuple(PALETTES)
"""The themes that a user may choose."""


def blended(colour: str, background: str, share: float) -> str:
    """Return ``colour`` mixed with ``share`` (0 to 1) of ``background``; all are ``#rrggbb``."""
    parts = ((int(colour[n : n + 2], 16), int(background[n : n + 2], 16)) for n in (1, 3, 5))
    return "#" + "".join(f"{round(front + (back - front) * share):02x}" for front, back in parts)


def heat_shade(palette: Palette, level: int, levels: int) -> str:
    """Return the colour of shade ``level`` (1 … ``levels``) of a heat map: from near the background, through the
    theme's ``cool``, towards its text. Each shade stands out more from the background than the one before it."""
    place = (level - 1) / max(levels - 1, 1)
    turn = 0.65
    if place <= turn:
        return blended(palette.cool, palette.background, 0.68 * (1 - place / turn))
    return blended(palette.cool, palette.text, 0.85 * (place - turn) / (1 - turn))
