"""Provide the screen for where the time of a run or of a program went. It has three pages: the causes, the longest
stalls, and the other tasks that ran."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.geometry import Region

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.attribution import Stopped
from jitter_workshop.model.text import PATH, clean
from jitter_workshop.presenter.course.keys_that_wait import NO_KEY
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.background import aside
from jitter_workshop.tui.screens.common.base import WorkshopScreen
from jitter_workshop.tui.widgets.keybar import Shown
from jitter_workshop.tui.widgets.sheet import Pane, Sheet, panel

CausesPage = Literal["causes", "stalls", "others"]
PAGES: tuple[CausesPage, ...] = ("causes", "stalls", "others")
_HIGH = 36
"""The number of terminal lines from which an empty line separates the stalls in the list."""


class CausesScreen(WorkshopScreen, scope="causes"):
    """Show findings on three pages. A thread computes the findings in :meth:`explain`; closing the screen stops the
    thread."""

    def __init__(self) -> None:
        super().__init__()
        self.page: CausesPage = "causes"
        self.cursor = 0
        self.stopped = False
        self._writing = False

    def body(self) -> ComposeResult:
        yield Sheet(self.head_lines, id="causes-head")
        with Horizontal(id="causes-main"):
            with panel(Pane(id="causes-list")):
                yield Sheet(self.causes_lines, id="causes-sheet")
            with panel(Vertical(id="causes-stalls")):
                with Pane(id="causes-stalls-list"):
                    yield Sheet(self.stalls_lines, id="causes-stalls-sheet")
                with Pane(id="causes-stall-page"):
                    yield Sheet(self.stall_lines, id="causes-stall")
            with panel(Pane(id="causes-others")):
                yield Sheet(self.others_lines, id="causes-others-sheet")
        yield Sheet(self.say_lines, id="say")

    def keys(self) -> Sequence[Shown]:
        more = (("causes.page_down", "more below"),) if self.pane().more_below else ()
        tracks = (("causes.tracks", ""),) if self.traced else ()
        # The words of the page stay where the footer has no room for all keys.
        rest = (("app.glossary", ""), ("causes.copy", ""), ("app.help", ""), ("causes.close", ""))
        return (("causes.turn", self.turns[self.page]), *more, *tracks, *rest)

    def on_mount(self) -> None:
        for pane in self.query(Pane):
            for changing in ("scroll_y", "virtual_size"):
                self.watch(pane, changing, self._scrolled, init=False)
        self.run_worker(self._explain(), exclusive=True, group="explain")

    def _scrolled(self) -> None:
        """Show the keys again after the layout: only then does a pane know if it has more below."""
        self.call_after_refresh(self.refresh_keys)

    async def _explain(self) -> None:
        try:
            await self.explain()
        except WorkshopError as error:
            self.said = error.sentence()
        finally:
            # This also runs when the screen is closed or the workshop is left: the thread ends at its next look.
            self.stopped = True
        self.redraw()

    def told(self, tell: Callable[[], None]) -> None:
        """Make the screen's thread call ``tell``. Only the worker's thread may call this method. Raise Stopped if the
        screen is closed."""
        if self.stopped:
            raise Stopped("explaining was stopped")
        self.call_later(tell)

    # -- what a screen of its own has ------------------------------------------------------------------------------

    async def explain(self) -> None:
        """Compute the findings that the pages show. This is called on a thread. Raise WorkshopError if that fails."""
        raise NotImplementedError

    @property
    def turns(self) -> dict[CausesPage, str]:
        """Return page → label of the key that switches from this page to the next."""
        raise NotImplementedError

    @property
    def traced(self) -> bool:
        """Return True if the findings on the screen come from a trace."""
        raise NotImplementedError

    @property
    def worst(self) -> Sequence[object]:
        """Return the stalls that the cursor moves among."""
        raise NotImplementedError

    def head_lines(self, width: int) -> Iterable[Text]:
        raise NotImplementedError

    def causes_lines(self, width: int) -> Iterable[Text]:
        raise NotImplementedError

    def stalls_lines(self, width: int) -> Iterable[Text]:
        raise NotImplementedError

    def stall_lines(self, width: int) -> Iterable[Text]:
        """Return the stall under the cursor, in full."""
        raise NotImplementedError

    def others_lines(self, width: int) -> Iterable[Text]:
        raise NotImplementedError

    def write_tracks(self) -> Path:
        """Write the trace as a Perfetto file. Raise WorkshopError if that fails."""
        raise NotImplementedError

    def commands(self) -> Iterable[str]:
        """Return the commands by which the user can see the same findings without this program."""
        raise NotImplementedError

    # -- layout ----------------------------------------------------------------------------------------------------

    def redraw(self) -> None:
        self.update_classes({f"-{page}": self.page == page for page in PAGES})
        super().redraw()
        self._scrolled()

    @property
    def row_height(self) -> int:
        """Return the number of lines that each stall has in the list. If the screen has many rows, a second line
        follows each stall of a trace. It has the bar that the first line has no room for, or is empty.
        """
        return 2 if self.traced and self.app.size.height >= _HIGH else 1

    # -- keys ------------------------------------------------------------------------------------------------------

    def unknown(self) -> None:
        self.tell(NO_KEY)

    def pane(self) -> Pane:
        return self.query_one(
            {"causes": "#causes-list", "others": "#causes-others"}.get(self.page, "#causes-stalls-list"), Pane
        )

    def action_vertical(self, by: int) -> None:
        if self.page != "stalls":
            super().action_vertical(by)
        elif self.worst:
            self.cursor = max(0, min(self.cursor + by, len(self.worst) - 1))
            self.redraw()
            row = self.cursor * self.row_height
            self.pane().scroll_to_region(Region(0, row, 1, 2 + self.row_height), animate=False)

    def to_end(self, by: int) -> None:
        if self.page != "stalls":
            super().to_end(by)
        else:
            self.action_vertical(by * len(self.worst))

    def action_turn(self) -> None:
        self.page = PAGES[(PAGES.index(self.page) + 1) % len(PAGES)]
        self.redraw()

    def action_tracks(self) -> None:
        if not self.traced:
            self.tell("This run has no trace, so it has no Perfetto file.")
        elif not self._writing:
            self._writing = True
            self.tell("Writing the tracks of the trace…")
            self.run_worker(self._write_tracks(), group="tracks")

    async def _write_tracks(self) -> None:
        try:
            path = await aside(self.write_tracks)
            self.said = f"Written: {clean(path, PATH)}. Open it at https://ui.perfetto.dev."
        except WorkshopError as error:
            self.said = f"{error.sentence()}."
        finally:
            self._writing = False
        self.redraw()

    def action_copy(self) -> None:
        commands = tuple(self.commands())
        if commands:
            self.copy(commands, "The commands for these causes are")
