"""Show the chart on a screen: the canvas in the present size, and its legend beside or below it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from rich.text import Text
from textual.widget import Widget

from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.text import SHORT, clean
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.tui.core.theme import PaintedApp

if TYPE_CHECKING:
    from jitter_workshop.chart.gap import Gap
    from jitter_workshop.chart.style import ChartPoint

_LEGEND_BESIDE_FROM = 104
_FLAT = 5
"""A chart is flat if its width in columns is at least this many times its height in rows."""
_LEGEND_WIDTH = 36
_MOST_LEGEND_LINES = 6
_LEAST_BELOW_TITLE = 10
"""The least rows of a chart and its legend below a title."""
_WANTED_ROWS, _LEAST_ROWS, _LEAST_LEGEND = 10, 6, 4
"""The rows of a chart with its axis from which a legend gets more than a line for each curve, and more than
_LEAST_LEGEND lines; and the rows that even these lines leave to the chart."""


class ChartView(Widget):
    """Show percentile curves and the learner's mark. One curve may be highlighted."""

    DEFAULT_CSS = "ChartView { width: 1fr; height: 1fr; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.curves: tuple[RunCurve, ...] = ()
        self.marks: tuple[ChartPoint, ...] = ()
        self.highlight: int | None = None
        self.between: tuple[int, int] | None = None
        self.gap: Gap | None = None
        self._asked = 99.9
        self._guessing = self.named = False
        self._empty = "No curve yet."
        self._with_legend = True
        self._listed = 0
        self._title = ""

    def show_curves(
        self,
        curves: Sequence[RunCurve],
        *,
        highlight: int | None = None,
        marks: Sequence[ChartPoint] = (),
        empty: str = "No curve yet.",
        legend: bool = True,
        listed: int = 0,
        between: tuple[int, int] | None = None,
        gap: Gap | None = None,
        asked: float = 99.9,
        guessing: bool = False,
        named: bool = False,
        title: str = "",
    ) -> None:
        """Draw these curves.

        ``highlight``: the index of the curve to highlight (negative: from the end); None for no curve. ``marks``: the
        marks of guesses. ``empty``: the text to show without curves. ``legend``: False if a table beside the chart
        names the curves. ``listed``: the number of curves, the last ones, that a list beside the chart names with their
        figures; the legend leaves them out. ``between``: the indices of the curves before and after a change; the space
        between them is filled. ``gap``: a percentile, and the distance of these two curves at it. ``asked``: the
        percentile that the legend shows. ``guessing``: True if a question above the chart tells the mark's value, so
        that the legend does not repeat it. ``named``: True while the learner sets a mark. The axis then has a label at
        each decade, and rows above the curves. ``title``: the sentence above the chart, if the chart has room for it.
        """
        self.curves = tuple(curves)
        self.marks = tuple(marks)
        self.highlight = highlight % len(self.curves) if highlight is not None and self.curves else None
        self._empty = empty
        self._with_legend = legend
        self._listed = listed
        self.between = between
        self.gap = gap
        self._asked = asked
        self._guessing = guessing
        self.named = named
        self._title = title
        self.refresh()

    def for_glossary(self) -> str:
        """Return the names of the drawn curves, whose terms the glossary explains."""
        return "\n".join([self._title, *(shown.label for shown in self.curves)])

    def render(self) -> Text:
        width, height = self.content_size
        if not self._title or width < 20:
            return self._drawn(width, height)
        title = Text(self._title, style=cast(PaintedApp, self.app).palette.dim).wrap(self.app.console, width)
        if len(title) > height - _LEAST_BELOW_TITLE:
            return self._drawn(width, height)
        return Text("\n", no_wrap=True, end="").join([*title, self._drawn(width, height - len(title))])

    def _drawn(self, width: int, height: int) -> Text:
        """Return the chart with its legend, and without its title."""
        app = cast(PaintedApp, self.app)
        if not self.curves and not self.marks:
            return Text(self._empty, style=app.palette.dim)
        if width < 20 or height < 3:
            return Text()
        # plotext takes a tenth of a second to import, so it is imported with the first chart and not before the first
        # frame.
        from jitter_workshop.chart import canvas
        from jitter_workshop.chart.style import marks_told, theme_named
        from jitter_workshop.stats.sample_size import FEW_STALLS, FEW_TOLD, of_curve

        theme = app.palette.name
        drawn = [shown.curve for shown in self.curves]
        render = partial(
            canvas.draw_curves,
            drawn,
            theme=theme,
            highlight=self.highlight,
            marks=self.marks,
            between=self.between,
            gap=self.gap,
            asked=self._asked,
            named=self.named,
        )
        if not self._with_legend or (self._listed == len(drawn) and not self.marks):
            return render(width, height)
        # If the chart is high, the lines of the legend cost it less than their columns.
        beside = width >= max(_LEGEND_BESIDE_FROM, _FLAT * height)
        legend_width = _LEGEND_WIDTH if beside else width
        marks = () if self._guessing else self.marks
        named = drawn[: len(drawn) - self._listed]
        doubts = [{float(p): m for p, m in of_curve(one).items() if m == FEW_STALLS} for one in self.curves]
        told = partial(
            canvas.legend_lines, theme=theme, highlight=self.highlight, marks=marks, asked=self._asked, doubts=doubts
        )
        entries = max(len(named) + len(marks), 2)
        room = max(height - _WANTED_ROWS, min(entries, _LEAST_LEGEND, height - _LEAST_ROWS))
        most = height - 1 if beside else min(max(_MOST_LEGEND_LINES, height // 3), room)
        if most <= 0:
            return render(width, height)
        legend: list[Text] = []
        note: list[Text] = []
        for kept in range(3):
            # Lines are kept for the notes, so that a note takes the place of figures, and of no curve.
            legend = list(told(named, width=legend_width, most=max(most - kept, 1)))
            read = " ".join(line.plain for line in legend)
            # A narrow legend cuts off the origin of a curve, but the origin must be visible.
            note = [
                Text(f"{marks_told(theme_named(theme), elsewhere)}: {', '.join(missing)}", style=app.palette.dim)
                for elsewhere in (True, False)
                if (missing := _unread(named, read, elsewhere))
            ]
            if len(legend) + len(note) <= most:
                break
        plot = width - _LEGEND_WIDTH - 2 if beside else width
        # A label that has no room in the chart is shortened, and then it has no mark.
        rows = height if beside else height - most
        marked = self.gap is not None and FEW_STALLS in self.gap.label and FEW_STALLS in render(plot, rows).plain
        if (marked or any(FEW_STALLS in line.plain for line in legend)) and len(legend) + len(note) < most:
            note.append(Text(FEW_TOLD, style=app.palette.dim))
        legend = legend[: max(most - len(note), 0)]
        rows = height if beside else height - len(legend) - len(note)
        chart = render(plot, rows, legend=legend, legend_width=legend_width)
        legend = [*legend, *note]
        if beside:
            return _side_by_side(chart, legend, width - _LEGEND_WIDTH)
        return Text("\n", no_wrap=True, end="").join([chart, *legend])


def _unread(drawn: Sequence[PercentileCurve], read: str, elsewhere: bool) -> list[str]:
    """Return the origins of drawn curves that the legend does not show, in alphabetical order.

    ``read``: the legend's text. ``elsewhere``: True for curves of other machines, False for curves of this session's
    runs.
    """
    origins = {clean(curve.origin, SHORT) for curve in drawn if curve.origin and curve.elsewhere == elsewhere}
    return sorted(origin for origin in origins if origin not in read)


def _side_by_side(chart: Text, legend: Sequence[Text], width: int) -> Text:
    lines: list[Text] = []
    for number, line in enumerate(chart.split("\n", allow_blank=True)):
        if 0 < number <= len(legend):
            line = Text.assemble(line, " " * max(width - line.cell_len, 1), legend[number - 1])
        lines.append(line)
    return Text("\n", no_wrap=True, end="").join(lines)
