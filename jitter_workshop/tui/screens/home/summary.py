"""Show the course from its first step to its last: the curves and the gain of each step, the changes applied now, and
what is still open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Region

from jitter_workshop.chart.marks import in_lists
from jitter_workshop.chart.style import looks, theme_named
from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.chapters.course_summary import Bought, CourseSummary, sum_up
from jitter_workshop.model.text import SENTENCE, clean
from jitter_workshop.presenter.course import summary as words
from jitter_workshop.presenter.course.action_meanings import SUMMARY_TITLE
from jitter_workshop.presenter.text.lines import wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.background import aside
from jitter_workshop.tui.screens.common.base import WorkshopScreen
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.keybar import Shown
from jitter_workshop.tui.widgets.sheet import Pane, Sheet, panel


class SummaryScreen(WorkshopScreen, scope="summary"):
    """Show the results of the course so far. A thread computes the results, because it has to read many runs."""

    def __init__(self) -> None:
        super().__init__()
        self._summary: CourseSummary | None = None
        self._under = 0
        self._numbers = False

    @property
    def _bought(self) -> tuple[Bought, ...]:
        """Return the steps of the course; () while the summary is being computed."""
        return self._summary.steps if self._summary is not None else ()

    @property
    def _adding_up(self) -> bool:
        """Return True while the summary is being computed."""
        return self._summary is None and not self.said

    def body(self) -> ComposeResult:
        with Vertical(id="summary-main"):
            with panel(Vertical(id="summary-left"), "Curves"):
                yield ChartView(id="summary-chart")
                with Pane(id="summary-steps-pane"):
                    yield Sheet(self._steps, id="summary-steps")
            with panel(Pane(id="summary-rest-pane")):
                yield Sheet(self._rest, id="summary-rest")
        yield Sheet(self._about, id="summary-about")

    def heading(self) -> str:
        return SUMMARY_TITLE

    def keys(self) -> Sequence[Shown]:
        curves = (("summary.right", "curve"), ("summary.table", "chart" if self._numbers else "table"))
        return (
            *(curves if self._bought else ()),
            ("app.report", ""),
            ("app.status", ""),
            ("app.glossary", ""),
            ("app.help", ""),
            ("summary.close", ""),
        )

    def on_mount(self) -> None:
        self.run_worker(self._read(), exclusive=True, group="sum")

    async def _read(self) -> None:
        try:
            self._summary = await aside(lambda: sum_up(self.workshop))
        except WorkshopError as error:
            self.said = error.sentence()
        self.redraw()

    # -- layout ----------------------------------------------------------------------------------------------------

    def redraw(self) -> None:
        self.set_class(self._numbers, "-numbers")
        steps = self._bought
        # Without a curve there is no frame for one: a sentence says how to get one.
        self.set_class(not steps and not self._adding_up, "-bare")
        shown = words.comparable_curves(steps, self._under)
        chart = self.query_one("#summary-chart", ChartView)
        highlight = shown.index(self._under) if self._under in shown and len(shown) > 1 else None
        chart.show_curves([steps[n].shown for n in shown], highlight=highlight, empty="Adding up…", legend=False)
        self.sheet("#summary-about").set_class(not steps, "-empty")
        super().redraw()

    def _steps(self, width: int) -> Iterable[Text]:
        """Yield lines with each step's values and ratios. If a step has a curve in the chart, the step's first line
        begins with the mark of this curve.
        """
        steps = self._bought
        if self._summary is None or not steps:
            return
        shown = words.comparable_curves(steps, self._under)
        every = looks([steps[n].shown.curve for n in shown], theme_named(self.frame.palette.name), None)
        glyphs = dict(zip(shown, every, strict=True))
        last = 0
        for number, line in words.step_table(self._summary, width - 4):
            first, here = number != last, number == self._under + 1
            look = glyphs.get(number - 1) if first else None
            whole = Text("▸ " if first and here else "  ", "accent")
            sign, colour = (" ", "") if look is None else (in_lists(look.glyph), str(look.point))
            whole.append(f"{sign} ", colour)
            if number:
                line.style = "dim" if not first else "bold" if here else "text"
            whole.append(line)
            if here:
                whole.append(" " * max(width - whole.cell_len, 0))
                whole.stylize("under")
            last = number
            yield whole
        if len(shown) < len(steps):
            yield from wrap(Text("The chart shows only the marked steps.", "dim"), width)

    def _about(self, width: int) -> Iterable[Text]:
        """Return lines that describe how the step under the cursor was measured."""
        if not self._bought:
            return ()
        return wrap(
            Text(words.describe_step_run(self._bought[self._under]), "text"), width, f"{self._under + 1}: ", "   "
        )

    def _rest(self, width: int) -> Iterable[Text]:
        """Yield the part of the summary that follows the steps. Only a huge screen shows the steps in another pane. On
        any other screen, yield the steps first.
        """
        summary = self._summary
        if summary is None:
            if self.said:
                yield from wrap(Text(clean(self.said, SENTENCE), "text"), width, "! ")
            return
        if not summary.steps:
            none = words.NO_STEPS_HERE if summary.recorded else f"{words.NO_STEPS} {words.HOW}"
            yield from (*wrap(Text(none, "text"), width), Text())
        elif not self.huge:
            yield from self._steps(width)
            yield Text()
        yield from words.summary_notes(summary, width)

    # -- keys ------------------------------------------------------------------------------------------------------

    def action_sideways(self, by: int) -> None:
        if self._bought:
            self._under = (self._under + by) % len(self._bought)
            self.redraw()
            self.call_after_refresh(self._keep_in_sight)

    def _keep_in_sight(self) -> None:
        if self._summary is None:
            return
        numbers = [number for number, _ in words.step_table(self._summary, self.size.width)]
        here = self._under + 1
        region = Region(0, numbers.index(here), 1, numbers.count(here))
        pane = "#summary-steps-pane" if self.huge else "#summary-rest-pane"
        self.query_one(pane, Pane).scroll_to_region(region, animate=False)

    def action_table(self) -> None:
        self._numbers = not self._numbers
        self.redraw()

    def pane(self) -> Pane:
        return self.query_one("#summary-rest-pane", Pane)
