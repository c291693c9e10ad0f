"""Show a chapter: the line of its steps, the lesson, the chart, and the figures and keys of the present step."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import cast

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.chapters import recalling
from jitter_workshop.flow.chapters.measuring import WITH_SETTINGS
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.model.change import RestoreResult
from jitter_workshop.model.course import SLOTS, StepName
from jitter_workshop.model.text import LABEL, capital, clean, tally
from jitter_workshop.model.walk import PlanView, RunCurve
from jitter_workshop.presenter.course import chapter as chapter_view
from jitter_workshop.presenter.course import diagnosis, keys_that_wait
from jitter_workshop.presenter.course.kept_settings import GIVE_BACK
from jitter_workshop.presenter.host.changes import (
    NOTHING_OF_CHAPTER,
    RESTORE_OTHERS,
    came_back,
    list_ids,
    others_warned,
)
from jitter_workshop.presenter.host.host_load import load_in_short
from jitter_workshop.presenter.runs import curves
from jitter_workshop.presenter.runs.effect import Result
from jitter_workshop.presenter.runs.one_run import A_SECOND, SHORT_A_SECOND
from jitter_workshop.presenter.runs.run import run_progress_lines, write_of_run
from jitter_workshop.presenter.text.lines import Lines, wrap
from jitter_workshop.presenter.text.pages import sources_apart
from jitter_workshop.presenter.text.prose import prose, styled, widest_row
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.stats.effect import tail_of
from jitter_workshop.tui.screens.chapter.by_hand import ChapterByHand
from jitter_workshop.tui.screens.chapter.diagnosing import Diagnose
from jitter_workshop.tui.screens.chapter.hunting import ChapterHunt
from jitter_workshop.tui.screens.chapter.page import ApplyOutcome, ChapterPage
from jitter_workshop.tui.screens.chapter.program import PROGRAM_STEPS, ChapterObserver, CommandPage
from jitter_workshop.tui.screens.chapter.recalling import RecallPage
from jitter_workshop.tui.screens.chapter.runs import BackgroundRuns
from jitter_workshop.tui.screens.chapter.steps import Step, Work, screen_steps
from jitter_workshop.tui.screens.common.base import HostChangeScreen
from jitter_workshop.tui.screens.common.dialogs import Question
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.keybar import READ_ON, Shown
from jitter_workshop.tui.widgets.loop import LoopLine
from jitter_workshop.tui.widgets.sheet import Pane, Sheet, panel
from jitter_workshop.tui.widgets.words import WordsBeside

_CHANGES_OR_RUNS = {
    "again",
    "noise",
    "causes",
    "boots",
    "by_hand",
    "restore",
    "cpus",
    "prove",
    "hunt",
    "name",
    "cure",
    "enough",
    "mask",
    "program",
}
FINISHING = "The chapter is finished. Home reads its result…"
_STILL_OPEN = "Your guess is still open{why}. Enter keeps a guess."
_DOES_NOT_COUNT = ": this run does not count in the chapter"
PRACTICE = "P opens a practice machine."
_AROUND_CHART, _CHART_ROWS, _LEGEND_LINES = 6, 10, 4
"""Rows of a small screen that belong to the title, the steps, the rules and the keys; the rows that its chart should
have, with the axis; and the most lines of the chart's legend that get room of their own."""
_LEAST_ABOVE_CHART, _MOST_ABOVE_CHART = 3, 6
"""The least and the largest number of lines of a step's result above its chart on a small screen. The table shows all
lines."""
_LEAST_BELOW_CHART = 3
"""The number of lines above the keys that a small screen shows below a chart, even if the chart then has fewer rows
than it should have. The table shows all lines."""
_BELOW_RESULT = 1
"""This number at the step compare, whose result stands above the chart, if no newer message is to be told."""
_LEAST_TOLD = 2
"""The least number of lines of a step's result that are shown in addition to its caveats."""
_LEAST_UNDER = 13
"""The least rows for a chart below a step's figures, with its legend."""
_AROUND_FIGURES, _BESIDE_FIGURES, _BESIDE_ON_WIDE, _BESIDE_CODE = 6, 69, 43, 57
"""Rows of a wide or huge screen that belong to the title, the steps, the frame and the keys; columns of a huge screen
that belong to the lesson's page and the frames, of a wide one, and of a wide one whose lesson has wide rows."""
_WIDE_ROWS_FROM, _NARROW_LESSON = 116, 34
"""The width of a screen from which a lesson with wide rows may have a wider column; the width of the narrow column."""
_LEFT_SHARE, _MOST_LEFT, _AROUND_LEFT = 0.52, 84, 5
"""The share of a huge screen's columns, and the most columns, of the lesson's page with the figures below it; and the
columns of its frame, its padding and its scroll bar."""
_LESSON_WIDTH, _FRAME = 59, 2
"""The width of the lesson's page on a huge screen in cells, and the rows of the frame of a chart below it."""
_MORE = " … (t: more)"
"""The end of a cut line. It names the key that shows the whole result."""
_CLAUSES, _PART = (": ", "; "), 0.4
"""The signs at which a long sentence may be cut, and the least share of a line that is then left."""
_LINES_OF_SENTENCE = 2
"""The most lines of the first sentence of a result."""
_NOISE_KEY = "Key `w`"
"""The words by which a lesson's page names the key that switches the noise."""
_NOT_DURING_A_RUN = _CHANGES_OR_RUNS | {"back", "lesson", "imported"}
OF_ANOTHER_KIND = "Your newest curve. It is of no run of this chapter."
RUN_IS_ON = "A run is on: Esc stops it."
OBSERVES = "Your program is being observed: Esc stops that."


def _cut(lines: Sequence[Text], most: int, width: int) -> Lines:
    """Return at most ``most`` lines. If some lines are left out, the last returned line ends with _MORE, which stands
    behind a whole word, or behind a sentence or a clause that fills at least _PART of the line."""
    if len(lines) <= most or most < 1:
        return list(lines[: max(most, 0)])
    last, room = lines[most - 1], width - len(_MORE)
    sentence = last.plain.rfind(". ", 0, room) + 1
    clause = max(last.plain.rfind(end, 0, room) for end in _CLAUSES)
    if (stop := next((one for one in (sentence, clause) if one >= _PART * room), 0)) > 0:
        # A whole sentence says more than the beginning of the next one.
        last.truncate(stop)
    elif last.cell_len > room:
        last.truncate(room if (end := last.plain.rfind(" ", 0, room + 1)) < 1 else end)
    return [*lines[: most - 1], last.append(_MORE, "dim")]


def _with_badge(lines: Lines, figure: str) -> Lines:
    """Return the lines of a result with its figure reversed, if the first sentence names the figure. No other part of
    the screen is as loud."""
    shown = "|".join(map(re.escape, {figure, figure.replace(SHORT_A_SECOND, A_SECOND)}))
    for at, line in enumerate(lines[:_LINES_OF_SENTENCE] if figure else ()):
        found = re.search(rf"(?<![\w.~])(?:{shown})(?!\w)", line.plain)
        if found is not None:
            marked = line.copy()
            marked.stylize("reverse", *found.span())
            return [*lines[:at], marked, *lines[at + 1 :]]
    return lines


class ChapterScreen(HostChangeScreen, scope="chapter"):
    """Lay out one chapter, move between its steps, and do the work that a step asks for. The present step handles most
    keys; other objects do the work of runs, of changes by hand, and of the hunt for a noise.

    ``measure``: True to measure at once. ``said``: a sentence to show first.
    """

    def __init__(self, walk: ChapterWalk, *, measure: bool = False, said: str = "") -> None:
        super().__init__()
        self.walk = walk
        self._page = ChapterPage(walk, self)
        self._steps = {**screen_steps(self._page), "diagnose": Diagnose(self._page, "diagnose")}
        if walk.chapter.program:
            self._steps |= {name: kind(self._page, name) for name, kind in PROGRAM_STEPS.items()}
        self._observer = ChapterObserver(self._page)
        self._runs = BackgroundRuns(self._page, self._draw_run)
        self._hunt = ChapterHunt(self._page, self._runs, self.enter_step)
        self._by_hand = ChapterByHand(self._page, lambda: self.now, self.enter_step)
        self._seen: dict[tuple[str | None, bool], int] = {}
        self._hint = ""
        """The newest hint; "" before the first one."""
        self._figures_left = False
        """True if the figures stand below the lesson's page, as the newest redraw decided."""
        self._finishing = False
        """True after the key that ends the chapter, until home is shown."""
        self._skipped_question = False
        """True if the learner has just skipped the question about the causes, until the next key that leads on."""
        self._measure_at_once = measure
        self._said_first = said

    # -- what it knows ---------------------------------------------------------------------------------------------

    @property
    def step(self) -> StepName:
        """Return the name of the step on the screen."""
        return self.walk.current

    @property
    def now(self) -> Step:
        """Return the object of the step on the screen."""
        return self._steps[self.walk.current]

    @property
    def _hinted(self) -> bool:
        """Return True if the sentence above the keys is a hint."""
        return bool(self.said) and self.said == self._hint

    # -- layout ----------------------------------------------------------------------------------------------------

    def body(self) -> ComposeResult:
        yield LoopLine(id="loop")
        yield Sheet(self._banner, id="recorded")
        with Horizontal(id="result-band"):
            yield Sheet(self._result, id="result")
        with Horizontal(id="chapter-main"):
            with Vertical(id="left"):
                with panel(Pane(id="lesson"), "Lesson"):
                    yield Sheet(self._lesson, id="lesson-sheet", paged=True)
                yield panel(ChartView(id="beside"))
                yield WordsBeside(self._text_of_page, id="words")
            with panel(Vertical(id="work")):
                yield Sheet(lambda width: self.now.question(width), id="question")
                yield ChartView(id="chart")
                with Pane(id="data"):
                    yield Sheet(self._data, id="data-sheet", paged=True)
                yield Sheet(lambda width: self.now.below_figures(width), id="below")
                yield ChartView(id="under")
                yield Sheet(self._progress, id="progress")
        yield Sheet(self.say_lines, id="say")

    @property
    def gives_scale(self) -> bool:
        # A chapter that repeats a run without a change is about how high a curve is. Its page names the laptop.
        return self.walk.runs.repeats

    @property
    def nothing_applied(self) -> str:
        return "other settings changed" if self.now.strayed else super().nothing_applied

    @property
    def write_of_run(self) -> str:
        return write_of_run(self._page.run.request) if self._page.run is not None else ""

    def heading(self) -> str:
        return clean(self.walk.chapter.title, LABEL)

    def on_mount(self) -> None:
        for pane in self.query(Pane):
            for changing in ("scroll_y", "virtual_size"):
                self.watch(pane, changing, self._scrolled, init=False)
        self.enter_step()
        self._hunt.watch()
        self._by_hand.watch()
        if said := self.walk.rebooted() or self._said_first:
            self.tell(said)
        if self._measure_at_once:
            self._go_and_measure(looks_first=True)
        elif asked := recalling.questions_to_ask(self.workshop, self.walk):
            # The chapter's page is drawn after them: who begins to read it is not interrupted.
            self.add_class("-asked")
            self.app.push_screen(RecallPage(self.walk, asked), self._begin_to_read)

    def _begin_to_read(self, _: object = None) -> None:
        """Show the chapter's page, after the recall questions."""
        self.remove_class("-asked")

    def on_unmount(self) -> None:
        self._by_hand.end()
        self._hunt.end()

    def on_screen_resume(self) -> None:
        self.now.resumed()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        # If nothing can be hidden, r does what it does everywhere else: it is the report.
        key = parameters[0] if action == "press" else action
        hunts = self.walk.hunts or key != "cure"
        busy = self._page.run is not None or self._page.observing is not None
        if not hunts or (busy and key in _NOT_DURING_A_RUN):
            return False
        return super().check_action(action, parameters)

    # -- what parts of the chapter ask for -------------------------------------------------------------------------

    def enter_step(self) -> None:
        """Begin a visit of the learner's present step."""
        page = self._page
        page.highlight = page.tried = page.planned = None
        page.offers_mount = False
        page.drawn = self.walk.drawn_cpus(self.step)
        page.by_hand = page.by_hand if self.walk.by_hand.opened else None
        # At once: a pane that still stands at the end of the step before would count the new text as seen.
        for part in ("#data", "#lesson"):
            self.query_one(part, Pane).scroll_home(animate=False, immediate=True)
        self._seen.clear()
        self.now.enter()
        self.tell("")

    def leave(self) -> None:
        """Go to the home screen. Before that, end a hidden noise, so that the title of the home screen does not
        mention the noise.
        """
        self._by_hand.end()
        self.workshop.hunts.end()
        self.app.pop_screen()

    # -- what is shown ---------------------------------------------------------------------------------------------

    def redraw(self) -> None:
        page, step = self._page, self.now
        # Another program may have changed this host. Then the host is read again for the title and for the warnings.
        self.workshop.context.standing()
        step.look_again()
        # The sentences of the step take room from the figures, so they are made first.
        self.sheet("#say").renew()
        layout, left = step.layout, self._leaves_figures()
        self._figures_left = left
        # At once: each change of a class has the styles of all below it looked up again.
        self.update_classes(
            {
                "-chart": layout.chart,
                "-code": self._has_wide_rows,
                "-lesson": page.view == "lesson",
                "-measuring": page.run is not None,
                "-both": layout.both and not left,
                "-figures-left": left,
            }
        )
        if not self.is_mounted:
            return
        # It also tells that a noise runs, which may have ended by itself.
        self.show_title()
        self.query_one(LoopLine).show_steps(self.walk.steps())
        self._draw_chart()
        super().redraw()
        self._draw_under()
        self.query_one(WordsBeside).renew()
        for around in ("#question", "#below"):
            sheet = self.sheet(around)
            sheet.set_class(not sheet.lines(self.size.width), "-empty")
        self.show_result()
        # Other lines may need as many rows as the lines before them, and then nothing else tells that they are new.
        self._scrolled()

    @property
    def _has_wide_rows(self) -> bool:
        """Return True if the lesson's page has rows that do not wrap, such as those of a trace, and they need the wider
        column that this screen has room for beside the step's figures."""
        fits = self.size.width >= _WIDE_ROWS_FROM and not (self.huge or self.now.layout.chart)
        return fits and widest_row(self.walk.page(self.step)) > _NARROW_LESSON

    def _draw_run(self) -> None:
        """Draw the parts of the screen that change with each block of the run."""
        self._draw_chart()
        self.show_result()

    def _draw_chart(self) -> None:
        step = self.now
        if step.layout.chart:
            drawing = step.drawing()
            self.query_one("#chart", ChartView).show_curves(
                step.curves(),
                # A curve has its colour in each step, so only the learner makes others quieter.
                highlight=self._page.highlight,
                marks=drawing.marks,
                between=drawing.between,
                gap=drawing.gap,
                asked=self._page.told_at,
                guessing=step.guessing,
                # A guess that cannot change needs no room for its mark.
                named=step.guessing and not self._page.lock_reason,
            )

    @property
    def _beside_figures(self) -> int:
        """Return the columns that are not the figures'."""
        narrow = _BESIDE_CODE if self._has_wide_rows else _BESIDE_ON_WIDE
        return _BESIDE_FIGURES if self.huge else narrow

    def _draw_under(self) -> None:
        """Draw the learner's curves below the lesson's page or below the figures, where a large screen has more rows.
        Draw none if these are fewer than _LEAST_UNDER."""
        layout = self.now.layout
        curves: list[RunCurve] = []
        place = title = ""
        if layout.under and self.wide and self.tall and not (layout.chart or self._page.table):
            width = self.size.width - 2
            said = len(self.sheet("#say").lines(width)) + len(self.sheet("#class-line").lines(width))
            rows = self.size.height - _AROUND_FIGURES - _LEAST_UNDER - said
            left = {"under": rows - self.sheet("#data-sheet").count(self.size.width - self._beside_figures)}
            if self.huge:
                # A narrower column has no room for a chart below the lesson's page.
                left = {"beside": rows - _FRAME - self.sheet("#lesson-sheet").count(_LESSON_WIDTH), **left}
            most = max(left, key=lambda one: left[one])
            place = most if left[most] >= 0 else ""
            curves = self._page.own_curves() if place else []
            if place and not curves and (curves := self._page.newest_of_others()):
                title = OF_ANOTHER_KIND
        drawn = {f"-{one}": bool(curves) and place == one for one in ("under", "beside")}
        around = any(self.sheet(one).lines(self.size.width) for one in ("#question", "#below"))
        text = not (layout.chart or drawn["-under"] or around or self._page.run is not None)
        self.update_classes({**drawn, "-text": text})
        if curves:
            run = curves[-1].run
            asked = float(tail_of(run.workload)) if title and run is not None else self._page.told_at
            self.query_one(f"#{place}", ChartView).show_curves(curves, asked=asked, title=title)

    def _banner(self, width: int) -> Iterable[Text]:
        if not self.walk.host.rehearsed:
            return ()
        host = self.walk.host
        offer = PRACTICE if self.workshop.context.host.accelerator is None else ""
        return chapter_view.recording_lines(
            host.reason, host.recording, not self.workshop.context.recorded, width, offer
        )

    def _result(self, width: int) -> Iterable[Text]:
        figure, role = self.now.headline()
        # The figure of a run is quiet until it is firm.
        return _with_badge(self._lines_of_result(width), "" if role == "dim" else figure)

    def _lines_of_result(self, width: int) -> Lines:
        result, guess = self._whole_result(width)
        told, caveats = result.told, result.caveats
        most = self._room_above_chart() if self._may_cut else None
        if most is None or len(told) + len(caveats) + len(guess) <= most:
            return [*told, *caveats, *guess]
        # A cut sentence says so; the table has room for all of them. A worsening and the caveats are never cut.
        uncut = result.uncut and result.uncut + (len(told) > result.uncut)
        room = max(most - len(caveats), _LEAST_TOLD, uncut)
        if len(told) > room or not (caveats or uncut):
            told, guess = _cut([*told, *([] if caveats else guess)], room, width), []
        return [*told, *caveats, *_cut(guess, room - len(told), width)]

    def _whole_result(self, width: int) -> tuple[Result, Lines]:
        """Return the step's result, and the lines on the learner's guess, all of both."""
        return self.now.result(width), [] if self._page.run is not None else self.now.verdict(width)

    @property
    def _may_cut(self) -> bool:
        """Return True if this small screen shows only the first lines of a long result and of long sentences, because
        the chart needs the room."""
        return not self.tall and self.now.layout.chart

    @property
    def _cuts(self) -> bool:
        """Return True if this screen does not show all lines of the step's result, or of its sentences, now."""
        if not self._may_cut:
            return False
        width = self.size.width - 2
        said, below = len(self._all_said(width)), len(self.sheet("#say").lines(width))
        return said > below or self._count_of_result(width) > self._room_above_chart()

    def _count_of_result(self, width: int) -> int:
        """Return the number of lines of the step's whole result, with those on the learner's guess."""
        result, guess = self._whole_result(width)
        return len(result.told) + len(result.caveats) + len(guess)

    def _room_beside_chart(self, width: int) -> int:
        """Return how many lines this small screen has room for above and below the chart and its legend."""
        others = len(list(self._banner(width))) + len(self.sheet("#class-line").lines(width))
        others += min(len(self.now.curves()) + len(self.now.drawing().marks), _LEGEND_LINES)
        return self.size.height - _AROUND_CHART - _CHART_ROWS - others

    def _room_above_chart(self) -> int:
        """Return how many lines of the step's result this small screen has room for above the chart."""
        width = self.size.width - 2
        # Rows that compare leaves out below its chart are the chart's.
        said = max(len(self.sheet("#say").lines(width)), min(len(self._all_said(width)), _LEAST_BELOW_CHART))
        room = self._room_beside_chart(width) - said
        return min(max(room, _LEAST_ABOVE_CHART), _MOST_ABOVE_CHART)

    def _leaves_figures(self) -> bool:
        """Return True if the figures beside a chart stand below the lesson's page, so that the chart has the whole
        height. A huge screen shows them there if they and the page fit without scrolling."""
        layout = self.now.layout
        if not (self.huge and self.tall and layout.chart and layout.both) or self._page.table:
            return False
        result, guess = self._whole_result(self.size.width - 4)
        above = len(result.told) + len(result.caveats) + len(guess) + len(list(self._banner(self.size.width - 2)))
        width = min(int(_LEFT_SHARE * self.size.width), _MOST_LEFT) - _AROUND_LEFT
        below = self.now.below_chart(width) or []
        rows = self.size.height - _AROUND_FIGURES - above - len(self.sheet("#say").lines(self.size.width - 2))
        return bool(below) and len(self._page.lesson(width)) + 1 + len(below) <= rows

    def _lesson(self, width: int) -> Iterable[Text]:
        page = self._page.lesson(width) or prose("This step has no page of its own.", width)
        below = self.now.below_chart(width) if self._figures_left else self.now.below_lesson(width)
        return [*page, Text(), *below] if below else page

    def _text_of_page(self) -> str:
        """Return the text of the lesson's page and of the step's question."""
        lines = (*self._page.lesson(_LESSON_WIDTH), *self.now.question(_LESSON_WIDTH))
        return " ".join(line.plain for line in lines)

    def _progress(self, width: int) -> Iterable[Text]:
        running = self._page.run
        if running is None:
            return ()
        workload = running.request.workload
        return run_progress_lines(running.progress, running.waiting, running.stopping, width, workload=workload)

    def _data(self, width: int) -> Iterable[Text]:
        """Return the step's figures; on a narrow screen the step's page is above them."""
        step = self.now
        if self._page.table:
            return step.table(width)
        if (below := step.below_chart(width)) is not None:
            return below
        figures = step.figures(width)
        if self.wide or step.layout.both or step.layout.alone:
            return figures
        page = self._page.lesson(width)
        if not page or not figures:
            return [*page, *figures]
        # The facts of this host matter more than the sources of the lesson; but a plan ends with its last change.
        page, sources = sources_apart(page) if self.step == "look" else (page, [])
        return [*page, Text(), *figures, *([Text()] if sources else []), *sources]

    def sentences(self) -> list[str]:
        """Return the sentences above the keys: the newest message, else the sentences of the step."""
        if self.said:
            return [self.said]
        if self._page.run is not None:
            return []
        skipped = diagnosis.skipped_sentence(self.walk, self.step) if self._skipped_question else ""
        if self.walk.host.rehearsed:
            return [*self._said_of_recording(), *self.now.judged_on_recording(), *filter(None, (skipped,))]
        more = (self.now.hunt.said(), self.walk.measuring.warning(self.step), self._load_said(), skipped)
        return [*self.now.said(), *filter(None, more)]

    def _load_said(self) -> str:
        """Return a sentence on the host's load at a step that is about to measure; "" if there is nothing to say."""
        load = self.frame.load_to_tell
        return "" if load is None or not self.walk.measuring.unmeasured(self.step) else load_in_short(load)

    def _said_of_recording(self) -> list[str]:
        """Return text on what this step leaves out because the host is recorded. If the step shows a run that was made
        on another machine, the text names this machine. The text then also says that nothing is measured here. Return
        [] for a step that only shows something.
        """
        (shown, source), counted = self._page.recorded(), self.walk.runs.counted_elsewhere(self.step)
        told = [curves.made_elsewhere(shown, source)] if shown else []
        told += [curves.counted_elsewhere(counted)] if counted else []
        return [" ".join([f"{chapter_view.NOTHING_MEASURED}.", *told])] if told else self.now.said_of_recording()

    def say_lines(self, width: int) -> Iterable[Text]:
        lines = self._all_said(width)
        # The lesson's page, which a narrow screen shows in the chart's place, scrolls: it leaves the sentences room.
        if not self._may_cut or (self._page.view == "lesson" and not self.wide):
            return self.in_sight(lines, width)
        count = self._count_of_result(width)
        if self.step == "compare" and count and not (self.said or self.walk.host.rehearsed):
            spare = self._room_beside_chart(width) - max(count, _MOST_ABOVE_CHART)
            return _cut(lines, max(spare, _BELOW_RESULT), width)
        return _cut(lines, max(self._room_beside_chart(width) - count, _LEAST_BELOW_CHART), width)

    def _all_said(self, width: int) -> Lines:
        """Return all lines with sentences above the keys, for which a small screen may have no room."""
        said = (
            wrap(styled(text, "text"), width, "" if text[0] in "✓✗≈" else "▸ ", "  ")
            for text in filter(None, self.sentences())
        )
        return list(itertools.chain.from_iterable(said))

    def keys(self) -> Sequence[Shown]:
        running = self._page.run
        if running is not None:
            return (("chapter.home", "stop waiting" if running.waiting else "stop the run"),)
        if self._page.observing is not None:
            return (("chapter.home", "stop"),)
        if self.frame.at_work:
            return ()
        step = self.now
        pressed, keys = step.enter_key, step.keys()
        enter: list[Shown] = [] if pressed.waits else [("chapter.enter", pressed.label)]
        if unread := self._unread() is not None:
            # Enter turns the page; what it does at the end is left to the key that skips the rest.
            enter = [("chapter.enter", READ_ON), *([] if pressed.acts else [("chapter.skip", pressed.label)])]
        hunt = step.hunt.keys(pressed.label)
        view = self._view_keys(step)
        # A cut line names the key that shows the whole of it, and a table needs a way back: no other key hides it.
        at_once = [key for key in view if key[0] == "chapter.table" and (self._page.table or self._cuts)]
        shown: list[Shown] = [*step.hunt.first_keys(), *keys.before_enter, *enter, *at_once, *hunt, *keys.first]
        restores = step.after_change or step.shows_plan
        if self.walk.sets and restores and (self.walk.host.applied or self._by_hand.can_restore):
            shown.append(("chapter.restore", ""))
        if self._names_noise and not any(name == "chapter.noise" for name, _ in shown):
            shown.append(step.noise_key)
        if keys.again:
            shown.append(("chapter.again", "again"))
        shown += [*(key for key in view if key not in at_once), *keys.last]
        if not unread and self._more_below():
            shown.append(("chapter.page_down", "more below"))
        if self.walk.chapter.hints and not self.walk.hints_are_over:
            shown.append(("chapter.hint", ""))
        if (
            self.walk.host.rehearsed
            and not self.workshop.context.recorded
            and self.workshop.context.host.accelerator is None
        ):
            shown.append(("app.practice", ""))
        home = "close hint" if self._hinted else ""
        return [*shown, ("chapter.back", ""), ("app.glossary", ""), ("app.help", ""), ("chapter.home", home)]

    @property
    def _names_noise(self) -> bool:
        """Return True if the page of this step names the key that switches the noise, and the key works."""
        return _NOISE_KEY in self.walk.page(self.step) and not self.walk.host.rehearsed and self.walk.noise.can_switch

    def _scrolled(self) -> None:
        """Update the labels of the keys after a scroll. One label tells if there are more lines below the visible
        ones. The pane knows this only after its layout, so the update waits for the layout.
        """
        self.call_after_refresh(self._see)

    @on(Pane.Resized)
    def _pane_resized(self) -> None:
        self._scrolled()

    def _see(self) -> None:
        """Record how far the user has seen each pane at this visit of the step."""
        for pane in self.query(Pane):
            self._seen[self._part(pane)] = self._seen_to(pane)
        if self.is_attached and self.is_running and self.query(LoopLine):
            self.query_one(LoopLine).show_page(self._page_shown())
        self.refresh_keys()

    def _part(self, pane: Pane) -> tuple[str | None, bool]:
        return pane.id, self._page.table

    def _seen_to(self, pane: Pane) -> int:
        """Return how many lines of a pane that are not blank were seen at this visit of the step."""
        return max(self._seen.get(self._part(pane), 0), pane.read_to)

    def _more_below(self) -> bool:
        """Return True if the pane that the keys scroll has lines below the visible ones."""
        return self.pane().more_below

    def _unread(self) -> Pane | None:
        """Return the pane that still has unseen text. Enter scrolls this pane before it goes to the next step, or
        before it makes the changes of a plan (``Step.to_read_first`` has the rule). The lesson comes first, then the
        figures. Return None if all text was seen. Also return None if Enter does something else.
        """
        panes = self._to_read_first()
        again = self.now.reads_again
        return next(
            (one for one in panes if one.more_below and (again or self._seen_to(one) < one.count_of_text)), None
        )

    def _to_read_first(self) -> list[Pane]:
        if self.now.hunt.to_name or self.now.hunt.to_cure:
            return []
        return [self.query_one(selector, Pane) for selector in self.now.to_read_first]

    def _page_shown(self) -> str:
        """Return the page that is shown of the text that Enter reads on, such as ``page 1 of 2``; "" if Enter does not
        read on, or if this text has one page."""
        unread, panes = self._unread(), [one for one in self._to_read_first() if one.region.area]
        shown = [unread] if unread is not None else panes[::-1]
        return next((page for one in shown if (page := one.page_shown)), "")

    def _view_keys(self, step: Step) -> list[Shown]:
        """Return the keys that switch between page, chart and table."""
        page, reads, layout = self._page, self._page.view == "lesson", step.layout
        if step.reading_first:
            return []
        if layout.chart or page.table:
            lesson = [] if self.wide else [("chapter.lesson", "chart" if reads else "lesson")]
            more = "all of it" if self._cuts and step.names_table == "table" else step.names_table
            return [*lesson, ("chapter.table", "back to chart" if page.table else more)]
        if self.wide:
            other = self.query_one("#data" if reads else "#lesson", Pane)
            scrolls = "scroll figures" if reads else "scroll lesson"
            return [("chapter.lesson", scrolls)] if other.max_scroll_y else []
        return [("chapter.lesson", step.work_label if reads else "lesson")] if layout.alone else []

    def show_result(self) -> None:
        """Show the step's result."""
        result = self.sheet("#result")
        result.renew()
        self.query_one("#result-band").set_class(not result.lines(self.size.width), "-empty")
        # Figures without a chart have the frame of their own.
        title, framed = self.step.capitalize(), self.has_class("-text")
        self.query_one("#work").border_title, self.query_one("#data").border_title = title, title if framed else None

    # -- the way through the loop ----------------------------------------------------------------------------------

    def tell_busy(self) -> None:
        """Say why the pressed key does nothing. During a block nothing is painted, so the sentence is shown after the
        block."""
        running = self._page.run
        if running is None:
            self.tell(OBSERVES)
        elif not running.waiting and not running.stopping:
            self.said = RUN_IS_ON
            if not running.in_block:
                self.redraw()

    def action_enter(self) -> None:
        if self._page.run is not None or self._page.observing is not None:
            self.tell_busy()
            return
        if (pane := self._unread()) is not None:
            if self.said == keys_that_wait.FIRST_STEP:
                # The answer to an earlier key is not about the text that follows.
                self.tell("")
            pane.turn_page(1)
        else:
            self.action_press("enter")

    def action_skip(self) -> None:
        """Do what Enter does at a page's end, even if unread lines are below. But never make changes that were not
        seen."""
        if self._skips:
            self.action_press("enter")

    def action_boots(self) -> None:
        """Go on at once if Enter would only scroll a text that is not read to its end. Otherwise let the step do its
        work for the key.
        """
        self.action_press("enter" if self._skips else "boots")

    @property
    def _skips(self) -> bool:
        """Return True if Enter would only scroll a text, and does no more than go on at the text's end."""
        return self._unread() is not None and not self.now.enter_key.acts

    def action_press(self, key: str) -> None:
        """Let the present step do its work for a key, and then do the work that the step asks for."""
        if key == "enter":
            self._skipped_question = False
        try:
            work = self.now.press(key)
        except WorkshopError as error:
            self.tell(error.sentence())
        else:
            self._do(work)

    def _do(self, work: Work) -> None:
        """Do the work that a step asks for."""
        if work != "stay":
            self._skipped_question = False
        match work:
            case "measure":
                self._from_the_top()
                self._hunt.measure(self.step)
            case "measure hunted":
                self.walk.go("again")
                self.enter_step()
                self._runs.measure("again")
            case "measure first" | "measure second":
                slot = SLOTS[work == "measure second"]
                if self._went(slot):
                    self.enter_step()
                    self._runs.measure(slot)
            case "measure missing":
                self._go_and_measure(looks_first=self.now.before_guess)
            case "observe":
                self._observer.observe()
            case "observe again":
                self._observe_again()
            case "apply" if self._page.planned is not None:
                self.frame.class_turn.with_turn(partial(self._apply, self._page.planned))
            case "adopt":
                self._by_hand.enter()
            case "by hand":
                self._by_hand.switch()
            case "hide":
                self._hunt.ask()
            case "name":
                self._hunt.name()
            case "cure":
                self._hunt.cure()
            case "enough":
                self._hunt.enough()
            case "causes":
                self._runs.show_causes()
            case "leave":
                self.leave()
            case "go on":
                self._go_on()

    def _from_the_top(self) -> None:
        """Show other figures from their first line: the pane may have been scrolled for the figures before."""
        self._seen.clear()
        self.query_one("#data", Pane).scroll_home(animate=False)

    def _go_on(self) -> None:
        """Go to the next step; after the last one, to the home screen. Home takes a second to judge all runs, so the
        key shows at once that it was taken."""
        if self.step != self.walk.chapter.steps[-1]:
            self._go_on_now()
        elif not self._finishing:
            self._finishing = True
            self.tell(FINISHING)
            self.call_after_refresh(self._finish)

    def _finish(self) -> None:
        """Finish the chapter, unless a later key has led elsewhere."""
        if self._finishing and self.is_current:
            self._go_on_now()

    def _go_on_now(self) -> None:
        self._finishing, asked = False, self.step == "diagnose"
        try:
            following = self.walk.next()
        except WorkshopError as error:
            self.tell(error.sentence())
            return
        if following is None:
            self.leave()
        else:
            self._skipped_question = asked
            self.enter_step()

    def action_back(self) -> None:
        self._finishing = False
        if self.walk.back() is not None:
            self.enter_step()
        else:
            self.tell(keys_that_wait.FIRST_STEP)

    @on(LoopLine.Clicked)
    def _step_clicked(self, message: LoopLine.Clicked) -> None:
        self.go_to_step(message.step)

    def go_to_step(self, step: StepName) -> None:
        """Go to a step, or say why the learner may not enter it. Do nothing while something is measured or changed."""
        if self._page.run is not None or self._page.observing is not None or self.frame.at_work:
            return
        if self._went(step):
            self.enter_step()

    def _went(self, step: StepName) -> bool:
        """Go to a step and return True. If the learner may not enter the step, show the reason and return False. If
        the plan has changed, ask the learner to agree to the new plan and return False.
        """
        try:
            if self.now.holds_before(step):
                return False
            self.walk.go(step)
        except WorkshopError as error:
            self.tell(error.sentence())
            return False
        return True

    def action_home(self) -> None:
        """Stop the measurement or the observation. If neither is going on, close the hint. If no hint is shown either,
        go to the home screen.
        """
        if (running := self._page.run or self._page.observing) is not None:
            running.stop()
            self.redraw()
        elif self._hinted:
            self.tell("")
        else:
            self.leave()

    # -- runs ------------------------------------------------------------------------------------------------------

    def _go_and_measure(self, *, looks_first: bool = False) -> None:
        """Go to the first step whose run is missing, and make that run. This never replaces an existing run. If no run
        is missing, only a sentence is shown. ``looks_first``: True to make a run that does not count if it would take
        the learner's guess away.
        """
        if self.walk.host.rehearsed:
            self.tell(f"{chapter_view.NOTHING_MEASURED}.")
            return
        missing = [s for s in SLOTS if s in self.walk.chapter.steps and self.walk.runs.run_in(s) is None]
        if not missing:
            self.tell("All runs of this chapter are made. To repeat a run, go to its step and press m.")
        elif self._went(missing[0]):
            self.enter_step()
            if self.now.hunt.to_hide:
                return
            if looks_first and self.walk.guess.is_open_before(missing[0]):
                self._runs.look_first(missing[0], self._ask_guess)
            else:
                self._hunt.measure(missing[0])

    def _ask_guess(self, said: str, complete: bool) -> None:
        """Go to the question of the guess, with the run that the learner has just seen. ``said``: a sentence on this
        run. ``complete``: False if the run was stopped or has failed."""
        if "predict" in self.walk.chapter.steps and self._went("predict"):
            self.enter_step()
            self._page.view = "work"
            self.tell(f"{_STILL_OPEN.format(why=_DOES_NOT_COUNT if complete else '')} {said}".strip())
            self.now.figures_opened()

    def _observe_again(self) -> None:
        """Observe the learner's program, from any step."""
        if self.walk.program.why_not:
            self.tell(f"Nothing is observed: {self.walk.program.why_not}.")
        elif self._went("measure"):
            self.enter_step()
            self._observer.observe()

    def action_program(self) -> None:
        """Open the page for typing the command of a program. Only a chapter about the learner's own program has this
        page."""
        if self.walk.chapter.program:
            self.app.push_screen(CommandPage(self.walk.program.work.words, self._program_chosen))
        else:
            self.tell(keys_that_wait.NO_COMMAND)

    def _program_chosen(self, words: tuple[str, ...]) -> None:
        self.walk.program.choose(words)
        if self.walk.blocked(self.step):
            self.walk.go("measure")
            self.enter_step()
        self.redraw()

    def action_noise(self) -> None:
        if not self.walk.host.rehearsed and self.walk.noise.can_switch:
            self.walk.noise.switch()
            self.enter_step()
            if self.walk.measuring.too_early("measure"):
                self.tell(WITH_SETTINGS)
            elif self.walk.measuring.unmeasured("measure"):
                self._runs.measure("measure")
        else:
            self.tell(keys_that_wait.NO_NOISE)

    # -- changes ---------------------------------------------------------------------------------------------------

    def _apply(self, shown: PlanView) -> None:
        """Write the plan's changes to the host on a thread. ``shown``: the plan that the learner has seen."""

        def apply_and_look() -> ApplyOutcome:
            view = self.walk.apply(shown)
            # The list of what a chapter looks at begins with its tunables' own assessments.
            return view, self.walk.host.look()[: len(self.walk.chapter.tunables)]

        changes = shown.changes
        self.tell(f"Applying: {tally(one.tunable for one in changes)}…" if changes else "Reading the settings again…")
        self.on_thread(apply_and_look, self._applied, self._applied)

    def _applied(self, tried: ApplyOutcome) -> None:
        self._page.tried = tried
        notice = "" if isinstance(tried, WorkshopError) else self.workshop.context.agent_connection.notice
        self._page.tell_work(capital(notice))

    def action_restore(self) -> None:
        """Restore this chapter's settings; in a hunt, the settings that keep noises away; before the chapter's first
        run, the settings of earlier chapters."""
        if self.walk.sets and self._by_hand.can_restore and self._by_hand.restore():
            return
        if not self.walk.sets or not (self.walk.host.applied or self._by_hand.can_restore):
            if self.now.gives_back:
                self._ask_to_give_back(self.now.gives_back)
            elif not self._hunt.let_in():
                self.tell(NOTHING_OF_CHAPTER)
            return
        warned = others_warned(self.workshop.of_others(), self.walk.host.ids)
        if warned:
            self._ask_to_restore(RESTORE_OTHERS, warned, self._restore_chapter)
        else:
            self._restore_chapter()

    def _ask_to_give_back(self, ids: tuple[str, ...]) -> None:
        """Ask if settings that earlier chapters have applied may be restored."""
        told = [f"These settings are restored: {list_ids(ids)}.", *others_warned(self.workshop.of_others(), ids)]
        self._ask_to_restore(GIVE_BACK, told, partial(self._restore, partial(self.workshop.give_back, ids)))

    def _ask_to_restore(self, title: str, told: Sequence[str], agreed: Callable[[], None]) -> None:
        def about(width: int) -> Iterable[Text]:
            for said in told:
                yield from wrap(Text(said, "text"), width)

        self.app.push_screen(Question(title, about, "Enter restores the settings · Esc changes nothing", agreed))

    def _restore_chapter(self) -> None:
        self._restore(self.walk.restore)

    def _restore(self, work: Callable[[], RestoreResult]) -> None:
        self.tell("Restoring…")
        then = partial(self._chapter_restored, len(self.workshop.written()))
        self.on_thread(work, then, self.refused("Not restored"))

    def _chapter_restored(self, before: int, result: RestoreResult) -> None:
        """Tell what was restored. ``before``: the number of this tool's writes that were in effect before."""
        self._page.tried = self._page.planned = self._page.by_hand = None
        self.tell(came_back(result, before, len(self.workshop.written())))

    # -- looking ---------------------------------------------------------------------------------------------------

    def action_lesson(self) -> None:
        """Switch between lesson and chart on a narrow screen. On a wide screen, choose if the arrow keys scroll the
        lesson or the other pane.
        """
        page, step = self._page, self.now
        if self.wide or step.layout.chart or page.table or step.layout.alone:
            page.view = "work" if page.view == "lesson" else "lesson"
            self.redraw()
        else:
            self.tell(keys_that_wait.NO_PAGES)

    def action_table(self) -> None:
        if self._page.table or self.now.layout.chart:
            self._page.table = not self._page.table
            self._page.view = "work"
            self.query_one("#data", Pane).scroll_home(animate=False)
            self.redraw()
        else:
            self.tell(keys_that_wait.NO_TABLE)

    def action_hint(self) -> None:
        if self.walk.hints_are_over:
            self.tell(chapter_view.HINTS_OVER)
            return
        hint = self.walk.hint()
        if hint is None:
            shown = self.walk.chapter.hints
            hint = f"No more hints. The last one was: {shown[-1]}" if shown else "This chapter has no hints."
        self._hint = hint
        self.tell(hint)

    def pane(self) -> Pane:
        layout = self.now.layout
        chart_alone = layout.chart and not (layout.both and self.tall)
        lesson = self._page.view == "lesson" or (self.wide and chart_alone)
        return cast(Pane, self.query_one("#lesson" if lesson else "#data"))

    def action_vertical(self, by: int) -> None:
        if not self.now.vertical(-by):
            super().action_vertical(by)

    def action_sideways(self, by: int) -> None:
        if self.now.sideways(by):
            return
        page = self._page
        count = len(self.now.curves())
        if self.now.layout.chart and count:
            highlighted = count - 1 if page.highlight is None else page.highlight
            page.highlight = (highlighted + by) % count
            self.redraw()
        else:
            self._does_nothing(keys_that_wait.NO_CURVES)

    def digit(self, index: int) -> None:
        if self.now.digit(index):
            return
        if self.now.layout.chart and index < len(self.now.curves()):
            self._page.highlight = index
            self.redraw()
        else:
            self._does_nothing(keys_that_wait.NO_NUMBER)

    def unknown(self) -> None:
        self._does_nothing(keys_that_wait.NO_KEY)

    def _does_nothing(self, why: str) -> None:
        """Show ``why``, the reason why a key does nothing. But during a measurement, say that something is being
        measured. While the host is being changed, show nothing.
        """
        if self._page.run is not None or self._page.observing is not None:
            self.tell_busy()
        elif not self.frame.at_work:
            self.tell(why)
