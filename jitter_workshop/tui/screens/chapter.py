"""A chapter: the loop, the lesson, the chart; look, predict, measure, plan, apply, again, compare, explain."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical

from jitter_workshop.errors import WorkshopError
from jitter_workshop.model.course import StepName
from jitter_workshop.model.session import Prediction
from jitter_workshop.model.text import clean
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.tui.actions import Scope, bindings
from jitter_workshop.tui.measuring import BlockMeasured, Calibrated, Measuring, RunDone, RunFailed
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
LEAST_NS, MOST_NS = 10, 10_000_000_000
FINE, COARSE = 10 ** (1 / 10), 10.0
"""How far a key moves the mark: ten steps a decade, or a whole one."""

View = Literal["lesson", "work"]


class ChapterScreen(WorkshopScreen):
    """One chapter under way."""

    scope: ClassVar[Scope] = "chapter"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("chapter"))

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

    # -- layout ----------------------------------------------------------------------------------------------------

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

    def on_mount(self) -> None:
        self._enter_step()
        if self._measure_at_once:
            self._go_and_measure()

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
            curves.append(RunCurve("live", label, running.progress.curve, None))
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
        return views.progress(running.progress, running.stopping, width, palette)

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
        return views.explanation(explained, self.walk.chapter.learnt, width, palette) if explained else []

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
            return (("chapter.home", "stop the run"),)
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

    # -- going on --------------------------------------------------------------------------------------------------

    @property
    def _reading_first(self) -> bool:
        """On a narrow screen, is the page of a question read before its chart?"""
        return not self.wide and self._view == "lesson" and self.step == "predict" and self._marking

    def action_enter(self) -> None:
        if self.run_under_way is not None:
            return
        if self._reading_first:
            self._view = "work"
            self._show()
            return
        if self.step in SLOTS and self.walk.run_in(self.step) is None:
            self._measure(self.step)
            return
        try:
            if self.step == "predict":
                self._keep_guess()
            following = self.walk.next()
        except WorkshopError as error:
            self._tell(error.sentence())
            return
        if following is None:
            self.app.pop_screen()
        else:
            self._enter_step()

    def _keep_guess(self) -> None:
        task = self.walk.chapter.prediction
        if task is None or self._locked:
            return
        if task.kind == "mark":
            self.walk.predict(Prediction(percentile=task.percentile, value_ns=self.mark_ns))
        else:
            self.walk.predict(Prediction(choice=task.answers[self._choice].id))

    def action_back(self) -> None:
        if self.run_under_way is None and self.walk.back() is not None:
            self._enter_step()

    @on(LoopLine.Wanted)
    def _go_to(self, message: LoopLine.Wanted) -> None:
        if self.run_under_way is not None:
            return
        try:
            self.walk.go(message.step)
        except WorkshopError as error:
            self._tell(error.sentence())
        else:
            self._enter_step()

    def action_home(self) -> None:
        if self.run_under_way is not None:
            self.run_under_way.stop()
            self._show()
        else:
            self.app.pop_screen()

    def _tell(self, text: str) -> None:
        self._message = text
        self._show()

    # -- measuring -------------------------------------------------------------------------------------------------

    def _request(self, slot: StepName) -> MeasureRequest:
        request = self.walk.request(slot)
        wanted = self.workshop_app.settings.preset
        return dataclasses.replace(request, preset=wanted) if request.preset == "quick" else request

    def _go_and_measure(self) -> None:
        """Go to the first measurement that is still to make, and make it. What was measured is never overwritten."""
        missing = [s for s in SLOTS if s in self.walk.chapter.steps and self.walk.run_in(s) is None]
        if not missing:
            self._tell("This chapter's runs are made. To make one anew, go to its step and press m there.")
            return
        try:
            self.walk.go(missing[0])
        except WorkshopError as error:
            self._tell(error.sentence())
            return
        self._enter_step()
        self._measure(missing[0])

    def action_again(self) -> None:
        if self.run_under_way is not None:
            return
        if self.step in SLOTS:
            self._measure(self.step)
        else:
            self._go_and_measure()

    def action_noise(self) -> None:
        if self.run_under_way is None and self.walk.offer_noise():
            self.walk.accept_noise()
            self._enter_step()
            self._measure("measure")

    def _measure(self, slot: StepName) -> None:
        try:
            request = self._request(slot)
        except WorkshopError as error:
            self.workshop_app.show_error(error)
            return
        self._message = ""
        self._table = False
        self._highlight = None
        self._view = "work"
        running = Measuring(self, slot, request)
        self.run_under_way = running
        self.workshop_app.stop_run = running.stop
        self._show()
        self.run_worker(partial(self._run, running), thread=True, exclusive=True, group="measure")

    def _run(self, running: Measuring) -> None:
        """On the worker's thread: measure, and post what came of it."""
        try:
            run = self.workshop.measure(running.request, running, running.cancel)
        except WorkshopError as error:
            self.post_message(RunFailed(error))
        else:
            self.post_message(RunDone(running.slot, run))

    @on(Calibrated)
    def _calibrated(self, message: Calibrated) -> None:
        if self.run_under_way is not None:
            self.run_under_way.started_event = message.event

    @on(BlockMeasured)
    def _block_measured(self, message: BlockMeasured) -> None:
        running = self.run_under_way
        if running is None:
            message.painted.set()
            return
        running.progress = message.progress
        self._draw_chart()
        self.sheet("#progress").show(self._progress)
        # The runner goes on only once this frame was painted: no painting happens inside a block.
        self.call_after_refresh(message.painted.set)

    def _run_over(self) -> bool:
        stopped = self.run_under_way is not None and self.run_under_way.stopping
        self.run_under_way = None
        self.workshop_app.stop_run = None
        return stopped

    @on(RunDone)
    def _run_done(self, message: RunDone) -> None:
        self._run_over()
        try:
            self.walk.record(message.slot, message.run)
        except WorkshopError as error:
            self.workshop_app.show_error(error)
        blocks = len(message.run.blocks)
        self._message = (
            "" if message.run.complete else f"Stopped after {blocks} blocks; they are kept among the curves."
        )
        self._show()

    @on(RunFailed)
    def _run_failed(self, message: RunFailed) -> None:
        stopped = self._run_over()
        self._message = f"Stopped. {clean(message.error.sentence(), 300)}." if stopped else ""
        self._show()
        if not stopped:
            self.workshop_app.show_error(message.error)

    # -- smaller keys ----------------------------------------------------------------------------------------------

    def action_lesson(self) -> None:
        """Narrow: turn between lesson and chart. Wide: both are there, and Tab chooses which of them scrolls."""
        if self.run_under_way is None and (self.wide or self._with_chart or self._table):
            self._view = "work" if self._view == "lesson" else "lesson"
            self._show()

    def action_table(self) -> None:
        if self._table or self._with_chart:
            self._table = not self._table
            self._view = "work"
            self._show()

    def action_published(self) -> None:
        self._published = not self._shows_published
        self._show()

    def action_hint(self) -> None:
        hint = self.walk.hint()
        if hint is None:
            shown = self.walk.chapter.hints
            hint = f"No more hints. The last one was: {shown[-1]}" if shown else "This chapter has no hints."
        self._tell(hint)

    def action_copy(self) -> None:
        explained = self.walk.explain() if self.step == "explain" else None
        if explained is not None and explained.by_hand:
            self.app.copy_to_clipboard("\n".join(command for command, _ in explained.by_hand))
            self._tell("The commands are in the clipboard, where this terminal allows it.")

    def action_cpus(self) -> None:
        if self.run_under_way is None and self.walk.chapter.changes == "placement":
            from jitter_workshop.tui.screens.cpus import CpuPicker

            self.app.push_screen(CpuPicker(self.walk, self.workshop.topology))

    def _vertical(self, direction: int) -> None:
        task = self.walk.chapter.prediction
        if self.step == "predict" and task is not None and not self._locked and not self._reading_first:
            if task.kind == "choice":
                self._choose(self._choice - direction)
            else:
                self._move_mark(FINE**direction)
            return
        pane = self._scrolled()
        pane.scroll_relative(y=-direction, animate=False)

    def _scrolled(self) -> Pane:
        chart_alone = self._with_chart and not (self.step == "compare" and self.size.height >= TALL)
        lesson = self._view == "lesson" or (self.wide and chart_alone)
        return cast(Pane, self.query_one("#lesson" if lesson else "#data"))

    def _move_mark(self, factor: float) -> None:
        self.mark_ns = round(min(max(self.mark_ns * factor, LEAST_NS), MOST_NS))
        self._show()

    def _choose(self, index: int) -> None:
        task = self.walk.chapter.prediction
        if task is not None and not self._locked and 0 <= index < len(task.answers):
            self._choice = index
            self._show()

    def _sideways(self, direction: int) -> None:
        if self.step == "predict" and self._marking and not self._locked and not self._reading_first:
            self._move_mark(COARSE**direction)
            return
        count = len(self._curves())
        if self._with_chart and count:
            now = count - 1 if self._highlight is None else self._highlight
            self._highlight = (now + direction) % count
            self._show()

    def on_key(self, event: events.Key) -> None:
        if event.character is None or event.character not in "123456789":
            return
        index = int(event.character) - 1
        if self.step == "predict" and not self._marking:
            self._choose(index)
        elif self._with_chart and index < len(self._curves()):
            self._highlight = index
            self._show()

    def action_up(self) -> None:
        self._vertical(+1)

    def action_down(self) -> None:
        self._vertical(-1)

    def action_left(self) -> None:
        self._sideways(-1)

    def action_right(self) -> None:
        self._sideways(+1)

    def action_page_up(self) -> None:
        self._scrolled().scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        self._scrolled().scroll_page_down(animate=False)
