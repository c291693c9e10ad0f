"""Show what took a run's time: the causes, the worst stalls as bars of time, and who else ran on the measured CPUs. For
a run without a trace show counters, the longest stalls, and commands to run by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Literal

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.geometry import Region

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.attribution import Stopped
from jitter_workshop.model.evidence import CounterReport, EvidenceReport
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import clean
from jitter_workshop.presenter import causes as views
from jitter_workshop.presenter import counters
from jitter_workshop.presenter.lines import waiting
from jitter_workshop.tui.background import aside
from jitter_workshop.tui.screens.common.base import WorkshopScreen
from jitter_workshop.tui.widgets.keybar import Shown
from jitter_workshop.tui.widgets.sheet import Pane, Sheet, panel

Page = Literal["causes", "stalls", "others"]
PAGES: tuple[Page, ...] = ("causes", "stalls", "others")
_NEXT: dict[Page, str] = {"causes": "stalls", "stalls": "who else ran", "others": "causes"}
_NEXT_COUNTED: dict[Page, str] = {"causes": "stalls", "stalls": "by hand", "others": "counters"}
_HIGH = 36
"""The lines of a terminal from which stalls in the list stand apart."""


class EvidenceScreen(WorkshopScreen, scope="causes"):
    """Show a run's causes. A thread finds them block by block: a noisy run takes seconds. Closing stops the thread."""

    def __init__(self, run: Run, focus: Sequence[str] = ()) -> None:
        """Set the run. ``focus``: words of a chapter's ``evidence``; if a page is about them, that page is shown
        first."""
        super().__init__()
        self.shown_run = run
        self._focus = focus
        self._report: EvidenceReport | CounterReport | None = None
        self._page: Page = "others" if views.focused(focus) else "causes"
        self._cursor = 0
        self._went = (0, 0)
        self._stopped = False
        self._writing = False

    def body(self) -> ComposeResult:
        yield Sheet(self._head, id="causes-head")
        with Horizontal(id="causes-main"):
            with panel(Pane(id="causes-list")):
                yield Sheet(self._causes, id="causes-sheet")
            with panel(Vertical(id="causes-stalls")):
                with Pane(id="causes-stalls-list"):
                    yield Sheet(self._stalls, id="causes-stalls-sheet")
                with Pane(id="causes-stall-page"):
                    yield Sheet(self._stall, id="causes-stall")
            with panel(Pane(id="causes-others")):
                yield Sheet(self._others, id="causes-others-sheet")
        yield Sheet(self.say_lines, id="say")

    def heading(self) -> str:
        return f"Who took the time · {clean(self.shown_run.label or self.shown_run.id, 40)}"

    def keys(self) -> Sequence[Shown]:
        turns = _NEXT_COUNTED if isinstance(self._report, CounterReport) else _NEXT
        tracks = (("causes.tracks", ""),) if isinstance(self._report, EvidenceReport) else ()
        rest = (("causes.copy", ""), ("app.help", ""), ("causes.close", ""))
        return (("causes.turn", turns[self._page]), *tracks, *rest)

    def on_mount(self) -> None:
        self.run_worker(self._explain(), exclusive=True, group="explain")

    async def _explain(self) -> None:
        try:
            self._report = await aside(partial(self.workshop.causes, self.shown_run, self._told))
        except WorkshopError as error:
            self.said = error.sentence()
        finally:
            # This also runs when the screen is closed or the workshop is left: the thread ends at its next block.
            self._stopped = True
        if isinstance(self._report, CounterReport):
            self._page = "causes"
        self.redraw()

    def _told(self, done: int, total: int) -> None:
        """Show progress of the work on the thread. Raises Stopped, on the thread, after the screen was closed."""
        if self._stopped:
            raise Stopped("explaining was stopped")
        self.call_later(self._goes_on, done, total)

    def _goes_on(self, done: int, total: int) -> None:
        self._went = (done, total)
        if self._report is None:
            self.sheet("#causes-head").renew()

    # -- layout ----------------------------------------------------------------------------------------------------

    def redraw(self) -> None:
        for page in PAGES:
            self.set_class(self._page == page, f"-{page}")
        super().redraw()

    def _head(self, width: int) -> Iterable[Text]:
        if self._report is None:
            done, total = self._went
            block = f"Explaining: block {min(done + 1, total)} of {total}. Esc stops it."
            told = waiting(block if total else "Reading the trace…", done, total, width)
            return [Text("Nothing is known about this run's stalls.", "dim")] if self.said else told
        if isinstance(self._report, CounterReport):
            return counters.head(self._report, width)
        return views.head(self._report, width)

    def _causes(self, width: int) -> Iterable[Text]:
        if isinstance(self._report, CounterReport):
            return counters.counters(self._report, width)
        return views.causes(self._report, width) if self._report is not None else ()

    def _stalls(self, width: int) -> Iterable[Text]:
        if self._report is None:
            return
        if isinstance(self._report, CounterReport):
            yield from counters.stalls(self._report, self._cursor, width)
            return
        yield Text("THE WORST STALLS, FROM LEFT TO RIGHT IN TIME", "bold dim")
        for index, stall in enumerate(self._report.worst):
            yield views.stall_line(index + 1, stall, index == self._cursor, width)
            yield from [Text()] * (self._row_height - 1)

    @property
    def _row_height(self) -> int:
        """Return the lines of a stall in the list: on a high screen an empty line keeps the bars apart."""
        traced = isinstance(self._report, EvidenceReport)
        return 2 if traced and self.app.size.height >= _HIGH else 1

    def _stall(self, width: int) -> Iterable[Text]:
        """Yield the stall under the cursor, in full."""
        if not isinstance(self._report, EvidenceReport) or not self._report.worst:
            return
        yield from views.stall_page(self._report.worst[self._cursor], width)

    def _others(self, width: int) -> Iterable[Text]:
        if isinstance(self._report, CounterReport):
            return counters.by_hand_lines(self._report, width)
        return views.ran_there(self._report, self._focus, width) if self._report is not None else ()

    # -- keys ------------------------------------------------------------------------------------------------------

    def pane(self) -> Pane:
        return self.query_one(
            {"causes": "#causes-list", "others": "#causes-others"}.get(self._page, "#causes-stalls-list"), Pane
        )

    def action_vertical(self, by: int) -> None:
        if self._page != "stalls":
            super().action_vertical(by)
        elif self._report is not None and self._report.worst:
            self._cursor = max(0, min(self._cursor + by, len(self._report.worst) - 1))
            self.redraw()
            row = self._cursor * self._row_height
            self.pane().scroll_to_region(Region(0, row, 1, 2 + self._row_height), animate=False)

    def action_turn(self) -> None:
        self._page = PAGES[(PAGES.index(self._page) + 1) % len(PAGES)]
        self.redraw()

    def action_tracks(self) -> None:
        if not isinstance(self._report, EvidenceReport):
            self.tell("A Perfetto file shows a trace, and there is none to write.")
        elif not self._writing:
            self._writing = True
            self.tell("Writing the tracks of the trace…")
            self.run_worker(self._write_tracks(self._report), group="tracks")

    async def _write_tracks(self, report: EvidenceReport) -> None:
        from jitter_workshop.flow.reporting.perfetto import write_run

        try:
            path = await aside(partial(write_run, self.workshop.handle, self.shown_run, report))
            self.said = f"Written: {clean(path, 300)}. Open it at https://ui.perfetto.dev."
        except WorkshopError as error:
            self.said = f"{error.sentence()}."
        finally:
            self._writing = False
        self.redraw()

    def action_copy(self) -> None:
        commands: Iterable[str] = ()
        if isinstance(self._report, CounterReport):
            commands = [command for command, _ in counters.by_hand(self._report)]
        elif self._report is not None and self._report.residence is not None:
            commands = views.by_hand(self._report.residence.proof.cpus)
        if commands:
            self.copy(commands, "The commands that show it by hand are")
