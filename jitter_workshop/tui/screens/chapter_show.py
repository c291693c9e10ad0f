"""What a chapter's screen shows at each step: the lesson, the chart, the figures and what is said of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from jitter_workshop.errors import WorkshopError
from jitter_workshop.model.course import StepName
from jitter_workshop.model.text import clean
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.tui.measuring import Measuring
from jitter_workshop.tui.screens import chapter_views as views
from jitter_workshop.tui.screens.base import TALL, WorkshopScreen
from jitter_workshop.tui.theme import Palette
from jitter_workshop.tui.widgets.chart import ChartView, Mark
from jitter_workshop.tui.widgets.figures import percentile_table
from jitter_workshop.tui.widgets.keybar import Shown
from jitter_workshop.tui.widgets.loop import LoopLine
from jitter_workshop.tui.widgets.prose import prose, styled, wrap
from jitter_workshop.tui.widgets.sheet import Pane, Sheet

if TYPE_CHECKING:
    from jitter_workshop.flow.measure import MeasureRequest
    from jitter_workshop.flow.walk import Walk

SLOTS: tuple[StepName, ...] = ("measure", "again")
FIRST_MARK_NS = 10_000

View = Literal["lesson", "work"]


class ChapterShow(WorkshopScreen):
    """The state of a chapter's screen, and how it is shown. What keys do is in the classes built on it."""

    def __init__(self, walk: Walk, *, measure: bool = False) -> None:
        super().__init__()
        self.walk = walk
        self._measure_at_once = measure
        self.run_under_way: Measuring | None = None
        self._view: View = "work"
        self._table = False
        self._published: bool | None = None
        self._highlight: int | None = None
        self._message = ""
        self._choice = 0
        self.mark_ns = FIRST_MARK_NS

    def body(self) -> ComposeResult:
        yield LoopLine(id="loop")
        with Horizontal(id="chapter-main"):
            with Vertical(id="left"), Pane(id="lesson"):
                yield Sheet(id="lesson-sheet")
            with Vertical(id="work"):
                yield Sheet(id="question")
                yield ChartView(id="chart")
                with Pane(id="data"):
                    yield Sheet(id="data-sheet")
                yield Sheet(id="progress")
            with Pane(id="host"):
                yield Sheet(self._host, id="host-sheet")
        yield Sheet(id="say")

    def heading(self) -> str:
        return clean(self.walk.chapter.title, 60)

    def on_resize(self) -> None:
        self._show()

    def on_screen_resume(self) -> None:
        self._show()

    @property
    def step(self) -> StepName:
        """The step on the screen."""
        return self.walk.current

    def _enter_step(self) -> None:
        self._message = ""
        self._table = False
        self._highlight = None
        kept = self.walk.progress.prediction
        task = self.walk.chapter.prediction
        if kept is not None and kept.value_ns is not None:
            self.mark_ns = kept.value_ns
        if kept is not None and task is not None and kept.choice is not None:
            self._choice = next((i for i, a in enumerate(task.answers) if a.id == kept.choice), 0)
        # On a narrow screen a question about the chart is read first, and the chart is the next key.
        first_read = self.step == "predict" and self._marking and not self._locked and bool(self.walk.page("predict"))
        self._view = "lesson" if first_read else "work"
        self._show()
        self.query_one("#data", Pane).scroll_home(animate=False)
        self.query_one("#lesson", Pane).scroll_home(animate=False)

    @property
    def _reading_first(self) -> bool:
        """On a narrow screen, is the page of a question read before its chart?"""
        return not self.wide and self._view == "lesson" and self.step == "predict" and self._marking

    def _tell(self, text: str) -> None:
        self._message = text
        self._show()

    def _request(self, slot: StepName) -> MeasureRequest:
        request = self.walk.request(slot)
        wanted = self.workshop_app.settings.preset
        return dataclasses.replace(request, preset=wanted) if request.preset == "quick" else request

    # -- what is shown ---------------------------------------------------------------------------------------------

    @property
    def _marking(self) -> bool:
        task = self.walk.chapter.prediction
        return task is not None and task.kind == "mark"

    @property
    def _locked(self) -> bool:
        task = self.walk.chapter.prediction
        return task is not None and self.walk.run_in(task.slot) is not None

    @property
    def _with_chart(self) -> bool:
        """Is the chart what this step is about now?"""
        if self._table:
            return False
        if self.step == "predict":
            return self._marking
        if self.step in SLOTS:
            return self.run_under_way is not None or self.walk.run_in(self.step) is not None
        return self.step == "compare"

    @property
    def _shows_published(self) -> bool:
        return self.workshop_app.settings.show_published if self._published is None else self._published

    def _curves(self) -> list[RunCurve]:
        # One published curve gives the scale; all of them are on the screen of all curves.
        published = self.workshop.published()[:1] if self._shows_published else ()
        curves = [*published, *self.walk.curves()]
        running = self.run_under_way
        if running is not None and running.progress is not None:
            label = running.request.label or "this run"
            curve = dataclasses.replace(running.progress.curve, label=label)
            curves.append(RunCurve("live", label, curve, None))
        return curves

    def _marks(self) -> list[Mark]:
        task, kept = self.walk.chapter.prediction, self.walk.progress.prediction
        if task is None or task.kind != "mark":
            return []
        percentile = float(task.percentile or "99.9")
        if self.step == "predict":
            return [(percentile, self.mark_ns)]
        return [(percentile, kept.value_ns)] if kept is not None and kept.value_ns is not None else []

    def _show(self) -> None:
        if not self.is_mounted:
            return
        chart = self._with_chart
        self.set_class(chart, "-chart")
        self.set_class(self._view == "lesson", "-lesson")
        self.set_class(self.run_under_way is not None, "-measuring")
        self.set_class(self.step == "compare", "-both")
        self.query_one(LoopLine).show_steps(self.walk.steps())
        self._draw_chart()
        self.sheet("#lesson-sheet").show(self._lesson)
        self.sheet("#data-sheet").show(self._data)
        self.sheet("#question").show(self._question)
        self.sheet("#question").set_class(not (self.step == "predict" and self._marking), "-empty")
        self.sheet("#progress").show(self._progress)
        self.sheet("#say").show(self._say)
        self.sheet("#say").set_class(not self._said(), "-empty")
        self.refresh_keys()

    def _draw_chart(self) -> None:
        if self._with_chart:
            curves = self._curves()
            highlight = -1 if self._highlight is None else self._highlight
            self.query_one(ChartView).show_curves(curves, highlight=highlight, marks=self._marks())

    def _lesson(self, width: int, palette: Palette) -> Iterable[Text]:
        page = self.walk.page(self.step) or "This step has no page of its own."
        yield from prose(page, width, palette)

    def _host(self, width: int, palette: Palette) -> Iterable[Text]:
        return views.host_column(self.workshop.host, width, palette)

    def _question(self, width: int, palette: Palette) -> Iterable[Text]:
        task = self.walk.chapter.prediction
        return views.mark_question(task, self.mark_ns, self._locked, width, palette) if task is not None else ()

    def _progress(self, width: int, palette: Palette) -> Iterable[Text]:
        running = self.run_under_way
        if running is None:
            return ()
        return views.progress(running.progress, running.waiting, running.stopping, width, palette)

    def _data(self, width: int, palette: Palette) -> Iterable[Text]:
        """The step's figures; on a narrow screen below its page."""
        if self._table:
            compared = self._figures(width, palette) if self.step == "compare" else []
            numbers = percentile_table(self._curves(), palette, width)
            return [*compared, Text(), *numbers] if compared else numbers
        figures = self._figures(width, palette)
        if self.wide or self.step == "compare":
            return figures
        page = prose(self.walk.page(self.step), width, palette)
        return [*page, Text(), *figures] if page and figures else [*page, *figures]

    def _figures(self, width: int, palette: Palette) -> list[Text]:
        try:
            return self._figures_of_step(width, palette)
        except WorkshopError as error:
            return wrap(Text(clean(error.sentence(), 400), style=f"bold {palette.bad}"), width, "! ")

    def _figures_of_step(self, width: int, palette: Palette) -> list[Text]:
        step, task = self.step, self.walk.chapter.prediction
        if step == "look":
            return views.facts(self.walk.look(), width, palette)
        if step == "predict" and task is not None and not self._marking:
            return views.choices(task, self._choice, self._locked, width, palette)
        if step in SLOTS:
            return views.about_to_measure(self._request(step), bool(self.workshop.host.on_battery), width, palette)
        if step in ("plan", "apply"):
            return views.plan(self.walk.plan(), width, palette)
        if step == "compare":
            compared = self.walk.compare()
            return views.comparison(compared, width, palette) if compared else []
        explained = self.walk.explain() if step == "explain" else None
        if explained is None:
            return []
        runs = [e for slot in SLOTS if (e := self.walk.explain(slot)) is not None]
        return views.explanation(explained, runs, self.walk.chapter.learnt, width, palette)

    def _said(self) -> list[str]:
        """What stands above the keys: the newest message, or what this step has to tell."""
        if self._message:
            return [self._message]
        if self.run_under_way is not None:
            return []
        told: list[str] = []
        task = self.walk.chapter.prediction
        about = ("compare",) if self.size.height >= TALL else ()
        outcome = self.walk.outcome() if task is not None and self.step in (task.slot, *about) else None
        if self.step == "compare":
            compared = self.walk.compare()
            told += [compared.headline] if compared else []
        if outcome is not None:
            near = {True: "✓ near: ", False: "✗ not near: ", None: ""}[outcome.near]
            told.append(near + outcome.text)
            told += [outcome.explanation] if outcome.explanation and self.size.height >= TALL else []
        if self.step == "measure" and self.walk.run_in("measure") is not None:
            offer = self.walk.offer_noise()
            told += [f"{offer} Press w."] if offer else []
        if self.step == "apply":
            told.append("Enter agrees to this plan; p lets you pick other CPUs.")
        return told

    def _say(self, width: int, palette: Palette) -> Iterable[Text]:
        for text in self._said():
            yield from wrap(styled(text, palette, palette.text), width, "" if text[0] in "✓✗" else "▸ ", "  ")

    def keys(self) -> Sequence[Shown]:
        if self.run_under_way is not None:
            return (("chapter.home", "stop waiting" if self.run_under_way.waiting else "stop the run"),)
        step = self.step
        slot_run = self.walk.run_in(step) if step in SLOTS else None
        enter = "go on"
        if step in SLOTS and slot_run is None:
            enter = "measure"
        elif step == "predict" and not self._locked:
            enter = "to the chart" if self._reading_first else "keep guess"
        elif step == "apply":
            enter = "agree"
        elif step == self.walk.chapter.steps[-1]:
            enter = "finish"
        shown: list[Shown] = [("chapter.enter", enter)]
        if step == "apply":
            shown.append(("chapter.cpus", ""))
        if slot_run is not None:
            shown.append(("chapter.again", "again"))
        if self._with_chart or self._table:
            if not self.wide and not self._reading_first:
                shown.append(("chapter.lesson", "chart" if self._view == "lesson" else "lesson"))
            if not self._reading_first:
                shown.append(("chapter.table", "chart" if self._table else "table"))
        elif self.wide:
            shown.append(("chapter.lesson", "scroll figures" if self._view == "lesson" else "scroll lesson"))
        if step == "explain":
            shown.append(("chapter.copy", ""))
        if self.walk.chapter.hints:
            shown.append(("chapter.hint", ""))
        shown += [("chapter.back", ""), ("app.help", ""), ("chapter.home", "")]
        return shown[:5] + shown[-2:] if len(shown) > 7 else shown
