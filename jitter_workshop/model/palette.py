"""Hold one palette for each theme. A palette has all colours of the screen, of the plain walk, and of the pictures in
reports.

No meaning depends on a hue that some people do not see: all kinds of sight tell the colours of curves apart, and each
sentence is clear without its colour. Without colours, each curve has a mark of its own shape.
"""

from __future__ import annotations

from jitter_workshop.model.record import dataclass


@dataclass(frozen=True, slots=True)
class Palette:
    """Name the colours of a theme, each as ``#rrggbb``; "" leaves the terminal's own colour.

    The backgrounds ``background``, ``surface`` and ``panel`` have enough contrast to read text on them. This holds for
    text in ``text``, ``dim`` and ``faint``, and in each colour that has a meaning.

    Each of these colours has one meaning, wherever text or a sign has it:

    - ``accent`` (amber): what to look at first: the place of the cursor, the present step, a warning, the one large
      figure.
    - ``good`` (green): done, right, or better.
    - ``bad`` (red): failed, wrong, or worse.

    Colours of ``curves`` and of causes have no such meaning. They only tell curves, or kinds of causes, apart.

    The other fields:

    - ``faint``: text of the least importance, such as notes and sources.
    - ``surface``: the background of rows across the screen, such as the row of keys and the result.
    - ``panel``: the background of the title and of the row under the cursor.
    - ``rule``: lines that separate parts of the screen.
    - ``cool``: keys and names.
    - ``grid``: the lines of a chart in a terminal.
    - ``fine_grid``: the lines of a picture, which are thinner.
    - ``curves``: the measured curves in their order.
    - ``references``: published and imported curves, and recorded ones of no chapter.
    - ``cause_…``: what took the time of a stall. None of these colours is ``good`` or ``bad``, because a cause is
      neither.
    """

    name: str
    background: str = ""
    text: str = ""
    dim: str = ""
    faint: str = ""
    rule: str = ""
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

    @property
    def curve_before(self) -> str:
        """Return the colour of a chapter's first run in each chart."""
        return self.curves[0]

    @property
    def curve_after(self) -> str:
        """Return the colour of a chapter's second run in each chart."""
        return self.curves[1 % len(self.curves)]


PALETTES: dict[str, Palette] = {
    "dark": Palette(
        name="dark",
        background="#0d1618",
        text="#dfe9e6",
        dim="#93a9aa",
        faint="#829a9e",
        rule="#5c7378",
        accent="#f2c55c",
        good="#7fdcae",
        bad="#ff8d7b",
        cool="#8cc9ea",
        code="#bdb4fb",
        surface="#132023",
        panel="#1b2f34",
        grid="#263b40",
        fine_grid="#1e3034",
        mark="#ff9bd2",
        cause_task="#aad7ff",
        cause_irq="#dc960e",
        cause_softirq="#c4946d",
        cause_timer="#8ffdda",
        cause_work="#9f98fb",
        cause_move="#d184af",
        cause_fault="#d0e77b",
        curves=("#8fd3f7", "#f4cd4b", "#b7fcc4", "#9a8cf1", "#da7b47", "#ae8590"),
        references=("#7f9296", "#71858a", "#64787d"),
    ),
    "light": Palette(
        name="light",
        background="#f8f6ef",
        text="#17292c",
        dim="#445656",
        faint="#5c665f",
        rule="#7d837c",
        accent="#7a5200",
        good="#00664a",
        bad="#b3281a",
        cool="#165a80",
        code="#5b3f9e",
        surface="#efede3",
        panel="#e3e4dc",
        grid="#cdcbbe",
        fine_grid="#e4e2d8",
        mark="#a3136f",
        cause_task="#0a3f94",
        cause_irq="#7a6107",
        cause_softirq="#8e5041",
        cause_timer="#146a6e",
        cause_work="#645a97",
        cause_move="#660c37",
        cause_fault="#24410a",
        curves=("#066f9b", "#836904", "#3a7454", "#4019a3", "#671700", "#4b042e"),
        references=("#6f7875", "#757e7b", "#7b8481"),
    ),
    "high-contrast": Palette(
        name="high-contrast",
        background="#000000",
        text="#ffffff",
        dim="#d8e0e0",
        faint="#a4b0b0",
        rule="#98a4a4",
        accent="#ffd84a",
        good="#5cf5d8",
        bad="#ff8f66",
        cool="#8fdcff",
        code="#ddc6fe",
        surface="#000000",
        panel="#2c3838",
        grid="#4c5858",
        fine_grid="#4c5858",
        mark="#ff9fe0",
        cause_task="#5fb0ff",
        cause_irq="#f8e899",
        cause_softirq="#e8966f",
        cause_timer="#77f9d0",
        cause_work="#ddc6fe",
        cause_move="#ef7fba",
        cause_fault="#94c41f",
        curves=("#9de3ff", "#fac31c", "#6ff7ac", "#a39df7", "#dd7f29", "#b98c95"),
        references=("#8d9898", "#808a8a", "#747e7e"),
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
"""The palette without any colour. It is used if NO_COLOR is set."""

THEMES: tuple[str, ...] = tuple(PALETTES)
"""The themes that a user may choose."""


def blended(colour: str, background: str, share: float) -> str:
    """Return ``colour`` mixed with ``share`` (0 to 1) of ``background``; all three colours are ``#rrggbb``."""
    parts = ((int(colour[n : n + 2], 16), int(background[n : n + 2], 16)) for n in (1, 3, 5))
    return "#" + "".join(f"{round(front + (back - front) * share):02x}" for front, back in parts)


def heat_shade(palette: Palette, level: int, levels: int) -> str:
    """Return the colour of one shade of a heat map. ``level``: the number of the shade, from 1 to ``levels``.

    The first shades are close to the background, the middle shades to the theme's colour ``cool``. The last shades are
    close to the theme's colour ``text``. Each shade differs more from the background than the shade before it.
    """
    place = (level - 1) / max(levels - 1, 1)
    turn = 0.65
    if place <= turn:
        return blended(palette.cool, palette.background, 0.68 * (1 - place / turn))
    return blended(palette.cool, palette.text, 0.85 * (place - turn) / (1 - turn))
